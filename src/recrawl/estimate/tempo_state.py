r"""The factors of operational time while they are learned: all looks at once by EM, or a batch of looks at a time.

A :class:`Tempo` holds what the chosen factors were taught so far, and a Gamma belief about the rate of each page in
the operational time they make. Looks only ever enter by :meth:`Tempo.fold` or :func:`fit`; so what it says at a time t
rests on looks up to t alone.
"""

from __future__ import annotations

import enum
from collections.abc import Collection
from dataclasses import dataclass

import numpy as np

from recrawl.estimate import bursts, gamma, page_age, weekly_profile
from recrawl.estimate.cluster_intensity import ClusterIntensity
from recrawl.estimate.empirical_bayes import UNKNOWN_RATE
from recrawl.estimate.operational import OperationalTime
from recrawl.estimate.operational_learning import Looks, StepCounts, expect
from recrawl.estimate.operational_tables import WeekTable
from recrawl.model import FloatArray, GammaBelief, Histories, IntArray

ROUNDS = 4
"""Rounds of EM over all looks; each factor is learned in turn, given the others."""
_SHAPE = 0.5
"""Shape of the prior of a page's rate, Gamma(½, ½/λ₀) with λ₀ that of its cluster (algorithms §5)."""


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
    """What was learned so far. Mutable; :meth:`time` gives a frozen copy to measure with."""

    places: Places
    clusters: ClusterIntensity | None
    age: StepCounts | None
    bursts: StepCounts | None
    week: WeekTable | None
    belief: GammaBelief
    """Rates per operational second, one row a page."""

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

    def p_change(self, looks: Looks) -> FloatArray:
        """How likely each look is to find a change, by what is known now."""
        passed = self.time().elapsed(looks.row, looks.start, looks.end, looks.last_change)
        return self.belief.take(looks.row).p_change(passed)

    def fold(self, looks: Looks) -> None:
        """Learn from new looks, in the order given: O(looks + touched clusters · bins).

        Online EM for the shared factors, then the assumed-density update of the rates in the time they now make. The
        rhythm of the week is left as it is: it moves slowly and is found anew by :func:`fit`.
        """
        time = self.time()
        expected = expect(time, looks, self.belief.mean())
        if self.clusters is not None:
            self.clusters.add(time, expected)
        held = [(counts, table) for counts, table in ((self.age, time.age), (self.bursts, time.bursts)) if counts]
        for (counts, table), step in zip(held, expected.pieces.step, strict=True):
            if table is not None:
                counts.add(step, table, expected)
        passed = self.time().elapsed(looks.row, looks.start, looks.end, looks.last_change)
        gamma.update(self.belief, looks.row, passed, looks.changed)


def fit(histories: Histories, places: Places, factors: Collection[Factor], *, rounds: int = ROUNDS) -> Tempo:
    """Learn the given factors from all looks: rates, then each factor given the others, ``rounds`` times.

    O(looks + clusters · bins) for each of these steps. Row i of the histories is page i of the places.
    """
    if len(histories) != len(places.cluster):
        msg = f"there are {len(places.cluster)} places, the histories have {len(histories)} rows"
        raise ValueError(msg)
    looks = Looks.of(histories)
    tempo = _blank(looks, places, factors)
    rates = _prior(tempo, looks, np.full(len(histories), _pooled(looks))).mean()
    for _ in range(rounds):
        rates = _learn_rates(tempo, looks, rates)
        _learn_factors(tempo, looks, rates)
    prior = _prior(tempo, looks, rates)
    tempo.belief = gamma.fit(tempo.time().stretch(histories), prior)
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
        belief=GammaBelief(np.empty(0), np.empty(0)),
    )


def _pooled(looks: Looks) -> float:
    """One rate for all looks, eq. 4 with half a change added; a guess where there are none."""
    n, found, observed = len(looks), int(looks.changed.sum()), float((looks.end - looks.start).sum())
    return float(-np.log((n - found + 0.5) / (n + 1.0)) * n / observed) if n else UNKNOWN_RATE


def _prior(tempo: Tempo, looks: Looks, rates: FloatArray) -> GammaBelief:
    """Gamma(½, ½/λ₀) for each page, λ₀ the pooled rate of its cluster, shrunk by one change to that of all pages."""
    expected = expect(tempo.time(), looks, rates)
    cluster, clusters = tempo.places.cluster, len(tempo.places.host)
    passed = np.divide(expected.exposure, rates[expected.row])
    changes = np.bincount(cluster[expected.row], expected.changes, clusters)
    observed = np.bincount(cluster[expected.row], passed, clusters)
    overall = (float(changes.sum()) + 0.5) / (float(observed.sum()) + 0.5 / UNKNOWN_RATE)
    typical = (changes + 1.0) / (observed + 1.0 / overall)
    return GammaBelief(np.full(len(cluster), _SHAPE), _SHAPE / typical[cluster])


def _learn_rates(tempo: Tempo, looks: Looks, rates: FloatArray) -> FloatArray:
    """One step of EM for the rates, given the factors: λ ← (a + expected changes)/(b + operational time)."""
    prior = _prior(tempo, looks, rates)
    expected = expect(tempo.time(), looks, rates)
    passed = np.divide(expected.exposure, rates[expected.row])
    changes = np.bincount(expected.row, expected.changes, len(rates))
    return np.asarray((prior.a + changes) / (prior.b + np.bincount(expected.row, passed, len(rates))))


def _learn_factors(tempo: Tempo, looks: Looks, rates: FloatArray) -> None:
    """One step of EM for each factor in turn, given the rates and the other factors."""
    if tempo.clusters is not None:
        time = tempo.time()
        tempo.clusters.clear()
        tempo.clusters.add(time, expect(time, looks, rates))
    position = 0
    for name in ("age", "bursts"):
        counts: StepCounts | None = getattr(tempo, name)
        if counts is None:
            continue
        time = tempo.time()
        expected = expect(time, looks, rates)
        held = counts.table()
        counts.clear()
        counts.add(expected.pieces.step[position], held, expected)
        position += 1
    if tempo.week is not None:
        time = tempo.time()
        tempo.week = weekly_profile.fit_week(time, looks, expect(time, looks, rates))
