"""The evaluation of static and historic classification (Barbosa §4): the share of pages in a wrong class.

Every page is monitored once a day for a period that starts at a random time of its life. Rates are those of eq. 1
(reading 002.1) over these visits, and their best clustering gives the classes. Static classifiers are trained on two
thirds of the pages. The last third starts in the predicted class, or in a random one, and is then visited at the
interval of its class, which its history changes. The true class of a page is that of its rate over the whole period.

The static classifier of paper 002 is a pruned decision tree over features of the page, trained with equally many pages
of each class (§3.3). It is compared with the same tree trained on all pages, and with the classes of the siblings in
the same directory, which need only the URL. Learners and feature sets are also compared as in §3.3 and Table 1.
"""

from __future__ import annotations

from collections.abc import Callable, Container, Mapping, Sequence
from dataclasses import dataclass
from types import MappingProxyType
from typing import Protocol, TypeAlias

import numpy as np

from recrawl.model import FloatArray, IntArray, Pages
from recrawl.predict import related_pages
from recrawl.predict.class_tree import TreeModel, learn_tree
from recrawl.predict.related_pages import SiblingClasses, UrlClusters
from recrawl.predict.static_features import FeatureTable, table_of, url_columns
from recrawl.schedule.policies.by_interval import ByInterval
from recrawl.schedule.policies.historic_classes import (
    CLASS,
    TABLE_4,
    ChangeClasses,
    bayes_classes,
    drawn,
    historic_classes,
    kmeans_1d,
)
from recrawl.simulate.benchmark_field import BenchmarkField
from recrawl.simulate.policy_benchmark import BenchmarkRules, compete
from recrawl.simulate.sampling import Collection, PageTruth
from recrawl.simulate.virtual_web import EventTimes
from recrawl.time import DAY
from recrawl_lab.learners.class_learners import LEARNERS, wrapper_selection
from recrawl_lab.trials.rate_training import known_only

FeaturesAt: TypeAlias = Callable[[IntArray, FloatArray], FeatureTable]
"""The features of pages, given by their ascending places in all collections, each just before a time of its own."""


