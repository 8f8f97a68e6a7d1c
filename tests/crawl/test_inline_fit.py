"""A fit reschedules every page, however many transactions that takes."""

import io
import shutil

import numpy as np
import pytest

from recrawl.crawl.control.json_log import JsonLinesLog
from recrawl.crawl.visit.recorder import Recorder
from recrawl.crawl.visit.scope import HostScope
from recrawl.crawl.visit.warc_archive import NoArchive
from recrawl.crawl.worker import inline_fit
from recrawl.crawl.worker.inline_fit import InlineFit
from recrawl.model import Outcome, Visit, Visits
from recrawl.schedule.frontier.revisit_scheduler import RevisitScheduler
from recrawl.schedule.policies.fixed_interval import FixedInterval
from recrawl.store.open import open_store
from recrawl.time import HOUR, VirtualClock

START = 1.79e9


@pytest.mark.parametrize("pages", [0, 1, 7])
def test_every_page_is_rescheduled_in_parts(tmp_path, empty_store, monkeypatch, pages):
    monkeypatch.setattr(inline_fit, "_CHUNK", 3)
    with open_store(shutil.copy(empty_store, tmp_path / "fit.db"), durable=False) as store:
        page = store.discover([f"http://a.example/{number}" for number in range(pages)], START)
        visits = Visits.from_rows(Visit(number, START + number, Outcome.FETCHED) for number in page.tolist())
        store.record(visits, due=np.full(pages, START + 99 * HOUR))
        scheduler = RevisitScheduler(FixedInterval(HOUR), budget=1.0)
        recorder = Recorder("one", store, scheduler, HostScope(frozenset()), NoArchive())
        mine = InlineFit(store, scheduler, recorder, JsonLinesLog(io.StringIO(), VirtualClock(START)), late=HOUR)
        mine.resume(START + 10.0)
        mine.fit(START + 10.0)
        assert store.due(page).tolist() == (START + page + HOUR).tolist()
