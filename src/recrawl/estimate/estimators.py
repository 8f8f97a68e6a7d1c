"""Every estimator by its name: what settings, tables and the ``--estimator`` option choose from.

The point estimators behind the seam: each formula as an :class:`~recrawl.estimate.estimator.Estimator`.

Point estimators treat their rate as certain (:class:`~recrawl.estimate.point_evidence.PointBelief`). A page without
evidence gets the pooled rate of all pages (``point_evidence.pooled_rate``), so a belief is never NaN. A rate of 0 stays
0: that is the result of X/T, eq. 4 and eq. 5 for a page never found changed. Intervals are in ``estimate.mle``.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from recrawl.estimate import mle
from recrawl.estimate.estimator import Estimator, RateEvidence
from recrawl.estimate.mle import interpolate
from recrawl.estimate.operational.operational_posterior import OperationalPosterior
from recrawl.estimate.point_estimators import bias_reduced_rates, fit_online, lln_rates, moment_rates, naive_rates
from recrawl.estimate.point_evidence import PointBelief, filled, pooled_rate, sound
from recrawl.estimate.posterior.posterior_estimators import GammaPosterior, Posterior
from recrawl.model import FloatArray, Histories


@dataclass(frozen=True, slots=True)
class PointEstimator:
    """A formula from histories to rates, NaN where it is not defined."""

    name: str
    rates: Callable[[Histories], FloatArray]
    interpolated: bool = False
    """Whether changes are first moved to the middle of their gaps (HACS §II-B2)."""

    def __call__(self, evidence: RateEvidence) -> PointBelief:
        """The rate of each page; the pooled rate for pages without gaps."""
        histories = sound(evidence.histories)
        used = interpolate(histories) if self.interpolated else histories
        return PointBelief(filled(self.rates(used), used))


@dataclass(frozen=True, slots=True)
class NaturalGradient:
    """The online estimator run over whole histories, from the pooled rate of the evidence."""

    name: str = "natural-gradient"

    def __call__(self, evidence: RateEvidence) -> PointBelief:
        """The rate of each page; the pooled rate for pages without gaps."""
        histories = sound(evidence.histories)
        start = np.full(len(histories), pooled_rate(histories))
        return PointBelief(fit_online(histories, start).rates())


def at_site_level(evidence: RateEvidence, level: int = 0, *, round_length: float = 0.0) -> RateEvidence:
    """Evidence about whole sites, one row per site: a site changes when any of its pages does (HACS "website-level").

    ``level`` is the level of the evidence whose groups are the sites; wider levels become groups of sites.
    Observations within one round of ``round_length`` seconds are one observation of the site (:meth:`Histories.group`).
    """
    label = evidence.levels[level]
    histories = evidence.histories.group(label, round_length=round_length)
    first = np.unique(label, return_index=True)[1]
    wider = tuple(group[first] for group in evidence.levels[:level])
    return RateEvidence(histories, wider, evidence.kind)


POINT_ESTIMATORS: tuple[Estimator, ...] = (
    PointEstimator("naive", naive_rates),
    PointEstimator("naive-interpolated", naive_rates, interpolated=True),
    PointEstimator("bias-reduced", bias_reduced_rates),
    PointEstimator("bias-reduced-interpolated", bias_reduced_rates, interpolated=True),
    PointEstimator("mle", mle.rates),
    PointEstimator("mle-interpolated", mle.rates, interpolated=True),
    PointEstimator("moment", moment_rates),
    PointEstimator("lln", lln_rates),
    NaturalGradient(),
)
"""Every point estimator, by the name that settings and tables use."""


_ALL: tuple[Estimator, ...] = (OperationalPosterior(), Posterior(), GammaPosterior(), *POINT_ESTIMATORS)

ESTIMATORS: dict[str, Estimator] = {estimator.name: estimator for estimator in _ALL}
"""By name, the default first."""

DEFAULT = "operational"
