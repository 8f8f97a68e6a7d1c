"""The experiments of the SHARC thesis as commands of ``recrawl experiment``."""

from __future__ import annotations

import enum
from pathlib import Path
from typing import Annotated

import typer

from recrawl.app.display import seconds_of
from recrawl.cli.commands import CommandWithExamples
from recrawl.errors import ConfigError
from recrawl_lab.experiment_options import DataOption, JobsOption, OutputOption, RepeatsOption, SeedOption

BLUR = """
recrawl experiment sharc-blur --only 4.5a,4.6a
recrawl experiment sharc-blur --pages 1000000 --repeats 5 --output reports/sharc-blur
"""
COHERENCE = """
recrawl experiment sharc-coherence --only 5.13,5.14
recrawl experiment sharc-coherence --changes whole --repeats 10 --seed 2
"""
THRESHOLD = """
recrawl experiment sharc-threshold
recrawl experiment sharc-threshold --pages 1000 --repeats 1
"""
WORST_CASE = """
recrawl experiment sharc-worst-case
recrawl experiment sharc-worst-case --output reports/sharc-worst-case
"""
REAL = """
recrawl experiment sharc-real --data ../data/documents
recrawl experiment sharc-real --data ../data/documents --only llvm,til --duration 30d --duration 180d --starts 20
"""
PREDICTION = """
recrawl experiment sharc-prediction --data ../data
recrawl experiment sharc-prediction --data ../data/documents --sitemap sitemap.xml
"""


SHORTEST = 1.0
"""Shortest capture in seconds."""


class ChangeModel(enum.StrEnum):
    """How changes are drawn."""

    POISSON = "poisson"
    WHOLE = "whole"


OnlyOption = Annotated[
    str, typer.Option(metavar="NAMES", help="Only these tables, with commas between; all if none is named.")
]
PagesOption = Annotated[
    int,
    typer.Option(
        min=2,
        help="Rows of larger sites are left out; tables that have no smaller ones are made on sites of this size.",
    ),
]
ChangesOption = Annotated[
    ChangeModel,
    typer.Option(
        help="How changes are drawn: as a Poisson process, or whole seconds apart, as the published tables were made."
    ),
]


def register(app: typer.Typer) -> None:
    """Add the commands to those of ``recrawl experiment``."""
    for name, command, examples in (
        ("sharc-blur", sharc_blur, BLUR),
        ("sharc-coherence", sharc_coherence, COHERENCE),
        ("sharc-threshold", sharc_threshold, THRESHOLD),
        ("sharc-worst-case", sharc_worst_case, WORST_CASE),
        ("sharc-real", sharc_real, REAL),
        ("sharc-prediction", sharc_prediction, PREDICTION),
    ):
        app.command(name, cls=CommandWithExamples, epilog=examples)(command)


def sharc_blur(  # noqa: PLR0913 - one argument an option
    output: OutputOption = Path("experiment-sharc-blur"),
    seed: SeedOption = 1,
    repeats: RepeatsOption = 5,
    *,
    only: OnlyOption = "",
    pages: PagesOption = 100_000,
    changes: ChangesOption = ChangeModel.POISSON,
    jobs: JobsOption = None,
) -> None:
    """Blur of single-visit strategies on synthetic sites: Tables 4.4 to 4.6 of the SHARC thesis again.

    Each strategy captures sites of several sizes, slow-downs and skews, from the root or with all pages known.
    Expected values are exact; what came of the changes that were drawn is in the CSV file.
    """
    from recrawl_lab.experiments.sharc_published import SharcPublishedOptions, run_blur

    run_blur(output, SharcPublishedOptions(only, pages, seed, repeats, changes.value, jobs))


def sharc_coherence(  # noqa: PLR0913 - one argument an option
    output: OutputOption = Path("experiment-sharc-coherence"),
    seed: SeedOption = 1,
    repeats: RepeatsOption = 5,
    *,
    only: OnlyOption = "",
    pages: PagesOption = 100_000,
    changes: ChangesOption = ChangeModel.POISSON,
    jobs: JobsOption = None,
) -> None:
    """Incoherence of visit-revisit strategies on synthetic sites: Tables 5.9 to 5.14 of the SHARC thesis again.

    Every page is seen twice; it is incoherent if it changed in between. Expected values are exact; what came of the
    changes that were drawn is in the CSV file.
    """
    from recrawl_lab.experiments.sharc_published import SharcPublishedOptions, run_coherence

    run_coherence(output, SharcPublishedOptions(only, pages, seed, repeats, changes.value, jobs))


