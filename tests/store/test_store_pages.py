import numpy as np
import pytest

from recrawl.model import Page, Validators, Visits
from recrawl.urls import surt


def test_each_url_gets_the_id_of_its_page(store):
    urls = ["http://a.example/x", "mailto:me@a.example", "http://b.example/", "http://www.a.example/x#top", "nonsense"]
    assert store.discover(urls, 10.0).tolist() == [1, -1, 2, 1, -1]
    assert store.urls(np.array([2, 1, 2])) == ["http://b.example/", "http://a.example/x", "http://b.example/"]


def test_a_page_can_be_found_by_any_spelling_of_its_url(store):
    store.discover(["http://a.example/?b=2&a=1"], 10.0, importance=3.0)
    expected = Page(1, 1, "http://a.example/?b=2&a=1", surt("http://a.example/?a=1&b=2"), 3.0, 10.0)
    assert store.find("http://www.a.example/?a=1&b=2") == expected
    assert store.find("http://a.example/other") is None
    assert store.find("about:blank") is None


def test_discovering_known_urls_changes_nothing(store):
    first = store.discover(["http://a.example/x", "http://a.example/y"], 10.0, importance=2.0)
    store.reschedule(first, np.array([500.0, 600.0]))
    before = store.hosts()
    again = store.discover(["http://a.example/y", "http://a.example/x"], 99.0, importance=7.0)
    assert again.tolist() == first[::-1].tolist()
    pages = store.pages()
    assert pages.importance.tolist() == [2.0, 2.0]
    assert pages.discovered.tolist() == [10.0, 10.0]
    assert store.next_due() == 500.0
    assert store.hosts().next_due.tolist() == before.next_due.tolist()


def test_a_new_page_is_due_at_once_though_its_host_is_known(store):
    old = store.discover(["http://a.example/old"], 10.0)
    store.reschedule(old, np.array([900.0]))
    new = store.discover(["http://a.example/old", "http://a.example/new"], 20.0)
    leased = store.lease("w", 20.0, 10, ttl=60.0)
    assert leased.page.tolist() == [new[1]]
    assert leased.due.tolist() == [20.0]


def test_each_page_is_heard_of_at_the_earliest_time_of_its_own_urls(store):
    urls = ["http://a.example/x", "http://b.example/y", "http://A.example/x", "mailto:nobody", "http://b.example/z"]
    found = store.discover(urls, np.array([30.0, 20.0, 10.0, 5.0, 40.0]))
    pages = store.pages()
    assert dict(zip(pages.id.tolist(), pages.discovered.tolist(), strict=True)) == {
        found[0]: 10.0,
        found[1]: 20.0,
        found[4]: 40.0,
    }
    assert store.due(found[[0, 1, 4]]).tolist() == [10.0, 20.0, 40.0]
    assert store.next_due() == 10.0


def test_nothing_to_discover(store):
    assert store.discover([], 1.0).tolist() == []
    assert store.discover(["ftp://a.example/"], 1.0).tolist() == [-1]
    assert store.counts(1.0).pages == 0


def test_a_url_longer_than_any_index_entry_is_a_page_like_others(store):
    rng = np.random.default_rng(5)
    long = "http://a.example/?q=" + bytes(rng.integers(97, 123, 20_000).astype(np.uint8)).decode()
    [page] = store.discover([long], 1.0)
    assert store.discover([long], 2.0).tolist() == [page]
    assert store.urls(np.array([page])) == [long]


def test_a_host_is_name_and_port(store):
    store.discover(["http://a.example/", "http://a.example:8080/", "https://a.example/y"], 1.0)
    assert store.hosts().name == ["a.example", "a.example:8080"]


def test_a_page_takes_another_spelling_of_its_key_and_no_other_page(store):
    one, other = store.discover(["http://a.example/news", "http://a.example/old"], 1.0)
    store.respell(np.array([one]), ["https://www.a.example/news/"])
    assert store.urls(np.array([one, other])) == ["https://www.a.example/news/", "http://a.example/old"]
    assert store.find("http://a.example/news").id == one
    with pytest.raises(ValueError, match="written in another way"):
        store.respell(np.array([one]), ["http://a.example/old"])


