"""A real crawl of hostile hosts: it ends by itself, and the healthy hosts beside them are visited as usual."""

from __future__ import annotations

import socket

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
