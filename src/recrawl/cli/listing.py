"""``recrawl list``: pages, hosts, visits, learned noise, what is due, fails or is misdated."""

from __future__ import annotations

import enum
import math
from typing import TYPE_CHECKING, Annotated, Any

import typer

from recrawl.cli.configuration import parse_assignments
from recrawl.cli.options import HERE, CsvOption, HostOption, JsonOption, LimitOption, SetOption, WorkspaceOption
from recrawl.cli.workspace import open_workspace
from recrawl.errors import ConfigError

if TYPE_CHECKING:
    from recrawl.model import Visits
    from recrawl.store.base import Store

EXAMPLES = """
recrawl list pages -w my-archive
recrawl list hosts
recrawl list due                                 which pages wait, for how long and why
recrawl list failing --host example.org          what went wrong, and when it is tried again
recrawl list visits --host example.org --limit 100
recrawl list misdated                            visits made while the clock was wrong
recrawl list noise --host example.org            which parts of its pages are not compared, and why
recrawl list pages --json --limit 100000
recrawl list failing --csv                       for a spreadsheet
"""

Columns = dict[str, list[Any]]
"""A table by column, all of one length."""


class What(enum.StrEnum):
    """What there is to list."""

    PAGES = "pages"
    HOSTS = "hosts"
    VISITS = "visits"
    DUE = "due"
    FAILING = "failing"
    MISDATED = "misdated"
    NOISE = "noise"


_SPARE = {
    What.PAGES: ("discovered", "importance"),
    What.HOSTS: ("ready_at", "lies", "delay", "masked"),
    What.NOISE: ("part", "position"),
    What.VISITS: ("seconds", "size"),
    What.MISDATED: ("seconds", "size"),
    What.FAILING: ("since", "last_try", "quarantined"),
}
"""Columns that a narrow terminal can do without, the least needed first."""


def listing(  # noqa: C901, PLR0913 - one argument an option, one case a table
    what: Annotated[What, typer.Argument(help="What to list.")] = What.PAGES,
    host: HostOption = None,
    *,
    limit: LimitOption = 50,
    workspace: WorkspaceOption = HERE,
    json_output: JsonOption = False,
    csv_output: CsvOption = False,
    assignments: SetOption = None,
) -> None:
    """List pages, hosts, visits, learned noise, what is due, fails or is misdated.

    Pages come with how often they were looked at, how often that found a change, when that last was, and when to come
    back. Hosts come with their pause between requests, when they may next be asked, whether they are paused, how many
    of their pages fail or are forbidden by robots.txt, how many parts of their pages are masked as noise, and whether
    what they say of changes proved true. Visits come
    latest first, the ones that found nothing or failed included. What is due comes with how late it is and why it is
    due, what fails with what went wrong, for how long and how often, and when it is tried again. A page that recrawl
    itself failed at twice in a row is quarantined: it is tried again after hours, then days, until a visit goes well.
    Misdated visits were made while the clock was wrong: their times were ahead of it when that was found, and no
    estimate uses them. Noise are the parts of pages that are not compared, because they differed between two requests
    moments apart: where, what they said when last archived, what differs, at which position, and in how many of the
    last confirmations.
    """
    from recrawl.cli.knowledge import host_id
    from recrawl.cli.listing_work import due, failing, hosts, how_many
    from recrawl.cli.noise import noise_rows
    from recrawl.cli.tables import print_columns, print_csv, print_json, rows_of
    from recrawl.crawl.archived_bytes import ArchivedBytes, imported_into
    from recrawl.crawl.clock import RealClock

    if json_output and csv_output:
        raise ConfigError("--json and --csv are two forms.", "Ask for one of them.")
    place = open_workspace(workspace, parse_assignments(assignments or []))
    now, settings = RealClock().now(), place.configuration.settings
    with place.open_store() as store:
        chosen = host_id(store, host)
        match what:
            case What.PAGES:
                columns, more = _pages(store, chosen, limit)
            case What.HOSTS:
                columns, more = hosts(store, chosen, limit)
            case What.VISITS:
                columns, more = _visits(store, chosen, limit)
            case What.MISDATED:
                columns, more = _misdated(store, chosen, limit)
            case What.DUE:
                columns, more = due(store, settings.schedule, chosen, limit, now)
            case What.FAILING:
                columns, more = failing(store, chosen, limit)
            case What.NOISE:
                columns, total = noise_rows(store, ArchivedBytes(place.warc, imported_into(store)), chosen, limit)
                more = how_many(total, limit)
    if json_output:
        print_json(rows_of(columns))
    elif csv_output:
        print_csv(columns)
    else:
        print_columns(columns, spare=_SPARE.get(what, ()))
        if more:
            shown = len(next(iter(columns.values())))
            typer.echo(f"{shown} {more} shown; --limit shows more.")


def _pages(store: Store, host: int | None, limit: int) -> tuple[Columns, str]:
    from recrawl.cli.listing_work import how_many

    pages = store.pages()
    if host is not None:
        pages = pages.take(pages.host == host)
    total = len(pages)
    pages = pages.take(slice(limit))
    histories = store.histories(pages=pages.id).align(pages.id)
    looks = histories.counts() + (histories.first_visit == histories.first_visit)
    return {
        "id": pages.id.tolist(),
        "url": store.urls(pages.id),
        "importance": pages.importance.tolist(),
        "discovered": pages.discovered.tolist(),
        "looks": looks.tolist(),
        "changes": histories.changes().tolist(),
        "last_look": histories.last_visit.tolist(),
        "last_change": histories.last_change.tolist(),
        "next_due": store.due(pages.id).tolist(),
    }, how_many(total, limit)


def _visits(store: Store, host: int | None, limit: int) -> tuple[Columns, str]:
    return _as_columns(store, store.latest_visits(limit + 1, host=host), limit)


def _misdated(store: Store, host: int | None, limit: int) -> tuple[Columns, str]:
    import numpy as np

    visits = store.misdated_visits()
    if host is not None:
        visits = visits.take(
            store.pages(np.unique(visits.page)).host[np.unique(visits.page, return_inverse=True)[1]] == host
        )
    return _as_columns(store, visits.take(np.lexsort((visits.page, -visits.time))), limit)


def _as_columns(store: Store, found: Visits, limit: int) -> tuple[Columns, str]:
    """The first of these visits, and whether there are more."""
    from recrawl.cli.listing_work import in_words
    from recrawl.model import Outcome, Verdict

    visits = found.take(slice(limit))
    return {
        "page": visits.page.tolist(),
        "url": store.urls(visits.page),
        "time": visits.time.tolist(),
        "outcome": [in_words(Outcome(code)) for code in visits.outcome.tolist()],
        "verdict": [in_words(Verdict(code)) for code in visits.verdict.tolist()],
        "magnitude": [round(share, 3) if share >= 0 else math.nan for share in visits.magnitude.tolist()],
        "status": visits.status.tolist(),
        "size": visits.size.tolist(),
        "seconds": visits.cost.tolist(),
    }, "latest" if len(found) > limit else ""
