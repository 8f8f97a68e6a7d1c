"""``recrawl list``: pages, hosts or visits."""

from __future__ import annotations

import enum
from typing import TYPE_CHECKING, Annotated, Any

import typer

from recrawl.cli.configuration import parse_assignments
from recrawl.cli.options import HERE, HostOption, JsonOption, LimitOption, SetOption, WorkspaceOption
from recrawl.cli.workspace import open_workspace

if TYPE_CHECKING:
    from recrawl.store.base import Store

EXAMPLES = """
recrawl list pages -w my-archive
recrawl list hosts
recrawl list visits --host example.org --limit 100
recrawl list pages --json --limit 100000
"""

Columns = dict[str, list[Any]]
"""A table by column, all of one length."""


class What(enum.StrEnum):
    """What there is to list."""

    PAGES = "pages"
    HOSTS = "hosts"
    VISITS = "visits"


def listing(  # noqa: PLR0913 - one argument an option
    what: Annotated[What, typer.Argument(help="What to list.")] = What.PAGES,
    host: HostOption = None,
    *,
    limit: LimitOption = 50,
    workspace: WorkspaceOption = HERE,
    json_output: JsonOption = False,
    assignments: SetOption = None,
) -> None:
    """List pages, hosts or visits.

    Pages come with how often they were looked at, how often that found a change, when that last was, and when to come
    back. Hosts come with their pause between requests and when their next page is due. Visits come latest first, the
    ones that found nothing or failed included.
    """
    from recrawl.cli.knowledge import host_id
    from recrawl.cli.tables import print_columns, print_json, rows_of

    lister = {What.PAGES: _pages, What.HOSTS: _hosts, What.VISITS: _visits}[what]
    with open_workspace(workspace, parse_assignments(assignments or [])).open_store() as store:
        columns, more = lister(store, host_id(store, host), limit)
    if json_output:
        print_json(rows_of(columns))
        return
    print_columns(columns)
    if more:
        shown = len(columns["id" if "id" in columns else "page"])
        typer.echo(f"{shown} {more} shown; --limit shows more.")


def _pages(store: Store, host: int | None, limit: int) -> tuple[Columns, str]:
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
    }, _of(total, limit)


def _hosts(store: Store, host: int | None, limit: int) -> tuple[Columns, str]:
    import numpy as np

    hosts = store.hosts(None if host is None else np.array([host]))
    pages = np.bincount(np.searchsorted(hosts.id, store.pages().host), minlength=len(hosts)) if host is None else None
    columns: Columns = {
        "id": hosts.id[:limit].tolist(),
        "host": hosts.name[:limit],
        "delay": hosts.delay[:limit].tolist(),
        "ready_at": hosts.ready_at[:limit].tolist(),
        "next_due": hosts.next_due[:limit].tolist(),
    }
    if pages is not None:
        columns["pages"] = pages[:limit].tolist()
    return columns, _of(len(hosts), limit)


def _visits(store: Store, host: int | None, limit: int) -> tuple[Columns, str]:
    from recrawl.model import Outcome, Verdict

    found = store.latest_visits(limit + 1, host=host)
    visits = found.take(slice(limit))
    return {
        "page": visits.page.tolist(),
        "url": store.urls(visits.page),
        "time": visits.time.tolist(),
        "outcome": [_words(Outcome(code)) for code in visits.outcome.tolist()],
        "verdict": [_words(Verdict(code)) for code in visits.verdict.tolist()],
        "status": visits.status.tolist(),
        "size": visits.size.tolist(),
        "seconds": visits.cost.tolist(),
    }, "latest" if len(found) > limit else ""


def _of(total: int, limit: int) -> str:
    """What to say of how many there are, if that is more than is shown."""
    return f"of {total}" if total > limit else ""


def _words(value: enum.Enum) -> str:
    return value.name.lower().replace("_", " ")
