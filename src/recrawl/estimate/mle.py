r"""Maximum likelihood for irregular visits (HACS eq. 5), solved for all pages at once (algorithms §6).

With U the total of the unchanged gaps and τ_k the changed ones, the maximum is the root of

    ψ(λ) = Σ_k B(λτ_k) − λU,   B(x) = x/(eˣ − 1).

ψ is convex and falling, so Newton from the left climbs to the root and never overshoots. Jensen's inequality gives the
left start λ_L = (m/S)·ln(1 + S/U), S = Σ τ_k, m their number; it is the root itself when the changed gaps are equal.
With B·eˣ = x + B the relative step −ψ/(Σ B(1 − x − B) − λU) needs no second exponential.

Special cases (reading 000.3): no gap, undefined (NaN); no change, 0; nothing but changes, eq. 4
(``point_estimators.bias_reduced_rate``).

In compiled code two kernels run, one after the other over a block of pages that fits a processor's cache:
:func:`gather` reads the gaps, settles the special cases, and leaves the changed gaps of the other pages as (gap,
count); :func:`newton` climbs to their roots. Gaps are joined where it pays: a page whose gaps are all equal has a
closed form, and where few different lengths occur each is kept once. Sums run in blocks, so that they keep 12 digits
over a million gaps.

**Confidence**: intervals for λ, for every history and whichever formula made the estimate. Information: an observation
after τ has the Fisher information x²/(eˣ − 1), x = λτ, on ln λ; at most 0.648, at x = 1.594 (algorithms §5).

**Likelihood ratio.** All λ with 2(ℓ(λ̂) − ℓ(λ)) ≤ z², ℓ(λ) = Σ_changed ln(1 − e^{−λτ}) − λU. Calibrated from three gaps
on. ℓ is concave in λ and in ln λ, so a tangent meets the wanted level outside the interval, and Newton's method
converges from there.

One-sided where the likelihood has no maximum inside, at the same level (95 %: 1 − level = 0.05): no change in n gaps,
[0, −ln(1 − level)/U], the rule of three; nothing but changes, [λ, ∞) with Σ ln(1 − e^{−λτ}) = ln(1 − level). A page
without gaps may have any rate: [0, ∞).

**Interpolated updates** (HACS §II-B2): a change is dated at the middle of the gap in which it happened.

Observations t₀, t₁, …; the observation k that found a change is replaced by the midpoint (t_{k−1} + t_k)/2, and the
gaps are the differences of what results (reading 000.4). With z_k = 1 for a changed gap τ_k and 0 else:

    τ̃_k = τ_k·(1 − z_k/2) + z_{k−1}·τ_{k−1}/2.

The gap that ends in a change gets shorter, the one behind it longer. Any estimator can work on the result. The paper's
model f maps captures to (λ, τ): the rate by eq. 5, and the last update, or the first capture if there was none.
"""

from __future__ import annotations

import math
from itertools import pairwise
from typing import NamedTuple

import numpy as np

from recrawl.estimate.point_estimators import bias_reduced_rate
from recrawl.estimate.point_evidence import CONVERGED, MovingPages, bernoulli, climb, sound
from recrawl.model import BoolArray, FloatArray, Histories, IntArray
from recrawl.model.arrays import offsets_of, starts_of_runs
from recrawl.model.compiled import can_compile, compiled

_CONVERGED = CONVERGED
_MOST_STEPS = 200
_LARGEST_X = 700.0
_BLOCK = 256
"""Terms added up before their sum is added to the total."""
_MOST_LENGTHS = 8
"""Different lengths of gaps up to which a page is compressed; to look for more costs more than it saves."""
_GAPS_AT_A_TIME = 1 << 17


