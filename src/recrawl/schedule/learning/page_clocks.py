"""The clocks of a policy's pages: operational time, learned day by day (algorithms §7, "R").

Wherever a formula of the scheduler has t it means operational time: S_c of the page's cluster, faster for young pages.
A clock answers two questions: how much operational time passed since the last observation, and the current *pace* of
the page, which is how fast a fresh copy would become stale. The pace is the age factor alone: the state of a cluster
passes, the age of a page does not. The pace never rises with age, so urgency never falls while a page waits.

Only a window of the calendar is stored, as long as a page may wait: memory is O(clusters · window).

The shared calendar counts as far as it predicted observations before they were made, cluster by cluster. Where pages
change independently, the changes of siblings are noise, and a clock that follows them is worse than wall time. So each
observation is predicted both ways before it is learned from. The weight of the calendar in a cluster is the probability
that it predicts the observations there better. Its prior is the same probability of the other clusters of the host,
whose prior is that of all other hosts together: no observation counts twice. A host may have clusters of both kinds:
data published by a clock, and pages that are edited together.

The mean gain of an observation is known up to a normal error: z standard errors from 0 it is above 0 with the odds
Φ(z)/Φ(−z), times the prior odds. So a weight moves with the evidence and never jumps: where observations do not decide,
a few more of them make no difference.

Gains of siblings are not independent: the calendar is right or wrong about all of them at once, and for as long as the
evidence of a bin lasts. The error is therefore that of sums over a cluster and a block of nine days, not of single
observations. Taken for independent, 30 siblings of one edit decided as 30 edits would, and weights went from .1 to .9
and back with the order of visits (algorithms §7).
"""

from __future__ import annotations

import copy
import math
from collections.abc import Callable, Collection
from dataclasses import replace
from typing import TypeAlias

import numpy as np

from recrawl.estimate.operational import operational_factors
from recrawl.estimate.operational.cluster_intensity import BIN, ClusterIntensity
from recrawl.estimate.operational.factor_state import FactorState, PageGroups, TimeFactor
from recrawl.estimate.operational.operational_factors import ClosedGaps, Expectation, StepCounts, expect
from recrawl.estimate.operational.operational_time import CalendarTable, OperationalTime
from recrawl.model import FloatArray, IntArray, Pages
from recrawl.model.compiled import can_compile

_DOUBT = 0.02
"""Probability that a cluster differs from its host, or a host from all, however sure these are."""
_AT_FIRST = 1.0
"""Nats in favour: on 16 real collections of 16 the calendar helped."""
_BLOCK = 3 * BIN
"""Seconds over which the gains of a cluster are one piece of evidence: (1 + φ)/(1 − φ) bins share theirs."""


