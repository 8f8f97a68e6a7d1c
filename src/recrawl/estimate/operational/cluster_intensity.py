r"""Shared intensity of a cluster: one bulk edit raises the belief in all siblings (a Cox process, algorithms §5).

Pages of a cluster (a directory of a site) tend to be edited together. With s_c(b) the factor of cluster c in bin b of
the calendar, A the expected changes and E the exposure there, both smoothed over neighbouring bins with weights φ^|k|,

    site      g(b)   = (a_s + Σ_c A_c(b)) / (a_s + Σ_c E_c(b)),
    cluster   s_c(b) = (a_c·g(b) + A_c(b)) / (a_c + E_c(b)),        both kept within 1/R and R,

so a cluster nobody observed follows its site, a site nobody observed goes at the usual pace (algorithms §7, "R"). A
change found at one page raises s for the bins of its gap, and with it the operational time of every sibling that was
not observed since. Busy times last: what was found in one bin says something about the next, also about the next to
come. The smoothing makes use of it (EM with a smoothing step, after Silverman, Jones, Wilson and Nychka 1990).

**Bounds.** The prior of a factor is a Gamma truncated to [1/R, R], of mean g for a cluster and 1 for a site before it
is truncated. The estimate is the mode of the posterior density of ln s: (a·g + A)/(a + E), or the bound that this
exceeds. So the bounds are part of a proper prior, no repair after the fact. Without them rates and factors run away
together. Only their product is observed: where a busy cluster stops, (λ, s) = (10⁶, 10⁻⁶) explains the silence as well
as (1, 1). An observation that finds nothing then says nothing of the rate, a higher rate makes operational time
shorter, and shorter gaps allow a higher rate. With the bounds, every second without a change counts for at least 1/R
seconds, so silence always lowers the rate. Inside the bounds nothing is shrunk: a prior that only pulls towards 1 hard
enough to bound factors makes half of a true factor of 8.

The strengths and φ were set on five real sites (freebooks, uvarc, wcag, digitalgov, llvm). Mean share of the log loss
taken off: about 7 % with a_c = 1, a_s = 10 and bins on their own, 13 % with a_c = a_s = 1 and such bins of a week, 16 %
with these. Strong priors lose because a bin of a slow cluster holds little exposure.

Over whole bins per gap adds a constant, so it is entered as a difference at its two ends and summed once:
O(observations + clusters · bins) a round, however long the gaps are.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from itertools import pairwise

import numpy as np

from recrawl.estimate.operational.operational_factors import RANGE, Expectation
from recrawl.estimate.operational.operational_time import CalendarTable, OperationalTime, WeekTable, bin_lengths, length
from recrawl.model import FloatArray, IntArray
from recrawl.model.compiled import can_compile
from recrawl.time import DAY

BIN = 3 * DAY
"""Width of a bin of the calendar."""
OWN_STRENGTH = 1.0
"""a_c: weight of the site's pace in the pace of a cluster, in changes."""
SITE_STRENGTH = 1.0
"""a_s: weight of the usual pace in the pace of a site, in changes."""
PERSISTENCE = 0.5
"""φ: share of the evidence of a bin that is carried over to the next."""
_AHEAD = 15
"""Bins kept beyond the last observation, over which what was found last fades."""
_NOTHING = 1e-17
_CELLS = 1 << 22
"""Clusters times bins that are summed at a time: bounds the memory beside the tables."""
_FEW_CELLS = 1 << 20
_CELLS_PER_OBSERVATION = 8
"""A table of more cells than this for each observation gets wider bins: observations that rare cannot tell narrow ones
apart."""


