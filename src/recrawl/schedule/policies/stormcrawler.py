"""StormCrawler's ``AdaptiveScheduler``, and the settings with which Common Crawl's news-crawl runs it.

    changed:    I ← (1 − d)·I + d·shortest
    unchanged:  I ← (1 + i)·I, at most the longest
    gone:       a fixed interval; redirected: another; both reset the page

All in whole minutes, rounded down. i = d = 0.5, from an hour to 14 days, starting at a day (``fetchInterval.default``),
which redirected pages have too. Pages that are gone are never requested again: this is the value of the shipped
``crawler-default.yaml`` (``fetchInterval.error``); the Java source alone would wait 31 days. Any failed or redirected
fetch deletes the page's signature and interval, so the observation after it has nothing to compare with and sets the
start interval again, whatever it found.

news-crawl: i = 0.5, d = 0.2, from 90 minutes to 90 days; as feeds are treated there, the start is 12 hours, gone 60
days, redirected 14 days. (It never fetches an article twice; these are its values for feeds and sitemaps.)
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import ClassVar

import numpy as np

from recrawl.errors import ConfigError
from recrawl.model import AnyArray, Outcome, Pages
from recrawl.schedule.learning.observation_columns import ObservationColumns
from recrawl.schedule.policies.by_interval import INTERVAL, ByInterval, at_start
from recrawl.time import DAY, HOUR, MINUTE

_COLUMNS: Mapping[str, type[np.generic]] = MappingProxyType({"forgotten": np.bool_})


@dataclass(frozen=True, slots=True)
class StormCrawlerRule:
    """The rule; all durations in seconds."""

    name: str
    increase: float
    decrease: float
    shortest: float
    start: float
    longest: float
    gone: float
    redirected: float | None = None
    """``None`` for the start."""
    columns: ClassVar[Mapping[str, type[np.generic]]] = _COLUMNS
    reads_first_observations: ClassVar[bool] = True

    def __post_init__(self) -> None:
        if not (self.increase >= 0 and 0 <= self.decrease <= 1):
            raise ConfigError(
                f"{self.name}: rates of {self.increase} and {self.decrease} are not possible.",
                "Give an increase of 0 or more and a decrease from 0 to 1.",
            )

    def begin(self, pages: Pages) -> Mapping[str, AnyArray]:
        """Nothing is known of the page, as if it had been forgotten."""
        return at_start(pages) | {"forgotten": np.ones(len(pages), np.bool_)}

    def after(self, page: Mapping[str, AnyArray], observation: ObservationColumns) -> Mapping[str, AnyArray]:
        """The interval in whole minutes; the start (NaN) where there is nothing to compare with."""
        interval = page[INTERVAL]
        nearer = (1.0 - self.decrease) * interval + self.decrease * self.shortest
        farther = np.minimum((1.0 + self.increase) * interval, self.longest)
        interval = np.floor(np.where(observation.changed, nearer, farther) / MINUTE) * MINUTE
        interval[page["forgotten"] | observation.after_failure] = np.nan
        redirected, gone = observation.outcome == Outcome.REDIRECTED, observation.outcome == Outcome.GONE
        interval[redirected] = np.nan if self.redirected is None else self.redirected
        interval[gone] = self.gone
        return {INTERVAL: interval, "forgotten": redirected | gone}


def stormcrawler(  # noqa: PLR0913 - one argument a setting of StormCrawler
    *,
    increase: float = 0.5,
    decrease: float = 0.5,
    shortest: float = HOUR,
    longest: float = 14 * DAY,
    start: float | None = DAY,
    gone: float = math.inf,
) -> ByInterval:
    """StormCrawler's adaptive scheduler; ``start`` is ``fetchInterval.default``, ``None`` for the budget's.

    ``gone`` is ``fetchInterval.error``, in seconds: after how long a page that is not there is tried again.
    """
    first = min(max(DAY, shortest), longest) if start is None else start
    rule = StormCrawlerRule("stormcrawler", increase, decrease, shortest, first, longest, gone)
    return ByInterval(rule, start_from_budget=start is None)


def news_crawl(*, start: float | None = 12 * HOUR) -> ByInterval:
    """StormCrawler's adaptive scheduler as news-crawl sets it for feeds; a ``start`` of ``None`` is the budget's."""
    first, longest = 12 * HOUR if start is None else start, 90 * DAY
    rule = StormCrawlerRule("news-crawl", 0.5, 0.2, 90 * MINUTE, first, longest, gone=60 * DAY, redirected=14 * DAY)
    return ByInterval(rule, start_from_budget=start is None)
