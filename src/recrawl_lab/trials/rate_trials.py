"""The evaluation of estimators: learn from the observations before a given time, predict the next observation.

The pages of a population are visited by a schedule. At a time within each record the past is cut off. Half of the pages
are *residents* with their complete past; the others are *new pages* of which only the last few gaps are known. A method
learns from all of them and is evaluated on the new pages: the probability it gave to the result of the next
observation, and the order of their future rates. So methods are compared without history, with a short and with a long
history.

Methods are all estimators in wall time, and the default, the posterior in operational time. Populations are taken from
the collections of a data set: whole clusters of pages, up to a maximum number.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Protocol

import numpy as np

from recrawl.assess.prediction_scores import (
    MeanInterval,
    brier,
    calibration,
    log_loss,
    mean_with_interval,
    spearman,
)
from recrawl.estimate.estimator import Estimator, RateEvidence
from recrawl.estimate.operational.factor_state import PageGroups, choose
from recrawl.estimate.operational.operational_factors import known_births
from recrawl.estimate.operational.operational_posterior import OperationalPosterior
from recrawl.estimate.posterior.posterior_estimators import Posterior
from recrawl.model import BoolArray, FloatArray, Histories, IntArray, Verdict, Visits
from recrawl.model.arrays import starts_of_runs
from recrawl.predict.related_pages import UrlClusters
from recrawl.simulate.sampling import Collection, PageTruth
from recrawl.simulate.virtual_web import EventTimes
from recrawl.time import DAY

LENGTHS = (0, 1, 2, 5, 10, 20, 50)
"""Numbers of known gaps in the past of a new page."""
CUTS = (0.5, 0.75)
"""Where the past ends, as a share of each page's record."""


@dataclass(frozen=True, slots=True)
class RatePopulation:
    """Pages and where they belong. The id of a page is its row."""

    places: PageGroups
    """Cluster and birth of each page, host of each cluster. Clusters are resampled as a whole."""
    start: FloatArray
    end: FloatArray
    """The record each page is part of, seconds since the epoch."""
    changes: EventTimes
    """What really happened, one row per page."""

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
class RateQuestion:
    """Input of a method; it predicts whether these pages will have changed by their next observation."""

    evidence: RateEvidence
    """Of residents and new pages, one row for each page of the population."""
    rows: IntArray
    """Rows of the evidence that are asked about."""
    last: FloatArray
    """When they were last observed, seconds since the epoch."""
    next: FloatArray
    """When they will be observed next."""


@dataclass(frozen=True, slots=True)
class RatePrediction:
    """What a method says of the pages asked about."""

    p: FloatArray
    """Probability that the next observation finds a change."""
    rate: FloatArray
    """Median of the belief about the change rate, in any unit: only its order is evaluated."""


class RateMethod(Protocol):
    """An estimator with all that it takes to predict."""

    @property
    def name(self) -> str:
        """What tables call it."""
        ...

    def prepare(self, population: RatePopulation, known: Histories) -> Callable[[RateQuestion], RatePrediction]:
        """Get ready for questions about new pages, knowing residents alone; of new pages only when they were last seen.

        Called once for each cut, so that what is slow to learn and does not depend on the new pages is learned once.
        """
        ...


@dataclass(frozen=True, slots=True)
class RateOutcomes:
    """Answers of one method to all questions about new pages with this much past, and what came of them."""

    method: str
    length: int
    p: FloatArray
    happened: BoolArray
    rate: FloatArray
    future_rate: FloatArray
    cluster: IntArray


