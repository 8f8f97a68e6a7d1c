r"""The posterior that also hears what sites say of their last changes, as far as they proved true.

For each host the source with the highest trust w (``estimate.trust``) is heard; none where no source proved true. Two
beliefs are made: one from the looks alone, and one in which the dated changes have their times (``estimate.watched``).
What is held is their mixture,

    p = w·p(looks and dates) + (1 − w)·p(looks),

because the source is right with probability w. So a host that never told the truth changes nothing.
"""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np

from recrawl.estimate import trust
from recrawl.estimate.estimator import Evidence
from recrawl.estimate.last_modified import dates
from recrawl.estimate.posterior import Posterior
from recrawl.estimate.trust import Statements
from recrawl.estimate.watched import as_dated
from recrawl.model import FloatArray, GridBelief, Histories, IntArray

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
        told, weight = hear(evidence, self.sources)
        if not bool((weight > 0).any()):
            return plain.belief
        dated = self.posterior.learn(Evidence(told, evidence.levels, evidence.kind), plain.priors).belief
        mixed = np.empty_like(plain.belief.weights)
        for start in range(0, len(evidence), _BLOCK):
            block = slice(start, start + _BLOCK)
            held = plain.belief.weights[block]
            mixed[block] = held + weight[block, None] * (dated.weights[block] - held)
        return GridBelief(plain.belief.rates, mixed)


def hear(evidence: Evidence, sources: tuple[Statements, ...]) -> tuple[Histories, FloatArray]:
    """The histories with dated changes, and the trust in what dates them, a row each; 0 where nobody is heard."""
    histories = evidence.histories
    group = evidence.levels[0] if evidence.levels else np.zeros(len(histories), dtype=np.int64)
    weights = [trust.count(trust.check(histories, source), group).of(group) for source in sources]
    best = np.argmax(weights, axis=0) if weights else np.zeros(len(histories), dtype=np.int64)
    heard = np.max(weights, axis=0) if weights else np.zeros(len(histories))
    gaps: list[IntArray] = [np.empty(0, dtype=np.int64)]
    ages: list[FloatArray] = [np.empty(0)]
    for number, source in enumerate(sources):
        found = dates(histories, source, np.where(best == number, heard, 0.0))
        inside = found.gap >= 0
        gaps.append(found.gap[inside])
        ages.append(found.age[inside])
    return as_dated(histories, np.concatenate(gaps), np.concatenate(ages)), heard
