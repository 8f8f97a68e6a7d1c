"""WACZ, read and written: WARC files, their index and their pages in one ZIP.

A package has the digest of each part (conventions Z1). A file may come from anywhere, so nothing in it is trusted.
Names that would lead out of a folder are refused; a member may not decompress to much more than its size; everything is
streamed. Digests may be written as in version 1.1.1 (``"hash": "sha256:…"``) or as before (``"stats": {"hash": …},
"hashing": …``). The list of pages has one JSON object per line; the first one describes the list.

Packages are written in version 1.1.1. Equal input gives equal bytes: members have one fixed date, and the creation time
of the package is an argument. The file appears complete or not at all. WARC files are copied in chunks, never held in
memory.
"""

from __future__ import annotations

import filecmp
import hashlib
import io
import json
import os
import re
import zipfile
import zlib
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from itertools import islice
from pathlib import Path
from tempfile import TemporaryFile
from threading import Lock
from types import MappingProxyType
from typing import Any, BinaryIO, Self

from recrawl.errors import DiskFullError, InputError
from recrawl.formats.atomic_files import FULL, complete_file, unfinished_file
from recrawl.formats.cdx.line_blocks import read_blocks
from recrawl.formats.columnar.capture_batches import ReadReport
from recrawl.formats.dates import w3c_time
from recrawl.formats.warc.archive_folder import ArchivePath
from recrawl.formats.warc.archive_stream import OpenArchive, size_of
from recrawl.time import to_iso


@dataclass(frozen=True, slots=True)
class WaczPage:
    """A line of ``pages.jsonl``: a page somebody may want to begin with."""

    url: str
    time: float
    """When it was captured, seconds since the epoch."""
    title: str = ""
    id: str = ""
    text: str = ""
    """What a reader sees on the page, for searching."""
    size: int | None = None
    """Bytes of the page with all its parts."""

    def fields(self) -> dict[str, Any]:
        """As the line says it; an id is made of time and URL if there is none.

        >>> WaczPage("http://example.org/", 0.0, title="Home").fields()["ts"]
        '1970-01-01T00:00:00Z'
        """
        when = to_iso(self.time)
        made = hashlib.sha256(f"{when} {self.url}".encode()).hexdigest()[:20]
        fields: dict[str, Any] = {"id": self.id or made, "url": self.url, "ts": when}
        more = {"title": self.title, "text": self.text, "size": self.size}
        return fields | {name: value for name, value in more.items() if value not in ("", None)}


def read_pages(stream: BinaryIO, source: str, report: ReadReport) -> Iterator[WaczPage]:
    """The pages of one list; lines that make no sense are reported."""
    for block in read_blocks(stream, source, report):
        for number, line in enumerate(block.text.split(b"\n")):
            if not line.strip():
                continue
            page, header = _page(line)
            if page is not None:
                yield page
            elif not header:
                report.broken("this line is no page", source=source, position=block.place(number))


def _page(line: bytes) -> tuple[WaczPage | None, bool]:
    """The page of a line, and whether the line is the one that describes the list."""
    try:
        entry = json.loads(line)
    except (ValueError, RecursionError):
        return None, False
    if not isinstance(entry, dict):
        return None, False
    url, time = entry.get("url"), w3c_time(str(entry.get("ts", "")))
    if not isinstance(url, str) or time is None:
        return None, "format" in entry
    title, name, text = (str(entry.get(field) or "") for field in ("title", "id", "text"))
    size = entry.get("size")
    return WaczPage(url, time, title, name, text, size if isinstance(size, int) else None), False


PACKAGE, DIGEST = "datapackage.json", "datapackage-digest.json"
_WARCS, _INDEXES = (".warc", ".warc.gz"), (".cdx", ".cdx.gz", ".cdxj", ".cdxj.gz")
_HASHES = frozenset({"md5", "sha1", "sha224", "sha256", "sha384", "sha512"})
_METHODS = (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED)
_ENCRYPTED = 0x1
_LARGEST_TEXT = 16 << 20
_MOST_LISTED = 200_000
"""Members that a package may list."""
_RATIO, _SLACK = 200, 64 << 20
"""A member may unfold to N times its size, and some bytes more. Indexes and text reach about a tenth of it."""
_CHUNK = 1 << 20


