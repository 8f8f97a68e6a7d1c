"""Learners that predict new links from features (paper 004, §5.3).

*Tree ensembles* of the paper, with its tuned settings where it states them. Only NGBoost needs unknown values to be
filled: they are set to one below the smallest known value, so that trees can separate them. Pages with an unknown
target are not used for training.

*Distributions* of the number of new links around a predicted mean. NGBoost in paper 004 assumes Poisson, though most
pages have none and a few have hundreds. The negative binomial (pages of the same mean differ in rate) and the
zero-inflated Poisson (a share of the pages is inactive) have the same mean and one parameter more. It is fitted by
maximum likelihood on pages that were not used to fit the means, because learners are overconfident on their training
pages.

*Shrunken counts*, the default learner of recrawl for the LBLA features, is one formula. The new links of a page in a
period are Poisson with a rate that is Gamma distributed around m, the expectation from its related pages: their link
change rate times the mean number of links that appear at once. With c links in n known periods the rate is
Gamma(c + s·m, n + s), with mean

    (c + s·m) / (n + s).

So s is the number of periods that the related pages count for. For small s this is the mean of the past (NNL-Av of
paper 004), and related pages only break ties; a page without history is predicted like its related pages. The next
number is negative binomial: wider than Poisson, as recorded numbers are. The mean number of the related pages would be
a simpler m, but one page with hundreds of links would raise all similar pages. For the probability of any new links, c
is the number of periods with new links and m the link change rate of the related pages: a Beta distribution with the
same formula. The only parameter, s, is fitted by maximum likelihood.

*Importance* of a feature is the loss of score if its values are shuffled (Breiman 2001; paper 004, §5.3). Correlated
features replace each other, so each alone seems unimportant: compare importances only within one model.
"""

from __future__ import annotations

import enum
import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Final, TypeAlias

import numpy as np
from scipy import optimize, special

from recrawl.errors import require
from recrawl.model import BoolArray, FloatArray
from recrawl.predict.count_prior import count_likelihood, taken_out
from recrawl.predict.static_features import Feature, FeatureArray, FeatureTable, PredictionTarget

_LEAST: Final = 1e-4
"""The least mean: a learner that is sure of none would rule a link out."""
_WIDEST: Final = 8.0
"""Bound of the number that is sought, on its own scale."""


class CountHead(enum.StrEnum):
    """The laws."""

    POISSON = "Poisson"
    NEGATIVE_BINOMIAL = "negative binomial"
    ZERO_INFLATED = "zero-inflated Poisson"


@dataclass(frozen=True, slots=True)
class FittedHead:
    """A law with its number."""

    head: CountHead
    number: float
    """Logarithm of the shape, or log odds of a page being asleep; 0 for Poisson, which has none."""

    def likelihood(self, mean: FloatArray, count: FloatArray) -> FloatArray:
        """The logarithm of the probability of each count, given its predicted mean. O(n).

        >>> told = FittedHead(CountHead.POISSON, 0.0).likelihood(np.array([1.0, 1.0]), np.array([0.0, 1.0]))
        >>> told.round(3).tolist()
        [-1.0, -1.0]
        """
        expected = np.maximum(mean, _LEAST)
        if self.head is CountHead.NEGATIVE_BINOMIAL:
            shape = np.full(len(mean), np.exp(self.number))
            return count_likelihood(count, np.ones(len(mean)), expected, shape)
        if self.head is CountHead.POISSON:
            return _poisson(expected, count)
        awake, asleep = special.log_expit(-self.number), special.log_expit(self.number)
        told = awake + _poisson(expected * np.exp(-awake), count)
        return np.asarray(np.where(count > 0, told, np.logaddexp(asleep, told)))


def fit_head(head: CountHead, mean: FloatArray, count: FloatArray) -> FittedHead:
    """The law under which these counts are likeliest, given means that were predicted without them. O(n) a step."""
    if head is CountHead.POISSON:
        return FittedHead(head, 0.0)

    def loss(number: float) -> float:
        return -float(FittedHead(head, number).likelihood(mean, count).sum())

    found = optimize.minimize_scalar(loss, bounds=(-_WIDEST, _WIDEST), method="bounded")
    return FittedHead(head, float(found.x))


def _poisson(mean: FloatArray, count: FloatArray) -> FloatArray:
    return np.asarray(special.xlogy(count, mean) - mean - special.gammaln(count + 1.0))


_OWN: Final = re.compile(r"new_(internal|external)_\d+")
_STRENGTHS: Final = np.exp2(np.arange(-6.0, 6.5, 0.5))
"""Periods: the numbers that are tried."""
_OVERALL: Final = 0.02
"""Share of the mean of all pages in the expectation from related pages: related pages never exclude new links."""


