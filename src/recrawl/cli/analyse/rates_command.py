"""Estimate change rates: ``recrawl rates``, ``recrawl rates diagnose`` and ``recrawl rates compare``."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from recrawl.app.display import HERE, command_in, seconds_of
from recrawl.app.progress import line
from recrawl.app.rates.rates_table import (
    ChangeAspect,
    RatesGrouping,
    RatesOrder,
    RatesQuestion,
    estimator_named,
    moment,
)
from recrawl.app.workspace.configuration import parse_assignments
from recrawl.app.workspace.workspace import open_workspace
from recrawl.cli.commands import Subcommand
from recrawl.cli.options import (
    SHOWN_ROWS,
    AtOption,
    HostOption,
    JsonOption,
    MatchOption,
    MinObservationsOption,
    PlotOption,
    RowsFileOption,
    RowsOption,
    SetOption,
    WindowOption,
    WorkspaceOption,
)
from recrawl.errors import ConfigError, counted
from recrawl.estimate.estimators import DEFAULT, ESTIMATORS
from recrawl.time import format_duration

if TYPE_CHECKING:
    from recrawl.app.provenance import Provenance
    from recrawl.app.rates.rates_table import Columns
    from recrawl.app.workspace.workspace import Workspace
    from recrawl.store.base import Store


EXAMPLES = """
recrawl rates -w my-archive                     the pages that change most often
recrawl rates --sort -rate --limit 10           the ones that change least
recrawl rates --sort changed --match /news/     news pages that have probably changed since
recrawl rates --by host --window 90d            hosts, from the visits of the last 90 days
recrawl rates --kind new-links --min-observations 5    new links only, well-observed pages only
recrawl rates --at 2026-01-01                   the estimates as of that time
recrawl rates --with-policy                     also the policy's estimates, by which recrawl plan decides
recrawl rates --output rates.parquet            all pages, for other programs (or .csv)
recrawl rates diagnose                          test whether changes are Poisson
recrawl rates compare                           which estimator predicts your pages best
"""
DIAGNOSE = """
recrawl rates diagnose -w my-archive            the verdict, and the numbers behind it
recrawl rates diagnose --plot poisson.png       with plots of rates and intervals
recrawl rates diagnose --host example.org --output pages.csv  the pages of one host, with one row per page
"""
COMPARE = """
recrawl rates compare -w my-archive             all estimators, the best first
recrawl rates compare --kind new-links          predictions of new links instead of changes
recrawl rates compare --estimator my_package:MINE --output scores.csv  with an estimator of yours
"""
KindOption = Annotated[ChangeAspect, typer.Option("--kind", help="Kind of change to count.")]
EstimatorOption = Annotated[
    str,
    typer.Option(
        "--estimator",
        metavar="NAME",
        help=f"Estimator of change rates: {', '.join(ESTIMATORS)}, or package.module:Name.",
    ),
]


def rates(  # noqa: PLR0913 - one argument an option
    host: HostOption = None,
    match: MatchOption = None,
    min_observations: MinObservationsOption = 1,
    *,
    kind: KindOption = ChangeAspect.ANY,
    by: Annotated[
        RatesGrouping,
        typer.Option(help="Unit of a row. host, section: the sum of their pages; site: a host treated as one page."),
    ] = RatesGrouping.PAGE,
    estimator: EstimatorOption = DEFAULT,
    window: WindowOption = None,
    at: AtOption = None,
    sort: Annotated[RatesOrder, typer.Option(help="Sort order.")] = RatesOrder.RATE,
    limit: RowsOption = None,
    with_policy: Annotated[
        bool,
        typer.Option("--with-policy", help="Add the policy's estimate of each page, by which recrawl plan decides."),
    ] = False,
    output: RowsFileOption = None,
    plot: PlotOption = None,
    workspace: WorkspaceOption = HERE,
    json_output: JsonOption = False,
    assignments: SetOption = None,
) -> None:
    """Estimate change rates, with intervals.

    All visits count, unchanged ones included. A page with few visits borrows from related pages (its directory, its
    host, all pages); a page with many visits depends on its own history. "About every 12 days, 9–17" means: the median
    estimate is 12 days, and the 90 % interval is 9 to 17 days. P(changed) is the probability that the page has changed
    since its last observation; for hosts and sections, the expected share of changed pages.

    The rate is what to expect from now on. A page may change its behaviour, so recent observations count more than
    those of years ago: a page with 100 changes ten years ago and none since has a low rate. --with-policy adds the
    estimate of the same rate by which recrawl plan decides: the policy learns it visit by visit.

    All estimators assume that changes follow a Poisson process; recrawl rates diagnose tests this on your pages.
    """
    from recrawl.app.predict.model_use import expected_changes
    from recrawl.cli.tables import command_provenance

    _check_files(output, plot)
    if with_policy and (by is not RatesGrouping.PAGE or kind is not ChangeAspect.ANY or window is not None):
        raise ConfigError(
            "The policy estimates rates of pages, by all visits and kinds of changes.",
            "Leave out --with-policy, or --by, --kind and --window.",
        )
    question = replace(
        _question(host, match, min_observations, kind, window, at, estimator),
        by=by,
        sort=sort,
        limit=limit if limit is not None or output is not None else SHOWN_ROWS,
    )
    place = open_workspace(workspace, parse_assignments(assignments or []))
    with place.open_store() as store:
        question = replace(question, expected=expected_changes(place, store, question.now))
        about = command_provenance(place.configuration, [workspace], as_of=question.now)
        more = _of_policy(place, store, question.now) if with_policy else None
        _table(store, question, output, plot, more, folder=workspace, about=about, json_output=json_output)


def _of_policy(place: Workspace, store: Store, now: float) -> Callable[[Columns], Columns]:
    """The columns of the policy's estimates for a table of pages: those of ``recrawl plan``, as of the same time."""
    import numpy as np

    from recrawl.app.plan import policy_estimates
    from recrawl.cli.analyse.plan_command import PlanningInputs
    from recrawl.crawl.control.runtime_limits import limits

    outlook = PlanningInputs(place, store, place.limited(limits(store.controls())).configuration, now).outlook()

    def added(columns: Columns) -> Columns:
        known = ~np.isnan(np.array(columns["changes_per_day"], np.float64))
        return policy_estimates(outlook, np.array(columns["page"], np.int64), known, np.array(columns["gone_since"]))

    return added