def sharc_threshold(  # noqa: PLR0913 - one argument an option
    output: OutputOption = Path("experiment-sharc-threshold"),
    seed: SeedOption = 1,
    repeats: RepeatsOption = 5,
    *,
    pages: PagesOption = 100_000,
    changes: ChangesOption = ChangeModel.POISSON,
    jobs: JobsOption = None,
) -> None:
    """Which pages to give up: SHARC-Threshold and SHARC-Intervals by threshold, Tables 5.1 and 5.2 of the thesis.

    Beside the published numbers stand the definitions as corrected, the forms that work online, and the strategies that
    need no threshold.
    """
    from recrawl_lab.experiments.sharc_published import SharcPublishedOptions, run

    run(output, SharcPublishedOptions("", pages, seed, repeats, changes.value, jobs))


def sharc_worst_case(output: OutputOption = Path("experiment-sharc-worst-case")) -> None:
    """What pages found too late cost at worst: Theorem 4.5 and Figure 4.4 of the SHARC thesis again.

    At worst the hottest pages are visited first and last. The blur of a single-visit capture grows by that, for several
    sizes of a site and skews of its change rates. Nothing is drawn at random.
    """
    from recrawl_lab.experiments.sharc_worst_case import run

    run(output)


def sharc_real(  # noqa: PLR0913 - one argument an option
    data: DataOption,
    output: OutputOption = Path("experiment-sharc-real"),
    seed: SeedOption = 1,
    *,
    only: Annotated[
        str, typer.Option(metavar="NAMES", help="Only these sites, with commas between; all if none is named.")
    ] = "",
    duration: Annotated[
        list[str] | None,
        typer.Option(
            metavar="DURATION",
            help="Time from first request to last. May be repeated. Default: 6h, 1d, 7d, 30d, 180d, 540d.",
        ),
    ] = None,
    starts: Annotated[int, typer.Option(min=1, help="Moments at which captures of each site start.")] = 12,
    jobs: JobsOption = None,
) -> None:
    """All strategies on recorded sites: Tables 4.3, 5.6 and 5.7 of the SHARC thesis on other sites.

    Captures take a given time, from hours to 540 days, and start at many moments of the record; or they take as long
    as its second half, as the thesis slowed them down. Strategies know the true rates, rates learned from earlier
    visits, or what an honest sitemap said.
    """
    from recrawl_lab.experiments.sharc_real import SharcRealOptions, run

    durations = [seconds_of("--duration", text) for text in duration or ()]
    if any(one < SHORTEST for one in durations):
        raise ConfigError(f"--duration is below {SHORTEST:g}s.", "Write for example 30d.")
    names = [name.strip() for name in only.split(",") if name.strip()]
    run(data, output, SharcRealOptions(names, seed, durations, starts, jobs))


def sharc_prediction(  # noqa: PLR0913 - one argument an option
    data: DataOption,
    output: OutputOption = Path("experiment-sharc-prediction"),
    seed: SeedOption = 1,
    repeats: RepeatsOption = 1,
    *,
    sitemap: Annotated[
        list[Path] | None,
        typer.Option(metavar="FILE", help="Predict what this sitemap says of its pages, too. May be repeated."),
    ] = None,
    fewest: Annotated[int, typer.Option(min=20, help="Minimum pages of a site; smaller sites are pooled.")] = 100,
) -> None:
    """Predict change rates from page features: Tables 6.3 and 6.4 of the SHARC thesis on other sites.

    Rates are put into ten bins of equally many pages. A tree and naive Bayes learn them from the URL alone, or from the
    fetched page as well; the siblings in its directory are asked, too. Rates are those of the whole record, as printed,
    or those that followed the observation.
    """
    from recrawl_lab.experiments.sharc_prediction import SharcPredictionOptions, run

    run(data, output, SharcPredictionOptions(sitemap or [], fewest, seed, repeats))
