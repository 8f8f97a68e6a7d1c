"""The evaluation of static and historic classification (Barbosa §4): how many pages end up in a wrong class?

Every page is monitored once a day for a period that begins at a random moment of its life. Rates are those of eq. 1
(reading 002.1) over these visits, and their best clustering gives the classes. From two thirds of the pages a static
classifier learns; the last third begins in the class it says, or in one drawn by chance, and is then visited at the
interval of its class, which its history moves. The true class of a page is that of its rate over the whole period.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Protocol, TypeAlias

import numpy as np

from recrawl.estimate.change_classes import TABLE_4, ChangeClasses
from recrawl.estimate.exact_kmeans import kmeans_1d
from recrawl.model import FloatArray, IntArray, Pages
from recrawl.predict import sibling_classes
from recrawl.predict.clusters import UrlClusters
from recrawl.schedule.by_interval import ByInterval
from recrawl.schedule.change_classes import CLASS, bayes_classes, drawn, historic_classes
from recrawl.simulate.collection import Collection
from recrawl.simulate.contest import Rules, compete
from recrawl.simulate.contest_field import Field
from recrawl.simulate.sampling import Truth
from recrawl.simulate.web_events import EventTimes
from recrawl.time import DAY

CLASSES = 4
SCALES = ("rates", "logarithms of rates")
"""What is clustered: the paper takes rates, which puts nearly all pages of a heavy-tailed population into one class."""
METHODS = (
    "random + Bayesian",
    "random + historic",
    "static + Bayesian",
    "static + historic",
    "static chances + Bayesian",
)
"""Those of Table 5, and one more: the Bayesian estimator that begins with the chances the static classifier gives."""


class StaticClassifier(Protocol):
    """What a page looks like before its first visit, turned into chances of the classes."""

    def chances(self, urls: Sequence[str]) -> FloatArray:
        """The probability of each class, one row a URL."""
        ...


Learner: TypeAlias = Callable[[Sequence[str], IntArray, int], StaticClassifier]
"""From URLs, their classes and the number of classes to a classifier: any learner can take part."""


@dataclass(frozen=True, slots=True)
class Monitored:
    """Pages visited once a day for a while, each from its own day 0."""

    urls: tuple[str, ...]
    cluster: IntArray
    """Pages of one directory, which are edited together."""
    truth: Truth
    days: int

    def __len__(self) -> int:
        return len(self.urls)

    def rates(self) -> FloatArray:
        """Changes a day by eq. 1, from once in the period to once a day: no more can be told by daily visits."""
        row, day = self.truth.changes.row_of_event(), np.ceil(self.truth.changes.times / DAY).astype(np.int64)
        seen = np.unique(row * (self.days + 1) + day)
        found = np.bincount(seen // (self.days + 1), minlength=len(self))
        rates = -np.log((self.days - found + 0.5) / (self.days + 0.5))
        return np.asarray(np.clip(rates, 1.0 / self.days, 1.0))

    def take(self, rows: IntArray) -> Monitored:
        """The pages at these places."""
        urls = tuple(self.urls[row] for row in rows.tolist())
        return Monitored(urls, self.cluster[rows], self.truth.take(rows), self.days)


def monitored(
    collections: Sequence[Collection], rng: np.random.Generator, *, days: int, most: int | None = None
) -> Monitored:
    """The pages that were there long enough, each for ``days`` days from a random moment; at most so many of them.

    Raises:
        ValueError: no page was there for so long.
    """
    lives = [collection.watched() for collection in collections]
    urls = [url for collection in collections for url in collection.urls]
    born = np.concatenate([life.born for life in lives])
    end = np.concatenate([np.minimum(life.died, life.end) for life in lives])
    changes = EventTimes.concatenate([life.changes for life in lives])
    spare = np.where(np.isfinite(born), end - np.where(np.isfinite(born), born, 0.0), -np.inf) - days * DAY
    rows = np.flatnonzero(spare >= 0)
    if not len(rows):
        msg = f"no page was there for {days} days"
        raise ValueError(msg)
    if most is not None and len(rows) > most:
        rows = np.sort(rng.choice(rows, most, replace=False))
    start = born[rows] + rng.random(len(rows)) * spare[rows]
    whole = Truth(born, end, changes, 0.0, days * DAY).take(rows)
    since = whole.changes.times - start[whole.changes.row_of_event()]
    within = EventTimes(whole.changes.offsets, since).where((since > 0) & (since <= days * DAY))
    truth = Truth(np.zeros(len(rows)), np.full(len(rows), np.inf), within, 0.0, days * DAY)
    return Monitored(tuple(urls[row] for row in rows.tolist()), UrlClusters().add(urls)[rows], truth, days)


@dataclass(frozen=True, slots=True)
class Groups:
    """Classes of change found by clustering, from the most dynamic to the least."""

    classes: ChangeClasses
    border: FloatArray
    """Rates a day between each class and the next, descending."""

    def of(self, rate: FloatArray) -> IntArray:
        """The class of each rate."""
        return np.searchsorted(-self.border, -rate, side="left")


def grouped(rate: FloatArray, *, scale: str, most: int = CLASSES) -> Groups:
    """Cluster rates, changes a day; windows and thresholds of the historic classifier as in Table 4.

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
    return Groups(classes, border[::-1])


