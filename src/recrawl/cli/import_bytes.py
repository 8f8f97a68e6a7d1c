"""``recrawl import --bytes``: the captures of other archives, fetched within a budget."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import typer

from recrawl.errors import ConfigError, FetchError, InputError
from recrawl.model.words import counted

if TYPE_CHECKING:
    from rich.progress import Progress

    from recrawl.cli.workspace import Workspace
    from recrawl.crawl.memento_bytes import ByteBudget, BytesFetched
    from recrawl.fetch.archive_client import ArchiveClient
    from recrawl.fetch.http import HttpFetcher
    from recrawl.store.base import Store

DEFAULT_LIMIT = 1_000
"""Captures that are fetched at most: about an hour, with the usual pauses."""


@dataclass(frozen=True, slots=True)
class WantedBytes:
    """How much is fetched from other archives, and from where."""

    budget: ByteBudget
    replay: dict[str, str]
    """Of each CDX query the URL below which its archive shows captures."""


def wanted_bytes(
    urls: list[str], limit: int | None, max_size: float | None, max_requests: int | None, replay: str
) -> WantedBytes:
    """What of the bytes of other archives, checked before anything is asked."""
    from recrawl.crawl.memento_bytes import ByteBudget
    from recrawl.fetch.archive_url import CdxAddress, archive_address, replay_of

    if not urls:
        raise ConfigError("--bytes needs an archive on the net.", "Name a CDX query or a TimeMap by its URL.")
    places: dict[str, str] = {}
    for url in urls:
        found = archive_address(url)
        if isinstance(found, CdxAddress):
            places[url] = replay or replay_of(found)
            if not places[url].startswith(("http://", "https://")):
                raise ConfigError(
                    f"Nothing says where the archive of {url} shows its captures.",
                    "Say it with --replay https://ARCHIVE/COLLECTION/, as they stand before the 14 digits of a time.",
                )
    size = None if max_size is None else round(max_size * 1e6)
    return WantedBytes(ByteBudget(DEFAULT_LIMIT if limit is None else limit, max_requests, size), places)


async def fetch_bytes_of(  # noqa: PLR0913, PLR0917 - what, where, how, and who is told
    url: str,
    budget: ByteBudget,
    place: Workspace,
    store: Store,
    fetcher: HttpFetcher,
    client: ArchiveClient,
    bar: Progress,
    tell: Callable[[InputError], None],
    *,
    again: bool,
) -> BytesFetched:
    """Fetch the captures that a URL listed, within the budget."""
    from recrawl.cli.wiring import crawl_settings_of
    from recrawl.crawl.archived_bytes import ArchivedBytes, imported_into
    from recrawl.crawl.clock import RealClock
    from recrawl.crawl.memento_bytes import MementoBytes, question_number
    from recrawl.crawl.recovery import acknowledged_by
    from recrawl.detect import decoded
    from recrawl.fetch.memento import MementoClient
    from recrawl.fetch.robots import RobotsCache
    from recrawl.formats.captures import Report
    from recrawl.formats.timemap import read_timemap
    from recrawl.formats.warc import WarcWriter

    clock, settings = RealClock(), place.configuration.settings
    crawl = crawl_settings_of(settings)
    if again:
        store.retry_mementos(question_number(url))
    archive = MementoClient(
        client, body_of=decoded, read_map=lambda data, source: read_timemap(data, source, Report(strict=False))
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
            has_file=ArchivedBytes(place.warc, imported_into(store)).has,
            on_bad=tell,
            progress=lambda done, whole: bar.update(fetching, completed=done, total=whole),
        )
        try:
            return await mementos.fetch(url, budget)
        except FetchError:
            kept = mementos.found.captures
            typer.echo(f"{counted(kept, 'capture')} fetched and kept before the archive failed.", err=True)
            raise


def sum_of(fetched: list[BytesFetched]) -> BytesFetched:
    """What came of all URLs."""
    from recrawl.crawl.memento_bytes import BytesFetched

    names = [name for name in BytesFetched.__slots__ if name != "ended_by"]
    ended = next((one.ended_by for one in fetched if one.ended_by), "")
    return BytesFetched(**{name: sum(getattr(one, name) for one in fetched) for name in names}, ended_by=ended)


def in_words(fetched: BytesFetched) -> str:
    """What was fetched, and what is left."""
    some = (
        (fetched.differing, "of them with another digest than listed"),
        (fetched.spared, "spared"),
        (fetched.missing, "not given by the archive"),
        (fetched.failed, "failed"),
    )
    took = f"{fetched.size / 1e6:,.1f} MB, {counted(fetched.requests, 'request')}"
    parts = [f"{counted(fetched.captures, 'capture')} fetched ({took})", *(f"{n:,} {what}" for n, what in some if n)]
    words = f"Bytes: {', '.join(parts)}."
    if fetched.waiting:
        ended = f" (the limit of {fetched.ended_by} is reached)" if fetched.ended_by else ""
        words += f"\n{counted(fetched.waiting, 'capture')} left{ended}: run the same command again to go on."
    return words
