r"""The grid posterior: the exact belief about λ on a grid of rates, and its filter for pages that change their ways.

Observations multiply the weight of rate λ_k: by e^{−λ_kτ} if nothing had changed after the gap τ, else by 1 −
e^{−λ_kτ}; then the weights of a page are divided by their sum (algorithms §5). Nothing is approximated but the grid.

**Jump filter.** A page's rate does not last: on average once in ``jump`` seconds it is drawn again from the page's
prior π. So before an observation after the gap τ

    p ← e^{−τ/J} p + (1 − e^{−τ/J}) π.

Old observations fade, and nothing is ever certain for ever. ``jump=None`` switches it off; then the order of the
observations does not matter. With it, a batch is the same as its observations one by one, except that of a history of
more than 65,536 observations the oldest count as one period without jumps (so that the numpy path stays bounded).

**Priors.** ``prior`` has one row per page, or one row for all, or with ``of`` any rows: page i has row ``of[i]``. So
the priors of a thousand hosts serve ten million pages without a copy each.

**Resolution.** Half an octave is finer than 100 observations can resolve: a finer grid predicts no better. After 3000
observations of a page that never jumps, the grid knows ln λ to 0.14 where 0.07 were possible.

**Tolerance.** Weights are stored in float32 between calls. A stream and its batch differ by at most 1e-5 in any
weight after 10,000 observations (measured: 2e-6), unless a rate was excluded by a factor of 1e-37 without filter.

**Loops.** Each loop exists as a compiled kernel and in numpy. ``pool_*``: the exact likelihood of observations in any
order, in logarithms. ``fold_*``: one observation after the other, with the jump filter before each. Both change the
given rows of ``weights`` in place. Pages are rows with observations ``gaps[first[i]:last[i]]``. No weight falls below
1e-37: a rate that is all but excluded can return if later observations support it.

**Estimated priors.** A prior on the grid is estimated from a population of pages, and from each group of it, without an
assumption about its shape: by non-parametric maximum likelihood with EM (algorithms §5). E-step: the belief p_i about
each page under the current prior. M-step: the prior is the mean belief, smoothed over neighbouring rates with
[¼, ½, ¼], so that a small sample does not break it up into spikes. Nested groups (all → host → cluster) are shrunk
towards their parent:

    π_h ∝ Σ_{i∈h} p_i + strength · π_parent.

So the parent counts as ``strength`` more pages: a small group has nearly the prior of its parent, a large group its
own. The population is shrunk in the same way, by one page, towards a log-normal around its pooled rate; without any
observation that is one change in 30 days, with a spread of a factor of 7. So every case is defined, and no rate is
excluded.

A prior needs only a sample: 20,000 pages of the population, 200 of a group, the latest 256 observations of each. The
likelihoods are computed once, without jump filter; a round of EM then is a sum over them.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np

from recrawl.estimate.gap_columns import PageGaps, refuse_bad_gaps, refuse_bad_observations
from recrawl.estimate.posterior.gamma_posterior import evenly_spread, vague
from recrawl.model import BoolArray, FloatArray, GridBelief, Histories, IntArray
from recrawl.model.arrays import starts_of_runs
from recrawl.model.belief import LOWEST_RATE, WeightArray, doubling, half_octaves
from recrawl.model.compiled import can_compile, compiled
from recrawl.time import DAY

SMALLEST = 1e-37
"""Close to the least that float32 holds in full precision."""
_SHORTEST, _LONGEST = 1e-200, 1e200
"""Gaps beyond count as this long, so that likelihoods stay above 0 and sums finite. Seconds, or any unit."""
_FAR = 300.0
"""λτ of the slowest rate above which e^{−λτ} is taken relative to it, so that it does not vanish for all rates."""
_VANISHING = 1e-280
"""A product of likelihoods that would be less is kept as a logarithm, and a new one starts."""
_BLOCK = 16_384


def pool(belief: GridBelief, observations: PageGaps) -> None:
    """Multiply weights by the likelihood of all observations, without filter. O(observations · rates)."""
    if can_compile():
        _pool_compiled(belief.weights, belief.rates, doubling(belief.rates), *observations)
    else:
        _pool_numpy(belief.weights, belief.rates, observations)


def fold(belief: GridBelief, observations: PageGaps, prior: GridBelief, of: IntArray, jump: float) -> None:
    """One observation after the other; before each the page may have jumped to a rate from row ``of[i]`` of ``prior``.

    ``jump`` is the mean time between jumps; inf for none. O(observations · rates); the numpy path takes as many steps
    as the longest history has observations.
    """
    if can_compile():
        _fold_compiled(belief.weights, belief.rates, doubling(belief.rates), *observations, prior.weights, of, jump)
    else:
        _fold_numpy(belief, observations, prior, of, jump)


@compiled
def _pool_compiled(  # noqa: C901, PLR0912, PLR0913, PLR0917 - a kernel is one loop over plain arrays
    weights: WeightArray,
    rates: FloatArray,
    step: int,
    row: IntArray,
    first: IntArray,
    last: IntArray,
    gaps: FloatArray,
    changed: BoolArray,
) -> None:
    size = len(rates)
    change, product, logs = np.empty(size), np.empty(size), np.empty(size)
    for i in range(len(row)):
        page, quiet = weights[row[i]], 0.0
        for k in range(size):
            logs[k] = math.log(max(float(page[k]), SMALLEST))
            product[k] = 1.0
        for g in range(first[i], last[i]):
            gap = min(max(gaps[g], _SHORTEST), _LONGEST)
            if not changed[g]:
                quiet += gap
                continue
            for k in range(size):
                if k < step:
                    change[k] = -math.expm1(-rates[k] * gap)
                else:
                    change[k] = change[k - step] * (2.0 - change[k - step])
            if product[0] * change[0] < _VANISHING:  # the slowest rate has the smallest
                for k in range(size):
                    logs[k] += math.log(product[k])
                    product[k] = 1.0
            for k in range(size):
                product[k] *= change[k]
        top = -np.inf
        for k in range(size):
            logs[k] += math.log(product[k]) - rates[k] * quiet
            top = max(top, logs[k])
        total = 0.0
        for k in range(size):
            logs[k] = math.exp(logs[k] - top)
            total += logs[k]
        for k in range(size):
            page[k] = max(logs[k] / total, SMALLEST)


def _pool_numpy(weights: WeightArray, rates: FloatArray, observations: PageGaps) -> None:
    counts = observations.last - observations.first
    page = np.repeat(np.arange(len(counts)), counts)
    place = np.arange(len(page)) + np.repeat(observations.first - (np.cumsum(counts) - counts), counts)
    gaps, changed = np.clip(observations.gaps[place], _SHORTEST, _LONGEST), observations.changed[place]
    quiet = np.bincount(page[~changed], gaps[~changed], len(counts))
    loud_page, loud_gap = page[changed], gaps[changed]
    ends = np.searchsorted(loud_page, np.arange(len(counts) + 1))
    for start in range(0, len(counts), _BLOCK):
        stop = min(start + _BLOCK, len(counts))
        rows = observations.row[start:stop]
        logs = np.log(np.maximum(weights[rows].astype(np.float64), SMALLEST)) - quiet[start:stop, None] * rates
        for at in range(int(ends[start]), int(ends[stop]), _BLOCK):
            part = slice(at, min(at + _BLOCK, int(ends[stop])))
            heads = np.flatnonzero(starts_of_runs(loud_page[part]))
            each = np.log(-np.expm1(-loud_gap[part, None] * rates))
            logs[loud_page[part][heads] - start] += np.add.reduceat(each, heads, axis=0)
        found = np.exp(logs - logs.max(axis=1, keepdims=True))
        weights[rows] = np.maximum(found / found.sum(axis=1, keepdims=True), SMALLEST)


@compiled
def _fold_compiled(  # noqa: C901, PLR0913, PLR0917 - a kernel is one loop over plain arrays
    weights: WeightArray,
    rates: FloatArray,
    step: int,
    row: IntArray,
    first: IntArray,
    last: IntArray,
    gaps: FloatArray,
    changed: BoolArray,
    prior: WeightArray,
    of: IntArray,
    jump: float,
) -> None:
    size = len(rates)
    held, factor = np.empty(size), np.empty(size)
    for i in range(len(row)):
        page, fresh = weights[row[i]], prior[of[i]]
        for k in range(size):
            held[k] = page[k]
        for g in range(first[i], last[i]):
            gap = min(max(gaps[g], _SHORTEST), _LONGEST)
            stay, leave = math.exp(-gap / jump), -math.expm1(-gap / jump)
            far = rates[0] * gap > _FAR
            total = 0.0
            for k in range(size):
                if changed[g]:
                    if k < step:
                        factor[k] = -math.expm1(-rates[k] * gap)
                    else:
                        factor[k] = factor[k - step] * (2.0 - factor[k - step])
                elif far:
                    factor[k] = math.exp((rates[0] - rates[k]) * gap)
                elif k < step:
                    factor[k] = math.exp(-rates[k] * gap)
                else:
                    factor[k] = factor[k - step] * factor[k - step]
                held[k] = (stay * held[k] + leave * fresh[k]) * factor[k]
                total += held[k]
            for k in range(size):
                held[k] = max(held[k] / total, SMALLEST)
        for k in range(size):
            page[k] = held[k]


def _fold_numpy(belief: GridBelief, observations: PageGaps, prior: GridBelief, of: IntArray, jump: float) -> None:
    """The k-th observations of all pages at once, for k = 0, 1, …; pages by falling length, so the live ones lead."""
    counts = observations.last - observations.first
    by_length = np.argsort(-counts, kind="stable")
    for start in range(0, len(by_length), _BLOCK):
        pages = by_length[start : start + _BLOCK]
        rows = observations.row[pages]
        held, own = belief.weights[rows].astype(np.float64), prior.weights[of[pages]].astype(np.float64)
        falling = -counts[pages]
        live = np.searchsorted(falling, -np.arange(1, -int(falling.min(initial=0)) + 1), side="right")
        for k, n in enumerate(live.tolist()):
            where = observations.first[pages[:n]] + k
            gap = np.clip(observations.gaps[where], _SHORTEST, _LONGEST)[:, None]
            stay = np.exp(-gap / jump)
            moved = stay * held[:n] - np.expm1(-gap / jump) * own[:n]
            moved *= _likelihood(gap * belief.rates, observations.changed[where])
            held[:n] = np.maximum(moved / moved.sum(axis=1, keepdims=True), SMALLEST)
        belief.weights[rows] = held


def _likelihood(x: FloatArray, changed: BoolArray) -> FloatArray:
    """Of one observation a page, at x = λτ; up to a factor where no rate would be left otherwise."""
    out = np.exp(np.where(x[:, :1] > _FAR, x[:, :1] - x, -x))
    out[changed] = -np.expm1(-x[changed])
    return np.asarray(out)


def sum_beliefs(likelihood: WeightArray, prior: FloatArray, group: IntArray) -> FloatArray:
    """The sum of the beliefs of the pages of each group, given the prior of the group: one E-step of EM.

    ``group`` ascends and has every number below ``len(prior)``. O(pages · rates).
    """
    sums = np.zeros_like(prior)
    if can_compile():
        _sum_beliefs_compiled(likelihood, prior, group, sums)
        return sums
    for start in range(0, len(group), _BLOCK):
        block = slice(start, start + _BLOCK)
        joint = likelihood[block] * prior[group[block]]
        joint /= joint.sum(axis=1, keepdims=True)
        heads = np.flatnonzero(starts_of_runs(group[block]))
        sums[group[block][heads]] += np.add.reduceat(joint, heads, axis=0)
    return sums


@compiled
def _sum_beliefs_compiled(likelihood: WeightArray, prior: FloatArray, group: IntArray, sums: FloatArray) -> None:
    size = prior.shape[1]
    joint = np.empty(size)
    for i in range(len(group)):
        page, own, out = likelihood[i], prior[group[i]], sums[group[i]]
        total = 0.0
        for k in range(size):
            joint[k] = page[k] * own[k]
            total += joint[k]
        for k in range(size):
            out[k] += joint[k] / total


JUMP = 400.0 * DAY
"""Mean time between two changes of a page's rate. Costs next to nothing where rates last (algorithms §5)."""

