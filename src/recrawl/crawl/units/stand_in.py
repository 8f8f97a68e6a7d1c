"""Pages that matter are visited although their unit is silent: another unit stands in for it until it is back.

The owner of a bucket keeps copies of its important pages in the coordination database, with all that it has learned of
them. If it is silent for :data:`STAND_IN_AFTER`, the unit that would own the bucket without it takes the copies and
visits these pages. When the owner is back, the stand-in drains the bucket and sends the pages home, with its visits.

So a host is never visited by two units at once: an owner that comes back leaves a bucket alone while a live unit
reports that it stands in there. The exception is a unit that lost only the coordination database, and goes on: other
units cannot tell it from a dead one.
"""

from __future__ import annotations

import base64
import json
from collections.abc import Mapping, Sequence

import numpy as np

from recrawl.crawl.units import moved_pages
from recrawl.crawl.units.unit_registry import RegisteredUnit
from recrawl.model import BoolArray
from recrawl.store.base import Store
from recrawl.time import MINUTE
from recrawl.urls import BUCKETS

STAND_IN_AFTER = 5 * MINUTE
"""Seconds for which a unit has to be silent before others stand in."""
MOST_COPIES = 1_000
"""Pages of a bucket that are copied at most: the most important ones."""
_LOOKED_AT = 2_000
"""Pages that a step looks at before it leaves other buckets to the next one."""
_COPIES = "copies "


class Copier:
    """Keeps the copies of the important pages of a unit up to date, a few buckets in each step."""

    def __init__(self, store: Store, important: float) -> None:
        """Pages of this importance or more are copied; 0 for none."""
        self._store, self._important = store, important
        self._next = 0

    def step(self, shared: Store, buckets: BoolArray, time: float) -> None:
        """Copy the important pages of some of these buckets; all of them in turn, step by step."""
        if self._important <= 0:
            return
        looked_at = 0
        for _ in range(BUCKETS):
            bucket, self._next = self._next, (self._next + 1) % BUCKETS
            if buckets[bucket]:
                looked_at += self._copy(shared, bucket, time)
            if looked_at >= _LOOKED_AT:
                return

    def _copy(self, shared: Store, bucket: int, time: float) -> int:
        pages = self._store.pages_in(np.array([bucket], np.int64))
        rows = np.flatnonzero(pages.importance >= self._important)
        rows = rows[np.argsort(-pages.importance[rows], kind="stable")[:MOST_COPIES]]
        name = f"{_COPIES}{bucket}"
        if len(rows):
            contents = moved_pages.packed(self._store, np.sort(pages.id[rows])).contents
            listed = [base64.b64encode(content).decode() for content in contents]
            shared.save_state(name, json.dumps(listed).encode(), time)
        elif shared.load_state(name) not in {None, b"[]"}:
            shared.save_state(name, b"[]", time)
        return len(pages)


def take_copies(store: Store, shared: Store, bucket: int) -> bool:
    """Take the copies of the pages of a bucket into the store of a unit; whether there were any."""
    listed = json.loads(shared.load_state(f"{_COPIES}{bucket}") or b"[]")
    if listed:
        moved_pages.take(store, [base64.b64decode(content) for content in listed])
    return bool(listed)


def orphaned(owner: Sequence[str | None], units: Mapping[str, RegisteredUnit], time: float) -> BoolArray:
    """Buckets whose owner has been silent for so long that others stand in."""
    gone = {name for name, one in units.items() if time - one.at >= STAND_IN_AFTER}
    return np.array([one in gone for one in owner], np.bool_)


def stood_in(units: Mapping[str, RegisteredUnit], name: str, time: float, before: BoolArray) -> BoolArray:
    """Buckets in which other live units stand in, so that this one leaves them alone.

    Of two that stand in for the same bucket the one whose name comes first stays: ``before`` are those of this unit.
    """
    found = np.zeros(BUCKETS, np.bool_)
    for one in units.values():
        if one.unit != name and one.standing_in and one.is_alive(time):
            theirs = one.stands_in_for()
            found |= theirs & ~before if name < one.unit else theirs
    return found
