"""Recorded sites as sites to capture: who is there, what is linked, what counts as a change, what may be believed."""

import numpy as np
import pytest

from recrawl.capture.believed_rates import steady_rates
from recrawl.simulate.sampling import Events, collect
from recrawl.simulate.virtual_web import WebLinks
from recrawl.time import DAY
from recrawl_lab.trials.capture_recorded import (
    SOURCES,
    RecordedSite,
    claimed_categories,
    hazard_before,
    hinted_rates,
    learned_belief,
    nearest_above,
    of_durations,
    past_rates,
    slowed_down,
)

HOME, NEWS, OLD, GONE, LATE = range(5)
URLS = ("http://a.test/", "http://a.test/news/", "http://a.test/news/old", "http://a.test/gone", "http://a.test/late")


@pytest.fixture
def site():
    """200 days; news every four days, home every forty, one page goes on day 120, one comes on day 150."""
    added = [(page, 0.0) for page in (HOME, NEWS, OLD, GONE)] + [(LATE, 150.0)]
    changed = [(NEWS, float(day)) for day in range(4, 200, 4)] + [(HOME, float(day)) for day in range(40, 201, 40)]
    rows = [(page, day, "add") for page, day in added] + [(page, day, "mod") for page, day in changed]
    rows += [(GONE, 120.0, "del")]
    page, day, kind = (np.array(column) for column in zip(*rows, strict=True))
    events = Events(page, day * DAY, kind == "add", kind == "del", np.zeros(len(page), dtype=bool))
    links = WebLinks.of(
        [HOME, OLD, GONE], [GONE, HOME, NEWS], [50 * DAY, 0.0, 0.0], [np.inf, np.inf, 60 * DAY], pages=5
    )
    return RecordedSite(collect("a", URLS, events), links)


def test_only_pages_that_are_there_take_part(site):
    assert site.middle == 100 * DAY
    assert site.pages_at(100 * DAY).tolist() == [HOME, NEWS, OLD, GONE]
    assert site.pages_at(120 * DAY).tolist() == [HOME, NEWS, OLD]
    assert site.pages_at(160 * DAY).tolist() == [HOME, NEWS, OLD, LATE]


def test_going_away_is_a_change_and_rates_are_counts_over_the_span(site):
    found = site.site_at(site.pages_at(100 * DAY), 100 * DAY, 200 * DAY)
    assert (found.rate * 100 * DAY).round(9).tolist() == [3.0, 24.0, 0.0, 1.0]
    assert found.changes.row(GONE).tolist() == [120 * DAY]


def test_links_are_those_of_the_moment_and_those_of_the_paths(site):
    found = site.site_at(site.pages_at(100 * DAY), 100 * DAY, 200 * DAY)
    assert [found.graph.links(page).tolist() for page in range(4)] == [[GONE, NEWS, GONE], [OLD], [HOME], []]
    assert found.seeds.tolist() == [HOME]


def test_a_page_is_below_the_nearest_page_whose_path_it_continues():
    urls = ["http://a.test/x/y/z", "http://a.test/x", "http://a.test/x/", "http://a.test/xy", "http://b.test/"]
    assert nearest_above(urls).tolist() == [1, -1, -1, -1, -1]


def test_rates_are_learned_from_the_past_only(site):
    pages = site.pages_at(site.middle)
    belief = learned_belief(site, pages, site.middle, np.random.default_rng(1))
    learned, steady = belief.mean(), steady_rates(belief, 50 * DAY)
    assert learned.argmax() == steady.argmax() == NEWS
    assert learned[OLD] < learned[HOME] < learned[NEWS]
    assert (steady > 0).all()
    assert (steady < learned).all()
    assert np.exp(-steady * 50 * DAY) == pytest.approx(belief.survival(np.full(4, 50 * DAY)), rel=1e-6)
    assert (past_rates(site, pages, site.middle) * 100 * DAY).round(9).tolist() == [2.0, 25.0, 0.0, 0.0]


def test_an_honest_sitemap_keeps_the_order_of_rates():
    rate = np.array([0.0, 1 / (500 * DAY), 1 / (200 * DAY), 1 / (6 * DAY), 1 / DAY, 1.0])
    assert claimed_categories(rate).tolist() == [7, 7, 6, 4, 3, 1]
    for reading in ("literal", "corrected"):
        assert (np.diff(hinted_rates(rate, reading)) >= 0).all()
    assert (hinted_rates(rate, "literal") <= hinted_rates(rate, "corrected")).all()


def test_slowed_down_a_capture_takes_the_whole_second_half(site):
    trials = {trial.strategy: trial for trial in slowed_down(site, "oracle", ["bfs", "hottest-last-lifo"], seed=1)}
    assert trials["bfs"].pages == 4
    assert trials["bfs"].incoherence == 0
    # Seven slots of 100/7 days: news comes last and is seen again at once, and still it changes in two weeks.
    assert trials["hottest-last-lifo"].incoherence == 3
    assert 1.0 < trials["hottest-last-lifo"].expected_incoherence < 4.0


@pytest.mark.parametrize("source", SOURCES)
def test_whatever_is_believed_every_page_is_captured(site, source):
    trials = slowed_down(site, source, ["sharc-offline", "hottest-first-fifo"], seed=1)
    assert [trial.pages for trial in trials] == [4.0, 4.0]
    assert {trial.source for trial in trials} == {source}


def test_captures_of_a_duration_start_where_the_record_has_room_for_them(site):
    trials = {
        (one.strategy, one.source, one.duration): one
        for one in of_durations(site, [DAY, 90 * DAY], starts=4, seed=1, fewest=1)
    }
    short, long = (trials["bfs-lifo", "none", duration] for duration in (DAY, 90 * DAY))
    assert (short.captures, long.captures) == (4, 2)  # the record has 198 days from its third: starts 66, 99, 132, 165
    assert short.pages == pytest.approx((4 + 4 + 3 + 4) / 4)
    assert (short.better, short.worse, short.incoherence) == (0, 0, 0)
    assert long.incoherence > 0
    learned = trials["sharc-selective", "learned", 90 * DAY]
    assert learned.incoherence <= long.incoherence
    assert learned.worse == 0
    assert learned.believed > trials["sharc-selective", "change-only", 90 * DAY].believed


def test_pages_that_disappeared_before_the_capture_raise_the_hazard(site):
    assert hazard_before(site, 100 * DAY) < 0.05 / (365.25 * DAY)  # none of four pages in 100 days
    assert hazard_before(site, 130 * DAY) > 0.05 / (365.25 * DAY)


def test_a_record_whose_pages_came_late_has_nothing_to_capture_in_its_middle():
    events = Events(
        np.array([0, 1]),
        np.array([0.0, 9.0]),
        np.array([False, True]),
        np.array([True, False]),
        np.zeros(2, dtype=bool),
    )
    late = RecordedSite(collect("late", URLS[:2], events), WebLinks.of([], [], [], [], pages=2))
    assert slowed_down(late, "oracle", ["bfs"], seed=1) == []
    assert of_durations(late, [DAY], starts=3, seed=1, fewest=3) == []