LONGEST = 65_536
"""Observations of a page that the filter takes one by one, the latest."""

_POSTERIOR_BLOCK = 65_536


def fit(
    histories: Histories, prior: GridBelief, *, of: IntArray | None = None, jump: float | None = JUMP
) -> GridBelief:
    """The belief about each page right after its last observation. O(gaps · rates), memory for the result alone.

    >>> from recrawl.model import Visits
    >>> h = Histories.from_visits(Visits.of([1, 1], [0.0, 10.0], verdict=[0, 1]))
    >>> after = fit(h, GridBelief.of([0.1, 0.2], [0.5, 0.5]), jump=None)
    >>> [round(weight, 6) for weight in after.weights[0].tolist()]  # as 1 to 1/e
    [0.731059, 0.268941]

    Raises:
        ValueError: a gap is not positive and finite, or the prior has rows for other pages.
    """
    refuse_bad_gaps(histories)
    rows = _rows_of_prior(prior, of, len(histories))
    belief = GridBelief(prior.rates, prior.weights[rows])
    starts, ends = histories.offsets[:-1], histories.offsets[1:]
    observations = PageGaps(np.arange(len(histories)), starts, ends, histories.gaps, histories.changed)
    if jump is None:
        pool(belief, observations)
    else:
        _fold(belief, observations, prior, rows, jump)
    return belief


