"""The evidence for page features, as columns: observed versions, links and texts of pages over time.

A row of :class:`PageVersions` is an observation that read the page: a visit, a record of an archive, or a commit of a
repository. ``complete`` says whether changes between the rows are possible.

A link exists from the first observation that saw it to the first that missed it. The graph of a time contains only what
was known before it.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, fields
from typing import Final

import numpy as np
import numpy.typing as npt

from recrawl.model import AnyArray, BoolArray, FloatArray, IntArray
from recrawl.model.arrays import ends_of_runs, order_by

STATE: Final = (
    "content_size",
    "text_size",
    "text_quality",
    "internal_links",
    "external_links",
    "images",
    "tables",
    "emails",
    "has_last_modified",
)
"""Columns that describe a version as such."""


@dataclass(frozen=True, slots=True)
class PageVersions:
    """What m observations found, by page and time. NaN where an observation could not tell."""

    page: IntArray
    """Page ids, ascending."""
    time: FloatArray
    """When the observation was, seconds since the epoch; ascending within a page."""
    changed: BoolArray
    """Whether the content differed from the observation before; the first observation of a page cannot tell and says
    False."""
    new_internal: FloatArray
    """Links within the site that the observation before did not have; the first observation's count for nothing."""
    new_external: FloatArray
    """Links out of the site that the observation before did not have."""
    content_size: FloatArray
    """Bytes of the page."""
    text_size: FloatArray
    """Characters of its visible text."""
    text_quality: FloatArray
    """See :func:`recrawl.predict.static_features.text_quality`."""
    internal_links: FloatArray
    """Distinct links within the site."""
    external_links: FloatArray
    """Distinct links out of it."""
    images: FloatArray
    tables: FloatArray
    emails: FloatArray
    """E-mail addresses."""
    has_last_modified: FloatArray
    """1 if the answer had a Last-Modified header."""
    mime: IntArray
    """A bucket for the media type (:func:`recrawl.predict.static_features.buckets`); −1 where unknown."""
    complete: bool
    """Whether every version there was has its row. Then a time without a row had no change; else it says nothing."""

    def __len__(self) -> int:
        return len(self.page)

    @classmethod
    def of(
        cls,
        page: npt.ArrayLike,
        time: npt.ArrayLike,
        found: Mapping[str, npt.ArrayLike] | None = None,
        *,
        complete: bool = False,
    ) -> PageVersions:
        """Versions from anything array-like, in any order; columns not ``found`` are unknown, or say no change.

        >>> seen = PageVersions.of([7, 7], [5.0, 2.0], {"images": [3, 1]})
        >>> seen.time.tolist(), seen.images.tolist()
        ([2.0, 5.0], [1.0, 3.0])
        """
        given = dict(found or {})
        if given.keys() - set(COLUMNS):
            msg = f"versions have no column {min(given.keys() - set(COLUMNS))!r}"
            raise KeyError(msg)
        ids, times = np.asarray(page, np.int64), np.asarray(time, np.float64)
        order = order_by(ids, times)
        rows = slice(None) if order is None else order
        columns: dict[str, AnyArray] = {}
        for name in COLUMNS:
            dtype, unknown = _KINDS.get(name, (np.float64, np.nan))
            whole: AnyArray = np.broadcast_to(np.asarray(given.get(name, unknown), dtype), ids.shape)
            columns[name] = whole[rows].copy()
        return cls(ids[rows], times[rows], **columns, complete=complete)

    def before(self, time: float) -> PageVersions:
        """Only the observations before this time: all that may be known then. O(m)."""
        return self.take(self.time < time)

    def take(self, rows: AnyArray | slice) -> PageVersions:
        """The rows at these ascending positions, or where this mask is true."""
        columns = {name: getattr(self, name)[rows] for name in COLUMNS}
        return PageVersions(self.page[rows], self.time[rows], **columns, complete=self.complete)

    def offsets(self, page: IntArray) -> IntArray:
        """Where the rows of each of these ascending page ids start, and where the last ends. Shape (pages + 1,).

        Every row must be of one of these pages.
        """
        starts = np.searchsorted(self.page, page)
        return np.append(starts, len(self.page)).astype(np.int64)

    def valid_at(self, page: IntArray, time: float | FloatArray) -> IntArray:
        """The row of the last observation of each page before this time, or before its own; −1 where there was none.

        O(m).
        """
        starts = self.offsets(page)
        limit = np.repeat(np.broadcast_to(time, len(page)), np.diff(starts))
        earlier = np.concatenate([np.zeros(1, np.int64), np.cumsum(self.time < limit)])
        count = earlier[starts[1:]] - earlier[starts[:-1]]
        return np.where(count > 0, starts[:-1] + count - 1, -1)


