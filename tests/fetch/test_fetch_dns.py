"""Names are looked up once, checked, and connected to: whatever name servers say meanwhile."""

from __future__ import annotations

import asyncio
import socket
from urllib.parse import urlsplit

import pytest
from hypothesis import given
from hypothesis import strategies as st

from recrawl.detect import decoded
from recrawl.fetch import FetchRequest, HttpFetcher, TransferLimits
from recrawl.fetch.http.dns import AddressPolicy, HostResolver, _place
from recrawl.fetch.robots_cache import RobotsCache
from recrawl.model.visits import NO_CONNECTION, NO_NAME, NO_NAME_SERVER, NO_URL, NOT_ALLOWED
from recrawl.time import VirtualClock

AGENT = "recrawl/1 (+https://example.org/bot)"
HI = b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nhi"


class NameServer:
    """Answers with what it was told, one after the other; the last one for ever."""

    def __init__(self, *answers):
        self.answers = list(answers)
        self.asked = []

    async def __call__(self, host):
        self.asked.append(host)
        answer = self.answers.pop(0) if len(self.answers) > 1 else self.answers[0]
        if isinstance(answer, Exception):
            raise answer
        return answer


def find(names_of, *urls, clock=None, wait=0.0):
    clock = clock or VirtualClock(1_000.0)

    async def run():
        async with names_of(clock) as names:
            found = []
            for url in urls:
                found.append(await names.find(url))
                clock.advance_to(clock.now() + wait)
            return found

    return asyncio.run(run())


def test_a_name_is_looked_up_once_while_it_serves():
    server = NameServer(["192.0.2.7"], ["192.0.2.8"])
    urls = ["http://a.example/", "https://A.example:444/x", "http://a.example/y"]
    found = find(lambda clock: HostResolver(clock, look_up=server, keep=100.0), *urls, wait=40.0)
    assert [one.address for one in found] == ["192.0.2.7"] * 3
    assert server.asked == ["a.example"]


def test_all_addresses_of_a_host_are_told():
    server = NameServer(["2001:db8::7", "192.0.2.7"], socket.gaierror(socket.EAI_AGAIN, "later"))

    async def run():
        async with HostResolver(VirtualClock(0.0), look_up=server) as names:
            return [list(await names.all_of(url)) for url in ("http://a.example/", "http://b.example/", "mailto:a@b")]

    assert asyncio.run(run()) == [["192.0.2.7", "2001:db8::7"], [], []]


def test_a_name_is_looked_up_again_after_its_time():
    server = NameServer(["192.0.2.7"], ["192.0.2.8"])
    found = find(lambda clock: HostResolver(clock, look_up=server, keep=100.0), *["http://a.example/"] * 3, wait=100.0)
    assert [one.address for one in found] == ["192.0.2.7", "192.0.2.8", "192.0.2.8"]


def test_a_failure_serves_for_a_short_time_only():
    server = NameServer(socket.gaierror(socket.EAI_NONAME, "unknown"), ["192.0.2.7"])
    found = find(
        lambda clock: HostResolver(clock, look_up=server, keep_failure=30.0), *["http://a.example/"] * 3, wait=20.0
    )
    assert [(one.address, one.failure) for one in found] == [("", NO_NAME)] * 2 + [("192.0.2.7", 0)]
    assert "a.example" in found[0].error


def test_the_silence_of_name_servers_serves_for_seconds_only():
    server = NameServer(socket.gaierror(socket.EAI_AGAIN, "later"), ["192.0.2.7"])
    found = find(
        lambda clock: HostResolver(clock, look_up=server, keep_failure=30.0), *["http://a.example/"] * 3, wait=3.0
    )
    assert [(one.address, one.failure) for one in found] == [("", NO_NAME_SERVER)] * 2 + [("192.0.2.7", 0)]


@pytest.mark.parametrize(
    ("answer", "failure"),
    [
        (socket.gaierror(socket.EAI_NONAME, "unknown"), NO_NAME),
        (socket.gaierror(socket.EAI_NODATA, "no data"), NO_NAME),
        (socket.gaierror(socket.EAI_AGAIN, "later"), NO_NAME_SERVER),
        (socket.gaierror(socket.EAI_FAIL, "broken"), NO_NAME_SERVER),
        (UnicodeError("label too long"), NO_NAME),
        ([], NO_NAME),
    ],
)
def test_a_name_without_an_address_is_a_failure_of_its_own(answer, failure):
    [found] = find(lambda clock: HostResolver(clock, look_up=NameServer(answer)), "http://a.example/")
    assert (found.address, found.failure) == ("", failure)
    assert found.error


def test_nobody_waits_for_ever_for_a_name_server():
    async def silent(_host):
        await asyncio.sleep(60)

    [found] = find(lambda clock: HostResolver(clock, look_up=silent, patience=0.05), "http://a.example/")
    assert found.failure == NO_NAME_SERVER


