"""``recrawl experiment``: repeat a published or promised result on real or synthetic data."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from recrawl.app.rates.rates_table import ChangeAspect
from recrawl.cli.commands import CommandWithExamples, new_app
from recrawl.errors import ConfigError
from recrawl_lab.experiment_options import (
    AnyDataOption,
    AnyHomePagesOption,
    CaptureFiles,
    DataOption,
    JobsOption,
    OutputOption,
    OwnWorkspaceOption,
    RepeatsOption,
    SeedOption,
)
from recrawl_lab.experiments.sharc_commands import register

RATES = """
recrawl experiment rates --data ../data
recrawl experiment rates --data ../data/scholarly --repeats 3 --output reports/rates
"""
POLICIES = """
recrawl experiment policies --data ../data --only llvm,til --policy uniform --policy valued-archive
recrawl experiment policies --data ../data --keep kept  an interrupted table goes on where it stopped
recrawl experiment policies --data ../data --policy valued-archive --parts --budget .03  what each part brings
"""
CRAWL_TIME = """
recrawl experiment crawl-time --crawls 100
recrawl experiment crawl-time --seed 7 --output reports/crawl-time
"""
DATAMONITOR = """
recrawl experiment datamonitor --data ../data
recrawl experiment datamonitor --data ../data/documents --seed 2
recrawl experiment datamonitor -w my-archive --days 365  a year of each page of your own archive
recrawl experiment datamonitor index.cdx             by the digests of an index
"""
HACS = """
recrawl experiment hacs --data ../data/scholarly
recrawl experiment hacs --data ../data/scholarly --median 3 --repeats 5
recrawl experiment hacs -w my-archive              the captures of an archive of your own
recrawl experiment hacs -w my-archive --kind new-publications
recrawl experiment hacs --kind content a.cdx b.cdx  by the digests of an index
"""
CLASSES = """
recrawl experiment classes --data ../data
recrawl experiment classes --data ../data/documents --days 365 --repeats 3
recrawl experiment classes -w my-archive --days 100
recrawl experiment classes index.cdx --days 100      by the digests of an index
"""
LBLA = """
recrawl experiment lbla --data ../data/documents
recrawl experiment lbla --data ../data/documents --at 2023-01-02 --at 2024-01-02 --repeats 2 --keep kept
recrawl experiment lbla --data ../data/documents --period 28d --pages 2000 --trees 100
recrawl experiment lbla --data tests/data/linked --only 9,14 --trees 20
"""

app = new_app()


@app.callback(no_args_is_help=True)
def experiment() -> None:
    """Reproduce a published result: tables as CSV and Markdown, and a plot."""


@app.command(cls=CommandWithExamples, epilog=RATES)
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
    evaluated by log loss, Brier score, calibration, and by the order in which they put the pages' future rates.
    """
    from recrawl_lab.experiments.experiment_rates import run

    run(data, output, seed=seed, repeats=repeats, most_pages=pages)


@app.command(cls=CommandWithExamples, epilog=POLICIES)
def policies(  # noqa: PLR0913 - one argument an option
    data: DataOption,
    output: OutputOption = Path("experiment-policies"),
    seed: SeedOption = 1,
    repeats: RepeatsOption = 1,
    *,
    only: Annotated[
        str, typer.Option(metavar="NAMES", help="Only these collections, with commas between; all if none is named.")
    ] = "",
    policy: Annotated[
        list[str] | None, typer.Option(metavar="NAME", help="Only this policy. May be repeated; all if none is named.")
    ] = None,
    budget: Annotated[
        list[float] | None,
        typer.Option(
            min=0.0,
            metavar="VISITS_A_PAGE_A_DAY",
            help="Visits for each page, a day. May be repeated; .01 .03 .1 .3 and 1 if none is given.",
        ),
    ] = None,
    pages: Annotated[
        int | None, typer.Option(min=10, help="Pages taken of a collection at most, whole clusters of them.")
    ] = None,
    tick: Annotated[str, typer.Option(metavar="DURATION", help="How often visits are planned.")] = "1d",
    parts: Annotated[
        bool, typer.Option("--parts", help="Also the default with each of its parts switched off.")
    ] = False,
    jobs: JobsOption = None,
    keep: Annotated[
        Path | None,
        typer.Option(
            metavar="FOLDER",
            help="Keep what comes of each run here, and do not repeat what is there: for tables that take hours.",
        ),
    ] = None,
    kept_only: Annotated[
        bool, typer.Option("--kept-only", help="Make the table of what is kept so far; runs not yet held are dashes.")
    ] = False,
) -> None:
    """Compare all policies on real histories at equal budgets: the grand table.

    Every policy visits the pages of every collection, knowing only what its visits told it, with the same number of
    visits. Scored is what came of it after the first quarter of the record: the share of copies that were current,
    averaged over exact time, and the share of changes that were caught, with intervals from resampling whole clusters
    of pages. A data set of more than twenty sites counts as one collection.
    """
    from recrawl.app.compare.benchmark_runs import tick_of
    from recrawl.schedule.policies.policy_registry import POLICIES
    from recrawl.simulate.policy_benchmark import PARTS_OFF, BenchmarkRules
    from recrawl_lab.experiments.experiment_policies import BUDGETS, PoliciesOptions, run

    names = [name.strip() for name in only.split(",") if name.strip()]
    rules = BenchmarkRules(budget=0.0, tick=tick_of(tick))
    competing = [*(policy or POLICIES), *(PARTS_OFF if parts else ())]
    run(
        data,
        output,
        PoliciesOptions(competing, budget or BUDGETS, names, pages, rules, seed, repeats, jobs, keep, kept_only),
    )


