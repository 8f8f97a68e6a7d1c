"""A capture of several hosts at one address keeps the address's own pause, beside those of the hosts."""

from __future__ import annotations

import asyncio

import numpy as np

from recrawl.crawl.site_capture.capture_order import CaptureOrder
from recrawl.crawl.visit.scope import ScopeKind, ScopeRules
from recrawl.fetch.http.dns import HostResolver, IpGate
from recrawl.schedule.politeness.host_politeness import IpLimiter, IpLimits, PolitenessRules
from recrawl.time import VirtualClock

PAUSE = 25.0


def test_a_capture_waits_for_the_turn_of_the_address(scene, site, linked):
    """Its hosts are asked every 10 s at most, but both lie at one address that has a longer pause."""
    port = site.home.split(":")[2].strip("/")
    hosts = [f"pair.test:{port}", f"sub.pair.test:{port}"]
    site.answers["/"] = linked(f"http://{hosts[1]}/a", "/b", f"http://{hosts[1]}/c", "/d")
    for name in "abcd":
        site.answers[f"/{name}"] = linked()
    asked = []
    clock = VirtualClock(1.79e9)

    class Told(IpLimiter):
        def begin(self, address, who, now):
            until = super().begin(address, who, now)
            if until <= now:
                asked.append(now)
            return until

    async def run():
        names = HostResolver(clock, pins=dict.fromkeys(hosts, "127.0.0.1"))
        ip_gate = IpGate(names, Told(IpLimits(PAUSE, 1)), clock)
        rules = PolitenessRules(factor=0.0, shortest=10.0, longest=10.0)
        async with names, scene(clock=clock, hosts=hosts, rules=rules, ip_gate=ip_gate) as stage:
            scope = ScopeRules(kind=ScopeKind.DOMAIN)
            order = CaptureOrder(site=f"http://{hosts[0]}/", strategy="bfs", revisit=False, scope=scope)
            await stage.capture(order)
            return stage.store.visits()

    visits = asyncio.run(run())
    assert len(visits) == 5
    assert len(asked) == len(site.asked) == 7, "two hosts have rules, too"
    assert (np.diff(asked) >= PAUSE).all()
    assert (np.diff(np.sort(visits.time)) >= PAUSE).all()
