"""The forms that ``recrawl export`` writes: each takes a job, writes its file and says what it did.

Every file appears under its name complete or not at all, and a full disk ends with its own exit code.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from recrawl.errors import ConfigError, InputError
from recrawl.model.words import counted

if TYPE_CHECKING:
    from recrawl.cli.export_due import Period
    from recrawl.cli.workspace import Workspace
    from recrawl.crawl.exporting_files import ArchiveFiles
    from recrawl.store.base import Store

_SHOWN_ERRORS = 20
_URLS_AT_ONCE = 50_000


@dataclass(frozen=True, slots=True)
class Job:
    """What to write, of what, where to, and whom to tell how far it is."""

    place: Workspace
    store: Store
    file: Path
    tell: Callable[[str, int, int], None]
    """Told the work, how much is done, how much there is."""
    host: int | None = None
    url: str = ""
    base_url: str = ""
    path_index: Path | None = None
    period: Period | None = None
    """In which pages of a seed list fall due; all pages without."""

    @property
    def name(self) -> str:
        """What the collection is called."""
        return self.place.folder.resolve().name

    def looked_through(self, done: int, whole: int) -> None:
        """Tell how many pages are done."""
        self.tell("pages", done, whole)


# -- tables ---------------------------------------------------------------------------------------


def write_visit_table(job: Job) -> list[str]:
    """All visits as Parquet."""
    import numpy as np

    from recrawl.formats.arrow import PageUrls, write_visits

    steps = 3
    job.tell("visits", 0, steps)
    visits = job.store.visits(host=job.host)
    job.tell("visits", 1, steps)
    pages = np.unique(visits.page)
    urls = job.store.urls(pages)
    job.tell("visits", 2, steps)
    write_visits(job.file, visits, PageUrls(pages, urls))
    job.tell("visits", steps, steps)
    return [f"Wrote {counted(len(visits), 'visit')} to {job.file}."]


def write_history_table(job: Job) -> list[str]:
    """What estimators see, as Parquet."""
    from recrawl.formats.arrow import write_histories

    steps = 2
    job.tell("histories", 0, steps)
    histories = job.store.histories(host=job.host)
    job.tell("histories", 1, steps)
    write_histories(job.file, histories)
    job.tell("histories", steps, steps)
    return [f"Wrote the histories of {counted(len(histories), 'page')} to {job.file}."]


def write_dataset_tables(job: Job) -> list[str]:
    """Change histories as a folder of Parquet tables, in the form that experiments read."""
    from recrawl.crawl.exporting_dataset import write_dataset

    steps = 1
    job.tell("histories", 0, steps)
    done = write_dataset(job.store, job.file)
    job.tell("histories", steps, steps)
    what = f"{counted(done.events, 'event')} and {counted(done.observations, 'observation')}"
    return [f"Wrote {what} of {counted(done.pages, 'page')} of {counted(done.sites, 'site')} to {job.file}."]


# -- indexes --------------------------------------------------------------------------------------


def write_cdxj_index(job: Job) -> list[str]:
    """A sorted index as CDXJ."""
    from recrawl.formats.cdxj import write_cdxj

    return _lines(job, write_cdxj)


def write_cdx_index(job: Job) -> list[str]:
    """A sorted index as CDX with 11 fields."""
    from recrawl.formats.cdx import write_cdx

    return _lines(job, write_cdx)


def _lines(job: Job, write: Callable[..., int]) -> list[str]:
    from recrawl.formats.disk import complete_file

    files, batches = _named_captures(job)
    with complete_file(job.file) as stream:
        count = write(batches, stream, scratch=job.file.parent)
    return [f"Wrote {counted(count, 'line')} to {job.file}.", *_about_files(job, files)]


def write_columnar_index(job: Job) -> list[str]:
    """The index as Parquet with Common Crawl's columns."""
    from recrawl.formats.common_crawl import write_common_crawl

    files, batches = _named_captures(job)
    count = write_common_crawl(batches, job.file, job.name)
    return [f"Wrote {counted(count, 'capture')} to {job.file}.", *_about_files(job, files)]


def _named_captures(job: Job) -> tuple[ArchiveFiles, Iterable[Any]]:
    from recrawl.crawl.archived_bytes import imported_into
    from recrawl.crawl.exporting import capture_batches
    from recrawl.crawl.exporting_files import ArchiveFiles

    files = ArchiveFiles(job.place.warc, imported_into(job.store))
    return files, capture_batches(job.store, name_of=files.name_of, progress=job.looked_through)


def _about_files(job: Job, files: ArchiveFiles) -> list[str]:
    """Write where the files lie, if that was asked for, and say what cannot be found by name alone."""
    from recrawl.crawl.exporting_files import Whereabouts
    from recrawl.formats.disk import complete_file

    absent = {Whereabouts.MISSING, Whereabouts.UNREADABLE, Whereabouts.OPEN, Whereabouts.UNNAMED}
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
        said.append(f"{have} another name in the index; --path-index FILE says which.")
    return said


# -- packages and maps ----------------------------------------------------------------------------


def write_package(job: Job) -> list[str]:
    """All WARC files at hand with index and pages."""
    import typer

    from recrawl.crawl.clock import RealClock
    from recrawl.crawl.exporting_wacz import pack, sentences
    from recrawl.formats.wacz_write import WaczInfo

    errors: list[str] = []
    info = WaczInfo(RealClock().now(), title=job.name)
    packed = pack(
        job.store,
        job.place.warc,
        job.file,
        info,
        on_bad=lambda error: errors.append(str(error)) if len(errors) < _SHOWN_ERRORS else None,
        progress=job.tell,
    )
    for error in errors:
        typer.echo(error, err=True)
    files, captures = counted(packed.warcs, "WARC file"), counted(packed.records, "capture")
    head = f"Packed {files}, {captures} and {counted(packed.pages, 'page')} into {job.file}."
    return [head, *(f"{said}." for said in sentences(packed))]


def write_timemap(job: Job) -> list[str]:
    """When one page was captured."""
    import numpy as np

    from recrawl.crawl.exporting import capture_batches
    from recrawl.formats.disk import complete_file
    from recrawl.formats.timemap_write import ArchiveUris, to_cdxj, to_json, to_link

    try:
        uris = ArchiveUris.below(job.base_url or f"http://localhost:8080/{_in_url(job.name)}/")
    except InputError as error:
        raise ConfigError(f"--base-url: {error.what}", error.remedy) from error
    remedy = "Name the page with --url, as recrawl list pages shows it."
    if not job.url:
        raise ConfigError("A timemap is of one page.", remedy)
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


def write_graph(job: Job) -> list[str]:
    """Pages and links as GraphML."""
    from recrawl.crawl.exporting import link_batches, page_batches
    from recrawl.formats.disk import complete_file
    from recrawl.formats.graphml import write_graphml

    pages = page_batches(job.store, job.looked_through)
    links = link_batches(job.store, lambda done, whole: job.tell("pages whose links are written", done, whole))
    with complete_file(job.file) as stream:
        write_graphml(stream, pages, links)
    return [f"Wrote {counted(len(job.store.pages()), 'page')} and their links to {job.file}."]


def write_seeds(job: Job, dialect: str) -> list[str]:
    """Every page that is visited, or those that fall due, as a list."""
    from recrawl.cli.export_due import due_pages
    from recrawl.formats.disk import complete_file
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
