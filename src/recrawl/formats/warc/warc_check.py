"""Checks WARC files against their digests, and repairs those that a killed process left open.

A check reads each record to its end. A repair cuts an open file to its complete records and gives it its final name.
The writer of a file holds its lock, and the system drops the lock when the process ends, however it ends. So a file
that can be locked has no writer. Where the system has no such locks, files stay as they are.
"""

from __future__ import annotations

import hashlib
import os
from collections.abc import Callable, Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any, BinaryIO, NamedTuple, TypeAlias

from recrawl.errors import InputError
from recrawl.formats.atomic_files import is_at, lock
from recrawl.formats.columnar.capture_batches import ReadReport
from recrawl.formats.warc.archive_stream import GZIP, OpenArchive, member_end, members
from recrawl.formats.warc.warc_fields import (
    NO_HEAD,
    begin,
    digest_of,
    digests,
    mime_of,
    parse_date,
    target_of,
    text_of_bytes,
)
from recrawl.formats.warc.warc_records import from_base32
from recrawl.formats.warc.warc_stream import ReadWindow, magic_of, record_at, records
from recrawl.model import Capture

CAPTURES = frozenset({"response", "revisit", "resource"})
"""Types of records that a capture consists of, beside requests and metadata."""
_STATUS_LINE = b"httpStatusLine: "
_LONGEST_METADATA = 1 << 20
"""Bytes of a metadata record that are looked at for the head of a 304."""
_BASE32_SHA1 = 32
"""Letters of a SHA-1 in base32."""


class RevisitReference(NamedTuple):
    """The capture that a revisit repeats, as the revisit names it."""

    url: str
    date: str


class SaidValidators(NamedTuple):
    """What an archived HTTP head says of the version of its page; empty where it says nothing."""

    etag: str
    last_modified: str


class CheckedRecord(NamedTuple):
    """One record, and what is wrong with its bytes."""

    offset: int
    end: int | None
    """Where its gzip member ends; ``None`` if the file is packed in another way, or not at all."""
    kind: str
    """WARC-Type, in small letters."""
    url: str
    """WARC-Target-URI of a capture or of metadata; empty for other records. What follows is of captures only."""
    date: str
    """WARC-Date as written."""
    time: float | None
    """The same in seconds since the epoch; ``None`` if it is no date."""
    digest: bytes
    """SHA-1 of the payload as the record gives it; for a revisit that of the original. Empty if it gives none."""
    fault: str
    """What is wrong with its bytes; empty if nothing is."""
    refers_to: RevisitReference | None
    """Of a revisit that names its original."""
    status: int
    mime: str
    size: int
    """Bytes of the payload as stored."""
    said: SaidValidators | None
    """By the HTTP head of a capture, or that of a 304 in its metadata (W7); ``None`` if there is no head."""


def checked_records(file: OpenArchive, source: str, on_damage: Callable[[int, str], None]) -> Iterator[CheckedRecord]:
    """Every record of a file in its order, past damage. Memory does not grow with the file."""

    def told(error: InputError) -> None:
        on_damage(error.position or 0, error.what)

    packed = magic_of(file) == GZIP
    for record, at in records(ReadWindow(file), source, ReadReport(on_bad=told)):
        yield _checked(record, at, file if packed else None)


def checked_record_at(file: OpenArchive, offset: int) -> CheckedRecord | None:
    """The record at an offset; ``None`` if none begins there."""
    record = record_at(ReadWindow(file), offset)
    return None if record is None else _checked(record, offset, file if magic_of(file) == GZIP else None)


