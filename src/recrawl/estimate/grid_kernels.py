r"""The loops of the grid posterior, each in machine code and in numpy (``estimate.grid`` says what they compute).

``pool_*``: the exact likelihood of looks in any order, in logarithms. ``fold_*``: one look after the other, with the
jump filter before each. Both change the given rows of ``weights`` in place. Pages are rows with looks
``gaps[first[i]:last[i]]``. No weight falls below 1e-37: a rate is all but excluded, and yet comes back once later looks
speak for it.
"""

from __future__ import annotations

import math

import numpy as np

from recrawl.estimate.gaps import Looks
from recrawl.model import BoolArray, FloatArray, GridBelief, IntArray
from recrawl.model.arrays import starts_of_runs
from recrawl.model.compiled import can_compile, compiled
from recrawl.model.grid_belief import WeightArray, doubling

SMALLEST = 1e-37
"""Close to the least that float32 holds in full precision."""
_SHORTEST, _LONGEST = 1e-200, 1e200
"""Gaps beyond count as this long, so that likelihoods stay above 0 and sums finite. Seconds, or any unit."""
_FAR = 300.0
"""λτ of the slowest rate above which e^{−λτ} is taken relative to it, so that it does not vanish for all rates."""
_VANISHING = 1e-280
"""A product of likelihoods that would be less is kept as a logarithm, and a new one begins."""
_BLOCK = 16_384


def pool(belief: GridBelief, looks: Looks) -> None:
    """Multiply weights by the likelihood of all looks, without filter. O(looks · rates)."""
    if can_compile():
        _pool_compiled(belief.weights, belief.rates, doubling(belief.rates), *looks)
    else:
        _pool_numpy(belief.weights, belief.rates, looks)


def fold(belief: GridBelief, looks: Looks, prior: GridBelief, of: IntArray, jump: float) -> None:
    """One look after the other; before each the page may have jumped to a rate from row ``of[i]`` of ``prior``.

    ``jump`` is the mean time between jumps; inf for none. O(looks · rates); the numpy path takes as many steps as the
    longest history has looks.
    """
    if can_compile():
        _fold_compiled(belief.weights, belief.rates, doubling(belief.rates), *looks, prior.weights, of, jump)
    else:
        _fold_numpy(belief, looks, prior, of, jump)


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


def _pool_numpy(weights: WeightArray, rates: FloatArray, looks: Looks) -> None:
    counts = looks.last - looks.first
    page = np.repeat(np.arange(len(counts)), counts)
    place = np.arange(len(page)) + np.repeat(looks.first - (np.cumsum(counts) - counts), counts)
    gaps, changed = np.clip(looks.gaps[place], _SHORTEST, _LONGEST), looks.changed[place]
    quiet = np.bincount(page[~changed], gaps[~changed], len(counts))
    loud_page, loud_gap = page[changed], gaps[changed]
    ends = np.searchsorted(loud_page, np.arange(len(counts) + 1))
    for start in range(0, len(counts), _BLOCK):
        stop = min(start + _BLOCK, len(counts))
        rows = looks.row[start:stop]
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


def _fold_numpy(belief: GridBelief, looks: Looks, prior: GridBelief, of: IntArray, jump: float) -> None:
    """The k-th looks at all pages at once, for k = 0, 1, …; pages by falling length, so the live ones lead."""
    counts = looks.last - looks.first
    by_length = np.argsort(-counts, kind="stable")
    for start in range(0, len(by_length), _BLOCK):
        pages = by_length[start : start + _BLOCK]
        rows = looks.row[pages]
        held, own = belief.weights[rows].astype(np.float64), prior.weights[of[pages]].astype(np.float64)
        falling = -counts[pages]
        live = np.searchsorted(falling, -np.arange(1, -int(falling.min(initial=0)) + 1), side="right")
        for k, n in enumerate(live.tolist()):
            where = looks.first[pages[:n]] + k
            gap = np.clip(looks.gaps[where], _SHORTEST, _LONGEST)[:, None]
            stay = np.exp(-gap / jump)
            moved = stay * held[:n] - np.expm1(-gap / jump) * own[:n]
            moved *= _likelihood(gap * belief.rates, looks.changed[where])
            held[:n] = np.maximum(moved / moved.sum(axis=1, keepdims=True), SMALLEST)
        belief.weights[rows] = held


def _likelihood(x: FloatArray, changed: BoolArray) -> FloatArray:
    """Of one look a page, at x = λτ; up to a factor where no rate would be left otherwise."""
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
