"""RobotsCache against real answers (RFC 9309, conventions R1-R4)."""

from __future__ import annotations

import asyncio
import gzip

import pytest

from recrawl.crawl.visit.visit_machine import RobotsFetched, VisitTarget
from recrawl.crawl.visit.visitor import Visitor
from recrawl.detect import decoded
from recrawl.errors import ConfigError, StoreError
from recrawl.fetch import FetchRequest, HttpFetcher, RobotsCache, TransferLimits
from recrawl.model import Outcome
from recrawl.store.open import open_store
from recrawl.time import DAY, HOUR, MINUTE, VirtualClock

AGENT = "RecrawlTest/1.0 (+https://example.org/bot)"


def answer(body: bytes | str = b"", status: str = "200 OK", *headers: str) -> bytes:
    body = body.encode() if isinstance(body, str) else body
    lines = [f"HTTP/1.1 {status}", *headers, f"Content-Length: {len(body)}", "", ""]
    return "\r\n".join(lines).encode() + body


def with_cache(serving, answers, ask, **options):
    """Run ``ask(cache, server, clock)`` and return what it returns."""

    async def run():
        clock = VirtualClock(1_000.0)
        async with serving(answers) as server, HttpFetcher(clock, AGENT, limits=TransferLimits(total=60.0)) as fetcher:
            cache = RobotsCache(fetcher, clock, AGENT, body_of=decoded, **options)
            return await ask(cache, server, clock)

    return asyncio.run(run())


def rules_of(serving, answers, **options):
    async def ask(cache, server, clock):
        return await cache.rules(server.url("/some/page")), server

    return with_cache(serving, answers, ask, **options)


def test_rules_of_our_group_hold(serving):
    text = """
        User-agent: *
        Disallow: /
        User-agent: recrawltest
        Disallow: /private/*.html$
        Allow: /private/open.html
        Crawl-delay: 2.5
        Sitemap: /map.xml
        User-agent: RECRAWLTEST
        Disallow: /also
    """
    rules, server = rules_of(serving, {"/robots.txt": answer(text)})
    allowed = {
        path: rules.allowed(server.url(path))
        for path in ("/", "/private/a.html", "/private/a.html?x", "/private/open.html", "/also/this")
    }
    assert allowed == {
        "/": True,
        "/private/a.html": False,
        "/private/a.html?x": True,
        "/private/open.html": True,
        "/also/this": False,
    }
    assert (rules.crawl_delay, rules.asked_delay, rules.sitemaps) == (2.5, 2.5, (server.url("/map.xml"),))
    assert "200" in rules.reason


def test_robots_txt_itself_is_always_allowed(serving):
    rules, server = rules_of(serving, {"/robots.txt": answer("User-agent: *\nDisallow: /")})
    assert rules.allowed(server.url("/robots.txt"))
    assert not rules.allowed(server.url("/"))


@pytest.mark.parametrize("status", ["400 No", "401 No", "403 No", "404 No", "410 No", "451 No"])
def test_4xx_means_no_rules(serving, status):
    rules, server = rules_of(serving, {"/robots.txt": answer("User-agent: *\nDisallow: /", status)})
    assert rules.allowed(server.url("/"))
    assert rules.expires == 1_000.0 + DAY
    assert status[:3] in rules.reason


@pytest.mark.parametrize("status", ["304 Not asked for", "429 Slow down", "500 Oops", "503 Busy", "600 Huh"])
def test_server_trouble_means_nothing_is_allowed_for_now(serving, status):
    rules, server = rules_of(serving, {"/robots.txt": answer(b"User-agent: *\nAllow: /", status)})
    assert not rules.allowed(server.url("/"))
    assert rules.expires == 1_000.0 + HOUR
    assert status[:3] in rules.reason


async def _cut(writer):
    writer.write(b"HTTP/1.1 200 OK\r\nContent-Length: 100\r\n\r\nUser-agent: *\nAllow: /\n")
    await writer.drain()


async def _nothing(writer):
    writer.close()


@pytest.mark.parametrize(
    "broken", [_cut, _nothing, answer(b"no gzip", "200 OK", "Content-Encoding: gzip"), b"garbage\r\n\r\n"]
)
def test_a_broken_answer_means_nothing_is_allowed_for_now(serving, broken):
    rules, server = rules_of(serving, {"/robots.txt": broken})
    assert not rules.allowed(server.url("/"))
    assert rules.expires == 1_000.0 + HOUR
    assert "nothing is allowed" in rules.reason


def test_an_encoded_answer_is_read(serving):
    body = gzip.compress(b"\xef\xbb\xbfUser-agent: *\nDisallow: /x")
    rules, server = rules_of(serving, {"/robots.txt": answer(body, "200 OK", "Content-Encoding: gzip")})
    assert [rules.allowed(server.url(path)) for path in ("/x", "/y")] == [False, True]


