"""What lies in the scope is visited, whoever found it first and whenever the scope came to cover it."""

import shutil

import numpy as np
import pytest

from recrawl.crawl.visit.recorder import Recorder
from recrawl.crawl.visit.scope import HostCap, HostScope, ScopeKind, ScopeRules, WorkspaceScope
from recrawl.crawl.visit.warc_archive import NoArchive
from recrawl.errors import DiskFullError
from recrawl.schedule.frontier.revisit_scheduler import RevisitScheduler
from recrawl.schedule.policies.fixed_interval import FixedInterval
from recrawl.store.open import open_store
from recrawl.urls import address

NOW = 1.7e9


@pytest.fixture
def store(tmp_path, empty_store):
    with open_store(shutil.copy(empty_store, tmp_path / "homes.db"), durable=False) as opened:
        yield opened


def recorder_of(store, scope, cap=None):
    return Recorder("one", store, RevisitScheduler(FixedInterval(10.0), budget=1.0), scope, NoArchive(), cap=cap)


def scope_of(kind, *urls):
    return WorkspaceScope(ScopeRules(kind=kind), map(address, urls))


def wanted(store):
    pages = store.pages()
    return store.urls(pages.id[pages.importance > 0])


def move_in(recorder, store):
    leased = store.lease("one", NOW, 10, ttl=60.0)
    recorder.widen_scope(leased, store.sources(leased.page))


@pytest.mark.parametrize(
    ("kind", "taken"),
    [
        (ScopeKind.PAGE, []),
        (ScopeKind.PREFIX, ["http://a.org/news/1"]),
        (ScopeKind.HOST, ["http://a.org/news/1", "http://a.org/about"]),
        (ScopeKind.DOMAIN, ["http://a.org/news/1", "http://a.org/about", "http://sub.a.org/"]),
    ],
)
def test_what_was_found_outside_is_taken_in_once_the_scope_covers_it(store, kind, taken):
    store.discover(
        ["http://a.org/news/1", "http://a.org/about", "http://sub.a.org/", "http://b.org/"], 1e9, importance=0.0
    )
    store.discover(["http://a.org/news/"], NOW)
    recorder = recorder_of(store, scope_of(kind, "http://a.org/news/"))
    recorder.schedule_covered()
    assert sorted(wanted(store)) == sorted(["http://a.org/news/", *taken])
    assert len(store.due_pages(NOW, 10)) == 1 + len(taken)  # and due


def test_a_page_that_was_added_since_brings_what_lies_near_it(store):
    store.discover(["http://a.org/"], NOW)
    recorder = recorder_of(store, scope_of(ScopeKind.PREFIX, "http://a.org/"))
    recorder.schedule_covered()
    recorder.discover(["http://b.org/old", "http://c.org/x"], NOW)
    assert wanted(store) == ["http://a.org/"]
    store.discover(["http://b.org/"], NOW)
    move_in(recorder, store)
    recorder.discover(["http://b.org/new", "http://c.org/y"], NOW)
    assert wanted(store) == ["http://a.org/", "http://b.org/", "http://b.org/new"]
    recorder.schedule_covered()
    assert sorted(wanted(store)) == ["http://a.org/", "http://b.org/", "http://b.org/new", "http://b.org/old"]


def test_nothing_lies_around_a_source_and_a_feed_is_no_page(store):
    [source, feed] = store.discover(["http://a.org/data", "http://b.org/feed"], NOW)
    store.set_source(np.array([source]), "rdf", "{}")
    store.set_source(np.array([feed]), "feed", "{}")
    store.set_importance(np.array([feed]), np.zeros(1))
    store.discover(["http://b.org/"], NOW)
    recorder = recorder_of(store, scope_of(ScopeKind.HOST, "http://b.org/"))
    move_in(recorder, store)
    recorder.discover(["http://a.org/more"], NOW)
    recorder.schedule_covered()
    assert wanted(store) == ["http://a.org/data", "http://b.org/"]


def test_a_host_that_is_full_takes_in_no_more(store):
    store.discover([f"http://a.org/{number}" for number in range(9)], NOW, importance=0.0)
    recorder = recorder_of(store, HostScope(frozenset({"a.org"})), HostCap(4, lambda _host: 1))
    recorder.schedule_covered()
    assert len(wanted(store)) == 3
    recorder.schedule_covered()
    recorder.discover(["http://a.org/new"], NOW)
    assert len(wanted(store)) == 3


