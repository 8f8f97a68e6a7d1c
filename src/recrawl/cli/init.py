"""``recrawl init``: make a workspace."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from recrawl.cli.configuration import FILE_NAME, parse_assignments
from recrawl.cli.options import HERE, SetOption, command_in
from recrawl.cli.workspace import make_workspace, named

EXAMPLES = """
recrawl init                       in the current folder
recrawl init my-archive            in a new folder
recrawl init shared --store postgresql://me@db.example.org/archive
"""


def init(
    folder: Annotated[Path, typer.Argument(help="The folder; made if it is missing.")] = HERE,
    store: Annotated[
        str | None,
        typer.Option(
            metavar="LOCATION", help="A SQLite file or a PostgreSQL URL, written to recrawl.yaml as store.location."
        ),
    ] = None,
    assignments: SetOption = None,
) -> None:
    """Make a workspace: a folder with settings, a store and room for archive files.

    Writes recrawl.yaml with every setting at its default and explained, opens an empty store, and makes the folders
    warc/ (archive files) and reports/ (tables and pictures). A folder that is a workspace already is left alone; if
    it has recrawl.yaml and no store, that is made.
    """
    flags = parse_assignments(assignments or [])
    if store is not None:
        flags["store.location"] = store
    is_new = not (folder / FILE_NAME).exists()
    make_workspace(folder, flags)
    typer.echo(f"Made a {'workspace' if is_new else 'store for the workspace'} in {named(folder)}.")
    typer.echo(f"Next, name pages: {command_in(folder, 'add', 'https://example.org/')}")
