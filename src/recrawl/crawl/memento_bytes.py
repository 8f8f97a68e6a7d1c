"""The bytes of captures that other archives hold: fetched one by one, politely, and kept as WARC records of our own.

A CDX server or a TimeMap lists captures, which then wait in the store (table ``memento``). Here they are asked for in
raw form, and each is kept before the next one is asked for: its record is on the disk, then the store names the place.
So after a kill only the request that was under way is made again.

Which come first: the newest version of every page, then the second newest of every page, and so on, so that a budget
is spread over pages and the versions of a page that are known follow each other.

Which are spared:
    the same digest   as bytes of this page that are there, or that are to be fetched: they would be the same
    errors            4xx and 5xx say nothing about text and links
    other types       pictures and the like are compared by their bytes alone, and the listed digest tells as much
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from typing import NamedTuple

import numpy as np

from recrawl.crawl.importing import Importer
from recrawl.detect import media_type
from recrawl.detect.version import is_comparable, is_html
from recrawl.errors import FetchError, InputError
from recrawl.fetch.archive_client import ArchiveClient, TooLongError, UnansweredError
from recrawl.fetch.memento import MementoClient
from recrawl.fetch.memento_capture import NotGivenError, known_raw_uri
from recrawl.fetch.robots import RobotsCache
from recrawl.formats.captures import Report
from recrawl.formats.timemap_values import TimeMap
from recrawl.formats.warc import WarcWriter
from recrawl.formats.warc_records import payload_sha1
from recrawl.model import Capture, FloatArray, IntArray
from recrawl.store.base import Store
from recrawl.store.values import REVISIT, Captures, MementoState
from recrawl.time import Clock, to_iso, to_timestamp14
from recrawl.urls import surt

_PAGES_AT_ONCE = 5_000
_SHA1_BYTES = 20
_ERRORS = 400
"""The first status that is an error."""
_BYTES = ("application/octet-stream", "binary/octet-stream", "unk")
_UNTYPED = ("", REVISIT, *_BYTES)
"""Media types that say nothing."""
_SAME = 1.0
"""Seconds by which the time that an archive tells of a capture may differ from the one it lists."""
_FAILURES = 3
"""Captures in a row that an archive fails at, after which it is the archive that fails."""


@dataclass(frozen=True, slots=True)
class ByteBudget:
    """What one run may take; ``None`` for any amount."""

    captures: int | None = None
    requests: int | None = None
    """Those for lists do not count."""
    size: int | None = None
    """Bytes of bodies."""

    def after(self, spent: BytesFetched) -> ByteBudget:
        """What is left of it."""
        captures = spent.captures + spent.missing + spent.failed
        parts = ((self.captures, captures), (self.requests, spent.requests), (self.size, spent.size))
        return ByteBudget(*(None if most is None else max(most - taken, 0) for most, taken in parts))


@dataclass(frozen=True, slots=True)
class BytesFetched:
    """What came of fetching, now."""

    captures: int = 0
    size: int = 0
    """Bytes of payload."""
    requests: int = 0
    differing: int = 0
    """Of the captures, those whose digest is another than the archive lists."""
    spared: int = 0
    missing: int = 0
    failed: int = 0
    waiting: int = 0
    """Captures that are still to be fetched."""
    ended_by: str = ""
    """Which budget ended it; empty if nothing is left to fetch."""


def question_number(url: str) -> int:
    """The number under which the store knows the captures that a URL lists."""
    return int.from_bytes(hashlib.blake2b(url.encode(), digest_size=8).digest(), "big") >> 1


class MementoList:
    """Lets the captures that an archive lists wait for their bytes."""

    def __init__(self, store: Store, importer: Importer, url: str, replay: str) -> None:
        """``url`` is the question; below ``replay`` are the mementos of a CDX server."""
        self._store = store
        self._importer = importer
        self._question = question_number(url)
        self._replay = replay if not replay or replay.endswith("/") else f"{replay}/"

    def of_index(self, urls: Sequence[str], times: FloatArray) -> None:
        """Captures that a CDX server lists."""
        uris = [
            f"{self._replay}{to_timestamp14(time)}id_/{url}" for url, time in zip(urls, times.tolist(), strict=True)
        ]
        self._add(urls, times, uris)

    def of_map(self, timemap: TimeMap) -> None:
        """Captures that a TimeMap lists with a URI."""
        found = [one for one in timemap.mementos if one.uri]
        times = np.array([one.time for one in found])
        self._add([one.original for one in found], times, [one.uri for one in found])

    def _add(self, urls: Sequence[str], times: FloatArray, uris: Sequence[str]) -> None:
        page = self._importer.pages(urls, Report())  # what is left out was reported when the captures were taken
        rows = np.flatnonzero(page >= 0)
        self._store.add_mementos(page[rows], times[rows], self._question, [uris[row] for row in rows.tolist()])


class _Plan(NamedTuple):
    """What to fetch, in order."""

    page: IntArray
    time: FloatArray
    spared: int


class MementoBytes:
    """Fetches what waits."""

    def __init__(  # noqa: PLR0913, PLR0917 - who takes part, and who is told
        self,
        store: Store,
        archive: MementoClient[TimeMap],
        client: ArchiveClient,
        robots: RobotsCache,
        writer: WarcWriter,
        clock: Clock,
        *,
        has_file: Callable[[str], bool],
        on_bad: Callable[[InputError], None] = lambda _error: None,
        progress: Callable[[int, int], None] = lambda _done, _all: None,
    ) -> None:
        """``client`` is the one that ``archive`` asks with. ``has_file`` tells whether an archive file can be read.

        ``on_bad`` is told of what the archive does not give, or gives otherwise than it lists it; ``progress`` how many
        captures are done, of how many.
        """
        self._store = store
        self._archive = archive
        self._client = client
        self._robots = robots
        self._writer = writer
        self._clock = clock
        self._has_file = has_file
        self._on_bad = on_bad
        self._progress = progress
        self.found = BytesFetched()
        """What came of it so far."""

    async def fetch(self, url: str, budget: ByteBudget) -> BytesFetched:
        """Fetch what waits of the captures that a URL listed, within a budget.

        Raises:
            FetchError: the archive fails, or its robots.txt forbids it. What was fetched is kept.
        """
        question = question_number(url)
        plan = self._plan(question)
        self.found = BytesFetched(spared=plan.spared, waiting=len(plan.page))
        wanted = min(len(plan.page), budget.captures if budget.captures is not None else len(plan.page))
        requests, received, failures = self._client.requests, self._client.received, 0
        for done, (page, time) in enumerate(zip(plan.page.tolist(), plan.time.tolist(), strict=True)):
            if spent := _spent(budget, done, self.found.requests, self._client.received - received):
                self.found = replace(self.found, ended_by=spent)
                break
            self._progress(done, wanted)
            uri = self._store.memento_uri(page, time)
            try:
                await self._ask_robots(uri)
                self._take(page, time, uri, await self._archive.raw(uri))
                failures = 0
            except NotGivenError as error:
                self._give_up(page, time, uri, MementoState.MISSING, error)
                failures = 0
            except (UnansweredError, TooLongError) as error:
                failures += isinstance(error, UnansweredError)
                if failures == _FAILURES:
                    raise
                self._give_up(page, time, uri, MementoState.FAILED, error)
            self.found = replace(self.found, waiting=self.found.waiting - 1, requests=self._client.requests - requests)
        self._progress(wanted, wanted)
        return self.found

    # -- which --------------------------------------------------------------------------------

    def _plan(self, question: int) -> _Plan:
        """What to fetch; what need not be is noted so. O(n log n) for n captures that wait."""
        page, time = self._store.mementos(question, MementoState.WAITING)
        rank, spared = np.empty(len(page), np.int64), 0
        pages = np.unique(page)
        for start in range(0, len(pages), _PAGES_AT_ONCE):
            some = pages[start : start + _PAGES_AT_ONCE]
            captures = self._store.capture_columns(some)
            for one in some.tolist():
                rows = slice(*np.searchsorted(page, [one, one + 1]).tolist())
                known = captures.take(np.arange(*np.searchsorted(captures.page, [one, one + 1]).tolist()))
                rank[rows] = self._ranks(time[rows], known)
        for state, number in ((MementoState.FETCHED, _HERE), (MementoState.SPARED, _NEEDLESS)):
            rows_of = np.flatnonzero(rank == number)
            self._store.set_mementos(page[rows_of], time[rows_of], state)
            spared += len(rows_of) if state is MementoState.SPARED else 0
        wanted = np.flatnonzero(rank >= 0)
        order = wanted[np.lexsort((page[wanted], rank[wanted]))]
        return _Plan(page[order], time[order], spared)

    def _ranks(self, waiting: FloatArray, known: Captures) -> IntArray:
        """In which round each capture of a page is fetched, the first being 0; or why it is not.

        Of captures with one digest the earliest is fetched, in the round of the latest: bytes that came first stand for
        those that followed.
        """
        row_of = {time: row for row, time in enumerate(known.time.tolist())}
        last = {digest: row for row, digest in enumerate(known.digest)}
        """The latest capture of each digest."""
        here = {known.digest[row] for row in range(len(known)) if self._has_bytes(known, row)}
        found, chosen = np.full(len(waiting), _NEEDLESS), dict[bytes | int, tuple[int, int]]()
        for place, time in enumerate(waiting.tolist()):
            row = row_of.get(time)
            if row is None:  # merged away, or withdrawn
                continue
            digest = known.digest[row]
            if self._has_bytes(known, row):
                found[place] = _HERE
            elif not digest:
                if int(known.status[row]) < _ERRORS:
                    chosen[row] = row, place
            elif digest not in here and digest not in chosen and _is_worth_it(known, row):
                chosen[digest] = last[digest], place
        for turn, (row, place) in enumerate(sorted(chosen.values(), reverse=True)):
            # What may be a picture, for all we know, comes behind all that is text.
            found[place] = 2 * turn + (known.mime[row].lower() in _BYTES)
        return found

    def _has_bytes(self, known: Captures, row: int) -> bool:
        file = known.warc_file[row]
        ours = known.ours is not None and bool(known.ours[row])
        return bool(file) and int(known.warc_offset[row]) >= 0 and (ours or self._has_file(file))

    # -- asking -------------------------------------------------------------------------------

    async def _ask_robots(self, uri: str) -> None:
        """See that the archive lets us have a memento, and how long it wants us to pause."""
        place = known_raw_uri(uri) or uri
        rules = self._robots.known(place)
        if rules is None:
            rules = await self._robots.rules(place)
            self._client.crawl_delay = rules.crawl_delay
            self._client.rest()
        if not rules.available:
            raise FetchError(f"{place}: the rules of the archive for robots cannot be had.", "Try again later.")
        if not rules.allowed(place):
            raise FetchError(
                f"{place}: the archive's robots.txt does not allow it ({rules.reason}).",
                "Ask the archive for its leave.",
            )

    def _take(self, page: int, time: float, uri: str, capture: Capture) -> None:
        """Keep a capture, if it is the one that was asked for."""
        [url] = self._store.urls(np.array([page]))
        if abs(capture.time - time) >= _SAME or surt(capture.url) != surt(url):
            raise NotGivenError(
                f"{uri}: the archive answered with the capture of {capture.url} of {to_iso(capture.time)} instead.",
                "Nothing is wrong here; archives do so where a capture cannot be shown.",
            )
        captures = self._store.captures_of_page(page, after=np.nextafter(time, -np.inf), limit=1)
        digest = payload_sha1(capture)
        listed = captures.digest[0] if len(captures) and captures.time[0] == time else b""
        differs = len(listed) == _SHA1_BYTES and listed != digest
        about = {"via": uri, "fetchedFromArchive": to_iso(self._clock.now())}
        if differs:
            about["listedDigest"] = f"sha1:{listed.hex()}"
        self._keep(captures, replace(capture, time=time), page, digest, about)
        self._set(page, time, MementoState.DIFFERS if differs else MementoState.FETCHED)
        if differs:
            self._on_bad(InputError("the bytes have another digest than the archive lists", source=uri))
        self.found = replace(
            self.found,
            captures=self.found.captures + 1,
            size=self.found.size + len(capture.raw_body),
            differing=self.found.differing + differs,
        )

    def _keep(self, listed: Captures, capture: Capture, page: int, digest: bytes, about: dict[str, str]) -> None:
        """Write the record, then let the store name its place. What the archive lists of the capture stands."""
        place = self._writer.write(capture, about=about)
        self._writer.sync()
        known = len(listed) > 0 and listed.time[0] == capture.time
        status = int(listed.status[0]) if known and listed.status[0] else capture.status
        mime = listed.mime[0] if known and listed.mime[0] not in _UNTYPED else media_type(capture)
        self._store.add_captures(
            Captures(
                np.array([page]),
                np.array([capture.time]),
                np.array([status]),
                [mime],
                [(listed.digest[0] if known else b"") or digest],
                np.array([len(capture.raw_body)]),
                [place.file],
                np.array([place.offset]),
                np.array([place.length]),
            ),
            located=True,
        )

    def _set(self, page: int, time: float, state: MementoState) -> None:
        self._store.set_mementos(np.array([page]), np.array([time]), state)

    def _give_up(self, page: int, time: float, uri: str, state: MementoState, error: FetchError) -> None:
        """Note a capture that cannot be had, so that it is not asked for again, and tell why."""
        self._set(page, time, state)
        missing = state is MementoState.MISSING
        self.found = replace(self.found, missing=self.found.missing + missing, failed=self.found.failed + (not missing))
        self._on_bad(InputError(error.what.removeprefix(f"{uri}: "), error.remedy, source=uri))


_HERE, _NEEDLESS = -2, -1
"""In place of a round: the bytes are there; they are not needed."""


def _is_worth_it(known: Captures, row: int) -> bool:
    """Whether bytes would tell more than what is listed."""
    mime = known.mime[row].lower()
    if int(known.status[row]) >= _ERRORS:
        return False
    return mime in _UNTYPED or is_html(mime, b"") or is_comparable(mime)


def _spent(budget: ByteBudget, captures: int, requests: int, size: int) -> str:
    """Which part of a budget is spent."""
    parts: Iterable[tuple[str, int | None, int]] = (
        ("captures", budget.captures, captures),
        ("requests", budget.requests, requests),
        ("bytes", budget.size, size),
    )
    return next((name for name, most, spent in parts if most is not None and spent >= most), "")
