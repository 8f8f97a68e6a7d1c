r"""Quality of an archive, by any crawler: as a whole, by crawl, by section and by page.

The input is the observations, the change rates and a weight for each page. Sites are numbered from 0, and crawls are
found for each site separately. All tables are columns.

*Blur* of a page over the span [s, e] is the expected number of changes between a random time and the copy shown for it:

.. math:: B(p) = \frac{1}{e - s} \int_s^e |N(t) - N(c(t))|\,dt

c(t) is the copy shown for t, and N the expected count of changes
(:class:`recrawl.assess.blur_coherence.ExpectedChanges`). For one or two copies without evidence it equals SHARC 4.1 and
5.1. Each copy is shown for a cell of time: up to the midpoints to its neighbours, or up to the next copy, depending on
the selection rule. N is monotone, so each cell has a closed form.

The module also gives the blur at different times of the span, and how fast an archive becomes stale without visits.
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import pairwise

import numpy as np

from recrawl.assess.blur_coherence import (
    CaptureStatement,
    ExpectedChanges,
    RevisitResult,
    page_coherence,
    penalty,
    statement,
)
from recrawl.assess.crawl_segmentation import (
    CapturePairs,
    CrawlSegments,
    Deduplication,
    consecutive,
    deduplication,
    pair,
    segment_crawls,
)
from recrawl.assess.observations import Observations
from recrawl.assess.replay_selection import CopyTable, SelectionRule
from recrawl.assess.site_structure import ChangeClass
from recrawl.model import AnyArray, Belief, BoolArray, FloatArray, IntArray
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


@dataclass(frozen=True, slots=True)
class ArchiveQuality:
    """What is known of an archive. Columns of pages are those of ``observations``; NaN where nothing is known."""

    observations: Observations
    rate: FloatArray
    """Changes per second."""
    weight: FloatArray
    site: IntArray
    rounds: CrawlSegments
    pairs: CapturePairs
    """Each page of each crawl once, with its revisit."""
    consecutive: CapturePairs
    """Each capture with the next observation of its page."""
    start: float
    """The span of the archive, or the one asked about, seconds since the epoch."""
    end: float
    distance: FloatArray
    """Mean seconds from a moment of the span to the copy shown for it."""
    predicted: FloatArray
    """Blur over the span, by the rate alone."""
    achieved: FloatArray
    """Blur over the span, given what all observations found."""
    deduplication: Deduplication
    """Sites whose repeated captures are not listed: whether their pages are coherent is not known."""

    def of_crawl(self, crawl: int) -> CaptureStatement:
        """The statement about one crawl, for queries in the time it took."""
        pages = self.pairs.captured(self.observations, self.rate, self.weight, self.pairs.round == crawl)
        return statement(pages, float(self.rounds.start[crawl]), float(self.rounds.end[crawl]))


def archive_quality(  # noqa: PLR0913 - the columns of the pages, and what is asked
    observations: Observations,
    rate: FloatArray,
    weight: FloatArray,
    site: IntArray,
    *,
    rounds: CrawlSegments | None = None,
    once: BoolArray | None = None,
    rule: SelectionRule = SelectionRule.NEAREST,
) -> ArchiveQuality:
    """All of it, over the span from the first observation to the last. O(m log m) for m observations.

    ``rounds`` are the crawls of the archive, found by their pauses if not given; ``once`` as in
    :func:`recrawl.assess.crawl_segmentation.pair`.
    """
    start, end = (
        (float(observations.time.min()), float(observations.time.max())) if len(observations.time) else (np.nan, np.nan)
    )
    rounds = segment_crawls(observations, site) if rounds is None else rounds
    pairs = pair(observations, rounds, site, once)
    if end > start:
        distance = mean_distance(observations, start, end, rule)
        predicted, achieved = rate * distance, collection_blur(observations, rate, start, end, rule=rule)
    else:  # one instant: whatever there is, is of that instant
        copies = np.bincount(observations.row_of_observation(), ~observations.gone, len(observations))
        distance = np.where(copies > 0, 0.0, np.nan)
        predicted = achieved = np.where(np.isnan(rate), np.nan, distance)
    return ArchiveQuality(
        observations,
        rate,
        weight,
        site,
        rounds,
        pairs,
        consecutive(observations),
        start,
        end,
        distance,
        predicted,
        achieved,
        deduplication(observations, rounds, site),
    )


@dataclass(frozen=True, slots=True)
class CaptureCounts:
    """What became of captures: how many there are of each kind, by crawl, section or page."""

    captures: IntArray
    coherent: IntArray
    """Found unchanged by the observation taken as their revisit."""
    changed: IntArray
    missing: IntArray
    unseen: IntArray
    """Without a revisit, or one that says nothing."""
    links: IntArray
    """Of the changed, those whose links changed."""
    new: IntArray
    """Not in any crawl before."""
    expected: FloatArray
    """Expected coherent ones of those compared, if the rate is known."""
    expected_of: IntArray
    """How many those are."""
    coherent_of_them: IntArray
    not_known: BoolArray
    """Whether the index leaves out captures that found a page unchanged: then how many are coherent is not known."""

    def judged(self) -> IntArray:
        """Captures that were compared with a later one."""
        return self.coherent + self.changed + self.missing


def tally(quality: ArchiveQuality, pairs: CapturePairs, label: IntArray, labels: int) -> CaptureCounts:
    """Count pairs by ``label``, one a pair, from 0. O(pairs)."""
    captured = pairs.captured(quality.observations, quality.rate, quality.weight, slice(None))
    chance = page_coherence(captured.rate, captured.intervals())
    predicted = np.isfinite(chance) & (pairs.found != RevisitResult.UNKNOWN)

    def count(which: AnyArray) -> IntArray:
        return np.bincount(label[which], minlength=labels).astype(np.int64)

    return CaptureCounts(
        captures=np.bincount(label, minlength=labels).astype(np.int64),
        coherent=count(pairs.found == RevisitResult.UNCHANGED),
        changed=count(pairs.found == RevisitResult.CHANGED),
        missing=count(pairs.found == RevisitResult.MISSING),
        unseen=count(pairs.found == RevisitResult.UNKNOWN),
        links=count((pairs.found == RevisitResult.CHANGED) & pairs.links),
        new=count(pairs.new),
        expected=np.bincount(label[predicted], chance[predicted], labels).astype(np.float64),
        expected_of=count(predicted),
        coherent_of_them=count(predicted & (pairs.found == RevisitResult.UNCHANGED)),
        not_known=count(quality.deduplication.certain()[quality.site[pairs.row]]) > 0,
    )


def crawl_blur(quality: ArchiveQuality) -> FloatArray:
    """Predicted blur per page of each crawl, by weight, for queries in the time it took; NaN without rates.

    O(pairs).
    """
    pairs, rounds = quality.pairs, quality.rounds
    captured = pairs.captured(quality.observations, quality.rate, quality.weight, slice(None))
    start, end = rounds.start[pairs.round], rounds.end[pairs.round]
    length = end - start
    blur = captured.rate * penalty(captured.visit, start, end, captured.revisit) / np.where(length > 0, length, 1.0)
    return weighted_mean(blur, captured.weight, pairs.round, len(rounds))


def weighted_mean(value: FloatArray, weight: FloatArray, label: IntArray, labels: int) -> FloatArray:
    """Mean of the values that are known of each label, by weight; NaN where there are none.

    >>> weighted_mean(np.array([1.0, 4.0, np.nan]), np.array([1.0, 2.0, 1.0]), np.array([0, 0, 1]), 2).tolist()
    [3.0, nan]
    """
    known = np.isfinite(value)
    heavy = np.bincount(label[known], weight[known], labels)
    summed = np.bincount(label[known], value[known] * weight[known], labels)
    return np.where(heavy > 0, summed / np.where(heavy > 0, heavy, 1.0), np.nan)


def usual_delay(quality: ArchiveQuality) -> float:
    """Median seconds from one capture to the next within a crawl: the pace of the archive's maker. NaN if none."""
    crawl, time = quality.rounds.of_observation, quality.observations.time
    order = np.lexsort((time, crawl))
    gap = np.diff(time[order])
    gap = gap[(crawl[order][1:] == crawl[order][:-1]) & (gap > 0)]
    return float(np.median(gap)) if len(gap) else float("nan")