def diagnose(  # noqa: PLR0913 - one argument an option
    host: HostOption = None,
    match: MatchOption = None,
    min_observations: MinObservationsOption = 1,
    *,
    kind: KindOption = ChangeAspect.ANY,
    estimator: EstimatorOption = DEFAULT,
    window: WindowOption = None,
    at: AtOption = None,
    output: RowsFileOption = None,
    plot: PlotOption = None,
    workspace: WorkspaceOption = HERE,
    json_output: JsonOption = False,
    assignments: SetOption = None,
) -> None:
    """Test whether changes follow a Poisson process.

    All estimators assume it: changes are independent and have a constant rate. The test compares the pages with
    simulated Poisson pages at the same observation times. It prints a verdict: pages as assumed, pages that change in
    bursts, or pages that change more regularly. The plot shows the distribution of rates, the intervals between
    changes, and the median interval of each page. The file has one row per page.
    """
    from recrawl.app.rates.rates_diagnosis import SEED
    from recrawl.cli.tables import command_provenance

    _check_files(output, plot)
    question = _question(host, match, min_observations, kind, window, at, estimator)
    place = open_workspace(workspace, parse_assignments(assignments or []))
    about = command_provenance(place.configuration, [workspace], as_of=question.now, seed=SEED)
    with place.open_store() as store:
        _diagnose(store, question, output, plot, about, json_output=json_output)


def compare(  # noqa: PLR0913 - one argument an option
    host: HostOption = None,
    match: MatchOption = None,
    min_observations: MinObservationsOption = 1,
    *,
    kind: KindOption = ChangeAspect.ANY,
    estimator: EstimatorOption = DEFAULT,
    window: WindowOption = None,
    at: AtOption = None,
    output: RowsFileOption = None,
    workspace: WorkspaceOption = HERE,
    json_output: JsonOption = False,
    assignments: SetOption = None,
) -> None:
    """Back-test all estimators on the history of the workspace.

    At several past times, each estimator predicts the next observation of each page from earlier ones. The table shows
    log loss and Brier score, each with a 95 % interval, and the calibration error. Lower is better. --estimator adds an
    estimator of another package to the built-in ones.
    """
    from recrawl.app.rates.estimator_backtest import SEED
    from recrawl.cli.tables import command_provenance

    _check_files(output, None)
    question = _question(host, match, min_observations, kind, window, at, estimator)
    place = open_workspace(workspace, parse_assignments(assignments or []))
    about = command_provenance(place.configuration, [workspace], as_of=question.now, seed=SEED)
    with place.open_store() as store:
        _compare(store, question, output, about, json_output=json_output)


def _check_files(output: Path | None, plot: Path | None) -> None:
    """Refuse names of files that do not determine a format, before any work is done."""
    from recrawl.app.result_tables import check_ending, check_plot

    if output is not None:
        check_ending(output)
    if plot is not None:
        check_plot(plot)


def _question(  # noqa: PLR0913, PLR0917 - the options that all three commands share
    host: str | None,
    match: str | None,
    min_observations: int,
    kind: ChangeAspect,
    window: str | None,
    at: str | None,
    estimator: str,
) -> RatesQuestion:
    from recrawl.crawl.clock import RealClock

    return RatesQuestion(
        estimator_named(estimator),
        moment(at, RealClock().now()),
        kind,
        window=None if window is None else seconds_of("--window", window),
        host=host,
        match=match,
        min_observations=min_observations,
    )


