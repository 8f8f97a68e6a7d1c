r"""The estimators that learn from a page and its neighbours, behind the seam.

``posterior`` and ``gamma`` learn a prior from the whole population and from each group of it (empirical Bayes), and
then each page from its own observations. ``posterior`` holds the belief on a grid of rates: exact, honest about what is
not known, 4 bytes per rate and page. ``gamma`` holds two numbers a page: for ranking where memory is short; its
intervals are too narrow.

**Dates.** :class:`DatedPosterior` also uses the dates that sites give for their last changes, weighted by their
reliability. Dates are Last-Modified and a sitemap's lastmod (algorithms §5). For each host the source with the highest
trust w is used (``estimate.site_signals``), or none if no source proved reliable. Two beliefs are computed: one
from the observations alone, and one in which the dated changes have exact times. The result is their mixture,

    p = w·p(observations and dates) + (1 − w)·p(observations),

because the source is right with probability w. So the dates of an unreliable host have no effect.

If a page changed in the gap that an observation closed, and a statement made at c dates that change at L, then the
evidence is a change at L, and none from L to the observation (or to c, if that came first). Its likelihood is
λ·e^{−λs}, s = min(c, observation) − L; that of the observation alone is 1 − e^{−λτ}. So the rate can be estimated even
from observations that always find a change. Statements that contradict the observations are not used.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import NamedTuple

import numpy as np

from recrawl.estimate import site_signals
from recrawl.estimate.estimator import RateEvidence
from recrawl.estimate.posterior import gamma_posterior, grid_posterior
from recrawl.estimate.posterior.expected_rates import fit_sharpened, fit_sharpened_gamma
from recrawl.estimate.posterior.gamma_posterior import GroupPriors, fit_group_priors, fit_prior
from recrawl.estimate.posterior.grid_posterior import STRENGTH, GridPriors, fit_priors
from recrawl.estimate.site_signals import SourceStatements, as_dated
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


class DatedChanges(NamedTuple):
    """Dated changes, at most one a gap and one before each first observation."""

    row: IntArray
    gap: IntArray
    """The gap the change happened in; ``site_signals.BEFORE_ALL_OBSERVATIONS`` for one before the first observation."""
    age: FloatArray
    """Seconds from the change to the observation that closed the gap, or to the statement if that came first."""


def dates(histories: Histories, statements: SourceStatements, weight: FloatArray) -> DatedChanges:
    """The changes that statements date and no observation contradicts; ``weight[i]`` > 0 where row i is heard.

    O(m + s log s).

    Of statements about one gap the one with the latest change counts, and of those the last.
    """
    checked = site_signals.check(histories, statements)
    usable = np.flatnonzero(
        checked.true & (checked.gap != site_signals.AFTER_ALL_OBSERVATIONS) & (weight[checked.row] > 0.0)
    )
    gap, row = checked.gap[usable], checked.row[usable]
    slot = np.where(gap >= 0, gap, len(histories.gaps) + row)
    for column in (checked.changed_at, checked.time):
        best = np.full(len(histories.gaps) + len(histories), -np.inf)
        np.maximum.at(best, slot, column[usable])
        stays = column[usable] == best[slot]
        usable, slot = usable[stays], slot[stays]
    chosen = usable[np.unique(slot, return_index=True)[1]]
    row, gap = checked.row[chosen], checked.gap[chosen]
    observation = np.where(gap >= 0, np.append(histories.observation_times(), np.nan)[gap], histories.first_visit[row])
    return DatedChanges(row, gap, np.minimum(checked.time[chosen], observation) - checked.changed_at[chosen])


_BLOCK = 65_536


@dataclass(frozen=True, slots=True)
class DatedPosterior:
    """The grid posterior over observations and trusted statements."""

    sources: tuple[SourceStatements, ...]
    """What each source says; trust is counted by source and by the widest level of the evidence (hosts)."""
    posterior: Posterior = field(default_factory=Posterior)
    name: str = "posterior"

    def __call__(self, evidence: RateEvidence) -> GridBelief:
        """The belief about each page right after its last observation.

        Twice the work of the posterior where any is heard.
        """
        plain = self.posterior.learn(evidence)
        heard = trusted_dates(evidence, self.sources)
        if not heard.any():
            return plain.belief
        told = as_dated(evidence.histories, heard.gap, heard.age)
        dated = self.posterior.learn(replace(evidence, histories=told), plain.priors, plain.row)
        return mixed(plain.belief, dated.belief, heard.weight)


@dataclass(frozen=True, slots=True)
class TrustedDates:
    """Changes that trusted sources date."""

    weight: FloatArray
    """Trust in the source that is used, one per page; 0 if none is used."""
    gap: IntArray
    """Gaps of the histories whose last change is dated, each once."""
    age: FloatArray
    """Seconds from that change to the observation that closed the gap."""

    def any(self) -> bool:
        """Whether any source is used."""
        return bool((self.weight > 0).any())


def trusted_dates(evidence: RateEvidence, sources: tuple[SourceStatements, ...]) -> TrustedDates:
    """The changes that the most trusted source of each host dates."""
    histories = evidence.histories
    group = evidence.levels[0] if evidence.levels else np.zeros(len(histories), dtype=np.int64)
    weights = [site_signals.count(site_signals.check(histories, source), group).of(group) for source in sources]
    best = np.argmax(weights, axis=0) if weights else np.zeros(len(histories), dtype=np.int64)
    weight = np.max(weights, axis=0) if weights else np.zeros(len(histories))
    gaps: list[IntArray] = [np.empty(0, dtype=np.int64)]
    ages: list[FloatArray] = [np.empty(0)]
    for number, source in enumerate(sources):
        found = dates(histories, source, np.where(best == number, weight, 0.0))
        inside = found.gap >= 0
        gaps.append(found.gap[inside])
        ages.append(found.age[inside])
    return TrustedDates(weight, np.concatenate(gaps), np.concatenate(ages))


def mixed(plain: GridBelief, dated: GridBelief, weight: FloatArray) -> GridBelief:
    """The belief with dates where they are true, with probability ``weight``, else the one without. In blocks."""
    weights = np.empty_like(plain.weights)
    for start in range(0, len(plain), _BLOCK):
        block = slice(start, start + _BLOCK)
        held = plain.weights[block]
        weights[block] = held + weight[block, None] * (dated.weights[block] - held)
    return GridBelief(plain.rates, weights)
