"""Captures in the dashboard: what is finished is read once, graphs are made once, and commands can be pasted."""

from __future__ import annotations

import html
import json
import re
import shlex
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager, nullcontext
from time import sleep

import numpy as np
import pytest

from recrawl.cli.serve_wiring import wired
from recrawl.cli.workspace import make_workspace
from recrawl.model import Verdict, Visits
from recrawl.show.dashboard.app import make_app
from recrawl.show.dashboard.graphs import MOST_KEPT, Graphs
from recrawl.show.dashboard.hosts import HostTable, answer, table_of
from recrawl.show.dashboard.kept import Found
from recrawl.show.dashboard.routes import Asked
from recrawl.show.dashboard.security import Guard
from recrawl.store.browse import HostCounts
from recrawl.store.site_values import FoundPages
from recrawl.time import DAY, VirtualClock

SITE = "http://a.example/"
NOW = 1_790_000_000.0
COUNTS = {"coherent": 2, "changed": 1, "missing": 0, "unknown": 0}


def stated(pages):
    blur = {"average": 0.5}
    quality = {"pages": pages, "coherence": COUNTS, "blur": {"achieved": blur, "predicted": blur}}
    return json.dumps({"looks": 3, "quality": quality})


def begin(store, now):
    pages = store.discover([SITE, f"{SITE}b", f"{SITE}c"], now)
    found = FoundPages(pages, np.array([-1, 0, 0]), np.full(3, 1e-6), np.ones(3))
    return store.begin_site_capture(SITE, json.dumps({"strategy": "bfs"}), delay=1.0, now=now, known=found), pages


@pytest.fixture
def place(tmp_path):
    return make_workspace(tmp_path / "an archive", {})


@pytest.fixture
def get(place, served, ask):
    wires = wired(place, Guard(), lambda: NOW)
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


class Counting:
    """A store that counts how often the pages of a capture are asked for."""

    def __init__(self, store):
        self._store, self.logs = store, 0

    def __getattr__(self, name):
        self.logs += name == "site_log"
        return getattr(self._store, name)


def test_a_graph_is_made_once_and_again_when_something_was_seen_since(place):
    clock = VirtualClock(NOW)
    graphs = Graphs(clock.now)
    with place.open_store() as real:
        store = Counting(real)
        number, pages = begin(real, NOW)
        real.finish_site_capture(number, stated(3), NOW + 5)
        [capture] = real.site_captures()
        first = graphs.get(lambda: nullcontext(store), capture)
        assert graphs.get(lambda: nullcontext(store), capture) == first
        assert store.logs == 1
        assert json.loads(first)["pages"]["captures"] == [0, 0, 0]
        real.record(Visits.of(np.repeat(pages[1:2], 2), [NOW, NOW + DAY], verdict=[Verdict.UNKNOWN, Verdict.CHANGED]))
        clock.advance_to(NOW + DAY)
        graphs.get(lambda: nullcontext(store), capture)
        assert store.logs == 2


def test_only_some_graphs_are_kept(place):
    graphs = Graphs(lambda: NOW)
    with place.open_store() as real:
        store = Counting(real)
        for number in range(MOST_KEPT + 1):
            begin(real, NOW + number)
        captures = real.site_captures()
        for capture in [*captures, *captures[1:], captures[0]]:
            graphs.get(lambda: nullcontext(store), capture)
        assert store.logs == len(captures) + 1


def test_who_waits_for_a_graph_holds_no_store(place):
    graphs, held, most = Graphs(lambda: NOW), [], []

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
    asked = Asked({"sort": "name", "search": "", "after": None, "limit": 1}, NOW)
    first = answer(Found(table, NOW), asked)
    sorted_by = Names.asked
    assert [one["name"] for one in first["hosts"]] == ["a.example"]
    answer(Found(table, NOW), asked)
    assert Names.asked - sorted_by == 1, "one name for one row, and no more"


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
