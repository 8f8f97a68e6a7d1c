"""From a workspace to its replay servers: bytes, rates, page requisites, lines that others send, and packages.

Archived pages have an origin of their own beside the dashboard, and pywb has another.
"""

from __future__ import annotations

import hashlib
import secrets
import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, ExitStack, closing, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from recrawl.assess.composite_coherence import ChoiceRule, CoherenceState
from recrawl.crawl.clock import RealClock
from recrawl.detect.body import decoded, media_type, text_of, unchunked
from recrawl.detect.html.embedded_resources import MOST_CSS, rewrite_css
from recrawl.detect.html.html_document import is_too_costly
from recrawl.errors import InputError
from recrawl.formats.atomic_files import has_file
from recrawl.formats.columnar.capture_batches import ReadReport
from recrawl.formats.warc.archive_folder import ArchiveFolder, ArchivePath, is_plain_name
from recrawl.formats.warc.archived_bytes import ArchivedBytes, imported_into
from recrawl.formats.warc.warc_check import OPEN
from recrawl.model import Capture
from recrawl.model.captures import UploadedFile
from recrawl.parse.parse_pool import ParsePool, embeds_apart, new_parse_pool
from recrawl.store.archived_copies import Kept, kept_of
from recrawl.store.base import ScheduleStore, Store
from recrawl.store.open import open_store
from recrawl.transfer.archive_import import CleaningRules, Importer
from recrawl.transfer.composite_reader import CapturedPage, CompositeReader
from recrawl.web.dashboard.access_control import AccessGuard
from recrawl.web.dashboard.plan_survey import PageBeliefs
from recrawl.web.dashboard.stale_cache import StorePool
from recrawl.web.replay.pywb_replay import PywbReplay
from recrawl.web.replay.replay_app import COLLECTION, batches_of, time_travel_app
from recrawl.web.replay.replay_port import IngestedLines, IngestOptions, ReplayPort, ShownComposite, ShownPart
from recrawl.web.servers import PrefetchPaths, address_of, bound, read_ahead_meanwhile

if TYPE_CHECKING:
    import socket

    from starlette.types import ASGIApp

    from recrawl.app.workspace.workspace import Workspace
    from recrawl.time import Clock


class WorkspaceCompositeSelector:
    """See :class:`~recrawl.web.replay.replay_port.CompositeSelector`. Safe for several threads."""

    def __init__(self, archived: ArchivedBytes, pool: ParsePool | None = None) -> None:
        """``pool`` reads pages that are costly to read; without one they are read here."""
        self._archived = archived
        self._pool = pool

    def page(self, store: Store, kept: Kept, capture: Capture, rule: ChoiceRule, most: int) -> ShownComposite | None:
        """A page with a limited number of its requisites."""
        told = embeds_apart(capture, self._pool)
        if told is None:
            return None
        left_out = max(0, len(told.embeds) - most)
        some = told._replace(embeds=told.embeds[:most], cut=told.cut or left_out > 0)
        root = CapturedPage(kept.page, kept.url, kept.time, kept.file, kept.offset)
        found, shown = self._reader(store).shown(root, some, rule, most)
        parts = tuple(
            ShownPart(one.url, one.state, None if one.capture is None else kept_of(one.capture, 0, one.url))
            for one in shown
        )
        damage = float(found.damage()[0])
        whole = not bool(found.cut[0])
        return ShownComposite(parts, len(parts) + left_out, whole, damage if damage == damage and whole else None)  # noqa: PLR0124 - NaN

    def part(self, store: Store, url: str, at: float) -> tuple[Kept, CoherenceState] | None:
        """The copy of one resource that goes best with a page captured at a time."""
        found = self._reader(store).copy_of(url, at)
        return None if found is None else (kept_of(found[1], 0, url), found[0])

    def style_sheet(self, capture: Capture) -> str | None:
        """The text of a style sheet."""
        if media_type(capture) != "text/css":
            return None
        try:
            return text_of(decoded(capture, MOST_CSS), capture.header("content-type"))
        except InputError:
            return None

    def _reader(self, store: Store) -> CompositeReader:
        return CompositeReader(store, self._archived.read, self._archived.has, self._pool)


_HTML = frozenset({"text/html", "application/xhtml+xml"})
_LARGEST_PAGE = 8 << 20
"""Bytes of HTML that are shown as a page; more is shown raw."""


