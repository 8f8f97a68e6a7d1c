"""``recrawl experiment``: repeat a published or promised result on real or synthetic data."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from recrawl.cli.verbs import TeachingCommand, new_app

EXAMPLES = """
recrawl experiment rates --data ../data
recrawl experiment rates --data ../data/scholarly --repeats 3 --output reports/rates
"""

DataOption = Annotated[
    Path,
    typer.Option(
        "--data",
        envvar="RECRAWL_DATA",
        metavar="FOLDER",
        help="A data set (events.parquet beside pages.parquet or sources.parquet), or a folder that holds several.",
    ),
]
OutputOption = Annotated[
    Path, typer.Option("--output", "-o", metavar="FOLDER", help="Where tables and pictures go; made if missing.")
]
SeedOption = Annotated[int, typer.Option(min=0, help="Another number, other draws.")]
RepeatsOption = Annotated[int, typer.Option(min=1, help="How often the whole is repeated with other draws.")]

app = new_app()


@app.callback()
def experiment() -> None:
    """Repeat a result on real or synthetic data: tables as CSV and Markdown, and a picture."""


@app.command(cls=TeachingCommand, epilog=EXAMPLES)
def rates(
    data: DataOption,
    output: OutputOption = Path("experiment-rates"),
    seed: SeedOption = 1,
    repeats: RepeatsOption = 1,
    pages: Annotated[int, typer.Option(min=10, help="Pages taken of a site at most, whole clusters of them.")] = 1_500,
) -> None:
    """Compare estimators of change rates on real histories, from no visit to many.

    Pages are visited by three schedules: regularly, irregularly as archives do, and adaptively as crawlers do. The
    past is cut off at two moments; estimators learn from it and say how likely the next visit finds a change. They are
    judged by log loss, Brier score, calibration, and by the order in which they put the pages' future rates.
    """
    from recrawl.cli.rates_experiment import run

    run(data, output, seed=seed, repeats=repeats, most_pages=pages)
