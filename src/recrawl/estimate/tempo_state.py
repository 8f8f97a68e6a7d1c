r"""The factors of operational time while they are learned: all looks at once by EM, or a batch of looks at a time.

A :class:`Tempo` holds what the factors were taught so far. Looks only ever enter by :func:`fit` and :meth:`Tempo.fold`,
so what it says at a time t rests on looks up to t alone. Rates belong to whoever keeps the beliefs: ``fit`` makes its
own, quick ones, and ``fold`` is told them.
"""

from __future__ import annotations

import enum
import math
from collections.abc import Collection, Iterable, Iterator
from dataclasses import dataclass, replace
from itertools import pairwise

import numpy as np
from scipy import special

from recrawl.estimate import bursts, page_age
from recrawl.estimate.cluster_intensity import ClusterIntensity
from recrawl.estimate.empirical_bayes import vague
from recrawl.estimate.operational import OperationalTime
from recrawl.estimate.operational_learning import Looks, StepCounts, expect
from recrawl.estimate.weekly_profile import WeekCounts
from recrawl.model import FloatArray, Histories, IntArray

ROUNDS = 3
"""Rounds of EM over all looks; each factor is learned in turn, given the others."""
_BLOCK = 1 << 20
"""Looks that a step of EM works on at a time."""
_FIRST_SHAPE = 0.5
"""Of the prior of a page's rate, before the pages say how alike they are (algorithms §5)."""
_SHAPES = (0.05, 1e3)
"""A shape outside says more about the pages than any sample can."""


class Factor(enum.StrEnum):
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
class Places:
    """Where pages lie and since when: what the factors need to know of them beside their looks."""

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
class Tempo:
    """What was learned so far of the factors that are switched on. Mutable."""

    places: Places
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

    def fold(self, looks: Looks, rates: FloatArray) -> None:
        """Learn from new looks by online EM: O(looks and the bins of their gaps).

        ``rates[k]`` is what was believed, before look k, of the rate of its page per operational second.
        """
        self._add(self.time(looks.row), looks, rates, tuple(Factor))

    def _add(self, time: OperationalTime, looks: Looks, rates: FloatArray, factors: Collection[Factor]) -> None:
        expected = expect(time, looks, rates)
        if self.clusters is not None and Factor.CLUSTERS in factors:
            self.clusters.add(time, expected)
        steps = iter(expected.pieces.step)
        for factor, counts, held in ((Factor.AGE, self.age, time.age), (Factor.BURSTS, self.bursts, time.bursts)):
            if counts is not None and held is not None:
                step = next(steps)
                if factor in factors:
                    counts.add(step, held, expected)
        if self.week is not None and Factor.WEEK in factors:
            self.week.add(time, looks, expected)

    def learn(self, blocks: Iterable[Looks], rates: FloatArray, factor: Factor) -> None:
        """One step of EM for one factor over all looks, given the rates of all pages and the other factors."""
        time = self.time()
        counts = {
            Factor.CLUSTERS: self.clusters,
            Factor.AGE: self.age,
            Factor.BURSTS: self.bursts,
            Factor.WEEK: self.week,
        }[factor]
        if counts is None:
            return
        counts.clear()
        for looks in blocks:
            self._add(time, looks, rates[looks.row], (factor,))
        if isinstance(counts, StepCounts):
            counts.settle()


def fit(histories: Histories, places: Places, factors: Collection[Factor], *, rounds: int = ROUNDS) -> Tempo:
    """Learn the given factors from all looks: rates, then each factor given the others, ``rounds`` times.

    O(looks + clusters · bins) for each of these steps, with memory for a block of looks beside the tables. Row i of
    the histories is page i of the places.
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
    """The looks of some pages at a time, as often as asked for: bounds the memory of a step."""

    def __init__(self, histories: Histories) -> None:
        self._histories = histories
        marks = np.arange(0, len(histories.gaps), _BLOCK)
        cuts = np.unique(np.searchsorted(histories.offsets, marks, side="right") - 1)
        self._cuts = [*cuts.tolist(), len(histories)]
        self._only = Looks.of(histories) if len(self._cuts) == 2 else None  # noqa: PLR2004 - one block

    def __iter__(self) -> Iterator[Looks]:
        if self._only is not None:
            yield self._only
            return
        for first, end in pairwise(self._cuts):
            looks = Looks.of(self._histories.take(slice(first, end)))
            yield replace(looks, row=looks.row + first)


def _blank(histories: Histories, places: Places, factors: Collection[Factor]) -> Tempo:
    seen = len(histories.gaps) > 0
    begin, end = (np.nanmin(histories.first_visit), np.nanmax(histories.last_visit)) if seen else (0.0, 0.0)
    week = None
    if Factor.WEEK in factors:
        host = places.host[places.cluster][histories.row_of_gap()]
        week = WeekCounts.of(host, histories.gaps, int(places.host.max(initial=-1)) + 1)
    clusters = None
    if Factor.CLUSTERS in factors:
        clusters = ClusterIntensity.of(places.host, float(begin), float(end), looks=len(histories.gaps))
    return Tempo(
        places,
        clusters=clusters,
        age=page_age.nothing_seen() if Factor.AGE in factors else None,
        bursts=bursts.nothing_seen() if Factor.BURSTS in factors else None,
        week=week,
    )


def _learn_rates(tempo: Tempo, blocks: Iterable[Looks], rates: FloatArray, shape: float) -> tuple[FloatArray, float]:
    """One step of EM for the rates, given the factors, and for the shape a of their prior Gamma(a, a/λ₀).

    λ ← (a + expected changes)/(a/λ₀ + operational time), λ₀ the pooled rate of the cluster, shrunk by one change to
    that of all pages. The shape is that of the spread of λ/λ₀ over all pages: ln a − ψ(a) = ln E[λ/λ₀] − E[ln λ/λ₀],
    solved by Minka's formula to 1.5 %.
    """
    cluster = tempo.places.cluster
    time = tempo.time()
    changes, passed = np.zeros(len(rates)), np.zeros(len(rates))
    for looks in blocks:
        expected = expect(time, looks, rates[looks.row])
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
