"""Which estimator would have predicted best what really came? Learn from the observations before a moment.

Predict the next.

Several moments are taken, so that young and old histories both count. Each gap is predicted at most once, from the
observations before the first moment that lies in it. All methods predict the same observations, so their scores are
compared pair by pair: what is hard to predict is hard for all.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from recrawl.assess.scores.prediction_scores import MeanInterval, brier, calibration, log_loss, mean_with_interval
from recrawl.model import AnyArray, BoolArray, FloatArray, Histories, IntArray

MOMENTS = (0.5, 0.6, 0.7, 0.8, 0.9)
"""After which shares of all observations predictions are made."""


@dataclass(frozen=True, slots=True)
class NextObservations:
    """The first observation of each page after a moment, if there was one before it too."""

    row: IntArray
    """Row of the histories, ascending."""
    gap: FloatArray
    """Seconds since the last observation before the moment."""
    changed: BoolArray
    """Whether it found a change."""
    place: IntArray
    """Index of the gap in the histories."""

    def __len__(self) -> int:
        return len(self.row)


@dataclass(frozen=True, slots=True)
class MethodScore:
    """How well one method predicted."""

    name: str
    log_loss: MeanInterval
    """Lower is better; 95 % interval."""
    brier: MeanInterval
    calibration_error: float
    """Mean distance between predicted and observed shares of change."""
    behind: MeanInterval
    """Log loss minus that of the best method, prediction by prediction."""

    @property
    def ties(self) -> bool:
        """Whether it could be as good as the best, for all these predictions tell."""
        return self.behind.low <= 0.0


def next_observations(histories: Histories, at: float) -> NextObservations:
    """The observation that follows ``at`` on each page, and the gap it closes. O(gaps).

    >>> from recrawl.model import Visits
    >>> h = Histories.from_visits(Visits.of([1, 1, 1], [0.0, 4.0, 9.0], verdict=[0, 1, 2]))
    >>> found = next_observations(h, 5.0)
    >>> found.gap.tolist(), found.changed.tolist()
    ([5.0], [True])
    """
    closed = histories.observation_times()
    opened = np.empty_like(closed)
    opened[1:] = closed[:-1]
    some = np.flatnonzero(histories.counts())
    opened[histories.offsets[some]] = histories.first_visit[some]
    place = np.flatnonzero((opened <= at) & (closed > at))
    return NextObservations(histories.row_of_gap()[place], histories.gaps[place], histories.changed[place], place)


def moments(histories: Histories) -> list[float]:
    """The moments at which to predict, ascending: after half of all observations, six tenths, and so on."""
    observations = histories.observation_times()
    return np.unique(np.quantile(observations, MOMENTS)).tolist() if len(observations) else []


def compare(
    predictions: Mapping[str, FloatArray], changed: BoolArray, groups: AnyArray, rng: np.random.Generator
) -> list[MethodScore]:
    """Score methods that predicted the same observations; the best, by log loss, comes first.

    ``predictions[name][k]`` is the probability that look k finds a change. ``groups`` are resampled whole: observations
    that are no independent evidence (of one page, of one host) share one.
    """
    losses = {name: log_loss(p, changed) for name, p in predictions.items()}
    best = min(losses, key=lambda name: float(losses[name].mean()))
    scores = [
        MethodScore(
            name,
            mean_with_interval(losses[name], groups, rng),
            mean_with_interval(brier(p, changed), groups, rng),
            calibration(p, changed).error,
            mean_with_interval(losses[name] - losses[best], groups, rng),
        )
        for name, p in predictions.items()
    ]
    return sorted(scores, key=lambda score: score.log_loss.mean)