def run_trial(  # noqa: PLR0913 - the parts of a trial, each with a name
    population: RatePopulation,
    visits: Visits,
    methods: Sequence[RateMethod],
    rng: np.random.Generator,
    *,
    lengths: Sequence[int] = LENGTHS,
    cuts: Sequence[float] = CUTS,
    progress: Callable[[], None] = lambda: None,
) -> list[RateOutcomes]:
    """Ask every method every question. ``progress`` is called once for each (cut, length, method).

    O(visits log visits) for each cut, and what the methods take.
    """
    new_page = rng.random(len(population)) < 0.5  # noqa: PLR2004 - half of them
    visits = visits.sorted()
    collected: list[RateOutcomes] = []
    for share in cuts:
        at = population.start + share * (population.end - population.start)
        past, next_time, next_changed = _cut(population, visits, at)
        ready = [(method.name, method.prepare(population, _told(past, new_page, 0))) for method in methods]
        for length in lengths:
            asked = new_page & np.isfinite(past.last_visit) & np.isfinite(next_time) & (past.counts() >= length)
            rows = np.flatnonzero(asked)
            evidence = RateEvidence(_told(past, new_page, length), population.levels())
            question = RateQuestion(evidence, rows, past.last_visit[rows], next_time[rows])
            happened, cluster = next_changed[rows], population.places.cluster[rows]
            future = population.future_rate(rows, at[rows])
            for name, answer in ready:
                said = answer(question)
                collected.append(RateOutcomes(name, length, said.p, happened, said.rate, future, cluster))
                progress()
    return collected


def _cut(population: RatePopulation, visits: Visits, at: FloatArray) -> tuple[Histories, FloatArray, BoolArray]:
    """Histories up to ``at``, one row per page.

    When the first observation after it came (NaN: never) and what it found.
    """
    early = visits.time <= at[visits.page]
    past = Histories.from_visits(visits.take(early)).align(np.arange(len(population), dtype=np.int64))
    later = visits.take(~early & (visits.verdict != Verdict.UNKNOWN))
    first = starts_of_runs(later.page)
    next_time, changed = np.full(len(population), np.nan), np.zeros(len(population), dtype=np.bool_)
    next_time[later.page[first]] = later.time[first]
    changed[later.page[first]] = later.verdict[first] == Verdict.CHANGED
    return past, next_time, changed


def _told(past: Histories, new_page: BoolArray, length: int) -> Histories:
    """The past of residents, and the last gaps of new pages."""
    return Histories.concatenate([past.take(~new_page), past.take(new_page).latest(length)])


@dataclass(frozen=True, slots=True)
class RateScore:
    """How one method did with new pages of one length of past."""

    method: str
    length: int
    predictions: int
    log_loss: MeanInterval
    brier: MeanInterval
    calibration_error: float
    rank_correlation: float
    behind_best: MeanInterval
    """Mean log loss less that of the method with the lowest, with the interval of the difference: 0 for the best."""


def score(outcomes: Sequence[RateOutcomes], rng: np.random.Generator, *, repeats: int = 1_000) -> list[RateScore]:
    """Pool the outcomes of each method and length over all trials and evaluate them.

    Intervals come from resampling whole clusters. A method whose ``behind_best`` interval holds 0 ties with the best.
    """
    scores: list[RateScore] = []
    for length in sorted({one.length for one in outcomes}):
        pooled = _pool([one for one in outcomes if one.length == length])
        losses = {one.method: log_loss(one.p, one.happened) for one in pooled}
        best = min(losses, key=lambda name: float(losses[name].mean()) if len(losses[name]) else np.inf)
        for one in pooled:
            loss, known = losses[one.method], np.isfinite(one.future_rate)
            scores.append(
                RateScore(
                    one.method,
                    length,
                    len(loss),
                    mean_with_interval(loss, one.cluster, rng, repeats=repeats),
                    mean_with_interval(brier(one.p, one.happened), one.cluster, rng, repeats=repeats),
                    calibration(one.p, one.happened).error,
                    spearman(one.rate[known], one.future_rate[known]),
                    mean_with_interval(loss - losses[best], one.cluster, rng, repeats=repeats),
                )
            )
    return scores


