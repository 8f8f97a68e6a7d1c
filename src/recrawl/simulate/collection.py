"""Collections: pages that belong together and everything that really happened to them.

Made from a change log (a repository of a site's sources, a data set). What counts as a change is decided here, once
for all experiments (algorithms §7): bulk edits do not count, and a chain of changes that follow each other within an
hour is one change, at its first moment. A page that was there when the record starts, or that came with a bulk import,
has an unknown age.
"""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np

from recrawl.assess.truth_scores import PageLifetimes
from recrawl.model import BoolArray, FloatArray, IntArray
from recrawl.model.arrays import offsets_of, order_by, starts_of_runs
from recrawl.simulate.event_times import EventTimes
from recrawl.simulate.sampling import PageTruth
from recrawl.time import HOUR

CHAIN = HOUR
"""Changes closer to the one before than this belong to it, seconds."""


@dataclass(frozen=True, slots=True)
class Collection:
    """The pages of one site and their true histories. The id of a page is its place in ``urls``."""

    name: str
    urls: tuple[str, ...]
    truth: PageLifetimes
    """One row a life, as in :class:`recrawl.assess.truth_scores.PageLifetimes`."""
    born: FloatArray
    """When each page first appeared, seconds since the epoch; NaN where nobody saw it appear."""
    start: float
    """When the record starts, seconds since the epoch."""
    end: float
    """When it ends."""
    links: FloatArray = field(default_factory=lambda: np.empty(0))
    """New links of each change of the truth; empty where nobody counted them."""

    def __len__(self) -> int:
        return len(self.urls)

    def watched(self) -> PageTruth:
        """The same as visitors see it who do not know of lives.

        From the first birth to the last death, one row per page.

        Pages that were never there are born at infinity.
        """
        lifetimes = self.truth
        born, died = np.full(len(self), np.inf), np.full(len(self), -np.inf)
        np.minimum.at(born, lifetimes.page, lifetimes.birth)
        np.maximum.at(died, lifetimes.page, lifetimes.death)
        changes = EventTimes(offsets_of(lifetimes.page[lifetimes.row_of_change()], len(self)), lifetimes.times)
        return PageTruth(born, died, changes, self.start, self.end)

    def changes_between(self, page: IntArray, start: FloatArray, end: FloatArray) -> IntArray:
        """How many changes each page had in (start, end]. O((changes + pages) log changes)."""
        changes = EventTimes(offsets_of(self.truth.page[self.truth.row_of_change()], len(self)), self.truth.times)
        return changes.until(page, end) - changes.until(page, start)


@dataclass(frozen=True, slots=True)
class Events:
    """What a change log says, columns of equal length in the order it happened to each page."""

    page: IntArray
    """Place of the page in the list of URLs."""
    time: FloatArray
    """Seconds since the epoch."""
    added: BoolArray
    """The page appeared, for the first time or again."""
    removed: BoolArray
    """The page went away. An event that is neither is a change."""
    bulk: BoolArray
    """One of very many at once: an import, a mechanical edit."""
    links: FloatArray | None = None
    """Links that the page did not have before; ``None`` where nobody counted them."""

    def in_order(self) -> Events:
        """Sorted by page and time; what happened at one moment stays in the order it was told."""
        order = order_by(self.page, self.time)
        if order is None:
            return self
        return Events(
            self.page[order],
            self.time[order],
            self.added[order],
            self.removed[order],
            self.bulk[order],
            None if self.links is None else self.links[order],
        )


def collect(name: str, urls: tuple[str, ...], events: Events, *, bulk: bool = False) -> Collection:
    """A collection from a change log; with ``bulk`` also bulk edits count as changes.

    A page's first event is its birth, whatever it is called. Pages without events are left in, without a life.
    O(events log events).

    Raises:
        ValueError: there are no events.
    """
    if not len(events.page):
        msg = f"nothing ever happened in {name!r}"
        raise ValueError(msg)
    events = events.in_order()
    page, time = events.page, events.time
    first = starts_of_runs(page)
    birth = events.added | (first & ~events.removed)
    turns = _turns(page, time, birth, events.removed)
    changes = ~(birth | events.removed)
    if not bulk:
        changes &= ~events.bulk
    counted = np.flatnonzero(changes)
    changes[changes] = _heads_of_chains(page[changes], time[changes])
    ids, start = np.arange(len(urls), dtype=np.int64), float(time.min())
    truth = PageLifetimes.from_lifetimes(
        ids,
        time[turns],
        offsets_of(page[turns], len(ids)),
        time[changes],
        offsets_of(page[changes], len(ids)),
    )
    born = np.full(len(ids), np.nan)
    seen = first & birth & ~events.bulk & (time > start)
    born[page[seen]] = time[seen]
    links = np.empty(0)
    if events.links is not None and len(counted):
        heads = np.flatnonzero(changes)
        sums = np.add.reduceat(events.links[counted], np.searchsorted(counted, heads)).astype(np.float64)
        links = _values_at(truth, page[heads], time[heads], sums)
    return Collection(name, urls, truth, born, start, float(time.max()), links)


def _turns(page: IntArray, time: FloatArray, birth: BoolArray, removed: BoolArray) -> BoolArray:
    """Events at which a life starts or ends: births and deaths in turn on each page, each life of some length."""
    turn = np.flatnonzero(birth | removed)
    # Of several births in a row only the first one counts, likewise of deaths; a death without a life does not.
    turn = turn[starts_of_runs(page[turn], birth[turn]) & ~(starts_of_runs(page[turn]) & ~birth[turn])]
    instant = np.zeros(len(turn), dtype=np.bool_)
    instant[:-1] = birth[turn[:-1]] & (page[turn[1:]] == page[turn[:-1]]) & (time[turn[1:]] == time[turn[:-1]])
    instant[1:] |= instant[:-1]
    turns = np.zeros(len(page), dtype=np.bool_)
    turns[turn[~instant]] = True
    return turns


def _heads_of_chains(page: IntArray, time: FloatArray) -> BoolArray:
    """Where a change is not closer than :data:`CHAIN` to the one before it on its page."""
    close = np.zeros(len(page), dtype=np.bool_)
    close[1:] = (page[1:] == page[:-1]) & (np.diff(time) < CHAIN)
    return ~close


def _values_at(truth: PageLifetimes, page: IntArray, time: FloatArray, value: FloatArray) -> FloatArray:
    """The value of each change of the truth, from those given by page and time: all of its changes and maybe more."""
    # complex numbers sort by their real part, then by the other
    wanted = truth.page[truth.row_of_change()] + 1j * truth.times
    return value[np.searchsorted(page + 1j * time, wanted)]
