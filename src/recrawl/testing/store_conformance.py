"""The rules of :class:`recrawl.store.base.Store` as tests: the main promises of each port."""

from __future__ import annotations

import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import numpy as np

from recrawl.errors import StoreError
from recrawl.model import Outcome, Verdict, Visits
from recrawl.store.base import Store
from recrawl.store.store_values import CaptureColumns
from recrawl.testing.checks import raises

_URLS = ("http://a.example/1", "http://a.example/2", "http://b.example/1")


class StoreConformance:
    """Tests for one kind of store. Override :meth:`open`."""

    def open(self, folder: Path, *, create: bool) -> Store:
        """Open the store that lies in a folder, or belongs to it; with ``create``, make it."""
        raise NotImplementedError

    @contextmanager
    def _new(self) -> Iterator[tuple[Store, Path]]:
        with tempfile.TemporaryDirectory() as name, self.open(Path(name), create=True) as store:
            yield store, Path(name)

    def test_it_is_a_store(self) -> None:
        """Members of the four ports."""
        with self._new() as (store, _):
            assert isinstance(store, Store)

    def test_a_page_is_found_by_its_url_and_known_only_once(self) -> None:
        """Pages: URLs with one key are one page; what is no URL is no page."""
        with self._new() as (store, _):
            pages = store.discover([*_URLS, "HTTP://A.example/1", "no URL"], 5.0)
            assert pages[4] == -1
            assert pages[3] == pages[0]
            assert len(set(pages[:3].tolist())) == 3
            assert store.urls(pages[:3]) == list(_URLS)
            again = store.find(_URLS[1])
            assert again is not None
            assert again.id == pages[1]
            assert store.find("http://c.example/") is None
            assert store.pages(pages[:3]).host.tolist()[0] != store.pages(pages[:3]).host.tolist()[-1]
            with raises(KeyError):
                store.urls(np.array([10**6]))

    def test_visits_are_read_back_each_once(self) -> None:
        """History: by page and time, and recording again changes nothing."""
        with self._new() as (store, _):
            pages = store.discover(_URLS, 0.0)
            visits = Visits.of(
                np.repeat(pages, 2), np.tile([10.0, 20.0], 3), verdict=np.tile([Verdict.UNKNOWN, Verdict.CHANGED], 3)
            )
            for _ in range(2):
                store.record(visits)
            found = store.visits()
            assert found.page.tolist() == sorted(np.repeat(pages, 2).tolist())
            assert found.time.tolist() == [10.0, 20.0] * 3
            assert store.histories().changes().tolist() == [1, 1, 1]
            assert store.visits(pages=pages[:1], since=15.0).time.tolist() == [20.0]

    def test_a_failed_visit_is_a_visit(self) -> None:
        """History: it is recorded with its outcome."""
        with self._new() as (store, _):
            pages = store.discover(_URLS[:1], 0.0)
            store.record(Visits.of(pages, [9.0], outcome=Outcome.UNREACHABLE))
            assert store.visits().outcome.tolist() == [Outcome.UNREACHABLE]

    def test_due_pages_are_leased_once_and_one_worker_holds_a_host(self) -> None:
        """Schedule: earliest first, nothing twice, nothing of a host that is held."""
        with self._new() as (store, _):
            pages = store.discover(_URLS, 0.0)
            store.reschedule(pages, np.array([30.0, 10.0, 20.0]))
            assert store.due(pages).tolist() == [30.0, 10.0, 20.0]
            assert len(store.lease("one", 5.0, 9, ttl=60.0)) == 0
            first = store.lease("one", 50.0, 9, ttl=60.0)
            assert first.page.tolist() == [pages[1], pages[2]]
            assert len(store.lease("two", 50.0, 9, ttl=60.0)) == 0
            assert store.held("one").tolist() == sorted(first.page.tolist())
            store.record(Visits.of(pages[1:2], [51.0]), due=np.array([1e6]), worker="one")
            assert store.lease("two", 52.0, 9, ttl=60.0).page.tolist() == [pages[0]]

    def test_a_lease_ends_by_itself(self) -> None:
        """Schedule: after its time another worker may have the page, unless it was renewed."""
        with self._new() as (store, _):
            store.discover(_URLS[:1], 0.0)
            assert len(store.lease("one", 10.0, 9, ttl=60.0)) == 1
            assert store.renew("one", 60.0, ttl=60.0) == 1
            assert len(store.lease("two", 100.0, 9, ttl=60.0)) == 0
            assert len(store.lease("two", 121.0, 9, ttl=60.0)) == 1
            assert store.acknowledge("one") == 0

    def test_paused_hosts_are_left_alone(self) -> None:
        """Schedule: until they are resumed, or ready."""
        with self._new() as (store, _):
            pages = store.discover(_URLS[:1], 0.0)
            host = store.pages(pages).host
            store.pause(host)
            assert len(store.lease("one", 10.0, 9, ttl=60.0)) == 0
            store.resume(host)
            store.set_host(host, ready_at=np.array([20.0]))
            assert len(store.lease("one", 10.0, 9, ttl=60.0)) == 0
            assert len(store.lease("one", 20.0, 9, ttl=60.0)) == 1

    def test_a_worker_leases_from_its_buckets_until_they_change_hands(self) -> None:
        """Schedule: a bucket has one owner, and a lease under an older token is void."""
        with self._new() as (store, _):
            pages = store.discover(_URLS[:1], 0.0)
            bucket = store.hosts(store.pages(pages).host).bucket
            for worker in ("one", "two"):
                store.set_control(f"worker {worker}", "{}", 0.0)
            assert len(store.lease("one", 1.0, 9, ttl=60.0, owned=True)) == 0
            assert store.claim_buckets("one", bucket, 1.0) == 1
            assert store.claim_buckets("two", bucket, 1.0) == 0
            leased = store.lease("one", 2.0, 9, ttl=60.0, owned=True)
            assert leased.page.tolist() == pages.tolist()
            assert leased.token.tolist() == store.buckets().token[bucket].tolist()
            assert store.plan_moves("one", bucket, ["two"], 3.0) == 1
            assert store.hand_over("one", 4.0, patience=9.0) == 0
            assert store.hand_over("one", 12.0, patience=9.0) == 1
            assert store.buckets().owner[int(bucket[0])] == "two"
            store.record(Visits.of(pages, [12.0]), due=np.array([1e6]), worker="one", tokens=leased.token)
            assert store.due(pages).tolist() == [0.0]
            assert store.lease("two", 13.0, 9, ttl=60.0, owned=True).page.tolist() == pages.tolist()
            assert store.release_worker("two", 14.0, pause=0.0) == 1
            assert store.buckets().owner[int(bucket[0])] is None
            assert store.claim_buckets("one", bucket, 15.0) == 1
            assert store.release_buckets("one", 16.0) == 1

    def test_captures_are_found_by_page_and_time(self) -> None:
        """Capture index: each once."""
        with self._new() as (store, _):
            page = int(store.discover(_URLS[:1], 0.0)[0])
            captures = CaptureColumns(
                np.full(3, page),
                np.array([10.0, 20.0, 30.0]),
                np.full(3, 200),
                ["text/html"] * 3,
                [b"d" * 20] * 3,
                np.full(3, 10),
                ["a.warc.gz"] * 3,
                np.arange(3),
                np.full(3, 5),
            )
            assert store.add_captures(captures)[0] == 3
            assert store.add_captures(captures)[0] == 0
            assert store.captures_between(page, 15.0, 99.0, 9).time.tolist() == [20.0, 30.0]
            assert store.capture_counts(np.array([page])).tolist() == [3]

    def test_links_states_and_controls_are_stored(self) -> None:
        """The first time of a link stays; a state and a control replace the one before."""
        with self._new() as (store, _):
            pages = store.discover(_URLS, 0.0)
            for time in (5.0, 9.0):
                store.record_links(pages[:1], pages[1:2], np.array([time]))
            assert len(store.outlinks(pages[:1]).target) == 1
            for state in (b"one", b"two"):
                store.save_state("policy", state, 1.0)
            assert store.load_state("policy") == b"two"
            assert store.load_state("other") is None
            store.set_control("x", "1", 1.0)
            assert store.controls() == {"x": "1"}
            store.set_control("x", None, 2.0)
            assert store.controls() == {}

    def test_what_was_recorded_is_there_for_others_and_after_closing(self) -> None:
        """Every call is one transaction, at once visible to a second connection."""
        with tempfile.TemporaryDirectory() as name:
            folder = Path(name)
            with self.open(folder, create=True) as store, self.open(folder, create=False) as other:
                pages = store.discover(_URLS, 0.0)
                store.record(Visits.of(pages, [1.0, 2.0, 3.0]))
                assert len(other.visits()) == 3
            with self.open(folder, create=False) as again:
                assert len(again.visits()) == 3

    def test_a_store_that_is_not_there_is_an_error(self) -> None:
        """Nothing is made without ``create``."""
        with tempfile.TemporaryDirectory() as name, raises(StoreError):
            self.open(Path(name), create=False)
