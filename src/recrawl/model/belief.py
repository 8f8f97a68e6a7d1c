"""A belief: what we hold about the change rate λ of each page, as a distribution, columnar.

Every objective of the scheduler is a function of how likely a page is to have stayed unchanged for a
time t, averaged over the belief: its Laplace transform S(t) = E[e^{−λt}]. So that is what a belief
must know, beside its mean and quantiles. Rates are per second, times in seconds.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Protocol, Self

import numpy as np
from scipy import special

from recrawl.model.arrays import AnyArray, FloatArray


class Belief(Protocol):
    """Distributions of λ for n pages. Every method answers for all of them at once."""

    def __len__(self) -> int: ...

    def mean(self) -> FloatArray:
        """E[λ], per second."""
        ...

    def quantile(self, q: float) -> FloatArray:
        """The rate below which λ lies with probability q."""
        ...

    def survival(self, t: FloatArray) -> FloatArray:
        """S(t) = E[e^{−λt}]: probability that a page stays unchanged for t seconds."""
        ...

    def unchanged_time(self, t: FloatArray) -> FloatArray:
        """∫₀ᵗ S(s) ds = E[(1−e^{−λt})/λ]: expected seconds of the next t before the first change."""
        ...

    def change_density(self, t: FloatArray) -> FloatArray:
        """−S'(t) = E[λ e^{−λt}]: density of the first change at t, per second."""
        ...

    def p_change(self, t: FloatArray) -> FloatArray:
        """1 − S(t): probability of at least one change within t seconds."""
        ...

    def expect(self, function: Callable[[FloatArray], FloatArray]) -> FloatArray:
        """E[function(λ)] for each page; ``function`` is given an array of rates, one row a page."""
        ...

    def take(self, rows: AnyArray | slice) -> Self:
        """The belief about the pages at these positions."""
        ...


@dataclass(frozen=True, slots=True)
class GammaBelief:
    """λ ~ Gamma(shape a, rate b): two floats a page.

    With r = 1 + t/b:  S(t) = r^{−a},  ∫S = b(1 − r^{1−a})/(a−1)  (b ln r at a = 1),  −S' = (a/b) r^{−a−1}.
    """

    a: FloatArray
    """Shape, > 0: how many changes' worth of evidence."""
    b: FloatArray
    """Rate, in seconds, > 0: how much time's worth of evidence."""

    def __len__(self) -> int:
        return len(self.a)

    def mean(self) -> FloatArray:
        """E[λ] = a/b, per second."""
        return self.a / self.b

    def quantile(self, q: float) -> FloatArray:
        """The rate below which λ lies with probability q, per second."""
        return np.asarray(special.gammaincinv(self.a, q)) / self.b

    def survival(self, t: FloatArray) -> FloatArray:
        """r^{−a}.

        >>> GammaBelief(np.array([1.0]), np.array([10.0])).survival(np.array([10.0])).tolist()
        [0.5]
        """
        return np.exp(-self.a * np.log1p(t / self.b))

    def p_change(self, t: FloatArray) -> FloatArray:
        """1 − r^{−a}, accurate for small t."""
        return -np.expm1(-self.a * np.log1p(t / self.b))

    def unchanged_time(self, t: FloatArray) -> FloatArray:
        """b(1 − r^{1−a})/(a−1), continuous through a = 1 (algorithms §1)."""
        log_r = np.log1p(t / self.b)
        k = self.a - 1.0
        share: FloatArray = special.exprel(-k * log_r)  # (1 − e^{−k·log r})/(k·log r), exact at k = 0 too
        return self.b * log_r * share

    def change_density(self, t: FloatArray) -> FloatArray:
        """(a/b) r^{−a−1}, per second."""
        return self.a / self.b * np.exp(-(self.a + 1.0) * np.log1p(t / self.b))

    def expect(self, function: Callable[[FloatArray], FloatArray]) -> FloatArray:
        """By quadrature with 256 nodes a page, pages in blocks of bounded memory.

        Relative error below 1e-6 for a ≥ 0.05 and functions that vary on the scale of log λ.
        """
        out = np.empty(len(self))
        for start in range(0, len(self), _BLOCK):
            block = slice(start, start + _BLOCK)
            out[block] = self._expect_block(self.a[block], self.b[block], function)
        return out

    @staticmethod
    def _expect_block(a: FloatArray, b: FloatArray, function: Callable[[FloatArray], FloatArray]) -> FloatArray:
        # Trapezoidal rule in v, where log λb = m + v − e^{−v}: unit steps on the right, where functions of λ
        # bend, and ever longer ones on the left, where only λ^a falls. wrightomega inverts the map.
        middle = np.log1p(a) + 1.0
        ends = np.stack([np.log(a) - 30.0 / a - 12.0 / np.sqrt(a), np.log(a + 30.0 + 12.0 * np.sqrt(a))])
        low, high = -np.log(special.wrightomega(middle - ends))
        v = low[:, None] + (high - low)[:, None] * np.linspace(0.0, 1.0, _NODES)
        x = middle[:, None] + v - np.exp(-v)
        log_weight = a[:, None] * x - np.exp(x) + np.log1p(np.exp(-v))
        weight = np.exp(log_weight - log_weight.max(axis=1, keepdims=True))
        rates = np.exp(x) / b[:, None]
        return np.asarray((weight * function(rates)).sum(axis=1) / weight.sum(axis=1))

    def take(self, rows: AnyArray | slice) -> GammaBelief:
        """The belief about the pages at these positions."""
        return GammaBelief(self.a[rows], self.b[rows])


_NODES = 256
_BLOCK = 16_384