def test_tasks_share_one_look_up():
    server = NameServer(["192.0.2.7"])

    async def run():
        async with HostResolver(VirtualClock(0.0), look_up=server) as names:
            return await asyncio.gather(*(names.find(f"http://a.example/{number}") for number in range(20)))

    assert {one.address for one in asyncio.run(run())} == {"192.0.2.7"}
    assert len(server.asked) == 1


@pytest.mark.parametrize(
    ("addresses", "first"),
    [
        (["192.0.2.9", "192.0.2.10", "192.0.2.100"], "192.0.2.9"),
        (["192.0.2.100", "192.0.2.9"], "192.0.2.9"),
        (["2001:db8::1", "192.0.2.9"], "192.0.2.9"),
        (["2001:db8::2", "2001:db8::1"], "2001:db8::1"),
    ],
)
def test_hosts_at_the_same_addresses_are_seen_to_share_one(addresses, first):
    [found] = find(lambda clock: HostResolver(clock, look_up=NameServer(addresses)), "http://a.example/")
    assert found.address == first


def test_where_no_connection_comes_about_the_next_address_has_its_turn(serving):
    async def run():
        async with serving({"/": HI}) as server:
            names = HostResolver(VirtualClock(0.0), look_up=NameServer(["127.0.0.1", "127.0.0.5"]))
            async with names, HttpFetcher(VirtualClock(0.0), AGENT, names=names) as fetcher:
                url = f"http://two.example:{server.port}/"
                await names.find(url)
                names.use_next(url)  # the server is at the first one only
                return [await fetcher.fetch(FetchRequest(url)) for _ in range(2)]

    refused, answered = asyncio.run(run())
    assert (refused.failure, refused.error != "") == (NO_CONNECTION, True)
    assert (answered.status, answered.ip) == (200, "127.0.0.1")


def test_ipv6_is_spoken_to_hosts_that_have_nothing_else():
    async def answer(reader, writer):
        await reader.readuntil(b"\r\n\r\n")
        writer.write(HI)
        writer.close()

    async def run():
        try:
            server = await asyncio.start_server(answer, "::1", 0)
        except OSError:
            pytest.skip("this machine has no IPv6")
        port = server.sockets[0].getsockname()[1]
        names = HostResolver(VirtualClock(0.0), look_up=NameServer(["::1"]))
        async with server, names, HttpFetcher(VirtualClock(0.0), AGENT, names=names) as fetcher:
            return [await fetcher.fetch(FetchRequest(f"http://{host}:{port}/")) for host in ("six.example", "[::1]")]

    assert [(capture.status, capture.ip) for capture in asyncio.run(run())] == [(200, "::1")] * 2


@pytest.mark.parametrize("url", ["", "http:///x", "http://[::1", "http://a.example:99999/", "gopher://a.example/"])
def test_what_is_no_url_is_asked_of_nobody(url):
    server = NameServer(["192.0.2.7"])
    [found] = find(lambda clock: HostResolver(clock, look_up=server), url)
    assert (found.failure, server.asked) == (NO_URL, [])


# -- requests forged by others -----------------------------------------------------------------------

HOMES = ["127.0.0.1", "10.0.0.1", "169.254.169.254", "0.0.0.0", "::1", "::ffff:127.0.0.1", "fe80::1", "fc00::1",
         "64:ff9b::7f00:1", "2002:7f00:1::1", "::"]  # fmt: skip


@pytest.mark.parametrize("home", HOMES)
def test_a_name_that_points_home_is_refused_before_a_connection(serving, home):
    capture, server = _ask_innocent(serving, NameServer([home]))
    assert (capture.status, capture.failure) == (0, NOT_ALLOWED)
    assert f"{home} is not public" in capture.error
    assert server.connections == 0


def test_of_public_and_private_addresses_only_public_ones_are_used():
    server = NameServer(["127.0.0.1", "10.1.1.1", "93.184.216.34", "93.184.216.35"])

    async def run():
        async with HostResolver(VirtualClock(0.0), reach=AddressPolicy(), look_up=server) as names:
            found = []
            for _ in range(3):
                found.append((await names.find("http://a.example/")).address)
                names.use_next("http://a.example/")
            return found

    assert asyncio.run(run()) == ["93.184.216.34", "93.184.216.35", "93.184.216.34"]


def test_a_name_that_changes_its_mind_after_the_check_gains_nothing(serving):
    """DNS rebinding: public when asked first, home ever after."""
    server = NameServer(["127.0.0.9"], ["127.0.0.1"])
    capture, web = _ask_innocent(serving, server, AddressPolicy.of(["127.0.0.9"]))
    assert capture.failure == NO_CONNECTION, "there is nobody at the address that was checked, and no other is tried"
    assert len(server.asked) == 1
    assert web.connections == 0


