"""Exports the archive files of a store in one WACZ package, with an index and pages made from the files themselves.

The index is not that of the store. A store has each page under one URL and leaves out what is no page; replay needs
every record under the URL in its file. So the files are read once to index and once to pack them. WARC files are
repacked if needed: each record becomes its own gzip member (conventions W1).

A store names a file by its last path component if it lies in the workspace, by its whole path if it was imported, and
as an index named it if it was never here. Paths mean nothing elsewhere and last components may repeat, so every file
gets a unique name for an export.
"""

from __future__ import annotations

import enum
import hashlib
import json
import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from itertools import groupby, islice
from operator import itemgetter
from pathlib import Path
from tempfile import TemporaryFile
from typing import Any, BinaryIO

import numpy as np

from recrawl.errors import InputError, counted, require
from recrawl.formats.atomic_files import has_file, reporting_write_errors, scratch_folder
from recrawl.formats.cdx.cdxj import write_cdxj
from recrawl.formats.columnar.capture_batches import NO_SIZE, ReadReport
from recrawl.formats.dates import w3c_time
from recrawl.formats.sniff import SourceFormat, sniff
from recrawl.formats.wacz import WaczInfo, WaczPage, write_wacz
from recrawl.formats.warc.archive_folder import ArchiveFolder, ArchivePath
from recrawl.formats.warc.archive_stream import GZIP, pread
from recrawl.formats.warc.archived_bytes import ArchivedBytes, imported_into, may_be_read
from recrawl.formats.warc.warc_check import OPEN
from recrawl.formats.warc.warc_reader import index_warc, opened
from recrawl.formats.warc.warc_stream import PLAIN, ReadWindow, fastwarc, magic_of, records
from recrawl.store.base import CaptureIndex, HistoryStore, Store
from recrawl.transfer.composite_reader import composite_facts, composites_of
from recrawl.transfer.exporter import capture_files


def is_common(path: ArchivePath) -> bool:
    """Whether a WARC file is packed as every tool reads it: not at all, or each record in a gzip member of its own.

    zstd and LZ4 are for few tools, and of one long stream of gzip nothing can be read alone. Looks at two records.
    """
    with opened(path) as file:
        magic = magic_of(file)
        if magic == GZIP:
            places = [at for _, at in islice(records(ReadWindow(file), str(path), ReadReport()), 2)]
            return all(at > 0 and pread(file, len(GZIP), at) == GZIP for at in places[1:])
        return magic == PLAIN


def repack(path: ArchivePath, target: BinaryIO, report: ReadReport) -> int:
    """Write all records of a file again, each in a gzip member; returns how many.

    Blocks and the fields of records stay as they are. Memory does not grow with the file.
    """
    library, count = fastwarc(), 0
    with opened(path) as file:
        for record, _ in records(ReadWindow(file), str(path), report):
            member = library.GzipWriter(target)
            record.write(member)
            member.finish()
            count += 1
    return count


_ENDINGS = (".warc.gz", ".warc.zst", ".warc.lz4", ".warc", ".arc.gz", ".arc")
_UNSAFE = re.compile(r"[^A-Za-z0-9._~+=@-]+")
_DIGITS = 12


class FileLocation(enum.StrEnum):
    """Where the bytes of captures are, in words."""

    HERE = "in available WARC files"
    OPEN = "in a WARC file that is still being written"
    ARC = "in ARC files"
    OTHER = "in files that are no WARC"
    UNREADABLE = "in files that cannot be read"
    UNNAMED = "in files that an index names and nobody imported"
    MISSING = "in files that are not here"
    NOWHERE = "in no file"


@dataclass(slots=True)
class ArchiveFile:
    """One file with captures."""

    path: ArchivePath
    name: str
    """What an index calls it."""
    ours: bool = True
    """Whether it is in the workspace, or was imported by its own name."""
    captures: int = 0
    """Number of requested captures in it."""
    _where: FileLocation | None = field(default=None, repr=False)

    @property
    def where(self) -> FileLocation:
        """Whether it can be read. Reads its first bytes, once."""
        if self._where is None:
            away = FileLocation.UNNAMED if self.path.is_file() else FileLocation.MISSING
            self._where = whereabouts(self.path) if self.ours else away
        return self._where


