"""Known rates: the price and the visit rates of ten million pages in about a second (algorithms §1, §2.1).

With x = λτ the changes expected in an interval, every objective gives a visit the value u(x)/λ^k, so the price ν asks
for u(x) = y with y = ν·c·λ^k/w. A page has a *pace* ρ = cλ^k/w besides its rate, and all pages share one function x(y):

| law | u(x) | k | never visited |
|---|---|---|---|
| freshness (Cho and Garcia-Molina) | g(x) = 1 − (1+x)e^{−x} | 1 | from y = 1 on |
| changes | g(x) | 0 | from y = 1 on |
| harmonic | h(x) = x − 1 + e^{−x} | 1 | does not occur |
| archive | 0.95 g(x) + 0.05 h(x) | 1 | does not occur |
| age | x²/2 − g(x) | 2 | does not occur |
| blur | x²/2 (square-root law) | 1 | does not occur |
| poisson: freshness, memoryless visits (Azar) | (x/(1+x))² | 1 | from y = 1 on |
| lambda-incomplete: harmonic, memoryless visits (Kolobov) | x²/(1+x) | 1 | does not occur |
| lambda-complete: each change is signalled, fetched with probability 1/x | x, and x ≥ 1 | 1 | does not occur |

The last three are for comparison: equal spacing is better than memoryless visits at any rate. Items that appear at a
rate λ and live for 1/δ on average follow the law *freshness* at the rate δ and the weight w·λ.

At the price ν a page demands f = λ/x(νρ). So the total demand, Σ cλ/x(νρ), depends on a page only through its pace ρ
and its share cλ. One pass sorts the pages into bins of ρ that are 0.1 % wide, by the bits of the float: exponent and
ten bits of the mantissa. The price is found over the bins, each at its mean pace; one or two more passes give the rates
and correct the price by the slope of the demand. A common factor corrects the last 1e-5 of the budget. The optimum is
flat, so the objective loses about the square of that. Floors and ceilings make a page depend on more than ρ; then the
general solver is used (``budget_price.allocate``).

The freshness optimum also has a closed form (Cho and Garcia-Molina), against which ``budget_price.allocate`` is tested:
max Σ w·F(λ, f), F = (f/λ)(1 − e^{−λ/f}), subject to Σ c·f ≤ B. At the price ν a page is visited at the rate f =
λ/g⁻¹(νcλ/w), or never if νcλ/w ≥ 1, with g(x) = 1 − (1+x)e^{−x}.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from functools import cache
from typing import TypeAlias

import numpy as np

from recrawl.errors import ConfigError
from recrawl.model import AnyArray, FloatArray, IntArray
from recrawl.model.compiled import can_compile, compiled
from recrawl.schedule.price.price_roots import DemandExtremes

_HALVINGS = 70
"""Of a bracket on ln price: down to neighbouring numbers."""
_SERIES = (1.0, 1 / 3, 1 / 36, -1 / 270, 1 / 4320, 1 / 17010, -139 / 5443200, 1 / 204120)


def g(x: FloatArray) -> FloatArray:
    """1 − (1+x)e^{−x}: the value of a freshness visit in units of 1/λ, after x = λt.

    >>> round(float(g(np.array(1.0))), 15)
    0.264241117657115
    """
    small = x < 0.01  # noqa: PLR2004 - below, the two terms cancel and the series is exact to rounding
    series = x * x * (0.5 - x * (1 / 3 - x * (0.125 - x * (1 / 30 - x / 144))))
    return np.where(small, series, -np.expm1(-x) - x * np.exp(-x))


def inverse_g(y: FloatArray) -> FloatArray:
    """The x with g(x) = y for 0 <= y < 1; inf from 1 on. Relative error below 1e-14.

    With L = −ln(1−y) the equation is x − ln(1+x) = L, which does not cancel: a series in √(2L) or the asymptote
    starts it, two Halley steps finish it.
    """
    inside = y < 1
    log = -np.log1p(-np.where(inside, y, 0.0))
    q = np.sqrt(2.0 * log)
    series = np.zeros_like(q)
    for factor in reversed(_SERIES):
        series = q * (factor + series)
    far = log + np.log1p(log + np.log1p(log + np.log1p(log)))
    x = np.where(q < 1.2, series, far)  # noqa: PLR2004 - where both starts are equally good
    rough = q >= 0.06  # noqa: PLR2004 - below, the series alone is exact
    for _ in range(2):
        x = np.where(rough, _halley(np.where(rough, x, 1.0), log), x)
    return np.where(inside, x, np.inf)


def freshness_rates(rate: FloatArray, weight: FloatArray, cost: FloatArray, budget: float) -> tuple[FloatArray, float]:
    """Visits per unit of time that maximise weighted freshness, and the price. O(pages), 70 bisections.

    Near its limit a page's rate drops to 0 within one step of float64; rates are mixed across such a step.

    >>> five = np.arange(1.0, 6.0)
    >>> freshness_rates(five, np.ones(5), np.ones(5), 5.0)[0].round(2).tolist()  # their Table 2
    [1.15, 1.36, 1.35, 1.14, 0.0]
    """
    alive = (rate > 0) & (weight > 0)
    out = np.zeros_like(rate)
    if not alive.any():
        return out, 0.0
    slow = cost[alive] * rate[alive] / weight[alive]

    def asked(log_price: float) -> tuple[FloatArray, float]:
        rates = np.asarray(rate[alive] / inverse_g(np.exp(log_price) * slow))
        return rates, float((cost[alive] * rates).sum())

    # at the upper end nobody may be left, whatever way the logarithm was rounded
    low, high = float(-np.log(slow.max()) - 60.0), float(-np.log(slow.min())) + 1e-12
    for _ in range(_HALVINGS):
        middle = 0.5 * (low + high)
        low, high = (middle, high) if asked(middle)[1] > budget else (low, middle)
    (more, spent_more), (less, spent_less) = asked(low), asked(high)
    share = (budget - spent_less) / (spent_more - spent_less) if spent_more > spent_less else 1.0
    out[alive] = share * more + (1.0 - share) * less
    return out, float(np.exp(low))


def _halley(x: FloatArray, log: FloatArray) -> FloatArray:
    f = x - np.log1p(x) - log
    slope, bend = x / (1.0 + x), 1.0 / (1.0 + x) ** 2
    return np.asarray(x - 2.0 * f * slope / (2.0 * slope * slope - f * bend))


Function: TypeAlias = Callable[[FloatArray], FloatArray]

_SMALL = 0.05
"""Below, differences cancel and series are exact to a trillionth."""
STEP = 0.01
"""Between the places of a table, in the logarithm: cubic pieces are then exact to about 1e-11."""
_LONGEST = 36.75
"""−ln(1 − y) of the last number before 1."""


@dataclass(frozen=True, slots=True)
class ClosedForm:
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
    from scipy import special

    with np.errstate(invalid="ignore", divide="ignore", over="ignore", under="ignore"):
        ein = np.where(x < _SMALL, x - x * x / 4 + x**3 / 18 - x**4 / 96, np.euler_gamma + np.log(x) + special.exp1(x))
    return ein - _stale(x)


def _archive(x: FloatArray) -> FloatArray:
    return 0.95 * _stale(x) + 0.05 * _harmonic(x)


def _age(x: FloatArray) -> FloatArray:
    return x / 2 - _stale(x)


LAWS: dict[str, ClosedForm] = {
    law.name: law
    for law in (
        ClosedForm("freshness", g, 1, _stale, drops=True),
        ClosedForm("changes", g, 0, _missed, drops=True),
        ClosedForm("harmonic", h, 1, _harmonic),
        ClosedForm("archive", lambda x: 0.95 * g(x) + 0.05 * h(x), 1, _archive),
        ClosedForm("age", age_value, 2, _age),
        ClosedForm("blur", lambda x: x * x / 2, 1, lambda x: x / 2),
        ClosedForm("poisson", lambda x: (x / (1 + x)) ** 2, 1, lambda x: 1 - 1 / (1 + x), drops=True),
        ClosedForm("lambda-incomplete", lambda x: x * x / (1 + x), 1, np.log1p),
        ClosedForm("lambda-complete", lambda x: x, 1, lambda x: np.log(np.maximum(x, 1.0)), soonest=1.0),
    )
}
"""Every law by its name. The first six are the objectives of the same name at known rates."""


@cache
def table(law: ClosedForm) -> tuple[float, FloatArray]:
    """Log x as cubic pieces over ln y (over ln −ln(1−y) where pages drop out): where it starts, and one row a piece.

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


