"""From a workspace to its server of time travel: bytes, rates, lines that others send, and packages."""

from __future__ import annotations

import hashlib
import threading
from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from recrawl.cli.serving.composer import WorkspaceComposer
from recrawl.cli.serving.page_beliefs import PageBeliefs
from recrawl.crawl.archived_bytes import ArchivedBytes, imported_into
from recrawl.crawl.importing import Cleaning, Importer
from recrawl.detect.body import decoded, media_type, text_of, unchunked
from recrawl.detect.embedded import rewrite_css
from recrawl.detect.nesting import is_too_costly
from recrawl.errors import InputError
from recrawl.formats.captures import Report
from recrawl.formats.warc_repair import OPEN
from recrawl.model import Capture
from recrawl.show.timetravel.archive import Archive, IngestOptions, Taken
from recrawl.show.timetravel.ingesting import batches_of

if TYPE_CHECKING:
    from recrawl.cli.workspace import Workspace
    from recrawl.crawl.parse_pool import ParsePool
    from recrawl.store.base import Store
    from recrawl.time import Clock

_HTML = frozenset({"text/html", "application/xhtml+xml"})
_LARGEST_PAGE = 8 << 20
"""Bytes of HTML that are shown as a page; more is shown raw."""


def archive_of(
    place: Workspace,
    one_store: Callable[[], AbstractContextManager[Store]],
    clock: Clock,
    beliefs: PageBeliefs | None = None,
    pool: ParsePool | None = None,
) -> Archive:
    """What time travel needs of a workspace. Stores are handed out by ``one_store``; ``pool`` reads costly pages."""
    files = WorkspaceBytes(place, one_store)
    return Archive(
        name=place.folder.resolve().name or str(place.folder),
        store=one_store,
        bytes_=files,
        rates=(beliefs or PageBeliefs(place, clock.now)).rates,
        composer=WorkspaceComposer(files.archived, pool),
        clock=clock.now,
        ingest=Ingest(place, clock),
        package=Package(place, clock),
    )


class WorkspaceBytes:
    """The archive files of a workspace, read by several threads."""

    def __init__(self, place: Workspace, one_store: Callable[[], AbstractContextManager[Store]]) -> None:
        self._one_store = one_store
        self.archived = ArchivedBytes(place.warc, self._is_imported)
        """Reads records."""

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


class Ingest:
    """Takes lines of an index over, as an import does: captures first, then what follows from their digests."""

    def __init__(self, place: Workspace, clock: Clock) -> None:
        self._place = place
        self._clock = clock
        self._lock = threading.Lock()

    def __call__(self, data: bytes, options: IngestOptions) -> Taken:
        """All lines or none, or all that make sense. Pages nobody knew are only known then, unless asked otherwise."""
        report = Report(strict=not options.skip_bad)
        batches = batches_of(data, report)
        source = f"sent:{hashlib.blake2b(data, digest_size=16).hexdigest()}"
        with self._lock, self._place.open_store() as store:
            if options.schedule:
                self._schedule(store, batches)
            importer = Importer(store, self._clock, Cleaning(), again=True, importance=0.0)
            taken = importer.take(source, source, batches, report)
            importer.judge()
        return Taken(taken.accepted, report.bad)

    def _schedule(self, store: Store, batches: Sequence[Any]) -> None:
        """Have the pages that lines name visited from now on, those included that were only known before."""
        for batch in batches:
            urls: list[str] = batch.column("url").unique().to_pylist()
            pages = store.pages(store.discover(urls, self._clock.now(), importance=1.0))
            only_known = pages.id[pages.importance == 0]
            store.set_importance(only_known, np.ones(len(only_known)))


class Package:
    """The workspace as one WACZ file among its reports, made anew when something that goes into it has changed since.

    That is its archive files, those that were imported from elsewhere, and what is stated about captures of sites;
    index and pages are made of the files. What it was made of is noted in a file beside it.
    """

    def __init__(self, place: Workspace, clock: Clock) -> None:
        self._place = place
        self._clock = clock
        self._lock = threading.Lock()

    def __call__(self) -> Path:
        """The file. Waits while another request makes it."""
        from recrawl.crawl.exporting_wacz import pack
        from recrawl.formats.wacz_write import WaczInfo

        name = self._place.folder.resolve().name or "archive"
        target = self._place.reports / f"{name}.wacz"
        noted = target.with_name(f"{target.name}.made-of")
        with self._lock, self._place.open_store() as store:
            wanted = self._made_of(store)
            if not target.is_file() or not noted.is_file() or noted.read_text("ascii", "replace") != wanted:
                self._place.reports.mkdir(exist_ok=True)
                pack(store, self._place.warc, target, WaczInfo(self._clock.now(), title=name))
                noted.write_text(wanted, "ascii")
        return target

    def _made_of(self, store: Store) -> str:
        """A digest of all that goes into a package, without reading archive files. Those that still grow do not."""
        from recrawl.crawl.exporting_wacz import stated

        found = hashlib.sha256()
        elsewhere = [path for path in map(Path, store.import_sources()) if path.is_absolute() and path.is_file()]
        ours = [path for path in self._place.warc.glob("*.warc*") if not path.name.endswith(OPEN)]
        for path in sorted({*ours, *elsewhere}):
            about = path.stat()
            found.update(f"{path} {about.st_size} {about.st_mtime_ns}\n".encode("utf-8", "surrogateescape"))
        for name, document in stated(store).items():
            found.update(f"{name} {hashlib.sha256(document).hexdigest()}\n".encode())
        return found.hexdigest()