def archive_of(
    place: Workspace,
    one_store: Callable[[], AbstractContextManager[Store]],
    clock: Clock,
    beliefs: PageBeliefs | None = None,
    pool: ParsePool | None = None,
) -> ReplayPort:
    """What time travel needs of a workspace. Stores are handed out by ``one_store``; ``pool`` reads costly pages."""
    files = WorkspaceBytes(place, one_store)
    return ReplayPort(
        name=place.folder.resolve().name or str(place.folder),
        store=one_store,
        bytes_=files,
        rates=(beliefs or PageBeliefs(place, clock.now)).rates,
        composer=WorkspaceCompositeSelector(files.archived, pool),
        clock=clock.now,
        ingest=IndexIngest(place, clock),
        file=files.file,
        package=WaczPackage(place, clock),
    )


class WorkspaceBytes:
    """The archive files of a workspace, read by several threads."""

    def __init__(self, place: Workspace, one_store: Callable[[], AbstractContextManager[Store]]) -> None:
        self._one_store = one_store
        self._files = ArchiveFolder(place.warc, place.archive.options, self._uploaded)
        self.archived = ArchivedBytes(self._files, self._is_imported)
        """Reads records."""

    def file(self, name: str) -> ArchivePath | None:
        """An archive file of this workspace. Not one at another worker, which may ask us in turn."""
        if not is_plain_name(name) or not name.endswith((".warc", ".warc.gz")):
            return None
        path = self._files.path / name
        local = next((one for one in (path, path.with_name(f"{name}{OPEN}"), path) if has_file(one)), None)
        return local or self._files.in_storage(name)

    def _uploaded(self, name: str) -> UploadedFile | None:
        with self._one_store() as store:
            return store.uploaded_file(name)

    def read(self, file: str, offset: int) -> Capture | None:
        """The record at an offset of a file."""
        return self.archived.read(file, offset)

    def head(self, file: str, offset: int) -> Capture | None:
        """The same with none of its body."""
        return self.archived.read(file, offset, max_body=0)

    def _is_imported(self, file: str) -> bool:
        with self._one_store() as store:
            return imported_into(store)(file)

    def payload(self, capture: Capture) -> bytes:
        """The body without transfer-encoding."""
        return unchunked(capture)

    def page(self, capture: Capture) -> str | None:
        """The text of an HTML page."""
        if media_type(capture) not in _HTML:
            return None
        try:
            text = text_of(decoded(capture, _LARGEST_PAGE), capture.header("content-type"))
        except InputError:
            return None
        return None if is_too_costly(text) else text

    def rewrite_css(self, text: str, inside: Callable[[str, bool], str | None]) -> str:
        """A style sheet with other addresses."""
        return rewrite_css(text, inside)


class IndexIngest:
    """Takes lines of an index over, as an import does: captures first, then what follows from their digests."""

    def __init__(self, place: Workspace, clock: Clock) -> None:
        self._place = place
        self._clock = clock
        self._lock = threading.Lock()

    def __call__(self, data: bytes, options: IngestOptions) -> IngestedLines:
        """Store all lines or none, or all valid ones. New pages are not scheduled unless requested."""
        report = ReadReport(strict=not options.skip_bad)
        batches = batches_of(data, report)
        source = f"sent:{hashlib.blake2b(data, digest_size=16).hexdigest()}"
        with self._lock, self._place.open_store() as store:
            if options.schedule:
                self._schedule(store, batches)
            importer = Importer(store, self._clock, CleaningRules(), again=True, importance=0.0)
            taken = importer.take(source, source, batches, report)
            importer.judge()
        return IngestedLines(taken.accepted, report.bad)

    def _schedule(self, store: ScheduleStore, batches: Sequence[Any]) -> None:
        """Have the pages that lines name visited from now on, those included that were only known before."""
        for batch in batches:
            urls: list[str] = batch.column("url").unique().to_pylist()
            pages = store.pages(store.discover(urls, self._clock.now(), importance=1.0))
            only_known = pages.id[pages.importance == 0]
            store.set_importance(only_known, np.ones(len(only_known)))