@pytest.mark.parametrize(("hops", "allowed"), [(1, False), (5, False), (6, True)])
def test_five_redirects_are_followed(serving, hops, allowed):
    answers = {f"/{n}": answer(b"", "302 Found", f"Location: /{n + 1}") for n in range(hops)}
    answers["/robots.txt"] = answers.pop("/0")
    answers[f"/{hops}"] = answer("User-agent: *\nDisallow: /")
    rules, server = rules_of(serving, answers)
    assert rules.allowed(server.url("/")) == allowed
    assert len(server.requests) == min(hops, 5) + 1


@pytest.mark.parametrize(
    ("location", "requests"), [("Location: /robots.txt", 6), ("Location: mailto:a@b.example", 1), ("X: no location", 1)]
)
def test_redirects_to_nowhere_end(serving, location, requests):
    rules, server = rules_of(serving, {"/robots.txt": answer(b"", "301 Moved", location)})
    assert rules.allowed(server.url("/"))
    assert len(server.requests) == requests


def test_only_the_first_500_kib_count(serving):
    filler = "# " + "x" * 97 + "\n"
    text = "User-agent: *\nDisallow: /early\n" + filler * 5_200 + "Disallow: /late\n"
    rules, server = rules_of(serving, {"/robots.txt": answer(text)})
    assert [rules.allowed(server.url(path)) for path in ("/early", "/late")] == [False, True]


def test_a_rule_cut_in_half_is_no_rule(serving):
    start = "User-agent: *\n# "
    text = start + "x" * (500 * 1024 - len(start) - len("\nDisallow: /")) + "\nDisallow: /far/away\n"
    rules, server = rules_of(serving, {"/robots.txt": answer(text)})
    assert rules.allowed(server.url("/near"))


@pytest.mark.parametrize(
    ("written", "asked", "delay"),
    [
        ("1000", 1000.0, 300.0),
        ("0", 0.0, 0.0),
        ("soon", None, None),
        ("-5", None, None),
        ("nan", None, None),
        ("inf", None, None),
    ],
)
def test_crawl_delay_has_a_cap_and_must_make_sense(serving, written, asked, delay):
    rules, _ = rules_of(serving, {"/robots.txt": answer(f"User-agent: *\nCrawl-delay: {written}\nDisallow: /x")})
    assert (rules.asked_delay, rules.crawl_delay) == (asked, delay)


def test_a_copy_serves_for_a_day_and_every_answer_is_handed_on(serving):
    archived = []

    async def ask(cache, server, clock):
        answers = {"/robots.txt": answer("User-agent: *\nDisallow: /a")}
        server.answers.update(answers)
        seen = []
        for when in (0.0, DAY - 1, DAY, DAY + 1):
            clock.advance_to(1_000.0 + when)
            await cache.rules(server.url())
            seen.append(len(server.requests))
        return seen

    assert with_cache(serving, {}, ask, on_capture=archived.append, max_age=9 * DAY) == [1, 1, 2, 2]
    assert [(capture.time, capture.status) for capture in archived] == [(1_000.0, 200), (1_000.0 + DAY, 200)]


def test_trouble_is_asked_about_again_and_ends(serving):
    async def ask(cache, server, clock):
        server.answers["/robots.txt"] = answer(b"", "503 Busy")
        before = await cache.rules(server.url())
        server.answers["/robots.txt"] = answer(b"", "404 No")
        still = await cache.rules(server.url())
        clock.advance_to(1_000.0 + HOUR)
        after = await cache.rules(server.url())
        return [rules.allowed(server.url("/")) for rules in (before, still, after)]

    assert with_cache(serving, {}, ask) == [False, False, True]


def test_known_never_asks(serving):
    async def ask(cache, server, clock):
        before = cache.known(server.url("/page"))
        rules = await cache.rules(server.url("/page"))
        fresh = cache.known(server.url("/other"))
        clock.advance_to(rules.expires)
        return before, fresh is rules, cache.known(server.url("/page")), len(server.requests)

    assert with_cache(serving, {}, ask) == (None, True, None, 1)


def test_tasks_share_one_request_and_hosts_do_not_share_rules(serving):
    async def ask(cache, server, clock):
        await asyncio.gather(*(cache.rules(server.url(f"/{n}")) for n in range(20)))
        once = len(server.requests)
        await cache.rules(f"http://localhost:{server.port}/")
        return once, len(server.requests)

    assert with_cache(serving, {"/robots.txt": answer("User-agent: *\nDisallow: /")}, ask) == (1, 2)