def update(  # noqa: PLR0913 - a look is three columns, a prior two
    belief: GridBelief,
    rows: IntArray,
    gap: FloatArray,
    changed: BoolArray,
    prior: GridBelief | None = None,
    *,
    of: IntArray | None = None,
    jump: float | None = JUMP,
) -> None:
    """Update ``belief`` **in place** with new observations: O(1) per observation, for any number of pages.

    ``rows[k]`` is the row of the page that was observed after ``gap[k]`` seconds. A row may occur several times; its
    observations are folded in the order given. ``prior`` and ``of`` are those of *all* pages of the belief; without
    filter they are not needed.

    Raises:
        ValueError: a gap is not positive and finite, a row is not one of the belief, or the prior does not fit.
    """
    if prior is None and jump is not None:
        raise ValueError("the jump filter needs the prior of the pages; pass it, or jump=None")
    refuse_bad_observations(rows, gap, changed, len(belief))
    observations = PageGaps.each(rows, gap, changed) if can_compile() else PageGaps.of(rows, gap, changed)
    source = belief.take(slice(1)) if prior is None else prior
    own = np.zeros_like(observations.row) if prior is None else _rows_of_prior(prior, of, len(belief))[observations.row]
    _fold(belief, observations, source, own, jump)


def at(
    belief: GridBelief, prior: GridBelief, elapsed: FloatArray, *, of: IntArray | None = None, jump: float | None = JUMP
) -> GridBelief:
    """The belief ``elapsed`` seconds after the last observation: less certain, because the page may have jumped since.

    Where a page has not been observed yet (``elapsed`` is NaN) it stays what it is.
    """
    if jump is None:
        return belief
    rows = _rows_of_prior(prior, of, len(belief))
    weights = np.empty_like(belief.weights)
    leave = -np.expm1(-np.nan_to_num(np.asarray(elapsed, dtype=np.float64)) / jump)
    for start in range(0, len(belief), _POSTERIOR_BLOCK):
        block = slice(start, start + _POSTERIOR_BLOCK)
        held = belief.weights[block]
        weights[block] = held + leave[block, None] * (prior.weights[rows[block]] - held)
    return GridBelief(belief.rates, weights)


