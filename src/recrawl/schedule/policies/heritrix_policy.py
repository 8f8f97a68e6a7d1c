"""Heritrix 1's ``WaitEvaluator``: after a change wait two thirds as long, after none half as long again.

    changed: wait ← wait/1.5;  unchanged: wait ← 1.5·wait;  failed: as before

between an hour and 4 weeks, starting at a day. Its frontier for adaptive revisits started texts at 12 hours and images
at 2 days. (Where Heritrix could not detect whether a page changed it waited 3 days; here such an observation has no
effect, for any policy.) Heritrix 3 has no such rule: it waits a fixed time (``fixed-interval``).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import ClassVar

import numpy as np

from recrawl.errors import ConfigError
from recrawl.model import AnyArray, Pages
from recrawl.schedule.learning.observation_columns import ObservationColumns
from recrawl.schedule.policies.by_interval import INTERVAL, ByInterval, at_start
from recrawl.time import DAY, HOUR, WEEK

TEXT_START = 12 * HOUR
"""The start for texts, in seconds."""
IMAGE_START = 2 * DAY
"""The start for images, in seconds."""


@dataclass(frozen=True, slots=True)
class HeritrixRule:
    """The rule; all durations in seconds."""

    changed_factor: float
    unchanged_factor: float
    shortest: float
    start: float
    longest: float
    name: str = "heritrix"
    columns: ClassVar[Mapping[str, type[np.generic]]] = MappingProxyType({})
    reads_first_observations: ClassVar[bool] = False

    def __post_init__(self) -> None:
        if not (self.changed_factor >= 1 and self.unchanged_factor >= 1):
            raise ConfigError(
                f"{self.name}: factors of {self.changed_factor} and {self.unchanged_factor} are not possible.",
                "Give factors of 1 or more.",
            )

    def begin(self, pages: Pages) -> Mapping[str, AnyArray]:
        """All at the start."""
        return at_start(pages)

    def after(self, page: Mapping[str, AnyArray], observation: ObservationColumns) -> Mapping[str, AnyArray]:
        """The wait divided or multiplied, within its bounds."""
        factor = np.where(observation.changed, 1.0 / self.changed_factor, self.unchanged_factor)
        return {INTERVAL: np.clip(page[INTERVAL] * factor, self.shortest, self.longest)}


def heritrix(
    *,
    changed_factor: float = 1.5,
    unchanged_factor: float = 1.5,
    shortest: float = HOUR,
    longest: float = 4 * WEEK,
    start: float | None = DAY,
) -> ByInterval:
    """Heritrix 1's wait evaluator; a ``start`` of ``None`` is the budget's."""
    first = min(max(DAY, shortest), longest) if start is None else start
    rule = HeritrixRule(changed_factor, unchanged_factor, shortest, first, longest)
    return ByInterval(rule, start_from_budget=start is None)