def test_of_many_hosts_the_longest_unused_is_forgotten(serving):
    async def ask(cache, server, clock):
        a, b, c = (f"http://{name}.localhost:{server.port}" for name in "abc")
        await cache.rules(a)
        await cache.rules(b)
        assert cache.known(a)
        await cache.rules(c)
        return [cache.known(host) is not None for host in (a, b, c)]

    assert with_cache(serving, {}, ask, most=2) == [True, False, True]


def test_a_host_that_is_being_asked_is_not_forgotten(serving):
    async def ask(cache, server, clock):
        asked, told = asyncio.Event(), asyncio.Event()

        async def slow(writer):
            asked.set()
            await told.wait()
            writer.write(answer(status="404 No"))
            await writer.drain()

        server.answers["/robots.txt"] = slow
        a, b = (f"http://{name}.localhost:{server.port}" for name in "ab")
        both = [asyncio.create_task(cache.rules(a)) for _ in range(2)]
        await asked.wait()
        server.answers["/robots.txt"] = answer(status="404 No")
        await cache.rules(b)
        also = asyncio.create_task(cache.rules(a))
        told.set()
        await asyncio.gather(*both, also)
        return len(server.requests)

    assert with_cache(serving, {}, ask, most=1) == 2


# -- shared through the store ------------------------------------------------------------------------


def with_two(serving, tmp_path, ask, text="User-agent: *\nDisallow: /a"):
    """Run ``ask(first, second, server, clock, store)`` with two workers' caches over one store."""

    async def run():
        clock = VirtualClock(1_700_000_000.0)
        with open_store(tmp_path / "store.db", create=True) as store:
            answers = {"/robots.txt": answer(text)}
            async with (
                serving(answers) as server,
                HttpFetcher(clock, AGENT, limits=TransferLimits(total=60.0)) as fetcher,
            ):
                first, second = (RobotsCache(fetcher, clock, AGENT, body_of=decoded, copies=store) for _ in range(2))
                return await ask(first, second, server, clock, store)

    return asyncio.run(run())


def test_what_one_worker_read_others_and_the_next_run_know(serving, tmp_path):
    async def ask(first, second, server, clock, store):
        rules = await first.rules(server.url())
        first.keep_copies()
        assert second.known(server.url()) is None
        assert second.recalled(server.url("/x")) == rules == second.known(server.url())
        clock.advance_to(rules.expires)
        assert second.known(server.url()) is second.recalled(server.url()) is None
        await second.rules(server.url())
        second.keep_copies()
        assert await first.rules(server.url()) == second.known(server.url())
        return len(server.requests)

    assert with_two(serving, tmp_path, ask) == 2


def test_a_change_reaches_who_knew_the_rules_before(serving, tmp_path):
    async def ask(first, second, server, clock, store):
        for cache in (first, second):
            await cache.rules(server.url())
            cache.keep_copies()
        assert second.known(server.url("/b")).allowed(server.url("/b"))
        clock.advance_to(clock.now() + HOUR)
        server.answers["/robots.txt"] = answer("User-agent: *\nDisallow: /")
        store.expire_robots_copies([server.url().rstrip("/")], clock.now())
        assert first.known(server.url()) is first.recalled(server.url()) is None
        assert not (await first.rules(server.url())).allowed(server.url("/b"))
        first.keep_copies()
        clock.advance_to(clock.now() + 2)
        assert second.known(server.url()) is None
        assert not second.recalled(server.url()).allowed(server.url("/b"))
        assert first.known(server.url()) is not None
        return len(server.requests)

    assert with_two(serving, tmp_path, ask) == 2


def test_a_refused_page_makes_the_rules_doubtful_but_not_at_once_again(serving, tmp_path):
    async def ask(first, second, server, clock, store):
        await first.rules(server.url())
        first.keep_copies()
        assert not first.doubt(server.url("/page"))
        clock.advance_to(clock.now() + 15 * MINUTE)
        assert first.doubt(server.url("/page"))
        assert not first.doubt(server.url("/page"))
        assert second.recalled(server.url()) is None
        await second.rules(server.url())
        second.keep_copies()
        assert first.recalled(server.url()) is not None
        assert not first.doubt(server.url())
        return len(server.requests)

    assert with_two(serving, tmp_path, ask) == 2


@pytest.mark.parametrize("status", ["401 No", "403 No"])
def test_a_page_that_is_refused_has_the_rules_read_again_before_the_next(serving, tmp_path, status):
    async def ask(first, second, server, clock, store):
        visitor = Visitor(first._fetcher, first, clock)

        async def visit(path):
            return await visitor.go(VisitTarget(1, 1, server.url(path), clock.now()))

        server.answers["/page"] = answer(b"", status)
        assert isinstance(await visit("/page"), RobotsFetched)
        assert (await visit("/page")).capture.status == int(status[:3])
        clock.advance_to(clock.now() + 15 * MINUTE)
        await visit("/page")
        server.answers["/robots.txt"] = answer("User-agent: *\nDisallow: /")
        assert isinstance(await visit("/page"), RobotsFetched)
        refused = await visit("/page")
        return refused.visit.outcome, refused.capture, server.paths()

    asked = ["/robots.txt", "/page", "/page", "/robots.txt"]
    assert with_two(serving, tmp_path, ask) == (Outcome.REFUSED, None, asked)


