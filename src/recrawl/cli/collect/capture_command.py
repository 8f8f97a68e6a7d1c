"""Capture whole sites: ``recrawl capture``, ``recrawl capture list``, ``show`` and ``plan``."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from typing import TYPE_CHECKING, Annotated

import typer

from recrawl.app.display import HERE, command_in, pause_of, seconds_since_epoch, shown_time
from recrawl.app.site_capture import begun_or_usual, report_lines, site_url, unfinished_capture
from recrawl.app.workspace.configuration import parse_assignments
from recrawl.app.workspace.workspace import open_workspace
from recrawl.assess.blur_coherence import outcome_counts
from recrawl.cli.commands import Subcommand
from recrawl.cli.options import JsonOption, SetOption, WorkspaceOption
from recrawl.cli.tables import print_json, print_table
from recrawl.crawl.site_capture.capture_course import CaptureCourse, CaptureReport, course_of, report_of
from recrawl.crawl.site_capture.capture_order import CaptureOrder
from recrawl.crawl.site_capture.capture_terms import (
    DEFAULT_STRATEGY,
    DEFAULT_THRESHOLD,
    RateSource,
    Requisites,
    WeightSource,
)
from recrawl.crawl.site_capture.site_capture_driver import CaptureProgress
from recrawl.crawl.visit.scope import ScopeKind, ScopeRules
from recrawl.errors import ConfigError, ExitCode, InputError, StoreError, counted
from recrawl.time import format_duration

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from recrawl.app.site_capture import CaptureForecast
    from recrawl.app.workspace.workspace import Workspace
    from recrawl.store.base import HistoryStore, PageTable, Store
    from recrawl.store.store_values import SiteCapture


def print_report(store: PageTable, report: CaptureReport, json_output: bool) -> None:
    """Print the quality statement, as text or as stored JSON."""
    if json_output:
        print_json(json.loads(report.capture.statement))
        return
    for line in report_lines(store, report):
        typer.echo(line)


def print_stated(store: HistoryStore, folder: Path, number: int, json_output: bool) -> None:
    """Print the quality statement of a finished capture."""
    known = {capture.id: capture for capture in store.site_captures()}
    if number not in known:
        remedy = f"See all with: {command_in(folder, 'capture list')}"
        raise InputError(f"There is no capture {number} in this workspace.", remedy)
    if not known[number].is_finished:
        raise InputError(f"Capture {number} is not finished.", f"Continue it: {command_in(folder, 'capture --resume')}")
    capture = known[number]
    print_report(store, report_of(store, capture, _course(store, capture)), json_output)


def print_captures(store: HistoryStore, json_output: bool) -> None:
    """Print all captures of the workspace, oldest first."""
    captures = store.site_captures()
    if json_output:
        print_json([_row(capture) for capture in captures])
        return
    rows = [
        (
            str(capture.id),
            capture.site,
            CaptureOrder.from_json(capture.terms).strategy,
            shown_time(capture.started),
            shown_time(capture.finished) if capture.is_finished else "unfinished",
            *_counts(capture),
        )
        for capture in captures
    ]
    columns = ("id", "site", "strategy", "started", "finished", "pages", "coherent", "changed", "missing")
    print_table(columns, rows, right=("id", "pages", "coherent", "changed", "missing"))


def _course(store: HistoryStore, capture: SiteCapture) -> CaptureCourse | None:
    """The course of a finished capture; ``None``, with a message, if this version of the strategy has another."""
    try:
        log = store.site_log(capture.id)
        return course_of(capture, log, store.urls(log.found.page))
    except StoreError:
        typer.echo(
            f"Capture {capture.id} was made by another version of recrawl with another visiting order. "
            "Abandoned pages are only listed in the stored statement: use --json.",
            err=True,
        )
        return None


def _row(capture: SiteCapture) -> dict[str, object]:
    return {
        "id": capture.id,
        "site": capture.site,
        "terms": json.loads(capture.terms),
        "delay": capture.delay,
        "started": capture.started,
        "finished": capture.finished,
        "statement": json.loads(capture.statement) if capture.statement else None,
    }


def _counts(capture: SiteCapture) -> tuple[str, ...]:
    if not capture.statement:
        return ("–",) * 4
    quality = json.loads(capture.statement)["quality"]
    counts = outcome_counts(quality["coherence"]).values()
    return str(quality["pages"]), *("–" if count is None else str(count) for count in counts)


def print_forecast(found: CaptureForecast, order: CaptureOrder, now: float, json_output: bool) -> None:
    """Print the forecast as text or as JSON."""
    if json_output:
        kept = {"site": order.site, "strategy": order.strategy, "pages": found.pages, "hosts": found.hosts}
        times = {"requests": found.requests, "delay": found.delay, "seconds": found.seconds, "wait": found.wait}
        quality = {"expectedCoherent": found.coherent, "expectedBlur": found.blur, "worstBlur": found.worst_blur}
        print_json({**kept, **times, **quality})
        return
    many = f" on {found.hosts:,} hosts" if found.hosts > 1 else ""
    typer.echo(f"{counted(found.pages, 'page')} of {order.site} known{many}. No request is made.")
    waits = f" It waits until {shown_time(now + found.wait)}." if found.wait else ""
    typer.echo(
        f"By {order.strategy}, one request every {format_duration(found.delay)}: {counted(found.requests, 'request')}, "
        f"{format_duration(found.seconds)}. If started now, it ends at {shown_time(now + found.wait + found.seconds)}."
        f"{waits}"
    )
    whole = f"blur {found.blur:.3g}."
    if found.coherent is not None:
        whole = f"{found.coherent:.1f} of {counted(found.pages, 'page')} coherent, {whole}"
    typer.echo(f"Expected: {whole}")
    if found.worst_blur is not None:
        typer.echo(f"At worst: blur {found.worst_blur:.3g}, if the hottest pages are visited first and last.")


EXAMPLES = """
recrawl capture https://example.org/ -w my-archive
recrawl capture https://example.org/news/ --strategy sharc-selective --from-sitemap --delay 2s
recrawl capture https://example.org/ --scope domain --exclude '/calendar/' --max-pages 5000
recrawl capture https://example.org/ --observe 2026-12-01T08:00Z 2026-12-01T18:00Z
recrawl capture --resume                     continue an interrupted capture
recrawl capture plan https://example.org/    forecast duration and quality, without requests
recrawl capture list                         the captures of the workspace
"""
LIST = """
recrawl capture list -w my-archive           number, site, strategy, times and counts of each capture
recrawl capture list --json                  with settings and quality statements
"""
SHOW = """
recrawl capture show 3 -w my-archive         the quality statement of capture 3
recrawl capture show 3 --json                as it is stored, for other programs
"""
PLAN = """
recrawl capture plan https://example.org/ -w my-archive
recrawl capture plan https://example.org/ --delay 30s --strategy bfs-fifo  with another delay and order
recrawl capture plan https://example.org/ --strategy sharc-online --misplaced 10
"""

StrategyOption = Annotated[
    str | None,
    typer.Option(
        "--strategy",
        help="Order of visits and revisits: a name, or package.module:Name. An unknown name prints the list. Default: "
        "sharc-selective if the workspace knows the pages of the site, sharc-offline with --observe, else "
        "sharc-selective-online.",
    ),
]
RevisitOption = Annotated[
    bool | None,
    typer.Option("--revisit/--no-revisit", help="Visit every page a second time. Default: as the strategy does."),
]
DelayOption = Annotated[
    str | None,
    typer.Option("--delay", metavar="DURATION", help="Time between requests, instead of politeness.min_delay."),
]
ExpectedPagesOption = Annotated[
    int | None,
    typer.Option(
        "--expected-pages",
        min=1,
        metavar="PAGES",
        help="Expected number of pages of the site. Default: estimated during the capture. Used by sharc-online, "
        "sharc-selective-online, sharc-intervals-online and sharc-threshold-outermost.",
    ),
]
ThresholdOption = Annotated[
    float | None,
    typer.Option(
        "--threshold",
        metavar="CHANCE",
        help="Probability of staying unchanged from which a page is hopeful. Used by the sharc-threshold and "
        "sharc-intervals strategies.",
        show_default=f"{DEFAULT_THRESHOLD}",
    ),
]
RatesOption = Annotated[
    RateSource,
    typer.Option(
        "--rates",
        help="Source of change rates. known: recrawl rates; for new pages the sitemap, then neighbouring pages. "
        "belief: recrawl rates; for new pages neighbouring pages. sitemap, sitemap-corrected: the sitemap in one of "
        "two readings, then neighbouring pages. neighbours: neighbouring pages only. equal: one rate for all pages.",
    ),
]
WeightsOption = Annotated[
    WeightSource,
    typer.Option(
        "--weights",
        help="Weight of a page. importance: as recrawl add --importance. priority: what sitemaps say (priority).",
    ),
]
ObserveOption = Annotated[
    tuple[str, str] | None,
    typer.Option(
        "--observe",
        metavar="FROM TO",
        help="Given observation interval: two times such as 2026-11-15T09:30:00Z. Blur is that of queries in it, and "
        "the capture starts such that its middle is the middle of the interval. Used by sharc-offline.",
    ),
]
ScopeOption = Annotated[ScopeKind, typer.Option("--scope", help="Extent of the site.")]
IncludeOption = Annotated[
    list[str] | None,
    typer.Option("--include", metavar="REGEX", help="URLs to include beyond the scope. May be repeated."),
]
ExcludeOption = Annotated[
    list[str] | None, typer.Option("--exclude", metavar="REGEX", help="URLs to exclude. May be repeated.")
]
MaxPagesOption = Annotated[
    int | None, typer.Option("--max-pages", min=1, help="Capture at most N pages, beside what they embed.")
]
RequisitesOption = Annotated[
    Requisites,
    typer.Option(
        "--requisites",
        help="Page requisites (images, style sheets, scripts, fonts, frames) to capture: those of any host, those in "
        "the scope, or none. --exclude excludes requisites, too.",
    ),
]


def capture(  # noqa: PLR0913 - one argument an option
    site: Annotated[str | None, typer.Argument(metavar="SITE", help="URL of the first page.")] = None,
    *,
    strategy: StrategyOption = None,
    revisit: RevisitOption = None,
    delay: DelayOption = None,
    expected_pages: ExpectedPagesOption = None,
    threshold: ThresholdOption = None,
    rates: RatesOption = RateSource.KNOWN,
    scope: ScopeOption = ScopeKind.PREFIX,
    include: IncludeOption = None,
    exclude: ExcludeOption = None,
    hops: Annotated[
        int | None, typer.Option(min=0, help="Maximum number of links from the first page to a page.")
    ] = None,
    extra_hops: Annotated[int, typer.Option(min=0, help="Number of links to follow out of the scope.")] = 0,
    from_sitemap: Annotated[
        bool, typer.Option("--from-sitemap", help="Start with all pages in the sitemaps of the site.")
    ] = False,
    max_pages: MaxPagesOption = None,
    requisites: RequisitesOption = Requisites.ANY,
    weights: WeightsOption = WeightSource.IMPORTANCE,
    observe: ObserveOption = None,
    resume: Annotated[bool, typer.Option("--resume", help="Continue an unfinished capture (of SITE).")] = False,
    restart: Annotated[
        bool, typer.Option("--restart", help="Start over even if an unfinished capture exists.")
    ] = False,
    workspace: WorkspaceOption = HERE,
    json_output: JsonOption = False,
    assignments: SetOption = None,
) -> None:
    """Capture a whole site and state the quality of the capture.

    A site changes during a polite capture. The order of the visits determines how far the copies are apart in changes
    (blur). With revisits it also determines how many pages are proved unchanged between visit and revisit, and so
    belong together (coherence). A statement reports both at the end. It is printed, stored, and written into the
    archive.

    Pages are captured with what they embed (images, style sheets, scripts, fonts, frames) of any host; --requisites
    restricts that. Hosts are captured side by side, each with one request at a time.

    Pages are discovered through links, and with --from-sitemap before the first visit. Strategies that plan the whole
    capture in advance need --from-sitemap or an earlier capture in the workspace. Change rates come from visits in the
    workspace, then from the sitemap, then from neighbouring pages; --rates selects the source.

    recrawl obeys robots.txt, and its Crawl-delay even if --delay is shorter. A failed page is retried once after the
    visits, and once after the revisits. To continue an interrupted or killed capture, use --resume or repeat the same
    command.
    """
    place = open_workspace(workspace, parse_assignments(assignments or []))
    rules = _scope_rules(place, scope, include, exclude, hops=hops, extra_hops=extra_hops)
    with place.open_store() as store:
        open_ones = [known for known in store.site_captures() if not known.is_finished]
        unfinished: SiteCapture | None
        if resume:
            unfinished = begun = _to_resume(open_ones, site, place.folder)
            order = CaptureOrder.from_json(begun.terms)
        else:
            order = _order(site, rules, strategy, revisit, delay, expected_pages, threshold, rates, max_pages)
            order = replace(order, from_sitemap=from_sitemap, requisites=requisites, weights=weights)
            order = replace(order, observe=_interval(observe))
            if strategy is None:
                order = begun_or_usual(store, [] if restart else open_ones, order)
            _warn_of_unused(order, expected_pages=expected_pages, threshold=threshold)
            unfinished = None if restart else unfinished_capture(open_ones, order, place.folder)
        report = _carried_out(place, store, order, unfinished)
        print_report(store, report, json_output)
    if not report.quality.pages:
        raise typer.Exit(ExitCode.FAILED)


def plan_capture(  # noqa: PLR0913 - one argument an option
    site: Annotated[str, typer.Argument(metavar="SITE", help="URL of the first page.")],
    *,
    strategy: StrategyOption = None,
    revisit: RevisitOption = None,
    delay: DelayOption = None,
    expected_pages: ExpectedPagesOption = None,
    threshold: ThresholdOption = None,
    rates: RatesOption = RateSource.KNOWN,
    scope: ScopeOption = ScopeKind.PREFIX,
    include: IncludeOption = None,
    exclude: ExcludeOption = None,
    max_pages: MaxPagesOption = None,
    requisites: RequisitesOption = Requisites.ANY,
    weights: WeightsOption = WeightSource.IMPORTANCE,
    observe: ObserveOption = None,
    misplaced: Annotated[
        int | None,
        typer.Option(
            min=0,
            metavar="N",
            help="Also print the worst case of a single-visit capture in which N pages are found too late.",
        ),
    ] = None,
    workspace: WorkspaceOption = HERE,
    json_output: JsonOption = False,
    assignments: SetOption = None,
) -> None:
    """Forecast the duration and quality of a capture.

    No request is made. The forecast uses the pages of the site that the workspace knows, their change rates, and the
    delay of the host. It assumes that responses are immediate and that no request fails.

    With --misplaced N it also bounds the blur of a capture that finds pages during its visits: at worst the N hottest
    pages are visited at its beginning and end instead of its middle (Theorem 4.5 of the SHARC thesis).
    """
    from recrawl.app.site_capture import forecast, usual_strategy
    from recrawl.crawl.clock import RealClock

    place = open_workspace(workspace, parse_assignments(assignments or []))
    rules = _scope_rules(place, scope, include, exclude)
    order = _order(site, rules, strategy, revisit, delay, expected_pages, threshold, rates, max_pages)
    order = replace(order, requisites=requisites, weights=weights, observe=_interval(observe))
    now = RealClock().now()
    with place.open_store() as store:
        if strategy is None:
            order = usual_strategy(store, order)
        _warn_of_unused(order, expected_pages=expected_pages, threshold=threshold)
        print_forecast(forecast(place, store, order, now, misplaced=misplaced), order, now, json_output)


def list_captures(
    workspace: WorkspaceOption = HERE, json_output: JsonOption = False, assignments: SetOption = None
) -> None:
    """List the captures of the workspace.

    Each has a number, the site, the strategy, start and end, and the counts of its pages: coherent ones, those that
    changed between visit and revisit, and missing ones. An unfinished capture can be continued with --resume.
    """
    with open_workspace(workspace, parse_assignments(assignments or [])).open_store() as store:
        print_captures(store, json_output)


def show_capture(
    number: Annotated[int, typer.Argument(metavar="NUMBER", help="Number of the capture, as recrawl capture list.")],
    workspace: WorkspaceOption = HERE,
    json_output: JsonOption = False,
    assignments: SetOption = None,
) -> None:
    """Show the quality statement of a capture.

    It is the statement that was printed at the end of the capture: blur, coherence, and the pages that changed or
    failed. With --json it is printed as stored in the workspace and in the WARC files.
    """
    place = open_workspace(workspace, parse_assignments(assignments or []))
    with place.open_store() as store:
        print_stated(store, place.folder, number, json_output)


def _scope_rules(  # noqa: PLR0913 - the options of the scope
    place: Workspace,
    scope: ScopeKind,
    include: list[str] | None,
    exclude: list[str] | None,
    *,
    hops: int | None = None,
    extra_hops: int = 0,
) -> ScopeRules:
    return ScopeRules(
        kind=scope,
        include=tuple(include or ()),
        exclude=tuple(exclude or ()),
        hops=hops,
        extra_hops=extra_hops,
        max_depth=place.configuration.settings.crawl.max_depth,
    )


def _order(  # noqa: PLR0913, PLR0917 - the options of a capture
    site: str | None,
    rules: ScopeRules,
    strategy: str | None,
    revisit: bool | None,
    delay: str | None,
    expected_pages: int | None,
    threshold: float | None,
    rates: RateSource,
    max_pages: int | None,
) -> CaptureOrder:
    """The capture that the options describe."""
    return CaptureOrder(
        site=site_url(site),
        strategy=strategy or DEFAULT_STRATEGY,
        revisit=revisit,
        delay=None if delay is None else pause_of("--delay", delay),
        expected=expected_pages,
        threshold=DEFAULT_THRESHOLD if threshold is None else threshold,
        rates=rates,
        max_pages=max_pages,
        scope=rules,
    )


def _warn_of_unused(order: CaptureOrder, *, expected_pages: int | None, threshold: float | None) -> None:
    """Warn of options that the strategy does not use."""
    for option, given, read in (
        ("--expected-pages", expected_pages is not None, order.reads_expected),
        ("--threshold", threshold is not None, order.reads_threshold),
        ("--observe", order.observe is not None, order.reads_observe),
    ):
        if given and not read:
            only = " but for the blur in the statement" if option == "--observe" else ""
            typer.echo(f"{option} has no effect{only}: {order.strategy} does not use it.", err=True)


def _interval(given: tuple[str, str] | None) -> tuple[float, float] | None:
    """The observation interval, seconds since the epoch."""
    if given is None:
        return None
    start, end = (seconds_since_epoch("--observe", text) for text in given)
    if end < start:
        raise ConfigError("--observe ends before it begins.", "Give the earlier time first.")
    return start, end


def _carried_out(place: Workspace, store: Store, order: CaptureOrder, unfinished: SiteCapture | None) -> CaptureReport:
    """Run the capture and return its report. If it is interrupted, print that and exit."""
    from recrawl.app.site_capture import carry_out
    from recrawl.app.workspace.workspace_wiring import classifier_of
    from recrawl.cli.operate.run_display import getting_ready, interruptible
    from recrawl.parse.parse_pool import warm_up

    again = command_in(place.folder, "capture --resume")
    with getting_ready():
        warm_up(classifier_of(place.configuration.settings).standards)
    try:
        with shown() as tell:
            report = asyncio.run(carry_out(place, store, order, unfinished, tell, stopping=interruptible))
    except asyncio.CancelledError:
        typer.echo(f"Stopped at once. Continue with: {again}", err=True)
        raise typer.Exit(ExitCode.FORCED) from None
    if report is None:
        typer.echo(f"Interrupted. Continue with: {again}", err=True)
        raise typer.Exit(ExitCode.INTERRUPTED)
    return report


@contextmanager
def shown() -> Iterator[Callable[[CaptureProgress], None]]:
    """A progress bar: pages visited and revisited, and the remaining time for known pages."""
    from rich.progress import BarColumn, MofNCompleteColumn, TextColumn, TimeElapsedColumn

    from recrawl.cli.progress_bars import drawn_bars

    columns = (
        TextColumn("{task.description:<8}"),
        BarColumn(),
        MofNCompleteColumn(),
        TimeElapsedColumn(),
        TextColumn("{task.fields[left]}"),
    )
    with drawn_bars(*columns) as bar:
        visits = bar.add_task("visits", total=None, left="")
        again = bar.add_task("revisits", total=None, left="", visible=False)

        def show(now: CaptureProgress) -> None:
            left = f"about {format_duration(now.seconds_left)} left" if now.seconds_left else ""
            bar.update(visits, completed=now.visited, total=now.pages, left=left if now.visited < now.pages else "")
            whole = now.seen_again + now.to_see_again
            bar.update(again, completed=now.seen_again, total=whole, visible=whole > 0, left="")
            if now.visited == now.pages:
                bar.update(again, left=left)

        yield show


def _to_resume(unfinished: Sequence[SiteCapture], site: str | None, folder: Path) -> SiteCapture:
    """The latest unfinished capture, of this site if one is named."""
    wanted = [known for known in unfinished if site is None or known.site == site_url(site)]
    if not wanted:
        raise InputError(
            f"There is no unfinished capture{'' if site is None else f' of {site}'}.",
            f"See all with: {command_in(folder, 'capture list')}",
        )
    return wanted[-1]


SUBCOMMANDS = (
    Subcommand("list", list_captures, LIST),
    Subcommand("show", show_capture, SHOW),
    Subcommand("plan", plan_capture, PLAN),
)
