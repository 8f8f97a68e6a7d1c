"""A prior for the rate of a page from its features, learned from event counts.

A page with features x has rate λ ~ Gamma(a(x), a(x)/μ(x)): mean μ; a says how much pages of equal features differ. In
exposure T it shows X ~ NegativeBinomial(mean μT, shape a) events, and its belief becomes Gamma(a + X, a/μ + T). So cold
start, static and historic phase (paper 002) are one formula.

Learning has two steps. Boosted trees fit the mean of X/T with weight T by Poisson deviance. Their out-of-fold
predictions m are then recalibrated, together with the remaining spread, by maximum likelihood of the counts:

    ln μ = c₀ + c₁ · ln m,    ln a = d₀ + d₁ · ln m.

Pages of unknown sites need a second ensemble with its own calibration: path names mean nothing on another site, and
sites differ more than pages of one site. It uses no names, its folds leave out whole sites, and all sites have equal
weight. If the features do not help on left-out sites, it predicts the same for every page. The same model serves for
changes (λ) and new links (ν).
"""

from __future__ import annotations

from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass
from importlib.util import find_spec

import numpy as np
from scipy import optimize, special

from recrawl.errors import InputError, require
from recrawl.model import BoolArray, FloatArray, GammaBelief, IntArray
from recrawl.predict.boosted_trees import BoostedTrees, grow
from recrawl.predict.feature_table import FeatureTable

FOLDS = 4
ROUNDS = 100
"""Trees of the ensemble, at most; growing stops when a held-out tenth no longer gains."""
FEWEST = 20
"""Pages below which there is nothing to learn from features: the prior is then the same for all."""
_LEAF = 20
_SHAPES = (0.02, 50.0)
"""Between them lies a(x): wider than 0.02 says nothing, narrower than 50 trusts features more than data allow."""
_RIDGE = 1.0
"""Draws the four numbers of a head towards "as the trees say, shape 1", as one more page would."""


@dataclass(frozen=True, slots=True)
class PriorHead:
    """From the mean that the trees say to a Gamma prior."""

    scale: float
    slope: float
    """ln μ = scale + slope · (ln m − centre)."""
    log_shape: float
    shape_slope: float
    centre: float

    def prior(self, log_mean: FloatArray) -> GammaBelief:
        """The belief about pages of which the trees say these means, per second."""
        mean, shape = self.terms(log_mean)
        return GammaBelief(shape, shape / mean)

    def usual(self, log_mean: FloatArray) -> float:
        """The mean of ln μ."""
        return float(np.log(self.terms(log_mean)[0]).mean())

    def terms(self, log_mean: FloatArray) -> tuple[FloatArray, FloatArray]:
        """μ and a."""
        off = log_mean - self.centre
        mean = np.exp(self.scale + self.slope * off)
        return mean, np.clip(np.exp(self.log_shape + self.shape_slope * off), *_SHAPES)


@dataclass(frozen=True, slots=True)
class TreePrior:
    """Trees, and what to make of their answers."""

    trees: BoostedTrees | None
    """``None`` where there were too few pages, or nothing to tell them apart."""
    everywhere: float
    """The logarithm of the mean rate of all training pages."""
    usual: float
    """The mean of ln μ over pages of the training, each predicted by those trained without it."""
    head: PriorHead

    def prior(self, table: FeatureTable) -> GammaBelief:
        """What to believe of the rates of these pages, per second."""
        return self.head.prior(_log_mean(self.trees, table, self.everywhere))


