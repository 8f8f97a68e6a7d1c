"""What a worker that died leaves behind is brought into a clear state by the next one."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from dataclasses import replace
from itertools import count
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from warcio.archiveiterator import ArchiveIterator

from recrawl.crawl.control import worker_registry
from recrawl.crawl.control.worker_registry import (
    RegisteredWorker,
    WorkerRegistry,
    dead_workers,
    live_workers,
    registered_workers,
    worker_lock,
)
from recrawl.crawl.visit.recorder import Recorder
from recrawl.crawl.visit.scope import HostScope
from recrawl.crawl.visit.visit_machine import VisitDone, VisitTarget
from recrawl.crawl.visit.warc_archive import WarcArchive
from recrawl.crawl.worker import outages
from recrawl.crawl.worker.crawl_worker import WorkerPace
from recrawl.crawl.worker.outages import acknowledged_by, release_dead_workers
from recrawl.detect import ChangeResult, PageState
from recrawl.errors import DiskFullError, InputError, StoreAwayError
from recrawl.formats.warc.warc_check import repair
from recrawl.formats.warc.warc_writer import WarcInfo, WarcWriter
from recrawl.model import Capture, Outcome, Validators, Visit, Visits
from recrawl.schedule.frontier.revisit_scheduler import RevisitScheduler
from recrawl.schedule.policies.fixed_interval import FixedInterval
from recrawl.store.open import open_store
from recrawl.time import MINUTE, VirtualClock, format_duration

START = 1.79e9
INFO = WarcInfo(host="crawler")
PAGES = 6


def capture(url, number=0):
    head = b"HTTP/1.1 200 OK\r\nContent-Type: text/html\r\n\r\n"
    return Capture(url, START + number, 200, head, f"<p>{url} {number}".encode(), b"GET / HTTP/1.1\r\n\r\n")


def visited(page, url, number):
    visit = Visit(page, START + number, Outcome.FETCHED, status=200)
    return VisitDone(VisitTarget(page, 1, url, START), visit, ChangeResult(Outcome.FETCHED), capture(url, number))


def replace_known(one, known):
    return replace(one, target=replace(one.target, known=known))


def urls(folder):
    found = []
    for path in sorted(folder.glob("*.warc.gz")):
        with path.open("rb") as stream:
            for record in ArchiveIterator(stream, check_digests="raise"):
                if record.rec_type == "response":
                    found.append(record.rec_headers["WARC-Target-URI"])
                record.content_stream().read()
    return found


def no_room_at(nth, monkeypatch):
    """Let the disk be full at the nth write to an archive file, and at no other."""
    real, goes = WarcWriter._append, count(1)

    def append(writer, data):
        if next(goes) == nth:
            raise DiskFullError("full")
        return real(writer, data)

    monkeypatch.setattr(WarcWriter, "_append", append)


class Stage(SimpleNamespace):
    """A store with a few pages, and an archive that writes beside it."""

    def url(self, page):
        return f"http://a.example/{page}"

    def keep(self, page, number):
        [kept] = self.archive.write([visited(page, self.url(page), number)])
        return kept

    def acknowledge(self, captures):
        visits = Visits.of([row.page for row in captures], [row.time for row in captures])
        self.store.record(visits, captures=captures)
        self.archive.acknowledged(captures)

    def start_again(self):
        """What the next start makes of the folder."""
        self.writer.close()
        return repair(self.folder, acknowledged_by(self.store))


@pytest.fixture
def stages(tmp_path):
    opened = []

    def make(roll_size=1_000_000):
        place = tmp_path / str(len(opened))
        place.mkdir()
        store = open_store(place / "store.db", create=True, durable=False)
        opened.append(store)
        store.discover([f"http://a.example/{page + 1}" for page in range(PAGES)], START)
        writer = WarcWriter(place / "warc", VirtualClock(START), INFO, roll_size=roll_size, durable=False)
        return Stage(store=store, folder=place / "warc", writer=writer, archive=WarcArchive(writer, store))

    yield make
    for store in opened:
        store.close()


def test_what_nobody_acknowledged_is_cut_off_and_all_else_stays(stages):
    stage = stages()
    stage.acknowledge(stage.keep(1, 1))
    stage.archive.write_auxiliary(capture("http://a.example/robots.txt"))
    stage.keep(2, 2)
    stage.archive.write_auxiliary(capture("http://b.example/robots.txt"))
    stage.archive.write_document("urn:x:statement", START, b"{}")
    stage.keep(3, 3)
    assert urls(stage.folder) == []
    [path] = stage.start_again()
    assert urls(stage.folder) == [stage.url(1), "http://a.example/robots.txt", "http://b.example/robots.txt"]
    with path.open("rb") as stream:
        kinds = [record.rec_type for record in ArchiveIterator(stream)]
    assert kinds == ["warcinfo", "response", "request", "response", "request", "response", "request", "metadata"]


def test_a_file_of_which_nothing_counts_is_gone(stages):
    stage = stages()
    stage.keep(1, 1)
    assert stage.start_again() == []
    assert list(stage.folder.iterdir()) == []


def test_what_another_store_must_have_acknowledged_stays(stages, monkeypatch):
    monkeypatch.setattr("recrawl.crawl.worker.outages._MOST", 3)
    stage = stages()
    for number in range(4):
        stage.keep(1 + number, number)
    stage.start_again()
    assert urls(stage.folder) == [stage.url(1 + number) for number in range(4)]


def test_bytes_are_on_the_disk_before_the_store_knows_of_them(tmp_path, monkeypatch):
    """No test pulls the plug of the machine; this one listens to what is asked of it, and in which order."""
    said = []
    real, lasting = os.fdatasync, os.fsync
    monkeypatch.setattr("recrawl.formats.warc.warc_writer._fdatasync", lambda file: (said.append("synced"), real(file)))
    with open_store(tmp_path / "store.db", create=True) as store:
        store.discover(["http://a.example/1"], START)
        recorded = store.record_ahead

        def record(*rest, **more):
            wait = recorded(*rest, **more)
            said.append("recorded")
            return wait

        monkeypatch.setattr(store, "record_ahead", record)
        with WarcWriter(tmp_path / "warc", VirtualClock(START), INFO) as writer:
            scheduler = RevisitScheduler(FixedInterval(60.0), budget=1.0)
            scheduler.add(store.pages())
            archive = WarcArchive(writer, store)
            recorder = Recorder("one", store, scheduler, HostScope(frozenset(["a.example"])), archive)
            monkeypatch.setattr("os.fsync", lambda file: (said.append("lasting"), lasting(file)))
            recorder.record([visited(1, "http://a.example/1", 1)], START, np.array([START]))
            told = list(said)
    assert told == ["synced", "recorded", "lasting"]


def test_a_file_without_anything_open_gets_its_name_as_ever(stages):
    stage = stages()
    stage.acknowledge(stage.keep(1, 1))
    stage.writer.close()
    assert [path.name for path in stage.folder.iterdir()] == [stage.writer.path.name]


steps = st.lists(st.sampled_from(["keep", "aside", "acknowledge"]), max_size=25)
one_folder_each = settings(suppress_health_check=[HealthCheck.function_scoped_fixture], deadline=None, max_examples=40)


@one_folder_each
@given(steps=steps, roll_size=st.sampled_from([1, 600, 1_000_000]), cut=st.floats(0.0, 1.0))
def test_an_acknowledged_visit_and_its_record_are_both_there_or_both_not(stages, steps, roll_size, cut):
    """Whatever was done, and wherever within the last record the process was killed."""
    stage = stages(roll_size)
    kept, expected, asides = [], [], []
    for number, step in enumerate(steps):
        if step == "keep":
            kept += stage.keep(1 + number % PAGES, number)
        elif step == "aside":
            asides.append(f"http://a.example/robots.txt?{number}")
            stage.archive.write_auxiliary(capture(asides[-1]))
        elif kept:
            stage.acknowledge(kept)
            expected += [stage.url(row.page) for row in kept]
            kept = []
    if kept:  # the last write was cut
        path = stage.writer.path.with_name(stage.writer.path.name + ".open")
        data = path.read_bytes()
        stage.writer.close()
        last = kept[-1].warc_offset
        path.write_bytes(data[: last + int(cut * (len(data) - last))])
    stage.start_again()
    found = urls(stage.folder)
    assert [url for url in found if "robots" not in url] == expected
    assert not list(stage.folder.glob("*.open"))
    for row in stage.store.captures(stage.store.pages().id):
        with (stage.folder / row.warc_file).open("rb") as stream:
            stream.seek(row.warc_offset)
            record = next(iter(ArchiveIterator(stream)))
        assert record.rec_headers["WARC-Target-URI"] == stage.url(row.page)


def test_a_batch_that_was_kept_is_not_written_again_when_it_is_tried_again(stages, monkeypatch):
    stage = stages()
    scheduler = RevisitScheduler(FixedInterval(60.0), budget=1.0)
    scheduler.add(stage.store.pages())
    recorder = Recorder("one", stage.store, scheduler, HostScope(frozenset(["a.example"])), stage.archive)
    batch = [visited(page, stage.url(page), page) for page in (1, 2, 3)]
    ready = np.full(3, START)
    real, failures = stage.store.record_ahead, [DiskFullError("full"), DiskFullError("full")]

    def record(*arguments, **named):
        if failures:
            raise failures.pop()
        return real(*arguments, **named)

    monkeypatch.setattr(stage.store, "record_ahead", record)
    for _ in range(2):
        with pytest.raises(DiskFullError):
            recorder.record(batch, START, ready)
    recorder.record(batch, START, ready)
    stage.writer.close()
    assert urls(stage.folder) == [stage.url(page) for page in (1, 2, 3)]
    assert len(stage.store.captures(np.array([1, 2, 3]))) == 3


def test_what_a_full_disk_kept_out_of_a_batch_is_written_in_full_the_next_time(stages, monkeypatch):
    """The page has a version already, and the batch two more: none of them may be told as a repetition of itself."""
    monkeypatch.setattr("recrawl.formats.warc.warc_writer._AT_ONCE", 1)
    stage = stages()
    known = PageState(Validators(digest=b"before"))
    batch = [replace_known(visited(page, stage.url(page), page), known) for page in (1, 2, 3)]
    no_room_at(2, monkeypatch)
    kept = []
    with pytest.raises(DiskFullError):
        kept.extend(stage.archive.write(batch))
    assert [row.page for rows in kept for row in rows] == [1]
    kept += stage.archive.write(batch[1:])
    stage.acknowledge([row for rows in kept for row in rows])
    stage.writer.close()
    assert urls(stage.folder) == [stage.url(page) for page in (1, 2, 3)], "responses, not revisits"


def test_what_is_kept_aside_is_told_once_however_often_it_was_tried(stages, monkeypatch):
    stage, told = stages(), []
    archive = WarcArchive(stage.writer, stage.store, lambda capture, hops: told.append((capture.status, hops)))
    no_room_at(1, monkeypatch)
    with pytest.raises(DiskFullError):
        archive.write_auxiliary(capture("http://a.example/robots.txt"), "P")
    assert told == []
    archive.write_auxiliary(capture("http://a.example/robots.txt"), "P")
    archive.write_auxiliary(Capture("http://b.example/robots.txt", START, 0, error="refused"), "P")
    assert told == [(200, "P"), (0, "P")]
    stage.writer.close()
    assert urls(stage.folder) == ["http://a.example/robots.txt"]


def test_a_store_that_fails_within_a_batch_leaves_nothing_to_repeat(stages, monkeypatch):
    stage = stages()
    known = PageState(Validators(digest=b"before"))
    batch = [replace_known(visited(page, stage.url(page), page), known) for page in (1, 2)]
    real, failures = stage.store.captures, [None, StoreAwayError("away")]

    def captures(pages):
        if failures and (fault := failures.pop(0)):
            raise fault
        return real(pages)

    monkeypatch.setattr(stage.store, "captures", captures)
    with pytest.raises(StoreAwayError):
        list(stage.archive.write(batch))
    stage.acknowledge([row for rows in stage.archive.write(batch) for row in rows])
    stage.writer.close()
    assert urls(stage.folder) == [stage.url(page) for page in (1, 2)]


def test_after_a_run_that_failed_the_next_one_gives_its_files_their_names(stages):
    stage = stages()
    stage.acknowledge(stage.keep(1, 1))
    stage.keep(2, 2)
    stage.archive.give_up()
    stage.acknowledge(stage.keep(3, 3))
    stage.writer.close()
    assert urls(stage.folder) == [stage.url(3)]
    stage.start_again()
    assert sorted(urls(stage.folder)) == [stage.url(1), stage.url(3)], "what was given up is cut off"


# -- who is at work -----------------------------------------------------------------------------------

WORKER = """
import sys, time
from pathlib import Path
from recrawl.crawl.control.worker_registry import worker_lock
with worker_lock(Path(sys.argv[1]), "other"):
    print("here", flush=True)
    time.sleep(60)
