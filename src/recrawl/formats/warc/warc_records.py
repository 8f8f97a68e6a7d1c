"""The records of WARC/1.1 as bytes (conventions W1-W8). Pure: what is written, not where.

Rules of this file:

1. One gzip member per record; all records of one capture carry one date.
2. Bytes are stored as received, except the chunks of Transfer-Encoding. HTTP/2 has no header text: it is written as
   that of HTTP/1.1, which all readers accept, and WARC-Protocol names the protocol. The payload digest is of the body
   without transfer-encoding (WARC 1.1, 5.9), so that it does not depend on how a server cut its chunks. warcio takes
   it of the body as stored. Both agree if a chunked body is stored without its chunks: the headers that described them
   are then named ``X-Orig-Transfer-Encoding`` and ``X-Orig-Content-Length``, as Browsertrix does.
3. A revisit names the ``response`` it repeats, never another revisit.
4. A 304 becomes an empty block with the three Refers-To fields and the original's payload digest: replay tools skip
   anything else or show it empty. The server's headers go into a ``metadata`` record.
"""

from __future__ import annotations

import hashlib
import os
import re
import uuid
import zlib
from collections.abc import Mapping, Sequence
from functools import cache
from typing import Any, NamedTuple

import numpy as np

from recrawl.detect import unchunked
from recrawl.errors import ConfigError, require
from recrawl.model import Capture
from recrawl.time import iso_second, seconds_and_millionths

PROFILES = "http://netpreserve.org/warc/1.1/revisit/"
COMPRESSION = 2
"""Of isal: a sixth larger than the usual level of zlib, and ten times as fast."""
COMPRESSION_OF_SMALL = 0
"""For blocks of a few hundred bytes, such as requests: hardly larger, and several times as fast again."""
NOT_MODIFIED = 304
_RESPONSE, _REQUEST = "application/http; msgtype=response", "application/http; msgtype=request"
_URLS = uuid.NAMESPACE_URL.bytes
_BY_CHANCE, _BY_NAME = 4, 5
"""Versions of UUIDs."""
_FIELDS, _JSON = "application/warc-fields", "application/json"


class CaptureRef(NamedTuple):
    """A ``response`` record that a later capture may repeat."""

    record_id: str
    """``urn:uuid:…``, without angle brackets."""
    url: str
    time: float
    """When that capture began, seconds since the epoch."""
    payload_digest: str
    """``sha1:`` and base32."""
    chunked: bool | None = False
    """Whether its body is stored in chunks, as other crawlers do and recrawl once did; ``None`` if nobody looked."""


class WarcRecord(NamedTuple):
    """One record before it is written."""

    kind: str
    date: str
    content_type: str
    block: tuple[bytes, ...]
    """Its bytes, in pieces: a body is not to be copied for the sake of its head."""
    headers: str
    """Of its own, as :func:`header` writes each."""
    id: str
    packed: PackedBody | None = None
    """What follows the block, if that was packed ahead."""

    def member(self, block_digest: str, more: str = "") -> tuple[bytes, ...]:
        """The record, with the digest of its block and some more headers, as a gzip member of its own, in pieces."""
        kind, date, content_type, block, headers, id_, packed = self
        size = sum(map(len, block)) + (packed.size if packed is not None else 0)
        head = (
            f"WARC/1.1\r\nWARC-Type: {kind}\r\nWARC-Record-ID: <{id_}>\r\nWARC-Date: {date}\r\n{headers}{more}"
            f"WARC-Block-Digest: {block_digest}\r\nContent-Type: {content_type}\r\nContent-Length: {size}\r\n\r\n"
        )
        if packed is not None:
            return packed.member(b"".join((head.encode(), *block)))
        compress, without_head = _gzip()
        whole = b"".join((head.encode(), *block, _END))
        small: bytes = compress(whole, COMPRESSION if size > _SMALL else COMPRESSION_OF_SMALL, without_head)
        return (_GZIP_HEAD + small,)


