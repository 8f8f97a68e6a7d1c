"""Looks one after the other are the looks that histories and the ledger see."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from recrawl.model import Outcome, Pages, Verdict, Visits
from recrawl.schedule.learning.observation_columns import LastVisits, fold, rounds

visit = st.tuples(
    st.integers(0, 3),
    st.integers(0, 12).map(float),
    st.sampled_from([Outcome.FETCHED, Outcome.REDIRECTED, Outcome.GONE, Outcome.SERVER_ERROR, Outcome.UNREACHABLE]),
    st.sampled_from(list(Verdict)),
)


def visits_of(rows):
    page, time, outcome, verdict = zip(*rows, strict=True) if rows else ((), (), (), ())
    return Visits.of(
        np.array(page, dtype=np.int64), np.array(time, dtype=float), outcome=list(outcome), verdict=list(verdict)
    )


@given(st.lists(visit, max_size=30), st.lists(visit, max_size=30))
def test_they_are_those_of_the_ledger(first, second):
    last_visits = LastVisits()
    last_visits.add(Pages.of(np.arange(4)))
    last_observed, failed = np.full(4, np.nan), np.zeros(4, np.bool_)
    for batch in (visits_of(first), visits_of(second)):
        gaps = last_visits.tell(batch)
        observations = fold(batch.page, batch, last_observed, failed)
        closed = observations.take(~observations.opens())
        np.testing.assert_array_equal(closed.row, gaps.row)
        np.testing.assert_array_equal(closed.seconds, gaps.seconds)
        np.testing.assert_array_equal(closed.changed, gaps.changed)
        np.testing.assert_array_equal(last_observed, last_visits.last_observed)
        assert not observations.changed[observations.opens()].any()


@given(st.lists(visit, max_size=30), st.integers(0, 12))
def test_batches_cut_in_time_tell_the_same(rows, cut):
    """Outcomes and failures too: two batches, one after the other, are one."""
    whole = fold(visits_of(rows).page, visits_of(rows), np.full(4, np.nan), np.zeros(4, np.bool_))
    last_observed, failed = np.full(4, np.nan), np.zeros(4, np.bool_)
    parts = [visits_of([row for row in rows if (row[1] < cut) == early]) for early in (True, False)]
    found = [fold(part.page, part, last_observed, failed) for part in parts]
    joined = [np.concatenate(columns) for columns in zip(*found, strict=True)]
    order = np.lexsort((joined[1], joined[0]))
    for column, expected in zip(joined, whole, strict=True):
        np.testing.assert_array_equal(column[order], expected)


def test_failures_before_a_look_are_told_also_across_batches():
    last_observed, failed = np.full(1, np.nan), np.zeros(1, np.bool_)
    ok, bad = (0, Outcome.FETCHED, Verdict.UNCHANGED), (0, Outcome.UNREACHABLE, Verdict.UNKNOWN)

    def tell(*rows):
        batch = visits_of([(page, time, outcome, verdict) for time, (page, outcome, verdict) in rows])
        return fold(batch.page, batch, last_observed, failed).after_failure.tolist()

    assert tell((1.0, ok), (2.0, bad), (3.0, ok), (4.0, ok), (5.0, bad)) == [False, True, False]
    assert failed.tolist() == [True]
    assert tell((6.0, bad)) == []
    assert tell((7.0, ok), (8.0, ok)) == [True, False]
    assert failed.tolist() == [False]


def test_a_visit_without_a_time_is_refused():
    batch = Visits.of([0], [np.nan])
    with pytest.raises(ValueError, match="finite"):
        fold(batch.page, batch, np.full(1, np.nan))


@given(st.lists(st.integers(0, 5), max_size=40))
def test_rounds_hold_each_row_once_and_all_entries_in_order(rows):
    row = np.sort(np.array(rows, dtype=np.int64))
    parts = list(rounds(row))
    for part in parts:
        assert len(np.unique(row[part])) == len(part)
    told = np.concatenate(parts) if parts else np.empty(0, np.int64)
    assert sorted(told.tolist()) == list(range(len(row)))
    for number in np.unique(row):
        places = [place for place in told.tolist() if row[place] == number]
        assert places == sorted(places)
