r"""Blur and coherence of a site capture: stochastic, from the rates, and actual, from the times of all changes.

*Stochastic blur.* A query for time t is answered with the version captured nearest to t. The blur of a page of rate λ
is the expected number of changes in between, averaged over all t of an observation interval [o_s, o_e] (SHARC 4.1;
4.3.3 for other intervals than the capture's own; 5.1 with a revisit):

.. math:: B(p) = \frac{λ}{o_e - o_s} \int_{o_s}^{o_e} \min(|t - t^v|, |t - t^r|)\,dt = \frac{λ\,ω}{o_e - o_s}

ω is the *penalty* of the schedule. Times in seconds and rates per second, or any other unit. A revisit of NaN did not
happen. Weights are factors: a page of weight 2 counts as two pages. O(n).

*Coherence.* A page is coherent if it did not change between its visit and its revisit (SHARC 5.1, 5.6).

*Actual blur* counts the true changes between t and the shown version. Over [o_s, o_e] a change at time h counts h − o_s
if the version is later, and o_e − h if it is earlier (SHARC 4.19). With a revisit, the visit is shown up to the
midpoint between both, and the revisit from there (SHARC 4.20, reading 003.13). Its mean over many histories is the
stochastic blur. Changes are ragged: page i changed at ``times[offsets[i]:offsets[i+1]]``, ascending. An observation at
the time of a change saw it. O(pages + changes), or with a logarithm.

*Expected changes* (:class:`ExpectedChanges`) are the count N(t) given the rate and the observations. Between two
observations G apart the pace is constant: 0 if the later one found no change, and λ/(1 − e^{−λG}) if it found one (1/G
for λ = 0). It is λ before the first observation and after the last, where nothing is known, and 0 after a page is gone.
A log of changes has a step at each change. N is piecewise linear and monotone; the changes between t and the shown
version are |N(t) − N(version)|. Without evidence the pace is λ everywhere.

:func:`worst_case_increase` bounds the blur of a single-visit capture with k misplaced downloads.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from scipy import special

from recrawl.assess.observations import Observations
from recrawl.model import BoolArray, FloatArray, IntArray, Verdict
from recrawl.model.arrays import ends_of_runs, ragged_search


@dataclass(frozen=True, slots=True)
class ExpectedChanges:
    """N(t) of every page, counted from its first observation. Times in seconds since the epoch."""

    observations: Observations
    rate: FloatArray
    """λ of each page, per second; 0 where it is not known."""
    level: FloatArray
    """N at each observation."""
    pace: FloatArray
    """Expected changes per second from each observation to the next of its page."""
    area: FloatArray
    """∫ N from the first observation of the page to each observation, in seconds."""

    @classmethod
    def of(cls, observations: Observations, rate: FloatArray, *, evidence: bool = True) -> ExpectedChanges:
        """N from rates, one a page. O(m)."""
        rate = np.where(np.isnan(rate), 0.0, rate)
        row = observations.row_of_observation()
        pace, step = rate[row], np.zeros(len(row))
        opens, gap = observations.opens(), np.full(len(row), np.nan)
        np.subtract(observations.time[1:], observations.time[:-1], out=gap[1:])
        if evidence and len(row):
            found = ~opens & (observations.says == Verdict.CHANGED)
            exact = found & observations.exact()
            paced = pace.copy()  # of the gap that ends at each observation
            paced[~opens & (observations.says == Verdict.UNCHANGED)] = 0.0
            seen = found & ~exact
            paced[seen] = 1.0 / (gap[seen] * special.exprel(-pace[seen] * gap[seen]))
            paced[exact], step[exact] = 0.0, 1.0
            pace[:-1] = np.where(opens[1:], pace[:-1], paced[1:])
            pace[ends_of_runs(row) & observations.gone] = 0.0
        before = np.where(opens, 0.0, np.append(0.0, pace[:-1]))  # pace of the gap that ends here
        gap = np.where(opens, 0.0, gap)
        level = _running(before * gap + step, observations)
        start = np.where(opens, 0.0, np.append(0.0, level[:-1]))
        return cls(observations, rate, level, pace, _running((start + before * gap / 2.0) * gap, observations))

    def count(self, row: IntArray, time: FloatArray) -> FloatArray:
        """N of these pages (rows that have an observation) at these times; negative before the first observation.

        O(k log m).
        """
        observation, since, first = self._place(row, time)
        return np.where(first, self.rate[row] * since, self.level[observation] + self.pace[observation] * since)

    def integral(self, row: IntArray, time: FloatArray) -> FloatArray:
        """∫ N from the first observation of the page to these times, in seconds. O(k log m)."""
        observation, since, first = self._place(row, time)
        inside = self.area[observation] + (self.level[observation] + self.pace[observation] * since / 2.0) * since
        return np.where(first, self.rate[row] * since * since / 2.0, inside)

    def _place(self, row: IntArray, time: FloatArray) -> tuple[IntArray, FloatArray, BoolArray]:
        """The last observation up to each time, the seconds since it, and where there is none (then the first)."""
        observation = ragged_search(self.observations.offsets, self.observations.time, row, time, after_equal=True) - 1
        first = observation < self.observations.offsets[row]
        observation = np.where(first, self.observations.offsets[row], observation)
        return observation, time - self.observations.time[observation], first


def _running(values: FloatArray, observations: Observations) -> FloatArray:
    """Running sums of the values of each page. O(m)."""
    total = np.cumsum(values)
    if len(observations) == 1:
        return total
    before = np.concatenate([[0.0], total])[observations.offsets[:-1]]
    return np.asarray(total - np.repeat(before, np.diff(observations.offsets)))


def penalty(
    visit: FloatArray, start: FloatArray | float, end: FloatArray | float, revisit: FloatArray | None = None
) -> FloatArray:
    """ω of each page (SHARC 4.2; 5.2 with revisits), for the observation interval [start, end], one or one a page.

    The closed forms of the thesis hold for visits inside the interval; this one also for visits outside, where
    |t − visit| does not turn.

    >>> penalty(np.array([1.0, 5.0]), 0.0, 5.0).tolist()
    [8.5, 12.5]
    """
    if revisit is None:
        return _distance(visit, start, end)
    revisit = np.where(np.isnan(revisit), visit, revisit)
    # From the middle between the two on, the revisit is nearer.
    middle = np.clip((visit + revisit) / 2.0, start, end)
    return _distance(visit, start, middle) + _distance(revisit, middle, end)


def page_blur(
    rate: FloatArray, visit: FloatArray, start: float, end: float, revisit: FloatArray | None = None
) -> FloatArray:
    """Blur of each page (SHARC 4.1, 5.1). An interval of one instant gives the expected changes up to it.

    >>> page_blur(np.array([1.0, 5.0]), np.array([1.0, 5.0]), 0.0, 5.0).tolist()
    [1.7, 12.5]
    """
    if end > start:
        return rate * penalty(visit, start, end, revisit) / (end - start)
    away = np.abs(visit - start)
    return rate * (away if revisit is None else np.fmin(away, np.abs(revisit - start)))


def capture_blur(  # noqa: PLR0913, PLR0917 - the letters of the formula
    rate: FloatArray,
    visit: FloatArray,
    start: float,
    end: float,
    revisit: FloatArray | None = None,
    weight: FloatArray | None = None,
) -> float:
    """Blur of a capture: the sum over its pages (SHARC 4.3, 5.3), each times its weight.

    >>> rates = np.arange(6.0)
    >>> capture_blur(rates, np.arange(6.0), 0.0, 5.0)
    27.5
    """
    return total(page_blur(rate, visit, start, end, revisit), weight)


def average_blur(  # noqa: PLR0913, PLR0917 - the letters of the formula
    rate: FloatArray,
    visit: FloatArray,
    start: float,
    end: float,
    revisit: FloatArray | None = None,
    weight: FloatArray | None = None,
) -> float:
    """Blur per page (SHARC 4.4): over the number of pages, with revisits too (reading 003.1), or their weight.

    NaN without pages.
    """
    pages = float(len(rate) if weight is None else weight.sum())
    return capture_blur(rate, visit, start, end, revisit, weight) / pages if pages else float("nan")


def blur_bounds(rate: FloatArray, start: float, end: float, weight: FloatArray | None = None) -> tuple[float, float]:
    """Least and greatest blur any single-visit schedule inside [start, end] can have (SHARC Theorem 4.1).

    Both can be reached (reading 003.2): every page visited in the middle, or at the ends.

    >>> blur_bounds(np.arange(6.0), 0.0, 5.0)
    (18.75, 37.5)
    """
    heat = total(rate, weight) * (end - start)
    return heat / 4.0, heat / 2.0


def total(value: FloatArray, weight: FloatArray | None = None) -> float:
    """Sum over pages, each value times the weight of its page.

    >>> total(np.array([1.0, 2.0])), total(np.array([1.0, 2.0]), np.array([3.0, 0.5]))
    (3.0, 4.0)
    """
    return float(value.sum() if weight is None else value @ weight)


def _distance(point: FloatArray, start: FloatArray | float, end: FloatArray | float) -> FloatArray:
    """∫ |t − point| dt from start to end, the point being anywhere; no cancellation at epoch times."""
    before, after = point - start, end - point
    return (before * np.abs(before) + after * np.abs(after)) / 2.0


def page_coherence(rate: FloatArray, length: FloatArray) -> FloatArray:
    """Probability e^{−λI} that each page stays unchanged over its visit–revisit interval of ``length``. O(n).

    >>> page_coherence(np.array([0.5, 0.0]), np.array([0.0, 9.0])).tolist()
    [1.0, 1.0]
    """
    return np.exp(-rate * length)


def expected_coherence(rate: FloatArray, length: FloatArray, weight: FloatArray | None = None) -> float:
    """Expected number of coherent pages of a capture (SHARC Definition 5.6), each counted by its weight. O(n).

    >>> round(expected_coherence(np.array([0.4, 0.35, 0.3, 0.25, 0.2]), np.array([0.0, 2.0, 4.0, 6.0, 8.0])), 4)
    2.2228
    """
    return total(page_coherence(rate, length), weight)


def worst_case_increase(rate: FloatArray, misplaced: int, delay: float, weight: FloatArray | None = None) -> float:
    """What the blur of the best order grows by, at worst, if ``misplaced`` pages are out of place. O(n log n).

    At worst the hottest pages take the outermost slots, the hottest first, and the rest keeps the best order in what
    is left (SHARC Theorem 4.5, readings 003.10 and 003.11). The theorem is stated for pairs of equal rates; this is
    the same difference for any rates, times weights. Like in the thesis it is not divided by the length of the capture:
    divide by (n − 1)·delay for the blur of the other functions here.

    >>> worst_case_increase(np.array([1.0, 1, 2, 2, 3, 3, 4, 4, 5, 5]), 4, 1.0)
    176.0
    """
    heat = np.sort(rate if weight is None else rate * weight)
    pages = len(heat)
    slot = np.arange(pages, dtype=np.float64) * delay
    # The coldest page has the largest penalty in the best order.
    outermost_first = np.sort(penalty(slot, 0.0, max(pages - 1, 0) * delay))[::-1]
    worst = np.concatenate([heat[pages - misplaced :][::-1], heat[: pages - misplaced]])
    return float((worst - heat) @ outermost_first)


def actual_blur(  # noqa: PLR0913, PLR0917 - the letters of the formula
    offsets: IntArray,
    times: FloatArray,
    visit: FloatArray,
    start: float,
    end: float,
    revisit: FloatArray | None = None,
) -> FloatArray:
    """Blur of each page over [start, end], start < end. A revisit that is NaN never happened.

    >>> actual_blur(np.array([0, 2]), np.array([1.0, 7.0]), np.array([4.0]), 0.0, 10.0).tolist()
    [0.4]
    """
    row = np.repeat(np.arange(len(visit)), np.diff(offsets))
    if revisit is None:
        return _changes_met(row, times, visit, start, end) / (end - start)
    last = np.where(np.isnan(revisit), visit, revisit)
    middle = np.clip((visit + last) / 2.0, start, end)
    met = _changes_met(row, times, visit, start, middle) + _changes_met(row, times, last, middle, end)
    return met / (end - start)


def changes_between(offsets: IntArray, times: FloatArray, after: FloatArray, until: FloatArray) -> IntArray:
    """How often each page changed in (after, until].

    >>> changes_between(np.array([0, 2]), np.array([1.0, 7.0]), np.array([1.0]), np.array([7.0])).tolist()
    [1]
    """
    row = np.arange(len(after))
    first, behind = (ragged_search(offsets, times, row, at, after_equal=True) for at in (after, until))
    return behind - first


def incoherent(offsets: IntArray, times: FloatArray, visit: FloatArray, revisit: FloatArray) -> BoolArray:
    """Which pages changed between visit and revisit: the truth that a revisit finds (SHARC 5.1).

    >>> incoherent(np.array([0, 1, 2]), np.array([3.0, 3.0]), np.array([1.0, 1.0]), np.array([2.0, 3.0])).tolist()
    [False, True]
    """
    return changes_between(offsets, times, visit, revisit) > 0


def actual_incoherence(
    offsets: IntArray, times: FloatArray, visit: FloatArray, revisit: FloatArray, weight: FloatArray | None = None
) -> float:
    """Number of pages that changed between visit and revisit, each counted by its weight."""
    found = incoherent(offsets, times, visit, revisit)
    return float(found.sum() if weight is None else weight[found].sum())


def _changes_met(
    row: IntArray, times: FloatArray, observation: FloatArray, start: FloatArray | float, end: FloatArray | float
) -> FloatArray:
    """∫ over t from start to end of the changes between t and the observation, for each page."""
    low, high = (np.broadcast_to(side, observation.shape)[row] for side in (start, end))
    inside = np.clip(times, low, high)
    met = np.zeros(len(observation))
    np.add.at(met, row, np.where(times <= observation[row], inside - low, high - inside))
    return met
