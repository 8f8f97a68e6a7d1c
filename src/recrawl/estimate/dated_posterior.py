r"""The posterior that also hears what sites say of their last changes, as far as they proved true.

For each host the source with the highest trust w (``estimate.trust``) is heard; none where no source proved true. Two
beliefs are made: one from the looks alone, and one in which the dated changes have their times (``estimate.watched``).
What is held is their mixture,

    p = w·p(looks and dates) + (1 − w)·p(looks),

because the source is right with probability w. So a host that never told the truth changes nothing.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace

import numpy as np

from recrawl.estimate import trust
from recrawl.estimate.estimator import Evidence
from recrawl.estimate.last_modified import dates
from recrawl.estimate.posterior import Posterior
from recrawl.estimate.trust import Statements
from recrawl.estimate.watched import as_dated
from recrawl.model import FloatArray, GridBelief, IntArray

_BLOCK = 65_536


@dataclass(frozen=True, slots=True)
class DatedPosterior:
    """The grid posterior over looks and trusted statements."""

    sources: tuple[Statements, ...]
    """What each source says; trust is counted by source and by the widest level of the evidence (hosts)."""
    posterior: Posterior = field(default_factory=Posterior)
    name: str = "posterior"

    def __call__(self, evidence: Evidence) -> GridBelief:
        """The belief about each page right after its last look. Twice the work of the posterior where any is heard."""
        plain = self.posterior.learn(evidence)
        heard = hear(evidence, self.sources)
        if not heard.any():
            return plain.belief
        told = as_dated(evidence.histories, heard.gap, heard.age)
        dated = self.posterior.learn(replace(evidence, histories=told), plain.priors, plain.row)
        return mixed(plain.belief, dated.belief, heard.weight)


@dataclass(frozen=True, slots=True)
class Heard:
    """What trusted sources say."""

    weight: FloatArray
    """Trust in the source that is heard, one a page; 0 where none is."""
    gap: IntArray
    """Gaps of the histories whose last change is dated, each once."""
    age: FloatArray
    """Seconds from that change to the look that closed the gap."""

    def any(self) -> bool:
        """Whether anybody is heard."""
        return bool((self.weight > 0).any())


def hear(evidence: Evidence, sources: tuple[Statements, ...]) -> Heard:
    """Of each host the source with the highest trust, and what it dates."""
    histories = evidence.histories
    group = evidence.levels[0] if evidence.levels else np.zeros(len(histories), dtype=np.int64)
    weights = [trust.count(trust.check(histories, source), group).of(group) for source in sources]
    best = np.argmax(weights, axis=0) if weights else np.zeros(len(histories), dtype=np.int64)
    weight = np.max(weights, axis=0) if weights else np.zeros(len(histories))
    gaps: list[IntArray] = [np.empty(0, dtype=np.int64)]
    ages: list[FloatArray] = [np.empty(0)]
    for number, source in enumerate(sources):
        found = dates(histories, source, np.where(best == number, weight, 0.0))
        inside = found.gap >= 0
        gaps.append(found.gap[inside])
        ages.append(found.age[inside])
    return Heard(weight, np.concatenate(gaps), np.concatenate(ages))


def mixed(plain: GridBelief, dated: GridBelief, weight: FloatArray) -> GridBelief:
    """The belief with dates where they are true, with probability ``weight``, else the one without. In blocks."""
    weights = np.empty_like(plain.weights)
    for start in range(0, len(plain), _BLOCK):
        block = slice(start, start + _BLOCK)
        held = plain.weights[block]
        weights[block] = held + weight[block, None] * (dated.weights[block] - held)
    return GridBelief(plain.rates, weights)
