"""``recrawl capture``: a whole site, sharply and coherently."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Annotated

import typer

from recrawl.cli.configuration import parse_assignments
from recrawl.cli.options import HERE, JsonOption, SetOption, WorkspaceOption, command_in, pause_of
from recrawl.cli.workspace import open_workspace
from recrawl.crawl.capture_terms import DEFAULT_THRESHOLD, RateSource
from recrawl.crawl.scope import ScopeKind, ScopeRules
from recrawl.errors import ConfigError, ExitCode, InputError

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from recrawl.cli.workspace import Workspace
    from recrawl.crawl.capture_order import CaptureOrder
    from recrawl.crawl.capture_quality import CaptureReport
    from recrawl.store.base import Store
    from recrawl.store.site_values import SiteCapture

DEFAULT_STRATEGY = "sharc-selective-online"
EXAMPLES = """
recrawl capture https://example.org/ -w my-archive
recrawl capture https://example.org/news/ --strategy sharc-selective --from-sitemap --delay 2s
recrawl capture https://example.org/ --scope domain --exclude '/calendar/' --max-pages 5000
recrawl capture https://example.org/ --plan --delay 30s  will that fit the night?
recrawl capture --resume                     go on with what was interrupted
recrawl capture --list
recrawl capture --show 3 --json              what was stated about capture 3
"""


def capture(  # noqa: PLR0913 - one argument an option
    site: Annotated[str | None, typer.Argument(metavar="[SITE]", help="Where to begin: the URL of a page.")] = None,
    *,
    strategy: Annotated[
        str, typer.Option(help="The order of visits and revisits; a wrong name lists all.")
    ] = DEFAULT_STRATEGY,
    revisit: Annotated[
        bool | None,
        typer.Option("--revisit/--no-revisit", help="See every page a second time; by default as the strategy does."),
    ] = None,
    delay: Annotated[
        str | None,
        typer.Option(metavar="DURATION", help="From one request to the next, instead of politeness.min_delay."),
    ] = None,
    expect: Annotated[
        int | None,
        typer.Option(
            min=1,
            metavar="PAGES",
            help="How many pages the site is believed to have, else estimated on the way. Asked for by sharc-online, "
            "sharc-selective-online, sharc-intervals-online and sharc-threshold-outermost.",
        ),
    ] = None,
    threshold: Annotated[
        float | None,
        typer.Option(
            metavar="CHANCE",
            help="Chance to stay unchanged that makes a page hopeful. Asked for by the sharc-threshold and "
            "sharc-intervals strategies.",
            show_default=f"{DEFAULT_THRESHOLD}",
        ),
    ] = None,
    rates: Annotated[
        RateSource,
        typer.Option(
            help="How often pages are believed to change. known: as recrawl rates has it, pages never seen by the "
            "sitemap, else as pages around; belief: those never seen as pages around; sitemap and sitemap-corrected: "
            "all by the sitemap, in either reading, else as pages around; around: all so; equal: all alike."
        ),
    ] = RateSource.KNOWN,
    scope: Annotated[ScopeKind, typer.Option(help="How far the site reaches.")] = ScopeKind.PREFIX,
    include: Annotated[
        list[str] | None, typer.Option(metavar="REGEX", help="Take in URLs like this, too. May be repeated.")
    ] = None,
    exclude: Annotated[
        list[str] | None, typer.Option(metavar="REGEX", help="Leave out URLs like this. May be repeated.")
    ] = None,
    hops: Annotated[int | None, typer.Option(min=0, help="Follow at most so many links from the first page.")] = None,
    extra_hops: Annotated[int, typer.Option(min=0, help="Follow so many links out of the scope.")] = 0,
    from_sitemap: Annotated[
        bool, typer.Option("--from-sitemap", help="Begin with all pages that the site's sitemaps name.")
    ] = False,
    max_pages: Annotated[int | None, typer.Option(min=1, help="Take in at most so many pages.")] = None,
    plan: Annotated[
        bool, typer.Option("--plan", help="Only say how long it would take, and how good it would come out.")
    ] = False,
    resume: Annotated[bool, typer.Option("--resume", help="Go on with an unfinished capture (of SITE).")] = False,
    anew: Annotated[bool, typer.Option("--anew", help="Begin anew, though one of SITE is unfinished.")] = False,
    list_all: Annotated[bool, typer.Option("--list", help="List the captures of this workspace.")] = False,
    show: Annotated[int | None, typer.Option(metavar="NUMBER", help="Show what was stated about this capture.")] = None,
    workspace: WorkspaceOption = HERE,
    json_output: JsonOption = False,
    assignments: SetOption = None,
) -> None:
    """Capture a whole site sharply and coherently, and state how good the capture is.

    A site changes while it is captured, one polite request after the other. The order of the visits decides how far
    the pages are apart (blur). With revisits it also decides how many of them are proven to have been the same all the
    time in between, and so to belong together (coherence). In the end a statement says how both came out; it is
    printed, stored, and written into the archive.

    Pages are found by their links, and with --from-sitemap before the first visit. Strategies that plan the whole
    capture beforehand need that, or an earlier capture in the workspace. How often pages change is known from the
    visits in the workspace, else from the sitemap, else from pages around; --rates chooses.

    robots.txt is obeyed, and its crawl-delay kept even if --delay is shorter. A page that fails is tried once more at
    the end of the visits, or of the revisits. A capture that is interrupted, even killed, goes on with --resume, or
    when the same command is given again.

    With --plan nothing is asked for: what is known of the site's pages tells how long a capture of them takes at that
    pace, and what to expect of it.
    """
    place = open_workspace(workspace, parse_assignments(assignments or []))
    from recrawl.cli.capture_output import print_captures, print_report, print_stated

    if list_all or show is not None:
        with place.open_store() as store:
            if show is None:
                print_captures(store, json_output)
            else:
                print_stated(store, place.folder, show, json_output)
        return
    from recrawl.crawl.capture_order import CaptureOrder

    rules = ScopeRules(
        kind=scope,
        include=tuple(include or ()),
        exclude=tuple(exclude or ()),
        hops=hops,
        extra_hops=extra_hops,
        max_depth=place.configuration.settings.crawl.max_depth,
    )
    with place.open_store() as store:
        open_ones = [known for known in store.site_captures() if not known.is_finished]
        unfinished: SiteCapture | None
        if resume:
            unfinished = begun = _to_resume(open_ones, site, place.folder)
            order = CaptureOrder.from_json(begun.terms)
        else:
            order = CaptureOrder(
                site=_written(site),
                strategy=strategy,
                revisit=revisit,
                delay=None if delay is None else pause_of("--delay", delay),
                expected=expect,
                threshold=DEFAULT_THRESHOLD if threshold is None else threshold,
                rates=rates,
                from_sitemap=from_sitemap,
                max_pages=max_pages,
                scope=rules,
            )
            _say_what_is_not_read(order, expect=expect, threshold=threshold)
            if plan:
                _say_what_to_expect(place, store, order, json_output)
                return
            unfinished = None if anew else _same(open_ones, order, place.folder)
        report = _carried_out(place, store, order, unfinished)
        print_report(store, report, json_output)
    if not report.quality.pages:
        raise typer.Exit(ExitCode.FAILED)


def _carried_out(place: Workspace, store: Store, order: CaptureOrder, unfinished: SiteCapture | None) -> CaptureReport:
    """What came of the capture; if it is interrupted, this is said and the process ends."""
    from recrawl.cli.capture_run import carry_out, shown
    from recrawl.cli.run_display import getting_ready
    from recrawl.cli.wiring import judging_of
    from recrawl.crawl.judging import warm_up

    again = command_in(place.folder, "capture --resume")
    with getting_ready():
        warm_up(judging_of(place.configuration.settings).standards)
    try:
        with shown() as tell:
            report = asyncio.run(carry_out(place, store, order, unfinished, tell))
    except asyncio.CancelledError:
        typer.echo(f"Stopped at once. Go on with: {again}", err=True)
        raise typer.Exit(ExitCode.FORCED) from None
    if report is None:
        typer.echo(f"Interrupted. Go on with: {again}", err=True)
        raise typer.Exit(ExitCode.INTERRUPTED)
    return report


def _say_what_to_expect(place: Workspace, store: Store, order: CaptureOrder, json_output: bool) -> None:
    from recrawl.cli.capture_plan import forecast, print_forecast
    from recrawl.crawl.clock import RealClock

    now = RealClock().now()
    print_forecast(forecast(place, store, order, now), order, now, json_output)


def _written(site: str | None) -> str:
    from recrawl.formats.seeds import parse_seed

    if site is None:
        raise ConfigError("There is no site to capture.", "Give the URL of its first page, or --resume or --list.")
    return parse_seed(site, "").url


def _say_what_is_not_read(order: CaptureOrder, *, expect: int | None, threshold: float | None) -> None:
    """Options that make no difference to this strategy are said to make none."""
    for option, given, read in (
        ("--expect", expect is not None, order.reads_expected),
        ("--threshold", threshold is not None, order.reads_threshold),
    ):
        if given and not read:
            typer.echo(f"{option} makes no difference here: {order.strategy} does not ask for it.", err=True)


def _to_resume(unfinished: Sequence[SiteCapture], site: str | None, folder: Path) -> SiteCapture:
    """The latest unfinished capture, of this site if one is named."""
    wanted = [known for known in unfinished if site is None or known.site == _written(site)]
    if not wanted:
        raise InputError(
            f"There is no unfinished capture{'' if site is None else f' of {site}'}.",
            f"See all with: {command_in(folder, 'capture --list')}",
        )
    return wanted[-1]


def _same(unfinished: Sequence[SiteCapture], order: CaptureOrder, folder: Path) -> SiteCapture | None:
    """The unfinished capture that this order asked for; an error if there is one that was asked for otherwise."""
    from recrawl.crawl.capture_order import CaptureOrder

    of_site = [known for known in unfinished if known.site == order.site]
    for known in reversed(of_site):
        if CaptureOrder.from_json(known.terms) == order:
            return known
    if of_site:
        raise ConfigError(
            f"Capture {of_site[-1].id} of {order.site} is not finished, and was asked for in other words.",
            f"Go on with it: {command_in(folder, 'capture --resume')}   or begin another one: --anew.",
        )
    return None
