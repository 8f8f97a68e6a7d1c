"""Foreign bytes are read within a budget of time and memory; whatever ends a worker costs one task."""

import asyncio
import io
import json
import operator
import os
import signal
import subprocess
import sys
import threading
import time
from contextlib import suppress
from pathlib import Path
from types import SimpleNamespace

import pytest

from recrawl.app.visit_explanation import compared
from recrawl.crawl.control.json_log import JsonLinesLog
from recrawl.crawl.site_capture.site_capture_driver import links_of
from recrawl.crawl.visit.change_classifier import ChangeClassifier, ClassifierRules
from recrawl.crawl.visit.site_claims import read_announced
from recrawl.crawl.visit.visit_machine import VisitDone, VisitTarget
from recrawl.detect import ChangeCriteria, ChangeResult, classify_change, known_after
from recrawl.detect.noise.learned_noise import HostNoise
from recrawl.detect.version import MOST_DATA, MOST_HTML, CostlyError, Effort
from recrawl.errors import InputError
from recrawl.formats.sitemap_feed import Sitemap, parse_sitemap
from recrawl.model import Capture, Outcome, Verdict, Visit
from recrawl.parse import parse_pool
from recrawl.parse.parse_pool import (
    MIB,
    NoWorkerError,
    OverBudgetError,
    ParseLimits,
    ParsePool,
    classify_in_pool,
    new_parse_pool,
)
from recrawl.store.open import open_store
from recrawl.time import VirtualClock

LIMITS = ParseLimits(cpu=1.0, memory=256 * MIB)


def answer(mime, body, at=0.0, head=""):
    said = f"HTTP/1.1 200 OK\r\nContent-Type: {mime}\r\n{head}\r\n"
    return Capture("http://x.example/", at, 200, said.encode(), body)


@pytest.fixture(scope="module")
def pool():
    with new_parse_pool(LIMITS, ChangeCriteria()) as opened:
        yield opened


@pytest.mark.parametrize(
    ("function", "arguments", "why"),
    [
        (os.abort, (), "SIGABRT"),
        (os._exit, (3,), "exit code 3"),
        (signal.raise_signal, (signal.SIGKILL,), "SIGKILL"),
        (signal.raise_signal, (signal.SIGSEGV,), "SIGSEGV"),
        (operator.mul, (b"a", 1 << 30), "256 MiB"),
        (pow, (3, 10**8), "1 s of CPU time"),
    ],
)
def test_whatever_ends_a_worker_costs_one_task(pool, function, arguments, why, monkeypatch):
    monkeypatch.setattr(parse_pool, "_PATIENCE", 300.0)  # on a busy machine a second of CPU time takes long
    with pytest.raises(OverBudgetError, match=why):
        pool.call(function, *arguments)
    assert pool.call(operator.add, 1, 2) == 3


def test_a_task_that_sleeps_is_ended_by_the_clock():
    with ParsePool(ParseLimits(cpu=0.05)) as pool:
        pool.call(operator.add, 1, 2)
        with pytest.raises(OverBudgetError, match="within"):
            pool.call(time.sleep, 3600)


def test_errors_of_the_function_are_raised_here(pool):
    with pytest.raises(InputError, match="not a sitemap") as raised:
        pool.call(parse_sitemap, b"nothing", "http://x/")
    assert raised.value.source == "http://x/"
    with pytest.raises(RuntimeError, match="TextIOWrapper"):
        pool.call(open, os.devnull)
    assert pool.call(operator.add, 1, 2) == 3


def test_a_worker_is_used_again_and_one_that_keeps_memory_is_not(pool):
    first = pool.call(os.getpid)
    assert pool.call(os.getpid) == first
    assert len(pool.call(operator.mul, b"a", 1 << 20)) == 1 << 20
    pool.call(exec, "import builtins; builtins.kept = bytearray(200 << 20)")
    assert pool.call(os.getpid) != first


