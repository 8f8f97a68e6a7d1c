"""``recrawl rates``: how often pages change."""

from __future__ import annotations

from dataclasses import replace
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
    MatchOption,
    PlotOption,
    RowsFileOption,
    RowsOption,
    SetOption,
    WorkspaceOption,
    command_in,
    seconds_of,
)
from recrawl.cli.rates_question import By, Kind, Question, Sort, estimator_named, moment
from recrawl.cli.waiting import line
from recrawl.cli.workspace import open_workspace
from recrawl.errors import ConfigError
from recrawl.estimate.estimators import DEFAULT, ESTIMATORS
from recrawl.model.words import counted
from recrawl.time import format_duration

if TYPE_CHECKING:
    from recrawl.cli.rates_table import Columns
    from recrawl.store.base import Store

EXAMPLES = """
recrawl rates -w my-archive                     the pages that change most often
recrawl rates --sort seldom --limit 10          the ones that change least
recrawl rates --sort changed --match /news/     news that have probably changed since
recrawl rates --by host --window 90d            sites, by what they did in the last 90 days
recrawl rates --kind new-links --min-looks 5    only new links count, only well-known pages
recrawl rates --at 2026-01-01                   what was known then
recrawl rates --output rates.parquet            all pages, for other programs (or .csv)
recrawl rates --diagnose --plot poisson.png     is it Poisson? a verdict, numbers, pictures
recrawl rates --compare                         which estimator foretells this workspace best?
"""


def rates(  # noqa: PLR0913 - one argument an option
    host: HostOption = None,
    match: MatchOption = None,
    min_looks: Annotated[int, typer.Option(min=1, help="Only what was looked at so often.")] = 1,
    *,
    kind: Annotated[Kind, typer.Option(help="Count only changes in this respect.")] = Kind.ANY,
    by: Annotated[
        By,
        typer.Option(help="What a row is. Host and section: the sum of their pages; site: a host taken as one page."),
    ] = By.PAGE,
    estimator: Annotated[
        str, typer.Option(metavar="NAME", help=f"How rates are estimated: {', '.join(ESTIMATORS)}.")
    ] = DEFAULT,
    window: Annotated[
        str | None, typer.Option(metavar="DURATION", help="Only visits of the last such time, e.g. 90d.")
    ] = None,
    at: AtOption = None,
    sort: Annotated[Sort, typer.Option(help="What comes first.")] = Sort.OFTEN,
    limit: RowsOption = None,
    output: RowsFileOption = None,
    plot: PlotOption = None,
    diagnose: Annotated[bool, typer.Option("--diagnose", help="Say whether changes come by pure chance.")] = False,
    compare: Annotated[bool, typer.Option("--compare", help="Score all estimators on this workspace's past.")] = False,
    workspace: WorkspaceOption = HERE,
    json_output: JsonOption = False,
    assignments: SetOption = None,
) -> None:
    """Estimate how often each page changes, and how sure that is.

    Every visit counts, those that found nothing new included. What is known of related pages (of its directory, its
    host, of all) fills in for what a page has not shown yet; a page with many visits speaks for itself. "About every 12
    days, 9–17" means: 12 days is the middle of what is believed, and the truth lies between 9 and 17 in nine cases of
    ten. P(changed) is the probability that the page has changed since it was last seen; of hosts and sections, the
    share of their pages of which that is expected.

    --diagnose tests what all estimates rest on, that changes come by chance at a steady rate. It compares the pages
    with simulated ones that do, seen by the very same looks, and says in a sentence what it found. --plot then draws
    how rates differ, the intervals between changes, and each page's median interval; --output writes page by page.

    --compare lets every estimator foretell, at several moments of the past, what the next look at each page found.
    """
    from recrawl.cli.predict_use import expected_changes
    from recrawl.cli.rates_output import check_ending, check_picture
    from recrawl.crawl.clock import RealClock

    if diagnose and compare:
        raise ConfigError("--diagnose and --compare are two questions.", "Ask one after the other.")
    if by is not By.PAGE and (diagnose or compare):
        raise ConfigError(f"--by {by.value} is a question about rates.", "Leave it out: pages are what is tested.")
    if compare and plot:
        raise ConfigError("There is no picture of a comparison.", "Leave out --plot.")
    if output is not None:
        check_ending(output)
    if plot is not None:
        check_picture(plot)
    place = open_workspace(workspace, parse_assignments(assignments or []))
    question = Question(
        estimator_named(estimator),
        moment(at, RealClock().now()),
        kind,
        by,
        None if window is None else seconds_of("--window", window),
        sort,
        host,
        match,
        min_looks,
        limit if limit is not None or output is not None else SHOWN_ROWS,
    )
    with place.open_store() as store:
        if diagnose:
            _diagnose(store, question, output, plot, json_output=json_output)
        elif compare:
            _compare(store, question, output, json_output=json_output)
        else:
            question = replace(question, expected=expected_changes(place, store, question.now))
            _table(store, question, output, plot, workspace, json_output=json_output)


