r"""The factors of operational time while they are learned: all looks at once by EM, or a batch of looks at a time.

A :class:`Tempo` holds what the factors were taught so far. Looks only ever enter by :func:`fit` and :meth:`Tempo.fold`,
so what it says at a time t rests on looks up to t alone. Rates belong to whoever keeps the beliefs: ``fit`` makes its
own, quick ones, and ``fold`` is told them.
"""

from __future__ import annotations

import enum
import math
from collections.abc import Collection
from dataclasses import dataclass

import numpy as np
from scipy import special

from recrawl.estimate import bursts, page_age, weekly_profile
from recrawl.estimate.cluster_intensity import ClusterIntensity
from recrawl.estimate.operational import OperationalTime
from recrawl.estimate.operational_learning import Looks, StepCounts, expect
from recrawl.estimate.operational_tables import WeekTable
from recrawl.model import FloatArray, Histories, IntArray

ROUNDS = 3
"""Rounds of EM over all looks; each factor is learned in turn, given the others."""
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
        if len(self.born) != len(self.cluster) or int(self.cluster.max(initial=-1)) >= len(self.host):
            msg = "every page needs a birth (NaN if unknown) and a cluster, and every cluster a host"
            raise ValueError(msg)


@dataclass(slots=True)
class Tempo:
    """What was learned so far of the factors that are switched on. Mutable; :meth:`time` gives a frozen copy."""

    places: Places
    clusters: ClusterIntensity | None
    age: StepCounts | None
    bursts: StepCounts | None
    week: WeekTable | None

    def time(self) -> OperationalTime:
        """Operational time as it is known now. O(clusters · bins)."""
        return OperationalTime(
            self.places.cluster,
            self.places.host,
            self.places.born,
            calendar=None if self.clusters is None else self.clusters.table(self.week),
            age=None if self.age is None else self.age.table(),
            week=self.week,
            bursts=None if self.bursts is None else self.bursts.table(),
        )

    def fold(self, looks: Looks, rates: FloatArray) -> None:
        """Learn from new looks by online EM: O(looks + clusters · bins).

        ``rates[k]`` is what was believed, before look k, of the rate of its page per operational second. The rhythm
        of the week is left as it is: it moves slowly and is found anew by :func:`fit`.
        """
        time = self.time()
        expected = expect(time, looks, rates)
        if self.clusters is not None:
            self.clusters.add(time, expected)
        steps = iter(expected.pieces.step)
        for counts, held in ((self.age, time.age), (self.bursts, time.bursts)):
            if counts is not None and held is not None:
                counts.add(next(steps), held, expected)


def fit(histories: Histories, places: Places, factors: Collection[Factor], *, rounds: int = ROUNDS) -> Tempo:
    """Learn the given factors from all looks: rates, then each factor given the others, ``rounds`` times.

    O(looks + clusters · bins) for each of these steps. Row i of the histories is page i of the places.
    """
    if len(histories) != len(places.cluster):
        msg = f"there are {len(places.cluster)} places, the histories have {len(histories)} rows"
        raise ValueError(msg)
    looks = Looks.of(histories)
    tempo = _blank(looks, places, factors)
    if not factors or not len(looks):
        return tempo
    rates, shape = np.full(len(histories), _pooled(looks)), _FIRST_SHAPE
    for _ in range(rounds):
        rates, shape = _learn_rates(tempo, looks, rates, shape)
        _learn_factors(tempo, looks, rates[looks.row])
    return tempo


def _blank(looks: Looks, places: Places, factors: Collection[Factor]) -> Tempo:
    hosts = int(places.host.max(initial=-1)) + 1
    begin, end = (float(looks.start.min()), float(looks.end.max())) if len(looks) else (0.0, 1.0)
    return Tempo(
        places,
        clusters=ClusterIntensity.of(places.host, begin, end) if Factor.CLUSTERS in factors else None,
        age=page_age.nothing_seen() if Factor.AGE in factors else None,
        bursts=bursts.nothing_seen() if Factor.BURSTS in factors else None,
        week=weekly_profile.neutral(hosts) if Factor.WEEK in factors else None,
    )


def _pooled(looks: Looks) -> float:
    """One rate for all looks: eq. 4 with half a change added, so that it is never 0."""
    n, found, observed = len(looks), int(looks.changed.sum()), float((looks.end - looks.start).sum())
    return float(-np.log((n - found + 0.5) / (n + 1.0)) * n / observed)


def _learn_rates(tempo: Tempo, looks: Looks, rates: FloatArray, shape: float) -> tuple[FloatArray, float]:
    """One step of EM for the rates, given the factors, and for the shape a of their prior Gamma(a, a/λ₀).

    λ ← (a + expected changes)/(a/λ₀ + operational time), λ₀ the pooled rate of the cluster, shrunk by one change to
    that of all pages. The shape is that of the spread of λ/λ₀ over all pages: ln a − ψ(a) = ln E[λ/λ₀] − E[ln λ/λ₀],
    solved by Minka's formula to 1.5 %.
    """
    cluster = tempo.places.cluster
    expected = expect(tempo.time(), looks, rates[looks.row])
    changes = np.bincount(expected.row, expected.changes, len(rates))
    passed = np.bincount(expected.row, expected.exposure, len(rates)) / rates
    overall = (changes.sum() + 0.5) / passed.sum()
    together = np.bincount(cluster, changes) + 1.0
    typical = (together / (np.bincount(cluster, passed) + 1.0 / overall))[cluster]
    found, seen = shape + changes, shape / typical + passed
    looked = np.flatnonzero(passed)
    relative, in_log = (found / seen / typical)[looked], (special.digamma(found) - np.log(seen * typical))[looked]
    spread = max(float(np.log(relative.mean()) - in_log.mean()), 1e-6)
    minka = (3.0 - spread + math.sqrt((spread - 3.0) ** 2 + 24.0 * spread)) / (12.0 * spread)
    return np.asarray(found / seen), min(max(minka, _SHAPES[0]), _SHAPES[1])


def _learn_factors(tempo: Tempo, looks: Looks, rates: FloatArray) -> None:
    """One step of EM for each factor in turn, given the rates of the pages looked at and the other factors."""
    if tempo.clusters is not None:
        time = tempo.time()
        tempo.clusters.clear()
        tempo.clusters.add(time, expect(time, looks, rates))
    for position, counts in enumerate(filter(None, (tempo.age, tempo.bursts))):
        held, expected = counts.table(), expect(tempo.time(), looks, rates)
        counts.clear()
        counts.add(expected.pieces.step[position], held, expected)
        counts.settle()
    if tempo.week is not None:
        time = tempo.time()
        tempo.week = weekly_profile.fit_week(time, looks, expect(time, looks, rates))
