"""Policies that need no price: a rule turns each observation of a page into the time to wait for the next.

The papers' adaptive rules and the schedulers in use today are of this kind. This module has their common parts: pages,
their state, folding observations in the order of time, due times. A rule is a few lines of arithmetic on columns.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Protocol

import numpy as np

from recrawl.errors import ConfigError
from recrawl.model import AnyArray, FloatArray, IntArray, Pages, Visits
from recrawl.schedule.learning.observation_columns import GrowingColumns, LastVisits, ObservationColumns, fold, rounds

INTERVAL = "interval"
"""The column every rule has: seconds from the last observation to the next, > 0."""


class IntervalRule(Protocol):
    """How an observation moves the interval of its page."""

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
        """The interval before the first observation that decides on it, seconds."""
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
    def reads_first_observations(self) -> bool:
        """Whether it also uses the first observation of a page, which is no evidence on change."""
        ...

    def begin(self, pages: Pages) -> Mapping[str, AnyArray]:
        """The columns of pages nobody observed yet; an interval of NaN is the common start."""
        ...

    def after(self, page: Mapping[str, AnyArray], observation: ObservationColumns) -> Mapping[str, AnyArray]:
        """The columns after one observation of each of these pages. Neither argument is modified."""
        ...


class ByInterval:
    """A rule as a :class:`~recrawl.schedule.policy.Policy`. O(1) an observation; no loop over pages.

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
        self._last_visits = LastVisits()
        self._table = GrowingColumns({INTERVAL: np.float64, "failed": np.bool_, **rule.columns})

    @property
    def name(self) -> str:
        """The rule's name."""
        return self._rule.name

    def __len__(self) -> int:
        """How many pages it knows."""
        return len(self._last_visits)

    def intervals(self, page: IntArray) -> FloatArray:
        """Seconds that each of these pages waits for its next observation, from its last one."""
        return self._filled(self._table[INTERVAL][self._last_visits.rows(page)])

    def state(self, page: IntArray, column: str) -> AnyArray:
        """What the rule remembers of these pages under this name."""
        return self._table[column][self._last_visits.rows(page)]

    def add(self, pages: Pages) -> None:
        """Add pages."""
        new = self._last_visits.add(pages)
        self._table.append(failed=np.zeros(len(new), np.bool_), **self._rule.begin(new))

    def tell(self, visits: Visits) -> None:
        """Let the rule follow every observation, in the order of time for each page. O(n log n)."""
        observations = fold(
            self._last_visits.rows(visits.page), visits, self._last_visits.last_observed, self._table["failed"]
        )
        if not self._rule.reads_first_observations:
            observations = observations.take(~observations.opens())
        for which in rounds(observations.row):
            observation = observations.take(which)
            page = {name: self._table[name][observation.row] for name in (INTERVAL, *self._rule.columns)}
            page[INTERVAL] = self._filled(page[INTERVAL])
            for name, values in self._rule.after(page, observation).items():
                self._table[name][observation.row] = values

    def fit(self, budget: float, now: float) -> None:  # noqa: ARG002 - the start is the same at any time
        """Set the start from the budget, in units of cost per second, if that was asked for and not done yet."""
        if self._start_is_open:
            refuse_bad_budget(budget)
            if len(self._last_visits) and budget > 0:
                even = float(self._last_visits.pages.cost.sum()) / budget
                self._start = float(np.clip(even, self._rule.shortest, self._rule.longest))
                self._start_is_open = False

    def due(self, page: IntArray, now: float) -> FloatArray:  # noqa: ARG002 - due times are absolute
        """One interval after the last observation; at discovery if there was none."""
        return self._last_visits.due_after(page, self.intervals(page))

    def urgency(self, page: IntArray, now: float) -> FloatArray:
        """Intervals since the last observation."""
        return self._last_visits.urgency(page, self.intervals(page), now)

    def _filled(self, interval: FloatArray) -> FloatArray:
        return np.where(np.isnan(interval), self._start, interval)


def at_start(pages: Pages) -> dict[str, AnyArray]:
    """The interval column of new pages that all start at the common start."""
    return {INTERVAL: np.full(len(pages), np.nan)}


def refuse_bad_budget(budget: float) -> None:
    """Check that the budget, in units of cost per second, is a number of 0 or more.

    Raises:
        ConfigError: it is not.
    """
    if not budget >= 0:
        raise ConfigError(f"A budget of {budget} visits per second is not possible.", "Give a number of 0 or more.")