def _rows_of_prior(prior: GridBelief, of: IntArray | None, pages: int) -> IntArray:
    """The row of the prior that belongs to each page."""
    if of is not None and len(of) == pages:
        if pages and not 0 <= int(of.min()) <= int(of.max()) < len(prior):
            raise ValueError(f"rows {int(of.min())} to {int(of.max())} of a prior of {len(prior)} rows")
        return of
    if of is None and len(prior) == pages:
        return np.arange(pages)
    if of is None and len(prior) == 1:
        return np.zeros(pages, dtype=np.int64)
    rows = len(prior) if of is None else len(of)
    raise ValueError(f"the prior has {rows} rows, but there are {pages} pages")


def _fold(belief: GridBelief, observations: PageGaps, prior: GridBelief, of: IntArray, jump: float | None) -> None:
    """One by one the latest observations, all at once those before them."""
    if not np.array_equal(belief.rates, prior.rates):
        raise ValueError("the belief and its prior have different rates")
    latest = np.maximum(observations.first, observations.last - LONGEST)
    long = np.flatnonzero(latest > observations.first)
    if len(long):
        early = PageGaps(
            observations.row[long], observations.first[long], latest[long], observations.gaps, observations.changed
        )
        pool(belief, early)
    late = observations._replace(first=latest)
    fold(belief, late, prior, of, math.inf if jump is None else jump)