class PackedBody(NamedTuple):
    """The body of a large answer, digested and compressed ahead, where nobody has to wait for that.

    It does not depend on the record that it will be part of: a gzip member may consist of several blocks of deflate.
    """

    payload_digest: bytes
    """SHA-1, 20 bytes."""
    block_digest: bytes = b""
    """Likewise, of the head as it is stored and the body."""
    size: int = 0
    """Bytes of the body as it is stored."""
    crc: int = 0
    """Of the body and the end of the record."""
    deflated: tuple[bytes, ...] = ()
    """The same as the last blocks of a deflate stream; empty if the answer was not to be written in full."""

    @property
    def weight(self) -> int:
        """Bytes of memory that it takes."""
        return sum(map(len, self.deflated))

    def member(self, before: bytes) -> tuple[bytes, ...]:
        """A gzip member of what comes before the body, and the body."""
        crc = _joined_crc(zlib.crc32(before), self.crc, self.size + len(_END))
        size = (len(before) + self.size + len(_END)) & 0xFFFFFFFF
        return _GZIP_HEAD + _stored(before), *self.deflated, crc.to_bytes(4, "little") + size.to_bytes(4, "little")


_END = b"\r\n\r\n"
"""Of a record."""
_PIECE = 1 << 20
_LONGEST_STORED = 0xFFFF
"""Bytes of a stored block of deflate (RFC 1951, 3.2.4)."""


def pack(capture: Capture, repeats: str = "") -> None:
    """Do what takes long before an answer can be written, for a thread: libraries do it without the interpreter.

    Unless it is sure to become a revisit: ``repeats`` is the digest of the response that it may repeat. Whoever writes
    the capture later finds what was done. O(length).
    """
    body = unchunked(capture)
    if body is capture.raw_body:
        digest = capture.body_digest()
    elif capture.made:  # nobody sent it in chunks
        return
    else:
        digest = hashlib.sha1(body, usedforsecurity=False).digest()
    if written([digest]) == [repeats] and not capture.truncated:
        capture._packed = PackedBody(digest)  # type: ignore[misc]  # noqa: SLF001 - made for this
        return
    isal = require("isal.isal_zlib", "crawl")
    block = hashlib.sha1(_stored_head(capture), usedforsecurity=False)
    compressor = isal.compressobj(COMPRESSION, zlib.DEFLATED, -zlib.MAX_WBITS)
    crc, deflated, view = 0, [], memoryview(body)
    for begin in range(0, len(body), _PIECE):
        piece = view[begin : begin + _PIECE]
        block.update(piece)
        crc = isal.crc32(piece, crc)
        deflated.append(compressor.compress(piece))
    crc = isal.crc32(_END, crc)
    deflated += (compressor.compress(_END), compressor.flush())
    packed = PackedBody(digest, block.digest(), len(body), crc, tuple(filter(None, deflated)))
    capture._packed = packed  # type: ignore[misc]  # noqa: SLF001 - as above


def packed_body(capture: Capture) -> PackedBody | None:
    """What was done ahead for a capture, if anything was."""
    found = capture._packed  # noqa: SLF001 - as above
    return found if isinstance(found, PackedBody) else None


def _stored_head(capture: Capture) -> bytes:
    """What stands before the body in the block of a record."""
    if capture.made:
        return b""
    return head_without_chunks(capture) if is_chunked(capture) else capture.raw_head


def _stored(data: bytes) -> bytes:
    """Blocks of deflate that hold some bytes as they are; none is the last one of its stream."""
    blocks: list[bytes] = []
    for begin in range(0, len(data), _LONGEST_STORED):
        some = data[begin : begin + _LONGEST_STORED]
        blocks += (b"\0", len(some).to_bytes(2, "little"), (len(some) ^ 0xFFFF).to_bytes(2, "little"), some)
    return b"".join(blocks)


