"""Which estimator would have foretold best what really came? Learn from the looks before a moment, predict the next.

Several moments are taken, so that young and old histories both count. Each gap is predicted at most once, from the
looks before the first moment that lies in it. All methods predict the same looks, so their scores are compared pair by
pair: what is hard to foretell is hard for all.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from recrawl.assess.scores import Interval, brier, calibration, log_loss, mean_with_interval
from recrawl.model import AnyArray, BoolArray, FloatArray, Histories, IntArray

MOMENTS = (0.5, 0.6, 0.7, 0.8, 0.9)
"""After which shares of all looks predictions are made."""


@dataclass(frozen=True, slots=True)
class NextLooks:
    """The first look at each page after a moment, if there was one before it too."""

    row: IntArray
    """Row of the histories, ascending."""
    gap: FloatArray
    """Seconds since the last look before the moment."""
    changed: BoolArray
    """Whether it found a change."""
    place: IntArray
    """Index of the gap in the histories."""

    def __len__(self) -> int:
        return len(self.row)


@dataclass(frozen=True, slots=True)
class MethodScore:
    """How well one method foretold."""

    name: str
    log_loss: Interval
    """Lower is better; 95 % interval."""
    brier: Interval
    calibration_error: float
    """Mean distance between foretold and observed shares of change."""
    behind: Interval
    """Log loss minus that of the best method, prediction by prediction."""

    @property
    def ties(self) -> bool:
        """Whether it could be as good as the best, for all these predictions tell."""
        return self.behind.low <= 0.0


def next_looks(histories: Histories, at: float) -> NextLooks:
    """The look that follows ``at`` on each page, and the gap it closes. O(gaps).

    >>> from recrawl.model import Visits
    >>> h = Histories.from_visits(Visits.of([1, 1, 1], [0.0, 4.0, 9.0], verdict=[0, 1, 2]))
    >>> found = next_looks(h, 5.0)
    >>> found.gap.tolist(), found.changed.tolist()
    ([5.0], [True])
    """
    closed = histories.look_times()
    opened = np.empty_like(closed)
    opened[1:] = closed[:-1]
    some = np.flatnonzero(histories.counts())
    opened[histories.offsets[some]] = histories.first_visit[some]
    place = np.flatnonzero((opened <= at) & (closed > at))
    return NextLooks(histories.row_of_gap()[place], histories.gaps[place], histories.changed[place], place)


def moments(histories: Histories) -> list[float]:
    """The moments at which to predict, ascending: after half of all looks, six tenths, and so on."""
    looks = histories.look_times()
    return np.unique(np.quantile(looks, MOMENTS)).tolist() if len(looks) else []


def compare(
    predictions: Mapping[str, FloatArray], changed: BoolArray, groups: AnyArray, rng: np.random.Generator
) -> list[MethodScore]:
    """Score methods that predicted the same looks; the best, by log loss, comes first.

    ``predictions[name][k]`` is the probability that look k finds a change. ``groups`` are resampled whole: looks that
    are no independent evidence (of one page, of one host) share one.
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
