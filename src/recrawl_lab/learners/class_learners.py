"""Learners of change classes from features at first sight: those of papers 002 (Table 1) and 003 (6.3).

All read a :class:`~recrawl.predict.static_features.FeatureTable` and predict class probabilities. Categorical columns
are encoded for each learner: a tree gets the mean class of each name among the training pages, so that one split
separates fast from slow names; naive Bayes counts names; nearest neighbours compare them for equality. An unknown value
is a value of its own in a tree, ignored by naive Bayes, and typical for neighbours.

*Naive Bayes* over mixed features, as in papers 002 and 003: normal distributions for numbers, frequencies for names.
Unknown values and names without training pages are ignored. The standard deviation of a number in a class is at least a
sixth of the mean distance between observed values (as in WEKA); otherwise a class whose few pages agree by chance would
be certain.

*The decision tree* is pruned as in C4.5 and WEKA's J48. scikit-learn grows it (information gain, at least two pages per
leaf) but prunes by another rule, so the pruning is done here: a branch becomes a leaf if the pessimistic error of the
leaf is not above that of the branch (Quinlan 1993, §4.2). The pessimistic error is the upper end of the confidence
interval of a binomial proportion. There is no subtree raising, and splits are binary.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import partial
from types import MappingProxyType
from typing import Any, Protocol, TypeAlias

import numpy as np
import numpy.typing as npt
from scipy import stats

from recrawl.errors import require
from recrawl.model import BoolArray, FloatArray, IntArray
from recrawl.predict.static_features import FeatureTable

_FINEST = 1.0 / 6.0
"""Of the mean distance between values: the least spread in a class."""


@dataclass(frozen=True, slots=True)
class _Normal:
    mean: FloatArray
    """Of the number in each class."""
    spread: FloatArray

    def scores(self, values: FloatArray) -> FloatArray:
        """Logarithms of densities, one row per page; 0 where the number is unknown."""
        away = (values[:, None] - self.mean) / self.spread
        return np.where(np.isnan(away), 0.0, -0.5 * away**2 - np.log(self.spread))


@dataclass(frozen=True, slots=True)
class _Shares:
    seen: FloatArray
    """Names, ascending."""
    share: FloatArray
    """Logarithm of the share of each name in each class by Laplace's rule, one row a name; one more for unseen ones."""

    def scores(self, values: FloatArray) -> FloatArray:
        place = np.minimum(np.searchsorted(self.seen, values), max(len(self.seen) - 1, 0))
        known = self.seen[place] == values if len(self.seen) else np.zeros(len(values), np.bool_)
        return np.asarray(self.share[np.where(known, place, len(self.seen))])


_Law: TypeAlias = _Normal | _Shares


@dataclass(frozen=True, slots=True)
class BayesModel:
    """Laws of all features in each class."""

    schema: str
    prior: FloatArray
    """Logarithm of the share of each class among the training pages."""
    laws: tuple[_Law, ...]
    """One a column."""

    def chances(self, table: FeatureTable) -> FloatArray:
        """By Bayes' rule, as if features were independent. O(pages · classes · features)."""
        values = table.fitting(self.schema).values.astype(np.float64)
        joint = np.tile(self.prior, (len(table), 1))
        for place, law in enumerate(self.laws):
            joint += law.scores(values[:, place])
        scaled = np.exp(joint - joint.max(axis=1, keepdims=True, initial=-np.inf))
        return np.asarray(scaled / scaled.sum(axis=1, keepdims=True))


def learn_bayes(table: FeatureTable, label: IntArray, classes: int) -> BayesModel:
    """Fit a law to each feature, class by class. What is only ever 0 or 1 counts as a name. O(pages · features)."""
    size = np.bincount(label, minlength=classes)
    with np.errstate(divide="ignore"):  # a class without pages is never chosen
        prior = np.log(size / max(len(label), 1))
    laws: list[_Law] = []
    for place, column in enumerate(table.columns):
        values = table.values[:, place].astype(np.float64)
        named = column.categorical or not np.setdiff1d(values[~np.isnan(values)], [0.0, 1.0]).size
        laws.append(_shares(values, label, classes) if named else _normal(values, label, classes))
    return BayesModel(table.schema, prior, tuple(laws))


