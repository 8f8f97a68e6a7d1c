"""Names as numbers that are the same in every run: media types, top-level domains, parts of paths.

A name gets a bucket by a hash of its own, so a page found tomorrow needs no dictionary of what was found today, and a
model reads both alike. Different names may share a bucket; with 254 of them rarely two frequent ones do.
"""

from __future__ import annotations

import hashlib
from collections.abc import Sequence

import numpy as np

from recrawl.model import IntArray

BUCKETS = 254
"""As many as histogram-based trees take as categories, the unknown one aside."""


def bucket(name: str) -> int:
    """The bucket of a name, case ignored; −1 for the empty one.

    >>> bucket("text/html") == bucket("TEXT/HTML"), bucket("")
    (True, -1)
    """
    if not name:
        return -1
    return int.from_bytes(hashlib.blake2b(name.casefold().encode(), digest_size=8).digest()) % BUCKETS


def buckets(names: Sequence[str]) -> IntArray:
    """The bucket of each name. O(names), and one hash a distinct one."""
    known = {name: bucket(name) for name in set(names)}
    return np.fromiter((known[name] for name in names), np.int64, len(names))