def full_disk(*_arguments):
    raise DiskFullError("full", "free some space")


def test_a_disk_that_is_full_for_a_moment_leaves_nobody_out(store, monkeypatch):
    store.discover(["http://a.org/1"], NOW, importance=0.0)
    recorder = recorder_of(store, HostScope(frozenset({"a.org"})))
    with monkeypatch.context() as patched:
        patched.setattr(store, "set_importance", full_disk)
        with pytest.raises(DiskFullError):
            recorder.schedule_covered()
    recorder.schedule_covered()
    assert wanted(store) == ["http://a.org/1"]


STORED = [
    "http://a.org/news/today.html",
    "http://www.b.org/",
    "http://c.org:8080/x/y?of=/u/v",
    "http://sub.d.org/only/included/1",
    "https://e.org/A/b",
]
ASKED = [
    *STORED,
    *(
        "http://a.org/news/2026/x",
        "http://a.org/about",
        "https://b.org/deep/er/x",
        "http://c.org:8080/x/",
        "http://c.org/x/",
    ),
    *("http://c.org:8080/u/v", "http://sub.d.org/only/included/2", "http://sub.d.org/only/2", "http://d.org/"),
    *("http://x.sub.d.org/", "http://e.org/a/c", "http://e.org/", "http://f.org/", "http://a.organic/news/x"),
]


@pytest.mark.parametrize("include", [(), ("/included/1",)])
@pytest.mark.parametrize("kind", [kind for kind in ScopeKind if kind is not ScopeKind.CUSTOM])
def test_a_scope_read_host_by_host_covers_what_one_of_all_pages_does(store, kind, include):
    store.discover(STORED, NOW)
    store.discover(["http://f.org/"], NOW, importance=0.0)
    [source] = store.discover(["http://f.org/data"], NOW)
    store.set_source(np.array([source]), "rdf", "{}")
    rules = ScopeRules(kind=kind, include=include)
    eager, lazy = WorkspaceScope(rules, map(address, STORED)), WorkspaceScope(rules, (), stored=store)
    for url in ASKED:
        assert lazy.covers(address(url)) == eager.covers(address(url)), url
    lazy = WorkspaceScope(rules, (), stored=store)
    for name in {address(url).host for url in ASKED}:
        assert lazy.touches(name) == eager.touches(name), name


def test_a_page_added_to_a_host_that_was_read_widens_the_scope(store):
    store.discover(["http://a.org/news/1"], NOW)
    recorder = recorder_of(store, WorkspaceScope(ScopeRules(), (), stored=store))
    recorder.schedule_covered()
    recorder.discover(["http://a.org/about/1", "http://b.org/1"], NOW)
    assert wanted(store) == ["http://a.org/news/1"]
    store.discover(["http://a.org/about/", "http://b.org/"], NOW)
    leased = store.lease("one", NOW, 10, per_host=4, ttl=60.0)
    recorder.widen_scope(leased, store.sources(leased.page))
    recorder.schedule_covered()
    assert sorted(wanted(store)) == sorted(
        ["http://a.org/news/1", "http://a.org/about/", "http://a.org/about/1", "http://b.org/", "http://b.org/1"]
    )


class Counted:
    """A store that counts the folders and pages that are read of it."""

    def __init__(self, store):
        self._store, self.calls = store, []

    def __getattr__(self, name):
        found = getattr(self._store, name)

        def call(*arguments, **options):
            self.calls.append(name)
            return found(*arguments, **options)

        return call


def test_a_start_reads_no_page_whatever_their_number(store):
    store.discover([f"http://{host}.org/{page}" for host in "abcdefgh" for page in range(40)], NOW)
    counted = Counted(store)
    recorder = recorder_of(counted, WorkspaceScope(ScopeRules(), (), stored=counted))
    recorder.schedule_covered()
    leased = counted.lease("one", NOW, 64, per_host=4, ttl=60.0)
    recorder.widen_scope(leased, counted.sources(leased.page))
    assert len(leased) == 32
    assert {"folders_of", "pages", "urls"}.isdisjoint(counted.calls)
    recorder.discover(["http://a.org/new"], NOW)
    assert counted.calls.count("folders_of") == 1