def _joined_crc(first: int, second: int, size: int) -> int:
    """The CRC-32 of two strings, from that of each and the size of the second, as ``crc32_combine`` of zlib finds it.

    >>> _joined_crc(zlib.crc32(b"one "), zlib.crc32(b"other"), 5) == zlib.crc32(b"one other")
    True
    """
    power, square = 1 << 31, 1 << 23  # polynomials whose highest bit is their lowest power: 1, and x to the eighth
    while size:
        if size & 1:
            power = _product(square, power)
        square = _product(square, square)
        size >>= 1
    return _product(power, first) ^ second


def _product(one: int, other: int) -> int:
    """The product of two polynomials modulo that of CRC-32."""
    found = 0
    for place in range(31, -1, -1):
        if one >> place & 1:
            found ^= other
        other = other >> 1 ^ (_CRC_32 if other & 1 else 0)
    return found


_CRC_32 = 0xEDB88320


def header(name: str, value: str) -> str:
    """A line of a record's head; a ValueError if the value would be more than a line."""
    if "\r" in value or "\n" in value:
        msg = f"no WARC header can hold {name}: {value!r}"
        raise ValueError(msg)
    return f"{name}: {value}\r\n"


def block_digests(records: Sequence[WarcRecord]) -> list[str]:
    """The digest of the block of each record."""
    found = []
    for record in records:
        if record.packed is not None:
            found.append(record.packed.block_digest)
            continue
        first, *rest = record.block or (b"",)
        digest = hashlib.sha1(first, usedforsecurity=False)
        for piece in rest:
            digest.update(piece)
        found.append(digest.digest())
    return written(found)


_SMALL = 1_024
"""Bytes of a block that is compressed in the quickest way."""
_GZIP_HEAD = bytes([0x1F, 0x8B, 8, 0, 0, 0, 0, 0, 0, 255])
"""Of a gzip member (RFC 1952): deflate, no date, made anywhere."""


@cache
def _gzip() -> tuple[Any, int]:
    """What compresses, and its word for gzip without a head."""
    isal = require("isal.igzip_lib", "crawl")
    return isal.compress, isal.COMP_GZIP_NO_HDR


def _by_chance() -> str:
    return _urn(os.urandom(16), _BY_CHANCE)


def warcinfo(when: float, fields: Mapping[str, str]) -> WarcRecord:
    """The first record of a file: who made it, and how."""
    for name, value in fields.items():
        if not value.isprintable():
            raise ConfigError(
                f"The {name} {value!r} of the WARC files does not fit on one line.", "Use printable characters only."
            )
    block = "".join(f"{name}: {value}\r\n" for name, value in fields.items() if value).encode()
    return WarcRecord("warcinfo", warc_date(when), _FIELDS, (block,), "", _by_chance())


def document(name: str, when: float, block: bytes) -> WarcRecord:
    """A JSON document about what the archive holds, as a metadata record.

    ``name`` is a URN, not the URL of a page: else indexes would list the document as a capture of that page.
    """
    return WarcRecord("metadata", warc_date(when), _JSON, (block,), header("WARC-Target-URI", name), _by_chance())


VISITS_FIELD = "captures"
"""The field of a ``warcinfo`` record that says what the captures of a file are."""
VISITS_VALUE = "one visit each unless Recrawl-Auxiliary"
AUXILIARY = "Recrawl-Auxiliary"
"""The header of a record that is no visit of a page: robots.txt, a sitemap, one of several requests for a page."""


def as_auxiliary(record: WarcRecord) -> WarcRecord:
    """The same record, marked as no visit of a page."""
    return record._replace(headers=record.headers + header(AUXILIARY, "yes"))


