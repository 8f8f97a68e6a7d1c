"""Captures of whole sites: begun once, grown step by step in the transaction of the visit, finished once."""

import numpy as np
import pytest

from recrawl.errors import StoreError
from recrawl.model import Outcome, Verdict, Visits
from recrawl.store import FoundPages, SiteProgress, SiteStep, open_store
from recrawl.store.store_values import SiteCounts

LARGEST = 2**63 - 1
NONE = FoundPages(np.empty(0, np.int64), np.empty(0, np.int64), np.empty(0), np.empty(0))


def found(pages, via=-1):
    pages = np.asarray(pages, np.int64)
    return FoundPages(pages, np.full(len(pages), via), 0.5 + np.arange(len(pages)), np.ones(len(pages)))


def begin(store, now=10.0):
    ids = store.discover(["http://a.example/", "http://a.example/b", "http://a.example/c"], now, importance=0.0)
    capture = store.begin_site_capture("http://a.example/", '{"x": 1}', delay=2.0, now=now, known=found(ids[:1]))
    return capture, ids


def visit(page, time, outcome=Outcome.FETCHED):
    return Visits.of([page], [time], outcome=outcome)


def test_a_capture_is_read_back_as_it_was_recorded(location):
    with open_store(location) as store:
        capture, ids = begin(store)
        first = SiteStep(0, 0, revisit=False, time=11.0, outcome=Outcome.FETCHED, verdict=Verdict.UNKNOWN)
        more = found(ids[1:], via=0)
        store.record(visit(ids[0], 11.0), site=SiteProgress(capture, first, more, known=1))
        again = SiteStep(1, 0, revisit=True, time=13.0, outcome=Outcome.NOT_MODIFIED, verdict=Verdict.UNCHANGED)
        store.record(visit(ids[0], 13.0), site=SiteProgress(capture, again, NONE, known=3))
    with open_store(location) as store:
        log = store.site_log(capture)
        assert log.found.page.tolist() == ids.tolist()
        assert log.found.via.tolist() == [-1, 0, 0]
        assert log.after.tolist() == [0, 1, 1]
        assert log.found.rate.tolist() == [0.5, 0.5, 1.5]
        assert log.steps == [first, again]
        assert store.site_steps(capture, 1) == [first, again]
        assert store.site_steps(capture, 2) == [first]
        assert store.site_steps(capture + 1, 1) == []
        assert store.site_counts(capture) == SiteCounts(pages=3, visited=1, seen_again=1, last=13.0)
        assert store.site_counts(capture + 1) == SiteCounts(0, 0, 0, -np.inf)
        [noted] = store.site_captures()
        assert (noted.id, noted.site, noted.delay, noted.started) == (capture, "http://a.example/", 2.0, 10.0)
        assert not noted.is_finished
        store.finish_site_capture(capture, '{"pages": 3}', 20.0)
        [noted] = store.site_captures()
        assert noted.is_finished
        assert (noted.finished, noted.statement) == (20.0, '{"pages": 3}')


def test_several_captures_of_one_site_stay_apart(store):
    first, ids = begin(store, 10.0)
    second, _ = begin(store, 11.0)
    assert first != second
    step = SiteStep(0, 0, revisit=False, time=12.0, outcome=Outcome.FETCHED, verdict=Verdict.UNKNOWN)
    store.record(visit(ids[0], 12.0), site=SiteProgress(second, step, NONE, known=1))
    assert store.site_log(first).steps == []
    assert store.site_log(second).steps == [step]


def test_doing_the_same_again_adds_nothing(store):
    capture, ids = begin(store)
    assert begin(store)[0] == capture
    step = SiteStep(0, 0, revisit=False, time=12.0, outcome=Outcome.FETCHED, verdict=Verdict.UNKNOWN)
    for _ in range(2):
        store.record(visit(ids[0], 12.0), site=SiteProgress(capture, step, found(ids[1:]), known=1))
    log = store.site_log(capture)
    assert log.steps == [step]
    assert len(log.found) == 3
    assert len(store.visits()) == 1


def test_a_step_that_somebody_else_made_is_refused_and_nothing_is_recorded(store):
    capture, ids = begin(store)
    mine, theirs = (SiteStep(0, 0, revisit=False, time=time, outcome=0, verdict=0) for time in (12.0, 12.5))
    store.record(visit(ids[0], 12.5), site=SiteProgress(capture, theirs, NONE, known=1))
    with pytest.raises(StoreError, match="Another process"):
        store.record(visit(ids[0], 12.0), site=SiteProgress(capture, mine, found(ids[1:]), known=1))
    assert store.site_log(capture).steps == [theirs]
    assert len(store.site_log(capture).found) == 1
    assert store.visits().time.tolist() == [12.5]


def test_captures_are_told_by_number_and_the_latest_by_screens(store):
    numbers = [begin(store, now)[0] for now in (10.0, 11.0, 12.0)]
    first, second, third = numbers

    def told(**which):
        return [one.id for one in store.site_captures(**which)]

    assert told() == numbers
    assert told(only=np.array([third, first])) == [first, third]
    assert told(only=np.array([99])) == []
    assert told(only=np.empty(0, np.int64)) == []
    assert store.latest_site_captures(LARGEST, 2) == [third, second]
    assert store.latest_site_captures(second, 2) == [first]
    assert store.latest_site_captures(first, 2) == []
