"""A decision tree that is cut back where its branches are not worth their leaves, as C4.5 and WEKA's J48 do.

Papers 002 and 003 classify pages with C4.5. scikit-learn grows such a tree (by information gain, at least two pages in
a leaf) but prunes it by another rule, so the pruning is done here: a branch becomes a leaf if the leaf's pessimistic
error is not above that of the branch (Quinlan 1993, §4.2). The pessimistic error is the upper end of the confidence
interval of a binomial proportion. Branches are not grafted onto other places ("subtree raising"), and a split has two
sides.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
from scipy import stats

from recrawl.errors import require
from recrawl.model import FloatArray, IntArray

CONFIDENCE = 0.25
"""Of the interval, one-sided; the usual choice. Less prunes more."""
_WORTH = 0.1
"""Errors that a branch must save to stay."""


@dataclass(frozen=True, slots=True)
class PrunedTree:
    """A tree that was fitted and cut back. Immutable."""

    _grown: Any
    _node_of_leaf: IntArray
    """The node that answers for each leaf of the grown tree: itself, or the branch cut above it."""
    _chances: FloatArray
    """Of the classes at each node."""
    leaves: int
    """After pruning."""

    def chances(self, values: npt.NDArray[np.float32]) -> FloatArray:
        """The probability of each class, one row a page; Laplace's rule keeps any from being 0. O(n · depth)."""
        return np.asarray(self._chances[self._node_of_leaf[self._grown.apply(values)]])


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
    home = np.arange(inside.node_count)
    if prune:
        home = _cut(inside.children_left, inside.children_right, counts, confidence)
    chances = (counts + 1.0) / (counts.sum(axis=1, keepdims=True) + classes)
    leaf = inside.children_left < 0
    return PrunedTree(grown, home, chances, len(np.unique(home[leaf])))


def _cut(left: IntArray, right: IntArray, counts: FloatArray, confidence: float) -> IntArray:
    """The node that answers for each node: the topmost branch above it that became a leaf, else itself."""
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
    return home


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
    z = stats.norm.ppf(1.0 - confidence)
    share = np.minimum((wrong + 0.5) / size, 1.0)
    spread = z * np.sqrt(share / size - share**2 / size + z**2 / (4.0 * size**2))
    upper = (share + z**2 / (2.0 * size) + spread) / (1.0 + z**2 / size)
    return np.where(wrong + 0.5 >= size, np.maximum(size - wrong, 0.0), upper * size - wrong)
