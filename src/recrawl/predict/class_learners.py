"""Learners that tell classes of change apart from features at first sight: those of papers 002 (Table 1) and 003 (6.3).

All read a :class:`FeatureTable` and answer with chances of the classes. Columns that hold names are treated as each
learner needs: a tree gets each name's mean class among the training pages (so that one cut divides the names into
quick and slow ones), naive Bayes counts them, and to neighbours two names are equal or not. What is unknown is a value
of its own in a tree, says nothing to naive Bayes, and is typical for neighbours.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import partial
from types import MappingProxyType
from typing import Any, Protocol

import numpy as np
import numpy.typing as npt

from recrawl.errors import require
from recrawl.model import BoolArray, FloatArray, IntArray
from recrawl.predict.feature_table import FeatureTable
from recrawl.predict.naive_bayes import learn_bayes
from recrawl.predict.pruned_tree import PrunedTree, fit_tree

_MOST_CODES = 256
"""Names of a column, the unknown one included (:data:`recrawl.predict.names.BUCKETS` and two)."""
_SELDOM = 10
"""Names that fewer training pages have are treated like those that none has."""


class ClassModel(Protocol):
    """A learner that has learned. It reads tables of the schema it was trained on, and refuses others."""

    def chances(self, table: FeatureTable) -> FloatArray:
        """The probability of each class, one row a page."""
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
    """Grow a tree, and cut it back unless told otherwise."""
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

    Begins without any and adds the one that lowers the error in cross-validation most, until none does.
    O(features²) trainings.
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
    """The share of pages put into a wrong class, each judged by a model that was trained on the other parts."""
    wrong = 0
    for held in np.unique(part):
        out = part == held
        model = learner(table.take(~out), label[~out], classes)
        wrong += int((np.argmax(model.chances(table.take(out)), axis=1) != label[out]).sum())
    return wrong / max(len(label), 1)
