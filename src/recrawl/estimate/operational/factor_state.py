r"""Estimate the factors of operational time, and choose the factors to use.

**Estimation.** A :class:`FactorState` holds the factors as estimated so far: from all observations at once by EM
(:func:`fit`), or in batches (:meth:`FactorState.fold`). So its values for a time t depend only on observations up to t.
Rates belong to the owner of the beliefs: ``fit`` makes its own approximate rates, and ``fold`` takes them as an
argument.

**Choice.** A factor is used only if it improves predictions. The observations are split by time. The factors are
estimated from the observations up to the split. Then the later observations are processed in order of time, in batches:
each batch is predicted from the state before it, scored by the log loss of "changed at this observation", and folded
in. So a change of one page can raise the prediction for its siblings, and no prediction uses later data.

A factor is used if it lowers the loss by more than one standard error, computed from the gains of whole clusters (pages
of one cluster change together and are not independent). Factors are tried one after the other, the best first, each in
addition to those already chosen. This is done on a sample of clusters, so it costs little compared with the fit.
"""

from __future__ import annotations

import enum
import math
from collections.abc import Collection, Iterable, Iterator
from dataclasses import dataclass, replace
from itertools import pairwise
from typing import NamedTuple

import numpy as np

from recrawl.estimate.operational import operational_factors
from recrawl.estimate.operational.cluster_intensity import ClusterIntensity
from recrawl.estimate.operational.operational_factors import LONGEST, ClosedGaps, StepCounts, WeekCounts, expect
from recrawl.estimate.operational.operational_time import OperationalTime
from recrawl.estimate.posterior import grid_posterior
from recrawl.estimate.posterior.gamma_posterior import vague
from recrawl.estimate.posterior.grid_posterior import fit_priors
from recrawl.model import FloatArray, Histories, IntArray
from recrawl.time import DAY

ROUNDS = 3
"""Rounds of EM over all observations; each factor is learned in turn, given the others."""
_BLOCK = 1 << 20
"""Observations that a step of EM works on at a time."""
_FIRST_SHAPE = 0.5
"""Shape of the prior of a page's rate, before the spread of the pages is estimated (algorithms §5)."""
_SHAPES = (0.05, 1e3)
"""Bounds of the shape: no sample can support a value outside."""


class TimeFactor(enum.StrEnum):
    """What may make time pass faster or slower."""

    CLUSTERS = "clusters"
    """Shared intensity of clusters of pages."""
    AGE = "age"
    """Age of the page."""
    BURSTS = "bursts"
    """Time since the last detected change."""
    WEEK = "week"
    """Hour of the week."""


@dataclass(frozen=True, slots=True)
class PageGroups:
    """Cluster, host and birth of pages: the input of the factors beside the observations."""

    cluster: IntArray
    """Cluster of each page, 0 … clusters − 1. Shape (n,)."""
    host: IntArray
    """Host of each cluster, 0 … hosts − 1. Shape (clusters,)."""
    born: FloatArray
    """When each page appeared; NaN where nobody knows (``page_age.known_births``). Shape (n,)."""

    def __post_init__(self) -> None:
        known = (self.cluster >= 0) & (self.cluster < len(self.host))
        if len(self.born) != len(self.cluster) or not bool(known.all()):
            msg = "every page needs a birth (NaN if unknown) and a cluster, and every cluster a host"
            raise ValueError(msg)