class ArchiveFiles:
    """The files of a workspace's captures, each with a name of its own. Grows with files, not with captures."""

    def __init__(self, warc: Path | ArchiveFolder, is_imported: Callable[[str], bool]) -> None:
        """Files outside the folder are read only if they were imported by their own name."""
        self._files = ArchiveFolder(warc) if isinstance(warc, Path) else warc
        self._folder = self._files.path.resolve()
        self._is_imported = is_imported
        self._by_text: dict[str, ArchiveFile] = {}
        self._by_path: dict[Path, ArchiveFile] = {}
        self._names = UniqueNames()
        self._nowhere = 0

    def name_of(self, file: str) -> str:
        """The name in the index for the file of one more capture, given as the store names it; empty if it has none."""
        if not file:
            self._nowhere += 1
            return ""
        found = self._by_text.get(file) or self._find(file)
        found.captures += 1
        return found.name

    def add_workspace(self) -> None:
        """Add all WARC files of the workspace, also those without captures."""
        for path in self._folder.glob("*.warc*"):
            if path.name.endswith((".warc", ".warc.gz")):
                self._find(path.name)

    def add_uploaded(self, store: CaptureIndex) -> None:
        """Add all files in object storage, also those without captures."""
        for file in store.uploaded_files():
            self._find(file.name)

    def __iter__(self) -> Iterator[ArchiveFile]:
        """All files met so far, in the order of their paths."""
        return iter([self._by_path[path] for path in sorted(self._by_path)])

    def elsewhere(self) -> dict[FileLocation, int]:
        """The number of requested captures that are in no readable WARC file, by location."""
        counts = {FileLocation.NOWHERE: self._nowhere}
        for file in self:
            if file.where is not FileLocation.HERE:
                counts[file.where] = counts.get(file.where, 0) + file.captures
        return {where: count for where, count in counts.items() if count}

    def _find(self, text: str) -> ArchiveFile:
        """An absolute path is an imported file; any other name is in the workspace, unless it leads outside."""
        given = Path(text)
        path = given if ".." in given.parts else (self._folder / given).resolve()
        if path not in self._by_path:
            name = plain_name(path) if given.is_absolute() else text
            ours = path.is_relative_to(self._folder) or may_be_read(self._folder, text, self._is_imported)
            is_local = has_file(path) or not ours or has_file(path.with_name(path.name + OPEN))
            remote = None if is_local else self._files.remote(text)
            self._by_path[path] = ArchiveFile(remote or path, self._names.take(name, path), ours)
        return self._by_text.setdefault(text, self._by_path[path])


class UniqueNames:
    """Names that come only once, also where upper and lower case are the same."""

    def __init__(self) -> None:
        self._taken: set[str] = set()

    def take(self, wanted: str, path: Path) -> str:
        """The wanted name, or, if a file at another path has it, that name with a digest of this path in it.

        >>> names = UniqueNames()
        >>> names.take("a.warc.gz", Path("one/a.warc.gz")), names.take("A.warc.gz", Path("two/A.warc.gz"))
        ('a.warc.gz', 'A-6fce577f061f.warc.gz')
        """
        name, ending = wanted, _ending(wanted)
        digest = str(path).encode("utf-8", "surrogatepass")
        while name.lower() in self._taken:
            digest = hashlib.sha256(digest).digest()
            name = f"{_stem(wanted)}-{digest.hex()[:_DIGITS]}{ending}"
        self._taken.add(name.lower())
        return name


def plain_name(path: ArchivePath) -> str:
    """The last part of a path in characters that every index, package and file system takes.

    >>> plain_name(Path("/data/my crawl (2).warc.gz"))
    'my_crawl_2_.warc.gz'
    """
    return _UNSAFE.sub("_", path.name).lstrip(".-") or "archive"


def packed_name(path: ArchivePath) -> str:
    """The same, with the ending that packages want: ``.warc`` if nothing in the file is packed, else ``.warc.gz``.

    The file is :attr:`FileLocation.HERE`.
    """
    with path.open("rb") as file:
        ending = ".warc" if magic_of(file) == PLAIN else ".warc.gz"
    return _stem(plain_name(path)) + ending


def whereabouts(path: ArchivePath) -> FileLocation:
    """Whether a WARC file lies at a path."""
    if isinstance(path, Path) and not has_file(path):
        is_open = has_file(path.with_name(path.name + OPEN))
        return FileLocation.OPEN if is_open else FileLocation.MISSING
    try:
        what = sniff(path)
    except InputError:
        return FileLocation.UNREADABLE
    return {SourceFormat.WARC: FileLocation.HERE, SourceFormat.ARC: FileLocation.ARC}.get(what, FileLocation.OTHER)


def _ending(name: str) -> str:
    return next((name[-len(ending) :] for ending in _ENDINGS if name.lower().endswith(ending)), "")


def _stem(name: str) -> str:
    return name.removesuffix(_ending(name))


Progress = Callable[[str, int, int], None]
"""Receives the task, the amount done and the total."""

COMPOSITES = "quality/composites.json"
"""The path in a package of what is stated about pages with what they embed."""
COMPOSITES_SCHEMA = "recrawl-composites/1"
_FINE = range(200, 300)
_PARTS = ("image/", "audio/", "video/", "font/", "text/css", "text/javascript", "application/javascript")
"""Media types of what pages are made of."""


@dataclass(slots=True)
class PackResult:
    """What went into a package, and what could not."""

    warcs: int = 0
    captures: int = 0
    """Captures of the store whose bytes are in the package: as many as other commands count."""
    records: int = 0
    """Lines of the index. Records that are no captures of pages have some too: robots.txt, descriptions."""
    pages: int = 0
    elsewhere: dict[FileLocation, int] = field(default_factory=dict)
    """Captures of the store whose bytes are not in the package, by location."""
    repacked: int = 0
    """Files whose records were put into gzip members of their own, since nobody could replay them otherwise."""
    not_alone: int = 0
    """Records that are packed but not indexed, since they cannot be read from the middle of their file."""
    broken: int = 0
    """Places in the files that make no sense; they are packed as they are."""


