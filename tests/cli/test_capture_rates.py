"""What a capture is told of change rates: visits before sitemaps before neighbours, and nothing of its own doing."""

import json

import numpy as np

from recrawl.app.site_capture import BelievedRates, Priorities
from recrawl.capture.believed_rates import PRIOR_HAZARD
from recrawl.crawl.site_capture.capture_order import CaptureOrder
from recrawl.crawl.site_capture.capture_terms import RateSource
from recrawl.estimate import site_signals
from recrawl.estimate.posterior.gamma_posterior import UNKNOWN_RATE
from recrawl.model import Outcome, Verdict, Visits
from recrawl.store.open import open_store
from recrawl.store.store_values import ClaimColumns
from recrawl.time import DAY

URLS = [f"http://a.example/{path}" for path in ("seen", "listed", "beside", "busy")]
START = 1.79e9


def test_rates_come_from_visits_else_from_claims_else_from_around(tmp_path):
    with open_store(tmp_path / "store.db", create=True) as store:
        seen, listed, beside, busy = pages = store.discover(URLS, START)
        first = BelievedRates(store, START)(pages)
        assert np.allclose(first, 1 / (30 * DAY) + PRIOR_HAZARD)  # nothing is known of anything
        times = START + DAY * np.arange(1, 31)
        for page, verdict in ((seen, Verdict.UNCHANGED), (busy, Verdict.CHANGED)):
            store.record(Visits.of(np.full(30, page), times, verdict=verdict))
        daily = ClaimColumns(
            np.array([listed]), np.array([START]), ["map"], np.array([-np.inf]), np.array([3]), np.ones(1)
        )
        store.add_claims(daily)
        rate = dict(zip(pages.tolist(), BelievedRates(store, times[-1])(pages).tolist(), strict=True))
        assert rate[int(seen)] < 1 / (20 * DAY) < 1 / (3 * DAY) < rate[int(busy)]
        assert 0.5 / DAY < rate[int(listed)] < 10 / DAY
        assert rate[int(seen)] < rate[int(beside)] < rate[int(busy)]
        # What comes after the beginning of the capture changes nothing.
        store.record(Visits.of(np.full(9, seen), times[-1] + np.arange(1.0, 10.0), verdict=Verdict.CHANGED))
        assert BelievedRates(store, times[-1])(pages).tolist() == list(rate.values())


def test_where_rates_come_from_can_be_chosen(tmp_path):
    with open_store(tmp_path / "store.db", create=True) as store:
        seen, listed, both, _ = pages = store.discover(URLS, START)
        times = START + DAY * np.arange(1, 31)
        for page in (seen, both):
            store.record(Visits.of(np.full(30, page), times, verdict=Verdict.CHANGED))
        weekly = np.full(2, 4)
        claimed = np.array([listed, both])
        store.add_claims(ClaimColumns(claimed, np.full(2, START), ["map"] * 2, np.full(2, -np.inf), weekly, np.ones(2)))

        def rates(source):
            believed = BelievedRates(store, times[-1], source)
            hazard = 0.0 if source is RateSource.EQUAL else believed.hazard(pages)
            return dict(zip(URLS, (believed(pages) - hazard).round(15).tolist(), strict=True))

        known, belief, around = (rates(RateSource(name)) for name in ("known", "belief", "neighbours"))
        literal, corrected, equal = (rates(RateSource(name)) for name in ("sitemap", "sitemap-corrected", "equal"))
    a, b, c, d = URLS
    assert known == {a: belief[a], b: literal[b], c: belief[c], d: around[d]}
    assert [literal[url] for url in (b, c)] == site_signals.rates(weekly, "literal").round(15).tolist()
    assert [corrected[url] for url in (b, c)] == site_signals.rates(weekly, "corrected").round(15).tolist()
    assert corrected[b] > 50 * literal[b]
    assert literal[a] == corrected[a] == around[a] == around[b] == belief[b] != belief[a]
    assert set(equal.values()) == {round(UNKNOWN_RATE, 15)}


def test_an_order_keeps_where_rates_come_from_and_older_ones_know_one_way():
    order = CaptureOrder(site="http://a.example/", strategy="bfs", rates=RateSource.SITEMAP_CORRECTED)
    assert CaptureOrder.from_json(order.as_json()) == order
    before = CaptureOrder(site="http://a.example/", strategy="bfs")
    words = json.loads(before.as_json())
    del words["rates"]
    assert CaptureOrder.from_json(json.dumps(words)) == before