def last_change_classes(quality: ArchiveQuality) -> AnyArray:
    """The :class:`ChangeClass` of the last compared pair of captures of each page.

    New is a page that only the last crawl of its site has, after others. A page that was never seen there, and one of
    which nothing is known, is unseen.
    """
    pairs, rounds = quality.pairs, quality.rounds
    classes = np.full(len(quality.observations), ChangeClass.UNSEEN)
    last = np.full(int(quality.site.max(initial=-1)) + 1, -1)
    np.maximum.at(last, rounds.site, np.arange(len(rounds)))
    fresh = pairs.new & (pairs.round == last[quality.site[pairs.row]])
    classes[pairs.row[fresh]] = ChangeClass.NEW
    judged = pairs.found != RevisitResult.UNKNOWN
    classes[pairs.row[judged]] = pairs.change_classes()[judged]  # by crawl: of one page the last stands
    return classes


@dataclass(frozen=True, slots=True)
class SharpnessOverTime:
    """Means over pages, by weight, for moments in each bin ``[edges[j], edges[j+1])``. NaN where nothing is known."""

    edges: FloatArray
    blur: FloatArray
    """Expected changes between a moment and the copy shown for it, given what all observations found."""
    distance: FloatArray
    """Seconds between them."""


def sharpness_over_time(
    quality: ArchiveQuality, edges: FloatArray, rule: SelectionRule = SelectionRule.NEAREST
) -> SharpnessOverTime:
    """Blur and distance in each bin, cut to the span of the archive. O(bins · m log m) for m observations.

    Over bins that fill the span they average, by length, to the blur and the distance of the whole.
    """
    cut = np.clip(edges, quality.start, quality.end)
    everything = np.zeros(len(quality.observations), np.int64)
    blur, distance = np.full(len(edges) - 1, np.nan), np.full(len(edges) - 1, np.nan)
    for place, (start, end) in enumerate(pairwise(cut.tolist())):
        if end <= start:
            continue
        met = collection_blur(quality.observations, quality.rate, start, end, rule=rule)
        away = mean_distance(quality.observations, start, end, rule)
        blur[place], distance[place] = (weighted_mean(value, quality.weight, everything, 1)[0] for value in (met, away))
    return SharpnessOverTime(edges, blur, distance)


