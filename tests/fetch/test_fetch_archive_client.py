"""ArchiveClient against real answers: pauses, patience, and when it gives up (conventions R4)."""

from __future__ import annotations

import asyncio

import pytest

from recrawl.errors import ExitCode, FetchError, InputError
from recrawl.fetch import ArchiveClient, ArchivePoliteness, HttpFetcher, RateLimitedError, TransferLimits
from recrawl.fetch.http.dns import AddressPolicy
from recrawl.schedule.politeness.host_politeness import PolitenessRules
from recrawl.time import VirtualClock

AGENT = "RecrawlTest/1.0 (+https://example.org/bot)"
START = 1_000.0


class Script(dict):
    """Answers of a path in turn; the last one stays."""

    def get(self, path, default=None):
        answers = super().get(path, [default])
        return answers.pop(0) if len(answers) > 1 else answers[0]


def answer(body=b"", status="200 OK", *headers, length=None):
    lines = [f"HTTP/1.1 {status}", *headers, f"Content-Length: {len(body) if length is None else length}", "", ""]
    return "\r\n".join(lines).encode() + body


async def hang_up(writer):
    writer.close()


def cut_short(body):
    async def write(writer):
        writer.write(answer(body, length=len(body) + 10))
        await writer.drain()
        writer.close()

    return write


def asked(serving, answers, ask, treatment=None, limits=None, **more):
    """Run ``ask(client, server, clock)`` and return what it returns."""

    async def run():
        clock = VirtualClock(START)
        script = Script({path: list(several) for path, several in answers.items()})
        async with (
            serving(script) as server,
            HttpFetcher(clock, AGENT, limits=limits or TransferLimits(total=60.0)) as fetcher,
        ):
            return await ask(ArchiveClient(fetcher, clock, treatment, **more), server, clock)

    return asyncio.run(run())


def body(capture):
    return capture.raw_body


def test_a_pause_follows_every_answer(serving):
    async def ask(client, server, clock):
        times = []
        for _ in range(3):
            await client.ask(server.url("/a"), body)
            times.append(clock.now() - START)
        return times

    treatment = ArchivePoliteness(politeness=PolitenessRules(factor=0.0, shortest=7.0))
    assert asked(serving, {"/a": [answer()]}, ask, treatment) == [0.0, 7.0, 14.0]


def test_tasks_take_turns(serving):
    running = {"now": 0, "most": 0}

    async def slow(writer):
        running["now"] += 1
        running["most"] = max(running["most"], running["now"])
        await asyncio.sleep(0.02)
        running["now"] -= 1
        writer.write(answer(b"x"))
        await writer.drain()

    async def ask(client, server, clock):
        return await asyncio.gather(*(client.ask(server.url("/a"), body) for _ in range(4)))

    assert asked(serving, {"/a": [slow]}, ask) == [b"x"] * 4
    assert running["most"] == 1


@pytest.mark.parametrize("status", ["429 Slow down", "503 Busy"])
def test_retry_after_is_honoured(serving, status):
    async def ask(client, server, clock):
        got = await client.ask(server.url("/a"), body)
        return got, clock.now() - START

    answers = {"/a": [answer(b"", status, "Retry-After: 120"), answer(b"done")]}
    assert asked(serving, answers, ask) == (b"done", 120.0)


@pytest.mark.parametrize(
    "trouble",
    [
        answer(b"", "503 Busy"),
        answer(b"", "502 Bad gateway"),
        answer(b"", "504 Late"),
        answer(b"", "500 Oops"),
        hang_up,
        cut_short(b"half"),
    ],
    ids=["503", "502", "504", "500", "hung up", "cut short"],
)
def test_what_may_pass_is_tried_again_after_growing_waits(serving, trouble):
    async def ask(client, server, clock):
        got = await client.ask(server.url("/a"), body)
        return got, clock.now() - START, client.requests

    got, waited, requests = asked(serving, {"/a": [trouble, trouble, answer(b"done")]}, ask)
    assert (got, requests) == (b"done", 3)
    assert waited == pytest.approx(5.0 + 10.0)


def test_waits_are_told(serving):
    told = []

    async def ask(client, server, clock):
        with pytest.raises(FetchError):
            await client.ask(server.url("/a"), body)
        return server.port

    busy = answer(b"", "503 Busy", "Retry-After: 120")
    port = asked(serving, {"/a": [hang_up, busy, busy]}, ask, ArchivePoliteness(tries=3), on_wait=told.append)
    assert [words.partition(": ")[0] for words in told] == [f"127.0.0.1:{port}"] * 2
    assert "no answer" in told[0]
    assert told[0].endswith("; again in 5 s.")
    assert told[1].endswith("the archive answered 503; again in 2 min.")


