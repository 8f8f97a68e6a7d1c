"""``recrawl report``: write a report on an archive as one HTML file."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from recrawl.app.display import HERE, command_in
from recrawl.app.progress import bars, line
from recrawl.app.workspace.configuration import parse_assignments
from recrawl.app.workspace.workspace import open_workspace
from recrawl.cli.options import DigestsOnlyOption, FilesArgument, JsonOption, SetOption, WorkspaceOption
from recrawl.errors import ConfigError, InputError, counted

if TYPE_CHECKING:
    from recrawl.app.assess.archive_reading import ReadOptions, TemporaryArchive
    from recrawl.app.rates.belief_table import Expected
    from recrawl.app.workspace.workspace import Workspace
    from recrawl.formats.warc.archive_folder import ArchiveFolder
    from recrawl.model import IntArray
    from recrawl.store.base import Store
    from recrawl.web.report.report_page import ReportPage, Section


FILE_NAME = "report.html"
DASHBOARD = "http://127.0.0.1:8080/pages/{id}"
"""The URL of a page with all its versions in ``recrawl serve`` on its default port."""
NO_LINK = "none"
_AT = "Reading every capture"
"""The progress text."""
EXAMPLES = """
recrawl report -w my-archive                     about a workspace, written to its reports/report.html
recrawl report -w my-archive --capture 3         about one capture of a site
recrawl report crawls/*.warc.gz -o quality.html  about files of any crawler
recrawl report index.cdxj --open                 and open it in a browser
recrawl report -w my-archive --json              its content as JSON
"""


def report(  # noqa: PLR0913 - one argument an option
    files: FilesArgument = None,
    *,
    capture: Annotated[int | None, typer.Option(metavar="NUMBER", help="Only the pages of this site capture.")] = None,
    output: Annotated[
        Path | None,
        typer.Option(
            "--output",
            "-o",
            metavar="FILE",
            help="Target file. Default: reports/report.html in the workspace, or report.html here.",
        ),
    ] = None,
    show: Annotated[bool, typer.Option("--open", help="Open the result in a browser.")] = False,
    versions: Annotated[
        str | None,
        typer.Option(
            metavar="LINK",
            help="Link to the versions of a page, with {url} or {id} in it, or none. Default: the dashboard of "
            "recrawl serve for a workspace, none for files.",
        ),
    ] = None,
    merge_within: Annotated[
        str | None,
        typer.Option(
            metavar="DURATION",
            help="With files: merge downloads of a page within this time. Default: 60s, as in import.",
        ),
    ] = None,
    digests_only: DigestsOnlyOption = False,
    workspace: WorkspaceOption = HERE,
    json_output: JsonOption = False,
    assignments: SetOption = None,
) -> None:
    """Write a report on an archive as one HTML file.

    The file is self-contained: it opens offline and can be printed. It describes the content of the archive, its blur
    and coherence, and how its pages change, with the figures of recrawl assess and recrawl rates. Tables can be sorted
    and filtered; every figure can be saved as PNG or SVG, and its data as CSV. In the site graph of a workspace every
    page links to its versions in recrawl serve.

    Files are read into a temporary store, as in recrawl assess. If there is too little data for a section, the report
    states that.
    """
    from recrawl.app.assess.archive_reading import ReadOptions, check_files, check_merge_needs_files, workspace_store

    if versions is not None and versions != NO_LINK and not _is_link(versions):
        raise ConfigError(
            f"{versions!r} is not a link to versions.", "Write it like https://web.archive.org/web/*/{url}"
        )
    if json_output and output is not None:
        raise ConfigError(
            "--json and --output exclude each other.", "Leave one of them out. To write JSON to a file: > FILE"
        )
    if files:
        if versions is not None and "{id}" in versions:
            raise ConfigError("Pages in files have no {id}.", "Write {url} in the link.")
        if capture is not None:
            raise ConfigError("--capture needs a workspace.", "Leave out the files.")
        paths = check_files(files, "report")
        reading = ReadOptions.of(merge_within or "60s", parse_assignments(assignments or []), digests_only=digests_only)
        made = _of_files(paths, versions, reading)
        target = output or Path(FILE_NAME)
    else:
        check_merge_needs_files(merge_within)
        place = open_workspace(workspace, parse_assignments(assignments or []))
        with bars() as bar, workspace_store(place, bar) as store:
            bar.stop()
            made = report_of_workspace(place, store, capture=capture, versions=versions)
        target = output or place.reports / FILE_NAME
    if json_output:
        from recrawl.cli.tables import print_json
        from recrawl.web.report.report_page import report_json

        print_json(report_json(made))
        return
    write_report(made, target)
    typer.echo(f"Wrote {target}.")
    if show:
        typer.launch(target.resolve().as_uri())


