"""A belief without doubt: the rate is taken as known. What the papers' estimators give, and what an oracle knows."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from scipy import special

from recrawl.model import AnyArray, FloatArray


@dataclass(frozen=True, slots=True)
class PointBelief:
    """λ is exactly ``rate``, per second, ≥ 0; S(t) = e^{−λt}."""

    rate: FloatArray

    def __len__(self) -> int:
        return len(self.rate)

    def mean(self) -> FloatArray:
        """The rate."""
        return self.rate

    def quantile(self, q: float) -> FloatArray:  # noqa: ARG002 - every quantile is the rate
        """The rate."""
        return self.rate

    def survival(self, t: FloatArray) -> FloatArray:
        """e^{−λt}."""
        return np.exp(-self.rate * t)

    def unchanged_time(self, t: FloatArray) -> FloatArray:
        """(1 − e^{−λt})/λ; t where λ = 0.

        >>> PointBelief(np.array([0.0, 1.0])).unchanged_time(np.array([2.0, 0.0])).tolist()
        [2.0, 0.0]
        """
        return np.asarray(t * special.exprel(-self.rate * t))

    def change_density(self, t: FloatArray) -> FloatArray:
        """λ e^{−λt}, per second."""
        return self.rate * np.exp(-self.rate * t)

    def p_change(self, t: FloatArray) -> FloatArray:
        """1 − e^{−λt}."""
        return -np.expm1(-self.rate * t)

    def expect(self, function: Callable[[FloatArray], FloatArray]) -> FloatArray:
        """The function at the rate."""
        return function(self.rate[:, None])[:, 0]

    def take(self, rows: AnyArray | slice) -> PointBelief:
        """The belief about the pages at these positions."""
        return PointBelief(self.rate[rows])