def compiled_rates(offsets: IntArray, gaps: FloatArray, changed: BoolArray, *, compress: bool = True) -> FloatArray:
    """λ of each page; NaN without gaps, 0 without a change, eq. 4 with nothing but changes (reading 000.3).

    ``compress=False`` joins no equal gaps: the same rates up to rounding, for tests and to see what joining gains.
    """
    pages = len(offsets) - 1
    out, quiet = np.empty(pages), np.empty(pages)
    # a view with steps would be compiled for again
    offsets, gaps, changed = np.ascontiguousarray(offsets), np.ascontiguousarray(gaps), np.ascontiguousarray(changed)
    # blocks of pages with about N gaps; a longer page is a block of its own
    whole_blocks = np.arange(0, offsets[-1] + _GAPS_AT_A_TIME, _GAPS_AT_A_TIME)
    cuts = np.unique(np.append(np.searchsorted(offsets, whole_blocks), pages).clip(0, pages)).tolist()
    for first, last in pairwise(cuts):
        within = offsets[first : last + 1]
        room = int(within[-1] - within[0])
        tau, count, ends = np.empty(room + 1), np.empty(room + 1), np.empty(last - first, dtype=np.int64)
        block = out[first:last], quiet[first:last], ends, tau, count
        gather(within, gaps, changed, compress, *block)
        newton(*block)
    return out


@compiled
def gather(  # noqa: C901, PLR0912, PLR0913, PLR0917 - one loop over columns: compiled code cannot call our functions
    offsets: IntArray,
    gaps: FloatArray,
    changed: BoolArray,
    compress: bool,
    rate: FloatArray,
    quiet: FloatArray,
    ends: IntArray,
    tau: FloatArray,
    count: FloatArray,
) -> None:
    """Fill ``rate`` (the root or the left start), ``quiet`` (U), and the rows ``tau`` × ``count`` up to ``ends``.

    A page whose rate is already the answer gets no rows.
    """
    row = 0
    for page in range(len(rate)):
        first, last, head = offsets[page], offsets[page + 1], row
        observations = last - first
        ends[page] = head
        if compress and observations > 1 and gaps[first] == gaps[first + 1]:
            other, hits = 0, 0
            for gap, found in zip(gaps[first:last], changed[first:last]):  # noqa: B905 - compiled code has no strict
                other += gap != gaps[first]
                hits += found
            if other == 0 and 0 < hits < observations:  # all gaps equal: ln(n/(n − X))/τ
                rate[page] = math.log1p(hits / (observations - hits)) / gaps[first]
                continue
        loud, unchanged = 0.0, 0.0
        for block in range(first, last, _BLOCK):
            loud_part, quiet_part = 0.0, 0.0
            # without branches, since nothing foresees which gap changed: tau[row] is written, and kept if it did
            for k in range(block, min(block + _BLOCK, last)):
                one = 1.0 if changed[k] else 0.0
                tau[row], count[row] = gaps[k], 1.0
                row += 1 if changed[k] else 0
                loud_part += gaps[k] * one
                quiet_part += gaps[k] * (1.0 - one)
            loud += loud_part
            unchanged += quiet_part
        changes = row - head
        if changes == 0:
            rate[page] = 0.0 if observations > 0 else math.nan
            continue
        if changes == observations:  # eq. 4
            row = head
            rate[page] = math.log((observations + 0.5) / 0.5) * observations / loud
            continue
        quiet[page] = unchanged
        rate[page] = changes / loud * math.log1p(loud / unchanged)
        if compress and changes > _MOST_LENGTHS:
            # a table of lengths grows at the front; what it displaces was counted, and takes the place it leaves
            lengths = 0
            for k in range(head, row):
                place = head
                while place < head + lengths and tau[place] != tau[k]:
                    place += 1
                if place == head + lengths:
                    lengths += 1
                    if lengths > _MOST_LENGTHS:
                        break
                    tau[place], tau[k], count[place] = tau[k], tau[place], 0.0
                count[place] += 1.0
            if lengths <= _MOST_LENGTHS:
                row = head + lengths
            else:
                count[head:row] = 1.0
        ends[page] = row


