"""Captures in the dashboard: what is finished is read once, graphs are made once, and commands can be pasted."""

from __future__ import annotations

import html
import json
import re
import shlex
from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager, nullcontext
from time import sleep

import numpy as np
import pytest

from recrawl.app.workspace.workspace import make_workspace
from recrawl.model import Verdict, Visits
from recrawl.store.browse import HostCounts
from recrawl.store.store_values import FoundPages
from recrawl.time import DAY, VirtualClock
from recrawl.web.dashboard.access_control import AccessGuard
from recrawl.web.dashboard.capture_views import MOST_KEPT, FinishedRows, SiteGraphs
from recrawl.web.dashboard.dashboard_app import make_app, wired
from recrawl.web.dashboard.host_views import HostTable, answer, table_of
from recrawl.web.dashboard.routes import CheckedParameters
from recrawl.web.dashboard.stale_cache import CachedAnswer

SITE = "http://a.example/"
NOW = 1_790_000_000.0
COUNTS = {"coherent": 2, "changed": 1, "missing": 0, "unknown": 0}


def stated(pages):
    blur = {"average": 0.5}
    quality = {"pages": pages, "coherence": COUNTS, "blur": {"achieved": blur, "predicted": blur}}
    return json.dumps({"observations": 3, "quality": quality})


def begin(store, now):
    pages = store.discover([SITE, f"{SITE}b", f"{SITE}c"], now)
    found = FoundPages(pages, np.array([-1, 0, 0]), np.full(3, 1e-6), np.ones(3))
    return store.begin_site_capture(SITE, json.dumps({"strategy": "bfs"}), delay=1.0, now=now, known=found), pages


@pytest.fixture
def place(tmp_path):
    return make_workspace(tmp_path / "an archive", {})


@pytest.fixture
def get(place, served, ask):
    wires = wired(place, AccessGuard(), lambda: NOW)
    with served(make_app(wires.site)) as port:
        yield lambda path, **headers: ask(port, path, **headers)
    wires.close()


def test_what_is_finished_is_not_read_again_and_what_is_not_is(place, get):
    def told():
        return [(one["id"], one["state"], one["pages"]) for one in json.loads(get("/api/captures")[2])["captures"]]

    with place.open_store() as store:
        first, _ = begin(store, NOW)
        second, _ = begin(store, NOW + 1)
        store.finish_site_capture(first, stated(3), NOW + 5)
        assert told() == [(second, "unfinished", None), (first, "finished", 3)]
        store.finish_site_capture(first, stated(99), NOW + 5)  # nobody does that: it shows who reads
        store.finish_site_capture(second, stated(7), NOW + 6)
        assert told() == [(second, "finished", 7), (first, "finished", 3)]


def test_captures_come_by_screens_and_only_some_rows_are_kept(place, get):
    def told(query):
        found = json.loads(get(f"/api/captures?{query}")[2])
        return [one["id"] for one in found["captures"]], found["next"]

    with place.open_store() as store:
        numbers = [begin(store, NOW + number)[0] for number in range(5)]
        for number in numbers:
            store.finish_site_capture(number, stated(number), NOW + 9)
        latest = numbers[::-1]
        assert told("limit=2") == (latest[:2], latest[1])
        assert told(f"limit=2&before={latest[1]}") == (latest[2:4], latest[3])
        assert told(f"limit=2&before={latest[3]}") == (latest[4:], None)
        assert told(f"before={latest[4]}") == ([], None)
        assert f'href="/captures?before={latest[1]}"' in get("/captures?limit=2", accept="text/html")[2]
        assert "no captures before" in get(f"/captures?before={latest[4]}", accept="text/html")[2]
        kept = FinishedRows(most=3)
        counting = Counting(store)
        for wanted in (numbers, numbers[-3:], numbers[:1]):
            rows = kept.rows(counting, wanted, [])
            assert [rows[number]["pages"] for number in wanted] == wanted
        assert counting.asked["site_counts"] == len(numbers) + 1


class Counting:
    """A store that counts how often each question is asked."""

    def __init__(self, store):
        self._store, self.asked = store, Counter()

    def __getattr__(self, name):
        self.asked[name] += 1
        return getattr(self._store, name)


