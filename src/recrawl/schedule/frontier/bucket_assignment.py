"""Which worker owns which bucket: fair shares with as few moves as possible.

Hosts are divided into 1,024 buckets by registered domain (:func:`recrawl.urls.bucket_of`), and workers own buckets.
Every worker computes the same assignment from the same owners and workers, so nobody has to decide for the others.
A remainder (hash modulo workers) would move nearly all buckets whenever a worker joins or leaves.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from recrawl.model import IntArray

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
