"""Noise, learned: parts of a host's pages that differ between two visits moments apart, or on every visit.

Nobody tells us that a box shows random articles. But ask for the page again at once, and the box is another: no editor
works that fast. So each comparison of two versions is evidence on the parts that were in both, kept per host and part:

    near, near_differed   comparisons of versions less than two minutes apart, and how often the part differed
    far, far_differed     the same for versions further apart; that a part differs after a month says nothing of noise
    pages                 which pages it was seen on, as a set of 62 bits

A part is noise if it differed in at least a fifth of the near comparisons, and in two of them. Without near ones (an
imported archive has none), it is noise if it differed in at least 95 % of eight comparisons, on three pages: a clock is
in the template of a site, while the one page of latest news may well be another on every visit. A part that was looked
at twice and stayed is never noise by the second rule, however often it changes. Evidence adds up, so a part that stops
differing stops being noise.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, fields

import numpy as np

from recrawl.detect.comparison import NEAR, Compared
from recrawl.model import BoolArray, NoiseCounts
from recrawl.model.arrays import starts_of_runs
from recrawl.time import DAY

NEAR_ENOUGH, NEAR_SHARE = 2, 0.2
FAR_ENOUGH, FAR_SHARE, FAR_PAGES = 8, 0.95, 3
FAR_LIMIT = 30 * DAY
"""Seconds between versions beyond which a difference is no evidence: after years all of a site is another."""
MOST_LOOKS = 4
"""Near comparisons of a part of which only those tell anything; of others it depends on how often they differed."""
SUSPECTED = 20
"""Near comparisons up to which a part that once differed in them is under suspicion: each change of it is looked at."""
FIRST_LOOKS, LOOKS_SHARE = 8, 0.05
"""Second looks at a host: the first few, and beyond them this share of its visits."""
_PAGE_BITS = 62
_SPREAD = 0x9E37_79B9_7F4A_7C15


@dataclass(frozen=True, slots=True)
class NoiseBook(NoiseCounts):
    """Evidence on parts, one row a host and part, sorted by both. The book as a whole, or what one visit adds to it."""

    @classmethod
    def counted(cls, counts: NoiseCounts) -> NoiseBook:
        """What was counted, as a book; rows must be sorted. Nothing is copied."""
        return cls(*(getattr(counts, one.name) for one in fields(cls)))

    @classmethod
    def empty(cls) -> NoiseBook:
        """A book in which nothing is written."""
        return cls(*(np.empty(0, np.int64) for _ in fields(cls)))

    @classmethod
    def concat(cls, books: Iterable[NoiseBook]) -> NoiseBook:
        """All evidence of several books as one: counts are added, pages united. O(n log n).

        >>> one = evidence(7, 1, Compared(frozenset({5}), frozenset({6}), 30.0))
        >>> both = NoiseBook.concat([one, one])
        >>> both.part.tolist(), both.near.tolist(), both.near_differed.tolist()
        ([5, 6], [2, 2], [2, 0])
        """
        books = list(books)
        if not books:
            return cls.empty()
        columns = [np.concatenate([getattr(book, one.name) for book in books]) for one in fields(cls)]
        if not len(columns[0]):
            return cls.empty()
        order = np.lexsort((columns[1], columns[0]))
        columns = [column[order] for column in columns]
        starts = np.flatnonzero(starts_of_runs(*columns[:2]))
        merged = [column[starts] for column in columns[:2]]
        merged += [np.add.reduceat(count, starts) for count in columns[2:-1]]
        merged += [np.bitwise_or.reduceat(columns[-1], starts)]
        return cls(*merged)

    def plus(self, other: NoiseBook) -> NoiseBook:
        """This book with more evidence. O(n log n)."""
        return NoiseBook.concat([self, other])

    def of(self, host: int) -> NoiseBook:
        """The rows of one host. O(log n)."""
        mine = slice(*np.searchsorted(self.host, [host, host + 1]).tolist())
        return NoiseBook(*(getattr(self, one.name)[mine] for one in fields(self)))

    def at_most(self, rows: int) -> NoiseBook:
        """So many rows: those that are noise, then those there is most evidence on. O(n log n).

        Every sentence with a number that ever changed is a row; most were met once and will not be met again.

        >>> book = evidence(7, 1, Compared(frozenset({5, 6}), frozenset(), 30.0))
        >>> book.plus(evidence(7, 1, Compared(frozenset({6}), frozenset(), 30.0))).at_most(1).part.tolist()
        [6]
        """
        if len(self) <= rows:
            return self
        first = np.lexsort((-(self.near + self.far), ~self.is_noise()))[:rows]
        kept = np.sort(first)
        return NoiseBook(*(getattr(self, one.name)[kept] for one in fields(self)))

    def is_noise(self) -> BoolArray:
        """Which rows the evidence shows to be noise. O(n)."""
        agrees = self.near_differed >= NEAR_SHARE * self.near
        near = agrees & (self.near_differed >= NEAR_ENOUGH)
        often = (self.far >= FAR_ENOUGH) & (self.far_differed >= FAR_SHARE * self.far)
        widely = np.bitwise_count(self.pages.astype(np.uint64)) >= FAR_PAGES
        noise: BoolArray = near | (often & widely & agrees)
        return noise

    def is_settled(self) -> BoolArray:
        """Which rows need no further look: they are noise, or were looked at often enough. O(n).

        Looks double with what there is to explain: the n-th is made once the part differed 2ⁿ⁻² times from visit to
        visit. A part that shows itself on every other request is found in the end; news cost a handful of looks.
        One that differed in a look is under suspicion for longer: it may be noise that seldom shows.
        """
        enough = 2.0**self.near > 2.0 * self.far_differed
        enough &= (self.near_differed == 0) | (self.near >= SUSPECTED)
        settled: BoolArray = self.is_noise() | np.where(self.far > 0, enough, self.near >= MOST_LOOKS)
        return settled

    def mask(self, host: int) -> frozenset[int]:
        """The parts of a host that are noise."""
        mine = self.of(host)
        return frozenset(mine.part[mine.is_noise()].tolist())

    def watched(self, host: int) -> frozenset[int]:
        """The parts of a host that there is evidence on: those that ever differed."""
        return frozenset(self.of(host).part.tolist())


def evidence(host: int, page: int, compared: Compared) -> NoiseBook:
    """What one comparison adds to the book."""
    parts = sorted(compared.differed | compared.same)
    part = np.array(parts, np.int64)
    differed = np.array([one in compared.differed for one in parts], np.int64)
    near = np.full(len(parts), int(abs(compared.gap) < NEAR), np.int64)
    lasting = np.array([one not in compared.passing for one in parts], np.int64)
    far = (1 - near) * lasting * (1 if abs(compared.gap) < FAR_LIMIT else 1 - differed)
    bit = np.full(len(parts), 1 << (page * _SPREAD % (1 << 64) * _PAGE_BITS >> 64), np.int64)
    return NoiseBook(np.full(len(parts), host, np.int64), part, near, near * differed, far, far * differed, bit)


def wants_second_look(book: NoiseBook, host: int, compared: Compared | None, *, looks: int, visits: int) -> bool:
    """Whether a page that was found changed should be asked for again at once, to see what of it is noise.

    True if parts differ that nobody looked at often enough yet, and the host has looks left: ``looks`` and ``visits``
    are how many it had so far. Not to be asked of a second look: that would make a third.
    """
    if compared is None or looks >= FIRST_LOOKS + LOOKS_SHARE * visits:
        return False
    mine = book.of(host)
    return not compared.differed | compared.doubtful <= frozenset(mine.part[mine.is_settled()].tolist())
