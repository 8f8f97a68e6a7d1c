"""Looking through pages and hosts a screen at a time, on both engines."""

from __future__ import annotations

import math
from itertools import pairwise

import numpy as np
import pytest

from recrawl.errors import StoreError
from recrawl.model import Outcome, Verdict, Visit, Visits
from recrawl.store import browse, open_store
from recrawl.store.browse import PageQuery
from recrawl.urls import surt

NOW = 1_000_000.0
HOSTS = ("a.test", "b.test:8080", "www.c.test")


@pytest.fixture
def filled(store):
    """Pages of three hosts: some due, some later, some never, some that fail."""
    urls = [f"http://{host}/{section}/{number}" for number in range(20) for section in "xy" for host in HOSTS]
    pages = store.discover(urls, NOW - 1000.0)
    ignored = store.discover(["http://a.test/ignored"], NOW, importance=0.0)
    rng = np.random.default_rng(5)
    failed = pages[::7]
    store.lease("me", NOW, len(pages), per_host=len(pages), ttl=100.0)
    store.acknowledge("me", np.setdiff1d(pages, failed))
    store.reschedule(pages, NOW + np.round(rng.uniform(-500, 500, len(pages)) / 100) * 100)
    store.record(
        Visits.from_rows([_failure(page) for page in failed.tolist()]),
        due=np.full(len(failed), NOW + 50.0),
        worker="me",
    )
    return store, np.append(pages, ignored), failed


def _failure(page):
    return Visit(page, NOW - 5.0, Outcome.REFUSED if page % 2 else Outcome.SERVER_ERROR, Verdict.UNKNOWN)


def _all(store, **said):
    """Every row of a list, screen by screen."""
    found, after = [], None
    for _ in range(1000):
        rows = store.browse_pages(PageQuery(after=after, **said), NOW)
        assert len(rows) <= said["limit"]
        found.append(rows)
        after = rows.next
        if after is None:
            return [page for rows in found for page in rows.page.tolist()], [url for rows in found for url in rows.url]
    pytest.fail("the list has no end")


@pytest.mark.parametrize("order", ["url", "due", "found"])
def test_screens_join_to_the_whole_list_in_order(filled, order):
    store, pages, _ = filled
    for descending, limit in ((False, 1), (False, 500), (True, 7)):
        _check_order(store, pages, order, descending=descending, limit=limit)


def _check_order(store, pages, order, *, descending, limit):
    ids, urls = _all(store, order=order, descending=descending, limit=limit)
    assert sorted(ids) == sorted(pages.tolist())
    due = dict(zip(pages.tolist(), store.due(pages).tolist(), strict=True))
    values = {
        "url": [(surt(url), page) for url, page in zip(urls, ids, strict=True)],
        "due": [(due[page], page) for page in ids],
        "found": [(page,) for page in ids],
    }[order]
    assert all((one > other) if descending else (one < other) for one, other in pairwise(values))


def test_a_host_is_listed_alone(filled):
    store, _, _ = filled
    hosts = store.hosts()
    for host, name, order in zip(hosts.id.tolist(), hosts.name, ("url", "due", "found"), strict=True):
        _, urls = _all(store, order=order, host=host, host_name=name, limit=9)
        assert len(urls) == (41 if name == "a.test" else 40)
        assert all(url.startswith(f"http://{name}/") for url in urls)


@pytest.mark.parametrize("state", ["due", "waiting", "never", "failing"])
def test_states_part_the_pages(filled, state):
    store, pages, failed = filled
    due = store.due(pages)
    wanted = {
        "due": pages[due <= NOW],
        "waiting": pages[(due > NOW) & np.isfinite(due)],
        "never": pages[np.isinf(due)],
        "failing": failed,
    }[state]
    for order, descending in (("url", False), ("due", False), ("due", True), ("found", False)):
        ids, _ = _all(store, order=order, descending=descending, state=state, limit=11)
        assert sorted(ids) == sorted(wanted.tolist())


def test_a_text_is_found_anywhere_and_is_no_pattern(filled):
    store, _, _ = filled
    _, urls = _all(store, text="TEST/X/1", limit=10)
    assert len(urls) == 11 * 2  # 1 and 10 to 19, where no port stands between
    store.discover(["http://a.test/50%25_off", "http://a.test/50xoff"], NOW)
    assert _all(store, text="%25_o", limit=10)[1] == ["http://a.test/50%25_off"]


