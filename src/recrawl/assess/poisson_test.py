"""Times between changes, and the test whether pages change as Poisson processes.

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

*Test.* Every formula here assumes that pages change as Poisson processes (HACS II-D). Two statistics test it, per page
and for all pages together. Each is compared with simulated Poisson pages under the same observations, so that estimated
rates and unobserved changes cause no bias:

- *Dispersion*: the variance of the number of changes over windows of time, Σ(O − E)²/ΣE with three changes per window
  on average, divided by its mean for Poisson pages. 1 for Poisson; above 1 changes are bursty; below 1 they are
  regular.
- *Time-rescaled intervals*: x = λ̂ · interval is exponential with mean 1 for every Poisson page, so the intervals of
  all pages can be pooled. The Kolmogorov–Smirnov distance to the simulated pages is taken at 63 quantiles of the
  exponential distribution. A Lilliefors-type test: p is the rank of the distance among simulated ones, uniform under
  the null.

Simulation: a Poisson page of rate λ is found changed after a gap τ with probability p = 1 − e^{−λτ}, independently of
the past. The rate is not known, but the number X of observations with a change is nearly sufficient for it. So
simulated pages have the observations of the real page, and are kept only if they also show X changes. With the rate
that makes Σp = X (the moment estimator) this is exact for equal gaps, where λ cancels, and very nearly so for others.
No table of critical values is needed. In an exact log, the changes of a Poisson page are uniform given their number.

The observations are taken as given. Those of an adaptive crawl depend on earlier observations, which is not corrected;
the effect is small. On 40 collections of Poisson pages crawled adaptively (sooner after a change, later after none) the
result was "Poisson" 27 times and "nearly Poisson" 13 times.

With much data every departure from Poisson is significant, also a negligible one. So a result needs significance and
size: a distance of 0.05 means that one interval in twenty is on the other side of some length; a dispersion of 1.25
means that the standard deviation of counts is an eighth larger.
"""

from __future__ import annotations

import enum
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
from scipy import special

from recrawl.errors import counted
from recrawl.model import Belief, BoolArray, FloatArray, Histories, IntArray
from recrawl.time import WEEK, format_duration


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
_RHYTHM_CHANGES = 50.0
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
    if not found.changes >= _RHYTHM_CHANGES:
        known = f"The times of {counted(round(found.changes), 'change')} are known to within days"
        return [f"{known}; {_RHYTHM_CHANGES:.0f} are needed to find a rhythm."]
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


_TOLERANCE = 1e-10
_MOST_STEPS = 500
"""Newton needs about ten; this only stops a bug from looping."""


@dataclass(frozen=True, slots=True)
class PoissonNull:
    """Poisson pages under the observations of real ones.

    Rows must have some changes, and unless exact some quiet observations.
    """

    histories: Histories
    exact: BoolArray
    rate: FloatArray
    """Per second: the rate at which as many changes are expected as were seen."""
    chance: FloatArray
    """Of each gap, to end in a change."""

    @classmethod
    def of(cls, histories: Histories, exact: BoolArray) -> PoissonNull:
        """The null for these pages. O(gaps · steps)."""
        rate = np.where(exact, histories.changes() / np.maximum(histories.observed(), 1e-9), moment_rates(histories))
        chance = -np.expm1(-rate[histories.row_of_gap()] * histories.gaps)
        return cls(histories, exact, rate, chance)

    def draw(self, rng: np.random.Generator) -> ChangeTimes:
        """One simulation of all pages: as many changes each as were seen. O(gaps · √changes)."""
        changed, row = self._flags(rng), self.histories.row_of_gap()
        middle = self.histories.observation_times() - self.histories.gaps / 2.0
        when = np.where(self.exact[row], self._exact_times(rng), middle)
        opened = np.flatnonzero(self.exact)
        return ChangeTimes(row[changed], when[changed], opened, self.histories.first_visit[opened])

    def _flags(self, rng: np.random.Generator) -> BoolArray:
        """Which gaps end in a change: drawn one by one, and again for the pages whose number is not right."""
        row, starts = self.histories.row_of_gap(), self.histories.offsets
        flags = self.histories.changed.copy()
        wanted, counts = self.histories.changes(), self.histories.counts()
        open_rows = np.flatnonzero(~self.exact & (wanted > 0) & (wanted < counts))
        while len(open_rows):
            length = counts[open_rows]
            source = np.arange(length.sum()) + np.repeat(starts[open_rows] - (np.cumsum(length) - length), length)
            trial = rng.random(len(source)) < self.chance[source]
            flags[source] = trial
            found = np.bincount(row[source][trial], minlength=len(self.histories))[open_rows]
            open_rows = open_rows[found != wanted[open_rows]]
        return flags

    def _exact_times(self, rng: np.random.Generator) -> FloatArray:
        """Times for the changes of exact logs, ascending in each row; the last stays if the log ends with it."""
        times = self.histories.observation_times()
        row = self.histories.row_of_gap()
        moving = self.exact[row] & self.histories.changed
        last = self.histories.offsets[1:][self.histories.counts() > 0] - 1
        moving[last] = False
        rows = row[moving]
        first, end = self.histories.first_visit[rows], self.histories.last_visit[rows]
        drawn = first + (end - first) * rng.random(len(rows))
        times[moving] = drawn[np.lexsort((drawn, rows))]
        return times