def _invert(law: ClosedForm, y: FloatArray, rest: FloatArray) -> FloatArray:
    """Log of the x with u(x) = y, by halving; near y = 1 by 1 − u(x) = ``rest``, which does not lose digits there."""
    low, high = np.full_like(y, -60.0), np.full_like(y, 60.0)
    for _ in range(62):
        middle = 0.5 * (low + high)
        x = np.exp(middle)
        below = np.where(law.drops & (y > 0.5), _remainder(law, x) > rest, law.value(x) < y)  # noqa: PLR2004 - a half
        low, high = np.where(below, middle, low), np.where(below, high, middle)
    return np.asarray(0.5 * (low + high))


def _remainder(law: ClosedForm, x: FloatArray) -> FloatArray:
    """1 − u(x) of the laws that drop pages, exact where it is small."""
    if law.name == "poisson":
        return np.asarray((1 + 2 * x) / (1 + x) ** 2)
    with np.errstate(over="ignore", invalid="ignore"):
        return np.where(np.isinf(x), 0.0, (1 + x) * np.exp(-x))


_KEPT_BITS = 42
"""Bits of a number's end that a bin does not observe: ten of 52 stay."""
_NEAR, _MOST_PASSES = 3e-5, 4
"""ln of spending over budget below which no further pass is made: one does for millions of pages, two for fewer."""
_BLOCK = 65_536
_HALF = 0.5
_TWO = 2.0


