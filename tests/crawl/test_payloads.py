"""What a live crawl judged, an import of its archive files judges again, to the last count."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest

from recrawl.crawl.importing import Cleaning, Importer
from recrawl.crawl.payloads import PayloadJudge
from recrawl.crawl.trial import TrialSettings, run_trial
from recrawl.formats.captures import Report
from recrawl.formats.warc_reader import index_warc, read_capture
from recrawl.living.quirks import Quirks
from recrawl.model import Verdict
from recrawl.schedule.valued import Valued
from recrawl.simulate.sites import synthetic_web
from recrawl.store.open import open_store
from recrawl.time import DAY, VirtualClock


def rows(store, *, without=()):
    visits = store.visits()
    urls = store.urls(visits.page)
    columns = [column.tolist() for name, column in visits.columns().items() if name not in ("page", "cost", *without)]
    return {(url, round(row[0], 3)): row[1:] for url, row in zip(urls, zip(*columns, strict=True), strict=True)}


def links(store):
    found = store.outlinks(store.pages().id)
    pairs = zip(store.urls(found.source), store.urls(found.target), strict=True)
    return {pair: round(seen, 3) for pair, seen in zip(pairs, found.first_seen.tolist(), strict=True)}


@pytest.mark.parametrize("quirks", ["mild", "wild"])
def test_an_imported_crawl_says_what_the_live_crawl_said(quirks, tmp_path):
    web = synthetic_web(pages=30, start=1.79e9, days=5, seed=6, hot=0.8)
    settings = TrialSettings(80 / DAY, "twice/1 (+https://example.org/)", quirks=getattr(Quirks, quirks)(), seed=6)
    with (
        open_store(str(tmp_path / "live.db"), create=True) as live,
        open_store(str(tmp_path / "again.db"), create=True) as again,
    ):
        asyncio.run(run_trial(web, Valued(), store=live, folder=tmp_path, settings=settings))
        importer, report = Importer(again, VirtualClock(1.8e9), Cleaning(merge_within=0.0)), Report(strict=True)
        for file in sorted((tmp_path / "warc").glob("*.warc.gz")):
            importer.take(str(file), "1", index_warc(file, report), report, file=str(file))
        pages = again.pages().id
        importer.judge()
        PayloadJudge(again, lambda file, offset: read_capture(Path(file), offset)).judge(pages)
        expected, found = (rows(store, without=("size",)) for store in (live, again))  # a revisit has no body
        archived = {key: value for key, value in expected.items() if value[3] > 0}  # a status: an answer was kept
        assert len(archived) > 100
        assert {key: found[key] for key in archived} == archived
        assert links(again) == links(live)


def test_a_page_that_cannot_be_read_keeps_the_verdict_of_its_digest(tmp_path):
    web = synthetic_web(pages=9, start=1.79e9, days=3, seed=1, hot=2.0)
    with (
        open_store(str(tmp_path / "live.db"), create=True) as live,
        open_store(str(tmp_path / "again.db"), create=True) as again,
    ):
        asyncio.run(
            run_trial(
                web,
                Valued(),
                store=live,
                folder=tmp_path,
                settings=TrialSettings(80 / DAY, "x/1 (+https://example.org/)"),
            )
        )
        importer, report = Importer(again, VirtualClock(1.8e9)), Report()
        for file in (tmp_path / "warc").glob("*.warc.gz"):
            importer.take(str(file), "1", index_warc(file, report), report, file=str(file))
        importer.judge()
        before = rows(again)
        assert PayloadJudge(again, lambda _file, _offset: None).judge(again.pages().id) == 0
        assert rows(again) == before
        assert any(row[1] == Verdict.CHANGED for row in before.values())
