"""``recrawl export``: write the content of a workspace in formats of other tools.

Each export function takes a job, writes its file and prints a summary. A file appears under its name only when it is
complete. A full disk has its own exit code.
"""

from __future__ import annotations

import enum
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from recrawl.app.display import HERE
from recrawl.app.workspace.configuration import parse_assignments
from recrawl.app.workspace.workspace import open_workspace
from recrawl.cli.options import HostOption, SetOption, WorkspaceOption
from recrawl.errors import ConfigError, InputError, counted

if TYPE_CHECKING:
    from recrawl.app.plan import ExportPeriod
    from recrawl.app.workspace.workspace import Workspace
    from recrawl.store.base import Store
    from recrawl.transfer.wacz_export import ArchiveFiles


_SHOWN_ERRORS = 20
_URLS_AT_ONCE = 50_000


@dataclass(frozen=True, slots=True)
class ExportJob:
    """One export: the store, the target file, the options, and the progress callback."""

    place: Workspace
    store: Store
    file: Path
    tell: Callable[[str, int, int], None]
    """Receives the task, the amount done and the total."""
    host: int | None = None
    url: str = ""
    base_url: str = ""
    path_index: Path | None = None
    period: ExportPeriod | None = None
    """Seconds within which the pages of a seed list fall due; ``None`` for all pages."""
    about: Mapping[str, str] = field(default_factory=dict)
    """Provenance, for the metadata of Parquet files."""

    @property
    def name(self) -> str:
        """The name of the collection."""
        return self.place.folder.resolve().name

    def looked_through(self, done: int, whole: int) -> None:
        """Report how many pages are done."""
        self.tell("pages", done, whole)


# -- tables ---------------------------------------------------------------------------------------


def write_visit_table(job: ExportJob) -> list[str]:
    """All visits as Parquet."""
    import numpy as np

    from recrawl.formats.columnar.arrow_tables import PageUrls, write_visits

    steps = 3
    job.tell("visits", 0, steps)
    visits = job.store.visits(host=job.host)
    job.tell("visits", 1, steps)
    pages = np.unique(visits.page)
    urls = job.store.urls(pages)
    job.tell("visits", 2, steps)
    write_visits(job.file, visits, PageUrls(pages, urls), about=job.about)
    job.tell("visits", steps, steps)
    return [f"Wrote {counted(len(visits), 'visit')} to {job.file}."]


def write_history_table(job: ExportJob) -> list[str]:
    """Change histories as Parquet."""
    from recrawl.formats.columnar.arrow_tables import write_histories

    steps = 2
    job.tell("histories", 0, steps)
    histories = job.store.histories(host=job.host)
    job.tell("histories", 1, steps)
    write_histories(job.file, histories, about=job.about)
    job.tell("histories", steps, steps)
    return [f"Wrote the histories of {counted(len(histories), 'page')} to {job.file}."]


def write_dataset_tables(job: ExportJob) -> list[str]:
    """Change histories as a folder of Parquet tables, in the form that experiments read."""
    from recrawl.transfer.exporter import write_dataset

    steps = 1
    job.tell("histories", 0, steps)
    done = write_dataset(job.store, job.file, about=job.about)
    job.tell("histories", steps, steps)
    what = f"{counted(done.events, 'event')} and {counted(done.observations, 'observation')}"
    return [f"Wrote {what} of {counted(done.pages, 'page')} of {counted(done.sites, 'site')} to {job.file}."]


# -- indexes --------------------------------------------------------------------------------------


def write_cdxj_index(job: ExportJob) -> list[str]:
    """A sorted index as CDXJ."""
    from recrawl.formats.cdx.cdxj import write_cdxj

    return _lines(job, write_cdxj)


def write_cdx_index(job: ExportJob) -> list[str]:
    """A sorted index as CDX with 11 fields."""
    from recrawl.formats.cdx.cdx_lines import write_cdx

    return _lines(job, write_cdx)


def _lines(job: ExportJob, write: Callable[..., int]) -> list[str]:
    from recrawl.formats.atomic_files import complete_file

    files, batches = _named_captures(job)
    with complete_file(job.file) as stream:
        count = write(batches, stream, scratch=job.file.parent)
    return [f"Wrote {counted(count, 'line')} to {job.file}.", *_about_files(job, files)]


def write_columnar_index(job: ExportJob) -> list[str]:
    """The index as Parquet with Common Crawl's columns."""
    from recrawl.formats.columnar.common_crawl import write_common_crawl

    files, batches = _named_captures(job)
    count = write_common_crawl(batches, job.file, job.name, about=job.about)
    return [f"Wrote {counted(count, 'capture')} to {job.file}.", *_about_files(job, files)]