class ClockSelection:
    """Gains by row, nats: 32 bytes per page. A fold: decisions change only when they are asked to."""

    def __init__(self) -> None:
        self._sums = np.empty((4, 0))
        """Of each row: its gains, those of the current block, and both squares of blocks (:meth:`_squares`).

        Clusters are found again, rows stay.
        """
        self._block = -np.inf
        self._clusters = np.empty(0)
        self._hosts = np.empty(0)
        self._usual = 1.0

    def replica(self) -> ClockSelection:
        """A twin with the decisions as they are and without the gains, for one that makes no more. O(1)."""
        twin = copy.copy(self)
        vars(twin).update(_sums=np.empty((4, 0)))
        return twin

    def add(self, row: IntArray, gain: FloatArray, time: float, cluster: IntArray) -> None:
        """Observations of these rows, made up to ``time``, were predicted better by this much with the calendar.

        ``cluster`` is that of every row. Later blocks follow earlier ones. O(observations), and O(rows) once a block.
        """
        if not len(row):
            return
        more = int(row.max()) + 1 - self._sums.shape[1]
        if more > 0:
            room = np.zeros((len(self._sums), more + self._sums.shape[1] // 2))
            self._sums = np.concatenate([self._sums, room], axis=1)
        block = math.ceil(time / _BLOCK)
        if block != self._block:
            self._sums[2:] += self._squares(cluster)
            self._sums[1], self._block = 0.0, block
        np.add.at(self._sums[0], row, gain)
        np.add.at(self._sums[1], row, gain)

    def decide(self, cluster: IntArray, host: IntArray) -> None:
        """Draw the conclusions for the clusters of all rows; ``host[c]`` is the host of cluster c. O(rows)."""
        rows = min(len(cluster), self._sums.shape[1])
        hosts = int(host.max(initial=-1)) + 1
        columns = (self._sums[0], *(self._sums[2:] + self._squares(cluster)))
        gain, common, own = (np.bincount(cluster[:rows], column[:rows], len(host)) for column in columns)
        sums = np.stack([gain, np.maximum(common, own)])
        by_host: FloatArray = np.stack([np.bincount(host, column, hosts) for column in sums]).astype(np.float64)
        overall = sums.sum(axis=1, keepdims=True) + np.array([[_AT_FIRST], [_AT_FIRST**2]])
        [self._usual] = _weights(overall, np.full(1, 0.5))
        elsewhere = _weights(overall - by_host, np.full(hosts, 0.5))
        self._hosts = _weights(by_host, elsewhere)
        self._clusters = _weights(sums, _weights(by_host[:, host] - sums, elsewhere[host]))

    def _squares(self, cluster: IntArray) -> FloatArray:
        """Of each row: its share in the square of its cluster's gain in the current block, and the square of its own.

        Shares may be negative. Where clusters are cut up later, the squares of their pages are the least error.
        """
        found = np.zeros((2, self._sums.shape[1]))
        rows = min(len(cluster), self._sums.shape[1])
        open_, cluster = self._sums[1, :rows], cluster[:rows]
        found[:, :rows] = open_ * np.bincount(cluster, open_)[cluster], open_ * open_
        return found

    def weight(self, host: IntArray) -> FloatArray:
        """The weight of the calendar on each cluster, given its host; those that came since go with their host."""
        out = np.full(len(host), self._usual)
        known = host < len(self._hosts)
        out[known] = self._hosts[host[known]]
        some = min(len(self._clusters), len(host))
        out[:some] = self._clusters[:some]
        return out


def _weights(sums: FloatArray, prior: FloatArray) -> FloatArray:
    """The probability that the mean gain is above 0, given sums of gains and of their squares, and what was held."""
    from scipy import special

    z = np.divide(sums[0], np.sqrt(sums[1]), out=np.zeros(sums.shape[1]), where=sums[1] > 0)
    prior = np.clip(prior, _DOUBT, 1.0 - _DOUBT)
    odds = np.log(prior) - np.log1p(-prior) + special.log_ndtr(z) - special.log_ndtr(-z)
    return np.asarray(special.expit(odds))


Clusters: TypeAlias = Callable[[Pages], IntArray]
"""The cluster of each of these pages, given in order of discovery: any numbers, asked for again as pages grow more."""

USED = (TimeFactor.CLUSTERS, TimeFactor.AGE)
"""Factors a policy can use. Bursts brought nothing (algorithms §7)."""
_MOST = 300
"""Pages of a cluster, at most, where hosts are all that is known of pages."""
_ROUNDS = 2


def by_host(pages: Pages) -> IntArray:
    """Clusters where no URLs are known: hosts, cut into parts of 300 pages in the order given.

    >>> by_host(Pages.of([1, 2, 3], host=[7, 8, 7])).tolist()
    [0, 1, 0]
    """
    order = np.argsort(pages.host, kind="stable")
    hosts, heads, counts = np.unique(pages.host[order], return_index=True, return_counts=True)
    place = np.arange(len(pages)) - np.repeat(heads, counts)
    part = np.empty(len(pages), dtype=np.int64)
    part[order] = place // _MOST
    pairs = np.stack([np.searchsorted(hosts, pages.host), part])
    return np.asarray(np.unique(pairs, axis=1, return_inverse=True)[1], dtype=np.int64).ravel()


class PageClocks:
    """Operational time of pages in rows. Mutable: days of observations are folded in."""

    def __init__(self, factors: Collection[TimeFactor], window: float, clusters: Clusters = by_host) -> None:
        self.factors = tuple(factor for factor in USED if factor in factors)
        self._clusters = clusters
        self._window = math.ceil(window / BIN) * BIN
        nobody = PageGroups(np.empty(0, np.int64), np.empty(0, np.int64), np.empty(0))
        self._tempo = FactorState(nobody, clusters=None, age=None, bursts=None, week=None)
        if TimeFactor.AGE in self.factors:
            self._tempo.age = operational_factors.no_ages_seen()
        self._home: dict[int, int] = {}
        """The cluster of a host's pages that are in no cluster yet."""
        self._hosts: dict[int, int] = {}
        self._cluster_hosts: list[int] = []
        self._trial: CalendarTable | None = None
        """The calendar as learned; in use is a mean of it and wall time, by how well it predicted on each cluster."""
        self._verdict = ClockSelection()
        self._time = self._tempo.time()
        self._neutral: int | None = None
        """In a replica, the cluster of pages that come later: time passes there as by the wall clock."""

    @property
    def time(self) -> OperationalTime:
        """Operational time as it is known now."""
        return self._time

    @property
    def cluster(self) -> IntArray:
        """Of each row."""
        return self._tempo.places.cluster

    def append(self, host: IntArray, born: FloatArray) -> None:
        """Rows for new pages: until clusters are found again they go with their host."""
        own = np.fromiter((self._home_of(name) for name in host.tolist()), np.int64, len(host))
        places = self._tempo.places
        hosts = np.fromiter(self._cluster_hosts, np.int64, len(self._cluster_hosts))
        self._settle(
            PageGroups(np.concatenate([places.cluster, own]), hosts, np.concatenate([places.born, born])),
        )

    def date(self, born: FloatArray) -> None:
        """When the page of each row appeared; NaN where nobody knows."""
        self._settle(replace(self._tempo.places, born=born))

    def regroup(self, pages: Pages, order: IntArray, known: int) -> None:
        """Find clusters again; ``order`` are rows by discovery, the first ``known`` of which are to be grouped.

        All is forgotten of the calendar: :meth:`relearn` follows.
        """
        self._home, self._hosts, self._cluster_hosts = {}, {}, []
        cluster = np.empty(len(pages), dtype=np.int64)
        some = pages.take(order[:known])
        pairs = np.stack([some.host, self._clusters(some)])
        (host, _), label = np.unique(pairs, axis=1, return_inverse=True)
        self._cluster_hosts = [self._hosts.setdefault(name, len(self._hosts)) for name in host.tolist()]
        cluster[order[:known]] = label.ravel()
        rest = order[known:]
        cluster[rest] = [self._home_of(name) for name in pages.host[rest].tolist()]
        self._tempo.clusters = self._trial = None
        self._time = replace(self._time, calendar=None)
        places = PageGroups(cluster, np.array(self._cluster_hosts, dtype=np.int64), self._time.born)
        self._verdict.decide(places.cluster, places.host)
        self._settle(places)

    def relearn(
        self, observations: ClosedGaps, rates: FloatArray, calendar: FloatArray, until: float
    ) -> tuple[FloatArray, FloatArray]:
        """Learn the calendar of the window before ``until`` and the ages again.

        Rates and calendar of the observations then.

        ``rates`` are those believed of each page after the observation, ``calendar`` what the calendar made of each gap
        so far, in seconds per second. Rates and factors are only known up to a factor between them. It is pinned: over
        the time that was observed of a cluster its calendar is 1 on average, and so is the factor of age. So rates are
        those of an average day, whatever was learned before: too high rates make the factors too low, which lowers the
        rates here. Factors are bounded, so one review moves rates by a bounded factor, and none can drift.
        """
        if TimeFactor.CLUSTERS in self.factors and len(observations):
            begin = self._begin(until)
            recent = np.flatnonzero(observations.end > begin)
            some = observations.take(recent)
            fresh = ClusterIntensity.of(self._tempo.places.host, begin, until)
            for _ in range(_ROUNDS):
                held = replace(self._time, calendar=fresh.table())
                fresh.clear()
                count(held, some, rates[recent], None, fresh)
            self._tempo.clusters = fresh
            calendar = calendar.copy()
            self._retime()
            calendar[recent] = self._made_by(self._time.calendar, some)
            mean = self._means(observations, calendar)
            fresh.exposure *= mean[:, None]
            own = mean[self._tempo.places.cluster[observations.row]]
            calendar, rates = np.clip(calendar / own, 1.0 / fresh.limit, fresh.limit), rates * own
        if self._tempo.age is not None:
            ages = replace(self._time, calendar=None)
            self._tempo.age.clear()
            count(ages, observations, rates * calendar, self._tempo.age, None)
            rates = rates * self._tempo.age.settle()
        self._retime()
        return rates, calendar

    def fold(self, observations: ClosedGaps, rates: FloatArray, until: float) -> FloatArray:
        """Learn from a day of observations, the day that ends at ``until``; what the calendar makes of their gaps."""
        calendar = self._tempo.clusters
        if TimeFactor.CLUSTERS in self.factors and calendar is None:
            calendar = ClusterIntensity.of(self._tempo.places.host, self._begin(until), until)
            self._tempo.clusters = calendar
            self._retime()
        if calendar is not None:
            old = round((self._begin(until) - calendar.begin) / BIN)
            if old > 0:
                calendar.begin += old * BIN
                calendar.changes = calendar.changes[:, old:].copy()
                calendar.exposure = calendar.exposure[:, old:].copy()
            short = calendar.end < until + BIN
            if short:
                calendar.reach(until + BIN)
            if old > 0 or short:
                self._retime()
        count(self._time, observations, rates, self._tempo.age, calendar)
        self._retime()
        return self._made_by(self._time.calendar, observations)

    def trial(self, observations: ClosedGaps) -> tuple[FloatArray, FloatArray] | None:
        """Operational seconds of gaps with the calendar and without it, as known before these observations."""
        if self._trial is None:
            return None
        own = self.stretch(observations, np.ones(len(observations)))
        return own * self._made_by(self._trial, observations), own

    def add_calendar_gain(self, row: IntArray, gain: FloatArray, until: float) -> None:
        """Record how much better the calendar predicted observations of these rows up to ``until``, nats each."""
        self._verdict.add(row, gain, until, self._tempo.places.cluster)

    def stretch(self, observations: ClosedGaps, calendar: FloatArray) -> FloatArray:
        """Operational seconds of gaps of which the calendar made ``calendar``, by the ages as they are known now."""
        return calendar * replace(self._time, calendar=None).elapsed(
            observations.row, observations.start, observations.end
        )

    def _means(self, observations: ClosedGaps, calendar: FloatArray) -> FloatArray:
        """What the calendar made of the time of each cluster on average; 1 where there was none."""
        cluster, seconds = self._tempo.places.cluster[observations.row], observations.end - observations.start
        clusters = len(self._tempo.places.host)
        passed, seen = np.bincount(cluster, calendar * seconds, clusters), np.bincount(cluster, seconds, clusters)
        return np.divide(passed, seen, out=np.ones(clusters), where=seen > 0)

    def _made_by(self, calendar: CalendarTable | None, observations: ClosedGaps) -> FloatArray:
        if calendar is None:
            return np.ones(len(observations))
        cluster = self._tempo.places.cluster[observations.row]
        passed = calendar.between(cluster, self._tempo.places.host[cluster], observations.start, observations.end, None)
        return passed / (observations.end - observations.start)

    def elapsed(self, rows: IntArray, start: FloatArray, end: FloatArray) -> FloatArray:
        """Operational seconds from ``start`` to ``end``."""
        return end - start if self._time.is_wall() else self._time.elapsed(rows, start, end)

    def pace(self, rows: IntArray, at: FloatArray) -> FloatArray:
        """Operational seconds per second that the age of each page makes. The factor of age never rises with it."""
        table = self._time.age
        if table is None:
            return np.ones(len(rows))
        if not can_compile():
            return table.factor[table.step(self._time.born[rows], at)]
        from recrawl.estimate.operational import (
            operational_kernels as kernels,  # numba is slow to import, and may be missing
        )

        out = np.empty(len(rows))
        kernels.paces(rows, at, self._time.born, table.edges, table.factor, out)
        return out

    def turns(self, rows: IntArray) -> FloatArray:
        """When the pace of each page changes, a column a time, ascending; NaN for pages of unknown age."""
        table = self._time.age
        edges = np.empty(0) if table is None else table.edges
        return np.asarray(self._time.born[rows][:, None] + edges)

    def replica(self) -> PageClocks:
        """A twin that knows the time as it is known now, and learns nothing more of it. O(clusters · window).

        Pages that are added later share a cluster of which nothing is known: to make one for each of their hosts would
        take O(clusters · window) again.
        """
        twin, places, calendar = copy.copy(self), self._tempo.places, self._time.calendar
        host = np.append(places.host, 0)
        if calendar is not None:
            factor = np.append(calendar.factor, np.ones((1, calendar.factor.shape[1])), axis=0)
            wall = calendar.width * np.arange(calendar.passed.shape[1], dtype=np.float64)
            passed: FloatArray = np.append(calendar.passed, wall[None, :], axis=0)
            calendar = replace(calendar, factor=factor, passed=passed)
        vars(twin).update(
            _neutral=len(places.host),
            _home={},
            _hosts={},
            _cluster_hosts=host.tolist(),
            _trial=None,
            _verdict=self._verdict.replica(),
            _tempo=replace(self._tempo, places=replace(places, host=host), clusters=None),
            _time=replace(self._time, host=host, calendar=calendar),
        )
        return twin

    # -- inside -------------------------------------------------------------------------------

    def _home_of(self, host: int) -> int:
        if self._neutral is not None:
            return self._neutral
        if host not in self._home:
            self._home[host] = len(self._cluster_hosts)
            self._cluster_hosts.append(self._hosts.setdefault(host, len(self._hosts)))
        return self._home[host]

    def _begin(self, until: float) -> float:
        return math.floor((until - self._window) / BIN) * BIN

    def _settle(self, places: PageGroups) -> None:
        """Take over new places; the calendar grows by the clusters that are new."""
        self._tempo.places = places
        calendar = self._tempo.clusters
        if calendar is None or len(places.host) == len(calendar.changes):
            self._time = replace(self._time, cluster=places.cluster, host=places.host, born=places.born)
            return
        calendar.host = places.host
        more = np.zeros((len(places.host) - len(calendar.changes), calendar.changes.shape[1]))
        calendar.changes = np.concatenate([calendar.changes, more])
        calendar.exposure = np.concatenate([calendar.exposure, more])
        self._retime()

    def _retime(self) -> None:
        """Operational time as the factors are known now. O(clusters · window)."""
        places, calendar = self._tempo.places, self._tempo.clusters
        used = self._trial = None
        if calendar is not None:
            factor = calendar.factor()
            used = self._trial = CalendarTable.of(calendar.begin, BIN, factor, places.host, None)
            factor = 1.0 + self._verdict.weight(places.host)[:, None] * (factor - 1.0)
            used = CalendarTable.of(calendar.begin, BIN, factor, places.host, None)
        age = None if self._tempo.age is None else self._tempo.age.table()
        self._time = OperationalTime(places.cluster, places.host, places.born, calendar=used, age=age)


def count(
    time: OperationalTime,
    observations: ClosedGaps,
    rates: FloatArray,
    age: StepCounts | None,
    calendar: ClusterIntensity | None,
) -> None:
    """Add the evidence of observations on factors to the given counts, under the current operational time.

    O(observations), and the bins they span in compiled code.
    """
    if not can_compile():
        expected = informative(time, observations, rates)
        if calendar is not None:
            calendar.add(time, expected)
        if age is not None and time.age is not None:
            age.add(expected.pieces.step[0], time.age, expected)
        return
    from recrawl.estimate.operational import (
        operational_kernels as kernels,  # numba is slow to import, and may be missing
    )

    if calendar is not None:
        calendar.reach(float(observations.end.max(initial=calendar.begin)))
    nothing = np.empty((0, 0))
    kernels.learn(
        observations.row,
        observations.start,
        observations.end,
        observations.changed,
        rates,
        time.cluster,
        time.born,
        *time.tables(),
        nothing.ravel() if age is None else age.changes,
        nothing.ravel() if age is None else age.exposure,
        nothing if calendar is None else calendar.changes,
        nothing if calendar is None else calendar.exposure,
    )


def informative(time: OperationalTime, observations: ClosedGaps, rates: FloatArray) -> Expectation:
    r"""The evidence of observations on the factors of time, each with at most its information.

    EM counts x/(1 − e^{−x}) changes against an exposure of x for an observation that found a change, x = λΛ. The
    difference is right, but a page that changes ten times between two observations would speak for the factors as they
    are with the weight of ten changes, while all it says is that it changed. Here both are less by the same amount: the
    exposure is x·e^{−x}, the changes x·e^{−x} + x/(e^x − 1). For x → 0 that is what EM says, for large x nothing.
    """
    expected = expect(time, observations, rates)
    x = np.bincount(expected.pieces.gap, expected.exposure, len(observations))
    heard = np.where(observations.changed, np.exp(-x), 1.0)[expected.pieces.gap]
    found = np.where(expected.found > 0, 1.0 + expected.found, 0.0)
    return Expectation(expected.pieces, expected.row, expected.exposure * heard, found)