def _normal(values: FloatArray, label: IntArray, classes: int) -> _Normal:
    known = ~np.isnan(values)
    number, kind = values[known], label[known]
    met = np.unique(number)
    finest = _FINEST * (float(np.ptp(met)) / (len(met) - 1) if len(met) > 1 else 1.0)
    size = np.maximum(np.bincount(kind, minlength=classes), 1)
    mean = _sums(number, kind, classes) / size
    spread = np.sqrt(_sums((number - mean[kind]) ** 2, kind, classes) / size)
    return _Normal(mean, np.maximum(spread, finest))


def _sums(number: FloatArray, kind: IntArray, classes: int) -> FloatArray:
    return np.asarray(np.bincount(kind, weights=number, minlength=classes), dtype=np.float64)


def _shares(values: FloatArray, label: IntArray, classes: int) -> _Shares:
    known = ~np.isnan(values)
    seen, name = np.unique(values[known], return_inverse=True)
    count = np.bincount(name * classes + label[known], minlength=len(seen) * classes).reshape(-1, classes)
    share = np.log((count + 1.0) / (count.sum(axis=0) + max(len(seen), 1)))
    return _Shares(seen, np.concatenate([share, np.zeros((1, classes))]))


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
        """The probability of each class, one row per page; Laplace's rule keeps any from being 0. O(n · depth)."""
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


_MOST_CODES = 256
"""Names of a column, the unknown one included (:data:`recrawl.predict.static_features.BUCKETS` and two)."""
_SELDOM = 10
"""Names that fewer training pages have are treated like those that none has."""


class ClassModel(Protocol):
    """A learner that has learned. It reads tables of the schema it was trained on, and refuses others."""

    def chances(self, table: FeatureTable) -> FloatArray:
        """The probability of each class, one row per page."""
        ...


Learner = Callable[[FeatureTable, IntArray, int], ClassModel]
"""From pages, their classes and the number of classes to a model. The classes are 0 … classes − 1."""


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
    code = _codes(names)
    size = np.bincount(code, minlength=_MOST_CODES)
    total = np.bincount(code, weights=label.astype(np.float64), minlength=_MOST_CODES)
    everywhere = label.mean() if len(label) else 0.0
    return np.asarray(np.where(size < _SELDOM, everywhere, total / np.maximum(size, 1)))


def _ranked(values: npt.NDArray[np.float32], names: Mapping[int, FloatArray]) -> npt.NDArray[np.float32]:
    ranked = values.copy()
    for place, mean in names.items():
        ranked[:, place] = mean[_codes(values[:, place])]
    return ranked


def _codes(names: npt.NDArray[np.float32]) -> IntArray:
    """Whole numbers from 1 up for names, 0 for none; below :data:`_MOST_CODES`."""
    code = np.where(np.isnan(names) | (names < 0), 0, names + 1).astype(np.int64)
    return np.minimum(code, _MOST_CODES - 1)


@dataclass(frozen=True, slots=True)
class NeighbourModel:
    """The classes of the nearest training pages."""

    schema: str
    classes: int
    model: Any
    typical: FloatArray
    named: BoolArray
    low: FloatArray
    span: FloatArray

    def chances(self, table: FeatureTable) -> FloatArray:
        """Shares of the classes among the nearest. O(n · training pages)."""
        spots = _spots(table.fitting(self.schema).values, self.typical, self.named, self.low, self.span)
        return _spread(self.model.predict_proba(spots), self.model.classes_, self.classes)


