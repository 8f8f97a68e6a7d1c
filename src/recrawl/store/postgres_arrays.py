"""Numpy arrays as parameters for PostgreSQL: the bytes the server reads, without a Python object per value."""

from __future__ import annotations

from typing import Any

import numpy as np
from psycopg import Connection
from psycopg.abc import DumperKey
from psycopg.adapt import Dumper, PyFormat
from psycopg.pq import Format

_TYPES: dict[type[np.generic], tuple[str, int, int]] = {
    np.int64: (">i8", 20, 1016),
    np.int32: (">i4", 23, 1007),
    np.int16: (">i2", 21, 1005),
    np.uint16: (">i4", 23, 1007),
    np.uint8: (">i2", 21, 1005),
    np.float64: (">f8", 701, 1022),
    np.float32: (">f4", 700, 1021),
}
"""Of each kind of number: how the server reads one, and its ids for the type and for an array of it (pg_type.dat)."""


class _ArrayDumper(Dumper):
    format = Format.BINARY

    def get_key(self, obj: Any, format: PyFormat) -> DumperKey:  # noqa: A002, ANN401, ARG002 - psycopg's signature
        return (self.cls, obj.dtype.type)

    def upgrade(self, obj: Any, format: PyFormat) -> Dumper:  # noqa: A002, ANN401, ARG002 - psycopg's signature
        dumper = _ArrayDumper(self.cls)
        dumper.oid = _TYPES[obj.dtype.type][2]
        return dumper

    def dump(self, obj: Any) -> bytes:  # noqa: ANN401 - psycopg's signature
        return array_bytes(obj)


def array_bytes(array: np.ndarray[Any, Any]) -> bytes:
    """A one-dimensional array as the server's array_recv wants it: dimensions, then each value behind its length."""
    number, type_id, _ = _TYPES[array.dtype.type]
    values = np.empty(len(array), np.dtype([("length", ">i4"), ("value", number)]))
    values["length"] = values.dtype["value"].itemsize
    values["value"] = array
    return np.array([1, 0, type_id, len(array), 1], ">i4").tobytes() + values.tobytes()


def register_arrays(connection: Connection[tuple[Any, ...]]) -> None:
    """Let the cursors of a connection take numpy arrays."""
    connection.adapters.register_dumper(np.ndarray, _ArrayDumper)
