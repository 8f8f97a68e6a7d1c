"""The static classifier: a decision tree, pruned as C4.5 does, from features of a page to its class of change.

Paper 002 classifies a page when it is first seen, and uses Quinlan's C4.5 (Weka's J48, §3.3). A tree of scikit-learn is
grown here, cut back by C4.5's pessimistic errors, and copied into arrays: they are stored without pickles, which could
run code, and evaluated without scikit-learn. Class 0 is the most dynamic.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
from scipy import special

from recrawl.errors import require
from recrawl.model import AnyArray, BoolArray, FloatArray, IntArray
from recrawl.predict.static_features import FeatureTable

CONFIDENCE = 0.25
"""Of the interval, one-sided; the usual choice. Less prunes more."""
_WORTH = 0.1
"""Errors that a branch must save to stay."""


@dataclass(frozen=True, slots=True)
class PrunedTree:
    """A tree that was fitted and cut back. Immutable."""

    column: IntArray
    """What a node asks for."""
    threshold: FloatArray
    """Up to it a number goes left."""
    left: IntArray
    right: IntArray
    """The same as ``left`` in a leaf, and the node itself."""
    unknown_left: BoolArray
    """Where a page goes whose feature is unknown."""
    _chances: FloatArray
    """Of the classes at each node."""

    @property
    def leaves(self) -> int:
        """How many there are that a page can reach."""
        reached = np.zeros(len(self.left), np.bool_)
        reached[0] = True
        for node in range(len(self.left)):  # children come behind their parents
            if reached[node]:
                reached[[self.left[node], self.right[node]]] = True
        return int((reached & (self.left == np.arange(len(self.left)))).sum())

    def chances(self, values: npt.NDArray[np.float32]) -> FloatArray:
        """The probability of each class, one row per page; Laplace's rule keeps any from being 0. O(n · depth)."""
        row, node = np.arange(len(values)), np.zeros(len(values), np.int64)
        while not bool((self.left[node] == node).all()):
            asked = values[row, self.column[node]]
            goes = np.where(np.isnan(asked), self.unknown_left[node], asked <= self.threshold[node])
            node = np.where(goes, self.left[node], self.right[node])
        return np.asarray(self._chances[node])

    def arrays(self) -> dict[str, AnyArray]:
        """Everything, by name: for a file."""
        return {name: getattr(self, name) for name in _KINDS} | {"chances": self._chances}

    @classmethod
    def from_arrays(cls, arrays: Mapping[str, AnyArray], columns: int, classes: int) -> PrunedTree:
        """The reverse of :meth:`arrays`, for tables of this many columns.

        Raises:
            ValueError: they are no tree: of other kinds or lengths, with nodes outside, or without end.
        """
        given = {name: np.ascontiguousarray(arrays[name]) for name in _KINDS}
        chances = np.ascontiguousarray(arrays["chances"], np.float64)
        nodes = np.arange(len(chances))
        kinds = all(given[name].dtype == kind and given[name].shape == nodes.shape for name, kind in _KINDS.items())
        if not kinds or not len(nodes) or chances.shape != (len(nodes), classes) or not np.isfinite(chances).all():
            msg = "these numbers are no tree"
            raise ValueError(msg)
        tree = cls(**given, _chances=chances)
        leaf = (tree.left == nodes) & (tree.right == nodes)
        # Children lie behind their parents, so every way ends.
        onwards = leaf | ((tree.left > nodes) & (tree.right > nodes))
        inside = (tree.left < len(nodes)) & (tree.right < len(nodes)) & (tree.column >= 0) & (tree.column < columns)
        if not bool((onwards & inside).all()):
            msg = "these numbers lead nowhere"
            raise ValueError(msg)
        return tree


_KINDS: dict[str, type[np.generic]] = {
    "column": np.int64, "threshold": np.float64, "left": np.int64, "right": np.int64, "unknown_left": np.bool_,
}  # fmt: skip


def fit_tree(  # noqa: PLR0913 - what is known, and three choices with defaults
    values: npt.NDArray[np.float32],
    label: IntArray,
    classes: int,
    *,
    confidence: float = CONFIDENCE,
    prune: bool = True,
    seed: int = 0,
) -> PrunedTree:
    """Grow a tree on pages of known class, 0 … classes − 1, and cut it back. NaN is a value of its own.

    O(n log n) for each feature, and O(nodes) for the pruning.

    >>> rng = np.random.default_rng(1)
    >>> values = rng.random((400, 3), dtype=np.float32)
    >>> noisy = (values[:, 1] > 0.5) ^ (rng.random(400) < 0.1)
    >>> whole = fit_tree(values, noisy.astype(np.int64), 2, prune=False)
    >>> pruned = fit_tree(values, noisy.astype(np.int64), 2)
    >>> whole.leaves > 20, pruned.leaves < 10
    (True, True)
    """
    tree = require("sklearn.tree", "predict")
    grown = tree.DecisionTreeClassifier(criterion="entropy", min_samples_leaf=2, random_state=seed).fit(values, label)
    inside = grown.tree_
    counts = np.zeros((inside.node_count, classes))
    counts[:, grown.classes_] = inside.value[:, 0, :] * inside.n_node_samples[:, None]
    home, is_cut = np.arange(inside.node_count), np.zeros(inside.node_count, np.bool_)
    if prune:
        home, is_cut = _cut(inside.children_left, inside.children_right, counts, confidence)
    chances = (counts + 1.0) / (counts.sum(axis=1, keepdims=True) + classes)
    nodes = np.arange(inside.node_count)
    leaf = (inside.children_left < 0) | (home != nodes) | is_cut
    return PrunedTree(
        np.where(leaf, 0, inside.feature).astype(np.int64),
        inside.threshold.astype(np.float64),
        np.where(leaf, nodes, inside.children_left).astype(np.int64),
        np.where(leaf, nodes, inside.children_right).astype(np.int64),
        inside.missing_go_to_left.astype(np.bool_),
        chances,
    )


