"""The options that several verbs share, with one name, one meaning and one help text each."""

from __future__ import annotations

import os
import shlex
from pathlib import Path
from typing import Annotated

import typer

from recrawl.cli.setting_kinds import VISITS
from recrawl.errors import ConfigError
from recrawl.time import parse_duration

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
SHOWN_ROWS = 50
"""Rows that are printed where nobody says how many; files hold all."""
RowsOption = Annotated[
    int | None,
    typer.Option("--limit", "-n", min=1, metavar="ROWS", help=f"At most so many rows; {SHOWN_ROWS} if printed."),
]
RowsFileOption = Annotated[
    Path | None, typer.Option("--output", "-o", metavar="FILE", help="Write the rows to a .csv or .parquet file.")
]
FilesArgument = Annotated[
    list[str] | None,
    typer.Argument(metavar="[FILE...]", help="Archive files or folders; the workspace without.", show_default=False),
]
HostOption = Annotated[str | None, typer.Option(metavar="NAME", help="Only this host, as recrawl list hosts names it.")]
AtOption = Annotated[
    str | None,
    typer.Option(metavar="TIME", help="As of this time in UTC, e.g. 2026-11-09: later visits do not count."),
]
MatchOption = Annotated[
    str | None, typer.Option(metavar="PATTERN", help="Only URLs with this text in them, or like this with * and ?.")
]
PlotOption = Annotated[Path | None, typer.Option(metavar="FILE", help="Draw a picture too: .png, .svg or .pdf.")]
DigestsOnlyOption = Annotated[
    bool, typer.Option("--digests-only", help="Do not read archived bytes: judge changes by digests alone.")
]
CompositesOption = Annotated[
    int,
    typer.Option(
        "--composites", min=0, metavar="PAGES", help="Captured pages judged with what they embed; 0 judges none."
    ),
]
HERE = Path()


def seconds_of(option: str, text: str) -> float:
    """Seconds in the duration that an option was given.

    Raises:
        ConfigError: it is none; the option is named.

    >>> seconds_of("--window", "90d")
    7776000.0
    """
    try:
        return parse_duration(text)
    except ConfigError as error:
        raise ConfigError(f"{option}: {error.what}", error.remedy) from error


def pause_of(option: str, text: str) -> float:
    """Seconds between requests, as an option says them: 2s, 500ms; a bare number is seconds.

    Raises:
        ConfigError: it is none; the option is named.

    >>> pause_of("--delay", "10"), pause_of("--delay", "1min")
    (10.0, 60.0)
    """
    try:
        return float(text)
    except ValueError:
        return seconds_of(option, text)


def visits_of(option: str, text: str) -> float:
    """Visits a day, as an option says them: 500, 10000/day or 2/s.

    Raises:
        ConfigError: it is no such number; the option is named.

    >>> visits_of("--budget", "500/h")
    12000.0
    """
    try:
        return float(VISITS.read(text))
    except ConfigError as error:
        raise ConfigError(f"{option}: {error.what}", error.remedy) from error


def command_name() -> str:
    """How the user called us, for commands to try next: behind ``uv run`` the bare name is not on the path."""
    return "uv run recrawl" if "UV_RUN_RECURSION_DEPTH" in os.environ else "recrawl"  # noqa: TID251 - the command line


def command_in(folder: Path, verb: str, *arguments: str) -> str:
    """A command to try next in a workspace, as the user can type it.

    >>> command_in(Path("my-archive"), "add", "URL").removeprefix(command_name())
    ' add -w my-archive URL'
    """
    there = [] if folder == HERE else ["-w", shlex.quote(str(folder))]
    return " ".join((command_name(), verb, *there, *arguments))
