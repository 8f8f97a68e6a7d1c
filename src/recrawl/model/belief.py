"""A belief: a probability distribution of the change rate λ of each page, as columns.

Every objective of the scheduler is a function of the probability that a page stays unchanged for a time t, averaged
over the belief: the Laplace transform S(t) = E[e^{−λt}]. So a belief provides S and its integral and derivative,
besides the mean and quantiles. Rates are per second, times in seconds.

There are two representations. :class:`GammaBelief` needs two floats per page. :class:`GridBelief` has weights on a grid
of rates that all pages share: any shape of distribution, 4 bytes per rate and page.

The rates of the grid are half an octave apart, λ_k = λ_0·2^{k/2}. So e^{−λt} at one rate is the square of the value two
places before it, and a page needs two exponentials instead of K. With d = 1 − e^{−λt} the step is d ← d(2 − d), which
is exact to rounding for any small d. Other grids work too, with as many exponentials as their rates need.

Results are float64 sums over the rates, divided by the sum of the weights. So the rounding of the weights never makes
p_change and survival disagree. Quantiles spread each weight evenly, in log rate, over the cell around its rate.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from functools import lru_cache
from typing import Protocol, Self, TypeAlias

import numpy as np
import numpy.typing as npt

from recrawl.model.arrays import AnyArray, FloatArray
from recrawl.model.compiled import can_compile, compiled
from recrawl.time import DAY


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
        """E[function(λ)] for each page; ``function`` is given an array of rates, one row per page."""
        ...

    def take(self, rows: AnyArray | slice) -> Self:
        """The belief about the pages at these positions."""
        ...


@dataclass(frozen=True, slots=True)
class GammaBelief:
    """λ ~ Gamma(shape a, rate b): two floats per page.

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
        from scipy import special

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
        from scipy import special

        log_r = np.log1p(t / self.b)
        k = self.a - 1.0
        share: FloatArray = special.exprel(-k * log_r)  # (1 − e^{−k·log r})/(k·log r), exact at k = 0 too
        return self.b * log_r * share

    def change_density(self, t: FloatArray) -> FloatArray:
        """(a/b) r^{−a−1}, per second."""
        return self.a / self.b * np.exp(-(self.a + 1.0) * np.log1p(t / self.b))

    def expect(self, function: Callable[[FloatArray], FloatArray]) -> FloatArray:
        """By quadrature with 256 nodes per page, pages in blocks of bounded memory.

        Relative error below 1e-6 for a ≥ 0.05 and functions that vary on the scale of log λ.
        """
        out = np.empty(len(self))
        for start in range(0, len(self), _BLOCK):
            block = slice(start, start + _BLOCK)
            out[block] = self._expect_block(self.a[block], self.b[block], function)
        return out

    @staticmethod
    def _expect_block(a: FloatArray, b: FloatArray, function: Callable[[FloatArray], FloatArray]) -> FloatArray:
        from scipy import special

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


WeightArray: TypeAlias = npt.NDArray[np.float32]

LOWEST_RATE = 3e-4 / DAY
"""One change in nine years: where the usual grid starts. All grids made by :func:`half_octaves` have this rate."""
USUAL_SIZE = 36
"""Rates of the usual grid, which ends at 55 changes per day."""

_TILE = 16
"""Pages in a step of the compiled path: what fits into the nearest cache."""


