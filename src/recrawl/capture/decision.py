"""What a strategy can say of its own decisions, beside the order of the pages: whom it gave up, what it can prove.

Both are asked for by the statement about a capture. A strategy that has nothing to say leaves the methods out, or
answers ``None``.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol, runtime_checkable

from recrawl.model import BoolArray, CapturePlan, IntArray


@runtime_checkable
class GivesUp(Protocol):
    """A strategy that gives pages up, and says which."""

    def given_up(self) -> IntArray | None:
        """The pages it gave up so far; ``None`` if it does not decide that."""
        ...


@runtime_checkable
class ProvesBound(Protocol):
    """A strategy that knows how far from the best its plan can be."""

    def proven(self) -> Proven | None:
        """What is proven of its plan; ``None`` if nothing is, or there is no plan yet."""
        ...


@dataclass(frozen=True, slots=True)
class Proven:
    """What the plan of a capture is worth, and what no plan exceeds."""

    pages: int
    """Pages in the plan; those found later are outside of it."""
    expected_coherence: float
    """Expected weight of the pages that are the same at visit and revisit, by the rates believed (SHARC 5.6)."""
    bound: float
    """No order of visits and revisits of these pages has more."""

    @property
    def gap(self) -> float:
        """How far from the optimum the plan can be, as a share of the bound.

        >>> Proven(3, 1.5, 2.0).gap
        0.25
        """
        return (self.bound - self.expected_coherence) / self.bound if self.bound else 0.0


@dataclass(frozen=True, slots=True)
class Decision:
    """A plan of all pages, and what there is to say of it."""

    plan: CapturePlan
    hopeless: BoolArray | None = None
    """Which pages it gives up, one value a page; ``None`` if it does not decide that."""
    proven: Proven | None = None
