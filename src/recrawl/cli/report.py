"""``recrawl report``: all that is known of an archive in one HTML file."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from recrawl.cli.configuration import parse_assignments
from recrawl.cli.options import (
    HERE,
    DigestsOnlyOption,
    FilesArgument,
    JsonOption,
    SetOption,
    WorkspaceOption,
    command_in,
)
from recrawl.cli.waiting import bars, line
from recrawl.cli.workspace import open_workspace
from recrawl.errors import ConfigError, InputError
from recrawl.model.words import counted

if TYPE_CHECKING:
    from recrawl.cli.assess_sources import Archive, Reading
    from recrawl.cli.knowledge import Expected
    from recrawl.cli.workspace import Workspace
    from recrawl.model import IntArray
    from recrawl.show.report.page import Report
    from recrawl.show.report.section import Section
    from recrawl.store.base import Store

FILE_NAME = "report.html"
DASHBOARD = "http://127.0.0.1:8080/pages/{id}"
"""Where ``recrawl serve`` shows a page of a workspace with all its versions, unless it is told another port."""
NO_LINK = "none"
_AT = "Looking at every capture"
"""What is said meanwhile."""
EXAMPLES = """
recrawl report -w my-archive                     all about a workspace, as reports/report.html in it
recrawl report -w my-archive --capture 3         about one capture of a site
recrawl report crawls/*.warc.gz -o quality.html  about files, whoever made them
recrawl report index.cdxj --open                 and show it in the browser
recrawl report -w my-archive --json              everything in it, for other programs
"""


def report(  # noqa: PLR0913 - one argument an option
    files: FilesArgument = None,
    *,
    capture: Annotated[
        int | None, typer.Option(metavar="NUMBER", help="Only the pages of this capture of a site.")
    ] = None,
    output: Annotated[
        Path | None,
        typer.Option(
            "--output",
            "-o",
            metavar="FILE",
            help="The file to write; by default reports/report.html in the workspace, or report.html here.",
        ),
    ] = None,
    show: Annotated[bool, typer.Option("--open", help="Open it in a browser.")] = False,
    versions: Annotated[
        str | None,
        typer.Option(
            metavar="LINK",
            help="Where versions of a page are listed: a link with {url} or {id} in it, or none. By default the "
            "dashboard that recrawl serve shows of a workspace; none for files.",
        ),
    ] = None,
    merge_within: Annotated[
        str,
        typer.Option(metavar="DURATION", help="In files, several downloads of a page within this time are one."),
    ] = "60s",
    digests_only: DigestsOnlyOption = False,
    workspace: WorkspaceOption = HERE,
    json_output: JsonOption = False,
    assignments: SetOption = None,
) -> None:
    """Write all that is known of an archive into one HTML file.

    The file needs nothing else: it opens offline, prints well, and everything is in it. It says what there is, how
    sharp and how coherent it is, and how its pages change; what is computed is what recrawl assess and recrawl rates
    say. Tables can be sorted and filtered, and every figure can be saved as PNG or SVG and its data as CSV. In the site
    graph of a workspace every page has a link to its versions, which recrawl serve shows.

    Files are read into a store that is thrown away, as recrawl assess does. With too little to say something, the
    report says so.
    """
    from recrawl.cli.assess_sources import Reading, check_files

    if versions is not None and versions != NO_LINK and not _is_link(versions):
        raise ConfigError(f"{versions!r} is no link to versions.", "Write it like https://web.archive.org/web/*/{url}")
    if json_output and output is not None:
        raise ConfigError(
            "--json is printed, not written to a file.", "Leave out one of them, or send it to a file: > FILE"
        )
    if files:
        if versions is not None and "{id}" in versions:
            raise ConfigError("Pages of files have no {id}.", "Write {url} in the link.")
        if capture is not None:
            raise ConfigError("--capture is about a workspace.", "Leave out the files.")
        paths = check_files(files, "report")
        reading = Reading.of(merge_within, parse_assignments(assignments or []), digests_only=digests_only)
        made = _of_files(paths, versions, reading)
        target = output or Path(FILE_NAME)
    else:
        place = open_workspace(workspace, parse_assignments(assignments or []))
        with place.open_store() as store:
            made = report_of_workspace(place, store, capture=capture, versions=versions)
        target = output or place.reports / FILE_NAME
    if json_output:
        from recrawl.cli.tables import print_json
        from recrawl.show.report.page import report_json

        print_json(report_json(made))
        return
    write_report(made, target)
    typer.echo(f"Wrote {target}.")
    if show:
        typer.launch(target.resolve().as_uri())


