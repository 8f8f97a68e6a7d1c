"""Dates in sitemaps: kept when they say something new, heard as signals when they move on."""

import asyncio

import numpy as np

from recrawl.crawl.visit.recorder import Recorder
from recrawl.crawl.visit.scope import HostScope
from recrawl.crawl.visit.site_claims import news, signals, sitemap_claims
from recrawl.crawl.visit.warc_archive import NoArchive
from recrawl.crawl.worker.crawl_assembly import WorkerSettings
from recrawl.formats.sitemap_feed import ClaimedPage
from recrawl.schedule.frontier.revisit_scheduler import RevisitScheduler
from recrawl.schedule.policies.fixed_interval import Uniform
from recrawl.schedule.policies.valued import ValuedPolicy
from recrawl.simulate.sites import power_rates, tree_site
from recrawl.store.open import open_store
from recrawl.store.store_values import LAST_MODIFIED, ClaimColumns
from recrawl.time import DAY
from recrawl_testweb.virtual_trial import TrialSettings, run_trial

START = 1_700_000_000.0


def said(*rows: tuple[int, float, str, float]) -> ClaimColumns:
    page, time, source, lastmod = zip(*rows, strict=True)
    nothing = np.zeros(len(rows), np.int64)
    return ClaimColumns(
        np.array(page), np.array(time), list(source), np.array(lastmod), nothing, np.full(len(rows), -1.0)
    )


def test_a_date_that_moves_on_is_a_signal_and_nothing_else_is():
    claims = said(
        (1, 10.0, "map", 5.0),  # the first date may be old
        (1, 20.0, "map", 15.0),  # later: a signal
        (1, 30.0, "map", 14.0),  # earlier
        (1, 25.0, "feed", 24.0),  # the first of another source
        (2, 10.0, "map", -np.inf),  # no date
        (2, 20.0, "map", 18.0),  # the first date
        (3, 10.0, LAST_MODIFIED, 5.0),
        (3, 20.0, LAST_MODIFIED, 15.0),  # heard at a visit
    )
    page, time = signals(claims)
    assert (page.tolist(), time.tolist()) == ([1], [20.0])
    assert [len(column) for column in signals(claims.take(np.empty(0, np.int64)))] == [0, 0]


def test_only_what_is_new_is_kept():
    before = said((1, 10.0, "map", 5.0), (1, 20.0, "map", 6.0), (2, 10.0, "map", 5.0), (3, 10.0, "feed", 7.0))
    entries = [ClaimedPage(f"http://x/{page}", lastmod) for page, lastmod in ((1, 6.0), (2, 8.0), (3, 7.0), (4, None))]
    now = sitemap_claims(entries, np.array([1, 2, 3, 4]), "map", 30.0)
    assert news(now, before).tolist() == [False, True, True, True]
    assert news(now, before.take(np.empty(0, np.int64))).all()


class Listening(Uniform):
    """Even visits, and an ear."""

    def __init__(self) -> None:
        super().__init__()
        self.heard: set[tuple[int, float]] = set()

    def signal(self, page, time) -> None:
        self.heard |= set(zip(page.tolist(), time.tolist(), strict=True))


def test_a_crawl_hears_the_sitemaps_it_reads_again_and_remembers_after_a_restart(tmp_path):
    """The test web dates its sitemaps truly, so signals are about pages that changed since the day before."""

    def site(start, end):
        rates, rng = power_rates(12, scale=2 / DAY), np.random.default_rng(5)
        return tree_site("site", rates, start=start, end=end, rng=rng, outdegree=4)

    webs = site(START, START + 8 * DAY), site(START + 8 * DAY, START + 9 * DAY)
    settings = TrialSettings(WorkerSettings(6 / DAY, "x/1 (+https://example.org/)"))
    first, second = Listening(), Listening()
    with open_store(str(tmp_path / "store.db"), create=True) as store:
        for web, policy in zip(webs, (first, second), strict=True):
            asyncio.run(run_trial(web, policy, store=store, folder=tmp_path, settings=settings))
        pages = store.pages()
        kept = signals(store.claims(pages.id))
    assert first.heard
    assert first.heard <= set(zip(*(column.tolist() for column in kept), strict=True))
    assert first.heard <= second.heard, "what was announced is recalled from the store"


def test_a_sitemap_may_announce_a_page_that_somebody_added_meanwhile(tmp_path):
    """The scope does not cover it, and yet it is to be visited: nobody told this worker of it so far."""
    url = "http://x.example/"
    with open_store(str(tmp_path / "store.db"), create=True) as store:
        [page] = store.discover([url], 1.0).tolist()
        scheduler = RevisitScheduler(ValuedPolicy(), budget=1.0)
        recorder = Recorder("worker", store, scheduler, HostScope(frozenset()), NoArchive())
        for now, lastmod in ((10.0, 5.0), (20.0, 15.0)):
            recorder.record_claims([ClaimedPage(url, lastmod)], "http://x.example/sitemap.xml", now)
        scheduler.fit(30.0)
        assert scheduler.due(np.array([page]), 30.0).tolist() == [1.0], "known, and never seen"
