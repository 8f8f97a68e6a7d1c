"""How good are estimators? Learn from the looks before a moment, predict the next look, compare with what it found.

The pages of a population are visited by a schedule. At a moment of each page's record the past is cut off. Half of the
pages are *residents*, whose whole past is known; the others are *newcomers*, of whose past only the last few gaps are
told. A method learns from all of them, and is judged by the newcomers: what probability did it give to what their next
look found, and did it put them in the order of their future rates? So one sees how a method does with no history of a
page, with a little and with much, in the company in which it would be used.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Protocol

import numpy as np

from recrawl.assess.scores import (
    Interval,
    brier,
    calibration,
    log_loss,
    mean_with_interval,
    rank_correlation,
)
from recrawl.estimate.estimator import Evidence
from recrawl.estimate.tempo_state import Places
from recrawl.model import BoolArray, FloatArray, Histories, IntArray, Verdict, Visits
from recrawl.model.arrays import starts_of_runs
from recrawl.simulate.web_events import EventTimes
from recrawl.time import DAY

LENGTHS = (0, 1, 2, 5, 10, 20, 50)
"""Gaps of a newcomer's past that are told."""
CUTS = (0.5, 0.75)
"""Where the past ends, as a share of each page's record."""


@dataclass(frozen=True, slots=True)
class Population:
    """Pages and where they belong. The id of a page is its row."""

    places: Places
    """Cluster and birth of each page, host of each cluster. Clusters are resampled as a whole."""
    start: FloatArray
    end: FloatArray
    """The record each page is part of, seconds since the epoch."""
    changes: EventTimes
    """What really happened, one row a page."""

    def __len__(self) -> int:
        return len(self.start)

    def levels(self) -> tuple[IntArray, IntArray]:
        """Host and cluster of each page, as ``Evidence`` wants them."""
        return self.places.host[self.places.cluster], self.places.cluster

    def future_rate(self, page: IntArray, at: FloatArray) -> FloatArray:
        """True changes per second after a time, up to the end of the record; NaN where less than 90 days are left."""
        ahead = self.end[page] - at
        counts = self.changes.until(page, self.end[page]) - self.changes.until(page, at)
        return np.where(ahead >= _FUTURE, counts / np.maximum(ahead, 1.0), np.nan)


_FUTURE = 90 * DAY


@dataclass(frozen=True, slots=True)
class Question:
    """What a method is told and asked: will these pages have changed by their next look?"""

    evidence: Evidence
    """Of residents and newcomers, one row for each page of the population."""
    rows: IntArray
    """Rows of the evidence that are asked about."""
    last: FloatArray
    """When they were last looked at, seconds since the epoch."""
    next: FloatArray
    """When they will be looked at next."""


@dataclass(frozen=True, slots=True)
class Answer:
    """What a method says of the pages asked about."""

    p: FloatArray
    """Probability that the next look finds a change."""
    rate: FloatArray
    """Median of the belief about the change rate, in any unit: only its order is judged."""


class Method(Protocol):
    """An estimator with all that it takes to predict."""

    @property
    def name(self) -> str:
        """What tables call it."""
        ...

    def prepare(self, population: Population, known: Histories) -> Callable[[Question], Answer]:
        """Get ready for questions about newcomers, knowing residents alone; of newcomers only when they were last seen.

        Called once for each cut, so that what is slow to learn and does not depend on the newcomers is learned once.
        """
        ...


@dataclass(frozen=True, slots=True)
class Outcomes:
    """Answers of one method to all questions about newcomers with so much past, and what came of them."""

    method: str
    length: int
    p: FloatArray
    happened: BoolArray
    rate: FloatArray
    future_rate: FloatArray
    cluster: IntArray


