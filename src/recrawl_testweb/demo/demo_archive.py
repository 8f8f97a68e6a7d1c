"""``recrawl demo --archive``: what an old crawler left of a site, for the reader to assess and to continue."""

from __future__ import annotations

import asyncio
import json
from dataclasses import asdict, dataclass, replace
from typing import TYPE_CHECKING

import typer

from recrawl.app.display import command_name
from recrawl.app.progress import bar
from recrawl.errors import ConfigError, counted
from recrawl.time import DAY, HOUR

if TYPE_CHECKING:
    from pathlib import Path

    from recrawl.fetch import Fetcher
    from recrawl.formats.warc.warc_writer import WarcWriter
    from recrawl.simulate.virtual_web import VirtualWeb
    from recrawl.time import VirtualClock
    from recrawl_testweb.virtual_web_server import VirtualWebServer

MARKER = ".recrawl-demo-{}"
"""Says beside a folder with which numbers it was made."""
HOST = "town.localhost"
"""Names under ``.localhost`` are those of this machine (RFC 6761)."""
OPENED = 1_451_865_600.0
"""The site is as old as Monday, 4 January 2016."""
YEAR = 365.25 * DAY
STAY = 4 * YEAR
"""What comes to pass is drawn for whole spans of this length, so that the past stays the same for years."""
NIGHTS, EVENING = 4, 20 * HOUR
"""Crawls a year, and when each starts: eight in the evening."""
PACE = 20.0
"""Seconds from one request of the old crawler to the next."""
PASSES = 2
"""How often it goes through the site in a night, at once again from the start."""
USUAL = (
    30 * DAY, 700 * DAY, HOUR, 3 * HOUR, 14 * DAY, 200 * DAY, 21 * DAY, 100 * DAY, 900 * DAY, 500 * DAY,
)  # fmt: skip
"""Time between two changes of the median page of each section; the third and fourth are weather and railway."""
SPREAD = 0.5
"""Of the logarithm, from page to page of a section."""
AGENT = "oldcrawler/1.4 (+https://example.org/old-crawler)"


@dataclass(frozen=True, slots=True)
class DemoArchive:
    """What was asked for; the same numbers make the same archive, but for the names of its files."""

    pages: int
    years: int
    seed: int
    port: int
    """Where the site is served: URLs hold it."""

    @property
    def nights(self) -> list[float]:
        """When each crawl started, seconds since the epoch."""
        days = [round(number * YEAR / DAY / NIGHTS) for number in range(NIGHTS * self.years)]
        return [OPENED + day * DAY + EVENING for day in days]


def leave(asked: DemoArchive, folder: Path, *, serve: bool) -> None:
    """Make the archive, and serve the site as it is today, until interrupted, if that is wanted."""
    from recrawl.crawl.clock import RealClock
    from recrawl_testweb.demo.demo_serve import report_truth
    from recrawl_testweb.virtual_web_server import serve as serve_web

    clock = RealClock()
    web = made(asked, folder, clock.now())
    if not serve:
        typer.echo(f"Next, assess its quality: {command_name()} assess {folder}")
        return
    start = clock.now()
    living = serve_web(web, clock, port=asked.port, seed=asked.seed, announce=_announce)
    report_truth(living, start, clock.now())


def _announce(living: VirtualWebServer) -> None:
    typer.echo(f"The current site is at {living.seeds()[0]}\nCtrl-C ends it and prints the true changes.")


def made(asked: DemoArchive, folder: Path, now: float) -> VirtualWeb:
    """The site, with all its changes, once the archive of it lies in the folder; what lies there is left as it is."""
    if not asked.port:
        raise ConfigError("The URLs in an archive hold the port of its site.", "Name one with --port.")
    if asked.nights[-1] + DAY > now:
        raise ConfigError(f"{asked.years} years are more than there were since 2016.", "Take fewer --years.")
    web = town(asked, now)
    marker = folder.with_name(MARKER.format(folder.name))
    written = json.dumps(asdict(asked))
    if marker.is_file():
        if marker.read_text(encoding="utf-8") != written:
            raise ConfigError(
                f"The archive in {folder} was made with other numbers.", "Give those, or another folder to --archive."
            )
        return web
    if folder.exists() and (not folder.is_dir() or any(folder.iterdir())):
        raise ConfigError(f"The folder {folder} is not empty and not from a demo.", "Give another one to --archive.")
    captures = asyncio.run(_crawl(asked, web, folder))
    marker.write_text(written, encoding="utf-8")
    site, crawls = f"http://{HOST}:{asked.port}/", len(asked.nights)
    typer.echo(f"In {folder}: {counted(captures, 'capture')} of {site} in {crawls} WARC files, one for each crawl.")
    return web


def town(asked: DemoArchive, now: float) -> VirtualWeb:
    """A town's site: sections that change every hour or so, and others that hardly change in years."""
    import numpy as np

    from recrawl.simulate.sites import SiteGrowth, tree_site

    rng = np.random.default_rng(asked.seed)
    sections = 1
    while 1 + sections + sections**2 < asked.pages:
        sections += 1
    number = np.arange(asked.pages)
    section = np.where(number <= sections, number, (number - 1) // sections) - 1
    usual = np.where(section < 0, DAY, np.array(USUAL)[section % len(USUAL)])
    rate = 1 / (usual * rng.lognormal(0.0, SPREAD, asked.pages))
    end = OPENED + STAY * np.ceil((now + YEAR - OPENED) / STAY)
    growth = SiteGrowth(appearing=0.1, vanishing=0.03, cross_links=0.3)
    site = tree_site("town", rate, start=OPENED, end=float(end), rng=rng, outdegree=sections, growth=growth)
    return replace(site, hosts=(HOST,))


async def _crawl(asked: DemoArchive, web: VirtualWeb, folder: Path) -> int:
    """Crawl the site in all these nights, with real requests in virtual time; how many captures there are."""
    from recrawl.fetch import HttpFetcher
    from recrawl.formats.warc.warc_writer import WarcInfo, WarcWriter
    from recrawl.time import VirtualClock
    from recrawl_testweb.virtual_web_server import VirtualWebServer

    clock = VirtualClock(web.start)
    info = WarcInfo(prefix="TOWN", software=AGENT.partition(" ")[0], is_part_of=HOST, robots="ignore", host="old")
    captures = 0
    with (
        VirtualWebServer(web, clock, seed=asked.seed, port=asked.port) as living,
        bar("nights crawled", len(asked.nights)) as advance,
    ):
        pins = dict.fromkeys(living.hosts(), living.ip)
        async with HttpFetcher(clock, AGENT, resolve=pins) as fetcher:
            for night in asked.nights:
                clock.advance_to(night)
                with WarcWriter(folder, clock, info, durable=False) as writer:
                    for _ in range(PASSES):
                        captures += await _pass(living, fetcher, writer, clock)
                advance()
    return captures


async def _pass(living: VirtualWebServer, fetcher: Fetcher, writer: WarcWriter, clock: VirtualClock) -> int:
    """Go through the site once, breadth first along the links; how many pages were asked for."""
    from recrawl.fetch import FetchRequest

    web, urls = living.truth().web, living.urls()
    found = {0: None}
    waiting = [0]
    for page in waiting:
        writer.write(await fetcher.fetch(FetchRequest(urls[page])))
        if web.state(page, clock.now()).alive:
            new = [target for target in web.links_at(page, clock.now()).tolist() if target not in found]
            found |= dict.fromkeys(new)
            waiting += new
        clock.advance_to(clock.now() + PACE)
    return len(waiting)
