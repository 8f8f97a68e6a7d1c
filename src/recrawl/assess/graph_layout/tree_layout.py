"""Where to draw the pages of a folded tree: what belongs together lies together, and unfolding moves nothing.

Every page has one place for ever. A page that is drawn lies in the middle of its *flower*: the pages below it that have
nothing below them lie around it, like seeds of a sunflower. What is folded into it lies in a disc beside, whose area
grows with its pages: unfolded, they appear inside the disc. Flower, disc and the circles of the other pages below are
packed into one circle, and so on up to the roots. A part that would be nearly empty that way, such as a long chain of
pages, is one flower as a whole. In flowers and discs neighbours by address lie side by side, along a
Hilbert curve. Lengths are in units of the distance between two pages.

The pages of a tree in the order of a walk: every page before what is below it, each subtree in one piece.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from recrawl.assess.graph_layout.circle_packing import around, pack
from recrawl.assess.graph_layout.spanning_tree import ROOT, CollapsedTree
from recrawl.model import BoolArray, FloatArray, IntArray


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


_SPREAD = 0.62
"""Seeds at this times the root of their number from the middle are about 1 apart."""
_GOLDEN = math.pi * (3.0 - math.sqrt(5.0))
_RIM = 0.5
_GAP = 0.4
_HILBERT_BITS = 10
_LOOSE = 8.0
"""A part of the tree this many times as wide as a flower of its pages is drawn as that flower."""


@dataclass(frozen=True, slots=True)
class TreeLayout:
    """Places of n pages, around 0, and of the disc of what is folded into each."""

    x: FloatArray
    y: FloatArray
    disc_x: FloatArray
    disc_y: FloatArray
    disc_radius: FloatArray
    """NaN, and so its place, where nothing is folded."""
    radius: float
    """Of the circle around everything."""


def tree_layout(parent: IntArray, tree: CollapsedTree) -> TreeLayout:
    """Places for a tree with its unchanged parts folded; pages are in the order in which neighbours shall lie.

    Always the same for the same tree. O(n) steps of Python and arrays; of a page with k others below that have pages
    below themselves, O(k) as :func:`~recrawl.assess.graph_layout.circle_packing.pack` has it.

    >>> layout = tree_layout(np.array([-1, 0, 0]), CollapsedTree(np.array([True, True, False]), np.array([1, 0, 0])))
    >>> round(float(layout.disc_radius[0]), 2), bool(np.hypot(layout.x[0] - layout.x[1], layout.y[0] - layout.y[1]) < 1)
    (1.12, True)
    """
    order = tree_order(parent)
    shapes = _Shapes(parent, tree, order)
    inner = [node for node in order.order.tolist() if not shapes.seed[node] and tree.drawn[node]]
    for node in reversed(inner):
        shapes.wrap(node)
    roots = [node for node in inner if parent[node] == ROOT]
    across, up, whole = shapes.side_by_side([shapes.radius[node] for node in roots])
    for node, x, y in zip(roots, across, up, strict=True):
        shapes.centre_x[node], shapes.centre_y[node] = x, y
    for node in inner:  # parents first
        shapes.unwrap(node)
    return shapes.places(whole)


class _Shapes:
    """The circles of a tree: first their sizes from below, then their places from above."""

    def __init__(self, parent: IntArray, tree: CollapsedTree, order: TreeOrder) -> None:
        nodes = len(parent)
        self._parent, self._tree, self._order = parent, tree, order
        has_drawn = np.zeros(nodes, np.bool_)
        has_drawn[parent[tree.drawn & (parent != ROOT)]] = True
        self.seed: BoolArray = tree.drawn & (parent != ROOT) & ~has_drawn & (tree.folded == 0)
        """Pages that are drawn in the flower of another."""
        self._seeds = np.bincount(parent[self.seed], minlength=nodes)
        self._children: list[list[int]] = [[] for _ in range(nodes)]
        for node in np.flatnonzero(tree.drawn & ~self.seed & (parent != ROOT)).tolist():
            self._children[parent[node]].append(node)
        self._flower = _disc_radius(self._seeds + 1)
        self._disc = np.where(tree.folded > 0, _disc_radius(tree.folded), np.nan)
        self.radius: list[float] = [0.0] * nodes
        self.centre_x, self.centre_y = np.full(nodes, np.nan), np.full(nodes, np.nan)
        self._inside: dict[int, tuple[list[float], list[float]]] = {}
        self._pages = self._seeds + 1
        """Pages drawn in the circle of each that is no seed, itself included; 0 if a disc is among them."""
        self._pages[tree.folded > 0] = 0
        self._flower_of = np.arange(nodes)
        """In whose flower each lies: its own, or that of a page above which is one flower with all below it."""

    def wrap(self, node: int) -> None:
        """Pack flower, disc and the circles below into one, all of which are known."""
        parts = [float(self._flower[node])]
        if self._tree.folded[node]:
            parts.append(float(self._disc[node]))
        parts += [self.radius[child] for child in self._children[node]]
        if len(parts) == 1:
            self.radius[node] = parts[0]
            return
        across, up, self.radius[node] = self.side_by_side(parts)
        self._inside[node] = across, up
        below = self._pages[self._children[node]]
        self._pages[node] = self._pages[node] + below.sum() if self._pages[node] and below.all() else 0
        flower = float(_disc_radius(self._pages[node]))
        if self._pages[node] and self.radius[node] > _LOOSE * flower:
            self.radius[node] = flower
            del self._inside[node]

    @staticmethod
    def side_by_side(radius: list[float]) -> tuple[list[float], list[float], float]:
        """Circles with a gap between them, around 0, and the radius of the circle around."""
        if not radius:
            return [], [], 0.0
        wide = [one + _GAP for one in radius]
        x, y = (np.array(side) for side in pack(wide))
        across, up, whole = around(x, y, np.array(wide))
        return (x - across).tolist(), (y - up).tolist(), whole

    def unwrap(self, node: int) -> None:
        """From the middle of a circle to the middles of what is inside. The flower's own becomes that of the page."""
        if node not in self._inside or self._flower_of[node] != node:
            self._flower_of[self._children[node]] = self._flower_of[node]
            return
        x, y = float(self.centre_x[node]), float(self.centre_y[node])
        across, up = self._turned(node, x, y)
        below = self._children[node]
        first = len(across) - len(below)
        for place, child in enumerate(below, first):
            self.centre_x[child], self.centre_y[child] = x + across[place], y + up[place]
        self.centre_x[node], self.centre_y[node] = x + across[0], y + up[0]
        if first > 1:
            self._inside[node] = [x + across[1]], [y + up[1]]

    def _turned(self, node: int, x: float, y: float) -> tuple[list[float], list[float]]:
        """What is inside a circle, turned so that its page lies on the side of the page above: edges become short."""
        across, up = self._inside[node]
        above = int(self._parent[node])
        own = math.hypot(across[0], up[0])
        away = (0.0, 0.0) if above == ROOT else (self.centre_x[above] - x, self.centre_y[above] - y)
        far = math.hypot(*away)
        if own <= _GAP or far <= _GAP:
            return across, up
        cosine = (across[0] * away[0] + up[0] * away[1]) / (own * far)
        sine = (across[0] * away[1] - up[0] * away[0]) / (own * far)
        pairs = list(zip(across, up, strict=True))
        return [a * cosine - b * sine for a, b in pairs], [a * sine + b * cosine for a, b in pairs]

    def places(self, whole: float) -> TreeLayout:
        """Seeds into their flowers, folded pages into their discs."""
        parent, tree = self._parent, self._tree
        x, y = self.centre_x.copy(), self.centre_y.copy()
        disc_x, disc_y = np.full(len(x), np.nan), np.full(len(x), np.nan)
        for node in np.flatnonzero(tree.folded).tolist():
            (disc_x[node],), (disc_y[node],) = self._inside[node]
        order = self._order.order
        seeds = order[(self.seed | (self._flower_of != np.arange(len(x))))[order]]
        of = np.where(self.seed[seeds], self._flower_of[parent[seeds]], self._flower_of[seeds])
        _sow(seeds, of, (x, y), (x, y), 1)
        hidden = self._order.order[~tree.drawn[self._order.order]]
        _sow(hidden, _holders(parent, tree.drawn, self._order)[hidden], (disc_x, disc_y), (x, y), 0)
        return TreeLayout(x, y, disc_x, disc_y, self._disc, whole)


