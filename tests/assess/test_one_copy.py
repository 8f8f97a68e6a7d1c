"""One copy at a time says what the columns say."""

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from recrawl.assess.observations import Observations
from recrawl.assess.replay_selection import observations_of_one, sharpness, sharpness_of_one
from recrawl.model import ChangeKind, Outcome, Visits

seconds = st.integers(0, 40).map(float)
visited = st.dictionaries(
    seconds,
    st.tuples(
        st.sampled_from([Outcome.FETCHED, Outcome.NOT_MODIFIED, Outcome.GONE, Outcome.UNREACHABLE]),
        st.sampled_from([0, 1, 2]),
        st.sampled_from([0, int(ChangeKind.TEXT), int(ChangeKind.EXACT)]),
    ),
    max_size=12,
)
rates = st.one_of(st.just(np.nan), st.just(0.0), st.floats(1e-12, 1e3))


@settings(max_examples=500)
@given(visited, rates, seconds, st.floats(-5, 50))
def test_it_says_what_the_columns_say(found, rate, time, at):
    rows = sorted(found.items())
    outcome, verdict, kinds = ([row[1][column] for row in rows] for column in range(3))
    visits = Visits.of([7] * len(rows), [row[0] for row in rows], outcome=outcome, verdict=verdict, kinds=kinds)
    observations = Observations.from_visits(visits)
    columns = sharpness(
        observations, np.full(len(observations), rate), np.array([7]), np.array([time]), at, readable=np.array([True])
    )
    alone = sharpness_of_one(observations_of_one(visits), rate, time, at, readable=True)
    for name in ("at", "time", "first", "last"):
        assert getattr(alone, name).tolist() == getattr(columns, name).tolist(), name
    assert np.allclose(alone.expected, columns.expected, rtol=1e-9, atol=1e-12, equal_nan=True)
