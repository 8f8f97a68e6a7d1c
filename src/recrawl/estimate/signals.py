r"""How far a signal of change can be trusted, host by host (algorithms §4, after Busa-Fekete et al. 2025).

A sitemap date that moved, an entry in a feed, a sibling that changed: each change of a page is signalled with some
probability, and there are false signals. After the time t and n signals a page has stayed as it was with probability
e^{−ℓ}, ℓ = αt + κn: α is the rate of changes that nobody signals, κ = ln(γ/b) the weight of a signal, with γ the rate
of signals and b that of false ones. A look finds a change with probability 1 − e^{−ℓ}. EM shares what was found
between both: with E = z·ℓ/(1 − e^{−ℓ})

    α ← (Σ E·αt/ℓ + a₀)/(Σ t + b₀) of a page,      κ ← (Σ E·κn/ℓ + 1)/(Σ n + 1) of a host.

Useless signals get a κ of 0.15 to 0.4 this way, so signals of a host count only after a likelihood-ratio test against
κ = 0: trusted blindly, even good signals are worse than none.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from scipy import special

from recrawl.model import BoolArray, FloatArray, IntArray

LEVEL = 0.01
"""How likely useless signals may pass the test."""
_ROUNDS = 60
_OWN = 0.5
"""a₀: changes' worth of what all pages of a host say about each."""
_FEWEST = 5
"""Looks with signals below which nothing is tested."""
_TINY = 1e-300


@dataclass(frozen=True, slots=True)
class Announced:
    """Looks that closed a gap, with the signals heard in it. Columns of equal length."""

    page: IntArray
    """Any numbering 0 … pages − 1."""
    gap: FloatArray
    """Seconds, operational if the clock runs so."""
    signals: IntArray
    """Signals within the gap."""
    changed: BoolArray


@dataclass(frozen=True, slots=True)
class Reliability:
    """What signals are worth on each host."""

    weight: FloatArray
    """κ of each host, ≥ 0, whether trusted or not. Shape (hosts,)."""
    statistic: FloatArray
    """Twice the gain in log-likelihood over κ = 0."""
    trusted: BoolArray
    """Whether the test says that the signals of the host carry information."""
    quiet_rate: FloatArray
    """α of each page: changes per second that nobody signals. Shape (pages,)."""

    def used(self) -> FloatArray:
        """κ where trusted, else 0."""
        return np.where(self.trusted, self.weight, 0.0)


def learn(looks: Announced, host: IntArray, *, level: float = LEVEL) -> Reliability:
    """κ of hosts 0, 1, … from the looks at their pages; ``host[i]`` is that of page i. O(looks · rounds).

    The test is one-sided: with κ = 0 half of the statistics are 0, the rest χ² with one degree of freedom.

    >>> looks = Announced(np.zeros(400, int), np.ones(400), np.arange(400) % 2, np.arange(400) % 2 == 1)
    >>> told = learn(looks, np.zeros(1, int))
    >>> bool(told.trusted[0]), bool(told.weight[0] > 3)
    (True, True)
    """
    hosts = int(host.max(initial=-1)) + 1
    of = host[looks.page]
    without, _ = _fit(looks, host, np.zeros(hosts))
    with_, weight = _fit(looks, host, np.ones(hosts))
    gain = _log_likelihood(looks, with_, weight[of]) - _log_likelihood(looks, without, np.zeros(len(of)))
    statistic = np.maximum(2.0 * np.bincount(of, gain, hosts), 0.0)
    heard = np.bincount(of, looks.signals > 0, hosts) >= _FEWEST
    trusted = heard & (0.5 * special.erfc(np.sqrt(statistic / 2.0)) < level)
    return Reliability(weight, statistic, trusted, with_)


def _fit(looks: Announced, host: IntArray, weight: FloatArray) -> tuple[FloatArray, FloatArray]:
    """EM from equal rates and this κ; a κ of 0 stays 0."""
    hosts, pages, of = len(weight), len(host), host[looks.page]
    seconds = np.bincount(of, looks.gap, hosts)
    typical = ((np.bincount(of, looks.changed, hosts) + _OWN) / np.maximum(seconds, _TINY))[host]
    watched, heard = np.bincount(looks.page, looks.gap, pages), np.bincount(of, looks.signals, hosts)
    rate = typical.copy()
    for _ in range(_ROUNDS):
        own, told = rate[looks.page] * looks.gap, weight[of] * looks.signals
        hidden = np.where(looks.changed, 1.0 / -np.expm1(-np.maximum(own + told, _TINY)), 0.0)
        rate = (np.bincount(looks.page, hidden * own, pages) + _OWN) / (watched + _OWN / typical)
        weight = np.where(weight > 0, (np.bincount(of, hidden * told, hosts) + 1.0) / (heard + 1.0), 0.0)
    return rate, weight


def _log_likelihood(looks: Announced, rate: FloatArray, weight: FloatArray) -> FloatArray:
    stale = np.maximum(rate[looks.page] * looks.gap + weight * looks.signals, _TINY)
    return np.where(looks.changed, np.log(-np.expm1(-stale)), -stale)