def moment_rates(histories: Histories) -> FloatArray:
    """The rate at which Σ(1 − e^{−λτ}) over a page's gaps is its number of changes, per second.

    0 without changes, ∞ with nothing else, NaN without gaps. The sum is concave in λ and X/T lies left of the root
    (1 − e^{−x} ≤ x), so Newton climbs to it and never overshoots. O(gaps · steps).
    """
    counts, changes = histories.counts(), histories.changes()
    out = np.where(counts > 0, np.where(changes == counts, np.inf, 0.0), np.nan)
    rows = np.flatnonzero((changes > 0) & (changes < counts))
    if not len(rows):
        return out
    part = histories.take(rows)
    heads, row = part.offsets[:-1], part.row_of_gap()
    rate = changes[rows] / part.observed()
    for _ in range(_MOST_STEPS):
        x = rate[row] * part.gaps
        missing = changes[rows] + np.add.reduceat(np.expm1(-x), heads)
        step = missing / np.add.reduceat(x * np.exp(-x), heads)
        rate *= 1.0 + step
        if float(np.abs(step).max()) < _TOLERANCE:
            break
    out[rows] = rate
    return out


FEWEST_CHANGES = 3
"""A page with fewer detected changes has at most one interval: it says nothing."""
MOST_PAGES = 1_000
"""Pages that are tested, evenly spread over those that can be: enough to see any departure that matters."""
MOST_OBSERVATIONS = 200
"""Observations of a page that count, the latest."""
CHANGES_A_WINDOW = 3
QUANTILES = (0.1, 0.25, 0.5, 0.75, 0.9)
SHORT = WEEK
"""Intervals up to this length are counted apart: where collaboration or bursts would show."""

_BINS = 64
_FINE = (np.arange(199) + 0.5) / 199
_EDGES = -np.log1p(-np.arange(1, _BINS) / _BINS)


@dataclass(frozen=True, slots=True)
class PageDiagnosis:
    """One row a tested page."""

    page: IntArray
    """Page ids."""
    changes: IntArray
    rate: FloatArray
    """Changes per second, by moments."""
    median_interval: FloatArray
    """Seconds. That of a Poisson page is ln 2 = 0.69 of 1/rate, if observations are dense."""
    dispersion: FloatArray
    """1 for a Poisson page."""
    p_bursts: FloatArray
    """How often a Poisson page is at least as dispersed."""
    p_regular: FloatArray
    """How often it is at most as dispersed."""
    distance: FloatArray
    """Of the rescaled intervals from what Poisson pages show."""
    p_distance: FloatArray

    def __len__(self) -> int:
        return len(self.page)


