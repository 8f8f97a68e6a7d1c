"""Learners that foretell new links from features (paper 004, §5.3).

Those of the paper are ensembles of trees, with the settings that it tuned to where it names them. Unknown values need
no filling but for NGBoost, which cannot read them: there they lie one below the least known value, so that trees can
part them. Pages whose target is unknown teach nothing. The learner that recrawl trusts with the few LBLA features is
none of these: see :mod:`recrawl.predict.link_shrinkage`.
"""

from __future__ import annotations

import enum
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Final, TypeAlias

import numpy as np
from scipy import special

from recrawl.errors import require
from recrawl.model import BoolArray, FloatArray
from recrawl.predict.boosted_trees import taken_out
from recrawl.predict.feature_sets import Target
from recrawl.predict.feature_table import Feature, FeatureArray, FeatureTable
from recrawl.predict.link_shrinkage import learn_shrinkage

Score: TypeAlias = Callable[[FeatureArray], FloatArray]
"""From features to what is foretold, one number a page."""


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

    target: Target
    schema: str
    """Of the tables it reads."""
    score: Score

    def foretell(self, table: FeatureTable) -> FloatArray:
        """The expected number of new links, the expected rate, or the probability of any: one number a page.

        Raises:
            InputError: the table has other features than the model was trained on.
        """
        values = table.fitting(self.schema).values
        return np.asarray(self.score(values), dtype=np.float64) if len(table) else np.empty(0)


@dataclass(frozen=True, slots=True)
class Settings:
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
    table: FeatureTable, target: Target, truth: FloatArray, rng: np.random.Generator, settings: Settings | None = None
) -> LinkModel:
    """A model trained on a table and the true target of each of its pages, NaN where unknown.

    Where all pages have the same target the model says that. O(trees · pages · columns · log pages).
    """
    how = settings or Settings()
    known = ~np.isnan(truth)
    values, wanted = table.values[known], truth[known]
    if not len(wanted):
        msg = "no page has a known target to learn from"
        raise ValueError(msg)
    if how.learner is Learner.NATURAL_BOOSTING and target is not Target.NNL:
        msg = "natural boosting learns counts: it can only foretell the number of new links"
        raise ValueError(msg)
    if how.learner is Learner.SHRUNKEN_COUNTS and target is Target.LCR:
        msg = "shrunken counts look at the page's own past, which all but tells its link change rate"
        raise ValueError(msg)
    seed = int(rng.integers(2**31))
    # What no page has teaches nothing, and some learners stumble over it.
    told = np.flatnonzero(~np.isnan(values).all(axis=0))
    if bool((wanted == wanted[0]).all()) or not len(told):
        same = float(wanted.mean())
        return LinkModel(target, table.schema, lambda rows: np.full(len(rows), same))
    lesson = _Lesson(values[:, told], wanted, target, tuple(table.columns[place] for place in told))
    score = _TRAINERS[how.learner](lesson, seed, how)
    return LinkModel(target, table.schema, lambda rows: score(rows[:, told]))


@dataclass(frozen=True, slots=True)
class _Lesson:
    """What a learner learns from."""

    values: FeatureArray
    wanted: FloatArray
    target: Target
    columns: tuple[Feature, ...]

    @property
    def named(self) -> BoolArray:
        """Which columns hold names."""
        return np.array([column.categorical for column in self.columns], np.bool_)


def _extra_trees(lesson: _Lesson, seed: int, how: Settings) -> Score:
    ensemble = require("sklearn.ensemble", "predict")
    common = {
        "n_estimators": how.trees,
        "min_samples_leaf": how.smallest_leaf,
        "random_state": seed,
        "n_jobs": how.jobs,
    }
    if lesson.target is Target.NL:
        return _chance(
            ensemble.ExtraTreesClassifier(class_weight="balanced", **common).fit(lesson.values, lesson.wanted > 0)
        )
    predict: Score = ensemble.ExtraTreesRegressor(**common).fit(lesson.values, lesson.wanted).predict
    return predict


def _histogram_boosting(lesson: _Lesson, seed: int, how: Settings) -> Score:
    ensemble = require("sklearn.ensemble", "predict")
    common = {
        "max_iter": how.rounds,
        "learning_rate": how.rate,
        "min_samples_leaf": how.boosted_leaf,
        "max_leaf_nodes": how.leaves,
        "early_stopping": False,
        "categorical_features": lesson.named,
        "random_state": seed,
    }
    counted = require("threadpoolctl", "predict").threadpool_limits
    # Left alone it takes every core, and crawls where others use them too.
    with counted(how.jobs):
        if lesson.target is Target.NL:
            learner = ensemble.HistGradientBoostingClassifier(class_weight="balanced", **common)
            learner.fit(lesson.values, lesson.wanted > 0)
        else:
            learner = ensemble.HistGradientBoostingRegressor(**common).fit(lesson.values, lesson.wanted)
        trees = taken_out(learner, lesson.values, lesson.named)
    return (lambda rows: special.expit(trees.total(rows))) if lesson.target is Target.NL else trees.total


def _light_boosting(lesson: _Lesson, seed: int, how: Settings) -> Score:
    light = require("lightgbm", "boost")
    options = {
        "objective": "binary" if lesson.target is Target.NL else "regression",
        "is_unbalance": lesson.target is Target.NL,
        "learning_rate": how.rate,
        "min_data_in_leaf": how.boosted_leaf,
        "num_leaves": how.leaves,
        "num_threads": how.jobs,
        "seed": seed,
        "deterministic": True,
        "force_col_wise": True,
        "verbosity": -1,
    }
    wanted = (lesson.wanted > 0) if lesson.target is Target.NL else lesson.wanted
    names = np.flatnonzero(lesson.named).tolist()
    data = light.Dataset(lesson.values, wanted, categorical_feature=names)
    predict: Score = light.train(options, data, how.rounds).predict
    return predict


_NATURAL_STEPS: Final = 5.0
"""Rounds times learning rate of NGBoost in the paper."""
_FEW_COLUMNS: Final = 30
"""Columns that are never drawn from."""


def _natural_boosting(lesson: _Lesson, seed: int, how: Settings) -> Score:
    ngboost, distributions = require("ngboost", "boost"), require("ngboost.distns", "boost")
    below = _below(lesson.values)
    # Its own trees, but for the seed: theirs take equally good splits as the machine's dice fall.
    tree = require("sklearn.tree", "predict").DecisionTreeRegressor(max_depth=3, random_state=seed)
    model = ngboost.NGBRegressor(
        Dist=distributions.Poisson,
        Base=tree,
        n_estimators=how.rounds,
        learning_rate=_NATURAL_STEPS / how.rounds,
        col_sample=how.natural_columns if lesson.values.shape[1] > _FEW_COLUMNS else 1.0,
        random_state=seed,
        verbose=False,
    )
    # Its line search tries steps that are far too long, sees that they are, and halves them.
    with np.errstate(over="ignore", invalid="ignore"):
        fitted: Any = model.fit(_filled(lesson.values, below), lesson.wanted.astype(np.int64))
    return lambda rows: np.asarray(fitted.pred_dist(_filled(rows, below)).mean(), dtype=np.float64)


def _shrunken_counts(lesson: _Lesson, _seed: int, _how: Settings) -> Score:
    names = [column.name for column in lesson.columns]
    return learn_shrinkage(lesson.values, names, lesson.wanted, presence=lesson.target is Target.NL).expected


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
