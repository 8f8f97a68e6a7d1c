"""Policies that explore: Thompson sampling and optimism. For comparison; the ``valued`` policies do not need them.

Both lost to the plain average over the belief in measurements (algorithms §3): the average never gives up a page with
little evidence.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from recrawl.estimate.point_evidence import PointBelief
from recrawl.model import FloatArray, GridBelief, IntArray
from recrawl.schedule.learning.replayable_chance import uniform
from recrawl.schedule.policies.valued import ValuedPolicy

_BEST = 0.69
"""Share of the belief whose mean, for a normal one, lies half a standard deviation above the mean of all of it."""
_BLOCK = 4_096


class Thompson(ValuedPolicy):
    """After each observation draw a rate from the belief and treat it as true until the next observation.

    This is Thompson sampling.

    Draws follow from the seed, the id of the page and the time of its last observation: the same for any batches.
    """

    _averages = False

    def __init__(self, *arguments: Any, seed: int = 0, **options: Any) -> None:  # noqa: ANN401 - as those of Valued
        super().__init__(*arguments, **options)
        self._seed = seed

    @property
    def name(self) -> str:
        """``thompson-`` and the objective."""
        return f"thompson-{self._objective.name}"

    def _value(self, rows: IntArray, since: FloatArray, passed: FloatArray, pace: FloatArray) -> FloatArray:
        belief = _grid(self, rows)
        draw = uniform(self._seed, self._last_visits.pages.id[rows], since)
        below = np.cumsum(belief.weights, axis=1, dtype=np.float64)
        cell = np.minimum((below < draw[:, None] * below[:, -1:]).sum(axis=1), below.shape[1] - 1)
        return self._objective.value(PointBelief(belief.rates[cell] * pace), passed / pace)


class Optimistic(ValuedPolicy):
    """An upper confidence bound: the mean value over the best 69 % of the belief, which never falls while a page waits.

    For a normal spread of values that is half a standard deviation above the mean.
    """

    _averages = False

    @property
    def name(self) -> str:
        """``ucb-`` and the objective."""
        return f"ucb-{self._objective.name}"

    def _value(self, rows: IntArray, since: FloatArray, passed: FloatArray, pace: FloatArray) -> FloatArray:  # noqa: ARG002 - draws nothing
        out = np.empty(len(rows))
        for start in range(0, len(rows), _BLOCK):
            block = slice(start, start + _BLOCK)
            belief, elapsed, speed = _grid(self, rows[block]), passed[block] / pace[block], pace[block]
            values = np.stack(
                [self._objective.value(PointBelief(rate * speed), elapsed) for rate in belief.rates.tolist()], axis=1
            )
            out[block] = _upper_mean(values, belief.weights.astype(np.float64))
        return out


def _upper_mean(values: FloatArray, weights: FloatArray) -> FloatArray:
    """The mean of the best ``_BEST`` of each row."""
    order = np.argsort(-values, axis=1, kind="stable")
    ranked, share = (np.take_along_axis(table, order, axis=1) for table in (values, weights))
    above = np.cumsum(share, axis=1)
    taken = np.diff(np.minimum(above / above[:, -1:], _BEST), axis=1, prepend=0.0)
    return np.asarray((taken * ranked).sum(axis=1) / _BEST)


def _grid(policy: ValuedPolicy, rows: IntArray) -> GridBelief:
    belief = policy._learning.beliefs.of(rows)  # noqa: SLF001 - of the same family
    if not isinstance(belief, GridBelief):
        msg = "exploration needs the grid belief"
        raise TypeError(msg)
    return belief
