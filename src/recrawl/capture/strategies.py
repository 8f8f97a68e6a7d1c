"""Every capture strategy by the name users call it."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from types import MappingProxyType

from recrawl.capture.bfs import BreadthFirst
from recrawl.capture.dfs import DepthFirst
from recrawl.capture.hottest import HottestFirst, HottestLast
from recrawl.capture.revisited import Revisited, RevisitOrder
from recrawl.capture.sharc_offline import SharcOffline
from recrawl.capture.strategy import Strategy, Terms

MakeStrategy = Callable[[Terms], Strategy]

_BASELINES: dict[str, Callable[[], Strategy]] = {
    "bfs": BreadthFirst,
    "dfs": DepthFirst,
    "hottest-first": HottestFirst,
    "hottest-last": HottestLast,
}


def _whatever_the_terms(make: Callable[[], Strategy]) -> MakeStrategy:
    return lambda _: make()


def _revisited(make: Callable[[], Strategy], order: RevisitOrder) -> MakeStrategy:
    return lambda _: Revisited(make(), order)


_SINGLE_VISIT: dict[str, MakeStrategy] = {
    **{name: _whatever_the_terms(make) for name, make in _BASELINES.items()},
    "sharc-offline": _whatever_the_terms(SharcOffline),
}
_VISIT_REVISIT: dict[str, MakeStrategy] = {
    f"{name}-{order.value}": _revisited(make, order) for name, make in _BASELINES.items() for order in RevisitOrder
}

STRATEGIES: Mapping[str, MakeStrategy] = MappingProxyType(_SINGLE_VISIT | _VISIT_REVISIT)
"""How to make each strategy for the terms of a capture."""
REVISITING = frozenset(_VISIT_REVISIT)
"""The names of those that see every page twice, for coherence; the others visit once, for low blur."""
OFFLINE = frozenset({"sharc-offline"})
"""The names of those whose plan needs all pages beforehand: pages they hear of later come behind it."""
