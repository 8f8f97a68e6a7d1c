"""A trained model: from what is known of a page at first sight to what to believe of its rates.

For each kind of event it holds two priors: one for pages that were only found, which reads their URLs, and one for
pages that were looked at once, which reads what was on them, too. Events are changes (λ) and new links (ν), internal
and external ones apart as in paper 004. A page is judged by all that is known of it, and no more: a model that had to
guess what is on a page would have to be less sure of every page.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from recrawl.estimate.gamma import sum_of
from recrawl.model import BoolArray, FloatArray, GammaBelief, IntArray
from recrawl.predict.count_prior import CountPrior, chosen, train
from recrawl.predict.feature_table import FeatureTable
from recrawl.predict.first_sight import when_found
from recrawl.predict.look_counts import LookCounts

CHANGES = "changes"
NEW_LINKS = "new-links"
"""Internal and external ones together: the sum of what is believed of each."""
LINK_EVENTS = {"internal": "new-internal-links", "external": "new-external-links"}
"""The events of links by kind: those that lead to pages of the same host, and those that lead elsewhere."""


@dataclass(frozen=True, slots=True)
class EventPrior:
    """Of one kind of event."""

    found: CountPrior
    """For pages of which only the URL is known."""
    seen: CountPrior
    """For pages that were looked at."""

    def prior(self, table: FeatureTable, site: IntArray) -> GammaBelief:
        """What to believe of the rates of these pages, per second. O(pages · trees)."""
        known = is_seen(table)
        return chosen(
            known,
            lambda: self.seen.prior(table.take(known), site[known]),
            lambda: self.found.prior(when_found(table.take(~known)), site[~known]),
        )

    def level(self, table: FeatureTable, site: IntArray) -> FloatArray:
        """By what to multiply each answer to compare it with others.

        Who knows less of a page says what is nearer to the mean of all, and that of rates lies far above most of them.
        So an answer is compared with what is usual with whoever gave it, at the level of pages seen on known sites.
        """
        usual = np.where(is_seen(table), self.seen.usual(site), self.found.usual(site))
        return np.exp(self.seen.known_site.usual - usual)


@dataclass(frozen=True, slots=True)
class PriorModel:
    """Priors by kind of event; immutable."""

    events: Mapping[str, EventPrior]

    @property
    def schema(self) -> str:
        """Of the tables it reads."""
        return next(iter(self.events.values())).seen.schema

    @property
    def sites(self) -> IntArray:
        """Sites it was trained on."""
        return next(iter(self.events.values())).seen.sites

    @property
    def foretold(self) -> tuple[str, ...]:
        """What can be asked for."""
        links = set(LINK_EVENTS.values()) <= set(self.events)
        return (*self.events, *([NEW_LINKS] if links else []))

    def prior(self, event: str, table: FeatureTable, site: IntArray) -> GammaBelief:
        """What to believe of the rates of these pages, per second.

        Raises:
            InputError: the table has other features than the model was trained on.
        """
        asked = table.fitting(self.schema)
        return sum_of([one.prior(asked, site) for one in self.parts(event)])

    def level(self, event: str, table: FeatureTable, site: IntArray) -> FloatArray:
        """By what to multiply the mean of each prior where only ratios between pages count.

        Of one kind of event: a sum of two kinds has no answerer of its own.
        """
        return self.events[event].level(table, site)

    def parts(self, event: str) -> list[EventPrior]:
        """Whose beliefs add up to that about an event."""
        return [self.events[one] for one in (LINK_EVENTS.values() if event == NEW_LINKS else [event])]


def is_seen(table: FeatureTable) -> BoolArray:
    """Which of the pages somebody has looked at: their size is known then."""
    return ~np.isnan(table.column("content_size"))


def train_model(
    table: FeatureTable,
    counts: Mapping[str, LookCounts],
    site: IntArray,
    *,
    seed: int = 0,
    progress: Callable[[], None] = lambda: None,
) -> PriorModel:
    """Learn from pages with features at first sight and what was counted on each since, by kind of event.

    ``progress`` is called :data:`STEPS` times for each. What pages were like when they were first looked at is only
    learned from those that were.
    """
    seen = is_seen(table)
    lessons = seen if bool(seen.any()) else np.ones(len(table), np.bool_)
    events = {}
    for event, count in counts.items():
        # What is usual with either is taken over the pages that both know: else they could not be compared.
        found = train(when_found(table), count.count, count.exposure, site, seed=seed, usual_of=lessons)
        progress()
        watched, exposure = count.count[lessons], count.exposure[lessons]
        events[event] = EventPrior(found, train(table.take(lessons), watched, exposure, site[lessons], seed=seed))
        progress()
    return PriorModel(events)


STEPS = 2
"""Of training, for each kind of event."""


def counted(row: IntArray, amount: npt.ArrayLike, exposure: FloatArray) -> LookCounts:
    """Events that were counted: ``amount[k]`` more on page ``row[k]``. Those without exposure teach nothing.

    >>> counted(np.array([0, 0, 1]), [2, 1, 5], np.array([9.0, 0.0])).count.tolist()
    [3.0, 0.0]
    """
    count = np.bincount(row, np.asarray(amount, np.float64), len(exposure)).astype(np.float64)
    return LookCounts(np.where(exposure > 0, count, 0.0), exposure)
