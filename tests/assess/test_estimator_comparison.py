"""Predicting the next look: what counts as one, and whether the better forecast wins."""

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from recrawl.assess.prediction_scores import MOMENTS, compare, moments, next_observations
from recrawl.model import Histories, Visits

observations = st.lists(st.tuples(st.integers(0, 3), st.integers(0, 60), st.booleans()), max_size=40)


def histories_of(rows) -> Histories:
    page, time, changed = (np.array([row[k] for row in rows]) for k in range(3)) if rows else (np.empty(0),) * 3
    return Histories.from_visits(Visits.of(page, time, verdict=np.where(changed, 2, 1)))


@given(observations, st.integers(-5, 65))
def test_the_next_look_follows_what_was_known(rows, at):
    """The gap that is predicted begins where the history known by then ends."""
    histories = histories_of(rows)
    known = histories.window(-np.inf, at)
    found = next_observations(histories, at)
    assert len(np.unique(found.row)) == len(found)
    times = histories.observation_times()[found.place]
    assert bool((times > at).all())
    np.testing.assert_allclose(known.last_visit[found.row] + found.gap, times)
    np.testing.assert_array_equal(histories.changed[found.place], found.changed)
    still = {row for row in range(len(histories)) if histories.last_visit[row] > at >= histories.first_visit[row]}
    assert set(found.row.tolist()) == still


def test_moments_part_the_looks():
    histories = histories_of([(0, t, False) for t in range(101)])
    assert moments(histories) == [1 + 99 * share for share in MOMENTS]
    assert moments(histories_of([])) == []


def test_the_better_forecast_comes_first_and_an_equal_one_ties():
    rng = np.random.default_rng(1)
    p = rng.random(4_000)
    changed = rng.random(len(p)) < p
    near = np.clip(p + rng.normal(0, 0.01, len(p)), 0, 1)
    found = compare(
        {"coin": np.full(len(p), 0.5), "truth": p, "near": near, "boast": (p > 0.5).astype(float)},
        changed,
        np.arange(len(p)) // 4,
        rng,
    )
    assert {found[0].name, found[1].name} == {"truth", "near"}
    assert [score.name for score in found[2:]] == ["coin", "boast"]
    assert found[1].ties
    assert not found[2].ties
    assert found[0].behind == (0.0, 0.0, 0.0)
    by_name = {score.name: score for score in found}
    assert np.isclose(by_name["coin"].log_loss.mean, np.log(2))
    assert by_name["coin"].brier.mean == 0.25
    assert by_name["truth"].calibration_error < 0.03 < by_name["boast"].calibration_error
