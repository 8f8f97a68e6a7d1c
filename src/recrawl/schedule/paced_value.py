r"""The value of visits to very many pages at once, each with its own clock: one pass over the weights of a grid.

With x = λΛ at the operational time Λ, d = 1 − e^{−x}, h = x − d, g = x·d − h and the pace m (``schedule.paced``), at
each rate of the grid

    freshness g/(λm),   changes g,   harmonic h/(λm),   age (x²/2 − g)/(λm)²,   blur x²/(2λm),

and the objective is a sum of these with its basic weights. Two exponentials a page: on half octaves d and h double
along with x, d ← d(2 − d) and h ← 2h + d², without loss however small they are.
"""

from __future__ import annotations

import math

import numpy as np

from recrawl.model import Belief, FloatArray, GridBelief, IntArray
from recrawl.model.compiled import can_compile, compiled
from recrawl.model.grid_belief import WeightArray, doubling
from recrawl.schedule.objectives import Basics, Objective, basics_of
from recrawl.schedule.paced import Paced

POWERS = (1, 0, 1, 2, 1)
"""Of the pace that the basic objectives are divided by."""
_TILE = 16
_SMALL = 0.02
"""Below this x the difference x − d would cancel."""


def paced_value(
    objective: Objective, belief: Belief, rows: IntArray, passed: FloatArray, pace: FloatArray
) -> FloatArray:
    """U of visits to rows of a belief when ``passed`` operational seconds have gone by. O(rows · rates)."""
    basics = basics_of(objective)
    if isinstance(belief, GridBelief) and basics is not None and can_compile():
        out = np.empty(len(rows))
        time, speed = (np.ascontiguousarray(column, dtype=np.float64) for column in (passed, pace))
        _grid(
            belief.weights, belief.rates, doubling(belief.rates), rows, time, speed, _parts(basics, belief.rates), out
        )
        return out
    return objective.value(Paced(belief.take(rows), pace), passed / pace)


def _parts(basics: Basics, rates: FloatArray) -> FloatArray:
    """What g, h and x²/2 count for at each rate, by the power of the pace they are divided by. Shape (3, 3, K)."""
    freshness, changes, harmonic, age, blur = basics
    nothing, even = np.zeros_like(rates), np.ones_like(rates)
    return np.stack(
        [
            [changes * even, nothing, nothing],
            [freshness / rates, harmonic / rates, blur / rates],
            [-age / rates**2, nothing, age / rates**2],
        ]
    )


@compiled
def _grid(  # noqa: C901, PLR0912, PLR0913, PLR0917 - a kernel is one loop over plain arrays
    weights: WeightArray,
    rates: FloatArray,
    step: int,
    rows: IntArray,
    passed: FloatArray,
    pace: FloatArray,
    parts: FloatArray,
    out: FloatArray,
) -> None:
    # A tile of pages at a time, because each rate waits for the one before it, but no page for another.
    size = len(rates)
    d, h = np.empty((size, _TILE)), np.empty((size, _TILE))
    held, time, total, value = np.zeros((size, _TILE)), np.zeros(_TILE), np.empty(_TILE), np.empty((3, _TILE))
    for start in range(0, len(rows), _TILE):
        pages = min(_TILE, len(rows) - start)
        for j in range(pages):
            time[j] = passed[start + j]
            for k in range(size):
                held[k, j] = weights[rows[start + j], k]
        total[:] = 0.0
        value[:] = 0.0
        for k in range(size):
            if k < step:
                for j in range(pages):
                    x = rates[k] * time[j]
                    d[k, j] = -math.expm1(-x)
                    small = x * x * (0.5 - x * (1 / 6 - x * (1 / 24 - x / 120)))
                    h[k, j] = small if x < _SMALL else x - d[k, j]
            else:
                for j in range(_TILE):
                    before = d[k - step, j]
                    h[k, j] = 2.0 * h[k - step, j] + before * before
                    d[k, j] = before * (2.0 - before)
            for j in range(_TILE):
                total[j] += held[k, j]
            for power in range(3):
                of_g, of_h, of_square = parts[power, 0, k], parts[power, 1, k], parts[power, 2, k]
                if of_g != 0.0 or of_h != 0.0 or of_square != 0.0:
                    for j in range(_TILE):
                        x = rates[k] * time[j]
                        g = x * d[k, j] - h[k, j]
                        value[power, j] += held[k, j] * (of_g * g + of_h * h[k, j] + of_square * 0.5 * x * x)
        for j in range(pages):
            m = pace[start + j]
            out[start + j] = max(value[0, j] + value[1, j] / m + value[2, j] / (m * m), 0.0) / total[j]
