"""The evaluation of predicted change rates (SHARC 6.3 and 6.4): in which of ten bins is the rate of a page?

Rates of the pages of a site are put into ten bins of equally many pages (reading 003.38). A tree and naive Bayes learn
the bins from features of the URL alone ("online") or of the fetched page as well ("offline"), and are judged by
cross-validation in ten folds.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from types import MappingProxyType
from typing import Final

import numpy as np

from recrawl.assess.rankings import spearman
from recrawl.model import FloatArray, IntArray
from recrawl.predict.class_learners import LEARNERS, Learner
from recrawl.predict.feature_table import Column, Feature, FeatureTable, Group, beside, table_of
from recrawl.predict.names import buckets
from recrawl.predict.rate_bins import equal_frequency_bins
from recrawl.predict.static_page import SIGNS
from recrawl.simulate.collection import Collection
from recrawl.simulate.recorded_pages import RecordedPages, known_only
from recrawl.time import DAY
from recrawl.urls import host_of

BINS: Final = 10
FOLDS: Final = 10
SHORTEST: Final = 30 * DAY
"""Pages that were there for less are left out: one change on one day is no rate."""
AGE: Final = "days_since_change"
ONLINE: Final = (
    "domain",
    "mime",
    "path_depth",
    "url_characters",
    "segment1",
    "segment2",
    "segment3",
    *(f"url_has_{sign}" for sign in SIGNS),
)
"""What is known before the page is fetched, but for the media type."""
OFFLINE: Final = (*ONLINE, AGE, "images", "tables", "internal_links", "external_links", "inlinks")
"""What is known once it is fetched."""
FEATURES: Final = MappingProxyType({"online": ONLINE, "offline": OFFLINE})
SITEMAP: Final = ("domain", "mime", "path_depth", AGE)
"""The features of Table 6.4."""
JUDGED: Final[Mapping[str, Learner]] = MappingProxyType({name: LEARNERS[name] for name in ("naive Bayes", "tree")})
WHOLE, AHEAD = "as printed", "ahead"
READINGS: Final = (WHOLE, AHEAD)
"""Rates of the whole record and features at its end, as in the thesis; or features in its middle and rates after it."""


@dataclass(frozen=True, slots=True)
class Lesson:
    """Pages of a site, what they look like, and how often they change."""

    name: str
    table: FeatureTable
    rate: FloatArray
    """Changes a second; NaN where nobody counted them."""

    def __len__(self) -> int:
        return len(self.rate)


def lessons(recorded: RecordedPages, reading: str) -> list[Lesson]:
    """A lesson for each collection. Pages that had gone by the time they are looked at are left out.

    With ``WHOLE`` a page is looked at when the record ends, and its rate is that from its birth on: what it looks like,
    above all its age, has then been shaped by the very changes that are foretold. ``AHEAD`` looks at it in the middle
    of the record, and counts what happens from then until the page goes or the record ends.
    """
    found, first = [], 0
    for collection in recorded.collections:
        found.append(_lesson(recorded, collection, first, reading))
        first += len(collection)
    return found


def pooled(several: Sequence[Lesson], name: str) -> Lesson:
    """The pages of several sites as those of one, which then has several domains."""
    page = np.concatenate([one.table.page for one in several])
    values = np.concatenate([one.table.values for one in several])
    first = several[0].table
    table = FeatureTable(page, first.columns, values, max(one.table.as_of for one in several))
    return Lesson(name, table, np.concatenate([one.rate for one in several]))


def _lesson(recorded: RecordedPages, collection: Collection, first: int, reading: str) -> Lesson:
    life = collection.watched()
    middle = 0.5 * (collection.start + collection.end)
    look = collection.end if reading == WHOLE else middle
    begin = np.maximum(life.born, collection.start) if reading == WHOLE else np.full(len(collection), middle)
    end = np.minimum(life.died, collection.end)
    there = (life.born < look) & (life.died >= look)
    row = np.flatnonzero(there & (end - np.where(there, begin, 0.0) >= SHORTEST))
    begin, end = begin[row], end[row]
    changes = collection.changes_between(row, begin, end)
    place, time = first + row, np.full(len(row), look)
    urls = [collection.urls[one] for one in row.tolist()]
    looks = recorded.looks(place, time)
    own = [domain_column(urls), age_column(recorded.ages(place, time))]
    table = beside([looks, table_of(looks.page, looks.as_of, own)])
    return Lesson(collection.name, table, changes / np.maximum(end - begin, SHORTEST))


def domain_column(urls: Sequence[str]) -> Column:
    """The domain of each URL as a name."""
    return Feature("domain", Group.SP, categorical=True), buckets([host_of(url) or "" for url in urls])


def age_column(days: FloatArray) -> Column:
    """Days since each page changed last, as the head of an answer or a sitemap tells it."""
    return Feature(AGE, Group.DP), days


@dataclass(frozen=True, slots=True)
class Foretold:
    """How well one learner foretold the classes of one site from one set of features."""

    learner: str
    features: str
    right: float
    """Share of pages put into their class: what the thesis calls precision."""
    near: float
    """Share of the wrong ones that are in a class next to theirs; NaN if none is wrong."""
    near_by_chance: float
    """What that share would be if the same guesses were dealt out at random among the wrong ones."""
    order: float
    """Rank correlation of the class said with the true one; NaN if either is the same everywhere."""


@dataclass(frozen=True, slots=True)
class SiteForetold:
    """All learners and sets of features on one site."""

    name: str
    pages: int
    still: float
    """Share of pages that never changed; NaN where that is unknown."""
    classes: int
    """That have pages."""
    commonest: float
    """Share of pages in the largest: what is right without any feature."""
    scores: tuple[Foretold, ...]


def foretold_bins(lesson: Lesson, rng: np.random.Generator) -> SiteForetold:
    """Tables 6.3: bins of the rates, foretold from online and from offline features."""
    return foretold(lesson, equal_frequency_bins(lesson.rate, BINS), FEATURES, rng)


def foretold(
    lesson: Lesson, bins: IntArray, features: Mapping[str, Sequence[str]], rng: np.random.Generator
) -> SiteForetold:
    """Foretell classes, in ten folds. Empty classes are left out: next to a class is the next that has pages."""
    label = np.unique(bins, return_inverse=True)[1].astype(np.int64)
    classes = int(label.max(initial=-1)) + 1
    part = rng.permutation(len(label)) % FOLDS
    known = known_only(lesson.table)
    scores = []
    for name, wanted in features.items():
        table = known.only([one for one in wanted if one in known.names])
        for learner in JUDGED:
            said = _said(table, label, classes, part, JUDGED[learner])
            right, order = float((said == label).mean()), spearman(label.astype(float), said.astype(float))
            scores.append(Foretold(learner, name, right, *nearness(label, said, classes), order))
    size = np.bincount(label, minlength=1)
    still = np.nan if np.isnan(lesson.rate).any() else float((lesson.rate == 0).mean())
    return SiteForetold(lesson.name, len(lesson), still, classes, float(size.max() / len(label)), tuple(scores))


def _said(table: FeatureTable, label: IntArray, classes: int, part: IntArray, learner: Learner) -> IntArray:
    """The likeliest class of each page, by a model that was trained on the other folds."""
    said = np.zeros(len(label), np.int64)
    for fold in np.unique(part):
        out = part == fold
        model = learner(table.take(~out), label[~out], classes)
        said[out] = np.argmax(model.chances(table.take(out)), axis=1)
    return said


def nearness(true: IntArray, said: IntArray, classes: int) -> tuple[float, float]:
    """Which share of the wrong guesses is off by one class, and which would be if guesses were dealt out at random.

    >>> nearness(np.array([0, 0, 1, 2]), np.array([0, 1, 2, 0]), 3)[0].__round__(3)
    0.667
    """
    wrong = said != true
    if not wrong.any():
        return np.nan, np.nan
    near = float((np.abs(said[wrong] - true[wrong]) == 1).mean())
    often = np.bincount(said, minlength=classes) / len(said)
    padded = np.concatenate([[0.0], often, [0.0]])
    beside_it, elsewhere = padded[:-2] + padded[2:], 1.0 - often
    chance = np.divide(beside_it, elsewhere, out=np.zeros(classes), where=elsewhere > 0)
    return near, float(chance[true[wrong]].mean())
