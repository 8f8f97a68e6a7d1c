"""Options that several commands share, with one name, one meaning and one help text each."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

WorkspaceOption = Annotated[
    Path,
    typer.Option("--workspace", "-w", envvar="RECRAWL_WORKSPACE", metavar="FOLDER", help="Folder of the workspace."),
]
JsonOption = Annotated[bool, typer.Option("--json", help="Print JSON instead of a table.")]
CsvOption = Annotated[bool, typer.Option("--csv", help="Print CSV instead of a table.")]
DryRunOption = Annotated[bool, typer.Option("--dry-run", help="Show what would be done without doing it.")]
SetOption = Annotated[
    list[str] | None,
    typer.Option(
        "--set",
        metavar="KEY=VALUE",
        help="Setting of recrawl.yaml for this run, e.g. store.location=other.db. May be repeated.",
    ),
]
LimitOption = Annotated[int, typer.Option("--limit", "-n", min=1, metavar="ROWS", help="Maximum number of rows.")]
SHOWN_ROWS = 50
"""Default number of printed rows; files hold all rows."""
RowsOption = Annotated[
    int | None,
    typer.Option(
        "--limit",
        "-n",
        min=1,
        metavar="ROWS",
        help=f"Maximum number of rows. Default: {SHOWN_ROWS} if printed, all in files.",
    ),
]
RowsFileOption = Annotated[
    Path | None, typer.Option("--output", "-o", metavar="FILE", help="File for the rows, .csv or .parquet.")
]
FilesArgument = Annotated[
    list[str] | None,
    typer.Argument(metavar="FILE", help="Archive files or folders. Default: the workspace.", show_default=False),
]
HostOption = Annotated[str | None, typer.Option(metavar="NAME", help="Only this host, as recrawl list hosts shows it.")]
AtOption = Annotated[
    str | None,
    typer.Option(metavar="TIME", help="Time of reference in UTC, e.g. 2026-11-09; later visits are ignored."),
]
MatchOption = Annotated[
    str | None,
    typer.Option(metavar="PATTERN", help="Only URLs that contain this text, or match it as a pattern with * and ?."),
]
MinObservationsOption = Annotated[int, typer.Option("--min-observations", min=1, help="At least N observations.")]
WindowOption = Annotated[
    str | None, typer.Option("--window", metavar="DURATION", help="Only visits in the last DURATION, e.g. 90d.")
]
ConcurrencyOption = Annotated[
    int | None,
    typer.Option("--concurrency", min=1, help="Number of concurrent requests. Default: crawl.concurrency."),
]
PlotOption = Annotated[Path | None, typer.Option(metavar="FILE", help="File for a plot: .png, .svg or .pdf.")]
DigestsOnlyOption = Annotated[
    bool, typer.Option("--digests-only", help="Compare captures by digest only, without reading archived bytes.")
]
CompositesOption = Annotated[
    int,
    typer.Option(
        "--composites",
        min=0,
        metavar="PAGES",
        help="Maximum number of captured pages to check with their page requisites; 0 for none.",
    ),
]
