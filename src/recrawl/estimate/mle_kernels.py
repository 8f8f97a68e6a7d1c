"""The likelihood equation of HACS eq. 5 in machine code. The mathematics is that of :mod:`recrawl.estimate.mle`.

Two kernels, one after the other over a block of pages that fits a processor's cache: :func:`gather` reads the gaps,
settles the special cases, and leaves the changed gaps of the other pages as (gap, count); :func:`newton` climbs to
their roots. Gaps are joined where it pays: a page whose gaps are all equal has a closed form, and where few different
lengths occur each is kept once. Sums run in blocks, so that they keep 12 digits over a million gaps.
"""

from __future__ import annotations

import math
from itertools import pairwise

import numpy as np

from recrawl.estimate.point_newton import SETTLED
from recrawl.model import BoolArray, FloatArray, IntArray
from recrawl.model.compiled import compiled

_SETTLED = SETTLED
_MOST_STEPS = 200
_LARGEST_X = 700.0
_BLOCK = 256
"""Terms added up before their sum is added to the total."""
_MOST_LENGTHS = 8
"""Different lengths of gaps up to which a page is compressed; to look for more costs more than it saves."""
_GAPS_AT_A_TIME = 1 << 17


def rates(offsets: IntArray, gaps: FloatArray, changed: BoolArray, *, compress: bool = True) -> FloatArray:
    """λ of each page; NaN without gaps, 0 without a change, eq. 4 with nothing but changes (reading 000.3).

    ``compress=False`` joins no equal gaps: the same rates up to rounding, for tests and to see what joining gains.
    """
    pages = len(offsets) - 1
    out, quiet = np.empty(pages), np.empty(pages)
    # a view with steps would be compiled for anew
    offsets, gaps, changed = np.ascontiguousarray(offsets), np.ascontiguousarray(gaps), np.ascontiguousarray(changed)
    # blocks of pages with about so many gaps; a longer page is a block of its own
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
def gather(  # noqa: C901, PLR0912, PLR0913, PLR0917 - one loop over columns: machine code cannot call our functions
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
        looks = last - first
        ends[page] = head
        if compress and looks > 1 and gaps[first] == gaps[first + 1]:
            other, hits = 0, 0
            for gap, found in zip(gaps[first:last], changed[first:last]):  # noqa: B905 - machine code has no strict
                other += gap != gaps[first]
                hits += found
            if other == 0 and 0 < hits < looks:  # all gaps equal: ln(n/(n − X))/τ
                rate[page] = math.log1p(hits / (looks - hits)) / gaps[first]
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
            rate[page] = 0.0 if looks > 0 else math.nan
            continue
        if changes == looks:  # eq. 4
            row = head
            rate[page] = math.log((looks + 0.5) / 0.5) * looks / loud
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
            if abs(step) <= _SETTLED:
                break
        rate[page] = now
        head = end