@compiled
def newton(rate: FloatArray, quiet: FloatArray, ends: IntArray, tau: FloatArray, count: FloatArray) -> None:
    """Climb from the starts in ``rate`` to the roots, in place; pages without rows stay as they are."""
    head = 0
    for page in range(len(rate)):
        end = ends[page]
        now, away = rate[page], quiet[page]
        for _ in range(_MOST_STEPS if end > head else 0):
            value, slope = 0.0, 0.0
            for block in range(head, end, _BLOCK):
                value_part, slope_part = 0.0, 0.0
                for k in range(block, min(block + _BLOCK, end)):
                    x = now * tau[k]
                    pull = x / math.expm1(x) if x < _LARGEST_X else 0.0
                    value_part += count[k] * pull
                    slope_part += count[k] * pull * (1.0 - x - pull)
                value += value_part
                slope += slope_part
            step = (now * away - value) / (slope - now * away)
            now *= 1.0 + step
            if abs(step) <= _CONVERGED:
                break
        rate[page] = now
        head = end


_WORTH_COMPILING = 200_000
"""Gaps from which compiled code pays even if it must be compiled first."""
_WORTH_JOINING = 0.7
"""Share of runs among the gaps below which joining equal neighbours pays."""


def rates(histories: Histories) -> FloatArray:
    """λ of each page, per second; NaN for a page without gaps. O(gaps · steps), 4 steps on average.

    Relative error below 1e-12. ValueError with the page's id for a gap that is negative or no number.

    >>> from recrawl.model import Visits
    >>> three_of_five = Visits.of(np.ones(6), np.arange(6) * 7.0, verdict=[0, 2, 2, 2, 1, 1])
    >>> rates(Histories.from_visits(three_of_five)).round(9).tolist()  # ln(2.5)/7
    [0.130898676]
    """
    histories = sound(histories)
    if len(histories.gaps) >= _WORTH_COMPILING and can_compile():
        return compiled_rates(histories.offsets, histories.gaps, histories.changed)
    return rates_by_numpy(histories)


def rates_by_numpy(histories: Histories, *, compress: bool = True) -> FloatArray:
    """The same without compiled code. ``compress=False`` joins no equal gaps."""
    observations, changes = histories.counts(), histories.changes()
    out = np.where(observations > 0, 0.0, np.nan)
    everything = (observations > 0) & (changes == observations)
    out[everything] = bias_reduced_rate(changes[everything], observations[everything], histories.observed()[everything])
    inner = np.flatnonzero((changes > 0) & (changes < observations))
    if len(inner):
        out[inner] = _interior(histories.take(inner), compress=compress)
    return out


def split(histories: Histories) -> tuple[IntArray, FloatArray, FloatArray]:
    """Offsets and lengths of the changed gaps, and U of each page: all that the likelihood depends on. O(gaps)."""
    row, changed = histories.row_of_gap(), histories.changed
    unchanged = np.zeros(len(histories))
    quiet = ~changed
    some = np.flatnonzero(starts_of_runs(row[quiet]))
    if len(some):  # reduceat adds in pairs, which bincount does not: a million gaps keep their digits
        unchanged[row[quiet][some]] = np.add.reduceat(histories.gaps[quiet], some)
    return offsets_of(row[changed], len(histories)), histories.gaps[changed], unchanged


def _interior(histories: Histories, *, compress: bool) -> FloatArray:
    """The root for pages that all have both changed and unchanged gaps."""
    offsets, gaps, unchanged = split(histories)
    counts, heads = np.diff(offsets), offsets[:-1]
    total = np.add.reduceat(gaps, heads)
    rate = counts / total * np.log1p(total / unchanged)
    if not compress:
        return climb(rate, offsets, gaps, _step, unchanged)
    unequal = np.minimum.reduceat(gaps, heads) < np.maximum.reduceat(gaps, heads)
    live, keep = np.flatnonzero(unequal), np.repeat(unequal, counts)
    row, gaps = np.repeat(np.arange(len(live)), counts[live]), gaps[keep]
    runs, weight = np.flatnonzero(starts_of_runs(row, gaps)), None
    if len(runs) < _WORTH_JOINING * len(gaps):
        weight = np.diff(np.append(runs, len(gaps))).astype(np.float64)
        row, gaps = row[runs], gaps[runs]
    rate[live] = climb(rate[live], offsets_of(row, len(live)), gaps, _step, unchanged[live], weight=weight)
    return rate


