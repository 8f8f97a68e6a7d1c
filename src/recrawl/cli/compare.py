"""``recrawl compare``: what other policies would have made of the same number of visits."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from recrawl.cli.configuration import parse_assignments
from recrawl.cli.options import HERE, JsonOption, SetOption, WorkspaceOption, visits_of
from recrawl.cli.workspace import open_workspace

if TYPE_CHECKING:
    from recrawl.cli.compare_runs import Comparison

EXAMPLES = """
recrawl compare -w my-archive
recrawl compare --policy nutch --policy hacs          others than the usual ones
recrawl compare --budget 500                          at 500 visits a day
recrawl compare --output reports/compare              at five budgets, with a table and a picture
"""


def compare(  # noqa: PLR0913 - one argument an option
    policy: Annotated[
        list[str] | None,
        typer.Option(
            metavar="NAME",
            help="Try this policy beside the one in use. May be repeated; a name that is none has all of them listed.",
        ),
    ] = None,
    budget: Annotated[
        str | None,
        typer.Option(metavar="VISITS", help="Visits a day, or like 500/h or 2/s; as many as were made if not given."),
    ] = None,
    *,
    tick: Annotated[
        str | None, typer.Option(metavar="DURATION", help="How often visits are planned, e.g. 6h; found if not given.")
    ] = None,
    repeats: Annotated[int, typer.Option(min=1, help="How often the unknown times of changes are drawn.")] = 5,
    seed: Annotated[int, typer.Option(min=0, help="Another number, other draws.")] = 1,
    pages: Annotated[int, typer.Option(min=10, help="Pages that take part at most, whole clusters of them.")] = 20_000,
    jobs: Annotated[
        int | None,
        typer.Option(min=1, help="Processes that work at once; as many as there are processors if not given."),
    ] = None,
    output: Annotated[
        Path | None,
        typer.Option("--output", "-o", metavar="FOLDER", help="Try five budgets, write a CSV table and a picture."),
    ] = None,
    workspace: WorkspaceOption = HERE,
    json_output: JsonOption = False,
    assignments: SetOption = None,
) -> None:
    """Say what other policies would have caught with the same visits.

    The past of this workspace is run again with each policy, which knows only what its own visits would have told it. A
    visit that found a change does not say when the page changed since the visit before: the time is drawn at random in
    between, several times over. Logs of changes, as imports of git have them, tell the time: then none is drawn.
    Changes that no visit found cannot be counted, so what was done really has an
    advantage; take differences for what they are at most.

    Where visits are made for new links (schedule.objective=links), only changes that brought some count.
    """
    from recrawl.cli.tables import print_json
    from recrawl.cli.waiting import line

    place = open_workspace(workspace, parse_assignments(assignments or []))
    with line("Reading the history") as stop_saying, place.open_store() as store:
        from recrawl.cli.compare_runs import Trial, compare_policies
        from recrawl.cli.contest_runs import tick_of

        trial = Trial(
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
    if output is not None:
        _write(found, output)
    if json_output:
        print_json(found.facts())
        return
    _print(found)
    if output is not None:
        typer.echo(f"\nWritten: {output / 'compare.csv'}, {output / 'compare.png'}")


def _print(found: Comparison) -> None:
    from recrawl.cli.tables import print_table

    typer.echo(found.headline())
    columns = ("policy", "caught", "95 %", "against yours", "current", "mean age", "delay", "in vain")
    print_table(columns, found.rows(), right=columns[1:])
    typer.echo(found.note())


def _write(found: Comparison, output: Path) -> None:
    from recrawl.show.experiments import draw_panels, write_csv

    output.mkdir(parents=True, exist_ok=True)
    write_csv(output / "compare.csv", found.columns())
    draw_panels(
        output / "compare.png",
        found.panels(),
        x_label="visits a day",
        y_label="share",
        title="What other policies would have made of it",
    )
