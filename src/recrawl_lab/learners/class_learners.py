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

from recrawl.errors import require
from recrawl.model import BoolArray, FloatArray, IntArray
from recrawl.predict.class_tree import MOST_CODES, learn_tree, name_codes
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


class ClassModel(Protocol):
    """A learner that has learned. It reads tables of the schema it was trained on, and refuses others."""

    def chances(self, table: FeatureTable) -> FloatArray:
        """The probability of each class, one row per page."""
        ...


Learner = Callable[[FeatureTable, IntArray, int], ClassModel]
"""From pages, their classes and the number of classes to a model. The classes are 0 … classes − 1."""


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
    codes = name_codes(values[:, named]) + MOST_CODES * np.arange(named.sum())
    row = np.repeat(np.arange(len(values)), codes.shape[1])
    shape = (len(values), MOST_CODES * int(named.sum()))
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
