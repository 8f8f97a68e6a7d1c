"""All that was seen of pages before a moment, as captures: what the features of that moment are made of."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field, replace

import numpy as np

from recrawl.crawl.importing_chunks import captures_in_pieces, chunks_of
from recrawl.crawl.payloads import ReadCapture
from recrawl.model import Capture, FloatArray, IntArray, Verdict
from recrawl.store.base import Store
from recrawl.store.values import REVISIT, Captures

_CAPTURES_AT_ONCE, _PAGES_AT_ONCE = 20_000, 2_000


def looks_before(
    store: Store,
    read: ReadCapture,
    pages: IntArray,
    as_of: float,
    progress: Callable[[int], None] = lambda _pages: None,
) -> Iterator[tuple[int, Capture]]:
    """Looks at these pages (ascending ids) before a time, by page and time; later ones are not even read.

    A look that found the page as it was, told by a visit or by a record that repeats another, is the capture before it
    with a later time. Captures without bytes at hand are left out, and so are such looks before the first capture.
    O(captures) records of the archive. ``progress`` is told how many pages were done.
    """
    for some in chunks_of(store, pages, _CAPTURES_AT_ONCE, _PAGES_AT_ONCE):
        reading = _Reading(read, _unchanged(store, some, as_of))
        for captures in captures_in_pieces(store, some, _CAPTURES_AT_ONCE):
            for row in np.flatnonzero(captures.time < as_of).tolist():
                yield from reading.look(captures, row)
        yield from reading.rest()
        progress(len(some))


@dataclass(frozen=True, slots=True)
class _Reading:
    """Captures as they are read, page by page in the order of time, with the looks between them."""

    read: ReadCapture
    unchanged: dict[int, list[float]]
    """Falling times at which a page was found as it was; they go as they are told."""
    last: dict[int, tuple[bytes, Capture]] = field(default_factory=dict)
    """The last capture of each page, with its digest."""
    place: dict[tuple[int, bytes], tuple[str, int]] = field(default_factory=dict)
    """Where the bytes of a page with a digest lie."""

    def look(self, captures: Captures, row: int) -> Iterator[tuple[int, Capture]]:
        """One capture, after the looks before it."""
        page, time, digest = int(captures.page[row]), float(captures.time[row]), captures.digest[row]
        yield from self._again(page, time)
        if captures.mime[row] == REVISIT:
            found = self._repeated(page, digest)
        else:
            at = captures.warc_file[row], int(captures.warc_offset[row])
            self.place.setdefault((page, digest), at)
            found = self.read(*at)
        if found is not None:
            self.last[page] = digest, found
            yield page, replace(found, time=time)

    def rest(self) -> Iterator[tuple[int, Capture]]:
        """The looks after the last capture of each page."""
        for page in self.unchanged:
            yield from self._again(page, np.inf)

    def _repeated(self, page: int, digest: bytes) -> Capture | None:
        """What a record repeats: the capture before it, or an earlier one of the same digest."""
        known, before = self.last.get(page, (b"", None))
        if before is not None and digest in {b"", known}:
            return before
        at = self.place.get((page, digest))
        return None if at is None else self.read(*at)

    def _again(self, page: int, until: float) -> Iterator[tuple[int, Capture]]:
        """The last capture once more for each look before ``until``."""
        times = self.unchanged.get(page, [])
        while times and times[-1] <= until:
            time = times.pop()
            if page in self.last and time < until:
                yield page, replace(self.last[page][1], time=time)


def _unchanged(store: Store, pages: IntArray, as_of: float) -> dict[int, list[float]]:
    """When visits found a page as it was, before a time: falling times, by page."""
    visits = store.visits(pages=pages, until=as_of)
    rows = np.flatnonzero((visits.verdict == Verdict.UNCHANGED) & (visits.time < as_of))
    page, time = visits.page[rows], visits.time[rows]
    ends = np.append(np.flatnonzero(np.diff(page)) + 1, len(page))
    parts: list[FloatArray] = np.split(time, ends[:-1]) if len(page) else []
    return {int(page[end - 1]): part[::-1].tolist() for end, part in zip(ends.tolist(), parts, strict=False)}
