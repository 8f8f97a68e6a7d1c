"""A back-test of visits that were chosen well ranks others as the truth does."""

from __future__ import annotations

import numpy as np

from recrawl.model import Histories
from recrawl.simulate.benchmark_field import BenchmarkField, field_from_histories, visits_per_page
from recrawl.simulate.policy_benchmark import BenchmarkRules, compete, entry
from recrawl.simulate.sampling import PageTruth
from recrawl.simulate.virtual_web import EventTimes
from recrawl.time import DAY

NOON, SPAN, PAGES = 20_000.5 * DAY, 600.0, 400
CHANGING = np.arange(PAGES) % 8 == 0
"""One page in eight, every 40 seconds; the others never."""


class Chosen:
    """Visits to the pages that change, in turn: what somebody does who knows them."""

    name, price = "chosen", None

    def __init__(self):
        self._last = np.full(PAGES, np.nan)

    def add(self, pages):
        assert len(pages)

    def tell(self, visits):
        self._last[visits.page] = visits.time

    def fit(self, budget, now):
        assert budget > 0, now

    def urgency(self, page, now):
        return (now - self._last[page]) * np.where(CHANGING[page], 1.0, 1e-3)


def truth():
    rng = np.random.default_rng(1)
    count = rng.poisson(np.where(CHANGING, SPAN / 40.0, 0.0))
    row = np.repeat(np.arange(PAGES), count)
    born = NOON + np.linspace(0.0, SPAN / 2, PAGES)
    times = EventTimes.of(row, NOON + rng.random(len(row)) * SPAN, PAGES)
    return BenchmarkField.of("truth", PageTruth(born, np.full(PAGES, NOON + SPAN), times, NOON, NOON + SPAN))


def caught(field, policy, budget):
    rules = BenchmarkRules(budget, tick=SPAN / 200, found_after=0.0)
    return compete(field, policy, rules, np.random.default_rng(2), keep_visits=True)


def advantage(field, budget):
    """How many times as many changes ours for changes catches as even visits do."""
    ours, evenly = (
        caught(field, entry(name, field, shortest=2.0), budget).tally.ratio("recall")
        for name in ("valued-changes", "uniform")
    )
    return ours / evenly


def test_pages_that_were_left_alone_are_part_of_the_past():
    field, budget = truth(), 0.004 * DAY
    really = advantage(field, budget)
    assert really > 1.5
    told = Histories.from_visits(caught(field, Chosen(), budget).visits.sorted())
    assert 0 < np.count_nonzero(told.counts()) < PAGES / 4

    def back_test(stays):
        exact, left_alone = np.zeros(PAGES, np.bool_), np.full(PAGES, stays)
        past = field_from_histories(
            "past",
            told,
            np.random.default_rng(3),
            exact=exact,
            stays=left_alone,
            host=np.zeros(PAGES, np.int64),
            cluster=np.arange(PAGES),
            importance=np.ones(PAGES),
        )
        return advantage(past, visits_per_page(told, exact=exact, stays=left_alone) * DAY)

    assert abs(np.log(back_test(stays=True) / really)) < 0.25
    assert back_test(stays=False) < 1.1
