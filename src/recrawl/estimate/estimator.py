"""The seam of this room: evidence in, a belief out. Every estimator can be named, compared and replaced by another.

Evidence is what a method may look at: the histories, and for methods that learn from a page's neighbours the groups the
pages lie in, from the widest to the narrowest. Whoever makes the evidence has already chosen what counts as a change
(``Histories.from_visits(visits, kind)``) and whose time it is told in; :class:`Estimate` carries that along.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol

from recrawl.model import Belief, ChangeKind, FloatArray, Histories, IntArray


@dataclass(frozen=True, slots=True)
class Evidence:
    """What is known of n pages."""

    histories: Histories
    """One row a page. Gaps in seconds, or in operational seconds where ``estimate.operational`` stretched them."""
    levels: tuple[IntArray, ...] = ()
    """The group each row lies in, from wide to narrow (host, cluster); each level divides the one before it."""
    kind: ChangeKind | None = None
    """In what respect a change is a change; ``None`` for any."""
    expected: FloatArray | None = None
    """How often a model expects each page to change by its looks, per second; ``None`` where there is no model."""

    def __len__(self) -> int:
        return len(self.histories)


class Estimator(Protocol):
    """A method to learn the change rates of pages. Implementations are immutable."""

    @property
    def name(self) -> str:
        """What settings, tables and the ``--estimator`` option call it."""
        ...

    def __call__(self, evidence: Evidence) -> Belief:
        """A belief of one row a page. Defined for every history, also for none; never NaN."""
        ...


@dataclass(frozen=True, slots=True)
class Estimate:
    """A belief that says where it comes from."""

    belief: Belief
    method: str
    """Name of the estimator."""
    kind: ChangeKind | None
    """In what respect the pages were found changed; ``None`` for any."""


def estimate(estimator: Estimator, evidence: Evidence) -> Estimate:
    """Run an estimator and keep its name and the kind of change with the belief."""
    return Estimate(estimator(evidence), estimator.name, evidence.kind)
