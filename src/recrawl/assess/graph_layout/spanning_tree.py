"""The tree in which a crawler came upon the pages of a site, as far as it is on record or can be told from outside.

The parent of a page is the page on which the crawler found it, where that is on record. Else it is the page that was
captured first of those that link to it and were captured before it. Where no link is known, it is the page of the
nearest directory above, else the first page of the host. Parents are always earlier in the order of capture, so there
are no circles.

A crawl's spanning tree with its unchanged parts folded away, so that what changed can be seen (SHARC 8.5).

A page is *folded* if it and everything below it is unchanged; its nearest page that is drawn then shows how many pages
are folded into it. So changed pages and the way to them remain (SHARC Algorithms 7 and 8, reading 003.41). A page that
was not seen again is not known to be unchanged: it is drawn.
"""

from __future__ import annotations

import enum
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from recrawl.model import AnyArray, BoolArray, FloatArray, IntArray

ROOT = -1
"""The parent of a page that has none."""


class ChangeClass(enum.IntEnum):
    """What became of a page from one capture to the next."""

    UNSEEN = 0
    """Nobody looked again, or no detector could compare."""
    UNCHANGED = 1
    CONTENT = 2
    """Its content changed, its links did not."""
    LINKS = 3
    """Its links changed."""
    MISSING = 4
    """It is gone."""
    NEW = 5
    """It was not in the capture before."""

    @property
    def colour(self) -> str:
        """As the thesis draws it; blue and grey for what it does not draw."""
        return _COLOURS[self]


_COLOURS = {
    ChangeClass.UNSEEN: "grey",
    ChangeClass.UNCHANGED: "green",
    ChangeClass.CONTENT: "yellow",
    ChangeClass.LINKS: "red",
    ChangeClass.MISSING: "black",
    ChangeClass.NEW: "blue",
}


@dataclass(frozen=True, slots=True)
class CollapsedTree:
    """Which nodes of a tree are drawn, and how much is folded into each."""

    drawn: BoolArray
    folded: IntArray
    """Nodes folded into a leaf below each drawn one; 0 where there are none, and for nodes that are not drawn."""

    def nodes(self) -> IntArray:
        """The nodes that are drawn, ascending."""
        return np.flatnonzero(self.drawn)

    def edges(self, parent: IntArray) -> tuple[IntArray, IntArray]:
        """Parents and children among the nodes that are drawn, by child."""
        child = np.flatnonzero(self.drawn & (parent != ROOT))
        return parent[child], child


def unfolded(nodes: int) -> CollapsedTree:
    """A tree of N nodes of which nothing is folded."""
    return CollapsedTree(np.ones(nodes, np.bool_), np.zeros(nodes, np.int64))


def collapse(parent: IntArray, change: AnyArray) -> CollapsedTree:
    """Fold the unchanged parts of a forest; ``change`` has a :class:`ChangeClass` for each node.

    Roots (``parent`` is ``ROOT``) are always drawn. The forest may be as deep as it has nodes. O(n) steps of Python.

    Raises:
        ValueError: the parents go round in a circle.

    >>> same, link = ChangeClass.UNCHANGED, ChangeClass.LINKS
    >>> tree = collapse(np.array([-1, 0, 1, 0, 2, 2]), np.array([same, link, same, same, same, same]))
    >>> tree.nodes().tolist(), tree.folded.tolist()
    ([0, 1], [1, 3, 0, 0, 0, 0])
    """
    above = parent.tolist()
    order = _parents_first(above)
    kept = (np.asarray(change) != ChangeClass.UNCHANGED).tolist()
    below = [0] * len(above)  # nodes folded into each, itself not counted
    for node in reversed(order):
        up = above[node]
        if up == ROOT:
            kept[node] = True
        elif kept[node]:
            kept[up] = True
        else:
            below[up] += below[node] + 1
    drawn = np.array(kept, np.bool_)
    return CollapsedTree(drawn, np.where(drawn, np.array(below, np.int64), 0))


def _parents_first(above: list[int]) -> list[int]:
    """The nodes in an order in which each comes after its parent."""
    children: list[list[int]] = [[] for _ in above]
    order: list[int] = []
    for node, up in enumerate(above):
        (order if up == ROOT else children[up]).append(node)
    for node in order:  # grows while it is read
        order.extend(children[node])
    if len(order) < len(above):
        msg = "the parents of some nodes go round in a circle"
        raise ValueError(msg)
    return order


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