@dataclass(frozen=True, slots=True)
class KnownRates:
    """What n pages of known change rates ask for at a price."""

    law: ClosedForm
    rate: FloatArray
    """λ of each page, ≥ 0, in changes per unit of time (seconds, usually)."""
    importance: FloatArray
    """w ≥ 0."""
    cost: FloatArray
    """c > 0 of a visit."""
    least: float = 0.0
    """Floor: visits per unit of time that every page gets, whatever it is worth."""
    most: float = math.inf
    """Ceiling: visits per unit of time of any page."""

    def __post_init__(self) -> None:
        if not 0 <= self.least <= self.most:
            raise ConfigError(
                f"Rates from {self.least} to {self.most} visits are not possible.",
                "The least must be 0 or more and not above the most.",
            )

    def __len__(self) -> int:
        return len(self.rate)

    @property
    def pace(self) -> FloatArray:
        """ρ = cλ^k/w; inf where no visit is ever worth anything."""
        return self.law.pace(self.rate, self.importance, self.cost)

    @property
    def bounded(self) -> bool:
        """Whether there is a floor or a ceiling."""
        return self.least > 0 or self.most < math.inf

    @property
    def unbounded(self) -> bool:
        """Whether any budget can be spent: there is neither floor nor ceiling, and a page that wants visits."""
        wants = bool(((self.rate > 0) & (self.importance > 0)).any())
        return wants and not self.bounded and self.law.soonest == 0

    def extremes(self) -> DemandExtremes:
        """Rates at an infinite price and at the price 0, and the price at which each page comes down to its floor."""
        pace = self.pace
        wanted = np.isfinite(pace)
        with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
            soonest = self.rate / self.law.soonest if self.law.soonest > 0 else np.full(len(self), math.inf)
            most = np.where(wanted, np.clip(soonest, self.least, self.most), self.least)
            at_floor = self.law.value(self.rate / self.least) if self.least > 0 else np.full(len(self), math.inf)
            limit = np.where(wanted, np.minimum(at_floor, 1.0 if self.law.drops else math.inf) / pace, 0.0)
        typical = 1.0 / float(np.median(pace[wanted][:: 1 + len(self) // _BLOCK])) if wanted.any() else 1.0
        return DemandExtremes(np.full(len(self), self.least), most, limit, typical)

    def rates(
        self,
        price: FloatArray | float,
        low: FloatArray | None = None,  # noqa: ARG002 - nothing is searched
        high: FloatArray | None = None,  # noqa: ARG002
    ) -> FloatArray:
        """Visits per unit of time at a price, or at one price a page. O(pages)."""
        out = np.empty(len(self))
        _rates_at(self.law, self.rate, self.pace, np.asarray(price, dtype=np.float64), out)
        return np.clip(out, self.least, self.most) if self.bounded else out

    def spending(self, rates: FloatArray) -> FloatArray:
        """Cost per unit of time of each page at these rates of visits."""
        return self.cost * rates

    def take(self, rows: AnyArray | slice) -> KnownRates:
        """What the pages at these positions ask for."""
        return KnownRates(self.law, self.rate[rows], self.importance[rows], self.cost[rows], self.least, self.most)


def spend_by_bins(known: KnownRates, budget: float) -> tuple[float, FloatArray]:
    """The price and rates that spend ``budget``, without floor or ceiling; the rates sum to it up to rounding.

    O(pages + bins · steps). For pages that are ``unbounded``, and a budget above 0.
    """
    rate, cost, law = known.rate, known.cost, known.law
    pace = known.pace
    share, mean = _bins(pace, cost, rate)
    log_price, elasticity = _price_of_bins(law, share, mean, budget)
    out = np.empty(len(rate))
    for _ in range(_MOST_PASSES):
        spent = _rates_at(law, rate, pace, np.asarray(math.exp(log_price)), out, cost)
        excess = math.log(spent / budget)
        log_price += excess / elasticity
        if abs(excess) < _NEAR:
            break
    out *= budget / spent
    return math.exp(log_price), out


def _price_of_bins(law: ClosedForm, share: FloatArray, mean: FloatArray, budget: float) -> tuple[float, float]:
    """The log of the price, and −d ln demand/d ln price there. Chords and halving on ln demand over ln price."""
    goal = math.log(budget)

    def excess(log_price: float) -> float:
        out = np.empty_like(share)
        spent = _rates_at(law, share, mean, np.asarray(math.exp(log_price)), out, None)
        return math.log(spent) - goal if spent > 0 else -math.inf

    high = -math.log(mean.min()) + (0.0 if law.drops else 1.0)
    low = high - 1.0
    above, below = excess(high), excess(low)
    while above > 0:
        low, below, high = high, above, high + 2.0 * (high - low)
        above = excess(high)
    while below < 0:
        high, above, low = low, below, low - 2.0 * (high - low)
        below = excess(low)
    stayed = 0
    for step in range(200):
        width = high - low
        chord = math.isfinite(above) and step % 3 < 2  # noqa: PLR2004 - every third step halves
        middle = low + width * (min(max(below / (below - above), 1e-3), 1 - 1e-3) if chord else _HALF)
        found = excess(middle)
        if abs(found) < 1e-12 or width < 1e-14 * max(1.0, abs(middle)):  # noqa: PLR2004 - rounding
            low = middle
            break
        if found > 0:
            low, below, above, stayed = middle, found, above * (_HALF if stayed > 0 else 1.0), 1
        else:
            high, above, below, stayed = middle, found, below * (_HALF if stayed < 0 else 1.0), -1
    nearby = 1e-2
    rise = excess(low - nearby) - excess(low + nearby)
    return low, (rise / (_TWO * nearby) if math.isfinite(rise) and rise > 0 else 1.0)


def _bins(pace: FloatArray, cost: FloatArray, rate: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Σ cλ and the mean pace of each bin that has pages."""
    bits = pace.view(np.int64)
    finite = pace[np.isfinite(pace)]
    first, last = (int(np.array([end]).view(np.int64)[0]) >> _KEPT_BITS for end in (finite.min(), finite.max()))
    share, moment = np.zeros(last - first + 1), np.zeros(last - first + 1)
    if can_compile():
        _bin_compiled(bits, pace, cost, rate, first, share, moment)
    else:
        for start in range(0, len(pace), _BLOCK):
            block = slice(start, start + _BLOCK)
            there = np.isfinite(pace[block])
            cell = (bits[block][there] >> _KEPT_BITS) - first
            weight = (cost[block] * rate[block])[there]
            share += np.bincount(cell, weight, len(share))
            moment += np.bincount(cell, weight * pace[block][there], len(share))
    used = share > 0
    return share[used], moment[used] / share[used]


@compiled
def _bin_compiled(  # noqa: PLR0913, PLR0917 - a kernel takes plain arrays
    bits: IntArray,
    pace: FloatArray,
    cost: FloatArray,
    rate: FloatArray,
    first: int,
    share: FloatArray,
    moment: FloatArray,
) -> None:
    for i in range(len(pace)):
        if pace[i] < math.inf:
            cell = (bits[i] >> _KEPT_BITS) - first
            weight = cost[i] * rate[i]
            share[cell] += weight
            moment[cell] += weight * pace[i]


def _rates_at(  # noqa: PLR0913, PLR0917 - columns
    law: ClosedForm,
    rate: FloatArray,
    pace: FloatArray,
    price: FloatArray,
    out: FloatArray,
    cost: FloatArray | None = None,
) -> float:
    """Fill ``out`` with λ/x(νρ), and return Σ c·out (Σ out without costs)."""
    if can_compile():
        start, pieces = table(law)
        return _rates_compiled(
            rate, pace, np.broadcast_to(price, pace.shape) if price.ndim else price.reshape(1), start, pieces,
            law.drops, law.soonest, out, np.ones(1) if cost is None else cost,
        )  # fmt: skip
    total = 0.0
    for start_row in range(0, len(rate), _BLOCK):
        block = slice(start_row, start_row + _BLOCK)
        with np.errstate(divide="ignore", invalid="ignore"):
            y = np.where(np.isfinite(pace[block]), pace[block] * (price[block] if price.ndim else price), np.inf)
            out[block] = rate[block] / law.changes_between(y)
        out[block][np.isnan(out[block])] = 0.0
        total += float((out[block] if cost is None else cost[block] * out[block]).sum())
    return total


@compiled
def _rates_compiled(  # noqa: PLR0913, PLR0917 - a kernel takes plain arrays
    rate: FloatArray,
    pace: FloatArray,
    price: FloatArray,
    start: float,
    pieces: FloatArray,
    drops: bool,
    soonest: float,
    out: FloatArray,
    cost: FloatArray,
) -> float:
    total, last = 0.0, len(pieces) - 1
    for i in range(len(rate)):
        y = pace[i] * price[i % len(price)] if pace[i] < math.inf else math.inf
        if y >= (1.0 if drops else math.inf):
            out[i] = 0.0
            continue
        if y > 0:
            there = (math.log(-math.log1p(-y) if drops else y) - start) / STEP
            cell = int(min(max(there, 0.0), last))
            part = there - cell
            c = pieces[cell]
            x = max(math.exp(c[0] + part * (c[1] + part * (c[2] + part * c[3]))), soonest)
        else:
            x = soonest
        out[i] = rate[i] / x if x > 0 else math.inf
        total += out[i] * cost[i % len(cost)]
    return total
