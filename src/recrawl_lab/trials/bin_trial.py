"""The evaluation of predicted change rates (SHARC 6.3 and 6.4): in which of ten bins is the rate of a page?

The rates of the pages of a site are divided into ten bins of equally many pages (reading 003.38). A tree and naive
Bayes predict the bins from features of the URL alone ("online") or also of the fetched page ("offline"). They are
compared with the siblings in the same directory. All are evaluated by ten-fold cross-validation.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from types import MappingProxyType
from typing import Final

import numpy as np

from recrawl.assess.prediction_scores import MeanInterval, ratio_with_interval, spearman
from recrawl.model import FloatArray, IntArray
from recrawl.predict import related_pages
from recrawl.predict.related_pages import UrlClusters
from recrawl.predict.static_features import SIGNS, FeatureTable
from recrawl_lab.learners.class_learners import LEARNERS
from recrawl_lab.trials.rate_training import AGE, RateTraining, known_only


def equal_frequency_bins(values: FloatArray, bins: int) -> IntArray:
    """The bin of each value, 0 for the least: ⌊first rank · bins / n⌋, so that equal values share one (reading 003.38).

    Where many values are equal, bins are uneven, and some may be empty. O(n log n).

    >>> equal_frequency_bins(np.array([5.0, 1.0, 1.0, 9.0]), 2).tolist()
    [1, 0, 0, 1]
    """
    first_rank = np.searchsorted(np.sort(values), values, side="left")
    return (first_rank * bins // max(len(values), 1)).astype(np.int64)


BINS: Final = 10
FOLDS: Final = 10
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
SITEMAP: Final = MappingProxyType({"sitemap": ("domain", "mime", "path_depth", AGE)})
"""The features of Table 6.4."""
COMPARED_LEARNERS: Final = ("naive Bayes", "tree")
SIBLINGS: Final = "siblings"


@dataclass(frozen=True, slots=True)
class BinPrediction:
    """How well one learner predicted the classes of one site from one set of features."""

    learner: str
    features: str
    right: MeanInterval
    """Share of pages put into their class: what the thesis calls precision. Whole directories are resampled."""
    near: float
    """Share of the wrong ones that are in a class next to theirs; NaN if none is wrong."""
    near_by_chance: float
    """What that share would be if the same guesses were dealt out at random among the wrong ones."""
    order: float
    """Rank correlation of the class said with the true one; NaN if either is the same everywhere."""


@dataclass(frozen=True, slots=True)
class SitePrediction:
    """All learners and sets of features on one site."""

    name: str
    pages: int
    still: float
    """Share of pages that never changed; NaN where that is unknown."""
    classes: int
    """That have pages."""
    commonest: float
    """Share of pages in the largest: what is right without any feature."""
    scores: tuple[BinPrediction, ...]


def predicted_bins(training: RateTraining, rng: np.random.Generator, *, repeats: int = 1) -> SitePrediction:
    """Table 6.3: bins of the rates, predicted from online and from offline features."""
    return predicted(training, equal_frequency_bins(training.rate, BINS), FEATURES, rng, repeats=repeats)


def predicted(
    training: RateTraining,
    bins: IntArray,
    features: Mapping[str, Sequence[str]],
    rng: np.random.Generator,
    *,
    repeats: int = 1,
) -> SitePrediction:
    """Predict classes in ten folds, drawn again in each repeat.

    Empty classes are left out: next to a class is the next that has pages. The siblings stand under the first set of
    features.
    """
    label = np.unique(bins, return_inverse=True)[1].astype(np.int64)
    known = known_only(training.table)
    tables = {name: known.only([one for one in wanted if one in known.names]) for name, wanted in features.items()}
    asked = [(name, learner) for name in tables for learner in COMPARED_LEARNERS]
    asked.insert(len(COMPARED_LEARNERS), (asked[0][0], SIBLINGS))
    rounds = [rng.permutation(len(label)) % FOLDS for _ in range(repeats)]
    cluster = np.tile(UrlClusters().add(training.urls), repeats)
    scores = []
    for name, learner in asked:
        said = np.concatenate([_said(training.urls, tables[name], label, part, learner) for part in rounds])
        scores.append(_score((learner, name), np.tile(label, repeats), said, cluster, rng))
    size = np.bincount(label)
    still = np.nan if np.isnan(training.rate).any() else float((training.rate == 0).mean())
    return SitePrediction(training.name, len(training), still, len(size), float(size.max() / len(label)), tuple(scores))


def _said(urls: Sequence[str], table: FeatureTable, label: IntArray, part: IntArray, learner: str) -> IntArray:
    """The likeliest class of each page, by a model that was trained on the other folds."""
    said, classes = np.zeros(len(label), np.int64), int(label.max()) + 1
    for fold in np.unique(part):
        out = part == fold
        if learner == SIBLINGS:
            known = [url for url, held in zip(urls, out, strict=True) if not held]
            asked = [url for url, held in zip(urls, out, strict=True) if held]
            said[out] = related_pages.fit_sibling_classes(known, label[~out], classes).classes(asked)
        else:
            model = LEARNERS[learner](table.take(~out), label[~out], classes)
            said[out] = np.argmax(model.chances(table.take(out)), axis=1)
    return said


def _score(
    what: tuple[str, str], label: IntArray, said: IntArray, cluster: IntArray, rng: np.random.Generator
) -> BinPrediction:
    right = ratio_with_interval((said == label).astype(np.float64), np.ones(len(label)), cluster, rng)
    order = spearman(label.astype(np.float64), said.astype(np.float64))
    return BinPrediction(*what, right, *nearness(label, said, int(label.max()) + 1), order)


def nearness(true: IntArray, said: IntArray, classes: int) -> tuple[float, float]:
    """Which share of the wrong guesses is off by one class, and which would be if guesses were dealt out at random.

    >>> near, _ = nearness(np.array([0, 0, 1, 2]), np.array([0, 1, 2, 0]), 3)
    >>> round(near, 3)
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