def run_trial(  # noqa: PLR0913 - the parts of a trial, each with a name
    population: Population,
    visits: Visits,
    methods: Sequence[Method],
    rng: np.random.Generator,
    *,
    lengths: Sequence[int] = LENGTHS,
    cuts: Sequence[float] = CUTS,
    progress: Callable[[], None] = lambda: None,
) -> list[Outcomes]:
    """Ask every method every question. ``progress`` is called once for each (cut, length, method).

    O(visits log visits) for each cut, and what the methods take.
    """
    newcomer = rng.random(len(population)) < 0.5  # noqa: PLR2004 - half of them
    visits = visits.sorted()
    collected: list[Outcomes] = []
    for share in cuts:
        at = population.start + share * (population.end - population.start)
        past, next_time, next_changed = _cut(population, visits, at)
        ready = [(method.name, method.prepare(population, _told(past, newcomer, 0))) for method in methods]
        for length in lengths:
            asked = newcomer & np.isfinite(past.last_visit) & np.isfinite(next_time) & (past.counts() >= length)
            rows = np.flatnonzero(asked)
            evidence = Evidence(_told(past, newcomer, length), population.levels())
            question = Question(evidence, rows, past.last_visit[rows], next_time[rows])
            happened, cluster = next_changed[rows], population.places.cluster[rows]
            future = population.future_rate(rows, at[rows])
            for name, answer in ready:
                said = answer(question)
                collected.append(Outcomes(name, length, said.p, happened, said.rate, future, cluster))
                progress()
    return collected


def _cut(population: Population, visits: Visits, at: FloatArray) -> tuple[Histories, FloatArray, BoolArray]:
    """Histories up to ``at``, one row a page; when the first look after it came (NaN: never) and what it found."""
    early = visits.time <= at[visits.page]
    past = Histories.from_visits(visits.take(early)).align(np.arange(len(population), dtype=np.int64))
    later = visits.take(~early & (visits.verdict != Verdict.UNKNOWN))
    first = starts_of_runs(later.page)
    next_time, changed = np.full(len(population), np.nan), np.zeros(len(population), dtype=np.bool_)
    next_time[later.page[first]] = later.time[first]
    changed[later.page[first]] = later.verdict[first] == Verdict.CHANGED
    return past, next_time, changed


def _told(past: Histories, newcomer: BoolArray, length: int) -> Histories:
    """The past of residents, and the last gaps of newcomers."""
    return Histories.concatenate([past.take(~newcomer), past.take(newcomer).latest(length)])


@dataclass(frozen=True, slots=True)
class Score:
    """How one method did with newcomers of one length of past."""

    method: str
    length: int
    predictions: int
    log_loss: Interval
    brier: Interval
    calibration_error: float
    rank_correlation: float
    behind_best: Interval
    """Mean log loss less that of the method with the lowest, with the interval of the difference: 0 for the best."""


def score(outcomes: Sequence[Outcomes], rng: np.random.Generator, *, repeats: int = 1_000) -> list[Score]:
    """Pool the outcomes of each method and length over all trials and judge them.

    Intervals come from resampling whole clusters. A method whose ``behind_best`` interval holds 0 ties with the best.
    """
    scores: list[Score] = []
    for length in sorted({one.length for one in outcomes}):
        pooled = _pool([one for one in outcomes if one.length == length])
        losses = {one.method: log_loss(one.p, one.happened) for one in pooled}
        best = min(losses, key=lambda name: float(losses[name].mean()) if len(losses[name]) else np.inf)
        for one in pooled:
            loss, known = losses[one.method], np.isfinite(one.future_rate)
            scores.append(
                Score(
                    one.method,
                    length,
                    len(loss),
                    mean_with_interval(loss, one.cluster, rng, repeats=repeats),
                    mean_with_interval(brier(one.p, one.happened), one.cluster, rng, repeats=repeats),
                    calibration(one.p, one.happened).error,
                    rank_correlation(one.rate[known], one.future_rate[known]),
                    mean_with_interval(loss - losses[best], one.cluster, rng, repeats=repeats),
                )
            )
    return scores


def _pool(outcomes: Sequence[Outcomes]) -> list[Outcomes]:
    """The outcomes of each method as one, methods in the order they first appear; all have the same questions."""
    pooled = []
    for name in dict.fromkeys(one.method for one in outcomes):
        parts = [one for one in outcomes if one.method == name]
        pooled.append(
            Outcomes(
                name,
                parts[0].length,
                np.concatenate([one.p for one in parts]),
                np.concatenate([one.happened for one in parts]),
                np.concatenate([one.rate for one in parts]),
                np.concatenate([one.future_rate for one in parts]),
                np.concatenate([one.cluster for one in parts]),
            )
        )
    return pooled
