r"""The default estimator: the grid posterior in operational time, which also uses trusted dates of changes.

Operational time has factors: shared intensity of clusters, age, bursts, hour of the week. A factor is used if it
improves the prediction of later observations of the same evidence (``estimate.operational.factor_state``). Without any
factor this is the posterior in wall time. The narrowest level of the evidence gives the clusters, the widest the hosts.
A page is born when it was first seen, unless it was there from the start or was found together with many others
(``known_births``).

The belief is about the rate per operational second, and is queried in wall time: t seconds after the last observation
the clock of the page has advanced by Λ(t). So S(t) = S_belief(Λ(t)). With the jump filter the page may have drawn a new
rate since:

    S(t) = e^{−Λ/J}·S_belief(Λ) + (1 − e^{−Λ/J})·S_prior(Λ).

Rates are shown per wall second at the page's lasting speed: that of its age, times what the other factors made of the
time in which the page was observed, on average. What its cluster does this week does not count. Without that average
rates would be those of a time in which nothing happens: where changes come in bursts, the rate long after the last one.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field, replace

import numpy as np

from recrawl.estimate.estimator import RateEvidence
from recrawl.estimate.operational.factor_state import PageGroups, TimeFactor, choose, fit
from recrawl.estimate.operational.operational_factors import known_births
from recrawl.estimate.operational.operational_time import OperationalTime
from recrawl.estimate.posterior.posterior_estimators import GridKnowledge, Posterior, TrustedDates, mixed, trusted_dates
from recrawl.estimate.site_signals import SourceStatements, as_dated
from recrawl.model import AnyArray, FloatArray, GridBelief, Histories, IntArray

SILENCE = 3.0
"""Expected changes in a silence that comes once in twenty times: −ln .05."""
_BLOCK = 16_384


@dataclass(frozen=True, slots=True)
class ClockedBelief:
    """What is held of n pages, each with its own clock. Times t count from the last observation of each page."""

    learned: GridKnowledge
    """Rates per operational second, right after the last observation."""
    clock: OperationalTime
    """Row i is page i."""
    last_observed: FloatArray
    """Seconds since the epoch; NaN where there was none: the clock of such a page is the wall's."""
    last_change: FloatArray
    """The last observation that found a change; NaN if none did."""
    usual: FloatArray
    """Mean operational seconds per second by all factors but age, over the time in which each page was observed."""

    def __len__(self) -> int:
        return len(self.learned.belief)

    def mean(self) -> FloatArray:
        """E[λ] at the page's lasting speed, per second."""
        return self.learned.belief.mean() * self._lasting_speed()

    def quantile(self, q: float) -> FloatArray:
        """The rate below which λ lies with probability q, at the page's lasting speed, per second."""
        return self.learned.belief.quantile(q) * self._lasting_speed()

    def survival(self, t: FloatArray) -> FloatArray:
        """Probability that a page stays unchanged for t seconds after its last observation."""
        passed = self._passed(t)
        return self._mixed(passed, lambda belief: belief.survival(passed))

    def p_change(self, t: FloatArray) -> FloatArray:
        """Probability of a change within t seconds after the last observation."""
        passed = self._passed(t)
        return self._mixed(passed, lambda belief: belief.p_change(passed))

    def unchanged_time(self, t: FloatArray) -> FloatArray:
        """∫₀ᵗ S, seconds, at the mean speed of the time in question."""
        passed = self._passed(t)
        whole = self._mixed(passed, lambda belief: belief.unchanged_time(passed))
        return np.asarray(whole * np.divide(t, passed, out=np.ones(len(self)), where=passed > 0))

    def change_density(self, t: FloatArray) -> FloatArray:
        """Density of the first change at t, per second."""
        passed = self._passed(t)
        speed = self.clock.speed(self._rows(), self._start() + t, self.last_change)
        return self._mixed(passed, lambda belief: belief.change_density(passed)) * speed

    def expect(self, function: Callable[[FloatArray], FloatArray]) -> FloatArray:
        """E[function(λ)] at the page's lasting speed; pages in blocks of bounded memory."""
        belief, speed, out = self.learned.belief, self._lasting_speed(), np.empty(len(self))
        for start in range(0, len(self), _BLOCK):
            block = slice(start, start + _BLOCK)
            weights = belief.weights[block].astype(np.float64)
            values = function(speed[block, None] * belief.rates)
            out[block] = (weights * values).sum(axis=1) / weights.sum(axis=1)
        return out

    def take(self, rows: AnyArray | slice) -> ClockedBelief:
        """The belief about the pages at these positions."""
        return ClockedBelief(
            self.learned.take(rows),
            self.clock.take(rows),
            self.last_observed[rows],
            self.last_change[rows],
            self.usual[rows],
        )

    # -- inside -------------------------------------------------------------------------------

    def _rows(self) -> AnyArray:
        return np.arange(len(self))

    def _start(self) -> FloatArray:
        return np.nan_to_num(self.last_observed)

    def _passed(self, t: FloatArray) -> FloatArray:
        """Operational seconds in the t seconds after the last observation."""
        t = np.broadcast_to(np.asarray(t, dtype=np.float64), (len(self),))
        passed = self.clock.elapsed(self._rows(), self._start(), self._start() + t, self.last_change)
        return np.where(np.isnan(self.last_observed), t, passed)

    def _lasting_speed(self) -> FloatArray:
        lasting = replace(self.clock, calendar=None, week=None, bursts=None)
        return np.where(np.isnan(self.last_observed), 1.0, lasting.speed(self._rows(), self._start()) * self.usual)

    def _mixed(self, passed: FloatArray, of: Callable[[GridBelief], FloatArray]) -> FloatArray:
        """What holds of the belief, or of the prior where the page has jumped since."""
        held = of(self.learned.belief)
        if self.learned.jump is None:
            return held
        jumped = -np.expm1(-passed / self.learned.jump)
        return held + jumped * (of(self.learned.priors.belief.take(self.learned.row)) - held)


