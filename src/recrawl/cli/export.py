"""``recrawl export``: what was learned, for other tools."""

from __future__ import annotations

import enum
from collections.abc import Callable
from pathlib import Path
from typing import Annotated

import typer

from recrawl.cli.configuration import parse_assignments
from recrawl.cli.export_due import Period
from recrawl.cli.export_forms import (
    Job,
    write_cdx_index,
    write_cdxj_index,
    write_columnar_index,
    write_dataset_tables,
    write_graph,
    write_history_table,
    write_package,
    write_seeds,
    write_timemap,
    write_visit_table,
)
from recrawl.cli.options import HERE, HostOption, SetOption, WorkspaceOption
from recrawl.cli.workspace import open_workspace
from recrawl.errors import ConfigError

EXAMPLES = """
recrawl export visits.parquet -w my-archive       every visit, for analysis and for another recrawl
recrawl export histories.parquet --what histories
recrawl export my-histories --what dataset        a folder that recrawl experiment reads
recrawl export index.cdxj                         for pywb and other replay tools
recrawl export index.cdxj --path-index paths.txt  the same, where files lie outside the workspace
recrawl export archive.wacz                       everything in one file
recrawl export index.parquet --what index         Common Crawl's columns and ours
recrawl export page.link --url https://example.org/ --base-url https://archive.example.org/mine/
recrawl export page.json --url https://example.org/
recrawl export seeds.txt --what seeds-heritrix
recrawl export due.txt --what seeds-nutch --due 1d  what another crawler should visit today
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
    DATASET = "dataset"
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
    url: Annotated[str, typer.Option(metavar="URL", help="The page of a timemap.", show_default=False)] = "",
    base_url: Annotated[
        str,
        typer.Option(
            metavar="URL",
            help="Where the archive of a timemap is served; http://localhost:8080/FOLDER/ if left out, "
            "with the name of the workspace's folder.",
            show_default=False,
        ),
    ] = "",
    path_index: Annotated[
        Path | None,
        typer.Option(
            metavar="FILE",
            help="With an index: also write where each archive file lies, as pywb's archive_paths reads it.",
        ),
    ] = None,
    due: Annotated[
        str | None,
        typer.Option(metavar="DURATION", help="With seeds: only pages that fall due within this time, e.g. 1d."),
    ] = None,
    at: Annotated[
        str | None, typer.Option(metavar="TIME", help="With --due: as of this time; later visits do not count.")
    ] = None,
    workspace: WorkspaceOption = HERE,
    assignments: SetOption = None,
) -> None:
    """Write what the workspace holds in a form that other tools read.

    visits: all that was ever recorded, failed ones included, as Parquet with the URL of each page; recrawl import reads
    them back. histories: what estimators see, as Parquet: per page the gaps between looks in seconds, and whether the
    look that closed each found a change; pages are numbers there. dataset: a folder of tables in the form of the public
    data sets, for recrawl experiment: what happened to each page, and every observation.

    cdxj, cdx: a sorted index of all captures. index: the same as Parquet under Common Crawl's names. Archive files are
    called by the last part of their name; where two have the same, one gets another name, and --path-index says which
    is which.

    wacz: all WARC files at hand, imported ones too, with index and pages in one package. Captures whose files are not
    at hand are counted and left out.

    timemap: when one page was captured (link-format, or JSON or CDXJ by the ending of the file), with the addresses
    that the captures have where the archive is served: --base-url and then 20240101000000/URL.

    graph: pages and links as GraphML. seeds: every page that is visited, as a plain list or for Heritrix, Nutch
    (StormCrawler) or Browsertrix, with its host as scope. With --due only those that recrawl plan has fall due within a
    time, the one that waits longest first, no more than the budget allows in that time, and nothing beyond these pages
    in scope: what another crawler should visit now.

    All but seeds need the extra columns: pip install 'recrawl[columns]'.
    """
    from recrawl.cli.knowledge import host_id
    from recrawl.cli.waiting import progress

    place = open_workspace(workspace, parse_assignments(assignments or []))
    what = what or (What.TIMEMAP if url else _BY_ENDING.get(file.suffix.lower()))
    if what is None:
        raise ConfigError(f"What to write into {file} cannot be told from its name.", "Say it with --what.")
    _check(what, host=host, url=url, base_url=base_url, path_index=path_index)
    if (due is not None or at is not None) and not what.value.startswith(What.SEEDS.value):
        raise ConfigError(
            f"{what.value} is not a list of pages to visit.", "Leave out --due and --at, or export seeds."
        )
    if due is None and at is not None:
        raise ConfigError("--at says as of when pages are due.", "Add --due, for example --due 1d.")
    period = None if due is None else Period.told(at, due)
    with place.open_store() as store:
        chosen = host_id(store, host)
        with progress() as tell:
            said = _WRITERS[what](Job(place, store, file, tell, chosen, url, base_url, path_index, period))
        typer.echo("\n".join(said))


def _check(what: What, *, host: str | None, url: str, base_url: str, path_index: Path | None) -> None:
    """Options that mean nothing for what is written are refused: somebody expects something of them."""
    tables = (What.VISITS, What.HISTORIES)
    wrong = (
        (host is not None and what not in tables, "cannot be limited to a host", "Leave out --host, or export visits."),
        (bool(url) and what is not What.TIMEMAP, "is not of one page", "Leave out --url, or export a timemap."),
        (bool(base_url) and what is not What.TIMEMAP, "has no addresses", "Leave out --base-url, or export a timemap."),
        (
            path_index is not None and what not in (What.CDXJ, What.CDX, What.INDEX),
            "names no archive files",
            "Leave out --path-index, or export cdxj, cdx or index.",
        ),
    )
    for is_wrong, why, remedy in wrong:
        if is_wrong:
            raise ConfigError(f"{what.value} {why}.", remedy)


_BY_ENDING = {
    ".parquet": What.VISITS,
    ".cdxj": What.CDXJ,
    ".cdx": What.CDX,
    ".wacz": What.WACZ,
    ".graphml": What.GRAPH,
    ".txt": What.SEEDS,
    ".link": What.TIMEMAP,
}
_WRITERS: dict[What, Callable[[Job], list[str]]] = {
    What.VISITS: write_visit_table,
    What.HISTORIES: write_history_table,
    What.CDXJ: write_cdxj_index,
    What.CDX: write_cdx_index,
    What.INDEX: write_columnar_index,
    What.WACZ: write_package,
    What.TIMEMAP: write_timemap,
    What.GRAPH: write_graph,
    What.DATASET: write_dataset_tables,
    What.SEEDS: lambda job: write_seeds(job, "plain"),
    What.SEEDS_HERITRIX: lambda job: write_seeds(job, "heritrix"),
    What.SEEDS_NUTCH: lambda job: write_seeds(job, "nutch"),
    What.SEEDS_BROWSERTRIX: lambda job: write_seeds(job, "browsertrix"),
}