@dataclass(frozen=True, slots=True)
class Diagnosis:
    """All tested pages together. Shares are between 0 and 1."""

    pages: PageDiagnosis
    eligible: int
    """Pages that could be tested; of more than :data:`MOST_PAGES`, this many were."""
    saturated: int
    """Pages with changes enough, but found changed at every observation: observations too seldom to say how they
    change."""
    too_few: int
    """Pages with fewer than :data:`FEWEST_CHANGES` changes."""
    exact: int
    """Tested pages whose changes are known to the moment."""
    dispersion: float
    p_dispersion: float
    """Two-sided."""
    distance: float
    p_distance: float
    distance_exponential: float
    """From the exponential itself: what observations hide is in there too."""
    intervals: int
    quantiles: FloatArray
    """Of the rescaled intervals at :data:`QUANTILES`: rows seen, Poisson under the same observations, exponential."""
    short: float
    """Share of intervals up to :data:`SHORT`."""
    short_expected: float
    """The same for Poisson pages under the same observations."""
    rescaled: FloatArray
    """The rescaled intervals, for a image; ascending."""
    reference: FloatArray
    """199 quantiles of the same for Poisson pages under the same observations; ascending."""
    repeats: int


def diagnose(
    histories: Histories, rng: np.random.Generator, *, exact: BoolArray | None = None, repeats: int = 199
) -> Diagnosis:
    """Hold the changes of pages against Poisson pages. ``exact[i]``: row i is a log of its changes.

    ``repeats`` simulations; p-values are no finer than 1/(repeats + 1). O(repeats · gaps of the tested pages).
    """
    known = np.zeros(len(histories), np.bool_) if exact is None else exact
    changes, observations = histories.changes(), histories.counts()
    enough = changes >= FEWEST_CHANGES
    usable = np.flatnonzero(enough & (known | (changes < observations)))
    recent = histories.take(usable).latest(MOST_OBSERVATIONS)  # what is cut away can leave too little
    kept = (recent.changes() >= FEWEST_CHANGES) & (known[usable] | (recent.changes() < recent.counts()))
    positions = _spread(np.flatnonzero(kept), MOST_PAGES)
    null = PoissonNull.of(recent.take(positions), known[usable][positions])
    counts = (int(kept.sum()), int((enough & ~known & (changes == observations)).sum()), int((~enough).sum()))
    return _compare(null, rng, repeats, counts)


def _spread(rows: IntArray, most: int) -> IntArray:
    """At most N of the rows, evenly spread."""
    return rows if len(rows) <= most else rows[np.linspace(0, len(rows) - 1, most).astype(np.int64)]


@dataclass(frozen=True, slots=True)
class _Drawn:
    """The statistics of one set of pages, real or simulated."""

    cumulated: npt.NDArray[np.float32]
    """Per page the number of rescaled intervals up to each edge. Shape (pages, edges)."""
    spread: FloatArray
    """Per page Σ(O − E)²/ΣE."""
    rescaled: FloatArray
    short: float


