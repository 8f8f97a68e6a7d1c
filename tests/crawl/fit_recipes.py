"""Recipes for fit processes in tests; the process imports this file, as it imports whatever a recipe is made of."""

from __future__ import annotations

import time
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from recrawl.crawl.worker import fit_process
from recrawl.crawl.worker.fit_process import FitParts
from recrawl.schedule.frontier.revisit_scheduler import RevisitScheduler
from recrawl.schedule.policies.fixed_interval import FixedInterval
from recrawl.schedule.policies.valued import ValuedPolicy
from recrawl.store.open import open_store
from recrawl.time import HOUR


class Held(FixedInterval):
    """A policy whose fit takes as long as a file is there; it says that it began."""

    def __init__(self, interval: float, folder: Path) -> None:
        super().__init__(interval)
        self._folder = folder

    def fit(self, budget: float, now: float) -> None:
        super().fit(budget, now)
        (self._folder / "fitting").touch()
        while (self._folder / "hold").exists():
            time.sleep(0.01)


@dataclass(frozen=True)
class HeldFits:
    """A fit process that can be held up."""

    folder: Path
    interval: float

    @contextmanager
    def __call__(self):
        with open_store(self.folder / "store.db", durable=False) as store:
            yield FitParts(store, RevisitScheduler(Held(self.interval, self.folder), budget=1.0), HOUR)


@dataclass(frozen=True)
class ExactFits:
    """Ours, with every due time written that differs at all."""

    location: Path
    budget: float

    @contextmanager
    def __call__(self):
        fit_process._TOLERANCE = 0.0
        with open_store(self.location, durable=False) as store:
            yield FitParts(store, RevisitScheduler(ValuedPolicy(), budget=self.budget), HOUR)