@dataclass(slots=True)
class FactorState:
    """What was learned so far of the factors that are switched on. Mutable."""

    places: PageGroups
    clusters: ClusterIntensity | None
    age: StepCounts | None
    bursts: StepCounts | None
    week: WeekCounts | None

    def time(self, rows: IntArray | None = None) -> OperationalTime:
        """Operational time as it is known now, until more is learned and this is asked again.

        Only the clocks of the pages in ``rows`` need be right; those of all pages if nobody says. O(bins that changed
        for the hosts of these pages), not O(clusters · bins).
        """
        week = None if self.week is None else self.week.table()
        calendar = None
        if self.clusters is not None:
            asked = np.arange(len(self.places.host)) if rows is None else self.places.cluster[rows]
            calendar = self.clusters.current(asked, week)
        return OperationalTime(
            self.places.cluster,
            self.places.host,
            self.places.born,
            calendar=calendar,
            age=None if self.age is None else self.age.table(),
            week=week,
            bursts=None if self.bursts is None else self.bursts.table(),
        )

    def fold(self, observations: ClosedGaps, rates: FloatArray) -> None:
        """Learn from new observations by online EM: O(observations and the bins of their gaps).

        ``rates[k]`` is what was believed, before observation k, of the rate of its page per operational second.
        """
        self._add(self.time(observations.row), observations, rates, tuple(TimeFactor))

    def _add(
        self, time: OperationalTime, observations: ClosedGaps, rates: FloatArray, factors: Collection[TimeFactor]
    ) -> None:
        expected = expect(time, observations, rates)
        if self.clusters is not None and TimeFactor.CLUSTERS in factors:
            self.clusters.add(time, expected)
        steps = iter(expected.pieces.step)
        for factor, counts, held in (
            (TimeFactor.AGE, self.age, time.age),
            (TimeFactor.BURSTS, self.bursts, time.bursts),
        ):
            if counts is not None and held is not None:
                step = next(steps)
                if factor in factors:
                    counts.add(step, held, expected)
        if self.week is not None and TimeFactor.WEEK in factors:
            self.week.add(time, observations, expected)

    def learn(self, blocks: Iterable[ClosedGaps], rates: FloatArray, factor: TimeFactor) -> None:
        """One step of EM for one factor over all observations, given the rates of all pages and the other factors."""
        time = self.time()
        counts = {
            TimeFactor.CLUSTERS: self.clusters,
            TimeFactor.AGE: self.age,
            TimeFactor.BURSTS: self.bursts,
            TimeFactor.WEEK: self.week,
        }[factor]
        if counts is None:
            return
        counts.clear()
        for observations in blocks:
            self._add(time, observations, rates[observations.row], (factor,))
        if isinstance(counts, StepCounts):
            counts.settle()


def fit(
    histories: Histories, places: PageGroups, factors: Collection[TimeFactor], *, rounds: int = ROUNDS
) -> FactorState:
    """Learn the given factors from all observations: rates, then each factor given the others, ``rounds`` times.

    O(observations + clusters · bins) for each of these steps, with memory for a block of observations beside the
    tables. Row i of the histories is page i of the places.
    """
    if len(histories) != len(places.cluster):
        msg = f"there are {len(places.cluster)} places, the histories have {len(histories)} rows"
        raise ValueError(msg)
    tempo = _blank(histories, places, factors)
    if not factors or not len(histories.gaps):
        return tempo
    blocks = _Blocks(histories)
    rates, shape = np.full(len(histories), float(vague(histories).mean()[0])), _FIRST_SHAPE
    for _ in range(rounds):
        rates, shape = _learn_rates(tempo, blocks, rates, shape)
        for factor in factors:
            tempo.learn(blocks, rates, factor)
    return tempo


class _Blocks:
    """The observations of some pages at a time, as often as asked for: bounds the memory of a step."""

    def __init__(self, histories: Histories) -> None:
        self._histories = histories
        marks = np.arange(0, len(histories.gaps), _BLOCK)
        cuts = np.unique(np.searchsorted(histories.offsets, marks, side="right") - 1)
        self._cuts = [*cuts.tolist(), len(histories)]
        self._only = ClosedGaps.of(histories) if len(self._cuts) == 2 else None  # noqa: PLR2004 - one block

    def __iter__(self) -> Iterator[ClosedGaps]:
        if self._only is not None:
            yield self._only
            return
        for first, end in pairwise(self._cuts):
            observations = ClosedGaps.of(self._histories.take(slice(first, end)))
            yield replace(observations, row=observations.row + first)


def _blank(histories: Histories, places: PageGroups, factors: Collection[TimeFactor]) -> FactorState:
    seen = len(histories.gaps) > 0
    begin, end = (np.nanmin(histories.first_visit), np.nanmax(histories.last_visit)) if seen else (0.0, 0.0)
    week = None
    if TimeFactor.WEEK in factors:
        host = places.host[places.cluster][histories.row_of_gap()]
        week = WeekCounts.of(host, histories.gaps, int(places.host.max(initial=-1)) + 1)
    clusters = None
    if TimeFactor.CLUSTERS in factors:
        clusters = ClusterIntensity.of(places.host, float(begin), float(end), observations=len(histories.gaps))
    return FactorState(
        places,
        clusters=clusters,
        age=operational_factors.no_ages_seen() if TimeFactor.AGE in factors else None,
        bursts=operational_factors.no_bursts_seen() if TimeFactor.BURSTS in factors else None,
        week=week,
    )