def test_who_waits_too_long_for_a_worker_is_told():
    with ParsePool(ParseLimits(workers=1, waiting=0.05)) as pool:

        async def both():
            long = asyncio.create_task(pool.run(time.sleep, 5))
            while not pool._busy:  # noqa: ASYNC110 - a thread fills it
                await asyncio.sleep(0.01)
            with pytest.raises(OverBudgetError, match="no worker was free"):
                await pool.run(operator.add, 1, 2)
            long.cancel()

        asyncio.run(both())


def test_the_loop_goes_on_meanwhile(pool):
    """Without the pool nothing else would have run before the task was over."""
    turns = 0

    async def work():
        nonlocal turns
        task = asyncio.create_task(pool.run(time.sleep, 0.3))
        while not task.done():
            await asyncio.sleep(0.001)
            turns += 1

    asyncio.run(work())
    assert turns > 10


def test_a_closed_pool_ends_what_runs_and_takes_no_more():
    pool = ParsePool(LIMITS)

    async def work():
        task = asyncio.create_task(pool.run(time.sleep, 3600))
        while not pool._busy:  # noqa: ASYNC110 - a thread fills it
            await asyncio.sleep(0.01)
        await asyncio.to_thread(pool.close)
        with pytest.raises((OverBudgetError, asyncio.CancelledError)):
            await task

    asyncio.run(work())
    with pytest.raises(OverBudgetError, match="closed"):
        pool.call(operator.add, 1, 2)


def test_a_fork_server_that_was_killed_is_started_again():
    with ParsePool(LIMITS) as pool:
        pool.call(operator.add, 1, 2)
        pool._server._process.kill()
        pool._server._process.wait()
        with suppress(OverBudgetError):
            pool.call(os.abort)
        assert pool.call(operator.add, 1, 2) == 3


def alive(pid):
    with suppress(OSError):
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    return False


@pytest.mark.skipif(not Path("/proc/self/stat").exists(), reason="needs Linux")
def test_nothing_outlives_a_crawl_that_was_killed():
    code = (
        "import os, time; from recrawl.parse.parse_pool import ParsePool; pool = ParsePool();"
        "print(pool.call(os.getpid), pool.call(os.getppid), flush=True); time.sleep(3600)"
    )
    with subprocess.Popen([sys.executable, "-c", code], stdout=subprocess.PIPE) as parent:
        pids = [int(pid) for pid in parent.stdout.readline().split()]
        assert all(map(alive, pids))
        parent.kill()
    for _ in range(2_400):
        if not any(map(alive, pids)):
            break
        time.sleep(0.05)
    assert not any(map(alive, pids))


# -- answers ----------------------------------------------------------------------------------

CHEAP = [
    ("text/html", b"<p>hello</p>" * 1_000),
    ("text/plain", b"hello " * 1_000),
    ("application/json", b"[1, 2]"),
    ("image/png", b"\x89PNG" * 1_000_000),
    ("text/html", b"x" * (17 << 20)),
]
COSTLY = [
    ("text/html", b"x" * (MOST_HTML + 1)),
    ("text/plain", b"1:" * MOST_DATA),
    ("application/json", b" " * MOST_DATA + b"[1]"),
    ("text/turtle", b"<a> <b> 1 ."),
    ("application/rdf+xml", b"<x/>"),
    ("application/sparql-results+json", b'{"head":{"vars":[]},"results":{"bindings":[]}}'),
]


@pytest.mark.parametrize(("mime", "body"), CHEAP)
def test_most_answers_are_read_at_once(mime, body):
    capture = answer(mime, body)
    assert classify_change(capture, None, ChangeCriteria(), Effort.CHEAP) == classify_change(capture, None)


@pytest.mark.parametrize(("mime", "body"), COSTLY)
def test_others_are_read_apart_with_the_same_result(pool, mime, body):
    capture = answer(mime, body)
    with pytest.raises(CostlyError):
        classify_change(capture, None, ChangeCriteria(), Effort.CHEAP)
    assert classify_in_pool(pool, capture, None, ChangeCriteria()) == classify_change(capture, None)


