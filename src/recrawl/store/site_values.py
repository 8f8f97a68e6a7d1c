"""What a store holds of captures of whole sites: what was asked for, the pages found, and each step."""

from __future__ import annotations

from dataclasses import dataclass

from recrawl.model import FloatArray, IntArray


@dataclass(frozen=True, slots=True)
class SiteCapture:
    """The capture of a whole site: what was asked for, and what came of it."""

    id: int
    site: str
    """Where it began: the URL of a page."""
    terms: str
    """What was asked for, as JSON."""
    delay: float
    """Seconds of one slot."""
    started: float
    finished: float
    """When it was complete; infinity if it is not."""
    statement: str
    """How good it is, as JSON; empty until it is complete."""

    @property
    def is_finished(self) -> bool:
        """False if there is something left to resume."""
        return self.finished < float("inf")


@dataclass(frozen=True, slots=True)
class FoundPages:
    """Pages of a site capture in the order in which they were found. Each has its place in this order as its number."""

    page: IntArray
    via: IntArray
    """Number of the page it was found on, -1 if it was known beforehand."""
    rate: FloatArray
    """Changes per second, as the strategy was told."""
    weight: FloatArray
    """How much the page matters, as the strategy was told."""

    def __len__(self) -> int:
        return len(self.page)


@dataclass(frozen=True, slots=True)
class SiteStep:
    """One step of a site capture: a page was visited or revisited."""

    step: int
    """0, 1, 2, … in the order in which they were made."""
    number: int
    """Of the page, by the order found."""
    revisit: bool
    time: float
    """Of the visit: the request began, seconds since the epoch."""
    outcome: int
    """Of the visit (:class:`recrawl.model.Outcome`)."""
    verdict: int
    """Of the visit (:class:`recrawl.model.Verdict`)."""


@dataclass(frozen=True, slots=True)
class SiteCounts:
    """How far a site capture is."""

    pages: int
    """Found so far."""
    visited: int
    """Those of them that were visited."""
    seen_again: int
    """Those of them that were revisited."""
    last: float
    """When the last step was made, seconds since the epoch; -infinity if there was none."""


@dataclass(frozen=True, slots=True)
class SiteProgress:
    """What one step adds to a site capture."""

    capture: int
    step: SiteStep
    found: FoundPages
    """Pages found in this step."""
    known: int
    """How many were found before it: the first of them gets this number."""


@dataclass(frozen=True, slots=True)
class SiteLog:
    """All that was recorded of a site capture: its state is a fold over this."""

    found: FoundPages
    after: IntArray
    """How many steps had been made when each page was found, the one that found it included."""
    steps: list[SiteStep]