@dataclass(frozen=True, slots=True)
class StalenessForecast:
    """Expected state of the copies at some times without further visits: weighted means over pages."""

    time: FloatArray
    fresh: FloatArray
    """Share of pages that are still as they were when last seen."""
    age: FloatArray
    """Seconds since the copy ceased to be current, 0 for one that is."""


def staying_fresh(belief: Belief, last_observed: FloatArray, weight: FloatArray, time: FloatArray) -> StalenessForecast:
    """Freshness and age at each time, τ seconds after the last observation of each page: S(τ), and τ − ∫₀^τ S.

    Times before the last observation of a page count as that observation. O(pages · times).

    >>> from recrawl.model import GammaBelief
    >>> found = staying_fresh(GammaBelief(np.ones(1), np.full(1, 8.0)), np.zeros(1), np.ones(1), np.array([0.0, 8.0]))
    >>> found.fresh.tolist(), found.age.round(3).tolist()
    ([1.0, 0.5], [0.0, 2.455])
    """
    fresh, age = np.full(len(time), np.nan), np.full(len(time), np.nan)
    total = float(weight.sum())
    if len(belief) and total > 0:
        for place, when in enumerate(time.tolist()):
            since = np.maximum(when - last_observed, 0.0)
            fresh[place] = belief.survival(since) @ weight / total
            age[place] = np.maximum(since - belief.unchanged_time(since), 0.0) @ weight / total
    return StalenessForecast(time, fresh, age)
