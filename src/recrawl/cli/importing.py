"""``recrawl import``: what archives already hold."""

from __future__ import annotations

import asyncio
import time
from dataclasses import KW_ONLY, asdict, dataclass, replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from recrawl.cli.configuration import parse_assignments
from recrawl.cli.import_bytes import DEFAULT_LIMIT, WantedBytes, fetch_bytes_of, in_words, sum_of, wanted_bytes
from recrawl.cli.import_errors import ImportErrors, row_of
from recrawl.cli.options import HERE, DigestsOnlyOption, JsonOption, SetOption, WorkspaceOption, seconds_of
from recrawl.cli.waiting import bars
from recrawl.cli.workspace import open_workspace
from recrawl.errors import ConfigError, InputError
from recrawl.model.words import counted

if TYPE_CHECKING:
    from rich.progress import Progress

    from recrawl.cli.settings import FetchSettings
    from recrawl.cli.workspace import Workspace
    from recrawl.crawl.archive_noise import ToldPart
    from recrawl.crawl.importing import Cleaning, Importer
    from recrawl.crawl.memento_bytes import BytesFetched
    from recrawl.crawl.merged_captures import MergedCaptures
    from recrawl.crawl.sources import Brought
    from recrawl.fetch.reach import Reach
    from recrawl.store.base import Store
    from recrawl.time import Clock

EXAMPLES = """
recrawl import crawls/ -w my-archive           everything in a folder, whatever it is
recrawl import index.cdx.gz --merge-within 1h
recrawl import old.warc.gz --digests-only      quicker: by digests, not by text and links
recrawl import old.warc.gz --again             as if it had never been imported
recrawl import site-sources/ --base-url https://example.org/
recrawl import 'https://web.archive.org/cdx/search/cdx?url=example.org/*'
recrawl import 'https://web.archive.org/web/timemap/link/http://example.org/' --bytes --limit 200
"""