def _named_captures(job: ExportJob) -> tuple[ArchiveFiles, Iterable[Any]]:
    from recrawl.formats.warc.archive_folder import ArchiveFolder
    from recrawl.formats.warc.archived_bytes import imported_into
    from recrawl.transfer.exporter import capture_batches
    from recrawl.transfer.wacz_export import ArchiveFiles

    files = ArchiveFiles(ArchiveFolder.of(job.place.archive, job.store), imported_into(job.store))
    return files, capture_batches(job.store, name_of=files.name_of, progress=job.looked_through)


def _about_files(job: ExportJob, files: ArchiveFiles) -> list[str]:
    """Write the path index if requested, and report files that were renamed in the index."""
    from recrawl.formats.atomic_files import complete_file
    from recrawl.transfer.wacz_export import FileLocation

    absent = {FileLocation.MISSING, FileLocation.UNREADABLE, FileLocation.OPEN, FileLocation.UNNAMED}
    said = [
        f"{counted(count, 'capture')} {'lies' if count == 1 else 'lie'} {where}."
        for where, count in files.elsewhere().items()
        if where in absent
    ]
    here = sorted((file.name, str(file.path)) for file in files if file.where not in absent)
    if job.path_index is not None:
        with complete_file(job.path_index) as stream:
            stream.writelines(f"{name}\t{path}\n".encode("utf-8", "surrogateescape") for name, path in here)
        said.append(f"Wrote where {counted(len(here), 'archive file')} can be found to {job.path_index}.")
    elif renamed := sum(Path(path).name != name for name, path in here):
        have = f"{counted(renamed, 'archive file')} {'has' if renamed == 1 else 'have'}"
        said.append(f"{have} another name in the index; --path-index FILE lists them.")
    return said


# -- packages and maps ----------------------------------------------------------------------------


def write_package(job: ExportJob) -> list[str]:
    """All available WARC files with index and pages."""
    import typer

    from recrawl.crawl.clock import RealClock
    from recrawl.formats.wacz import WaczInfo
    from recrawl.transfer.wacz_export import pack, sentences

    errors: list[str] = []
    info = WaczInfo(RealClock().now(), title=job.name)
    packed = pack(
        job.store,
        job.place.archive,
        job.file,
        info,
        on_bad=lambda error: errors.append(str(error)) if len(errors) < _SHOWN_ERRORS else None,
        progress=job.tell,
    )
    for error in errors:
        typer.echo(error, err=True)
    files, captures = counted(packed.warcs, "WARC file"), counted(packed.captures, "capture")
    head = f"Packed {files}, {captures} and {counted(packed.pages, 'page')} into {job.file}."
    return [head, *(f"{said}." for said in sentences(packed))]


def write_timemap(job: ExportJob) -> list[str]:
    """The capture times of one page."""
    import numpy as np

    from recrawl.formats.atomic_files import complete_file
    from recrawl.formats.timemap import ArchiveUris, to_cdxj, to_json, to_link
    from recrawl.transfer.exporter import capture_batches

    try:
        uris = ArchiveUris.below(job.base_url or f"http://localhost:8080/{_in_url(job.name)}/")
    except InputError as error:
        raise ConfigError(f"--base-url: {error.what}", error.remedy) from error
    remedy = "Give the page with --url, as recrawl list pages shows it."
    if not job.url:
        raise ConfigError("A TimeMap describes one page.", remedy)
    page = job.store.find(job.url)
    if page is None:
        raise InputError(f"There is no page {job.url!r} in this workspace.", remedy)
    form = {".json": "json", ".cdxj": "cdxj"}.get(job.file.suffix.lower(), "link")
    whole = uris.map_of(page.url, capture_batches(job.store, np.array([page.id])), form)
    others = uris.timemaps(page.url)
    texts: dict[str, Callable[[], Iterable[str]]] = {
        "json": lambda: [to_json(whole, others)],
        "cdxj": lambda: to_cdxj(whole, others),
        "link": lambda: to_link(whole),
    }
    with complete_file(job.file) as stream:
        stream.writelines(text.encode() for text in texts[form]())
    return [f"Wrote {counted(len(whole.mementos), 'memento')} of {page.url} to {job.file}."]


def _in_url(name: str) -> str:
    from urllib.parse import quote

    return quote(name, safe="")


# -- pages ----------------------------------------------------------------------------------------


