"""Which pages another crawler should visit in a given time: those that fall due in it, within the budget."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Self

from recrawl.cli.options import seconds_of
from recrawl.errors import ConfigError
from recrawl.model.words import counted

if TYPE_CHECKING:
    from recrawl.cli.workspace import Workspace
    from recrawl.model import IntArray
    from recrawl.store.base import Store


@dataclass(frozen=True, slots=True)
class Period:
    """A time for which a list of pages is made, in seconds."""

    start: float
    """Visits after it do not count."""
    length: float

    @classmethod
    def told(cls, at: str | None, length: str) -> Self:
        """As options say it: from a moment, or from now, for a duration.

        Raises:
            ConfigError: it has no length, or the moment is none.
        """
        from recrawl.cli.rates_question import moment
        from recrawl.crawl.clock import RealClock

        seconds = seconds_of("--due", length)
        if not seconds > 0:
            raise ConfigError(f"Nothing falls due within {length}.", "Give --due a duration above 0, for example 1d.")
        return cls(moment(at, RealClock().now()), seconds)


def due_pages(place: Workspace, store: Store, period: Period) -> tuple[IntArray, str]:
    """Ids of the pages to visit in the period, the one that waits longest first, and a sentence on those left out.

    Due times are those of ``recrawl plan``. More than the budget allows in the period are not taken: the others are
    still due in the next. O(visits + pages · steps).
    """
    import numpy as np

    from recrawl.cli.plan_outlook import look_ahead
    from recrawl.cli.predict_use import expected_changes, expected_links
    from recrawl.crawl.controls import limits

    settings = place.limited(limits(store.controls())).configuration.settings
    now = period.start
    outlook = look_ahead(store, settings, now, expected_changes(place, store, now), expected_links(place, store, now))
    due = np.flatnonzero(outlook.due < now + period.length)
    due = due[np.lexsort((outlook.pages.id[due], outlook.due[due]))]
    affordable = int(np.searchsorted(np.cumsum(outlook.pages.cost[due]), outlook.budget * period.length, "right"))
    waiting = len(due) - affordable
    more = "1 more falls due" if waiting == 1 else f"{waiting:,} more fall due"
    budget = counted(outlook.settings.schedule.budget, "visit")
    said = f"{more}; the budget ({budget} a day) lets {'it' if waiting == 1 else 'them'} wait."
    return outlook.pages.id[due[:affordable]], said if waiting > 0 else ""
