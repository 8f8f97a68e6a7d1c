"""The log of requests: who asked for what, when, and what was sent."""

from __future__ import annotations

from dataclasses import dataclass, fields
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from recrawl.model import AnyArray, BoolArray, FloatArray, IntArray


class LoggedRequest(NamedTuple):
    """One request, logged when its header had arrived and before anything was sent."""

    time: float
    connection: int
    host: str
    path: str
    page: int
    method: str
    status: int
    conditional: bool
    agent: str
    bytes: int


@dataclass(frozen=True, slots=True)
class RequestLog:
    """All requests in order of arrival, as columns. Text columns are arrays of strings: ``log.host == name``."""

    sequence: IntArray
    """0, 1, 2, ...: the order in which the server took them up."""
    time: FloatArray
    """Arrival on the web's clock, seconds since the epoch."""
    connection: IntArray
    """Number of the connection that carried it."""
    host: AnyArray
    """From the request, lower-cased, without port."""
    path: AnyArray
    """With the query."""
    page: IntArray
    """Index of the page asked for; −1 for robots.txt, sitemaps, old addresses and what does not exist."""
    method: AnyArray
    status: IntArray
    conditional: BoolArray
    """It carried If-None-Match or If-Modified-Since."""
    agent: AnyArray
    bytes: IntArray
    """Body bytes sent, without chunk framing; fewer than announced if the answer was cut off."""

    def __len__(self) -> int:
        return len(self.time)

    @classmethod
    def of(cls, rows: list[LoggedRequest]) -> RequestLog:
        """Columns of the rows. O(n) Python."""
        text = np.dtypes.StringDType()
        dtypes: dict[str, npt.DTypeLike] = {"host": text, "path": text, "method": text, "agent": text}
        dtypes |= {"time": np.float64, "conditional": np.bool_}
        columns = zip(*rows, strict=True) if rows else iter([()] * len(LoggedRequest._fields))
        named = {
            name: np.array(column, dtype=dtypes.get(name, np.int64))
            for name, column in zip(LoggedRequest._fields, columns, strict=True)
        }
        return cls(sequence=np.arange(len(rows)), **named)

    def take(self, rows: AnyArray) -> RequestLog:
        """The requests at these positions, or where this mask is true."""
        return RequestLog(*(getattr(self, column.name)[rows] for column in fields(self)))
