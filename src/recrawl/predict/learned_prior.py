r"""A prior for the change rate of a page from its features, learned from the histories at hand.

A boosted ensemble foretells how many times as fast as the average a page changes, m(x); what it cannot tell is left to
a Gamma: λ = m(x)^γ · θ with θ ~ Gamma(a, b), so the prior of a page is Gamma(a, b / m(x)^γ), and its belief is that
times its own visits. Cold start, static and historic phase of paper 002 are one formula.

How much to trust the features is measured, not assumed: m of each page comes from a model that has not seen it (nor its
group, where groups are given), and of some powers γ the one is taken that foretells the first looks best. γ = 0 is the
prior of the population.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

import numpy as np

from recrawl.errors import require
from recrawl.estimate import gamma
from recrawl.estimate.empirical_bayes import fit_prior
from recrawl.model import FloatArray, GammaBelief, Histories, IntArray
from recrawl.predict.feature_table import FeatureArray, FeatureTable
from recrawl.predict.link_learners import Score, Settings

POWERS: Final = (0.0, 0.25, 0.5, 0.75, 1.0)
"""How far the features may be trusted."""
FOLDS: Final = 3
FEWEST: Final = 60
"""Pages with a history below which features teach nothing that can be trusted."""
_FACTORS: Final = (1e-3, 1e3)
"""A page changes no slower and no faster than the average, times these, by its looks alone."""


@dataclass(frozen=True, slots=True)
class LearnedPrior:
    """Features to priors; immutable."""

    schema: str
    """Of the tables it reads."""
    factor: Score
    """m(x), 1 for a page like all others."""
    power: float
    """γ."""
    base: GammaBelief
    """Of θ, one row, per second."""
    losses: dict[float, float]
    """Mean log loss of the first looks at pages the model had not seen, by γ; empty if there were too few."""

    def of(self, table: FeatureTable) -> GammaBelief:
        """What to believe of each page before its first visit.

        Raises:
            InputError: the table has other features than the prior was learned from.
        """
        rows = table.fitting(self.schema).values
        factor = _factors(self.factor, rows) ** self.power if len(rows) else np.empty(0)
        return GammaBelief(np.full(len(rows), self.base.a[0]), self.base.b[0] / factor)


def learn_prior(
    table: FeatureTable,
    histories: Histories,
    rng: np.random.Generator,
    *,
    group: IntArray | None = None,
    settings: Settings | None = None,
) -> LearnedPrior:
    """Learn from pages with features as of a time and what their looks from then on found.

    ``group`` is the site of each page, for a prior that must serve sites nobody has seen. O(rounds · pages · columns).
    Needs the extra ``predict``.
    """
    if not np.array_equal(table.page, histories.page):
        msg = "features and histories are of different pages"
        raise ValueError(msg)
    how = settings or Settings(rounds=150, rate=0.05)
    seen = np.flatnonzero(histories.counts())
    told, values = histories.take(seen), table.values[seen]
    ways = seen if group is None else group[seen]
    names, member = np.unique(ways, return_inverse=True)
    if len(seen) < FEWEST or len(names) < FOLDS:
        return LearnedPrior(table.schema, _average, 0.0, fit_prior(told), {})
    categorical = [column.categorical for column in table.columns]
    seed = int(rng.integers(2**31))
    fold = (rng.permutation(len(names)) % FOLDS)[member]
    factor = np.empty(len(seen))
    for held in range(FOLDS):
        taught, judged = fold != held, fold == held
        factor[judged] = _factors(_train(told.take(taught), values[taught], categorical, seed, how), values[judged])
    found = {power: _judged(told, factor**power) for power in POWERS}
    losses = {power: loss for power, (_, loss) in found.items()}
    best = min(losses, key=lambda power: (losses[power], power))
    return LearnedPrior(table.schema, _train(told, values, categorical, seed, how), best, found[best][0], losses)


def _train(told: Histories, values: FeatureArray, categorical: list[bool], seed: int, how: Settings) -> Score:
    """m(x) by boosting with Poisson loss: what the looks of a page say is like so many changes in so much time."""
    prior = fit_prior(told)
    belief = gamma.fit(told, prior.take(np.zeros(len(told), np.int64)))
    changes, time = np.maximum(belief.a - prior.a, 0.0), np.maximum(belief.b - prior.b, 0.0)
    some = np.flatnonzero(~np.isnan(values).all(axis=0))
    whole = float(changes.sum())
    if not len(some) or not whole > 0:
        return _average
    unit = float(time.sum()) / whole
    watched = time > 0
    learner = require("sklearn.ensemble", "predict").HistGradientBoostingRegressor(
        loss="poisson",
        max_iter=how.rounds,
        learning_rate=how.rate,
        min_samples_leaf=how.boosted_leaf,
        max_leaf_nodes=how.leaves,
        early_stopping=False,
        categorical_features=[categorical[place] for place in some],
        random_state=seed,
    )
    counted = require("threadpoolctl", "predict").threadpool_limits
    with counted(how.jobs):
        learner.fit(values[watched][:, some], changes[watched] / time[watched] * unit, time[watched] / unit)

    def score(rows: FeatureArray) -> FloatArray:
        with counted(how.jobs):
            return np.asarray(learner.predict(rows[:, some]), dtype=np.float64)

    return score


def _judged(told: Histories, factor: FloatArray) -> tuple[GammaBelief, float]:
    """The Gamma of what the factors leave open, and the mean log loss of the first look at each page under it."""
    row = told.row_of_gap()
    gaps = told.gaps * factor[row]
    ends = np.bincount(row, gaps, len(told)).astype(np.float64)
    nothing = np.full(len(told), np.nan)
    base = fit_prior(Histories(told.page, told.offsets, gaps, told.changed, np.zeros(len(told)), ends, nothing))
    first = told.offsets[:-1]
    stays = base.a[0] * np.log(base.b[0] / (base.b[0] + gaps[first]))
    tiny = np.finfo(np.float64).tiny
    changes = np.log(np.maximum(-np.expm1(stays), tiny))
    return base, float(-np.where(told.changed[first], changes, stays).mean())


def _factors(score: Score, rows: FeatureArray) -> FloatArray:
    return np.clip(score(rows), *_FACTORS)


def _average(rows: FeatureArray) -> FloatArray:
    """Without knowledge every page is like all others."""
    return np.ones(len(rows))
