"""Due times in compiled kernels: the whole search for a page runs while its belief is in the L1 cache.

Every objective of this package is a sum of five basic ones (``objectives.BASICS``), with u over x = λt:

    freshness g(x)/λ, changes g(x), harmonic h(x)/λ, age (x²/2 − g(x))/λ², blur x²/(2λ);  h(x) = x − 1 + e^{−x}.

On a grid of half octaves d = 1 − e^{−x} and h double along with x, without loss however small they are: d ← d(2 − d), h
← 2h + d², and g = x·d − h. Their slopes t·dU/dt need no extra work: x²(1 − d), x·d, x². So Newton's method on ln U over
ln t needs two to six evaluations per page; a bracket guards it.

Imported only where numba is installed and pages are many: without numba the same functions run as plain Python, slowly.
"""

from __future__ import annotations

import math

import numpy as np

from recrawl.model import AnyArray, FloatArray
from recrawl.model.compiled import compiled_now

GRID, GAMMA, POINT = 0, 1, 2
"""Kinds of belief: ``a`` holds weights on the rates ``b``; shapes a and rates b; rates a."""
_DONE = 1e-6
"""Newton's last step on ln t: the error after it is about its square."""
_MOST_STEPS = 100
_SMALL = 0.02
"""Below this x closed forms cancel, and five terms of a series are exact to 1e-10."""
_NOTHING = 1e-13
"""Share of a page's belief below which rates at the ends of the grid are left out."""


def factors(basics: FloatArray, rates: FloatArray) -> FloatArray:
    """What g, h and x²/2 are multiplied with at each rate of a grid. Shape (3, K)."""
    freshness, changes, harmonic, age, blur = basics
    return np.stack([freshness / rates + changes - age / rates**2, harmonic / rates, age / rates**2 + blur / rates])


@compiled_now
def _exprel(x: float) -> float:
    return math.expm1(x) / x if abs(x) > 1e-10 else 1.0 + 0.5 * x  # noqa: PLR2004 - exact there


@compiled_now
def _series(m1: float, m2: float, m3: float, m4: float, m5: float, basics: FloatArray, t: float) -> tuple[float, float]:  # noqa: PLR0913, PLR0917 - moments of λ
    """U and t·dU/dt from E[λ] … E[λ⁵], where t is small."""
    t2 = t * t
    fresh = t2 * (m1 / 2 - t * (m2 / 3 - t * (m3 / 8 - t * (m4 / 30 - t * m5 / 144))))
    change = t2 * (m2 / 2 - t * (m3 / 3 - t * (m4 / 8 - t * m5 / 30)))
    harmonic = t2 * (m1 / 2 - t * (m2 / 6 - t * (m3 / 24 - t * (m4 / 120 - t * m5 / 720))))
    age = t2 * t * (m1 / 3 - t * (m2 / 8 - t * (m3 / 30 - t * (m4 / 144 - t * m5 / 840))))
    blur = m1 * t2 / 2
    density = t2 * (m1 - t * (m2 - t * (m3 / 2 - t * (m4 / 6 - t * m5 / 24))))
    second = t2 * (m2 - t * (m3 - t * (m4 / 2 - t * m5 / 6)))
    gone = t2 * (m1 - t * (m2 / 2 - t * (m3 / 6 - t * (m4 / 24 - t * m5 / 120))))
    value = basics[0] * fresh + basics[1] * change + basics[2] * harmonic + basics[3] * age + basics[4] * blur
    slope = basics[0] * density + basics[1] * second + basics[2] * gone + basics[3] * t * gone + basics[4] * m1 * t2
    return value, slope


@compiled_now
def _gamma_value(a: float, b: float, basics: FloatArray, t: float) -> tuple[float, float]:
    if t / b * (a + 5.0) < _SMALL:
        m1 = a / b
        m2 = m1 * (a + 1.0) / b
        m3 = m2 * (a + 2.0) / b
        m4 = m3 * (a + 3.0) / b
        return _series(m1, m2, m3, m4, m4 * (a + 4.0) / b, basics, t)
    log = math.log1p(t / b)
    rest = math.exp(-a * log)
    unchanged = b * log * _exprel((1.0 - a) * log)
    density = a / b * rest * math.exp(-log)
    value = basics[0] * (unchanged - t * rest) + basics[1] * (1.0 - rest - t * density)
    value += basics[2] * (t - unchanged) + basics[4] * a / b * t * t / 2.0
    slope = basics[0] * t * t * density + basics[1] * t * t * density * (a + 1.0) / b * math.exp(-log)
    slope += basics[2] * t * (1.0 - rest) + basics[4] * a / b * t * t
    if basics[3] != 0.0:
        value += basics[3] * (t * t / 2.0 - b * b * log * _exprel((2.0 - a) * log) + b * unchanged)
        slope += basics[3] * t * t * (1.0 - rest)
    return value, slope


@compiled_now
def _point_value(rate: float, basics: FloatArray, t: float) -> tuple[float, float]:
    if not rate > 0:
        return 0.0, 0.0
    x = rate * t
    if x < _SMALL:
        return _series(rate, rate**2, rate**3, rate**4, rate**5, basics, t)
    change = -math.expm1(-x)
    h = x - change
    g = x * change - h
    per_g = basics[0] / rate + basics[1] - basics[3] / rate**2
    per_h = basics[2] / rate
    per_square = basics[3] / rate**2 + basics[4] / rate
    value = per_g * g + per_h * h + per_square * x * x / 2.0
    return value, per_g * x * x * math.exp(-x) + per_h * x * change + per_square * x * x


