"""The options that several verbs share, with one name, one meaning and one help text each."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Annotated

import typer

WorkspaceOption = Annotated[
    Path,
    typer.Option("--workspace", "-w", envvar="RECRAWL_WORKSPACE", metavar="FOLDER", help="The workspace to work in."),
]
JsonOption = Annotated[bool, typer.Option("--json", help="Print JSON instead of a table, for other programs.")]
CsvOption = Annotated[bool, typer.Option("--csv", help="Print CSV instead of a table, for spreadsheets.")]
DryRunOption = Annotated[bool, typer.Option("--dry-run", help="Say what would be done, and do nothing.")]
SetOption = Annotated[
    list[str] | None,
    typer.Option(
        "--set",
        metavar="KEY=VALUE",
        help="Set any key of recrawl.yaml for this run, e.g. store.location=other.db. May be repeated.",
    ),
]
LimitOption = Annotated[int, typer.Option("--limit", "-n", min=1, metavar="ROWS", help="Print at most so many rows.")]
HostOption = Annotated[str | None, typer.Option(metavar="NAME", help="Only this host, as recrawl list hosts names it.")]
HERE = Path()


def command_name() -> str:
    """How the user called us, for commands to try next: behind ``uv run`` the bare name is not on the path."""
    return "uv run recrawl" if "UV_RUN_RECURSION_DEPTH" in os.environ else "recrawl"  # noqa: TID251 - the command line
