"""The state of a workspace: ``recrawl status`` and ``recrawl list``."""

from __future__ import annotations

import dataclasses
import enum
import math
from typing import TYPE_CHECKING, Annotated, Any

import typer

from recrawl.app.display import HERE
from recrawl.app.workspace.configuration import parse_assignments
from recrawl.app.workspace.workspace import open_workspace
from recrawl.cli.options import CsvOption, HostOption, JsonOption, LimitOption, SetOption, WorkspaceOption
from recrawl.errors import ConfigError, counted

if TYPE_CHECKING:
    from recrawl.app.status import FreshnessEstimate
    from recrawl.model import Visits
    from recrawl.store.base import HistoryStore, PageTable, Store


STATUS_EXAMPLES = """
recrawl status -w my-archive
recrawl status --json
"""


def status(workspace: WorkspaceOption = HERE, json_output: JsonOption = False, assignments: SetOption = None) -> None:
    """Show counts, freshness, due pages and running workers.

    Also shows the workers and their speed, the remaining budget, pauses and limits, and the last failures. Freshness is
    an estimate: the probability that a page is unchanged since its last observation, from its change rate and the time
    since, averaged over all pages with at least two observations. In a workspace of more than 20,000 pages, freshness
    and the number of observed pages are estimated from a random sample of pages. If there is a trained model, the
    status shows whether it still fits pages that are newer than its training.
    """
    from functools import partial

    from recrawl.app.display import shown_time
    from recrawl.app.predict.model_use import expected_changes, model_facts
    from recrawl.app.status import estimate_freshness, work_facts, work_rows
    from recrawl.cli.tables import print_json, print_table
    from recrawl.crawl.clock import time_of

    place = open_workspace(workspace, parse_assignments(assignments or []))
    with place.open_store() as store:
        now = time_of(store)
        counts, next_due, latest = store.counts(now), store.next_due(), store.latest_visits(1)
        known = estimate_freshness(store, now, partial(expected_changes, place))
        work, model = work_facts(place, store, now), model_facts(place, store)
        resources = len(store.resources())
    counts = dataclasses.replace(counts, pages=counts.pages - resources)
    last = float(latest.time[0]) if len(latest) else math.nan
    if json_output:
        facts = {
            "resources": resources,
            "fresh": known.share,
            "seen": known.seen,
            "sample": known.sample,
            "last_observed": last,
            "next_due": next_due,
            "now": now,
        }
        place_facts = {"workspace": str(place.folder), "store": place.shown_store}
        model_said = {"model": None if model is None else dataclasses.asdict(model)}
        print_json({**place_facts, **dataclasses.asdict(counts), **facts, **dataclasses.asdict(work), **model_said})
        return
    about = "about " if known.sample else ""
    rows = [
        ("workspace", str(place.folder)),
        ("store", place.shown_store),
        ("pages", f"{counts.pages:,} on {counted(counts.hosts, 'host')}, {about}{known.seen:,} of them seen"),
        *([("resources", f"{resources:,} of imported archives that are not visited")] if resources else []),
        ("visits", f"{counts.visits:,}: {counts.changed:,} found a change, {counts.failed:,} failed"),
        ("links", f"{counts.links:,}"),
        ("captures", f"{counts.captures:,}"),
        ("last visit", shown_time(last)),
        ("fresh now", _fresh(known)),
        ("due now", f"{counted(counts.due, 'page')}, {counts.leased:,} leased by workers"),
        ("next due", shown_time(next_due)),
        *([] if model is None else [("model", f"trained {shown_time(model.until)}. {model.said}")]),
        *work_rows(work, now),
    ]
    print_table(("", ""), rows)


def _fresh(known: FreshnessEstimate) -> str:
    """The estimated share of unchanged pages, among pages with a known rate."""
    if math.isnan(known.share):
        return "not known: no page was observed twice" if known.seen else "–"
    if known.sample:
        return f"{known.share:.0%} of the pages observed at least twice (estimated from a sample of {known.sample:,})"
    twice = f"{counted(known.rated, 'page')} observed at least twice"
    return f"{known.share:.0%} of {'the observed pages' if known.rated == known.seen else twice} (estimated)"


LIST_EXAMPLES = """
recrawl list pages -w my-archive
recrawl list hosts
recrawl list due                                 due pages, how late they are and why
recrawl list failing --host example.org          errors and the next attempts
recrawl list visits --host example.org --limit 100
recrawl list misdated                            visits made while the clock was wrong
recrawl list noise --host example.org            parts of its pages that are not compared
recrawl list workers                             who runs, and the buckets that each owns
recrawl list units                               all units of the crawl, and what waits for them
recrawl list pages --json --limit 100000
recrawl list failing --csv                       for a spreadsheet
"""

Columns = dict[str, list[Any]]
"""A table as columns of equal length."""


class ListKind(enum.StrEnum):
    """The kinds of lists."""

    PAGES = "pages"
    HOSTS = "hosts"
    VISITS = "visits"
    DUE = "due"
    FAILING = "failing"
    MISDATED = "misdated"
    NOISE = "noise"
    WORKERS = "workers"
    UNITS = "units"


