"""``recrawl import``: what archives already hold."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from recrawl.cli.configuration import parse_assignments
from recrawl.cli.options import HERE, JsonOption, SetOption, WorkspaceOption
from recrawl.cli.workspace import open_workspace
from recrawl.errors import InputError
from recrawl.time import parse_duration

if TYPE_CHECKING:
    from rich.progress import Progress

    from recrawl.cli.workspace import Workspace
    from recrawl.crawl.importing import Cleaning, Importer
    from recrawl.crawl.sources import Brought
    from recrawl.store.base import Store

EXAMPLES = """
recrawl import crawls/ -w my-archive           everything in a folder, whatever it is
recrawl import index.cdx.gz --merge-within 1h
recrawl import old.warc.gz --digests-only      quicker: by digests, not by text and links
recrawl import site-sources/ --base-url https://example.org/
recrawl import 'https://web.archive.org/cdx/search/cdx?url=example.org/*'
"""
_SHOWN_ERRORS = 20


def import_(  # noqa: PLR0913 - one argument an option
    sources: Annotated[
        list[str],
        typer.Argument(metavar="PATH|URL...", help="Files, folders, CDX queries or TimeMaps.", show_default=False),
    ],
    *,
    merge_within: Annotated[
        str, typer.Option(help="Several downloads of a page within this time are one, of which the best stands.")
    ] = "60s",
    depth: Annotated[
        int | None, typer.Option(min=0, help="Only pages with at most so many parts in their path.")
    ] = None,
    base_url: Annotated[str, typer.Option(help="Where the pages of a git repository are published.")] = "",
    digests_only: Annotated[
        bool, typer.Option("--digests-only", help="Do not read archived bytes: judge changes by digests alone.")
    ] = False,
    strict: Annotated[bool, typer.Option("--strict", help="Stop at the first record that is broken.")] = False,
    workspace: WorkspaceOption = HERE,
    json_output: JsonOption = False,
    assignments: SetOption = None,
) -> None:
    """Bring what archives already hold into the workspace.

    Reads WARC and ARC files, CDX and CDXJ indexes, ZipNum clusters, answers of CDX servers, Common Crawl's columnar
    index, Heritrix's crawl.log, Memento TimeMaps, WACZ packages, sitemaps and feeds, git repositories of a site's
    sources, recorded change histories, and recrawl's own export. What a file is, is told from its content; folders
    are read whole. The URL of a CDX query or of a TimeMap asks that archive, politely, for all it has.

    Every capture becomes a visit. Whether a page had changed since the capture before is judged by digests and, where
    the bytes are there, by text and links. What sitemaps say is kept as a claim, not as a visit.

    Importing the same thing twice adds nothing, and an import that was interrupted goes on where it stopped. A record
    that is broken is reported with its file and position, and the rest goes on.
    """
    from rich.console import Console
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, SpinnerColumn, TextColumn, TimeElapsedColumn

    from recrawl.crawl.importing import Cleaning

    paths = [Path(source) for source in sources if not _is_url(source)]
    for path in paths:
        if not path.exists():
            raise InputError(f"There is no {path}.", "Check the path.")
    urls = [source for source in sources if _is_url(source)]
    place = open_workspace(workspace, parse_assignments(assignments or []))
    choices = _Choices(Cleaning(parse_duration(merge_within), depth), base_url, digests_only, strict)
    errors: list[str] = []
    columns = (
        SpinnerColumn(),
        TextColumn("{task.description}"),
        BarColumn(),
        MofNCompleteColumn(),
        TimeElapsedColumn(),
    )
    with place.open_store() as store, Progress(*columns, console=Console(stderr=True)) as bar:
        brought, recorded = _import(place, store, paths, urls, choices, bar, errors)
    _print(brought, recorded, errors, json_output)


@dataclass(frozen=True, slots=True)
class _Choices:
    """What the user chose."""

    cleaning: Cleaning
    base_url: str
    digests_only: bool
    strict: bool


def _import(  # noqa: PLR0913, PLR0917 - where, what, how, and who is told
    place: Workspace,
    store: Store,
    paths: list[Path],
    urls: list[str],
    choices: _Choices,
    bar: Progress,
    errors: list[str],
) -> tuple[list[Brought], int]:
    from recrawl.crawl.clock import RealClock
    from recrawl.crawl.importing import Importer
    from recrawl.crawl.sources import Sources

    clock = RealClock()
    taking = bar.add_task("captures", total=None)
    importer = Importer(store, clock, choices.cleaning, lambda count: bar.advance(taking, count))
    sources = Sources(
        store,
        importer,
        clock,
        place.warc,
        base_url=choices.base_url,
        on_bad=lambda error: errors.append(str(error)),
        strict=choices.strict,
    )
    brought: list[Brought] = []
    try:
        for path in paths:
            brought += sources.bring(path)
        brought += asyncio.run(_ask(place, store, importer, urls, choices, errors)) if urls else []
    finally:
        # Whatever happened, what was taken is judged; after a kill, the next import does it.
        recorded = _judge(place, store, importer, choices, bar)
    return brought, recorded


def _judge(place: Workspace, store: Store, importer: Importer, choices: _Choices, bar: Progress) -> int:
    from recrawl.crawl.payloads import PayloadJudge
    from recrawl.crawl.sources import read_archived

    pages = store.unjudged()
    judging = bar.add_task("pages judged by digest", total=len(pages))
    recorded = importer.judge(lambda done, _all: bar.update(judging, completed=done))
    if not choices.digests_only and len(pages):
        reading = bar.add_task("pages judged by content", total=len(pages))
        judge = PayloadJudge(
            store, lambda file, offset: read_archived(file, offset, place.warc), choices.cleaning.merge_within
        )
        judge.judge(pages, lambda done, _all: bar.update(reading, completed=done))
    store.set_judged(pages)
    return recorded


async def _ask(  # noqa: PLR0913, PLR0917 - where, what, how, and who is told
    place: Workspace, store: Store, importer: Importer, urls: list[str], choices: _Choices, errors: list[str]
) -> list[Brought]:
    """Ask archives for what they hold."""
    from recrawl.cli.wiring import limits_of, politeness_of
    from recrawl.crawl.clock import RealClock
    from recrawl.crawl.remote import RemoteArchives
    from recrawl.crawl.sources import Brought
    from recrawl.fetch.archive_client import ArchiveClient, Manners
    from recrawl.fetch.http import HttpFetcher
    from recrawl.formats.captures import Report
    from recrawl.formats.sniff import Format

    clock, settings = RealClock(), place.configuration.settings
    brought = []
    async with HttpFetcher(clock, settings.fetch.agent(), limits=limits_of(settings.fetch)) as fetcher:
        for url in urls:
            client = ArchiveClient(fetcher, clock, Manners(politeness_of(settings.politeness)))
            report = Report(strict=choices.strict, on_bad=lambda error: errors.append(str(error)))
            mark = await RemoteArchives(store, importer, client, clock).bring(url, report)
            what = Format.TIMEMAP if "/timemap/" in url else Format.CDX_ANSWER
            brought.append(Brought(url, what, mark, report.skipped))
    return brought


def _is_url(source: str) -> bool:
    return source.startswith(("http://", "https://"))


def _print(brought: list[Brought], recorded: int, errors: list[str], json_output: bool) -> None:
    from recrawl.cli.tables import print_columns, print_json, rows_of

    columns: dict[str, list[Any]] = {
        "source": [one.source for one in brought],
        "format": [one.format.value for one in brought],
        "accepted": [one.mark.accepted for one in brought],
        "skipped": [sum(one.skipped.values()) for one in brought],
        "broken": [one.mark.broken for one in brought],
        "why_skipped": [", ".join(f"{count} {reason}" for reason, count in one.skipped.items()) for one in brought],
    }
    if json_output:
        print_json(rows_of(columns))
        return
    print_columns(columns)
    for error in errors[:_SHOWN_ERRORS]:
        typer.echo(error, err=True)
    if len(errors) > _SHOWN_ERRORS:
        typer.echo(f"… and {len(errors) - _SHOWN_ERRORS} more.", err=True)
    accepted = sum(one.mark.accepted for one in brought)
    typer.echo(f"{accepted} records taken from {len(brought)} sources; {recorded} visits are new or judged anew.")
