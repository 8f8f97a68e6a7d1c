"""What recrawl believes beside what happened: every change it reports is one, and none that it looked at is overlooked.

The pages have every kind of noise, also such as no fixed rule knows. Some validators lie, requests fail, maps mislead.
"""

from __future__ import annotations

import asyncio
import json
from dataclasses import dataclass, replace
from datetime import datetime
from pathlib import Path

import numpy as np
import pytest

from recrawl.assess.truth_scores import ChangeOutcome, ChangeReport, PageLifetimes, assess_changes, change_outcomes
from recrawl.crawl.visit.change_classifier import ClassifierRules
from recrawl.crawl.worker.crawl_assembly import WorkerSettings
from recrawl.model import ANSWERED, UNMEASURED, IntArray, Outcome, Verdict, Visits
from recrawl.schedule.policies.valued import ValuedPolicy
from recrawl.schedule.politeness.host_politeness import PolitenessRules
from recrawl.simulate.sites import synthetic_web
from recrawl.simulate.virtual_web import VirtualWeb
from recrawl.store.open import open_store
from recrawl.store.store_values import HostRows
from recrawl.time import DAY
from recrawl.urls import surt
from recrawl_testweb.fault_injection import AssignedFaults, FaultProfile, ValidatorLie
from recrawl_testweb.virtual_trial import TrialResult, TrialSettings, run_trial

pytestmark = pytest.mark.slow

START, DAYS, SEED = 1_790_000_000.0, 4.0, 3


@dataclass(frozen=True)
class Crawled:
    """A trial, with the visits by the numbers of the web's own pages."""

    web: VirtualWeb
    result: TrialResult
    visits: Visits
    hosts: HostRows
    noise: int
    events: list[dict]

    @property
    def truth(self) -> PageLifetimes:
        web = self.web
        return PageLifetimes.from_lifetimes(
            np.arange(len(web)), web.lifetimes.times, web.lifetimes.offsets, web.changes.times, web.changes.offsets
        )

    def since(self, days: float) -> ChangeReport:
        """Beliefs and truth from so many days after the start."""
        return assess_changes(self.truth, self.visits, START + days * DAY, START + DAYS * DAY)

    def overlooked(self) -> tuple[IntArray, np.ndarray]:
        """Pages and times of changes that were looked at and never reported."""
        fate = change_outcomes(self.truth, self.visits, START + DAYS * DAY) == ChangeOutcome.OVERLOOKED
        return self.truth.page[self.truth.row_of_change()[fate]], self.truth.times[fate]

    def ends_in_doubt(self, page: int) -> bool:
        """Whether the last answer was to have a second look, which failed; then the time was over."""
        mine = self.visits.take(self.visits.page == page)
        answered = mine.take(mine.outcome <= ANSWERED)
        return bool(answered.verdict[np.argmax(answered.time)] == Verdict.UNKNOWN)


def crawl(folder: Path, fault_profile: FaultProfile, rules: ClassifierRules) -> Crawled:
    web = synthetic_web(pages=30, start=START, days=DAYS, seed=SEED, hot=0.6)
    settings = TrialSettings(
        WorkerSettings(
            120 / DAY,
            "truth/1.0 (+https://example.org/)",
            politeness=PolitenessRules(shortest=5.0),
            classifier=rules,
            durable=False,
        ),
        fault_profile=fault_profile,
        seed=SEED,
    )
    with open_store(str(folder / "store.db"), create=True, durable=False) as store:
        result = asyncio.run(run_trial(web, ValuedPolicy(), store=store, folder=folder, settings=settings))
        urls = store.urls(result.page)
        [port] = {url.split("/")[2].partition(":")[2] for url in urls}
        numbers = {surt(web.url(page, int(port))): page for page in range(len(web))}
        number = np.array([numbers[surt(url)] for url in urls])
        mine = result.visits.take(np.isin(result.visits.page, result.page))
        visits = replace(mine, page=number[np.searchsorted(result.page, mine.page)])
        events = [json.loads(line) for line in (folder / "recrawl.log").read_text().splitlines()]
        return Crawled(web, result, visits, store.hosts(), len(store.noise()), events)


