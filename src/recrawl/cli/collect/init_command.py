"""``recrawl init``: create a workspace."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from recrawl.app.display import HERE, command_in
from recrawl.app.workspace.configuration import FILE_NAME, parse_assignments
from recrawl.app.workspace.workspace import make_workspace, named
from recrawl.cli.options import SetOption

EXAMPLES = """
recrawl init                       in the current folder
recrawl init my-archive            in a new folder
recrawl init shared --store postgresql://me@db.example.org/archive
"""


def init(
    folder: Annotated[Path, typer.Argument(help="Folder of the workspace; created if it is missing.")] = HERE,
    store: Annotated[
        str | None,
        typer.Option(
            metavar="LOCATION", help="SQLite file or PostgreSQL URL, written to recrawl.yaml as store.location."
        ),
    ] = None,
    assignments: SetOption = None,
) -> None:
    """Create a workspace: a folder with settings, a store and archive files.

    Writes recrawl.yaml with every setting, its default and an explanation, creates an empty store, and creates the
    folders warc/ (archive files) and reports/ (tables and plots). An existing workspace is not changed. If it has
    recrawl.yaml but no store, the store is created.
    """
    flags = parse_assignments(assignments or [])
    if store is not None:
        flags["store.location"] = store
    is_new = not (folder / FILE_NAME).exists()
    make_workspace(folder, flags)
    typer.echo(f"Created a {'workspace' if is_new else 'store for the workspace'} in {named(folder)}.")
    typer.echo(f"Next, add pages: {command_in(folder, 'add', 'https://example.org/')}")
