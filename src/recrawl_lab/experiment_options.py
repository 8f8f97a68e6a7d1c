"""The options that several experiments share, with one name, one meaning and one help text each."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

DataOption = Annotated[
    Path,
    typer.Option(
        "--data",
        envvar="RECRAWL_DATA",
        metavar="FOLDER",
        help="Recorded changes: a data set (events.parquet beside pages.parquet or sources.parquet), or a folder "
        "that holds several.",
    ),
]
AnyDataOption = Annotated[
    Path | None,
    typer.Option(
        "--data",
        envvar="RECRAWL_DATA",
        metavar="FOLDER",
        help="Recorded changes: a data set (events.parquet beside pages.parquet or sources.parquet), or a folder "
        "that holds several.",
    ),
]
AnyHomePagesOption = Annotated[
    Path | None,
    typer.Option(
        "--data",
        envvar="RECRAWL_DATA",
        metavar="FOLDER",
        help="A data set that tells home pages and new links (pages.parquet beside events.parquet), such as "
        "tests/data/scholarly of the source code, or one that recrawl export wrote.",
    ),
]
OwnWorkspaceOption = Annotated[
    Path | None,
    typer.Option("--workspace", "-w", metavar="FOLDER", help="Folder of the workspace."),
]
CaptureFiles = Annotated[
    list[Path] | None,
    typer.Argument(metavar="FILE", help="Captures instead of a data set: indexes (CDX, CDXJ) or TimeMaps."),
]
OutputOption = Annotated[
    Path, typer.Option("--output", "-o", metavar="FOLDER", help="Folder for tables and plots; made if missing.")
]
SeedOption = Annotated[int, typer.Option(min=0, help="Random seed.")]
RepeatsOption = Annotated[int, typer.Option(min=1, help="Number of repetitions, each with other random draws.")]
JobsOption = Annotated[
    int | None, typer.Option(min=1, help="Number of worker processes. Default: the number of processors.")
]
