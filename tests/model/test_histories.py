"""Histories against a plain-Python reading of their rules, on visits of every odd kind."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from recrawl.model import ANSWERED, UNCOUNTED, ChangeKind, Histories, Outcome, Verdict, Visit, Visits

KINDS = [
    ChangeKind.NONE,
    ChangeKind.CONTENT,
    ChangeKind.TEXT,
    ChangeKind.LINKS,
    ChangeKind.TEXT | ChangeKind.LINKS,
    ChangeKind.EXISTENCE,
]

visit_rows = st.lists(
    st.builds(
        Visit,
        page=st.integers(0, 5) | st.sampled_from([10**12, -3]),
        # Few distinct times, so that the same instant comes up often.
        time=st.integers(0, 12).map(float) | st.floats(1.0e9, 2.0e9),
        outcome=st.sampled_from(Outcome),
        verdict=st.sampled_from(Verdict),
        kinds=st.sampled_from(KINDS),
        new_internal=st.sampled_from([UNCOUNTED, 0]),
    ),
    max_size=40,
)


def says(visit: Visit, kind: ChangeKind | None) -> Verdict:
    if kind is None or visit.verdict != Verdict.CHANGED:
        return visit.verdict
    if visit.kinds & kind:
        return Verdict.CHANGED
    if visit.kinds & ChangeKind.EXISTENCE:
        return Verdict.UNCHANGED
    read = ChangeKind.TEXT | ChangeKind.LINKS if kind == ChangeKind.TEXT else ChangeKind.LINKS
    compared = bool(visit.kinds & read) or (kind == ChangeKind.LINKS and visit.new_internal != UNCOUNTED)
    return Verdict.UNCHANGED if compared else Verdict.UNKNOWN


def looks_by_page(rows: list[Visit], kind: ChangeKind | None = None) -> dict[int, list[tuple[float, Verdict]]]:
    """The rules of the module, one page and one instant at a time."""
    merged: dict[int, dict[float, tuple[Verdict, bool, bool, bool]]] = {}
    for visit in rows:
        nothing = (Verdict.UNKNOWN, False, False, False)
        verdict, answered, differs, read = merged.setdefault(visit.page, {}).get(visit.time, nothing)
        merged[visit.page][visit.time] = (
            max(verdict, says(visit, kind)),
            answered or visit.outcome <= ANSWERED,
            differs or visit.verdict == Verdict.CHANGED,
            read or is_read(visit, kind),
        )
    return {page: longest_run(instants) for page, instants in merged.items()}


def is_read(visit: Visit, kind: ChangeKind | None) -> bool:
    if kind == ChangeKind.TEXT:
        return bool(visit.kinds & (ChangeKind.TEXT | ChangeKind.LINKS))
    return kind == ChangeKind.LINKS and (bool(visit.kinds & kind) or visit.new_internal != UNCOUNTED)


def longest_run(instants: dict[float, tuple[Verdict, bool, bool, bool]]) -> list[tuple[float, Verdict]]:
    """The observations that nothing divides of which is not known what changed: the most, of equal ones the latest.

    If there is more than one run, only those count in which somebody read the page.
    """
    runs: list[list[tuple[float, Verdict]]] = [[]]
    reads, opened = [False], False
    for time in sorted(instants):
        verdict, answered, differs, read = instants[time]
        if differs and verdict == Verdict.UNKNOWN:
            runs.append([])
            reads.append(False)
            opened = answered
        reads[-1] |= read
        if verdict != Verdict.UNKNOWN or answered:
            runs[-1].append((time, verdict))
    if len(runs) == 1:
        best = runs[0]
    elif any(reads):
        best = max(reversed([run for run, read in zip(runs, reads, strict=True) if read]), key=len)
    else:
        best = runs[-1][:opened]
    return [observation for place, observation in enumerate(best) if not place or observation[1] != Verdict.UNKNOWN]


def assert_equals(histories: Histories, expected: dict[int, list[tuple[float, Verdict]]]) -> None:
    assert histories.page.tolist() == sorted(expected)
    assert histories.offsets[0] == 0
    assert histories.offsets[-1] == len(histories.gaps) == len(histories.changed)
    assert (histories.gaps > 0).all()
    observation_times = histories.observation_times()
    for i, page in enumerate(sorted(expected)):
        observations = expected[page]
        gaps = slice(histories.offsets[i], histories.offsets[i + 1])
        assert observation_times[gaps] == pytest.approx([time for time, _ in observations[1:]], abs=1e-6)
        assert histories.changed[gaps].tolist() == [verdict == Verdict.CHANGED for _, verdict in observations[1:]]
        changes = [time for time, verdict in observations[1:] if verdict == Verdict.CHANGED]
        for column, times in (
            ("first_visit", observations[:1]),
            ("last_visit", observations[-1:]),
            ("last_change", changes[-1:]),
        ):
            value = getattr(histories, column)[i]
            if times:
                assert value == (times[0][0] if isinstance(times[0], tuple) else times[0])
            else:
                assert math.isnan(value)


@given(visit_rows, st.sampled_from([None, ChangeKind.TEXT, ChangeKind.LINKS]))
def test_from_visits_follows_the_rules(rows, kind):
    assert_equals(Histories.from_visits(Visits.from_rows(rows), kind), looks_by_page(rows, kind))


@given(visit_rows, st.randoms(use_true_random=False))
def test_order_and_repetition_of_visits_do_not_matter(rows, chance):
    shuffled = rows + rows[: len(rows) // 2]
    chance.shuffle(shuffled)
    one, two = (Histories.from_visits(Visits.from_rows(r)) for r in (rows, shuffled))
    for column in ("page", "offsets", "gaps", "changed", "first_visit", "last_visit", "last_change"):
        assert np.array_equal(
            getattr(one, column), getattr(two, column), equal_nan=column.endswith(("visit", "change"))
        )


@given(visit_rows, st.integers(0, 12), st.integers(0, 12))
def test_window_keeps_the_looks_inside_and_reopens(rows, a, b):
    start, end = min(a, b), max(a, b)
    cut = {
        page: [observation for observation in observations if start <= observation[0] <= end]
        for page, observations in looks_by_page(rows).items()
    }
    assert_equals(Histories.from_visits(Visits.from_rows(rows)).window(start, end), cut)


@given(visit_rows, st.sampled_from([0.0, 1.0, 3.0]))
def test_a_group_changes_when_any_member_does(rows, round_length):
    histories = Histories.from_visits(Visits.from_rows(rows))
    label = histories.page % 2
    rounds: dict[int, dict[float, tuple[float, Verdict]]] = {int(g): {} for g in label}
    for page, observations in looks_by_page(rows).items():
        for i, (time, verdict) in enumerate(observations):
            said = Verdict.UNKNOWN if i == 0 else verdict
            key = math.floor(time / round_length) if round_length else time
            latest, word = rounds[page % 2].get(key, (time, Verdict.UNKNOWN))
            rounds[page % 2][key] = (max(latest, time), max(word, said))
    expected = {}
    for group, instants in rounds.items():
        observations = [instants[key] for key in sorted(instants)]
        expected[group] = observations[:1] + [
            observation for observation in observations[1:] if observation[1] != Verdict.UNKNOWN
        ]
    assert_equals(histories.group(label, round_length=round_length), expected)


@given(visit_rows, st.lists(st.booleans(), min_size=9, max_size=9))
def test_take_keeps_exactly_the_chosen_rows(rows, chosen):
    expected = looks_by_page(rows)
    histories = Histories.from_visits(Visits.from_rows(rows))
    mask = np.array(chosen[: len(histories)], dtype=bool)
    kept = {page: expected[page] for page in histories.page[mask].tolist()}
    assert_equals(histories.take(mask), kept)
    assert_equals(histories.take(np.flatnonzero(mask)), kept)


@given(visit_rows, st.integers(0, 6))
def test_concatenate_undoes_a_split(rows, modulus):
    whole = Histories.from_visits(Visits.from_rows(rows))
    parts = [whole.take(whole.page % (modulus + 1) == k) for k in range(modulus + 1)]
    assert_equals(Histories.concatenate(parts), looks_by_page(rows))


@given(visit_rows, st.sets(st.integers(-5, 8)))
def test_align_gives_every_asked_page_a_row(rows, asked):
    expected = looks_by_page(rows)
    pages = np.array(sorted(asked), dtype=np.int64)
    aligned = Histories.from_visits(Visits.from_rows(rows)).align(pages)
    assert_equals(aligned, {page: expected.get(page, []) for page in asked})


@given(visit_rows)
def test_sums_agree_with_the_gaps(rows):
    expected = looks_by_page(rows)
    histories = Histories.from_visits(Visits.from_rows(rows))
    pages = sorted(expected)
    assert histories.counts().tolist() == [max(len(expected[p]) - 1, 0) for p in pages]
    assert histories.changes().tolist() == [sum(v == Verdict.CHANGED for _, v in expected[p][1:]) for p in pages]
    spans = [expected[p][-1][0] - expected[p][0][0] if expected[p] else 0.0 for p in pages]
    assert histories.observed() == pytest.approx(spans)


def test_contemporary_times_come_out_exact_after_many_rows():
    rng = np.random.default_rng(7)
    time = 1.6e9 + rng.random(100_000) * 2e8
    visits = Visits.of(rng.integers(0, 5_000, len(time)), time, verdict=Verdict.UNCHANGED).sorted()
    histories = Histories.from_visits(visits)
    closing = np.concatenate([[False], visits.page[1:] == visits.page[:-1]])
    assert np.array_equal(histories.observation_times(), visits.time[closing])


def test_a_visit_without_a_time_is_an_error():
    with pytest.raises(ValueError, match="no finite time"):
        Histories.from_visits(Visits.of([1], [math.nan]))


def test_parts_that_share_a_page_are_refused():
    histories = Histories.from_visits(Visits.of([1, 2], [0.0, 0.0]))
    with pytest.raises(ValueError, match="share a page"):
        Histories.concatenate([histories, histories])


def test_rows_must_be_taken_in_order():
    histories = Histories.from_visits(Visits.of([1, 2], [0.0, 0.0]))
    with pytest.raises(ValueError, match="ascending"):
        histories.take(np.array([1, 0]))


def test_columns_of_unequal_length_are_refused():
    with pytest.raises(ValueError, match="'time' has 1 rows"):
        Visits.of([1, 2], [0.0])


@given(visit_rows, st.integers(0, 4))
def test_latest_keeps_the_last_looks_of_each_page(rows, most):
    expected = {page: observations[-(most + 1) :] for page, observations in looks_by_page(rows).items()}
    assert_equals(Histories.from_visits(Visits.from_rows(rows)).latest(most), expected)
