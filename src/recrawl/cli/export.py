"""``recrawl export``: what was learned, for other tools."""

from __future__ import annotations

import enum
import io
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, BinaryIO

import typer

from recrawl.cli.configuration import parse_assignments
from recrawl.cli.options import HERE, HostOption, SetOption, WorkspaceOption
from recrawl.cli.workspace import open_workspace
from recrawl.errors import InputError

if TYPE_CHECKING:
    from recrawl.cli.workspace import Workspace
    from recrawl.store.base import Store

EXAMPLES = """
recrawl export visits.parquet -w my-archive
recrawl export histories.parquet --what histories
recrawl export index.cdxj                         for pywb and other replay tools
recrawl export archive.wacz                       everything in one file
recrawl export seeds.txt --what seeds-heritrix
recrawl export page.link --url https://example.org/
"""


class What(enum.StrEnum):
    """What to export."""

    VISITS = "visits"
    HISTORIES = "histories"
    CDXJ = "cdxj"
    CDX = "cdx"
    INDEX = "index"
    WACZ = "wacz"
    TIMEMAP = "timemap"
    GRAPH = "graph"
    SEEDS = "seeds"
    SEEDS_HERITRIX = "seeds-heritrix"
    SEEDS_NUTCH = "seeds-nutch"
    SEEDS_BROWSERTRIX = "seeds-browsertrix"


def export(  # noqa: PLR0913 - one argument an option
    file: Annotated[Path, typer.Argument(help="The file to write; replaced once it is complete.")],
    what: Annotated[
        What | None,
        typer.Option(help="What to write; told from the ending of the file if left out.", show_default=False),
    ] = None,
    host: HostOption = None,
    *,
    url: Annotated[str, typer.Option(help="The page of a timemap.")] = "",
    workspace: WorkspaceOption = HERE,
    assignments: SetOption = None,
) -> None:
    """Write what the workspace holds in a form that other tools read.

    visits: all that was ever recorded, failed ones included, as Parquet with the URL of each page; recrawl import reads
    them back. histories: what estimators see, as Parquet: per page the gaps between looks in seconds, and whether the
    look that closed each found a change; pages are numbers there.

    cdxj, cdx: a sorted index of all captures. index: the same as Parquet under Common Crawl's names. wacz: the archive
    files with index and pages in one package. timemap: when one page was captured (link-format, or JSON or CDXJ by the
    ending of the file). graph: pages and links as GraphML. seeds: every page that is visited, as a plain list or for
    Heritrix, Nutch (StormCrawler) or Browsertrix.

    Needs the extra columns: pip install 'recrawl[columns]'.
    """
    from recrawl.cli.knowledge import host_id

    place = open_workspace(workspace, parse_assignments(assignments or []))
    what = what or (What.TIMEMAP if url else _BY_ENDING.get(file.suffix.lower()))
    if what is None:
        raise InputError(f"What to write into {file} cannot be told from its name.", "Say it with --what.")
    with place.open_store() as store:
        chosen = host_id(store, host)
        if what in (What.VISITS, What.HISTORIES):
            typer.echo(_tables(store, file, what, chosen))
            return
        if chosen is not None:
            raise InputError(f"{what.value} cannot be limited to a host.", "Leave out --host, or export visits.")
        typer.echo(_WRITERS[what](place, store, file, url))


def _tables(store: Store, file: Path, what: What, host: int | None) -> str:
    import numpy as np

    from recrawl.formats.arrow import PageUrls, write_histories, write_visits

    if what is What.HISTORIES:
        histories = store.histories(host=host)
        write_histories(file, histories)
        return f"Wrote the histories of {len(histories)} pages to {file}."
    visits = store.visits(host=host)
    pages = np.unique(visits.page)
    write_visits(file, visits, PageUrls(pages, store.urls(pages)))
    return f"Wrote {len(visits)} visits to {file}."


def _index(_place: Workspace, store: Store, file: Path, _url: str, *, cdxj: bool) -> str:
    from recrawl.crawl.exporting import capture_batches
    from recrawl.formats.cdx import write_cdx
    from recrawl.formats.cdxj import write_cdxj

    count = _whole(file, lambda stream: (write_cdxj if cdxj else write_cdx)(capture_batches(store), stream))
    return f"Wrote {count} lines to {file}."


def _common_crawl(place: Workspace, store: Store, file: Path, _url: str) -> str:
    from recrawl.crawl.exporting import capture_batches
    from recrawl.formats.common_crawl import write_common_crawl

    count = write_common_crawl(capture_batches(store), file, place.folder.resolve().name)
    return f"Wrote {count} captures to {file}."