@app.command("crawl-time", cls=CommandWithExamples, epilog=CRAWL_TIME)
def crawl_time(
    output: OutputOption = Path("experiment-crawl-time"),
    seed: SeedOption = 1,
    *,
    crawls: Annotated[int, typer.Option(min=5, help="Simulated crawls of each kind.")] = 60,
    log: Annotated[
        list[Path] | None,
        typer.Option(
            metavar="FILE",
            help="A recorded crawl of Heritrix: its crawl.log or its WARC file, earliest first. May be repeated.",
        ),
    ] = None,
) -> None:
    """Predict how long crawls take: Table 3 of paper 001 again.

    Worlds of hosts are crawled again and again; sizes, rests, download times, failures and pages found on the way
    differ as they do on the web. Before each crawl the heuristic of the paper, as printed and corrected, and recrawl's
    own estimate say from the crawls before it how long it will take. With --log recorded crawls are predicted too.
    """
    from recrawl_lab.experiments.experiment_crawl_time import run

    run(output, log or [], seed=seed, crawls=crawls)


@app.command(cls=CommandWithExamples, epilog=DATAMONITOR)
def datamonitor(  # noqa: PLR0913, PLR0917 - one argument an option
    files: CaptureFiles = None,
    data: AnyDataOption = None,
    output: OutputOption = Path("experiment-datamonitor"),
    seed: SeedOption = 1,
    workspace: OwnWorkspaceOption = None,
    days: Annotated[
        int, typer.Option(min=3, help="Length of the record of each document in days, in the paper three years.")
    ] = 1_095,
) -> None:
    """Recall and precision of adaptive rescheduling on documents and data sources (datamonitor, figures 4 to 6).

    Three years of each document, or --days of it, visited whenever a strategy says so, by classes of change rate. The
    paper prints plots and no numbers; its reading of them stands beside the results here. In a workspace or in files, a
    change found by a capture is placed in the middle of the time in which it happened.
    """
    from recrawl_lab.experiments.experiment_data import experiment_data
    from recrawl_lab.experiments.experiment_datamonitor import run

    with experiment_data(data, workspace, files or ()) as folder:
        run(folder, output, seed=seed, days=days)


@app.command(cls=CommandWithExamples, epilog=HACS)
def hacs(  # noqa: PLR0913, PLR0917 - one argument an option
    files: CaptureFiles = None,
    data: AnyHomePagesOption = None,
    output: OutputOption = Path("experiment-hacs"),
    seed: SeedOption = 1,
    repeats: RepeatsOption = 1,
    workspace: OwnWorkspaceOption = None,
    *,
    kind: Annotated[
        ChangeAspect,
        typer.Option(help="What counts as an update. Captures of your own tell it; a data set tells new links."),
    ] = ChangeAspect.NEW_LINKS,
    median: Annotated[
        float, typer.Option(min=0.1, metavar="DAYS", help="Median time from one capture of a page to the next.")
    ] = 7.0,
) -> None:
    """Choose pages by their probability of new links, week by week (HACS, Table I and figures 8 to 11).

    Home pages and whole sites of the scholarly data set are captured at irregular times; from the captures of the last
    weeks, who will have new links in the week to come? Published values stand beside those here.

    Of a workspace or of files the real captures are taken. A site is then a user's directory such as foo.edu/~bar/, or
    else a host, with the pages up to two directories below its home page.
    """
    from recrawl_lab.experiments.experiment_data import experiment_data
    from recrawl_lab.experiments.experiment_hacs import run

    if kind is ChangeAspect.ANY:
        raise ConfigError("HACS is about one kind of update.", "Give --kind content for changes of any kind.")
    with experiment_data(data, workspace, files or ()) as folder:
        run(folder, output, seed=seed, repeats=repeats, median=median, kind=kind)


