"""``recrawl demo --serve``: a site that really changes, for the reader to crawl, and the truth about it afterwards."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

import typer

from recrawl.cli.options import command_name

if TYPE_CHECKING:
    from recrawl.living.web import LivingWeb
    from recrawl.simulate.web import VirtualWeb

HOURS = 24.0
"""For which changes are planned; then the site stands still."""
MEDIAN, SPREAD = 40.0, 1.5
"""Seconds between two changes of the median page, and the spread of the logarithm."""
PAGES_SHOWN = 10
SETTINGS = {
    "fetch.contact": "me@example.org",
    "fetch.allow_networks": "127.0.0.1",
    "politeness.min_delay": "100ms",
    "politeness.ip_delay": "100ms",
    "politeness.factor": "1",
    "schedule.budget": "2/s",
    "schedule.min_interval": "2s",
}
"""For pages that change within a minute, on a server that does not mind being asked."""
ORDERS = (
    f"init my-archive {' '.join(f'--set {key}={value}' for key, value in SETTINGS.items())}",
    "add -w my-archive {home}",
    "run -w my-archive --for 2min",
    "rates -w my-archive --limit 10",
)
"""What to do in another terminal."""


def serve_site(  # noqa: PLR0913 - what to serve, where, and what to say of it
    pages: int, port: int, seed: int, *, data: bool = False, judge: Path | None = None, truth: Path | None = None
) -> None:
    """Serve until interrupted, then tell how often pages really changed.

    ``data`` serves an open-data portal. ``judge`` is a workspace to tell what it found, ``truth`` a file for all
    changes.
    """
    from recrawl.cli.demo_judge import sources, tell_verdict, write_truth
    from recrawl.cli.demo_portal import portal, quirks
    from recrawl.crawl.clock import RealClock
    from recrawl.errors import require
    from recrawl.living.quirks import Quirks
    from recrawl.living.serve import serve
    from recrawl.time import HOUR

    clock = RealClock()
    start = clock.now()
    if data:
        require("pyoxigraph", "crawl")  # the endpoint needs it
    web = portal(pages, start, start + HOURS * HOUR, seed) if data else site(pages, start, seed)
    announce = _announce_portal if data else _announce
    living = serve(web, clock, port=port, quirks=quirks() if data else Quirks.none(), seed=seed, announce=announce)
    end = clock.now()
    tell_truth(living, start, end)
    if judge is None and truth is None:
        return
    found = sources(living, end)
    if truth is not None:
        write_truth(found, truth)
    if judge is not None:
        tell_verdict(found, start, judge)


def site(pages: int, start: float, seed: int) -> VirtualWeb:
    """One site on the loopback address whose pages change by chance, each at a rate of its own."""
    import numpy as np

    from recrawl.living.server import IP
    from recrawl.simulate.sites import lognormal_rates, tree_site
    from recrawl.time import HOUR

    rng = np.random.default_rng(seed)
    rate = lognormal_rates(pages, median=1 / MEDIAN, sigma=SPREAD, rng=rng)
    web = tree_site("site", rate, start=start, end=start + HOURS * HOUR, rng=rng)
    return replace(web, hosts=(IP,))


def _announce(living: LivingWeb) -> None:
    home = living.seeds()[0]
    typer.echo(f"A site of {len(living.urls())} pages that really change is at {home}\n\nIn another terminal:\n")
    for order in ORDERS:
        typer.echo(f"  {command_name()} {order.format(home=home)}")
    typer.echo("\nCtrl-C ends it and tells the truth.")


def _announce_portal(living: LivingWeb) -> None:
    from recrawl.cli.demo_portal import orders

    home, *urls = living.urls()
    typer.echo(f"A portal of {len(urls)} sources that really change is at {home}\n\nIn another terminal:\n")
    for order in orders(living):
        typer.echo(f"  {command_name()} {order}")
    typer.echo("\nCtrl-C ends it and tells the truth.")


def tell_truth(living: LivingWeb, start: float, end: float) -> None:
    """Some pages, from the one that changes most often to the one that changes least."""
    import numpy as np

    from recrawl.cli.tables import print_table
    from recrawl.time import format_duration

    truth, requests = living.truth(), living.requests()
    asked = np.bincount(requests.page[requests.page >= 0], minlength=len(truth.urls))
    order = np.argsort(-truth.web.rate, kind="stable")
    chosen = order[np.linspace(0, len(order) - 1, min(PAGES_SHOWN, len(order))).astype(int)]
    rows = []
    for page in chosen.tolist():
        times = truth.web.changes.row(page)
        changed = int(((times > start) & (times <= end)).sum())
        every = format_duration(1 / float(truth.web.rate[page]))
        rows.append((truth.urls[page], every, str(changed), str(int(asked[page]))))
    typer.echo(f"\nThe truth about some pages, after {format_duration(end - start)} and {len(requests):,} requests:")
    print_table(("page", "changes about every", "changed", "asked for"), rows, right=("changed", "asked for"))
