"""Writes WACZ 1.1.1: the archive as one file that replay tools open directly (conventions Z1).

Equal input gives equal bytes: members have one fixed date, and the creation time of the package is an argument. The
file appears complete or not at all. WARC files are copied in chunks, never held in memory.
"""

from __future__ import annotations

import hashlib
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
from types import MappingProxyType
from typing import Any, BinaryIO

from recrawl.errors import InputError
from recrawl.formats.atomic_files import complete_file
from recrawl.formats.wacz_reader import DIGEST, PACKAGE, WaczPage
from recrawl.time import to_iso

VERSION = "1.1.1"
LINES_PER_BLOCK = 1024
_LONG_AGO = (1980, 1, 1, 0, 0, 0)
"""The earliest date a ZIP can hold."""
_LEVEL = 6
_CHUNK = 1 << 20
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
    warcs: Mapping[str, Path] | Iterable[Path],
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
        warcs: dict[str, Path],
        cdxj: Iterable[bytes],
        pages: Iterable[WaczPage],
        documents: Mapping[str, bytes],
        info: WaczInfo,
    ) -> None:
        for name, warc in warcs.items():
            with _readable(warc) as stream:
                size = os.fstat(stream.fileno()).st_size
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


def _named(warcs: Mapping[str, Path] | Iterable[Path]) -> dict[str, Path]:
    pairs = warcs.items() if isinstance(warcs, Mapping) else ((warc.name, warc) for warc in warcs)
    named: dict[str, Path] = {}
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
def _readable(warc: Path) -> Iterator[BinaryIO]:
    try:
        stream = warc.open("rb")
    except OSError as error:
        raise _unreadable(warc, error) from error
    with stream:
        yield stream


def _unreadable(warc: Path, error: OSError) -> InputError:
    return InputError(f"it cannot be read ({error.strerror})", "Check the path.", source=str(warc))


def _pieces(stream: BinaryIO, size: int, warc: Path, progress: Callable[[int], None]) -> Iterator[bytes]:
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
                "Make the index anew.",
            )
        before = text
        yield text + b"\n"


def _page_lines(pages: Iterable[WaczPage]) -> Iterator[bytes]:
    yield _json({"format": "json-pages-1.0", "id": "pages", "title": "All Pages"}) + b"\n"
    for page in pages:
        yield _json(page.fields()) + b"\n"


def _json(value: Any, indent: int | None = None) -> bytes:  # noqa: ANN401 - whatever JSON can hold
    return json.dumps(value, indent=indent, ensure_ascii=False).encode("utf-8", "replace")
