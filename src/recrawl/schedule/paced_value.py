r"""The value of visits to very many pages at once, each with its own clock: one pass over the weights of a grid.

With x = λΛ at the operational time Λ, e = e^{−x} and the pace m (``schedule.paced``), at each rate of the grid

    freshness (1 − e − x·e)/(λm),   changes 1 − e − x·e,   harmonic (x − 1 + e)/(λm),
    age (x²/2 − (1 − e − x·e))/(λm)²,   blur x²/(2λm),

and the objective is a sum of these with its basic weights. Two exponentials a page: on half octaves each e is the
square of that two places before it.
"""

from __future__ import annotations

import math

import numpy as np

from recrawl.model import Belief, FloatArray, GridBelief, IntArray
from recrawl.model.compiled import can_compile, compiled
from recrawl.model.grid_belief import WeightArray, doubling
from recrawl.schedule.objectives import Objective, basics_of
from recrawl.schedule.paced import Paced

POWERS = (1, 0, 1, 2, 1)
"""Of the pace that the basic objectives are divided by."""
_TILE = 16


def paced_value(
    objective: Objective, belief: Belief, rows: IntArray, passed: FloatArray, pace: FloatArray
) -> FloatArray:
    """U of visits to rows of a belief when ``passed`` operational seconds have gone by. O(rows · rates)."""
    basics = basics_of(objective)
    if isinstance(belief, GridBelief) and basics is not None and can_compile():
        out = np.empty(len(rows))
        time, speed = (np.ascontiguousarray(column, dtype=np.float64) for column in (passed, pace))
        step, shares = doubling(belief.rates), np.array(basics, dtype=np.float64)
        _grid(belief.weights, belief.rates, step, rows, time, speed, shares, out)
        return out
    return objective.value(Paced(belief.take(rows), pace), passed / pace)


@compiled
def _grid(  # noqa: PLR0913, PLR0917 - a kernel is one loop over plain arrays
    weights: WeightArray,
    rates: FloatArray,
    step: int,
    rows: IntArray,
    passed: FloatArray,
    pace: FloatArray,
    basics: FloatArray,
    out: FloatArray,
) -> None:
    size = len(rates)
    change, rest = np.empty((size, _TILE)), np.empty((size, _TILE))
    for start in range(0, len(rows), _TILE):
        pages = min(_TILE, len(rows) - start)
        for k in range(min(step, size)):
            for j in range(pages):
                change[k, j] = -math.expm1(-rates[k] * passed[start + j])
                rest[k, j] = math.exp(-rates[k] * passed[start + j])
        for k in range(step, size):
            for j in range(pages):
                before, squared = change[k - step, j], rest[k - step, j] * rest[k - step, j]
                now = before * (2.0 - before)
                change[k, j] = now
                rest[k, j] = 1.0 - now if now < 0.5 else squared  # noqa: PLR2004 - as in model.grid_belief
        for j in range(pages):
            page, t, m = weights[rows[start + j]], passed[start + j], pace[start + j]
            total = fresh = found = age = speed = idle = 0.0
            for k in range(size):
                weight, rate = page[k], rates[k]
                gain = weight * max(change[k, j] - rate * t * rest[k, j], 0.0)
                total += weight
                found += gain
                fresh += gain / rate
                age += gain / (rate * rate)
                idle += weight * change[k, j] / rate
                speed += weight * rate
            value = basics[0] * fresh / m + basics[1] * found + basics[2] * max(t * total - idle, 0.0) / m
            value += basics[3] * max(0.5 * t * t * total - age, 0.0) / (m * m) + basics[4] * 0.5 * speed * t * t / m
            out[start + j] = value / total
