"""The pages of a tree in the order of a walk: every page before what is below it, each subtree in one piece."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from recrawl.assess.collapse import ROOT
from recrawl.model import IntArray


@dataclass(frozen=True, slots=True)
class TreeOrder:
    """A walk through a forest of n pages, depth first."""

    order: IntArray
    """Pages in the order of the walk."""
    depth: IntArray
    """Steps from the root, for each page."""
    size: IntArray
    """Pages below each, itself included."""


def tree_order(parent: IntArray) -> TreeOrder:
    """Walk through a forest; roots and siblings in ascending order. O(n) steps of Python, however deep it is.

    Raises:
        ValueError: the parents go round in a circle.

    >>> walk = tree_order(np.array([-1, 0, 0, 1]))
    >>> walk.order.tolist(), walk.depth.tolist(), walk.size.tolist()
    ([0, 1, 3, 2], [0, 1, 1, 2], [4, 2, 1, 1])
    """
    above = parent.tolist()
    children: list[list[int]] = [[] for _ in above]
    waiting: list[int] = []
    for node in range(len(above) - 1, -1, -1):
        (waiting if above[node] == ROOT else children[above[node]]).append(node)
    order: list[int] = []
    depth, size = [0] * len(above), [1] * len(above)
    while waiting:
        node = waiting.pop()
        order.append(node)
        if above[node] != ROOT:
            depth[node] = depth[above[node]] + 1
        waiting += children[node]
    if len(order) < len(above):
        msg = "the parents of some pages go round in a circle"
        raise ValueError(msg)
    for node in reversed(order):
        if above[node] != ROOT:
            size[above[node]] += size[node]
    return TreeOrder(np.array(order, np.int64), np.array(depth, np.int64), np.array(size, np.int64))
