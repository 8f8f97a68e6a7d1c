"""Bring what archives already hold into the store: captures first, then the visits that follow from them.

Taking captures and judging them are two steps, because the order in which sources are read is not the order of
time: a capture imported today may lie between two that were imported last year, and changes what the later one says.
So captures are only noted, and in the end every page that got new ones is judged anew, in the order of time.
"""

from __future__ import annotations

import base64
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from recrawl.detect.listed import judge_listed, merge_downloads, outcomes_of, versions_of
from recrawl.formats.captures import NO_STATUS, RecordKind, Report
from recrawl.model import ANSWERED, BoolArray, Outcome, Verdict, Visits
from recrawl.model.arrays import order_by, starts_of_runs
from recrawl.predict.url_features import url_depths
from recrawl.store.base import Store
from recrawl.store.values import Captures, ImportMark
from recrawl.time import Clock

REVISIT = "warc/revisit"
"""The media type under which indexes list a revisit (conventions X1)."""
_NOT_MODIFIED = 304
_PAGES_AT_ONCE = 20_000
"""Pages judged together: bounds the memory by their captures."""
_SHA1_TEXT, _SHA1_HEX = 32, 40


@dataclass(frozen=True, slots=True)
class Cleaning:
    """What to leave out of an archive before it is judged (SHARC 7.2)."""

    merge_within: float = 60.0
    """Seconds within which several downloads of a page are one; the best answer stands, and of those the last."""
    depth: int | None = None
    """Only pages with at most so many directories in their path; ``None`` for all."""


class Importer:
    """One import: sources are taken one after the other, then all pages they touched are judged."""

    def __init__(
        self,
        store: Store,
        clock: Clock,
        cleaning: Cleaning | None = None,
        progress: Callable[[int], None] = lambda _captures: None,
    ) -> None:
        self._store = store
        self._clock = clock
        self._cleaning = cleaning or Cleaning()
        self._progress = progress

    def take(
        self, source: str, fingerprint: str, batches: Iterable[Any], report: Report, *, file: str = ""
    ) -> ImportMark:
        """Note the captures of one source; a source that was taken before adds nothing, one cut short goes on.

        ``batches`` are record batches of :func:`recrawl.formats.captures.schema`. Each is one transaction, together
        with how far the source was read. ``file`` says where the bytes can be found again, if the source has them.
        """
        mark = self._store.import_mark(source)
        if mark is None or mark.fingerprint != fingerprint:
            mark = ImportMark(source, fingerprint)
        if mark.finished:
            report.skip("imported before", mark.accepted)
            return mark
        for batch in _from(batches, mark.position):
            captures = self._captures(batch, report, file)
            mark = replace(
                mark,
                position=mark.position + batch.num_rows,
                accepted=mark.accepted + len(captures),
                skipped=sum(report.skipped.values()),
                broken=report.bad,
            )
            self._store.add_captures(captures, mark)
            self._progress(len(captures))
        mark = replace(mark, skipped=sum(report.skipped.values()), broken=report.bad, finished=True)
        self._store.set_import_mark(mark)
        return mark

    def judge(self, progress: Callable[[int, int], None] = lambda _done, _all: None) -> int:
        """Turn the captures of every page that waits for it into visits; return how many are new or judged anew.

        Pages wait in the store, also those of an import that was cut short. They wait on until ``set_judged``.
        """
        pages = self._store.unjudged()
        recorded = 0
        for start in range(0, len(pages), _PAGES_AT_ONCE):
            some = pages[start : start + _PAGES_AT_ONCE]
            visits, tells = judged_visits(self._store.capture_columns(some), self._cleaning.merge_within)
            news = visits.take(news_in(visits, tells, self._store.visits(pages=some)))
            if len(news):
                self._store.record(news)
            recorded += len(news)
            progress(start + len(some), len(pages))
        return recorded

    def _captures(self, batch: Any, report: Report, place: str) -> Captures:  # noqa: ANN401 - pyarrow ships no types
        urls: list[str] = batch.column("url").to_pylist()
        wanted = np.flatnonzero(self._shallow(urls, report))
        page = self._store.discover([urls[row] for row in wanted.tolist()], self._clock.now())
        if bool((page < 0).any()):
            report.skip("not an http(s) URL", int((page < 0).sum()))
        rows, page = wanted[page >= 0], page[page >= 0]
        kind = batch.column("kind").to_numpy()[rows]
        repeats = np.isin(kind, (RecordKind.REVISIT_IDENTICAL, RecordKind.REVISIT_NOT_MODIFIED))
        status = batch.column("status").to_numpy()[rows].astype(np.int64)
        status[(kind == RecordKind.REVISIT_NOT_MODIFIED) & (status == NO_STATUS)] = _NOT_MODIFIED
        mime, digest, file = (batch.column(name).to_pylist() for name in ("mime", "digest", "file"))
        return Captures(
            page,
            batch.column("time").to_numpy()[rows],
            status,
            [REVISIT if again else mime[row] for row, again in zip(rows.tolist(), repeats.tolist(), strict=True)],
            [digest_bytes(digest[row]) for row in rows.tolist()],
            batch.column("size").to_numpy()[rows],
            [place or file[row] for row in rows.tolist()],
            batch.column("offset").to_numpy()[rows],
            batch.column("length").to_numpy()[rows],
        )

    def _shallow(self, urls: list[str], report: Report) -> BoolArray:
        if self._cleaning.depth is None:
            return np.ones(len(urls), np.bool_)
        shallow = np.array([url_depths(url).path <= self._cleaning.depth for url in urls], np.bool_)
        if not shallow.all():
            report.skip(f"deeper than {self._cleaning.depth}", int((~shallow).sum()))
        return shallow


