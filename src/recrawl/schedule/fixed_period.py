"""Policies that keep the interval a page is given: ``gold`` and ``week`` of datamonitor (§4.1).

``gold`` visits each page as often as it truly changes, which somebody must know beforehand; ``week`` each page every
week.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import ClassVar, TypeAlias

import numpy as np

from recrawl.model import AnyArray, FloatArray, IntArray, Pages
from recrawl.schedule import datamonitor_steps as steps
from recrawl.schedule.by_interval import INTERVAL, ByInterval
from recrawl.schedule.looks import Looks
from recrawl.time import WEEK

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
    reads_first_looks: ClassVar[bool] = False

    def begin(self, pages: Pages) -> Mapping[str, AnyArray]:
        """The interval each page is given."""
        return {INTERVAL: np.clip(self.interval_of(pages.id), self.shortest, self.longest)}

    def after(self, page: Mapping[str, AnyArray], look: Looks) -> Mapping[str, AnyArray]:  # noqa: ARG002 - kept
        """As before."""
        return {INTERVAL: page[INTERVAL]}


@dataclass(frozen=True, slots=True)
class SameInterval:
    """The same interval for every page, seconds. A class and no closure, since policies are pickled."""

    seconds: float

    def __call__(self, page: IntArray) -> FloatArray:
        """One entry a page."""
        return np.full(len(page), self.seconds)


@dataclass(frozen=True, slots=True)
class TrueInterval:
    """The mean time between two changes of each page, seconds; inf for a page that never changes."""

    true_rates: TrueRates

    def __call__(self, page: IntArray) -> FloatArray:
        """One entry a page."""
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