def import_(  # noqa: PLR0913 - one argument an option
    sources: Annotated[
        list[str],
        typer.Argument(metavar="PATH|URL...", help="Files, folders, CDX queries or TimeMaps.", show_default=False),
    ],
    *,
    merge_within: Annotated[
        str,
        typer.Option(
            metavar="DURATION", help="Several downloads of a page within this time are one, of which the best stands."
        ),
    ] = "60s",
    depth: Annotated[
        int | None, typer.Option(min=0, help="Only pages with at most so many parts in their path.")
    ] = None,
    base_url: Annotated[str, typer.Option(help="Where the pages of a git repository are published.")] = "",
    digests_only: DigestsOnlyOption = False,
    again: Annotated[bool, typer.Option("--again", help="Read and judge once more what was imported before.")] = False,
    strict: Annotated[bool, typer.Option("--strict", help="Stop at the first record that is broken.")] = False,
    fetch_bytes: Annotated[
        bool, typer.Option("--bytes", help="Fetch the captures, too, that a CDX query or a TimeMap lists.")
    ] = False,
    limit: Annotated[
        int | None,
        typer.Option(
            min=0, help=f"With --bytes: captures to fetch, {DEFAULT_LIMIT:,} if not given.", show_default=False
        ),
    ] = None,
    max_size: Annotated[
        float | None, typer.Option(metavar="MB", help="With --bytes: megabytes to fetch.", show_default=False)
    ] = None,
    max_requests: Annotated[
        int | None, typer.Option(min=1, help="With --bytes: requests to make for captures.", show_default=False)
    ] = None,
    replay: Annotated[
        str,
        typer.Option(
            metavar="URL",
            help="With --bytes: below which URL the archive of a CDX server shows captures.",
            show_default=False,
        ),
    ] = "",
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

    With ``--bytes`` the captures that an archive lists are fetched from it as they were captured, and kept as WARC
    records with their own dates; text and links are known then. The archive is asked for one capture at a time, with
    the pauses of a crawl, as its robots.txt and Retry-After allow. The newest version of every page comes first.
    Captures with a digest that the page had before are not fetched, nor are errors and pictures. The next run goes on
    where this one ended. A capture whose bytes have another digest than listed is kept and reported.

    Importing the same thing twice adds nothing, and an import that was interrupted goes on where it stopped. Archives
    on the net are asked anew each time. A record that is broken is reported with its file and position, and the rest
    goes on; many are listed in a file in ``reports/``.
    """
    from recrawl.crawl.importing import Cleaning
    from recrawl.crawl.sources import check_known

    paths = [Path(source) for source in sources if not _is_url(source)]
    for path in paths:
        _check(path, base_url)
    urls = [source for source in sources if _is_url(source)]
    wanted = wanted_bytes(urls, limit, max_size, max_requests, replay) if fetch_bytes else None
    if wanted is None and (any(one is not None for one in (limit, max_size, max_requests)) or replay):
        raise ConfigError("Only with --bytes are captures fetched.", "Add --bytes, or leave the limits out.")
    place = open_workspace(workspace, parse_assignments(assignments or []))
    resources = place.configuration.settings.archive.resources == "pages"
    cleaning = Cleaning(seconds_of("--merge-within", merge_within), depth, resources)
    choices = _Choices(cleaning, base_url, wanted, digests_only=digests_only, again=again, strict=strict)
    with (
        ImportErrors(place.reports / f"import-errors-{_now()}.jsonl") as errors,
        place.open_store() as store,
        bars() as bar,
    ):
        brought: list[Brought] = []
        try:
            outcome = _import(place, store, paths, urls, choices, bar, errors, brought)
        except InputError as error:
            errors.stopped_by(error)
            if json_output:
                _print(brought, None, errors, cleaning.merge_within, json_output)
            raise
    _print(brought, outcome, errors, cleaning.merge_within, json_output)
    check_known(brought, sources)


def _check(path: Path, base_url: str) -> None:
    """Refuse what cannot be imported before anything is."""
    from recrawl.formats.sniff import Format, sniff

    if not path.exists():
        raise InputError(f"There is no file {path}.", "Check the path.")
    if not base_url and path.is_dir() and sniff(path) is Format.GIT:
        raise ConfigError(
            f"{path} is a git repository, and nobody said where its pages are published.",
            "Say it with --base-url https://example.org/.",
        )


@dataclass(frozen=True, slots=True)
class _Choices:
    """What the user chose."""

    cleaning: Cleaning
    base_url: str
    wanted: WantedBytes | None
    """What of the bytes of other archives; ``None`` for none."""
    _: KW_ONLY
    digests_only: bool
    again: bool
    strict: bool


@dataclass(frozen=True, slots=True)
class _Outcome:
    """What became of the visits."""

    visits_new: int
    visits_judged_anew: int
    visits_withdrawn: int
    visits_judged_by_content: int
    merged: MergedCaptures
    """Captures of the pages judged that are no visits of their own."""
    noise: dict[str, list[ToldPart]]
    """Parts of pages that were not compared, by host."""
    resources: int
    """Of the pages judged, those that are no pages to come back to."""
    bytes: BytesFetched | None = None
    """What was fetched from other archives, if anything was to be."""


def _import(  # noqa: PLR0913, PLR0917 - where, what, how, and who is told
    place: Workspace,
    store: Store,
    paths: list[Path],
    urls: list[str],
    choices: _Choices,
    bar: Progress,
    errors: ImportErrors,
    brought: list[Brought],
) -> _Outcome:
    """Take all sources, telling what came of each in ``brought``; then judge."""
    from recrawl.crawl.clock import RealClock
    from recrawl.crawl.importing import Importer
    from recrawl.crawl.recovery import acknowledged_by
    from recrawl.crawl.sources import Sources
    from recrawl.formats.warc_repair import repair

    clock = RealClock()
    if place.warc.is_dir():  # of an import that was killed while it fetched bytes
        repair(place.warc, acknowledged_by(store))
    visits_before = store.counts(clock.now()).visits
    taking = bar.add_task("captures", total=None)
    importer = Importer(store, clock, choices.cleaning, lambda count: bar.advance(taking, count), again=choices.again)
    sources = Sources(
        store,
        importer,
        clock,
        place.warc,
        base_url=choices.base_url,
        on_bad=errors.tell,
        strict=choices.strict,
    )
    try:
        for path in paths:
            brought += sources.bring(path)
        fetched: list[BytesFetched] = []
        if urls:
            asyncio.run(_ask(place, store, importer, urls, choices, errors, bar, brought, fetched))
    finally:
        # Whatever happened, what was taken is judged; after a kill, the next import does it.
        outcome = _judge(place, store, importer, choices, bar, errors)
    # A better record of a known capture takes its visit back and makes it anew: new is only what was not there before.
    recorded = outcome.visits_new + outcome.visits_judged_anew + sum(one.visits for one in brought)
    new = store.counts(clock.now()).visits - visits_before + outcome.visits_withdrawn
    of_bytes = sum_of(fetched) if choices.wanted is not None else None
    return replace(outcome, visits_new=new, visits_judged_anew=max(recorded - new, 0), bytes=of_bytes)


def _judge(  # noqa: PLR0913, PLR0917 - where, what, how, and who is told
    place: Workspace, store: Store, importer: Importer, choices: _Choices, bar: Progress, errors: ImportErrors
) -> _Outcome:
    """Turn captures into visits; what an earlier import left undone is done now."""
    import numpy as np

    from recrawl.cli.wiring import parse_limits_of
    from recrawl.crawl.archive_noise import noise_in
    from recrawl.crawl.archived_bytes import ArchivedBytes, imported_into
    from recrawl.crawl.judging import readers
    from recrawl.crawl.merged_captures import merged_captures
    from recrawl.crawl.payloads import PayloadJudge

    judging = bar.add_task("pages judged by digest", total=len(store.unjudged()))
    touched = store.unjudged()
    judged = importer.judge(lambda done, _all: bar.update(judging, completed=done))
    read = 0
    if not choices.digests_only and len(waiting := store.unread()):
        archived = ArchivedBytes(place.warc, imported_into(store))
        files = store.unread_files()
        pages = store.unread([file for file in files if archived.has(file)])
        # A file with a full path was here once, and may come back; the bare names of an index never were.
        away = store.unread([file for file in files if Path(file).is_absolute() and not archived.has(file)])
        store.set_read(np.setdiff1d(waiting, np.union1d(pages, away)))
        reading = bar.add_task("pages judged by content", total=len(pages))
        standards = place.configuration.settings.detect.standards()
        with readers(parse_limits_of(place.configuration.settings.detect), standards) as pool:
            judge = PayloadJudge(
                store,
                archived.read,
                choices.cleaning.merge_within,
                standards,
                pool,
                errors.tell,
                learns_noise=place.configuration.settings.detect.learn_from_archives == "yes",
            )
            read = judge.judge(pages, lambda done, _all: bar.update(reading, completed=done))
    merged, resources = merged_captures(store, touched), len(store.resources(touched))
    hosts = store.hosts(np.unique(store.pages(touched).host)).name
    return _Outcome(judged.new, judged.anew, judged.withdrawn, read, merged, noise_in(store, hosts), resources)


async def _ask(  # noqa: PLR0913, PLR0917 - where, what, how, and who is told
    place: Workspace,
    store: Store,
    importer: Importer,
    urls: list[str],
    choices: _Choices,
    errors: ImportErrors,
    bar: Progress,
    brought: list[Brought],
    fetched: list[BytesFetched],
) -> None:
    """Ask archives for what they hold, and for the bytes if they are wanted; tell what came of each."""
    from recrawl.cli.wiring import limits_of, politeness_of
    from recrawl.crawl.clock import RealClock
    from recrawl.crawl.memento_bytes import MementoList
    from recrawl.crawl.remote import RemoteArchives
    from recrawl.crawl.sources import Brought
    from recrawl.fetch.archive_client import ArchiveClient, Manners
    from recrawl.fetch.http import HttpFetcher
    from recrawl.formats.captures import Report
    from recrawl.formats.sniff import Format

    clock, settings = RealClock(), place.configuration.settings
    manners = Manners(politeness_of(settings.politeness))
    say = partial(bar.console.print, markup=False, highlight=False, soft_wrap=True)  # beside the bars
    left = choices.wanted.budget if choices.wanted is not None else None
    for url in urls:
        reach = await _reach(clock, settings.fetch, url)
        limits = limits_of(settings.fetch)
        async with HttpFetcher(clock, settings.fetch.agent(), limits=limits, reach=reach) as fetcher:
            client = ArchiveClient(fetcher, clock, manners, on_wait=say)
            report = Report(strict=choices.strict, on_bad=errors.tell)
            mementos = None
            if choices.wanted is not None:
                mementos = MementoList(store, importer, url, choices.wanted.replay.get(url, ""))
            taken = await RemoteArchives(store, importer, client, clock, mementos).bring(url, report)
            what = Format.TIMEMAP if "/timemap/" in url else Format.CDX_ANSWER
            brought.append(Brought(url, what, taken.accepted, taken.new, broken=report.bad, skipped=report.skipped))
            if left is not None:
                fetched.append(
                    await fetch_bytes_of(
                        url, left, place, store, fetcher, client, bar, errors.tell, again=choices.again
                    )
                )
                left = left.after(fetched[-1])


async def _reach(clock: Clock, settings: FetchSettings, url: str) -> Reach:
    """Where an import of this URL may go: to the host that the user named, wherever it is, and as a crawl may."""
    from recrawl.cli.wiring import limits_of
    from recrawl.fetch.names import Names
    from recrawl.fetch.reach import Reach

    async with Names(clock, patience=limits_of(settings).connect) as names:
        named = [address.partition("%")[0] for address in await names.all_of(url)]
    return Reach.of([*settings.allow_networks.split(), *named])


def _now() -> str:
    """The time, as it may stand in the name of a file."""
    from recrawl.crawl.clock import RealClock

    return time.strftime("%Y%m%dT%H%M%SZ", time.gmtime(RealClock().now()))


def _is_url(source: str) -> bool:
    return source.startswith(("http://", "https://"))


def _print(
    brought: list[Brought], outcome: _Outcome | None, errors: ImportErrors, within: float, json_output: bool
) -> None:
    """Tell what came of it; without an outcome, the import was stopped."""
    from recrawl.cli.tables import print_columns, print_json, rows_of
    from recrawl.crawl.archive_noise import noise_words

    columns: dict[str, list[Any]] = {
        "source": [one.source for one in brought],
        "format": [one.format.value for one in brought],
        "accepted": [one.accepted for one in brought],
        "new": [one.new for one in brought],
        "skipped": [sum(one.skipped.values()) for one in brought],
        "broken": [one.broken for one in brought],
        "why_skipped": [", ".join(f"{count} {reason}" for reason, count in one.skipped.items()) for one in brought],
    }
    if json_output:
        found: dict[str, object] = {
            "sources": rows_of(columns),
            **(_visits(outcome, within) if outcome is not None else {}),
            "errors": [row_of(error) for error in errors.first],
            "errors_count": errors.count,
            "errors_file": None if errors.file is None else str(errors.file),
        }
        print_json(found)
    if outcome is None or json_output:
        return
    print_columns(columns)
    for error in errors.first:
        typer.echo(error, err=True)
    if errors.file is not None:
        typer.echo(f"… and {errors.count - len(errors.first)} more: all are in {errors.file}.", err=True)
    accepted = sum(one.accepted for one in brought)
    typer.echo(
        f"{counted(accepted, 'record')} taken from {counted(len(brought), 'source')}. "
        f"Visits: {outcome.visits_new:,} new, {outcome.visits_judged_anew:,} judged anew, "
        f"{outcome.visits_withdrawn:,} withdrawn, {outcome.visits_judged_by_content:,} judged by content."
    )
    if merged := outcome.merged.words(within):
        typer.echo(merged)
    if outcome.bytes is not None:
        typer.echo(in_words(outcome.bytes))
    for line in noise_words(outcome.noise):
        typer.echo(line)
    if outcome.resources:
        typer.echo(
            f"{counted(outcome.resources, 'resource')} (robots.txt, style sheets, pictures and the like) will not be "
            "visited. With the setting archive.resources=pages they are pages to come back to."
        )


def _visits(outcome: _Outcome, within: float) -> dict[str, object]:
    """What became of the visits, for programs."""
    counts = {name: value for name, value in asdict(outcome).items() if name != "merged"}
    return {**counts, "merged": {**outcome.merged.as_json(), "within": within}}
