"""Visits counted by spans of time."""

from __future__ import annotations

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from recrawl.assess.changes_over_time import activity
from recrawl.model import Outcome, Verdict, Visits

VISITS = st.lists(
    st.tuples(
        st.floats(0, 1e9), st.sampled_from([Outcome.FETCHED, Outcome.SERVER_ERROR]), st.sampled_from(list(Verdict))
    ),
    min_size=1,
    max_size=40,
)


@given(VISITS, st.integers(1, 30))
def test_every_visit_is_counted_once(rows, spans):
    time, outcome, verdict = zip(*rows, strict=True)
    seen = activity(Visits.of(page=np.arange(len(rows)), time=time, outcome=outcome, verdict=verdict), spans)
    assert len(seen.edges) == spans + 1
    assert seen.visits.sum() == len(rows)
    assert seen.changed.sum() == sum(one == Verdict.CHANGED for one in verdict)
    assert seen.failed.sum() == sum(one == Outcome.SERVER_ERROR for one in outcome)
    assert (np.diff(seen.edges) > 0).all()


def test_no_visits_make_no_spans():
    seen = activity(Visits.empty())
    assert len(seen.edges) == len(seen.visits) == len(seen.changed) == len(seen.failed) == 0
