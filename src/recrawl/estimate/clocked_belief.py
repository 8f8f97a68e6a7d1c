r"""A belief held in operational time and asked in wall time, by the clock of each page.

The rate is believed per operational second; t seconds after the last look the clock of the page has run Λ(t)
(``estimate.operational``). So S(t) = S_belief(Λ(t)). With the jump filter the page may have drawn a new rate since:

    S(t) = e^{−Λ/J}·S_belief(Λ) + (1 − e^{−Λ/J})·S_prior(Λ).

Rates are shown per wall second at the page's lasting speed: that of its age, times what the other factors made of the
time in which the page was observed, on average. What its cluster does this week does not count. Without that average
rates would be those of a time in which nothing happens: where changes come in bursts, the rate long after the last one.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace

import numpy as np

from recrawl.estimate.operational import OperationalTime
from recrawl.estimate.posterior import Learned
from recrawl.model import AnyArray, FloatArray, GridBelief, Histories

SILENCE = 3.0
"""Expected changes in a silence that comes once in twenty times: −ln .05."""
_BLOCK = 16_384


@dataclass(frozen=True, slots=True)
class ClockedBelief:
    """What is held of n pages, each with its own clock. Times t count from the last look at each page."""

    learned: Learned
    """Rates per operational second, right after the last look."""
    clock: OperationalTime
    """Row i is page i."""
    last_look: FloatArray
    """Seconds since the epoch; NaN where there was none: the clock of such a page is the wall's."""
    last_change: FloatArray
    """The last look that found a change; NaN if none did."""
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
        """Probability that a page stays unchanged for t seconds after its last look."""
        passed = self._passed(t)
        return self._mixed(passed, lambda belief: belief.survival(passed))

    def p_change(self, t: FloatArray) -> FloatArray:
        """Probability of a change within t seconds after the last look."""
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
            self.last_look[rows],
            self.last_change[rows],
            self.usual[rows],
        )

    # -- inside -------------------------------------------------------------------------------

    def _rows(self) -> AnyArray:
        return np.arange(len(self))

    def _start(self) -> FloatArray:
        return np.nan_to_num(self.last_look)

    def _passed(self, t: FloatArray) -> FloatArray:
        """Operational seconds in the t seconds after the last look."""
        t = np.broadcast_to(np.asarray(t, dtype=np.float64), (len(self),))
        passed = self.clock.elapsed(self._rows(), self._start(), self._start() + t, self.last_change)
        return np.where(np.isnan(self.last_look), t, passed)

    def _lasting_speed(self) -> FloatArray:
        lasting = replace(self.clock, calendar=None, week=None, bursts=None)
        return np.where(np.isnan(self.last_look), 1.0, lasting.speed(self._rows(), self._start()) * self.usual)

    def _mixed(self, passed: FloatArray, of: Callable[[GridBelief], FloatArray]) -> FloatArray:
        """What holds of the belief, or of the prior where the page has jumped since."""
        held = of(self.learned.belief)
        if self.learned.jump is None:
            return held
        jumped = -np.expm1(-passed / self.learned.jump)
        return held + jumped * (of(self.learned.priors.belief.take(self.learned.row)) - held)


def usual_speed(clock: OperationalTime, histories: Histories, told: Histories, middle: FloatArray) -> FloatArray:
    """Mean speed by all factors but age over the observed time of each page; 1 where there is none. O(gaps).

    ``told`` are the histories in operational time, ``middle`` the middle of what is believed of each page, per
    operational second. A page that stopped changing had fast times that are over: a mean above 1 counts only as far
    as the silence up to the last look allows, which has a chance of 5 % at the rate ``SILENCE`` / its length.
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
