"""Collections: change logs become the truth that experiments are judged by."""

import numpy as np
import pytest

from recrawl.formats.columnar.dataset import LoggedChange, read_dataset
from recrawl.simulate.sampling import Events, collect
from recrawl.time import DAY, HOUR

ADD, MOD, DEL = "add", "mod", "del"


def log(*rows, bulk=()):
    """A collection of pages named in rows of (page, day, what happened)."""
    page, day, what = (np.array(column) for column in zip(*rows, strict=True))
    many = np.zeros(len(page), np.bool_)
    many[list(bulk)] = True
    urls = tuple(f"http://site.test/{k}" for k in range(int(page.max()) + 1))
    return collect("site", urls, Events(page, day * DAY, what == ADD, what == DEL, many))


def test_changes_are_counted_within_lives_only():
    made = log((0, 0.0, ADD), (0, 3.0, MOD), (0, 5.0, DEL), (0, 6.0, MOD), (0, 9.0, ADD), (0, 12.0, MOD))
    assert made.truth.birth.tolist() == [0.0, 9 * DAY]
    assert made.truth.death.tolist() == [5 * DAY, np.inf]
    assert (made.truth.times / DAY).tolist() == [3.0, 12.0]


def test_a_chain_of_quick_changes_is_one_at_its_first_moment():
    step = 0.9 * HOUR / DAY
    made = log((0, 0.0, ADD), *((0, 1.0 + k * step, MOD) for k in range(5)), (0, 3.0, MOD))
    assert (made.truth.times / DAY).tolist() == [1.0, 3.0]


def test_bulk_edits_do_not_count_unless_asked_for():
    rows = [(0, 0.0, ADD), (0, 1.0, MOD), (0, 2.0, MOD)]
    assert (log(*rows, bulk=[1]).truth.times / DAY).tolist() == [2.0]
    page, day = np.zeros(3, np.int64), np.array([0.0, 1.0, 2.0])
    many = np.array([False, True, False])
    events = Events(page, day * DAY, np.array([True, False, False]), np.zeros(3, np.bool_), many)
    assert (collect("site", ("u",), events, bulk=True).truth.times / DAY).tolist() == [1.0, 2.0]


def test_only_a_page_that_was_seen_to_appear_has_an_age():
    made = log((0, 0.0, ADD), (1, 4.0, ADD), (2, 4.0, ADD), (3, 5.0, MOD), (4, 6.0, DEL), bulk=[2])
    assert np.isnan(made.born).tolist() == [True, False, True, False, True]
    assert made.born[1] == 4 * DAY
    assert made.truth.page.tolist() == [0, 1, 2, 3]  # what only went away never had a life


def test_events_may_come_in_any_order_and_lives_without_length_are_none():
    rows = [(0, 1.0, ADD), (0, 1.0, DEL), (0, 2.0, ADD), (1, 0.0, ADD), (1, 7.0, MOD)]
    made = log(*rows)
    assert made.truth.page.tolist() == [0, 1]
    assert made.truth.birth.tolist() == [2 * DAY, 0.0]
    shuffled = log(*(rows[k] for k in (4, 0, 3, 1, 2)))
    assert shuffled.truth.times.tolist() == made.truth.times.tolist()
    assert shuffled.truth.birth.tolist() == made.truth.birth.tolist()


def test_changes_between_two_times_are_those_after_the_first_up_to_the_second():
    made = log((0, 0.0, ADD), (0, 1.0, MOD), (0, 2.0, MOD), (1, 0.0, ADD), (1, 2.0, MOD))
    page = np.array([0, 0, 1])
    counts = made.changes_between(page, np.array([0.0, 1.0, 2.0]) * DAY, np.array([2.0, 2.0, 9.0]) * DAY)
    assert counts.tolist() == [2, 1, 0]


def test_an_empty_log_is_refused():
    nothing = np.empty(0)
    empty = Events(nothing.astype(np.int64), nothing, *(nothing.astype(np.bool_) for _ in range(3)))
    with pytest.raises(ValueError, match="nothing ever happened in 'quiet'"):
        collect("quiet", (), empty)


@pytest.mark.big
def test_recorded_sites_become_collections(data_folder):
    for site in read_dataset(data_folder / "documents", ["twir", "llvm"]):
        events = Events(site.page, site.time, site.kind == LoggedChange.ADD, site.kind == LoggedChange.DEL, site.bulk)
        made = collect(site.site, site.urls, events)
        counted = ~site.bulk & (site.kind == LoggedChange.MOD)
        assert 0.6 * counted.sum() < len(made.truth.times) < counted.sum()
        assert len(np.unique(made.truth.page)) == len(made)
