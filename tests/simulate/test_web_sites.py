import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from recrawl.simulate.sites import PageMixture, SiteGrowth, lognormal_rates, power_rates, synthetic_web, tree_site
from recrawl.simulate.virtual_web import PageKind
from recrawl.time import DAY

START = 1_700_000_000.0


def site(pages=60, seed=0, **more):
    rate = power_rates(pages, scale=50 / DAY, skew=0.5)
    return tree_site("news", rate, start=START, end=START + 7 * DAY, rng=np.random.default_rng(seed), **more)


def test_rates_follow_the_power_law_in_both_directions():
    cold = power_rates(1000, scale=2.0, skew=1.2)
    assert cold[0] == 2.0
    assert cold[9] == pytest.approx(2.0 / 10**1.2)
    assert np.array_equal(power_rates(1000, scale=2.0, skew=1.2, leaves="hot"), cold[::-1])


def test_lognormal_rates_have_their_median_and_spread():
    rates = lognormal_rates(20_000, median=1e-5, sigma=1.5, rng=np.random.default_rng(0))
    assert np.median(rates) == pytest.approx(1e-5, rel=0.05)
    assert np.log(rates).std() == pytest.approx(1.5, rel=0.03)


@given(st.integers(1, 60), st.integers(1, 9))
@settings(max_examples=30, deadline=None)
def test_the_tree_is_complete_and_links_both_ways(pages, outdegree):
    web = site(pages, outdegree=outdegree)
    for page in range(pages):
        links = web.links_at(page, START).tolist()
        parent = [(page - 1) // outdegree] if page else []
        children = [child for child in range(1, pages) if (child - 1) // outdegree == page]
        assert links == sorted(parent + children)


@given(st.integers(0, 2**32))
@settings(max_examples=30, deadline=None)
def test_what_comes_and_goes_does_so_at_a_change_of_the_page_that_shows_it(seed):
    web = site(seed=seed, growth=SiteGrowth(appearing=0.5, vanishing=0.5, cross_links=1.0))
    assert web.unexplained_links() == 0
    row = web.changes.row_of_event()
    assert np.all(web.changes.times > web.born[row])
    assert np.all(web.changes.times < web.died[row])
    assert np.all(web.died > web.born)


def test_growth_brings_late_births_deaths_and_passing_links():
    web = site(400, growth=SiteGrowth(appearing=0.3, vanishing=0.2, cross_links=1.0))
    leaves = 350
    assert np.sum(web.born > START) == pytest.approx(0.3 * leaves, rel=0.3)
    assert np.sum(np.isfinite(web.died)) == pytest.approx(0.2 * leaves, rel=0.4)
    passing = np.isfinite(web.links.removed) & (web.links.added > START) & (web.links.removed > web.links.added)
    assert passing.sum() > 50
    dead = np.flatnonzero(np.isfinite(web.died))
    assert all(page in web.links_at((page - 1) // 8, np.nextafter(web.died[page], 0)) for page in dead)
    tree = [(page, (page - 1) // 8) for page in dead]
    assert not any(page in web.links_at(parent, web.died[page]) for page, parent in tree)
    before, after = web.links_between(START)[0], web.links_between(web.end)[0]
    assert len(before) != len(after)


def test_a_quiet_site_neither_grows_nor_shrinks():
    web = tree_site(
        "still", np.zeros(30), start=0.0, end=DAY, rng=np.random.default_rng(0), growth=SiteGrowth(0.9, 0.9, 2.0)
    )
    assert len(web.changes.times) == 0
    assert np.all(web.born == 0.0)
    assert not np.isfinite(web.died).any()


def test_mixture_makes_data_of_leaves_and_hides_some():
    web = site(500, mixture=PageMixture(rdf=0.2, json=0.2, csv=0.2, private=0.1))
    for kind in (PageKind.RDF, PageKind.JSON, PageKind.CSV):
        assert np.mean(web.kind == kind) == pytest.approx(0.2, abs=0.07)
    assert web.kind[0] == PageKind.HTML
    private = [path.startswith("/private/") for path in web.path]
    assert np.mean(private) == pytest.approx(0.1, abs=0.05)
    assert all(path.endswith(".json") == (kind == PageKind.JSON) for path, kind in zip(web.path, web.kind, strict=True))


@given(st.integers(1, 300), st.integers(1, 12))
@settings(max_examples=30, deadline=None)
def test_paths_are_unique(pages, outdegree):
    web = site(pages, outdegree=outdegree, mixture=PageMixture(private=0.5))
    assert len(set(web.path)) == pages


def test_the_synthetic_web_repeats_with_its_seed_and_has_three_hosts():
    first, again, other = (synthetic_web(start=START, pages=90, seed=seed) for seed in (1, 1, 2))
    assert len(first) == 90
    assert first.hosts == ("news.living.test", "office.living.test", "data.living.test")
    assert np.array_equal(first.changes.times, again.changes.times)
    assert not np.array_equal(first.changes.times, other.changes.times)
    assert first.unexplained_links() == 0
    assert np.bincount(first.host).tolist() == [30, 30, 30]