class WaczPackage:
    """The workspace as one WACZ file among its reports, made again when its input has changed.

    The input is its archive files, imported files, and the statements about site captures; index and pages are made
    from the files. A file beside it lists the input.
    """

    def __init__(self, place: Workspace, clock: Clock) -> None:
        self._place = place
        self._clock = clock
        self._lock = threading.Lock()

    def __call__(self) -> Path:
        """The file. Waits while another request makes it."""
        from recrawl.formats.wacz import WaczInfo
        from recrawl.transfer.wacz_export import pack

        name = self._place.folder.resolve().name or "archive"
        target = self._place.reports / f"{name}.wacz"
        noted = target.with_name(f"{target.name}.made-of")
        with self._lock, self._place.open_store() as store:
            wanted = self._made_of(store)
            if not target.is_file() or not noted.is_file() or noted.read_text("ascii", "replace") != wanted:
                self._place.reports.mkdir(exist_ok=True)
                pack(store, self._place.archive, target, WaczInfo(self._clock.now(), title=name))
                noted.write_text(wanted, "ascii")
        return target

    def _made_of(self, store: Store) -> str:
        """A digest of all that goes into a package, without reading archive files. Those that still grow do not."""
        from recrawl.transfer.wacz_export import stated

        found = hashlib.sha256()
        elsewhere = [path for path in map(Path, store.import_sources()) if path.is_absolute() and path.is_file()]
        ours = [path for path in self._place.warc.glob("*.warc*") if not path.name.endswith(OPEN)]
        for path in sorted({*ours, *elsewhere}):
            about = path.stat()
            found.update(f"{path} {about.st_size} {about.st_mtime_ns}\n".encode("utf-8", "surrogateescape"))
        for file in store.uploaded_files():
            found.update(f"{file.name} {file.size} {file.sha256.hex()}\n".encode())
        for name, document in stated(store).items():
            found.update(f"{name} {hashlib.sha256(document).hexdigest()}\n".encode())
        return found.hexdigest()


PATIENCE = 30.0
"""Timeout of store queries in seconds: counting a whole index takes longer than a page."""


@dataclass(frozen=True, slots=True)
class ReplayServers:
    """Servers that are ready to be run."""

    apps: tuple[tuple[ASGIApp, socket.socket], ...]
    archive: str
    """Where archived pages are: put 14 digits, a slash and a URL behind it."""
    replay: str
    """The same with pywb; empty without it."""
    first: PrefetchPaths
    """What the server prefetches."""


@contextmanager
def time_travel(  # noqa: PLR0913 - what is served, to whom, where, and what is shared with the dashboard
    place: Workspace,
    guard: AccessGuard,
    host: str,
    listening: socket.socket,
    *,
    replay: int | None,
    beliefs: PageBeliefs | None = None,
) -> Iterator[ReplayServers]:
    """The replay servers of a workspace; pywb starts at once and stops with the block.

    Archived pages are served at ``listening``, and pywb at the port ``replay``, unless that is ``None``; 0 for any free
    port.
    """
    clock = RealClock()

    def open_one() -> Store:
        return open_store(place.store, patience=PATIENCE)

    with ExitStack() as stack:
        stores = stack.enter_context(closing(StorePool(open_one)))
        stack.enter_context(read_ahead_meanwhile(place.store))
        detect = place.configuration.settings.detect
        pool = stack.enter_context(new_parse_pool(detect.parse_limits(), detect.standards()))
        archive = archive_of(place, stores.one, clock, beliefs, pool)
        address = address_of(listening, host)
        apps: list[tuple[ASGIApp, socket.socket]] = []
        replayed = ""
        if replay is not None:
            inside = stack.enter_context(bound("127.0.0.1", 0))
            word = secrets.token_hex(16)  # so that only pywb can use it: other local users need the token
            apps.append((time_travel_app(archive, hidden_below=word), inside))
            child = PywbReplay(
                f"{address_of(inside, '127.0.0.1')}/{word}/",
                f"{address}/api/memento",
                host=host,
                port=replay,
                guard=guard,
            )
            replayed = stack.enter_context(child).address
        app = time_travel_app(archive, guard, replay=replayed)
        apps.append((app, listening))
        yield ReplayServers(
            tuple(apps),
            f"{address}/{COLLECTION}/",
            replayed,
            PrefetchPaths(app, _first_observations(stores), guard.write_token),
        )


def _first_observations(stores: StorePool) -> list[str]:
    """An index look-up, the newest page, and its sharpness."""
    with stores.one() as store:
        newest = store.urls(np.arange(store.last_page(), store.last_page() + 1)) if store.last_page() else []
    asked = [path for url in newest for path in (f"/{COLLECTION}/{url}", f"/{COLLECTION}/2000/{url}")]
    return [f"/{COLLECTION}/cdx?url=example.org&filter=statuscode:200", *asked]