@compiled_now
def _grid_value(  # noqa: PLR0913, PLR0917 - a kernel takes plain arrays
    weights: AnyArray, rates: FloatArray, parts: FloatArray, first: int, last: int, t: float
) -> tuple[float, float]:
    """Over the half octaves from ``first`` to ``last``; ``parts`` are the factors of g, h and x²/2 at each rate.

    Two chains, of every second rate each, so that they need not wait for each other.
    """
    x, y = rates[first] * t, rates[min(first + 1, len(rates) - 1)] * t
    d, e = -math.expm1(-x), -math.expm1(-y)
    # below, x − d would cancel
    h = x * x * (0.5 - x * (1 / 6 - x * (1 / 24 - x / 120))) if x < _SMALL else x - d
    i = y * y * (0.5 - y * (1 / 6 - y * (1 / 24 - y / 120))) if y < _SMALL else y - e
    value, slope = 0.0, 0.0
    for k in range(first, last, 2):
        weight = weights[k]
        value += weight * (parts[0, k] * (x * d - h) + parts[1, k] * h + parts[2, k] * x * x * 0.5)
        slope += weight * x * (parts[0, k] * x * (1.0 - d) + parts[1, k] * d + parts[2, k] * x)
        if k + 1 < last:
            weight = weights[k + 1]
            value += weight * (parts[0, k + 1] * (y * e - i) + parts[1, k + 1] * i + parts[2, k + 1] * y * y * 0.5)
            slope += weight * y * (parts[0, k + 1] * y * (1.0 - e) + parts[1, k + 1] * e + parts[2, k + 1] * y)
        h, i = 2.0 * h + d * d, 2.0 * i + e * e
        d, e = d * (2.0 - d), e * (2.0 - e)
        x, y = 2.0 * x, 2.0 * y
    return value, slope


@compiled_now
def _value(  # noqa: PLR0913, PLR0917 - of page i under any belief
    kind: int,
    a: AnyArray,
    b: FloatArray,
    basics: FloatArray,
    parts: FloatArray,
    first: int,
    last: int,
    i: int,
    t: float,
) -> tuple[float, float]:
    if kind == GRID:
        return _grid_value(a[i], b, parts, first, last, t)
    if kind == GAMMA:
        return _gamma_value(a[i, 0], b[i], basics, t)
    return _point_value(a[i, 0], basics, t)


@compiled_now
def search(  # noqa: C901, PLR0912, PLR0913, PLR0915, PLR0917 - one loop with its guard
    kind: int,
    a: AnyArray,
    b: FloatArray,
    basics: FloatArray,
    parts: FloatArray,
    target: FloatArray,
    shortest: FloatArray,
    longest: FloatArray,
    from_above: bool,
    out: FloatArray,
) -> None:
    """Fill ``out`` with the time at which each value reaches its target; as ``due.time_to_value``.

    It starts from the shortest time, or from the longest: whichever is the better guess.
    """
    for i in range(len(target)):
        out[i] = math.inf
        goal = target[i]
        if not goal < math.inf:
            continue
        k, n = 0, 1
        if kind == GRID:
            total = 0.0
            for j in range(len(b)):
                total += a[i, j]
            goal *= total
            n = len(b)
            while k < n - 1 and a[i, k] < _NOTHING * total:
                k += 1
            while n > k + 1 and a[i, n - 1] < _NOTHING * total:
                n -= 1
        proven = False
        if from_above and shortest[i] < longest[i]:
            value, slope = _value(kind, a, b, basics, parts, k, n, i, longest[i])
            if not value >= goal or not value > 0:
                continue
            proven = True
            x = math.log(longest[i])
        else:
            value, slope = _value(kind, a, b, basics, parts, k, n, i, min(shortest[i], longest[i]))
            x = math.log(min(shortest[i], longest[i]))
            if value >= goal:
                if value > 0 or _value(kind, a, b, basics, parts, k, n, i, longest[i])[0] > 0:
                    out[i] = shortest[i]
                continue
            if not shortest[i] < longest[i]:
                continue
        low, high = math.log(shortest[i]), math.log(longest[i])
        for count in range(_MOST_STEPS):
            move = math.log(goal / value) * value / slope if value > 0 and slope > 0 and goal > 0 else math.inf
            if abs(move) < _DONE:
                x = min(max(x + move, low), high)
                break
            x += move
            if not (low < x < high) or count % 8 == 7:  # noqa: PLR2004 - a halving now and then, against creeping
                if not proven:
                    value, slope = _value(kind, a, b, basics, parts, k, n, i, longest[i])
                    if not value >= goal or not value > 0:
                        x = math.inf
                        break
                    proven = True
                elif x <= low and low == math.log(shortest[i]):
                    value, slope = _value(kind, a, b, basics, parts, k, n, i, shortest[i])
                    if value >= goal:
                        x = low
                        break
                x = 0.5 * (low + high)
            value, slope = _value(kind, a, b, basics, parts, k, n, i, math.exp(x))
            if value < goal:
                low = x
            else:
                high = x
                proven = True
            if high - low < 1e-12:  # noqa: PLR2004 - of ln t
                break
        if x < math.inf:
            out[i] = min(max(math.exp(x), shortest[i]), longest[i])
