"""``recrawl run``: crawl, and visit pages when they are due."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer

from recrawl.app.display import HERE
from recrawl.app.workspace.configuration import parse_assignments
from recrawl.app.workspace.workspace import Workspace, open_workspace
from recrawl.cli.options import SetOption, WorkspaceOption
from recrawl.errors import counted

if TYPE_CHECKING:
    from recrawl.app.crawl_run import RunOutcome
    from recrawl.crawl.control.metrics import CrawlStats

EXAMPLES = """
recrawl run                                 until you stop it with Ctrl-C
recrawl run --for 8h --budget 10000/day     eight hours, at most 10,000 visits a day
recrawl run --once --for 50min              until nothing is due: for cron, once an hour
recrawl run --until 2026-12-01T06:00:00Z
recrawl run --policy nutch                  the schedule of another crawler
recrawl run --metrics 9090                  metrics for Prometheus
"""


def run(  # noqa: PLR0913 - one argument an option
    *,
    for_: Annotated[
        str | None,
        typer.Option("--for", metavar="DURATION", help="Maximum duration from the start, e.g. 8h."),
    ] = None,
    until: Annotated[
        str | None, typer.Option(metavar="TIME", help="Time to stop in UTC, e.g. 2026-11-09T06:00Z.")
    ] = None,
    once: Annotated[bool, typer.Option("--once", help="Stop when no page is due or may be visited now.")] = False,
    budget: Annotated[
        str | None, typer.Option(metavar="VISITS", help="Value for schedule.budget: 10000/day, 500/h or 2/s.")
    ] = None,
    policy: Annotated[
        str | None,
        typer.Option(
            metavar="NAME", help="Value for schedule.policy, e.g. valued, uniform, nutch, or package.module:Name."
        ),
    ] = None,
    metrics: Annotated[
        str | None,
        typer.Option(metavar="[ADDRESS:]PORT", help="Value for crawl.metrics: address that serves /metrics."),
    ] = None,
    workspace: WorkspaceOption = HERE,
    assignments: SetOption = None,
) -> None:
    """Crawl: visit pages when they are due.

    Visits due pages, stores every response in WARC files, detects changes, follows links and sitemaps within the scope
    (crawl.scope), and schedules the next visit of each page. recrawl obeys robots.txt and the pauses between requests
    (politeness.*). It never exceeds the budget: due pages beyond it wait, and the longest waiting page goes first. New
    pages take at most a share of the budget (schedule.discovery_share).

    Several runs can share one workspace; they share its budget and visit different hosts. recrawl pause, resume and
    limit take effect within seconds. The first Ctrl-C finishes running requests and stops; a second one drops them.
    Acknowledged visits are never lost, and the next run continues from there.
    """
    from recrawl.crawl.worker import event_loop

    chosen = {"schedule.budget": budget, "schedule.policy": policy, "crawl.metrics": metrics}
    flags = parse_assignments(assignments or []) | {key: text for key, text in chosen.items() if text is not None}
    place = open_workspace(workspace, flags)
    raise typer.Exit(event_loop.run(_run(place, for_, until, once=once)))


async def _run(place: Workspace, for_: str | None, until: str | None, *, once: bool) -> int:
    """Crawl until the time is over or the user interrupts; returns the exit code."""
    from recrawl.app.crawl_run import CrawlRun, run_term
    from recrawl.cli.entry import seconds_since_start, take_over_last_words
    from recrawl.cli.operate.run_display import TerminalDisplay, interruptible
    from recrawl.crawl.clock import RealClock

    clock = RealClock()
    term = run_term(clock.now(), for_, until)
    term = term._replace(seconds=term.seconds - seconds_since_start())
    crawl = CrawlRun(place, clock, term, once=once, show=TerminalDisplay())
    with interruptible(crawl.stop):
        take_over_last_words()
        return _print_end(await crawl.run())


def _print_end(outcome: RunOutcome) -> int:
    """Print what was done, why the run ended and how many pages are due; returns the exit code."""
    from recrawl.errors import ExitCode

    code = ExitCode.INTERRUPTED if outcome.stopped else ExitCode.OK
    last, by = outcome.last, outcome.ended_by
    if last is None:
        due = (
            "; how many pages are due is not known" if outcome.due is None else f", {counted(outcome.due, 'page')} due"
        )
        typer.echo(f"Ended before the first visit because {by.value if by else 'of an error'}{due}.")
        if outcome.fault is not None and not outcome.stopped:
            raise outcome.fault
        return code
    due = _still_due(last, outcome.quarantined)
    if outcome.forced:
        typer.echo(due, err=True)
        return ExitCode.FORCED
    typer.echo(outcome.counts.words())
    if outcome.misdated:
        misdated = counted(outcome.misdated, "visit")
        typer.echo(f"The clock was wrong: {misdated} misdated. List them with recrawl list misdated.")
    typer.echo(_ending(outcome, last, due))
    return code


def _ending(outcome: RunOutcome, last: CrawlStats, due: str) -> str:
    """The last line: why the run ended, how many pages are due, and why they wait."""
    from recrawl.crawl.worker.crawl_worker import StopReason

    by = outcome.ended_by
    spent = last.due > 0 and last.left is not None and last.left < 1
    if by is StopReason.PAUSE:
        return f"The crawl is paused, {due} Continue it with recrawl resume."
    if by is StopReason.BUDGET:
        return f"The budget is spent, {due} recrawl plan shows the effect of a larger one."
    also = " The crawl is paused." if last.paused else " The budget is spent." if spent else ""
    ended = "Ended" if outcome.has_begun else "Ended before the first visit"
    return f"{ended} because {by.value if by else 'of an error'}, {due}{also}"


def _still_due(last: CrawlStats, quarantined: int) -> str:
    """The number of due pages, and of those that cannot be visited now."""
    waiting = [
        *([f"{last.resting:,} on hosts in backoff"] if last.resting else []),
        *([f"{last.held:,} on paused hosts"] if last.held else []),
    ]
    details = f" ({', '.join(waiting)})" if waiting else ""
    due = f"{counted(last.due, 'page')} due{details}"
    return f"{due}, {quarantined:,} in quarantine." if quarantined else f"{due}."
