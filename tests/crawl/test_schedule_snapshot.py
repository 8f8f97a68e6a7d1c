"""A start goes on from the last fit: its answers are those of a replay, and it replays where they might differ."""

import os
import pickle
import shutil
import zlib

import numpy as np
import pytest

from recrawl.crawl.worker import schedule_snapshot
from recrawl.crawl.worker.inline_fit import ScheduleFit
from recrawl.crawl.worker.schedule_snapshot import ScheduleSnapshot
from recrawl.model import Outcome, Verdict, Visit, Visits
from recrawl.schedule.frontier.revisit_scheduler import NewPageQueue, RevisitScheduler
from recrawl.schedule.policies.fixed_interval import FixedInterval
from recrawl.schedule.policies.valued import ValuedPolicy
from recrawl.store.open import open_store
from recrawl.store.store_values import ClaimColumns
from recrawl.time import DAY, HOUR

START = 1.79e9
LATE = HOUR
PAGES = 60


@pytest.fixture
def store(tmp_path, empty_store):
    with open_store(shutil.copy(empty_store, tmp_path / "s.db"), durable=False) as opened:
        opened.discover([f"http://h{number % 3}.example/{number}" for number in range(PAGES)], START)
        yield opened


@pytest.fixture
def file(tmp_path):
    return tmp_path / "state" / "schedule.snapshot"


def visit_daily(store, days, seed=0):
    """Every page once on each of these days; some change, some fail."""
    rng = np.random.default_rng([seed, *days])
    page = store.pages().id
    for day in days:
        drawn = rng.random(len(page))
        rows = [
            Visit(
                number,
                START + day * DAY + 10.0 * number,
                Outcome.UNREACHABLE if one > 0.95 else Outcome.FETCHED,
                verdict=Verdict.UNKNOWN if one > 0.95 else Verdict.CHANGED if one < 0.3 else Verdict.UNCHANGED,
            )
            for number, one in zip(page.tolist(), drawn.tolist(), strict=True)
        ]
        store.record(Visits.from_rows(rows))


def new_scheduler(policy=None):
    queue = NewPageQueue(0.5, HOUR)
    return RevisitScheduler(ValuedPolicy() if policy is None else policy, budget=20 / DAY, new_page_queue=queue)


def fitted(store, now, file=None, *, settings="as ever", policy=None):
    """A scheduler that was fitted, the fit, and the time since which visits were read."""
    scheduler = new_scheduler(policy)
    fit = ScheduleFit(store, scheduler, LATE, ScheduleSnapshot(file, settings) if file else None)
    read, visits = [], store.visits
    store.visits = lambda **which: read.append(which["since"]) or visits(**which)
    try:
        fit.fit(fit.catch_up(now), now)
    finally:
        store.visits = visits
    return scheduler, fit, read[0]


def answers(store, scheduler, now):
    page = store.pages().id
    return scheduler.due(page, now), scheduler.policy.urgency(page, now), scheduler.policy.price


def saved(store, now, file):
    _, fit, _ = fitted(store, now, file)
    assert fit.save()


def assert_the_same(store, one, other, now):
    for mine, replayed in zip(answers(store, one, now), answers(store, other, now), strict=True):
        np.testing.assert_array_equal(mine, replayed)


def assert_replays(store, now, file, **how):
    """All visits are read, and the answers are those of a start without a file."""
    scheduler, _, since = fitted(store, now, file, **how)
    assert since is None
    assert_the_same(store, scheduler, fitted(store, now)[0], now)


def test_a_start_reads_what_is_new_and_answers_as_after_a_replay(store, file):
    visit_daily(store, range(12))
    now = START + 12 * DAY
    saved(store, now, file)
    store.discover([f"http://h1.example/new/{number}" for number in range(5)], now)
    visit_daily(store, range(12, 15))
    later = START + 15 * DAY
    scheduler, fit, since = fitted(store, later, file)
    assert since == now - LATE
    assert_the_same(store, scheduler, fitted(store, later)[0], later)
    assert fit.save()
    scheduler, _, since = fitted(store, later + HOUR, file)
    assert since == later - LATE
    assert_the_same(store, scheduler, fitted(store, later + HOUR)[0], later + HOUR)


def test_a_state_saved_within_a_day_answers_as_a_replay(store, file):
    visit_daily(store, range(4))
    now = START + 3 * DAY + 300.0
    saved(store, now, file)
    later = START + 4 * DAY
    scheduler, _, since = fitted(store, later, file)
    assert since == now - LATE
    assert_the_same(store, scheduler, fitted(store, later)[0], later)


def test_visits_recorded_late_by_others_are_read(store, file):
    visit_daily(store, range(5))
    now = START + 5 * DAY
    saved(store, now, file)
    page = int(store.pages().id[0])
    store.record(Visits.from_rows([Visit(page, now - 60.0, Outcome.FETCHED, verdict=Verdict.CHANGED)]))
    scheduler, _, since = fitted(store, now + HOUR, file)
    assert since == now - LATE
    assert_the_same(store, scheduler, fitted(store, now + HOUR)[0], now + HOUR)


@pytest.mark.parametrize("what", ["added", "reclassified", "importance", "gone from the pages", "settings"])
def test_where_the_past_changed_all_visits_are_read(store, file, what):
    visit_daily(store, range(6))
    now = START + 6 * DAY
    saved(store, now, file)
    page = int(store.pages().id[7])
    settings = "as ever"
    when = START + DAY + 10.0 * page
    if what == "added":
        store.record(Visits.from_rows([Visit(page, when + 5.0, Outcome.FETCHED, verdict=Verdict.CHANGED)]))
    elif what == "reclassified":
        [(before,)] = [store.visits(pages=np.array([page]), since=when, until=when).verdict]
        other = Verdict.UNCHANGED if before == Verdict.CHANGED else Verdict.CHANGED
        store.record(Visits.from_rows([Visit(page, when, Outcome.FETCHED, verdict=other)]))
    elif what == "settings":
        settings = "others"
    else:
        store.set_importance(np.array([page]), np.array([0.0 if what.startswith("gone") else 3.0]))
    assert_replays_all(store, now + HOUR, file, settings)