@dataclass(frozen=True, slots=True)
class CountPrior:
    """A model that was trained; immutable."""

    schema: str
    known_site: TreePrior
    other_site: TreePrior
    sites: IntArray
    """Sites it was trained on, ascending."""

    def prior(self, table: FeatureTable, site: IntArray) -> GammaBelief:
        """What to believe of the rates of these pages, per second; ``site[i]`` is the site of row i. O(n · trees)."""
        asked, known = table.fitting(self.schema), np.isin(site, self.sites)
        return chosen(
            known,
            lambda: self.known_site.prior(asked.take(known)),
            lambda: self.other_site.prior(without_names(asked.take(~known))),
        )

    def usual(self, site: IntArray) -> FloatArray:
        """The usual ln μ of the models that predict pages of these sites."""
        return np.where(np.isin(site, self.sites), self.known_site.usual, self.other_site.usual)


def chosen(which: BoolArray, these: Callable[[], GammaBelief], others: Callable[[], GammaBelief]) -> GammaBelief:
    """Beliefs from two sources: rows where ``which`` is true, and the others. A source without rows is not asked."""
    a, b = np.empty(len(which)), np.empty(len(which))
    for rows, source in ((which, these), (~which, others)):
        if rows.any():
            said = source()
            a[rows], b[rows] = said.a, said.b
    return GammaBelief(a, b)


def train(  # noqa: PLR0913 - what to learn from, and how
    table: FeatureTable,
    count: FloatArray,
    exposure: FloatArray,
    site: IntArray,
    *,
    seed: int = 0,
    usual_of: BoolArray | None = None,
) -> CountPrior:
    """Learn from pages that showed ``count`` events in ``exposure`` seconds, and whose features were known before.

    ``usual_of`` are the pages over which it is taken what is usual, all if not given: answers of two models can only be
    compared by what each says of the same pages.

    Where observations only tell that something changed, not how often, take the exposure that gives the page its
    estimated rate. O(n · columns · trees) for each of the 2 · FOLDS + 1 ensembles.

    Raises:
        InputError: no page was watched at all.
    """
    seen = np.flatnonzero(exposure > 0)
    if not len(seen):
        raise InputError("No page was watched for any time, so there is nothing to learn from.", "Import histories.")
    table, count, exposure, site = table.take(seen), count[seen], exposure[seen], site[seen]
    usual_of = np.ones(len(seen), np.bool_) if usual_of is None else usual_of[seen]
    sites, number = np.unique(site, return_inverse=True)
    rng = np.random.default_rng(seed)
    seen_before = CountTraining(table, count, exposure, np.ones(len(table)), usual_of)
    alike = CountTraining(without_names(table), count, exposure, 1.0 / np.bincount(number)[number], usual_of)
    by_page, by_site = rng.permutation(len(table)) % FOLDS, (rng.permutation(len(sites)) % FOLDS)[number]
    known, other = _learn(seen_before, by_page, seed), _learn(alike, by_site, seed)
    return CountPrior(table.schema, known, other, sites)


def without_names(table: FeatureTable) -> FeatureTable:
    """Only the columns that hold numbers: names mean something on their own site alone."""
    return table.only([column.name for column in table.columns if not column.categorical])


@dataclass(frozen=True, slots=True)
class CountTraining:
    """Pages to learn from."""

    table: FeatureTable
    count: FloatArray
    exposure: FloatArray
    weight: FloatArray
    """How much each page counts."""
    usual_of: BoolArray
    """Pages over which it is taken what is usual."""

    def take(self, rows: BoolArray) -> CountTraining:
        """Some of them."""
        count, exposure, weight = (one[rows] for one in (self.count, self.exposure, self.weight))
        return CountTraining(self.table.take(rows), count, exposure, weight, self.usual_of[rows])

    def log_rate(self) -> float:
        """Of all of them together; half an event more keeps the rate of a population without events above 0."""
        seen = (self.weight * self.count).sum() / self.weight.mean() + 0.5
        return float(np.log(seen * self.weight.mean() / (self.weight * self.exposure).sum()))