_SPARE = {
    ListKind.PAGES: ("discovered", "importance"),
    ListKind.HOSTS: ("ready_at", "lies", "delay", "masked"),
    ListKind.NOISE: ("part", "position"),
    ListKind.WORKERS: ("since", "leased", "fitted", "in_flight"),
    ListKind.UNITS: ("address", "parse_per_visit", "budget_per_second", "moving", "cpu_per_visit", "price"),
    ListKind.VISITS: ("seconds", "size"),
    ListKind.MISDATED: ("seconds", "size"),
    ListKind.FAILING: ("since", "last_try", "quarantined"),
}
"""Columns that are dropped in a narrow terminal, the least important first."""


def listing(  # noqa: C901, PLR0912, PLR0913 - one argument an option, one case a table
    what: Annotated[ListKind, typer.Argument(help="Kind of list.")] = ListKind.PAGES,
    host: HostOption = None,
    *,
    limit: LimitOption = 50,
    workspace: WorkspaceOption = HERE,
    json_output: JsonOption = False,
    csv_output: CsvOption = False,
    assignments: SetOption = None,
) -> None:
    """List pages, hosts, visits, due or failing pages, misdated visits, noise, workers, or units.

    pages: observations, changes, the last change, and the next visit. hosts: the pause between requests, the next
    request, whether the host is paused, failing pages, pages forbidden by robots.txt, masked noise parts, and the
    reliability of its claims about changes. visits: latest first, unchanged and failed ones included. due: how late
    each page is, and why it is due.

    failing: the error, its duration, the number of failures, and the next attempt. A page on which recrawl itself
    failed twice in a row is quarantined: it is retried after hours, then days, until a visit succeeds. misdated: visits
    made while the clock was wrong, that is ahead of the real time or behind recorded visits. No estimate uses them.

    noise: parts of pages that are not compared because they differed between two requests moments apart, with their
    place, their last archived text, the kind and position of the difference, and the share of recent confirmations that
    differed. workers: the workers that share the store, how many of the 1,024 buckets of hosts each owns, and of its
    last fit the pages that it schedules, its price, and the visits per day that these pages ask for at this price.

    units: the units of the crawl, from the coordination database: their buckets and how many of them move, their
    workers, their measured capacity in visits per CPU second, and CPU and parse seconds per visit. waiting counts pages
    that others sent to the unit, outbox those that it has to send. standing_in counts the buckets of silent units in
    which it visits important pages.
    """
    from recrawl.app.display import rows_of
    from recrawl.app.rates.belief_table import host_id
    from recrawl.app.status import due, failing, hosts, how_many, noise_rows, unit_columns, worker_columns
    from recrawl.cli.tables import print_columns, print_csv, print_json
    from recrawl.crawl.clock import RealClock
    from recrawl.formats.warc.archived_bytes import ArchivedBytes

    if json_output and csv_output:
        raise ConfigError("--json and --csv exclude each other.", "Leave one of them out.")
    place = open_workspace(workspace, parse_assignments(assignments or []))
    now, settings = RealClock().now(), place.configuration.settings
    with place.open_store() as store:
        chosen = host_id(store, host)
        match what:
            case ListKind.PAGES:
                columns, more = _pages(store, chosen, limit)
            case ListKind.HOSTS:
                columns, more = hosts(store, chosen, limit)
            case ListKind.VISITS:
                columns, more = _visits(store, chosen, limit)
            case ListKind.MISDATED:
                columns, more = _misdated(store, chosen, limit)
            case ListKind.DUE:
                columns, more = due(store, settings.schedule, chosen, limit, now)
            case ListKind.FAILING:
                columns, more = failing(store, chosen, limit)
            case ListKind.NOISE:
                columns, total = noise_rows(store, ArchivedBytes.of(place.archive, store), chosen, limit)
                more = how_many(total, limit)
            case ListKind.WORKERS:
                columns, more = worker_columns(store, limit, now)
            case ListKind.UNITS:
                columns, more = unit_columns(place, limit, now)
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
    from recrawl.app.status import how_many

    pages = store.pages()
    if host is not None:
        pages = pages.take(pages.host == host)
    total = len(pages)
    pages = pages.take(slice(limit))
    histories = store.histories(pages=pages.id).align(pages.id)
    observations = histories.counts() + (histories.first_visit == histories.first_visit)
    return {
        "id": pages.id.tolist(),
        "url": store.urls(pages.id),
        "importance": pages.importance.tolist(),
        "discovered": pages.discovered.tolist(),
        "observations": observations.tolist(),
        "changes": histories.changes().tolist(),
        "last_observed": histories.last_visit.tolist(),
        "last_change": histories.last_change.tolist(),
        "next_due": store.due(pages.id).tolist(),
    }, how_many(total, limit)


def _visits(store: HistoryStore, host: int | None, limit: int) -> tuple[Columns, str]:
    return _as_columns(store, store.latest_visits(limit + 1, host=host), limit)


def _misdated(store: HistoryStore, host: int | None, limit: int) -> tuple[Columns, str]:
    import numpy as np

    visits = store.misdated_visits()
    if host is not None:
        visits = visits.take(
            store.pages(np.unique(visits.page)).host[np.unique(visits.page, return_inverse=True)[1]] == host
        )
    return _as_columns(store, visits.take(np.lexsort((visits.page, -visits.time))), limit)


def _as_columns(store: PageTable, found: Visits, limit: int) -> tuple[Columns, str]:
    """The first of these visits, and whether there are more."""
    from recrawl.app.status import in_words
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
