"""Rows of captures on their way into record batches."""

from __future__ import annotations

from typing import Any, NamedTuple

from recrawl.errors import require
from recrawl.formats.captures import NO_SIZE, NO_STATUS, RecordKind, schema

ROWS = 16_384
_CHARACTERS = 16 << 20
"""A batch ends early when its URLs are this long together."""


class Row(NamedTuple):
    """One capture, in the order of the schema but for its place in the file, which is known only later."""

    url: str
    time: float
    kind: RecordKind
    status: int = NO_STATUS
    mime: str = ""
    digest: str = ""
    size: int = NO_SIZE


class Rows:
    """Captures of one file, collected into batches."""

    def __init__(self, file: str) -> None:
        self._file = file
        self._rows: list[Row] = []
        self._places: list[tuple[int, int]] = []
        self._characters = 0

    def add(self, row: Row, offset: int = NO_SIZE, length: int = NO_SIZE) -> bool:
        """Take a row; whether it is time to take the batch."""
        self._rows.append(row)
        self._places.append((offset, length))
        self._characters += len(row.url)
        return len(self._rows) >= ROWS or self._characters >= _CHARACTERS

    def __len__(self) -> int:
        return len(self._rows)

    def take(self) -> Any:  # noqa: ANN401 - a pyarrow.RecordBatch
        """The rows so far as a batch; begins anew."""
        pa = require("pyarrow", "columns")
        url, time, kind, status, mime, digest, size = zip(*self._rows, strict=True)
        offset, length = zip(*self._places, strict=True)
        count = len(url)
        columns = [
            *(url, [""] * count, time, kind, status, mime, digest, size),
            *([self._file] * count, offset, length),
        ]
        batch = pa.record_batch(
            [pa.array(column, kind.type) for column, kind in zip(columns, schema(), strict=True)], schema=schema()
        )
        self._rows, self._places, self._characters = [], [], 0
        return batch
