"""What became of pages and links from crawl to crawl: a site told by hand, and plain Python for random ones."""

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from recrawl.assess.crawl_changes import Became, SeenLinks, crawl_changes
from recrawl.assess.last_looks import last_change, last_there, times_there
from recrawl.assess.looks import Looks
from recrawl.assess.page_strips import strips
from recrawl.assess.rounds import known_rounds
from recrawl.model import ChangeKind, Outcome, Verdict, Visits

NO_LINKS = SeenLinks(np.empty(0, np.int64), np.empty(0), np.empty(0))
PERIOD = 100.0
THERE, GONE = Outcome.FETCHED, Outcome.GONE
NOT_SAID, SAME, OTHER = Verdict.UNKNOWN, Verdict.UNCHANGED, Verdict.CHANGED


def compared(visits, kind=None, links=NO_LINKS):
    """The counts of crawls that begin every 100 seconds, of visits (page, time, outcome, verdict)."""
    page, time, outcome, verdict = zip(*visits, strict=True)
    looks = Looks.from_visits(Visits.of(page, np.array(time, float), outcome=outcome, verdict=verdict))
    site = np.zeros(len(looks), np.int64)
    rounds = known_rounds(looks, site, (looks.time // PERIOD).astype(np.int64))
    return crawl_changes(looks, rounds, 0, site if kind is None else np.array(kind), links)


def told(counts):
    return [{Became(one): int(count) for one, count in enumerate(line) if count} for line in counts]


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
        {Became.UNCHANGED: 2, Became.NEW: 1, Became.LEFT_OUT: 1},
        {Became.UNCHANGED: 1, Became.CHANGED: 2, Became.DELETED: 1},
        {Became.UNCHANGED: 1, Became.NEW: 1, Became.DELETED: 1, Became.UNKNOWN: 1},
    ]


def test_kinds_are_counted_apart():
    found = compared(STORY, kind=[0, 1, 1, 0, 2])
    assert found.pages.shape == (3, 3, len(Became))
    assert told(found.pages[1]) == [{Became.CHANGED: 2}, {Became.UNCHANGED: 1, Became.DELETED: 1}, {}]
    assert (found.pages.sum(axis=1) == compared(STORY).pages[:, 0]).all()


def test_links_come_and_go_with_their_pages():
    row, first, last = zip((0, 0, 100), (0, 200, 200), (1, 0, 100), (2, 0, 0), (3, 100, 200), strict=True)
    links = SeenLinks(np.array(row), np.array(first, float), np.array(last, float))
    assert told(compared(STORY, links=links).links) == [
        {Became.UNCHANGED: 2, Became.NEW: 1, Became.LEFT_OUT: 1},
        # Of page 1 one goes and one comes, page 2 is deleted, page 3 was found unchanged, so its links were not read.
        {Became.UNCHANGED: 2, Became.NEW: 1, Became.DELETED: 2},
        {Became.UNCHANGED: 2, Became.DELETED: 1},
    ]


def test_links_stand_until_other_links_are_found():
    """Who finds the same links on a page whose text changed does not write them down again."""
    kinds = [ChangeKind.NONE, ChangeKind.TEXT, ChangeKind.TEXT, ChangeKind.LINKS | ChangeKind.TEXT]
    visits = Visits.of([1] * 4, PERIOD * np.arange(4), verdict=[NOT_SAID, OTHER, OTHER, OTHER], kinds=kinds)
    looks = Looks.from_visits(visits)
    site = np.zeros(1, np.int64)
    rounds = known_rounds(looks, site, np.arange(4))
    links = SeenLinks(np.zeros(2, np.int64), np.zeros(2), np.array([0.0, 3 * PERIOD]))
    assert told(crawl_changes(looks, rounds, 0, site, links).links) == [
        {Became.UNCHANGED: 2},
        {Became.UNCHANGED: 2},
        {Became.UNCHANGED: 1, Became.DELETED: 1},
    ]


def test_a_partial_crawl_deletes_nothing():
    visits = [(page, 0, THERE, NOT_SAID) for page in range(9)] + [(0, 100, THERE, SAME)]
    assert told(compared(visits).pages[:, 0]) == [{Became.UNCHANGED: 1, Became.LEFT_OUT: 8}]


def test_one_crawl_and_none_have_nothing_to_compare():
    assert len(compared([(1, 0, THERE, NOT_SAID)]).crawl) == 0
    looks = Looks.from_visits(Visits.empty())
    rounds = known_rounds(looks, np.empty(0, np.int64), np.empty(0, np.int64))
    assert len(crawl_changes(looks, rounds, 0, np.empty(0, np.int64), NO_LINKS).crawl) == 0


def naive(visits, crawls):
    """The rules, page by page and crawl by crawl."""
    counts = [dict.fromkeys(Became, 0) for _ in range(crawls)]
    of = {}
    for page, time, outcome, verdict in sorted(visits):
        of.setdefault(page, {})[int(time // PERIOD)] = (outcome, verdict)
    there = [sum(1 for looks in of.values() if looks.get(crawl, (GONE,))[0] == THERE) for crawl in range(crawls)]
    for looks in of.values():
        known = False
        last = max(looks)
        is_lost = False
        for crawl in range(crawls):
            if crawl in looks:
                outcome, verdict = looks[crawl]
                changed_state = known != (outcome == THERE)
                if outcome == GONE and known:
                    counts[crawl][Became.DELETED] += 1
                elif outcome == THERE and not known:
                    counts[crawl][Became.NEW] += 1
                elif outcome == THERE:
                    fate = {SAME: Became.UNCHANGED, OTHER: Became.CHANGED, NOT_SAID: Became.UNKNOWN}[verdict]
                    counts[crawl][fate] += 1
                known = known != changed_state
            elif known and not is_lost:
                whole = there[crawl] >= 0.5 * there[crawl - 1]
                is_lost = crawl > last and whole
                counts[crawl][Became.DELETED if is_lost else Became.LEFT_OUT] += 1
    return [{one: count for one, count in line.items() if count} for line in counts[1:]]


@given(
    st.dictionaries(
        st.tuples(st.integers(0, 6), st.integers(0, 5)),
        st.tuples(st.sampled_from([THERE, THERE, GONE]), st.sampled_from([NOT_SAID, SAME, OTHER])),
        min_size=1,
    )
)
def test_counts_are_those_of_plain_python(looks):
    """Every crawl looks at something, so that numbers of crawls are those of hundreds of seconds."""
    looks |= {(99, crawl): (THERE, SAME) for crawl in range(6)}
    visits = [(page, crawl * PERIOD, *found) for (page, crawl), found in looks.items()]
    assert told(compared(visits).pages[:, 0]) == naive(visits, 6)


def test_last_looks_tell_changes_and_presence():
    visits = Visits.of([1, 1, 1, 2], [0.0, 5.0, 9.0, 3.0], outcome=[0, 0, 3, 3], verdict=[0, 2, 2, 0])
    looks = Looks.from_visits(visits)
    assert last_change(looks).tolist()[0] == 9.0
    assert np.isnan(last_change(looks)[1])
    assert last_there(looks)[0] == 5.0
    assert np.isnan(last_there(looks)[1])
    assert times_there(looks).tolist() == [2, 0]


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
