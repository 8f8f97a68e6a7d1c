"""What is learned from and what is judged: recorded pages of several sites, parted by time, and by site as well."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from typing import Final

import numpy as np

from recrawl.model import BoolArray, FloatArray, IntArray
from recrawl.predict.features import Evidence, FeatureOptions, look_around
from recrawl.predict.link_learners import Settings
from recrawl.predict.text_space import learn_semantics
from recrawl.simulate.lbla_trial import Examples, Trial, examples, pooled
from recrawl.time import DAY

HISTORIES: Final = (0, 1, 2, 4, 8)
TRAINED: Final = 4
"""Times that are learned from, one period apart; the last is one period before the time that is judged."""
SAME_SITES: Final = "unseen pages of the same sites"
OTHER_SITES: Final = "unseen sites"
_JUDGED: Final = 1.0 / 3.0
"""Share of pages, or of sites, that are judged."""


@dataclass(frozen=True, slots=True)
class RecordedLinks:
    """The pages of several sites with all that is told of them. Page ids are 0, 1, …, n − 1."""

    evidence: Evidence
    site: IntArray
    """The site of each page, as a place in ``sites``."""
    sites: tuple[str, ...]
    events: tuple[IntArray, FloatArray, BoolArray]
    """Page, time, and whether the page went, of every event; by page and time."""

    def alive(self, time: float) -> BoolArray:
        """Which pages were there just before a time."""
        page, when, gone = self.events
        there = np.zeros(len(self.site), np.bool_)
        earlier = when < time
        there[page[earlier]] = ~gone[earlier]  # of equal indices the last assignment stands
        return there

    def recorded_at(self, time: float) -> BoolArray:
        """The pages of sites whose record goes on to this time; past its end a site seems to have no new links."""
        page, when, _ = self.events
        last = np.full(len(self.sites), -np.inf)
        np.maximum.at(last, self.site[page], when)
        return np.asarray((last >= time)[self.site])


@dataclass(frozen=True, slots=True)
class Plan:
    """When and what to foretell."""

    at: float
    """The time that is judged, seconds since the epoch."""
    period: float = 91 * DAY
    pages: int = 5_000
    """Of each time, at most."""
    settings: Settings = field(default_factory=Settings)
    seed: int = 1
    draws: int = 1
    """How often other pages, and other sites, are judged."""
    alone: bool = False
    """Only what LBLA features need: the longest history, and no links between pages."""

    @property
    def histories(self) -> tuple[int, ...]:
        """Sizes of history to be tried."""
        return HISTORIES[-1:] if self.alone else HISTORIES


@dataclass(frozen=True, slots=True)
class Split:
    """One way to keep apart what is learned from and what is judged."""

    name: str
    trials: dict[int, Trial]
    """By history size."""
    sites: int
    """That are judged."""
    draw: int
    """Which of the draws, from 0."""
    recall: float
    """Share of the truly related pages that was found, at the time with the least; 1 where all pairs were compared."""

    @property
    def same_sites(self) -> bool:
        """Whether other pages of the judged sites were learned from."""
        return self.name == SAME_SITES


def splits(recorded: RecordedLinks, plan: Plan, *, progress: Callable[[], object] = lambda: None) -> list[Split]:
    """A third of the pages of all sites, and a third of the sites, judged later and learned from the others.

    No page is both learned from and judged: its link change rate hardly moves from one time to the next, and features
    that do not change would give away who it is. Splits with nothing to learn from, or to judge, are left out. Every
    time has draws of its own: judged at the same few sites, several times would seem to agree more than they do.
    """
    found, recall = _examples(recorded, plan, np.random.default_rng(plan.seed), progress)
    result = []
    for draw in range(plan.draws):
        rng = np.random.default_rng([plan.seed, draw, int(np.float64(plan.at).view(np.uint64))])
        result += [
            one
            for name, judged in _parts(recorded, rng).items()
            if (one := _split(recorded, found, plan, draw, name, judged, recall)) is not None
        ]
    return result


def _parts(recorded: RecordedLinks, rng: np.random.Generator) -> dict[str, BoolArray]:
    """Which pages are judged, and not learned from."""
    count = len(recorded.sites)
    return {
        SAME_SITES: rng.random(len(recorded.site)) < _JUDGED,
        OTHER_SITES: np.isin(recorded.site, rng.permutation(count)[: round(count * _JUDGED)]),
    }


def _split(  # noqa: PLR0913, PLR0917 - what there is, how it is parted, and what that is called
    recorded: RecordedLinks,
    found: dict[int, tuple[Examples, Examples]],
    plan: Plan,
    draw: int,
    name: str,
    judged: BoolArray,
    recall: float,
) -> Split | None:
    trials = {
        history: Trial(
            train.take(~judged[train.table.page]), test.take(judged[test.table.page]), plan.settings, plan.seed + draw
        )
        for history, (train, test) in found.items()
    }
    one = trials[HISTORIES[-1]]
    if not len(one.train.table) or not len(one.test.table):
        return None
    return Split(name, trials, len(np.unique(recorded.site[one.test.table.page])), draw, recall)


def _examples(
    recorded: RecordedLinks, plan: Plan, rng: np.random.Generator, progress: Callable[[], object]
) -> tuple[dict[int, tuple[Examples, Examples]], float]:
    """What to learn from and what to judge, for each history size; and the recall of the search for related pages."""
    times = [plan.at - lag * plan.period for lag in range(TRAINED, -1, -1)]
    followed = recorded.recorded_at(plan.at + plan.period)
    told = [_some(recorded, followed & recorded.alive(time), plan.pages, rng) for time in times]
    if plan.alone:
        told = [replace(evidence, links=None) for evidence in told]
    semantics = learn_semantics(_texts(told[0], times[0]), rng)
    by_time: dict[int, list[Examples]] = {history: [] for history in plan.histories}
    recall = 1.0
    for evidence, time in zip(told, times, strict=True):
        around = look_around(evidence, time, semantics, rng)
        recall = min(recall, around.related.recall)
        for history, found in by_time.items():
            options = FeatureOptions(period=plan.period, history=history)
            found.append(examples(evidence, time, around, options))
            progress()
    return {history: (pooled(found[:-1]), found[-1]) for history, found in by_time.items()}, recall


def _some(recorded: RecordedLinks, there: BoolArray, most: int, rng: np.random.Generator) -> Evidence:
    chosen = np.flatnonzero(there)
    if len(chosen) > most:
        chosen = rng.choice(chosen, most, replace=False)
    mask = np.zeros(len(there), np.bool_)
    mask[chosen] = True
    return recorded.evidence.of_pages(mask)


def _texts(evidence: Evidence, time: float) -> list[str]:
    return [] if evidence.texts is None else evidence.texts.before(time).last_of(evidence.page)