def test_a_garbled_answer_is_asked_for_again(serving):
    def read(capture):
        if capture.raw_body == b"garbled":
            raise InputError("it is garbled")
        return capture.raw_body

    async def ask(client, server, clock):
        return await client.ask(server.url("/a"), read)

    assert asked(serving, {"/a": [answer(b"garbled"), answer(b"fine")]}, ask) == b"fine"


def test_patience_ends(serving):
    async def ask(client, server, clock):
        with pytest.raises(FetchError, match=r"answered 503, 4 times.*later"):
            await client.ask(server.url("/a"), body)
        return client.requests

    assert asked(serving, {"/a": [answer(b"", "503 Busy")]}, ask, ArchivePoliteness(tries=4)) == 4


def test_a_long_retry_after_ends_the_job_and_is_not_forgotten(serving):
    async def ask(client, server, clock):
        url = server.url("/a")
        for _ in range(2):
            with pytest.raises(RateLimitedError, match="come back in 1 d") as told:
                await client.ask(url, body)
            assert told.value.exit_code is ExitCode.RATE_LIMITED
        assert len(server.requests) == 1
        clock.advance_to(START + 86_400.0)
        return await client.ask(url, body)

    answers = {"/a": [answer(b"", "429 Slow down", "Retry-After: 86400"), answer(b"done")]}
    assert asked(serving, answers, ask) == b"done"


def test_too_long_an_answer_is_not_asked_for_again(serving):
    async def ask(client, server, clock):
        with pytest.raises(FetchError, match="smaller pages"):
            await client.ask(server.url("/a"), body)
        return client.requests

    assert asked(serving, {"/a": [answer(b"x" * 200_000)]}, ask, limits=TransferLimits(body=1000)) == 1


def test_an_address_that_is_not_allowed_ends_the_job_at_once():
    async def run():
        clock = VirtualClock(START)
        async with HttpFetcher(clock, AGENT, reach=AddressPolicy()) as fetcher:
            client = ArchiveClient(fetcher, clock)
            with pytest.raises(FetchError, match=r"127\.0\.0\.9 is not public.*fetch\.allow_networks.*trust"):
                await client.ask("http://127.0.0.9/cdx", body)
            return client.requests

    assert asyncio.run(run()) == 1


def test_an_archived_error_is_an_answer(serving):
    gone = answer(b"was busy", "503 Busy", "Memento-Datetime: Sun, 06 Nov 1994 08:49:37 GMT", "Retry-After: 9")

    async def ask(client, server, clock):
        return await client.ask(server.url("/a"), body), client.requests

    assert asked(serving, {"/a": [gone]}, ask) == (b"was busy", 1)


def test_redirects_are_followed_but_not_for_ever(serving):
    async def ask(client, server, clock):
        with pytest.raises(FetchError, match="redirects more than 5 times"):
            await client.ask(server.url("/loop"), body)
        with pytest.raises(FetchError, match="redirects to 'ftp://x/'"):
            await client.ask(server.url("/odd"), body)
        unfollowed = await client.ask(server.url("/a"), lambda capture: capture.status, follow=False)
        return await client.ask(server.url("/a"), body), unfollowed

    answers = {
        "/a": [answer(b"", "301 Moved", "Location: b")],
        "/b": [answer(b"here")],
        "/loop": [answer(b"", "302 Found", "Location: /loop")],
        "/odd": [answer(b"", "302 Found", "Location: ftp://x/")],
    }
    assert asked(serving, answers, ask) == (b"here", 301)


def test_headers_are_sent_and_the_url_fits_a_request_line(serving):
    async def ask(client, server, clock):
        await client.ask(server.url("/é b%20c"), body, headers=(("Accept-Datetime", "Sun, 06 Nov 1994 08:49:37 GMT"),))
        return server.requests[0]

    request = asked(serving, {}, ask)
    assert request.startswith(b"GET /%C3%A9%20b%20c HTTP/1.1\r\n")
    assert b"\r\nAccept-Datetime: Sun, 06 Nov 1994 08:49:37 GMT\r\n" in request
    assert AGENT.encode() in request