def _pool(outcomes: Sequence[RateOutcomes]) -> list[RateOutcomes]:
    """The outcomes of each method as one, methods in the order they first appear; all have the same questions."""
    pooled = []
    for name in dict.fromkeys(one.method for one in outcomes):
        parts = [one for one in outcomes if one.method == name]
        pooled.append(
            RateOutcomes(
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


@dataclass(frozen=True, slots=True)
class InWallTime:
    """An estimator that takes every second for a second."""

    estimator: Estimator

    @property
    def name(self) -> str:
        """That of the estimator."""
        return self.estimator.name

    def prepare(self, _population: RatePopulation, _known: Histories) -> Callable[[RateQuestion], RatePrediction]:
        """Nothing to learn beforehand."""
        return self._answer

    def _answer(self, question: RateQuestion) -> RatePrediction:
        elapsed = question.next - question.last
        if isinstance(self.estimator, Posterior):
            learned = self.estimator.learn(question.evidence)
            asked = learned.take(question.rows)
            return RatePrediction(asked.at(elapsed).p_change(elapsed), asked.belief.quantile(0.5))
        belief = self.estimator(question.evidence).take(question.rows)
        return RatePrediction(belief.p_change(elapsed), belief.quantile(0.5))


@dataclass(frozen=True, slots=True)
class InOperationalTime:
    """The posterior on the clocks of the pages. Factors are chosen by the residents; births are those of the record."""

    estimator: OperationalPosterior = field(default_factory=OperationalPosterior)

    @property
    def name(self) -> str:
        """That of the estimator."""
        return self.estimator.name

    def prepare(self, population: RatePopulation, known: Histories) -> Callable[[RateQuestion], RatePrediction]:
        """Choose the factors by the residents."""
        factors = choose(known, population.places, allowed=self.estimator.allowed).factors

        def answer(question: RateQuestion) -> RatePrediction:
            belief = self.estimator.with_factors(question.evidence, factors, population.places).take(question.rows)
            return RatePrediction(belief.p_change(question.next - question.last), belief.quantile(0.5))

        return answer


def method_of(estimator: Estimator) -> RateMethod:
    """The way to try an estimator."""
    if isinstance(estimator, OperationalPosterior):
        return InOperationalTime(estimator)
    return InWallTime(estimator)


LARGE = 200
"""A collection of this many pages is a population of its own; the smaller ones of a data set form one together."""


def populations(collections: Sequence[Collection], most_pages: int) -> list[tuple[RatePopulation, list[PageTruth]]]:
    """The populations of a data set, each with the truth of its collections, in the order of its rows."""
    parts = [_part(collection, most_pages) for collection in collections]
    large = [[part] for part in parts if len(part[0]) >= LARGE]
    small = [part for part in parts if len(part[0]) < LARGE]
    return [_join(group) for group in ([*large, small] if small else large)]


_Part = tuple[PageTruth, IntArray, IntArray]
"""Pages of one collection, their clusters, and the host of each cluster."""


def _part(collection: Collection, most_pages: int) -> _Part:
    life = collection.watched()
    seen = np.flatnonzero(np.isfinite(life.born))
    seen = seen[np.argsort(life.born[seen], kind="stable")]
    clusters = UrlClusters()
    cluster = clusters.add([collection.urls[page] for page in seen.tolist()])
    kept = np.flatnonzero(_some_clusters(cluster, most_pages))
    ids, index = np.unique(cluster[kept], return_inverse=True)
    return life.take(seen[kept]), index.astype(np.int64), clusters.host[ids]


def _some_clusters(cluster: IntArray, most: int) -> BoolArray:
    """Pages of whole clusters, evenly spread over them, about ``most`` of them."""
    share = min(most / max(len(cluster), 1), 1.0)
    number = np.arange(int(cluster.max(initial=-1)) + 1)
    return np.asarray((np.floor((number + 1) * share) > np.floor(number * share))[cluster])


def _join(parts: Sequence[_Part]) -> tuple[RatePopulation, list[PageTruth]]:
    cluster, host, clusters, hosts = [], [], 0, 0
    for _, own, owners in parts:
        cluster.append(own + clusters)
        host.append(owners + hosts)
        clusters += len(owners)
        hosts += int(owners.max(initial=-1)) + 1
    truths = [truth for truth, _, _ in parts]
    places = PageGroups(
        np.concatenate(cluster),
        np.concatenate(host),
        np.concatenate([known_births(truth.born, truth.start) for truth in truths]),
    )
    start, end = (np.concatenate([np.full(len(t), getattr(t, name)) for t in truths]) for name in ("start", "end"))
    changes = EventTimes.concatenate([truth.changes for truth in truths])
    return RatePopulation(places, start, end, changes), truths
