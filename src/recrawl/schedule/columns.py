"""Columns that grow: append in amortised constant time, read as plain arrays."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from recrawl.model import AnyArray


class Columns:
    """Named columns of equal length with room to grow; the room doubles when it is used up.

    >>> table = Columns({"id": np.int64})
    >>> table.append(id=np.array([7, 8]))
    >>> table["id"].tolist()
    [7, 8]
    """

    def __init__(self, types: Mapping[str, type[np.generic]]) -> None:
        self._length = 0
        self._arrays = {name: np.empty(0, dtype) for name, dtype in types.items()}

    def __len__(self) -> int:
        return self._length

    def __getitem__(self, name: str) -> AnyArray:
        """A view of the column: writing to it changes the table; it is stale after the next append."""
        return self._arrays[name][: self._length]

    def empty(self) -> Columns:
        """The same columns without rows."""
        return Columns({name: column.dtype.type for name, column in self._arrays.items()})

    def append(self, **values: AnyArray) -> None:
        """Add rows, given as all columns."""
        added = {len(value) for value in values.values()}
        if added and (values.keys() != self._arrays.keys() or len(added) != 1):
            msg = f"all of {sorted(self._arrays)} are needed, of equal length"
            raise ValueError(msg)
        end = self._length + added.pop()
        for name, value in values.items():
            if end > len(self._arrays[name]):
                room = np.empty(max(end, 2 * self._length), self._arrays[name].dtype)
                room[: self._length] = self[name]
                self._arrays[name] = room
            self._arrays[name][self._length : end] = value
        self._length = end
