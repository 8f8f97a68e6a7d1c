"""``recrawl plan``: what would be fetched next, when and why; how long a crawl takes; what a machine can keep."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer

from recrawl.cli.configuration import parse_assignments
from recrawl.cli.options import HERE, AtOption, HostOption, JsonOption, LimitOption, SetOption, WorkspaceOption
from recrawl.cli.waiting import line
from recrawl.cli.workspace import open_workspace
from recrawl.errors import ConfigError
from recrawl.model.words import counted

if TYPE_CHECKING:
    from recrawl.cli.plan_next import Columns, Unmet, WhatIf
    from recrawl.cli.plan_outlook import Outlook
    from recrawl.model import FloatArray
    from recrawl.store.base import Store

EXAMPLES = """
recrawl plan -w my-archive                      what comes next, and why
recrawl plan --host example.org --limit 100     of one host
recrawl plan --at 2026-11-09                    as it looked then
recrawl plan --set schedule.budget=5000         with another budget
recrawl plan --slots 24                         hour by hour, so that every hour's crawl fits
recrawl plan --crawl-time urls.txt --concurrency 20  how long these URLs take
recrawl plan --crawl-time all                   how long one visit to every page takes
recrawl plan --capacity --freshness 0.95        what it takes to keep 95 % of the pages current
recrawl plan --capacity --pages 1000000         what this budget does for a million such pages
"""
STORED = "recrawl explain tells those that the crawler stored at its last fit"


def plan(  # noqa: PLR0913 - one argument an option
    context: typer.Context,
    host: HostOption = None,
    at: AtOption = None,
    *,
    limit: LimitOption = 20,
    slots: Annotated[
        int | None, typer.Option(min=1, max=10_000, metavar="HOURS", help="Fill so many hourly slots instead.")
    ] = None,
    crawl_time: Annotated[
        str | None,
        typer.Option(
            metavar="URLS", help="Say how long a crawl takes: of a file of URLs (- for standard input), or all."
        ),
    ] = None,
    concurrency: Annotated[
        int | None,
        typer.Option(min=1, help="Requests at once in --slots, --crawl-time and --capacity, if not crawl.concurrency."),
    ] = None,
    capacity: Annotated[bool, typer.Option("--capacity", help="Say what a machine can keep.")] = False,
    freshness: Annotated[
        float | None, typer.Option(min=0.0, max=1.0, help="With --capacity: share of pages to keep current.")
    ] = None,
    recall: Annotated[
        float | None, typer.Option(min=0.0, max=1.0, help="With --capacity: share of changes to find.")
    ] = None,
    pages: Annotated[int | None, typer.Option(min=1, help="With --capacity: for so many pages of this kind.")] = None,
    workspace: WorkspaceOption = HERE,
    json_output: JsonOption = False,
    assignments: SetOption = None,
) -> None:
    """Say what would be fetched next, when and why, and what the budget buys.

    Every page is due when the value of a visit reaches its price, the one at which all visits asked for just use up the
    budget. Worth is the value of a visit now over that price; P(changed) is the probability that the page has changed
    since it was last seen, by all the time since. How often it changes is told at the pace it has now: many pages
    change less as they grow older. Below the table: pages that are late, what a tenth more or less budget would do, and
    what cannot be had, with the reason.

    --slots puts due pages into hourly slots, each filled so that its crawl ends within the hour; a page comes again
    when it is worth the price again, at most once an hour. --crawl-time runs a crawl through in advance, with download
    times, failures and pauses as past visits taught them; nine crawls in ten end in the interval it gives. --capacity
    answers what a budget keeps, what a share of current pages costs, and how many machines could make so many visits.
    """
    from recrawl.cli.plan_outlook import look_ahead
    from recrawl.cli.predict_use import expected_changes, expected_links
    from recrawl.cli.rates_question import moment
    from recrawl.crawl.clock import RealClock
    from recrawl.crawl.controls import limits

    questions = sum((slots is not None, crawl_time is not None, capacity))
    if questions > 1:
        raise ConfigError("--slots, --crawl-time and --capacity are three questions.", "Ask one after the other.")
    if questions and _was_given(context, "limit"):
        raise ConfigError("--limit is about the list of pages that come next.", "Leave it out here.")
    if not questions and concurrency is not None:
        raise ConfigError("--concurrency does not change what comes next.", "Add --slots, --crawl-time or --capacity.")
    if capacity and host is not None:
        raise ConfigError("--capacity is about all pages: hosts share one budget.", "Leave out --host.")
    if not capacity and (freshness, recall, pages) != (None, None, None):
        raise ConfigError("--freshness, --recall and --pages are about capacity.", "Add --capacity.")
    if freshness is not None and recall is not None:
        raise ConfigError("--freshness and --recall are two goals.", "Ask for one after the other.")
    place = open_workspace(workspace, parse_assignments(assignments or []))
    now = moment(at, RealClock().now())
    with place.open_store() as store:
        settings = place.limited(limits(store.controls())).configuration.settings
        at_once = concurrency or settings.crawl.concurrency
        if crawl_time is not None:
            from recrawl.cli.plan_crawl_time import tell_crawl_time

            tell_crawl_time(store, settings, crawl_time, at_once, now, host=host, json_output=json_output)
            return
        expected, links = expected_changes(place, store, now), expected_links(place, store, now)
        with line("Fitting the price to the budget"):
            outlook = look_ahead(store, settings, now, expected, links)
        if slots is not None:
            from recrawl.cli.plan_slots import tell_slots

            tell_slots(store, outlook, slots, at_once, host=host, json_output=json_output)
        elif capacity:
            from recrawl.cli.plan_capacity import Goal, tell_capacity

            goal = Goal("recall", recall) if recall is not None else Goal("freshness", freshness)
            tell_capacity(outlook, goal, pages, at_once, json_output=json_output)
        else:
            _tell_next(store, outlook, host, limit, json_output=json_output)


def _was_given(context: typer.Context, name: str) -> bool:
    """Whether an option stands on the command line, whatever its value."""
    source = context.get_parameter_source(name)
    return source is not None and source.name == "COMMANDLINE"


def _tell_next(store: Store, outlook: Outlook, host: str | None, limit: int, *, json_output: bool) -> None:
    from recrawl.cli.plan_answer import coming, facts
    from recrawl.cli.tables import print_json, shown_time

    with line("Asking what other budgets would buy"):
        found = coming(store, outlook, host, limit)
    if json_output:
        print_json(facts(found))
        return
    _print_next(found.columns)
    if len(found.due) > limit:
        typer.echo(f"{limit} of {len(found.due):,} shown; --limit shows more.")
    typer.echo(f"Due times are those of a fit to all that is known at {shown_time(outlook.now)}; {STORED}.")
    _print_late(outlook.now, found.late)
    _print_budget(outlook, found.buys, found.unmet)


def _print_next(columns: Columns) -> None:
    from recrawl.cli.tables import print_table, shown_share, shown_time

    shown = {
        "due": [shown_time(when) for when in columns["due"]],
        "url": columns["url"],
        "why": columns["why"],
        "worth": [shown_share(worth) for worth in columns["worth"]],
        "last look": [shown_time(when) for when in columns["last_look"]],
        "P(changed)": [shown_share(share) for share in columns["p_changed"]],
        "changes": columns["in_words"],
    }
    print_table(list(shown), list(zip(*shown.values(), strict=True)), right=("worth", "P(changed)"))


def _print_late(now: float, late: FloatArray) -> None:
    import numpy as np

    from recrawl.cli.tables import shown_time
    from recrawl.time import format_duration

    if len(late) == 1:
        typer.echo(f"1 page is late as of {shown_time(now)}, by {format_duration(float(late[0]))}.")
    elif len(late):
        typer.echo(
            f"{len(late):,} pages are late as of {shown_time(now)}: half of them by "
            f"{format_duration(float(np.median(late)))} or more, one by {format_duration(float(late.max()))}."
        )


def _print_budget(outlook: Outlook, buys: WhatIf, unmet: list[Unmet]) -> None:
    from recrawl.cli.plan_next import HEADINGS, LINK_HEADINGS, UNNAMED, what_if_rows
    from recrawl.cli.tables import print_table
    from recrawl.time import format_duration

    headings = LINK_HEADINGS if outlook.of_links else HEADINGS
    rows = what_if_rows(buys, outlook.budget, outlook.settings.schedule.objective, links=outlook.of_links)
    print_table(headings, rows, right=headings[1:])
    if buys.now.hopeless:
        hopeless = f"{counted(buys.now.hopeless, 'page')} {'is' if buys.now.hopeless == 1 else 'are'}"
        typer.echo(
            f"{hopeless} not worth a visit at this price; each gets one every "
            f"{format_duration(outlook.settings.schedule.max_interval)}."
        )
    for one in unmet[:UNNAMED]:
        typer.echo(f"Cannot be met: {one.what}: {one.reason}.")
    if len(unmet) > UNNAMED:
        typer.echo(f"Cannot be met: {counted(len(unmet) - UNNAMED, 'more host')}; --json names all.")
