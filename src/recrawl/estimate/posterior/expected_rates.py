r"""Priors of groups of pages, sharpened by what a model expects of each page.

A model expects m_i changes per second of page i. Its prediction is taken relative to its prediction for the whole group
of the page, m̄_g, and with half its weight in logarithms:

    λ_i = θ_i · f_i,    f_i = (m_i / m̄_g)^γ,    γ = ½.

The prior of θ is estimated for nested groups (``estimate.posterior.grid_posterior``), from observations whose gaps are
stretched by f; a page's prior is that of its group, moved by ln f. So the level of every group comes from its own
observations, in operational time or wall time. A model with a wrong level does no harm: only its ratios *within* a
group count, and only while the observations are more likely with the model than without it.

Measured on pages of recorded sites kept from training, by log loss of the first observation and of the first ten: .693
and .227 nats with γ = ½, .748 and .236 with groups alone, on pages chosen at random; .723 and .225, .813 and .237 on
pages that came later. The model's own prior in place of the groups', or pooled with it, predicted the ten observations
still better (.219, .224), but in comparisons of policies it kept copies less fresh on three collections of four (til,
uvarc, wcag, not ropensci), by up to .003: its level is that of wall time and of young pages. This way, with the
observations to decide whether it counts, freshness at .01 and .03 visits per page and day was higher by .0007 and .0004
on uvarc, .0001 and .0001 on til, .0016 and .0006 on ropensci, and by −.0004 and .0000 on wcag: one seed, and chosen on
these same collections.

With Gamma priors the same takes two numbers per page: λ_i = θ_i · f_i with f as above, and θ ~ Gamma(a_g, b_g) of the
page's group; so λ_i ~ Gamma(a_g, b_g / f_i), exactly.
The priors of θ are learned from observations whose gaps are stretched by f. Here, too, the observations decide whether
the model counts: by how likely each of the first ten was after those before it.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Final, TypeAlias

import numpy as np

from recrawl.estimate.posterior import gamma_posterior
from recrawl.estimate.posterior.gamma_posterior import GroupPriors, evenly_spread
from recrawl.estimate.posterior.grid_posterior import STRENGTH, GridPriors, fit_priors, likelihood_of
from recrawl.model import FloatArray, GammaBelief, GridBelief, Histories, IntArray
from recrawl.model.belief import WeightArray

POWER: Final = 0.5
"""γ: how far a model is trusted within a group."""
_STRENGTH = 5.0
"""Pages that all pages count for in the mean of a group."""
EVALUATED: Final = 5_000
"""Pages, evenly spread, by which it is decided whether a model counts."""
_FURTHEST = 4.0
"""No page is expected to be more than e⁴ times as fast or as slow as its group."""


@dataclass(frozen=True, slots=True)
class SharpenedPriors:
    """Priors of θ for all pages together and for each group, and what is usual there."""

    priors: GridPriors
    usual: FloatArray
    """The mean of ln m over the pages of each row of the priors."""
    power: float = POWER
    """γ; 0 where what is expected did not prove right."""

    def of(self, row: IntArray, expected: FloatArray) -> WeightArray:
        """The prior of λ of each page: its group's, moved by what is expected of it beyond the group. O(pages · K)."""
        own = self.priors.belief.weights[row]
        return moved(own, self.priors.belief.rates, self.log_factor(row, expected)) if self.power else own

    def log_factor(self, row: IntArray, expected: FloatArray) -> FloatArray:
        """Of each page: ln f. ``row`` is the row of its narrowest known group, ``expected`` m, per second."""
        return np.log(factors(expected, self.usual[row], self.power))


def factors(expected: FloatArray, usual: FloatArray, power: float = POWER) -> FloatArray:
    """How much faster than its group each page is: f, if m is expected and ``usual`` is the mean of ln m.

    >>> factors(np.array([4.0, 1.0, 1e9]), np.zeros(3)).round(2).tolist()
    [2.0, 1.0, 7.39]
    """
    return np.asarray(np.exp(power * np.clip(np.log(expected) - usual, -_FURTHEST, _FURTHEST)))


def fit_sharpened(
    histories: Histories, levels: Sequence[IntArray], expected: FloatArray, *, strength: float = STRENGTH
) -> SharpenedPriors:
    """Learn the priors of groups and what is usual in each. O(gaps · K), twice.

    ``levels`` as in :func:`recrawl.estimate.posterior.grid_posterior.fit_priors`, ``expected`` one rate a page,
    above 0. It counts only if the priors with it make the observations likelier than those without.
    """
    plain = fit_priors(histories, levels, strength=strength)
    usual = _usual(plain, levels, np.log(expected))
    row = plain.rows(levels, len(histories))
    without = SharpenedPriors(plain, usual, 0.0)
    factor = np.exp(SharpenedPriors(plain, usual).log_factor(row, expected))
    stretched = replace(histories, gaps=histories.gaps * factor[histories.row_of_gap()])
    sharp = SharpenedPriors(fit_priors(stretched, levels, rates=plain.belief.rates, strength=strength), usual)
    judged = evenly_spread(histories, np.zeros(len(histories), np.int64), EVALUATED)
    likelihood = likelihood_of(histories.take(judged), plain.belief.rates)

    def evidence(priors: SharpenedPriors) -> float:
        return float(np.log((likelihood * priors.of(row[judged], expected[judged])).sum(axis=1)).sum())

    return sharp if evidence(sharp) > evidence(without) else without