@dataclass(frozen=True, slots=True)
class WaczResource:
    """A member that the package lists."""

    path: str
    algorithm: str
    digest: str
    """In hexadecimal."""
    size: int | None


class WaczReader:
    """An open WACZ file. A context manager.

    Raises:
        InputError: it is no ZIP, or there is no legible ``datapackage.json``.
    """

    def __init__(self, path: Path, report: ReadReport) -> None:
        self.source = str(path)
        try:
            self._zip = zipfile.ZipFile(path)
        except (OSError, zipfile.BadZipFile, ValueError, NotImplementedError) as error:
            raise InputError(f"it is no WACZ file ({error})", "Check the path.", source=str(path)) from error
        try:
            self._members = self._safe_members(report)
            self.package = self._package()
            """What ``datapackage.json`` says."""
            self.resources = tuple(self._listed(report))
            self._resource_of = {resource.path: resource for resource in reversed(self.resources)}
            self._naming = Lock()
        except BaseException:
            self._zip.close()
            raise

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_error: object) -> None:
        self._zip.close()

    @property
    def names(self) -> tuple[str, ...]:
        """All members with a safe name, in the order of the file."""
        return tuple(self._members)

    @property
    def warcs(self) -> tuple[str, ...]:
        """The WARC files."""
        return tuple(name for name in self._members if name.startswith("archive/") and name.endswith(_WARCS))

    @property
    def indexes(self) -> tuple[str, ...]:
        """The files with lines of CDXJ, plain or gzipped."""
        return tuple(name for name in self._members if name.startswith("indexes/") and name.endswith(_INDEXES))

    def size(self, name: str) -> int:
        """Bytes of a member, unpacked, as the ZIP directory says."""
        return self._members[name].file_size

    def open(self, name: str) -> BinaryIO:
        """A member as a stream of bytes. What is wrong with it is raised as InputError while it is read."""
        info = self._members.get(name)
        if info is None:
            raise InputError(f"it has no member {name!r}", "Get the file again from its owner.", source=self.source)
        if info.compress_type not in _METHODS or info.flag_bits & _ENCRYPTED:
            raise InputError(
                f"the member {name!r} is encrypted or compressed in a way that WACZ does not know",
                "Pack it again, with the WARC files stored.",
                source=self.source,
                position=info.header_offset,
            )
        if info.file_size > _RATIO * info.compress_size + _SLACK:
            raise InputError(
                f"the member {name!r} would unfold from {info.compress_size} to {info.file_size} bytes",
                "Nothing in an archive shrinks by that factor; get the file again from its owner.",
                source=self.source,
                position=info.header_offset,
            )
        with _told(self.source, info):
            return io.BufferedReader(_Member(self._zip.open(info), info, self.source), _CHUNK)

    def check(self, report: ReadReport) -> int:
        """Compare every member with the length and digest the package lists; how many are as listed.

        Also told: members that are listed and missing, or there and not listed, and a package that is not the one
        its own digest is of. Reads the whole file once.
        """
        listed = {resource.path: resource for resource in self.resources}
        good = 0
        for name in (*self._members, *(path for path in listed if path not in self._members)):
            resource = listed.get(name) or (self._package_digest(report) if name == PACKAGE else None)
            wrong = ""
            if name not in self._members:
                wrong = f"{name!r} is listed and missing"
            elif resource is not None:
                wrong = self._difference(resource)
                good += not wrong
            elif name not in (PACKAGE, DIGEST):
                wrong = f"{name!r} is not listed in {PACKAGE}"
            if wrong:
                self._tell(report, wrong, name)
        if not self.warcs:
            self._tell(report, "there is no WARC file in archive/", PACKAGE)
        return good

    def extract(self, name: str, folder: Path) -> Path:
        """Copy a member into a folder, under the last part of its name, and check it on the way.

        An existing file stays: if its bytes differ, the copy gets a part of its digest into its name. Several threads
        may call this at once, which lets the disk write many small members together.

        Raises:
            InputError: it is not what the package lists; nothing is left behind.
        """
        target = folder / name.rpartition("/")[2]
        listed = self._resource_of.get(name)
        try:
            with unfinished_file(target) as part:
                with self.open(name) as stream, part.open("wb") as file:
                    wrong = _compared(stream, listed, file)
                    file.flush()
                    os.fsync(file.fileno())
                if wrong:
                    raise InputError(wrong, "Get the file again from its owner.", source=self.source)
                with self._naming:
                    target = _free_name(part, target)
                    part.replace(target)
        except OSError as error:
            if error.errno in FULL:
                raise DiskFullError(f"{target}: the disk is full.", "Free some space.") from error
            raise InputError(
                f"it cannot be written ({error.strerror})", "Check the folder and its permissions.", source=str(target)
            ) from error
        return target

    def pages(self, report: ReadReport) -> Iterator[WaczPage]:
        """The pages of all lists in ``pages/``; lines that make no sense are reported."""
        for name in self._members:
            if name.startswith("pages/") and name.endswith(".jsonl"):
                try:
                    with self.open(name) as stream:
                        yield from read_pages(stream, f"{self.source}/{name}", report)
                except InputError as broken:
                    if report.strict:
                        raise
                    self._tell(report, broken.what, name)

    def _safe_members(self, report: ReadReport) -> dict[str, zipfile.ZipInfo]:
        members: dict[str, zipfile.ZipInfo] = {}
        for info in self._zip.infolist():
            if info.filename.endswith("/"):  # a folder; a damaged file may also have members without a name
                continue
            what = "leads out of the folder" if not _is_safe(info.filename) else "is there twice"
            if _is_safe(info.filename) and info.filename not in members:
                members[info.filename] = info
            else:
                report.broken(f"the member {info.filename!r} {what}", source=self.source, position=info.header_offset)
        return members

    def _package(self) -> dict[str, Any]:
        if PACKAGE not in self._members:
            raise InputError(
                f"there is no {PACKAGE} in it, so it is no WACZ file", "Check the path.", source=self.source
            )
        try:
            package = json.loads(self._text(PACKAGE))
        except (ValueError, RecursionError):
            package = None
        if not isinstance(package, dict) or not isinstance(package.get("resources"), list):
            raise InputError(f"its {PACKAGE} cannot be read", "Get the file again from its owner.", source=self.source)
        if len(package["resources"]) > _MOST_LISTED:
            raise InputError(
                f"its {PACKAGE} lists more than {_MOST_LISTED:,} members",
                "Get the file again from its owner.",
                source=self.source,
            )
        if package.get("profile") == "multi-wacz-package":
            raise InputError("it only names other WACZ files", "Give those files instead.", source=self.source)
        return package

    def _text(self, name: str) -> bytes:
        """All of a small member."""
        size = self._members[name].file_size
        if size > _LARGEST_TEXT:
            raise InputError(
                f"its {name} is larger than {_LARGEST_TEXT} bytes",
                "Get the file again from its owner.",
                source=self.source,
            )
        with self.open(name) as stream:
            return stream.read(size)

    def _listed(self, report: ReadReport) -> Iterator[WaczResource]:
        for entry in self.package["resources"]:
            found = _resource(entry)
            if found is None:
                self._tell(report, f"{PACKAGE} lists {str(entry)[:100]!r}, which names no member and digest", PACKAGE)
            else:
                yield found

    def _package_digest(self, report: ReadReport) -> WaczResource | None:
        """What ``datapackage-digest.json`` says of the package, if it is there."""
        if DIGEST not in self._members:
            return None
        try:
            found = _resource(json.loads(self._text(DIGEST)) | {"path": PACKAGE})
        except (ValueError, TypeError, RecursionError, InputError):
            found = None
        if found is None:
            self._tell(report, f"its {DIGEST} cannot be read", DIGEST)
        return found

    def _difference(self, resource: WaczResource) -> str:
        try:
            with self.open(resource.path) as stream:
                return _compared(stream, resource)
        except InputError as broken:
            return broken.what

    def _tell(self, report: ReadReport, what: str, name: str) -> None:
        info = self._members.get(name)
        report.broken(what, source=self.source, position=info.header_offset if info else 0)


