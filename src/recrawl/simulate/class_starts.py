"""Static classifiers: the class of change that a page begins in, from what it looks like at first sight.

Paper 002 has a pruned decision tree over features of the page, taught with equally many pages of each class (§3.3).
Beside it stand the same tree taught with all pages, and the classes of the siblings in the same directory, which need
the URL alone.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import Protocol, TypeAlias

import numpy as np

from recrawl.model import FloatArray, IntArray
from recrawl.predict import sibling_classes
from recrawl.predict.class_learners import TreeModel, learn_tree
from recrawl.predict.sibling_classes import SiblingClasses
from recrawl.simulate.monitored import Monitored
from recrawl.simulate.recorded_pages import known_only


class StaticClassifier(Protocol):
    """What pages look like before their first visit, turned into chances of the classes."""

    def chances(self, pages: Monitored) -> FloatArray:
        """The probability of each class, one row a page."""
        ...


Start: TypeAlias = Callable[[Monitored, IntArray, int, np.random.Generator], StaticClassifier]
"""From pages, their classes and the number of classes to a classifier: any learner can take part."""


def balanced(label: IntArray, rng: np.random.Generator) -> IntArray:
    """Places of equally many pages of each class that there is, ascending: as many as the smallest has (§3.3).

    >>> label = np.array([0, 1, 1, 1, 0])
    >>> label[balanced(label, np.random.default_rng(1))].tolist()
    [0, 1, 1, 0]
    """
    least = int(np.bincount(label)[np.unique(label)].min(initial=len(label)))
    order = rng.permutation(len(label))
    chosen = [order[label[order] == one][:least] for one in np.unique(label)]
    return np.sort(np.concatenate([np.empty(0, np.int64), *chosen]))


@dataclass(frozen=True, slots=True)
class _Siblings:
    known: SiblingClasses

    def chances(self, pages: Monitored) -> FloatArray:
        return self.known.chances(pages.urls)


def siblings(pages: Monitored, label: IntArray, classes: int, rng: np.random.Generator) -> StaticClassifier:
    """The classes of the other pages of the directory. Nothing is drawn."""
    del rng
    return _Siblings(sibling_classes.fit(pages.urls, label, classes))


@dataclass(frozen=True, slots=True)
class _Tree:
    features: tuple[str, ...]
    model: TreeModel

    def chances(self, pages: Monitored) -> FloatArray:
        return self.model.chances(pages.looks.only(self.features))


def tree(pages: Monitored, label: IntArray, classes: int, rng: np.random.Generator) -> StaticClassifier:
    """The pruned tree of the paper: equally many pages of each class."""
    chosen = balanced(label, rng)
    return tree_of_all(pages.take(chosen), label[chosen], classes, rng)


def tree_of_all(pages: Monitored, label: IntArray, classes: int, rng: np.random.Generator) -> StaticClassifier:
    """A pruned tree over all pages: common classes are likelier. Nothing is drawn."""
    del rng
    table = known_only(pages.looks)
    return _Tree(table.names, learn_tree(table, label, classes))


STARTS: Mapping[str, Start] = MappingProxyType({"tree": tree, "tree of all": tree_of_all, "siblings": siblings})
"""By name."""
