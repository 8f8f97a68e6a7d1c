"""Decode a body: from the bytes on the wire to the bytes and the text of the author.

A body has two encodings: transfer-encoding (chunks, of this one connection) and content-encoding (gzip or deflate, of
the file). WARC digests remove the first only, verdicts both.
"""

from __future__ import annotations

import codecs
import re
import zlib
from functools import cache, lru_cache
from typing import Any

from recrawl.errors import InputError, require
from recrawl.model import Capture

MAX_DECODED = 64 * 1024 * 1024
"""Bytes a body may unfold to."""

CHUNK_HEAD = re.compile(rb"[ \t]*([0-9A-Fa-f]{1,16})[ \t]*(?:;[^\r\n]*)?\r?\n")
"""What stands before each chunk."""
CUT_FRAME = re.compile(rb"[\r\n]{0,2}[0-9A-Fa-f]{0,16}[ \t]*(?:;[^\r\n]*)?\r?")
"""What can be left of it where a body is cut."""
_LONG_CHUNK = 4_096
"""Bytes of a chunk that is not copied twice."""
MOST_CHUNKS = 200_000
"""Chunks that are taken apart, in 0.2 s; what follows is taken as it is. Only chunks of less than 300 bytes, which
nobody sends in earnest, come to more before a body is as long as we keep it."""
_CHARSET = re.compile(r"charset\s*=\s*[\"']?([^\s\"';,]+)", re.IGNORECASE)
_BOMS = ((codecs.BOM_UTF8, "utf-8"), (codecs.BOM_UTF16_LE, "utf-16-le"), (codecs.BOM_UTF16_BE, "utf-16-be"))
_LINK = re.compile(r"""(\b(?:href|src)\s*=\s*)("[^"]*"|'[^']*'|[^\s"'>]+)""", re.IGNORECASE)
_FRAGMENT = re.compile("(?<!&)#")
"""Where the fragment of a link starts; behind an ampersand it is the number of a character."""
_SENT_AS_IT_IS = frozenset(range(0x21, 0x7F)) - frozenset(b"\"#<>'")
"""Bytes of a query that need no percent sign."""
_GZIP_WINDOW = 16 + zlib.MAX_WBITS
_MAX_LAYERS = 4
"""Nobody encodes a body more often than this in earnest."""
_MAX_MEMBERS = 100
_AT_ONCE = 1 << 16


def unchunked(capture: Capture) -> bytes:
    r"""The body without transfer-encoding: what WARC-Payload-Digest is of (conventions W5).

    A body cut in the middle of a chunk gives the part received. A body that is not chunked, whatever its header says,
    is returned unchanged.

    >>> unchunked(Capture("http://x/", 0.0, 200, b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n",
    ...     b"5\r\nhello\r\n4;n=1\r\n you\r\n0\r\n\r\n"))
    b'hello you'
    """
    if "chunked" not in capture.header("transfer-encoding").lower():
        return capture.raw_body
    raw, position = capture.raw_body, 0
    view, parts = memoryview(raw), list[bytes | memoryview]()
    while found := CHUNK_HEAD.match(raw, position):
        size, start = int(found[1], 16), found.end()
        if size == 0:
            break
        position = min(start + size, len(raw))  # a size that fits no pointer is only a chunk that is cut
        parts.append(view[start:position] if size > _LONG_CHUNK else raw[start:position])
        position += 2 if raw.startswith(b"\r\n", position) else raw.startswith(b"\n", position)
        if len(parts) == MOST_CHUNKS:
            parts.append(view[position:])
            break
    else:
        cut_in_frame = (parts or capture.truncated) and CUT_FRAME.fullmatch(raw, position)
        if not cut_in_frame:
            parts.append(view[position:])
    return b"".join(parts)


def decoded(capture: Capture, limit: int = MAX_DECODED) -> bytes:
    """The body without transfer- and content-encoding, at most ``limit`` bytes.

    Raises:
        InputError: the encoding is unknown or broken, or the body unfolds to more than ``limit``.
    """
    body = unchunked(capture)
    layers = [name.strip().lower() for name in capture.header("content-encoding").split(",")]
    layers = [name for name in layers if name not in ("", "identity")]
    if len(layers) > _MAX_LAYERS:
        raise InputError(f"the body is encoded {len(layers)} times", source=capture.url)
    for name in reversed(layers if body else []):
        body = unfolded(body, name, limit, capture.url)
    if len(body) > limit:
        raise InputError(f"the body is longer than {limit} bytes", source=capture.url)
    return body


