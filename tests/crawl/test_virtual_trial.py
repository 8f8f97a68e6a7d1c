"""The whole job on a test web, proved from the server's own log and from the truth it tells afterwards."""

from __future__ import annotations

import asyncio
import json
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pytest
from warcio.archiveiterator import ArchiveIterator
from warcio.checker import Checker

from recrawl.crawl.worker.crawl_assembly import WorkerSettings
from recrawl.model import Outcome, Verdict
from recrawl.model.visits import NO_ROBOTS, REFUSED_BY_ROBOTS
from recrawl.schedule.policies.valued import ValuedPolicy
from recrawl.schedule.politeness.host_politeness import PolitenessRules
from recrawl.simulate.sites import synthetic_web
from recrawl.store.base import Store
from recrawl.store.open import open_store
from recrawl.time import DAY
from recrawl.urls import address
from recrawl_testweb.fault_injection import FaultProfile
from recrawl_testweb.recorded_sites import load_recorded
from recrawl_testweb.virtual_trial import TrialResult, TrialSettings, run_trial

AGENT = "trial/1.0 (+https://example.org/)"
START = 1_790_000_000.0


@dataclass(frozen=True)
class Done:
    result: TrialResult
    store: Store
    folder: Path

    def url_of(self) -> dict[int, str]:
        ids = self.store.pages().id
        return dict(zip(ids.tolist(), self.store.urls(ids), strict=True))


def crawl(folder: Path, fault_profile: FaultProfile, *, days: float = 6.0) -> Done:
    folder.mkdir()
    web = synthetic_web(pages=36, start=START, days=days, seed=3, hot=0.6)
    store = open_store(str(folder / "store.db"), create=True)
    settings = TrialSettings(
        WorkerSettings(80 / DAY, AGENT, politeness=PolitenessRules(shortest=5.0)), fault_profile=fault_profile, seed=3
    )
    result = asyncio.run(run_trial(web, ValuedPolicy(), store=store, folder=folder, settings=settings))
    return Done(result, store, folder)


@pytest.fixture(scope="module")
def honest(tmp_path_factory):
    done = crawl(tmp_path_factory.mktemp("trial") / "honest", FaultProfile.none())
    yield done
    done.store.close()


@pytest.fixture(scope="module")
def wild(tmp_path_factory):
    done = crawl(tmp_path_factory.mktemp("trial") / "wild", FaultProfile.wild())
    yield done
    done.store.close()


@pytest.fixture(params=["honest", "wild"])
def done(request):
    return request.getfixturevalue(request.param)


def test_pages_are_found_by_links_and_sitemaps(honest):
    assert len(honest.result.page) >= honest.result.pages_there - 1


def test_on_an_honest_web_every_verdict_is_right(honest):
    changes = honest.result.changes
    assert changes.total > 50
    assert changes.detections == changes.true_detections > 20
    assert changes.overlooked == 0


def test_noise_and_lies_raise_few_false_alarms(wild):
    changes = wild.result.changes
    assert changes.detections > 20
    assert changes.precision > 0.9


def test_the_server_saw_exactly_the_recorded_visits(done):
    """One request for each visit that was not refused; nothing else but robots.txt, sitemaps and redirects of them."""
    urls, visits, log = done.url_of(), done.result.visits, done.result.requests
    asked = visits.take((visits.status >= 0) | ~np.isin(visits.status, (REFUSED_BY_ROBOTS, NO_ROBOTS)))
    port = address(urls[1]).host.partition(":")[2]
    recorded = sorted((time, urls[page]) for time, page in zip(asked.time.tolist(), asked.page.tolist(), strict=True))
    seen = [
        (time, f"http://{host}:{port}{path}")
        for time, host, path in zip(log.time.tolist(), log.host.tolist(), log.path.tolist(), strict=True)
        if path != "/robots.txt" and "sitemap" not in path
    ]
    assert sorted(seen) == recorded


def test_pauses_between_requests_to_a_host_are_kept(done):
    log = done.result.requests
    for host in set(log.host.tolist()):
        times = np.sort(log.time[log.host == host])
        assert np.diff(times).min() >= 5.0 - 1e-6


def test_robots_txt_is_read_first_and_obeyed(done):
    log = done.result.requests
    for host in set(log.host.tolist()):
        assert log.path[log.host == host][0] == "/robots.txt"
    assert not any(path.startswith("/private/") for path in log.path.tolist())


def test_later_requests_are_conditional_where_the_page_gave_validators(honest):
    """All but second looks, and the few that are made to see whether validators can be believed."""
    log = honest.result.requests
    could = was = 0
    for page in set(log.page[log.page >= 0].tolist()):
        mine = log.page == page
        fetched_before = np.cumsum(log.status[mine] == 200) - (log.status[mine] == 200) > 0
        gone_before = np.cumsum(np.isin(log.status[mine], (404, 410))) > 0
        again = np.diff(log.time[mine], prepend=-np.inf) < 60.0
        asked = log.conditional[mine][fetched_before & ~gone_before & ~again]
        could, was = could + len(asked), was + int(asked.sum())
    assert could - was < 0.1 * could
    assert (log.status == 304).sum() > 50


