"""``recrawl predict``: what to expect of pages that have no history yet."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from recrawl.cli.configuration import parse_assignments
from recrawl.cli.options import (
    HERE,
    SHOWN_ROWS,
    AtOption,
    HostOption,
    JsonOption,
    RowsFileOption,
    RowsOption,
    SetOption,
    WorkspaceOption,
    command_in,
    seconds_of,
)
from recrawl.cli.verbs import TeachingCommand, hyphenated, new_app
from recrawl.cli.workspace import open_workspace
from recrawl.model.words import counted

if TYPE_CHECKING:
    from recrawl.cli.workspace import Workspace

TRAIN = """
recrawl predict train -w my-archive              learn from the visits of the workspace
recrawl predict train --data ../data/documents   learn from recorded histories
recrawl predict train --name trial --seed 7      another model; predict.model says which is used
recrawl predict train --pages 0                  learn from all pages, not from 10,000 at most
"""
SCORE = """
recrawl predict score -w my-archive            how often each page is expected to change
recrawl predict score --output priors.parquet  all pages, for other programs (or .csv)
recrawl predict score --event new-links        new links instead of changes; new-external-links for those to elsewhere
"""
EVALUATE = """
recrawl predict evaluate -w my-archive         how well it foretells pages kept from training
recrawl predict evaluate --json
"""
EXPLAIN = """
recrawl predict explain https://example.org/news/
recrawl predict explain https://example.org/news/ --event new-links
"""
FEATURES = """
recrawl predict features -w my-archive -o features.parquet        all features of all pages, as known now
recrawl predict features --at 2026-06-01 -o june.csv              as they were known then, without looking further
recrawl predict features --group SP --group SN -o static.parquet  only those that need no history
"""

NameOption = Annotated[
    str | None, typer.Option("--name", metavar="NAME", help="The model; that of predict.model if none is named.")
]
PagesOption = Annotated[
    int,
    typer.Option("--pages", min=0, metavar="COUNT", help="Learn from so many at most, chosen at random; 0 for all."),
]
SeedOption = Annotated[int, typer.Option(min=0, help="The same seed and data, the same result.")]
DataOption = Annotated[
    Path | None,
    typer.Option("--data", metavar="FOLDER", help="A data set of recorded pages to learn from, not the workspace."),
]
EventOption = Annotated[
    str,
    typer.Option(
        "--event",
        metavar="KIND",
        help="What is foretold: changes, new-links, or one kind of these: new-internal-links, new-external-links.",
    ),
]

app = new_app()


@app.callback(cls=None, no_args_is_help=True)
def predict() -> None:
    """Say what to expect of pages before their histories tell, and learn it."""


@app.command("train", cls=TeachingCommand, epilog=TRAIN)
def train(  # noqa: PLR0913, PLR0917 - one argument an option
    data: DataOption = None,
    name: NameOption = None,
    seed: SeedOption = 1,
    pages: PagesOption = 10_000,
    workspace: WorkspaceOption = HERE,
    json_output: JsonOption = False,
    assignments: SetOption = None,
) -> None:
    """Learn what pages look like that change often, or get new links.

    Learns from what was known of each page at first sight (its URL, and its first copy if the archive has it) and from
    what its later visits found. The model goes to models/NAME in the workspace, with a card that says what it was
    trained on and how well it foretells pages that were kept from it. From then on rates, run, plan and capture use it
    for pages that have little history of their own.
    """
    from recrawl.cli.predict_lessons import material
    from recrawl.cli.predict_models import CARD, save_model
    from recrawl.cli.predict_output import print_scores, score_facts
    from recrawl.cli.predict_training import trained
    from recrawl.cli.tables import print_json
    from recrawl.errors import require

    place = open_workspace(workspace, parse_assignments(assignments or []))
    require("sklearn", "predict")  # told before the lessons are read, which takes long
    with place.open_store() as store:
        kept = trained(_name(place, name), material(place, store, data), seed, most=pages)
    folder = save_model(place.folder, kept)
    if json_output:
        print_json({"model": str(folder), **score_facts(kept.note)})
        return
    note = kept.note
    sites = counted(note.sites, "site")
    typer.echo(f"Learned from {note.pages_in_words} of {sites} and {counted(note.looks, 'look')} at them.")
    if note.pages < note.out_of:
        typer.echo("--pages 0 learns from all; that takes longer, and hardly foretells better.")
    print_scores(note.scores)
    typer.echo(f"Model: {folder}\nCard: {folder / CARD}")


@app.command("score", cls=TeachingCommand, epilog=SCORE)
def score(  # noqa: PLR0913, PLR0917 - one argument an option
    name: NameOption = None,
    event: EventOption = "changes",
    host: HostOption = None,
    limit: RowsOption = None,
    output: RowsFileOption = None,
    workspace: WorkspaceOption = HERE,
    json_output: JsonOption = False,
    assignments: SetOption = None,
) -> None:
    """Say how often each page is expected to change by its looks alone, whatever its visits found.

    Those that are expected to change most often come first. The interval holds the truth in nine cases of ten.
    """
    from recrawl.cli.predict_output import print_expected
    from recrawl.cli.predict_scores import expected
    from recrawl.cli.rates_output import check_ending, write_columns
    from recrawl.cli.tables import print_json, rows_of

    if output is not None:
        check_ending(output)
    place = open_workspace(workspace, parse_assignments(assignments or []))
    most = limit if limit is not None or output is not None else SHOWN_ROWS
    with place.open_store() as store:
        columns, total = expected(place, store, _name(place, name), hyphenated(event), host, most)
    shown = len(columns["url"])
    if output is not None:
        write_columns(output, columns)
        typer.echo(f"Wrote {counted(shown, 'row')} to {output}.")
    elif json_output:
        print_json(rows_of(columns))
    else:
        print_expected(columns)
        if shown < total:
            typer.echo(f"{shown:,} of {total:,} shown; --limit shows more.")


@app.command("evaluate", cls=TeachingCommand, epilog=EVALUATE)
def evaluate(  # noqa: PLR0913, PLR0917 - one argument an option
    data: DataOption = None,
    name: NameOption = None,
    seed: SeedOption = 1,
    pages: PagesOption = 10_000,
    workspace: WorkspaceOption = HERE,
    json_output: JsonOption = False,
    assignments: SetOption = None,
) -> None:
    """Say how well first looks at pages are foretold, beside one prior for all pages and one for each host.

    Models are trained anew on a part of the pages, and judged on the rest: on pages chosen at random, on pages that
    came later, and on whole sites that were left out. Then the model that is in use is judged by the pages that came
    since it was trained: if it has lost its calibration, it is time to train it again.
    """
    import dataclasses

    from recrawl.cli.predict_lessons import material
    from recrawl.cli.predict_models import has_model, load_model
    from recrawl.cli.predict_output import print_scores
    from recrawl.cli.predict_training import drifts_of, some_of
    from recrawl.cli.tables import print_json
    from recrawl.cli.waiting import bar
    from recrawl.predict.prior_splits import judge_all

    place = open_workspace(workspace, parse_assignments(assignments or []))
    chosen = _name(place, name)
    with place.open_store() as store:
        taught = material(place, store, data)
        with bar("splits", 3) as advance:
            scores = judge_all(some_of(taught, pages, seed), seed=seed, progress=advance)
        drifts = (
            drifts_of(place, store, load_model(place.folder, chosen, store.urls))
            if has_model(place.folder, chosen)
            else {}
        )
    if json_output:
        since = {event: {**dataclasses.asdict(one.told), "fit": one.fit.value} for event, one in drifts.items()}
        print_json({"scores": [dataclasses.asdict(one) for one in scores], "since_training": since or None})
        return
    print_scores(scores)
    for drift in drifts.values():
        typer.echo(drift.sentence())
    if not drifts:
        typer.echo(f"There is no model yet. Train one with: {command_in(workspace, 'predict train')}")


@app.command("explain", cls=TeachingCommand, epilog=EXPLAIN)
def explain(  # noqa: PLR0913, PLR0917 - one argument an option
    url: Annotated[str, typer.Argument(metavar="URL", help="A page; it need not be in the workspace.")],
    name: NameOption = None,
    event: EventOption = "changes",
    workspace: WorkspaceOption = HERE,
    json_output: JsonOption = False,
    assignments: SetOption = None,
) -> None:
    """Say what is expected of a page before its history tells, and which of its features make it so.

    A feature with factor 2 doubles the rate: if the page had that feature from another page, it would be expected to
    change half as often, on average.
    """
    from recrawl.cli.predict_output import print_reasons
    from recrawl.cli.predict_scores import reasons
    from recrawl.cli.tables import print_json

    place = open_workspace(workspace, parse_assignments(assignments or []))
    with place.open_store() as store:
        found = reasons(place, store, _name(place, name), hyphenated(event), url)
    if json_output:
        print_json(found.facts())
    else:
        print_reasons(found)


@app.command("features", cls=TeachingCommand, epilog=FEATURES)
def features(  # noqa: PLR0913, PLR0917 - one argument an option
    output: Annotated[
        Path, typer.Option("--output", "-o", metavar="FILE", help="Write the rows to a .csv or .parquet file.")
    ],
    at: AtOption = None,
    group: Annotated[
        list[str] | None,
        typer.Option("--group", metavar="SP|SN|DP|DN", help="Only the features of this group; may be repeated."),
    ] = None,
    period: Annotated[
        str, typer.Option("--period", metavar="DURATION", help="What new links and changes are counted over.")
    ] = "7d",
    history: Annotated[int, typer.Option("--history", min=0, max=52, help="Periods that are looked back.")] = 8,
    seed: SeedOption = 1,
    workspace: WorkspaceOption = HERE,
    assignments: SetOption = None,
) -> None:
    """Write what is known of pages as a table of features, for learners of your own.

    One row a page that was known by then, one column a feature. SP are static features of the page, SN those of its
    network and of pages that are about the same; DP and DN are their histories. They are made of the copies in the
    archive, read again. Empty is what nobody knows. A .parquet file says of each column its group, and of the whole its
    time and schema.
    """
    from recrawl.cli.predict_features import Asked, feature_table, groups_of, write_features
    from recrawl.cli.rates_output import check_ending
    from recrawl.cli.rates_question import moment
    from recrawl.crawl.clock import RealClock

    check_ending(output)
    as_of, span, groups = moment(at, RealClock().now()), seconds_of("--period", period), groups_of(group or [])
    asked = Asked(as_of, span, history, seed, groups)
    place = open_workspace(workspace, parse_assignments(assignments or []))
    with place.open_store() as store:
        found = feature_table(place, store, asked)
    write_features(output, found, asked)
    typer.echo(found.sentence())
    typer.echo(f"Wrote {counted(len(found.table), 'row')} to {output}.")


def _name(place: Workspace, name: str | None) -> str:
    from recrawl.cli.predict_models import USUAL
    from recrawl.errors import ConfigError

    chosen = name or place.configuration.settings.predict.model or USUAL
    if not chosen.replace("-", "").replace("_", "").replace(".", "").isalnum() or chosen.startswith("."):
        raise ConfigError(f"{chosen!r} cannot be the name of a model.", "Use letters, digits, - and _.")
    return chosen