def records_of(
    capture: Capture, digest: str, revisit_of: CaptureRef | None, about: Mapping[str, str]
) -> tuple[CaptureRef, list[WarcRecord]]:
    """The records of one capture with this payload digest, the response or revisit first.

    Before them what a later capture may refer to.

    A capture that repeats ``revisit_of``, because the server said 304 or the payload is the same, becomes a
    revisit of it; any other is kept in full. ``about`` are further fields for a metadata record.
    """
    date = warc_date(capture.time)
    not_modified = capture.status == NOT_MODIFIED and revisit_of is not None
    if revisit_of is not None and not_modified:
        ref, main = revisit_of, _not_modified(capture, date, revisit_of)
    elif revisit_of is not None and revisit_of.payload_digest == digest and not capture.truncated:
        ref, main = revisit_of, _identical(capture, date, revisit_of)
    else:
        ref = _ref(date, capture.url, capture.time, digest)
        main = (_resource if capture.made else _response)(capture, date, ref)
    beside = f"{header('WARC-Target-URI', capture.url)}WARC-Concurrent-To: <{main.id}>\r\n"
    records = [main]
    if capture.raw_request:
        records.append(WarcRecord("request", date, _REQUEST, (capture.raw_request,), beside, _of_request(main.id)))
    trailers = _trailers(capture) if is_chunked(capture) and not not_modified else b""
    if not_modified or about or trailers:
        said = _said(capture) if not_modified else trailers
        records.append(WarcRecord("metadata", date, _FIELDS, (said, _about(capture, about)), beside, _by_chance()))
    return ref, records


def response_ref(url: str, when: float, payload_digest: str) -> CaptureRef:
    """The response record of a capture, named without looking for it: its id follows from URL and date.

    >>> response_ref("http://example.org/", 0.0, "sha1:3I42H3S6NNFQ2MSVX7XZKYAYSCX5QBYJ").record_id
    'urn:uuid:9fcb7e26-35d1-51ca-bdbd-4f573915cf9a'
    """
    return _ref(warc_date(when), url, when, payload_digest)._replace(chunked=None)


def _ref(date: str, url: str, when: float, payload_digest: str) -> CaptureRef:
    name = hashlib.sha1(_URLS + f"{date} {url}".encode(), usedforsecurity=False).digest()
    return CaptureRef(_urn(name, _BY_NAME), url, when, payload_digest)


def _urn(sixteen: bytes, version: int) -> str:
    """A UUID of RFC 9562 as a URN, from its bytes; many times as fast as the standard library's way through an object.

    >>> _urn(bytes(range(16)), 4)
    'urn:uuid:00010203-0405-4607-8809-0a0b0c0d0e0f'
    """
    digits = sixteen.hex()
    variant = _VARIANT[sixteen[8] >> 4]
    return f"urn:uuid:{digits[:8]}-{digits[8:12]}-{version}{digits[13:16]}-{variant}{digits[17:20]}-{digits[20:32]}"


def _of_request(id_: str) -> str:
    """The id of the request that led to a record: the same UUID in the version that everybody may make as he likes.

    >>> _of_request("urn:uuid:9fcb7e26-35d1-51ca-bdbd-4f573915cf9a")
    'urn:uuid:9fcb7e26-35d1-81ca-bdbd-4f573915cf9a'
    """
    return f"{id_[:_VERSION]}8{id_[_VERSION + 1 :]}"


_VERSION = len("urn:uuid:00000000-0000-")
"""Where the URN of a UUID says its version."""
_VARIANT = "89ab" * 4
"""The digit of a UUID that says by whose rules it was made: its upper two bits are fixed."""


def is_chunked(capture: Capture) -> bool:
    """Whether an answer says that its body came in chunks."""
    return "chunked" in capture.header("transfer-encoding").lower()


def head_without_chunks(capture: Capture) -> bytes:
    r"""The head of a chunked answer as it is stored: it says of the body how it is, and of the chunks that they were.

    >>> head_without_chunks(Capture("http://x/", 0.0, 200, b"HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n"))
    b'HTTP/1.1 200 OK\r\nX-Orig-transfer-encoding: chunked\r\n\r\n'
    """
    head = _FRAMING.sub(rb"X-Orig-\1", capture.raw_head)
    codings = capture.header("transfer-encoding").split(",")
    others = ", ".join(one.strip() for one in codings if one.strip() and "chunked" not in one.lower())
    if not others:
        return head
    status_line, end, fields = head.partition(b"\n")
    return status_line + end + b"Transfer-Encoding: " + others.encode("latin-1") + b"\r\n" + fields


