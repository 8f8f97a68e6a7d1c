"""Change classes (Barbosa §3.4, §4): every page is visited at the interval of its class, and its history moves it.

``historic-classes`` counts changes over a window of visits and then moves the page by one class (Algorithm 1);
``bayes-classes`` puts it where its history is most likely (Cho and Garcia-Molina 2000, as the paper reads it). A page
starts in the class that ``first_class`` predicts (the paper's static classifier, for example), or in one drawn by
chance (its "Random").
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import ClassVar, TypeAlias

import numpy as np

from recrawl.estimate.rate_classes import TABLE_4, ChangeClasses, log_likelihood, reclassified
from recrawl.model import AnyArray, FloatArray, IntArray, Pages
from recrawl.schedule.learning.observation_columns import ObservationColumns
from recrawl.schedule.learning.replayable_chance import uniform
from recrawl.schedule.policies.by_interval import INTERVAL, ByInterval

CLASS, _CHANGES, _VISITS = "class", "changes", "visits"

FirstClass: TypeAlias = Callable[[Pages], IntArray]
"""The class of pages nobody visited yet, 0 for the most dynamic."""
FirstChances: TypeAlias = Callable[[Pages], FloatArray]
"""The probability of each class for pages nobody visited yet, all above 0, one row per page."""


@dataclass(frozen=True, slots=True)
class DrawnClass:
    """A class by chance for each page, all equally likely; the same for the same page and seed."""

    classes: int
    """How many there are."""
    seed: int

    def __call__(self, pages: Pages) -> IntArray:
        """One entry per page."""
        return (uniform(self.seed, pages.id) * self.classes).astype(np.int64)


def drawn(classes: ChangeClasses, seed: int) -> FirstClass:
    """One of these classes by chance for each page."""
    return DrawnClass(len(classes), seed)


@dataclass(frozen=True, slots=True)
class HistoricRule:
    """The historic classifier: Algorithm 1 after every observation."""

    classes: ChangeClasses
    first_class: FirstClass
    name: str = "historic-classes"
    columns: ClassVar[Mapping[str, type[np.generic]]] = MappingProxyType(
        {CLASS: np.int64, _CHANGES: np.int32, _VISITS: np.int32}
    )
    reads_first_observations: ClassVar[bool] = False

    @property
    def shortest(self) -> float:
        """The interval of the most dynamic class."""
        return float(self.classes.interval[0])

    @property
    def start(self) -> float:
        """Never asked for: every page starts in a class."""
        return self.shortest

    @property
    def longest(self) -> float:
        """The interval of the least dynamic class."""
        return float(self.classes.interval[-1])

    def begin(self, pages: Pages) -> Mapping[str, AnyArray]:
        """The first class, and no visit in it."""
        first, zero = self.first_class(pages), np.zeros(len(pages), np.int32)
        return {INTERVAL: self.classes.interval[first], CLASS: first, _CHANGES: zero, _VISITS: zero}

    def after(self, page: Mapping[str, AnyArray], observation: ObservationColumns) -> Mapping[str, AnyArray]:
        """Count the observation; at the end of the window classify, and count again, moved or not (reading 002.3)."""
        changes, visits = page[_CHANGES] + observation.changed, page[_VISITS] + 1
        moved = reclassified(self.classes, page[CLASS], changes, visits)
        open_window = visits < self.classes.window[page[CLASS]]
        return {
            INTERVAL: self.classes.interval[moved],
            CLASS: moved,
            _CHANGES: np.where(open_window, changes, 0),
            _VISITS: np.where(open_window, visits, 0),
        }


class BayesRule:
    """The Bayesian estimator: the most likely class after every observation.

    Chances are equal at first, unless ``first_chances`` are given (reading 002.5).
    """

    name = "bayes-classes"
    reads_first_observations = False

    def __init__(
        self, classes: ChangeClasses, first_class: FirstClass, first_chances: FirstChances | None = None
    ) -> None:
        self._classes = classes
        self._first_class = first_class
        self._first_chances = first_chances
        self.shortest = self.start = float(classes.interval[0])
        self.longest = float(classes.interval[-1])
        self._logs = [f"log_{number}" for number in range(len(classes))]
        self.columns: Mapping[str, type[np.generic]] = {CLASS: np.int64} | dict.fromkeys(self._logs, np.float64)

    def begin(self, pages: Pages) -> Mapping[str, AnyArray]:
        """The first class; ln of the chances, up to a constant."""
        first = self._first_class(pages)
        logs = np.zeros((len(pages), len(self._logs)))
        if self._first_chances is not None:
            logs += np.log(self._first_chances(pages))
            logs -= logs.max(axis=1, keepdims=True)
        columns = dict(zip(self._logs, logs.T, strict=True))
        return {INTERVAL: self._classes.interval[first], CLASS: first} | columns

    def after(self, page: Mapping[str, AnyArray], observation: ObservationColumns) -> Mapping[str, AnyArray]:
        """The logarithms keep their greatest at 0, so that no class ever becomes impossible."""
        logs = np.stack([page[name] for name in self._logs], axis=1)
        logs += log_likelihood(self._classes.interval, observation.seconds, observation.changed)
        logs -= logs.max(axis=1, keepdims=True)
        best = np.argmax(logs, axis=1)
        columns = dict(zip(self._logs, logs.T, strict=True))
        return {INTERVAL: self._classes.interval[best], CLASS: best} | columns


def historic_classes(
    *, classes: ChangeClasses = TABLE_4, first_class: FirstClass | None = None, seed: int = 0
) -> ByInterval:
    """Change classes with the historic classifier; without ``first_class``, pages start in one drawn by chance."""
    return ByInterval(HistoricRule(classes, first_class or drawn(classes, seed)))


def bayes_classes(
    *,
    classes: ChangeClasses = TABLE_4,
    first_class: FirstClass | None = None,
    first_chances: FirstChances | None = None,
    seed: int = 0,
) -> ByInterval:
    """Change classes with the Bayesian estimator; without ``first_class``, pages start in one drawn by chance.

    ``first_chances`` are what Bayes' rule starts from, for example those of a static classifier; equal ones if not
    given, as in the paper.
    """
    return ByInterval(BayesRule(classes, first_class or drawn(classes, seed), first_chances))
