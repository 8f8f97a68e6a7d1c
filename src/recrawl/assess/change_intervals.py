"""Times between changes: observed intervals, their distribution over pages, and the weekly rhythm.

*Intervals.* An observation only tells that a page changed since the observation before. The change is dated at the
middle of the gap (HACS II-B, interpolated updates), and several changes in one gap count as one. So intervals much
shorter than the gaps are never seen, and none is known better than to a gap. A log of changes (``ChangeKind.EXACT``)
has exact times.

*Distribution.* 1/λ over pages, with the log-normal distribution that fits it (HACS II-B, figure 4). Each page is spread
over the quantiles of its belief: a page observed twice may change every hour or every year, and a histogram of medians
would hide that uncertainty.

*Rhythm.* How much faster pages change on some days and at some hours, and whether that is significant. The input is the
number of changes expected in each hour of the week, and the number for a constant rate (the exposure). Sums over days
and over hours give two profiles of mean 1. A χ² test compares them with a flat profile. Counts that were spread over a
gap vary less than true counts, so the test is conservative.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from scipy import special

from recrawl.model import Belief, BoolArray, FloatArray, Histories, IntArray
from recrawl.model.plurals import counted


@dataclass(frozen=True, slots=True)
class Intervals:
    """Times between one change of a page and its next, by row and time."""

    row: IntArray
    """Row of the histories."""
    length: FloatArray
    """Seconds."""

    def __len__(self) -> int:
        return len(self.row)

    def medians(self, rows: int) -> FloatArray:
        """The median interval of each row 0 … rows − 1, in seconds; NaN for a row without any. O(n log n).

        >>> Intervals(np.array([0, 0, 0]), np.array([5.0, 1.0, 2.0])).medians(2).tolist()
        [2.0, nan]
        """
        count = np.bincount(self.row, minlength=rows)
        value = self.length[np.lexsort((self.length, self.row))]
        first = np.cumsum(count) - count
        some = np.flatnonzero(count)
        out = np.full(rows, np.nan)
        low, high = first[some] + (count[some] - 1) // 2, first[some] + count[some] // 2
        out[some] = (value[low] + value[high]) / 2.0
        return out


@dataclass(frozen=True, slots=True)
class ChangeTimes:
    """When pages changed, by row and time."""

    row: IntArray
    """Row of the histories."""
    time: FloatArray
    """Seconds since the epoch."""
    opened: IntArray
    """Rows whose log opens with a change, ascending: it starts an interval and is not counted."""
    opened_at: FloatArray

    def __len__(self) -> int:
        return len(self.row)

    def intervals(self) -> Intervals:
        """Times between consecutive changes of a row. O(n)."""
        row = np.concatenate([self.opened, self.row])
        time = np.concatenate([self.opened_at, self.time])
        order = np.argsort(row, kind="stable")  # openings come first in the list, and so in their rows
        row, time = row[order], time[order]
        same = row[1:] == row[:-1]
        return Intervals(row[1:][same], np.diff(time)[same])


def changes_of(histories: Histories, exact: BoolArray | None = None) -> ChangeTimes:
    """When each page changed, as far as is known: ``exact[i]`` says that row i is a log of its changes. O(gaps)."""
    known = np.zeros(len(histories), np.bool_) if exact is None else exact
    row = histories.row_of_gap()
    when = histories.observation_times() - np.where(known[row], 0.0, histories.gaps / 2.0)
    opened = np.flatnonzero(known & ~np.isnan(histories.first_visit))
    return ChangeTimes(row[histories.changed], when[histories.changed], opened, histories.first_visit[opened])


def intervals_of(histories: Histories, exact: BoolArray | None = None) -> Intervals:
    """The intervals between changes of each page. O(gaps).

    A page with X detected changes has X − 1 intervals, from middle to middle of the gaps they lie in; an exact log has
    one more, from its opening to its first change.

    >>> from recrawl.model import Visits
    >>> h = Histories.from_visits(Visits.of([1, 1, 1, 1], [0.0, 10.0, 20.0, 30.0], verdict=[0, 2, 1, 2]))
    >>> intervals_of(h).length.tolist(), intervals_of(h, np.array([True])).length.tolist()
    ([20.0], [10.0, 20.0])
    """
    return changes_of(histories, exact).intervals()


_SHARES = (np.arange(10) + 0.5) / 10


@dataclass(frozen=True, slots=True)
class IntervalSpread:
    """Shares of pages over bins of 1/λ, in seconds."""

    edges: FloatArray
    """Evenly spaced in ln."""
    middle: FloatArray
    """By the middle estimate of each page."""
    believed: FloatArray
    """By all that is believed of each."""


def interval_spread(belief: Belief, bins: int = 30) -> IntervalSpread | None:
    """Both histograms over one set of bins; ``None`` if no page has a rate above 0. O(pages).

    What lies beyond a thousand times the slowest or below a thousandth of the fastest middle estimate is counted in the
    outermost bins.

    >>> from recrawl.model import GammaBelief
    >>> found = interval_spread(GammaBelief(np.full(2, 3.0), np.array([10.0, 1000.0])), bins=4)
    >>> found.middle.tolist(), round(float(found.believed.sum()), 6)
    ([0.5, 0.0, 0.0, 0.5], 1.0)
    """
    middle = _logs(belief.quantile(0.5))
    known = np.isfinite(middle)
    if not bool(known.any()):
        return None
    all_logs = np.concatenate([_logs(belief.quantile(float(q)))[known] for q in _SHARES])
    low, high = float(middle[known].min()), float(middle[known].max())
    reach = np.log(1e3)
    some = all_logs[np.isfinite(all_logs)]
    ends = np.clip(np.quantile(some, [0.01, 0.99]), low - reach, high + reach)
    edges = np.linspace(min(low, float(ends[0])) - 1e-9, max(high, float(ends[1])) + 1e-9, bins + 1)
    return IntervalSpread(np.exp(edges), _shares(middle[known], edges), _shares(all_logs, edges))


def _logs(rate: FloatArray) -> FloatArray:
    """ln(1/λ); infinite for a rate of 0."""
    with np.errstate(divide="ignore"):
        return -np.log(rate)


def _shares(values: FloatArray, edges: FloatArray) -> FloatArray:
    inside = np.clip(values, edges[0], edges[-1])
    return np.asarray(np.histogram(inside, edges)[0] / max(len(values), 1), np.float64)


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
    Of more than 2,000 rates N, evenly spread by rank, are compared; all are fitted. Fewer than 8 give NaN.
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


DAYS, HOURS = 7, 24
CERTAIN = 0.01
"""A rhythm is reported if a flat profile is less likely than this to be so uneven …"""
MATTERS = 1.5
"""… and its fastest day or hour is this many times as fast as its slowest."""
FEWEST_CHANGES = 50.0
DAY_NAMES = ("Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday", "Sunday")


@dataclass(frozen=True, slots=True)
class CycleProfile:
    """How fast pages change in each part of a cycle, relative to the mean."""

    factor: FloatArray
    """Changes over exposure, with mean 1; NaN without observations."""
    low: FloatArray
    high: FloatArray
    """Ends of the 90 % interval of each."""
    p: float
    """How often a flat profile observes least as uneven; NaN without changes."""

    @property
    def watched(self) -> int:
        """Number of parts of the cycle with observations."""
        return int(np.isfinite(self.factor).sum())

    @property
    def complete(self) -> bool:
        """Whether every part has observations."""
        return self.watched == len(self.factor)

    @property
    def certain(self) -> bool:
        """Whether it is neither chance nor too small to matter."""
        if not self.complete:
            return False
        return bool(self.p < CERTAIN) and float(self.factor.max()) >= MATTERS * float(self.factor.min())


@dataclass(frozen=True, slots=True)
class WeeklyRhythm:
    """The week by days and by hours, UTC, from Monday 00:00."""

    changes: float
    """On which it rests."""
    week: FloatArray
    """Factors of all hours of the week. Shape (7, 24); NaN without observations."""
    days: CycleProfile
    hours: CycleProfile


def rhythm(changes: FloatArray, exposure: FloatArray) -> WeeklyRhythm:
    """Profiles from expected changes and exposure in each of the 168 hours of the week. O(1).

    >>> found = rhythm(np.where(np.arange(168) < 120, 3.0, 1.0), np.full(168, 2.0))
    >>> found.days.factor.round(2).tolist(), found.days.certain, found.hours.certain
    ([1.24, 1.24, 1.24, 1.24, 1.24, 0.41, 0.41], True, False)
    """
    seen, there = changes.reshape(DAYS, HOURS), exposure.reshape(DAYS, HOURS)
    scale = float(seen.sum() / there.sum()) if there.sum() > 0 and seen.sum() > 0 else float("nan")
    with np.errstate(divide="ignore", invalid="ignore"):
        week = np.where(there > 0, seen / (there * scale), np.nan)
    return WeeklyRhythm(
        float(seen.sum()),
        week,
        _profile(seen.sum(axis=1), there.sum(axis=1) * scale),
        _profile(seen.sum(axis=0), there.sum(axis=0) * scale),
    )


def _profile(seen: FloatArray, expected: FloatArray) -> CycleProfile:
    looked = expected > 0
    safe = np.where(looked, expected, 1.0)
    # Quantiles of the Gamma that a count leaves of its mean (Jeffreys' prior).
    low, high = (special.gammaincinv(seen + 0.5, q) / safe for q in (0.05, 0.95))
    spread = float(np.sum((seen - expected)[looked] ** 2 / safe[looked]))
    freedom = int(looked.sum()) - 1
    p = float(special.gammaincc(freedom / 2.0, spread / 2.0)) if freedom > 0 and np.isfinite(spread) else float("nan")
    factor, low, high = (np.where(looked, value, np.nan) for value in (seen / safe, low, high))
    return CycleProfile(factor, low, high, p)


def rhythm_words(found: WeeklyRhythm) -> list[str]:
    """What it means, in a sentence or two."""
    if not found.changes >= FEWEST_CHANGES:
        known = f"The times of {counted(round(found.changes), 'change')} are known to within days"
        return [f"{known}; {FEWEST_CHANGES:.0f} are needed to find a rhythm."]
    days, hours = found.days, found.hours
    if not (days.complete or hours.complete):
        seen = f"Observed on {days.watched} of {DAYS} days of the week and {hours.watched} of {HOURS} hours of a day"
        return [f"{seen}: the rhythm is not known before all are observed."]
    return [_days_words(days), _hours_words(hours)]


def _days_words(days: CycleProfile) -> str:
    if not days.complete:
        return f"Observed on {days.watched} of {DAYS} days of the week: which days are busier is not known yet."
    if not days.certain:
        return "No day of the week is clearly busier than another."
    best, worst = int(np.argmax(days.factor)), int(np.argmin(days.factor))
    quiet = float(days.factor[5:].mean())
    rest = f"{days.factor[:5].mean() / quiet:.2g} times as many as" if quiet > 0 else "changes, and none comes on"
    weekend = f"; a working day brings {rest} a day of the weekend"
    return (
        f"Most changes come on a {DAY_NAMES[best]} ({days.factor[best]:.2g} times the mean), fewest on a "
        f"{DAY_NAMES[worst]} ({days.factor[worst]:.2g}){weekend}."
    )


def _hours_words(hours: CycleProfile) -> str:
    if not hours.complete:
        return f"Observed on {hours.watched} of {HOURS} hours of the day: which hours are busier is not known yet."
    if not hours.certain:
        return "No hour of the day is clearly busier than another."
    best, worst = int(np.argmax(hours.factor)), int(np.argmin(hours.factor))
    return (
        f"The busiest hour is {best:02}–{(best + 1) % HOURS:02} UTC ({hours.factor[best]:.2g} times the mean), the "
        f"quietest {worst:02}–{(worst + 1) % HOURS:02} UTC ({hours.factor[worst]:.2g})."
    )