def _table(  # noqa: PLR0913 - what is asked, and where the answer goes
    store: Store, question: Question, output: Path | None, plot: Path | None, folder: Path, *, json_output: bool
) -> None:
    from recrawl.cli.rates_output import write_columns
    from recrawl.cli.rates_table import answer, draw
    from recrawl.cli.tables import print_json, rows_of, shown_time

    with line("Estimating rates"):
        columns, total = answer(store, question)
    shown = len(columns["looks"])
    if plot is not None:
        draw(columns, question.by, plot)
    if output is not None:
        write_columns(output, columns)
        typer.echo(f"Wrote {counted(shown, 'row')} to {output}.")
    elif json_output:
        print_json(rows_of(columns))
    elif not shown:
        typer.echo(_why_none(question, folder))
    else:
        _print(columns, question)
        if shown < total:
            typer.echo(f"{shown:,} of {total:,} shown; --limit shows more.")
        said = "changes of any kind" if question.kind is Kind.ANY else f"changes of kind {question.kind.value}"
        model = "" if question.expected is None else ", with the model of the workspace for what visits have not told"
        typer.echo(f"Estimated by {question.estimator.name} from {said}{model}, as of {shown_time(question.now)}.")
    if plot is not None and (output is not None or not json_output):
        typer.echo(f"Picture: {plot}")


def _why_none(question: Question, folder: Path) -> str:
    """Why there is no row, and what to do about it."""
    from recrawl.cli.setting_kinds import write_duration
    from recrawl.cli.tables import shown_time

    asked = {
        "--host": question.host,
        "--match": question.match,
        "--min-looks": question.min_looks if question.min_looks > 1 else None,
        "--window": None if question.window is None else write_duration(question.window),
    }
    options = ", ".join(f"{option} {value}" for option, value in asked.items() if value is not None)
    if options:
        return f"No {question.by.value} that was seen by {shown_time(question.now)} fits {options}."
    return (
        f"No page was seen by {shown_time(question.now)}. "
        f"Visit some with: {command_in(folder, 'run')}   or ask for a later time."
    )


def _print(columns: Columns, question: Question) -> None:
    from recrawl.cli.tables import print_table, shown_share, shown_time

    name = "url" if question.by is By.PAGE else question.by.value
    told = zip(*(columns[name] for name in ("changes", "looks", "observed", "exact")), strict=True)
    evidence = [
        f"{counted(changes, 'change')} {'logged' if exact else 'in ' + counted(looks, 'look')}, "
        f"{format_duration(observed)}"
        for changes, looks, observed, exact in told
    ]
    shown = {
        name: columns[name],
        "pages": [f"{count:,}" for count in columns.get("pages", [])],
        "changes": columns["in_words"],
        "evidence": evidence,
        "last change": [shown_time(when) for when in columns["last_change"]],
        "P(changed)": [shown_share(share) for share in columns["p_changed"]],
    }
    if question.by is By.PAGE:
        del shown["pages"]
    print_table(list(shown), list(zip(*shown.values(), strict=True)), right=("pages", "P(changed)"))


def _diagnose(store: Store, question: Question, output: Path | None, plot: Path | None, *, json_output: bool) -> None:
    from recrawl.assess.poisson_verdict import sentences
    from recrawl.cli.rates_diagnose import columns, draw, facts, investigate, table_rows
    from recrawl.cli.rates_output import write_columns
    from recrawl.cli.tables import print_json, print_table

    with line("Testing whether changes come by chance"):
        found = investigate(store, question)
    if plot is not None:
        draw(found, plot)
    if output is not None:
        write_columns(output, columns(store, found))
    if json_output:
        print_json(facts(found))
        return
    for sentence in sentences(found.diagnosis):
        typer.echo(sentence)
    typer.echo()
    print_table(("", "", ""), table_rows(found))
    if output is not None:
        typer.echo(f"Page by page: {output}")
    if plot is not None:
        typer.echo(f"Picture: {plot}")


def _compare(store: Store, question: Question, output: Path | None, *, json_output: bool) -> None:
    from recrawl.cli.rates_compare import HEADINGS, columns, compare_estimators, facts, rests_on, table_rows
    from recrawl.cli.rates_output import write_columns
    from recrawl.cli.tables import print_json, print_table

    with line("Letting every estimator foretell the past"):
        found = compare_estimators(store, question)
    if output is not None:
        write_columns(output, columns(found))
    if json_output:
        print_json(facts(found))
        return
    print_table(HEADINGS, table_rows(found), right=HEADINGS[2:])
    typer.echo(rests_on(found))