def _is_link(text: str) -> bool:
    return text.startswith(("http://", "https://")) and ("{url}" in text or "{id}" in text)


def _link(versions: str | None, usual: str | None) -> str | None:
    """The link that was asked for, the usual one if nothing was, or none."""
    return usual if versions is None else None if versions == NO_LINK else versions


def write_report(made: Report, file: Path) -> None:
    """Write the page, whole or not at all."""
    from recrawl.cli.report_extras import EXTRAS
    from recrawl.formats.disk import complete_file, told
    from recrawl.show.report.page import report_html

    text = report_html(made, EXTRAS)
    with told(file):
        file.parent.mkdir(parents=True, exist_ok=True)
    with complete_file(file) as stream:
        stream.write(text.encode("utf-8", errors="backslashreplace"))


def report_of_workspace(
    place: Workspace, store: Store, *, capture: int | None = None, versions: str | None = None, now: float | None = None
) -> Report:
    """The report about a workspace, or about one of its captures."""
    import numpy as np

    from recrawl.cli.predict_use import expected_changes

    pages, about = None, f"About the workspace {place.folder.resolve().name}."
    title = f"Report on {place.folder.resolve().name}"
    if capture is not None:
        known = {one.id: one for one in store.site_captures()}
        if capture not in known:
            remedy = f"See all with: {command_in(place.folder, 'capture --list')}"
            raise InputError(f"There is no capture {capture} in this workspace.", remedy)
        pages = np.unique(store.site_log(capture).found.page)
        title, about = (
            f"Report on capture {capture}",
            f"About the pages of capture {capture}, of {known[capture].site}.",
        )
    moment, link = _clock() if now is None else now, _link(versions, DASHBOARD)
    expected = expected_changes(place, store, moment)
    with line(_AT):
        sections = _sections(
            store, moment, None, place.warc, pages=pages, capture=capture, versions=link, expected=expected
        )
    if capture is not None:
        from recrawl.cli.report_capture import statement_section

        sections = [statement_section(store, known[capture]), *sections]
    return _report(title, about, moment, sections)


def _of_files(paths: list[Path], versions: str | None, reading: Reading) -> Report:
    from recrawl.cli.assess_output import tell_problems
    from recrawl.cli.assess_sources import read_archive

    now = _clock()
    with bars() as bar, read_archive(paths, reading, bar) as archive:
        bar.stop()
        tell_problems(archive)
        with line(_AT):
            warc = None if reading.digests_only else archive.warc
            sections = _sections(archive.store, now, archive, warc, versions=_link(versions, None))
    named = paths[0].name if len(paths) == 1 else counted(len(paths), "file")
    more = " and others" if len(paths) > _NAMED else ""
    about = f"About {', '.join(path.name for path in paths[:_NAMED])}{more}."
    return _report(f"Report on {named}", about, now, sections)


def _sections(  # noqa: PLR0913 - where from, when, and what is asked
    store: Store,
    now: float,
    archive: Archive | None,
    warc: Path | None,
    *,
    pages: IntArray | None = None,
    capture: int | None = None,
    versions: str | None = None,
    expected: Expected | None = None,
) -> list[Section]:
    from recrawl.cli.assess_answer import Asked, NothingToJudgeError, Unhurried
    from recrawl.cli.rates_question import Question
    from recrawl.cli.report_sections import Wanted, sections_of
    from recrawl.estimate.estimators import DEFAULT, ESTIMATORS
    from recrawl.show.report.section import Section

    asked = Asked(unhurried=archive is not None, pages=pages, expected=expected)
    estimator = ESTIMATORS[DEFAULT] if archive is None else Unhurried(ESTIMATORS[DEFAULT])
    question = Question(estimator, now, expected=expected)
    try:
        return sections_of(store, Wanted(asked, question, versions, capture, warc), archive)
    except NothingToJudgeError as error:
        return [Section("Nothing to judge yet", "holdings", [str(error), *_NEXT])]


_NAMED = 5
"""Files that the head of a report names."""
_NEXT = (
    "In a workspace, recrawl add names pages and recrawl run visits them; recrawl import brings what archives hold.",
    "Then ask for the report again.",
)


def _report(title: str, about: str, made: float, sections: list[Section]) -> Report:
    from recrawl import __version__
    from recrawl.show.report.page import Report

    return Report(title, about, made, __version__, sections)


def _clock() -> float:
    from recrawl.crawl.clock import RealClock

    return RealClock().now()