def _learn_rates(
    tempo: FactorState, blocks: Iterable[ClosedGaps], rates: FloatArray, shape: float
) -> tuple[FloatArray, float]:
    """One step of EM for the rates, given the factors, and for the shape a of their prior Gamma(a, a/λ₀).

    λ ← (a + expected changes)/(a/λ₀ + operational time), λ₀ the pooled rate of the cluster, shrunk by one change to
    that of all pages. The shape is that of the spread of λ/λ₀ over all pages: ln a − ψ(a) = ln E[λ/λ₀] − E[ln λ/λ₀],
    solved by Minka's formula to 1.5 %.
    """
    from scipy import special

    cluster = tempo.places.cluster
    time = tempo.time()
    changes, passed = np.zeros(len(rates)), np.zeros(len(rates))
    for observations in blocks:
        expected = expect(time, observations, rates[observations.row])
        changes += np.bincount(expected.row, expected.changes, len(rates))
        passed += np.bincount(expected.row, expected.exposure, len(rates)) / rates
    overall = (changes.sum() + 0.5) / passed.sum()
    together = np.bincount(cluster, changes) + 1.0
    typical = (together / (np.bincount(cluster, passed) + 1.0 / overall))[cluster]
    found, seen = shape + changes, shape / typical + passed
    looked = np.flatnonzero(passed)
    relative, in_log = (found / seen / typical)[looked], (special.digamma(found) - np.log(seen * typical))[looked]
    spread = max(float(np.log(relative.mean()) - in_log.mean()), 1e-6)
    minka = (3.0 - spread + math.sqrt((spread - 3.0) ** 2 + 24.0 * spread)) / (12.0 * spread)
    return np.asarray(found / seen), min(max(minka, _SHAPES[0]), _SHAPES[1])


MARGIN = 1.0
"""Standard errors by which a factor must lower the loss."""
SPLIT = 0.6
"""Share of the observations that come before the split."""
_BATCHES = (100, 400)
"""Batches the later observations of the sample are gone through in, at least and at most; none is shorter than a day
..."""
_BATCH = 100
"""... and between these bounds each has this many observations, on average: a batch has costs of its own."""
_FEWEST = 50
"""Minimum of later observations, changed and unchanged each; below it no factor is used."""
_MOST_OBSERVATIONS = 200_000
"""Observations of the sample by which factors are chosen."""
_FEWEST_UNITS = 10
"""With fewer clusters than this, pages are the witnesses."""
_TINY = 1e-12


@dataclass(frozen=True, slots=True)
class FactorGain:
    """What a factor brought when it was tried beside others."""

    factor: TimeFactor
    beside: tuple[TimeFactor, ...]
    """Already switched on."""
    gain: float
    """By how much it lowered the mean log loss of an observation, nats."""
    error: float
    """Standard error of the gain."""
    taken: bool


class FactorChoice(NamedTuple):
    """The factors to use, and why."""

    factors: tuple[TimeFactor, ...]
    """Switched on, in the order they were taken."""
    trials: tuple[FactorGain, ...]
    loss: float
    """Mean log loss of the later observations without any factor; NaN if there were too few to tell."""


def choose(
    histories: Histories, places: PageGroups, *, allowed: Collection[TimeFactor] = tuple(TimeFactor)
) -> FactorChoice:
    """The ``allowed`` factors that predict later observations better.

    Row i of the histories is page i of the places.
    """
    rows = _sample(histories, places)
    sample = histories.take(rows)
    spots = _places_of(places, rows)
    times = np.sort(sample.observation_times())
    if not len(times):
        return FactorChoice((), (), float("nan"))
    split = float(times[int(SPLIT * (len(times) - 1))])
    later = ClosedGaps.of(sample)
    later = later.take(later.end > split)
    found = int(later.changed.sum())
    if min(found, len(later) - found) < _FEWEST:
        return FactorChoice((), (), float("nan"))
    left = [f for f in TimeFactor if f in allowed and (f != TimeFactor.WEEK or np.median(sample.gaps) <= LONGEST)]
    units = _witnesses(spots, later)
    batches = min(max(len(later) / _BATCH, _BATCHES[0]), _BATCHES[1])
    batch = max((float(times[-1]) - split) / batches, DAY)
    taken: tuple[TimeFactor, ...] = ()
    best = held_out_loss(sample, spots, taken, split, batch=batch)
    loss = float(best.mean())
    trials: list[FactorGain] = []
    while left:
        tried = {factor: held_out_loss(sample, spots, (*taken, factor), split, batch=batch) for factor in left}
        gains = {factor: mean_and_error(best - losses, units) for factor, losses in tried.items()}
        winner = max(left, key=lambda factor: gains[factor][0])
        good = gains[winner][0] > MARGIN * gains[winner][1]
        trials += [FactorGain(factor, taken, *gains[factor], taken=good and factor == winner) for factor in left]
        if not good:
            break
        taken, best = (*taken, winner), tried[winner]
        left.remove(winner)
    return FactorChoice(taken, tuple(trials), loss)