def test_pages_as_columns(store):
    ids = store.discover([f"http://h{n % 2}.example/{n}" for n in range(5)], 4.0)
    store.set_importance(ids[[1, 3]], np.array([0.5, 8.0]))
    pages = store.pages(ids[[4, 1, 3]])
    assert pages.id.tolist() == [2, 4, 5]
    assert pages.host.tolist() == [2, 2, 1]
    assert pages.importance.tolist() == [0.5, 8.0, 1.0]
    assert pages.discovered.tolist() == [4.0, 4.0, 4.0]
    assert len(store.pages(np.empty(0, np.int64))) == 0
    assert len(store.pages()) == 5


def test_hosts_rest_as_told(store):
    store.discover(["http://a.example/", "http://b.example/"], 1.0)
    store.set_host(np.array([2]), ready_at=np.array([50.0]), delay=np.array([2.5]))
    hosts = store.hosts(np.array([2]))
    assert (hosts.name, hosts.ready_at.tolist(), hosts.delay.tolist()) == (["b.example"], [50.0], [2.5])
    store.set_host(np.array([2]), ready_at=np.array([40.0]))
    assert store.hosts(np.array([1, 2])).ready_at.tolist() == [0.0, 40.0]
    assert store.hosts(np.array([1, 2])).delay.tolist() == [0.0, 2.5]
    assert len(store.hosts(np.empty(0, np.int64))) == 0


def test_validators_are_those_of_the_latest_visit(store):
    pages = store.discover(["http://a.example/1", "http://a.example/2"], 1.0)
    old = Validators('"old"', "yesterday", b"\x00\x01", b"\xff", "text/html", False, 3.0)
    new = Validators('W/"new\u20ac"', "", b"d" * 20, b"t" * 8, "text/plain", True, 9.0)
    store.record(Visits.of(pages[[0, 1, 0]], [9.0, 9.0, 5.0]), validators=[new, None, old])
    assert store.validators(pages[::-1]) == [Validators(), new]
    store.record(Visits.of(pages, [20.0, 20.0]), validators=[None, old])
    assert store.validators(pages) == [new, old]
    assert store.validators(np.empty(0, np.int64)) == []


def test_a_header_with_a_nul_is_no_validator(store):
    pages = store.discover(["http://a.example/1"], 1.0)
    store.record(Visits.of(pages, [2.0]), validators=[Validators("a\0b", "ok")])
    assert store.validators(pages) == [Validators("", "ok")]


def test_asking_for_a_page_that_is_not_there(store):
    with pytest.raises(KeyError):
        store.urls(np.array([4]))
    with pytest.raises(KeyError):
        store.validators(np.array([4]))


def test_pages_without_importance_are_remembered_but_never_due(store):
    store.discover(["http://a.example/in"], 10.0)
    outside = store.discover(["http://b.example/out", "http://a.example/out"], 10.0, importance=0.0)
    assert len(store.lease("w", 99.0, 10, per_host=10, ttl=5.0)) == 1
    assert store.next_due() > 99.0
    assert store.counts(99.0).due == 1
    assert store.pages(outside).importance.tolist() == [0.0, 0.0]


def test_importance_decides_whether_a_page_is_due(store):
    pages = store.discover(["http://a.example/1", "http://b.example/2"], 10.0, importance=0.0)
    store.set_importance(pages[:1], np.array([2.0]))
    assert store.next_due() == 10.0
    store.set_importance(pages, np.array([0.0, 1.0]))
    assert store.lease("w", 20.0, 10, per_host=10, ttl=5.0).page.tolist() == pages[1:].tolist()
    store.reschedule(pages[1:], np.array([500.0]))
    store.set_importance(pages[1:], np.array([9.0]))
    store.acknowledge("w", pages)
    assert store.next_due() == 500.0


@pytest.mark.parametrize("asked", ["pages", "urls", "outlinks", "fingerprints", "hosts", "noise", "sources"])
def test_of_no_pages_nothing_is_known(store, asked):
    store.discover(["http://a.example/", "http://b.example/"], 0.0)
    assert len(getattr(store, asked)(np.empty(0, np.int64))) == 0


def test_orders_that_concern_nobody_are_carried_out(store):
    store.discover(["http://a.example/"], 0.0)
    nobody = np.empty(0, np.int64)
    store.pause(nobody)
    store.resume(nobody)
    store.record_links(nobody, nobody, np.empty(0))
    store.acknowledge("worker", nobody)
    assert not store.hosts().paused.any()
    assert len(store.outlinks(store.pages().id)) == 0
