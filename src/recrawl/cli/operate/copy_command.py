"""``recrawl copy``: copy the store of a workspace to another database."""

from __future__ import annotations

from typing import Annotated

import typer

from recrawl.app.display import HERE
from recrawl.app.workspace.configuration import parse_assignments
from recrawl.app.workspace.settings import without_password
from recrawl.app.workspace.workspace import open_workspace
from recrawl.cli.options import JsonOption, SetOption, WorkspaceOption
from recrawl.model.plurals import counted

EXAMPLES = """
recrawl copy --to postgresql://me@db.example/crawl -w my-archive           from SQLite to PostgreSQL
recrawl copy --to postgresql://me@db.example/crawl -w my-archive --switch  and use it from now on
recrawl copy --to my-archive/recrawl-2.db -w my-archive                    back to an SQLite file
"""


def copy(
    to: Annotated[
        str,
        typer.Option("--to", metavar="STORE", help="New SQLite file, or empty PostgreSQL database (postgresql://…)."),
    ],
    *,
    switch: Annotated[
        bool, typer.Option("--switch", help="Write the new location into recrawl.yaml when the copy is complete.")
    ] = False,
    workspace: WorkspaceOption = HERE,
    json_output: JsonOption = False,
    assignments: SetOption = None,
) -> None:
    """Copy the store of a workspace to another database.

    Pages, visits, verdicts, captures, links, the schedule, learned noise, robots.txt copies and all else in the store
    are copied as they are, between SQLite and PostgreSQL in either direction. Archive files stay where they are: both
    stores refer to them.

    Stop all crawls first. An interrupted copy goes on where it stopped: run the same command again. At the end the
    number and a digest of the rows of every table are compared.
    """
    from recrawl.app.progress import progress
    from recrawl.app.workspace.workspace_wiring import politeness_of
    from recrawl.cli.tables import print_json
    from recrawl.crawl.clock import RealClock
    from recrawl.crawl.maintenance.workspace_copy import CopyRequest, copy_workspace

    place = open_workspace(workspace, parse_assignments(assignments or []))
    pause = politeness_of(place.configuration.settings.politeness).shortest
    order = CopyRequest(place.folder, place.store, to, pause, switch)
    with progress() as tell:
        copied = copy_workspace(order, RealClock().now(), tell)
    shown = without_password(to)
    if json_output:
        print_json({"store": shown, "tables": {one.name: {"rows": one.rows, "digest": one.digest} for one in copied}})
        return
    rows = {one.name: one.rows for one in copied}
    typer.echo(
        f"Copied {counted(rows['page'], 'page')}, {counted(rows['visit'], 'visit')} and "
        f"{counted(rows['capture'], 'capture')} to {shown}; all rows of {len(copied)} tables are the same."
    )
    if switch:
        typer.echo("The workspace uses the copy from now on.")
    else:
        typer.echo(f"To use it, set store.location in {place.folder / 'recrawl.yaml'}, or copy with --switch.")