class _Statistics:
    """What is computed of each set, with what does not change from one to the next."""

    def __init__(self, null: PoissonNull) -> None:
        histories = null.histories
        self._null = null
        self.windows = np.maximum(histories.changes() // CHANGES_A_WINDOW, 2)
        self._first_window = np.cumsum(self.windows) - self.windows
        middle = histories.observation_times() - histories.gaps / 2.0
        row = histories.row_of_gap()
        expected = np.bincount(self._window(row, middle), null.chance, int(self.windows.sum()))
        even = np.repeat(histories.changes() / self.windows, self.windows)
        self.expected = np.where(np.repeat(null.exact, self.windows), even, expected)

    def _window(self, row: IntArray, time: FloatArray) -> IntArray:
        histories = self._null.histories
        share = (time - histories.first_visit[row]) / (histories.last_visit - histories.first_visit)[row]
        place = np.minimum((share * self.windows[row]).astype(np.int64), self.windows[row] - 1)
        return np.asarray(self._first_window[row] + place)

    def of(self, changes: ChangeTimes) -> _Drawn:
        """O(changes)."""
        pages = len(self._null.histories)
        intervals: Intervals = changes.intervals()
        x = intervals.length * self._null.rate[intervals.row]
        bins = np.searchsorted(_EDGES, x)
        table = np.bincount(intervals.row * _BINS + bins, minlength=pages * _BINS).reshape(pages, _BINS)
        seen = np.bincount(self._window(changes.row, changes.time), minlength=len(self.expected))
        row = np.repeat(np.arange(pages), self.windows)
        spread = np.bincount(row, (seen - self.expected) ** 2, pages) / np.bincount(row, self.expected, pages)
        short = float(np.mean(intervals.length <= SHORT)) if len(intervals) else float("nan")
        return _Drawn(np.cumsum(table, axis=1)[:, :-1].astype(np.float32), spread, x, short)


def _compare(null: PoissonNull, rng: np.random.Generator, repeats: int, counts: tuple[int, int, int]) -> Diagnosis:
    histories, pages = null.histories, len(null.histories)
    changes = changes_of(histories, null.exact)
    intervals = changes.intervals()
    medians = intervals.medians(pages)
    if not pages:
        return _nothing(counts, repeats)
    statistics = _Statistics(null)
    sets = [statistics.of(changes), *(statistics.of(null.draw(rng)) for _ in range(repeats))]
    spread = np.array([one.spread for one in sets])
    # The reference is the mean over all sets, the real one included: under the null each is like any other, so the
    # rank of the real one is uniform.
    own = np.bincount(intervals.row, minlength=pages)[:, None].astype(np.float32)
    each = np.array([one.cumulated for one in sets]) / own
    distance = np.abs(each - each.mean(axis=0)).max(axis=2)
    pooled = np.array([one.cumulated.sum(axis=0, dtype=np.float64) for one in sets]) / len(intervals)
    pooled_distance = np.abs(pooled - pooled.mean(axis=0)).max(axis=1)
    overall = spread.sum(axis=1)
    simulated = np.concatenate([one.rescaled for one in sets[1:]])
    table = [np.quantile(values, QUANTILES) for values in (sets[0].rescaled, simulated)]
    more, less = _rank(spread), _rank(-spread)
    page_columns = PageDiagnosis(
        histories.page,
        histories.changes(),
        null.rate,
        medians,
        spread[0] / spread[1:].mean(axis=0),
        more,
        less,
        distance[0],
        _rank(distance),
    )
    return Diagnosis(
        page_columns,
        *counts,
        exact=int(null.exact.sum()),
        dispersion=float(overall[0] / overall[1:].mean()),
        p_dispersion=min(1.0, 2.0 * min(float(_rank(overall)), float(_rank(-overall)))),
        distance=float(pooled_distance[0]),
        p_distance=float(_rank(pooled_distance)),
        distance_exponential=float(np.abs(pooled[0] - np.arange(1, _BINS) / _BINS).max()),
        intervals=len(intervals),
        quantiles=np.array([*table, -np.log1p(-np.array(QUANTILES))]),
        short=sets[0].short,
        short_expected=float(np.mean([one.short for one in sets[1:]])),
        rescaled=np.sort(sets[0].rescaled),
        reference=np.quantile(simulated, _FINE),
        repeats=repeats,
    )


def _rank(values: FloatArray) -> FloatArray:
    """Share of all sets whose value is at least that of the first: a p-value, never 0."""
    return np.asarray((values >= values[0] - 1e-12).mean(axis=0))


def _nothing(counts: tuple[int, int, int], repeats: int) -> Diagnosis:
    none, nan = np.empty(0), float("nan")
    ids = np.empty(0, np.int64)
    pages = PageDiagnosis(ids, ids, none, none, none, none, none, none, none)
    quantiles = np.array([*np.full((2, len(QUANTILES)), nan), -np.log1p(-np.array(QUANTILES))])
    return Diagnosis(pages, *counts, 0, nan, nan, nan, nan, nan, 0, quantiles, nan, nan, none, none, repeats)


SIGNIFICANT = 0.025
"""Two tests are made, so each is asked for half of 0.05."""
SMALL_DISTANCE = 0.05
SMALL_FACTOR = 1.25
FEWEST_INTERVALS = 20
"""With fewer intervals between changes, of all pages together, nothing is said."""
_QUARTER = QUANTILES.index(0.25)


class ChangePattern(enum.Enum):
    """How a collection changes."""

    UNKNOWN = "unknown"
    """Too little was seen."""
    POISSON = "poisson"
    """Nothing speaks against pure chance at a steady rate."""
    NEAR_POISSON = "near-poisson"
    """Something does, but it is too small to matter."""
    BURSTS = "bursts"
    """One change makes another soon after more likely."""
    REGULAR = "regular"
    """One change makes another soon after less likely."""
    UNEVEN = "uneven"
    """Neither: busy and quiet times, or preferred distances."""


def pattern_of(diagnosis: Diagnosis) -> ChangePattern:
    """The verdict: by significance, size, and whether short intervals are more or less frequent than by chance."""
    if diagnosis.intervals < FEWEST_INTERVALS:
        return ChangePattern.UNKNOWN
    if min(diagnosis.p_dispersion, diagnosis.p_distance) >= SIGNIFICANT:
        return ChangePattern.POISSON
    dispersion = diagnosis.dispersion
    if diagnosis.distance < SMALL_DISTANCE and 1.0 / SMALL_FACTOR < dispersion < SMALL_FACTOR:
        return ChangePattern.NEAR_POISSON
    short = diagnosis.quantiles[0, _QUARTER] / diagnosis.quantiles[1, _QUARTER]
    if dispersion >= 1.0 and short < 1.0:
        return ChangePattern.BURSTS
    if dispersion <= 1.0 and short > 1.0:
        return ChangePattern.REGULAR
    return ChangePattern.UNEVEN


def sentences(diagnosis: Diagnosis) -> list[str]:
    """The verdict and what follows from it, then what the observations could not show. One sentence or two each."""
    pattern = pattern_of(diagnosis)
    said = [_MEANING[pattern].format(numbers=_numbers(diagnosis))]
    if pattern is ChangePattern.UNKNOWN:
        return [*said, _missing(diagnosis)]
    if diagnosis.exact < len(diagnosis.pages):
        said.append(
            "The test allows for what observations cannot show: changes between two observations count as one, dated "
            "halfway. Bursts shorter than the time between observations stay hidden."
        )
    if diagnosis.saturated:
        said.append(
            f"{counted(diagnosis.saturated, 'page')} had changed at every observation and could not be tested: "
            "observe more often to know."
        )
    return said


def _numbers(diagnosis: Diagnosis) -> str:
    d = diagnosis
    return (
        f"the number of changes varies {d.dispersion:.2g} times as much from one span of time to the next as it would "
        f"by chance, and {d.short:.0%} of the intervals between changes are {format_duration(SHORT)} or shorter where "
        f"chance gives {d.short_expected:.0%}"
    )


def _missing(diagnosis: Diagnosis) -> str:
    why = [f"{counted(diagnosis.too_few, 'page')} changed fewer than {FEWEST_CHANGES} times"]
    if diagnosis.saturated:
        why.append(f"{counted(diagnosis.saturated, 'page')} had changed at every observation")
    return (
        f"Only {diagnosis.intervals} intervals between changes can be compared, {FEWEST_INTERVALS} are needed: "
        f"{', '.join(why)}. More visits are needed, or a longer time."
    )


_MEANING = {
    ChangePattern.UNKNOWN: "It is not known yet how these pages change.",
    ChangePattern.POISSON: (
        "These pages change like a Poisson process, by pure chance at a steady rate, as far as can be seen: {numbers}. "
        "Rates and their intervals mean what they say."
    ),
    ChangePattern.NEAR_POISSON: (
        "These pages change nearly like a Poisson process: {numbers}. The difference is certain but small; rates and "
        "their intervals can be relied on."
    ),
    ChangePattern.BURSTS: (
        "These pages change in bursts: {numbers}. A page that just changed is likelier to change again soon, and a "
        "quiet one to stay quiet; rates hold on average over longer times, but their intervals are too narrow."
    ),
    ChangePattern.REGULAR: (
        "These pages change more regularly than by chance: {numbers}. A page that just changed will rest a while, and "
        "one that has not for long is overdue; the intervals of the rates are wider than need be."
    ),
    ChangePattern.UNEVEN: (
        "These pages change unevenly, neither by pure chance nor simply in bursts or regularly: {numbers}. There may "
        "be busy and quiet seasons, or preferred days; a shorter window of time shows whether rates have changed."
    ),
}
