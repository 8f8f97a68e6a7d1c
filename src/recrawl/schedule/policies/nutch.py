"""Nutch's ``AdaptiveFetchSchedule``: a fifth sooner after a change, two fifths later after none.

    changed:    I ← 0.8·I
    unchanged:  I ← max(1.4·I, δ),  δ = time since the page was last seen changed (or first seen)
    gone:       I ← 1.5·I while that is below 90 days, else 81 days

I stays between a minute and 365 days and starts at 30 days: the values of the shipped ``nutch-default.xml``, not
those in the Java source. With ``sync_delta`` (on, as shipped) the next visit comes 0.3·δ sooner than I, to draw near
the time of the change. Unbounded, that shift would send pages unchanged for years into the past (NUTCH-1564); it is
kept to 0.3 of the longest interval, as the fix to that bug intends. The 90 days are ``db.fetch.interval.max``, and 81
are nine tenths of them; for pages that are there it is the generator's own limit, and no part of this.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import ClassVar

import numpy as np

from recrawl.errors import ConfigError
from recrawl.model import AnyArray, Outcome, Pages
from recrawl.schedule.learning.observation_columns import ObservationColumns
from recrawl.schedule.policies.by_interval import INTERVAL, ByInterval, at_start
from recrawl.time import DAY, MINUTE

_GONE, _GONE_BELOW, _GONE_LONGEST = 1.5, 90 * DAY, 81 * DAY
_COLUMNS: Mapping[str, type[np.generic]] = MappingProxyType({"nominal": np.float64, "modified": np.float64})


@dataclass(frozen=True, slots=True)
class NutchRule:
    """The rule; ``increase`` and ``decrease`` are shares of the interval, ``sync`` of the time since the change."""

    increase: float
    decrease: float
    sync: float
    shortest: float
    start: float
    longest: float
    name: str = "nutch"
    columns: ClassVar[Mapping[str, type[np.generic]]] = _COLUMNS
    reads_first_observations: ClassVar[bool] = True

    def __post_init__(self) -> None:
        if not (self.increase >= 0 and 0 <= self.decrease < 1 and 0 <= self.sync < 1):
            raise ConfigError(
                f"{self.name}: rates of {self.increase}, {self.decrease} and {self.sync} are not possible.",
                "Give an increase of 0 or more, and the others from 0 to below 1.",
            )

    def begin(self, pages: Pages) -> Mapping[str, AnyArray]:
        """No interval of its own, and no time of change."""
        unknown = np.full(len(pages), np.nan)
        return at_start(pages) | {"nominal": unknown, "modified": unknown}

    def after(self, page: Mapping[str, AnyArray], observation: ObservationColumns) -> Mapping[str, AnyArray]:
        """I, and the wait: I less the shift."""
        interval = np.where(np.isnan(page["nominal"]), page[INTERVAL], page["nominal"])
        compared, gone = ~observation.opens(), observation.outcome == Outcome.GONE
        factor = np.where(observation.changed, 1.0 - self.decrease, 1.0 + self.increase)
        rested = np.where(_GONE * interval < _GONE_BELOW, _GONE * interval, _GONE_LONGEST)
        interval = np.where(gone, rested, interval * np.where(compared, factor, 1.0))
        modified = np.where(observation.changed | ~compared, observation.time, page["modified"])
        since = np.where(gone, 0.0, observation.time - modified) if self.sync > 0 else np.zeros(len(interval))
        interval = np.clip(np.maximum(interval, since), self.shortest, self.longest)
        wait = interval - self.sync * np.minimum(since, self.longest)
        # until its first comparison a page keeps the common start, which a fit may still set
        fresh = ~compared & ~gone
        return {
            INTERVAL: np.where(fresh, np.nan, np.maximum(wait, self.shortest)),
            "nominal": np.where(fresh, np.nan, interval),
            "modified": modified,
        }


def nutch(  # noqa: PLR0913 - one argument a setting of Nutch
    *,
    increase: float = 0.4,
    decrease: float = 0.2,
    sync_delta_rate: float = 0.3,
    shortest: float = MINUTE,
    longest: float = 365 * DAY,
    start: float | None = 30 * DAY,
) -> ByInterval:
    """Nutch's adaptive schedule; ``sync_delta_rate=0`` turns ``sync_delta`` off, ``start=None`` asks the budget."""
    first = min(max(30 * DAY, shortest), longest) if start is None else start
    rule = NutchRule(increase, decrease, sync_delta_rate, shortest, first, longest)
    return ByInterval(rule, start_from_budget=start is None)
