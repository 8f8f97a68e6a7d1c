"""What became of pages and links from crawl to crawl: a site told by hand, and plain Python for random ones."""

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from recrawl.assess.changes_over_time import PageOutcome, SeenLinks, crawl_changes
from recrawl.assess.crawl_segmentation import known_segments
from recrawl.assess.observations import Observations, last_change, last_there, times_there
from recrawl.model import ChangeKind, Outcome, Verdict, Visits
from recrawl.web.report.site_graph import strips

NO_LINKS = SeenLinks(np.empty(0, np.int64), np.empty(0), np.empty(0))
PERIOD = 100.0
THERE, GONE = Outcome.FETCHED, Outcome.GONE
NOT_SAID, SAME, OTHER = Verdict.UNKNOWN, Verdict.UNCHANGED, Verdict.CHANGED


def compared(visits, kind=None, links=NO_LINKS):
    """The counts of crawls that begin every 100 seconds, of visits (page, time, outcome, verdict)."""
    page, time, outcome, verdict = zip(*visits, strict=True)
    observations = Observations.from_visits(Visits.of(page, np.array(time, float), outcome=outcome, verdict=verdict))
    site = np.zeros(len(observations), np.int64)
    rounds = known_segments(observations, site, (observations.time // PERIOD).astype(np.int64))
    return crawl_changes(observations, rounds, 0, site if kind is None else np.array(kind), links)


def told(counts):
    return [{PageOutcome(one): int(count) for one, count in enumerate(line) if count} for line in counts]


STORY = [
    (1, 0, THERE, NOT_SAID), (1, 100, THERE, SAME), (1, 200, THERE, OTHER), (1, 300, THERE, SAME),
    (2, 0, THERE, NOT_SAID), (2, 100, THERE, SAME),  # and never again
    (3, 0, THERE, NOT_SAID), (3, 200, THERE, SAME), (3, 300, THERE, NOT_SAID),
    (4, 100, THERE, NOT_SAID), (4, 200, THERE, OTHER), (4, 300, GONE, OTHER),
    (5, 300, THERE, NOT_SAID),
]  # fmt: skip


def test_every_fate_of_a_page():
    found = compared(STORY)
    assert found.crawl.tolist() == [1, 2, 3]
    assert told(found.pages[:, 0]) == [
        {PageOutcome.UNCHANGED: 2, PageOutcome.NEW: 1, PageOutcome.LEFT_OUT: 1},
        {PageOutcome.UNCHANGED: 1, PageOutcome.CHANGED: 2, PageOutcome.DELETED: 1},
        {PageOutcome.UNCHANGED: 1, PageOutcome.NEW: 1, PageOutcome.DELETED: 1, PageOutcome.UNKNOWN: 1},
    ]


def test_kinds_are_counted_apart():
    found = compared(STORY, kind=[0, 1, 1, 0, 2])
    assert found.pages.shape == (3, 3, len(PageOutcome))
    assert told(found.pages[1]) == [{PageOutcome.CHANGED: 2}, {PageOutcome.UNCHANGED: 1, PageOutcome.DELETED: 1}, {}]
    assert (found.pages.sum(axis=1) == compared(STORY).pages[:, 0]).all()


def test_links_come_and_go_with_their_pages():
    row, first, last = zip((0, 0, 100), (0, 200, 200), (1, 0, 100), (2, 0, 0), (3, 100, 200), strict=True)
    links = SeenLinks(np.array(row), np.array(first, float), np.array(last, float))
    assert told(compared(STORY, links=links).links) == [
        {PageOutcome.UNCHANGED: 2, PageOutcome.NEW: 1, PageOutcome.LEFT_OUT: 1},
        # Of page 1 one goes and one comes, page 2 is deleted, page 3 was found unchanged, so its links were not read.
        {PageOutcome.UNCHANGED: 2, PageOutcome.NEW: 1, PageOutcome.DELETED: 2},
        {PageOutcome.UNCHANGED: 2, PageOutcome.DELETED: 1},
    ]


def test_links_stand_until_other_links_are_found():
    """Who finds the same links on a page whose text changed does not write them down again."""
    kinds = [ChangeKind.NONE, ChangeKind.TEXT, ChangeKind.TEXT, ChangeKind.LINKS | ChangeKind.TEXT]
    visits = Visits.of([1] * 4, PERIOD * np.arange(4), verdict=[NOT_SAID, OTHER, OTHER, OTHER], kinds=kinds)
    observations = Observations.from_visits(visits)
    site = np.zeros(1, np.int64)
    rounds = known_segments(observations, site, np.arange(4))
    links = SeenLinks(np.zeros(2, np.int64), np.zeros(2), np.array([0.0, 3 * PERIOD]))
    assert told(crawl_changes(observations, rounds, 0, site, links).links) == [
        {PageOutcome.UNCHANGED: 2},
        {PageOutcome.UNCHANGED: 2},
        {PageOutcome.UNCHANGED: 1, PageOutcome.DELETED: 1},
    ]


def test_a_partial_crawl_deletes_nothing():
    visits = [(page, 0, THERE, NOT_SAID) for page in range(9)] + [(0, 100, THERE, SAME)]
    assert told(compared(visits).pages[:, 0]) == [{PageOutcome.UNCHANGED: 1, PageOutcome.LEFT_OUT: 8}]


def test_one_crawl_and_none_have_nothing_to_compare():
    assert len(compared([(1, 0, THERE, NOT_SAID)]).crawl) == 0
    observations = Observations.from_visits(Visits.empty())
    rounds = known_segments(observations, np.empty(0, np.int64), np.empty(0, np.int64))
    assert len(crawl_changes(observations, rounds, 0, np.empty(0, np.int64), NO_LINKS).crawl) == 0


def naive(visits, crawls):
    """The rules, page by page and crawl by crawl."""
    counts = [dict.fromkeys(PageOutcome, 0) for _ in range(crawls)]
    of = {}
    for page, time, outcome, verdict in sorted(visits):
        of.setdefault(page, {})[int(time // PERIOD)] = (outcome, verdict)
    there = [
        sum(1 for observations in of.values() if observations.get(crawl, (GONE,))[0] == THERE)
        for crawl in range(crawls)
    ]
    for observations in of.values():
        known = False
        last = max(observations)
        is_lost = False
        for crawl in range(crawls):
            if crawl in observations:
                outcome, verdict = observations[crawl]
                changed_state = known != (outcome == THERE)
                if outcome == GONE and known:
                    counts[crawl][PageOutcome.DELETED] += 1
                elif outcome == THERE and not known:
                    counts[crawl][PageOutcome.NEW] += 1
                elif outcome == THERE:
                    fate = {SAME: PageOutcome.UNCHANGED, OTHER: PageOutcome.CHANGED, NOT_SAID: PageOutcome.UNKNOWN}[
                        verdict
                    ]
                    counts[crawl][fate] += 1
                known = known != changed_state
            elif known and not is_lost:
                whole = there[crawl] >= 0.5 * there[crawl - 1]
                is_lost = crawl > last and whole
                counts[crawl][PageOutcome.DELETED if is_lost else PageOutcome.LEFT_OUT] += 1
    return [{one: count for one, count in line.items() if count} for line in counts[1:]]


@given(
    st.dictionaries(
        st.tuples(st.integers(0, 6), st.integers(0, 5)),
        st.tuples(st.sampled_from([THERE, THERE, GONE]), st.sampled_from([NOT_SAID, SAME, OTHER])),
        min_size=1,
    )
)
def test_counts_are_those_of_plain_python(observations):
    """Every crawl looks at something, so that numbers of crawls are those of hundreds of seconds."""
    observations |= {(99, crawl): (THERE, SAME) for crawl in range(6)}
    visits = [(page, crawl * PERIOD, *found) for (page, crawl), found in observations.items()]
    assert told(compared(visits).pages[:, 0]) == naive(visits, 6)


def test_last_looks_tell_changes_and_presence():
    visits = Visits.of([1, 1, 1, 2], [0.0, 5.0, 9.0, 3.0], outcome=[0, 0, 3, 3], verdict=[0, 2, 2, 0])
    observations = Observations.from_visits(visits)
    assert last_change(observations).tolist()[0] == 9.0
    assert np.isnan(last_change(observations)[1])
    assert last_there(observations)[0] == 5.0
    assert np.isnan(last_there(observations)[1])
    assert times_there(observations).tolist() == [2, 0]


@given(st.lists(st.tuples(st.integers(0, 3), st.integers(0, 2)), min_size=1, max_size=400), st.integers(3, 60))
def test_every_page_has_a_place_of_its_own_inside_its_cell(cells, width):
    row, column = np.array(cells).T
    places = strips(row, column, 3, float(width))
    assert (places.x > places.edges[column]).all()
    assert (places.x < places.edges[column + 1]).all()
    assert (np.floor(places.y) == row).all()
    assert len(set(zip(places.x.round(9).tolist(), places.y.round(9).tolist(), strict=True))) == len(row)
    assert places.edges[-1] == np.float64(width).round(9) or abs(places.edges[-1] - width) < 1e-9
    for one in set(cells):
        inside = (row == one[0]) & (column == one[1])
        assert (np.diff(places.x[inside]) >= 0).all()  # by address, from left to right
