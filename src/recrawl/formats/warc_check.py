"""Records of a WARC file, each read to its end and compared with its own digests."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterator
from typing import Any, BinaryIO, NamedTuple

from recrawl.errors import InputError
from recrawl.formats.captures import Report
from recrawl.formats.warc_fields import NO_HEAD, digest_of, mime_of, parse_date, target_of, text_of_bytes
from recrawl.formats.warc_members import GZIP, member_end
from recrawl.formats.warc_payload import begin, digests
from recrawl.formats.warc_records import from_base32
from recrawl.formats.warc_stream import Window, magic_of, record_at, records

CAPTURES = frozenset({"response", "revisit", "resource"})
"""Types of records that a capture consists of, beside requests and metadata."""
_BASE32_SHA1 = 32
"""Letters of a SHA-1 in base32."""


class Reference(NamedTuple):
    """The capture that a revisit repeats, as the revisit names it."""

    url: str
    date: str


class CheckedRecord(NamedTuple):
    """One record, and what is wrong with its bytes."""

    offset: int
    end: int | None
    """Where its gzip member ends; ``None`` if the file is packed in another way, or not at all."""
    kind: str
    """WARC-Type, in small letters."""
    url: str
    """WARC-Target-URI of a capture; empty for other records, and so is what follows."""
    date: str
    """WARC-Date as written."""
    time: float | None
    """The same in seconds since the epoch; ``None`` if it is no date."""
    digest: bytes
    """SHA-1 of the payload as the record gives it; for a revisit that of the original. Empty if it gives none."""
    fault: str
    """What is wrong with its bytes; empty if nothing is."""
    refers_to: Reference | None
    """Of a revisit that names its original."""
    status: int
    mime: str
    size: int
    """Bytes of the payload as stored."""


def checked_records(file: BinaryIO, source: str, on_damage: Callable[[int, str], None]) -> Iterator[CheckedRecord]:
    """Every record of a file in its order, past damage. Memory does not grow with the file."""

    def told(error: InputError) -> None:
        on_damage(error.position or 0, error.what)

    packed = magic_of(file) == GZIP
    for record, at in records(Window(file), source, Report(on_bad=told)):
        yield _checked(record, at, file.fileno() if packed else None)


def checked_record_at(file: BinaryIO, offset: int) -> CheckedRecord | None:
    """The record at an offset; ``None`` if none begins there."""
    record = record_at(Window(file), offset)
    return None if record is None else _checked(record, offset, file.fileno() if magic_of(file) == GZIP else None)


def _checked(record: Any, at: int, packed: int | None) -> CheckedRecord:  # noqa: ANN401 - fastwarc's record
    """Read a record to its end. ``packed`` is the descriptor of a file of gzip members.

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
    date = named("WARC-Date") if is_capture else ""
    target = headers.get_bytes(b"WARC-Refers-To-Target-URI") if kind == "revisit" else None
    referred = named("WARC-Refers-To-Date") if target else ""
    return CheckedRecord(
        at,
        end,
        kind,
        target_of(headers.get_bytes(b"WARC-Target-URI") or b"") if is_capture else "",
        date,
        parse_date(date) if date else None,
        _sha1(f"sha1:{given}") if given and not algorithm else b"",
        fault,
        Reference(target_of(target), referred) if target and referred else None,
        head.status,
        head.mime if head.length or not is_capture else mime_of(headers.get_bytes(b"Content-Type")),
        record.content_length - head.length,
    )


def _sha1(digest: str) -> bytes:
    """The twenty bytes of a SHA-1 in base32 as WARC writes it; nothing if it is something else."""
    name, _, text = digest.partition(":")
    if name.lower() != "sha1" or len(text) != _BASE32_SHA1:
        return b""
    try:
        return from_base32(text.upper())
    except ValueError:
        return b""
