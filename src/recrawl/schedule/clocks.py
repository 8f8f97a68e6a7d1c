r"""The clocks of a policy's pages: operational time while it is learned, day by day (algorithms §7, "R").

Wherever a formula of the scheduler says t it means operational time: S_c of the page's cluster, faster for young pages.
Two things are asked of a clock: how much operational time passed since the last look, and the page's own *pace* now,
which is how fast a fresh copy would go stale again. The pace is the age factor alone: what a cluster is going through
passes, the age of a page does not. It never rises as a page grows older, so urgency never falls while a page waits.

Only a window of the calendar is kept, as long as a page may wait: memory is O(clusters · window).
"""

from __future__ import annotations

import copy
import math
from collections.abc import Callable, Collection
from dataclasses import replace
from typing import TypeAlias

import numpy as np

from recrawl.estimate import page_age
from recrawl.estimate.cluster_intensity import BIN, ClusterIntensity
from recrawl.estimate.operational import OperationalTime
from recrawl.estimate.operational_learning import Expectation, Looks, StepCounts, expect
from recrawl.estimate.operational_tables import CalendarTable
from recrawl.estimate.tempo_state import Factor, Places, Tempo
from recrawl.model import FloatArray, IntArray, Pages
from recrawl.model.compiled import can_compile
from recrawl.schedule.clock_verdict import Verdict

Clusters: TypeAlias = Callable[[Pages], IntArray]
"""The cluster of each of these pages, given in order of discovery: any numbers, asked for anew as pages grow more."""

USED = (Factor.CLUSTERS, Factor.AGE)
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