"""


@pytest.fixture
def other(tmp_path):
    with subprocess.Popen([sys.executable, "-c", WORKER, str(tmp_path)], stdout=subprocess.PIPE) as process:
        assert process.stdout.readline() == b"here\n"
        yield process
        process.kill()


def test_a_worker_is_at_work_until_it_dies(tmp_path, other):
    with worker_lock(tmp_path, "me"):
        assert live_workers(tmp_path) == ["me", "other"]
        assert list(dead_workers(tmp_path)) == []
        os.kill(other.pid, signal.SIGKILL)
        other.wait()
        assert live_workers(tmp_path) == ["me"]
        assert list(dead_workers(tmp_path)) == ["other"]
        assert list(dead_workers(tmp_path)) == []
    assert live_workers(tmp_path) == []
    assert list(dead_workers(tmp_path)) == []


def test_a_worker_that_ends_by_an_error_may_hold_leases(tmp_path):
    with pytest.raises(ZeroDivisionError), worker_lock(tmp_path, "me"):
        _ = 1 / 0
    assert list(dead_workers(tmp_path)) == ["me"]


def test_a_folder_that_cannot_be_written_is_told(tmp_path):
    (tmp_path / "workers").write_text("not a folder")
    with pytest.raises(InputError, match="cannot be written"), worker_lock(tmp_path, "me"):
        pass


def test_what_the_dead_held_goes_back_and_their_hosts_rest(tmp_path, other):
    with open_store(tmp_path / "store.db", create=True, durable=False) as store:
        store.discover(["http://a.example/", "http://b.example/", "http://c.example/"], START)
        store.set_host(np.array([1]), delay=np.array([20.0]))
        assert len(store.lease("other", START, 2, ttl=900.0)) == 2
        WorkerRegistry(store, "other").report(RegisteredWorker("other", START, START))
        assert release_dead_workers(store, tmp_path, START, 5.0) == []
        other.kill()
        other.wait()
        assert release_dead_workers(store, tmp_path, START, 5.0) == ["other"]
        assert len(store.held("other")) == 0
        assert registered_workers(store.controls()) == []
        assert store.hosts().ready_at.tolist()[:2] == [START + 20.0, START + 5.0]
        assert len(store.lease("me", START + 1.0, 10, ttl=900.0)) == 1
        assert len(store.lease("me", START + 6.0, 10, ttl=900.0)) == 1
        assert release_dead_workers(store, tmp_path, START, 5.0) == []


def test_the_page_about_recovery_names_the_figures_of_the_code():
    text = (Path(__file__).parents[2] / "docs" / "explanation" / "recovery.md").read_text(encoding="utf-8")
    pace = WorkerPace()
    assert f"{pace.batch} of them, or those of {pace.linger:g} s" in text
    assert f"a lease lasts {pace.lease_time / MINUTE:g} minutes" in text
    assert f"nothing new from one for {worker_registry.SILENCE:g} s" in text
    for patience, words in (
        (outages.STORAGE_RETRY, "1 s, 2 s, 4 s … 60 s"),
        (outages.OFFLINE_RETRY, "5 s, 10 s … 5 min"),
    ):
        assert words in text
        assert words.startswith(f"{patience.first:g} s, {patience.first * patience.factor:g} s")
        assert words.endswith(format_duration(patience.longest)) or f"{patience.longest:g} s" in words
