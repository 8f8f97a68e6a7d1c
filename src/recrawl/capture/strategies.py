"""Every capture strategy by the name users call it."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from types import MappingProxyType

from recrawl.capture.bfs import BreadthFirst
from recrawl.capture.decision import Decision
from recrawl.capture.dfs import DepthFirst
from recrawl.capture.hottest import HottestFirst, HottestLast
from recrawl.capture.olston_pandey import by_utility
from recrawl.capture.planned import Planned
from recrawl.capture.revisited import Revisited, RevisitOrder
from recrawl.capture.sharc_intervals import place_and_shrink
from recrawl.capture.sharc_intervals_online import SharcIntervalsOnline
from recrawl.capture.sharc_offline import organ_pipes
from recrawl.capture.sharc_online import SharcOnline
from recrawl.capture.sharc_optimal import prove
from recrawl.capture.sharc_revisits import sharc_revisits
from recrawl.capture.sharc_selective import select
from recrawl.capture.sharc_selective_online import SharcSelectiveOnline
from recrawl.capture.sharc_threshold import divide
from recrawl.capture.sharc_threshold_outermost import SharcThresholdOutermost
from recrawl.capture.strategy import Strategy, Terms
from recrawl.errors import ConfigError, meant
from recrawl.model import CapturePlan, FloatArray

MakeStrategy = Callable[[Terms], Strategy]
Plan = Callable[[FloatArray, FloatArray, Terms], CapturePlan | Decision]
"""Rates, weights and terms to slots, and what else there is to say."""

_BASELINES: dict[str, Callable[[], Strategy]] = {
    "bfs": BreadthFirst,
    "dfs": DepthFirst,
    "hottest-first": HottestFirst,
    "hottest-last": HottestLast,
}
_SINGLE_VISIT_PLANS: dict[str, Plan] = {
    "olston-pandey": lambda rate, weight, _: by_utility(rate, weight),
    "sharc-offline": lambda rate, weight, _: organ_pipes(rate, weight),
}
_VISIT_REVISIT_PLANS: dict[str, Plan] = {
    "sharc-revisits": lambda rate, weight, _: sharc_revisits(rate, weight),
    "sharc-threshold": lambda rate, weight, terms: divide(rate, terms.delay, terms.threshold, weight),
    "sharc-intervals": lambda rate, _, terms: place_and_shrink(rate, terms.delay, terms.threshold),
    "sharc-selective": lambda rate, weight, terms: select(rate, terms.delay, weight),
    "sharc-optimal": lambda rate, weight, terms: prove(rate, terms.delay, weight),
}


def _once(make: Callable[[], Strategy]) -> MakeStrategy:
    return lambda _: make()


def _twice(make: Callable[[], Strategy], order: RevisitOrder) -> MakeStrategy:
    return lambda _: Revisited(make(), order)


def _planned(plan: Plan) -> MakeStrategy:
    return lambda terms: Planned(lambda rate, weight: plan(rate, weight, terms))


_SINGLE_VISIT: dict[str, MakeStrategy] = {
    **{name: _once(make) for name, make in _BASELINES.items()},
    **{name: _planned(plan) for name, plan in _SINGLE_VISIT_PLANS.items()},
    "sharc-online": SharcOnline,
}
_VISIT_REVISIT: dict[str, MakeStrategy] = {
    **{f"{name}-{order.value}": _twice(make, order) for name, make in _BASELINES.items() for order in RevisitOrder},
    **{name: _planned(plan) for name, plan in _VISIT_REVISIT_PLANS.items()},
    "sharc-threshold-outermost": SharcThresholdOutermost,
    "sharc-intervals-online": SharcIntervalsOnline,
    "sharc-selective-online": SharcSelectiveOnline,
}

STRATEGIES: Mapping[str, MakeStrategy] = MappingProxyType(_SINGLE_VISIT | _VISIT_REVISIT)
"""How to make each strategy for the terms of a capture."""
REVISITING = frozenset(_VISIT_REVISIT)
"""The names of those that see every page twice, for coherence; the others visit once, for low blur."""
EXPECTING = frozenset({"sharc-online", "sharc-threshold-outermost", "sharc-intervals-online", "sharc-selective-online"})
"""The names of those that ask how many pages are expected (:attr:`Terms.expected`)."""
THRESHOLDED = frozenset({"sharc-threshold", "sharc-threshold-outermost", "sharc-intervals", "sharc-intervals-online"})
"""The names of those that ask for a threshold (:attr:`Terms.threshold`)."""
OFFLINE = frozenset(_SINGLE_VISIT_PLANS) | frozenset(_VISIT_REVISIT_PLANS)
"""The names of those whose plan needs all pages beforehand: pages they hear of later come behind it."""


def strategy_named(name: str) -> MakeStrategy:
    """How to make the strategy that users call so.

    Raises:
        ConfigError: there is none; names that are near are suggested, and all are listed.

    >>> strategy_named("bfs")(Terms(delay=1.0)).next_page() is None
    True
    """
    if name not in STRATEGIES:
        raise ConfigError(f"There is no capture strategy {name!r}.", meant(name, STRATEGIES))
    return STRATEGIES[name]
