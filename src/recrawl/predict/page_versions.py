"""Looks at pages with what each found on them, as columns: the evidence that page features are made of.

A row is a look that read the page. Where it came from (visits of the crawler, records of an archive, commits of a
repository) does not matter here, but whether anything can have happened between the rows does: see ``complete``.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, fields
from typing import Final

import numpy as np
import numpy.typing as npt

from recrawl.model import AnyArray, BoolArray, FloatArray, IntArray
from recrawl.model.arrays import order_by

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
    """What m looks found, by page and time. NaN where a look could not tell."""

    page: IntArray
    """Page ids, ascending."""
    time: FloatArray
    """When the look was, seconds since the epoch; ascending within a page."""
    changed: BoolArray
    """Whether the content differed from the look before; the first look of a page cannot tell and says False."""
    new_internal: FloatArray
    """Links within the site that the look before did not have; the first look's count for nothing."""
    new_external: FloatArray
    """Links out of the site that the look before did not have."""
    content_size: FloatArray
    """Bytes of the page."""
    text_size: FloatArray
    """Characters of its visible text."""
    text_quality: FloatArray
    """See :func:`recrawl.predict.text_quality.text_quality`."""
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
    """A bucket for the media type (:func:`recrawl.predict.names.buckets`); −1 where unknown."""
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
        """Only the looks before this time: all that may be known then. O(m)."""
        return self.take(self.time < time)

    def take(self, rows: AnyArray | slice) -> PageVersions:
        """The rows at these ascending positions, or where this mask is true."""
        columns = {name: getattr(self, name)[rows] for name in COLUMNS}
        return PageVersions(self.page[rows], self.time[rows], **columns, complete=self.complete)

    def offsets(self, page: IntArray) -> IntArray:
        """Where the rows of each of these ascending page ids begin, and where the last ends. Shape (pages + 1,).

        Every row must be of one of these pages.
        """
        starts = np.searchsorted(self.page, page)
        return np.append(starts, len(self.page)).astype(np.int64)

    def valid_at(self, page: IntArray, time: float | FloatArray) -> IntArray:
        """The row of the last look at each page before this time, or before its own; −1 where there was none. O(m)."""
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
