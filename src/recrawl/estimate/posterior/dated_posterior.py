r"""The posterior that also uses the dates that sites give for their last changes, weighted by their reliability.

Dates are Last-Modified and a sitemap's lastmod (algorithms §5). For each host the source with the highest trust w is
used (``estimate.signals.source_trust``), or none if no source proved reliable. Two beliefs are computed: one from the
observations alone, and one in which the dated changes have exact times. The result is their mixture,

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

from recrawl.estimate.estimator import RateEvidence
from recrawl.estimate.posterior.posterior_estimators import Posterior
from recrawl.estimate.signals import source_trust
from recrawl.estimate.signals.exact_times import as_dated
from recrawl.estimate.signals.source_trust import SourceStatements
from recrawl.model import FloatArray, GridBelief, Histories, IntArray


class DatedChanges(NamedTuple):
    """Dated changes, at most one a gap and one before each first observation."""

    row: IntArray
    gap: IntArray
    """The gap the change happened in; ``trust.BEFORE_ALL_OBSERVATIONS`` for one before the first observation."""
    age: FloatArray
    """Seconds from the change to the observation that closed the gap, or to the statement if that came first."""


def dates(histories: Histories, statements: SourceStatements, weight: FloatArray) -> DatedChanges:
    """The changes that statements date and no observation contradicts; ``weight[i]`` > 0 where row i is heard.

    O(m + s log s).

    Of statements about one gap the one with the latest change counts, and of those the last.
    """
    checked = source_trust.check(histories, statements)
    usable = np.flatnonzero(
        checked.true & (checked.gap != source_trust.AFTER_ALL_OBSERVATIONS) & (weight[checked.row] > 0.0)
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
    weights = [source_trust.count(source_trust.check(histories, source), group).of(group) for source in sources]
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
