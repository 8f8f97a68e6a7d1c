"""What is due: counted and listed."""

import math

import numpy as np
import pytest

from recrawl.model import Visits
from recrawl.store.store_values import CaptureRecord, LinksSeen


@pytest.fixture
def three_hosts(store):
    """Pages 1-3 of host 1, 4-5 of host 2, 6 of host 3; due at 30, 10, 20, 15, 15 and 99."""
    urls = [f"http://{name}.example/{n}" for name, count in (("a", 3), ("b", 2), ("c", 1)) for n in range(count)]
    store.reschedule(store.discover(urls, 0.0), np.array([30.0, 10.0, 20.0, 15.0, 15.0, 99.0]))
    return store


def test_nothing_is_due(three_hosts):
    backlog = three_hosts.backlog(9.0)
    assert (backlog.due, backlog.paused, backlog.earliest) == (0, 0, math.inf)
    assert len(three_hosts.due_pages(9.0, 10)) == 0


def test_pages_are_due_from_their_time_on_leased_or_not(three_hosts):
    three_hosts.lease("w", 20.0, 1, ttl=60.0)
    backlog = three_hosts.backlog(20.0)
    assert (backlog.due, backlog.paused, backlog.earliest) == (4, 0, 10.0)
    due = three_hosts.due_pages(20.0, 3)
    assert (due.page.tolist(), due.host.tolist(), due.due.tolist()) == ([2, 4, 5], [1, 2, 2], [10.0, 15.0, 15.0])
    assert three_hosts.due_pages(20.0, 3, host=1).page.tolist() == [2, 3]


def test_pages_of_paused_hosts_are_told_apart(three_hosts):
    three_hosts.pause(np.array([1]))
    backlog = three_hosts.backlog(40.0)
    assert (backlog.due, backlog.paused) == (5, 3)
    three_hosts.resume(np.array([1]))
    assert three_hosts.backlog(40.0).paused == 0


def test_a_page_that_was_rescheduled_meanwhile_stays_as_it_is(three_hosts):
    page = np.array([1, 2, 3])
    before = three_hosts.due(page)
    three_hosts.reschedule(np.array([2]), np.array([70.0]))
    three_hosts.reschedule(page, np.array([50.0, 51.0, math.inf]), before=before)
    assert three_hosts.due(page).tolist() == [50.0, 70.0, math.inf]
    assert three_hosts.hosts(np.array([1])).next_due.tolist() == [50.0]


def test_due_times_come_in_the_order_asked_for(three_hosts):
    assert three_hosts.due(np.array([6, 1, 6, 2])).tolist() == [99.0, 30.0, 99.0, 10.0]
    assert three_hosts.due(np.array([], np.int64)).tolist() == []
    with pytest.raises(KeyError):
        three_hosts.due(np.array([1, 77]))


def test_a_host_that_rests_between_two_requests_is_soon_free_and_one_in_trouble_is_not(three_hosts):
    hosts = np.array([1, 2])
    three_hosts.set_host(hosts, ready_at=np.array([42.0, 640.0]), delay=np.array([0.0, 300.0]))
    assert three_hosts.backlog(40.0).resting == 5
    assert three_hosts.soon_free(40.0, 30.0) == 42.0
    assert three_hosts.soon_free(40.0, 1.0) == math.inf
    assert three_hosts.soon_free(341.0, 1.0) == 42.0, "the second asks for a pause of its own"
    three_hosts.pause(hosts[:1])
    assert three_hosts.soon_free(40.0, 30.0) == math.inf
    three_hosts.resume(hosts[:1])
    three_hosts.lease("other", 43.0, 9, per_host=9, ttl=60.0)
    assert three_hosts.soon_free(44.0, 30.0) == math.inf, "somebody else visits it"


def counted(store):
    found = store.counts(0.0)
    return found.pages, found.hosts, found.links, found.captures


def counted_one_by_one(store):
    tables = ("page", "host", "link", "capture")

    def work(session):
        return tuple(session.rows(f"SELECT count(*) FROM {table}")[0][0] for table in tables)

    return store._database.read(work)


def test_counts_of_rows_are_those_of_the_tables(store):
    """Triggers keep them: of rows that are new, of rows that were there, and of rows that go."""
    pages = store.discover([f"http://h{n % 3}.example/{n}" for n in range(9)], 1.0)
    store.discover(["http://h0.example/0", "http://h4.example/"], 1.0)
    captures = [CaptureRecord(page, 5.0, 200, "text/html", b"", 10, "a.warc", 7, 5) for page in pages[:4].tolist()]
    for time in (5.0, 6.0):
        links = LinksSeen(np.full(5, pages[0]), pages[1:6], np.full(5, time))
        store.record(Visits.of(pages[:1], time), captures=captures, links=links)
    assert counted(store) == counted_one_by_one(store) == (10, 4, 5, 4)
    store._database.write(lambda session: session.run("DELETE FROM link WHERE target > $1", int(pages[3])))
    assert counted(store) == counted_one_by_one(store) == (10, 4, 3, 4)


def test_paused_hosts(store):
    store.discover([f"http://h{n}.example/" for n in range(4)], 1.0)
    assert store.paused_hosts().name == []
    store.pause(store.hosts().id[1:3])
    assert store.paused_hosts().name == ["h1.example", "h2.example"]