def test_a_host_that_asks_for_patience_gets_it(wild):
    log = wild.result.requests
    busy = np.flatnonzero(np.isin(log.status, (429, 503)) & (log.page >= 0))
    assert len(busy) > 0
    for row in busy:
        later = log.time[(log.host == log.host[row]) & (log.sequence > log.sequence[row])]
        # A date in Retry-After has no fractions of a second.
        assert not len(later) or later.min() - log.time[row] > FaultProfile.wild().retry_after - 1.0


def test_archive_files_pass_an_outside_judge(honest, capsys):
    files = sorted((honest.folder / "warc").glob("*.warc.gz"))
    assert files
    assert Checker(_CheckOptions([str(file) for file in files])).process_all() == 0, capsys.readouterr().out


class _CheckOptions:
    verbose = False

    def __init__(self, inputs):
        self.inputs = inputs


def test_archive_files_hold_every_answer(done):
    """warcio takes the payload digest over chunk framing, WARC 1.1 and we do not: there alone it may disagree."""
    kinds = []
    for file in (done.folder / "warc").glob("*.warc.gz"):
        with file.open("rb") as stream:
            for record in ArchiveIterator(stream, check_digests=True):
                record.content_stream().read()
                kinds.append(record.rec_type)
                chunked = record.http_headers and record.http_headers.get_header("Transfer-Encoding") == "chunked"
                assert record.digest_checker.passed is not False or chunked
    captures = done.store.captures(done.store.pages().id)
    log = done.result.requests
    aside = sum(path == "/robots.txt" or "sitemap" in path for path in log.path.tolist())
    assert kinds.count("response") + kinds.count("revisit") == len(captures) + aside
    assert kinds.count("revisit") > 50


def test_each_capture_is_found_at_its_place(honest):
    captures = honest.store.captures(honest.store.pages().id)
    urls = honest.url_of()
    for capture in captures[:: len(captures) // 25]:
        with (honest.folder / "warc" / capture.warc_file).open("rb") as stream:
            stream.seek(capture.warc_offset)
            record = next(ArchiveIterator(stream))
            assert record.rec_headers["WARC-Target-URI"] == urls[capture.page]
            assert record.rec_type == ("revisit" if capture.mime == "warc/revisit" else "response")


def test_links_in_the_store_are_those_the_pages_carried(honest):
    ids = honest.store.pages().id
    urls = honest.url_of()
    links = honest.store.outlinks(ids)
    assert len(links) > 60
    assert all(address(urls[page]) for page in links.target.tolist())
    assert (links.first_seen <= links.last_seen).all()


def test_the_log_is_json_lines(done):
    lines = (done.folder / "recrawl.log").read_text().splitlines()
    events = [json.loads(line) for line in lines]
    assert {"timestamp", "logLevel", "context", "message", "worker", "details"} == set(events[0])
    assert any(event["message"] == "policy fitted" for event in events)


def test_a_trial_repeats_itself(honest, tmp_path):
    again = crawl(tmp_path / "again", FaultProfile.none())
    with again.store:
        assert again.result.visits.time.tolist() == honest.result.visits.time.tolist()
        assert again.result.visits.verdict.tolist() == honest.result.visits.verdict.tolist()


def test_nothing_stays_leased_after_a_run(done):
    assert done.store.counts(START + 99 * DAY).leased == 0


def test_failures_do_not_count_as_looks(wild):
    visits = wild.result.visits
    failed = visits.outcome > Outcome.GONE
    assert failed.sum() > 10
    assert (visits.verdict[failed] == Verdict.UNKNOWN).all()


@pytest.mark.slow
def test_a_recorded_site_is_crawled_as_it_was(tmp_path):
    """Pages and links appear and disappear as recorded; the crawl finds and follows them."""
    folder = Path(__file__).parent.parent / "data" / "recorded"
    web = load_recorded(folder, "jekylldocs")
    web = load_recorded(folder, "jekylldocs", start=web.start, end=web.start + 150 * DAY)
    with open_store(str(tmp_path / "store.db"), create=True) as store:
        settings = TrialSettings(WorkerSettings(8 / DAY, AGENT))
        trial = run_trial(web, ValuedPolicy(), store=store, folder=tmp_path, settings=settings)
        result = asyncio.run(trial)
    assert result.changes.total > 20
    assert result.changes.detections == result.changes.true_detections > 10
    assert result.changes.overlooked == 0
    assert result.fresh.mean_fresh > 0.5