def test_a_packed_body_is_cheap_only_if_it_unfolds_to_little():
    import gzip

    for size, cheap in ((1_000, True), (MOST_HTML + 1, False)):
        capture = answer("text/html", gzip.compress(b"x" * size), head="Content-Encoding: gzip\r\n")
        try:
            classify_change(capture, None, ChangeCriteria(), Effort.CHEAP)
            assert cheap
        except CostlyError:
            assert not cheap


def judged_live(tmp_path, pool, body, mime="text/turtle"):
    """What the judge of a crawl makes of an answer, and the events it tells."""
    events = io.StringIO()
    with open_store(tmp_path / "store.db", create=True, durable=False) as store:
        [page] = store.discover(["http://x.example/"], 0.0).tolist()
        classifier = ChangeClassifier(store, ClassifierRules(), JsonLinesLog(events, VirtualClock(0.0)), pool)
        target = VisitTarget(page, 1, "http://x.example/", 0.0)
        visited = asyncio.run(classifier.classify(target, answer(mime, body), conditional=False))
    return visited, [json.loads(line) for line in events.getvalue().splitlines()]


class Failing:
    """A pool whose every task ends badly."""

    def __init__(self, error):
        self.error = error

    async def run(self, *_):
        raise self.error

    def call(self, *_):
        raise self.error


@pytest.mark.parametrize(
    ("error", "level"), [(OverBudgetError("it needs too much"), "warn"), (ZeroDivisionError("a bug"), "error")]
)
def test_an_answer_that_cannot_be_read_is_judged_by_its_bytes_and_told(tmp_path, error, level):
    body = b"<a> <b> 1 ."
    visited, [event] = judged_live(tmp_path, Failing(error), body)
    assert visited.judgement.outcome == Outcome.FETCHED
    assert visited.judgement.validators.digest == classify_change(answer("text/turtle", body), None).validators.digest
    assert not visited.judgement.validators.text_digest
    assert visited.capture.raw_body == body
    assert (event["message"], event["logLevel"]) == ("response not parsed", level)
    assert event["details"]["url"] == "http://x.example/"


def test_by_its_bytes_a_page_can_still_change(pool):
    before = answer("text/turtle", b"<a> <b> 1 .")
    known = known_after(classify_change(before, None, ChangeCriteria(), Effort.BYTES), None)
    same = classify_in_pool(
        Failing(OverBudgetError()), answer("text/turtle", b"<a> <b> 1 .", 9.0), known, ChangeCriteria()
    )
    other = classify_in_pool(
        Failing(OverBudgetError()), answer("text/turtle", b"<a> <b> 2 .", 9.0), known, ChangeCriteria()
    )
    assert (same.verdict, other.verdict) == (Verdict.UNCHANGED, Verdict.CHANGED)


def test_if_no_worker_was_free_other_bytes_say_nothing(pool):
    """A machine that is busy must not turn noise into a change; the next visit compares with the same version."""
    known = known_after(classify_change(answer("text/turtle", b"<a> <b> 1 ."), None), None)
    same = classify_in_pool(
        Failing(NoWorkerError()), answer("text/turtle", b"<a> <b> 1 .", 9.0), known, ChangeCriteria()
    )
    other = classify_in_pool(
        Failing(NoWorkerError()), answer("text/turtle", b"<a>  <b> 1 .", 9.0), known, ChangeCriteria()
    )
    assert (same.verdict, other.verdict) == (Verdict.UNCHANGED, Verdict.UNKNOWN)
    assert known_after(other, known).validators == known.validators
    again = classify_in_pool(
        pool, answer("text/turtle", b"<a>  <b> 1 .", 18.0), known_after(other, known), ChangeCriteria()
    )
    assert again.verdict == Verdict.UNCHANGED