def test_a_whole_url_is_the_beginning_of_others(filled):
    store, _, _ = filled
    rows = store.browse_pages(PageQuery(text="https://www.a.test/x/1", limit=50), NOW)
    assert len(rows) == 11
    assert rows.sifted == 11


def test_a_list_says_how_far_it_looked(filled, monkeypatch):
    store, _, _ = filled
    monkeypatch.setattr(browse, "SIFTED", 10)
    rows = store.browse_pages(PageQuery(text="www.c.test/y/19", limit=5), NOW)
    assert len(rows) == 0
    assert rows.next is not None
    assert rows.sifted == 10
    assert _all(store, text="www.c.test/y/19", limit=5)[1] == ["http://www.c.test/y/19"]


def test_an_order_of_somebody_else_is_kept(filled):
    store, pages, _ = filled
    order = pages[::-3]
    ids, _ = _all(store, ids=order, limit=4)
    assert ids == order.tolist()
    ids, urls = _all(store, ids=order, text="/x/", limit=4)
    assert ids == [page for page in order.tolist() if page in set(ids)]
    assert all("/x/" in url for url in urls)


def test_rows_tell_what_is_known(filled):
    store, pages, failed = filled
    rows = store.browse_pages(PageQuery(order="found", limit=500), NOW)
    assert rows.page.tolist() == pages.tolist()
    assert rows.due.tolist() == store.due(pages).tolist()
    assert rows.url == store.urls(pages)
    assert set(rows.page[rows.failures > 0].tolist()) == set(failed.tolist())
    assert rows.importance[-1] == 0.0


def test_hosts_are_counted(filled):
    store, pages, failed = filled
    counts = store.host_counts(NOW)
    host, due = store.pages(pages).host, store.due(pages)
    for row, number in enumerate(counts.host.tolist()):
        mine = host == number
        assert counts.pages[row] == mine.sum()
        assert counts.due[row] == (due[mine] <= NOW).sum()
        assert counts.never[row] == (due[mine] == math.inf).sum()
        bad = np.intersect1d(pages[mine], failed)
        assert counts.forbidden[row] == (bad % 2 == 1).sum()
        assert counts.failing[row] == (bad % 2 == 0).sum()


def test_nothing_is_found_in_an_empty_store(store):
    for order in ("url", "due", "found"):
        rows = store.browse_pages(PageQuery(order=order), NOW)
        assert (len(rows), rows.next) == (0, None)
    assert len(store.host_counts(NOW).host) == 0


def test_a_read_that_takes_too_long_is_given_up(filled, location):
    with (
        open_store(location, patience=1e-3 if location.startswith("postgres") else 0.0) as hasty,
        pytest.raises(StoreError, match="did not answer within"),
    ):
        hasty._database.read(lambda session: session.rows(_SLOW))
    with open_store(location, patience=60.0) as patient:
        assert len(patient.browse_pages(PageQuery(limit=5), NOW)) == 5


_SLOW = "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 3000000) SELECT count(*) FROM n"


def test_the_size_of_a_host_is_the_pages_that_are_to_be_visited(filled):
    store, _, _ = filled
    assert [store.host_size(host) for host in HOSTS] == [40] * len(HOSTS)
    assert store.host_size("unknown.test") == 0


def test_folders_of_a_host_are_those_of_pages_to_be_visited(store):
    assert not store.has_wanted_pages()
    assert store.never_due(0, 10)[2] is None
    store.discover(["http://www.a.test/out/1", "http://b.test/"], NOW, importance=0.0)
    assert not store.has_wanted_pages()
    store.discover(
        ["http://a.test/x/1", "http://a.test/x/2?p=/q/r", "http://a.test.b.test/y/", "http://a.test:81/"], NOW
    )
    assert store.has_wanted_pages()
    assert sorted(store.folders_of("test,a")) == ["http://a.test/x/", "http://a.test/x/2?p=/q/"]
    assert sorted(store.folders_of("test,a", whole=True)) == ["http://a.test/x/1", "http://a.test/x/2?p=/q/r"]
    assert store.folders_of("test,a:81") == ["http://a.test:81/"]
    assert store.folders_of("test,b") == []
    page, host, last = store.never_due(0, 10)
    assert sorted(store.urls(page)) == ["http://b.test/", "http://www.a.test/out/1"]
    assert store.pages(np.sort(page)).host.tolist() == host[np.argsort(page)].tolist()
    assert store.never_due(last, 10)[2] is None
    assert store.never_due(0, 1)[2] == 1