def learn_neighbours(table: FeatureTable, label: IntArray, classes: int, *, count: int) -> NeighbourModel:
    """Keep the training pages: numbers scaled to 0 … 1, names at distance 1 from each other."""
    neighbours = require("sklearn.neighbors", "predict")
    named, typical = _named(table), _typical(table)
    numbers = np.where(np.isnan(table.values), typical, table.values)[:, ~named]
    low, span = numbers.min(axis=0, initial=np.inf), np.ptp(numbers, axis=0) if len(numbers) else numbers.sum(axis=0)
    span = np.where(span > 0, span, 1.0)
    spots = _spots(table.values, typical, named, low, span)
    model = neighbours.KNeighborsClassifier(count, algorithm="brute").fit(spots, label)
    return NeighbourModel(table.schema, classes, model, typical, named, low, span)


def _spots(
    values: npt.NDArray[np.float32], typical: FloatArray, named: BoolArray, low: FloatArray, span: FloatArray
) -> Any:  # noqa: ANN401 - a sparse matrix of scipy
    from scipy import sparse

    numbers = (np.where(np.isnan(values), typical, values)[:, ~named] - low) / span
    codes = _codes(values[:, named]) + _MOST_CODES * np.arange(named.sum())
    row = np.repeat(np.arange(len(values)), codes.shape[1])
    shape = (len(values), _MOST_CODES * int(named.sum()))
    marks = sparse.csr_array((np.full(codes.size, np.sqrt(0.5)), (row, codes.ravel())), shape=shape)
    return sparse.hstack([sparse.csr_array(numbers), marks], format="csr")


def _named(table: FeatureTable) -> BoolArray:
    return np.array([column.categorical for column in table.columns], dtype=np.bool_)


def _typical(table: FeatureTable) -> FloatArray:
    """The mean of what is known of each column; 0 where nothing is."""
    known = ~np.isnan(table.values)
    total = np.where(known, table.values, 0.0).sum(axis=0, dtype=np.float64)
    return np.asarray(total / np.maximum(known.sum(axis=0), 1))


def _spread(chances: FloatArray, found: IntArray, classes: int) -> FloatArray:
    """Chances of all classes, where the training pages may lack some."""
    whole = np.zeros((len(chances), classes))
    whole[:, found] = chances
    return whole


LEARNERS: Mapping[str, Learner] = MappingProxyType(
    {
        "tree": learn_tree,
        "tree, not pruned": partial(learn_tree, prune=False),
        "naive Bayes": learn_bayes,
        "1 nearest": partial(learn_neighbours, count=1),
        "2 nearest": partial(learn_neighbours, count=2),
    }
)
"""Those of paper 002, Table 1."""


def wrapper_selection(  # noqa: PLR0913 - what is known, and how to choose
    table: FeatureTable,
    label: IntArray,
    classes: int,
    rng: np.random.Generator,
    *,
    learner: Learner = learn_tree,
    folds: int = 5,
) -> tuple[str, ...]:
    """The features that the learner itself does best with (Kohavi and John 1997; paper 002, §3.3).

    Starts without any and adds the one that lowers the error in cross-validation most, until none does.
    O(features²) training_pages.
    """
    part = rng.permutation(len(table)) % folds
    chosen: list[str] = []
    least = 1.0 - np.bincount(label).max() / max(len(label), 1)
    while len(chosen) < len(table.columns):
        errors = {
            name: cross_validated(table.only([*chosen, name]), label, classes, part, learner)
            for name in table.names
            if name not in chosen
        }
        best = min(errors, key=lambda name: (errors[name], table.names.index(name)))
        if errors[best] >= least:
            break
        chosen.append(best)
        least = errors[best]
    return tuple(chosen)


def cross_validated(table: FeatureTable, label: IntArray, classes: int, part: IntArray, learner: Learner) -> float:
    """The share of pages put into a wrong class, each evaluated by a model that was trained on the other parts."""
    wrong = 0
    for held in np.unique(part):
        out = part == held
        model = learner(table.take(~out), label[~out], classes)
        wrong += int((np.argmax(model.chances(table.take(out)), axis=1) != label[out]).sum())
    return wrong / max(len(label), 1)