STRENGTH = 20.0
"""Pages that a parent counts for. On real collections 5 to 50 predict the next observation about equally well."""

_VAGUE_SPREAD = 2.0
"""Standard deviation of ln λ assumed of a population of which nothing was seen."""
_SAMPLE = 20_000
_GROUP_SAMPLE = 200
_MOST_OBSERVATIONS = 256
_MOST_ROUNDS = 50
_CONVERGED = 3e-3
"""EM stops when a prior moves less than this share of its mass in a round."""
_PRIOR_BLOCK = 131_072
"""Pages whose likelihoods are held at a time."""
_OUTLIERS = 10_000
"""One in this many pages may have a rate beyond the end of the grid."""
_RATE_LIMITS = (LOWEST_RATE * 2.0**-25, LOWEST_RATE * 2.0**55)
"""A change in 300 million years, or 120 in a nanosecond: no grid ends further out."""


@dataclass(frozen=True, slots=True)
class GridPriors:
    """The priors of all pages together and of each group, in one belief."""

    belief: GridBelief
    """Row 0: all pages. Then the groups of each level, widest level first."""
    groups: tuple[IntArray, ...]
    """Ids of the groups of each level, ascending."""

    def rows(self, levels: Sequence[IntArray], pages: int) -> IntArray:
        """The row of the narrowest group known of each page; ``levels`` as in ``Evidence``. O(pages log groups)."""
        row, before = np.zeros(pages, dtype=np.int64), 1
        for known, level in zip(self.groups, levels, strict=False):
            if len(known):
                place = np.minimum(np.searchsorted(known, level), len(known) - 1)
                row = np.where(known[place] == level, before + place, row)
            before += len(known)
        return row


def fit_priors(
    histories: Histories,
    levels: Sequence[IntArray] = (),
    *,
    rates: FloatArray | None = None,
    strength: float = STRENGTH,
) -> GridPriors:
    """The prior of the population and of the groups of each level, wide to narrow; each level divides the one before.

    ``rates`` is the grid; without it, :func:`spanning`. O(gaps of the samples · K).
    """
    one_group = np.zeros(len(histories), dtype=np.int64)
    sample = evenly_spread(histories, one_group, _SAMPLE)
    chosen = histories.take(sample)
    if rates is None:
        rates = spanning(chosen)
    start = _log_normal(rates, float(vague(chosen).mean()[0]))[None, :]
    priors = [_em(likelihood_of(chosen, rates), one_group[sample], start, strength=1.0)]
    ids: list[IntArray] = []
    parent = one_group
    for level in levels:
        known, first, index = np.unique(level, return_index=True, return_inverse=True)
        priors.append(_fit_groups(histories, index, priors[-1][parent[first]], rates, strength))
        ids.append(known.astype(np.int64))
        parent = index
    return GridPriors(GridBelief.of(rates, np.concatenate(priors)), tuple(ids))


def spanning(histories: Histories) -> FloatArray:
    """Rates half an octave apart that cover the range these observations can resolve: the usual 36, or more.

    Upwards to three times the most any page's likelihood can favour: for one that changed at every observation
    1.5/shortest gap, else the upper bound min(m/U, ln(1 + S/U)/shortest) of algorithms §6 (m changes in gaps of sum S,
    none in gaps of sum U). Downwards to a third of the rate X/T of the page with the lowest one, X changes (one where
    there was none) in the time T. One page in 10,000 may lie outside, so that a few strange ones do not make the belief
    of all others larger.
    """
    rows = np.flatnonzero(histories.counts())
    if not len(rows):
        return half_octaves()
    heads, observations = histories.offsets[rows], histories.counts()[rows]
    loud = np.add.reduceat(np.where(histories.changed, histories.gaps, 0.0), heads)
    quiet = np.add.reduceat(np.where(histories.changed, 0.0, histories.gaps), heads)
    shortest = np.minimum.reduceat(np.where(histories.changed, histories.gaps, np.inf), heads)
    changes = np.add.reduceat(histories.changed.astype(np.int64), heads)
    with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
        bound = np.minimum(changes / quiet, np.log1p(loud / quiet) / shortest)
        highest = np.where(changes == 0, 0.0, np.where(changes == observations, 1.5 / shortest, bound))
        lowest = np.minimum(0.3 * np.maximum(changes, 1) / (quiet + loud), LOWEST_RATE)
    outside = len(rows) // _OUTLIERS
    low = float(np.partition(lowest, outside)[outside])
    high = 3.0 * float(np.partition(highest, len(rows) - 1 - outside)[len(rows) - 1 - outside])
    return half_octaves(max(low, _RATE_LIMITS[0]), min(high, _RATE_LIMITS[1]))


