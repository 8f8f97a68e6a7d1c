"""A crawl on the machine's clock in a process of its own, to be killed: STORE WORKER HOST:PORT..."""

from __future__ import annotations

import asyncio
import sys

from recrawl.crawl.archive import NoArchive
from recrawl.crawl.clock import RealClock
from recrawl.crawl.driver import Driver, Pace
from recrawl.crawl.log import JsonLinesLog
from recrawl.crawl.recorder import Recorder
from recrawl.crawl.scope import HostScope
from recrawl.crawl.visitor import Visitor
from recrawl.detect import decoded
from recrawl.fetch.http import HttpFetcher
from recrawl.fetch.robots import RobotsCache
from recrawl.schedule.agenda import Agenda
from recrawl.schedule.fixed_interval import FixedInterval
from recrawl.schedule.politeness import Politeness, PolitenessRules
from recrawl.store.open import open_store

AGENT = "kill/1.0 (+https://example.org/)"


async def crawl(location: str, worker: str, hosts: list[str]) -> None:
    clock, agenda = RealClock(), Agenda(FixedInterval(0.5), budget=1.0)
    with open_store(location) as store:
        async with HttpFetcher(clock, AGENT, resolve=dict.fromkeys(hosts, "127.0.0.1")) as fetcher:
            driver = Driver(
                worker,
                clock=clock,
                store=store,
                agenda=agenda,
                politeness=Politeness(PolitenessRules(factor=0.0, shortest=0.002, longest=0.002)),
                visitor=Visitor(fetcher, RobotsCache(fetcher, clock, AGENT, body_of=decoded), clock),
                recorder=Recorder(worker, store, agenda, HostScope(frozenset(hosts)), NoArchive()),
                pace=Pace(lease_time=1.0),
                log=JsonLinesLog(sys.stdout, clock),
            )
            await driver.run(clock.now() + 120.0)


if __name__ == "__main__":
    asyncio.run(crawl(sys.argv[1], sys.argv[2], sys.argv[3:]))