_FRAMING = re.compile(rb"(?im)^(transfer-encoding[ \t]*:|content-length[ \t]*:)")
_TRAILERS = re.compile(rb"(?:\A|\n)0+[ \t]*(?:;[^\r\n]*)?\r?\n((?:[!#-'*+.0-9A-Z^-z|~-]+:[^\r\n]*\r?\n)+)(?:\r?\n)?\Z")
_LONGEST_TRAILERS = 16 << 10


def _trailers(capture: Capture) -> bytes:
    """Fields that came behind the last chunk, each as a field: they are no part of the stored body."""
    if capture.raw_body.endswith(b"0\r\n\r\n"):  # nearly always
        return b""
    found = _TRAILERS.search(capture.raw_body[-_LONGEST_TRAILERS:])
    lines = found[1].splitlines() if found else ()
    return b"".join(b"httpTrailer: " + line + b"\r\n" for line in lines)


def _response(capture: Capture, date: str, ref: CaptureRef) -> WarcRecord:
    return _with_body("response", capture, date, _RESPONSE, ref)


def _with_body(kind: str, capture: Capture, date: str, content_type: str, ref: CaptureRef) -> WarcRecord:
    """A record that holds all that came."""
    packed, head = packed_body(capture), _stored_head(capture)
    if packed is not None and packed.deflated:
        return WarcRecord(kind, date, content_type, (head,), _in_full(capture, ref), ref.record_id, packed)
    body = capture.raw_body if capture.made else unchunked(capture)
    return WarcRecord(kind, date, content_type, (head, body), _in_full(capture, ref), ref.record_id)


def _resource(capture: Capture, date: str, ref: CaptureRef) -> WarcRecord:
    """The body alone: what we read from a file or put together came without a head (WARC 1.1, 6.4)."""
    media_type = capture.header("content-type") or "application/octet-stream"
    header("Content-Type", media_type)
    return _with_body("resource", capture, date, media_type, ref)


def _in_full(capture: Capture, ref: CaptureRef) -> str:
    """The headers of a record that holds all that came."""
    cut = header("WARC-Truncated", capture.truncated) if capture.truncated else ""
    return f"{_target(capture)}{header('WARC-Payload-Digest', ref.payload_digest)}{cut}"


def _identical(capture: Capture, date: str, original: CaptureRef) -> WarcRecord:
    """W6: the head is kept, the body is dropped.

    The head says that the body is chunked only if the original is stored in chunks: replay puts the two together.
    """
    head = capture.raw_head if original.chunked or not is_chunked(capture) else head_without_chunks(capture)
    headers = f"{_target(capture)}{_refers(original, 'identical-payload-digest')}WARC-Truncated: length\r\n"
    return WarcRecord("revisit", date, _RESPONSE, (head,), headers, _by_chance())


def _not_modified(capture: Capture, date: str, original: CaptureRef) -> WarcRecord:
    """W7: an empty block."""
    headers = _target(capture) + _refers(original, "server-not-modified")
    return WarcRecord("revisit", date, _RESPONSE, (), headers, _by_chance())


def _target(capture: Capture) -> str:
    address = header("WARC-IP-Address", capture.ip) if capture.ip else ""
    protocol = header("WARC-Protocol", capture.protocol) if capture.protocol else ""
    return f"{header('WARC-Target-URI', capture.url)}{address}{protocol}"


def _refers(original: CaptureRef, profile: str) -> str:
    return "".join(
        (
            f"WARC-Profile: {PROFILES}{profile}\r\n",
            header("WARC-Refers-To", f"<{original.record_id}>"),
            header("WARC-Refers-To-Target-URI", original.url),
            header("WARC-Refers-To-Date", warc_date(original.time)),
            header("WARC-Payload-Digest", original.payload_digest),
        )
    )