def _step(now: MovingPages) -> FloatArray:
    """Newton's relative step towards ψ = 0."""
    pull, away = bernoulli(now.x), now.rate * now.columns[0]
    return (away - now.sum(pull)) / (now.sum(pull * (1.0 - now.x - pull)) - away)


_FARTHEST_START = 3.0
"""In ln λ. Where the likelihood is nearly flat, z/√I would start Newton beyond all numbers."""


class RateInterval(NamedTuple):
    """Rates per second; 0 ≤ low ≤ high ≤ ∞, never NaN."""

    low: FloatArray
    high: FloatArray


def information(histories: Histories, rate: FloatArray) -> FloatArray:
    """Expected Fisher information about ln λ of each page, if its rate is ``rate``; 0 without gaps. O(gaps).

    >>> from recrawl.model import Visits
    >>> once = Histories.from_visits(Visits.of([1, 1], [0.0, 1.0], verdict=[0, 2]))
    >>> information(once, np.array([1.594])).round(3).tolist()
    [0.648]
    """
    x = np.repeat(rate, histories.counts()) * histories.gaps
    return _sum(histories, x * bernoulli(np.maximum(x, 1e-300)))


def likelihood_ratio(histories: Histories, level: float = 0.9) -> RateInterval:
    """Intervals of all rates that the likelihood does not rule out at this level. O(gaps · steps).

    >>> from recrawl.model import Visits
    >>> never = Histories.from_visits(Visits.of([1, 1], [0.0, 1.0], verdict=[0, 1]))
    >>> [bound.round(4).tolist() for bound in likelihood_ratio(never, 0.95)]
    [[0.0], [2.9957]]
    """
    histories, z = sound(histories), _z(level)
    low, high, inner = _bounds(histories, level)
    rows = np.flatnonzero(inner)
    if len(rows):
        pages = histories.take(rows)
        offsets, gaps, quiet = split(pages)
        best = rates(pages)
        least = _log_likelihood(pages, best) - z * z / 2.0
        with np.errstate(divide="ignore"):
            start = np.minimum(z / np.sqrt(information(pages, best)), _FARTHEST_START)
        low[rows] = climb(best * np.exp(-start), offsets, gaps, _downwards, quiet, least)
        high[rows] = climb(best * np.exp(start), offsets, gaps, _upwards, quiet, least)
    return RateInterval(low, high)


def _bounds(histories: Histories, level: float) -> tuple[FloatArray, FloatArray, np.ndarray]:
    """The one-sided intervals, and which pages have both changed and unchanged gaps and need another."""
    observations, changes, observed = histories.counts(), histories.changes(), histories.observed()
    low, high = np.zeros(len(histories)), np.full(len(histories), np.inf)
    never, always = (observations > 0) & (changes == 0), np.flatnonzero((observations > 0) & (changes == observations))
    high[never] = -np.log1p(-level) / observed[never]
    if len(always):
        pages, n = histories.take(always), observations[always]
        # the root if all gaps were equal; concavity in τ puts it left of the root else
        start = -np.log(-np.expm1(np.log1p(-level) / n)) * n / observed[always]
        quiet, least = np.zeros(len(always)), np.full(len(always), np.log1p(-level))
        low[always] = climb(start, pages.offsets, pages.gaps, _downwards, quiet, least)
    return low, high, (changes > 0) & (changes < observations)