class _Member(io.RawIOBase):
    """A member of a ZIP whose errors say where they are."""

    def __init__(self, stream: Any, info: zipfile.ZipInfo, source: str) -> None:  # noqa: ANN401 - zipfile's own stream
        self._stream, self._info, self.source = stream, info, source

    def readable(self) -> bool:
        return True

    def seekable(self) -> bool:
        return bool(self._stream.seekable())

    def readinto(self, buffer: Any) -> int:  # noqa: ANN401 - whatever can be written to
        with _told(self.source, self._info):
            data = self._stream.read(len(buffer))
        buffer[: len(data)] = data
        return len(data)

    def seek(self, offset: int, whence: int = io.SEEK_SET) -> int:
        with _told(self.source, self._info):
            return int(self._stream.seek(offset, whence))

    def tell(self) -> int:
        return int(self._stream.tell())

    def close(self) -> None:
        self._stream.close()
        super().close()


@contextmanager
def _told(source: str, info: zipfile.ZipInfo) -> Iterator[None]:
    """Turn what zipfile raises about a broken member into an error with its name."""
    try:
        yield
    except (zipfile.BadZipFile, zlib.error, EOFError, NotImplementedError, OSError) as error:
        raise InputError(
            f"the member {info.filename!r} is broken ({error})",
            "Get the file again from its owner.",
            source=source,
            position=info.header_offset,
        ) from error


