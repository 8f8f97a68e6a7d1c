"""Naive Bayes over mixed features, as papers 002 and 003 use it: normal laws for numbers, shares for names.

What is unknown says nothing, and so does a name that no training page has. The spread of a number in a class is at
least a sixth of the mean distance between the values met (as WEKA does): else a class whose few pages agree by chance
would be sure of everything.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TypeAlias

import numpy as np

from recrawl.model import FloatArray, IntArray
from recrawl.predict.feature_table import FeatureTable

_FINEST = 1.0 / 6.0
"""Of the mean distance between values: the least spread in a class."""


@dataclass(frozen=True, slots=True)
class _Normal:
    mean: FloatArray
    """Of the number in each class."""
    spread: FloatArray

    def scores(self, values: FloatArray) -> FloatArray:
        """Logarithms of densities, one row a page; 0 where the number is unknown."""
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