def test_a_model_speaks_for_pages_that_nobody_has_seen(tmp_path):
    with open_store(str(tmp_path / "store.db"), create=True) as store:
        pages = store.discover(URLS, START)
        rate = BelievedRates(store, START, expected=lambda page: (1.0 + page) / DAY)(pages)
        assert rate.tolist() == ((1.0 + pages) / DAY + PRIOR_HAZARD).tolist()


def test_which_pages_the_model_speaks_for(tmp_path):
    with open_store(str(tmp_path / "store.db"), create=True) as store:
        seen, listed, *_ = pages = store.discover(URLS, START)
        store.record(Visits.of(np.full(9, seen), START + DAY * np.arange(1, 10), verdict=Verdict.CHANGED))
        said = np.array([listed])
        store.add_claims(ClaimColumns(said, np.array([START]), ["map"], np.array([-np.inf]), np.array([4]), np.ones(1)))

        def predicted(source, expected=lambda page: (1.0 + page) / DAY):
            rates = BelievedRates(store, START + 10 * DAY, source, expected)
            mine = rates.predicted(pages)
            found = rates(pages) - (0.0 if source is RateSource.EQUAL else rates.hazard(pages))
            assert np.allclose(found[mine], (1.0 + pages[mine]) / DAY, rtol=1e-9)
            assert not np.isclose(found[~mine], (1.0 + pages[~mine]) / DAY, rtol=1e-9).any()
            return mine.tolist()

        assert predicted(RateSource.KNOWN) == [False, False, True, True]
        assert predicted(RateSource.BELIEF) == [False, True, True, True]
        assert predicted(RateSource.SITEMAP) == [True, False, True, True]
        assert predicted(RateSource.NEIGHBOURS) == [True] * 4
        assert predicted(RateSource.EQUAL) == [False] * 4
        assert not BelievedRates(store, START).predicted(pages).any()


def test_pages_that_were_lost_raise_the_hazard_of_their_host(tmp_path):
    urls = [f"http://{host}.example/{number}" for host in ("stable", "losing") for number in range(20)]
    with open_store(str(tmp_path / "store.db"), create=True) as store:
        pages = store.discover(urls, START)
        times = START + DAY * np.arange(1, 101, 10)
        for place, page in enumerate(pages.tolist()):
            outcome = np.full(len(times), Outcome.FETCHED)
            if place >= 30:
                outcome[5:] = Outcome.GONE
            store.record(Visits.of(np.full(len(times), page), times, outcome=outcome, verdict=Verdict.UNCHANGED))
        hazard = BelievedRates(store, times[-1]).hazard(pages)
    assert len(set(hazard[:20].tolist())) == len(set(hazard[20:].tolist())) == 1
    assert hazard[0] < PRIOR_HAZARD < hazard[20] / 5  # none of 5 years of pages; 10 of 3.8


def test_the_number_that_stands_for_a_belief_fits_the_aim(tmp_path):
    """Mean rates for blur; for revisits the rates that keep the believed probability of staying unchanged."""
    with open_store(str(tmp_path / "store.db"), create=True) as store:
        pages = store.discover(URLS, START)
        for page in pages.tolist():
            verdict = [Verdict.UNCHANGED, Verdict.CHANGED] * 2
            store.record(Visits.of(np.full(4, page), START + DAY * np.arange(1, 5), verdict=verdict))
        once, short, long = (BelievedRates(store, START + 9 * DAY, horizon=span) for span in (None, 1.0, 50 * DAY))
        belief = once.table.belief
        assert np.allclose(once(pages) - once.hazard(pages), belief.mean())
        assert np.allclose(short(pages), once(pages), rtol=1e-3)
        stays = np.exp(-(long(pages) - long.hazard(pages)) * 50 * DAY)
        assert np.allclose(stays, belief.survival(np.full(4, 50 * DAY)))
        assert (long(pages) < once(pages)).all()


def test_what_a_sitemap_says_of_priorities_can_be_the_weight(tmp_path):
    with open_store(str(tmp_path / "store.db"), create=True) as store:
        pages = store.discover(URLS, START)
        for time, priority in ((START, [0.2, 1.0, 0.0]), (START + 1, [0.8, 1.0, -1.0]), (START + 99, [0.1] * 3)):
            none = np.zeros(3, np.int64)
            store.add_claims(
                ClaimColumns(pages[:3], np.full(3, time), ["map"] * 3, np.full(3, -np.inf), none, np.array(priority))
            )
        weight = Priorities(store, START + 9)(pages)
    assert weight.round(9).tolist() == [1.6, 2.0, 0.02, 1.0]
