r"""Stochastic blur: how many changes lie between what a capture shows and what was asked for, on average.

A time-travel query at t is answered with the version captured nearest to t. The blur of a page of rate λ is the
expected number of changes in between, averaged over all t of an observation interval [o_s, o_e] (SHARC 4.1, and
4.3.3 for intervals other than the capture's own; 5.1 with a revisit):

.. math:: B(p) = \frac{λ}{o_e - o_s} \int_{o_s}^{o_e} \min(|t - t^v|, |t - t^r|)\,dt = \frac{λ\,ω}{o_e - o_s}

ω is the *penalty* of the schedule. Times in seconds, rates per second, or any one unit. A revisit that is NaN never
happened. Weights are factors: a page of weight 2 counts as two pages. Everything is O(n).
"""

from __future__ import annotations

import numpy as np

from recrawl.model import FloatArray


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
