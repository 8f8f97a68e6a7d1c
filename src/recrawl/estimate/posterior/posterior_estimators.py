"""The estimators that learn from a page and its neighbours, behind the seam: ``posterior`` and ``gamma``.

Both learn a prior from the whole population and from each group of it (empirical Bayes), and then each page from its
own observations. ``posterior`` holds the belief on a grid of rates: exact, honest about what is not known, 4 bytes per
rate and page. ``gamma`` holds two numbers a page: for ranking where memory is short; its intervals are too narrow.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from recrawl.estimate.estimator import RateEvidence
from recrawl.estimate.posterior import gamma_posterior, grid_posterior
from recrawl.estimate.posterior.expected_rates import fit_sharpened, fit_sharpened_gamma
from recrawl.estimate.posterior.gamma_posterior import GroupPriors, fit_group_priors, fit_prior
from recrawl.estimate.posterior.grid_posterior import STRENGTH, GridPriors, fit_priors
from recrawl.model import AnyArray, FloatArray, GammaBelief, GridBelief, Histories, IntArray


@dataclass(frozen=True, slots=True)
class GridKnowledge:
    """The state of the grid posterior for n pages: it can be updated further, and queried for any time."""

    belief: GridBelief
    """Of each page right after its last observation."""
    priors: GridPriors
    row: IntArray
    """The row of ``priors.belief`` that is the prior of each page."""
    jump: float | None

    def at(self, elapsed: FloatArray) -> GridBelief:
        """The belief ``elapsed`` seconds after the last observation of each page; NaN where there was none."""
        return grid_posterior.at(self.belief, self.priors.belief, elapsed, of=self.row, jump=self.jump)

    def take(self, rows: AnyArray | slice) -> GridKnowledge:
        """What is known of the pages at these positions."""
        return GridKnowledge(self.belief.take(rows), self.priors, self.row[rows], self.jump)


@dataclass(frozen=True, slots=True)
class Posterior:
    """The default: the grid posterior with a prior for each group, and a filter for pages that change their ways."""

    jump: float | None = grid_posterior.JUMP
    """Mean seconds between two changes of a page's rate; ``None`` if rates last for ever."""
    strength: float = STRENGTH
    """Pages that a wider group counts for in the prior of a narrower one."""
    depth: int | None = None
    """How many levels of groups to use, from the widest; ``None`` for all, 0 for one prior for all pages."""
    name: str = "posterior"

    def __call__(self, evidence: RateEvidence) -> GridBelief:
        """The belief about each page right after its last observation. O(gaps · rates)."""
        return self.learn(evidence).belief

    def learn(
        self, evidence: RateEvidence, priors: GridPriors | None = None, row: IntArray | None = None
    ) -> GridKnowledge:
        """The belief together with its priors.

        They are learned from the same evidence, and sharpened by the rates that are expected of each page, if any are;
        unless they are given. ``row`` is then the row of each page in them, if it is not that of its group.
        """
        if priors is None:
            priors, row = self._priors(evidence)
        elif row is None:
            row = priors.rows(evidence.levels[: self.depth], len(evidence))
        belief = grid_posterior.fit(evidence.histories, priors.belief, of=row, jump=self.jump)
        return GridKnowledge(belief, priors, row, self.jump)

    def _priors(self, evidence: RateEvidence) -> tuple[GridPriors, IntArray]:
        """The priors, and the row of each page in them."""
        histories, levels = evidence.histories, evidence.levels[: self.depth]
        if evidence.expected is None:
            priors = fit_priors(histories, levels, strength=self.strength)
            return priors, priors.rows(levels, len(evidence))
        sharpened = fit_sharpened(histories, levels, evidence.expected, strength=self.strength)
        rates, known = sharpened.priors.belief.rates, sharpened.priors.belief.weights
        own = sharpened.of(sharpened.priors.rows(levels, len(evidence)), evidence.expected)
        priors = GridPriors(GridBelief(rates, np.concatenate([known, own])), sharpened.priors.groups)
        return priors, np.arange(len(known), len(known) + len(own))


@dataclass(frozen=True, slots=True)
class GammaPosterior:
    """The low-memory form: two numbers a page, learned by assumed-density filtering. For ranking."""

    strength: float = 5.0
    """Pages that a wider group counts for in the prior of a narrower one."""
    depth: int | None = None
    """How many levels of groups to use, from the widest; ``None`` for all."""
    name: str = "gamma"

    def __call__(self, evidence: RateEvidence) -> GammaBelief:
        """The belief about each page after its last observation. O(gaps)."""
        histories, group = evidence.histories, self._narrowest(evidence)
        if evidence.expected is None:
            return gamma_posterior.fit(histories, self._fit(evidence, histories).of(group))
        sharpened = fit_sharpened_gamma(
            histories, group, evidence.expected, lambda observations: self._fit(evidence, observations)
        )
        return gamma_posterior.fit(histories, sharpened.of(group, evidence.expected))

    def _narrowest(self, evidence: RateEvidence) -> IntArray:
        """The group of each page that its prior is of."""
        levels = evidence.levels[: self.depth]
        return levels[-1] if levels else np.zeros(len(evidence), np.int64)

    def _fit(self, evidence: RateEvidence, histories: Histories) -> GroupPriors:
        """The priors of the narrowest groups, each shrunk towards those around it."""
        overall, of = fit_prior(histories), np.zeros(len(evidence), dtype=np.int64)
        found = GroupPriors(np.empty(0, np.int64), overall.take(slice(0)), overall)
        prior = overall
        for level in evidence.levels[: self.depth]:
            _, first, index = np.unique(level, return_index=True, return_inverse=True)
            found = fit_group_priors(histories, level, prior.take(of[first]), strength=self.strength)
            prior, of = found.prior, index
        return found
