"""recrawl's own archive files, imported again: the same pages and visits, whatever was there before."""

from __future__ import annotations

import asyncio
import shutil

import pytest

from recrawl.crawl.worker.crawl_assembly import WorkerSettings
from recrawl.schedule.policies.valued import ValuedPolicy
from recrawl.simulate.sites import synthetic_web
from recrawl.store.open import open_store
from recrawl.time import DAY
from recrawl.transfer.listed_captures import rows_met
from recrawl_testweb.fault_injection import FaultProfile
from recrawl_testweb.virtual_trial import TrialSettings, run_trial


@pytest.fixture(scope="module")
def workspace(tmp_path_factory, recrawl):
    """A workspace that a crawl has filled: with robots.txt, sitemaps, redirects, failures, 304s and confirmations."""
    folder = tmp_path_factory.mktemp("own") / "archive"
    recrawl("init", folder)
    web = synthetic_web(pages=24, start=1.79e9, days=6, seed=8, hot=1.0)
    crawl = WorkerSettings(150 / DAY, "own/1 (+https://example.org/)")
    settings = TrialSettings(crawl, fault_profile=FaultProfile.mild(), seed=8)
    with open_store(str(folder / "recrawl.db")) as store:
        asyncio.run(run_trial(web, ValuedPolicy(), store=store, folder=folder, settings=settings))
    recrawl("export", folder / "visits.parquet", "-w", folder)
    return folder


class Near(float):
    """A time, equal to another within what a WARC file keeps of it."""

    def __eq__(self, other):
        return abs(float(self) - float(other)) <= 2e-6

    __hash__ = None


def visited(folder, *, verdicts=True, exact=False):
    """The pages that are no resources, and all visits."""
    with open_store(str(folder / "recrawl.db")) as store:
        resources = set(store.resources().tolist())
        known = store.pages().id
        pages = {url for page, url in zip(known.tolist(), store.urls(known), strict=True) if page not in resources}
        visits = store.visits()
        times = [time if exact else Near(time) for time in visits.time.tolist()]
        columns = [visits.outcome, visits.status, *([visits.verdict, visits.kinds] if verdicts else [])]
        rows = zip(store.urls(visits.page), times, *(c.tolist() for c in columns), strict=True)
        return pages, sorted(rows, key=lambda row: (row[0], float(row[1])))


def imported(recrawl, tmp_path, *commands):
    """A new workspace after these imports."""
    recrawl("init", tmp_path / "new")
    for sources in commands:
        recrawl("import", *sources, "-w", tmp_path / "new")
    return tmp_path / "new"


def test_the_crawl_has_all_that_must_be_told_apart(workspace):
    with open_store(str(workspace / "recrawl.db")) as store:
        visits = store.visits()
        captures = store.capture_columns(store.pages().id)
        statuses = set(visits.status.tolist())
        assert {200, 304} < statuses
        assert any(status // 100 == 3 and status != 304 for status in statuses)
        assert any(status >= 500 for status in statuses)
        assert len(captures) < len(visits)  # some were refused
        close = (visits.page[1:] == visits.page[:-1]) & (visits.time[1:] - visits.time[:-1] < 60)
        assert close.any()  # confirmations
        assert (visits.time != visits.time.round(6)).any()  # more digits than a WARC file has


def test_after_the_visits_the_archive_files_add_no_visit(workspace, recrawl, tmp_path):
    new = imported(recrawl, tmp_path, [workspace / "visits.parquet"], [workspace / "warc"])
    assert visited(new, exact=True) == visited(workspace, exact=True)
    with open_store(str(new / "recrawl.db")) as store, open_store(str(workspace / "recrawl.db")) as before:
        links, captures = store.outlinks(store.pages().id), store.capture_columns(store.pages().id)
        assert len(links.target) >= len(before.outlinks(before.pages().id).target) > 0
        visits = (rows_met(captures.page, captures.time, store.observations()) >= 0).sum()
        assert visits == len(before.capture_columns(before.pages().id))
        assert len(captures) > visits  # auxiliary fetches are captures
    recrawl("import", workspace / "warc", "--reimport", "-w", new)
    assert visited(new, exact=True) == visited(workspace, exact=True)


def test_one_import_takes_both_in_any_order(workspace, recrawl, tmp_path):
    new = imported(recrawl, tmp_path, [workspace / "warc", workspace / "visits.parquet"])
    assert visited(new, verdicts=False) == visited(workspace, verdicts=False)


def test_the_visits_after_the_archive_files_are_recognised(workspace, recrawl, tmp_path):
    new = imported(recrawl, tmp_path, [workspace / "warc"], [workspace / "visits.parquet"])
    assert visited(new) == visited(workspace)


def test_archive_files_alone_bring_every_visit_with_a_response(workspace, recrawl, tmp_path):
    new = imported(recrawl, tmp_path, [workspace / "warc"])
    pages, visits = visited(workspace, verdicts=False)
    answered = [visit for visit in visits if visit[3] > 0]
    assert len(answered) < len(visits)
    assert visited(new, verdicts=False) == (pages, answered)
    recrawl("import", workspace / "warc", "--reimport", "-w", new)
    assert visited(new, verdicts=False) == (pages, answered)


def test_the_workspace_that_wrote_them_learns_nothing_new(workspace, recrawl, tmp_path):
    again = shutil.copytree(workspace, tmp_path / "again")
    recrawl("import", again / "warc", "-w", again)
    assert visited(again, exact=True) == visited(workspace, exact=True)