def _free_name(part: Path, target: Path) -> Path:
    """The target, unless another file has that name."""
    if not target.exists() or filecmp.cmp(part, target, shallow=False):
        return target
    with part.open("rb") as file:
        digest = hashlib.file_digest(file, "sha256").hexdigest()[:12]
    stem, dot, ending = target.name.partition(".")
    return target.with_name(f"{stem}-{digest}{dot}{ending}")


def _is_safe(name: str) -> bool:
    """Whether a name stays inside the folder it is put into, on any system."""
    parts = name.split("/")
    return not any(part in ("", ".", "..") for part in parts) and not any(mark in name for mark in "\\\0:")


def _resource(entry: Any) -> WaczResource | None:  # noqa: ANN401 - whatever a package says
    if not isinstance(entry, dict) or not isinstance(entry.get("path"), str):
        return None
    stats = entry.get("stats")
    stats = stats if isinstance(stats, dict) else {}
    digest, size = entry.get("hash", stats.get("hash")), entry.get("bytes", stats.get("bytes"))
    if not isinstance(digest, str):
        return None
    algorithm, colon, value = digest.rpartition(":")
    algorithm = algorithm if colon else str(entry.get("hashing", "sha256"))
    return WaczResource(entry["path"], algorithm.lower(), value.lower(), size if isinstance(size, int) else None)


def _compared(stream: BinaryIO, listed: WaczResource | None, copy: BinaryIO | None = None) -> str:
    """Read a member to its end, into ``copy`` if there is one; how it differs from what is listed, or empty text."""
    known = listed is not None and listed.algorithm in _HASHES
    hasher = hashlib.new(listed.algorithm, usedforsecurity=False) if listed is not None and known else None
    size = 0
    while data := stream.read(_CHUNK):
        size += len(data)
        if hasher is not None:
            hasher.update(data)
        if copy is not None:
            copy.write(data)
    if listed is None:
        return ""
    if listed.size is not None and listed.size != size:
        return f"{listed.path!r} has {size} bytes, {listed.size} are listed"
    if hasher is None:
        return f"{listed.path!r} cannot be checked: its digest is of the kind {listed.algorithm!r}"
    return "" if hasher.hexdigest() == listed.digest else f"{listed.path!r} is not what its {listed.algorithm} says"


VERSION = "1.1.1"
LINES_PER_BLOCK = 1024
_LONG_AGO = (1980, 1, 1, 0, 0, 0)
"""The earliest date a ZIP can hold."""
_LEVEL = 6
_GZIP_WINDOW = 16 + zlib.MAX_WBITS
_NOTHING: Mapping[str, bytes] = MappingProxyType({})


@dataclass(frozen=True, slots=True)
class WaczInfo:
    """What the package says of itself."""

    created: float
    """Seconds since the epoch."""
    title: str = ""
    description: str = ""
    software: str = "recrawl"
    main_page: WaczPage | None = None
    """The page that replay shows first."""

    def fields(self) -> dict[str, str]:
        """As ``datapackage.json`` names them."""
        fields = {
            "title": self.title,
            "description": self.description,
            "software": self.software,
            "created": to_iso(self.created),
            "mainPageUrl": self.main_page.url if self.main_page else "",
            "mainPageDate": to_iso(self.main_page.time) if self.main_page else "",
        }
        return {name: value for name, value in fields.items() if value}