def _said(capture: Capture) -> bytes:
    """The head of an answer as fields: the status line, then each header as it was written."""
    status, *headers = capture.raw_head.splitlines()
    lines = [b"httpStatusLine: " + status, *(b"httpHeader: " + line for line in headers if line.strip())]
    return b"".join(line + b"\r\n" for line in lines)


def _about(capture: Capture, about: Mapping[str, str]) -> bytes:
    """How long the fetch took, and what else is known of it, in the words of W4."""
    fields = {**about, "fetchTimeMs": str(round(capture.duration * 1000))}
    for name, value in fields.items():
        if not (name + value).isprintable():
            msg = f"the metadata field {name} cannot hold {value!r}"
            raise ValueError(msg)
    return "".join(f"{name}: {value}\r\n" for name, value in fields.items()).encode()


def warc_date(when: float) -> str:
    """WARC-Date with microseconds: the same text for the same capture, in its own record and in a Refers-To.

    >>> warc_date(1_700_000_000.25)
    '2023-11-14T22:13:20.250000Z'
    """
    second, millionths = seconds_and_millionths(when)
    return f"{iso_second(second)}.{millionths:06}Z"


def sha1(data: bytes) -> str:
    """A digest as WARC and CDX write it.

    >>> sha1(b"")
    'sha1:3I42H3S6NNFQ2MSVX7XZKYAYSCX5QBYJ'
    """
    return "sha1:" + base32(hashlib.sha1(data, usedforsecurity=False).digest())


def written(digests: Sequence[bytes]) -> list[str]:
    """SHA-1 digests as WARC and CDX write them."""
    return ["sha1:" + text for text in base32_of_many(digests)]


def payload_sha1(capture: Capture) -> bytes:
    """The digest of what was sent, without its transfer-encoding (conventions W5), as twenty bytes."""
    if (packed := packed_body(capture)) is not None:
        return packed.payload_digest
    payload = unchunked(capture)
    if payload is capture.raw_body:
        return capture.body_digest()
    return hashlib.sha1(payload, usedforsecurity=False).digest()


def base32(digest: bytes) -> str:
    """Twenty bytes in base32 (RFC 4648), quicker than the standard library by looking up two letters at a time.

    >>> base32(bytes(range(20)))
    'AAAQEAYEAUDAOCAJBIFQYDIOB4IBCEQT'
    """
    number = int.from_bytes(digest, "big")
    return "".join([_PAIRS[number >> place & 1023] for place in range(150, -1, -10)])


def base32_of_many(digests: Sequence[bytes]) -> list[str]:
    """The same of many: many times as fast.

    >>> base32_of_many([bytes(range(20))] * 9)[8]
    'AAAQEAYEAUDAOCAJBIFQYDIOB4IBCEQT'
    """
    if len(digests) < _MANY:
        return [base32(digest) for digest in digests]
    fives = np.zeros((4 * len(digests), 8), np.uint8)
    fives[:, 3:] = np.frombuffer(b"".join(digests), np.uint8).reshape(-1, 5)
    letters = _BYTES[fives.view(">u8").astype(np.uint64) >> _PLACES & 31]
    text = letters.tobytes().decode("ascii")
    return [text[place : place + 32] for place in range(0, len(text), 32)]


def from_base32(text: str) -> bytes:
    """The twenty bytes that :func:`base32` wrote.

    >>> from_base32("AAAQEAYEAUDAOCAJBIFQYDIOB4IBCEQT") == bytes(range(20))
    True
    """
    return int(text.translate(_AS_PYTHON), 32).to_bytes(20, "big")


_LETTERS = "ABCDEFGHIJKLMNOPQRSTUVWXYZ234567"
_MANY = 8
"""Digests from which on it is quicker to take them together."""
_BYTES = np.frombuffer(_LETTERS.encode(), np.uint8)
_PLACES = np.arange(35, -1, -5, dtype=np.uint64)
_PAIRS = [first + second for first in _LETTERS for second in _LETTERS]
_AS_PYTHON = str.maketrans(_LETTERS, "0123456789abcdefghijklmnopqrstuv")
"""To the digits of ``int(text, 32)``."""
