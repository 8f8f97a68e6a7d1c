"""Imports histories from CDX servers and TimeMaps, politely and resumably.

Each response is stored before the next request, together with where to resume. So an interrupted import requests only
what is missing. If asked for, the bytes of the listed captures are downloaded into our own WARC records.

A CDX server or a TimeMap lists captures, which then wait in the store (table ``memento``). They are requested in raw
form, and each is stored before the next request: first its record is on disk, then the store names the place. So after
a kill only the request under way is repeated.

Order: the newest version of every page, then the second newest of every page, and so on. A budget is thus spread over
pages, and the known versions of a page are consecutive.

Spared are:

    the same digest   as bytes of this page that are there, or that are to be fetched: they would be the same
    errors            4xx and 5xx say nothing about text and links
    other types       images and the like are compared by their bytes alone, and the listed digest is enough
"""

from __future__ import annotations

import hashlib
import io
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from typing import NamedTuple

import numpy as np

from recrawl.detect import decoded, media_type
from recrawl.detect.version import is_comparable, is_html
from recrawl.errors import FetchError, InputError, RecrawlError, our_fault
from recrawl.fetch.archives.archive_client import ArchiveClient, RateLimitedError, TooLongError
from recrawl.fetch.archives.archive_url import CdxAddress, MapAddress, archive_address
from recrawl.fetch.archives.cdx_client import CdxClient, CdxState
from recrawl.fetch.archives.memento_client import MapState, MementoClient, NotGivenError, known_raw_uri
from recrawl.fetch.robots_cache import RobotsCache
from recrawl.formats.atomic_files import waits_for
from recrawl.formats.cdx.cdx_responses import read_answer
from recrawl.formats.columnar.capture_batches import ReadReport
from recrawl.formats.timemap import TimeMap, read_timemap, to_batches
from recrawl.formats.warc.warc_records import payload_sha1
from recrawl.formats.warc.warc_writer import WarcWriter
from recrawl.model import Capture, FloatArray, IntArray
from recrawl.store.base import CaptureIndex, Store
from recrawl.store.store_values import REVISIT, CaptureColumns, MementoState
from recrawl.time import Clock, to_iso, to_timestamp14
from recrawl.transfer.archive_import import ImportedSource, Importer
from recrawl.urls import host_of, surt

_PAGES_AT_ONCE = 5_000
_SHA1_BYTES = 20
_ERRORS = 400
"""The first status that is an error."""
_BYTES = ("application/octet-stream", "binary/octet-stream", "unk")
_UNTYPED = ("", REVISIT, *_BYTES)
"""Media types without meaning."""
_SAME = 1.0
"""Seconds by which the time of a capture may differ from the listed one."""
_FAILURES = 3
"""Failed captures in a row, after which the archive counts as failing."""


@dataclass(frozen=True, slots=True)
class ByteBudget:
    """The limits of one run; ``None`` for any amount."""

    captures: int | None = None
    requests: int | None = None
    """Requests for lists do not count."""
    size: int | None = None
    """Bytes of bodies."""

    def after(self, spent: BytesFetched) -> ByteBudget:
        """What is left of it."""
        captures = spent.captures + spent.missing + spent.failed
        parts = ((self.captures, captures), (self.requests, spent.requests), (self.size, spent.size))
        return ByteBudget(*(None if most is None else max(most - taken, 0) for most, taken in parts))


@dataclass(frozen=True, slots=True)
class BytesFetched:
    """The result of this run."""

    captures: int = 0
    size: int = 0
    """Bytes of payload."""
    requests: int = 0
    differing: int = 0
    """Captures whose digest differs from the listed one."""
    spared: int = 0
    missing: int = 0
    failed: int = 0
    waiting: int = 0
    """Captures that are still to be fetched."""
    ended_by: str = ""
    """Which limit ended it; empty if nothing is left to fetch."""


def question_number(url: str) -> int:
    """The number under which the store knows the captures that a URL lists."""
    return int.from_bytes(hashlib.blake2b(url.encode(), digest_size=8).digest(), "big") >> 1