def write_wacz(  # noqa: PLR0913 - the parts of a package, and who is told
    path: Path,
    warcs: Mapping[str, ArchivePath] | Iterable[ArchivePath],
    cdxj: Iterable[bytes],
    pages: Iterable[WaczPage],
    info: WaczInfo,
    *,
    documents: Mapping[str, bytes] = _NOTHING,
    progress: Callable[[int], None] = lambda _bytes: None,
) -> None:
    """Pack WARC files, their index and their pages; an existing file is replaced when the new one is complete.

    ``warcs`` are files, or files by the name they get in the package. ``cdxj`` are the lines of the index in the order
    of their bytes, with that name as ``filename``: what :func:`recrawl.formats.cdx.cdxj.write_cdxj` writes.
    ``documents`` are further members by their paths, such as what is stated about captures. ``progress`` is told of
    bytes of WARC as they are packed. Memory: one block of lines and a piece of a WARC.

    Raises:
        InputError: a WARC cannot be read, is not closed yet or has the name of another, or the index is not sorted.
        DiskFullError: there is no room; nothing is left behind.
    """
    with complete_file(path) as file, zipfile.ZipFile(file, "w", allowZip64=True) as package:
        _Packer(package, path.parent, progress).pack(_named(warcs), cdxj, pages, documents, info)


class _Packer:
    """Members one after the other, and the list of them."""

    def __init__(self, package: zipfile.ZipFile, scratch: Path, progress: Callable[[int], None]) -> None:
        self._package = package
        self._scratch = scratch
        self._progress = progress
        self._resources: list[dict[str, Any]] = []
        self._names: set[str] = set()

    def pack(
        self,
        warcs: dict[str, ArchivePath],
        cdxj: Iterable[bytes],
        pages: Iterable[WaczPage],
        documents: Mapping[str, bytes],
        info: WaczInfo,
    ) -> None:
        for name, warc in warcs.items():
            with _readable(warc) as stream:
                size = size_of(stream)
                pieces = _pieces(stream, size, warc, self._progress)
                self._add(f"archive/{name}", pieces, stored=True, size=size)
        with TemporaryFile(dir=self._scratch) as small:
            small.write(b'!meta 0 {"format": "cdxj-gzip-1.0", "filename": "index.cdx.gz"}\n')
            self._add("indexes/index.cdx.gz", _blocks(cdxj, small), stored=True)
            small.seek(0)
            self._add("indexes/index.idx", iter(lambda: small.read(_CHUNK), b""))
        self._add("pages/pages.jsonl", _page_lines(pages))
        for name, document in documents.items():
            self._add(name, [document])
        whole = {"profile": "data-package", "wacz_version": VERSION, **info.fields(), "resources": self._resources}
        listed = self._add(PACKAGE, [_json(whole, indent=2)])
        self._add(DIGEST, [_json({"path": PACKAGE, "hash": listed["hash"]}, indent=2)])

    def _add(
        self, path: str, pieces: Iterable[bytes], *, stored: bool = False, size: int | None = None
    ) -> dict[str, Any]:
        if size is None:
            return self._add_unmeasured(path, pieces, stored=stored)
        info = zipfile.ZipInfo(path, _LONG_AGO)
        info.compress_type = zipfile.ZIP_STORED if stored else zipfile.ZIP_DEFLATED
        info.external_attr = 0o644 << 16
        info.create_system = 3  # so that the bytes do not depend on the system
        info.file_size = _announced(size)
        hasher, written = hashlib.sha256(), 0
        with self._package.open(info, "w") as member:
            for piece in pieces:
                hasher.update(piece)
                written += len(piece)
                member.write(piece)
        resource = {"name": self._name(path), "path": path, "hash": f"sha256:{hasher.hexdigest()}", "bytes": written}
        self._resources.append(resource)
        return resource

    def _add_unmeasured(self, path: str, pieces: Iterable[bytes], *, stored: bool) -> dict[str, Any]:
        """Measure a member before it is added.

        Without its size the head of a member has room for one of 8 bytes, of which the list at the end of the file says
        nothing. ReplayWeb.page (2.4) goes by that list, and would read every byte 20 places too early.
        """
        with TemporaryFile(dir=self._scratch) as waiting:
            for piece in pieces:
                waiting.write(piece)
            size = waiting.tell()
            waiting.seek(0)
            return self._add(path, iter(lambda: waiting.read(_CHUNK), b""), stored=stored, size=size)

    def _name(self, path: str) -> str:
        """What the list calls a member: few characters are allowed there, and no name may come twice."""
        plain = re.sub(r"[^-a-z0-9._]", "-", path.rpartition("/")[2].lower())
        name, number = plain, 1
        while name in self._names:
            number += 1
            name = f"{plain}-{number}"
        self._names.add(name)
        return name