COLUMNS: Final = tuple(field.name for field in fields(PageVersions) if field.name not in {"page", "time", "complete"})
"""All columns beside page and time."""
_KINDS: Final[dict[str, tuple[type, float]]] = {"changed": (np.bool_, False), "mime": (np.int64, -1)}


def picked(column: AnyArray, row: IntArray) -> FloatArray:
    """The values of a column at these rows; NaN for row −1.

    >>> picked(np.array([4.0, 5.0]), np.array([1, -1])).tolist()
    [5.0, nan]
    """
    found = np.full(len(row), np.nan)
    some = row >= 0
    found[some] = column[row[some]]
    return found


@dataclass(frozen=True, slots=True)
class TimedLinks:
    """Links from page to page with the time they were seen, in any order."""

    source: IntArray
    """Page ids."""
    target: IntArray
    added: FloatArray
    """When the link was first seen, seconds since the epoch."""
    removed: FloatArray
    """When it was first missed; inf or NaN while it is there."""
    internal: BoolArray
    """Whether it stays on its site."""

    def __len__(self) -> int:
        return len(self.source)

    def before(self, time: float) -> TimedLinks:
        """What may be known before this time: later links are unknown, later removals have not happened. O(links)."""
        known = self.added < time
        removed = np.where(self.removed < time, self.removed, np.inf)
        return TimedLinks(
            self.source[known], self.target[known], self.added[known], removed[known], self.internal[known]
        )

    def graphs_at(self, times: Iterable[float], page: IntArray) -> Iterator[PageGraph]:
        """The graphs of these ascending page ids just before each time. Links from or to other pages are left out.

        O(links · log pages), and O(links) a time.
        """
        (source, known_source), (target, known_target) = _rows(self.source, page), _rows(self.target, page)
        among = known_source & known_target & (source != target)
        for time in times:
            there = among & (self.added < time) & ~(self.removed < time)
            yield PageGraph(len(page), source[there], target[there], self.internal[there])


@dataclass(frozen=True, slots=True)
class PageGraph:
    """A graph of ``pages`` pages, which links name by row. No page links to itself."""

    pages: int
    source: IntArray
    target: IntArray
    internal: BoolArray

    def inlinks(self, *, internal: bool) -> IntArray:
        """How many links within the site, or from outside it, lead to each page. O(links)."""
        return np.bincount(self.target[self.internal == internal], minlength=self.pages)


def _rows(ids: IntArray, page: IntArray) -> tuple[AnyArray, BoolArray]:
    """The row of each id among ``page``, and whether it is there at all."""
    row = np.searchsorted(page, ids)
    if not len(page):
        return row, np.zeros(len(ids), np.bool_)
    row = np.minimum(row, len(page) - 1)
    return row, page[row] == ids


@dataclass(frozen=True, slots=True)
class PageTexts:
    """Texts with the time they were read, by page and time."""

    page: IntArray
    """Page ids, ascending."""
    time: FloatArray
    """Seconds since the epoch, ascending within a page."""
    text: tuple[str, ...]

    def __len__(self) -> int:
        return len(self.page)

    @classmethod
    def of(cls, page: npt.ArrayLike, time: npt.ArrayLike, text: Sequence[str]) -> PageTexts:
        """Texts in any order."""
        ids, times = np.asarray(page, np.int64), np.asarray(time, np.float64)
        order = order_by(ids, times)
        if order is None:
            return cls(ids, times, tuple(text))
        return cls(ids[order], times[order], tuple(text[place] for place in order))

    def before(self, time: float) -> PageTexts:
        """Only the texts read before this time."""
        known = self.time < time
        return PageTexts(self.page[known], self.time[known], tuple(self.text[place] for place in np.flatnonzero(known)))

    def last_of(self, page: IntArray) -> list[str]:
        """The last text of each of these page ids; empty where there is none.

        >>> PageTexts.of([4, 4, 6], [1.0, 2.0, 1.0], ["old", "new", "other"]).last_of(np.array([4, 5]))
        ['new', '']
        """
        last = np.flatnonzero(ends_of_runs(self.page))
        known = {int(self.page[place]): self.text[place] for place in last}
        return [known.get(one, "") for one in page.tolist()]
