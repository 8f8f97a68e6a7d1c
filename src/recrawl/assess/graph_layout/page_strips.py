"""Places for pages in a grid of strips, one mark a page: rows by directory, columns by type, along each by address.

The thesis draws pages in a cube of type, directory and address (SHARC 8.4). On paper the address runs inside each cell:
its pages follow each other from left to right, a few on top of each other. So a cell is the longer the more pages it
has, until it is full; then its pages move closer together.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from recrawl.model import FloatArray, IntArray

_STACK = 3
"""Marks on top of each other where the fullest cell has room for that; fewer in a small site."""
_MARGIN = 0.12
"""Of a strip, above and below."""
_NARROWEST = 0.06
"""Share of the width that a column has at least."""


@dataclass(frozen=True, slots=True)
class PageStrips:
    """Places of pages. Rows are 1 high; row i goes from i to i + 1."""

    x: FloatArray
    y: FloatArray
    stack: IntArray
    """How many marks are on top of each other in the cell of each page."""
    edges: FloatArray
    """Where each column starts, and where the last ends."""


def strips(row: IntArray, column: IntArray, columns: int, width: float) -> PageStrips:
    """Place pages that come by address; ``width`` is that of all columns, in heights of a row. O(n log n).

    >>> places = strips(np.array([0, 0, 0, 1]), np.array([0, 0, 0, 0]), 1, 10.0)
    >>> places.x.round(2).tolist(), places.y.tolist(), places.stack.tolist()
    ([0.38, 1.14, 1.9, 0.38], [0.5, 0.5, 0.5, 1.5], [1, 1, 1, 1])
    """
    cell = row * columns + column
    cells = int(cell.max(initial=-1)) + 1
    count = np.bincount(cell, minlength=cells)
    edges = _edges(count, columns, width)
    room = np.diff(edges)
    inner = 1.0 - 2.0 * _MARGIN
    of_cell = np.arange(cells) % columns
    full = np.ceil(np.sqrt(count * inner / room[of_cell]))
    stack = np.maximum(full, np.clip(full.max(initial=1.0), 1, _STACK)).astype(np.int64)
    long = -(-count // stack)
    pitch = np.minimum(inner / stack, room[of_cell] / np.maximum(long, 1))
    order = np.argsort(cell, kind="stable")
    starts = np.concatenate([[0], np.cumsum(count)[:-1]]) if cells else np.empty(0, np.int64)
    number = np.empty(len(cell), np.int64)
    number[order] = np.arange(len(cell)) - np.repeat(starts, count)
    along, up = number // stack[cell], number % stack[cell]
    x = edges[column] + (along + 0.5) * pitch[cell]
    y = row + _MARGIN + (up + 0.5) * inner / stack[cell]
    return PageStrips(x, y, stack[cell], edges)


def _edges(count: IntArray, columns: int, width: float) -> FloatArray:
    """Columns as wide as the root of their fullest cell, and never too narrow to be seen."""
    fullest = np.zeros(columns)
    np.maximum.at(fullest, np.arange(len(count)) % columns, count)
    share = np.sqrt(np.maximum(fullest, 1.0))
    share = np.maximum(share / share.sum(), _NARROWEST)
    return np.concatenate([[0.0], np.cumsum(share / share.sum() * width)])
