r"""What all factors of operational time learn from: the changes to be expected in each piece of a gap.

A look after operational time Λ at a page of rate λ finds a change with probability 1 − e^{−x}, x = λΛ. If it does,
x/(1 − e^{−x}) changes are to be expected in the gap, spread over it in proportion to the intensity; if not, none
(algorithms §5). Dividing the expected changes by the exposure, piece by piece, is the EM step for any factor of a
product of piecewise constant ones:

    factor ← (a + Σ expected changes) / (a/prior + Σ λ·Λ/factor),

with a the changes that what was held before is worth. Over all looks this is one round of EM; look by look it is
online EM.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from recrawl.estimate.operational import OperationalTime, detected_before
from recrawl.estimate.operational_pieces import Pieces, cut
from recrawl.estimate.operational_tables import StepTable
from recrawl.model import AnyArray, BoolArray, FloatArray, Histories, IntArray

_SMALLEST_X = 1e-300
"""Keeps 0/0 away; the limit of x/(1 − e^{−x}) at 0 is 1."""


@dataclass(frozen=True, slots=True)
class Looks:
    """Looks that closed a gap, as columns: which page, from when to when, and what was found."""

    row: IntArray
    start: FloatArray
    """The look before."""
    end: FloatArray
    """This look."""
    changed: BoolArray
    last_change: FloatArray
    """The last look up to ``start`` that found a change; NaN if none did."""

    def __len__(self) -> int:
        return len(self.row)

    @classmethod
    def of(cls, histories: Histories) -> Looks:
        """All looks of all pages, by page and time. O(gaps)."""
        end = histories.look_times()
        before = detected_before(histories, end)
        return cls(histories.row_of_gap(), end - histories.gaps, end, histories.changed, before)

    def take(self, which: AnyArray | slice) -> Looks:
        """The looks at these positions, or where this mask is true."""
        return Looks(self.row[which], self.start[which], self.end[which], self.changed[which], self.last_change[which])


@dataclass(frozen=True, slots=True)
class Expectation:
    """What looks say about each piece of their gaps, given rates and operational time as they are held now."""

    pieces: Pieces
    row: IntArray
    """Page of each piece."""
    exposure: FloatArray
    """λ·Λ of each piece: changes that were to be expected beforehand."""
    found: FloatArray
    """1/(1 − e^{−x}) for pieces of a gap that ended in a change, else 0: expected changes are ``found · exposure``."""

    @property
    def changes(self) -> FloatArray:
        """Changes to be expected in each piece after the look."""
        return self.found * self.exposure


def expect(time: OperationalTime, looks: Looks, rates: FloatArray) -> Expectation:
    """The E-step: ``rates[k]`` is the rate, per operational second, of the page of look k. O(pieces)."""
    pieces = cut(looks.start, looks.end, time.steps(looks.row, looks.last_change))
    row = looks.row[pieces.gap]
    exposure = rates[pieces.gap] * time.passed(row, pieces)
    x = np.bincount(pieces.gap, exposure, len(looks))
    found = np.where(looks.changed, 1.0 / -np.expm1(-np.maximum(x, _SMALLEST_X)), 0.0)
    return Expectation(pieces, row, exposure, found[pieces.gap])


@dataclass(slots=True)
class StepCounts:
    """What is known of a table of steps: changes and exposure on each. Grows by folding; see the module."""

    edges: FloatArray
    prior: FloatArray
    """The factors before any look."""
    strength: float
    """How many changes the prior is worth, on each step."""
    changes: FloatArray
    exposure: FloatArray
    """Changes to be expected if the factor were 1."""
    usual: int
    """The step of factor 1: rates and factors are only known up to a factor between them, and this fixes it."""
    unit: float = 1.0
    """What all factors are divided by; see :meth:`settle`."""

    @classmethod
    def of(cls, edges: FloatArray, prior: FloatArray, strength: float, usual: int) -> StepCounts:
        """Nothing but the prior."""
        return cls(edges, prior, strength, np.zeros(len(prior)), np.zeros(len(prior)), usual)

    def table(self) -> StepTable:
        """The factors as they are known now."""
        raw = (self.strength + self.changes) / (self.strength / self.prior + self.exposure)
        return StepTable(self.edges, raw / self.unit)

    def settle(self) -> None:
        """Make the usual step 1, before rates are learned anew; while rates stay, so must the unit."""
        self.unit *= float(self.table().factor[self.usual])

    def add(self, step: IntArray, held: StepTable, expected: Expectation) -> None:
        """Fold in looks; ``held`` is the table under which they were expected. O(pieces)."""
        steps = len(self.prior)
        self.changes += np.bincount(step, expected.changes, steps)
        self.exposure += np.bincount(step, expected.exposure, steps) / held.factor

    def clear(self) -> None:
        """Forget all looks: a new round of EM begins."""
        self.changes[:] = 0.0
        self.exposure[:] = 0.0
