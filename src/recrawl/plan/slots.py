"""Slots: which pages go into which hour, so that each hour's crawl ends within the hour (paper 001 §3.2 and §5).

Pages are taken as they fall due. In one slot a host takes as many requests as fit one after the other with their
pauses, and all hosts together as much work as fits. Pages that do not fit move to the next slot, ahead of those that
fall due there. A fetched page falls due again one interval later, in the next slot at the earliest. Slots are filled up
to ``fill`` of their length by expected times, which leaves a margin for slow days.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from recrawl.errors import ConfigError
from recrawl.model import FloatArray, IntArray


@dataclass(frozen=True, slots=True)
class RequestCosts:
    """What one request costs each host. One entry per host, in seconds."""

    seconds: FloatArray
    """Of a thread."""
    turn: FloatArray
    """From one request to the next one to the same host."""


@dataclass(frozen=True, slots=True)
class VisitSlots:
    """Which page is fetched in which slot, a row per visit."""

    page: IntArray
    """Row of the page."""
    slot: IntArray
    """From 0, never falling."""
    unplaced: IntArray
    """Rows of the pages that are due and fit into none."""
    pages: IntArray
    """In each slot."""
    moved: IntArray
    """Of those, how many had to wait for it."""
    full: FloatArray
    """Share of each slot that is filled, by its longest host or by its work, whichever is more."""


def fill_slots(  # noqa: PLR0913 - what is due where, and what fits
    due: FloatArray,
    host: IntArray,
    turns: RequestCosts,
    *,
    start: float,
    length: float,
    count: int,
    concurrency: int,
    fill: float = 0.8,
    interval: FloatArray | float = np.inf,
) -> VisitSlots:
    """Fill ``count`` slots of ``length`` seconds from ``start`` on. ``host`` is a row of ``turns``.

    ``interval`` is how many seconds after a visit each page is due again; a visit is made when the page is due, or when
    its slot starts if it had to wait. O((n + visits) log n + count · pages on hand).

    >>> turns = RequestCosts(np.array([1.0]), np.array([10.0]))
    >>> hour = fill_slots(np.zeros(9), np.zeros(9, int), turns, start=0.0, length=50.0, count=2, concurrency=4,
    ...     fill=1.0)
    >>> hour.slot.tolist(), hour.pages.tolist(), hour.moved.tolist()
    ([0, 0, 0, 0, 0, 1, 1, 1, 1], [5, 4], [0, 4])
    >>> again = fill_slots(np.array([20.0, 70.0]), np.zeros(2, int), turns, start=0.0, length=50.0, count=4,
    ...     concurrency=4, interval=np.array([60.0, 900.0]))
    >>> again.page.tolist(), again.slot.tolist()
    ([0, 1, 0, 0], [0, 1, 1, 2])
    """
    if length <= 0 or count < 1 or concurrency < 1 or not 0 < fill <= 1:
        raise ConfigError("Such slots cannot be filled.", "Give a length, a number of slots and a concurrency above 0.")
    with np.errstate(divide="ignore"):
        room = np.maximum(np.floor(np.where(turns.turn > 0, length * fill / turns.turn, np.inf)), 1.0)
    queue = _Queue(np.array(due, dtype=np.float64), start, length, count)
    every = np.broadcast_to(np.asarray(interval, dtype=np.float64), (len(due),))
    pages, moved, full = np.zeros(count, np.int64), np.zeros(count, np.int64), np.zeros(count)
    placed: list[IntArray] = []
    waiting = np.empty(0, dtype=np.int64)
    for number in range(count):
        hand = np.concatenate([waiting, queue.falling_due(number)])
        fits = _place_within(host[hand]) < room[host[hand]]
        work = np.cumsum(np.where(fits, turns.seconds[host[hand]], 0.0))
        fits &= work <= max(concurrency * length * fill, work[0] if len(work) else 0.0)
        taken, waiting = hand[fits], hand[~fits]
        placed.append(taken)
        pages[number], moved[number] = len(taken), int((queue.wished[taken] < number).sum())
        asked = np.bincount(host[taken], minlength=len(room))
        busy = float((asked * turns.seconds).sum()) / concurrency
        full[number] = max(float((asked * turns.turn).max(initial=0.0)), busy) / length
        queue.put_again(taken, every[taken], number)
    return VisitSlots(np.concatenate(placed), np.repeat(np.arange(count), pages), waiting, pages, moved, full)


class _Queue:
    """Pages by the slot in which they fall due."""

    def __init__(self, due: FloatArray, start: float, length: float, count: int) -> None:
        self._due, self._start, self._length = due, start, length
        self._coming: list[list[IntArray]] = [[] for _ in range(count)]
        self.wished = np.full(len(due), -1, dtype=np.int64)
        """The slot in which each page falls due next."""
        self._put(np.arange(len(due)), earliest=0)

    def falling_due(self, number: int) -> IntArray:
        """The pages of this slot as they fall due, once. O(pages of the slot)."""
        rows = np.concatenate([np.empty(0, np.int64), *self._coming[number]])
        self._coming[number] = []
        return rows[np.lexsort((rows, self._due[rows]))]

    def put_again(self, rows: IntArray, interval: FloatArray, number: int) -> None:
        """These pages are visited in this slot, and fall due again."""
        self._due[rows] = np.maximum(self._due[rows], self._start + number * self._length) + interval
        self._put(rows, earliest=number + 1)

    def _put(self, rows: IntArray, earliest: int) -> None:
        count = len(self._coming)
        soon = rows[self._due[rows] < self._start + count * self._length]
        if not len(soon) or earliest >= count:
            return
        slot = np.clip(np.floor((self._due[soon] - self._start) / self._length), earliest, count - 1).astype(np.int64)
        self.wished[soon] = slot
        order = np.argsort(slot, kind="stable")
        numbers, first = np.unique(slot[order], return_index=True)
        for number, part in zip(numbers.tolist(), np.split(soon[order], first[1:]), strict=True):
            self._coming[number].append(part)


def _place_within(host: IntArray) -> IntArray:
    """How many earlier rows have the same host."""
    order = np.argsort(host, kind="stable")
    grouped = host[order]
    first = np.flatnonzero(np.concatenate([np.ones(min(len(host), 1), np.bool_), grouped[1:] != grouped[:-1]]))
    place = np.empty(len(host), dtype=np.int64)
    sizes = np.diff(np.append(first, len(host)))
    place[order] = np.arange(len(host)) - np.repeat(first, sizes)
    return place
