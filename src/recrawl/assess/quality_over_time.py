"""How sharp an archive is at different times of its span, and how fresh it stays when nobody comes back."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import pairwise

import numpy as np

from recrawl.assess.archive_quality import ArchiveQuality, weighted_mean
from recrawl.assess.collection_blur import collection_blur, mean_distance
from recrawl.assess.shown import Rule
from recrawl.model import Belief, FloatArray


@dataclass(frozen=True, slots=True)
class SharpnessOverTime:
    """Means over pages, by weight, for moments in each bin ``[edges[j], edges[j+1])``. NaN where nothing is known."""

    edges: FloatArray
    blur: FloatArray
    """Expected changes between a moment and the copy shown for it, given what all looks found."""
    distance: FloatArray
    """Seconds between them."""


def sharpness_over_time(quality: ArchiveQuality, edges: FloatArray, rule: Rule = Rule.NEAREST) -> SharpnessOverTime:
    """Blur and distance in each bin, cut to the span of the archive. O(bins · m log m) for m looks.

    Over bins that fill the span they average, by length, to the blur and the distance of the whole.
    """
    cut = np.clip(edges, quality.start, quality.end)
    everything = np.zeros(len(quality.looks), np.int64)
    blur, distance = np.full(len(edges) - 1, np.nan), np.full(len(edges) - 1, np.nan)
    for place, (start, end) in enumerate(pairwise(cut.tolist())):
        if end <= start:
            continue
        met = collection_blur(quality.looks, quality.rate, start, end, rule=rule)
        away = mean_distance(quality.looks, start, end, rule)
        blur[place], distance[place] = (weighted_mean(value, quality.weight, everything, 1)[0] for value in (met, away))
    return SharpnessOverTime(edges, blur, distance)


@dataclass(frozen=True, slots=True)
class Staying:
    """Expected state of the copies at some times, if nobody comes back: means over pages, by weight."""

    time: FloatArray
    fresh: FloatArray
    """Share of pages that are still as they were when last seen."""
    age: FloatArray
    """Seconds since the copy ceased to be current, 0 for one that is."""


def staying_fresh(belief: Belief, last_look: FloatArray, weight: FloatArray, time: FloatArray) -> Staying:
    """Freshness and age at each time, τ seconds after the last look at each page: S(τ), and τ − ∫₀^τ S.

    Times before the last look at a page count as that look. O(pages · times).

    >>> from recrawl.model import GammaBelief
    >>> found = staying_fresh(GammaBelief(np.ones(1), np.full(1, 8.0)), np.zeros(1), np.ones(1), np.array([0.0, 8.0]))
    >>> found.fresh.tolist(), found.age.round(3).tolist()
    ([1.0, 0.5], [0.0, 2.455])
    """
    fresh, age = np.full(len(time), np.nan), np.full(len(time), np.nan)
    total = float(weight.sum())
    if len(belief) and total > 0:
        for place, when in enumerate(time.tolist()):
            since = np.maximum(when - last_look, 0.0)
            fresh[place] = belief.survival(since) @ weight / total
            age[place] = np.maximum(since - belief.unchanged_time(since), 0.0) @ weight / total
    return Staying(time, fresh, age)
