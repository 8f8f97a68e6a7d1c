"""``recrawl status`` of a large store: freshness from a sample of pages."""

import numpy as np
import pytest

from recrawl.app import status
from recrawl.model import Verdict, Visits
from recrawl.store import open_store
from recrawl.time import DAY

NOW = 1.8e9


@pytest.fixture
def store(tmp_path):
    """Of 900 pages 600 were visited every day of ten; half of these change every day, half never."""
    with open_store(tmp_path / "recrawl.db", create=True) as opened:
        pages = opened.discover([f"http://h{n % 7}.example/{n}" for n in range(900)], NOW - 20 * DAY)[:600]
        for day in range(10):
            verdict = np.where(np.arange(600) % 2, Verdict.CHANGED, Verdict.UNCHANGED) if day else Verdict.UNKNOWN
            opened.record(Visits.of(pages, NOW - (10 - day) * DAY, verdict=verdict))
        yield opened


def test_a_sample_estimates_what_all_pages_say(store, monkeypatch):
    everything = status.estimate_freshness(store, NOW)
    assert (everything.seen, everything.rated, everything.sample) == (600, 600, 0)
    monkeypatch.setattr(status, "_ALL_PAGES_UP_TO", 500)
    sample = status.estimate_freshness(store, NOW)
    assert 0 < sample.sample < 900
    assert sample.share == pytest.approx(everything.share, abs=0.1)
    assert sample.seen == pytest.approx(600, rel=0.1)
    assert sample == status.estimate_freshness(store, NOW)


def test_the_sample_is_small_where_visits_lie_in_many_segments(store, monkeypatch):
    monkeypatch.setattr(status, "_ALL_PAGES_UP_TO", 500)
    monkeypatch.setattr(status, "_LOOK_UPS", 100)
    assert 0 < status.estimate_freshness(store, NOW).sample <= 100
