"""Visits that are recorded ahead: what takes the processor first, then, in a thread if need be, the wait."""

import errno
import os
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest

from recrawl.errors import DiskFullError, StoreError
from recrawl.model import Outcome, Visit, Visits
from recrawl.store.open import open_store

START = 1_700_000_000.0


def visits(pages, time=START):
    return Visits.from_rows(Visit(page, time, Outcome.FETCHED) for page in pages.tolist())


@pytest.fixture
def synced(monkeypatch):
    """Files that somebody waited for."""
    said, real = [], os.fsync
    monkeypatch.setattr("os.fsync", lambda file: (said.append(os.fstat(file).st_ino), real(file))[1])
    return said


def test_it_is_there_when_both_are_done(store):
    pages = store.discover(["http://a.example/1", "http://a.example/2"], START)
    wait = store.record_ahead(visits(pages), due=np.full(2, START + 60.0))
    with ThreadPoolExecutor(1) as aside:
        aside.submit(wait).result()
    assert store.visits().page.tolist() == pages.tolist()
    assert store.next_due() == START + 60.0


def test_a_mistake_is_told_and_leaves_nothing(store):
    pages = store.discover(["http://a.example/1"], START)
    with pytest.raises(ValueError, match="due has 2 entries"):
        store.record_ahead(visits(pages), due=np.zeros(2))()
    assert len(store.visits()) == 0


@pytest.mark.parametrize("through", ["recrawl.db", "link.db"])
def test_the_log_of_the_file_is_waited_for_wherever_its_name_leads(tmp_path, synced, through):
    real = tmp_path / "far" / "recrawl.db"
    real.parent.mkdir()
    (tmp_path / "link.db").symlink_to(real)
    with open_store(real if through == "recrawl.db" else tmp_path / through, create=True) as store:
        wait = store.record_ahead(visits(store.discover(["http://a.example/1"], START)))
        synced.clear()
        wait()
        assert synced == [real.with_name("recrawl.db-wal").stat().st_ino]


def test_one_that_need_not_last_waits_for_nothing(tmp_path, synced):
    with open_store(tmp_path / "recrawl.db", create=True, durable=False) as store:
        wait = store.record_ahead(visits(store.discover(["http://a.example/1"], START)))
        synced.clear()
        wait()
        assert synced == []
        assert len(store.visits()) == 1


@pytest.mark.parametrize(("number", "fault"), [(errno.EIO, StoreError), (errno.ENOSPC, DiskFullError)])
def test_a_disk_that_failed_once_is_not_believed_about_what_it_should_have_kept(tmp_path, monkeypatch, number, fault):
    def tired(_file):
        raise OSError(number, "tired")

    with open_store(tmp_path / "recrawl.db", create=True) as store:
        pages = store.discover(["http://a.example/1"], START)
        wait = store.record_ahead(visits(pages))
        with monkeypatch.context() as patch:
            patch.setattr("os.fsync", tired)
            with pytest.raises(fault):
                wait()
        log = tmp_path / "recrawl.db-wal"
        before = log.stat().st_size
        store.record_ahead(visits(pages))()
        assert log.stat().st_size < before  # all that was in doubt is in the file, and the log began anew
        assert len(store.visits()) == 1
