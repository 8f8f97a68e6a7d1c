"""``recrawl run``: come back to pages when it is worth a visit."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Annotated

import typer

from recrawl.cli.configuration import parse_assignments
from recrawl.cli.options import HERE, SetOption, WorkspaceOption
from recrawl.cli.workspace import Workspace, open_workspace

if TYPE_CHECKING:
    from recrawl.crawl.home_scope import HomeScope
    from recrawl.store.base import Store

EXAMPLES = """
recrawl run                                 until you stop it with Ctrl-C
recrawl run --for 8h --budget 10000         eight hours, at most 10,000 visits a day
recrawl run --once --for 50min              until nothing is due: for cron, once an hour
recrawl run --until 2026-12-01T06:00:00Z
"""


def run(  # noqa: PLR0913 - one argument an option
    *,
    for_: Annotated[str | None, typer.Option("--for", metavar="DURATION", help="Stop after so long, e.g. 8h.")] = None,
    until: Annotated[str | None, typer.Option(metavar="TIME", help="Stop at this time (ISO 8601, UTC).")] = None,
    once: Annotated[bool, typer.Option("--once", help="Stop when nothing is due any more.")] = False,
    budget: Annotated[
        float | None, typer.Option(min=0.0, metavar="VISITS", help="Visits a day, instead of schedule.budget.")
    ] = None,
    workspace: WorkspaceOption = HERE,
    assignments: SetOption = None,
) -> None:
    """Come back to pages when it is worth a visit.

    Visits due pages, keeps every answer in WARC files, judges what changed, follows links and sitemaps within the scope
    (crawl.scope), and decides when to return to each page. Robots.txt and the pauses between requests are kept
    (politeness.*). Several runs may share one workspace. The first Ctrl-C finishes what is under way and stops; a
    second one drops it. Whatever happens, what was acknowledged stays, and the next run goes on from there.
    """
    import asyncio

    flags = parse_assignments(assignments or []) | ({} if budget is None else {"schedule.budget": budget})
    place = open_workspace(workspace, flags)
    with place.open_store() as store:
        raise typer.Exit(asyncio.run(_run(place, store, for_, until, once=once)))


async def _run(place: Workspace, store: Store, for_: str | None, until: str | None, *, once: bool) -> int:
    """Crawl until the term ends or somebody interrupts; the exit code."""
    import asyncio
    import os
    import socket

    from recrawl.cli.interrupts import interruptible
    from recrawl.cli.run_display import Tally, display
    from recrawl.cli.wiring import LiveSettings, crawl_settings_of, host_limits_of, policy_of
    from recrawl.crawl.clock import RealClock
    from recrawl.crawl.live import live_crawl
    from recrawl.errors import ExitCode

    clock, said = RealClock(), place.configuration.settings
    end, tally, live = _end(clock.now(), for_, until), Tally(), LiveSettings(place)
    async with live_crawl(
        f"{socket.gethostname()}-{os.getpid()}",
        policy_of(said.schedule, store.urls, host_limits_of(store, live.politeness)),
        clock=clock,
        store=store,
        folder=place.folder,
        scope=_scope(store, place),
        settings=crawl_settings_of(said),
        orders=live.orders,
        on_visits=tally.add,
    ) as driver:
        try:
            with interruptible(driver.stop) as interrupts, display(tally, end, store.next_due) as show:
                await driver.run(end, show, until_idle=once)
        except asyncio.CancelledError:
            typer.echo("Stopped at once: what was under way is dropped and will be visited again.", err=True)
            return ExitCode.FORCED
    typer.echo(tally.words())
    return ExitCode.INTERRUPTED if interrupts else ExitCode.OK


def _end(now: float, for_: str | None, until: str | None) -> float:
    """When to stop, seconds since the epoch; infinity for never."""
    from recrawl.cli.rates_question import moment
    from recrawl.errors import InputError
    from recrawl.time import parse_duration

    end = min(moment(until, math.inf), now + parse_duration(for_) if for_ is not None else math.inf)
    if end <= now:
        raise InputError("The time to stop is already over.", "Name a later --until, or a longer --for.")
    return end


def _scope(store: Store, place: Workspace) -> HomeScope:
    """Around the pages that are to be visited."""
    from recrawl.crawl.home_scope import HomeScope
    from recrawl.crawl.scope import ScopeKind
    from recrawl.errors import InputError
    from recrawl.urls import address

    pages = store.pages()
    wanted = pages.id[pages.importance > 0]
    if not len(wanted):
        raise InputError("There are no pages to visit.", "Add some with: recrawl add URL")
    settings = place.configuration.settings.crawl
    known = (found for url in store.urls(wanted) if (found := address(url)) is not None)
    return HomeScope(ScopeKind(settings.scope), known, max_depth=settings.max_depth)