@dataclass(frozen=True, slots=True)
class DailyMonitoring:
    """Pages visited once a day for a while, each from its own day 0."""

    urls: tuple[str, ...]
    cluster: IntArray
    """Pages of one directory, which are edited together."""
    truth: PageTruth
    days: int
    observations: FeatureTable
    """Features of each page on its day 0."""

    def __len__(self) -> int:
        return len(self.urls)

    def rates(self) -> FloatArray:
        """Changes a day by eq. 1, from once in the period to once a day: daily visits cannot resolve more."""
        row, day = self.truth.changes.row_of_event(), np.ceil(self.truth.changes.times / DAY).astype(np.int64)
        seen = np.unique(row * (self.days + 1) + day)
        found = np.bincount(seen // (self.days + 1), minlength=len(self))
        rates = -np.log((self.days - found + 0.5) / (self.days + 0.5))
        return np.asarray(np.clip(rates, 1.0 / self.days, 1.0))

    def take(self, rows: IntArray) -> DailyMonitoring:
        """The pages at these ascending places."""
        urls = tuple(self.urls[row] for row in rows.tolist())
        return DailyMonitoring(urls, self.cluster[rows], self.truth.take(rows), self.days, self.observations.take(rows))


def monitored(
    collections: Sequence[Collection],
    rng: np.random.Generator,
    *,
    days: int,
    most: int | None = None,
    observations: FeaturesAt | None = None,
) -> DailyMonitoring:
    """The pages that were there long enough, each for ``days`` days from a random moment; at most N of them.

    Without ``observations`` a page is nothing but its URL.

    Raises:
        ValueError: no page was there for so long.
    """
    lifetimes = [collection.watched() for collection in collections]
    urls = [url for collection in collections for url in collection.urls]
    born = np.concatenate([life.born for life in lifetimes])
    end = np.concatenate([np.minimum(life.died, life.end) for life in lifetimes])
    changes = EventTimes.concatenate([life.changes for life in lifetimes])
    spare = np.where(np.isfinite(born), end - np.where(np.isfinite(born), born, 0.0), -np.inf) - days * DAY
    rows = np.flatnonzero(spare >= 0)
    if not len(rows):
        msg = f"no page was there for {days} days"
        raise ValueError(msg)
    if most is not None and len(rows) > most:
        rows = np.sort(rng.choice(rows, most, replace=False))
    start = born[rows] + rng.random(len(rows)) * spare[rows]
    whole = PageTruth(born, end, changes, 0.0, days * DAY).take(rows)
    since = whole.changes.times - start[whole.changes.row_of_event()]
    within = EventTimes(whole.changes.offsets, since).where((since > 0) & (since <= days * DAY))
    truth = PageTruth(np.zeros(len(rows)), np.full(len(rows), np.inf), within, 0.0, days * DAY)
    chosen = tuple(urls[row] for row in rows.tolist())
    seen = observations(rows, start) if observations else table_of(rows, float(start.max()), url_columns(chosen))
    return DailyMonitoring(chosen, UrlClusters().add(urls)[rows], truth, days, seen)


class StaticClassifier(Protocol):
    """Predicts class probabilities of pages before their first visit."""

    def chances(self, pages: DailyMonitoring) -> FloatArray:
        """The probability of each class, one row per page."""
        ...


Start: TypeAlias = Callable[[DailyMonitoring, IntArray, int, np.random.Generator], StaticClassifier]
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
class _SiblingClassifier:
    known: SiblingClasses

    def chances(self, pages: DailyMonitoring) -> FloatArray:
        return self.known.chances(pages.urls)


def siblings(pages: DailyMonitoring, label: IntArray, classes: int, rng: np.random.Generator) -> StaticClassifier:
    """The classes of the other pages of the directory. Nothing is drawn."""
    del rng
    return _SiblingClassifier(related_pages.fit_sibling_classes(pages.urls, label, classes))


@dataclass(frozen=True, slots=True)
class _TreeClassifier:
    features: tuple[str, ...]
    model: TreeModel

    def chances(self, pages: DailyMonitoring) -> FloatArray:
        return self.model.chances(pages.observations.only(self.features))


def tree(pages: DailyMonitoring, label: IntArray, classes: int, rng: np.random.Generator) -> StaticClassifier:
    """The pruned tree of the paper: equally many pages of each class."""
    chosen = balanced(label, rng)
    return tree_of_all(pages.take(chosen), label[chosen], classes, rng)


def tree_of_all(pages: DailyMonitoring, label: IntArray, classes: int, rng: np.random.Generator) -> StaticClassifier:
    """A pruned tree over all pages: common classes are likelier. Nothing is drawn."""
    del rng
    table = known_only(pages.observations)
    return _TreeClassifier(table.names, learn_tree(table, label, classes))


STARTS: Mapping[str, Start] = MappingProxyType({"tree": tree, "tree of all": tree_of_all, "siblings": siblings})
"""By name."""


CLASSES = 4
SCALES = ("rates", "logarithms of rates")
"""What is clustered: the paper takes rates, which puts nearly all pages of a heavy-tailed population into one class."""
RANDOM = "random"
_CHANCES = " chances"


def methods(starts: Sequence[str]) -> list[str]:
    """Those of Table 5, for each start, and one more: Bayes' rule from the chances that a static classifier gives.

    >>> methods(["tree"])[2:]
    ['tree + Bayesian', 'tree + historic', 'tree chances + Bayesian']
    """
    found = [f"{start} + {rule}" for start in (RANDOM, *starts) for rule in ("Bayesian", "historic")]
    return found + [f"{start}{_CHANCES} + Bayesian" for start in starts]


@dataclass(frozen=True, slots=True)
class RateGroups:
    """Classes of change found by clustering, from the most dynamic to the least."""

    classes: ChangeClasses
    border: FloatArray
    """Rates a day between each class and the next, descending."""

    def of(self, rate: FloatArray) -> IntArray:
        """The class of each rate."""
        return np.searchsorted(-self.border, -rate, side="left")


def grouped(rate: FloatArray, *, scale: str, most: int = CLASSES) -> RateGroups:
    """Cluster rates, changes per day; windows and thresholds of the historic classifier as in Table 4.

    Raises:
        ValueError: all rates are equal.
    """
    values = np.log(rate) if scale == SCALES[1] else rate
    found = kmeans_1d(values, most)
    if len(found.centres) < 2:  # noqa: PLR2004 - one class is nothing to choose from
        msg = "all pages have the same rate"
        raise ValueError(msg)
    middle = 0.5 * (found.centres[1:] + found.centres[:-1])
    centres, border = (np.exp(found.centres), np.exp(middle)) if scale == SCALES[1] else (found.centres, middle)
    window = TABLE_4.window[: len(centres)]
    classes = ChangeClasses.of(DAY / centres[::-1], window=window, lowest=TABLE_4.lowest[0], highest=TABLE_4.highest[0])
    return RateGroups(classes, border[::-1])


@dataclass(frozen=True, slots=True)
class ClassTrial:
    """Pages to classify, and what the classifiers start from."""

    pages: DailyMonitoring
    groups: RateGroups
    true: IntArray
    """The class of each page by its rate over the whole period."""
    chances: Mapping[str, FloatArray]
    """Of the classes by each static classifier, one row per page."""
    common: int
    """The class most training pages are in."""
    seed: int


def parted(pages: DailyMonitoring, rng: np.random.Generator) -> tuple[DailyMonitoring, DailyMonitoring]:
    """Two thirds of the pages to learn from, and the others."""
    order = rng.permutation(len(pages))
    cut = 2 * len(pages) // 3
    return pages.take(np.sort(order[:cut])), pages.take(np.sort(order[cut:]))


def prepare(
    pages: DailyMonitoring, rng: np.random.Generator, *, scale: str, starts: Mapping[str, Start] = STARTS
) -> ClassTrial:
    """Two thirds of the pages make the classes and teach the static classifiers; the others are tried on."""
    known, tested = parted(pages, rng)
    groups = grouped(known.rates(), scale=scale)
    label = groups.of(known.rates())
    chances = {
        name: learner(known, label, len(groups.classes), rng).chances(tested) for name, learner in starts.items()
    }
    common = int(np.argmax(np.bincount(label)))
    return ClassTrial(tested, groups, groups.of(tested.rates()), chances, common, int(rng.integers(2**31)))


def first_classes(trial: ClassTrial) -> dict[str, IntArray]:
    """The class each page starts in (Table 3), and the commonest class for comparison."""
    ids = Pages.of(np.arange(len(trial.pages)))
    return {
        RANDOM: drawn(trial.groups.classes, trial.seed)(ids),
        **{name: np.argmax(chances, axis=1) for name, chances in trial.chances.items()},
        "commonest": np.full(len(trial.pages), trial.common),
    }


@dataclass(frozen=True, slots=True)
class ClassMoves:
    """How one method moved the pages between classes."""

    method: str
    visits: IntArray
    """To each page in the whole period, the first one not counted."""
    assigned: dict[int, IntArray]
    """After this many days, the class of each page."""


def classify(trial: ClassTrial, method: str, days: Sequence[int]) -> ClassMoves:
    """Let one method visit all pages for the whole period; where pages are after each of ``days``."""
    rules = BenchmarkRules(0.0, found_after=0.0, whenever_due=True, scored_from=0.0)
    field = BenchmarkField.of("pages", trial.pages.truth)
    visits = compete(field, _policy(trial, method), rules, np.random.default_rng(trial.seed), keep_visits=True).visits
    assert visits is not None  # noqa: S101 - asked for
    policy, ids = _policy(trial, method), np.arange(len(trial.pages))
    policy.add(Pages.of(ids))
    assigned, before = {}, -np.inf
    for day in sorted(days):
        policy.tell(visits.take((visits.time > before) & (visits.time <= day * DAY)))
        assigned[day] = np.asarray(policy.state(ids, CLASS))
        before = day * DAY
    return ClassMoves(method, np.bincount(visits.page, minlength=len(ids)) - 1, assigned)


def _policy(trial: ClassTrial, method: str) -> ByInterval:
    start, _, rule = method.partition(" + ")
    classes, name = trial.groups.classes, start.removesuffix(_CHANCES)
    if start == RANDOM:
        first = drawn(classes, trial.seed)
    else:
        first = lambda pages: np.argmax(trial.chances[name][pages.id], axis=1)  # noqa: E731 - one of two rules
    if rule == "historic":
        return historic_classes(classes=classes, first_class=first)
    chances = (lambda pages: trial.chances[name][pages.id]) if start.endswith(_CHANCES) else None
    return bayes_classes(classes=classes, first_class=first, first_chances=chances)


PAPER = (
    "internal_links",
    "external_links",
    "emails",
    "has_last_modified",
    "text_size",
    "content_size",
    "images",
    "domain_depth",
    "directory_level",
)
"""The features of the paper. The size is that without tags, or with them if only that is known."""
FEATURES = ("paper's", "all", "chosen")
FEWEST = 12
"""Pages that each class must have: a third of them is evaluated."""
_SELECTED_ON = 1_500
"""Pages that features are chosen on, at most: the search trains hundreds of trees."""


@dataclass(frozen=True, slots=True)
class LearnerResult:
    """One learner with one set of features."""

    learner: str
    features: str
    wrong: IntArray
    """1 for each tested page that was put into a wrong class, else 0."""
    fitting: float
    """Seconds."""
    classifying: float
    """Seconds for all tested pages."""


@dataclass(frozen=True, slots=True)
class Table1:
    """All learners with all sets of features, on equally many pages of each class."""

    learned: tuple[LearnerResult, ...]
    names: Mapping[str, tuple[str, ...]]
    """The features of each set; those chosen are in the order they were found in."""
    taught: int
    """Pages learned from; half as many are evaluated."""
    tested: IntArray
    """Places of the tested pages in the table."""


def table_1(
    observations: FeatureTable, label: IntArray, classes: int, rng: np.random.Generator, clock: Callable[[], float]
) -> Table1 | None:
    """Compare the learners on a balanced sample, two thirds to learn from; ``None`` where a class has too few pages.

    Features are chosen on the pages learned from. ``clock`` tells seconds, for the times.
    """
    chosen = balanced(label, rng)
    if len(chosen) < FEWEST * len(np.unique(label)):
        return None
    order = rng.permutation(chosen)
    cut = 2 * len(order) // 3
    known, tested = np.sort(order[:cut]), np.sort(order[cut:])
    table = known_only(observations.take(known))
    some = np.sort(rng.choice(len(known), min(len(known), _SELECTED_ON), replace=False))
    best = wrapper_selection(table.take(some), label[known][some], classes, rng)
    sets = {
        FEATURES[0]: _paper(table.names),
        FEATURES[1]: table.names,
        FEATURES[2]: best or table.names,
    }
    learned = [
        _learned((name, learner), observations.only(names), label, (known, tested, classes), clock)
        for name, names in sets.items()
        for learner in LEARNERS
    ]
    return Table1(tuple(learned), MappingProxyType(sets), len(known), tested)


def _paper(names: Container[str]) -> tuple[str, ...]:
    found = [name for name in PAPER if name in names]
    return tuple(name for name in found if name != "content_size" or "text_size" not in found)


def _learned(
    what: tuple[str, str],
    table: FeatureTable,
    label: IntArray,
    parts: tuple[IntArray, IntArray, int],
    clock: Callable[[], float],
) -> LearnerResult:
    features, learner = what
    known, tested, classes = parts
    taught, judged = table.take(known), table.take(tested)
    begin = clock()
    model = LEARNERS[learner](taught, label[known], classes)
    fitted = clock()
    said = np.argmax(model.chances(judged), axis=1)
    return LearnerResult(learner, features, (said != label[tested]).astype(np.int64), fitted - begin, clock() - fitted)