@dataclass(frozen=True, slots=True)
class Trial:
    """Pages to classify, and what the classifiers start from."""

    pages: Monitored
    groups: Groups
    true: IntArray
    """The class of each page by its rate over the whole period."""
    chances: FloatArray
    """Of the classes by the static classifier, one row a page."""
    common: int
    """The class most training pages are in."""
    seed: int


def prepare(pages: Monitored, rng: np.random.Generator, *, scale: str, learner: Learner = sibling_classes.fit) -> Trial:
    """Two thirds of the pages make the classes and teach the static classifier; the others are tried on."""
    order = rng.permutation(len(pages))
    cut = 2 * len(pages) // 3
    known, tested = (pages.take(np.sort(part)) for part in (order[:cut], order[cut:]))
    groups = grouped(known.rates(), scale=scale)
    label = groups.of(known.rates())
    static = learner(known.urls, label, len(groups.classes))
    common = int(np.argmax(np.bincount(label)))
    seed = int(rng.integers(2**31))
    return Trial(tested, groups, groups.of(tested.rates()), static.chances(tested.urls), common, seed)


def first_classes(trial: Trial) -> dict[str, IntArray]:
    """The class each page begins in (Table 3), and the commonest class for comparison."""
    ids = Pages.of(np.arange(len(trial.pages)))
    return {
        "random": drawn(trial.groups.classes, trial.seed)(ids),
        "static": np.argmax(trial.chances, axis=1),
        "commonest": np.full(len(trial.pages), trial.common),
    }


@dataclass(frozen=True, slots=True)
class Classified:
    """How one method moved the pages between classes."""

    method: str
    visits: IntArray
    """To each page in the whole period, the first one not counted."""
    assigned: dict[int, IntArray]
    """After so many days, the class of each page."""


def classify(trial: Trial, method: str, days: Sequence[int]) -> Classified:
    """Let one method visit all pages for the whole period; where pages are after each of ``days``."""
    rules = Rules(0.0, found_after=0.0, whenever_due=True, scored_from=0.0)
    field = Field.of("pages", trial.pages.truth)
    visits = compete(field, _policy(trial, method), rules, np.random.default_rng(trial.seed), keep_visits=True).visits
    assert visits is not None  # noqa: S101 - asked for
    policy, ids = _policy(trial, method), np.arange(len(trial.pages))
    policy.add(Pages.of(ids))
    assigned, before = {}, -np.inf
    for day in sorted(days):
        policy.tell(visits.take((visits.time > before) & (visits.time <= day * DAY)))
        assigned[day] = np.asarray(policy.state(ids, CLASS))
        before = day * DAY
    return Classified(method, np.bincount(visits.page, minlength=len(ids)) - 1, assigned)


def _policy(trial: Trial, method: str) -> ByInterval:
    start, _, rule = method.partition(" + ")
    classes = trial.groups.classes
    first = (
        drawn(classes, trial.seed) if start == "random" else lambda pages: np.argmax(trial.chances[pages.id], axis=1)
    )
    if rule == "historic":
        return historic_classes(classes=classes, first_class=first)
    chances = (lambda pages: trial.chances[pages.id]) if start == "static chances" else None
    return bayes_classes(classes=classes, first_class=first, first_chances=chances)