class Clocks:
    """Operational time of pages in rows. Mutable: days of looks are folded in."""

    def __init__(self, factors: Collection[Factor], window: float, clusters: Clusters = by_host) -> None:
        self.factors = tuple(factor for factor in USED if factor in factors)
        self._clusters = clusters
        self._window = math.ceil(window / BIN) * BIN
        nobody = Places(np.empty(0, np.int64), np.empty(0, np.int64), np.empty(0))
        self._tempo = Tempo(nobody, clusters=None, age=None, bursts=None, week=None)
        if Factor.AGE in self.factors:
            self._tempo.age = page_age.nothing_seen()
        self._home: dict[int, int] = {}
        """The cluster of a host's pages that are in no cluster yet."""
        self._hosts: dict[int, int] = {}
        self._cluster_hosts: list[int] = []
        self._trial: CalendarTable | None = None
        """The calendar of all clusters; in use is that of those for which it proved useful."""
        self._verdict = Verdict()
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
        """Rows for new pages: until clusters are found anew they go with their host."""
        own = np.fromiter((self._home_of(name) for name in host.tolist()), np.int64, len(host))
        places = self._tempo.places
        hosts = np.fromiter(self._cluster_hosts, np.int64, len(self._cluster_hosts))
        self._settle(
            Places(np.concatenate([places.cluster, own]), hosts, np.concatenate([places.born, born])),
        )

    def date(self, born: FloatArray) -> None:
        """When the page of each row appeared; NaN where nobody knows."""
        self._settle(replace(self._tempo.places, born=born))

    def regroup(self, pages: Pages, order: IntArray, known: int) -> None:
        """Find clusters anew; ``order`` are rows by discovery, the first ``known`` of which are to be grouped.

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
        places = Places(cluster, np.array(self._cluster_hosts, dtype=np.int64), self._time.born)
        self._verdict.decide(places.cluster, places.host)
        self._settle(places)

    def relearn(
        self, looks: Looks, rates: FloatArray, calendar: FloatArray, until: float
    ) -> tuple[FloatArray, FloatArray]:
        """Learn the calendar of the window before ``until`` and the ages anew; rates and calendar of the looks then.

        ``rates`` are those believed of each page after the look, ``calendar`` what the calendar made of each gap so
        far, in seconds per second. Rates and factors are only known up to a factor between them. It is pinned: over
        the time that was observed of a cluster its calendar is 1 on average, and so is the usual age. So rates are
        those of an average day, whatever was learned before: too high rates make the factors too low, which lowers the
        rates here. Factors are bounded, so one review moves rates by a bounded factor, and none can drift.
        """
        if Factor.CLUSTERS in self.factors and len(looks):
            begin = self._begin(until)
            recent = np.flatnonzero(looks.end > begin)
            some = looks.take(recent)
            fresh = ClusterIntensity.of(self._tempo.places.host, begin, until)
            for _ in range(_ROUNDS):
                held = replace(self._time, calendar=fresh.table())
                fresh.clear()
                count(held, some, rates[recent], None, fresh)
            self._tempo.clusters = fresh
            calendar = calendar.copy()
            self._retime()
            calendar[recent] = self._made_by(self._time.calendar, some)
            mean = self._means(looks, calendar)
            fresh.exposure *= mean[:, None]
            own = mean[self._tempo.places.cluster[looks.row]]
            calendar, rates = np.clip(calendar / own, 1.0 / fresh.limit, fresh.limit), rates * own
        if self._tempo.age is not None:
            ages = replace(self._time, calendar=None)
            self._tempo.age.clear()
            count(ages, looks, rates * calendar, self._tempo.age, None)
            rates = rates * self._tempo.age.table().factor[self._tempo.age.usual]
            self._tempo.age.settle()
        self._retime()
        return rates, calendar

    def fold(self, looks: Looks, rates: FloatArray, until: float) -> FloatArray:
        """Learn from a day of looks, the day that ends at ``until``; what the calendar makes of their gaps."""
        calendar = self._tempo.clusters
        if Factor.CLUSTERS in self.factors and calendar is None:
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
        count(self._time, looks, rates, self._tempo.age, calendar)
        self._retime()
        return self._made_by(self._time.calendar, looks)

    def trial(self, looks: Looks) -> tuple[FloatArray, FloatArray] | None:
        """Operational seconds of gaps with the calendar and without it, as known before these looks."""
        if self._trial is None:
            return None
        own = self.stretch(looks, np.ones(len(looks)))
        return own * self._made_by(self._trial, looks), own

    def judge(self, row: IntArray, gain: FloatArray) -> None:
        """Take note of how much better the calendar predicted looks at the pages of these rows, nats each."""
        self._verdict.add(row, gain)

    def stretch(self, looks: Looks, calendar: FloatArray) -> FloatArray:
        """Operational seconds of gaps of which the calendar made ``calendar``, by the ages as they are known now."""
        return calendar * replace(self._time, calendar=None).elapsed(looks.row, looks.start, looks.end)

    def _means(self, looks: Looks, calendar: FloatArray) -> FloatArray:
        """What the calendar made of the time of each cluster on average; 1 where there was none."""
        cluster, seconds = self._tempo.places.cluster[looks.row], looks.end - looks.start
        clusters = len(self._tempo.places.host)
        passed, seen = np.bincount(cluster, calendar * seconds, clusters), np.bincount(cluster, seconds, clusters)
        return np.divide(passed, seen, out=np.ones(clusters), where=seen > 0)

    def _made_by(self, calendar: CalendarTable | None, looks: Looks) -> FloatArray:
        if calendar is None:
            return np.ones(len(looks))
        cluster = self._tempo.places.cluster[looks.row]
        passed = calendar.between(cluster, self._tempo.places.host[cluster], looks.start, looks.end, None)
        return passed / (looks.end - looks.start)

    def elapsed(self, rows: IntArray, start: FloatArray, end: FloatArray) -> FloatArray:
        """Operational seconds from ``start`` to ``end``."""
        return end - start if self._time.is_wall() else self._time.elapsed(rows, start, end)

    def pace(self, rows: IntArray, at: FloatArray) -> FloatArray:
        """Operational seconds per second that the age of each page makes, never rising with it."""
        table = self._time.age
        if table is None:
            return np.ones(len(rows))
        known = np.minimum.accumulate(table.factor[:-1])
        falling = np.append(known, table.factor[-1])
        if not can_compile():
            return falling[table.step(self._time.born[rows], at)]
        from recrawl.estimate import operational_kernels as kernels  # numba is slow to import, and may be missing

        out = np.empty(len(rows))
        kernels.paces(rows, at, self._time.born, table.edges, falling, out)
        return out

    def turns(self, rows: IntArray) -> FloatArray:
        """When the pace of each page changes, a column a time, ascending; NaN for pages of unknown age."""
        table = self._time.age
        edges = np.empty(0) if table is None else table.edges
        return np.asarray(self._time.born[rows][:, None] + edges)

    def replica(self) -> Clocks:
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

    def _settle(self, places: Places) -> None:
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
            off = np.flatnonzero(~self._verdict.on(places.host))
            if len(off):
                factor = factor.copy()
                factor[off] = 1.0
                used = CalendarTable.of(calendar.begin, BIN, factor, places.host, None)
        age = None if self._tempo.age is None else self._tempo.age.table()
        self._time = OperationalTime(places.cluster, places.host, places.born, calendar=used, age=age)


def count(
    time: OperationalTime,
    looks: Looks,
    rates: FloatArray,
    age: StepCounts | None,
    calendar: ClusterIntensity | None,
) -> None:
    """Add what looks say about factors to the counts of those that are given, under the time that is held.

    O(looks), and the bins they span in machine code.
    """
    if not can_compile():
        expected = informative(time, looks, rates)
        if calendar is not None:
            calendar.add(time, expected)
        if age is not None and time.age is not None:
            age.add(expected.pieces.step[0], time.age, expected)
        return
    from recrawl.estimate import operational_kernels as kernels  # numba is slow to import, and may be missing

    if calendar is not None:
        calendar.reach(float(looks.end.max(initial=calendar.begin)))
    nothing = np.empty((0, 0))
    kernels.learn(
        looks.row,
        looks.start,
        looks.end,
        looks.changed,
        rates,
        time.cluster,
        time.born,
        *time.tables(),
        nothing.ravel() if age is None else age.changes,
        nothing.ravel() if age is None else age.exposure,
        nothing if calendar is None else calendar.changes,
        nothing if calendar is None else calendar.exposure,
    )


def informative(time: OperationalTime, looks: Looks, rates: FloatArray) -> Expectation:
    r"""What looks say about the factors of time, each look by no more than it can know.

    EM counts x/(1 − e^{−x}) changes against an exposure of x for a look that found a change, x = λΛ. The difference is
    right, but a page that changes ten times between two looks would speak for the factors as they are with the weight
    of ten changes, while all it says is that it changed. Here both are less by the same amount: the exposure is
    x·e^{−x}, the changes x·e^{−x} + x/(e^x − 1). For x → 0 that is what EM says, for large x nothing.
    """
    expected = expect(time, looks, rates)
    x = np.bincount(expected.pieces.gap, expected.exposure, len(looks))
    heard = np.where(looks.changed, np.exp(-x), 1.0)[expected.pieces.gap]
    found = np.where(expected.found > 0, 1.0 + expected.found, 0.0)
    return Expectation(expected.pieces, expected.row, expected.exposure * heard, found)
