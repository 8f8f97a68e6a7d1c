"""A crawl's archive goes out and comes in again; pywb and wacz accept what goes out."""

from __future__ import annotations

import asyncio
import json
import shutil
import urllib.request

import pytest

from recrawl.crawl.worker.crawl_assembly import WorkerSettings
from recrawl.schedule.policies.valued import ValuedPolicy
from recrawl.simulate.sites import synthetic_web
from recrawl.store.open import open_store
from recrawl.time import DAY
from recrawl_testweb.fault_injection import FaultProfile
from recrawl_testweb.virtual_trial import TrialSettings, run_trial


@pytest.fixture(scope="module")
def workspace(tmp_path_factory, recrawl):
    """A workspace that a crawl has filled."""
    folder = tmp_path_factory.mktemp("judged") / "archive"
    recrawl("init", folder)
    web = synthetic_web(pages=15, start=1.79e9, days=4, seed=8, hot=1.0)
    settings = TrialSettings(
        WorkerSettings(60 / DAY, "judged/1 (+https://example.org/)"), fault_profile=FaultProfile.mild(), seed=8
    )
    with open_store(str(folder / "recrawl.db")) as store:
        asyncio.run(run_trial(web, ValuedPolicy(), store=store, folder=folder, settings=settings))
    return folder


def rows(folder):
    with open_store(str(folder / "recrawl.db")) as store:
        visits = store.visits()
        columns = [
            column.tolist() for name, column in visits.columns().items() if name not in ("page", "time", "cost", "size")
        ]
        times = [round(time, 3) for time in visits.time.tolist()]
        return sorted(zip(store.urls(visits.page), times, *columns, strict=True))


def test_warc_in_visits_out_visits_in_is_the_identity(workspace, tmp_path, recrawl):
    recrawl("init", tmp_path / "one")
    recrawl("import", workspace / "warc", "-w", tmp_path / "one")
    recrawl("export", tmp_path / "visits.parquet", "-w", tmp_path / "one")
    recrawl("init", tmp_path / "two")
    recrawl("import", tmp_path / "visits.parquet", "-w", tmp_path / "two")
    assert rows(tmp_path / "two") == rows(tmp_path / "one")
    assert len(rows(tmp_path / "one")) > 100


def test_the_wacz_tool_accepts_our_package_and_we_read_it_back(workspace, tmp_path, tool, recrawl):
    recrawl("export", tmp_path / "archive.wacz", "--what", "wacz", "-w", workspace)
    judged = tool("wacz", "validate", "-f", tmp_path / "archive.wacz")
    assert judged.returncode == 0, judged.stdout + judged.stderr
    assert "Validation succeeded" in judged.stdout
    for name, source in (("files", workspace / "warc"), ("package", tmp_path / "archive.wacz")):
        recrawl("init", tmp_path / name)
        recrawl("import", source, "-w", tmp_path / name)
    assert rows(tmp_path / "package") == rows(tmp_path / "files")


def test_a_cdx_server_answers_from_our_index(workspace, tmp_path, wayback, recrawl):
    collection = tmp_path / "collections" / "judged"
    for name in ("archive", "indexes"):
        (collection / name).mkdir(parents=True)
    for warc in (workspace / "warc").glob("*.warc.gz"):
        shutil.copy(warc, collection / "archive")
    recrawl("export", collection / "indexes" / "index.cdxj", "--what", "cdxj", "-w", workspace)
    with open_store(str(workspace / "recrawl.db")) as store:
        pages = store.pages().id
        captures = store.capture_columns(pages)
        page = int(captures.page[captures.status == 200][0])
        [url] = store.urls(pages[pages == page])
        expected = int((captures.page == page).sum())
    with wayback(tmp_path) as base, urllib.request.urlopen(f"{base}/cdx?url={url}&output=json", timeout=30) as answer:
        lines = [json.loads(line) for line in answer.read().splitlines()]
    assert len(lines) == expected
    assert {line["url"] for line in lines} == {url}
