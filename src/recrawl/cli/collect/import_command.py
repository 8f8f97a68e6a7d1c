"""``recrawl import``: import captures of existing archives. With ``--bytes``, also fetch them within a budget."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import KW_ONLY, asdict, dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from recrawl.app.display import HERE, seconds_of, shown_size
from recrawl.app.progress import bars
from recrawl.app.workspace.configuration import parse_assignments
from recrawl.app.workspace.workspace import open_workspace
from recrawl.cli.options import DigestsOnlyOption, JsonOption, SetOption, WorkspaceOption
from recrawl.errors import ConfigError, FetchError, InputError, counted

if TYPE_CHECKING:
    from recrawl.app.assess.archive_reading import ImportErrors
    from recrawl.app.progress import ProgressBars
    from recrawl.app.workspace.settings import FetchSettings
    from recrawl.app.workspace.workspace import Workspace
    from recrawl.detect.noise.archive_noise import NoisePartReport
    from recrawl.fetch.archives.archive_client import ArchiveClient
    from recrawl.fetch.http.dns import AddressPolicy
    from recrawl.fetch.http.http_fetcher import HttpFetcher
    from recrawl.model import ByteArray, FloatArray, IntArray
    from recrawl.store.base import Store
    from recrawl.time import Clock
    from recrawl.transfer.archive_import import CleaningRules, Importer
    from recrawl.transfer.import_sources import SourceResult
    from recrawl.transfer.listed_captures import MergedCaptures
    from recrawl.transfer.remote_archives import ByteBudget, BytesFetched


DEFAULT_LIMIT = 1_000
"""Default maximum of fetched captures: about an hour with the default pauses."""


@dataclass(frozen=True, slots=True)
class BytesToFetch:
    """The budget for fetching captures from other archives, and their replay URLs."""

    budget: ByteBudget
    replay: dict[str, str]
    """For each CDX query, the URL prefix under which its archive replays captures."""


def wanted_bytes(
    urls: list[str], limit: int | None, max_size: float | None, max_requests: int | None, replay: str
) -> BytesToFetch:
    """Validate the options of ``--bytes`` before any request."""
    from recrawl.fetch.archives.archive_url import CdxAddress, archive_address, replay_of
    from recrawl.transfer.remote_archives import ByteBudget

    if not urls:
        raise ConfigError("--bytes needs a remote archive.", "Give the URL of a CDX query or a TimeMap.")
    places: dict[str, str] = {}
    for url in urls:
        found = archive_address(url)
        if isinstance(found, CdxAddress):
            places[url] = replay or replay_of(found)
            if not places[url].startswith(("http://", "https://")):
                raise ConfigError(
                    f"The replay URL of the archive of {url} is not known.",
                    "Give it with --replay https://ARCHIVE/COLLECTION/: the part before the 14-digit timestamp.",
                )
    size = None if max_size is None else round(max_size * 1e6)
    return BytesToFetch(ByteBudget(DEFAULT_LIMIT if limit is None else limit, max_requests, size), places)


async def fetch_bytes_of(  # noqa: PLR0913, PLR0917 - what, where, how, and the progress callback
    url: str,
    budget: ByteBudget,
    place: Workspace,
    store: Store,
    fetcher: HttpFetcher,
    client: ArchiveClient,
    bar: ProgressBars,
    tell: Callable[[InputError], None],
    *,
    again: bool,
) -> BytesFetched:
    """Fetch the captures that a CDX query or TimeMap listed, within the budget."""
    from recrawl.app.workspace.workspace_wiring import crawl_settings_of
    from recrawl.crawl.clock import RealClock
    from recrawl.crawl.worker.outages import acknowledged_by
    from recrawl.detect import decoded
    from recrawl.fetch.archives.memento_client import MementoClient
    from recrawl.fetch.robots_cache import RobotsCache
    from recrawl.formats.columnar.capture_batches import ReadReport
    from recrawl.formats.timemap import read_timemap
    from recrawl.formats.warc.archived_bytes import ArchivedBytes
    from recrawl.formats.warc.warc_writer import WarcWriter
    from recrawl.transfer.remote_archives import MementoBytes, question_number

    clock, settings = RealClock(), place.configuration.settings
    crawl = crawl_settings_of(settings)
    if again:
        store.retry_mementos(question_number(url))
    archive = MementoClient(
        client, body_of=decoded, read_map=lambda data, source: read_timemap(data, source, ReadReport(strict=False))
    )
    robots = RobotsCache(
        fetcher, clock, settings.fetch.agent(), body_of=decoded, max_delay=crawl.politeness.crawl_delay_cap
    )
    fetching = bar.add_task("captures fetched", total=None)
    info = replace(crawl.archive, prefix="MEMENTO")
    with WarcWriter(place.warc, clock, info, roll_size=crawl.roll_size, keeper=acknowledged_by(store)) as writer:
        mementos = MementoBytes(
            store,
            archive,
            client,
            robots,
            writer,
            clock,
            has_file=ArchivedBytes.of(place.archive, store).has,
            on_bad=tell,
            progress=lambda done, whole: bar.update(fetching, completed=done, total=whole),
        )
        try:
            return await mementos.fetch(url, budget)
        except FetchError:
            kept = mementos.found.captures
            typer.echo(f"{counted(kept, 'capture')} fetched and stored before the archive failed.", err=True)
            raise


def sum_of(fetched: list[BytesFetched]) -> BytesFetched:
    """The totals over all URLs."""
    from recrawl.transfer.remote_archives import BytesFetched

    names = [name for name in BytesFetched.__slots__ if name != "ended_by"]
    ended = next((one.ended_by for one in fetched if one.ended_by), "")
    return BytesFetched(**{name: sum(getattr(one, name) for one in fetched) for name in names}, ended_by=ended)


def in_words(fetched: BytesFetched) -> str:
    """A summary of fetched and remaining captures.

    >>> from recrawl.transfer.remote_archives import BytesFetched
    >>> in_words(BytesFetched(captures=20, size=5_400, requests=21))
    'Bytes: 20 captures fetched (5.4 kB, 21 requests).'
    """
    some = (
        (fetched.differing, "with another digest than listed"),
        (fetched.spared, "spared"),
        (fetched.missing, "not delivered by the archive"),
        (fetched.failed, "failed"),
    )
    took = f"{shown_size(fetched.size)}, {counted(fetched.requests, 'request')}"
    parts = [f"{counted(fetched.captures, 'capture')} fetched ({took})", *(f"{n:,} {what}" for n, what in some if n)]
    words = f"Bytes: {', '.join(parts)}."
    if fetched.waiting:
        ended = f" (limit of {fetched.ended_by} reached)" if fetched.ended_by else ""
        words += f"\n{counted(fetched.waiting, 'capture')} left{ended}. Run the same command again to continue."
    return words


_VISITS_AT_ONCE, _VISITS_COMPARED = 100_000, 10_000_000
"""Visits read per batch, and about the maximum compared with their new verdicts: 170 MB."""
EXAMPLES = """
recrawl import crawls/ -w my-archive           every supported file in a folder
recrawl import index.cdx.gz --merge-within 1h
recrawl import old.warc.gz --digests-only      faster: compare digests only, not text and links
recrawl import old.warc.gz --reimport          import again from scratch
recrawl import site-sources/ --base-url https://example.org/
recrawl import 'https://web.archive.org/cdx/search/cdx?url=example.org/*'
recrawl import 'https://web.archive.org/web/timemap/link/http://example.org/' --bytes --limit 200
"""


def import_(  # noqa: PLR0913 - one argument an option
    sources: Annotated[
        list[str],
        typer.Argument(metavar="PATH|URL", help="Files, folders, CDX queries or TimeMaps.", show_default=False),
    ],
    *,
    merge_within: Annotated[
        str,
        typer.Option(
            metavar="DURATION",
            help="Time within which downloads of a page are merged into one visit; the best one is used. 0s merges "
            "nothing.",
        ),
    ] = "60s",
    depth: Annotated[int | None, typer.Option(min=0, help="Maximum number of path segments of a page.")] = None,
    base_url: Annotated[str, typer.Option(help="URL under which the pages of a git repository are published.")] = "",
    digests_only: DigestsOnlyOption = False,
    again: Annotated[
        bool, typer.Option("--reimport", help="Read and classify again what was imported before.")
    ] = False,
    strict: Annotated[bool, typer.Option("--strict", help="Stop at the first broken record.")] = False,
    fetch_bytes: Annotated[
        bool, typer.Option("--bytes", help="Also fetch the captures that a CDX query or a TimeMap lists.")
    ] = False,
    limit: Annotated[
        int | None,
        typer.Option(
            min=0,
            help=f"With --bytes: maximum number of captures to fetch. Default: {DEFAULT_LIMIT:,}.",
            show_default=False,
        ),
    ] = None,
    max_size: Annotated[
        float | None, typer.Option(metavar="MB", help="With --bytes: maximum megabytes to fetch.", show_default=False)
    ] = None,
    max_requests: Annotated[
        int | None, typer.Option(min=1, help="With --bytes: maximum number of requests.", show_default=False)
    ] = None,
    replay: Annotated[
        str,
        typer.Option(
            metavar="URL",
            help="With --bytes: URL prefix under which the archive of a CDX server replays captures.",
            show_default=False,
        ),
    ] = "",
    workspace: WorkspaceOption = HERE,
    json_output: JsonOption = False,
    assignments: SetOption = None,
) -> None:
    """Import captures of existing archives into the workspace.

    Reads WARC and ARC files, CDX and CDXJ indexes, ZipNum clusters, responses of CDX servers, Common Crawl's columnar
    index, Heritrix's crawl.log, Memento TimeMaps, WACZ packages, sitemaps and feeds, git repositories of a site's
    sources, recorded change histories, and recrawl's own export. Formats are detected from content. Folders are read
    recursively. The URL of a CDX query or TimeMap requests everything that this archive lists, politely.

    Every capture becomes a visit. The change detector compares it with the previous capture by digest and, if the bytes
    are available, by text and links. Dates in sitemaps are stored as claims, not as visits.

    --bytes fetches the listed captures as they were captured and stores them as WARC records with their original dates.
    Text and links can then be compared. recrawl requests one capture at a time, with the pauses of a crawl, and obeys
    robots.txt and Retry-After. The newest version of each page comes first. Captures with a digest that the page had
    before, errors and images are not fetched. The next run continues where this one stopped. A capture whose bytes have
    another digest than listed is stored and reported.

    Importing the same source twice adds nothing, and an interrupted import continues where it stopped. Remote archives
    are queried again each time. A broken record is reported with file and position, and the import continues. If there
    are many, the whole list is written to a file in reports/.
    """
    from recrawl.app.assess.archive_reading import ImportErrors
    from recrawl.transfer.archive_import import CleaningRules
    from recrawl.transfer.import_sources import check_known

    paths = [Path(source) for source in sources if not _is_url(source)]
    for path in paths:
        _check(path, base_url)
    urls = [source for source in sources if _is_url(source)]
    wanted = wanted_bytes(urls, limit, max_size, max_requests, replay) if fetch_bytes else None
    if wanted is None and (any(one is not None for one in (limit, max_size, max_requests)) or replay):
        raise ConfigError("Captures are fetched only with --bytes.", "Add --bytes, or leave the limits out.")
    place = open_workspace(workspace, parse_assignments(assignments or []))
    resources = place.configuration.settings.archive.resources == "pages"
    cleaning = CleaningRules(seconds_of("--merge-within", merge_within), depth, resources)
    choices = _Choices(cleaning, base_url, wanted, digests_only=digests_only, again=again, strict=strict)
    with (
        ImportErrors(place.reports / f"import-errors-{_now()}.jsonl") as errors,
        place.open_store() as store,
        bars() as bar,
    ):
        brought: list[SourceResult] = []
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
    """Reject sources that cannot be imported, before any import starts."""
    from recrawl.formats.sniff import SourceFormat, sniff

    if not path.exists():
        raise InputError(f"There is no file {path}.", "Check the path.")
    if not base_url and path.is_dir() and sniff(path) is SourceFormat.GIT:
        raise ConfigError(
            f"{path} is a git repository, and the URL of its pages is not known.",
            "Give it with --base-url https://example.org/.",
        )


@dataclass(frozen=True, slots=True)
class _Choices:
    """The options of the user."""

    cleaning: CleaningRules
    base_url: str
    wanted: BytesToFetch | None
    """The budget for fetching bytes from other archives; ``None`` without ``--bytes``."""
    _: KW_ONLY
    digests_only: bool
    again: bool
    strict: bool


@dataclass(frozen=True, slots=True)
class _Outcome:
    """The numbers of visits by outcome."""

    visits_new: int
    visits_reclassified: int
    visits_withdrawn: int
    visits_compared_by_content: int
    merged: MergedCaptures
    """Captures of the classified pages that were merged into other visits."""
    noise: dict[str, list[NoisePartReport]]
    """Parts of pages that were not compared, by host."""
    resources: int
    """Classified URLs that are resources, not pages to revisit."""
    turned: int = 0
    """Known visits whose verdict changed."""
    warnings: list[str] = field(default_factory=list)
    """About indexes that leave out unchanged captures."""
    bytes: BytesFetched | None = None
    """The totals of fetching from other archives, with ``--bytes``."""


def _import(  # noqa: PLR0913, PLR0917 - where, what, how, and the progress callback
    place: Workspace,
    store: Store,
    paths: list[Path],
    urls: list[str],
    choices: _Choices,
    bar: ProgressBars,
    errors: ImportErrors,
    brought: list[SourceResult],
) -> _Outcome:
    """Import all sources, add the result of each to ``brought``, then classify."""
    from recrawl.crawl.clock import RealClock
    from recrawl.crawl.worker.outages import acknowledged_by
    from recrawl.formats.warc.warc_check import repair
    from recrawl.transfer.archive_import import Importer
    from recrawl.transfer.import_sources import ImportSources

    clock = RealClock()
    if place.warc.is_dir():  # of an import that was killed while it fetched bytes
        repair(place.warc, acknowledged_by(store))
    visits_before = store.counts(clock.now()).visits
    taking = bar.add_task("captures", total=None)
    importer = Importer(store, clock, choices.cleaning, lambda count: bar.advance(taking, count), again=choices.again)
    sources = ImportSources(
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
            import asyncio

            asyncio.run(_ask(place, store, importer, urls, choices, errors, bar, brought, fetched))
    finally:
        # Classify what was imported even after an error; after a kill, the next import does it.
        outcome = _classify(place, store, importer, choices, bar, errors)
    # A better record of a known capture replaces its visit: only visits that did not exist before are new.
    recorded = outcome.visits_new + outcome.visits_reclassified + sum(one.visits for one in brought)
    new = store.counts(clock.now()).visits - visits_before + outcome.visits_withdrawn
    of_bytes = sum_of(fetched) if choices.wanted is not None else None
    restart = max(recorded - new, outcome.turned, 0)
    return replace(outcome, visits_new=new, visits_reclassified=restart, bytes=of_bytes)


def _classify(  # noqa: PLR0913, PLR0917 - where, what, how, and the progress callback
    place: Workspace, store: Store, importer: Importer, choices: _Choices, bar: ProgressBars, errors: ImportErrors
) -> _Outcome:
    """Turn captures into visits, including those that an earlier import left behind."""
    import numpy as np

    from recrawl.app.assess.assess_facts import index_warnings
    from recrawl.app.workspace.workspace_wiring import detector_named
    from recrawl.formats.warc.archived_bytes import ArchivedBytes
    from recrawl.parse.parse_pool import new_parse_pool
    from recrawl.transfer.archive_noise_learning import noise_in
    from recrawl.transfer.payload_classifier import PayloadClassifier

    touched = importer.touched()
    classifier = bar.add_task("pages compared by digest", total=len(touched))
    known = np.union1d(touched, store.unread())
    before = _verdicts(store, known[~importer.found_here(known)])
    classified = importer.judge(lambda done, _all: bar.update(classifier, completed=done), errors.tell)
    read, pages = 0, np.empty(0, np.int64)
    if not choices.digests_only and len(waiting := store.unread()):
        archived = ArchivedBytes.of(place.archive, store)
        files = store.unread_files()
        pages = store.unread([file for file in files if archived.has(file)])
        # A file with a full path existed here and may come back; the bare names of an index never did.
        away = store.unread([file for file in files if Path(file).is_absolute() and not archived.has(file)])
        store.set_read(np.setdiff1d(waiting, np.union1d(pages, away)))
        reading = bar.add_task("pages compared by content", total=len(pages))
        standards = place.configuration.settings.detect.standards()
        with new_parse_pool(place.configuration.settings.detect.parse_limits(), standards) as pool:
            payloads = PayloadClassifier(
                store,
                archived.read,
                choices.cleaning.merge_within,
                standards,
                pool,
                errors.tell,
                learns_noise=place.configuration.settings.detect.learn_from_archives == "yes",
                keeps_recorded=True,
                detector=detector_named(place.configuration.settings.detect.detector),
            )
            read = payloads.judge(pages, lambda done, _all: bar.update(reading, completed=done))
    merged, resources = importer.merged(touched, pages), len(store.resources(touched))
    hosts = store.hosts(np.unique(store.pages(touched).host)).name
    noise = noise_in(store, hosts)
    return _Outcome(
        classified.new,
        classified.restart,
        classified.withdrawn,
        read,
        merged,
        noise,
        resources,
        _turned(store, before),
        index_warnings(store, touched, _VISITS_COMPARED),
    )


def _verdicts(store: Store, pages: IntArray) -> tuple[IntArray, FloatArray, ByteArray]:
    """The visits of these pages by page and time, with their verdicts; of too many, those of the first pages."""
    import numpy as np

    from recrawl.transfer.listed_captures import chunks_of

    parts = [(np.empty(0, np.int64), np.empty(0), np.empty(0, np.uint8))]
    count = 0
    for some in chunks_of(store, pages, _VISITS_AT_ONCE, _VISITS_AT_ONCE):
        visits = store.visits(pages=some)
        parts.append((visits.page, visits.time, visits.verdict))
        count += len(visits)
        if count >= _VISITS_COMPARED:
            break
    page, time, verdict = (np.concatenate(column) for column in zip(*parts, strict=True))
    return page, time, verdict


def _turned(store: Store, before: tuple[IntArray, FloatArray, ByteArray]) -> int:
    """The number of known visits whose verdict changed. O(n log n)."""
    import numpy as np

    if not len(before[0]):
        return 0
    now = _verdicts(store, np.unique(before[0]))
    page, time = np.append(before[0], now[0]), np.append(before[1], now[1])
    order = np.lexsort((time, page))
    page, time, verdict = page[order], time[order], np.append(before[2], now[2])[order]
    twice = (page[1:] == page[:-1]) & (time[1:] == time[:-1])
    return int((twice & (verdict[1:] != verdict[:-1])).sum())


async def _ask(  # noqa: PLR0913, PLR0917 - where, what, how, and the progress callback
    place: Workspace,
    store: Store,
    importer: Importer,
    urls: list[str],
    choices: _Choices,
    errors: ImportErrors,
    bar: ProgressBars,
    brought: list[SourceResult],
    fetched: list[BytesFetched],
) -> None:
    """Query remote archives, fetch bytes if requested, and report the result of each."""
    from recrawl.app.workspace.workspace_wiring import limits_of, politeness_of
    from recrawl.crawl.clock import RealClock
    from recrawl.fetch.archives.archive_client import ArchiveClient, ArchivePoliteness
    from recrawl.fetch.http.http_fetcher import HttpFetcher
    from recrawl.formats.columnar.capture_batches import ReadReport
    from recrawl.formats.sniff import SourceFormat
    from recrawl.transfer.import_sources import SourceResult
    from recrawl.transfer.remote_archives import MementoList, RemoteArchives

    clock, settings = RealClock(), place.configuration.settings
    treatment = ArchivePoliteness(politeness_of(settings.politeness))
    say = bar.say
    left = choices.wanted.budget if choices.wanted is not None else None
    for url in urls:
        reach = await _reach(clock, settings.fetch, url)
        limits = limits_of(settings.fetch)
        async with HttpFetcher(clock, settings.fetch.agent(), limits=limits, reach=reach) as fetcher:
            client = ArchiveClient(fetcher, clock, treatment, on_wait=say)
            report = ReadReport(strict=choices.strict, on_bad=errors.tell)
            mementos = None
            if choices.wanted is not None:
                mementos = MementoList(store, importer, url, choices.wanted.replay.get(url, ""))
            taken = await RemoteArchives(store, importer, client, clock, mementos).bring(url, report)
            what = SourceFormat.TIMEMAP if "/timemap/" in url else SourceFormat.CDX_ANSWER
            brought.append(
                SourceResult(url, what, taken.accepted, taken.new, broken=report.bad, skipped=report.skipped)
            )
            if left is not None:
                fetched.append(
                    await fetch_bytes_of(
                        url, left, place, store, fetcher, client, bar, errors.tell, again=choices.again
                    )
                )
                left = left.after(fetched[-1])


async def _reach(clock: Clock, settings: FetchSettings, url: str) -> AddressPolicy:
    """The address policy of an import: the host in the URL is always allowed, others as in a crawl."""
    from recrawl.app.workspace.workspace_wiring import limits_of
    from recrawl.fetch.http.dns import AddressPolicy, HostResolver

    async with HostResolver(clock, patience=limits_of(settings).connect) as names:
        named = [address.partition("%")[0] for address in await names.all_of(url)]
    return AddressPolicy.of([*settings.allow_networks.split(), *named])


def _now() -> str:
    """The time in a form that is valid in file names."""
    from recrawl.crawl.clock import RealClock

    return time.strftime("%Y%m%dT%H%M%SZ", time.gmtime(RealClock().now()))


def _is_url(source: str) -> bool:
    return source.startswith(("http://", "https://"))


def _print(
    brought: list[SourceResult], outcome: _Outcome | None, errors: ImportErrors, within: float, json_output: bool
) -> None:
    """Print the result; without an outcome, the import was stopped."""
    from recrawl.app.assess.archive_reading import row_of
    from recrawl.app.display import rows_of
    from recrawl.cli.tables import print_columns, print_json
    from recrawl.transfer.archive_noise_learning import noise_words

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
    accepted, endings = sum(one.accepted for one in brought), sum(one.endings for one in brought)
    of_them = f" ({endings:,} of them at the end of a log: page still unchanged, or still gone)" if endings else ""
    typer.echo(
        f"{counted(accepted, 'record')} imported from {counted(len(brought), 'source')}. "
        f"Visits: {outcome.visits_new:,} new{of_them}, {outcome.visits_reclassified:,} reclassified, "
        f"{outcome.visits_withdrawn:,} withdrawn, {outcome.visits_compared_by_content:,} compared by content."
    )
    if merged := outcome.merged.words(within):
        typer.echo(merged)
    if outcome.bytes is not None:
        typer.echo(in_words(outcome.bytes))
    for line in (*noise_words(outcome.noise), *outcome.warnings):
        typer.echo(line)
    if outcome.resources:
        typer.echo(
            f"{counted(outcome.resources, 'resource')} (robots.txt, style sheets, images and similar) will not be "
            "visited. Set archive.resources=pages to visit them as pages."
        )


def _visits(outcome: _Outcome, within: float) -> dict[str, object]:
    """The numbers of visits by outcome, for JSON."""
    from recrawl.transfer.archive_noise_learning import noise_json

    counts = {name: value for name, value in asdict(outcome).items() if name not in ("merged", "turned")}
    return {**counts, "noise": noise_json(outcome.noise), "merged": {**outcome.merged.as_json(), "within": within}}
