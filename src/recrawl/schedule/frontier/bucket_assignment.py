"""Which worker owns which bucket, and which unit: fair shares with as few moves as possible.

Hosts are divided into 1,024 buckets by registered domain (:func:`recrawl.urls.bucket_of`), and workers own buckets.
Every worker computes the same assignment from the same owners and workers, so nobody has to decide for the others.
A remainder (hash modulo workers) would move nearly all buckets whenever a worker joins or leaves.

Units are stores with their workers. A bucket that moves between units takes its pages along, so their assignment does
not depend on who owns what: it is rendezvous hashing, weighted by capacity. A unit that joins takes buckets from all
others, one that leaves gives its own to all others, and no other bucket moves.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache
from hashlib import blake2b

import numpy as np

from recrawl.model import FloatArray, IntArray
from recrawl.urls import BUCKETS

NOBODY = -1
"""The owner of a bucket without one."""


def assign_buckets(owner: IntArray, workers: int) -> IntArray:
    """The worker that should own each bucket.

    ``owner`` holds the present owner of each bucket as an index into the live workers, or :data:`NOBODY`. Each worker
    gets the same number of buckets, or one more. As few buckets as possible change their owner: a worker gives some
    away only if it has more than its share, and the larger shares go to those who own most. The result depends on
    nothing else. O(buckets + workers log workers).

    >>> assign_buckets(np.array([0, 0, 0, 0, NOBODY]), 2).tolist()
    [0, 0, 0, 1, 1]
    """
    if workers < 1:
        return np.full(len(owner), NOBODY, np.int64)
    owned = np.bincount(owner[owner >= 0], minlength=workers)
    share = np.full(workers, len(owner) // workers)
    # A stable sort: of workers that own as many, the first get the larger shares.
    share[np.argsort(-owned, kind="stable")[: len(owner) % workers]] += 1
    planned = owner.astype(np.int64, copy=True)
    for worker in np.flatnonzero(owned > share).tolist():
        planned[np.flatnonzero(planned == worker)[share[worker] :]] = NOBODY
    missing = np.maximum(share - owned, 0)
    planned[planned < 0] = np.repeat(np.arange(workers), missing)
    return planned


def numbered_owners(owner: Sequence[str | None], workers: Sequence[str]) -> IntArray:
    """Owners as indexes into these workers; an owner that is none of them is :data:`NOBODY`."""
    place = {name: number for number, name in enumerate(workers)}
    return np.array([place.get(name, NOBODY) if name else NOBODY for name in owner], np.int64)


SETTLED = 1.5
"""Factor by which a measured capacity has to differ from the one in force before it replaces it."""


def assign_units(units: Sequence[str], capacity: FloatArray) -> IntArray:
    """The unit that should own each bucket, as an index into ``units``; each has a share in proportion to its capacity.

    Each unit draws a number from an exponential distribution for each bucket, by a hash of both names, and divides it
    by its capacity; the smallest wins. So the order of two units at a bucket depends on these two alone. A unit with
    capacity 0 gets nothing; without any capacity nobody does. O(units · buckets).

    >>> np.bincount(assign_units(["a", "b"], np.array([1.0, 3.0]))).tolist()
    [239, 785]
    """
    if not np.any(capacity > 0):
        return np.full(BUCKETS, NOBODY, np.int64)
    drawn = np.array([_draws(name) for name in units])
    with np.errstate(divide="ignore"):
        planned: IntArray = np.argmin(drawn / capacity[:, None], axis=0).astype(np.int64)
    return planned


def settled_capacity(before: float, measured: float) -> float:
    """The capacity to publish: the one before, unless the measured one differs by more than :data:`SETTLED`.

    Every change of a capacity moves buckets, and measurements vary.

    >>> settled_capacity(100.0, 140.0), settled_capacity(100.0, 160.0), settled_capacity(0.0, 50.0)
    (100.0, 160.0, 50.0)
    """
    near = before > 0 and before / SETTLED <= measured <= before * SETTLED
    return before if near else measured


@lru_cache(maxsize=256)
def _draws(unit: str) -> FloatArray:
    """A number for each bucket, exponentially distributed, by a hash of the unit and the bucket."""
    parts = (blake2b(f"{unit}\0{bucket}".encode(), digest_size=8).digest() for bucket in range(BUCKETS))
    uniform = (np.frombuffer(b"".join(parts), "<u8") + 0.5) / 2.0**64
    drawn: FloatArray = -np.log(uniform)
    drawn.flags.writeable = False
    return drawn
