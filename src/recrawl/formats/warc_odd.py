"""WARC records whose headers fastwarc does not understand, read line by line (WARC 1.1, 4).

Names of fields are the same in any case, the version too; a value may go on in lines that begin with a blank; values
are UTF-8. fastwarc wants ``Content-Length`` in these very letters and on one line, else it takes the record for
empty. This is the slow way, taken only where it fails, and then to the next damage: who writes one such record writes
more.
"""

from __future__ import annotations

import re
from typing import Any

from recrawl.formats.arc_stream import DamageError, Source
from recrawl.formats.warc_fields import text_of_bytes
from recrawl.formats.warc_payload import MAX_HEADERS

VERSION = re.compile(rb"WARC/[01]\.\d{1,2}[ \t]*\r?\n", re.IGNORECASE)
"""The line that begins a record."""
LENGTH = re.compile(rb"\d{1,15}")
"""What a length may look like."""


class Fields:
    """The fields of a record, asked for by their names in any case; of a field that is there twice, the first."""

    def __init__(self, lines: list[bytes]) -> None:
        self._values: dict[bytes, bytes] = {}
        name = b""
        for line in lines:
            if line[:1] in (b" ", b"\t"):
                if name:
                    self._values[name] = (self._values[name] + b" " + line.strip()).strip()
                continue
            written, colon, value = line.partition(b":")
            found = written.strip().lower()
            name = found if colon and found not in self._values else b""
            if name:
                self._values[name] = value.strip()

    def get_bytes(self, name: object, default: bytes | None = None) -> bytes | None:
        """The value of a field. ``name`` is text, bytes or one of fastwarc's names."""
        return self._values.get((name if isinstance(name, bytes) else str(name).encode()).lower(), default)

    def get(self, name: object, default: str | None = None) -> str | None:
        """The value of a field as text."""
        value = self.get_bytes(name)
        return default if value is None else text_of_bytes(value)


class OddRecord:
    """A record at the place where a source stands, with the parts of fastwarc's records that readers ask for.

    Raises:
        OSError: there is none, or it has no length.
    """

    def __init__(self, source: Source, types: Any) -> None:  # noqa: ANN401 - fastwarc's types of records
        if not VERSION.fullmatch(source.line()):
            raise DamageError("this is no line with a version of WARC")
        self.headers = Fields(_header_lines(source))
        given = self.headers.get_bytes(b"Content-Length")
        if given is None:
            raise DamageError("the record has no Content-Length")
        if not LENGTH.fullmatch(given):
            raise DamageError(f"the record cannot have a Content-Length of {given[:40].decode('latin-1')}")
        self.content_length = int(given)
        name = (self.headers.get(b"WARC-Type") or "").lower()
        self.record_type = getattr(types, name if name.isalpha() else "", types.unknown)
        self.reader = source
        source.limit(self.content_length)


def _header_lines(source: Source) -> list[bytes]:
    lines: list[bytes] = []
    size = 0
    while line := source.line().rstrip(b"\r\n"):
        size += len(line)
        if size > MAX_HEADERS:
            raise DamageError("the headers are too long for a WARC record")
        lines.append(line)
    return lines


class Unpacked(Source):
    """One frame of zstd or lz4, unpacked by fastwarc; what is beyond the record in it is not of interest."""

    def __init__(self, descriptor: int, stream: Any) -> None:  # noqa: ANN401 - a stream of fastwarc over the open file
        self._stream = stream
        super().__init__(descriptor, 0)

    def _load(self) -> bytes:
        data: bytes = self._stream.read(64 << 10)
        self._position += len(data)
        return data