@dataclass(slots=True)
class ClusterIntensity:
    """Changes and exposure of each cluster in each bin. Mutable: observations are folded in."""

    begin: float
    width: float
    host: IntArray
    """Host of each cluster, 0 … hosts − 1."""
    changes: FloatArray
    """Shape (clusters, bins)."""
    exposure: FloatArray
    own_strength: float = OWN_STRENGTH
    site_strength: float = SITE_STRENGTH
    persistence: float = PERSISTENCE
    limit: float = RANGE
    _factor: FloatArray = field(init=False)
    """What :meth:`current` holds; right up to the bin ``_stale`` of the host of each cluster."""
    _passed: FloatArray = field(init=False)
    _stale: IntArray = field(init=False)

    def __post_init__(self) -> None:
        self._factor, self._passed = np.empty((0, 0)), np.empty((0, 1))
        self._stale = np.zeros(int(self.host.max(initial=-1)) + 1, dtype=np.int64)

    @classmethod
    def of(
        cls, host: IntArray, begin: float, end: float, *, width: float = BIN, observations: int | None = None
    ) -> ClusterIntensity:
        """Nothing known, with bins from ``begin`` (rounded down to a whole bin) to some way past ``end``.

        With the number of ``observations`` that are to fill it, bins are made wider until the table is no larger than
        observations can fill; what a bin says then fades in the same time.
        """
        persistence = PERSISTENCE
        if observations is not None:
            most = max(_FEW_CELLS, _CELLS_PER_OBSERVATION * observations)
            while len(host) * (end - begin) / width > most and width < end - begin:
                width, persistence = 2.0 * width, persistence**2
        first = math.floor(begin / width) * width
        shape = (len(host), max(math.ceil((end - first) / width), 0) + _AHEAD)
        return cls(first, width, host, np.zeros(shape), np.zeros(shape), persistence=persistence)

    @property
    def end(self) -> float:
        """Where the last bin ends."""
        return self.begin + self.width * int(self.changes.shape[1])

    def reach(self, end: float) -> None:
        """Make sure there are bins past ``end``; a quarter more are made, so that growing stays cheap."""
        missing = math.ceil((end - self.end) / self.width) + _AHEAD
        if missing > 0:
            more = np.zeros((len(self.host), missing + self.changes.shape[1] // 4))
            self.changes = np.concatenate([self.changes, more], axis=1)
            self.exposure = np.concatenate([self.exposure, more], axis=1)

    def factor(self) -> FloatArray:
        """The factor s of each cluster and bin. O(clusters · bins)."""
        return self._factors(self.changes, self.exposure, self.host)

    def table(self, week: WeekTable | None = None) -> CalendarTable:
        """The factors as they are known now, ready to measure time with. O(clusters · bins)."""
        return CalendarTable.of(self.begin, self.width, self.factor(), self.host, week)

    def current(self, clusters: IntArray, week: WeekTable | None = None) -> CalendarTable:
        """As :meth:`table`, but only the rows of these clusters need be right: what changed in them is computed again.

        The arrays of the table are kept and brought up to date in place: it holds until observations are folded in and
        this is asked again. O(bins that observes hosts of these clusters changed since), and with a week O(clusters ·
        bins).
        """
        bins = self.changes.shape[1]
        known = self._factor.shape[1]
        if self._factor.shape != self.changes.shape:
            self._stale[:] = np.minimum(self._stale, max(known - self._reach_of_smoothing(), 0))
            factor, passed = np.empty(self.changes.shape), np.zeros((len(self.host), bins + 1))
            factor[: len(self._factor), :known], passed[: len(self._factor), : known + 1] = self._factor, self._passed
            self._factor, self._passed = factor, passed
        asked = np.zeros(len(self._stale), dtype=np.bool_)
        asked[self.host[clusters]] = True
        asked &= self._stale < bins
        if asked.any():
            self._refresh(np.flatnonzero(asked[self.host]), int(self._stale[asked].min()))
            self._stale[asked] = bins
        if week is not None:
            rows = np.unique(clusters)
            lengths = bin_lengths(self.begin, self.width, bins, self.host[rows], week)
            self._passed[rows, 1:] = np.cumsum(self._factor[rows] * lengths, axis=1)
        return CalendarTable(self.begin, self.width, self._factor, self._passed)

    def _refresh(self, rows: IntArray, first: int) -> None:
        """Compute factors and running totals of these clusters, all of their hosts, again from bin ``first`` on."""
        lead = max(first - self._reach_of_smoothing(), 0)
        found = self._factors(self.changes[rows, lead:], self.exposure[rows, lead:], self.host[rows])[:, first - lead :]
        self._factor[rows, first:] = found
        self._passed[rows, first + 1 :] = self._passed[rows, first, None] + np.cumsum(found * self.width, axis=1)

    def _reach_of_smoothing(self) -> int:
        """Bins after which the evidence of a bin has faded to nothing."""
        return 1 if self.persistence <= _NOTHING else math.ceil(math.log(_NOTHING) / math.log(self.persistence))

    def _factors(self, changes: FloatArray, exposure: FloatArray, host: IntArray) -> FloatArray:
        """The factors of clusters with these counts; all clusters of a host are among them."""
        hosts, place = np.unique(host, return_inverse=True)
        if can_compile():
            from recrawl.estimate.operational import (
                operational_kernels as kernels,  # numba is slow to import, and may be missing
            )

            out = np.empty_like(changes)
            strengths = (self.persistence, self.own_strength, self.site_strength, self.limit)
            kernels.smoothed(changes, exposure, place.astype(np.int64), len(hosts), *strengths, out)
            return out
        changes, exposure = self._smooth(changes), self._smooth(exposure)
        order = np.argsort(place, kind="stable")
        heads = np.searchsorted(place[order], np.arange(len(hosts)))
        everywhere = (np.add.reduceat(part[order], heads, axis=0) for part in (changes, exposure))
        found, exposed = everywhere if len(hosts) else (changes, exposure)
        site = np.clip((self.site_strength + found) / (self.site_strength + exposed), 1.0 / self.limit, self.limit)[
            place
        ]
        own = (self.own_strength * site + changes) / (self.own_strength + exposure)
        return np.asarray(np.clip(own, 1.0 / self.limit, self.limit))

    def add(self, time: OperationalTime, expected: Expectation) -> None:
        """Fold in observations; ``time`` is the operational time under which they were expected.

        O(pieces + touched clusters · bins).
        """
        held = time.calendar
        if held is None:
            msg = "observations must be expected under a calendar, be it a neutral one"
            raise ValueError(msg)
        pieces, cluster = expected.pieces, time.cluster[expected.row]
        span = time.shared(expected.row, pieces.start, pieces.end)
        # λ times the factors of the page itself: what is left of the exposure without the shared factors.
        weight = np.divide(expected.exposure, span, out=np.zeros(len(span)), where=span > 0)
        self.reach(float(pieces.end.max(initial=self.begin)))
        self._mark(self.host[cluster], pieces.start)
        if time.week is None and can_compile():
            from recrawl.estimate.operational import (
                operational_kernels as kernels,  # numba is slow to import, and may be missing
            )

            ends = (pieces.start, pieces.end, self.begin, self.width)
            kernels.spread(cluster, *ends, weight, expected.found, held.factor, self.changes, self.exposure)
            return
        order = np.argsort(cluster, kind="stable")
        for block in self._blocks(cluster[order]):
            rows = order[block]
            ids, local = np.unique(cluster[rows], return_inverse=True)
            lengths = bin_lengths(self.begin, self.width, self.changes.shape[1], self.host[ids], time.week)
            gaps = (local, self.host[cluster[rows]], pieces.start[rows], pieces.end[rows])
            exposed = self._overlaps(len(ids), gaps, weight[rows], lengths, time.week)
            found = self._overlaps(len(ids), gaps, (expected.found * weight)[rows], lengths, time.week)
            bins = held.factor.shape[1]
            self.exposure[ids] += exposed
            self.changes[ids, :bins] += held.factor[ids] * found[:, :bins]
            self.changes[ids, bins:] += found[:, bins:]

    def clear(self) -> None:
        """Forget all observations: a new round of EM starts."""
        self.changes[:] = 0.0
        self.exposure[:] = 0.0
        self._stale[:] = 0

    def _mark(self, host: IntArray, start: FloatArray) -> None:
        """Note that counts of these hosts change from these times on."""
        more = int(self.host.max(initial=-1)) + 1 - len(self._stale)
        if more > 0:
            self._stale = np.append(self._stale, np.zeros(more, np.int64))
        first = np.floor((start - self.begin) / self.width).astype(np.int64) - self._reach_of_smoothing()
        np.minimum.at(self._stale, host, np.maximum(first, 0))

    def _smooth(self, counts: FloatArray) -> FloatArray:
        """Σ_k φ^|k| · counts(b + k). O(clusters · bins)."""
        after = _fading(counts, self.persistence)
        before = _fading(counts[:, ::-1], self.persistence)[:, ::-1]
        return after + before - counts

    def _blocks(self, cluster: IntArray) -> list[slice]:
        """Cut sorted cluster numbers where a cluster starts, such that each block has few enough cells."""
        heads = np.flatnonzero(np.diff(cluster, prepend=-1))
        many = max(_CELLS // self.changes.shape[1], 1)
        cuts = [*heads[::many].tolist(), len(cluster)]
        return [slice(a, b) for a, b in pairwise(cuts)]

    def _overlaps(
        self,
        clusters: int,
        gaps: tuple[IntArray, IntArray, FloatArray, FloatArray],
        weight: FloatArray,
        lengths: FloatArray,
        week: WeekTable | None,
    ) -> FloatArray:
        """Σ weight · (seconds of the gap within the bin), for each cluster and bin."""
        cluster, host, start, end = gaps
        bins = self.changes.shape[1]
        start, end = np.clip(start, self.begin, self.end), np.clip(end, self.begin, self.end)
        first = np.clip(np.floor((start - self.begin) / self.width), 0, bins - 1).astype(np.int64)
        last = np.clip(np.floor((end - self.begin) / self.width), 0, bins - 1).astype(np.int64)
        head = length(host, start, np.minimum(end, self.begin + (first + 1) * self.width), week)
        tail = length(host, np.maximum(start, self.begin + last * self.width), end, week)
        cell = cluster * bins
        single = np.bincount(cell + first, weight * head, clusters * bins)
        crossing = last > first
        single += np.bincount((cell + last)[crossing], (weight * tail)[crossing], clusters * bins)
        wide = crossing & (last > first + 1)
        rises = np.bincount((cell + first + 1)[wide], weight[wide], clusters * bins)
        rises -= np.bincount((cell + last)[wide], weight[wide], clusters * bins)
        level = np.cumsum(rises.reshape(clusters, bins), axis=1)
        # Sums of differences leave a rounding error where nothing is; it must not turn a count negative.
        return np.asarray(single.reshape(clusters, bins) + np.maximum(level, 0.0) * lengths)


def _fading(counts: FloatArray, persistence: float) -> FloatArray:
    """Σ_{k≥0} φᵏ · counts(b − k): as Π_j (1 + φ^(2ʲ)·shift by 2ʲ), in a few steps over whole arrays.

    >>> _fading(np.array([[8.0, 0.0, 0.0, 8.0]]), 0.5).tolist()
    [[8.0, 4.0, 2.0, 9.0]]
    """
    out = counts.copy()
    shift, share = 1, persistence
    while shift < out.shape[1] and share > _NOTHING:
        out[:, shift:] += share * out[:, :-shift].copy()
        shift, share = 2 * shift, share * share
    return out
