r"""What a model expects of each page beside the Gamma priors of groups: ``estimate.expected_rates`` in two numbers.

λ_i = θ_i · f_i with f as there, and θ ~ Gamma(a_g, b_g) of the page's group; so λ_i ~ Gamma(a_g, b_g / f_i), exactly.
The priors of θ are learned from looks whose gaps are stretched by f. Here, too, the looks decide whether the model
counts: by how likely each of the first ten was after those before it.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import TypeAlias

import numpy as np

from recrawl.estimate import gamma
from recrawl.estimate.empirical_bayes import GroupPriors, evenly_spread
from recrawl.estimate.expected_rates import JUDGED, POWER, factors, usual_rates
from recrawl.model import FloatArray, GammaBelief, Histories, IntArray

GroupFit: TypeAlias = Callable[[Histories], GroupPriors]
"""How the priors of groups are learned from histories."""
_LOOKS = 10
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
    """Learn the priors of groups with what is expected of each page, and without if the looks are likelier so.

    O(gaps) and twice what ``fit`` takes.
    """
    plain = fit(histories)
    usual = usual_rates(plain.group, group, np.log(expected))
    without, sharp = SharpenedGamma(plain, usual, 0.0), SharpenedGamma(plain, usual)
    factor = sharp.factor(group, expected)
    stretched = replace(histories, gaps=histories.gaps * factor[histories.row_of_gap()])
    sharp = replace(sharp, priors=fit(stretched))
    judged = evenly_spread(histories, np.zeros(len(histories), np.int64), JUDGED)
    looks = histories.take(judged)

    def evidence(priors: SharpenedGamma) -> float:
        return log_evidence(looks, priors.of(group[judged], expected[judged]))

    return sharp if evidence(sharp) > evidence(without) else without


def log_evidence(histories: Histories, prior: GammaBelief) -> float:
    """The logarithm of the probability of the first ten looks at each page under its prior, one row a page. O(looks).

    >>> nothing = Histories.concatenate([])
    >>> log_evidence(nothing, GammaBelief(np.empty(0), np.empty(0)))
    0.0
    """
    belief, count, total = GammaBelief(prior.a.copy(), prior.b.copy()), histories.counts(), 0.0
    for place in range(min(_LOOKS, int(count.max(initial=0)))):
        rows = np.flatnonzero(count > place)
        at = histories.offsets[rows] + place
        gap, changed = histories.gaps[at], histories.changed[at]
        chance = np.clip(belief.take(rows).p_change(gap), _UNLIKELY, 1.0 - _UNLIKELY)
        total += float(np.log(np.where(changed, chance, 1.0 - chance)).sum())
        gamma.update(belief, rows, gap, changed)
    return total
