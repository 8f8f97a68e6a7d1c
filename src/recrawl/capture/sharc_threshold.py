"""SHARC-Threshold: as many pages as possible stay unchanged with probability τ; the others are given up (SHARC 5.3)."""

from __future__ import annotations

import heapq
import math

import numpy as np

from recrawl.capture.decision import Decision
from recrawl.capture.pyramid import pyramid
from recrawl.model import BoolArray, CapturePlan, FloatArray, IntArray


def sharc_threshold(rate: FloatArray, delay: float, threshold: float, weight: FloatArray | None = None) -> CapturePlan:
    """Hopeful pages inside, the hottest innermost; hopeless ones outside, the hottest outermost. O(n log n).

    >>> plan = sharc_threshold(np.array([0.557, 0.016, 0.037, 0.083, 0.311, 0.249]), 0.5, 0.9)
    >>> plan.visit.tolist(), plan.revisit.tolist()
    ([0, 3, 4, 5, 1, 2], [11, 8, 7, 6, 10, 9])
    """
    return divide(rate, delay, threshold, weight).plan


def divide(rate: FloatArray, delay: float, threshold: float, weight: FloatArray | None = None) -> Decision:
    """The plan of :func:`sharc_threshold`, and which pages it gives up."""
    hottest = np.argsort(-rate, kind="stable")
    hopeful = hopeful_pages(rate, delay, threshold, weight)
    inside, outside = hottest[hopeful[hottest]], hottest[~hopeful[hottest]]
    return Decision(pyramid(np.concatenate([inside, outside[::-1]]), once=False), ~hopeful)


def hopeful_pages(rate: FloatArray, delay: float, threshold: float, weight: FloatArray | None = None) -> BoolArray:
    """Which pages can be coherent with a probability above ``threshold`` together (SHARC Definition 5.4).

    Pages are tried from the hottest to the coldest; a page is hopeful if e^{−λ(2i+1)Δ} > τ, where i pages are
    hopeful already (reading 003.19). No other choice makes more pages hopeful. With weights, the hopeful pages have
    the largest total weight possible: each page is a job with a deadline, the last place in which it is hopeful.
    """
    hottest = np.argsort(-rate, kind="stable")
    places = _hopeful_places(rate[hottest], delay, threshold)
    equal = weight is None or bool((weight == weight[:1]).all())
    hopeful = np.zeros(len(rate), dtype=np.bool_)
    hopeful[hottest] = _most(places) if weight is None or equal else _heaviest(places, weight[hottest])
    return hopeful


def _hopeful_places(rate: FloatArray, delay: float, threshold: float) -> IntArray:
    """How many of the innermost intervals are short enough for each page."""
    with np.errstate(divide="ignore", over="ignore"):
        slots = math.log(1.0 / threshold) / (rate * delay)
    return np.ceil(np.clip((slots - 1.0) / 2.0, 0.0, len(rate))).astype(np.int64)


def _most(places: IntArray) -> BoolArray:
    """Take each page in turn if a place is left: c ← min(c + 1, places), all at once by a running minimum."""
    turn = np.arange(len(places))
    taken = np.minimum(turn + 1, turn + np.minimum.accumulate(places - turn))
    return np.diff(taken, prepend=0) > 0


def _heaviest(places: IntArray, weight: FloatArray) -> BoolArray:
    """Take each page in turn, and drop the lightest if they are then too many for their places. O(n log n)."""
    kept = np.zeros(len(places), dtype=np.bool_)
    held: list[tuple[float, int]] = []
    for page, (limit, value) in enumerate(zip(places.tolist(), weight.tolist(), strict=True)):
        heapq.heappush(held, (value, page))
        if len(held) > limit:
            heapq.heappop(held)
    kept[[page for _, page in held]] = True
    return kept