def test_a_page_that_takes_too_long_is_judged_by_its_bytes(tmp_path):
    """Six million bytes of ``1:`` kept the old event loop busy for eight CPU seconds."""
    with ParsePool(ParseLimits(cpu=0.2, memory=64 * MIB)) as pool:
        visited, [event] = judged_live(tmp_path, pool, b"1:" * 3_000_000, "text/plain")
    assert visited.judgement.validators.digest
    assert not visited.judgement.validators.text_digest
    assert event["message"] == "response not parsed"


def test_sitemaps_are_read_within_their_budget_too(pool):
    page = b"<urlset><url><loc>http://x.example/1</loc></url><!--" + b" " * 100_000 + b"--></urlset>"
    found = asyncio.run(read_announced(answer("text/xml", page), pool))
    assert isinstance(found, Sitemap)
    assert [entry.url for entry in found.entries] == ["http://x.example/1"]
    assert asyncio.run(read_announced(answer("text/xml", page), Failing(OverBudgetError("too long")))) == "too long"
    assert "not a sitemap" in asyncio.run(read_announced(answer("text/xml", b"?" * 100_000), pool))


def test_the_links_of_a_page_that_came_again_are_read_within_the_budget_too(pool):
    body = b'<a href="/b">b</a>' + b" " * MOST_HTML
    capture = answer("text/html", body)
    visited = VisitDone(
        VisitTarget(1, 1, capture.url, 0.0), Visit(1, 0.0, Outcome.FETCHED), ChangeResult(Outcome.FETCHED), capture
    )
    assert links_of(visited, pool) == links_of(visited) == ["http://x.example/b"]
    assert links_of(visited, Failing(OverBudgetError())) == []


def test_versions_are_compared_within_the_budget_too(pool):
    story = SimpleNamespace(
        before=answer("text/turtle", b"<a> <b> 1 ."),
        after=answer("text/turtle", b"<a> <b> 2 .", 9.0),
        repeats=False,
        noise=HostNoise(),
        page=1,
    )
    assert compared(story, ChangeCriteria(), pool).diff() == compared(story, ChangeCriteria()).diff()
    with pytest.raises(OverBudgetError):
        compared(story, ChangeCriteria(), Failing(OverBudgetError()))


def test_a_pool_is_closed_while_its_fork_server_still_starts():
    pool = ParsePool(LIMITS, time.sleep, 100_000)
    failed = []

    def ask():
        try:
            pool.call(operator.add, 1, 2)
        except NoWorkerError as error:
            failed.append(error)

    asking = threading.Thread(target=ask, daemon=True)
    asking.start()
    while pool._server is None:
        time.sleep(0.01)
    closing = threading.Thread(target=pool.close, daemon=True)
    closing.start()
    closing.join(120)
    asking.join(120)
    assert not closing.is_alive()
    assert failed


class Pickled:
    """Counts how often it is made ready to be sent."""

    times = 0

    def __reduce__(self):
        Pickled.times += 1
        return (str, ("sent",))


def test_a_task_that_waits_for_a_worker_is_not_copied_yet():
    """As many copies of large answers as wait would fill the memory."""
    with ParsePool(ParseLimits(workers=1)) as one:
        asked, answers = threading.Event(), []

        class Slow:
            def __reduce__(self):
                asked.set()
                while len(waiting) < 3 or not all(thread.is_alive() for thread in waiting):
                    time.sleep(0.01)
                answers.append(Pickled.times)
                return (str, ("slow",))

        waiting: list[threading.Thread] = []
        first = threading.Thread(target=one.call, args=(str.upper, Slow()))
        first.start()
        assert asked.wait(120)
        for _ in range(3):
            waiting.append(threading.Thread(target=one.call, args=(str.upper, Pickled())))
            waiting[-1].start()
        for thread in (first, *waiting):
            thread.join(120)
    assert answers == [0]
    assert Pickled.times == 3