def usual_speed(clock: OperationalTime, histories: Histories, told: Histories, middle: FloatArray) -> FloatArray:
    """Mean speed by all factors but age over the observed time of each page; 1 where there is none. O(gaps).

    ``told`` are the histories in operational time, ``middle`` is the median of the belief about each page, per
    operational second. A page that stopped changing had fast times that are over: a mean above 1 counts only as far
    as the silence up to the last observation allows, which has a chance of 5 % at the rate ``SILENCE`` / its length.
    """
    out = np.ones(len(histories))
    rows = np.flatnonzero(histories.counts())
    if clock.is_wall() or not len(rows):
        return out
    by_age = replace(clock, calendar=None, week=None, bursts=None)
    aged = by_age.elapsed(rows, histories.first_visit[rows], histories.last_visit[rows])
    passed = np.add.reduceat(told.gaps, told.offsets[rows])
    out[rows] = np.divide(passed, aged, out=np.ones(len(rows)), where=aged > 0)
    last = histories.last_visit[rows]
    changed = histories.last_change[rows]
    silent = last - np.where(np.isnan(changed), histories.first_visit[rows], changed)
    shown = middle[rows] * by_age.speed(rows, last)
    with np.errstate(divide="ignore"):
        allowed = SILENCE / (silent * shown)
    out[rows] = np.maximum(np.minimum(out[rows], allowed), np.minimum(out[rows], 1.0))
    return out


@dataclass(frozen=True, slots=True)
class OperationalPosterior:
    """The grid posterior on the clocks of the pages."""

    posterior: Posterior = field(default_factory=Posterior)
    allowed: tuple[TimeFactor, ...] = tuple(TimeFactor)
    """Factors that may be switched on, where they prove useful."""
    sources: tuple[SourceStatements, ...] = ()
    """Statements of sites about their last changes; used as far as they proved true."""
    name: str = "operational"

    def __call__(self, evidence: RateEvidence) -> ClockedBelief:
        """The belief about each page. Seconds for the choice of factors, then O(gaps · rates)."""
        factors: tuple[TimeFactor, ...] = choose(evidence.histories, places_of(evidence), allowed=self.allowed).factors
        return self.with_factors(evidence, factors)

    def with_factors(
        self, evidence: RateEvidence, factors: tuple[TimeFactor, ...], places: PageGroups | None = None
    ) -> ClockedBelief:
        """The same with factors that were chosen before, and with ``places`` if they are better known."""
        histories = evidence.histories
        clock = fit(histories, places or places_of(evidence), factors).time()
        stretched = replace(evidence, histories=clock.stretch(histories))
        learned = self.posterior.learn(stretched)
        heard = trusted_dates(evidence, self.sources)
        if heard.any():
            learned = self._dated(learned, stretched, heard, _operational(clock, evidence, heard))
        usual = usual_speed(clock, histories, stretched.histories, learned.belief.quantile(0.5))
        return ClockedBelief(learned, clock, histories.last_visit, histories.last_change, usual)

    def follow(self, belief: ClockedBelief, rows: IntArray, histories: Histories) -> ClockedBelief:
        """The belief about pages of an earlier fit if they had these ``histories`` instead of their own.

        Row i of the histories is about the page in row ``rows[i]`` of the belief, and has its prior and clock. So the
        belief about one page after each of its observations can be computed. Dates of sites are not used.
        O(gaps · rates).
        """
        clock = belief.clock.take(rows)
        told = clock.stretch(histories)
        learned = self.posterior.learn(RateEvidence(told), belief.learned.priors, belief.learned.row[rows])
        usual = usual_speed(clock, histories, told, learned.belief.quantile(0.5))
        return ClockedBelief(learned, clock, histories.last_visit, histories.last_change, usual)

    def _dated(
        self, learned: GridKnowledge, stretched: RateEvidence, heard: TrustedDates, passed: TrustedDates
    ) -> GridKnowledge:
        told = as_dated(stretched.histories, passed.gap, passed.age)
        dated = self.posterior.learn(replace(stretched, histories=told), learned.priors, learned.row)
        return replace(learned, belief=mixed(learned.belief, dated.belief, heard.weight))


def places_of(evidence: RateEvidence) -> PageGroups:
    """Cluster, host and birth of each page, as far as the evidence has them."""
    pages = len(evidence)
    narrow = evidence.levels[-1] if evidence.levels else np.zeros(pages, dtype=np.int64)
    wide = evidence.levels[0] if evidence.levels else narrow
    _, first, cluster = np.unique(narrow, return_index=True, return_inverse=True)
    _, host = np.unique(wide[first], return_inverse=True)
    seen = evidence.histories.first_visit
    start = float(np.nanmin(seen)) if bool(np.isfinite(seen).any()) else 0.0
    return PageGroups(cluster.astype(np.int64), host.astype(np.int64), known_births(seen, start))


def _operational(clock: OperationalTime, evidence: RateEvidence, heard: TrustedDates) -> TrustedDates:
    """The ages of dated changes by the clocks of their pages."""
    histories = evidence.histories
    observation = histories.observation_times()[heard.gap]
    row = histories.row_of_gap()[heard.gap]
    return replace(heard, age=clock.elapsed(row, observation - heard.age, observation, histories.last_change[row]))
