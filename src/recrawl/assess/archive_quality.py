"""How good an archive is that anybody made, however it was made: as a whole, by crawl, by section and by page.

Everything follows from the looks, the rates and a weight for each page. Sites are numbered from 0: crawls are found for
each by itself. All tables are columns.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from recrawl.assess.blur import penalty
from recrawl.assess.coherence import page_coherence
from recrawl.assess.collapse import ChangeClass
from recrawl.assess.collection_blur import collection_blur, mean_distance
from recrawl.assess.deduplication import Deduplication, deduplication
from recrawl.assess.looks import Looks
from recrawl.assess.rounds import Pairs, Rounds, consecutive, find_rounds, pair
from recrawl.assess.shown import Rule
from recrawl.assess.statement import Found, Statement, statement
from recrawl.model import AnyArray, BoolArray, FloatArray, IntArray


@dataclass(frozen=True, slots=True)
class ArchiveQuality:
    """What is known of an archive. Columns of pages are those of ``looks``, row by row; NaN where nothing is known."""

    looks: Looks
    rate: FloatArray
    """Changes per second."""
    weight: FloatArray
    site: IntArray
    rounds: Rounds
    pairs: Pairs
    """Each page of each crawl once, with its revisit."""
    consecutive: Pairs
    """Each capture with the next look at its page."""
    start: float
    """The span of the archive, or the one asked about, seconds since the epoch."""
    end: float
    distance: FloatArray
    """Mean seconds from a moment of the span to the copy shown for it."""
    predicted: FloatArray
    """Blur over the span, by the rate alone."""
    achieved: FloatArray
    """Blur over the span, given what all looks found."""
    deduplication: Deduplication
    """Sites whose repeated captures are not listed: whether their pages are coherent is not known."""

    def of_crawl(self, crawl: int) -> Statement:
        """The statement about one crawl, for queries in the time it took."""
        pages = self.pairs.captured(self.looks, self.rate, self.weight, self.pairs.round == crawl)
        return statement(pages, float(self.rounds.start[crawl]), float(self.rounds.end[crawl]))


def archive_quality(  # noqa: PLR0913 - the columns of the pages, and what is asked
    looks: Looks,
    rate: FloatArray,
    weight: FloatArray,
    site: IntArray,
    *,
    rounds: Rounds | None = None,
    once: BoolArray | None = None,
    rule: Rule = Rule.NEAREST,
) -> ArchiveQuality:
    """All of it, over the span from the first look to the last. O(m log m) for m looks.

    ``rounds`` are the crawls of the archive, found by their pauses if nobody says; ``once`` as in
    :func:`recrawl.assess.rounds.pair`.
    """
    start, end = (float(looks.time.min()), float(looks.time.max())) if len(looks.time) else (np.nan, np.nan)
    rounds = find_rounds(looks, site) if rounds is None else rounds
    pairs = pair(looks, rounds, site, once)
    if end > start:
        distance = mean_distance(looks, start, end, rule)
        predicted, achieved = rate * distance, collection_blur(looks, rate, start, end, rule=rule)
    else:  # one instant: whatever there is, is of that instant
        copies = np.bincount(looks.row_of_look(), ~looks.gone, len(looks))
        distance = np.where(copies > 0, 0.0, np.nan)
        predicted = achieved = np.where(np.isnan(rate), np.nan, distance)
    return ArchiveQuality(
        looks,
        rate,
        weight,
        site,
        rounds,
        pairs,
        consecutive(looks),
        start,
        end,
        distance,
        predicted,
        achieved,
        deduplication(looks, rounds, site),
    )


@dataclass(frozen=True, slots=True)
class Tally:
    """What became of captures: how many there are of each kind, by crawl, section or page."""

    captures: IntArray
    coherent: IntArray
    """Found unchanged by the look taken as their revisit."""
    changed: IntArray
    missing: IntArray
    unseen: IntArray
    """Without a revisit, or one that says nothing."""
    links: IntArray
    """Of the changed, those whose links changed."""
    new: IntArray
    """Not in any crawl before."""
    expected: FloatArray
    """Expected coherent ones of those judged, if the rate is known."""
    expected_of: IntArray
    """How many those are."""
    coherent_of_them: IntArray
    not_known: BoolArray
    """Whether the index leaves out captures that found a page unchanged: then how many are coherent is not known."""

    def judged(self) -> IntArray:
        """Captures that were seen again and judged."""
        return self.coherent + self.changed + self.missing


def tally(quality: ArchiveQuality, pairs: Pairs, label: IntArray, labels: int) -> Tally:
    """Count pairs by ``label``, one a pair, from 0. O(pairs)."""
    captured = pairs.captured(quality.looks, quality.rate, quality.weight, slice(None))
    chance = page_coherence(captured.rate, captured.intervals())
    foretold = np.isfinite(chance) & (pairs.found != Found.UNKNOWN)

    def count(which: AnyArray) -> IntArray:
        return np.bincount(label[which], minlength=labels).astype(np.int64)

    return Tally(
        captures=np.bincount(label, minlength=labels).astype(np.int64),
        coherent=count(pairs.found == Found.UNCHANGED),
        changed=count(pairs.found == Found.CHANGED),
        missing=count(pairs.found == Found.MISSING),
        unseen=count(pairs.found == Found.UNKNOWN),
        links=count((pairs.found == Found.CHANGED) & pairs.links),
        new=count(pairs.new),
        expected=np.bincount(label[foretold], chance[foretold], labels).astype(np.float64),
        expected_of=count(foretold),
        coherent_of_them=count(foretold & (pairs.found == Found.UNCHANGED)),
        not_known=count(quality.deduplication.certain()[quality.site[pairs.row]]) > 0,
    )


def crawl_blur(quality: ArchiveQuality) -> FloatArray:
    """Predicted blur per page of each crawl, by weight, for queries in the time it took; NaN without rates.

    O(pairs).
    """
    pairs, rounds = quality.pairs, quality.rounds
    captured = pairs.captured(quality.looks, quality.rate, quality.weight, slice(None))
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
    crawl, time = quality.rounds.of_look, quality.looks.time
    order = np.lexsort((time, crawl))
    gap = np.diff(time[order])
    gap = gap[(crawl[order][1:] == crawl[order][:-1]) & (gap > 0)]
    return float(np.median(gap)) if len(gap) else float("nan")


def last_change_classes(quality: ArchiveQuality) -> AnyArray:
    """What became of each page at last: the :class:`ChangeClass` of its last pair that was judged.

    New is a page that only the last crawl of its site has, after others. A page that was never seen there, and one of
    which nothing is known, is unseen.
    """
    pairs, rounds = quality.pairs, quality.rounds
    classes = np.full(len(quality.looks), ChangeClass.UNSEEN)
    last = np.full(int(quality.site.max(initial=-1)) + 1, -1)
    np.maximum.at(last, rounds.site, np.arange(len(rounds)))
    fresh = pairs.new & (pairs.round == last[quality.site[pairs.row]])
    classes[pairs.row[fresh]] = ChangeClass.NEW
    judged = pairs.found != Found.UNKNOWN
    classes[pairs.row[judged]] = pairs.change_classes()[judged]  # by crawl: of one page the last stands
    return classes
