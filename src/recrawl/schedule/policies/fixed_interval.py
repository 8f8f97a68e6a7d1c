"""Policies with fixed intervals: ``fixed-interval``, ``uniform``, and ``gold`` and ``week`` of datamonitor (§4.1).

``fixed-interval`` revisits each page after a given time, as most monitoring tools do. ``uniform`` visits every page
equally often, as often as the budget allows: the baseline. ``gold`` visits each page as often as it truly changes,
which must be known beforehand; ``week`` visits each page every week.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import ClassVar, TypeAlias

import numpy as np

from recrawl.errors import ConfigError
from recrawl.model import AnyArray, FloatArray, IntArray, Pages, Visits
from recrawl.schedule.learning.observation_columns import LastVisits, ObservationColumns
from recrawl.schedule.policies import datamonitor_rules as steps
from recrawl.schedule.policies.by_interval import INTERVAL, ByInterval
from recrawl.time import DAY, WEEK


class FixedInterval:
    """One given interval for all pages. It follows no budget and learns nothing."""

    name = "fixed-interval"
    price = None

    def __init__(self, interval: float) -> None:
        if not interval > 0:
            raise ConfigError(f"An interval of {interval} s is not possible.", "Give a duration above 0, such as 1d.")
        self._last_visits = LastVisits()
        self._interval = interval

    def __len__(self) -> int:
        """How many pages it knows."""
        return len(self._last_visits)

    def add(self, pages: Pages) -> None:
        """Add pages."""
        self._last_visits.add(pages)

    def tell(self, visits: Visits) -> None:
        """Note when pages were observed."""
        self._last_visits.tell(visits)

    def fit(self, budget: float, now: float) -> None:
        """Nothing to adapt."""

    def due(self, page: IntArray, now: float) -> FloatArray:  # noqa: ARG002 - due times are absolute
        """One interval after the last observation; at discovery if there was none."""
        return self._last_visits.due_after(page, self._interval)

    def urgency(self, page: IntArray, now: float) -> FloatArray:
        """Intervals since the last observation."""
        return self._last_visits.urgency(page, self._interval, now)


TrueRates: TypeAlias = Callable[[IntArray], FloatArray]
"""What an oracle knows: the changes per second, ≥ 0, of the pages with these ids."""


@dataclass(frozen=True, slots=True)
class KeepRule:
    """Every page keeps the interval that ``interval_of`` gives it."""

    name: str
    interval_of: Callable[[IntArray], FloatArray]
    shortest: float
    start: float
    longest: float
    columns: ClassVar[Mapping[str, type[np.generic]]] = MappingProxyType({})
    reads_first_observations: ClassVar[bool] = False

    def begin(self, pages: Pages) -> Mapping[str, AnyArray]:
        """The interval each page is given."""
        return {INTERVAL: np.clip(self.interval_of(pages.id), self.shortest, self.longest)}

    def after(self, page: Mapping[str, AnyArray], observation: ObservationColumns) -> Mapping[str, AnyArray]:  # noqa: ARG002 - kept
        """As before."""
        return {INTERVAL: page[INTERVAL]}


@dataclass(frozen=True, slots=True)
class SameInterval:
    """The same interval for every page, seconds. A class and no closure, since policies are pickled."""

    seconds: float

    def __call__(self, page: IntArray) -> FloatArray:
        """One entry per page."""
        return np.full(len(page), self.seconds)


@dataclass(frozen=True, slots=True)
class TrueInterval:
    """The mean time between two changes of each page, seconds; inf for a page that never changes."""

    true_rates: TrueRates

    def __call__(self, page: IntArray) -> FloatArray:
        """One entry per page."""
        with np.errstate(divide="ignore"):
            return np.asarray(1.0 / self.true_rates(page))


def fixed_period(name: str, interval: float) -> ByInterval:
    """Every page again after ``interval`` seconds, under this name."""
    return ByInterval(KeepRule(name, SameInterval(interval), interval, interval, interval))


def week() -> ByInterval:
    """Every page every week (datamonitor's ``week``)."""
    return fixed_period("week", WEEK)


def gold(true_rates: TrueRates, *, shortest: float = steps.SHORTEST, longest: float = steps.LONGEST) -> ByInterval:
    """Every page as often as it truly changes, within the bounds: the reference of datamonitor."""
    return ByInterval(KeepRule("gold", TrueInterval(true_rates), shortest, shortest, longest))


class Uniform:
    """One interval for all pages: Σ cost / budget. It learns no rates and ignores importance."""

    name = "uniform"
    price = None

    def __init__(self, *, unfitted_interval: float = 180 * DAY) -> None:
        self._last_visits = LastVisits()
        self._interval = unfitted_interval

    @property
    def interval(self) -> float:
        """Seconds between two visits to a page; inf at a budget of 0."""
        return self._interval

    def __len__(self) -> int:
        """How many pages it knows."""
        return len(self._last_visits)

    def add(self, pages: Pages) -> None:
        """Add pages."""
        self._last_visits.add(pages)

    def tell(self, visits: Visits) -> None:
        """Note when pages were observed."""
        self._last_visits.tell(visits)

    def fit(self, budget: float, now: float) -> None:  # noqa: ARG002 - the interval is the same at any time
        """Share the budget, in units of cost per second, equally; without pages the interval stays."""
        if not budget >= 0:
            raise ConfigError(f"A budget of {budget} visits per second is not possible.", "Give a number of 0 or more.")
        if len(self._last_visits):
            self._interval = float(self._last_visits.pages.cost.sum()) / budget if budget > 0 else np.inf

    def due(self, page: IntArray, now: float) -> FloatArray:  # noqa: ARG002 - due times are absolute
        """One interval after the last observation; at discovery if there was none."""
        return self._last_visits.due_after(page, self._interval)

    def urgency(self, page: IntArray, now: float) -> FloatArray:
        """Intervals since the last observation."""
        return self._last_visits.urgency(page, self._interval, now)
