"""The rules of datamonitor against a plain reading of its text, one page at a time."""

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from recrawl.model import Pages, Verdict, Visits
from recrawl.schedule.policies import datamonitor_rules as steps
from recrawl.schedule.policies.datamonitor_rules import StateTables, fewer_when_long
from recrawl.schedule.policies.fixed_interval import gold
from recrawl.schedule.policies.policy_registry import POLICIES
from recrawl.time import DAY

PAGE = np.array([3])
START = 1_750_000_000.0


def by_ratio(interval, ratio):
    if ratio is None:
        return interval
    for above, factor in ((0.9, 3), (0.75, 2), (0.6, 1.5)):
        if ratio > above:
            return max(interval / factor, 1.0)
    for below, factor in ((0.1, 3), (0.25, 2), (0.4, 1.5)):
        if ratio < below:
            return min(interval * factor, 180.0)
    return interval


def plain_snapshots(needed, start, results):
    """fix and dyn, in days."""
    interval, at_this = start, []
    for changed in results:
        at_this.append(changed)
        last = at_this[-needed(interval) :]
        new = interval
        if len(last) == needed(interval) and all(last):
            new = max(interval / (1.5 if interval > 30 else 2), 1.0)
        elif len(last) == needed(interval) and not any(last):
            new = min(interval * (1.5 if interval < 30 else 2), 180.0)
        if new != interval:
            interval, at_this = new, []
        yield interval


def plain_window(start, results):
    interval = start
    for n in range(1, len(results) + 1):
        size = min(10, math.ceil(n / 2))
        interval = by_ratio(interval, sum(results[n - size : n]) / size)
        yield interval


def plain_state(order, start, results):
    interval, context, tables = start, (), {}
    for changed in results:
        table = tables.setdefault(round(interval, 6), {})
        if len(context) == order:
            table.setdefault(context, [0, 0])[changed] += 1
        context = (*context, changed)[-order:]
        counts = table.get(context, [0, 0]) if len(context) == order else [0, 0]
        new = by_ratio(interval, counts[1] / sum(counts) if sum(counts) else None)
        if new != interval:
            interval, context = new, ()
        yield interval


PLAIN = {
    "fix": lambda start, results: plain_snapshots(lambda _: 2, start, results),
    "dyn": lambda start, results: plain_snapshots(
        lambda days: 1 if days > 60 else 2 if days > 30 else 3 if days > 7 else 4, start, results
    ),
    "window": plain_window,
    "state-1": lambda start, results: plain_state(1, start, results),
    "state-2": lambda start, results: plain_state(2, start, results),
}


def told(policy, page, results):
    """Tell one look a day; the interval after each, in days."""
    policy.add(Pages.of(page))
    policy.tell(Visits.of(page, np.full(len(page), START)))
    found = []
    for day, changed in enumerate(np.asarray(results).T.reshape(-1, len(page)), start=1):
        verdict = np.where(changed, Verdict.CHANGED, Verdict.UNCHANGED)
        policy.tell(Visits.of(page, np.full(len(page), START + day * DAY), verdict=verdict))
        found.append(policy.intervals(page) / DAY)
    return np.array(found).T


@pytest.mark.parametrize("name", sorted(PLAIN))
@given(start=st.sampled_from([1.0, 2.0, 7.0, 20.0, 30.0, 45.0, 100.0, 180.0]), data=st.data())
def test_each_rule_reads_the_text(name, start, data):
    results = data.draw(st.lists(st.booleans(), min_size=1, max_size=50))
    found = told(POLICIES[name](start=start * DAY), PAGE, [results])[0]
    np.testing.assert_allclose(found, list(PLAIN[name](start, results)), rtol=1e-9)


@pytest.mark.parametrize("name", sorted(PLAIN))
def test_many_pages_at_once(name):
    rng = np.random.default_rng(8)
    results = rng.random((40, 60)) < np.linspace(0, 1, 40)[:, None]
    found = told(POLICIES[name](), np.arange(40) * 3, results)
    for row, page in zip(results, found, strict=True):
        np.testing.assert_allclose(page, list(PLAIN[name](7.0, row.tolist())), rtol=1e-9)


@given(st.floats(1.0, 180.0), st.floats(0.0, 1.0))
def test_steps_by_ratio_are_factors(interval, ratio):
    """At twice the interval, twice the next one, as long as no bound is met."""
    once, twice = (steps.by_ratio(np.array([scale * interval * DAY]), np.array([ratio]))[0] for scale in (1.0, 2.0))
    if once > steps.SHORTEST and twice < steps.LONGEST:
        assert twice == pytest.approx(2 * once)


def test_dyn_takes_fewer_snapshots_the_longer_the_interval():
    days = np.array([1.0, 7.0, 7.1, 30.0, 30.1, 60.0, 60.1, 180.0])
    assert fewer_when_long(days * DAY).tolist() == [4, 4, 3, 3, 2, 2, 1, 1]


def test_tables_are_found_again():
    tables = StateTables(2)
    none = np.full(2, -1)
    week = np.full(2, 7 * DAY)
    first, latest = tables.find(none, week)
    again, same = tables.find(latest, week / 1.5 * 1.5 * (1 + 1e-12))
    np.testing.assert_array_equal(first, again)
    np.testing.assert_array_equal(latest, same)
    other, latest = tables.find(latest, 3 * week)
    assert len({*first.tolist(), *other.tolist()}) == 4
    np.testing.assert_array_equal(tables.find(latest, week)[0], first)


def test_gold_visits_as_often_as_pages_change():
    policy = gold(lambda page: page / (10 * DAY))
    policy.add(Pages.of([0, 1, 2, 500]))
    assert (policy.intervals(np.array([0, 1, 2, 500])) / DAY).tolist() == [180.0, 10.0, 5.0, 1.0]
