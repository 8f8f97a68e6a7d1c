r"""A prior on the grid from a population of pages, and from each group of it, without assuming its shape.

Non-parametric maximum likelihood by EM (algorithms §5). E-step: the belief p_i about each page under the current
prior. M-step: the prior is the mean belief, smoothed over neighbouring rates with [¼, ½, ¼] so that a small sample does
not break it up into spikes. Groups within groups (all → host → cluster) are shrunk towards what they lie in:

    π_h ∝ Σ_{i∈h} p_i + strength · π_parent.

So the parent counts as ``strength`` more pages: a group of few pages says what its parent says, one of many outgrows
it. The population is shrunk in the same way, by one page, towards a log-normal around its pooled rate; with no look at
all that is one change in 30 days, give or take a factor of 7. So every case is defined, and no rate is excluded.

A prior needs no more than a sample: 20,000 pages of the population, 200 of a group, the latest 256 looks at each. The
likelihoods are computed once, without jump filter; a round of EM then is a sum over them.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np

from recrawl.estimate import grid
from recrawl.estimate.empirical_bayes import evenly_spread, vague
from recrawl.estimate.grid_kernels import sum_beliefs
from recrawl.model import FloatArray, GridBelief, Histories, IntArray
from recrawl.model.grid_belief import LOWEST_RATE, WeightArray, half_octaves

STRENGTH = 20.0
"""Pages that a parent counts for. On real collections 5 to 50 predict the next look about equally well."""

_VAGUE_SPREAD = 2.0
"""Standard deviation of ln λ assumed of a population of which nothing was seen."""
_SAMPLE = 20_000
_GROUP_SAMPLE = 200
_LOOKS = 256
_MOST_ROUNDS = 50
_SETTLED = 3e-3
"""EM stops when a prior moves less than this share of its mass in a round."""
_BLOCK = 131_072
"""Pages whose likelihoods are held at a time."""
_OUTLIERS = 10_000
"""Of so many pages one may lie beyond the end of the grid."""
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
    """Rates half an octave apart that reach as far as these looks can tell: the usual 36, or more.

    Upwards to three times the most any page's likelihood can favour: for one that changed at every look 1.5/shortest
    gap, else the upper bound min(m/U, ln(1 + S/U)/shortest) of algorithms §6 (m changes in gaps of sum S, none in gaps
    of sum U). Downwards to 0.3/T for the longest time T without a change. One page in 10,000 may lie outside, so
    that a few strange ones do not make the belief of all others larger.
    """
    rows = np.flatnonzero(histories.counts())
    if not len(rows):
        return half_octaves()
    heads, looks = histories.offsets[rows], histories.counts()[rows]
    loud = np.add.reduceat(np.where(histories.changed, histories.gaps, 0.0), heads)
    quiet = np.add.reduceat(np.where(histories.changed, 0.0, histories.gaps), heads)
    shortest = np.minimum.reduceat(np.where(histories.changed, histories.gaps, np.inf), heads)
    changes = np.add.reduceat(histories.changed.astype(np.int64), heads)
    with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
        bound = np.minimum(changes / quiet, np.log1p(loud / quiet) / shortest)
        highest = np.where(changes == 0, 0.0, np.where(changes == looks, 1.5 / shortest, bound))
        lowest = np.where(changes == 0, 0.3 / quiet, LOWEST_RATE)
    outside = len(rows) // _OUTLIERS
    low = float(np.partition(lowest, outside)[outside])
    high = 3.0 * float(np.partition(highest, len(rows) - 1 - outside)[len(rows) - 1 - outside])
    return half_octaves(max(low, _RATE_LIMITS[0]), min(high, _RATE_LIMITS[1]))


def _log_normal(rates: FloatArray, median: float) -> FloatArray:
    weights = np.exp(-0.5 * (np.log(rates / np.clip(median, rates[0], rates[-1])) / _VAGUE_SPREAD) ** 2)
    return np.asarray(weights / weights.sum())


def likelihood_of(histories: Histories, rates: FloatArray) -> WeightArray:
    """Of the looks at each page, the latest, under each rate, up to a factor a page: what a flat prior would become."""
    flat = GridBelief.of(rates, np.ones(len(rates)))
    return grid.fit(histories.latest(_LOOKS), flat, jump=None).weights


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
        end = min(start + _BLOCK, len(group))
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
        moving &= 0.5 * np.abs(new - old).sum(axis=1) >= _SETTLED
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