def test_the_address_is_checked_again_when_the_connection_is_made(serving):
    """Should a name be found without a check, the connection is refused all the same."""

    async def run():
        async with serving({"/": HI}) as server:
            names = HostResolver(VirtualClock(0.0), look_up=NameServer(["127.0.0.1"]))
            async with names, HttpFetcher(VirtualClock(0.0), AGENT, reach=AddressPolicy(), names=names) as fetcher:
                return await fetcher.fetch(FetchRequest(f"http://innocent.example:{server.port}/")), server

    capture, server = asyncio.run(run())
    assert (capture.failure, server.connections) == (NOT_ALLOWED, 0)


@pytest.mark.parametrize(
    "host",
    ["127.0.0.1", "localhost", "localhost.", "a.localhost", "2130706433", "0x7f.1", "0x7f000001", "0177.0.0.1", "127.1",
     "0", "0.0.0.0", "[::1]", "[::]", "[::ffff:127.0.0.1]", "[::ffff:7f00:1]", "[0:0:0:0:0:ffff:127.0.0.1]",
     "169.254.169.254", "[fe80::1]", "[fc00::1]", "[64:ff9b::7f00:1]", "[2002:7f00:1::]"],
)  # fmt: skip
def test_every_spelling_of_home_is_refused_before_a_byte_is_sent(serving, host):
    async def run():
        fetching = HttpFetcher(VirtualClock(), AGENT, limits=TransferLimits(total=60.0), reach=AddressPolicy())
        async with serving({"/": HI}) as server, fetching as fetcher:
            return await fetcher.fetch(FetchRequest(f"http://{host}:{server.port}/")), server

    capture, server = asyncio.run(run())
    assert (capture.status, capture.failure, server.connections) == (0, NOT_ALLOWED, 0)


@pytest.mark.parametrize("url", ["http://innocent.example@127.0.0.1:{port}/", "http://127.0.0.1:{port}#@innocent.example/",
                                 "http://innocent.example\\@127.0.0.1:{port}/"])  # fmt: skip
def test_a_url_that_reads_two_ways_leads_home_in_neither(serving, url):
    """Whatever libcurl takes for the host, it connects to the address of the host that was checked, or not at all."""

    async def run():
        async with serving({"/": HI}) as server:
            names = HostResolver(VirtualClock(0.0), reach=AddressPolicy.of(["127.0.0.9"]), look_up=_by_name)
            async with names, HttpFetcher(VirtualClock(0.0), AGENT, names=names) as fetcher:
                return await fetcher.fetch(FetchRequest(url.format(port=server.port))), server

    capture, server = asyncio.run(run())
    assert (capture.status, server.connections) == (0, 0)


async def _by_name(host):
    return ["127.0.0.9"] if host == "innocent.example" else [host]


def _ask_innocent(serving, name_server, reach=None):
    async def run():
        async with serving({"/": HI}) as server:
            names = HostResolver(VirtualClock(0.0), reach=reach or AddressPolicy(), look_up=name_server)
            async with (
                names,
                HttpFetcher(VirtualClock(0.0), AGENT, reach=reach or AddressPolicy(), names=names) as fetcher,
            ):
                return await fetcher.fetch(FetchRequest(f"http://innocent.example:{server.port}/")), server

    return asyncio.run(run())


def test_rules_that_redirect_home_close_the_host(serving):
    """An answer may send us anywhere; the host that sends us home told no rules."""

    async def run():
        home = b"HTTP/1.1 302 Found\r\nLocation: http://127.0.0.2:%d/latest/meta-data\r\nContent-Length: 0\r\n\r\n"
        async with serving({}) as server:
            server.answers["/robots.txt"] = home % server.port
            reach = AddressPolicy.of(["127.0.0.1"])
            async with HttpFetcher(VirtualClock(0.0), AGENT, reach=reach) as fetcher:
                robots = RobotsCache(fetcher, VirtualClock(0.0), AGENT, body_of=decoded)
                return await robots.rules(server.url())

    rules = asyncio.run(run())
    assert not rules.available
    assert "127.0.0.2 is not public" in rules.reason


@given(
    st.sampled_from(["http://", "https://"]),
    st.sampled_from(["a.example", "A.example:8080", "u:p@b.example", "[::1]:9", "127.0.0.1", "a.example:x", ""]),
    st.sampled_from(["", "/", "/x/y", "?q=/x", "#/f", "/http://b.example/", "?http://b.example"]),
)
def test_the_host_is_the_one_that_the_whole_url_names(scheme, host, rest):
    """It is read from the beginning of the URL only, for speed."""
    parts = urlsplit(scheme + host + rest)
    try:
        port = parts.port or {"http": 80, "https": 443}[parts.scheme]
    except ValueError:
        port = None
    expected = (parts.hostname, port) if parts.hostname and port else None
    assert _place(scheme + host + rest) == expected
