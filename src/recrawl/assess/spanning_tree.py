"""The tree in which a crawler came upon the pages of a site, as far as it is on record or can be told from outside.

The parent of a page is the page on which the crawler found it, where that is on record. Else it is the page that was
captured first of those that link to it and were captured before it. Where no link is known, it is the page of the
nearest directory above, else the first page of the host. Parents are always earlier in the order of capture, so there
are no circles.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from recrawl.assess.collapse import ROOT
from recrawl.model import FloatArray, IntArray


def spanning_tree(
    keys: Sequence[str], seen: FloatArray, source: IntArray, target: IntArray, via: IntArray | None = None
) -> IntArray:
    """The parent of each page, or ``ROOT``. O(n log n) and a step of Python for each page without a link.

    ``keys`` are SURTs, ``seen`` says when each was first captured, and links go from page ``source[i]`` to
    ``target[i]``, all as positions in ``keys``. Of pages captured at one instant the less deep one is first. ``via``
    is the page each was found on, ``ROOT`` where that is not on record.

    >>> keys = ["org,a)/", "org,a)/x", "org,a)/x/1", "org,a)/x/2"]
    >>> spanning_tree(keys, np.array([0.0, 1.0, 2.0, 3.0]), np.array([2]), np.array([3])).tolist()
    [-1, 0, 1, 2]
    """
    pages = len(keys)
    depth = np.fromiter((key.count("/") for key in keys), np.int64, pages)
    order = np.lexsort((depth, seen))
    rank = np.empty(pages, np.int64)
    rank[order] = np.arange(pages)
    earlier = rank[source] < rank[target]
    best = np.full(pages, pages)
    np.minimum.at(best, target[earlier], rank[source[earlier]])
    parent = np.where(best < pages, np.append(order, ROOT)[np.minimum(best, pages)], ROOT)
    if via is not None:
        parent = np.where((via != ROOT) & (rank[via] < rank), via, parent)
    _by_path(keys, order.tolist(), parent)
    return parent


def _by_path(keys: Sequence[str], order: list[int], parent: IntArray) -> None:
    """Give a parent to pages that have none, if their path or host has one."""
    known: dict[str, int] = {}
    first: dict[str, int] = {}
    for page in order:
        key = keys[page]
        host = key.partition(")")[0]
        if parent[page] == ROOT and host in first:
            parent[page] = next((known[above] for above in _above(key) if above in known), first[host])
        known.setdefault(key, page)
        first.setdefault(host, page)


def _above(key: str) -> list[str]:
    """The keys of the directories above, nearest first."""
    host, _, rest = key.partition(")")
    path, mark, _ = rest.partition("?")
    parts = path.strip("/").split("/")
    if not mark:
        parts = parts[:-1]
    return [f"{host})/{'/'.join(parts[:length])}" for length in range(len(parts), -1, -1)]
