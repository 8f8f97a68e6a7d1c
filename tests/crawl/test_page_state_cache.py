"""What a worker remembers of pages is what the store would tell it."""

from __future__ import annotations

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from recrawl.crawl.visit.recorder import PageStateCache, Recorder, recall
from recrawl.crawl.visit.scope import HostScope
from recrawl.crawl.visit.visit_machine import VisitDone, VisitTarget, visit_of
from recrawl.crawl.visit.warc_archive import NoArchive
from recrawl.detect import PageState, classify_change
from recrawl.model import Capture, Validators
from recrawl.schedule.frontier.revisit_scheduler import RevisitScheduler
from recrawl.schedule.policies.fixed_interval import FixedInterval
from recrawl.store.open import open_store

URL = "http://one.example/"
HEAD = b"HTTP/1.1 200 OK\r\nContent-Type: text/html\r\n\r\n"


class Reader:
    """One page, visited again and again by one recorder."""

    def __init__(self, store):
        self.store = store
        scheduler = RevisitScheduler(FixedInterval(10.0), budget=1.0)
        self.recorder = Recorder("one", store, scheduler, HostScope(frozenset()), NoArchive())
        store.discover([URL], 0.0)
        scheduler.add(store.pages())

    def visit(self, time, links, *, status=200):
        leased = self.store.lease("one", time, 1, ttl=60.0)
        [known] = self.recorder.recall(leased, time)
        assert known == recall(self.store, leased.page, leased.validators)[0]
        body = "".join(f"<a href=/{link}>{link}</a> " for link in links).encode() + str(time).encode()
        head = HEAD.replace(b"200", str(status).encode())
        capture = Capture(URL, time, status, head, body)
        judgement = classify_change(capture, known)
        page = int(leased.page[0])
        target = VisitTarget(page, int(leased.host[0]), URL, float(leased.due[0]), known)
        visited = VisitDone(target, visit_of(page, capture, judgement), judgement, capture)
        self.recorder.record([visited], time, np.array([time]))
        self.store.reschedule(leased.page, np.array([time]))
        return judgement

    def links(self):
        [page] = [self.store.find(URL).id]
        return self.store.outlinks(np.array([page]))


@settings(max_examples=25, deadline=None)
@given(st.lists(st.tuples(st.sets(st.sampled_from("abc")), st.sampled_from([200, 200, 200, 404, 503])), max_size=8))
def test_it_says_what_the_store_says(tmp_path_factory, story):
    with open_store(str(tmp_path_factory.mktemp("memory") / "store.db"), create=True, durable=False) as store:
        reader, last, ever = Reader(store), None, set()
        for number, (links, status) in enumerate(story):
            judgement = reader.visit(10.0 + number, sorted(links), status=status)
            if status == 200:
                if last is not None:
                    assert judgement.new_internal == len(links - ever)
                    assert judgement.added_internal == len(links - last)
                last, ever = links, ever | links
            elif status == 404:
                last = set()
        page = np.array([store.find(URL).id])
        [known] = recall(store, page, store.validators(page))
        assert known.links_last == {f"example,one)/{link}" for link in last or ()}
        assert known.links_ever == {f"example,one)/{link}" for link in ever}


def test_links_that_stay_are_not_written_again(tmp_path):
    with open_store(str(tmp_path / "store.db"), create=True) as store:
        reader = Reader(store)
        reader.visit(10.0, "ab")
        reader.visit(20.0, "ab")
        assert reader.links().last_seen.tolist() == [10.0, 10.0]
        reader.visit(30.0, "b")
        reader.visit(40.0, "b")
        assert sorted(reader.links().last_seen.tolist()) == [10.0, 30.0]
        assert reader.visit(50.0, "ab").added_internal == 1


def known(links, etag="", fingerprint=b""):
    return PageState(
        Validators(etag), links_last=frozenset(links), links_ever=frozenset(links), fingerprint=fingerprint
    )


def test_what_another_worker_saw_meanwhile_is_not_taken_for_known():
    memory = PageStateCache()
    memory.remember(7, known("ab", etag="old"))
    assert memory.recall(7, Validators("old")).links_last == frozenset("ab")
    assert memory.recall(7, Validators("new")) is None
    assert memory.recall(8, Validators()) is None
    memory.forget(7)
    assert memory.recall(7, Validators("old")) is None


def test_the_longest_unused_is_forgotten_first():
    memory = PageStateCache(most=30)
    for page in range(3):
        memory.remember(page, known("abcd"))  # 8 each, as it is counted
    memory.recall(0, Validators())
    memory.remember(3, known("abcd"))
    assert [page for page in range(4) if memory.recall(page, Validators())] == [0, 2, 3]
    memory.remember(4, known("", fingerprint=bytes(10_000)))
    assert len(memory) == 0
