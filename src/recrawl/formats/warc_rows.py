"""Rows of captures on their way into record batches."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from recrawl.errors import InputError, require
from recrawl.formats.captures import NO_SIZE, RecordKind, schema

ROWS = 16_384
_GIVEN = ("url", "time", "kind", "status", "mime", "digest", "size", "offset", "length")
_CHARACTERS = 16 << 20
"""A batch ends early when its URLs are this long together."""


Row = tuple[str, float, RecordKind, int, str, str, int]
"""URL, time, kind, status, media type, digest and size of a capture: as in the schema, but for its place in the file,
which is known only later. A plain tuple, because millions of them are made."""


class Rows:
    """Captures of one file, collected into batches."""

    def __init__(self, file: str) -> None:
        self._file = file
        self._rows: list[tuple[Any, ...]] = []
        self._characters = 0

    def add(self, row: Row, offset: int = NO_SIZE, length: int = NO_SIZE) -> bool:
        """Take a row; whether it is time to take the batch."""
        rows = self._rows
        rows.append((*row, offset, length))
        self._characters += len(row[0])
        return len(rows) >= ROWS or self._characters >= _CHARACTERS

    def rest(self, _damage: InputError | None = None) -> Iterator[Any]:
        """What is there, as the last batch."""
        if self._rows:
            yield self.take()

    def take(self) -> Any:  # noqa: ANN401 - a pyarrow.RecordBatch
        """The rows so far as a batch; begins anew."""
        pa = require("pyarrow", "columns")
        named = schema()
        given = dict(zip(_GIVEN, zip(*self._rows, strict=True), strict=True))
        columns = [
            pa.array(given[field.name], field.type)
            if field.name in given
            else pa.repeat(pa.scalar(self._file if field.name == "file" else "", field.type), len(self._rows))
            for field in named
        ]
        batch = pa.record_batch(columns, schema=named)
        self._rows, self._characters = [], 0
        return batch
