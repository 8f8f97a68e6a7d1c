"""Judge archived captures by their bytes: text, links and data, not only digests.

Page by page, in the order of time, each capture is given to the same judge as in a live crawl, with what the
captures before it taught. Bytes are read only where the digest is another than before: a page that stayed the same
costs nothing.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace

import numpy as np

from recrawl.crawl.importing import REVISIT
from recrawl.detect import Judgement, Known, judge, unchanged
from recrawl.detect.listed import merge_downloads, outcomes_of
from recrawl.model import ANSWERED, Capture, IntArray, Outcome, Validators, Visit, Visits
from recrawl.store.base import Store
from recrawl.store.values import Captures
from recrawl.urls import address

ReadCapture = Callable[[str, int], Capture | None]
"""The bytes of the record at an offset of an archive file; ``None`` if they cannot be had."""

_PAGES_AT_ONCE = 500
_LINKS_REMEMBERED = 500_000


@dataclass(slots=True)
class _Page:
    """What the captures of one page taught so far."""

    known: Known | None = None
    digest: bytes = b""
    blind: bool = False
    """The bytes of the last version could not be had: what comes next can only be judged by its digest."""
    links_read_at: float = -np.inf


class PayloadJudge:
    """Reads archived bytes again and records what they say; a visit judged before is judged anew."""

    def __init__(self, store: Store, read: ReadCapture, merge_within: float = 0.0) -> None:
        """``merge_within`` as in :class:`recrawl.crawl.importing.Cleaning`."""
        self._store = store
        self._read = read
        self._merge_within = merge_within
        self._page_of: dict[str, int] = {}

    def judge(self, pages: IntArray, progress: Callable[[int, int], None] = lambda _done, _all: None) -> int:
        """Judge all captures of these pages that have bytes; return how many visits were recorded."""
        recorded = 0
        for start in range(0, len(pages), _PAGES_AT_ONCE):
            some = pages[start : start + _PAGES_AT_ONCE]
            recorded += self._record(list(self._visits(self._store.capture_columns(some))))
            progress(start + len(some), len(pages))
        return recorded

    def _visits(self, captures: Captures) -> Iterator[tuple[Visit, Judgement, Validators]]:
        page = _Page()
        outcome = outcomes_of(captures.status)
        keep = merge_downloads(captures.page, captures.time, outcome, self._merge_within)
        for row in range(len(captures)):
            if row == 0 or captures.page[row] != captures.page[row - 1]:
                page = _Page()
                held: dict[bytes, int] = {}
            if captures.mime[row] != REVISIT and captures.warc_file[row]:
                held[captures.digest[row]] = row
            if not keep[row]:
                continue
            found = self._judged(captures, row, page, held, Outcome(int(outcome[row])))
            if found is not None:
                yield found

    def _judged(
        self, captures: Captures, row: int, page: _Page, held: dict[bytes, int], outcome: Outcome
    ) -> tuple[Visit, Judgement, Validators] | None:
        """The visit of one capture, if there is anything to go by beyond what its digest said."""
        time, digest = float(captures.time[row]), captures.digest[row]
        repeats = captures.mime[row] == REVISIT
        was_blind, page.blind = page.blind, False
        if page.known is not None and not was_blind and outcome < Outcome.GONE and digest and digest == page.digest:
            judgement = unchanged(Judgement(outcome, validators=page.known.validators, mime=page.known.mime))
        else:
            capture = self._bytes_of(captures, held.get(digest, -1) if repeats else row)
            if capture is None:
                if outcome <= ANSWERED and digest != page.digest:
                    page.digest, page.blind = digest, True
                return None
            judgement = judge(_as_answer(capture, captures.mime[row], time), page.known)
        visit = Visit(
            int(captures.page[row]),
            time,
            outcome if repeats else judgement.outcome,
            judgement.verdict,
            judgement.kinds,
            int(captures.status[row]),
            max(int(captures.size[row]), 0),
            0.0,
            judgement.new_internal,
            judgement.new_external,
            judgement.added_internal,
            judgement.added_external,
        )
        if was_blind:
            page.blind = judgement.outcome > ANSWERED
            if not page.blind:
                _learn(page, judgement, time, digest)
            return None
        if judgement.outcome > ANSWERED:
            return visit, judgement, page.known.validators if page.known else Validators()
        return visit, judgement, _learn(page, judgement, time, digest)

    def _bytes_of(self, captures: Captures, row: int) -> Capture | None:
        if row < 0 or not captures.warc_file[row] or captures.warc_offset[row] < 0:
            return None
        return self._read(captures.warc_file[row], int(captures.warc_offset[row]))

    def _record(self, judged: list[tuple[Visit, Judgement, Validators]]) -> int:
        if not judged:
            return 0
        read = [(visit, judgement) for visit, judgement, _ in judged if judgement.links_read and judgement.links]
        targets = self._pages([url for _, judgement in read for url in judgement.links], judged[0][0].time)
        counts = [len(judgement.links) for _, judgement in read]
        source = np.repeat(np.array([visit.page for visit, _ in read], dtype=np.int64), counts)
        times = np.repeat(np.array([visit.time for visit, _ in read]), counts)
        self._store.record_links(source, targets, times)
        visits = Visits.from_rows(visit for visit, _, _ in judged)
        self._store.record(visits, validators=[validators for _, _, validators in judged])
        return len(judged)

    def _pages(self, urls: list[str], now: float) -> IntArray:
        """Page ids of link targets; new ones are only remembered, not scheduled."""
        unknown = [url for url in dict.fromkeys(urls) if url not in self._page_of]
        if unknown:
            ids = self._store.discover(unknown, now, importance=0.0)
            self._page_of.update(zip(unknown, ids.tolist(), strict=True))
        found = np.array([self._page_of[url] for url in urls], dtype=np.int64)
        if len(self._page_of) > _LINKS_REMEMBERED:
            self._page_of.clear()
        return found


def _as_answer(capture: Capture, mime: str, time: float) -> Capture:
    """The capture at another time; a payload without HTTP becomes an answer, so that it can be judged."""
    if capture.raw_head:
        return replace(capture, time=time)
    head = f"HTTP/1.1 200 OK\r\nContent-Type: {mime or 'application/octet-stream'}\r\n\r\n"
    return replace(capture, time=time, status=200, raw_head=head.encode("latin-1", "replace"))


def _learn(page: _Page, judgement: Judgement, time: float, digest: bytes) -> Validators:
    """Take what an answered capture says as what is known from now on."""
    if judgement.links_read:
        page.links_read_at = time
    validators = replace(
        judgement.validators,
        mime=judgement.mime,
        gone=judgement.outcome == Outcome.GONE,
        links_read_at=page.links_read_at,
    )
    last, ever = (page.known.links_last, page.known.links_ever) if page.known else (frozenset[str](), frozenset[str]())
    if judgement.links_read:
        last = frozenset(found.key for url in judgement.links if (found := address(url)))
        ever |= last
    page.known = Known(validators, validators.gone, judgement.mime, last, ever)
    page.digest = digest
    return validators