def _checked(record: Any, at: int, packed: OpenArchive | None) -> CheckedRecord:  # noqa: ANN401 - fastwarc's record
    """Read a record to its end. ``packed`` is the file, if it is one of gzip members.

    fastwarc does not compare the checksums of gzip, which alone guard the head of a record: so that is done beside it.
    """
    headers = record.headers
    end = None if packed is None else member_end(packed, at)

    def named(name: str) -> str:
        return text_of_bytes(headers.get_bytes(name.encode()) or b"").strip()

    kind = named("WARC-Type").lower()
    block = hashlib.sha1(usedforsecurity=False)

    def read(size: int) -> bytes:
        piece: bytes = record.reader.read(size)
        block.update(piece)
        return piece

    has_head = kind in {"response", "revisit"}
    first, head = begin(read, record.content_length) if has_head else (b"", NO_HEAD)
    if kind == "metadata":
        first = read(_LONGEST_METADATA)
    given = digest_of(headers.get_bytes(b"WARC-Payload-Digest")) if kind in CAPTURES else ""
    algorithm, _, value = given.rpartition(":")
    known = algorithm in hashlib.algorithms_available
    found = digests(read, record.content_length, first, head, algorithm if known else "sha1")
    is_checkable = bool(given) and kind != "revisit" and (known or not algorithm)
    wrong_payload = is_checkable and value.upper().rstrip("=") not in {text.upper() for text in found}
    fault = ""
    if not found or (packed is not None and end is None):
        fault = "its bytes are cut or damaged"
    elif (stated := _sha1(named("WARC-Block-Digest"))) and stated != block.digest():
        fault = "its bytes have another digest than the record says"
    elif wrong_payload:
        fault = "its payload has another digest than the record says"
    is_capture = kind in CAPTURES
    heading = first[: head.length] if has_head else _told_head(first) if kind == "metadata" else b""
    date = named("WARC-Date") if is_capture else ""
    target = headers.get_bytes(b"WARC-Refers-To-Target-URI") if kind == "revisit" else None
    referred = named("WARC-Refers-To-Date") if target else ""
    return CheckedRecord(
        at,
        end,
        kind,
        target_of(headers.get_bytes(b"WARC-Target-URI") or b"") if is_capture or kind == "metadata" else "",
        date,
        parse_date(date) if date else None,
        _sha1(f"sha1:{given}") if given and not algorithm else b"",
        fault,
        RevisitReference(target_of(target), referred) if target and referred else None,
        head.status,
        head.mime if head.length or not is_capture else mime_of(headers.get_bytes(b"Content-Type")),
        record.content_length - head.length,
        _said(heading) if heading else None,
    )


def _said(head: bytes) -> SaidValidators:
    """As the judge of an answer reads them."""
    capture = Capture("", 0.0, 0, head)
    return SaidValidators(capture.header("etag"), capture.header("last-modified"))


def _told_head(fields: bytes) -> bytes:
    """The HTTP head of a 304, out of the fields of its metadata record (W7); nothing if they tell of none."""
    if not fields.startswith(_STATUS_LINE):
        return b""
    lines = (line.partition(b": ") for line in fields.split(b"\r\n"))
    return b"\r\n".join(value for name, _, value in lines if name in {b"httpStatusLine", b"httpHeader"})


def _sha1(digest: str) -> bytes:
    """The twenty bytes of a SHA-1 in base32 as WARC writes it; nothing if it is something else."""
    name, _, text = digest.partition(":")
    if name.lower() != "sha1" or len(text) != _BASE32_SHA1:
        return b""
    try:
        return from_base32(text.upper())
    except ValueError:
        return b""


Span: TypeAlias = tuple[int, int]
"""Where a gzip member begins and ends in its file."""
Keeper: TypeAlias = Callable[[BinaryIO, str, list[Span]], list[Span]]
"""Told a file, its final name and its whole members, in order; says which of them to keep, in order."""

OPEN = ".open"


def repair(folder: Path, keeper: Keeper | None = None) -> list[Path]:
    """Finish the files in a folder that nobody writes any more; their final paths.

    Bytes behind the last whole gzip member are cut off, and so is what the ``keeper`` does not keep; a file of which
    nothing stays is removed. Files that a process still writes are left alone, and so is one whose final name is taken.
    """
    finished = []
    for path in sorted(folder.glob(f"*.warc.gz{OPEN}")):
        final = path.with_name(path.name.removesuffix(OPEN))
        with suppress(FileNotFoundError), path.open("r+b") as file:  # its writer may just have closed it
            if lock(file) and is_at(file, path) and not final.exists() and _finish(file, path, final, keeper):
                finished.append(final)
    return finished


def _finish(file: BinaryIO, path: Path, final: Path, keeper: Keeper | None) -> bool:
    whole = list(members(file))
    kept = keeper(file, final.name, whole) if keeper else whole
    if not kept:
        path.unlink()
        return False
    _keep_only(file, whole, kept)
    path.rename(final)
    return True


def _keep_only(file: BinaryIO, whole: list[Span], kept: list[Span]) -> None:
    """Cut the file at the first member that is not kept, and write again what is kept behind it.

    Damage between whole members stays where it is: only what follows the last of them can be the fault of a kill.
    """
    descriptor = file.fileno()
    same = next((place for place, (a, b) in enumerate(zip(whole, kept, strict=False)) if a != b), len(kept))
    end = kept[same - 1][1] if same else 0
    again = b"".join(os.pread(descriptor, stop - start, start) for start, stop in kept[same:])
    if end < os.fstat(descriptor).st_size:
        os.ftruncate(descriptor, end)
        os.pwrite(descriptor, again, end)
        os.fsync(descriptor)
