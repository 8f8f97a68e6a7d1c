"""Every built-in capture strategy by name, and the base of offline strategies.

An offline strategy follows a plan made over all pages that are known before the first visit.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import partial
from types import MappingProxyType

import numpy as np

from recrawl.capture.pyramid import (
    RevisitedStrategy,
    RevisitOrder,
    SharcThresholdOutermost,
    around_middle,
    divide,
    sharc_revisits,
)
from recrawl.capture.sharc_intervals import SharcIntervalsOnline, place_and_shrink
from recrawl.capture.sharc_optimal import prove
from recrawl.capture.sharc_selective import SharcSelectiveOnline, select
from recrawl.capture.single_visit import (
    BreadthFirst,
    DepthFirst,
    HottestFirst,
    HottestLast,
    SharcOnline,
    by_utility,
    first_visit,
    organ_pipes,
)
from recrawl.capture.strategy import CaptureTerms, KnownPages, PlanDecision, ProvenBound, Strategy, StrategyTraits
from recrawl.model import CapturePlan, FloatArray, IntArray

Planner = Callable[[FloatArray, FloatArray], CapturePlan | PlanDecision]
"""Rates and weights of all pages to their slots: visits first, then revisits, none left out.

A :class:`PlanDecision` says more than the slots.
"""


class PlannedStrategy:
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
        self._proven: ProvenBound | None = None

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

    def proven(self) -> ProvenBound | None:
        """What is proven of the plan."""
        return self._proven

    def _make_plan(self) -> None:
        page, rate, weight = (np.array(column) for column in zip(*self._found, strict=True))
        made = self._planner(rate, weight)
        decision = made if isinstance(made, PlanDecision) else PlanDecision(made)
        plan, self._proven = decision.plan, decision.proven
        self._hopeless = None if decision.hopeless is None else page[decision.hopeless]
        self._waiting.extend(page[np.argsort(plan.visit)].tolist())
        if plan.revisit is not None:
            self._revisits = True
            self._again = page[np.argsort(plan.revisit)].tolist()
            self._visits_one_once = bool((plan.revisit == plan.visit).any())
        self._found.clear()
        self._planned = True


MakeStrategy = Callable[[CaptureTerms], Strategy]
Plan = Callable[[FloatArray, FloatArray, CaptureTerms], CapturePlan | PlanDecision]
"""Rates, weights and terms to slots, and what else there is to say."""

_BASELINES: dict[str, Callable[[], Strategy]] = {
    "bfs": BreadthFirst,
    "dfs": DepthFirst,
    "hottest-first": HottestFirst,
    "hottest-last": HottestLast,
}


# Plans and makers are functions of this module and partials of them, no lambdas: strategies pickle.


def _by_utility(rate: FloatArray, weight: FloatArray, _: CaptureTerms) -> CapturePlan:
    return by_utility(rate, weight)


def _organ_pipes(rate: FloatArray, weight: FloatArray, terms: CaptureTerms) -> CapturePlan:
    """Organ pipes; with a given observation interval the hottest pages next to its middle (SHARC 4.3.3)."""
    if terms.observe is None:
        return organ_pipes(rate, weight)
    times = first_visit(terms, len(rate)) + terms.delay * np.arange(len(rate), dtype=np.float64)
    return around_middle(rate, times, *terms.observe, weight)


def _pyramid(rate: FloatArray, weight: FloatArray, _: CaptureTerms) -> CapturePlan | PlanDecision:
    return sharc_revisits(rate, weight)


def _divided(rate: FloatArray, weight: FloatArray, terms: CaptureTerms) -> CapturePlan | PlanDecision:
    return divide(rate, terms.delay, terms.threshold, weight)


def _shrunk(rate: FloatArray, _: FloatArray, terms: CaptureTerms) -> CapturePlan | PlanDecision:
    return place_and_shrink(rate, terms.delay, terms.threshold)


def _selected(rate: FloatArray, weight: FloatArray, terms: CaptureTerms) -> CapturePlan | PlanDecision:
    return select(rate, terms.delay, weight)


def _proven(rate: FloatArray, weight: FloatArray, terms: CaptureTerms) -> CapturePlan | PlanDecision:
    return prove(rate, terms.delay, weight)


_SINGLE_VISIT_PLANS: dict[str, Plan] = {"olston-pandey": _by_utility, "sharc-offline": _organ_pipes}
_VISIT_REVISIT_PLANS: dict[str, Plan] = {
    "sharc-revisits": _pyramid,
    "sharc-threshold": _divided,
    "sharc-intervals": _shrunk,
    "sharc-selective": _selected,
    "sharc-optimal": _proven,
}


def _once(make: Callable[[], Strategy], _: CaptureTerms) -> Strategy:
    return make()


def _twice(make: Callable[[], Strategy], order: RevisitOrder, _: CaptureTerms) -> Strategy:
    return RevisitedStrategy(make(), order)


@dataclass(frozen=True, slots=True)
class _PlanOnTerms:
    plan: Plan
    terms: CaptureTerms

    def __call__(self, rate: FloatArray, weight: FloatArray) -> CapturePlan | PlanDecision:
        return self.plan(rate, weight, self.terms)


def _planned(plan: Plan, terms: CaptureTerms) -> Strategy:
    return PlannedStrategy(_PlanOnTerms(plan, terms))


_SINGLE_VISIT: dict[str, MakeStrategy] = {
    **{name: partial(_once, make) for name, make in _BASELINES.items()},
    **{name: partial(_planned, plan) for name, plan in _SINGLE_VISIT_PLANS.items()},
    "sharc-online": SharcOnline,
}
_VISIT_REVISIT: dict[str, MakeStrategy] = {
    **{
        f"{name}-{order.value}": partial(_twice, make, order)
        for name, make in _BASELINES.items()
        for order in RevisitOrder
    },
    **{name: partial(_planned, plan) for name, plan in _VISIT_REVISIT_PLANS.items()},
    "sharc-threshold-outermost": SharcThresholdOutermost,
    "sharc-intervals-online": SharcIntervalsOnline,
    "sharc-selective-online": SharcSelectiveOnline,
}

STRATEGIES: Mapping[str, MakeStrategy] = MappingProxyType(_SINGLE_VISIT | _VISIT_REVISIT)
"""How to make each strategy for the terms of a capture."""
REVISITING = frozenset(_VISIT_REVISIT)
"""The names of those that see every page twice, for coherence; the others visit once, for low blur."""
EXPECTING = frozenset({"sharc-online", "sharc-threshold-outermost", "sharc-intervals-online", "sharc-selective-online"})
"""The names of those that ask how many pages are expected (:attr:`CaptureTerms.expected`)."""
THRESHOLDED = frozenset({"sharc-threshold", "sharc-threshold-outermost", "sharc-intervals", "sharc-intervals-online"})
"""The names of those that ask for a threshold (:attr:`CaptureTerms.threshold`)."""
OFFLINE = frozenset(_SINGLE_VISIT_PLANS) | frozenset(_VISIT_REVISIT_PLANS)
"""The names of those whose plan needs all pages beforehand: pages they hear of later come behind it."""


OBSERVING = frozenset({"sharc-offline"})
"""The names of those that ask for an observation interval (:attr:`CaptureTerms.observe`)."""


def built_in_traits(name: str) -> StrategyTraits:
    """What a driver must know of a built-in strategy."""
    return StrategyTraits(
        name in REVISITING, name in OFFLINE, name in EXPECTING, name in THRESHOLDED, name in OBSERVING
    )
