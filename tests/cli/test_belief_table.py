"""What the store's visits and claims teach together: dates are heard where they proved true, and nowhere else."""

import numpy as np
import pytest

from recrawl.app.rates.belief_table import VisitSpan, claims_of, learn, statements_of, training_of
from recrawl.estimate.posterior.posterior_estimators import Posterior
from recrawl.model import ChangeKind, Verdict, Visits
from recrawl.simulate.sampling import PageTruth, RegularVisits, sample
from recrawl.simulate.virtual_web import PoissonProcess
from recrawl.store.open import open_store
from recrawl.store.store_values import LAST_MODIFIED, ClaimColumns
from recrawl.time import DAY

START, PAGES, SPAN = 1.79e9, 60, 120 * DAY


@pytest.fixture
def told(tmp_path):
    """A store with visits to two hosts whose pages tell when they changed: the first truly, the second never."""
    rng = np.random.default_rng(3)
    changes = PoissonProcess().times(np.full(PAGES, 0.4 / DAY), START, START + SPAN, rng)
    truth = PageTruth(np.full(PAGES, START), np.full(PAGES, np.inf), changes, START, START + SPAN)
    visits = sample(truth, RegularVisits(6 * DAY), rng)
    with open_store(str(tmp_path / "x.db"), create=True) as store:
        urls = [f"http://{'true' if k < PAGES // 2 else 'lying'}.test/{k}" for k in range(PAGES)]
        page = store.discover(urls, 0.0)
        last = np.nan_to_num(changes.last_until(visits.page, visits.time), nan=START - DAY)
        said = np.where(visits.page < PAGES // 2, last, visits.time)
        news = np.append(True, (visits.page[1:] != visits.page[:-1]) | (said[1:] != said[:-1]))
        visits.page[:] = page[visits.page]
        store.record(visits)
        some = np.flatnonzero(news)
        yield store, visits, said, some


def claim(store, visits, said, rows, source):
    nothing = np.zeros(len(rows), np.int64)
    store.add_claims(
        ClaimColumns(visits.page[rows], visits.time[rows], [source] * len(rows), said[rows], nothing, nothing - 1.0)
    )


@pytest.mark.parametrize("source", [LAST_MODIFIED, "http://true.test/sitemap.xml"])
def test_dates_are_heard_where_they_proved_true(told, source):
    store, visits, said, news = told
    rows = news if source == LAST_MODIFIED else np.arange(len(visits))
    claim(store, visits, said, rows, source)
    known = learn(store, estimator=Posterior())
    plain = Posterior()(known.training.evidence)
    rate = 0.4 / DAY
    wide, narrow = (np.log(b.quantile(0.95) / b.quantile(0.05)) for b in (plain, known.belief))
    honest = known.histories.page < np.sort(known.histories.page)[PAGES // 2]
    assert narrow[honest].mean() < 0.9 * wide[honest].mean()
    off = np.abs(np.log(known.belief.quantile(0.5) / rate))
    assert off[honest].mean() < 0.4
    np.testing.assert_allclose(narrow[~honest], wide[~honest])


def test_a_header_stands_until_it_changes(told):
    store, visits, said, news = told
    claim(store, visits, said, news, LAST_MODIFIED)
    training = training_of(store, VisitSpan())
    [statements] = statements_of(claims_of(store, training, VisitSpan()), training.histories)
    expected = {(p, t): s for p, t, s in zip(visits.page.tolist(), visits.time.tolist(), said.tolist(), strict=True)}
    found = zip(statements.page.tolist(), statements.time.tolist(), statements.changed_at.tolist(), strict=True)
    assert {(p, t): s for p, t, s in found} == expected


def test_dates_say_nothing_of_new_links_nor_of_what_came_later(told):
    store, visits, said, news = told
    claim(store, visits, said, news, LAST_MODIFIED)
    links = VisitSpan(kind=ChangeKind.NEW_LINKS)
    assert len(claims_of(store, training_of(store, links), links)) == 0
    early = VisitSpan(until=float(np.median(visits.time)))
    claims = claims_of(store, training_of(store, early), early)
    assert 0 < len(claims) < len(news)
    assert claims.time.max() <= early.until
    assert (visits.verdict != Verdict.UNKNOWN).any()


@pytest.mark.parametrize("estimator", [None, Posterior()])
def test_a_changefreq_is_a_prior_that_looks_outgrow(told, estimator):
    store, visits, *_ = told
    before = learn(store, estimator=estimator).belief.quantile(0.5)
    page, rows = np.unique(visits.page, return_index=True)
    often = np.where(np.arange(PAGES) % 2, 7, 1)  # never, always
    nothing = np.full(PAGES, -np.inf)
    store.add_claims(
        ClaimColumns(page, visits.time[rows], ["http://x/sitemap.xml"] * PAGES, nothing, often, np.full(PAGES, -1.0))
    )
    after = learn(store, estimator=estimator).belief.quantile(0.5)
    assert (after[often == 1] > before[often == 1]).all()
    assert (after[often == 7] < before[often == 7]).all()
    assert (np.abs(np.log(after / before)) < 0.4).all()


def test_what_embeds_no_links_has_no_rate_of_new_links(tmp_path):
    """Nobody reads links in a font: that nothing changed says nothing about them."""
    with open_store(str(tmp_path / "x.db"), create=True) as store:
        page = store.discover(["http://a.test/page.html", "http://a.test/font.woff2"], 0.0)
        days = np.arange(20.0)
        verdict = np.where(days == 0, Verdict.UNKNOWN, Verdict.UNCHANGED)
        store.record(Visits.of(np.repeat(page, 20), np.tile(START + days * DAY, 2), verdict=np.tile(verdict, 2)))
        for kind in (ChangeKind.NEW_LINKS, ChangeKind.LINKS, ChangeKind.NEW_PUBLICATIONS):
            assert np.isnan(learn(store, VisitSpan(kind=kind)).rate).tolist() == [False, True]
        for other in (None, ChangeKind.CONTENT):
            assert np.isfinite(learn(store, VisitSpan(kind=other)).rate).all()
