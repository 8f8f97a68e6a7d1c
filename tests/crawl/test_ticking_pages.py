"""One page that ticks must not hide what its siblings say: a real crawl of pages that share their markup."""

from __future__ import annotations

import json
import sys
from importlib.util import module_from_spec, spec_from_file_location
from pathlib import Path
from types import ModuleType

import numpy as np
import pytest

from recrawl.crawl.visit.change_classifier import ChangeClassifier, ClassifierRules
from recrawl.detect.noise.learned_noise import NoiseEvidence
from recrawl.store.open import open_store
from recrawl.time import VirtualClock

pytestmark = pytest.mark.slow


def load_sites() -> ModuleType:
    """The sites that the benchmark crawls; its folder is no package."""
    path = Path(__file__).parents[2] / "benchmarks" / "ticking_sites.py"
    spec = spec_from_file_location("recrawl_ticking_sites", path)
    assert spec is not None
    assert spec.loader is not None
    module = module_from_spec(spec)
    sys.modules[spec.name] = module  # dataclasses look themselves up there
    spec.loader.exec_module(module)
    return module


sites = load_sites()
TICKING, PLAIN, ROTATING, SLOW = sites.SITES


@pytest.fixture
def crawled(tmp_path, empty_store):
    """``crawled(*sites, minutes)``: the store after a crawl of these sites."""
    path = tmp_path / "store.db"
    path.write_bytes(empty_store.read_bytes())
    with open_store(path, durable=False) as store:

        def run(*chosen, minutes):
            with sites.served(sites.Web(VirtualClock(sites.START), chosen)) as web:
                sites.crawl(web, store, tmp_path, 60.0 * minutes)
                return store

        yield run


def test_a_page_that_ticks_does_not_hide_the_changes_of_its_siblings(crawled):
    store = crawled(TICKING, PLAIN, minutes=15)
    ticking, plain = (sites.assess(store, site) for site in (TICKING, PLAIN))
    assert ticking.changed > 100
    assert ticking.found >= 0.98 * ticking.changed
    assert plain.found >= 0.98 * plain.changed
    assert ticking.alarms + plain.alarms == 0
    assert plain.masked == 0
    [host] = [number for number, name in zip(*sites._hosts(store), strict=True) if name.startswith("ticking")]
    noise = NoiseEvidence.counted(store.noise(np.array([host]))).noise_of(host)
    assert noise.mask == frozenset()  # nothing is noise of the host
    [page] = noise.page_masks  # and after some confirmations the reading is noise of the page that ticks
    assert store.urls(np.array([page]))[0].endswith("/0")


def test_ticking_rotating_and_slow_pages_are_told_apart(crawled):
    """A change is missed only where the text changes once more before the confirmation; the next visit finds it."""
    store = crawled(ROTATING, SLOW, minutes=20)
    told = [sites.assess(store, site) for site in (ROTATING, SLOW)]
    assert [(one.found, one.changed) for one in told if one.found + one.between < one.changed] == []
    assert sum(one.found for one in told) > 0.95 * sum(one.changed for one in told) > 50
    assert sum(one.alarms for one in told) <= 0.01 * sum(one.judged for one in told)
    assert told[0].masked >= 1  # the motto
    assert sum(one.confirmations for one in told) < 0.2 * sum(one.judged for one in told)


def test_noise_that_becomes_content_is_withdrawn(tmp_path, empty_store):
    """The motto is drawn at each request; then somebody edits it now and then."""
    path = tmp_path / "store.db"
    path.write_bytes(empty_store.read_bytes())
    with (
        open_store(path, durable=False) as store,
        sites.served(sites.Web(VirtualClock(sites.START), (ROTATING,))) as web,
    ):
        sites.crawl(web, store, tmp_path, 900.0)
        assert sites.assess(store, ROTATING).masked == 1
        web.edited.add(ROTATING.name)
        for _ in range(30):
            sites.crawl(web, store, tmp_path, 300.0)  # a restart each time: what was learned is in the store
            if not sites.assess(store, ROTATING).masked:
                break
        assert sites.assess(store, ROTATING).masked == 0
    events = [json.loads(line)["message"] for line in (tmp_path / "recrawl.log").read_text().splitlines()]
    assert events.index("noise learned") < len(events) - 1 - events[::-1].index("noise withdrawn")


def test_a_reset_is_heard_by_a_worker_that_runs(crawled):
    store = crawled(ROTATING, minutes=12)
    [host] = store.hosts().id.tolist()
    classifier = ChangeClassifier(store, ClassifierRules())
    classifier.prepare(np.array([host]), 0.0)
    assert classifier.masked == 1
    store.drop_noise(np.array([host]))
    classifier.prepare(np.array([host]), 299.0)
    assert classifier.masked == 1
    classifier.prepare(np.array([host]), 301.0)
    assert classifier.masked == 0
