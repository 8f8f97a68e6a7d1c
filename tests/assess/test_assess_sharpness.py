import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from recrawl.assess.observations import Observations
from recrawl.assess.replay_selection import Sharpness, observations_of_one, sharpness, sharpness_of_one, shown, spread
from recrawl.model import Verdict, Visits

BOTH = np.array([True, True])

visited = st.lists(
    st.tuples(st.integers(1, 4), st.integers(0, 50), st.sampled_from([0, 1, 2])), min_size=1, max_size=30
)


@given(visited, st.floats(0, 60), st.floats(0.001, 2))
def test_it_says_of_chosen_copies_what_the_collection_says_of_its_own(visits, at, rate):
    page, time, verdict = (list(column) for column in zip(*visits, strict=True))
    observations = Observations.from_visits(Visits.of(page, time, verdict=verdict))
    rates = np.full(len(observations), rate)
    readable = observations.page % 2 == 0
    whole = shown(observations, rates, at).with_bytes(readable)
    found = sharpness(observations, rates, observations.page, whole.time, at, readable=readable)
    assert np.allclose(found.first, whole.first)
    assert np.allclose(found.last, whole.last)
    assert np.allclose(found.expected, whole.expected, atol=1e-9)
    assert np.array_equal(found.proved(), whole.proved())
    assert np.array_equal(found.covered(), whole.covered())
    assert not whole.proved()[~readable].any()
    assert np.allclose(np.abs(found.away()), whole.away())


def test_a_copy_that_is_no_look_stands_for_its_instant_and_an_unknown_page_for_nothing():
    observations = Observations.from_visits(Visits.of([7, 7], [0.0, 10.0], verdict=[0, Verdict.UNCHANGED]))
    found = sharpness(observations, np.array([0.1]), np.array([7, 8]), np.array([5.0, 5.0]), 20.0, readable=BOTH)
    assert found.first.tolist() == found.last.tolist() == [5.0, 5.0]
    assert found.expected[0] == 1.0
    assert np.isnan(found.expected[1])
    assert found.proved().tolist() == [False, False]


def test_an_unknown_rate_leaves_only_what_is_proved():
    observations = Observations.from_visits(Visits.of([7, 7], [0.0, 10.0], verdict=[0, Verdict.UNCHANGED]))
    at = np.array([5.0, 15.0])
    found = sharpness(observations, np.array([np.nan]), np.array([7, 7]), np.zeros(2), at, readable=BOTH)
    assert found.expected[0] == 0.0
    assert np.isnan(found.expected[1])


def test_a_copy_that_nobody_can_read_proves_nothing():
    """Anybody can write a line of an index: what it says is expected, and never proved."""
    observations = Observations.from_visits(Visits.of([7, 7], [0.0, 10.0], verdict=[0, Verdict.UNCHANGED]))
    readable = np.array([True, False])
    found = sharpness(observations, np.array([0.1]), np.array([7, 7]), np.zeros(2), 5.0, readable=readable)
    assert found.covered().tolist() == [True, True]
    assert found.proved().tolist() == [True, False]
    assert found.expected.tolist() == [0.0, 0.0]
    assert not spread(found).together
    assert not sharpness_of_one(observations_of_one(Visits.of([7], [0.0])), 0.1, 0.0, 0.0, readable=False).proved()[0]


def copies(*intervals):
    first, last = (np.array(side, np.float64) for side in zip(*intervals, strict=True))
    return Sharpness(np.zeros(len(first)), first, first, last, np.zeros(len(first)), np.ones(len(first), bool))


def test_copies_lie_as_far_apart_as_the_first_and_the_last():
    assert spread(copies((3, 4), (1, 9), (8, 8))).seconds == 7.0
    assert not spread(copies((3, 4), (1, 9), (8, 8))).together
    assert spread(copies((3, 8), (1, 9), (8, 8))).together
    nothing = spread(Sharpness(*(np.empty(0) for _ in range(6))))
    assert np.isnan(nothing.seconds)