def held_out_loss(  # noqa: PLR0913 - what is known, what to use of it, and how the test is run
    histories: Histories,
    places: PageGroups,
    factors: Collection[TimeFactor],
    split: float,
    *,
    batch: float = DAY,
    jump: float | None = grid_posterior.JUMP,
) -> FloatArray:
    """Log loss of each observation after ``split``.

    Predicted from the observations before its batch of ``batch`` seconds alone.

    The belief is the grid posterior with jump filter, its priors learned up to the split. The filter counts
    operational time, so where time runs slowly a page is trusted longer. In the order of ``Looks.of(histories)``,
    without the observations up to the split.
    """
    past = histories.window(-np.inf, split)
    tempo = fit(past, places, factors)
    told = tempo.time().stretch(past)
    levels = (places.host[places.cluster], places.cluster)
    priors = fit_priors(told, levels)
    of = priors.rows(levels, len(told))
    belief = grid_posterior.fit(told, priors.belief, of=of, jump=jump)
    later = ClosedGaps.of(histories)
    later = later.take(later.end > split)
    out = np.empty(len(later))
    for place in _in_batches(later.end, batch):
        observations = later.take(place)
        held = belief.take(observations.row)
        passed = _elapsed(tempo, observations)
        p = grid_posterior.at(held, priors.belief, passed, of=of[observations.row], jump=jump).p_change(passed)
        out[place] = _surprise(p, observations)
        if factors:
            tempo.fold(observations, held.mean())
            passed = _elapsed(tempo, observations)
        grid_posterior.update(belief, observations.row, passed, observations.changed, priors.belief, of=of, jump=jump)
    return out


def _elapsed(tempo: FactorState, observations: ClosedGaps) -> FloatArray:
    return tempo.time(observations.row).elapsed(
        observations.row, observations.start, observations.end, observations.last_change
    )


def _surprise(p: FloatArray, observations: ClosedGaps) -> FloatArray:
    """−ln of the probability given to what each observation found."""
    p = np.clip(p, _TINY, 1.0 - _TINY)
    return -np.log(np.where(observations.changed, p, 1.0 - p))


def mean_and_error(values: FloatArray, unit: IntArray) -> tuple[float, float]:
    """The mean of the values and its standard error, if only the units (clusters, pages) are independent."""
    _, which = np.unique(unit, return_inverse=True)
    mean = float(values.mean())
    totals = np.bincount(which, values - mean)
    units = len(totals)
    if units < 2:  # noqa: PLR2004 - one witness has no spread
        return mean, float("inf")
    return mean, float(np.sqrt(units / (units - 1) * (totals**2).sum()) / len(values))


def _in_batches(end: FloatArray, length: float) -> Iterator[IntArray]:
    """Positions in order of time, those within ``length`` seconds (counted from the epoch) at once."""
    order = np.argsort(end, kind="stable")
    number = np.floor(end[order] / length)
    cuts = np.flatnonzero(np.diff(number)) + 1
    for place in np.split(order, cuts) if len(order) else ():
        yield np.sort(place)


def _witnesses(places: PageGroups, observations: ClosedGaps) -> IntArray:
    cluster = places.cluster[observations.row]
    return cluster if len(np.unique(cluster)) >= _FEWEST_UNITS else observations.row


def _sample(histories: Histories, places: PageGroups) -> IntArray:
    """Rows of whole clusters, evenly spread over the clusters, with about as many observations as may be had."""
    observations = np.bincount(places.cluster, histories.counts(), len(places.host))
    share = min(_MOST_OBSERVATIONS / max(float(observations.sum()), 1.0), 1.0)
    number = np.arange(len(observations))
    keep = np.floor((number + 1) * share) > np.floor(number * share)
    keep |= (observations == observations.max(initial=0.0)) & ~keep.any()
    return np.flatnonzero(keep[places.cluster])


def _places_of(places: PageGroups, rows: IntArray) -> PageGroups:
    """The places of these pages alone, clusters and hosts numbered again."""
    clusters, cluster = np.unique(places.cluster[rows], return_inverse=True)
    _, host = np.unique(places.host[clusters], return_inverse=True)
    return PageGroups(cluster.astype(np.int64), host.astype(np.int64), places.born[rows])