def _learn(training: CountTraining, fold: IntArray, seed: int) -> TreePrior:
    """Trees and their head; without trees if they do not help on the folds left out."""
    everywhere = training.log_rate()
    said = np.full(len(fold), everywhere)
    for held in np.unique(fold):
        out = fold == held
        trees = _grow(training.take(~out), everywhere, seed) if not out.all() else None
        said[out] = _log_mean(trees, training.table.take(out), everywhere)
    with _one_thread():
        plain, clever = (_fit_head(what, training) for what in (np.full(len(fold), everywhere), said))
    if _log_likelihood(clever, said, training) <= _log_likelihood(plain, np.full(len(fold), everywhere), training):
        return TreePrior(None, everywhere, plain.usual(np.array([everywhere])), plain)
    compared = said[training.usual_of] if training.usual_of.any() else said
    return TreePrior(_grow(training, everywhere, seed), everywhere, clever.usual(compared), clever)


def _one_thread() -> AbstractContextManager[object]:
    """For steps in four numbers: threads that wait for each other there take ten times as long as one alone."""
    if find_spec("threadpoolctl") is None:  # comes with the extra; without it there are no trees, and few pages
        return nullcontext()
    limits: AbstractContextManager[object] = require("threadpoolctl", "predict").threadpool_limits(1)
    return limits


def _log_mean(trees: BoostedTrees | None, table: FeatureTable, everywhere: float) -> FloatArray:
    """What the trees say before recalibration: the logarithm of events per second."""
    if trees is None:
        return np.full(len(table), everywhere)
    return np.asarray(everywhere + trees.log_mean(table.values))


def _grow(training: CountTraining, everywhere: float, seed: int) -> BoostedTrees | None:
    """Boosted trees for the rate as a multiple of the mean of all, or None where they cannot be grown."""
    table = training.table
    if len(table) < FEWEST or not len(table.columns) or not training.count.any():
        return None
    expected = training.exposure * np.exp(everywhere)
    weight = training.weight * expected
    leaf = min(_LEAF, max(len(table) // 10, 2))
    return grow(table, training.count / expected, weight / weight.mean(), rounds=ROUNDS, smallest_leaf=leaf, seed=seed)


def _fit_head(log_mean: FloatArray, training: CountTraining) -> PriorHead:
    """The calibration under which the counts are likeliest. O(n) for each of some dozen steps."""
    centre = float(np.average(log_mean, weights=training.weight * training.exposure))
    usual = np.array([0.0, 1.0, 0.0, 0.0])

    def head(numbers: FloatArray) -> PriorHead:
        return PriorHead(centre + float(numbers[0]), float(numbers[1]), float(numbers[2]), float(numbers[3]), centre)

    def loss(numbers: FloatArray) -> float:
        off = numbers - usual
        return 0.5 * _RIDGE * float(off @ off) - _log_likelihood(head(numbers), log_mean, training)

    bounds = [(-5.0, 5.0), (0.0, 2.0), (-4.0, 4.0), (-1.0, 1.0)]
    return head(optimize.minimize(loss, usual, method="L-BFGS-B", bounds=bounds).x)


def _log_likelihood(head: PriorHead, log_mean: FloatArray, training: CountTraining) -> float:
    """Of the counts; each page by its weight, in units of whole pages."""
    found = count_likelihood(training.count, training.exposure, *head.terms(log_mean))
    return float((training.weight * found).sum() / training.weight.mean())


def count_likelihood(count: FloatArray, exposure: FloatArray, mean: FloatArray, shape: FloatArray) -> FloatArray:
    """The logarithm of P(count | exposure), where the rate is Gamma with this mean and shape: a negative binomial law.

    >>> count_likelihood(np.array([0.0]), np.array([2.0]), np.array([0.5]), np.array([1.0])).round(4).tolist()
    [-0.6931]
    """
    expected = mean * exposure
    return np.asarray(
        special.gammaln(shape + count)
        - special.gammaln(shape)
        - special.gammaln(count + 1.0)
        - shape * np.log1p(expected / shape)
        + special.xlogy(count, expected / (shape + expected))
    )
