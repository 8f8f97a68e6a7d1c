"""SHARC-Offline: the order of least blur when all pages are known beforehand (SHARC 4.3).

The later or earlier than the middle of the crawl a page is visited, the higher the penalty; so the hottest
pages belong into the middle and the coldest to both ends, like organ pipes.
"""

from __future__ import annotations

import numpy as np

from recrawl.model import CapturePlan, FloatArray


def organ_pipes(rate: FloatArray, weight: FloatArray | None = None) -> CapturePlan:
    """The plan of least blur over the capture's own interval (SHARC 4.7). O(n log n).

    With pages by ascending rate, page i gets slot i/2 if i is even, else n − (i−1)/2, where n is the last slot.
    With weights the weighted blur is least: rate times weight takes the place of the rate.
    Algorithm 1 prints the two sides exchanged (reading 003.5). Pages of equal rate keep their order.

    >>> organ_pipes(np.arange(6.0)).visit.tolist()
    [0, 5, 1, 4, 2, 3]
    """
    rank = np.arange(len(rate))
    slot = np.where(rank % 2 == 0, rank // 2, len(rate) - 1 - rank // 2)
    visit = np.empty(len(rate), dtype=np.int64)
    visit[np.argsort(rate if weight is None else rate * weight, kind="stable")] = slot
    return CapturePlan(visit)


def centred_start(pages: int, delay: float, start: float, end: float) -> float:
    """When to begin so that the middle of the crawl is the middle of the observation (SHARC Theorem 4.4).

    Seconds; ``delay`` between two visits. No start that lies whole delays away gives organ pipes a lower blur, if
    the crawl may be moved at all (reading 003.7). A start up to half a delay earlier can: the very least blur puts the
    rate-weighted mean of the visit times in the middle, and the hotter page of each pair is visited after it.

    >>> centred_start(6, 1.0, 10.0, 30.0)
    17.5
    """
    return (start + end - (pages - 1) * delay) / 2.0
