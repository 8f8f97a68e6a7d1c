"""The evaluation of static and historic classification (Barbosa §4): how many pages end up in a wrong class?

Every page is monitored once a day for a period that begins at a random moment of its life. Rates are those of eq. 1
(reading 002.1) over these visits, and their best clustering gives the classes. From two thirds of the pages static
classifiers learn; the last third begins in the class they say, or in one drawn by chance, and is then visited at the
interval of its class, which its history moves. The true class of a page is that of its rate over the whole period.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from recrawl.estimate.change_classes import TABLE_4, ChangeClasses
from recrawl.estimate.exact_kmeans import kmeans_1d
from recrawl.model import FloatArray, IntArray, Pages
from recrawl.schedule.by_interval import ByInterval
from recrawl.schedule.change_classes import CLASS, bayes_classes, drawn, historic_classes
from recrawl.simulate.class_starts import STARTS, Start
from recrawl.simulate.contest import Rules, compete
from recrawl.simulate.contest_field import Field
from recrawl.simulate.monitored import Monitored
from recrawl.time import DAY

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
    chances: Mapping[str, FloatArray]
    """Of the classes by each static classifier, one row a page."""
    common: int
    """The class most training pages are in."""
    seed: int


def parted(pages: Monitored, rng: np.random.Generator) -> tuple[Monitored, Monitored]:
    """Two thirds of the pages to learn from, and the others."""
    order = rng.permutation(len(pages))
    cut = 2 * len(pages) // 3
    return pages.take(np.sort(order[:cut])), pages.take(np.sort(order[cut:]))


def prepare(pages: Monitored, rng: np.random.Generator, *, scale: str, starts: Mapping[str, Start] = STARTS) -> Trial:
    """Two thirds of the pages make the classes and teach the static classifiers; the others are tried on."""
    known, tested = parted(pages, rng)
    groups = grouped(known.rates(), scale=scale)
    label = groups.of(known.rates())
    chances = {
        name: learner(known, label, len(groups.classes), rng).chances(tested) for name, learner in starts.items()
    }
    common = int(np.argmax(np.bincount(label)))
    return Trial(tested, groups, groups.of(tested.rates()), chances, common, int(rng.integers(2**31)))


def first_classes(trial: Trial) -> dict[str, IntArray]:
    """The class each page begins in (Table 3), and the commonest class for comparison."""
    ids = Pages.of(np.arange(len(trial.pages)))
    return {
        RANDOM: drawn(trial.groups.classes, trial.seed)(ids),
        **{name: np.argmax(chances, axis=1) for name, chances in trial.chances.items()},
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
    classes, name = trial.groups.classes, start.removesuffix(_CHANCES)
    if start == RANDOM:
        first = drawn(classes, trial.seed)
    else:
        first = lambda pages: np.argmax(trial.chances[name][pages.id], axis=1)  # noqa: E731 - one of two rules
    if rule == "historic":
        return historic_classes(classes=classes, first_class=first)
    chances = (lambda pages: trial.chances[name][pages.id]) if start.endswith(_CHANCES) else None
    return bayes_classes(classes=classes, first_class=first, first_chances=chances)
