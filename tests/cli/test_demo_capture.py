"""The capture at the end of the demo: what it claims, held against the truth of the test web."""

import asyncio

import numpy as np
import pytest

from recrawl.app.predict.model_training import material, trained
from recrawl.app.predict.stored_models import USUAL, save_model
from recrawl.app.workspace.workspace import make_workspace
from recrawl.app.workspace.workspace_wiring import crawl_settings_of
from recrawl.schedule.policies.valued import ValuedPolicy
from recrawl.simulate.sites import synthetic_web
from recrawl.time import DAY
from recrawl_testweb.demo.demo_capture import LATER, capture_site, capture_words
from recrawl_testweb.fault_injection import FaultProfile
from recrawl_testweb.virtual_trial import TrialSettings, run_trial

START = 1_789_948_800.0
SEED = 4


@pytest.fixture(scope="module")
def done(tmp_path_factory):
    """A crawl of two days, a model trained on it, a capture of a site, and the web as it was then."""
    place = make_workspace(
        tmp_path_factory.mktemp("demo") / "demo", {"fetch.contact": "https://example.org/", "schedule.budget": 90.0}
    )
    web = synthetic_web(pages=54, start=START, days=2.0, seed=SEED, hot=1.0, sigma=1.5)
    settings = TrialSettings(
        crawl_settings_of(place.configuration.settings), fault_profile=FaultProfile.none(), seed=SEED
    )
    kept = []
    with place.open_store() as store:

        async def afterwards(after):
            save_model(place.folder, trained(USUAL, material(place, store, None), 1, judged=False))
            kept.append((await capture_site(place, store, after, SEED), after.living.truth()))

        trial = run_trial(
            web, ValuedPolicy(), store=store, folder=place.folder, settings=settings, afterwards=afterwards
        )
        result = asyncio.run(trial)
        [(captured, truth)] = kept
        yield result, captured, truth, store


def looks_of(captured, truth, store):
    """Page of the store → (its number on the web, when it was first and last looked at)."""
    log = store.site_log(captured.report.capture.id)
    times = {}
    for step in log.steps:
        times.setdefault(step.number, []).append(step.time)
    urls = store.urls(log.found.page)
    return {
        int(log.found.page[number]): (truth.page(urls[number]), min(some), max(some)) for number, some in times.items()
    }


def test_what_the_capture_claims_is_the_truth(done):
    _, captured, truth, store = done
    said, observations, web = captured.report.quality, looks_of(*done[1:]), truth.web
    assert len(said.coherent) > 5
    assert len(said.changed) > 0
    for page in said.coherent.tolist():
        number, first, last = observations[page]
        assert web.version(number, first) == web.version(number, last), store.urls(np.array([page]))
    for page in said.changed.tolist():
        number, first, last = observations[page]
        assert web.version(number, first) < web.version(number, last), store.urls(np.array([page]))
    assert captured.held == captured.claimed == len(said.coherent)


def test_pages_just_found_are_put_in_order_by_the_model(done):
    result, captured, truth, store = done
    born_since = np.flatnonzero((truth.web.born > result.end) & (truth.web.born < result.end + LATER))
    assert len(born_since) == 4
    observations = looks_of(*done[1:])
    new = [page for page, (number, _, _) in observations.items() if number in born_since]
    assert len(new) == 4
    assert captured.predicted == captured.new == 4
    found = store.site_log(captured.report.capture.id).found
    rate = dict(zip(found.page.tolist(), found.rate.tolist(), strict=True))
    assert all(1e-3 / DAY < rate[page] < 1e3 / DAY for page in new)
    assert not np.isin(new, store.histories(until=result.end).page).any()


def test_the_trial_says_nothing_of_it(done):
    result, captured, _, store = done
    assert result.visits.time.max() <= result.end
    assert captured.report.capture.started >= result.end + LATER
    assert len(store.visits()) > len(result.visits)
    assert len(result.requests) < len(result.visits) + 50


def test_it_is_said_in_two_sentences(done):
    _, captured, _, _ = done
    how, quality = capture_words(captured)
    said = captured.report.quality
    assert f": {said.pages} pages, 4 of them new and ordered by the change rates that the model predicts" in how
    assert quality.startswith(f"{len(said.coherent)} pages (")
    assert quality.endswith(f"True for {captured.held} of {captured.claimed} pages.")