class MementoList:
    """Queues the listed captures of an archive for download."""

    def __init__(self, store: CaptureIndex, importer: Importer, url: str, replay: str) -> None:
        """``url`` is the query; below ``replay`` are the mementos of a CDX server."""
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
        page = self._importer.pages(urls, ReadReport())  # what is left out was reported when the captures were imported
        rows = np.flatnonzero(page >= 0)
        self._store.add_mementos(page[rows], times[rows], self._question, [uris[row] for row in rows.tolist()])


class _Plan(NamedTuple):
    """What to fetch, in order."""

    page: IntArray
    time: FloatArray
    spared: int


class NotAllowedError(FetchError):
    """The robots.txt of a host forbids a capture, or is unavailable; other hosts may allow it."""

    def __init__(self, what: str, remedy: str, host: str | None) -> None:
        super().__init__(what, remedy)
        self.host = host


class MementoBytes:
    """Downloads waiting captures.

    One that is unavailable, or that our own code fails on, does not affect the others.
    """

    def __init__(  # noqa: PLR0913, PLR0917 - its parts, and callbacks
        self,
        store: CaptureIndex,
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
        """``client`` is the one that ``archive`` uses. ``has_file`` says whether an archive file can be read.

        ``on_bad`` receives captures that the archive does not serve, or that differ from its list; ``progress`` the
        captures done, and all.
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
        self._refusals: dict[str | None, NotAllowedError] = {}
        """By host."""
        self.found = BytesFetched()
        """The result so far."""

    async def fetch(self, url: str, budget: ByteBudget) -> BytesFetched:
        """Download the waiting captures of a query URL, within limits.

        Raises:
            FetchError: the archive fails, or its robots.txt forbids it. What was fetched is stored.
        """
        question = question_number(url)
        plan = self._plan(question)
        self.found = BytesFetched(spared=plan.spared, waiting=len(plan.page))
        wanted = min(len(plan.page), budget.captures if budget.captures is not None else len(plan.page))
        requests, received, failures = self._client.requests, self._client.received, 0
        self._client.before_redirect = self._ask_robots
        for done, (page, time) in enumerate(zip(plan.page.tolist(), plan.time.tolist(), strict=True)):
            if spent := _spent(budget, done, self.found.requests, self._client.received - received):
                self.found = replace(self.found, ended_by=spent)
                break
            self._progress(done, wanted)
            is_sick = await self._one(page, time, last=failures == _FAILURES - 1)
            failures = failures + 1 if is_sick else 0
            self.found = replace(self.found, requests=self._client.requests - requests)
        for refusal in self._refusals.values():
            if not self.found.captures:
                raise refusal
            self._on_bad(InputError(refusal.what, refusal.remedy))
        self._progress(wanted, wanted)
        return self.found

    async def _one(self, page: int, time: float, *, last: bool) -> bool:
        """Download one capture; return whether the archive failed.

        Raises:
            RateLimitedError: the archive asks for a longer wait.
            FetchError: the archive failed, and this was the ``last`` time that it may. The capture waits.
            StoreError: the store is unreachable, or the disk is full.
        """
        uri = self._store.memento_uri(page, time)
        if host_of(uri) in self._refusals:  # it waits until that host allows it
            return False
        why: RecrawlError | None = None
        try:
            await self._ask_robots(uri)
            self._take(page, time, uri, await self._archive.raw(uri))
        except RateLimitedError:
            raise
        except FetchError as error:
            why = error
        except Exception as error:
            if waits_for(error) is not None:
                raise
            why = our_fault(error, uri)
        if isinstance(why, NotAllowedError) and why.host == host_of(uri):
            self._refusals[why.host] = why
            return False
        missing = isinstance(why, NotGivenError | NotAllowedError)
        is_sick = isinstance(why, FetchError) and not (missing or isinstance(why, TooLongError))
        if why is not None and is_sick and last:
            raise why
        if why is not None:
            self._give_up(page, time, uri, MementoState.MISSING if missing else MementoState.FAILED, why)
        self.found = replace(self.found, waiting=self.found.waiting - 1)
        return is_sick

    # -- which --------------------------------------------------------------------------------

    def _plan(self, question: int) -> _Plan:
        """What to fetch; captures that need not be fetched are marked. O(n log n) for n waiting captures."""
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

    def _ranks(self, waiting: FloatArray, known: CaptureColumns) -> IntArray:
        """The round in which each capture of a page is fetched, from 0; or why it is not.

        Of captures with one digest the earliest is fetched, in the round of the latest: its bytes stand for the later
        ones.
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
            # What may be an image comes after all text.
            found[place] = 2 * turn + (known.mime[row].lower() in _BYTES)
        return found

    def _has_bytes(self, known: CaptureColumns, row: int) -> bool:
        file = known.warc_file[row]
        ours = known.ours is not None and bool(known.ours[row])
        return bool(file) and int(known.warc_offset[row]) >= 0 and (ours or self._has_file(file))

    # -- asking -------------------------------------------------------------------------------

    async def _ask_robots(self, uri: str) -> None:
        """Check that the archive's robots.txt allows a memento, and apply its crawl delay."""
        place = known_raw_uri(uri) or uri
        rules = self._robots.known(place)
        if rules is None:
            rules = await self._robots.rules(place)
            # Captures may lie on several hosts; the longest crawl delay applies to all.
            self._client.crawl_delay = max(rules.crawl_delay or 0.0, self._client.crawl_delay or 0.0) or None
            self._client.rest()
        if not rules.available:
            raise NotAllowedError(
                f"{place}: the rules of the archive for robots cannot be had.", "Try again later.", host_of(place)
            )
        if not rules.allowed(place):
            raise NotAllowedError(
                f"{place}: the archive's robots.txt does not allow it ({rules.reason}).",
                "Ask the archive for its leave.",
                host_of(place),
            )

    def _take(self, page: int, time: float, uri: str, capture: Capture) -> None:
        """Store a capture, if it is the requested one."""
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

    def _keep(self, listed: CaptureColumns, capture: Capture, page: int, digest: bytes, about: dict[str, str]) -> None:
        """Write the record, then let the store name its place. The listed values of the capture stay."""
        place = self._writer.write(capture, about=about)
        self._writer.sync()
        known = len(listed) > 0 and listed.time[0] == capture.time
        status = int(listed.status[0]) if known and listed.status[0] else capture.status
        mime = listed.mime[0] if known and listed.mime[0] not in _UNTYPED else media_type(capture)
        self._store.add_captures(
            CaptureColumns(
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

    def _give_up(self, page: int, time: float, uri: str, state: MementoState, error: RecrawlError) -> None:
        """Mark a capture that is unavailable, so that it is not requested again, and report why."""
        self._set(page, time, state)
        missing = state is MementoState.MISSING
        self.found = replace(self.found, missing=self.found.missing + missing, failed=self.found.failed + (not missing))
        self._on_bad(InputError(error.what.removeprefix(f"{uri}: "), error.remedy, source=uri))


_HERE, _NEEDLESS = -2, -1
"""In place of a round: the bytes are there; they are not needed."""


def _is_worth_it(known: CaptureColumns, row: int) -> bool:
    """Whether the bytes would add to the listed values."""
    mime = known.mime[row].lower()
    if int(known.status[row]) >= _ERRORS:
        return False
    return mime in _UNTYPED or is_html(mime, b"") or is_comparable(mime)


def _spent(budget: ByteBudget, captures: int, requests: int, size: int) -> str:
    """Which limit is reached."""
    parts: Iterable[tuple[str, int | None, int]] = (
        ("captures", budget.captures, captures),
        ("requests", budget.requests, requests),
        ("bytes", budget.size, size),
    )
    return next((name for name, most, spent in parts if most is not None and spent >= most), "")


class RemoteArchives:
    """Queries archives and records the captures they list."""

    def __init__(
        self, store: Store, importer: Importer, client: ArchiveClient, clock: Clock, mementos: MementoList | None = None
    ) -> None:
        """``mementos`` receives all listed captures, if their bytes are wanted, too."""
        self._store = store
        self._mementos = mementos
        self._importer = importer
        self._client = client
        self._clock = clock

    async def bring(self, url: str, report: ReadReport) -> ImportedSource:
        """Import what the URL of a CDX query or of a TimeMap lists now: the list may have grown.

        An interrupted query resumes, if it is the same one.

        Raises:
            InputError: the URL is neither.
            FetchError: the archive fails; the responses so far are stored.
        """
        mark = self._importer.begin(self._question(url), _FINGERPRINT)
        if mark.finished or not mark.position:  # an archive grows, so it is queried again; an interrupted query resumes
            mark = replace(mark, position=0, accepted=0, finished=False)
            self._store.save_state(self._question(url), b"", self._clock.now())
        taken = ImportedSource(mark)
        match archive_address(url):
            case CdxAddress() as address:
                taken = await self._cdx(url, address, taken, report)
            case MapAddress() as address:
                taken = await self._maps(url, address, taken, report)
            case _:
                raise InputError(
                    "this URL is neither a CDX query nor a TimeMap",
                    "Use one like https://ARCHIVE/cdx/search/cdx?url=example.org/* or "
                    "https://ARCHIVE/timemap/link/http://example.org/.",
                    source=url,
                )
        mark = replace(taken.mark, skipped=sum(report.skipped.values()), broken=report.bad, finished=True)
        self._store.set_import_mark(mark)
        return replace(taken, mark=mark)

    async def _cdx(self, url: str, address: CdxAddress, so_far: ImportedSource, report: ReadReport) -> ImportedSource:
        server = CdxClient(self._client, address.endpoint, body_of=decoded, dialect=address.dialect)
        saved = self._store.load_state(self._question(url))
        async for answer in server.answers(address.query, CdxState.from_text(saved.decode()) if saved else None):
            batches = list(read_answer(io.BytesIO(answer.body), answer.url, report))
            taken = self._importer.take(answer.url, _digest(answer.body), batches, report)
            if self._mementos is not None:
                for batch in batches:
                    self._mementos.of_index(batch.column("url").to_pylist(), batch.column("time").to_numpy())
            so_far = self._went_on(so_far, taken, answer.state.to_text())
        return so_far

    async def _maps(self, url: str, address: MapAddress, so_far: ImportedSource, report: ReadReport) -> ImportedSource:
        def read(data: bytes, source: str) -> TimeMap:
            return read_timemap(data, source, report)

        archive = MementoClient(self._client, timemap=address.template, body_of=decoded, read_map=read)
        saved = self._store.load_state(self._question(url))
        state = MapState.from_text(saved.decode()) if saved else None
        async for answer in archive.timemaps(address.url, address.form, state):
            batches = to_batches(answer.timemap.mementos, report, answer.url)
            taken = self._importer.take(answer.url, _digest(answer.body), batches, report)
            if self._mementos is not None:
                self._mementos.of_map(answer.timemap)
            so_far = self._went_on(so_far, taken, answer.state.to_text())
        return so_far

    def _question(self, url: str) -> str:
        """The name under which the store holds how far a query was read; each response has its own URL.

        Captures that were listed while bytes were not wanted do not wait for them, so that is another query.
        """
        return f"import {url}" if self._mementos is None else f"import with bytes {url}"

    def _went_on(self, so_far: ImportedSource, taken: ImportedSource, state: str) -> ImportedSource:
        """Record that one more response is stored, and where to resume."""
        mark = so_far.mark
        mark = replace(mark, position=mark.position + 1, accepted=mark.accepted + taken.accepted)
        self._store.set_import_mark(mark)
        self._store.save_state(mark.source, state.encode(), self._clock.now())
        return ImportedSource(mark, so_far.accepted + taken.accepted, so_far.new + taken.new)


_FINGERPRINT = "remote"
"""The responses of an archive cannot be compared without another request."""


def _digest(body: bytes) -> str:
    return hashlib.blake2b(body, digest_size=16).hexdigest()