@pytest.fixture(scope="module")
def noisy(tmp_path_factory):
    """Noise of all kinds on every page, and nothing else amiss."""
    return crawl(tmp_path_factory.mktemp("noisy"), FaultProfile(noise=1.0, odd_noise=1.0), ClassifierRules())


WILD = replace(FaultProfile.wild(), noise=0.6, odd_noise=0.6, stuck_validators=0.3)


@pytest.fixture(scope="module")
def wild(tmp_path_factory):
    """All at once: noise, lies, failures, redirects, charsets, misleading maps."""
    return crawl(tmp_path_factory.mktemp("wild"), WILD, ClassifierRules(check_share=0.2))


def test_every_change_reported_happened_though_all_pages_have_noise(noisy):
    """But for what is met before it was learned: a box of links that shows the same ones twice by chance."""
    whole, later = noisy.since(0.0), noisy.since(1.0)
    assert whole.detections > 100
    assert whole.detections - whole.true_detections <= 2
    assert later.detections == later.true_detections > 50


def test_every_change_that_was_looked_at_is_reported_though_all_pages_have_noise(noisy):
    report = noisy.since(0.0)
    assert report.overlooked == 0
    assert report.alone + report.merged + report.pending + report.before == report.total > 150


def test_noise_costs_few_second_looks(noisy):
    visits = noisy.visits
    again = (np.diff(visits.page) == 0) & (np.diff(visits.time) < 60.0)
    after_304 = visits.outcome[:-1][again] == Outcome.NOT_MODIFIED  # these check validators
    assert 5 < (~after_304).sum() < 0.08 * len(visits)
    assert (visits.verdict[1:][again] == Verdict.UNKNOWN).all()
    assert 5 < noisy.noise < 150  # parts of pages that there is evidence on


def test_how_much_changed_is_told_with_every_verdict(noisy):
    visits = noisy.visits
    unknown, unchanged, changed = (visits.magnitude[visits.verdict == verdict] for verdict in Verdict)
    assert (unknown == UNMEASURED).all()
    assert (changed > 0).all()
    assert (changed <= 1).all()
    assert np.median(unchanged) == 0.0


def test_on_a_wild_web_nearly_all_reports_are_true_and_hardly_a_change_is_overlooked(wild):
    report = wild.since(0.0)
    assert report.detections > 80
    assert report.precision > 0.95
    assert report.overlooked <= 0.02 * report.total


def test_only_liars_are_called_liars_and_then_hide_nothing_more(wild):
    lies = AssignedFaults.deal(WILD, len(wild.web), SEED).lie
    caught = [event for event in wild.events if event["message"] == "validator trust changed"]
    assert caught
    assert all(event["details"]["believed"] is False for event in caught)
    names = [name.partition(":")[0] for name in wild.hosts.name]
    for event in caught:
        host = wild.web.hosts.index(event["details"]["host"].partition(":")[0])
        assert (lies[wild.web.host == host] == ValidatorLie.STUCK).any()
        since = datetime.fromisoformat(event["timestamp"]).timestamp()
        log = wild.result.requests
        asked = (log.host == wild.web.hosts[host]) & (log.time > since + 1.0) & (log.page >= 0)
        assert asked.any()
        assert not log.conditional[asked].any()
        pages, times = wild.overlooked()
        later = pages[(wild.web.host[pages] == host) & (times > since)]
        assert all(map(wild.ends_in_doubt, later.tolist()))
    liars = wild.hosts.lies >= 2
    assert {names[row] for row in np.flatnonzero(liars)} == {
        event["details"]["host"].partition(":")[0] for event in caught
    }


def test_dates_of_pages_that_are_always_new_are_no_claims(wild):
    assert wild.hosts.restless.sum() > 10
