"""The Estimator seam: evidence in, a belief out.

Evidence is what a method may read: the histories, and for methods that learn from related pages the groups of the
pages, from the widest to the narrowest. The caller has already chosen what counts as a change
(``Histories.from_visits(visits, kind)``) and whose time it is in; :class:`RateEstimate` carries that along.

Every implementation passes :class:`recrawl.testing.EstimatorConformance`. Packages register estimators as entry points
of the group ``recrawl.estimators``: an estimator, or a callable without arguments that returns one.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol, runtime_checkable

from recrawl.model import Belief, ChangeKind, FloatArray, Histories, IntArray


@dataclass(frozen=True, slots=True)
class RateEvidence:
    """What is known of n pages."""

    histories: Histories
    """One row a page. Gaps in seconds, or in operational seconds where ``estimate.operational`` stretched them."""
    levels: tuple[IntArray, ...] = ()
    """The group of each row, from wide to narrow (host, cluster); each level divides the one before it."""
    kind: ChangeKind | None = None
    """In what respect a change is a change; ``None`` for any."""
    expected: FloatArray | None = None
    """How often a model expects each page to change by its observations, per second; ``None`` where there is no
    model."""

    def __len__(self) -> int:
        return len(self.histories)


@runtime_checkable
class Estimator(Protocol):
    """A method that estimates the change rates of pages. Implementations are immutable.

    Rates are per second, gaps are seconds.

    Rules for all implementations:
     1. The belief has one row a page, in the order of the evidence. It is defined for every history, also for one
        without gaps and for none; it is never NaN.
     2. An estimator is a function: equal evidence gives equal beliefs, and the evidence is not modified.
     3. The position of a page in the evidence makes no difference, beyond rounding.
     4. Estimator and belief pickle.
     5. O(gaps) or O(gaps log gaps), without a Python loop over pages.
    """

    @property
    def name(self) -> str:
        """The name in settings, tables and the ``--estimator`` option. Not empty."""
        ...

    def __call__(self, evidence: RateEvidence) -> Belief:
        """A belief of one row a page.

        Raises:
            InputError: the evidence is invalid, such as a negative gap; the page is named.
        """
        ...


@dataclass(frozen=True, slots=True)
class RateEstimate:
    """A belief with its provenance."""

    belief: Belief
    method: str
    """Name of the estimator."""
    kind: ChangeKind | None
    """In what respect the pages were found changed; ``None`` for any."""


def estimate(estimator: Estimator, evidence: RateEvidence) -> RateEstimate:
    """Run an estimator and keep its name and the kind of change with the belief."""
    return RateEstimate(estimator(evidence), estimator.name, evidence.kind)
