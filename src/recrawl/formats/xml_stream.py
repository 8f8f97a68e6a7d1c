"""Parses untrusted XML as a stream: no tree, no document types, a bounded number of bytes.

Entity bombs need a document type, and neither sitemaps nor feeds need one: a file with its own declarations is refused.
(Old RSS names an external one; it is never fetched.)
"""

from __future__ import annotations

import codecs
import re
import zlib
from collections.abc import Iterable, Iterator
from itertools import chain
from typing import NamedTuple, Protocol
from xml.parsers import expat

from recrawl.errors import InputError, RecrawlError

GZIP = b"\x1f\x8b"
_AT_ONCE = 65_536
"""Bytes given to the parser in one go; it keeps a copy of them."""
_DEEPEST = 1_000
"""Elements inside of each other that are read; sitemaps have three, feeds some more."""
_GZIP_WINDOW = zlib.MAX_WBITS | 16
_BOM = b"\xef\xbb\xbf"
_WIDE = (b"\xff\xfe", b"\xfe\xff")
_DECLARED = re.compile(rb"<\?xml[^>]{0,200}?encoding\s*=\s*[\"']([A-Za-z0-9._-]+)")
_NATIVE = frozenset({"utf-8", "utf8", "utf-16", "us-ascii", "iso-8859-1"})
"""What the parser reads itself."""

_NO_ENCODINGS = frozenset({"idna", "punycode", "raw-unicode-escape", "unicode-escape", "undefined", "utf-7"})
"""Codecs of text that no file is in: some take quadratic time, and all can hide what the text says."""


class StopReading(Exception):  # noqa: N818 - not an error: the reader wants no more
    """Raised by a reader that has all it will take; the text says why."""


class XmlStop(NamedTuple):
    """Where reading ended, and why it was not the end of the file."""

    why: str = ""
    """Empty if it was the end."""
    position: int = 0
    """Byte, in the unpacked file."""


class XmlReader(Protocol):
    """Who is told. Names come as ``namespace}name``, or bare."""

    def start(self, tag: str, attributes: dict[str, str]) -> None:
        """An element begins."""
        ...

    def data(self, text: str) -> None:
        """Text between two tags, in one piece unless it is very long."""
        ...

    def end(self, tag: str) -> None:
        """An element ends."""
        ...

    def failed(self, error: Exception, position: int) -> bool:
        """Our own code failed at this byte of the unpacked file; whether the rest can be read."""
        ...


def tell(data: bytes, reader: XmlReader, source: str, limit: int) -> XmlStop:
    """Read XML, plain or gzipped, and tell the reader.

    Raises:
        InputError: there is a document type.
    """
    pieces = unpacked(data, limit)
    passed = len(data) - len(trimmed(data))
    parser: expat.XMLParserType | None = None
    try:
        first = next(pieces, b"")
        name = _encoding(first)
        parser = _parser(reader, source, "utf-8" if name else None)
        why = _feed(parser, _rewritten(chain([first], pieces), name))
    except (expat.ExpatError, zlib.error, ValueError, LookupError, StopReading) as error:
        why = str(error)
    reached = max(parser.CurrentByteIndex, 0) if parser is not None else 0
    return XmlStop(why, passed + reached)


def _feed(parser: expat.XMLParserType, pieces: Iterator[bytes]) -> str:
    """Give the parser all pieces; returns why there are no more, empty if this is the end.

    It starts an unfinished token again with each piece: as long as it gets nowhere, pieces grow, or one comment of
    50 MB would be read a thousand times.
    """
    waiting: list[bytes] = []
    size, wanted, reached, stopped = 0, _AT_ONCE, -1, ""
    while True:
        try:
            piece = next(pieces, None)
        except (zlib.error, StopReading) as error:
            stopped = str(error)
            break
        if piece is None:
            break
        waiting.append(piece)
        size += len(piece)
        if size >= wanted:
            parser.Parse(b"".join(waiting), False)
            wanted = wanted * 2 if parser.CurrentByteIndex == reached else _AT_ONCE
            waiting, size, reached = [], 0, parser.CurrentByteIndex
    parser.Parse(b"".join(waiting), not stopped)
    return stopped


