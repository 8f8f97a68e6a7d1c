"""Indexes that leave out captures which brought nothing new: of such, nothing is known about pages that stay the same.

Some tools list a capture only if its digest is another than before: wget writes revisit records into its WARC files and
leaves them out of its CDX, and CDX servers can be asked to collapse equal digests. Read as if it were complete, such an
index says that every page changed at every capture and that none is coherent. Both are false.

Rules of this file:
 1. Only digests are suspect. Whoever read two versions, or kept a log of changes, knows what happened.
 2. An index is suspect if, in ``FEWEST`` comparisons or more, no capture of a site has the digest of the one before it.
 3. It leaves repeats out, as far as can be told, if besides many captures are absent: pages that were listed before are
    not listed in later crawls of their site, in at least one case for every ``PER_ABSENCE`` comparisons. If every crawl
    lists every page, the pages may as well differ at every download, as those with a counter or a date do.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from recrawl.assess.looks import Looks
from recrawl.assess.rounds import Rounds
from recrawl.model import BoolArray, ChangeKind, IntArray, Verdict
from recrawl.model.arrays import starts_of_runs

FEWEST = 3
"""Comparisons below which nothing is suspected."""
PER_ABSENCE = 4

_BY_DIGEST = np.uint16(ChangeKind.CONTENT | ChangeKind.EXISTENCE)


@dataclass(frozen=True, slots=True)
class Deduplication:
    """What speaks for repeats having been left out, by site. Columns of sites, numbered from 0."""

    comparisons: IntArray
    """Captures that were compared with the one before them."""
    absent: IntArray
    """Cases in which a page was captured before and is not listed in a crawl of its site."""
    suspected: BoolArray
    """Sites without a single repeat, though there were many comparisons."""

    def certain(self) -> BoolArray:
        """Sites of which repeats are left out as far as can be told: there, coherence is not known."""
        return self.suspected & (self.absent * PER_ABSENCE >= self.comparisons)


def deduplication(looks: Looks, rounds: Rounds, site: IntArray) -> Deduplication:
    """Look for sites whose repeated captures are not listed. O(m log m) for m looks.

    >>> from recrawl.assess.rounds import find_rounds
    >>> from recrawl.model import Visits
    >>> pages, times, verdicts = [1] * 6 + [2], [0.0, 9.0, 18.0, 27.0, 36.0, 45.0, 1.0], [0, 2, 2, 2, 2, 2, 0]
    >>> looks = Looks.from_visits(Visits.of(pages, times, verdict=verdicts, kinds=[0, 1, 1, 1, 1, 1, 0]))
    >>> site = np.array([0, 0])
    >>> found = deduplication(looks, find_rounds(looks, site), site)
    >>> found.comparisons.tolist(), found.absent.tolist(), found.certain().tolist()
    ([5], [5], [True])
    """
    sites = int(site.max(initial=-1)) + 1
    row = looks.row_of_look()
    of_site = site[row]
    judged = ~looks.opens() & (looks.says != Verdict.UNKNOWN)
    read = judged & ((looks.says == Verdict.UNCHANGED) | ((looks.kinds & ~_BY_DIGEST) != 0))

    def count(which: BoolArray) -> IntArray:
        return np.bincount(of_site[which], minlength=sites).astype(np.int64)

    comparisons = count(judged & ~looks.gone)
    suspected = (comparisons >= FEWEST) & (count(read) == 0)
    return Deduplication(comparisons, _absences(looks, rounds, site, sites), suspected)


def _absences(looks: Looks, rounds: Rounds, site: IntArray, sites: int) -> IntArray:
    """Of each site, in how many cases a crawl lists no capture of a page that an earlier one had; gone pages rest."""
    order = np.lexsort((rounds.start, rounds.site))
    opens = np.flatnonzero(starts_of_runs(rounds.site[order]))
    rank = np.empty(len(order), np.int64)
    rank[order] = np.arange(len(order)) - np.repeat(opens, np.diff(np.append(opens, len(order))))
    crawls = np.bincount(rounds.site, minlength=sites)
    row, first, last = looks.row_of_look(), looks.offsets[:-1], looks.offsets[1:] - 1
    in_crawls = np.bincount(row[starts_of_runs(row, rounds.of_look)], minlength=len(looks))
    until = np.where(looks.gone[last], rank[rounds.of_look[last]], crawls[site] - 1)
    absent = until - rank[rounds.of_look[first]] + 1 - in_crawls
    return np.bincount(site, np.maximum(absent, 0), sites).astype(np.int64)
