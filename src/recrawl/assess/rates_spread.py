"""How rates differ from page to page: the distribution of 1/λ and the log-normal that fits it (HACS II-B, figure 4)."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from scipy import special

from recrawl.model import FloatArray

FEWEST = 8
"""Pages below which no distribution is fitted."""
_MOST = 2_000
"""Rates that are compared with the fit, evenly spread over their ranks."""


@dataclass(frozen=True, slots=True)
class LogNormalFit:
    """1/λ is about log-normal: ln(1/λ) is normal with mean ``mu`` and standard deviation ``sigma``."""

    pages: int
    left_out: int
    """Pages whose rate is 0, infinite or no number."""
    mu: float
    """Mean of ln(seconds)."""
    sigma: float
    distance: float
    """Kolmogorov–Smirnov, from the fitted distribution."""
    p: float
    """How often a log-normal sample of this size lies at least as far from its own fit."""

    @property
    def median(self) -> float:
        """Median of 1/λ under the fit, seconds."""
        return float(np.exp(self.mu))

    def density(self, interval: FloatArray) -> FloatArray:
        """Density over ln(interval)."""
        z = (np.log(interval) - self.mu) / self.sigma
        return np.asarray(np.exp(-z * z / 2.0) / (self.sigma * np.sqrt(2.0 * np.pi)))


def fit_lognormal(rate: FloatArray, rng: np.random.Generator, *, repeats: int = 199) -> LogNormalFit:
    """Fit a log-normal to 1/λ, and say how well it fits. Rates per second. O(n log n + repeats · 2000).

    The parameters are estimated, so p comes from samples whose parameters are estimated the same way (Lilliefors).
    Of more than 2,000 rates so many, evenly spread by rank, are compared; all are fitted. Fewer than 8 give NaN.
    """
    usable = np.isfinite(rate) & (rate > 0)
    logs = np.sort(-np.log(rate[usable]))
    left_out = len(rate) - len(logs)
    if len(logs) < FEWEST or not logs[-1] > logs[0]:
        nan = float("nan")
        return LogNormalFit(len(logs), left_out, nan, nan, nan, nan)
    mu, sigma = float(logs.mean()), float(logs.std(ddof=1))
    compared = logs if len(logs) <= _MOST else logs[np.linspace(0, len(logs) - 1, _MOST).astype(np.int64)]
    distance = _distances(compared[None, :])[0]
    samples = np.sort(rng.standard_normal((repeats, len(compared))), axis=1)
    p = (1 + int((_distances(samples) >= distance).sum())) / (repeats + 1)
    return LogNormalFit(len(logs), left_out, mu, sigma, float(distance), p)


def _distances(ascending: FloatArray) -> FloatArray:
    """Distance of each row from the normal distribution with its own mean and deviation."""
    n = ascending.shape[1]
    spread = ascending.std(axis=1, ddof=1, keepdims=True)
    below = special.ndtr((ascending - ascending.mean(axis=1, keepdims=True)) / spread)
    steps = np.arange(n) / n
    return np.asarray(np.maximum((below - steps).max(axis=1), (steps + 1.0 / n - below).max(axis=1)))