def digest_bytes(text: str) -> bytes:
    """A digest as the store keeps it: SHA-1 as its 20 bytes, any other as the text that was given.

    >>> len(digest_bytes("3I42H3S6NNFQ2MSVX7XZKYAYSCX5QBYJ")), digest_bytes("md5:0cc1"), digest_bytes("-")
    (20, b'md5:0cc1', b'')
    """
    bare = text.removeprefix("sha1:")
    try:
        if len(bare) == _SHA1_TEXT:
            return base64.b32decode(bare.upper())
        if len(bare) == _SHA1_HEX:
            return bytes.fromhex(bare)
    except ValueError:
        pass
    return b"" if text in ("", "-") else text.encode()


def judged_visits(captures: Captures, merge_within: float) -> tuple[Visits, BoolArray]:
    """The visits that follow from captures, sorted by page and time, by what their digests say. O(n log n).

    And which of them tell a version: those are what later ones are compared with.
    """
    order = order_by(captures.page, captures.time)
    rows = np.arange(len(captures)) if order is None else order
    page, time, status = captures.page[rows], captures.time[rows], captures.status[rows]
    repeats = np.array([captures.mime[row] == REVISIT for row in rows.tolist()], np.bool_)
    version = versions_of([captures.digest[row] for row in rows.tolist()])
    outcome = outcomes_of(status)
    keep = merge_downloads(page, time, outcome, merge_within)
    found = judge_listed(page[keep], outcome[keep], repeats[keep], version[keep])
    tells = (outcome <= ANSWERED) & ((version != 0) | (outcome == Outcome.GONE))
    visits = Visits.of(
        page[keep],
        time[keep],
        outcome=outcome[keep],
        verdict=found.verdict,
        kinds=found.kinds,
        status=status[keep],
        size=np.maximum(captures.size[rows][keep], 0),
    )
    return visits, tells[keep]


def news_in(judged: Visits, tells: BoolArray, known: Visits) -> BoolArray:
    """Which judged visits to record: those unknown so far, and those whose verdict stands no more.

    A verdict falls if it was open, or if the capture it is compared with, the last before it that tells a version, is
    new. Otherwise the known one stays: whoever gave it may have seen more than digests. Both are sorted by page and
    time. O(n).
    """
    page, time = np.concatenate([known.page, judged.page]), np.concatenate([known.time, judged.time])
    is_judged = np.arange(len(page)) >= len(known)
    order = order_by(page, time)
    rows = np.arange(len(page)) if order is None else order
    second = ~starts_of_runs(page[rows], time[rows])
    met = np.full(len(judged), -1)  # row of the known visit at the same page and instant
    pairs = np.flatnonzero(second & is_judged[rows])
    met[rows[pairs] - len(known)] = rows[pairs - 1]
    new = met < 0
    place = np.arange(len(judged))
    page_start = np.maximum.accumulate(np.where(starts_of_runs(judged.page), place, 0))
    compared = np.append(-1, np.maximum.accumulate(np.where(tells, place, -1))[:-1])[: len(judged)]
    after_new = (compared >= page_start) & new[np.maximum(compared, 0)] if len(judged) else new
    before = np.where(new, Verdict.UNKNOWN, known.verdict[np.maximum(met, 0)] if len(known) else Verdict.UNKNOWN)
    differs = judged.verdict != before
    news: BoolArray = new | (differs & ((before == Verdict.UNKNOWN) | after_new))
    return news


def _from(batches: Iterable[Any], position: int) -> Iterator[Any]:
    """The batches without their first ``position`` rows: those were taken by an import that was cut short."""
    for batch in batches:
        if position >= batch.num_rows:
            position -= batch.num_rows
            continue
        yield batch.slice(position) if position else batch
        position = 0