@dataclass(frozen=True, slots=True)
class ShrunkenCounts:
    """What was learned, and where its columns lie."""

    strength: float
    """Periods that the related pages count for."""
    overall: float
    """Share of periods with new links, of all pages."""
    at_once: float
    """Mean number of new links in a period that has any; 1 where only presence counts."""
    own: tuple[int, ...]
    """Columns of the page's own past."""
    around: int | None
    """The column of the related pages' link change rate; none if no page has a related one."""
    presence: bool
    """Whether periods with new links are counted, and not the links."""

    def expected(self, rows: FeatureArray) -> FloatArray:
        """The expected number of new links in the next period, or the probability of any. O(rows · periods)."""
        shape, rate = self.belief(rows)
        return shape / rate

    def likelihood(self, rows: FeatureArray, truth: FloatArray) -> FloatArray:
        """The logarithm of the probability of what came in the next period: these numbers, or 1 for any and 0."""
        shape, rate = self.belief(rows)
        if self.presence:
            return np.asarray(np.log(np.where(truth > 0, shape, rate - shape) / rate))
        return count_likelihood(truth, np.ones(len(rows)), shape / rate, shape)

    def belief(self, rows: FeatureArray) -> tuple[FloatArray, FloatArray]:
        """The law of each page's rate: shape and rate of a Gamma, or of a Beta(shape, rate − shape). In periods."""
        past = rows[:, list(self.own)].astype(np.float64)
        known = ~np.isnan(past)
        counted = np.where(known, past > 0 if self.presence else past, 0.0)
        near = np.full(len(rows), np.nan) if self.around is None else rows[:, self.around].astype(np.float64)
        mean = np.where(np.isnan(near), self.overall, (1.0 - _OVERALL) * near + _OVERALL * self.overall) * self.at_once
        return counted.sum(axis=1) + self.strength * mean, known.sum(axis=1) + self.strength


def learn_shrinkage(
    rows: FeatureArray, names: Sequence[str], truth: FloatArray, *, presence: bool = False
) -> ShrunkenCounts:
    """The strength under which what came was likeliest, given the features before it. O(strengths · rows · periods).

    ``names`` are those of the columns of ``rows``, LBLA features of one kind of links. ``truth`` is the number of new
    links of each page in the period that followed, or with ``presence`` 1 if there was any and else 0.

    Raises:
        ValueError: the past of a page is not among the features, or that of both kinds of links is.
    """
    own, around = _places(names)
    known = rows[:, list(own)].astype(np.float64)
    seen = np.concatenate([known[~np.isnan(known)], truth])
    some = int((seen > 0).sum())
    # Where nothing ever happened, or always something, the law still needs a share between the two.
    overall = (some + 0.5) / (len(seen) + 1.0)
    at_once = 1.0 if presence or not some else float(seen.sum()) / some
    tried = [ShrunkenCounts(one, overall, at_once, own, around, presence) for one in _STRENGTHS.tolist()]
    return tried[int(np.argmax([one.likelihood(rows, truth).sum() for one in tried]))]


def _places(names: Sequence[str]) -> tuple[tuple[int, ...], int | None]:
    matches = [(place, _OWN.fullmatch(name)) for place, name in enumerate(names)]
    kinds = {found[1] for _, found in matches if found}
    if len(kinds) != 1:
        msg = "shrunken counts read the past new links of one kind: choose the features LBLA, with a history"
        raise ValueError(msg)
    around = f"near_{kinds.pop()}_link_change_rate"
    own = tuple(place for place, found in matches if found)
    return own, list(names).index(around) if around in names else None


Score: TypeAlias = Callable[[FeatureArray], FloatArray]
"""From features to what is predicted, one number a page."""


class Learner(enum.StrEnum):
    """The ensembles, and the one formula."""

    EXTRA_TREES = "extra-trees"
    """Extremely randomised trees; classes weighed by how rare they are."""
    HISTOGRAM_BOOSTING = "histogram-boosting"
    """Gradient boosting on binned values."""
    LIGHT_BOOSTING = "light-boosting"
    """LightGBM; needs the extra ``boost``."""
    NATURAL_BOOSTING = "natural-boosting"
    """NGBoost with Poisson counts: only for the number of new links; needs the extra ``boost``."""
    SHRUNKEN_COUNTS = "shrunken-counts"
    """The page's own mean shrunken towards its related pages: for LBLA features, and not for the link change rate."""


@dataclass(frozen=True, slots=True)
class LinkModel:
    """A trained learner with what it must be given."""

    target: PredictionTarget
    schema: str
    """Of the tables it reads."""
    score: Score

    def predict_links(self, table: FeatureTable) -> FloatArray:
        """The expected number of new links, the expected rate, or the probability of any: one number a page.

        Raises:
            InputError: the table has other features than the model was trained on.
        """
        values = table.fitting(self.schema).values
        return np.asarray(self.score(values), dtype=np.float64) if len(table) else np.empty(0)


