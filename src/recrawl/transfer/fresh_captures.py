"""The captures of pages that an import found itself, kept as columns until they are classified.

A first import of an index is mostly about pages that nobody knew. All their captures were in the hands of the importer,
so they need not be read back from the store. A page is classified from here only if the store has exactly the captures
that are here, so it does not matter who else writes to the store meanwhile; every other page is classified from the
store. The memory is bounded: the importer takes out what is complete when :data:`MOST_CAPTURES` are kept.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, TypeAlias

import numpy as np

from recrawl.errors import require
from recrawl.model import AnyArray, BoolArray, IntArray
from recrawl.model.arrays import order_by, starts_of_runs
from recrawl.store.store_values import REVISIT, CaptureColumns
from recrawl.transfer.listed_captures import ListedCaptures

MOST_CAPTURES = 500_000
"""Captures that are kept, about 60 bytes each."""
_SHA1_BYTES = 20

CaptureTexts: TypeAlias = tuple[list[str], IntArray, Any]
"""Names of media types, the number of each capture's name among them, and digests as a ``pyarrow.BinaryArray``."""


class FreshCaptures:
    """Captures of pages with an id above that of the last page before the import."""

    def __init__(self, after: int, most: int = MOST_CAPTURES) -> None:
        self.after = after
        """The last page that the import did not find."""
        self._most = most
        self._parts: list[tuple[AnyArray, ...]] = []
        """Page, time, status, size and media type."""
        self._digests: list[Any] = []
        self._types: dict[str, int] = {}
        self._newest = self._last = -1
        self._rows = 0
        self._in_order = True
        """Whether no page came again after others, as in a sorted index, but for the last one of what was added."""

    def __len__(self) -> int:
        return self._rows

    @property
    def is_full(self) -> bool:
        """Whether something must be taken out before more is added."""
        return self._rows >= self._most

    def add(self, captures: CaptureColumns, names: list[str], types: IntArray, digests: Any) -> None:  # noqa: ANN401
        """Keep the captures of pages that the import found; the texts of all ``captures`` are given as columns.

        Captures of sources that tell more than an index does are not kept.
        """
        mine = captures.page > self.after
        if captures.origin is not None or not bool(mine.any()):
            return
        rows = np.flatnonzero(mine)
        everything = len(rows) == len(captures)
        known = self._types
        numbers = np.array([known.setdefault(name, len(known)) for name in names], np.int32)
        codes = numbers[types]
        columns: tuple[AnyArray, ...] = (captures.page, captures.time, captures.status, captures.size, codes)
        kept = columns if everything else tuple(column[rows] for column in columns)
        page = kept[0]
        self._in_order &= bool(((page > self._newest) | (page == self._last)).all())
        self._newest, self._last = max(self._newest, int(page.max())), int(page[-1])
        self._parts.append(kept)
        self._digests.append(digests if everything else digests.take(require("pyarrow", "columns").array(rows)))
        self._rows += len(page)

    def taken(self, *, all_of_them: bool) -> tuple[ListedCaptures, BoolArray] | None:
        """Take out the captures by page and time, and which of them have the page and time of the one before.

        Without ``all_of_them`` the last page stays, since more of it may follow; where pages came in no order any page
        may go on, so nothing is returned and the store has to be read.
        """
        parts, digests, names = self._parts, self._digests, list(self._types)
        last, whole = self._last, all_of_them or self._in_order
        self._parts, self._digests, self._rows = [], [], 0
        if not parts or not whole:
            self._types = {}
            return None
        pa = require("pyarrow", "columns")
        page, time, status, size, codes = (np.concatenate(column) for column in zip(*parts, strict=True))
        digest = pa.concat_arrays(digests)
        if not all_of_them:
            going_on, done = np.flatnonzero(page == last), np.flatnonzero(page != last)
            self._parts = [(page[going_on], time[going_on], status[going_on], size[going_on], codes[going_on])]
            self._digests, self._rows = [digest.take(pa.array(going_on))], len(going_on)
            if not len(done):
                return None
            page, time, status, size, codes = (column[done] for column in (page, time, status, size, codes))
            digest = digest.take(pa.array(done))
        order = order_by(page, time)
        if order is not None:
            page, time, status, size, codes = (column[order] for column in (page, time, status, size, codes))
            digest = digest.take(pa.array(order))
        version, method = _numbers(digest)
        none = np.zeros(len(page), np.bool_)
        repeats = codes == names.index(REVISIT) if REVISIT in names else none
        listed = ListedCaptures(
            page,
            time,
            status,
            [],
            repeats,
            [],
            size,
            none,
            none,
            none,
            types=(names, codes),
            versions=(version, method),
        )
        return listed, ~starts_of_runs(page, time)


def _numbers(digest: Any) -> tuple[IntArray, IntArray]:  # noqa: ANN401 - a pyarrow.BinaryArray
    """What ``versions_of`` and ``methods_of`` say of a column: equal numbers for equal digests, and for algorithms."""
    from recrawl.detect.digest_verdicts import methods_of

    pc = require("pyarrow.compute", "columns")
    encoded = digest.dictionary_encode()
    code = encoded.indices.to_numpy().astype(np.int64)
    length = pc.binary_length(encoded.dictionary).to_numpy()
    version = np.where(length[code] == 0, 0, code + 1)
    if bool(np.isin(length, (0, _SHA1_BYTES)).all()):
        return version, length[code].astype(np.int64) // _SHA1_BYTES
    return version, methods_of(encoded.dictionary.to_pylist())[code]


def page_portions(listed: ListedCaptures, again: BoolArray, at_once: int) -> Iterator[tuple[ListedCaptures, BoolArray]]:
    """Portions of whole pages with about ``at_once`` captures; a page with more is a portion by itself."""
    first = np.append(np.flatnonzero(starts_of_runs(listed.page)), len(listed))
    begin = 0
    while begin < len(listed):
        end = int(first[max(np.searchsorted(first, begin + at_once, "right") - 1, np.searchsorted(first, begin) + 1)])
        yield listed.part(slice(begin, end)), again[begin:end]
        begin = end
