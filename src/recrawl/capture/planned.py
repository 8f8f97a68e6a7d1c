"""A strategy that follows a plan made over all pages known before the first visit: what every offline one is."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable

import numpy as np

from recrawl.capture.decision import Decision, Proven
from recrawl.capture.strategy import KnownPages
from recrawl.model import CapturePlan, FloatArray, IntArray

Planner = Callable[[FloatArray, FloatArray], CapturePlan | Decision]
"""Rates and weights of all pages to their slots: visits first, then revisits, none left out. A :class:`Decision` says
more than the slots."""


class Planned:
    """Carries out the plan of a :data:`Planner`, which is asked once, at the first question that finds pages.

    Pages that turn up later are outside the plan. They are visited behind it, in the order found, and are seen again
    before it, in reverse: their intervals lie inside those of the plan.
    """

    def __init__(self, planner: Planner) -> None:
        self._planner = planner
        self._known = KnownPages()
        self._found: list[tuple[int, float, float]] = []
        self._waiting: deque[int] = deque()
        self._again: list[int] = []
        self._unplanned: list[int] = []
        self._last: int | None = None
        self._revisits = False
        self._visits_one_once = False
        self._planned = False
        self._hopeless: IntArray | None = None
        self._proven: Proven | None = None

    def discover(self, page: IntArray, rate: FloatArray, weight: FloatArray | None = None) -> None:
        """Collect pages for the plan, or put them behind it."""
        new = self._known.admit(page, rate, weight)
        if self._planned:
            self._waiting.extend(new.page)
            self._unplanned.extend(new.page)
        else:
            self._found.extend(zip(new.page, new.rate, new.weight, strict=True))

    def next_page(self) -> int | None:
        """The next page of the plan."""
        if not self._planned and self._found:
            self._make_plan()
        if not self._waiting:
            return None
        self._last = self._waiting.popleft()
        return self._last

    def revisits(self) -> IntArray:
        """As planned, around the pages that were not. A page still waiting has nothing to be compared with."""
        if not self._revisits:
            return np.empty(0, dtype=np.int64)
        waiting = set(self._waiting)
        again = [page for page in self._unplanned[::-1] + self._again if page not in waiting]
        if self._visits_one_once and again and again[0] == self._last:
            again = again[1:]
        return np.array(again, dtype=np.int64)

    def given_up(self) -> IntArray | None:
        """The pages that the plan gives up, in the order found."""
        return self._hopeless

    def proven(self) -> Proven | None:
        """What is proven of the plan."""
        return self._proven

    def _make_plan(self) -> None:
        page, rate, weight = (np.array(column) for column in zip(*self._found, strict=True))
        made = self._planner(rate, weight)
        decision = made if isinstance(made, Decision) else Decision(made)
        plan, self._proven = decision.plan, decision.proven
        self._hopeless = None if decision.hopeless is None else page[decision.hopeless]
        self._waiting.extend(page[np.argsort(plan.visit)].tolist())
        if plan.revisit is not None:
            self._revisits = True
            self._again = page[np.argsort(plan.revisit)].tolist()
            self._visits_one_once = bool((plan.revisit == plan.visit).any())
        self._found.clear()
        self._planned = True
