"""Pages: the units of revisiting, as single values and as columns."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from recrawl.model.arrays import AnyArray, FloatArray, IntArray, plain_value


@dataclass(frozen=True, slots=True)
class Page:
    """One page, for the places that handle one at a time."""

    id: int
    host: int
    url: str
    key: str
    """SURT of the URL: the page's identity."""
    importance: float = 1.0
    discovered: float = 0.0


@plain_value
class Validators:
    """What a page last said about its version, for a conditional request and the next verdict. Empty where unknown."""

    etag: str = ""
    last_modified: str = ""
    digest: bytes = b""
    """Of the last body, decoded: SHA-1, 20 bytes."""
    text_digest: bytes = b""
    """Of the last body without noise: what the verdict compares."""
    mime: str = ""
    """Media type of the last body."""
    gone: bool = False
    """The last answer was that there is no such page."""
    links_read_at: float = -math.inf
    """When its links were last read: those seen then are the links of its last version."""


@dataclass(frozen=True, slots=True)
class Pages:
    """Pages as columns: what a policy needs to know beside their histories. URLs stay in the store."""

    id: IntArray
    host: IntArray
    importance: FloatArray
    """Weight w of the page in every objective; 1 is ordinary."""
    cost: FloatArray
    """Price c of one visit in units of budget; 1 is one request."""
    discovered: FloatArray
    """When the page was first heard of, seconds since the epoch."""

    def __len__(self) -> int:
        return len(self.id)

    @classmethod
    def of(
        cls,
        id: npt.ArrayLike,  # noqa: A002 - the column's name everywhere
        *,
        host: npt.ArrayLike = 0,
        importance: npt.ArrayLike = 1.0,
        cost: npt.ArrayLike = 1.0,
        discovered: npt.ArrayLike = 0.0,
    ) -> Pages:
        """Columns from anything array-like; a single value fills its column.

        >>> Pages.of([10, 11], host=[1, 2]).importance.tolist()
        [1.0, 1.0]
        """
        ids = np.asarray(id, dtype=np.int64)
        columns: list[AnyArray] = [np.asarray(host, dtype=np.int64)]
        columns += [np.asarray(value, dtype=np.float64) for value in (importance, cost, discovered)]
        return cls(ids, *(np.broadcast_to(column, ids.shape).copy() for column in columns))

    def take(self, rows: AnyArray | slice) -> Pages:
        """The pages at these positions, or where this mask is true."""
        return Pages(self.id[rows], self.host[rows], self.importance[rows], self.cost[rows], self.discovered[rows])
