r"""Blur of a collection that is crawled on and on: expected changes between a moment and what is shown for it.

A capture of a site has one or two observations per page; a collection has any number. The blur of a page over a span is

.. math:: B(p) = \frac{1}{e - s} \int_s^e |N(t) - N(c(t))|\,dt

where c(t) is the copy shown for t and N the expected count of changes (``expected_changes.py``). For one or two copies
and no evidence it is SHARC 4.1 and 5.1. Each copy answers for a cell of time, up to the middle to its neighbours (or
up to the next copy, by the other rule), and N is monotone, so each cell has a closed form.
"""

from __future__ import annotations

import numpy as np

from recrawl.assess.archive.observations import Observations
from recrawl.assess.archive.replay_selection import CopyTable, SelectionRule
from recrawl.assess.site_capture.blur_coherence import ExpectedChanges, penalty
from recrawl.model import FloatArray, IntArray
from recrawl.model.arrays import ends_of_runs, starts_of_runs


def collection_blur(  # noqa: PLR0913 - what, how often, when, and two choices
    observations: Observations,
    rate: FloatArray,
    start: float,
    end: float,
    *,
    rule: SelectionRule = SelectionRule.NEAREST,
    evidence: bool = True,
) -> FloatArray:
    """Blur of each page for queries evenly spread over [start, end], start < end. O(m log m).

    With ``evidence`` given what the observations found; without it by the rates alone, where it is the rate times the
    mean distance. NaN where a page has no copy or no rate.

    >>> from recrawl.model import Visits
    >>> observations = Observations.from_visits(Visits.of([1, 1], [0.0, 8.0], verdict=[0, 1]))
    >>> collection_blur(observations, np.array([0.5]), 0.0, 8.0, evidence=False).tolist()
    [1.0]
    >>> collection_blur(observations, np.array([0.5]), 0.0, 12.0).round(4).tolist()
    [0.3333]
    """
    if not evidence:
        return rate * mean_distance(observations, start, end, rule)
    copies = CopyTable.of(observations)
    row = copies.row_of_copy()
    low, high = _cells(copies, row, rule, start, end)
    count = ExpectedChanges.of(observations, rate)
    inside = np.clip(copies.time, low, high)
    # Most copies lie in their own cell, where the integral is known; and a cell starts where the one before ended.
    at_copy, outside = count.area[copies.observation], np.flatnonzero(inside != copies.time)
    at_copy[outside] = count.integral(row[outside], inside[outside])
    opens = np.flatnonzero(starts_of_runs(row))
    at_high = count.integral(row, high)
    at_low = np.append(0.0, at_high)[: len(row)]
    at_low[opens] = count.integral(row[opens], low[opens])
    level = count.level[copies.observation]
    met = level * (inside - low) - (at_copy - at_low) + (at_high - at_copy) - level * (high - inside)
    total = _summed(np.where(high > low, met, 0.0), copies)
    total[np.isnan(rate)] = np.nan
    return total / (end - start)


def mean_distance(
    observations: Observations, start: float, end: float, rule: SelectionRule = SelectionRule.NEAREST
) -> FloatArray:
    """Mean time from a moment in [start, end] to the copy shown for it, in seconds; NaN without a copy. O(m)."""
    copies = CopyTable.of(observations)
    low, high = _cells(copies, copies.row_of_copy(), rule, start, end)
    return _summed(penalty(copies.time, low, high), copies) / (end - start)


def _summed(value: FloatArray, copies: CopyTable) -> FloatArray:
    """Sum over the copies of each page; NaN where there are none."""
    number = np.diff(copies.offsets)
    out = np.full(len(number), np.nan)
    some = np.flatnonzero(number)
    if len(some):
        out[some] = np.add.reduceat(value, copies.offsets[some])
    return out


def _cells(
    copies: CopyTable, row: IntArray, rule: SelectionRule, start: float, end: float
) -> tuple[FloatArray, FloatArray]:
    """From when to when each copy is the one shown, within [start, end]. An empty cell has low ≥ high."""
    opens, closes = starts_of_runs(row), ends_of_runs(row)
    time = copies.time
    # Each copy ends where the next starts. A copy hands over to the next of its page; the borders between pages fall.
    border = time[:-1] + np.diff(time) / 2.0 if rule is SelectionRule.NEAREST else time[1:]
    low, high = np.full(len(time), -np.inf), np.full(len(time), np.inf)
    low[1:], high[:-1] = border, border
    low[opens], high[closes] = -np.inf, np.inf
    return np.clip(low, start, end), np.clip(high, start, end)
