"""``recrawl changes``: what changed on the pages of a workspace."""

from __future__ import annotations

import enum
from functools import reduce
from operator import or_
from typing import TYPE_CHECKING, Annotated

import typer

from recrawl.app.changes import (
    EVENTS,
    KINDS,
    ChangeEvent,
    FeedFrame,
    FoundChanges,
    as_atom,
    as_json_feed,
    as_markdown,
)
from recrawl.app.display import HERE, json_text
from recrawl.app.workspace.configuration import parse_assignments
from recrawl.app.workspace.workspace import open_workspace
from recrawl.cli.options import CsvOption, HostOption, JsonOption, LimitOption, MatchOption, SetOption, WorkspaceOption
from recrawl.errors import ConfigError
from recrawl.model import ChangeKind

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

EXAMPLES = """
recrawl changes -w my-archive                          the last 24 hours, latest first
recrawl changes --since 7d --event gone --event failing
recrawl changes --since 2026-11-01 --host example.org --kind new-links
recrawl changes --min-change 0.1                       no small edits
recrawl changes --as markdown --since 7d               for a mail or a page
recrawl changes --as atom --limit 100                  for a feed reader
"""


_COLUMNS = ("time", "event", "url", "magnitude", "summary")


class ChangesFormat(enum.StrEnum):
    """Forms of the list for other readers."""

    MARKDOWN = "markdown"
    ATOM = "atom"
    JSON_FEED = "json-feed"


def changes(  # noqa: PLR0913 - one argument an option
    *,
    since: Annotated[
        str, typer.Option(metavar="TIME", help="Duration before --until, or time in UTC: 24h, 7d, 2026-11-09.")
    ] = "24h",
    until: Annotated[str | None, typer.Option(metavar="TIME", help="Time in UTC. Default: now.")] = None,
    host: HostOption = None,
    match: MatchOption = None,
    event: Annotated[
        list[ChangeEvent] | None,
        typer.Option("--event", metavar="NAME", help=f"Only this event: {', '.join(EVENTS)}. May be repeated."),
    ] = None,
    kind: Annotated[
        list[str] | None,
        typer.Option("--kind", metavar="NAME", help=f"Only changes of this kind: {', '.join(KINDS)}. May be repeated."),
    ] = None,
    min_change: Annotated[
        float, typer.Option(min=0.0, max=1.0, metavar="SHARE", help="Only changes of at least this share of the page.")
    ] = 0.0,
    limit: LimitOption = 50,
    form: Annotated[
        ChangesFormat | None, typer.Option("--as", metavar="FORM", help="Print as: markdown, atom or json-feed.")
    ] = None,
    json_output: JsonOption = False,
    csv_output: CsvOption = False,
    workspace: WorkspaceOption = HERE,
    assignments: SetOption = None,
) -> None:
    """Show what changed: pages changed, added, gone, back, moved or failing.

    Each line has the time of the visit that found the change, how much of the page changed, and one sentence: the first
    edited, added and removed line, and links. changed: the visible content differs, learned noise aside. added: visited
    for the first time. gone: 404 or 410 now. back: found again. moved: it redirects to another address. failing: its
    visits fail since then, and the one before succeeded. Changes happened between the previous visit and this one
    (previous in JSON). recrawl explain shows the whole difference, and so does the dashboard.
    """
    from recrawl.app.changes import ChangesQuestion, feed_id, find_changes
    from recrawl.app.rates.belief_table import host_id
    from recrawl.app.rates.rates_table import moment
    from recrawl.cli.tables import print_csv, print_json
    from recrawl.crawl.clock import time_of
    from recrawl.parse.parse_pool import new_parse_pool

    if json_output + csv_output + (form is not None) > 1:
        raise ConfigError("--json, --csv and --as exclude each other.", "Give one of them.")
    place = open_workspace(workspace, parse_assignments(assignments or []))
    detect = place.configuration.settings.detect
    pool = new_parse_pool(detect.parse_limits(), detect.standards())
    try:
        with place.open_store() as store:
            end = moment(until, time_of(store))
            question = ChangesQuestion(
                since=_begin(since, end),
                until=end,
                host=host_id(store, host),
                events=frozenset(event or EVENTS),
                kinds=_kinds(kind or []),
                min_change=min_change,
                match=match or "",
                limit=limit,
            )
            found = find_changes(place, store, question, pool)
            identity = feed_id(store)
    finally:
        pool.close()
    facts = [one.facts() for one in found.changes]
    if json_output:
        print_json(facts)
    elif csv_output:
        print_csv({name: [one[name] for one in facts] for name in (*_COLUMNS, "previous", "status", "id")})
    elif form is not None:
        frame = FeedFrame(f"Changes in {place.folder.resolve().name}", identity, updated=end)
        typer.echo(_FORMS[form](found, frame), nl=False)
    else:
        _print(found, facts, limit)


def _begin(text: str, end: float) -> float:
    """The start of the period: a duration before its end, or a time."""
    from recrawl.app.rates.rates_table import moment
    from recrawl.time import parse_duration

    try:
        return end - parse_duration(text)
    except ConfigError:
        pass
    try:
        return moment(text, end)
    except ConfigError as error:
        raise ConfigError(
            f"--since: {text!r} is neither a duration nor a time.", "Write it as 24h, 7d or 2026-11-09."
        ) from error


def _kinds(names: list[str]) -> ChangeKind:
    from recrawl.errors import meant

    for name in names:
        if name not in KINDS:
            raise ConfigError(
                f"{name!r} is not a kind of change.", meant(name, tuple(KINDS), f"Kinds are: {', '.join(KINDS)}.")
            )
    return reduce(or_, (KINDS[name] for name in names), ChangeKind.NONE)


def _print(found: FoundChanges, facts: Sequence[Mapping[str, object]], limit: int) -> None:
    from recrawl.cli.tables import print_columns

    if facts:
        print_columns({name: [one[name] for one in facts] for name in _COLUMNS}, spare=("magnitude",))
    if found.total > limit:
        typer.echo(f"{limit:,} of {found.total:,} changes shown; --limit shows more.")
    elif not facts:
        typer.echo("No such change in that time. For a longer time: --since 7d")


_FORMS: dict[ChangesFormat, Callable[[FoundChanges, FeedFrame], str]] = {
    ChangesFormat.MARKDOWN: lambda found, _: as_markdown(found),
    ChangesFormat.ATOM: lambda found, frame: as_atom(found, frame).decode() + "\n",
    ChangesFormat.JSON_FEED: lambda found, frame: json_text(as_json_feed(found, frame)) + "\n",
}