def _log_normal(rates: FloatArray, median: float) -> FloatArray:
    weights = np.exp(-0.5 * (np.log(rates / np.clip(median, rates[0], rates[-1])) / _VAGUE_SPREAD) ** 2)
    return np.asarray(weights / weights.sum())


def likelihood_of(histories: Histories, rates: FloatArray) -> WeightArray:
    """Of the observations of each page, the latest, under each rate, up to a factor a page.

    What a flat prior would become.
    """
    flat = GridBelief.of(rates, np.ones(len(rates)))
    return fit(histories.latest(_MOST_OBSERVATIONS), flat, jump=None).weights


def _fit_groups(
    histories: Histories, group: IntArray, parent: FloatArray, rates: FloatArray, strength: float
) -> FloatArray:
    """The priors of groups 0, 1, …, each with its own parent; blocks of groups at a time."""
    out = parent.copy()
    sample = evenly_spread(histories, group, _GROUP_SAMPLE)
    sample = sample[np.argsort(group[sample], kind="stable")]
    for part in _whole_groups(group[sample]):
        rows = sample[part]
        label, index = np.unique(group[rows], return_inverse=True)
        back = np.empty(len(rows), dtype=np.int64)
        back[np.argsort(rows)] = np.arange(len(rows))
        likelihood = likelihood_of(histories.take(np.sort(rows)), rates)[back]
        out[label] = _em(likelihood, index, out[label], strength=strength)
    return out


def _whole_groups(group: IntArray) -> Iterator[slice]:
    """Stretches of about ``_BLOCK`` pages that do not cut a group; ``group`` ascends."""
    start = 0
    while start < len(group):
        end = min(start + _PRIOR_BLOCK, len(group))
        end = int(np.searchsorted(group, group[end - 1], side="right"))
        yield slice(start, end)
        start = end


def _em(likelihood: WeightArray, group: IntArray, parent: FloatArray, *, strength: float) -> FloatArray:
    """EM from the parents; ``group`` ascends and has every number below ``len(parent)``, or there are no pages.

    Each group stops when it has settled, whatever the others do; so it does not matter which are fitted together.
    """
    if not len(likelihood):
        return parent
    out, live, above = parent.copy(), np.arange(len(parent)), parent
    pages = np.bincount(group, minlength=len(parent))[:, None]
    moving = np.ones(len(parent), dtype=np.bool_)
    for _ in range(_MOST_ROUNDS):
        old = out[live]
        new = (_smooth(sum_beliefs(likelihood, old, group)) + strength * above) / (pages + strength)
        out[live[moving]] = new[moving]
        moving &= 0.5 * np.abs(new - old).sum(axis=1) >= _CONVERGED
        if not moving.any():
            break
        if moving.mean() < 0.7:  # noqa: PLR2004 - dropping what has settled pays from about 30 % on
            kept = moving[group]
            likelihood, group = likelihood[kept], (np.cumsum(moving) - 1)[group[kept]]
            live, above, pages, moving = live[moving], above[moving], pages[moving], moving[moving]
    return out


def _smooth(weights: FloatArray) -> FloatArray:
    """[¼, ½, ¼] along the rates; at the ends what would fall off stays."""
    padded = np.pad(weights, ((0, 0), (1, 1)), mode="edge")
    return np.asarray(0.25 * padded[:, :-2] + 0.5 * padded[:, 1:-1] + 0.25 * padded[:, 2:])
