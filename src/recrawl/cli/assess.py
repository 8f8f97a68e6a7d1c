"""``recrawl assess``: how good an archive is, whoever made it."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from recrawl.assess.shown import Rule
from recrawl.cli.assess_answer import Asked
from recrawl.cli.configuration import parse_assignments
from recrawl.cli.options import (
    HERE,
    CompositesOption,
    DigestsOnlyOption,
    FilesArgument,
    JsonOption,
    LimitOption,
    MatchOption,
    PlotOption,
    SetOption,
    WorkspaceOption,
    seconds_of,
)
from recrawl.cli.waiting import bars, line
from recrawl.cli.workspace import open_workspace
from recrawl.crawl.composite_survey import MOST_PAGES
from recrawl.estimate.estimators import DEFAULT, ESTIMATORS

if TYPE_CHECKING:
    from recrawl.cli.assess_output import Wanted
    from recrawl.cli.assess_sources import Archive, Reading
    from recrawl.store.base import Store

EXAMPLES = """
recrawl assess crawls/*.warc.gz                 what these files are worth, whoever made them
recrawl assess -w my-archive                    the same for a workspace
recrawl assess index.cdxj --at 2024-03-01       what would be shown for that day, and how far it is apart
recrawl assess site.wacz --match /news/         only pages with this in their URL
recrawl assess crawls/ --output quality/        everything as JSON, Markdown and CSV
recrawl assess crawls/ --graphml changes.graphml  the site as a tree, unchanged parts folded
recrawl assess crawls/ --tree site.graphml      the whole tree
"""


def assess(  # noqa: PLR0913 - one argument an option
    files: FilesArgument = None,
    *,
    at: Annotated[
        str | None,
        typer.Option(
            metavar="TIME", help="What is shown for this time in UTC, e.g. 2026-11-09; by default for the last capture."
        ),
    ] = None,
    rule: Annotated[Rule, typer.Option(help="Which copy is shown: the nearest, or the latest before.")] = Rule.NEAREST,
    match: MatchOption = None,
    pause: Annotated[
        str | None,
        typer.Option(metavar="DURATION", help="A crawl is over when its site is left alone for so long; else guessed."),
    ] = None,
    by_file: Annotated[
        bool, typer.Option("--by-file", help="Each archive file is a crawl of its own; pauses do not matter.")
    ] = False,
    delay: Annotated[
        str | None,
        typer.Option(
            metavar="DURATION", help="Time between downloads, for proposed sub-sites; else as in the archive."
        ),
    ] = None,
    estimator: Annotated[
        str, typer.Option(metavar="NAME", help=f"How rates are estimated: {', '.join(ESTIMATORS)}.")
    ] = DEFAULT,
    merge_within: Annotated[
        str | None,
        typer.Option(
            metavar="DURATION",
            help="In files, several downloads of a page within this time are one; by default 60s, as import does, "
            "and 0s with --by-file.",
        ),
    ] = None,
    digests_only: DigestsOnlyOption = False,
    composites: CompositesOption = MOST_PAGES,
    limit: LimitOption = 10,
    output: Annotated[
        Path | None,
        typer.Option("--output", "-o", metavar="FOLDER", help="Write JSON, Markdown and CSV into a folder."),
    ] = None,
    graphml: Annotated[
        Path | None, typer.Option(metavar="FILE", help="Write the tree of pages, unchanged parts folded, as GraphML.")
    ] = None,
    tree: Annotated[
        Path | None, typer.Option(metavar="FILE", help="Write the whole tree of pages as GraphML, nothing folded.")
    ] = None,
    plot: PlotOption = None,
    workspace: WorkspaceOption = HERE,
    json_output: JsonOption = False,
    assignments: SetOption = None,
) -> None:
    """Say how sharp and how coherent an archive is, whoever made it.

    Reads every format that recrawl import reads, into a store that is thrown away, or looks at the workspace if no file
    is named. In archives of others, robots.txt, sitemaps, style sheets, scripts and pictures are captures and no pages:
    they are left out unless the setting archive.resources says otherwise. Blur is the expected number of changes
    between a moment somebody asks for and the copy that is shown. A capture is coherent if the page was unchanged when
    it was captured the next time: then it is proved for all the time between. Crawls are found by their pauses, and
    each page's next capture is taken as its revisit; captures that the workspace made itself are on record.

    For one moment (--at) it says how far apart in time the pages are that would be shown, how many are provably as
    they were then, and whether there was an instant at which all of them were valid together; if not, which pages break
    it. Pages and sections that blur the archive most come first. Sections of a site that change together are proposed
    as captures of their own where that makes more pages coherent.

    A file that is broken is named, and the rest goes on.
    """
    from recrawl.cli.assess_output import Wanted
    from recrawl.cli.assess_sources import Reading, check_files
    from recrawl.cli.rates_question import moment

    asked = Asked(
        None if at is None else moment(at, 0.0),
        rule,
        match,
        None if pause is None else seconds_of("--pause", pause),
        by_file,
        None if delay is None else seconds_of("--delay", delay),
        estimator,
        unhurried=bool(files),
    )
    wanted = Wanted(limit, output, graphml, tree, plot, as_json=json_output)
    wanted.check()
    if files:
        usual = "0s" if by_file else "60s"
        given = parse_assignments(assignments or [])
        reading = Reading.of(usual if merge_within is None else merge_within, given, digests_only=digests_only)
        _assess_files(check_files(files, "assess"), reading, asked, wanted, composites)
        return
    place = open_workspace(workspace, parse_assignments(assignments or []))
    from recrawl.cli.predict_use import expected_changes

    with place.open_store() as store:
        folder = None if digests_only else place.warc
        _assess(store, replace(asked, expected=expected_changes(place, store)), wanted, None, (folder, composites))


def _assess_files(paths: list[Path], reading: Reading, asked: Asked, wanted: Wanted, composites: int) -> None:
    from recrawl.cli.assess_sources import read_archive

    listed = None if wanted.output is None else wanted.output / "errors.jsonl"
    with bars() as bar, read_archive(paths, replace(reading, list_errors=listed), bar) as archive:
        bar.stop()
        folder = None if reading.digests_only else archive.warc
        _assess(archive.store, asked, wanted, archive, (folder, composites))


def _assess(
    store: Store, asked: Asked, wanted: Wanted, archive: Archive | None, composites: tuple[Path | None, int]
) -> None:
    """Answer and print. ``composites``: where archive files lie, if bytes may be read, and how many pages to judge."""
    from recrawl.cli.assess_answer import answer
    from recrawl.cli.assess_composites import composed_in
    from recrawl.cli.assess_output import print_answer, tell_problems, write_answer

    if archive is not None:
        tell_problems(archive)
    with line("Looking at every capture"):
        found = answer(store, asked)
    with line("Looking at what pages embed"):
        found = replace(found, composed=composed_in(store, found.quality.looks.page, *composites))
    written = write_answer(store, found, archive, wanted)
    print_answer(found, archive, wanted)
    if not wanted.as_json:
        for file in written:
            typer.echo(f"Wrote {file}.")