def pack(  # noqa: PLR0913 - from where, into what, and how to report progress
    store: Store,
    warc_folder: Path | ArchiveFolder,
    target: Path,
    info: WaczInfo,
    *,
    on_bad: Callable[[InputError], None] = lambda _error: None,
    progress: Progress = lambda _what, _done, _all: None,
) -> PackResult:
    """Write all WARC files with captures of the store, and all of the workspace, into one package.

    Statements of site captures are in ``captures/``, those about composites in ``quality/``.

    Files outside the workspace are packed under their file name, or a variant of it if two have the same. Files in a
    compression that few tools read are compressed again. Memory does not grow with captures; temporary files are
    beside the target.

    Raises:
        InputError: there is no WARC file, or one cannot be read.
        DiskFullError: there is no room; nothing is left behind.
    """
    folder = ArchiveFolder.of(warc_folder, store)
    files = ArchiveFiles(folder, imported_into(store))
    for name in capture_files(store, lambda done, all_: progress("pages looked through", done, all_)):
        files.name_of(name)
    files.add_workspace()
    files.add_uploaded(store)
    names = UniqueNames()
    here = [file.path for file in files if file.where is FileLocation.HERE]
    warcs: dict[str, ArchivePath] = {names.take(packed_name(path), Path(str(path))): path for path in here}
    captures = sum(file.captures for file in files if file.where is FileLocation.HERE)
    packed = PackResult(len(warcs), captures, elsewhere=files.elsewhere())
    if not warcs:
        raise InputError(
            "There is no available WARC file to pack." + "".join(f" {said}." for said in sentences(packed)),
            "Crawl something, or import WARC files.",
        )
    archived = ArchivedBytes(folder, imported_into(store))
    documents = stated(store) | {COMPOSITES: _composites(store, archived)}
    with (
        reporting_write_errors(target),
        scratch_folder(target.parent) as shelf,
        TemporaryFile(dir=target.parent) as index,
    ):
        report = ReadReport(on_bad=on_bad)
        packed.repacked = _repack_odd(warcs, shelf, report, progress)
        size = sum(path.stat().st_size for path in warcs.values())
        batches = _indexed(warcs, report, packed, lambda done: progress("bytes indexed", done, size))
        packed.records = write_cdxj(batches, index, scratch=target.parent)
        packed.broken = report.bad
        done = _RunningPack(lambda done: progress("bytes packed", done, size))
        pages = _counted(packed, index)
        write_wacz(target, warcs, _from_start(index), pages, info, documents=documents, progress=done.add)
    return packed


def stated(store: HistoryStore) -> dict[str, bytes]:
    """What is stated about each finished capture of a site, by its path in the package."""
    finished = (capture for capture in store.site_captures() if capture.is_finished)
    return {f"captures/capture-{capture.id}.json": capture.statement.encode() for capture in finished}


def _composites(store: Store, archived: ArchivedBytes) -> bytes:
    """How the captured pages stand with what they embed, as a document; null where nothing is known."""
    composed = composites_of(store, np.arange(1, store.last_page() + 1), archived)
    document = {"schema": COMPOSITES_SCHEMA, "composites": composite_facts(composed)}
    return json.dumps(document, ensure_ascii=False, indent=1).encode()


def sentences(packed: PackResult) -> Iterator[str]:
    """What a user should know about what is not in the package, without full stops."""
    for where, count in packed.elsewhere.items():
        yield f"Left out: {counted(count, 'capture')} {where}"
    if (others := packed.records + packed.not_alone - packed.captures) > 0:
        yield f"{counted(others, 'record')} packed that the store does not list, such as robots.txt and descriptions"
    if packed.repacked:
        yield f"{counted(packed.repacked, 'WARC file')} not gzipped record by record; in the package all are"
    if packed.not_alone:
        yield f"{counted(packed.not_alone, 'record')} packed that cannot be replayed; repair with warcio recompress"
    if packed.broken:
        yield f"{counted(packed.broken, 'broken place')} in the WARC files; packed as they are"


@dataclass(slots=True)
class _RunningPack:
    """A sum that is reported whenever it grows."""

    tell: Callable[[int], None]
    total: int = 0

    def add(self, more: int) -> None:
        self.total += more
        self.tell(self.total)


def _repack_odd(warcs: dict[str, ArchivePath], shelf: Path, report: ReadReport, progress: Progress) -> int:
    """Put copies that every tool reads in the place of files that few do; how many."""
    odd = {name: path for name, path in warcs.items() if not is_common(path)}
    for number, (name, path) in enumerate(odd.items()):
        progress("files repacked", number, len(odd))
        warcs[name] = copied = shelf / name
        with copied.open("wb") as copy:
            repack(path, copy, report)
        progress("files repacked", number + 1, len(odd))
    return len(odd)


def _indexed(
    warcs: dict[str, ArchivePath], report: ReadReport, packed: PackResult, progress: Callable[[int], None]
) -> Iterator[Any]:
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


def _counted(packed: PackResult, index: BinaryIO) -> Iterator[WaczPage]:
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