def test_a_copy_from_the_future_does_not_count(serving, tmp_path):
    """The clock was three days ahead when it was read."""

    async def ask(first, second, server, clock, store):
        clock.advance_to(clock.now() + 3 * DAY)
        await first.rules(server.url())
        first.keep_copies()
        early = VirtualClock(clock.now() - 3 * DAY)
        cache = RobotsCache(first._fetcher, early, AGENT, body_of=decoded, copies=store)
        return cache.recalled(server.url())

    assert with_two(serving, tmp_path, ask) is None


def test_silence_is_not_shared(serving, tmp_path):
    async def ask(first, second, server, clock, store):
        rules = await first.rules("http://127.0.0.1:1/")
        first.keep_copies()
        return rules.available, store.robots_copy("http://127.0.0.1:1")

    assert with_two(serving, tmp_path, ask) == (False, None)


def test_a_store_that_is_away_keeps_nobody_from_the_rules(serving, tmp_path):
    class Away:
        def __getattr__(self, name):
            raise StoreError("It is away.", "Bring it back.")

    async def ask(first, second, server, clock, store):
        rules = await first.rules(server.url())
        clock.advance_to(clock.now() + 16 * MINUTE)
        first._copies = Away()
        with pytest.raises(StoreError):
            first.keep_copies()
        first._check_at = clock.now() + 1
        assert first.known(server.url()) is rules
        assert first.doubt(server.url())
        first._copies = store
        first.keep_copies()
        return store.robots_copy(server.url().rstrip("/")).fetched_at == rules.fetched_at

    assert with_two(serving, tmp_path, ask)


def test_memory_holds_so_many_rules_at_most(serving, tmp_path):
    async def ask(first, second, server, clock, store):
        first._most_rules = 1_500
        hosts = [f"http://{name}.localhost:{server.port}/" for name in "abc"]
        for host in hosts:
            await first.rules(host)
            first.keep_copies()
        known = [first.known(host) is not None for host in hosts]
        assert first.recalled(hosts[0]) is not None
        return known, first._rules_in_memory, len(server.requests)

    text = "User-agent: *\n" + "".join(f"Disallow: /{n}\n" for n in range(1_000))
    assert with_two(serving, tmp_path, ask, text) == ([False, False, True], 1_000, 3)


def test_an_agent_without_contact_is_refused(serving):
    async def ask(cache, server, clock):
        RobotsCache(None, clock, "nobody", body_of=decoded)

    with pytest.raises(ConfigError, match="User-Agent"):
        with_cache(serving, {}, ask)


@pytest.mark.parametrize(
    ("lines", "head", "apart"), [(10, b"", 0), (5_000, b"", 1), (1, b"Content-Encoding: identity\r\n", 1)]
)
def test_rules_that_are_not_short_are_read_beside_the_event_loop(serving, lines, head, apart):
    body = b"User-agent: *\nDisallow: /no\n" + b"# nothing\n" * lines
    answer = b"HTTP/1.1 200 OK\r\n%sContent-Length: %d\r\n\r\n%s" % (head, len(body), body)
    done = []

    async def in_thread(work):
        done.append(work)
        return await asyncio.to_thread(work)

    async def run():
        clock = VirtualClock()
        async with serving({"/robots.txt": answer}) as server, HttpFetcher(clock, AGENT) as fetcher:
            cache = RobotsCache(fetcher, clock, AGENT, body_of=decoded, in_thread=in_thread)
            rules = await cache.rules(server.url("/"))
            return rules.allowed(server.url("/no")), rules.allowed(server.url("/yes"))

    assert asyncio.run(run()) == (False, True)
    assert len(done) == apart


def test_requests_are_plain(serving):
    asked = []

    class Recorder:
        async def fetch(self, request: FetchRequest):
            asked.append(request)
            return await self.fetcher.fetch(request)

    async def run():
        clock = VirtualClock()
        recorder = Recorder()
        async with serving({}) as server, HttpFetcher(clock, AGENT) as recorder.fetcher:
            await RobotsCache(recorder, clock, AGENT, body_of=decoded).rules(server.url("/deep/page?x=1"))
            return server

    server = asyncio.run(run())
    [one] = asked
    assert one == FetchRequest(server.url("/robots.txt"), most=one.most)
    assert one.most >= 500 * 1024
