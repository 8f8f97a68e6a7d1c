r"""A belief whose clock runs at a page's own pace: rates per operational second, asked about in seconds.

A page that ages at pace m has the rate λ·m: S(t) becomes S(m·t), and everything else follows. So every objective works
unchanged on operational time. After the operational time Λ since the last look the page is where it would be after
t = Λ/m seconds at the pace it has now, and U(t) under the paced belief is the index of algorithms §7: for freshness
E[g(λΛ)/(λ·m)], for changes E[g(λΛ)].
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from recrawl.model import AnyArray, Belief, FloatArray


@dataclass(frozen=True, slots=True)
class Paced:
    """The rates of ``belief`` times ``pace``, page by page.

    >>> from recrawl.estimate.point import PointBelief
    >>> young = Paced(PointBelief(np.array([0.5])), np.array([4.0]))
    >>> young.mean().tolist(), young.change_density(np.zeros(1)).tolist()
    ([2.0], [2.0])
    """

    belief: Belief
    """Rates per operational second."""
    pace: FloatArray
    """Operational seconds per second, > 0."""

    def __len__(self) -> int:
        return len(self.belief)

    def mean(self) -> FloatArray:
        """E[λ]·m, per second."""
        return self.belief.mean() * self.pace

    def quantile(self, q: float) -> FloatArray:
        """The rate below which λ·m lies with probability q, per second."""
        return self.belief.quantile(q) * self.pace

    def survival(self, t: FloatArray) -> FloatArray:
        """S(m·t)."""
        return self.belief.survival(t * self.pace)

    def p_change(self, t: FloatArray) -> FloatArray:
        """1 − S(m·t)."""
        return self.belief.p_change(t * self.pace)

    def unchanged_time(self, t: FloatArray) -> FloatArray:
        """∫₀ᵗ S(m·s) ds, seconds."""
        return self.belief.unchanged_time(t * self.pace) / self.pace

    def change_density(self, t: FloatArray) -> FloatArray:
        """−m·S'(m·t), per second."""
        return self.belief.change_density(t * self.pace) * self.pace

    def expect(self, function: Callable[[FloatArray], FloatArray]) -> FloatArray:
        """E[function(λ·m)]: where paces differ, one question to the belief for each of them."""
        out = np.empty(len(self))
        paces, which = np.unique(self.pace, return_inverse=True)
        for number, pace in enumerate(paces.tolist()):
            rows = np.flatnonzero(which == number)
            out[rows] = self.belief.take(rows).expect(lambda rate, m=pace: function(rate * m))  # type: ignore[misc]
        return out

    def take(self, rows: AnyArray | slice) -> Paced:
        """The belief about the pages at these positions."""
        return Paced(self.belief.take(rows), self.pace[rows])
