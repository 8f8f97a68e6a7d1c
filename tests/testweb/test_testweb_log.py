"""The truth told afterwards: the log of requests and the times of change."""

import gzip
import re
import threading
from concurrent.futures import ThreadPoolExecutor

import numpy as np

from recrawl.time import DAY, HOUR, AcceleratedClock, VirtualClock
from recrawl_testweb import FaultProfile, VirtualWebServer, serve


def test_every_request_is_logged_as_it_came(run, small):
    running = run(small)
    home = running.living.seeds()[0]
    first = running.client.get(home, User_Agent="tester/1.0")
    running.clock.advance_to(small.start + 1.0)
    running.client.get(home, If_None_Match=first.headers["etag"])
    running.client.get(f"{home}robots.txt?now=1")
    running.client.get(f"{home}missing", method="HEAD")
    running.get(2)
    log = running.living.requests()
    assert log.sequence.tolist() == [0, 1, 2, 3, 4]
    assert (log.time - small.start).tolist() == [0.0, 1.0, 1.0, 1.0, 1.0]
    assert log.page.tolist() == [0, 0, -1, -1, 2]
    assert log.path.tolist() == ["/", "/", "/robots.txt?now=1", "/missing", small.path[2]]
    assert log.method.tolist() == ["GET", "GET", "GET", "HEAD", "GET"]
    assert log.status.tolist() == [200, 304, 200, 404, 200]
    assert log.conditional.tolist() == [False, True, False, False, False]
    assert log.bytes[:2].tolist() == [len(first.body), 0]
    assert log.agent[0] == "tester/1.0"
    assert set(log.connection.tolist()) == {0}
    assert set(log.host.tolist()) == {"news.living.test"}
    assert log.take(log.page >= 0).page.tolist() == [0, 0, 2]


def test_an_untouched_web_has_an_empty_log(run, small):
    log = run(small).living.requests()
    assert len(log) == 0
    assert log.host.tolist() == []


def test_many_clients_at_once_lose_nothing(run, small, client_of):
    running = run(small, FaultProfile(chunked=0.3, gzip=0.3))
    clients, rounds = 8, 40

    def work(number):
        client = client_of(running.living)
        try:
            answers = [client.get(running.urls[(number * 7 + step) % len(small)]) for step in range(rounds)]
        finally:
            client.close()
        return answers

    with ThreadPoolExecutor(clients) as pool:
        answers = [answer for batch in pool.map(work, range(clients)) for answer in batch]
    log = running.living.requests()
    assert len(log) == clients * rounds
    assert not any(answer.error for answer in answers)
    assert log.bytes.sum() == sum(len(answer.body) for answer in answers)
    expected = np.bincount([(n * 7 + step) % len(small) for n in range(clients) for step in range(rounds)])
    assert np.array_equal(np.bincount(log.page), expected)
    assert np.all(np.diff(log.time) >= 0)
    hosts = [{small.host[(n * 7 + step) % len(small)] for step in range(rounds)} for n in range(clients)]
    assert len(np.unique(log.connection)) == sum(len(visited) for visited in hosts)


def test_the_same_requests_at_the_same_times_get_the_same_bytes(run, usual):
    def crawl(seed):
        running = run(usual, FaultProfile.wild(), seed=seed)
        answers = []
        for step in range(3):
            running.clock.advance_to(usual.start + step * 2 * DAY)
            answers += [running.get(page, Accept_Encoding="gzip") for page in range(0, len(usual), 3)]
        return [(answer.status, answer.error, answer.headers.get("etag"), without_port(answer)) for answer in answers]

    def without_port(answer):
        body = (
            gzip.decompress(answer.body) if "content-encoding" in answer.headers and not answer.error else answer.body
        )
        return b"" if answer.error else re.sub(rb"(?:\d\x00?){5}", b"PORT", body)

    first, again, other = (crawl(seed) for seed in (1, 1, 2))
    assert first == again
    assert first != other


def test_truth_is_told_by_url(run, small):
    running = run(small)
    truth = running.living.truth()
    page = 7
    assert truth.page(running.urls[page]) == page
    assert np.array_equal(truth.changes(running.urls[page]), small.changes.row(page))
    assert truth.urls == running.urls
    assert running.urls[page] == f"http://news.living.test:{running.living.port}{small.path[page]}"


def test_a_web_on_an_accelerated_clock_lives_faster(small, client_of):
    base = VirtualClock(0.0)
    with VirtualWebServer(small, AcceleratedClock(base, factor=3600.0, start=small.start)) as living:
        client = client_of(living)
        page = int(np.argmax(small.changes.counts()))
        before = client.get(living.urls()[page])
        hours = np.ceil((small.changes.row(page)[0] - small.start) / HOUR)
        base.advance_to(float(hours))
        after = client.get(living.urls()[page])
        client.close()
        assert before.body != after.body
        assert living.requests().time.tolist() == [small.start, small.start + hours * HOUR]


def test_serve_runs_until_it_is_stopped(small, client_of):
    seen, stop = [], threading.Event()

    def announce(living):
        client = client_of(living)
        seen.append(client.get(living.seeds()[0]).status)
        client.close()
        stop.set()

    living = serve(small, VirtualClock(small.start), announce=announce, stop=stop)
    assert seen == [200]
    assert len(living.requests()) == 1
