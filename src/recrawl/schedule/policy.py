"""The seam between what is known and what is done: a policy is told visits and asked for due times.

Every implementation passes ``tests/conformance/test_policy.py``. The same object serves the simulator and the live
crawler; it reads no clock and makes no request.
"""

from __future__ import annotations

from typing import Protocol, runtime_checkable

from recrawl.model import FloatArray, IntArray, Pages, Visits


class Policy(Protocol):
    """When each page is worth another visit.

    Rules for all implementations:
     1. State is a fold over what was added and told: the same pages and visits give the same answers, whatever
        the batches were and however the pages were interleaved. So recovery is replay.
     2. Arguments are never modified and never kept; answers are fresh arrays that the caller may modify.
     3. A page nobody added is the caller's mistake: :class:`LookupError` names it.
     4. Policy says what is worth fetching. What is allowed (politeness) and how to treat failures (retry) is
        decided elsewhere, so a page whose last visits failed stays due.
    """

    @property
    def name(self) -> str:
        """What settings and reports call it."""
        ...

    @property
    def price(self) -> float | None:
        """Value a unit of cost must bring to be spent; ``None`` for a policy without prices, or before a fit."""
        ...

    def __len__(self) -> int:
        """How many pages it knows."""
        ...

    def add(self, pages: Pages) -> None:
        """Learn of pages. Ids known already are ignored, also their new columns."""
        ...

    def tell(self, visits: Visits) -> None:
        """Fold in visits to known pages, in the order of time for each page; pages in any order.

        A visit that is not after the last look at its page is ignored: telling it again changes nothing. A visit
        without an answer or a verdict (after the opening look) does not reset the time elapsed.
        """
        ...

    def fit(self, budget: float, now: float) -> None:
        """Adapt to a budget, in units of cost per second, and to all pages and visits told so far.

        Policies without a budget do nothing. May be called at any time, also without pages. Between two fits
        ``tell`` moves single pages; the price stays.
        """
        ...

    def due(self, page: IntArray, now: float) -> FloatArray:
        """When each of these pages should be visited next, seconds since the epoch; a fresh array.

        A page that was never seen is due at its discovery. A page that was seen is due after its last look, and may
        be overdue, i.e. due before ``now``. ``inf`` means never.
        """
        ...

    def urgency(self, page: IntArray, now: float) -> FloatArray:
        """How much each of these pages wants a visit at ``now``, ≥ 0: at least 1 once it is due, below 1 before.

        Who goes first where not all that is due can be visited: the higher, the sooner. A page that was never seen
        wants it without limit (inf). A fresh array.
        """
        ...


@runtime_checkable
class Replicable(Protocol):
    """A policy that learns in steps over all it was told, and hands its answers to a process that must not wait.

    Every policy pickles, so that it can be fitted in one process and asked in another.
    """

    def replica(self) -> Policy:
        """A lighter twin that answers as this policy does now and takes O(1) a visit from then on.

        It folds in what it is told in passing and leaves the steps over all visits to this one, so its answers are
        provisional until the next replica replaces it. It shares memory with this policy: pickle it, then drop it.
        """
        ...


@runtime_checkable
class HearsSignals(Protocol):
    """A policy that also hears what others say of changes: sitemaps, feeds."""

    def signal(self, page: IntArray, time: FloatArray) -> None:
        """Note that something outside said, at ``time``, that a page changed. One heard again counts once."""
        ...
