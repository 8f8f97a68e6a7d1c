"""Transfers leave nothing open behind them, and take bounded memory together."""

from __future__ import annotations

import asyncio
import gc
import select
from contextlib import suppress
from types import SimpleNamespace

import pycurl
import pytest

from recrawl.crawl.clock import RealClock
from recrawl.fetch.http.bytes_in_flight import COUNTED, FREE, BytesInFlight
from recrawl.fetch.http.http_fetcher import HttpFetcher, TransferLimits, Transfers
from recrawl.fetch.request import FetchRequest

KIB, MIB = 1 << 10, 1 << 20
AGENT = "transfers/1.0 (+https://example.org/)"


class Unwilling(SimpleNamespace):
    """libcurl, but for a multi that does not close."""

    class CurlMulti:
        def setopt(self, *_option: object) -> None:
            pass

        def close(self) -> None:
            raise pycurl.error(3, "not now")

    def __getattr__(self, name: str) -> object:
        return getattr(pycurl, name)


@pytest.mark.skipif(not hasattr(select, "epoll"), reason="this system has no epoll")
def test_what_watches_sockets_is_closed_also_if_libcurl_is_not():
    transfers = Transfers(Unwilling(), 8)
    watching = transfers._epoll
    with pytest.raises(pycurl.error, match="not now"):
        transfers.close()
    assert watching.closed
    with pytest.raises(pycurl.error, match="not now"):
        transfers.close()
    assert watching.closed, "closing twice is harmless"


class Hosts:
    """Answers ``/N`` with N bytes, ``/N/held`` with N bytes and then nothing until :attr:`goes_on`."""

    async def __aenter__(self):
        self.goes_on, self.writers, self.tasks = asyncio.Event(), [], []
        self.server = await asyncio.start_server(self.answer, "127.0.0.1", 0)
        return self

    async def __aexit__(self, *_error):
        self.goes_on.set()
        self.server.close()
        for writer in self.writers:
            writer.transport.abort()
        await asyncio.gather(*self.tasks, return_exceptions=True)

    def request(self, path, **how):
        return FetchRequest(f"http://127.0.0.1:{self.server.sockets[0].getsockname()[1]}/{path}", **how)

    async def answer(self, reader, writer):
        self.writers.append(writer)
        self.tasks.append(asyncio.current_task())
        _, size, *held = (await reader.readuntil(b"\r\n\r\n")).split(b" ")[1].split(b"/")
        with suppress(OSError):
            writer.write(b"HTTP/1.1 200 OK\r\n\r\n")
            for begin in range(0, int(size), 64 * KIB):
                writer.write(b"x" * min(64 * KIB, int(size) - begin))
                await writer.drain()
            if held:
                await self.goes_on.wait()
            writer.close()


class Watched(BytesInFlight):
    """Remembers the most that was ever counted."""

    most_held = 0

    def grow(self, charge, size, resume):
        allowed = super().grow(charge, size, resume)
        self.most_held = max(self.most_held, self.held)
        return allowed


async def until(condition):
    while not condition():  # noqa: ASYNC110 - nobody tells
        await asyncio.sleep(0.01)


def test_large_answers_wait_for_each_other_and_all_come_to_their_end():
    async def run():
        budget = Watched(6 * MIB, MIB)
        async with (
            Hosts() as hosts,
            HttpFetcher(RealClock(), AGENT, limits=TransferLimits(body=MIB), in_flight=budget) as fetcher,
        ):

            async def fetch(size):
                capture = await fetcher.fetch(hosts.request(size))
                await asyncio.sleep(0.02)  # for as long it is needed
                return len(capture.raw_body), capture.truncated

            found = await asyncio.gather(*(fetch(2 * MIB if number % 2 else MIB - 7) for number in range(24)))
        assert sorted(set(found)) == [(MIB - 7, ""), (MIB, "length")]
        gc.collect()
        assert (budget.held, budget.waiting) == (0, 0), "neither captures nor idle handles hold anything"
        return budget.most_held

    assert asyncio.run(run()) <= 6 * MIB + 24 * 2 * FREE


def test_a_small_answer_never_waits_and_an_answer_that_hangs_holds_up_none_that_fits():
    async def run():
        budget = BytesInFlight(6 * MIB, MIB)
        async with (
            Hosts() as hosts,
            HttpFetcher(RealClock(), AGENT, limits=TransferLimits(body=MIB), in_flight=budget) as fetcher,
        ):
            slow = [asyncio.create_task(fetcher.fetch(hosts.request(f"{MIB - 9}/held"))) for _ in range(8)]
            await until(lambda: budget.waiting)
            capture = await fetcher.fetch(hosts.request(FREE))
            assert (len(capture.raw_body), capture._charge.waited) == (FREE, 0.0)
            hosts.goes_on.set()
            waited = 0
            while slow:  # each has its turn when another one is forgotten
                done, rest = await asyncio.wait(slow, return_when=asyncio.FIRST_COMPLETED)
                slow = [*rest]
                for task in done:
                    assert len(task.result().raw_body) == MIB - 9
                    waited += task.result()._charge.waited > 0
                del done, task
            assert waited

    asyncio.run(run())


def test_a_transfer_that_ends_while_it_waits_leaves_nothing_behind():
    async def run():
        budget = BytesInFlight(4 * MIB, 64 * KIB)
        async with (
            Hosts() as hosts,
            HttpFetcher(RealClock(), AGENT, limits=TransferLimits(body=4 * MIB), in_flight=budget) as fetcher,
        ):
            slow = [asyncio.create_task(fetcher.fetch(hosts.request(f"{3 * MIB}/held"))) for _ in range(3)]
            await until(lambda: budget.waiting == 2)
            for task in slow:
                task.cancel()
            await asyncio.gather(*slow, return_exceptions=True)
            del slow, task
            gc.collect()
            assert (budget.held, budget.waiting) == (0, 0)
            assert len((await fetcher.fetch(hosts.request(3 * MIB))).raw_body) == 3 * MIB

    asyncio.run(run())


def test_no_more_is_read_than_is_wanted_and_small_answers_are_not_counted():
    async def run():
        budget = BytesInFlight(6 * MIB, MIB)
        async with Hosts() as hosts, HttpFetcher(RealClock(), AGENT, in_flight=budget) as fetcher:
            cut = await fetcher.fetch(hosts.request(MIB, most=1_000))
            assert (len(cut.raw_body), cut.truncated) == (1_000, "length")
            small = await fetcher.fetch(hosts.request(COUNTED))
            assert (len(small.raw_body), budget.held) == (COUNTED, 0)
            large = await fetcher.fetch(hosts.request(COUNTED + 1))
            assert budget.held == 2 * len(large.raw_body)

    asyncio.run(run())


def test_time_for_which_an_answer_waits_does_not_count():
    """On a host that sends at once, an answer is not cut off because others take the room for longer than it may."""

    async def run():
        budget = BytesInFlight(4 * MIB, 64 * KIB)
        limits = TransferLimits(body=4 * MIB, total=0.5)
        async with Hosts() as hosts, HttpFetcher(RealClock(), AGENT, limits=limits, in_flight=budget) as fetcher:
            others = [budget.charge(2 * MIB), budget.charge(2 * MIB)]
            budget._beyond = id(others[0])
            waiting = asyncio.create_task(fetcher.fetch(hosts.request(MIB)))
            await until(lambda: budget.waiting)
            await asyncio.sleep(1.0)
            others.clear()
            capture = await waiting
            assert (len(capture.raw_body), capture.truncated) == (MIB, "")
            assert capture._charge.waited > 0.9

    asyncio.run(run())
