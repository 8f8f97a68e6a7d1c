"""The port of the dashboard: what it needs from other packages."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Protocol

import numpy as np

from recrawl.model import FloatArray, IntArray


@dataclass(frozen=True, slots=True)
class PlanSurvey:
    """What is expected of every page that is ever to be visited, as columns by ascending id, and of the whole."""

    facts: Mapping[str, Any]
    """Threshold, budgets and unmet requests, as in ``recrawl plan --json``."""
    page: IntArray
    due: FloatArray
    """When a fit to all that is known wants the page, seconds since the epoch."""
    why: IntArray
    """The reason for that, as a number into ``reasons``."""
    reasons: tuple[str, ...]
    worth: FloatArray
    """Value of a visit now over its price; infinite for what was never seen."""
    p_changed: FloatArray
    """Probability that the page has changed since it was last seen; NaN if it never was."""
    every: FloatArray
    """Seconds between two changes: the middle of the belief, and the ends of its 90 % interval."""
    shortest: FloatArray
    longest: FloatArray
    last_observed: FloatArray
    orders: Mapping[str, IntArray] = field(default_factory=dict)
    """Ids by name of an order: who changes most often, who is worth a visit most."""

    def rows(self, pages: IntArray) -> IntArray:
        """The row of each page; -1 where it is not there."""
        if not len(self.page):
            return np.full(len(pages), -1, np.int64)
        at = np.minimum(np.searchsorted(self.page, pages), len(self.page) - 1)
        return np.where(self.page[at] == pages, at, -1)


class DashboardPort(Protocol):
    """The results of ``recrawl status``, ``plan``, ``rates`` and ``explain``. Thread-safe."""

    def counts(self) -> dict[str, Any]:
        """How much there is. May take seconds."""
        ...

    def work(self) -> dict[str, Any]:
        """Who is at work, how fast, what is due and late, what the budget leaves. Quick if little was done lately."""
        ...

    def survey(self) -> PlanSurvey:
        """What is expected of all pages. May take minutes."""
        ...

    def belief(self, page: int) -> dict[str, list[float]] | None:
        """The belief about a page after each observation: columns ``time``, ``every``, ``shortest``, ``longest``.

        ``None`` while beliefs are being computed.
        """
        ...

    def explanation(self, page: int, at: float | None, *, changed: bool) -> dict[str, Any]:
        """Why the last visit up to a time (that found a change) counted as it did, with both versions side by side."""
        ...

    def in_words(self, every: float, shortest: float, longest: float) -> str:
        """How often something changes, as people say it."""
        ...

    def failure(self, status: int) -> str:
        """What the status of a failed visit means."""
        ...
