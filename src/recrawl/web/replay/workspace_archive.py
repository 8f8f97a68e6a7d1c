"""From a workspace to its server of time travel: bytes, rates, lines that others send, and packages.

What archived pages are shown with, from the archive files of a workspace.
"""

from __future__ import annotations

import hashlib
import threading
from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from recrawl.assess.composite_coherence import ChoiceRule, CoherenceState
from recrawl.detect.body import decoded, media_type, text_of, unchunked
from recrawl.detect.html.embedded_resources import MOST_CSS, rewrite_css
from recrawl.detect.html.html_document import is_too_costly
from recrawl.errors import InputError
from recrawl.formats.columnar.capture_batches import ReadReport
from recrawl.formats.warc.archived_bytes import ArchivedBytes, imported_into
from recrawl.formats.warc.warc_repair import OPEN
from recrawl.model import Capture
from recrawl.parse.parse_pool import ParsePool
from recrawl.store.archived_copies import Kept, kept_of
from recrawl.store.base import Store
from recrawl.transfer.archive_import import CleaningRules, Importer
from recrawl.transfer.composite_reader import CapturedPage, CompositeReader, embeds_apart
from recrawl.web.dashboard.page_beliefs import PageBeliefs
from recrawl.web.replay.index_ingest import batches_of
from recrawl.web.replay.replay_port import IngestedLines, IngestOptions, ReplayPort, ShownComposite, ShownPart

if TYPE_CHECKING:
    from recrawl.app.workspace.workspace import Workspace
    from recrawl.parse.parse_pool import ParsePool
    from recrawl.store.base import Store
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
        package=WaczPackage(place, clock),
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

    def _schedule(self, store: Store, batches: Sequence[Any]) -> None:
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
        from recrawl.formats.wacz.wacz_writer import WaczInfo
        from recrawl.transfer.wacz_export import pack

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
        from recrawl.transfer.wacz_export import stated

        found = hashlib.sha256()
        elsewhere = [path for path in map(Path, store.import_sources()) if path.is_absolute() and path.is_file()]
        ours = [path for path in self._place.warc.glob("*.warc*") if not path.name.endswith(OPEN)]
        for path in sorted({*ours, *elsewhere}):
            about = path.stat()
            found.update(f"{path} {about.st_size} {about.st_mtime_ns}\n".encode("utf-8", "surrogateescape"))
        for name, document in stated(store).items():
            found.update(f"{name} {hashlib.sha256(document).hexdigest()}\n".encode())
        return found.hexdigest()
