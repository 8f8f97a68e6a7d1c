"""No page, redirect or name server can make us connect to an address that is not public."""

import asyncio

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from recrawl.errors import ConfigError
from recrawl.fetch import FetchRequest, HttpFetcher, TransferLimits
from recrawl.fetch.http.dns import AddressPolicy
from recrawl.time import VirtualClock

AGENT = "recrawl/1 (+https://example.org/bot)"
HIDDEN = (
    "0.0.0.0",
    "10.0.0.1",
    "100.64.0.1",
    "127.0.0.1",
    "127.8.8.8",
    "169.254.169.254",
    "172.16.0.1",
    "192.0.0.8",
    "192.0.0.192",
    "192.168.1.1",
    "198.18.0.1",
    "224.0.0.1",
    "240.0.0.1",
    "255.255.255.255",
)
HIDDEN_6 = (
    "::",
    "::1",
    "fe80::1",
    "fe80::1%eth0",
    "fc00::1",
    "fd12:3456::1",
    "ff02::1",
    "2001:db8::1",
    "fec0::1",
    "3fff::1",
    "5f00::1",
    "64:ff9b:1:7f00:0:100:808:808",
    "64:ff9b:1::808:808",
    "::8.8.8.8",
    "::fffe:808:808",
)


def disguises(address: str) -> list[str]:
    """Forms of IPv6 that stand for an IPv4 address: mapped, compatible, translated, NAT64, 6to4, Teredo."""
    a, b, c, d = map(int, address.split("."))
    high, low = a << 8 | b, c << 8 | d
    return [
        f"::ffff:{address}",
        f"::{address}",
        f"::ffff:0:{address}",
        f"64:ff9b::{high:x}:{low:x}",
        f"2002:{high:x}:{low:x}::1",
        f"2001:0:4136:e378:8000:63bf:{high ^ 0xFFFF:x}:{low ^ 0xFFFF:x}",
    ]


@pytest.mark.parametrize("address", [*HIDDEN, *HIDDEN_6, *(one for hidden in HIDDEN for one in disguises(hidden))])
def test_addresses_that_are_not_public_are_out_of_reach(address):
    assert not AddressPolicy().covers(address)


@pytest.mark.parametrize("address", ["1.1.1.1", "93.184.216.34", "2606:4700:4700::1111", "64:ff9b::101:101"])
def test_public_addresses_are_within_reach(address):
    assert AddressPolicy().covers(address)


@settings(max_examples=50)
@given(st.ip_addresses())
def test_what_is_allowed_by_name_is_within_reach(address):
    assert AddressPolicy.of([str(address)]).covers(str(address))


@settings(max_examples=50)
@given(st.ip_addresses(v=4))
def test_an_ipv4_address_in_disguise_is_as_public_as_it_is(address):
    mapped = disguises(str(address))[0]
    assert AddressPolicy().covers(mapped) <= AddressPolicy().covers(str(address))
    assert AddressPolicy.of([f"{address}/32"]).covers(mapped)


def test_loopback_of_ipv6_is_no_ipv4_address():
    assert not AddressPolicy.of(["0.0.0.0/0"]).covers("::1")


def test_nonsense_in_the_settings_says_what_to_write():
    with pytest.raises(ConfigError, match="no network"):
        AddressPolicy.of(["10.0.0.1/8"])


@pytest.mark.parametrize("host", ["127.0.0.1", "localhost", "2130706433", "0x7f.1", "0177.0.0.1", "[::ffff:127.0.0.1]"])
def test_every_spelling_of_loopback_is_refused_before_a_byte_is_sent(serving, host):
    async def run():
        async with serving({"/": b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nhi"}) as server:
            async with HttpFetcher(
                VirtualClock(), AGENT, limits=TransferLimits(total=60.0), reach=AddressPolicy()
            ) as fetcher:
                capture = await fetcher.fetch(FetchRequest(f"http://{host}:{server.port}/"))
            return capture, server

    capture, server = asyncio.run(run())
    assert capture.status == 0
    assert "not public" in capture.error
    assert server.connections == 0


def test_a_name_that_points_home_is_refused(serving):
    """What an attacker's name server would do."""

    async def run():
        async with serving({"/": b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nhi"}) as server:
            pins = {f"innocent.example:{server.port}": "127.0.0.1"}
            async with HttpFetcher(VirtualClock(), AGENT, resolve=pins, reach=AddressPolicy()) as fetcher:
                capture = await fetcher.fetch(FetchRequest(f"http://innocent.example:{server.port}/"))
            return capture, server

    capture, server = asyncio.run(run())
    assert "127.0.0.1 is not public" in capture.error
    assert server.connections == 0


def test_an_allowed_network_is_served_and_the_next_transfer_is_judged_anew(serving):
    async def run():
        async with serving({"/": b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nhi"}) as server:
            reach = AddressPolicy.of(["127.0.0.1/32"])
            async with HttpFetcher(VirtualClock(), AGENT, limits=TransferLimits(total=60.0), reach=reach) as fetcher:
                first = await fetcher.fetch(FetchRequest(f"http://127.0.0.2:{server.port}/"))
                second = await fetcher.fetch(FetchRequest(server.url()))
                await fetcher.fetch(FetchRequest(server.url()))
            return first, second, server

    first, second, server = asyncio.run(run())
    assert server.connections == 1, "a connection that was allowed is kept and used again"
    assert "127.0.0.2 is not public" in first.error
    assert (second.status, second.raw_body, second.error) == (200, b"hi", "")
