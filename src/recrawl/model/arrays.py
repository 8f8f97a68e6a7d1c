"""Types of columns, operations on ragged arrays that several modules share, and a cheap immutable dataclass."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, Literal, TypeAlias, TypeVar, dataclass_transform

import numpy as np
import numpy.typing as npt

FloatArray: TypeAlias = npt.NDArray[np.float64]
IntArray: TypeAlias = npt.NDArray[np.int64]
ByteArray: TypeAlias = npt.NDArray[np.uint8]
BoolArray: TypeAlias = npt.NDArray[np.bool_]
AnyArray: TypeAlias = npt.NDArray[Any]


def starts_of_runs(*columns: AnyArray) -> BoolArray:
    """True where any of the columns differs from the row before (and at row 0). O(n).

    >>> starts_of_runs(np.array([7, 7, 8, 8]), np.array([1, 1, 1, 2])).tolist()
    [True, False, True, True]
    """
    starts = np.zeros(len(columns[0]), dtype=np.bool_)
    if len(starts):
        starts[0] = True
    for column in columns:
        starts[1:] |= column[1:] != column[:-1]
    return starts


def ends_of_runs(*columns: AnyArray) -> BoolArray:
    """True where any of the columns differs from the row after (and at the last row). O(n).

    >>> ends_of_runs(np.array([7, 7, 8, 8]), np.array([1, 1, 1, 2])).tolist()
    [False, True, True, True]
    """
    starts = starts_of_runs(*columns)
    return np.append(starts[1:], True)[: len(starts)]


def order_by(major: IntArray, minor: FloatArray) -> IntArray | None:
    """The stable order that sorts by ``major``, then ``minor``; ``None`` if the rows already have it.

    O(n) for sorted input, else O(n log n): sort by ``minor``, pack ``major`` and the rank into one 64-bit
    key, and sort that (less than half the time of a lexical sort at 10⁷ rows). Keys that do not fit are
    sorted lexically.
    """
    ascending = major[1:] > major[:-1]
    ascending |= (major[1:] == major[:-1]) & (minor[1:] >= minor[:-1])
    if bool(ascending.all()):
        return None
    low = int(major.min())
    rank_bits = len(major).bit_length()
    if (int(major.max()) - low).bit_length() + rank_bits > 63:  # noqa: PLR2004 - bits of a signed key
        return np.lexsort((minor, major))
    by_minor = np.argsort(minor, kind="stable")
    key = major[by_minor] - low
    key <<= rank_bits
    key |= np.arange(len(major))
    key.sort()
    key &= (1 << rank_bits) - 1
    return by_minor[key]


def offsets_of(rows: IntArray, count: int) -> IntArray:
    """CSR offsets of ``rows`` (sorted row numbers) over ``count`` rows, empty ones included. O(n).

    >>> offsets_of(np.array([0, 0, 2]), 4).tolist()
    [0, 2, 2, 3, 3]
    """
    offsets = np.zeros(count + 1, dtype=np.int64)
    np.cumsum(np.bincount(rows, minlength=count), out=offsets[1:])
    return offsets


def ragged_search(
    offsets: IntArray, times: FloatArray, row: IntArray, time: FloatArray, *, after_equal: bool
) -> IntArray:
    """For each (row, time) the position in ``times`` of the first entry of that row later than it.

    Like ``np.searchsorted`` on one row, for all rows at once: with ``after_equal`` behind entries equal to the
    time, else before them. ``times`` is ascending in each row. Times are replaced by their rank among all times,
    so that row and time make one integer key. O((m + v) log m), and O(v log m) for one row.

    >>> offsets, times = np.array([0, 2, 3]), np.array([3.0, 5.0, 4.0])
    >>> ragged_search(offsets, times, np.array([0, 1]), np.array([3.0, 3.0]), after_equal=True).tolist()
    [1, 2]
    """
    side: Literal["left", "right"] = "right" if after_equal else "left"
    if len(offsets) == 2:  # noqa: PLR2004 - one row: the times are in order as they are
        return np.searchsorted(times, time, side=side).astype(np.int64)
    distinct, rank = np.unique(times, return_inverse=True)
    stride = len(distinct) + 1
    key = np.repeat(np.arange(len(offsets) - 1, dtype=np.int64), np.diff(offsets)) * stride + rank + 1
    wanted = row * stride + np.searchsorted(distinct, time, side=side)
    return np.searchsorted(key, wanted, side="right").astype(np.int64)


def times_known(
    page: IntArray, time: FloatArray, known_page: IntArray, known_time: FloatArray, within: float
) -> tuple[FloatArray, BoolArray]:
    """The same times, but for those within ``within`` seconds of a known time of the page: these become the known one.

    Also which these are. So a moment that two files tell with different precision is one moment. Of several known
    times the nearest is taken. O((n + k) log (n + k)).

    >>> times, met = times_known(np.array([1, 2]), np.array([5.0, 5.0]), np.array([1]), np.array([5.25]), 0.5)
    >>> times.tolist(), met.tolist()
    ([5.25, 5.0], [True, False])
    """
    found, met = time.copy(), np.zeros(len(time), np.bool_)
    count = len(known_page)
    if not len(page) or not count:
        return found, met
    order = np.lexsort((np.concatenate([known_time, time]), np.concatenate([known_page, page])))
    is_known, place = order < count, np.arange(len(order))
    before = np.maximum.accumulate(np.where(is_known, place, -1))[~is_known]
    after = np.minimum.accumulate(np.where(is_known, place, len(order))[::-1])[::-1][~is_known]
    rows = order[~is_known] - count
    best = np.full(len(rows), np.inf)
    for near in (before, after):
        there = (near >= 0) & (near < len(order))
        source = np.where(there, order[np.where(there, near, 0)], 0)
        there &= known_page[source] == page[rows]
        gap = np.where(there, np.abs(known_time[source] - time[rows]), np.inf)
        closer = (gap <= within) & (gap < best)
        found[rows[closer]], best[closer], met[rows[closer]] = known_time[source[closer]], gap[closer], True
    return found, met


T = TypeVar("T")


@dataclass_transform(frozen_default=True, field_specifiers=(field,))
def plain_value(described: type[T]) -> type[T]:
    """A dataclass that is not to be changed, for what is made for each page of a crawl.

    The type checker keeps it as it is, as it does with a frozen dataclass. At run time nothing does: to make a frozen
    one takes six times as long, and all those that a page needs a thirtieth of what a page takes.

    >>> from dataclasses import replace
    >>> @plain_value
    ... class Point:
    ...     x: int
    ...     y: int = 0
    >>> replace(Point(1), y=2), Point(1) in {Point(1, 0)}
    (Point(x=1, y=2), True)
    """
    return dataclass(slots=True, unsafe_hash=True)(described)
