"""Fixed interval: what most monitoring tools do. Each page again after the same, given time."""

from __future__ import annotations

from recrawl.errors import ConfigError
from recrawl.model import FloatArray, IntArray, Pages, Visits
from recrawl.schedule.ledger import Ledger


class FixedInterval:
    """One given interval for all pages. It heeds no budget and learns nothing."""

    name = "fixed-interval"
    price = None

    def __init__(self, interval: float) -> None:
        if not interval > 0:
            raise ConfigError(f"An interval of {interval} s is not possible.", "Give a duration above 0, such as 1d.")
        self._ledger = Ledger()
        self._interval = interval

    def __len__(self) -> int:
        """How many pages it knows."""
        return len(self._ledger)

    def add(self, pages: Pages) -> None:
        """Learn of pages."""
        self._ledger.add(pages)

    def tell(self, visits: Visits) -> None:
        """Note when pages were looked at."""
        self._ledger.tell(visits)

    def fit(self, budget: float, now: float) -> None:
        """Nothing to adapt."""

    def due(self, page: IntArray, now: float) -> FloatArray:  # noqa: ARG002 - due times are absolute
        """One interval after the last look; at discovery if there was none."""
        return self._ledger.due_after(page, self._interval)

    def urgency(self, page: IntArray, now: float) -> FloatArray:
        """Intervals since the last look."""
        return self._ledger.urgency(page, self._interval, now)
