"""Answers that take long are worked out once, behind the scenes, and kept."""

from __future__ import annotations

import math
import threading
from concurrent.futures import ThreadPoolExecutor

import pytest

from recrawl.errors import InputError
from recrawl.web.dashboard.stale_cache import StaleCache, StorePool, WorkerPool


class Clock:
    """A clock that stands until it is set."""

    def __init__(self) -> None:
        self.now = 100.0

    def __call__(self) -> float:
        return self.now


@pytest.fixture
def clock():
    return Clock()


def settled(kept):
    """What is told once nothing is worked out any more."""
    task = kept.begin()
    if task is not None:
        task.result(60)
    return kept.get()


def test_an_answer_is_kept_until_it_is_old(clock):
    calls = []
    kept = StaleCache(
        lambda: calls.append(1) or len(calls), fresh=10.0, clock=clock, lease_pool=WorkerPool(), patience=60.0
    )
    assert (kept.get().value, kept.get().value, kept.get().at) == (1, 1, 100.0)
    clock.now = 111.0
    assert settled(kept).value == 2
    assert (kept.get().at, len(calls)) == (111.0, 2)


def test_nobody_waits_for_the_second_answer(clock):
    go, calls = threading.Event(), []

    def work():
        if calls:
            assert go.wait(60)
        calls.append(1)
        return len(calls)

    kept = StaleCache(work, fresh=10.0, clock=clock, lease_pool=WorkerPool(), patience=60.0)
    assert kept.get().value == 1
    clock.now = 200.0
    for _ in range(5):
        found = kept.get()
        assert (found.value, found.at, found.running) == (1, 100.0, True)
    task = kept.begin()
    go.set()
    task.result(60)
    assert (kept.get().value, len(calls)) == (2, 2)


def test_the_first_waits_a_moment_only(clock):
    go = threading.Event()
    kept = StaleCache(lambda: go.wait(60), fresh=10.0, clock=clock, lease_pool=WorkerPool(), patience=0.0)
    found = kept.get()
    assert (found.value, found.running, math.isnan(found.at)) == (None, True, True)
    go.set()
    assert settled(kept).value is True


def test_dear_answers_are_kept_for_longer(clock):
    def work():
        clock.now += 30.0
        return clock.now

    kept = StaleCache(work, fresh=10.0, clock=clock, lease_pool=WorkerPool(), patience=60.0)
    assert kept.get().value == 130.0
    clock.now = 130.0 + 10 * 30.0 - 1.0
    assert kept.begin() is None
    clock.now += 2.0
    assert settled(kept).value == clock.now


def test_an_error_is_told_beside_what_was_known(clock):
    answers = iter([7, InputError("There is no page.", "Add one.")])

    def work():
        found = next(answers)
        if isinstance(found, Exception):
            raise found
        return found

    kept = StaleCache(work, fresh=10.0, clock=clock, lease_pool=WorkerPool(), patience=60.0)
    assert kept.get().value == 7
    clock.now = 200.0
    found = settled(kept)
    assert (found.value, found.at, found.error) == (7, 100.0, "There is no page. Add one.")


def test_a_bug_is_raised_where_somebody_sees_it(clock):
    def work():
        raise ZeroDivisionError

    kept = StaleCache(work, fresh=10.0, clock=clock, lease_pool=WorkerPool(), patience=60.0)
    with pytest.raises(ZeroDivisionError):
        kept.get()
    assert kept.get().value is None  # and not again until it is tried again


def test_no_more_than_so_many_are_at_work():
    lease_pool, go, begun = WorkerPool(2), threading.Event(), threading.Semaphore(0)
    running = []

    def work():
        running.append(1)
        begun.release()
        assert go.wait(60)

    tasks = [lease_pool.begin(work) for _ in range(4)]
    assert begun.acquire(timeout=60)
    assert begun.acquire(timeout=60)
    assert len(running) == 2
    go.set()
    for task in tasks:
        task.result(60)
    assert len(running) == 4


class FakeStore:
    """A store as far as opening and closing go."""

    def __init__(self) -> None:
        self.closed = False

    def close(self) -> None:
        self.closed = True


def test_stores_are_handed_out_one_by_one_and_used_again():
    opened = []

    def open_one():
        opened.append(FakeStore())
        return opened[-1]

    stores = StorePool(open_one)

    def elsewhere():
        with stores.one() as store:
            return store

    with stores.one() as first:
        with stores.one() as same, ThreadPoolExecutor(1) as threads:
            assert same is first
            assert threads.submit(elsewhere).result(120) is not first
        with stores.one() as same:
            assert same is first
    with stores.one() as again:
        assert again is first, "the one used last goes first"
    assert len(opened) == 2
    with pytest.raises(ZeroDivisionError), stores.one():
        raise ZeroDivisionError
    stores.close()
    assert all(store.closed for store in opened)


def test_in_the_end_what_is_under_way_is_waited_for_and_nothing_more_is_begun():
    lease_pool, go, begun, done = WorkerPool(1), threading.Event(), threading.Event(), []

    def work():
        begun.set()
        assert go.wait(60)
        done.append("first")

    lease_pool.begin(work)
    assert begun.wait(60)
    lease_pool.begin(lambda: done.append("second"))
    assert not lease_pool.end(0.0)
    go.set()
    assert lease_pool.end(60.0)
    assert done == ["first"]