@app.command(cls=CommandWithExamples, epilog=CLASSES)
def classes(  # noqa: PLR0913, PLR0917 - one argument an option
    files: CaptureFiles = None,
    data: AnyDataOption = None,
    output: OutputOption = Path("experiment-classes"),
    seed: SeedOption = 1,
    repeats: RepeatsOption = 1,
    days: Annotated[int, typer.Option(min=10, help="How long each page is watched, once a day.")] = 1_000,
    workspace: OwnWorkspaceOption = None,
) -> None:
    """Put pages into classes of change, first by their features and then by their history (paper 002).

    Reproduces Tables 1, 3 and 5, and Figure 2.

    Classes are the best clustering of the pages' rates. Five learners guess them from what pages look like. A page
    starts in a class drawn by chance, in the one a decision tree says, or in that of its siblings; then the historic
    classifier or the Bayesian estimator moves it. How many pages are in a wrong class? Published values stand beside
    those here.
    """
    from recrawl_lab.experiments.experiment_classes import run
    from recrawl_lab.experiments.experiment_data import experiment_data

    with experiment_data(data, workspace, files or ()) as folder:
        run(folder, output, seed=seed, repeats=repeats, days=days)


@app.command(cls=CommandWithExamples, epilog=LBLA)
def lbla(  # noqa: PLR0913 - one argument an option
    data: DataOption,
    output: OutputOption = Path("experiment-lbla"),
    seed: SeedOption = 1,
    repeats: RepeatsOption = 1,
    *,
    at: Annotated[
        list[str] | None,
        typer.Option(metavar="DATE", help="Time of the evaluated pages. May be repeated; 2024-01-02 if not given."),
    ] = None,
    period: Annotated[str, typer.Option(metavar="DURATION", help="How far ahead new links are predicted.")] = "91d",
    pages: Annotated[int, typer.Option(min=10, help="Pages taken at each time, at most.")] = 5_000,
    trees: Annotated[int, typer.Option(min=1, help="Trees of each model.")] = 300,
    alone: Annotated[
        bool, typer.Option("--alone", help="Only LBLA features against one feature: quick, for many pages and dates.")
    ] = False,
    only: Annotated[
        str,
        typer.Option(
            metavar="FIGURES", help="Only these of the figures 9, 10 and 12 to 15, with commas between; quicker."
        ),
    ] = "",
    keep: Annotated[
        Path | None,
        typer.Option(
            metavar="FOLDER", help="Keep what is measured of each date here, and do not repeat what is there."
        ),
    ] = None,
) -> None:
    """Predict which pages will have new links, from features and from related pages (paper 004, figures 9 to 15).

    Learned from pages as they were at four earlier times, evaluated on a later one: on the same sites, and on sites
    that were not learned from. Compared are sets of features, sizes of history, learners, laws of counts, and rankings
    by one feature. With several dates and repeats the results have intervals.
    """
    from recrawl.app.display import seconds_of
    from recrawl_lab.experiments.experiment_lbla import moment, run, tables_of
    from recrawl_lab.learners.link_learners import LearnerSettings
    from recrawl_lab.trials.lbla_trial import LblaPlan

    times = [moment(date) for date in at or ["2024-01-02"]]
    # Fewer rounds than the paper's take longer steps; a tree of NGBoost need not try two hundred columns.
    settings = LearnerSettings(trees=trees, rounds=trees, rate=max(0.04, min(0.2, 6.0 / trees)), natural_columns=0.1)
    plan = LblaPlan(times[0], seconds_of("--period", period), pages, settings, seed, repeats, alone)
    run(data, output, times, plan, keep, tables_of(only))


register(app)
