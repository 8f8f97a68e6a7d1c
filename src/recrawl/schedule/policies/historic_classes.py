r"""Change classes (Barbosa §3.4, §4): every page is visited at the interval of its class, and its history moves it.

``historic-classes`` counts changes over a window of visits and then moves the page by one class (Algorithm 1);
``bayes-classes`` puts it where its history is most likely (Cho and Garcia-Molina 2000, as the paper reads it). A page
starts in the class that ``first_class`` predicts (the paper's static classifier, for example), or in one drawn by
chance (its "Random").

Few intervals take the place of a rate for every page. Classes come from a clustering of the pages' rates. The
clustering is the exact optimum, which k-means only approximates (Barbosa §3.2, reading 002.2). A page is moved between
classes by its history, either when a window of visits is full (the historic classifier) or by Bayes' rule (the
estimator it is compared with):

    P(class k | observation) ∝ P(class k) · (1 − e^{−Δ/I_k} if changed, e^{−Δ/I_k} if not)

after the time Δ, with I_k the interval of class k (reading 002.5). Class 0 is the most dynamic.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import ClassVar, NamedTuple, TypeAlias

import numpy as np
import numpy.typing as npt

from recrawl.model import AnyArray, BoolArray, FloatArray, IntArray, Pages
from recrawl.schedule.learning.observation_columns import ObservationColumns
from recrawl.schedule.learning.replayable_chance import uniform
from recrawl.schedule.policies.by_interval import INTERVAL, ByInterval
from recrawl.time import DAY


class KMeansClusters(NamedTuple):
    """A clustering of numbers."""

    centres: FloatArray
    """The mean of each cluster, ascending."""
    labels: IntArray
    """The cluster of each number."""
    squares: float
    """Sum of squared distances to the centres: what is least."""


def kmeans_1d(values: npt.ArrayLike, k: int) -> KMeansClusters:
    """The best k-means clustering of numbers, exactly. O(k · distinct · log distinct) and vectorised.

    Clusters of numbers are runs of the sorted numbers. The best first m numbers in j runs follow from the best in j − 1
    runs; where the last run starts never falls as m grows, so halving finds all starts of a layer. Fewer than k
    clusters if there are fewer distinct numbers.

    >>> kmeans_1d([1.0, 9.0, 1.2, 9.4], 2).centres.tolist()
    [1.1, 9.2]
    """
    numbers = np.asarray(values, dtype=np.float64)
    if k < 1 or not len(numbers) or not np.isfinite(numbers).all():
        msg = "clusters need at least one number, all finite, and k of 1 or more"
        raise ValueError(msg)
    distinct, label_of, count = np.unique(numbers, return_inverse=True, return_counts=True)
    k = min(k, len(distinct))
    cost = _RunCosts(distinct, count)
    ends = np.arange(len(distinct) + 1)
    best = np.where(ends > 0, cost(np.zeros(len(ends), np.int64), ends), 0.0)
    begins = []
    for layer in range(1, k):
        best, begin = _next_layer(best, cost, layer)
        begins.append(begin)
    cuts = [len(distinct)]
    for begin in reversed(begins):
        cuts.append(int(begin[cuts[-1]]))
    cuts = [0, *reversed(cuts)]
    run = np.searchsorted(cuts[1:], np.arange(len(distinct)), side="right")
    centres = np.bincount(run, count * distinct) / np.bincount(run, count)
    labels = run[label_of]
    return KMeansClusters(centres, labels, float(((numbers - centres[labels]) ** 2).sum()))


class _RunCosts:
    """Sum of squares around their mean of the numbers from ``begin`` to before ``end``; O(1) by running sums."""

    def __init__(self, distinct: FloatArray, count: IntArray) -> None:
        moved = distinct - np.average(distinct, weights=count)  # smaller numbers cancel less
        self._sums = np.zeros((3, len(distinct) + 1))
        np.cumsum(np.stack([count, count * moved, count * moved**2]), axis=1, out=self._sums[:, 1:])

    def __call__(self, begin: IntArray, end: IntArray) -> FloatArray:
        weight, total, squares = self._sums[:, end] - self._sums[:, begin]
        return np.asarray(np.maximum(squares - total**2 / np.maximum(weight, 1.0), 0.0))


def _next_layer(best: FloatArray, cost: _RunCosts, layer: int) -> tuple[FloatArray, IntArray]:
    """Best cost of the first m numbers in one run more, and where the last run starts, for all m at once."""
    n = len(best)
    found, begin = np.full(n, np.inf), np.zeros(n, np.int64)
    low, high = np.array([layer + 1]), np.array([n - 1])  # ends to solve, in pieces
    first, last = np.array([layer]), np.array([n - 2])  # starts possible in each piece
    while len(low):
        middle = (low + high) // 2
        top = np.minimum(last, middle - 1)
        width = top - first + 1
        piece = np.repeat(np.arange(len(middle)), width)
        heads = np.cumsum(width) - width
        tried = first[piece] + np.arange(len(piece)) - heads[piece]
        value = best[tried] + cost(tried, middle[piece])
        least = np.minimum.reduceat(value, heads)
        hit = np.flatnonzero(value == least[piece])
        chosen = tried[hit[np.searchsorted(piece[hit], np.arange(len(middle)))]]
        found[middle], begin[middle] = least, chosen
        low, high = np.concatenate([low, middle + 1]), np.concatenate([middle - 1, high])
        first, last = np.concatenate([first, chosen]), np.concatenate([chosen, last])
        some = low <= high
        low, high, first, last = low[some], high[some], first[some], last[some]
    return found, begin


@dataclass(frozen=True, slots=True)
class ChangeClasses:
    """Classes from the most dynamic to the least, one column a property."""

    interval: FloatArray
    """How often pages of the class are visited, seconds, ascending."""
    window: IntArray
    """Visits after which a page is classified again."""
    lowest: FloatArray
    """Share of changes below which a page moves to the next slower class."""
    highest: FloatArray
    """Share of changes above which it moves to the next faster one."""

    @classmethod
    def of(
        cls,
        interval: npt.ArrayLike,
        *,
        window: npt.ArrayLike = 2,
        lowest: npt.ArrayLike = 0.2,
        highest: npt.ArrayLike = 0.8,
    ) -> ChangeClasses:
        """Columns from anything array-like; a single value fills its column."""
        intervals = np.asarray(interval, dtype=np.float64)
        windows = np.broadcast_to(np.asarray(window, dtype=np.int64), intervals.shape)
        shares = (np.broadcast_to(np.asarray(share, dtype=np.float64), intervals.shape) for share in (lowest, highest))
        if not len(intervals) or intervals[0] <= 0 or (np.diff(intervals) <= 0).any() or (windows < 1).any():
            msg = "classes need intervals above 0, ascending, and windows of 1 visit or more"
            raise ValueError(msg)
        return cls(intervals, windows, *shares)

    def __len__(self) -> int:
        return len(self.interval)


TABLE_2 = ChangeClasses.of(np.array([1, 7, 30, 100]) * DAY, window=[10, 8, 6, 2], lowest=0.3, highest=0.7)
"""The example of Barbosa Table 2."""
TABLE_4 = ChangeClasses.of(np.array([1, 3, 31, 96]) * DAY, window=[3, 2, 2, 1])
"""What its experiments used (Barbosa Table 4)."""


def reclassified(classes: ChangeClasses, current: IntArray, changes: AnyArray, visits: AnyArray) -> IntArray:
    """Algorithm 1: the class of each page after ``visits`` to it in its ``current`` class found ``changes``.

    It moves by one class, and only when its window is full; the slowest and the fastest stay where they are
    (reading 002.3).

    >>> reclassified(TABLE_2, np.array([1, 1, 1]), np.array([6, 1, 1]), np.array([8, 8, 7])).tolist()
    [0, 2, 1]
    """
    size = classes.window[current]
    share = changes / size
    slower, faster = share < classes.lowest[current], share > classes.highest[current]
    step = np.where(visits == size, slower.astype(np.int64) - faster, 0)
    return np.clip(current + step, 0, len(classes) - 1)


def log_likelihood(interval: FloatArray, elapsed: FloatArray, changed: BoolArray) -> FloatArray:
    """Logarithm of P(what the observation found | class), one row per observation, one column a class.

    ``elapsed`` is > 0, in the unit of ``interval``.
    """
    x = elapsed[:, None] / interval
    return np.where(changed[:, None], np.log(-np.expm1(-x)), -x)


def updated(prior: FloatArray, interval: FloatArray, elapsed: float, *, changed: bool) -> FloatArray:
    """The probability of each class after one observation.

    >>> updated(np.array([0.9, 0.1]), np.array([7.0, 30.0]), 7.0, changed=False).round(3).tolist()
    [0.807, 0.193]
    """
    log = np.log(prior) + log_likelihood(interval, np.array([elapsed]), np.array([changed]))[0]
    weight = np.exp(log - log.max())
    return np.asarray(weight / weight.sum())


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