def _wacz(place: Workspace, store: Store, file: Path, _url: str) -> str:
    from recrawl.crawl.clock import RealClock
    from recrawl.crawl.exporting import capture_batches
    from recrawl.formats.cdxj import write_cdxj
    from recrawl.formats.wacz_pages import WaczPage
    from recrawl.formats.wacz_write import WaczInfo, write_wacz

    warcs = sorted(path for path in place.warc.glob("*.warc*") if path.name.endswith((".warc", ".warc.gz")))
    index = io.BytesIO()
    write_cdxj(capture_batches(store, only_files=True), index)
    index.seek(0)
    captures = store.capture_columns(store.pages().id)
    latest = {int(page): float(time) for page, time in zip(captures.page, captures.time, strict=True)}
    import numpy as np

    urls = store.urls(np.array(list(latest), dtype=np.int64))
    pages = [WaczPage(url, time) for url, time in zip(urls, latest.values(), strict=True)]
    write_wacz(file, warcs, index, pages, WaczInfo(RealClock().now(), title=place.folder.resolve().name))
    return f"Packed {len(warcs)} WARC files and {len(pages)} pages into {file}."


def _timemap(_place: Workspace, store: Store, file: Path, url: str) -> str:
    import numpy as np

    from recrawl.crawl.exporting import capture_batches
    from recrawl.formats.timemap import TimeMap
    from recrawl.formats.timemap_write import mementos_of, to_cdxj, to_json, to_link

    page = store.find(url) if url else None
    if page is None:
        raise InputError(
            f"There is no page {url!r} in this workspace." if url else "A timemap is of one page.",
            "Name the page with --url, as recrawl list pages shows it.",
        )
    batches = capture_batches(store, np.array([page.id]))
    mementos = tuple(mementos_of(batches, lambda original, timestamp: f"{timestamp}/{original}"))
    whole = TimeMap(mementos, original=page.url)
    writer = {".json": lambda: [to_json(whole)], ".cdxj": lambda: list(to_cdxj(whole))}.get(file.suffix)
    text = "".join(writer() if writer else to_link(whole))
    _whole(file, lambda stream: stream.write(text.encode()))
    return f"Wrote {len(mementos)} mementos of {page.url} to {file}."


def _graph(_place: Workspace, store: Store, file: Path, _url: str) -> str:
    from recrawl.crawl.exporting import link_batches, page_batches
    from recrawl.formats.graphml import write_graphml

    _whole(file, lambda stream: write_graphml(stream, page_batches(store), link_batches(store)))
    return f"Wrote {len(store.pages())} pages and their links to {file}."


def _seeds(_place: Workspace, store: Store, file: Path, _url: str, *, dialect: str) -> str:
    from recrawl.formats.seeds import SeedDialect, seed_lines

    pages = store.pages()
    urls = store.urls(pages.id[pages.importance > 0])
    text = "".join(seed_lines(urls, SeedDialect(dialect)))
    _whole(file, lambda stream: stream.write(text.encode()))
    return f"Wrote {len(urls)} URLs to {file}."


def _whole(file: Path, write: Callable[[BinaryIO], int | None]) -> int:
    """Write a file under another name and give it its own once it is complete."""
    part = file.with_name(f".{file.name}.part")
    try:
        with part.open("wb") as stream:
            count = write(stream)
        part.replace(file)
    except OSError as error:
        raise InputError(f"it cannot be written ({error.strerror})", "Check the folder.", source=str(file)) from error
    finally:
        part.unlink(missing_ok=True)
    return count or 0


_BY_ENDING = {
    ".parquet": What.VISITS,
    ".cdxj": What.CDXJ,
    ".cdx": What.CDX,
    ".wacz": What.WACZ,
    ".graphml": What.GRAPH,
    ".txt": What.SEEDS,
    ".link": What.TIMEMAP,
}
_WRITERS: dict[What, Callable[[Workspace, Store, Path, str], str]] = {
    What.CDXJ: lambda *given: _index(*given, cdxj=True),
    What.CDX: lambda *given: _index(*given, cdxj=False),
    What.INDEX: _common_crawl,
    What.WACZ: _wacz,
    What.TIMEMAP: _timemap,
    What.GRAPH: _graph,
    What.SEEDS: lambda *given: _seeds(*given, dialect="plain"),
    What.SEEDS_HERITRIX: lambda *given: _seeds(*given, dialect="heritrix"),
    What.SEEDS_NUTCH: lambda *given: _seeds(*given, dialect="nutch"),
    What.SEEDS_BROWSERTRIX: lambda *given: _seeds(*given, dialect="browsertrix"),
}
