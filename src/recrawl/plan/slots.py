r"""Slots: which pages go into which hour, so that each hour's crawl ends within the hour (paper 001 §3.2 and §5).

Pages are taken as they fall due. In one slot a host takes as many requests as fit one after the other with their rests,
and all threads together as much work as fits. What does not fit moves to the next slot, ahead of what falls due there.
Slots are filled up to ``fill`` of their length by expected times, which leaves room for slow days.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from recrawl.errors import ConfigError
from recrawl.model import FloatArray, IntArray


@dataclass(frozen=True, slots=True)
class Turns:
    """What one request costs each host. One entry a host, in seconds."""

    seconds: FloatArray
    """Of a thread."""
    turn: FloatArray
    """From one request to the next one to the same host."""


@dataclass(frozen=True, slots=True)
class Slots:
    """Which page is fetched in which slot."""

    slot: IntArray
    """Of each page, from 0; -1 where it is not due in any, -2 where it is due and fits into none."""
    wished: IntArray
    """The slot in which it falls due, -1 if in none."""
    pages: IntArray
    """In each slot."""
    moved: IntArray
    """Of those, how many had to wait for it."""
    full: FloatArray
    """Share of each slot that is filled, by its longest host or by its work, whichever is more."""


def fill_slots(  # noqa: PLR0913 - what is due where, and what fits
    due: FloatArray,
    host: IntArray,
    turns: Turns,
    *,
    start: float,
    length: float,
    count: int,
    threads: int,
    fill: float = 0.8,
) -> Slots:
    """Fill ``count`` slots of ``length`` seconds from ``start`` on. ``host`` is a row of ``turns``.

    O(n log n + count · pages on hand).

    >>> turns = Turns(np.array([1.0]), np.array([10.0]))
    >>> hour = fill_slots(np.zeros(9), np.zeros(9, int), turns, start=0.0, length=50.0, count=2, threads=4, fill=1.0)
    >>> hour.slot.tolist(), hour.pages.tolist(), hour.moved.tolist()
    ([0, 0, 0, 0, 0, 1, 1, 1, 1], [5, 4], [0, 4])
    """
    if length <= 0 or count < 1 or threads < 1 or not 0 < fill <= 1:
        raise ConfigError("Such slots cannot be filled.", "Give a length, a number of slots and threads above 0.")
    wished = np.full(len(due), -1, dtype=np.int64)
    soon = due < start + count * length
    wished[soon] = np.maximum(((due[soon] - start) // length).astype(np.int64), 0)
    slot = np.where(wished >= 0, -2, -1)
    with np.errstate(divide="ignore"):
        room = np.maximum(np.floor(np.where(turns.turn > 0, length * fill / turns.turn, np.inf)), 1.0)
    order = np.lexsort((np.arange(len(due)), due, wished))
    order = order[wished[order] >= 0]
    starts = np.searchsorted(wished[order], np.arange(count + 1))
    pages, moved, full = np.zeros(count, np.int64), np.zeros(count, np.int64), np.zeros(count)
    waiting = np.empty(0, dtype=np.int64)
    for number in range(count):
        hand = np.concatenate([waiting, order[starts[number] : starts[number + 1]]])
        fits = _place_within(host[hand]) < room[host[hand]]
        work = np.cumsum(np.where(fits, turns.seconds[host[hand]], 0.0))
        fits &= work <= max(threads * length * fill, work[0] if len(work) else 0.0)
        taken, waiting = hand[fits], hand[~fits]
        slot[taken] = number
        pages[number], moved[number] = len(taken), int((wished[taken] < number).sum())
        asked = np.bincount(host[taken], minlength=len(room))
        busy = float((asked * turns.seconds).sum()) / threads
        full[number] = max(float((asked * turns.turn).max(initial=0.0)), busy) / length
    return Slots(slot, wished, pages, moved, full)


def _place_within(host: IntArray) -> IntArray:
    """How many earlier rows have the same host."""
    order = np.argsort(host, kind="stable")
    grouped = host[order]
    first = np.flatnonzero(np.concatenate([np.ones(min(len(host), 1), np.bool_), grouped[1:] != grouped[:-1]]))
    place = np.empty(len(host), dtype=np.int64)
    sizes = np.diff(np.append(first, len(host)))
    place[order] = np.arange(len(host)) - np.repeat(first, sizes)
    return place
