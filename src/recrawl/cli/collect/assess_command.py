"""``recrawl assess``: measure the blur and the coherence of an archive."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import KW_ONLY, dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from recrawl.app.assess.archive_reading import TemporaryArchive
from recrawl.app.assess.assess_facts import (
    Columns,
    composite_columns,
    crawls,
    facts,
    first_rows,
    pages,
    sections,
    subsites,
    words,
)
from recrawl.app.assess.assessment import ArchiveAssessment, AssessmentQuestion
from recrawl.app.display import HERE, json_text, seconds_of
from recrawl.app.progress import bars, line
from recrawl.app.result_tables import check_plot, markdown_table, write_columns
from recrawl.app.workspace.configuration import configure, parse_assignments
from recrawl.app.workspace.workspace import open_workspace
from recrawl.assess.replay_selection import SelectionRule
from recrawl.cli.options import (
    CompositesOption,
    DigestsOnlyOption,
    FilesArgument,
    JsonOption,
    LimitOption,
    MatchOption,
    PlotOption,
    SetOption,
    WorkspaceOption,
)
from recrawl.cli.tables import command_provenance, print_json, print_table
from recrawl.errors import InputError
from recrawl.estimate.estimators import DEFAULT, ESTIMATORS
from recrawl.formats.atomic_files import complete_file, reporting_write_errors
from recrawl.store.base import HistoryStore, Store
from recrawl.time import format_duration
from recrawl.transfer.composite_reader import MOST_PAGES

if TYPE_CHECKING:
    from recrawl.app.assess.archive_reading import ReadOptions
    from recrawl.app.provenance import Provenance
    from recrawl.formats.warc.archive_folder import ArchiveFolder
    from recrawl.store.base import HistoryStore, Store


@dataclass(frozen=True, slots=True)
class AssessOutputs:
    """The requested output formats."""

    limit: int
    """Rows of a table that are printed."""
    output: Path | None = None
    graphml: Path | None = None
    """The tree of pages, unchanged parts folded …"""
    tree: Path | None = None
    """… and all of it."""
    plot: Path | None = None
    _: KW_ONLY
    as_json: bool = False
    provenance: Provenance | None = None

    def check(self) -> None:
        """Reject output paths that cannot be written, before any work starts."""
        if self.plot is not None:
            check_plot(self.plot)
        if self.output is not None and self.output.exists() and not self.output.is_dir():
            raise InputError(f"{self.output} is not a folder.", "Give a folder. It is created if it is missing.")


def tell_problems(archive: TemporaryArchive) -> None:
    """Report broken records, and files without any capture."""
    for error in archive.errors.first:
        typer.echo(str(error), err=True)
    if (rest := archive.errors.count - len(archive.errors.first)) > 0:
        typer.echo(f"… and {rest:,} more.", err=True)
    for one in archive.brought:
        if not one.accepted:
            reasons = ", ".join(f"{count} {reason}" for reason, count in one.skipped.items())
            typer.echo(f"{one.source}: no capture in it{f' ({reasons})' if reasons else ''}.", err=True)


def print_answer(found: ArchiveAssessment, archive: TemporaryArchive | None, wanted: AssessOutputs) -> None:
    """Print the summary and the first rows of each table, or everything as JSON."""
    if wanted.as_json:
        print_json(facts(found, archive, wanted.limit), wanted.provenance)
        return
    for sentence in words(found, archive):
        typer.echo(sentence)
    for title, columns in tables(found).items():
        rows = len(next(iter(columns.values())))
        if not rows or (title == _CRAWLS and rows == 1):
            continue
        shown = first_rows(columns, wanted.limit)
        more = "" if rows <= wanted.limit else f", {wanted.limit} of {rows:,}"
        typer.echo(f"\n{title}{more}:")
        headings, lines = _readable(title, shown)
        print_table(headings, lines, right=headings[_TEXTS[title] :])


def tables(found: ArchiveAssessment) -> dict[str, Columns]:
    """All tables by their titles."""
    return {
        _CRAWLS: crawls(found),
        _SECTIONS: sections(found),
        _PAGES: pages(found),
        _COMPOSITES: composite_columns(found.composed),
        _PARTS: subsites(found),
    }


def write_answer(
    store: HistoryStore, found: ArchiveAssessment, archive: TemporaryArchive | None, wanted: AssessOutputs
) -> list[Path]:
    """Write the requested files and return their paths."""
    written: list[Path] = []
    if wanted.output is not None:
        written += _write_folder(wanted.output, found, archive, wanted.provenance)
    if wanted.graphml is not None or wanted.tree is not None:
        from recrawl.app.assess.assess_facts import write_trees

        written += write_trees(store, found, folded=wanted.graphml, whole=wanted.tree)
    if wanted.plot is not None:
        from recrawl.app.plots import draw_quality

        draw_quality(found.quality, sections(found), wanted.plot)
        written.append(wanted.plot)
    return written


def _write_folder(
    folder: Path, found: ArchiveAssessment, archive: TemporaryArchive | None, about: Provenance | None
) -> list[Path]:
    with reporting_write_errors(folder):
        folder.mkdir(parents=True, exist_ok=True)
    text, parts = [*words(found, archive), ""], tables(found)
    for title, columns in parts.items():
        headings, lines = _readable(title, first_rows(columns, _IN_MARKDOWN))
        text += [f"## {title}", "", markdown_table(headings, lines), ""]
    documents = {
        "quality.md": "\n".join(["# Quality of the archive", "", *text]),
        "quality.json": json_text(facts(found, archive, _IN_JSON) | _origin(about)),
    }
    for name, document in documents.items():
        with complete_file(folder / name) as stream:
            stream.write(document.encode("utf-8", errors="backslashreplace"))
    for title, columns in parts.items():
        write_columns(folder / f"{_FILES[title]}.csv", columns, about)
    return [folder / name for name in (*documents, *(f"{name}.csv" for name in _FILES.values()))]


def _origin(about: Provenance | None) -> dict[str, object]:
    return {} if about is None else {"provenance": about.facts()}


def _readable(title: str, columns: Columns) -> tuple[list[str], list[list[str]]]:
    """The columns for display, formatted as text."""
    names = _SHOWN[title]
    cells = [[_cell(name, value) for value in columns[name]] for name in names]
    headings = [_HEADINGS.get(name, name.replace("_", " ")) for name in names]
    return headings, [list(row) for row in zip(*cells, strict=True)]


def _cell(name: str, value: Any) -> str:  # noqa: ANN401 - a value of any column
    if value is None or value != value:  # noqa: PLR0124 - NaN: nothing is known
        return "not known" if name in _ESTIMATED else "–"
    if name in {"expected_coherent", "coherent_alone", "gain", "usual_gain"}:
        return f"{value:.1f}"
    if name in {"distance", "seconds"}:
        return format_duration(value)
    if name == "sections":
        some = str(value).split(" ")
        return " ".join(some[:_NAMED]) + (f" and {len(some) - _NAMED} more" if len(some) > _NAMED else "")
    if name in {"from", "until", "shown", "captured"}:
        return str(value)[:16].replace("T", " ")
    return _plain(value)


def _plain(value: Any) -> str:  # noqa: ANN401 - a value of any column
    match value:
        case bool():
            return "yes" if value else "no"
        case float():
            return f"{value:.3g}"
        case int():
            return f"{value:,}"
        case _:
            return str(value)


_IN_MARKDOWN, _IN_JSON = 50, 1000
"""Rows of a table that go into these documents; the CSV files have all."""
_NAMED = 3
"""Sections of a sub-site that a line names."""
_CRAWLS, _SECTIONS, _PAGES, _COMPOSITES, _PARTS = (
    "Crawls, worst first",
    "Sections, worst first",
    "Pages, worst first",
    "Captured pages with their page requisites, most damaged first",
    "Sub-sites, best gain first",
)
_FILES = {
    _CRAWLS: "crawls",
    _SECTIONS: "sections",
    _PAGES: "pages",
    _COMPOSITES: "composites",
    _PARTS: "subsites",
}
_TEXTS = {_CRAWLS: 3, _SECTIONS: 1, _PAGES: 1, _COMPOSITES: 3, _PARTS: 2}
"""The text columns at the start of each table."""
_COUNTS = ("coherent", "changed", "missing", "unseen", "expected_coherent")
_SHOWN: dict[str, Sequence[str]] = {
    _CRAWLS: ("site", "from", "until", "pages", "new", *_COUNTS, "blur_predicted"),
    _SECTIONS: ("section", "pages", "captures", *_COUNTS, "distance", "blur", "blur_total"),
    _PAGES: ("url", "captures", "changes_per_day", *_COUNTS[:-1], "distance", "blur_total", "proved"),
    _COMPOSITES: ("url", "captured", "state", "embedded", "missing", "prima_facie_violative", "completeness", "damage"),
    _PARTS: ("site", "sections", "pages", "coherent_alone", "gain", "usual_gain", "seconds"),
}
_ESTIMATED = frozenset(
    {"changes_per_day", "expected_coherent", "blur", "blur_total", "blur_predicted", "coherent_alone"}
)
"""Columns where a missing value means "not known", not "absent"."""
_HEADINGS = {
    "new": "added later",
    "expected_coherent": "expected coherent",
    "changes_per_day": "changes/day",
    "seconds": "takes",
    "blur_total": "blur × weight",
}


EXAMPLES = """
recrawl assess crawls/*.warc.gz                 files of any crawler
recrawl assess -w my-archive                    the same for a workspace
recrawl assess index.cdxj --at 2024-03-01       the archive as replayed for that day
recrawl assess site.wacz --match /news/         only pages with this text in their URL
recrawl assess crawls/ --output quality/        everything as JSON, Markdown and CSV
recrawl assess crawls/ --graphml changes.graphml  the site as a tree, unchanged parts collapsed
recrawl assess crawls/ --tree site.graphml      the whole tree
"""


def assess(  # noqa: PLR0913 - one argument an option
    files: FilesArgument = None,
    *,
    at: Annotated[
        str | None,
        typer.Option(
            metavar="TIME",
            help="Time in UTC for which copies are shown, e.g. 2026-11-09. Default: the time of the last capture.",
        ),
    ] = None,
    rule: Annotated[
        SelectionRule, typer.Option(help="Copy to show: the nearest in time, or the latest before it.")
    ] = SelectionRule.NEAREST,
    match: MatchOption = None,
    pause: Annotated[
        str | None,
        typer.Option(metavar="DURATION", help="Pause that separates two crawls of a site. Default: estimated."),
    ] = None,
    by_file: Annotated[
        bool, typer.Option("--by-file", help="Treat each archive file as one crawl and ignore pauses.")
    ] = False,
    delay: Annotated[
        str | None,
        typer.Option(
            metavar="DURATION", help="Time between downloads in proposed sub-sites. Default: as in the archive."
        ),
    ] = None,
    estimator: Annotated[
        str,
        typer.Option(
            metavar="NAME", help=f"Estimator of change rates: {', '.join(ESTIMATORS)}, or package.module:Name."
        ),
    ] = DEFAULT,
    merge_within: Annotated[
        str | None,
        typer.Option(
            metavar="DURATION",
            help="With files: merge downloads of a page within this time. Default: 60s as in import, 0s with "
            "--by-file.",
        ),
    ] = None,
    digests_only: DigestsOnlyOption = False,
    composites: CompositesOption = MOST_PAGES,
    limit: LimitOption = 10,
    output: Annotated[
        Path | None,
        typer.Option("--output", "-o", metavar="FOLDER", help="Folder for JSON, Markdown and CSV files."),
    ] = None,
    graphml: Annotated[
        Path | None, typer.Option(metavar="FILE", help="GraphML file for the page tree with unchanged parts collapsed.")
    ] = None,
    tree: Annotated[Path | None, typer.Option(metavar="FILE", help="GraphML file for the whole page tree.")] = None,
    plot: PlotOption = None,
    workspace: WorkspaceOption = HERE,
    json_output: JsonOption = False,
    assignments: SetOption = None,
) -> None:
    """Measure the blur and coherence of an archive.

    Reads every format that recrawl import reads, from any crawler, into a temporary store. Without files it reads the
    workspace. In archives of other crawlers, robots.txt, sitemaps, style sheets, scripts and images are captures but
    not pages; they are left out unless archive.resources=pages. Blur is the expected number of changes between a
    requested time and the copy that is shown. A capture is coherent if the next capture of the page is unchanged: this
    proves the copy for the time between. Crawls are separated by pauses, and the next capture of a page counts as its
    revisit. For captures that the workspace made, the recorded visits and revisits are used.

    For one time (--at) it reports how far apart in time the shown copies are, how many are proved for that time, and
    whether all of them were valid together at some instant; if not, which pages prevent it. Pages and sections with the
    most blur come first. Sections that change together are proposed as separate captures if that makes more pages
    coherent.

    A broken file is reported, and the other files are still read.
    """
    from recrawl.app.assess.archive_reading import ReadOptions, check_files, check_merge_needs_files
    from recrawl.app.rates.rates_table import moment

    asked = AssessmentQuestion(
        None if at is None else moment(at, 0.0),
        rule,
        match,
        None if pause is None else seconds_of("--pause", pause),
        by_file,
        None if delay is None else seconds_of("--delay", delay),
        estimator,
    )
    wanted = AssessOutputs(limit, output, graphml, tree, plot, as_json=json_output)
    wanted.check()
    if files:
        usual = "0s" if by_file else "60s"
        given = parse_assignments(assignments or [])
        about = command_provenance(configure(None, {}, given), files, as_of=asked.at)
        wanted = replace(wanted, provenance=about)
        reading = ReadOptions.of(usual if merge_within is None else merge_within, given, digests_only=digests_only)
        _assess_files(check_files(files, "assess"), reading, asked, wanted, composites)
        return
    check_merge_needs_files(merge_within)
    place = open_workspace(workspace, parse_assignments(assignments or []))
    wanted = replace(wanted, provenance=command_provenance(place.configuration, [workspace], as_of=asked.at))
    from recrawl.app.assess.archive_reading import workspace_store
    from recrawl.app.predict.model_use import expected_changes

    with bars() as bar, workspace_store(place, bar) as store:
        bar.stop()
        folder: Path | ArchiveFolder | None = None if digests_only else place.archive
        _assess(store, replace(asked, expected=expected_changes(place, store)), wanted, None, (folder, composites))


def _assess_files(
    paths: list[Path], reading: ReadOptions, asked: AssessmentQuestion, wanted: AssessOutputs, composites: int
) -> None:
    from recrawl.app.assess.archive_reading import read_archive

    listed = None if wanted.output is None else wanted.output / "errors.jsonl"
    with bars() as bar, read_archive(paths, replace(reading, list_errors=listed), bar) as archive:
        bar.stop()
        folder = None if reading.digests_only else archive.warc
        _assess(archive.store, asked, wanted, archive, (folder, composites))


def _assess(
    store: Store,
    asked: AssessmentQuestion,
    wanted: AssessOutputs,
    archive: TemporaryArchive | None,
    composites: tuple[Path | ArchiveFolder | None, int],
) -> None:
    """Compute and print. ``composites``: the folder of archive files if bytes may be read, and the pages to check."""
    from recrawl.app.assess.assess_facts import composed_in
    from recrawl.app.assess.assessment import answer

    if archive is not None:
        tell_problems(archive)
    with line("Reading every capture"):
        found = answer(store, replace(asked, warc=composites[0]))
    with line("Reading page requisites"):
        found = replace(found, composed=composed_in(store, found.quality.observations.page, *composites))
    written = write_answer(store, found, archive, wanted)
    print_answer(found, archive, wanted)
    if not wanted.as_json:
        for file in written:
            typer.echo(f"Wrote {file}.")
