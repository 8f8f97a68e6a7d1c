r"""HACS (§III): visit the pages that have most likely changed.

From the looks of the last w seconds, the rate λ (eq. 5 over interpolated updates) and the last update τ of each page;
then

    p = 1 − e^{−λ·((t + e) − τ)}

is the probability that it changed by t + e (reading 000.5). Visited are the pages with p ≥ θ, or the K with the
highest p. Here the score is x = −ln(1 − p) and the threshold −ln(1 − θ), which rank and cut the same and do not run
full at 1: urgency is x in units of the threshold.

The paper counts from the last update, also where a later look proved that nothing had happened since: right for
archives that others made, wasteful for a crawler. ``hacs-since-look`` counts from the last look, p = 1 − e^{−λ·(t −
last look)}. A page is then due whenever λ·(t − last look) reaches one number for all, so that intervals are in
proportion to 1/λ.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from recrawl.errors import ConfigError
from recrawl.estimate import mle
from recrawl.estimate.empirical_bayes import UNKNOWN_RATE
from recrawl.estimate.interpolated import update_model
from recrawl.estimate.point_estimators import PointEstimator
from recrawl.estimate.point_evidence import filled
from recrawl.model import FloatArray, Histories
from recrawl.schedule.proportional import Proportional
from recrawl.schedule.update_ranking import UpdateRanking
from recrawl.time import DAY, HOUR, WEEK


def change_probability(
    histories: Histories, t: float, *, horizon: float = WEEK, window: float = np.inf, interpolated: bool = True
) -> FloatArray:
    """The p of each page at the time ``t``, from the looks in [t − window, t]; 0 without a gap. O(gaps).

    >>> from recrawl.model import Visits
    >>> h = Histories.from_visits(Visits.of([1] * 3, [0.0, 10.0, 20.0], verdict=[0, 2, 1]))
    >>> change_probability(h, 20.0, horizon=10.0).round(3).tolist()  # eq. 5 over the gaps 5 (changed) and 15
    [0.763]
    """
    known = update_model(histories.window(t - window, t), interpolated=interpolated)
    since = np.maximum(t + horizon - known.last_update, 0.0)
    return np.asarray(np.nan_to_num(-np.expm1(-known.rate * since), nan=0.0))


@dataclass(frozen=True, slots=True)
class HacsModel:
    """Rates and last updates from the looks in a window before each fit."""

    window: float
    unknown_rate: float | None
    """Of a page without a gap in the window; ``None`` for the pooled rate of all pages."""
    name: str

    @property
    def unfitted_slope(self) -> float:
        """The rate of a page before the first fit."""
        return UNKNOWN_RATE if self.unknown_rate is None else self.unknown_rate

    def __call__(self, histories: Histories, now: float) -> tuple[FloatArray, FloatArray]:
        """The rate λ of each page, and its last update τ."""
        recent = histories.window(now - self.window, now) if np.isfinite(self.window) else histories
        known = update_model(recent)
        if self.unknown_rate is None:
            rate = filled(known.rate, recent)
        else:
            rate = np.nan_to_num(known.rate, nan=self.unknown_rate)
        return rate, known.last_update


def hacs(
    *,
    theta: float | None = None,
    window: float = np.inf,
    horizon: float = WEEK,
    longest: float = 180 * DAY,
    unknown_rate: float | None = None,
) -> UpdateRanking:
    """HACS with the threshold ``theta``, or with the best K that the budget pays for.

    ``window`` is the paper's history size w, ``horizon`` its e, also the time between two rounds; rounds are shorter
    where the budget pays for more than half of the pages in one (``schedule.update_ranking``). A page without a
    gap has p = 0 in the paper (``unknown_rate=0``), which is fine where histories come from an archive; a crawler
    that learns only from its own looks would never take a second one. So by default such a page has the pooled rate
    of all.
    """
    if theta is not None and not 0 <= theta < 1:
        raise ConfigError(f"A threshold of {theta} is no probability to wait for.", "Give theta from 0 to below 1.")
    if not window > 0:
        raise ConfigError(f"A history of {window} s holds no look.", "Give a window above 0.")
    name = "hacs" if theta is None else "hacs-threshold"
    return UpdateRanking(
        HacsModel(window, unknown_rate, name),
        horizon=horizon,
        period=horizon,
        longest=longest,
        threshold=None if theta is None else -np.log1p(-theta),
    )


def hacs_threshold(*, theta: float = 0.7, window: float = np.inf) -> UpdateRanking:
    """HACS with a threshold, by default in the middle of those that the paper found best (0.5 to 0.9)."""
    return hacs(theta=theta, window=window)


def hacs_since_look(*, shortest: float = HOUR, longest: float = 180 * DAY) -> Proportional:
    """The pages most likely changed since the last look, as many as the budget pays for; intervals in seconds."""
    estimator = PointEstimator("mle-interpolated", mle.rates, interpolated=True)
    return Proportional(name="hacs-since-look", estimator=estimator, shortest=shortest, longest=longest)