def assert_replays_all(store, now, file, settings):
    scheduler, _, since = fitted(store, now, file, settings=settings)
    assert since is None
    wanted = store.pages().id[store.pages().importance > 0]
    replayed = fitted(store, now)[0]
    np.testing.assert_array_equal(scheduler.due(wanted, now), replayed.due(wanted, now))


def test_a_store_restored_from_before_the_snapshot_is_replayed(store, file, tmp_path):
    visit_daily(store, range(5))
    shutil.copy(tmp_path / "s.db", tmp_path / "backup.db")
    now = START + 5 * DAY + 10 * HOUR
    visit_daily(store, [5])
    saved(store, now, file)
    with open_store(tmp_path / "backup.db", durable=False) as restored:
        assert_replays(restored, now, file)


@pytest.mark.parametrize("damage", ["empty", "truncated", "a bit of an array", "a bit of the pickle", "missing"])
def test_a_damaged_file_is_not_used(store, file, damage):
    visit_daily(store, range(5))
    now = START + 5 * DAY
    saved(store, now, file)
    data = bytearray(file.read_bytes())
    if damage == "missing":
        file.unlink()
    else:
        if damage == "empty":
            data = bytearray()
        elif damage == "truncated":
            del data[len(data) // 2 :]
        else:
            data[200 if damage.endswith("array") else -9] ^= 4
        file.write_bytes(data)
    assert_replays(store, now + HOUR, file)


class Intruder:
    """Unpickling it would create a file."""

    def __init__(self, name):
        self.name = name

    def __reduce__(self):
        return os.mkdir, (self.name,)


@pytest.mark.parametrize("what", ["a call", "a function of a pure package", "a class below a class"])
def test_a_file_cannot_run_code(store, file, tmp_path, what):
    visit_daily(store, range(3))
    now = START + 3 * DAY
    saved(store, now, file)
    loot = tmp_path / "loot"
    content = {
        "a call": pickle.dumps(Intruder(str(loot)), protocol=5),
        "a function of a pure package": b"crecrawl.model.arrays\noffsets_of\n.",
        "a class below a class": b"\x80\x04\x8c\rrecrawl.model\x8c\x10Visits.from_rows\x93.",
    }[what]
    magic, head = schedule_snapshot._MAGIC, schedule_snapshot._HEAD
    key = head.unpack(file.read_bytes()[len(magic) : len(magic) + head.size])[0]
    file.write_bytes(magic + head.pack(key, zlib.crc32(content), 0, len(content)) + content)
    with file.open("rb") as opened, pytest.raises(pickle.UnpicklingError):
        schedule_snapshot._read(opened, key, (None,))
    assert_replays(store, now, file)
    assert not loot.exists()


def test_failures_are_remembered(store, file):
    visit_daily(store, range(3))
    page = store.pages().id
    now = START + 3 * DAY
    rows = [Visit(int(page[0]), now + 10.0 * number, Outcome.UNREACHABLE, status=-2) for number in range(3)]
    store.record(Visits.from_rows(rows))
    saved(store, now + HOUR, file)
    scheduler, _, since = fitted(store, now + 2 * HOUR, file)
    assert since == now
    replayed = fitted(store, now + 2 * HOUR)[0]
    assert scheduler.due(page[:1], now).tolist() == replayed.due(page[:1], now).tolist()
    assert scheduler._failing == replayed._failing
    assert scheduler._failing[int(page[0])].times == 3


def test_a_policy_without_snapshots_replays(store, file):
    visit_daily(store, range(3))
    now = START + 3 * DAY
    _, fit, _ = fitted(store, now, file, policy=FixedInterval(HOUR))
    assert not fit.save()
    assert not file.exists()
    assert fitted(store, now, file, policy=FixedInterval(HOUR))[2] is None


def test_a_full_disk_ends_no_fit(store, file, monkeypatch):
    visit_daily(store, range(3))
    _, fit, _ = fitted(store, START + 3 * DAY, file)

    def full(*_):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(schedule_snapshot, "_write", full)
    assert not fit.save()
    assert not file.exists()


def test_signals_that_other_workers_received_reach_the_next_fit(store):
    visit_daily(store, range(3))
    page = store.pages().id[:4]

    def claim(at, lastmod):
        store.add_claims(
            ClaimColumns(page, np.full(4, at), ["sitemap"] * 4, np.full(4, lastmod), np.zeros(4), np.full(4, -1.0))
        )

    now = START + 3 * DAY
    claim(now - HOUR, now - 2 * DAY)
    scheduler, fit, _ = fitted(store, now)
    signals = scheduler.policy._learning.signals
    rows, begin = np.arange(4), np.full(4, START)
    assert signals.count(rows, begin, np.full(4, now + DAY)).tolist() == [0, 0, 0, 0]
    claim(now + HOUR, now)
    fit.fit(fit.catch_up(now + 2 * HOUR), now + 2 * HOUR)
    assert signals.count(rows, begin, np.full(4, now + DAY)).tolist() == [1, 1, 1, 1]
    fit.fit(fit.catch_up(now + 3 * HOUR), now + 3 * HOUR)
    assert signals.count(rows, begin, np.full(4, now + DAY)).tolist() == [1, 1, 1, 1]