def _announced(size: int) -> int:
    """The size as it is told to zipfile before a member is written.

    A little below its limit zipfile makes room for sizes of 8 bytes, lest packing make a member larger, and then says
    nothing of it in the list at the end. Ours are stored or shrink: what fits is told as what surely fits.
    """
    return size if size > zipfile.ZIP64_LIMIT else min(size, zipfile.ZIP64_LIMIT // 2)


def _named(warcs: Mapping[str, ArchivePath] | Iterable[ArchivePath]) -> dict[str, ArchivePath]:
    pairs = warcs.items() if isinstance(warcs, Mapping) else ((warc.name, warc) for warc in warcs)
    named: dict[str, ArchivePath] = {}
    for name, warc in pairs:
        if not name.endswith((".warc", ".warc.gz")):
            raise InputError(
                "its name does not end in .warc or .warc.gz",
                "Wait until it is closed, or give a WARC file.",
                source=str(warc),
            )
        if name in named:
            raise InputError(f"{named[name]} has the same name", "Rename one of them.", source=str(warc))
        named[name] = warc
    if not named:
        raise InputError("there is no WARC file to pack", "Crawl something first, or name other files.")
    return named


@contextmanager
def _readable(warc: ArchivePath) -> Iterator[OpenArchive]:
    try:
        stream = warc.open("rb")
    except OSError as error:
        raise _unreadable(warc, error) from error
    with stream:
        yield stream


def _unreadable(warc: ArchivePath, error: OSError) -> InputError:
    return InputError(f"it cannot be read ({error.strerror})", "Check the path.", source=str(warc))


def _pieces(stream: OpenArchive, size: int, warc: ArchivePath, progress: Callable[[int], None]) -> Iterator[bytes]:
    """As many bytes as the file had when it was opened: it may still grow."""
    left = size
    while left:
        try:
            piece = stream.read(min(_CHUNK, left))
        except OSError as error:
            raise _unreadable(warc, error) from error
        if not piece:
            raise InputError("it became shorter while it was read", "Pack it when nobody changes it.", source=str(warc))
        left -= len(piece)
        yield piece
        progress(len(piece))


def _blocks(cdxj: Iterable[bytes], small: BinaryIO) -> Iterator[bytes]:
    """The lines as gzip members that can be read alone; for each a line in the small index."""
    lines, offset = _sorted(cdxj), 0
    while block := list(islice(lines, LINES_PER_BLOCK)):
        squeezed = zlib.compressobj(_LEVEL, zlib.DEFLATED, _GZIP_WINDOW)
        member = squeezed.compress(b"".join(block)) + squeezed.flush()
        key = b" ".join(block[0].split(b" ", 2)[:2])
        place = {"offset": offset, "length": len(member), "digest": f"sha256:{hashlib.sha256(member).hexdigest()}"}
        small.write(key + b" " + _json(place) + b"\n")
        offset += len(member)
        yield member


def _sorted(cdxj: Iterable[bytes]) -> Iterator[bytes]:
    before = b""
    for number, line in enumerate(cdxj):
        text = line.rstrip(b"\r\n")
        if text < before or text.count(b" ") < 2:  # noqa: PLR2004 - key, time and the rest
            raise InputError(
                f"line {number + 1} of the index is not sorted or no line of CDXJ: {text[:80]!r}",
                "Make the index again.",
            )
        before = text
        yield text + b"\n"


def _page_lines(pages: Iterable[WaczPage]) -> Iterator[bytes]:
    yield _json({"format": "json-pages-1.0", "id": "pages", "title": "All Pages"}) + b"\n"
    for page in pages:
        yield _json(page.fields()) + b"\n"


def _json(value: Any, indent: int | None = None) -> bytes:  # noqa: ANN401 - whatever JSON can hold
    return json.dumps(value, indent=indent, ensure_ascii=False).encode("utf-8", "replace")