@dataclass(frozen=True, slots=True)
class LearnerSettings:
    """Which learner, and how large; the defaults are what paper 004 tuned to, but for ``leaves``."""

    learner: Learner = Learner.EXTRA_TREES
    trees: int = 300
    smallest_leaf: int = 2
    """Pages in a leaf of the randomised trees, at least; the paper has 10 for external links."""
    rounds: int = 500
    """Of boosting."""
    rate: float = 0.04
    """Learning rate of boosting; NGBoost has its own, 0.01 for 500 rounds and more for fewer."""
    natural_columns: float = 1.0
    """Share of the columns that each tree of NGBoost may choose from: its time grows with them."""
    boosted_leaf: int = 25
    """Pages in a leaf of a boosted tree, at least."""
    leaves: int = 31
    """Leaves of a boosted tree, at most; the paper sets no limit."""
    jobs: int = 1
    """Threads; the result does not depend on them."""


def fit(
    table: FeatureTable,
    target: PredictionTarget,
    truth: FloatArray,
    rng: np.random.Generator,
    settings: LearnerSettings | None = None,
) -> LinkModel:
    """A model trained on a table and the true target of each of its pages, NaN where unknown.

    Where all pages have the same target the model says that. O(trees · pages · columns · log pages).
    """
    how = settings or LearnerSettings()
    known = ~np.isnan(truth)
    values, wanted = table.values[known], truth[known]
    if not len(wanted):
        msg = "no page has a known target to learn from"
        raise ValueError(msg)
    if how.learner is Learner.NATURAL_BOOSTING and target is not PredictionTarget.NNL:
        msg = "natural boosting learns counts: it can only predict the number of new links"
        raise ValueError(msg)
    if how.learner is Learner.SHRUNKEN_COUNTS and target is PredictionTarget.LCR:
        msg = "shrunken counts use the page's own past, which almost contains its link change rate"
        raise ValueError(msg)
    seed = int(rng.integers(2**31))
    # What no page has teaches nothing, and some learners stumble over it.
    told = np.flatnonzero(~np.isnan(values).all(axis=0))
    if bool((wanted == wanted[0]).all()) or not len(told):
        same = float(wanted.mean())
        return LinkModel(target, table.schema, lambda rows: np.full(len(rows), same))
    training = _TrainingSet(values[:, told], wanted, target, tuple(table.columns[place] for place in told))
    score = _TRAINERS[how.learner](training, seed, how)
    return LinkModel(target, table.schema, lambda rows: score(rows[:, told]))


@dataclass(frozen=True, slots=True)
class _TrainingSet:
    """What a learner learns from."""

    values: FeatureArray
    wanted: FloatArray
    target: PredictionTarget
    columns: tuple[Feature, ...]

    @property
    def named(self) -> BoolArray:
        """Which columns hold names."""
        return np.array([column.categorical for column in self.columns], np.bool_)


def _extra_trees(training: _TrainingSet, seed: int, how: LearnerSettings) -> Score:
    ensemble = require("sklearn.ensemble", "predict")
    common = {
        "n_estimators": how.trees,
        "min_samples_leaf": how.smallest_leaf,
        "random_state": seed,
        "n_jobs": how.jobs,
    }
    if training.target is PredictionTarget.NL:
        return _chance(
            ensemble.ExtraTreesClassifier(class_weight="balanced", **common).fit(training.values, training.wanted > 0)
        )
    predict: Score = ensemble.ExtraTreesRegressor(**common).fit(training.values, training.wanted).predict
    return predict


def _histogram_boosting(training: _TrainingSet, seed: int, how: LearnerSettings) -> Score:
    ensemble = require("sklearn.ensemble", "predict")
    common = {
        "max_iter": how.rounds,
        "learning_rate": how.rate,
        "min_samples_leaf": how.boosted_leaf,
        "max_leaf_nodes": how.leaves,
        "early_stopping": False,
        "categorical_features": training.named,
        "random_state": seed,
    }
    counted = require("threadpoolctl", "predict").threadpool_limits
    # Left alone it takes every core, and crawls where others use them too.
    with counted(how.jobs):
        if training.target is PredictionTarget.NL:
            learner = ensemble.HistGradientBoostingClassifier(class_weight="balanced", **common)
            learner.fit(training.values, training.wanted > 0)
        else:
            learner = ensemble.HistGradientBoostingRegressor(**common).fit(training.values, training.wanted)
        trees = taken_out(learner, training.values, training.named)
    return (lambda rows: special.expit(trees.total(rows))) if training.target is PredictionTarget.NL else trees.total


