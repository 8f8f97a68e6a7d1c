"""Gaps cut where a step begins: pieces of time over which age and the time since the last change make no difference."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from recrawl.estimate.operational_tables import StepTable
from recrawl.model import FloatArray, IntArray


class Steps(NamedTuple):
    """A table of steps and the event each page counts from; NaN or infinite where nobody knows it."""

    table: StepTable
    origin: FloatArray


@dataclass(frozen=True, slots=True)
class Pieces:
    """Pieces of gaps, as columns. A gap that crosses no edge is one piece."""

    gap: IntArray
    """Which gap each piece is cut from."""
    start: FloatArray
    end: FloatArray
    step: tuple[IntArray, ...]
    """For each table, the step the piece lies on."""

    def __len__(self) -> int:
        return len(self.gap)


def cut(start: FloatArray, end: FloatArray, steps: Sequence[Steps]) -> Pieces:
    """Cut gaps at the edges of all tables: O(pieces), in at most one round more than there are edges.

    >>> week = StepTable(np.array([7.0]), np.array([2.0, 1.0, 1.0]))
    >>> pieces = cut(np.array([5.0, 8.0]), np.array([9.0, 9.0]), [Steps(week, np.array([0.0, 0.0]))])
    >>> pieces.gap.tolist(), pieces.start.tolist(), pieces.step[0].tolist()
    ([0, 1, 0], [5.0, 8.0, 7.0], [0, 1, 1])
    """
    gap = np.arange(len(start))
    on = [one.table.step(one.origin, start) for one in steps]
    done: list[tuple[IntArray, FloatArray, FloatArray, list[IntArray]]] = []
    while True:
        edges = [one.table.next_edge(one.origin[gap], step) for one, step in zip(steps, on, strict=True)]
        stop = end[gap]
        for edge in edges:
            stop = np.minimum(stop, edge)
        stop = np.maximum(stop, start)  # an edge may round to just before the moment it was to follow
        done.append((gap, start, stop, list(on)))
        left = np.flatnonzero(stop < end[gap])
        if not len(left):
            break
        on = [step[left] + (edge[left] <= stop[left]) for step, edge in zip(on, edges, strict=True)]
        gap, start = gap[left], stop[left]
    if len(done) == 1:
        return Pieces(gap, start, stop, tuple(on))
    whole, starts, stops = (np.concatenate([part[k] for part in done]) for k in range(3))
    step = tuple(np.concatenate([part[3][k] for part in done]) for k in range(len(steps)))
    return Pieces(whole.astype(np.int64), starts, stops, step)
