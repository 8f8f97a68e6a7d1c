"""The Policy seam: a policy receives visits and returns due times.

Every implementation passes :class:`recrawl.testing.PolicyConformance`. The same object serves the simulator and the
live crawler; it reads no clock and makes no request. Packages register policies as entry points of the group
``recrawl.policies``: a callable without arguments that returns a policy.
"""

from __future__ import annotations

from typing import Protocol, runtime_checkable

from recrawl.model import FloatArray, IntArray, Pages, Visits


@runtime_checkable
class Policy(Protocol):
    """When each page is worth another visit.

    Times are seconds since the epoch, durations seconds, a budget units of cost per second. The caller adds pages
    first; after that ``tell``, ``fit``, ``due`` and ``urgency`` come in any order, from one thread.

    Rules for all implementations:
     1. State is a fold over the added pages and the visits: the same pages and visits give the same answers, whatever
        the batches were and however the pages were interleaved. So recovery is replay.
     2. Arguments are never modified and never stored; answers are fresh arrays that the caller may modify.
     3. A page that was never added is the caller's mistake: :class:`LookupError` names it.
     4. A policy decides what is worth fetching. What is allowed (politeness) and how to treat failures (retry) is
        decided elsewhere, so a page whose last visits failed stays due.
     5. A policy pickles, and the copy answers and goes on as the original: a large crawl fits it in another process.
     6. ``add``, ``tell``, ``due`` and ``urgency`` are O(rows of the argument), amortised, with no Python loop over
        pages; ``fit`` may be O(n log n) over all pages and visits.
    """

    @property
    def name(self) -> str:
        """The name in settings and reports. Not empty."""
        ...

    @property
    def price(self) -> float | None:
        """Threshold: the value a unit of cost must bring, ≥ 0; ``None`` for a policy without one, or before a fit."""
        ...

    def __len__(self) -> int:
        """Number of known pages."""
        ...

    def add(self, pages: Pages) -> None:
        """Add pages. Known ids are ignored, also their new columns."""
        ...

    def tell(self, visits: Visits) -> None:
        """Update the state with visits to known pages, in the order of time for each page; pages in any order.

        A visit that is not after the last observation of its page is ignored, so a repeated visit changes nothing. A
        visit without an answer or a verdict (after the first observation) does not reset the elapsed time.

        Raises:
            LookupError: a page was never added.
        """
        ...

    def fit(self, budget: float, now: float) -> None:
        """Adapt to a budget, in units of cost per second, and to all pages and visits so far.

        Policies without a budget do nothing. May be called at any time, also without pages. Between two fits
        ``tell`` moves single pages; the price stays.

        Raises:
            ConfigError: the budget is negative or not a number.
        """
        ...

    def due(self, page: IntArray, now: float) -> FloatArray:
        """When each of these pages should be visited next, seconds since the epoch; a fresh array.

        A page that was never seen is due at its discovery. A page that was seen is due after its last observation,
        and may be overdue, i.e. due before ``now``. ``inf`` means never.

        Raises:
            LookupError: a page was never added.
        """
        ...

    def urgency(self, page: IntArray, now: float) -> FloatArray:
        """The rank of each of these pages at ``now``, ≥ 0: at least 1 once it is due, below 1 before; a fresh array.

        It orders the visits where not all due pages can be visited: the higher, the sooner. It never falls while a
        page waits, and is ``inf`` for a page that was never seen.
        """
        ...


@runtime_checkable
class ReplicablePolicy(Protocol):
    """A policy whose fit takes long, and which can be queried in another process meanwhile.

    Every policy pickles, so that it can be fitted in one process and queried in another.
    """

    def replica(self) -> Policy:
        """A smaller copy with the answers of this policy, which takes O(1) per later visit.

        Later visits only update their own pages; all steps over many visits are left to the original. So its answers
        are provisional until the next replica replaces it. It shares memory with this policy: pickle it, then drop it.
        """
        ...


@runtime_checkable
class SnapshotPolicy(Protocol):
    """A policy whose state is stored, so that a later process goes on without replaying all visits.

    The state is pickled. It names only classes of pure packages; what the policy was given (functions, models,
    connections) is in ``given`` and not in the state.
    """

    @property
    def given(self) -> tuple[object, ...]:
        """What the policy was made with. A policy made in the same way returns the same, in the same order."""
        ...

    def snapshot(self) -> dict[str, object]:
        """The state: it shares memory with the policy."""
        ...

    def restore(self, state: dict[str, object], pages: Pages) -> bool:
        """Go on from a state; False, and nothing changed, unless it is a state of these pages, or of some of them.

        Pages of the state must be among ``pages``, with the same host, importance and cost.
        """
        ...


@runtime_checkable
class SignalAware(Protocol):
    """A policy that also uses signals of change from outside: sitemaps, feeds."""

    def signal(self, page: IntArray, time: FloatArray) -> None:
        """Add signals, received at ``time``, that a page changed. A repeated signal counts once."""
        ...