def _parser(reader: XmlReader, source: str, encoding: str | None) -> expat.XMLParserType:
    parser = expat.ParserCreate(encoding, "}")
    parser.buffer_text = True
    depth = 0

    def start(tag: str, attributes: dict[str, str]) -> None:
        nonlocal depth
        depth += 1
        if depth > _DEEPEST:  # the parser remembers each of them
            raise StopReading(f"its elements are nested more than {_DEEPEST} deep")
        try:
            reader.start(tag, attributes)
        except Exception as error:  # noqa: BLE001 - one entry must not end the reading of all others
            failed(error)

    def end(tag: str) -> None:
        nonlocal depth
        depth -= 1
        try:
            reader.end(tag)
        except Exception as error:  # noqa: BLE001 - one entry must not end the reading of all others
            failed(error)

    def failed(error: Exception) -> None:
        if isinstance(error, (RecrawlError, StopReading)) or not reader.failed(error, parser.CurrentByteIndex):
            raise error

    parser.StartElementHandler = start
    parser.CharacterDataHandler = reader.data
    parser.EndElementHandler = end

    def doctype(name: str, _system: str | None, _public: str | None, inside: int) -> None:
        if inside or name.lower() != "rss":
            raise InputError("it has a document type, which neither sitemaps nor feeds need", source=source)

    parser.StartDoctypeDeclHandler = doctype
    return parser


def unpacked(data: bytes, limit: int) -> Iterator[bytes]:
    """The bytes in pieces, unzipped if need be, without leading blanks (which XML forbids and people write).

    Raises:
        zlib.error: the gzip is broken or ends early, after what came before.
        Enough: there is more than ``limit``, after the first ``limit`` bytes.
    """
    left, begun = limit, False
    for piece in _inflated(data) if data.startswith(GZIP) else _cut(data):
        kept = piece[:left]
        if not begun:
            kept = trimmed(kept)
        begun |= bool(kept)
        if kept:
            yield kept
        left -= len(piece)
        if left < 0:
            raise StopReading(f"it is longer than {limit} bytes")


def trimmed(data: bytes) -> bytes:
    """Without the mark of UTF-8 and the blanks that come first."""
    return data if data.startswith(_WIDE) else data.removeprefix(_BOM).lstrip()


def _cut(data: bytes) -> Iterator[bytes]:
    for start in range(0, len(data), _AT_ONCE):
        yield data[start : start + _AT_ONCE]


def _inflated(data: bytes) -> Iterator[bytes]:
    """All gzip members; what follows the last one is dropped, as browsers do."""
    rest, first = data, True
    while rest.startswith(GZIP) or first:
        member = zlib.decompressobj(_GZIP_WINDOW)
        while not member.eof:
            try:
                piece = member.decompress(rest, _AT_ONCE)
            except zlib.error as error:
                raise zlib.error(f"its gzip is broken: {error}") from error
            rest = member.unconsumed_tail
            if not piece and not rest and not member.eof:
                raise zlib.error("its gzip ends too early")
            yield piece
        rest, first = member.unused_data, False


def _encoding(first: bytes) -> str:
    """The encoding we must read for the parser; empty where it can itself.

    A declaration that can be read byte by byte and claims UTF-16 is wrong: such files are UTF-8.
    """
    found = _DECLARED.match(first)
    name = found[1].decode().lower() if found else ""
    if name.startswith(("utf-16", "ucs-2", "utf-32")):
        return "utf-8"
    return "" if name in _NATIVE else name


def _rewritten(pieces: Iterable[bytes], name: str) -> Iterator[bytes]:
    """The pieces in UTF-8; as they are if ``name`` is empty."""
    if not name:
        yield from pieces
        return
    "".encode(name)  # refuses codecs that are no encodings of text
    if codecs.lookup(name).name in _NO_ENCODINGS:
        raise LookupError(f"{name} is no encoding of files")
    decoder = codecs.getincrementaldecoder(name)("replace")
    for piece in pieces:
        yield decoder.decode(piece).encode()
    yield decoder.decode(b"", True).encode()