def half_octaves(lowest: float = LOWEST_RATE, highest: float = 0.0) -> FloatArray:
    """Rates half an octave apart, per second: the usual grid, lengthened so that it spans ``lowest`` to ``highest``.

    All grids made here are pieces of one lattice, so those of two collections differ only in where they end.

    >>> len(half_octaves())
    36
    """
    first = min(0, math.floor(2.0 * math.log2(lowest / LOWEST_RATE) + 1e-9))
    last = USUAL_SIZE - 1
    if highest > 0:
        last = max(last, math.ceil(2.0 * math.log2(highest / LOWEST_RATE) - 1e-9))
    places = np.arange(first, last + 1)
    return LOWEST_RATE * np.exp2(places // 2) * np.where(places % 2, math.sqrt(2.0), 1.0)


@dataclass(frozen=True, slots=True)
class GridBelief:
    """λ is ``rates[k]`` with probability ``weights[i, k]``. Methods take O(pages · rates), memory in bounded blocks."""

    rates: FloatArray
    """Ascending, > 0, per second, evenly spaced in log. Shape (K,)."""
    weights: WeightArray
    """One row per page, ≥ 0, of sum 1 up to rounding. Shape (n, K), float32."""

    @classmethod
    def of(cls, rates: npt.ArrayLike, weights: npt.ArrayLike) -> GridBelief:
        """A belief from weights of any positive sum; one row may be given as a plain list.

        Raises:
            ValueError: rates do not ascend, or a row has a negative weight, a NaN or no weight at all.
        """
        grid = np.asarray(rates, dtype=np.float64)
        rows = np.atleast_2d(np.asarray(weights, dtype=np.float64))
        if not (len(grid) and grid[0] > 0 and np.isfinite(grid[-1]) and (np.diff(grid) > 0).all()):
            raise ValueError("the rates of a grid must be positive, finite and ascending")
        if rows.shape[1] != len(grid):
            raise ValueError(f"{len(grid)} rates need as many weights a page, not {rows.shape[1]}")
        total = rows.sum(axis=1, keepdims=True)
        if not ((rows >= 0).all() and (total > 0).all() and np.isfinite(total).all()):
            raise ValueError("the weights of a page must be >= 0, finite, and not all 0")
        return cls(grid, (rows / total).astype(np.float32))

    @classmethod
    def mixture(cls, share: npt.ArrayLike, components: GridBelief) -> GridBelief:
        """Beliefs mixed from others: page i is as component c with probability ``share[i, c]``.

        So a classifier becomes a prior: a row of class probabilities a page, a component a class. O(n · C · K).

        >>> two = GridBelief.of([1.0, 2.0], [[1, 0], [0, 1]])
        >>> GridBelief.mixture([[0.25, 0.75]], two).weights.tolist()
        [[0.25, 0.75]]
        """
        parts = np.atleast_2d(np.asarray(share, dtype=np.float64))
        if parts.shape[1] != len(components):
            raise ValueError(f"{len(components)} components need as many shares a page, not {parts.shape[1]}")
        weights = np.empty((len(parts), len(components.rates)), dtype=np.float32)
        for start in range(0, len(parts), _BLOCK):
            block = slice(start, start + _BLOCK)
            weights[block] = cls.of(components.rates, parts[block] @ components.weights.astype(np.float64)).weights
        return cls(components.rates, weights)

    def __len__(self) -> int:
        return len(self.weights)

    def mean(self) -> FloatArray:
        """E[λ], per second."""
        return self._sums(self.rates)

    def quantile(self, q: float) -> FloatArray:
        """The rate below which λ lies with probability q, per second; continuous in q.

        >>> GridBelief.of([1.0, 4.0], [0.5, 0.5]).quantile(0.5).tolist()
        [2.0]
        """
        edges = self._edges()
        out = np.empty(len(self))
        for block in self._blocks():
            below = np.cumsum(self.weights[block], axis=1, dtype=np.float64)
            target = q * below[:, -1:]
            cell = np.minimum((below < target).sum(axis=1), below.shape[1] - 1)
            pages = np.arange(len(cell))
            weight = self.weights[block][pages, cell].astype(np.float64)
            missing = target[:, 0] - (below[pages, cell] - weight)
            part = np.divide(missing, weight, out=np.full(len(cell), 0.5), where=weight > 0)
            out[block] = np.exp(edges[cell] + np.clip(part, 0.0, 1.0) * (edges[cell + 1] - edges[cell]))
        return out

    def cumulative(self, rate: FloatArray) -> FloatArray:
        """P(λ ≤ ``rate``) of each page: the inverse of :meth:`quantile`. One rate a page, per second."""
        edges = self._edges()
        with np.errstate(divide="ignore"):
            place = np.interp(np.log(rate), edges, np.arange(len(edges)))
        out = np.empty(len(self))
        for block in self._blocks():
            below = np.cumsum(self.weights[block], axis=1, dtype=np.float64)
            cell = np.minimum(place[block].astype(np.int64), below.shape[1] - 1)
            pages = np.arange(len(cell))
            weight = self.weights[block][pages, cell].astype(np.float64)
            out[block] = (below[pages, cell] - weight * (1.0 - (place[block] - cell))) / below[:, -1]
        return np.clip(out, 0.0, 1.0)

    def survival(self, t: FloatArray) -> FloatArray:
        """S(t) = Σ w e^{−λt}.

        >>> GridBelief.of([1.0, 2.0], [0.5, 0.5]).survival(np.array([np.log(2.0)])).round(12).tolist()
        [0.375]
        """
        return self._transform(t, np.ones_like(self.rates), np.zeros_like(self.rates))

    def p_change(self, t: FloatArray) -> FloatArray:
        """1 − S(t) = Σ w (1 − e^{−λt}), accurate for small t."""
        return self._transform(t, np.zeros_like(self.rates), np.ones_like(self.rates))

    def unchanged_time(self, t: FloatArray) -> FloatArray:
        """∫₀ᵗ S = Σ w (1 − e^{−λt})/λ, seconds."""
        return self._transform(t, np.zeros_like(self.rates), 1.0 / self.rates)

    def change_density(self, t: FloatArray) -> FloatArray:
        """−S'(t) = Σ w λ e^{−λt}, per second."""
        return self._transform(t, self.rates, np.zeros_like(self.rates))

    def expect(self, function: Callable[[FloatArray], FloatArray]) -> FloatArray:
        """E[function(λ)], exact. The function is given the grid once, as one row, and must treat rates one by one."""
        return self._sums(
            np.array(np.broadcast_to(function(self.rates[None, :])[0], self.rates.shape), dtype=np.float64)
        )

    def take(self, rows: AnyArray | slice) -> GridBelief:
        """The belief about the pages at these positions; a slice shares the memory."""
        return GridBelief(self.rates, self.weights[rows])

    # -- inside -------------------------------------------------------------------------------

    def _blocks(self) -> list[slice]:
        return [slice(start, start + _BLOCK) for start in range(0, len(self), _BLOCK)]

    def _edges(self) -> FloatArray:
        """Log rates where the cells of the grid start and end: half-way between rates. Shape (K + 1,)."""
        logs = np.log(self.rates)
        if len(logs) == 1:
            return logs + np.array([-0.5, 0.5]) * math.log(2.0) / 2.0
        middle = (logs[1:] + logs[:-1]) / 2.0
        return np.concatenate([[2.0 * logs[0] - middle[0]], middle, [2.0 * logs[-1] - middle[-1]]])

    def _sums(self, values: FloatArray) -> FloatArray:
        """Σ w·values/Σ w of each page."""
        return self._transform(np.zeros(1), values, np.zeros_like(values))

    def _transform(self, t: FloatArray, of_rest: FloatArray, of_change: FloatArray) -> FloatArray:
        """Σ w (of_rest·e^{−λt} + of_change·(1 − e^{−λt}))/Σ w of each page."""
        times = np.ascontiguousarray(np.broadcast_to(t, (len(self),)), dtype=np.float64)
        out = np.empty(len(self))
        weights = np.ascontiguousarray(self.weights)
        work = _transform_compiled if can_compile() else _transform_numpy
        work(weights, self.rates, doubling(self.rates), times, of_rest, of_change, out)
        return out


def doubling(rates: FloatArray) -> int:
    """How many places further on the rate is twice as high; the number of rates if nowhere. 2 on half octaves.

    >>> doubling(half_octaves()), doubling(np.array([1.0, 2.5, 7.0]))
    (2, 3)
    """
    return _doubling(rates.tobytes())


@lru_cache(maxsize=64)
def _doubling(data: bytes) -> int:
    rates = np.frombuffer(data)
    for step in range(1, min(len(rates), 9)):
        if np.allclose(rates[step:], 2.0 * rates[:-step], rtol=1e-13, atol=0.0):
            return step
    return len(rates)


@compiled
def _transform_compiled(  # noqa: PLR0913, PLR0917 - a kernel takes plain arrays
    weights: WeightArray,
    rates: FloatArray,
    step: int,
    t: FloatArray,
    of_rest: FloatArray,
    of_change: FloatArray,
    out: FloatArray,
) -> None:
    # A tile of pages at a time, because each rate waits for the one before it, but no page for another.
    size = len(rates)
    change, rest = np.empty((size, _TILE)), np.empty((size, _TILE))
    for start in range(0, len(t), _TILE):
        pages = min(_TILE, len(t) - start)
        for k in range(min(step, size)):
            for j in range(pages):
                change[k, j] = -math.expm1(-rates[k] * t[start + j])
                rest[k, j] = math.exp(-rates[k] * t[start + j])
        for k in range(step, size):
            for j in range(pages):
                before, squared = change[k - step, j], rest[k - step, j] * rest[k - step, j]
                now = before * (2.0 - before)
                change[k, j] = now
                # squaring doubles the error each time, so it starts only where 1 − d would lose digits
                rest[k, j] = 1.0 - now if now < 0.5 else squared  # noqa: PLR2004 - a half
        for j in range(pages):
            page = weights[start + j]
            total, result = 0.0, 0.0
            for k in range(size):
                total += page[k]
                result += page[k] * (of_rest[k] * rest[k, j] + of_change[k] * change[k, j])
            out[start + j] = result / total


def _transform_numpy(  # noqa: PLR0913, PLR0917 - as the kernel
    weights: WeightArray,
    rates: FloatArray,
    _step: int,
    t: FloatArray,
    of_rest: FloatArray,
    of_change: FloatArray,
    out: FloatArray,
) -> None:
    for start in range(0, len(t), _BLOCK):
        block = slice(start, start + _BLOCK)
        x = t[block, None] * rates
        values = of_rest * np.exp(-x) if of_rest.any() else -of_change * np.expm1(-x)
        rows = weights[block].astype(np.float64)
        out[block] = (rows * values).sum(axis=1) / rows.sum(axis=1)
