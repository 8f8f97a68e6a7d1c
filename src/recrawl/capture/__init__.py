"""In which order to visit the pages of a site, and to visit them again, so that the capture is sharp and coherent."""

from collections.abc import Callable, Mapping
from types import MappingProxyType

from recrawl.capture.bfs import BreadthFirst
from recrawl.capture.dfs import DepthFirst
from recrawl.capture.hottest import HottestFirst, HottestLast
from recrawl.capture.sharc_offline import SharcOffline
from recrawl.capture.strategy import Strategy

STRATEGIES: Mapping[str, Callable[[], Strategy]] = MappingProxyType(
    {
        "bfs": BreadthFirst,
        "dfs": DepthFirst,
        "hottest-first": HottestFirst,
        "hottest-last": HottestLast,
        "sharc-offline": SharcOffline,
    }
)
"""Every strategy by the name users call it."""

__all__ = ["STRATEGIES", "BreadthFirst", "DepthFirst", "HottestFirst", "HottestLast", "SharcOffline", "Strategy"]