def test_a_graph_is_made_once_and_again_when_something_was_seen_since(place):
    clock = VirtualClock(NOW)
    graphs = SiteGraphs(clock.now)
    with place.open_store() as real:
        store = Counting(real)
        number, pages = begin(real, NOW)
        real.finish_site_capture(number, stated(3), NOW + 5)
        [capture] = real.site_captures()
        first = graphs.get(lambda: nullcontext(store), capture)
        assert graphs.get(lambda: nullcontext(store), capture) == first
        assert store.asked["site_log"] == 1
        assert json.loads(first)["pages"]["captures"] == [0, 0, 0]
        real.record(Visits.of(np.repeat(pages[1:2], 2), [NOW, NOW + DAY], verdict=[Verdict.UNKNOWN, Verdict.CHANGED]))
        clock.advance_to(NOW + DAY)
        graphs.get(lambda: nullcontext(store), capture)
        assert store.asked["site_log"] == 2


def test_only_some_graphs_are_kept(place):
    graphs = SiteGraphs(lambda: NOW)
    with place.open_store() as real:
        store = Counting(real)
        for number in range(MOST_KEPT + 1):
            begin(real, NOW + number)
        captures = real.site_captures()
        for capture in [*captures, *captures[1:], captures[0]]:
            graphs.get(lambda: nullcontext(store), capture)
        assert store.asked["site_log"] == len(captures) + 1


def test_who_waits_for_a_graph_holds_no_store(place):
    graphs, held, most = SiteGraphs(lambda: NOW), [], []

    @contextmanager
    def one():
        held.append(1)
        most.append(len(held))
        sleep(0.05)  # time for the others to ask
        with place.open_store() as store:
            yield store
        held.pop()

    with place.open_store() as store:
        begin(store, NOW)
        [capture] = store.site_captures()
    with ThreadPoolExecutor(4) as many:
        texts = set(many.map(lambda _: graphs.get(one, capture), range(4)))
    assert (len(texts), max(most)) == (1, 1)


class Names(list):
    """Counts how often it is looked through."""

    asked = 0

    def __getitem__(self, place):
        Names.asked += 1
        return super().__getitem__(place)


def test_hosts_are_sorted_once_for_each_count(place):
    with place.open_store() as store:
        store.discover([f"http://{name}.example/" for name in "cabed"], NOW)
        hosts = store.hosts()
    none = np.empty(0, np.int64)
    object.__setattr__(hosts, "name", Names(hosts.name))
    table: HostTable = table_of(hosts, HostCounts(none, none, none, none, none, none), lambda _checks, _lies: True)
    asked = CheckedParameters({"sort": "name", "search": "", "after": None, "limit": 1}, NOW)
    first = answer(CachedAnswer(table, NOW), asked)
    sorted_by = Names.asked
    assert [one["name"] for one in first["hosts"]] == ["a.example"]
    answer(CachedAnswer(table, NOW), asked)
    assert Names.asked - sorted_by == 1, "one name for one row, and no more"


def test_a_list_that_goes_on_behind_a_host_that_is_no_more_does_not_begin_anew(place):
    with place.open_store() as store:
        store.discover([f"http://{name}.example/" for name in "abc"], NOW)
        hosts = store.hosts()
    none = np.empty(0, np.int64)
    table = table_of(hosts, HostCounts(none, none, none, none, none, none), lambda _checks, _lies: True)

    def names(after):
        shown = answer(
            CachedAnswer(table, NOW), CheckedParameters({"sort": "name", "search": "", "after": after, "limit": 2}, NOW)
        )
        return [one["name"] for one in shown["hosts"]], shown["next"]

    _, second = names(None)
    assert names(second) == (["c.example"], None)
    assert names(10_000) == ([], None)


@pytest.mark.parametrize("path", ["/", "/hosts", "/pages", "/captures"])
def test_what_to_do_next_can_be_pasted(place, get, path):
    for _ in range(600):  # counts are worked out behind the scenes
        said = get(path, accept="text/html")[2]
        if "<code>recrawl" in said:
            break
        sleep(0.1)
    [command, *_] = [html.unescape(one) for one in re.findall(r"<code>(recrawl .*?)</code>", said)]
    words = shlex.split(command)
    assert words[words.index("-w") + 1] == str(place.folder.resolve())