def _holders(parent: IntArray, drawn: BoolArray, order: TreeOrder) -> IntArray:
    """The nearest page above that is drawn, for pages that are not."""
    holder = parent.copy()
    above, shown = holder.tolist(), drawn.tolist()
    for node in order.order.tolist():
        up = above[node]
        if not shown[node] and not shown[up]:
            above[node] = above[up]
    return np.array(above, np.int64)


def _sow(
    pages: IntArray,
    of: IntArray,
    middle: tuple[FloatArray, FloatArray],
    into: tuple[FloatArray, FloatArray],
    first: int,
) -> None:
    """Write the places of pages around the middles they belong to, in the order given."""
    by_middle = np.argsort(of, kind="stable")
    pages, of = pages[by_middle], of[by_middle]
    counts = np.bincount(of) if len(of) else np.zeros(0, np.int64)
    known: dict[int, tuple[FloatArray, FloatArray]] = {}
    start = 0
    for node in np.flatnonzero(counts).tolist():
        count = int(counts[node])
        across, up = known[count] if count in known else known.setdefault(count, _sunflower(count, first))
        some = pages[start : start + count]
        into[0][some], into[1][some] = middle[0][node] + across, middle[1][node] + up
        start += count


def _sunflower(count: int, first: int) -> tuple[FloatArray, FloatArray]:
    """Places around 0 of seeds from the number ``first`` on, along a Hilbert curve. O(count log count)."""
    seed = np.arange(first, first + count)
    away = _SPREAD * np.sqrt(seed + (1.0 if first else 0.5 * (count > 1)))
    away = away if first or count > 1 else np.zeros(1)
    x, y = away * np.cos(seed * _GOLDEN), away * np.sin(seed * _GOLDEN)
    order = np.argsort(_along_hilbert(x, y), kind="stable")
    return x[order], y[order]


def _disc_radius(pages: IntArray) -> FloatArray:
    return np.asarray(_SPREAD * np.sqrt(pages) + _RIM)


def _along_hilbert(x: FloatArray, y: FloatArray) -> IntArray:
    """How far along a Hilbert curve through the square around them points lie."""
    side = 1 << _HILBERT_BITS
    reach = max(float(np.abs(x).max(initial=0.0)), float(np.abs(y).max(initial=0.0)), 1e-9)
    across, up = (np.clip(((one / reach + 1.0) / 2.0 * side).astype(np.int64), 0, side - 1) for one in (x, y))
    way = np.zeros(len(x), np.int64)
    step = side >> 1
    while step:
        right, high = (across & step) > 0, (up & step) > 0
        way += step * step * ((3 * right) ^ high)
        flip = ~high & right
        across, up = np.where(flip, side - 1 - across, across), np.where(flip, side - 1 - up, up)
        across, up = np.where(high, across, up), np.where(high, up, across)
        step >>= 1
    return way
