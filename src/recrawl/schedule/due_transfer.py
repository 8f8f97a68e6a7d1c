r"""Conditional requests: an unchanged page costs c₀ (a 304), a changed one c₁ more (its body).

A visit every t seconds costs (c₀ + c₁(1 − S(t)))/t, so the interval at the price ν solves w·U = ν(c₀ + c₁·C), where
C = 1 − S + t·S' is the value of *changes* (algorithms §1). Divided by its bracket the value still never falls.
"""

from __future__ import annotations

from dataclasses import dataclass

from recrawl.model import AnyArray, Belief, FloatArray
from recrawl.schedule.objectives import Changes, Objective


@dataclass(frozen=True, slots=True)
class BelievedCost:
    """A belief about pages, and what visits to them cost without and with a change."""

    belief: Belief
    cost: FloatArray
    transfer: FloatArray

    def take(self, rows: AnyArray | slice) -> BelievedCost:
        """The pages at these positions."""
        return BelievedCost(self.belief.take(rows), self.cost[rows], self.transfer[rows])

    def value(self, objective: Objective, elapsed: FloatArray) -> FloatArray:
        """U/(c₀ + c₁·C) of each page."""
        bodies = self.transfer * Changes().value(self.belief, elapsed)
        return objective.value(self.belief, elapsed) / (self.cost + bodies)


@dataclass(frozen=True, slots=True)
class ValuePerCost:
    """The value of a visit to each page for what it costs, bodies included."""

    objective: Objective
    pages: BelievedCost

    def __call__(self, elapsed: FloatArray) -> FloatArray:
        """Of each page after so many seconds."""
        return self.pages.value(self.objective, elapsed)

    def take(self, rows: AnyArray | slice) -> ValuePerCost:
        """The pages at these positions."""
        return ValuePerCost(self.objective, self.pages.take(rows))
