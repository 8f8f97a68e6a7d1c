"""Policies that need no price: a rule turns each look at a page into the time to wait for the next.

The papers' adaptive rules and the schedulers people run today are of this kind. Here is what they share, once: pages,
their state, folding looks in the order of time, due times. A rule is a few lines of arithmetic on columns.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Protocol

import numpy as np

from recrawl.errors import ConfigError
from recrawl.model import AnyArray, FloatArray, IntArray, Pages, Visits
from recrawl.schedule.columns import Columns
from recrawl.schedule.ledger import Ledger
from recrawl.schedule.looks import Looks, fold, rounds

INTERVAL = "interval"
"""The column every rule has: seconds from the last look to the next, > 0."""


class IntervalRule(Protocol):
    """How a look moves the interval of its page."""

    @property
    def name(self) -> str:
        """What settings and reports call it."""
        ...

    @property
    def shortest(self) -> float:
        """No change makes an interval shorter than this, seconds, > 0."""
        ...

    @property
    def start(self) -> float:
        """The interval before its first say, seconds."""
        ...

    @property
    def longest(self) -> float:
        """No lack of change makes an interval longer than this, seconds."""
        ...

    @property
    def columns(self) -> Mapping[str, type[np.generic]]:
        """What it remembers of a page beside the interval."""
        ...

    @property
    def reads_first_looks(self) -> bool:
        """Whether it also wants the look that opens a page's history, which says nothing about change."""
        ...

    def begin(self, pages: Pages) -> Mapping[str, AnyArray]:
        """The columns of pages nobody looked at yet; an interval of NaN is the common start."""
        ...

    def after(self, page: Mapping[str, AnyArray], look: Looks) -> Mapping[str, AnyArray]:
        """The columns after one look at each of these pages. Neither argument is modified."""
        ...


class ByInterval:
    """A rule as a :class:`~recrawl.schedule.policy.Policy`. O(1) a look; no loop over pages.

    With ``start_from_budget``, the first fit that has pages replaces the rule's start by the interval that spends the
    budget if all pages have it, within the rule's bounds: a fair start where rules are compared at one budget. Later
    fits change nothing: rules know no budget.
    """

    price = None

    def __init__(self, rule: IntervalRule, *, start_from_budget: bool = False) -> None:
        if not 0 < rule.shortest <= rule.start <= rule.longest:
            raise ConfigError(
                f"{rule.name}: intervals of {rule.shortest} s at least, {rule.start} s at the start and "
                f"{rule.longest} s at most are not possible.",
                "Give durations above 0, in this order.",
            )
        self._rule = rule
        self._start = rule.start
        self._start_is_open = start_from_budget
        self._ledger = Ledger()
        self._table = Columns({INTERVAL: np.float64, "failed": np.bool_, **rule.columns})

    @property
    def name(self) -> str:
        """The rule's name."""
        return self._rule.name

    def __len__(self) -> int:
        """How many pages it knows."""
        return len(self._ledger)

    def intervals(self, page: IntArray) -> FloatArray:
        """Seconds that each of these pages waits for its next look, from its last one."""
        return self._filled(self._table[INTERVAL][self._ledger.rows(page)])

    def state(self, page: IntArray, column: str) -> AnyArray:
        """What the rule remembers of these pages under this name."""
        return self._table[column][self._ledger.rows(page)]

    def add(self, pages: Pages) -> None:
        """Learn of pages."""
        new = self._ledger.add(pages)
        self._table.append(failed=np.zeros(len(new), np.bool_), **self._rule.begin(new))

    def tell(self, visits: Visits) -> None:
        """Let the rule follow every look, in the order of time for each page. O(n log n)."""
        looks = fold(self._ledger.rows(visits.page), visits, self._ledger.last_look, self._table["failed"])
        if not self._rule.reads_first_looks:
            looks = looks.take(~looks.opens())
        for which in rounds(looks.row):
            look = looks.take(which)
            page = {name: self._table[name][look.row] for name in (INTERVAL, *self._rule.columns)}
            page[INTERVAL] = self._filled(page[INTERVAL])
            for name, values in self._rule.after(page, look).items():
                self._table[name][look.row] = values

    def fit(self, budget: float, now: float) -> None:  # noqa: ARG002 - the start is the same at any time
        """Set the start from the budget, in units of cost per second, if that was asked for and not done yet."""
        if self._start_is_open:
            refuse_bad_budget(budget)
            if len(self._ledger) and budget > 0:
                even = float(self._ledger.pages.cost.sum()) / budget
                self._start = float(np.clip(even, self._rule.shortest, self._rule.longest))
                self._start_is_open = False

    def due(self, page: IntArray, now: float) -> FloatArray:  # noqa: ARG002 - due times are absolute
        """One interval after the last look; at discovery if there was none."""
        return self._ledger.due_after(page, self.intervals(page))

    def urgency(self, page: IntArray, now: float) -> FloatArray:
        """Intervals since the last look."""
        return self._ledger.urgency(page, self.intervals(page), now)

    def _filled(self, interval: FloatArray) -> FloatArray:
        return np.where(np.isnan(interval), self._start, interval)


def at_start(pages: Pages) -> dict[str, AnyArray]:
    """The interval column of new pages that all begin at the common start."""
    return {INTERVAL: np.full(len(pages), np.nan)}


def refuse_bad_budget(budget: float) -> None:
    """Check that the budget, in units of cost per second, is a number of 0 or more.

    Raises:
        ConfigError: it is not.
    """
    if not budget >= 0:
        raise ConfigError(f"A budget of {budget} visits per second is not possible.", "Give a number of 0 or more.")