def unfolded(body: bytes, name: str, limit: int = MAX_DECODED, source: str = "") -> bytes:
    """Take one layer of content-encoding (``gzip`` or ``deflate``) off.

    Raises:
        InputError: the layer is unknown or broken, or what is under it is longer than ``limit``.
    """
    if name in ("gzip", "x-gzip"):
        windows: tuple[int, ...] = (_GZIP_WINDOW,)
    elif name == "deflate":
        windows = (zlib.MAX_WBITS, -zlib.MAX_WBITS)  # RFC 9110 means zlib, some servers send it bare
    else:
        raise InputError(f"the content-encoding {name!r} is not one we asked for", source=source)
    for window in windows:
        try:
            return _inflate(body, window, limit, source)
        except zlib.error as error:
            broken = error
    raise InputError(f"the {name} encoding of the body is broken ({broken})", source=source)


def _inflate(body: bytes, window: int, limit: int, source: str) -> bytes:
    """One or several members, one after the other; bytes behind the last one are dropped, as browsers do. O(n)."""
    parts: list[bytes] = []
    size = at = members = 0
    while at < len(body):
        if members == _MAX_MEMBERS:
            raise InputError(f"the body has more than {_MAX_MEMBERS} gzip members", source=source)
        member, unpacked = zlib.decompressobj(window), list[bytes]()
        try:
            while not member.eof and at < len(body):
                piece = body[at : at + _AT_ONCE]  # not all that is left: each member would copy it
                unpacked.append(member.decompress(piece, limit + 1 - size))
                at += len(piece) - len(member.unused_data)
                size += len(unpacked[-1])
                if size > limit:
                    raise InputError(f"the body unfolds to more than {limit} bytes", source=source)
        except zlib.error:
            if members:
                break
            raise
        if not member.eof:
            raise zlib.error("it ends too early")
        parts += unpacked
        members += 1
    return b"".join(parts)


def media_type(capture: Capture) -> str:
    r"""The media type the server names, lower-case and without parameters; empty text if it names none.

    >>> media_type(Capture("http://x/", 0.0, 200, b"HTTP/1.1 200 OK\r\nContent-Type: Text/HTML; charset=x\r\n\r\n"))
    'text/html'
    """
    return capture.header("content-type").partition(";")[0].strip().lower()


def text_of(body: bytes, content_type: str) -> str:
    """The characters of a decoded body: by byte order mark, then by the header, then by its own content.

    Names mean what browsers take them for (iso-8859-1 is windows-1252). Never fails: bytes that do not fit
    their encoding are read by another one or dropped.

    >>> text_of("café".encode("latin-1"), "text/html; charset=iso-8859-1")
    'café'
    """
    return _read(body, content_type)[0]


def html_of(body: bytes, content_type: str) -> str:
    """The same of a page, with the queries of its links written as a browser would send them.

    A browser writes what is not ASCII in a query in the encoding of the page (WHATWG: percent-encode after encoding),
    all else in UTF-8.

    >>> html_of('<a href="/café?q=café#é">'.encode("latin-1"), "text/html; charset=iso-8859-1")
    '<a href="/café?q=caf%E9#é">'
    """
    text, encoding = _read(body, content_type)
    if encoding.startswith("utf-") or text.isascii():
        return text
    return _LINK.sub(lambda link: link[1] + _sent(link[2], encoding), text)


def _read(body: bytes, content_type: str) -> tuple[str, str]:
    """The characters, and the name of their encoding."""
    for mark, name in _BOMS:
        if body.startswith(mark):
            return body[len(mark) :].decode(name, "replace"), name
    charset = _charset(content_type)
    if charset == "utf-8":
        try:
            return body.decode(), charset
        except UnicodeDecodeError:
            pass  # then it is read as well as can be, below
    encoding = _encodings()
    name = charset or encoding.detect_encoding(body, from_html_meta=True)
    return str(encoding.bytes_to_str(body, name)), str(name)


def _sent(written: str, encoding: str) -> str:
    """A link whose query is written in an encoding; as it is, where Python does not know that."""
    path, mark, rest = written.partition("?")
    fragment = _FRAGMENT.search(rest)
    end = fragment.start() if fragment else len(rest)
    query = rest[:end]
    if query.isascii() or "#" in path.replace("&#", ""):
        return written
    try:
        sent = "".join(one if one.isascii() else _percent(one, encoding) for one in query)
    except LookupError:
        return written
    return f"{path}{mark}{sent}{rest[end:]}"


def _percent(character: str, encoding: str) -> str:
    try:
        sent = character.encode(encoding)
    except UnicodeEncodeError:
        return f"%26%23{ord(character)}%3B"
    return "".join(chr(byte) if byte in _SENT_AS_IT_IS else f"%{byte:02X}" for byte in sent)


@lru_cache(maxsize=256)
def _charset(content_type: str) -> str | None:
    """The encoding that a header names, as browsers call it; ``None`` if it names none that they know."""
    named = _CHARSET.search(content_type)
    found: str | None = _encodings().map_encoding_to_html5(named[1], fallback_utf8=False) if named else None
    return found


@cache
def _encodings() -> Any:  # noqa: ANN401 - a module of resiliparse
    return require("resiliparse.parse.encoding", "crawl")
