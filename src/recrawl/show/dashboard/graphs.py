"""Site graphs of captures, as the bytes that are sent: made once, and again when something was seen since.

Of a large site a graph takes seconds to make, and looks after the capture tell what became of its pages. While a crawl
is at work there is always a newer look; then a graph is kept for so many times the seconds that it took.
"""

from __future__ import annotations

import threading
from collections import OrderedDict
from collections.abc import Callable
from contextlib import AbstractContextManager
from dataclasses import dataclass

from recrawl.show.dashboard.kept import SHARE
from recrawl.show.html import json_of
from recrawl.show.report.graph import graph_data
from recrawl.show.report.site_pages import pages_of_capture
from recrawl.store.base import Store
from recrawl.store.site_values import SiteCapture

MOST_KEPT = 4
"""Graphs that are kept, some megabytes each."""


@dataclass(frozen=True, slots=True)
class _Made:
    text: bytes
    seen: tuple[float, float]
    """When the capture ended, and the latest look of all when the graph was made."""
    until: float
    """Kept until then, whatever was seen since."""


class Graphs:
    """Makes graphs and keeps the latest. May be asked by many threads at once; each is made by one of them."""

    def __init__(self, clock: Callable[[], float]) -> None:
        self._clock = clock
        self._lock = threading.Lock()
        self._made: OrderedDict[int, _Made] = OrderedDict()

    def get(self, one_store: Callable[[], AbstractContextManager[Store]], capture: SiteCapture) -> bytes:
        """The graph of a capture as JSON. Whoever waits for it holds no store: others have questions too."""
        with self._lock, one_store() as store:
            began = self._clock()
            latest = store.latest_visits(1).time
            seen = (capture.finished, float(latest[0]) if len(latest) else float("-inf"))
            made = self._made.get(capture.id)
            ended_alike = made is not None and made.seen[0] == capture.finished
            if made is None or not ended_alike or (made.seen != seen and began >= made.until):
                text = json_of(graph_data(pages_of_capture(store, capture.id), "/pages/{id}"))
                now = self._clock()
                made = _Made(text, seen, now + SHARE * (now - began))
            self._made[capture.id] = made
            self._made.move_to_end(capture.id)
            while len(self._made) > MOST_KEPT:
                self._made.popitem(last=False)
            return made.text