def _light_boosting(training: _TrainingSet, seed: int, how: LearnerSettings) -> Score:
    light = require("lightgbm", "boost")
    options = {
        "objective": "binary" if training.target is PredictionTarget.NL else "regression",
        "is_unbalance": training.target is PredictionTarget.NL,
        "learning_rate": how.rate,
        "min_data_in_leaf": how.boosted_leaf,
        "num_leaves": how.leaves,
        "num_threads": how.jobs,
        "seed": seed,
        "deterministic": True,
        "force_col_wise": True,
        "verbosity": -1,
    }
    wanted = (training.wanted > 0) if training.target is PredictionTarget.NL else training.wanted
    names = np.flatnonzero(training.named).tolist()
    data = light.Dataset(training.values, wanted, categorical_feature=names)
    predict: Score = light.train(options, data, how.rounds).predict
    return predict


_NATURAL_STEPS: Final = 5.0
"""Rounds times learning rate of NGBoost in the paper."""
_FEW_COLUMNS: Final = 30
"""Columns that are never drawn from."""


def _natural_boosting(training: _TrainingSet, seed: int, how: LearnerSettings) -> Score:
    ngboost, distributions = require("ngboost", "boost"), require("ngboost.distns", "boost")
    below = _below(training.values)
    # Its own trees, but for the seed: theirs take equally good splits as the machine's dice fall.
    tree = require("sklearn.tree", "predict").DecisionTreeRegressor(max_depth=3, random_state=seed)
    model = ngboost.NGBRegressor(
        Dist=distributions.Poisson,
        Base=tree,
        n_estimators=how.rounds,
        learning_rate=_NATURAL_STEPS / how.rounds,
        col_sample=how.natural_columns if training.values.shape[1] > _FEW_COLUMNS else 1.0,
        random_state=seed,
        verbose=False,
    )
    # Its line search tries steps that are far too long, sees that they are, and halves them.
    with np.errstate(over="ignore", invalid="ignore"):
        fitted: Any = model.fit(_filled(training.values, below), training.wanted.astype(np.int64))
    return lambda rows: np.asarray(fitted.pred_dist(_filled(rows, below)).mean(), dtype=np.float64)


def _shrunken_counts(training: _TrainingSet, _seed: int, _how: LearnerSettings) -> Score:
    names = [column.name for column in training.columns]
    return learn_shrinkage(
        training.values, names, training.wanted, presence=training.target is PredictionTarget.NL
    ).expected


def _chance(classifier: Any) -> Score:  # noqa: ANN401 - scikit-learn ships no types
    return lambda rows: np.asarray(classifier.predict_proba(rows)[:, 1], dtype=np.float64)


def _below(values: FeatureArray) -> FloatArray:
    """One below the least known value of each column; 0 where none is known."""
    least = np.min(values, axis=0, where=~np.isnan(values), initial=np.inf).astype(np.float64)
    return np.where(np.isfinite(least), least - 1.0, 0.0)


def _filled(values: FeatureArray, below: FloatArray) -> FloatArray:
    return np.where(np.isnan(values), below, values)


_TRAINERS: Final[dict[Learner, Callable[..., Score]]] = {
    Learner.EXTRA_TREES: _extra_trees,
    Learner.HISTOGRAM_BOOSTING: _histogram_boosting,
    Learner.LIGHT_BOOSTING: _light_boosting,
    Learner.NATURAL_BOOSTING: _natural_boosting,
    Learner.SHRUNKEN_COUNTS: _shrunken_counts,
}


@dataclass(frozen=True, slots=True)
class Importance:
    """What the score loses without a feature."""

    name: str
    loss: float
    """Mean over the shuffles; about 0 for what the model does not need."""
    spread: float
    """Standard deviation over the shuffles."""


def importances(
    model: LinkModel,
    table: FeatureTable,
    score: Callable[[FloatArray], float],
    rng: np.random.Generator,
    *,
    repeats: int = 5,
) -> list[Importance]:
    """All features of a table, the most needed first; equally needed ones in the order of the table.

    ``score`` says how good predicted values are, higher being better. O(columns · repeats) times the cost of scoring.
    """
    whole = score(model.predict_links(table))
    values = table.values.copy()
    shuffled = FeatureTable(table.page, table.columns, values, table.as_of)
    found = []
    for place, column in enumerate(table.columns):
        lost = []
        for _ in range(repeats):
            values[:, place] = rng.permutation(table.values[:, place])
            lost.append(whole - score(model.predict_links(shuffled)))
        values[:, place] = table.values[:, place]
        found.append(Importance(column.name, float(np.mean(lost)), float(np.std(lost))))
    return sorted(found, key=lambda one: -one.loss)
