"""The buckets of a worker: claims, hand-overs, and its share when workers join, leave or die.

Hosts are divided into 1,024 buckets by registered domain, and a worker visits only the hosts of its own. Every worker
computes the same assignment (:mod:`recrawl.schedule.frontier.bucket_assignment`) from the owners in the store and the
live workers in the registry, and acts only for itself: it claims buckets that nobody owns, and gives its own away. A
bucket that moves is drained first: its owner leases nothing more from it, returns what it has not requested, and hands
it over when its last request there is recorded.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np

from recrawl.model import BoolArray, IntArray
from recrawl.schedule.frontier.bucket_assignment import NOBODY, assign_buckets, numbered_owners
from recrawl.store.base import ScheduleStore
from recrawl.store.store_values import BucketRows

DRAIN_TIME = 60.0
"""Seconds after which a bucket moves although a request to one of its hosts still runs. That host stays reserved until
the request ends."""
ELSEWHERE = "another unit"
"""The owner of a bucket that belongs to another unit: no worker has this name."""
_CHECK_EVERY = 1.0
"""Seconds between two checks whether moving buckets are drained."""


class BucketOwner:
    """Claims, keeps and hands over the buckets of one worker."""

    def __init__(self, store: ScheduleStore, worker: str) -> None:
        self._store = store
        self._worker = worker
        self._is_moving = False
        self.check_at = math.inf
        """When to check whether moving buckets are drained, seconds since the epoch; infinity if none moves."""
        self.owned = 0
        """Buckets that this worker owned at the last balance, those that are about to move included."""
        self.numbers: IntArray | None = None
        """The buckets that this worker owned at the last balance and does not give away; ``None`` before the first."""
        self.claimed = 0
        """Buckets that this worker claimed in this run."""
        self.handed_over = 0
        """Buckets that this worker handed over in this run."""

    def balance(self, others: Sequence[str], now: float, within: BoolArray | None = None) -> bool:
        """Take or give what the assignment to this worker and the live ``others`` demands.

        ``within`` marks the buckets of this unit, if there are several units: workers give all others away.

        Returns whether buckets begin to move away: then queued pages must be returned. O(buckets).
        """
        rows, names = self._store.buckets(), sorted({self._worker, *others})
        live = frozenset(names)
        planned = _planned(rows, names, within)
        mine = np.array([owner == self._worker for owner in rows.owner], np.bool_)
        ours = planned == names.index(self._worker)
        claimable = np.array([owner not in live for owner in rows.owner], np.bool_)
        wanted = np.flatnonzero(ours & claimable)
        taken = self._store.claim_buckets(self._worker, wanted, now) if len(wanted) else 0
        self.claimed += taken
        leaving = np.flatnonzero(mine & ~ours)
        kept = np.array([number for number in np.flatnonzero(mine & ours).tolist() if rows.heir[number]], np.int64)
        heirs = [names[number] if number >= 0 else ELSEWHERE for number in planned[leaving].tolist()]
        begun = 0
        if len(kept) or heirs != [rows.heir[number] for number in leaving.tolist()]:
            begun = self._store.plan_moves(self._worker, leaving, heirs, now, kept=kept)
        self._is_moving = bool(len(leaving))
        self.owned = int(mine.sum()) + taken
        # Where another worker was faster with a claim, the next balance shows it.
        self.numbers = np.flatnonzero(ours & (mine | claimable))
        self._check_again(now)
        return begun > 0

    def foresee(self, others: Sequence[str], within: BoolArray | None = None) -> IntArray:
        """The buckets that this worker will own once it has joined the live ``others``. O(buckets)."""
        names = sorted({self._worker, *others})
        return np.flatnonzero(_planned(self._store.buckets(), names, within) == names.index(self._worker))

    def hand_over(self, now: float) -> None:
        """Hand over the moving buckets that are drained. Does nothing before ``check_at``."""
        if now < self.check_at:
            return
        moved = self._store.hand_over(self._worker, now, patience=DRAIN_TIME)
        self.handed_over += moved
        self.owned -= moved
        self._check_again(now)

    def leave(self, now: float) -> None:
        """Give up all buckets: others may take them at once."""
        self._store.release_buckets(self._worker, now)
        self._is_moving, self.check_at, self.owned = False, math.inf, 0
        self.numbers = None

    def _check_again(self, now: float) -> None:
        self.check_at = now + _CHECK_EVERY if self._is_moving else math.inf


def _planned(rows: BucketRows, names: Sequence[str], within: BoolArray | None = None) -> IntArray:
    """The index of the worker that should own each bucket, if it is ``within`` this unit.

    What already moves belongs to its heir.
    """
    live = frozenset(names)
    after = [heir if heir in live else owner for owner, heir in zip(rows.owner, rows.heir, strict=True)]
    planned, numbered = np.full(len(rows), NOBODY, np.int64), numbered_owners(after, names)
    inside = np.ones(len(rows), np.bool_) if within is None else within
    planned[inside] = assign_buckets(numbered[inside], len(names))
    return planned
