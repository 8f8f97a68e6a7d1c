"""Captures that the dashboard begins: ``recrawl capture`` in processes of their own."""

from __future__ import annotations

import json
import threading
from collections.abc import Callable
from typing import TYPE_CHECKING

from recrawl.capture import OFFLINE, STRATEGIES
from recrawl.cli.capture import DEFAULT_STRATEGY
from recrawl.cli.serving.children import Child, in_workspace
from recrawl.crawl.capture_order import CaptureOrder
from recrawl.errors import ConfigError, ExitCode
from recrawl.formats.seeds import parse_seed
from recrawl.show.dashboard.captures import Order, Work
from recrawl.time import DAY, parse_duration

if TYPE_CHECKING:
    from recrawl.cli.workspace import Workspace
    from recrawl.store.site_values import SiteCapture

MOST_AT_ONCE = 4
"""Captures that run at once."""


class CaptureProcesses:
    """Begins captures, watches and stops them. May be asked by many threads at once."""

    def __init__(self, place: Workspace, clock: Callable[[], float]) -> None:
        self.usual = DEFAULT_STRATEGY
        self.strategies = tuple(STRATEGIES)
        self.planners = tuple(sorted(OFFLINE))
        self._where = in_workspace(place.folder, place.flags)
        self._clock = clock
        self._lock = threading.Lock()
        self._children: dict[str, Child] = {}
        """The latest of each site."""

    def begin(self, order: Order) -> str:
        """Begin a capture; returns its site as it is written."""
        site = parse_seed(order.site.strip(), "").url
        delay = None if not order.delay else _seconds(order.delay)
        CaptureOrder(site=site, strategy=order.strategy, delay=delay, max_pages=order.max_pages)  # makes sense
        options = [f"--strategy={order.strategy}"]
        if delay is not None:
            options.append(f"--delay={delay:.6f}")
        if order.max_pages is not None:
            options.append(f"--max-pages={order.max_pages}")
        if order.from_sitemap:
            options.append("--from-sitemap")
        self._spawn(site, options)
        return site

    def resume(self, site: str) -> None:
        """Go on with the unfinished capture of a site."""
        self._spawn(site, ["--resume"])

    def stop(self, site: str) -> bool:
        """Ask the capture of a site to end; false if none runs that was begun here."""
        with self._lock:
            child = self._children.get(site)
            if child is None or child.code is not None:
                return False
            child.stop()
            return True

    def works(self) -> list[Work]:
        """What was begun here, latest first."""
        with self._lock:
            known = list(self._children.items())
            return [Work(site, child.started, _state(child), child.last_words()) for site, child in reversed(known)]

    def stated(self, capture: SiteCapture) -> list[str]:
        """What is said about a finished capture, in words."""
        from recrawl.cli.capture_output import stored_lines

        return stored_lines(capture, json.loads(capture.statement))

    def close(self) -> None:
        """End all that run. What they did is kept, and each can be resumed."""
        with self._lock:
            for child in self._children.values():
                child.stop()
            for child in self._children.values():
                child.end()
            self._children.clear()

    def _spawn(self, site: str, options: list[str]) -> None:
        with self._lock:
            running = [known for known, child in self._children.items() if child.code is None]
            if site in running:
                raise ConfigError(f"A capture of {site} runs already.", "Wait for its end, or stop it.")
            if len(running) >= MOST_AT_ONCE:
                raise ConfigError(f"{len(running)} captures run already.", "Wait until one of them is done.")
            before = self._children.pop(site, None)
            if before is not None:
                before.end()
            self._children[site] = Child(["capture", *self._where, *options, "--json", "--", site], self._clock())


def _seconds(text: str) -> float:
    """A duration; a bare number is seconds."""
    try:
        seconds = float(text)
    except ValueError:
        return parse_duration(text)
    if not 0 <= seconds <= DAY:
        raise ConfigError(f"A delay of {text} seconds makes no sense.", "Give a number from 0 to 86,400, or like 2s.")
    return seconds


def _state(child: Child) -> str:
    match child.code:
        case None:
            return "stopping" if child.stopping else "running"
        case ExitCode.OK:
            return "done"
        case ExitCode.INTERRUPTED | ExitCode.FORCED:
            return "stopped"
        case _:  # one that is told to stop before it listens has no code of its own
            return "stopped" if child.stopping else "failed"
