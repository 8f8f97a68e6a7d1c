import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from recrawl.simulate.virtual_web import EventTimes, VirtualWeb, WebLinks, join

times = st.floats(0, 100).map(lambda t: round(t, 1))


@st.composite
def webs(draw):
    pages = draw(st.integers(1, 5))
    lifetimes = [sorted(draw(st.lists(times, min_size=1, max_size=4, unique=True))) for _ in range(pages)]
    changes = [sorted(draw(st.lists(times, max_size=6))) for _ in range(pages)]
    page = st.integers(0, pages - 1)
    links = draw(st.lists(st.tuples(page, page, times, st.one_of(times, st.just(np.inf))), max_size=8))
    return lifetimes, changes, links


def build(lifetimes, changes, links, host="a.living.test"):
    pages = len(lifetimes)
    rows = lambda table: np.repeat(np.arange(pages), [len(row) for row in table])  # noqa: E731
    flat = lambda table: [time for row in table for time in row]  # noqa: E731
    columns = [[link[place] for link in links] for place in range(4)]
    return VirtualWeb(
        hosts=(host,),
        host=np.zeros(pages, np.int64),
        path=[f"/{page}" for page in range(pages)],
        title=[str(page) for page in range(pages)],
        kind=np.zeros(pages, np.uint8),
        rate=np.full(pages, np.nan),
        lifetimes=EventTimes.of(rows(lifetimes), flat(lifetimes), pages),
        changes=EventTimes.of(rows(changes), flat(changes), pages),
        links=WebLinks.of(*columns, pages=pages),
        start=0.0,
        end=100.0,
    )


@given(webs(), times, times)
def test_columns_answer_as_plain_loops_do(facts, a, b):
    lifetimes, changes, links = facts
    web = build(lifetimes, changes, links)
    every = np.arange(len(web))
    low, high = min(a, b), max(a, b)
    alive = [sum(t <= a for t in row) % 2 == 1 for row in lifetimes]
    assert web.version(every, a).tolist() == [sum(t <= a for t in row) for row in changes]
    assert web.alive(every, a).tolist() == alive
    assert web.changes_between(low, high).tolist() == [sum(low < t <= high for t in row) for row in changes]
    modified = [max([t for t in row if t <= a], default=life[0]) for row, life in zip(changes, lifetimes, strict=True)]
    assert web.modified(every, a).tolist() == modified
    assert web.born.tolist() == [row[0] for row in lifetimes]
    assert web.died.tolist() == [row[-1] if len(row) % 2 == 0 else np.inf for row in lifetimes]
    there = [(s, t) for s, t, added, removed in links if added <= a < removed and alive[s]]
    assert sorted(zip(*(column.tolist() for column in web.links_between(a)), strict=True)) == sorted(there)


@given(webs(), times)
def test_one_page_agrees_with_the_columns(facts, now):
    web = build(*facts)
    for page in range(len(web)):
        state = web.state(page, now)
        assert state.alive == web.alive(page, now)
        assert state.version == web.version(page, now)
        assert state.modified == web.modified(page, now)
        assert state.born == (web.born[page] <= now)
        there = sorted(t for s, t, added, removed in facts[2] if s == page and added <= now < removed)
        assert web.links_at(page, now).tolist() == there


@given(webs())
def test_links_without_a_reason_are_counted(facts):
    lifetimes, changes, links = facts
    reasons = [set(life) | set(row) for life, row in zip(lifetimes, changes, strict=True)]
    without = sum(t not in reasons[s] for s, _, *ends in links for t in ends if np.isfinite(t))
    assert build(*facts).unexplained_links() == without


def test_join_keeps_each_web_and_links_the_homes():
    one = build([[0.0], [5.0, 9.0]], [[1.0], []], [(0, 1, 0.0, np.inf)])
    two = build([[2.0]], [[4.0, 6.0]], [], host="b.living.test")
    both = join([one, two])
    assert both.hosts == ("a.living.test", "b.living.test")
    assert [both.url(page, 8080) for page in (1, 2)] == ["http://a.living.test:8080/1", "http://b.living.test:8080/0"]
    assert both.links_at(0, 3.0).tolist() == [1, 2]
    assert both.links_at(2, 3.0).tolist() == [0]
    assert both.version([0, 2], 5.0).tolist() == [1, 1]
    assert both.died.tolist() == [np.inf, 9.0, np.inf]


def test_columns_of_unequal_length_are_refused():
    web = build([[0.0]], [[]], [])
    with pytest.raises(ValueError, match="'path' has 0 rows"):
        VirtualWeb(
            web.hosts,
            web.host,
            [],
            web.title,
            web.kind,
            web.rate,
            web.lifetimes,
            web.changes,
            web.links,
            web.start,
            web.end,
        )


def test_a_page_that_was_never_born_is_refused():
    with pytest.raises(ValueError, match="needs a birth"):
        build([[]], [[]], [])
