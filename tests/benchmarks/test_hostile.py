"""A real crawl of hostile hosts: it ends by itself, and the healthy hosts beside them are visited as usual."""

from __future__ import annotations

import json
import socket
from dataclasses import replace

import hostile
import hostile_hosts
import pytest

pytestmark = pytest.mark.slow
GENEROUS = 1_500_000_000
"""Bytes. The aim is 1 GB; how many processes are alive at once depends on the machine."""


@pytest.fixture(autouse=True)
def _many_loopback_addresses():
    with socket.socket() as one:
        try:
            one.bind(("127.7.0.1", 0))
        except OSError:
            pytest.skip("this system has no loopback addresses but 127.0.0.1")


def test_sixty_hostile_hosts_harm_nobody_but_themselves(tmp_path, monkeypatch):
    monkeypatch.setattr(hostile, "MOST_MEMORY", GENEROUS)
    hosts = hostile_hosts.table()
    assert len(hosts) >= 60
    assert len({host.name for host in hosts}) == len(hosts)
    report = hostile.crawl([*hosts, *hostile_hosts.healthy(6)], tmp_path, hostile.SETTINGS | hostile.QUICK, 300.0)
    assert report.faults == []
    assert report.trespasses == []


def test_a_crawl_waits_while_dns_is_silent_and_no_name_leads_to_this_machine(tmp_path):
    """All names of a real resolver over UDP are silent at first; then some of them lie."""
    liars = {"dns-private", "dns-here", "dns-mixed", "dns-rebind"}
    # One that is asked for again after the outage may name this machine by then, and is refused.
    hosts = [
        replace(host, expected=host.expected | hostile_hosts.REFUSED)
        for host in hostile_hosts.table()
        if host.name in liars
    ]
    assert len(hosts) == len(liars)
    hosts += hostile_hosts.healthy(24)  # as many as it takes to know that it is us
    report = hostile.crawl(hosts, tmp_path, hostile.SETTINGS | hostile.QUICK, 300.0, dns_outage=20.0)
    assert report.faults == []
    assert report.trespasses == []
    log = (tmp_path / "ws" / "recrawl.log").read_text(encoding="utf-8")
    events = list(map(json.loads, log.splitlines()))
    assert any(event["message"] == "no host can be reached" for event in events)
    failed = [event["details"]["url"] for event in events if event["details"].get("outcome") == "unreachable"]
    assert not [url for url in failed if "healthy" in url]
