"""The archive files behind a store in one package, with an index and pages made of the files themselves.

The index is not that of the store. A store writes each page under one URL and leaves out what is no page; replay
wants every record under the URL it has in its file. So the files are read once to index and once to pack them.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from itertools import groupby
from operator import itemgetter
from pathlib import Path
from tempfile import TemporaryFile
from typing import Any, BinaryIO

import numpy as np

from recrawl.crawl.archived_bytes import ArchivedBytes, imported_into
from recrawl.crawl.composite_survey import composite_facts, composites_of
from recrawl.crawl.exporting import capture_files
from recrawl.crawl.exporting_files import ArchiveFiles, FreeNames, Whereabouts, packed_name
from recrawl.errors import InputError, require
from recrawl.formats.captures import NO_SIZE, Report
from recrawl.formats.cdxj import write_cdxj
from recrawl.formats.dates import w3c_time
from recrawl.formats.disk import scratch_folder, told
from recrawl.formats.wacz_pages import WaczPage
from recrawl.formats.wacz_write import WaczInfo, write_wacz
from recrawl.formats.warc_reader import index_warc
from recrawl.formats.warc_repack import is_common, repack
from recrawl.model.words import counted
from recrawl.store.base import Store

Progress = Callable[[str, int, int], None]
"""Told what is being done, how much of it is done and how much there is."""

COMPOSITES = "quality/composites.json"
"""The path in a package of what is stated about pages with what they embed."""
COMPOSITES_SCHEMA = "recrawl-composites/1"
_FINE = range(200, 300)
_PARTS = ("image/", "audio/", "video/", "font/", "text/css", "text/javascript", "application/javascript")
"""Media types of what pages are made of."""


@dataclass(slots=True)
class Packed:
    """What went into a package, and what could not."""

    warcs: int = 0
    records: int = 0
    """Lines of the index."""
    pages: int = 0
    elsewhere: dict[Whereabouts, int] = field(default_factory=dict)
    """Captures of the store whose bytes are not in the package, by where they lie."""
    repacked: int = 0
    """Files whose records were put into gzip members of their own, since nobody could replay them otherwise."""
    not_alone: int = 0
    """Records that are packed but not indexed, since they cannot be read from the middle of their file."""
    broken: int = 0
    """Places in the files that make no sense; they are packed as they are."""


def pack(  # noqa: PLR0913 - from where, into what, and who is told
    store: Store,
    warc_folder: Path,
    target: Path,
    info: WaczInfo,
    *,
    on_bad: Callable[[InputError], None] = lambda _error: None,
    progress: Progress = lambda _what, _done, _all: None,
) -> Packed:
    """Write all WARC files that the store's captures lie in, and all of the workspace, into one package.

    What is stated about captures of sites is in ``captures/``, and about pages with what they embed in ``quality/``.

    Files outside the workspace are packed under their last name, or one made from it where two have the same. Files
    in a packing that few tools read are packed anew. Memory does not grow with captures; what has to wait does so in
    temporary files beside the target.

    Raises:
        InputError: there is no WARC file at hand, or one cannot be read.
        DiskFullError: there is no room; nothing is left behind.
    """
    files = ArchiveFiles(warc_folder, imported_into(store))
    for name in capture_files(store, lambda done, all_: progress("pages looked through", done, all_)):
        files.name_of(name)
    files.add_workspace()
    names = FreeNames()
    warcs = {
        names.take(packed_name(file.path), file.path): file.path for file in files if file.where is Whereabouts.HERE
    }
    packed = Packed(len(warcs), elsewhere=files.elsewhere())
    if not warcs:
        raise InputError(
            "There is no WARC file at hand to pack." + "".join(f" {said}." for said in sentences(packed)),
            "Crawl something, or import WARC files.",
        )
    archived = ArchivedBytes(warc_folder, imported_into(store))
    documents = stated(store) | {COMPOSITES: _composites(store, archived)}
    with (
        told(target),
        scratch_folder(target.parent) as shelf,
        TemporaryFile(dir=target.parent) as index,
    ):
        report = Report(on_bad=on_bad)
        packed.repacked = _repack_odd(warcs, shelf, report, progress)
        size = sum(path.stat().st_size for path in warcs.values())
        batches = _indexed(warcs, report, packed, lambda done: progress("bytes indexed", done, size))
        packed.records = write_cdxj(batches, index, scratch=target.parent)
        packed.broken = report.bad
        done = _Running(lambda done: progress("bytes packed", done, size))
        pages = _counted(packed, index)
        write_wacz(target, warcs, _from_start(index), pages, info, documents=documents, progress=done.add)
    return packed


def stated(store: Store) -> dict[str, bytes]:
    """What is stated about each finished capture of a site, by its path in the package."""
    finished = (capture for capture in store.site_captures() if capture.is_finished)
    return {f"captures/capture-{capture.id}.json": capture.statement.encode() for capture in finished}


def _composites(store: Store, archived: ArchivedBytes) -> bytes:
    """How the captured pages stand with what they embed, as a document; null where nothing is known."""
    composed = composites_of(store, np.arange(1, store.last_page() + 1), archived)
    document = {"schema": COMPOSITES_SCHEMA, "composites": composite_facts(composed)}
    return json.dumps(document, ensure_ascii=False, indent=1).encode()


def sentences(packed: Packed) -> Iterator[str]:
    """What a user should know about what is not in the package, without full stops."""
    for where, count in packed.elsewhere.items():
        yield f"Left out: {counted(count, 'capture')} {where}"
    if packed.repacked:
        yield f"{counted(packed.repacked, 'WARC file')} not gzipped record by record; in the package all are"
    if packed.not_alone:
        yield f"{counted(packed.not_alone, 'record')} packed that cannot be replayed; mend with warcio recompress"
    if packed.broken:
        yield f"{counted(packed.broken, 'broken place')} in the WARC files; packed as they are"


@dataclass(slots=True)
class _Running:
    """A sum that is told whenever it grows."""

    tell: Callable[[int], None]
    total: int = 0

    def add(self, more: int) -> None:
        self.total += more
        self.tell(self.total)


def _repack_odd(warcs: dict[str, Path], shelf: Path, report: Report, progress: Progress) -> int:
    """Put copies that every tool reads in the place of files that few do; how many."""
    odd = {name: path for name, path in warcs.items() if not is_common(path)}
    for number, (name, path) in enumerate(odd.items()):
        progress("files repacked", number, len(odd))
        warcs[name] = shelf / name
        with warcs[name].open("wb") as copy:
            repack(path, copy, report)
        progress("files repacked", number + 1, len(odd))
    return len(odd)


def _indexed(warcs: dict[str, Path], report: Report, packed: Packed, progress: Callable[[int], None]) -> Iterator[Any]:
    """The captures of all files under the names they get, without those that cannot be read alone."""
    pa, pc = require("pyarrow", "columns"), require("pyarrow.compute", "columns")
    before = 0
    for name, path in warcs.items():
        for batch in index_warc(path, report):
            place = batch.schema.get_field_index("file")
            named = batch.set_column(place, batch.schema.field(place), pa.array([name] * batch.num_rows, pa.string()))
            alone = named.filter(pc.not_equal(named.column("offset"), NO_SIZE))
            packed.not_alone += batch.num_rows - alone.num_rows
            if alone.num_rows:
                yield alone
                progress(before + alone.column("offset")[-1].as_py())
        before += path.stat().st_size
        progress(before)


def _from_start(index: BinaryIO) -> Iterator[bytes]:
    index.seek(0)
    yield from index


def _counted(packed: Packed, index: BinaryIO) -> Iterator[WaczPage]:
    for page in pages_of(_from_start(index)):
        packed.pages += 1
        yield page


def pages_of(lines: Iterator[bytes]) -> Iterator[WaczPage]:
    r"""Of the sorted lines of an index, the last good capture of everything that is a page by itself.

    >>> line = b'org,a)/ 20240101000000 {"url": "http://a.org/", "mime": "text/html", "status": "200"}\n'
    >>> [page.url for page in pages_of(iter([line]))]
    ['http://a.org/']
    """
    for _, captures in groupby((line.split(b" ", 2) for line in lines), key=itemgetter(0)):
        last: WaczPage | None = None
        for _, when, text in captures:
            fields = json.loads(text)
            if _is_page(fields):
                last = WaczPage(fields["url"], w3c_time(when.decode()) or 0.0)
        if last is not None:
            yield last


def _is_page(fields: dict[str, str]) -> bool:
    url, mime = fields["url"], fields.get("mime", "").lower()
    return (
        url.startswith(("http://", "https://"))
        and int(fields.get("status", "0")) in _FINE
        and mime != "warc/revisit"
        and not mime.startswith(_PARTS)
        and not url.endswith("/robots.txt")
    )