def _cut(left: IntArray, right: IntArray, counts: FloatArray, confidence: float) -> tuple[IntArray, BoolArray]:
    """The node that answers for each node, the topmost branch above it that became a leaf, else itself; and these."""
    size = counts.sum(axis=1)
    wrong = size - counts.max(axis=1)
    as_leaf = wrong + pessimism(size, wrong, confidence)
    best = as_leaf.copy()
    is_cut = np.zeros(len(size), dtype=np.bool_)
    for node in range(len(size) - 1, -1, -1):  # children come behind their parents
        if left[node] >= 0:
            branch = best[left[node]] + best[right[node]]
            is_cut[node] = as_leaf[node] <= branch + _WORTH
            best[node] = as_leaf[node] if is_cut[node] else branch
    home = np.arange(len(size))
    for node in range(len(size)):
        if left[node] >= 0 and (is_cut[node] or home[node] != node):
            home[[left[node], right[node]]] = home[node]
    return home, is_cut


def pessimism(size: FloatArray, wrong: FloatArray, confidence: float) -> FloatArray:
    """Errors to add to those seen among ``size`` pages, so that more are unlikely.

    Without any error the bound is exact; with one or more it is Wilson's with a correction for continuity, and between
    the two it is interpolated, as C4.5 does.

    >>> pessimism(np.array([6.0, 16.0]), np.array([0.0, 1.0]), 0.25).round(2).tolist()
    [1.24, 1.48]
    """
    none = size * (1.0 - confidence ** (1.0 / size))
    one = _wilson(size, np.maximum(wrong, 1.0), confidence)
    return np.where(wrong < 1.0, none + wrong * (one - none), one)


def _wilson(size: FloatArray, wrong: FloatArray, confidence: float) -> FloatArray:
    z = special.ndtri(1.0 - confidence)
    share = np.minimum((wrong + 0.5) / size, 1.0)
    spread = z * np.sqrt(share / size - share**2 / size + z**2 / (4.0 * size**2))
    upper = (share + z**2 / (2.0 * size) + spread) / (1.0 + z**2 / size)
    return np.where(wrong + 0.5 >= size, np.maximum(size - wrong, 0.0), upper * size - wrong)


MOST_CODES = 256
"""Names of a column, the unknown one included (:data:`recrawl.predict.static_features.BUCKETS` and two)."""
_SELDOM = 10
"""Names that fewer training pages have are treated like those that none has."""


@dataclass(frozen=True, slots=True)
class TreeModel:
    """A C4.5-like tree."""

    schema: str
    tree: PrunedTree
    names: Mapping[int, FloatArray]
    """For each column of names, the mean class of each code; the first is that of pages without a name."""

    def chances(self, table: FeatureTable) -> FloatArray:
        """The chances in the leaf of each page."""
        return self.tree.chances(_ranked(table.fitting(self.schema).values, self.names))


def learn_tree(table: FeatureTable, label: IntArray, classes: int, *, prune: bool = True) -> TreeModel:
    """Grow a tree, and prune it by default."""
    names = {
        place: _mean_class(table.values[:, place], label)
        for place, column in enumerate(table.columns)
        if column.categorical
    }
    return TreeModel(table.schema, fit_tree(_ranked(table.values, names), label, classes, prune=prune), names)


def _mean_class(names: npt.NDArray[np.float32], label: IntArray) -> FloatArray:
    """The mean class of each name; that of all for a name that few pages have.

    Such a name would give away the classes of these very pages, and the tree would learn nothing but names.
    """
    code = name_codes(names)
    size = np.bincount(code, minlength=MOST_CODES)
    total = np.bincount(code, weights=label.astype(np.float64), minlength=MOST_CODES)
    everywhere = label.mean() if len(label) else 0.0
    return np.asarray(np.where(size < _SELDOM, everywhere, total / np.maximum(size, 1)))


def _ranked(values: npt.NDArray[np.float32], names: Mapping[int, FloatArray]) -> npt.NDArray[np.float32]:
    ranked = values.copy()
    for place, mean in names.items():
        ranked[:, place] = mean[name_codes(values[:, place])]
    return ranked


def name_codes(names: npt.NDArray[np.float32]) -> IntArray:
    """Whole numbers from 1 up for names, 0 for none; below :data:`MOST_CODES`."""
    code = np.where(np.isnan(names) | (names < 0), 0, names + 1).astype(np.int64)
    return np.minimum(code, MOST_CODES - 1)
