r"""Known rates: how often a page is visited at a price, one law for each objective (algorithms §1, §2).

With x = λτ the changes expected in an interval, every objective gives a visit the value u(x)/λ^k, so the price ν asks
for u(x) = y with y = ν·c·λ^k/w. A page is a *pace* ρ = cλ^k/w beside its rate, and all pages share one function x(y):

| law | u(x) | k | never visited |
|---|---|---|---|
| freshness (Cho and Garcia-Molina) | g(x) = 1 − (1+x)e^{−x} | 1 | from y = 1 on |
| changes | g(x) | 0 | from y = 1 on |
| harmonic | h(x) = x − 1 + e^{−x} | 1 | never so |
| archive | 0.95 g(x) + 0.05 h(x) | 1 | never so |
| age | x²/2 − g(x) | 2 | never so |
| blur | x²/2 (square-root law) | 1 | never so |
| poisson: freshness, memoryless visits (Azar) | (x/(1+x))² | 1 | from y = 1 on |
| lambda-incomplete: harmonic, memoryless visits (Kolobov) | x²/(1+x) | 1 | never so |
| lambda-complete: each change is signalled, fetched with probability 1/x | x, and x ≥ 1 | 1 | never so |

The last three are here for comparison: equal spacing is better than memoryless visits at any rate. Items that are born
at a rate λ and live for 1/δ on average are the law *freshness* at the rate δ and the weight w·λ.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cache
from typing import TypeAlias

import numpy as np
from scipy import special

from recrawl.model import FloatArray
from recrawl.schedule.cho_garcia_molina import g

Function: TypeAlias = Callable[[FloatArray], FloatArray]

_SMALL = 0.05
"""Below, differences cancel and series are exact to a trillionth."""
STEP = 0.01
"""Between the places of a table, in the logarithm: cubic pieces are then exact to about 1e-11."""
_LONGEST = 36.75
"""−ln(1 − y) of the last number before 1."""


@dataclass(frozen=True, slots=True)
class Law:
    """What an objective asks for at known rates."""

    name: str
    value: Function
    """u(x): never falling, 0 at 0."""
    power: int
    """k of the pace ρ = cλ^k/w."""
    penalty: Function
    """Mean penalty per unit of time at x, in units of λ^{1−k}: what the optimum makes least."""
    drops: bool = False
    """Whether u is bounded by 1, so that pages with y ≥ 1 are never visited."""
    soonest: float = 0.0
    """Least x."""

    def pace(self, rate: FloatArray, importance: FloatArray, cost: FloatArray) -> FloatArray:
        """ρ of each page; inf where no visit is ever worth anything (rate or importance 0)."""
        with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
            pace = cost * rate**self.power / importance
        return np.where((rate > 0) & (importance > 0), pace, np.inf)

    def changes_between(self, y: FloatArray) -> FloatArray:
        """x(y): changes expected between two visits; inf for never. Relative error about 1e-10.

        >>> LAWS["freshness"].changes_between(np.array([0.5, 1.0])).round(8).tolist()
        [1.67834699, inf]
        """
        start, pieces = table(self)
        with np.errstate(divide="ignore", invalid="ignore"):
            place = np.log(-np.log1p(-np.minimum(y, 1.0)) if self.drops else y)
            there = (place - start) / STEP
            cell = np.clip(np.nan_to_num(there, nan=0.0), 0, len(pieces) - 1).astype(np.int64)
            part = there - cell
            c0, c1, c2, c3 = pieces[cell].T
            found = np.exp(c0 + part * (c1 + part * (c2 + part * c3)))
        found = np.where(y > 0, np.maximum(found, self.soonest), self.soonest)
        return np.where(np.isposinf(y) | (self.drops & (y >= 1.0)), np.inf, found)

    def reached(self, rate: FloatArray, importance: FloatArray, visits: FloatArray) -> float:
        """Weighted mean penalty Σ w·penalty/Σ w of pages visited at these rates; pages that never change have none."""
        live = rate > 0
        with np.errstate(divide="ignore"):
            x = rate[live] / visits[live]
        scale = rate[live] ** (1 - self.power)
        return float((importance[live] * scale * self.penalty(x)).sum() / importance.sum())


def h(x: FloatArray) -> FloatArray:
    """As x − 1 + e^{−x}: the value of a harmonic visit in units of 1/λ, after x = λt."""
    series = x * x * (1 / 2 - x * (1 / 6 - x * (1 / 24 - x * (1 / 120 - x * (1 / 720 - x / 5040)))))
    return np.where(x < _SMALL, series, x + np.expm1(-x))


def age_value(x: FloatArray) -> FloatArray:
    """x²/2 − g(x): the value of an age visit in units of 1/λ², after x = λt."""
    series = x**3 * (1 / 3 - x * (1 / 8 - x * (1 / 30 - x * (1 / 144 - x * (1 / 840 - x / 5760)))))
    with np.errstate(over="ignore"):
        return np.where(x < _SMALL, series, x * x / 2 - g(x))


def _stale(x: FloatArray) -> FloatArray:
    """Share of time in which a copy is out of date: h(x)/x."""
    with np.errstate(invalid="ignore"):
        return np.where(np.isinf(x), 1.0, h(x) / x)


def _missed(x: FloatArray) -> FloatArray:
    """Share of changes that are never seen: 1 − (1 − e^{−x})/x."""
    return _stale(x)


def _harmonic(x: FloatArray) -> FloatArray:
    """Ein(x) − h(x)/x, Ein(x) = γ + ln x + E₁(x)."""
    with np.errstate(invalid="ignore", divide="ignore", over="ignore", under="ignore"):
        ein = np.where(x < _SMALL, x - x * x / 4 + x**3 / 18 - x**4 / 96, np.euler_gamma + np.log(x) + special.exp1(x))
    return ein - _stale(x)


def _archive(x: FloatArray) -> FloatArray:
    return 0.95 * _stale(x) + 0.05 * _harmonic(x)


def _age(x: FloatArray) -> FloatArray:
    return x / 2 - _stale(x)


LAWS: dict[str, Law] = {
    law.name: law
    for law in (
        Law("freshness", g, 1, _stale, drops=True),
        Law("changes", g, 0, _missed, drops=True),
        Law("harmonic", h, 1, _harmonic),
        Law("archive", lambda x: 0.95 * g(x) + 0.05 * h(x), 1, _archive),
        Law("age", age_value, 2, _age),
        Law("blur", lambda x: x * x / 2, 1, lambda x: x / 2),
        Law("poisson", lambda x: (x / (1 + x)) ** 2, 1, lambda x: 1 - 1 / (1 + x), drops=True),
        Law("lambda-incomplete", lambda x: x * x / (1 + x), 1, np.log1p),
        Law("lambda-complete", lambda x: x, 1, lambda x: np.log(np.maximum(x, 1.0)), soonest=1.0),
    )
}
"""Every law by its name. The first six are the objectives of the same name at known rates."""


@cache
def table(law: Law) -> tuple[float, FloatArray]:
    """Log x as cubic pieces over ln y (over ln −ln(1−y) where pages drop out): where it begins, and one row a piece.

    Beyond the ends the last piece goes on as a straight line: a whole power, which every u is there.
    """
    start, stop = -46.0, float(np.log(_LONGEST)) if law.drops else 46.0
    places = start + STEP * np.arange(int(np.ceil((stop - start) / STEP)) + 1)
    y = -np.expm1(-np.exp(places)) if law.drops else np.exp(places)
    goal = np.exp(-np.exp(places)) if law.drops else y
    logs = _invert(law, y, goal)
    slope = np.gradient(logs, STEP, edge_order=2) * STEP
    slope[2:-2] = (8 * (logs[3:-1] - logs[1:-3]) - (logs[4:] - logs[:-4])) / 12
    first, second = logs[:-1], logs[1:]
    rise = second - first
    pieces = np.stack(
        [first, slope[:-1], 3 * rise - 2 * slope[:-1] - slope[1:], slope[:-1] + slope[1:] - 2 * rise], axis=1
    )
    pieces[0, 2:] = pieces[-1, 2:] = 0.0
    for end in (0,) if law.drops else (0, -1):
        pieces[end, 1] = STEP / round(STEP / rise[end])
    return start, np.ascontiguousarray(pieces)


def _invert(law: Law, y: FloatArray, rest: FloatArray) -> FloatArray:
    """Log of the x with u(x) = y, by halving; near y = 1 by 1 − u(x) = ``rest``, which does not lose digits there."""
    low, high = np.full_like(y, -60.0), np.full_like(y, 60.0)
    for _ in range(62):
        middle = 0.5 * (low + high)
        x = np.exp(middle)
        below = np.where(law.drops & (y > 0.5), _remainder(law, x) > rest, law.value(x) < y)  # noqa: PLR2004 - a half
        low, high = np.where(below, middle, low), np.where(below, high, middle)
    return np.asarray(0.5 * (low + high))


def _remainder(law: Law, x: FloatArray) -> FloatArray:
    """1 − u(x) of the laws that drop pages, exact where it is small."""
    if law.name == "poisson":
        return np.asarray((1 + 2 * x) / (1 + x) ** 2)
    with np.errstate(over="ignore", invalid="ignore"):
        return np.where(np.isinf(x), 0.0, (1 + x) * np.exp(-x))
