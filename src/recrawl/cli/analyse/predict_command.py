"""``recrawl predict``: train, apply and evaluate a model of change rates for pages without history."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from recrawl.app.display import HERE, command_in, seconds_of
from recrawl.app.workspace.configuration import parse_assignments
from recrawl.app.workspace.workspace import open_workspace
from recrawl.cli.commands import CommandWithExamples, SubcommandGroup, hyphenated, new_app
from recrawl.cli.options import (
    SHOWN_ROWS,
    AtOption,
    HostOption,
    JsonOption,
    RowsFileOption,
    RowsOption,
    SetOption,
    WorkspaceOption,
)
from recrawl.errors import counted
from recrawl.time import format_duration

if TYPE_CHECKING:
    from recrawl.app.predict.stored_models import PredictionReasons
    from recrawl.predict.prior_model import ClassScore, ModelCard, ModelScore


_TELLING = 1.05
"""Factors nearer to 1 are not printed."""


def print_scores(scores: Sequence[ModelScore]) -> None:
    """Print the scores of the model next to other priors."""
    from recrawl.cli.tables import print_table

    if not scores:
        typer.echo("Too few pages for a test set: the prediction error is not known.")
        return
    headings = (
        "kept from training",
        "pages",
        "model",
        "all pages",
        "host",
        "ten observations",
        "all pages",
        "host",
        "expected/found",
        "in 90%",
    )
    rows = []
    for one in scores:
        numbers = [f"{part[name]:.3f}" for part in (one.first, one.ten) for name in ("model", "all pages", "host")]
        rows.append((one.split, f"{one.pages:,}", *numbers, f"{one.calibration:.2f}", f"{one.coverage:.0%}"))
    typer.echo("Log loss of the first observation, then of the first ten, in nats; lower is better:")
    print_table(headings, rows, right=headings[1:])


def class_words(score: ClassScore) -> str:
    """The classes of a model, and how good its trees are, in a sentence."""
    every = ", ".join(format_duration(one) for one in score.intervals)
    return (
        f"Classes of change: {every}. The trees put {score.wrong:.0%} of the pages into a wrong class; the most common "
        f"class for all is wrong for {score.commonest:.0%}, one drawn by chance for {score.chance:.0%}."
    )


def score_facts(note: ModelCard) -> dict[str, object]:
    """A training note as JSON values."""
    import json

    facts: dict[str, object] = json.loads(note.to_json())
    return facts


def print_expected(columns: Mapping[str, Sequence[Any]]) -> None:
    """Print pages with their predicted change rates."""
    from recrawl.cli.tables import print_table

    rows = list(zip(columns["url"], columns["in_words"], columns["known_by"], strict=True))
    print_table(("url", "expected", "known by"), rows)


def print_reasons(found: PredictionReasons) -> None:
    """Print the prediction for a page, and its reasons."""
    from recrawl.cli.tables import print_table

    typer.echo(found.sentence())
    telling = [
        (name, shown, f"× {factor:.2f}") for name, shown, factor in found.rows if max(factor, 1.0 / factor) >= _TELLING
    ]
    if telling:
        print_table(("feature", "of this page", "factor"), telling, right=("factor",))
    else:
        typer.echo("No single feature has a large effect.")


TRAIN = """
recrawl predict train -w my-archive              learn from the visits of the workspace
recrawl predict train --data ../data/documents   learn from recorded histories
recrawl predict train --name trial --seed 7      another model; predict.model selects the one in use
recrawl predict train --pages 0                  learn from all pages, not from 10,000 at most
"""
SCORE = """
recrawl predict score -w my-archive            predicted change rate of each page
recrawl predict score --output priors.parquet  all pages, for other programs (or .csv)
recrawl predict score --event new-links        new links instead of changes; new-external-links for links to other sites
"""
EVALUATE = """
recrawl predict evaluate -w my-archive         prediction error on pages kept from training
recrawl predict evaluate --json
"""
STATUS = """
recrawl predict status -w my-archive           the model in use, how good it is, and who uses it
recrawl predict status --json
"""
EXPLAIN = """
recrawl predict explain https://example.org/news/
recrawl predict explain https://example.org/news/ --event new-links
"""
FEATURES = """
recrawl predict features -w my-archive -o features.parquet        all features of all pages, as known now
recrawl predict features --at 2026-06-01 -o june.csv              as known at that time
recrawl predict features --group SP --group SN -o static.parquet  only those that need no history
"""

NameOption = Annotated[
    str | None, typer.Option("--name", metavar="NAME", help="Name of the model. Default: predict.model.")
]
PagesOption = Annotated[
    int,
    typer.Option(
        "--pages", min=0, metavar="COUNT", help="Maximum number of training pages, chosen at random; 0 for all."
    ),
]
SeedOption = Annotated[int, typer.Option(min=0, help="Random seed.")]
DataOption = Annotated[
    Path | None,
    typer.Option(
        "--data", metavar="FOLDER", help="Folder of recorded histories to learn from, instead of the workspace."
    ),
]
EventOption = Annotated[
    str,
    typer.Option(
        "--event",
        metavar="KIND",
        help="Event to predict: changes, new-links, new-internal-links or new-external-links.",
    ),
]

app = new_app()


@app.callback(cls=SubcommandGroup, no_args_is_help=True)
def predict() -> None:
    """Predict how often new pages change, from their features."""


@app.command("train", cls=CommandWithExamples, epilog=TRAIN)
def train(  # noqa: PLR0913, PLR0917 - one argument an option
    data: DataOption = None,
    name: NameOption = None,
    seed: SeedOption = 1,
    pages: PagesOption = 10_000,
    workspace: WorkspaceOption = HERE,
    json_output: JsonOption = False,
    assignments: SetOption = None,
) -> None:
    """Train a model that predicts changes and new links from page features.

    The features of a page are those of its first visit: its URL, and its first copy if the archive has it. The targets
    are the results of its later visits. The model is stored in models/NAME in the workspace, with a card that describes
    the training data and the prediction error on pages kept from training. From then on rates, run, plan and capture
    use the model for pages with little history.
    """
    from recrawl.app.predict.model_training import class_intervals, material, trained
    from recrawl.app.predict.model_use import model_name
    from recrawl.app.predict.stored_models import CARD, save_model
    from recrawl.cli.tables import print_json
    from recrawl.errors import require

    place = open_workspace(workspace, parse_assignments(assignments or []))
    require("sklearn", "predict")  # printed before the training histories are read, which takes long
    with place.open_store() as store:
        taught = material(place, store, data)
        kept = trained(model_name(place, name), taught, seed, most=pages, classes=class_intervals(place))
    folder = save_model(place.folder, kept)
    if json_output:
        print_json({"model": str(folder), **score_facts(kept.note)})
        return
    note = kept.note
    sites = counted(note.sites, "site")
    typer.echo(
        f"Learned from {note.pages_in_words} of {sites} and {counted(note.observations, 'observation')} of them."
    )
    if note.pages < note.out_of:
        typer.echo("--pages 0 uses all pages. This takes longer and hardly improves predictions.")
    print_scores(note.scores)
    if note.classes is not None:
        typer.echo(class_words(note.classes))
    typer.echo(f"Model: {folder}\nCard: {folder / CARD}")


@app.command("score", cls=CommandWithExamples, epilog=SCORE)
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
    """Predict the change rate of each page from its features alone.

    Visit results are not used. The highest rates come first. Intervals cover the true rate in 90 % of cases.
    """
    from recrawl.app.display import rows_of
    from recrawl.app.predict.model_use import model_name
    from recrawl.app.predict.stored_models import expected
    from recrawl.app.result_tables import check_ending, write_columns
    from recrawl.cli.tables import command_provenance, print_json

    if output is not None:
        check_ending(output)
    place = open_workspace(workspace, parse_assignments(assignments or []))
    most = limit if limit is not None or output is not None else SHOWN_ROWS
    with place.open_store() as store:
        columns, total = expected(place, store, model_name(place, name), hyphenated(event), host, most)
    shown = len(columns["url"])
    if output is not None:
        write_columns(output, columns, command_provenance(place.configuration, [workspace]))
        typer.echo(f"Wrote {counted(shown, 'row')} to {output}.")
    elif json_output:
        print_json(rows_of(columns))
    else:
        print_expected(columns)
        if shown < total:
            typer.echo(f"{shown:,} of {total:,} shown; --limit shows more.")


@app.command("evaluate", cls=CommandWithExamples, epilog=EVALUATE)
def evaluate(  # noqa: PLR0913, PLR0917 - one argument an option
    data: DataOption = None,
    name: NameOption = None,
    seed: SeedOption = 1,
    pages: PagesOption = 10_000,
    workspace: WorkspaceOption = HERE,
    json_output: JsonOption = False,
    assignments: SetOption = None,
) -> None:
    """Evaluate predictions for new pages against simpler priors.

    The simpler priors are one prior for all pages and one per host. Models are trained on a part of the pages and
    tested on the rest: on random pages, on later pages, and on whole sites that were left out. Then the model in use is
    tested on pages that are newer than its training. If it has lost its calibration, train it again.
    """
    import dataclasses

    from recrawl.app.predict.model_training import drifts_of, material, some_of
    from recrawl.app.predict.model_use import model_name
    from recrawl.app.predict.stored_models import has_model, load_model
    from recrawl.app.progress import bar
    from recrawl.cli.tables import print_json
    from recrawl.predict.prior_scores import evaluate_splits

    place = open_workspace(workspace, parse_assignments(assignments or []))
    chosen = model_name(place, name)
    with place.open_store() as store:
        taught = material(place, store, data)
        with bar("splits", 3) as advance:
            scores = evaluate_splits(some_of(taught, pages, seed), seed=seed, progress=advance)
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


@app.command("status", cls=CommandWithExamples, epilog=STATUS)
def status(
    name: NameOption = None,
    workspace: WorkspaceOption = HERE,
    json_output: JsonOption = False,
    assignments: SetOption = None,
) -> None:
    """Show which model is in use and how good it is.

    Without a model, shows when a run will train the first one. The prediction errors are those of pages and sites kept
    from training; pages that are newer than the training show whether the model still fits. A policy of classes
    (historic-classes, bayes-classes) starts pages in the class that the trees of the model predict.
    """
    from recrawl.app.predict.model_use import model_name, model_status
    from recrawl.cli.tables import print_json, print_table

    place = open_workspace(workspace, parse_assignments(assignments or []))
    with place.open_store() as store:
        found = model_status(place, store, model_name(place, name))
    if json_output:
        print_json(found.facts())
        return
    print_table(("", ""), found.rows())
    if found.note is None:
        typer.echo(f"Train one now with: {command_in(workspace, 'predict train')}")
        return
    print_scores(found.note.scores)
    if found.note.classes is not None:
        typer.echo(class_words(found.note.classes))


@app.command("explain", cls=CommandWithExamples, epilog=EXPLAIN)
def explain(  # noqa: PLR0913, PLR0917 - one argument an option
    url: Annotated[str, typer.Argument(metavar="URL", help="URL of a page, in the workspace or not.")],
    name: NameOption = None,
    event: EventOption = "changes",
    workspace: WorkspaceOption = HERE,
    json_output: JsonOption = False,
    assignments: SetOption = None,
) -> None:
    """Explain the prediction for a page by its features.

    A feature with factor 2 doubles the predicted rate: with this feature taken from another page, the prediction would
    be half as high on average.
    """
    from recrawl.app.predict.model_use import model_name
    from recrawl.app.predict.stored_models import reasons
    from recrawl.cli.tables import print_json

    place = open_workspace(workspace, parse_assignments(assignments or []))
    with place.open_store() as store:
        found = reasons(place, store, model_name(place, name), hyphenated(event), url)
    if json_output:
        print_json(found.facts())
    else:
        print_reasons(found)


@app.command("features", cls=CommandWithExamples, epilog=FEATURES)
def features(  # noqa: PLR0913, PLR0917 - one argument an option
    output: Annotated[
        Path, typer.Option("--output", "-o", metavar="FILE", help="File for the rows, .csv or .parquet.")
    ],
    at: AtOption = None,
    group: Annotated[
        list[str] | None,
        typer.Option("--group", metavar="SP|SN|DP|DN", help="Only features of this group. May be repeated."),
    ] = None,
    period: Annotated[
        str,
        typer.Option(
            "--period", metavar="DURATION", help="Length of a period over which new links and changes are counted."
        ),
    ] = "7d",
    history: Annotated[int, typer.Option("--history", min=0, max=52, help="Number of past periods.")] = 8,
    seed: SeedOption = 1,
    workspace: WorkspaceOption = HERE,
    assignments: SetOption = None,
) -> None:
    """Write a table of page features, for your own models.

    One row per page known at the time, one column per feature. SP are static features of the page, SN static features
    of its link network and of similar pages; DP and DN are the features of their histories. Features are computed from
    the archived copies. Unknown values are empty. A .parquet file also holds the group of each column, the time and the
    schema version.
    """
    from recrawl.app.predict.model_data import FeatureQuestion, feature_table, groups_of, write_features
    from recrawl.app.rates.rates_table import moment
    from recrawl.app.result_tables import check_ending
    from recrawl.cli.tables import command_provenance
    from recrawl.crawl.clock import RealClock

    check_ending(output)
    as_of, span, groups = moment(at, RealClock().now()), seconds_of("--period", period), groups_of(group or [])
    asked = FeatureQuestion(as_of, span, history, seed, groups)
    place = open_workspace(workspace, parse_assignments(assignments or []))
    with place.open_store() as store:
        found = feature_table(place, store, asked)
    write_features(output, found, asked, command_provenance(place.configuration, [workspace], as_of=as_of))
    typer.echo(found.sentence())
    typer.echo(f"Wrote {counted(len(found.table), 'row')} to {output}.")