def moved(weights: WeightArray, rates: FloatArray, log_factor: FloatArray) -> WeightArray:
    """Weights on a grid of rates with equal ratios, each row's rates times e^(its factor). O(pages · K).

    What falls between two rates is shared by them; what would leave the grid stays at its end.

    >>> moved(np.array([[0.0, 1.0, 0.0]]), np.array([1.0, 2.0, 4.0]), np.log([2**0.5])).round(2).tolist()
    [[0.0, 0.5, 0.5]]
    """
    steps = log_factor / np.log(rates[1] / rates[0])
    below = np.floor(steps)
    share = (steps - below)[:, None]
    place = np.arange(len(rates)) + below.astype(np.int64)[:, None]
    lower, upper = (np.clip(at, 0, len(rates) - 1) for at in (place, place + 1))
    out = np.zeros(weights.shape)
    row = np.broadcast_to(np.arange(len(weights))[:, None], weights.shape)
    np.add.at(out, (row, lower), weights * (1.0 - share))
    np.add.at(out, (row, upper), weights * share)
    return GridBelief.of(rates, out).weights


def _usual(priors: GridPriors, levels: Sequence[IntArray], log_expected: FloatArray) -> FloatArray:
    """Of each row of the priors: all pages, then the groups of each level."""
    everywhere = float(log_expected.mean()) if len(log_expected) else 0.0
    means = [np.array([everywhere])]
    means += [usual_rates(known, level, log_expected)[1:] for known, level in zip(priors.groups, levels, strict=False)]
    return np.concatenate(means)


def usual_rates(known: IntArray, group: IntArray, log_expected: FloatArray) -> FloatArray:
    """The mean of ln m of all pages, then of each known group with all pages counted as a few of its own."""
    everywhere = float(log_expected.mean()) if len(log_expected) else 0.0
    if not len(known):
        return np.array([everywhere])
    place = np.searchsorted(known, group)
    pages = np.bincount(place, minlength=len(known))
    total = np.bincount(place, log_expected, len(known))
    return np.concatenate([[everywhere], (total + _STRENGTH * everywhere) / (pages + _STRENGTH)])


GroupFit: TypeAlias = Callable[[Histories], GroupPriors]
"""How the priors of groups are learned from histories."""
_MOST_OBSERVATIONS = 10
_UNLIKELY = 1e-9


@dataclass(frozen=True, slots=True)
class SharpenedGamma:
    """Priors of θ by group, and what is usual there."""

    priors: GroupPriors
    usual: FloatArray
    """The mean of ln m over all pages, then over those of each group of the priors."""
    power: float = POWER
    """γ; 0 where what is expected did not prove right."""

    def of(self, group: IntArray, expected: FloatArray) -> GammaBelief:
        """The prior of λ of each page; ``expected`` is m, per second. O(pages log groups)."""
        prior = self.priors.of(group)
        return GammaBelief(prior.a, prior.b / self.factor(group, expected)) if self.power else prior

    def factor(self, group: IntArray, expected: FloatArray) -> FloatArray:
        """Of each page: f."""
        known = self.priors.group
        place = np.searchsorted(known, group)
        row = np.where(np.isin(group, known), place + 1, 0)
        return factors(expected, self.usual[row], self.power)


def fit_sharpened_gamma(histories: Histories, group: IntArray, expected: FloatArray, fit: GroupFit) -> SharpenedGamma:
    """Learn the priors of groups with what is expected of each page, and without if the observations are likelier so.

    O(gaps) and twice what ``fit`` takes.
    """
    plain = fit(histories)
    usual = usual_rates(plain.group, group, np.log(expected))
    without, sharp = SharpenedGamma(plain, usual, 0.0), SharpenedGamma(plain, usual)
    factor = sharp.factor(group, expected)
    stretched = replace(histories, gaps=histories.gaps * factor[histories.row_of_gap()])
    sharp = replace(sharp, priors=fit(stretched))
    judged = evenly_spread(histories, np.zeros(len(histories), np.int64), EVALUATED)
    observations = histories.take(judged)

    def evidence(priors: SharpenedGamma) -> float:
        return log_evidence(observations, priors.of(group[judged], expected[judged]))

    return sharp if evidence(sharp) > evidence(without) else without


def log_evidence(histories: Histories, prior: GammaBelief) -> float:
    """The logarithm of the probability of the first ten observations of each page under its prior, one row per page.

    O(observations).

    >>> nothing = Histories.concatenate([])
    >>> log_evidence(nothing, GammaBelief(np.empty(0), np.empty(0)))
    0.0
    """
    belief, count, total = GammaBelief(prior.a.copy(), prior.b.copy()), histories.counts(), 0.0
    for place in range(min(_MOST_OBSERVATIONS, int(count.max(initial=0)))):
        rows = np.flatnonzero(count > place)
        at = histories.offsets[rows] + place
        gap, changed = histories.gaps[at], histories.changed[at]
        chance = np.clip(belief.take(rows).p_change(gap), _UNLIKELY, 1.0 - _UNLIKELY)
        total += float(np.log(np.where(changed, chance, 1.0 - chance)).sum())
        gamma_posterior.update(belief, rows, gap, changed)
    return total
