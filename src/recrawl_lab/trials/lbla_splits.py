"""What is learned from and what is evaluated: recorded pages of several sites, parted by time, and by site as well."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from typing import Final

import numpy as np

from recrawl.app.predict.link_data import RecordedLinks
from recrawl.model import BoolArray
from recrawl.predict.feature_extraction import FeatureEvidence, FeatureOptions, look_around
from recrawl.predict.related_pages import learn_semantics
from recrawl.time import DAY
from recrawl_lab.learners.link_learners import LearnerSettings
from recrawl_lab.trials.lbla_trial import LblaTrial, LinkExamples, examples, pooled

HISTORIES: Final = (0, 1, 2, 4, 8)
TRAINED: Final = 4
"""Times that are learned from, one period apart; the last is one period before the time that is evaluated."""
SAME_SITES: Final = "unseen pages of the same sites"
OTHER_SITES: Final = "unseen sites"
_TEST_SHARE: Final = 1.0 / 3.0
"""Share of pages, or of sites, that are evaluated."""


@dataclass(frozen=True, slots=True)
class LblaPlan:
    """When and what to predict."""

    at: float
    """The time that is evaluated, seconds since the epoch."""
    period: float = 91 * DAY
    pages: int = 5_000
    """Of each time, at most."""
    settings: LearnerSettings = field(default_factory=LearnerSettings)
    seed: int = 1
    draws: int = 1
    """How often other pages, and other sites, are evaluated."""
    alone: bool = False
    """Only what LBLA features need: the longest history, and no links between pages."""

    @property
    def histories(self) -> tuple[int, ...]:
        """Sizes of history to be tried."""
        return HISTORIES[-1:] if self.alone else HISTORIES


@dataclass(frozen=True, slots=True)
class LblaSplit:
    """One way to keep apart what is learned from and what is evaluated."""

    name: str
    trials: dict[int, LblaTrial]
    """By history size."""
    sites: int
    """That are evaluated."""
    draw: int
    """Which of the draws, from 0."""
    recall: float
    """Share of the truly related pages that was found, at the time with the least; 1 where all pairs were compared."""

    @property
    def same_sites(self) -> bool:
        """Whether other pages of the evaluated sites were learned from."""
        return self.name == SAME_SITES


def splits(
    recorded: RecordedLinks, plan: LblaPlan, *, progress: Callable[[], object] = lambda: None
) -> list[LblaSplit]:
    """A third of the pages of all sites, and a third of the sites, evaluated later and learned from the others.

    No page is both learned from and evaluated: its link change rate hardly moves from one time to the next, and
    features that do not change would give away who it is. Splits with nothing to learn from, or to evaluate, are left
    out. Every time has draws of its own: evaluated at the same few sites, several times would seem to agree more than
    they do.
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
    """Which pages are evaluated, and not learned from."""
    count = len(recorded.sites)
    return {
        SAME_SITES: rng.random(len(recorded.site)) < _TEST_SHARE,
        OTHER_SITES: np.isin(recorded.site, rng.permutation(count)[: round(count * _TEST_SHARE)]),
    }


def _split(  # noqa: PLR0913, PLR0917 - what there is, how it is parted, and what that is called
    recorded: RecordedLinks,
    found: dict[int, tuple[LinkExamples, LinkExamples]],
    plan: LblaPlan,
    draw: int,
    name: str,
    judged: BoolArray,
    recall: float,
) -> LblaSplit | None:
    trials = {
        history: LblaTrial(
            train.take(~judged[train.table.page]), test.take(judged[test.table.page]), plan.settings, plan.seed + draw
        )
        for history, (train, test) in found.items()
    }
    one = trials[HISTORIES[-1]]
    if not len(one.train.table) or not len(one.test.table):
        return None
    return LblaSplit(name, trials, len(np.unique(recorded.site[one.test.table.page])), draw, recall)


def _examples(
    recorded: RecordedLinks, plan: LblaPlan, rng: np.random.Generator, progress: Callable[[], object]
) -> tuple[dict[int, tuple[LinkExamples, LinkExamples]], float]:
    """What to learn from and what to evaluate, for each history size.

    And the recall of the search for related pages.
    """
    times = [plan.at - lag * plan.period for lag in range(TRAINED, -1, -1)]
    followed = recorded.recorded_at(plan.at + plan.period)
    told = [_some(recorded, followed & recorded.alive(time), plan.pages, rng) for time in times]
    if plan.alone:
        told = [replace(evidence, links=None) for evidence in told]
    semantics = learn_semantics(_texts(told[0], times[0]), rng)
    by_time: dict[int, list[LinkExamples]] = {history: [] for history in plan.histories}
    recall = 1.0
    for evidence, time in zip(told, times, strict=True):
        around = look_around(evidence, time, semantics, rng)
        recall = min(recall, around.related.recall)
        for history, found in by_time.items():
            options = FeatureOptions(period=plan.period, history=history)
            found.append(examples(evidence, time, around, options))
            progress()
    return {history: (pooled(found[:-1]), found[-1]) for history, found in by_time.items()}, recall


def _some(recorded: RecordedLinks, there: BoolArray, most: int, rng: np.random.Generator) -> FeatureEvidence:
    chosen = np.flatnonzero(there)
    if len(chosen) > most:
        chosen = rng.choice(chosen, most, replace=False)
    mask = np.zeros(len(there), np.bool_)
    mask[chosen] = True
    return recorded.evidence.of_pages(mask)


def _texts(evidence: FeatureEvidence, time: float) -> list[str]:
    return [] if evidence.texts is None else evidence.texts.before(time).last_of(evidence.page)
