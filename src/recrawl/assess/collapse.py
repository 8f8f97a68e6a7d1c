"""A crawl's spanning tree with its unchanged parts folded away, so that what changed can be seen (SHARC 8.5).

A page is *folded* if it and everything below it is unchanged; its nearest page that is drawn then shows how many pages
are folded into it. So changed pages and the way to them remain (SHARC Algorithms 7 and 8, reading 003.41). A page that
was not seen again is not known to be unchanged: it is drawn.
"""

from __future__ import annotations

import enum
from dataclasses import dataclass

import numpy as np

from recrawl.model import AnyArray, BoolArray, IntArray

ROOT = -1
"""The parent of a page that has none."""


class ChangeClass(enum.IntEnum):
    """What became of a page from one capture to the next."""

    UNSEEN = 0
    """Nobody looked again, or nobody could judge."""
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
    """A tree of so many nodes of which nothing is folded."""
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
