"""Test whether pages change as Poisson processes, as every formula here assumes (HACS II-D).

Two statistics, per page and for all pages together. Each is compared with simulated Poisson pages under the same
observations, so that estimated rates and unobserved changes cause no bias:

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

from recrawl.assess.change_intervals import ChangeTimes, Intervals, changes_of
from recrawl.model import BoolArray, FloatArray, Histories, IntArray
from recrawl.model.plurals import counted
from recrawl.time import WEEK, format_duration

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