def write_graph(job: ExportJob) -> list[str]:
    """Pages and links as GraphML."""
    from recrawl.formats.atomic_files import complete_file
    from recrawl.formats.graphml import write_graphml
    from recrawl.transfer.exporter import link_batches, page_batches

    pages = page_batches(job.store, job.looked_through)
    links = link_batches(job.store, lambda done, whole: job.tell("pages whose links are written", done, whole))
    with complete_file(job.file) as stream:
        write_graphml(stream, pages, links)
    return [f"Wrote {counted(len(job.store.pages()), 'page')} and their links to {job.file}."]


def write_seeds(job: ExportJob, dialect: str) -> list[str]:
    """All scheduled pages, or those that fall due, as a list."""
    from recrawl.app.plan import due_pages
    from recrawl.formats.atomic_files import complete_file
    from recrawl.formats.seeds import SeedDialect, seed_lines

    if job.period is None:
        pages = job.store.pages()
        chosen, said = pages.id[pages.importance > 0], ""
    else:
        chosen, said = due_pages(job.place, job.store, job.period)

    def urls() -> Iterable[str]:
        for start in range(0, len(chosen), _URLS_AT_ONCE):
            yield from job.store.urls(chosen[start : start + _URLS_AT_ONCE])
            job.looked_through(min(start + _URLS_AT_ONCE, len(chosen)), len(chosen))

    with complete_file(job.file) as stream:
        lines = seed_lines(urls(), SeedDialect(dialect), pages_only=job.period is not None)
        stream.writelines(line.encode() for line in lines)
    return [f"Wrote {counted(len(chosen), 'URL')} to {job.file}.", *([said] if said else [])]


EXAMPLES = """
recrawl export visits.parquet -w my-archive       every visit, for analysis and for another recrawl
recrawl export histories.parquet --what histories
recrawl export my-histories --what dataset        a folder for recrawl experiment
recrawl export index.cdxj                         for pywb and other replay tools
recrawl export index.cdxj --path-index paths.txt  the same, with the paths of files outside the workspace
recrawl export archive.wacz                       everything in one file
recrawl export index.parquet --what index         Common Crawl's columns and ours
recrawl export page.link --url https://example.org/ --base-url https://archive.example.org/mine/
recrawl export page.json --url https://example.org/
recrawl export seeds.txt --what seeds-heritrix
recrawl export due.txt --what seeds-nutch --due 1d  what another crawler should visit today
"""


class ExportKind(enum.StrEnum):
    """What to export."""

    VISITS = "visits"
    HISTORIES = "histories"
    CDXJ = "cdxj"
    CDX = "cdx"
    INDEX = "index"
    WACZ = "wacz"
    TIMEMAP = "timemap"
    GRAPH = "graph"
    DATASET = "dataset"
    SEEDS = "seeds"
    SEEDS_HERITRIX = "seeds-heritrix"
    SEEDS_NUTCH = "seeds-nutch"
    SEEDS_BROWSERTRIX = "seeds-browsertrix"


