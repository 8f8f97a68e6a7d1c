"""``recrawl capture --plan``: how long a capture would take and how good it would come out, without a request."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
import typer

from recrawl.assess.blur import average_blur
from recrawl.assess.coherence import expected_coherence
from recrawl.capture.walk import LinkGraph, walk
from recrawl.cli.capture_rates import BelievedRates
from recrawl.cli.capture_run import pauses_of
from recrawl.cli.predict_use import expected_changes, foretold_changes
from recrawl.cli.tables import print_json, shown_time
from recrawl.cli.wiring import politeness_of
from recrawl.crawl.capture_opening import known_pages
from recrawl.crawl.scope import SiteScope
from recrawl.errors import InputError
from recrawl.model.words import counted
from recrawl.time import format_duration

if TYPE_CHECKING:
    from recrawl.cli.workspace import Workspace
    from recrawl.crawl.capture_order import CaptureOrder
    from recrawl.store.base import Store


@dataclass(frozen=True, slots=True)
class CaptureForecast:
    """A capture of all known pages, if every answer comes at once and none fails."""

    pages: int
    requests: int
    delay: float
    """Seconds from one request to the next."""
    coherent: float | None
    """Pages expected to be the same at visit and revisit; ``None`` without revisits."""
    blur: float
    """Expected changes a page between a moment asked for and what is shown."""

    @property
    def seconds(self) -> float:
        """From the first request to the last."""
        return max(self.requests - 1, 0) * self.delay


def forecast(place: Workspace, store: Store, order: CaptureOrder, now: float) -> CaptureForecast:
    """What to expect of a capture by what the workspace knows; O(pages) beside the strategy's own work.

    Raises:
        InputError: no page of the site is known.
    """
    pages = known_pages(store, SiteScope(order.scope, (order.seed,)))[: order.max_pages]
    if not len(pages):
        raise InputError(
            f"Nothing is known of {order.site} yet.", "Capture it once, or import what others captured of it."
        )
    usual = politeness_of(place.configuration.settings.politeness)
    told = float(store.hosts(store.pages(pages[:1]).host).delay[0])
    delay = pauses_of(order, usual).pause(0.0, told if told > usual.shortest else None)
    believed = BelievedRates(
        store, now, order.rates, foretold_changes(place, store, now), expected_changes(place, store, now)
    )
    rate = believed(pages)
    no_links = LinkGraph(np.zeros(len(pages) + 1, np.int64), np.empty(0, np.int64))
    path = walk(order.new_strategy(delay), no_links, np.arange(len(pages)), rate)
    again = path.revisited if order.revisits else path.revisited[:0]
    plan = type(path)(path.visited, again).plan()
    visit, revisit = plan.visit_times(0.0, delay), plan.revisit_times(0.0, delay)
    seen_again = revisit if order.revisits else None
    return CaptureForecast(
        len(pages),
        len(path.visited) + len(again),
        delay,
        expected_coherence(rate, revisit - visit) if order.revisits else None,
        average_blur(rate, visit, 0.0, float(revisit.max()), seen_again) if len(pages) > 1 else 0.0,
    )


def print_forecast(found: CaptureForecast, order: CaptureOrder, now: float, json_output: bool) -> None:
    """Words for people, or JSON."""
    if json_output:
        kept = {"site": order.site, "strategy": order.strategy, "pages": found.pages, "requests": found.requests}
        quality = {"expectedCoherent": found.coherent, "expectedBlur": found.blur}
        print_json({**kept, "delay": found.delay, "seconds": found.seconds, **quality})
        return
    typer.echo(f"{counted(found.pages, 'page')} of {order.site} known; nothing is asked for now.")
    typer.echo(
        f"By {order.strategy}, one request every {format_duration(found.delay)}: {counted(found.requests, 'request')}, "
        f"{format_duration(found.seconds)}. Begun now, it ends at {shown_time(now + found.seconds)}."
    )
    whole = f"blur {found.blur:.3g}."
    if found.coherent is not None:
        whole = f"{found.coherent:.1f} of {counted(found.pages, 'page')} coherent, {whole}"
    typer.echo(f"To be expected: {whole}")