def _is_link(text: str) -> bool:
    return text.startswith(("http://", "https://")) and ("{url}" in text or "{id}" in text)


def _link(versions: str | None, usual: str | None) -> str | None:
    """The requested link, the default one, or none."""
    return usual if versions is None else None if versions == NO_LINK else versions


def write_report(made: ReportPage, file: Path) -> None:
    """Write the file atomically."""
    from recrawl.formats.atomic_files import complete_file, reporting_write_errors
    from recrawl.web.report.report_builder import EXTRAS
    from recrawl.web.report.report_page import report_html

    text = report_html(made, EXTRAS)
    with reporting_write_errors(file):
        file.parent.mkdir(parents=True, exist_ok=True)
    with complete_file(file) as stream:
        stream.write(text.encode("utf-8", errors="backslashreplace"))


def report_of_workspace(
    place: Workspace, store: Store, *, capture: int | None = None, versions: str | None = None, now: float | None = None
) -> ReportPage:
    """The report about a workspace, or about one of its captures."""
    import numpy as np

    from recrawl.app.predict.model_use import expected_changes

    pages, about = None, f"About the workspace {place.folder.resolve().name}."
    title = f"Report on {place.folder.resolve().name}"
    if capture is not None:
        known = {one.id: one for one in store.site_captures()}
        if capture not in known:
            remedy = f"See all with: {command_in(place.folder, 'capture list')}"
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
            store, moment, None, place.archive, pages=pages, capture=capture, versions=link, expected=expected
        )
    if capture is not None:
        from recrawl.web.report.report_builder import statement_section

        sections = [statement_section(store, known[capture]), *sections]
    return _report(title, about, moment, sections)


def _of_files(paths: list[Path], versions: str | None, reading: ReadOptions) -> ReportPage:
    from recrawl.app.assess.archive_reading import read_archive
    from recrawl.cli.collect.assess_command import tell_problems

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
    archive: TemporaryArchive | None,
    warc: Path | ArchiveFolder | None,
    *,
    pages: IntArray | None = None,
    capture: int | None = None,
    versions: str | None = None,
    expected: Expected | None = None,
) -> list[Section]:
    from recrawl.app.assess.assessment import AssessmentQuestion, NothingToJudgeError
    from recrawl.app.rates.rates_table import RatesQuestion
    from recrawl.estimate.estimators import DEFAULT, ESTIMATORS
    from recrawl.web.report.report_builder import ReportScope, sections_of
    from recrawl.web.report.report_page import Section

    asked = AssessmentQuestion(pages=pages, expected=expected, warc=warc)
    question = RatesQuestion(ESTIMATORS[DEFAULT], now, expected=expected)
    try:
        return sections_of(store, ReportScope(asked, question, versions, capture), archive)
    except NothingToJudgeError as error:
        return [Section("Nothing to assess yet", "holdings", [str(error), *_NEXT])]


_NAMED = 5
"""The maximum number of file names in the head of a report."""
_NEXT = (
    "In a workspace, add pages with recrawl add and visit them with recrawl run, or import archives.",
    "Then create the report again.",
)


def _report(title: str, about: str, made: float, sections: list[Section]) -> ReportPage:
    from recrawl import __version__
    from recrawl.web.report.report_page import ReportPage

    return ReportPage(title, about, made, __version__, sections)


def _clock() -> float:
    from recrawl.crawl.clock import RealClock

    return RealClock().now()
