"""Pages that crawlers of others fetch, in both engines."""

import math

import numpy as np
import pytest

from recrawl.model import Visits
from recrawl.store.client_pages import ClientReport, HandOutLimits, QueueCounts, UrlFilter

NOW = 1_800_000_000.0
A, B = "http://a.example/", "http://b.example/"


def limits(pages=100, per_host=100, hosts=100, lease=30.0, pause=0.0):
    return HandOutLimits(pages, per_host, hosts, lease, pause)


@pytest.fixture
def pages(store):
    """Three pages of one host, two of another, found one second after the other."""
    urls = [A + "1", A + "2", A + "3", B + "1", B + "2"]
    return store.discover(urls, NOW + np.arange(5.0))


def report(store, page, due, *, at=NOW + 100, done=False, metadata=b""):  # noqa: PLR0913 - columns
    page = np.array([page])
    facts = ClientReport(page, store.pages(page).host, np.array([done]), [metadata])
    store.record(Visits.of(page, at), due=np.array([due]), client_report=facts)


def test_pages_are_handed_out_once_until_their_lease_ends(store, pages):
    found = store.hand_out(NOW + 10, limits())
    assert found.page.tolist() == pages.tolist()
    assert found.due.tolist() == (NOW + np.arange(5.0)).tolist()
    assert found.url[0] == A + "1"
    assert len(store.hand_out(NOW + 20, limits()).page) == 0
    assert store.in_flight(NOW + 20).tolist() == sorted(pages.tolist())
    assert store.in_flight(NOW + 41).tolist() == []
    assert len(store.hand_out(NOW + 41, limits()).page) == 5
    assert len(store.lease("worker", NOW + 42, 10, ttl=60).page) == 0  # nor does a worker of ours take them


def test_limits_of_pages_hosts_and_pages_of_a_host(store, pages):
    assert store.hand_out(NOW + 10, limits(pages=1)).url == [A + "1"]
    assert store.hand_out(NOW + 10, limits(per_host=2)).url == [A + "2", A + "3", B + "1", B + "2"]
    assert store.hand_out(NOW + 50, limits(per_host=1, hosts=1, lease=5)).url == [A + "1"]
    assert store.hand_out(NOW + 51, limits(per_host=1)).url == [B + "1"]  # of the other host one is in flight
    assert len(pages) == 5


def test_a_host_rests_by_its_delay(store, pages):
    [host] = store.pages(pages[:1]).host
    store.set_host(np.array([host]), delay=np.array([60.0]))
    assert len(store.hand_out(NOW + 10, limits(per_host=1, pause=5.0)).page) == 2
    assert store.hand_out(NOW + 16, limits(per_host=2)).url == [B + "2"]
    assert store.hand_out(NOW + 71, limits(per_host=1)).url[0].startswith(A)


def test_pages_of_some_hosts(store, pages):
    assert store.hand_out(NOW + 10, limits(), store.queue_hosts("b.example")).url == [B + "1", B + "2"]
    assert len(store.queue_hosts("ample")) == 0
    below = store.discover(["http://x.b.example/"], NOW)
    assert store.queue_hosts("b.example").tolist() == [store.pages(pages[3:4]).host[0]]
    assert len(store.queue_hosts("x.b.example")) == len(below)
    store.discover(["http://www.c.example/", "http://d.c.example/", "http://dc.example/"], NOW)
    assert len(store.queue_hosts("c.example")) == 2
    store.discover(["http://e.example:8080/"], NOW)
    assert len(store.queue_hosts("e.example")) == len(store.queue_hosts("e.example:8080")) == 1
    assert len(store.queue_hosts("c_example.%")) == 0
    assert len(store.hand_out(NOW + 10, limits(), np.empty(0, np.int64)).page) == 0


def test_a_report_ends_a_lease_with_its_visit(store, pages):
    page = int(pages[0])
    store.hand_out(NOW + 10, limits(lease=3_600))
    report(store, page, NOW + 500, metadata=b"{}")
    assert page not in store.in_flight(NOW + 11)
    assert store.due(pages[:1]).tolist() == [NOW + 500]
    assert store.metadata(pages) == {page: b"{}"}
    assert store.hand_out(NOW + 501, limits()).page.tolist() == [page]


def test_a_done_page_stays_done_when_it_is_found_again(store, pages):
    page = int(pages[0])
    report(store, page, math.inf, done=True)
    assert store.revive(pages).tolist() == []
    assert store.done_pages(pages).tolist() == [page]
    assert page not in store.hand_out(NOW + 10, limits()).page
    hosts = store.pages(pages).host
    store.set_client_limit(hosts[:1], 1)
    store.take_back(pages[1:], np.full(4, NOW))
    assert store.hand_out(NOW + 10, limits()).url == [B + "1", B + "2"]
    store.set_client_limit(hosts[:1], None)
    assert store.hand_out(NOW + 10, limits()).url == [A + "2", A + "3"]
    report(store, page, NOW + 500, at=NOW + 200)
    store.set_importance(pages[:1], np.ones(1))
    assert store.done_pages(pages).tolist() == []


def test_metadata_are_stored_once(store, pages):
    store.add_metadata(pages[:2], [b"1", b"2"])
    store.add_metadata(pages[1:3], [b"3", b"4"])
    assert store.metadata(pages) == dict(zip(pages[:3].tolist(), [b"1", b"2", b"4"], strict=True))
    assert store.hand_out(NOW + 10, limits()).metadata == [b"1", b"2", b"4", b"", b""]


def test_counts_and_lists(store, pages):
    hosts = store.pages(pages).host
    assert store.queue_counts(NOW) == QueueCounts(2, 2, 5, 0, 0)
    store.hand_out(NOW + 10, limits(), hosts[:1])
    report(store, int(pages[0]), math.inf, done=True)
    assert store.queue_counts(NOW + 11) == QueueCounts(2, 2, 4, 2, 1)
    assert store.queue_counts(NOW + 11, hosts[3:4]) == QueueCounts(1, 1, 2, 0, 0)
    assert store.queue_names(0, 10, math.inf) == (["a.example", "b.example"], 2)
    assert store.queue_names(1, 10, math.inf) == (["b.example"], 2)
    assert [(one.url, one.done) for one in store.list_pages(0, 2)] == [(A + "1", True), (A + "2", False)]
    first = store.list_pages(0, 3)[-1].page
    assert [one.url for one in store.list_pages(0, 10, after=first)] == [B + "1", B + "2"]
    assert [one.url for one in store.list_pages(1, 10, hosts[3:4])] == [B + "2"]
    assert [store.count_pages(text=UrlFilter(*text)) for text in (("/1",), ("A.E",), ("A.E", True), ("",))] == [
        2,
        0,
        3,
        5,
    ]


def test_what_is_removed_comes_back_when_it_is_found(store, pages):
    hosts = store.pages(pages).host
    assert store.unschedule(None, before=NOW + 1.5) == 2
    assert store.unschedule(hosts[:1]) == 1
    assert store.hand_out(NOW + 10, limits()).url == [B + "1", B + "2"]
    assert store.unschedule(None) == 2
    assert store.unschedule(None) == 0
    assert store.revive(pages).tolist() == sorted(pages.tolist())
    assert len(store.hand_out(NOW + 20, limits()).page) == 5