def export(  # noqa: PLR0913 - one argument an option
    file: Annotated[Path, typer.Argument(help="Target file; replaced when the new one is complete.")],
    what: Annotated[
        ExportKind | None,
        typer.Option(help="Content to write. Default: by the file name extension.", show_default=False),
    ] = None,
    host: HostOption = None,
    *,
    url: Annotated[str, typer.Option(metavar="URL", help="Page of the TimeMap.", show_default=False)] = "",
    base_url: Annotated[
        str,
        typer.Option(
            metavar="URL",
            help="URL under which the archive of a TimeMap is served. Default: http://localhost:8080/FOLDER/ "
            "with the folder name of the workspace.",
            show_default=False,
        ),
    ] = "",
    path_index: Annotated[
        Path | None,
        typer.Option(
            metavar="FILE",
            help="With an index: file for the paths of archive files, in the format of pywb's archive_paths.",
        ),
    ] = None,
    due: Annotated[
        str | None,
        typer.Option(metavar="DURATION", help="With seeds: only pages due within DURATION, e.g. 1d."),
    ] = None,
    at: Annotated[
        str | None, typer.Option(metavar="TIME", help="With --due: time of reference; later visits are ignored.")
    ] = None,
    workspace: WorkspaceOption = HERE,
    assignments: SetOption = None,
) -> None:
    """Export visits, histories, indexes or archives for other tools.

    visits: all recorded visits, failed ones included, as Parquet with page URLs; recrawl import reads them. histories:
    the input of estimators as Parquet: per page the gaps between observations in seconds, and for each gap whether the
    observation at its end found a change; pages are numbered. dataset: a folder of tables in the format of the public
    data sets, for recrawl experiment: events and observations of each page.

    cdxj, cdx: a sorted index of all captures. index: the same as Parquet with the columns of Common Crawl. Archive
    files are named by the last part of their path. If two have the same name, one is renamed, and --path-index lists
    both.

    wacz: all available WARC files, including imported ones, with index and pages in one package. Captures in missing
    files are left out and counted.

    timemap: the capture times of one page (link format, or JSON or CDXJ by file name extension), with the URLs of the
    mementos: --base-url followed by 20240101000000/URL.

    graph: pages and links as GraphML. seeds: all scheduled pages, as a plain list or for Heritrix, Nutch (StormCrawler)
    or Browsertrix, with the host as scope. With --due: only pages that fall due within DURATION by recrawl plan, the
    longest waiting first, within the budget, and with a scope of exactly these pages, for another crawler to visit.

    All except seeds need the extra columns: pip install 'recrawl[columns]'.
    """
    from recrawl.app.plan import ExportPeriod
    from recrawl.app.progress import progress
    from recrawl.app.provenance import KEY
    from recrawl.app.rates.belief_table import host_id
    from recrawl.cli.tables import command_provenance

    place = open_workspace(workspace, parse_assignments(assignments or []))
    what = what or (ExportKind.TIMEMAP if url else _BY_ENDING.get(file.suffix.lower()))
    if what is None:
        raise ConfigError(f"The name {file} does not determine what to write.", "Use --what.")
    _check(what, host=host, url=url, base_url=base_url, path_index=path_index)
    if (due is not None or at is not None) and not what.value.startswith(ExportKind.SEEDS.value):
        raise ConfigError(
            f"{what.value} is not a list of pages to visit.", "Leave out --due and --at, or export seeds."
        )
    if due is None and at is not None:
        raise ConfigError("--at needs --due.", "Add --due, for example --due 1d.")
    period = None if due is None else ExportPeriod.from_options(at, due)
    with place.open_store() as store:
        chosen = host_id(store, host)
        origin = command_provenance(place.configuration, [workspace])
        about = {} if origin is None else {KEY: origin.json()}
        with progress() as tell:
            said = _WRITERS[what](ExportJob(place, store, file, tell, chosen, url, base_url, path_index, period, about))
        typer.echo("\n".join(said))


def _check(what: ExportKind, *, host: str | None, url: str, base_url: str, path_index: Path | None) -> None:
    """Reject options that have no effect on the chosen content."""
    tables = (ExportKind.VISITS, ExportKind.HISTORIES)
    wrong = (
        (host is not None and what not in tables, "cannot be limited to a host", "Leave out --host, or export visits."),
        (bool(url) and what is not ExportKind.TIMEMAP, "does not take a page", "Leave out --url, or export a timemap."),
        (
            bool(base_url) and what is not ExportKind.TIMEMAP,
            "has no addresses",
            "Leave out --base-url, or export a timemap.",
        ),
        (
            path_index is not None and what not in (ExportKind.CDXJ, ExportKind.CDX, ExportKind.INDEX),
            "names no archive files",
            "Leave out --path-index, or export cdxj, cdx or index.",
        ),
    )
    for is_wrong, why, remedy in wrong:
        if is_wrong:
            raise ConfigError(f"{what.value} {why}.", remedy)


_BY_ENDING = {
    ".parquet": ExportKind.VISITS,
    ".cdxj": ExportKind.CDXJ,
    ".cdx": ExportKind.CDX,
    ".wacz": ExportKind.WACZ,
    ".graphml": ExportKind.GRAPH,
    ".txt": ExportKind.SEEDS,
    ".link": ExportKind.TIMEMAP,
}
_WRITERS: dict[ExportKind, Callable[[ExportJob], list[str]]] = {
    ExportKind.VISITS: write_visit_table,
    ExportKind.HISTORIES: write_history_table,
    ExportKind.CDXJ: write_cdxj_index,
    ExportKind.CDX: write_cdx_index,
    ExportKind.INDEX: write_columnar_index,
    ExportKind.WACZ: write_package,
    ExportKind.TIMEMAP: write_timemap,
    ExportKind.GRAPH: write_graph,
    ExportKind.DATASET: write_dataset_tables,
    ExportKind.SEEDS: lambda job: write_seeds(job, "plain"),
    ExportKind.SEEDS_HERITRIX: lambda job: write_seeds(job, "heritrix"),
    ExportKind.SEEDS_NUTCH: lambda job: write_seeds(job, "nutch"),
    ExportKind.SEEDS_BROWSERTRIX: lambda job: write_seeds(job, "browsertrix"),
}
