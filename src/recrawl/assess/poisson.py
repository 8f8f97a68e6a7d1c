r"""Is it Poisson? Do pages change by pure chance at a steady rate, as every formula here assumes (HACS II-D)?

Two statistics per page and for all pages together, each held against Poisson pages seen by the same looks
(``poisson_null``), so that neither the estimated rates nor what looks hide can deceive:

- *Dispersion*: how much the number of changes varies from one window of time to the next, Σ(O − E)²/ΣE over windows
  that hold three changes on average, divided by its mean for Poisson pages. 1 for Poisson; above, changes come in
  bursts or in busy and quiet times; below, they come regularly.
- *Time-rescaled intervals*: x = λ̂ · interval is exponential with mean 1 for every Poisson page, so those of all pages
  can be pooled. The Kolmogorov–Smirnov distance is taken from what Poisson pages show, at 63 quantiles of the
  exponential. A Lilliefors-type test: p is the rank of the distance among simulated ones, uniform if it is Poisson.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from recrawl.assess.intervals import Changes, Intervals, changes_of
from recrawl.assess.poisson_null import PoissonNull
from recrawl.model import BoolArray, FloatArray, Histories, IntArray
from recrawl.time import WEEK

FEWEST_CHANGES = 3
"""A page with fewer detected changes has at most one interval: it says nothing."""
MOST_PAGES = 1_000
"""Pages that are tested, evenly spread over those that can be: enough to see any departure that matters."""
MOST_LOOKS = 200
"""Looks at a page that count, the latest."""
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
    """Seconds. That of a Poisson page is ln 2 = 0.69 of 1/rate, if looks are dense."""
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
    """Pages that could be tested; of more than :data:`MOST_PAGES`, so many were."""
    saturated: int
    """Pages with changes enough, but found changed at every look: looks too seldom to say how they change."""
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
    """From the exponential itself: what looks hide is in there too."""
    intervals: int
    quantiles: FloatArray
    """Of the rescaled intervals at :data:`QUANTILES`: rows seen, Poisson under the same looks, exponential."""
    short: float
    """Share of intervals up to :data:`SHORT`."""
    short_expected: float
    """The same for Poisson pages under the same looks."""
    rescaled: FloatArray
    """The rescaled intervals, for a picture; ascending."""
    reference: FloatArray
    """199 quantiles of the same for Poisson pages under the same looks; ascending."""
    repeats: int


def diagnose(
    histories: Histories, rng: np.random.Generator, *, exact: BoolArray | None = None, repeats: int = 199
) -> Diagnosis:
    """Hold the changes of pages against Poisson pages. ``exact[i]``: row i is a log of its changes.

    ``repeats`` simulations; p-values are no finer than 1/(repeats + 1). O(repeats · gaps of the tested pages).
    """
    known = np.zeros(len(histories), np.bool_) if exact is None else exact
    changes, looks = histories.changes(), histories.counts()
    enough = changes >= FEWEST_CHANGES
    usable = np.flatnonzero(enough & (known | (changes < looks)))
    recent = histories.take(usable).latest(MOST_LOOKS)  # what is cut away can leave too little
    kept = (recent.changes() >= FEWEST_CHANGES) & (known[usable] | (recent.changes() < recent.counts()))
    positions = _spread(np.flatnonzero(kept), MOST_PAGES)
    null = PoissonNull.of(recent.take(positions), known[usable][positions])
    counts = (int(kept.sum()), int((enough & ~known & (changes == looks)).sum()), int((~enough).sum()))
    return _compare(null, rng, repeats, counts)


def _spread(rows: IntArray, most: int) -> IntArray:
    """At most so many of the rows, evenly spread."""
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
        middle = histories.look_times() - histories.gaps / 2.0
        row = histories.row_of_gap()
        expected = np.bincount(self._window(row, middle), null.chance, int(self.windows.sum()))
        even = np.repeat(histories.changes() / self.windows, self.windows)
        self.expected = np.where(np.repeat(null.exact, self.windows), even, expected)

    def _window(self, row: IntArray, time: FloatArray) -> IntArray:
        histories = self._null.histories
        share = (time - histories.first_visit[row]) / (histories.last_visit - histories.first_visit)[row]
        place = np.minimum((share * self.windows[row]).astype(np.int64), self.windows[row] - 1)
        return np.asarray(self._first_window[row] + place)

    def of(self, changes: Changes) -> _Drawn:
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
