"""Keep a living web running for other crawlers to be pointed at."""

from __future__ import annotations

import threading
from collections.abc import Callable

from recrawl.living.quirks import Quirks
from recrawl.living.web import LivingWeb
from recrawl.simulate.web import VirtualWeb
from recrawl.time import Clock


def serve(  # noqa: PLR0913 - by keyword, all optional
    web: VirtualWeb,
    clock: Clock,
    *,
    port: int = 0,
    quirks: Quirks | None = None,
    seed: int = 0,
    announce: Callable[[LivingWeb], None] = lambda living: None,  # noqa: ARG005 - says nothing
    stop: threading.Event | None = None,
) -> LivingWeb:
    """Serve until ``stop`` is set or the user interrupts; returns the web, whose log and truth remain.

    ``announce`` is called once requests are taken. For an accelerated web give an ``AcceleratedClock`` over the
    machine's clock, beginning at ``web.start``.
    """
    living = LivingWeb(web, clock, port=port, quirks=quirks, seed=seed)
    with living:
        announce(living)
        try:
            (stop or threading.Event()).wait()
        except KeyboardInterrupt:
            return living
    return living
