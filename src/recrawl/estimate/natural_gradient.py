r"""The online estimator.

One natural-gradient step of the likelihood an observation, O(1) in time and memory (algorithms §5).

θ = ln λ. An observation after a gap τ, x = λτ, has the score B(x) if it found a change and −x if not (B(x) = x/(eˣ −
1)), and the expected information x·B(x). Each observation adds its information to I and moves θ by its score over all
of I:

    I ← I + x·B(x),   θ ← θ + clip((z·B(x) − (1 − z)·x)/I, ±1.5),   I = 1 at the start.

Two floats per page, any gaps, no observation kept. As observations accumulate it comes as close to the truth as maximum
likelihood; early observations weigh on it longer. The order of the observations matters. The start counts as one unit
of information, about as much as two well-chosen observations.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from recrawl.estimate.gap_columns import refuse_bad_observations
from recrawl.estimate.point_evidence import bernoulli, sound
from recrawl.model import BoolArray, FloatArray, Histories, IntArray
from recrawl.model.compiled import can_compile, compiled

_MOST = 1.5
_LARGEST_X = 700.0
_WORTH_COMPILING = 200_000
_FEW_PAGES = 16
"""So few pages side by side are cheaper one observation of a time."""


@dataclass(frozen=True, slots=True)
class OnlineRates:
    """The state of n pages; :func:`update` changes it in place."""

    log_rate: FloatArray
    """θ = ln λ, λ per second."""
    information: FloatArray
    """I, ≥ 1: how much was learned about θ."""

    @classmethod
    def starting_at(cls, rate: FloatArray) -> OnlineRates:
        """Pages nobody observed yet, each believed to change at its ``rate`` > 0."""
        return cls(np.log(rate), np.ones(len(rate)))

    def __len__(self) -> int:
        return len(self.log_rate)

    def rates(self) -> FloatArray:
        """λ of each page, per second."""
        return np.exp(self.log_rate)


def fit(histories: Histories, start: FloatArray) -> OnlineRates:
    """The state after all observations, from the rates ``start``, one a page.

    The same as :func:`update` observation by observation.

    >>> from recrawl.model import Visits
    >>> h = Histories.from_visits(Visits.of([1, 1], [0.0, 1.0], verdict=[0, 2]))
    >>> fit(h, np.array([1.0])).rates().round(6).tolist()
    [1.444668]
    """
    histories = sound(histories)
    state = OnlineRates.starting_at(start)
    update(state, histories.row_of_gap(), histories.gaps, histories.changed)
    return state


def update(state: OnlineRates, rows: IntArray, gap: FloatArray, changed: BoolArray) -> None:
    """Update ``state`` **in place** with new observations: O(1) per observation, for any number of pages.

    ``rows[k]`` is the row of the page observed after ``gap[k]`` seconds, > 0. A row may occur several times; its
    observations are folded in the order given.

    Raises:
        ValueError: a gap is not positive and finite (the message names the row), or a row is none of the state.
    """
    refuse_bad_observations(rows, gap, changed, len(state))
    if len(gap) >= _WORTH_COMPILING and can_compile():
        # a view with steps would be compiled for again
        rows, gap, changed = np.ascontiguousarray(rows), np.ascontiguousarray(gap), np.ascontiguousarray(changed)
        fold(state.log_rate, state.information, rows, gap, changed)
    else:
        fold_by_numpy(state.log_rate, state.information, rows, gap, changed)


def fold_by_numpy(
    log_rate: FloatArray, information: FloatArray, rows: IntArray, gap: FloatArray, changed: BoolArray
) -> None:
    """The k-th observations of all rows at once, for k = 0, 1, ….

    The long rest of a few rows observation by observation.
    """
    order = np.argsort(rows, kind="stable")
    heads = np.flatnonzero(np.diff(rows[order], prepend=-1))
    counts = np.diff(np.append(heads, len(rows)))
    by_length = np.argsort(-counts, kind="stable")
    heads, counts = heads[by_length], counts[by_length]
    live = np.searchsorted(-counts, -np.arange(1, counts.max(initial=0) + 1), side="right")
    wide = int((live > _FEW_PAGES).sum())
    for k, n in enumerate(live[:wide].tolist()):
        where = order[heads[:n] + k]
        row = rows[where]
        x = np.exp(log_rate[row]) * gap[where]
        pull = bernoulli(x)
        information[row] += x * pull
        log_rate[row] += np.clip(np.where(changed[where], pull, -x) / information[row], -_MOST, _MOST)
    for head, count in zip(heads[counts > wide].tolist(), counts[counts > wide].tolist(), strict=True):
        rest = order[head + wide : head + count]
        one = fold.__wrapped__  # type: ignore[attr-defined]  # the kernel as plain Python
        one(log_rate, information, rows[rest].tolist(), gap[rest].tolist(), changed[rest].tolist())


@compiled
def fold(log_rate: FloatArray, information: FloatArray, rows: IntArray, gap: FloatArray, changed: BoolArray) -> None:
    """One observation after the other."""
    for k in range(len(rows)):
        row = rows[k]
        x = math.exp(log_rate[row]) * gap[k]
        pull = x / math.expm1(x) if x < _LARGEST_X else 0.0
        information[row] += x * pull
        step = (pull if changed[k] else -x) / information[row]
        log_rate[row] += min(max(step, -_MOST), _MOST)