def _table(  # noqa: PLR0913 - what is asked, and where the answer goes
    store: Store,
    question: RatesQuestion,
    output: Path | None,
    plot: Path | None,
    more: Callable[[Columns], Columns] | None,
    *,
    folder: Path,
    about: Provenance | None,
    json_output: bool,
) -> None:
    from recrawl.app.assess.assess_facts import index_warnings
    from recrawl.app.display import rows_of, shown_time
    from recrawl.app.rates.rates_table import answer, draw
    from recrawl.app.result_tables import write_columns
    from recrawl.cli.tables import print_json

    with line("Estimating rates"):
        columns, total = answer(store, question)
    if more is not None:
        columns |= more(columns)
    shown = len(columns["observations"])
    if plot is not None:
        draw(columns, question.by, plot)
    if output is not None:
        write_columns(output, columns, about)
        typer.echo(f"Wrote {counted(shown, 'row')} to {output}.")
    elif json_output:
        print_json(rows_of(columns))
    elif not shown:
        typer.echo(_why_none(question, folder))
    else:
        _print(columns, question)
        if shown < total:
            typer.echo(f"{shown:,} of {total:,} shown; --limit shows more.")
        said = "all kinds of changes" if question.kind is ChangeAspect.ANY else f"changes of kind {question.kind.value}"
        model = "" if question.expected is None else ", with the trained model of the workspace as prior"
        typer.echo(f"Estimated by {question.estimator.name} from {said}{model}, as of {shown_time(question.now)}.")
    for warning in index_warnings(store):
        typer.echo(warning, err=json_output or output is not None)
    if plot is not None and (output is not None or not json_output):
        typer.echo(f"Plot: {plot}")


def _why_none(question: RatesQuestion, folder: Path) -> str:
    """Explain why there is no row, and what to do."""
    from recrawl.app.display import shown_time
    from recrawl.app.workspace.settings import write_duration

    asked = {
        "--host": question.host,
        "--match": question.match,
        "--min-observations": question.min_observations if question.min_observations > 1 else None,
        "--window": None if question.window is None else write_duration(question.window),
    }
    options = ", ".join(f"{option} {value}" for option, value in asked.items() if value is not None)
    if options:
        return f"No {question.by.value} that was observed by {shown_time(question.now)} matches {options}."
    return (
        f"No page was observed by {shown_time(question.now)}. "
        f"Visit some with: {command_in(folder, 'run')}   or give a later time."
    )


def _print(columns: Columns, question: RatesQuestion) -> None:
    from recrawl.app.display import shown_share, shown_time
    from recrawl.cli.tables import print_table

    name = "url" if question.by is RatesGrouping.PAGE else question.by.value
    told = zip(*(columns[name] for name in ("changes", "observations", "observed", "exact")), strict=True)
    evidence = [
        f"{counted(changes, 'change')} {'logged' if exact else 'in ' + counted(observations, 'observation')}, "
        f"{format_duration(observed)}"
        for changes, observations, observed, exact in told
    ]
    shown = {
        name: columns[name],
        "pages": [f"{count:,}" for count in columns.get("pages", [])],
        "changes": columns["in_words"],
        "policy's estimate": columns.get("policy_in_words", []),
        "evidence": evidence,
        "last change": [shown_time(when) for when in columns["last_change"]],
        "P(changed)": [shown_share(share) for share in columns["p_changed"]],
    }
    if question.by is RatesGrouping.PAGE:
        del shown["pages"]
    if "policy_in_words" not in columns:
        del shown["policy's estimate"]
    print_table(list(shown), list(zip(*shown.values(), strict=True)), right=("pages", "P(changed)"))


def _diagnose(  # noqa: PLR0913 - what is asked, and where the answer goes
    store: Store,
    question: RatesQuestion,
    output: Path | None,
    plot: Path | None,
    about: Provenance | None,
    *,
    json_output: bool,
) -> None:
    from recrawl.app.rates.rates_diagnosis import columns, draw, facts, investigate, table_rows
    from recrawl.app.result_tables import write_columns
    from recrawl.assess.poisson_test import sentences
    from recrawl.cli.tables import print_json, print_table

    with line("Testing whether changes follow a Poisson process"):
        found = investigate(store, question)
    if plot is not None:
        draw(found, plot)
    if output is not None:
        write_columns(output, columns(store, found), about)
    if json_output:
        print_json(facts(found), about)
        return
    for sentence in sentences(found.diagnosis):
        typer.echo(sentence)
    typer.echo()
    print_table(("", "", ""), table_rows(found))
    if output is not None:
        typer.echo(f"Page by page: {output}")
    if plot is not None:
        typer.echo(f"Plot: {plot}")


def _compare(
    store: Store, question: RatesQuestion, output: Path | None, about: Provenance | None, *, json_output: bool
) -> None:
    from recrawl.app.rates.estimator_backtest import HEADINGS, columns, compare_estimators, facts, rests_on, table_rows
    from recrawl.app.result_tables import write_columns
    from recrawl.cli.tables import print_json, print_table

    with line("Back-testing estimators"):
        found = compare_estimators(store, question)
    if output is not None:
        write_columns(output, columns(found), about)
    if json_output:
        print_json(facts(found), about)
        return
    print_table(HEADINGS, table_rows(found), right=HEADINGS[2:])
    typer.echo(rests_on(found))


SUBCOMMANDS = (Subcommand("diagnose", diagnose, DIAGNOSE), Subcommand("compare", compare, COMPARE))
