"""``recrawl compare``: back-test policies with the same number of visits."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from recrawl.app.display import HERE, visits_of
from recrawl.app.workspace.configuration import parse_assignments
from recrawl.app.workspace.workspace import open_workspace
from recrawl.cli.options import JsonOption, SetOption, WorkspaceOption

if TYPE_CHECKING:
    from recrawl.app.compare.compare_runs import PolicyComparison
    from recrawl.app.provenance import Provenance


EXAMPLES = """
recrawl compare -w my-archive
recrawl compare --policy nutch --policy hacs          selected policies
recrawl compare --budget 500                          at 500 visits a day
recrawl compare --output reports/compare              at five budgets, with a table and a plot
"""


def compare(  # noqa: PLR0913 - one argument an option
    policy: Annotated[
        list[str] | None,
        typer.Option(
            metavar="NAME",
            help="Policy to compare with the one in use: a name, or package.module:Name. May be repeated; an unknown "
            "name "
            "prints the list.",
        ),
    ] = None,
    budget: Annotated[
        str | None,
        typer.Option(metavar="VISITS", help="Visits per day, or 500/h, or 2/s. Default: as many as were made."),
    ] = None,
    *,
    tick: Annotated[
        str | None,
        typer.Option(metavar="DURATION", help="Planning interval, e.g. 6h. Default: estimated from the history."),
    ] = None,
    repeats: Annotated[int, typer.Option(min=1, help="Number of random draws of the unknown change times.")] = 5,
    seed: Annotated[int, typer.Option(min=0, help="Random seed.")] = 1,
    pages: Annotated[int, typer.Option(min=10, help="Maximum number of pages; whole clusters are chosen.")] = 20_000,
    jobs: Annotated[
        int | None,
        typer.Option(min=1, help="Number of worker processes. Default: the number of processors."),
    ] = None,
    output: Annotated[
        Path | None,
        typer.Option("--output", "-o", metavar="FOLDER", help="Folder for a CSV table and a plot at five budgets."),
    ] = None,
    workspace: WorkspaceOption = HERE,
    json_output: JsonOption = False,
    assignments: SetOption = None,
) -> None:
    """Back-test other policies on the history of the workspace.

    Replays the recorded history of the workspace with each policy. A policy learns only from its own visits. A visit
    that found a change does not tell when the page changed, so the time is drawn at random between the two visits,
    several times. If change times are known, as in imports from git, they are used as they are. Changes that no visit
    found are not counted. This favours the schedule that was really used, so differences in its favour are upper
    bounds.

    With schedule.objective=links only changes that added links count.
    """
    from recrawl.app.progress import line
    from recrawl.cli.tables import command_provenance, print_json

    place = open_workspace(workspace, parse_assignments(assignments or []))
    with line("Reading the history") as stop_saying, place.open_store() as store:
        from recrawl.app.compare.benchmark_runs import tick_of
        from recrawl.app.compare.compare_runs import ComparisonQuestion, compare_policies

        trial = ComparisonQuestion(
            policies=policy,
            budget=None if budget is None else visits_of("--budget", budget),
            tick=None if tick is None else tick_of(tick),
            repeats=repeats,
            seed=seed,
            most_pages=pages,
            jobs=jobs,
            several_budgets=output is not None,
        )
        found = compare_policies(store, place.configuration.settings, trial, stop_saying)
    about = command_provenance(place.configuration, [workspace], as_of=float(found.field.truth.end))
    if output is not None:
        _write(found, output, about)
    if json_output:
        print_json(found.facts(), about)
        return
    _print(found)
    if output is not None:
        typer.echo(f"\nWritten: {output / 'compare.csv'}, {output / 'compare.png'}")


def _print(found: PolicyComparison) -> None:
    from recrawl.cli.tables import print_table

    typer.echo(found.headline())
    columns = ("policy", "caught", "95%", "against yours", "current", "mean age", "delay", "in vain")
    print_table(columns, found.rows(), right=columns[1:])
    typer.echo(found.note())


def _write(found: PolicyComparison, output: Path, about: Provenance | None) -> None:
    from recrawl.app.result_tables import new_figure, save_figure, write_csv

    output.mkdir(parents=True, exist_ok=True)
    write_csv(output / "compare.csv", found.columns(), about)
    figure = new_figure()
    found.plot(figure)
    save_figure(figure, output / "compare.png")