def _downwards(now: MovingPages) -> FloatArray:
    """Newton in ln λ towards ℓ = least, left of the maximum: there ℓ falls like a multiple of ln λ."""
    excess, slope = _excess_and_slope(now)
    return np.expm1(-excess / slope)


def _upwards(now: MovingPages) -> FloatArray:
    """Newton in λ towards ℓ = least, right of the maximum: there ℓ falls like a multiple of λ."""
    excess, slope = _excess_and_slope(now)
    return -excess / slope


def _excess_and_slope(now: MovingPages) -> tuple[FloatArray, FloatArray]:
    """ℓ − least, and dℓ/d ln λ = Σ B(x) − λU."""
    quiet, least = now.columns
    value = now.sum(np.log(-np.expm1(-now.x))) - now.rate * quiet - least
    return value, now.sum(bernoulli(now.x)) - now.rate * quiet


def _log_likelihood(histories: Histories, rate: FloatArray) -> FloatArray:
    x = np.repeat(rate, histories.counts()) * histories.gaps
    return _sum(histories, np.where(histories.changed, np.log(-np.expm1(-x)), -x))


def _sum(histories: Histories, values: FloatArray) -> FloatArray:
    out = np.zeros(len(histories))
    rows = np.flatnonzero(histories.counts())
    if len(rows):  # reduceat has no notion of an empty row
        out[rows] = np.add.reduceat(values, histories.offsets[rows])
    return out


def _z(level: float) -> float:
    from scipy import special

    if not 0.0 < level < 1.0:
        msg = f"a level of confidence lies between 0 and 1, {level} does not"
        raise ValueError(msg)
    return float(special.ndtri((1.0 + level) / 2.0))


def interpolate(histories: Histories) -> Histories:
    """The histories with every change moved to the middle of its gap. O(gaps).

    ``last_change`` is the last interpolated update, and ``last_visit`` too if the last observation found a change: the
    history ends where its last gap does.

    >>> from recrawl.model import Visits
    >>> h = interpolate(Histories.from_visits(Visits.of([1] * 4, [0.0, 10.0, 20.0, 30.0], verdict=[0, 2, 1, 2])))
    >>> h.gaps.tolist(), h.changed.tolist(), h.last_change.tolist()
    ([5.0, 15.0, 5.0], [True, False, True], [25.0])
    """
    histories = sound(histories)
    half = np.where(histories.changed, histories.gaps / 2.0, 0.0)
    carried = np.concatenate([np.zeros(1), half[:-1]])[: len(half)]
    carried[histories.offsets[:-1][histories.counts() > 0]] = 0.0  # nothing is carried into a page's first gap
    last_visit, last_change = histories.last_visit.copy(), histories.last_change.copy()
    row, changed = histories.row_of_gap(), histories.changed
    last_change[row[changed]] = (histories.observation_times() - half)[
        changed
    ]  # of equal indices the last assignment stands
    full = np.flatnonzero(histories.counts())
    ends = histories.offsets[full + 1] - 1
    last_visit[full] -= half[ends]
    gaps = histories.gaps - half + carried
    return Histories(histories.page, histories.offsets, gaps, changed, histories.first_visit, last_visit, last_change)


class UpdateModel(NamedTuple):
    """f of HACS §II-E: what is known of each page's updates."""

    rate: FloatArray
    """λ by eq. 5, per second; NaN for a page without gaps."""
    last_update: FloatArray
    """τ: the last update, or the first capture if none was seen (reading 000.5). NaN for a page never seen."""


def update_model(histories: Histories, *, interpolated: bool = True) -> UpdateModel:
    """Rate and last update of each page, from interpolated updates or from observed ones. O(gaps · steps)."""
    used = interpolate(histories) if interpolated else sound(histories)
    last = np.where(np.isnan(used.last_change), used.first_visit, used.last_change)
    return UpdateModel(rates(used), last)
