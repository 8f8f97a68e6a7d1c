r"""The factors of operational time: hour of the week, bursts, age of the page; and the EM step that estimates them.

**Week.** People edit in working hours, so each host has a profile of 168 hours (algorithms §5). With A expected changes
and E exposure in each hour of the week, w = (a + A)/(a + E), scaled to mean 1. Only gaps of at most three days are
evidence on hours, and the profile matters only where such gaps are usual: a host whose median gap is longer keeps the
neutral one. Within a piece of a gap the other factors count with their mean.

**EM step.** All factors are estimated from the expected changes in each piece of a gap. An observation after
operational time Λ of a page of rate λ finds a change with probability 1 − e^{−x}, x = λΛ. If it does, x/(1 − e^{−x})
changes are expected in the gap, spread over it in proportion to the intensity; if not, none (algorithms §5). Dividing
the expected changes by the exposure, piece by piece, is the EM step for any factor of a product of piecewise constant
ones:

    factor ← (a + Σ expected changes) / (a/prior + Σ λ·Λ/factor),

with a the changes that what was held before is worth. Over all observations this is one round of EM; observation by
observation it is online EM.

Only the product of rate and factors is observed. So the scale of a table of steps is pinned. Either one step that
every page comes to is 1. Or, where pages may stay on one step for good, factors and prior are 1 on average over the
exposure that was seen: then operational time passes as fast as wall time on average, and no scale can drift from one
fit to the next, whatever steps pages are on.

**Bursts.** A change is often followed by more. Time runs by steps since the last *detected* change (algorithms §7).

The changes themselves are not known, only the observations that found them; so steps count from such an observation. A
page that was never found changed is on the step of those that changed long ago, where time has its usual pace: a step
of its own would be learned from gaps that are known to come before a change, and predicted worse than no bursts at all.
The factors are learned from all pages together. They also pick up what the rates of single pages do not know yet: a
page found changed lately is, other things equal, a page of higher rate.

**Age.** Young pages are edited, old ones rest: the strongest regularity of real histories (algorithms §7).

The rate falls by steps with the age of the page; the steps are estimated from all pages together, with the histories of
25 sites as the prior. It never rises: steps that would are pooled (the maximum likelihood under that order),
so the time that has passed and the pace of now follow from one table. Each factor stays within 10 times its prior,
because where few pages pass from one step to the next, page rates explain the same observations as well.

A page that was there when the collection started, or that came with an import, has an age that nobody knows: such pages
are taken to be as old as the oldest. They never reach another step, so nothing can be learned of a step of their own:
any factor, with rates to match, explains their observations.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from recrawl.estimate.operational.operational_time import (
    HOURS,
    GapPieces,
    OperationalTime,
    StepTable,
    WeekTable,
    cut,
    detected_before,
    locate_hour,
)
from recrawl.model import AnyArray, BoolArray, FloatArray, Histories, IntArray
from recrawl.time import DAY, HOUR

_SMALLEST_X = 1e-300
"""Keeps 0/0 away; the limit of x/(1 − e^{−x}) at 0 is 1."""
RANGE = 10.0
"""R: how much faster or slower than usual time may pass for a cluster, or than its prior says for an age."""


@dataclass(frozen=True, slots=True)
class ClosedGaps:
    """Observations that closed a gap, as columns: which page, from when to when, and what was found."""

    row: IntArray
    start: FloatArray
    """The observation before."""
    end: FloatArray
    """This observation."""
    changed: BoolArray
    last_change: FloatArray
    """The last observation up to ``start`` that found a change; NaN if none did."""

    def __len__(self) -> int:
        return len(self.row)

    @classmethod
    def of(cls, histories: Histories) -> ClosedGaps:
        """All observations of all pages, by page and time. O(gaps)."""
        end = histories.observation_times()
        before = detected_before(histories, end)
        return cls(histories.row_of_gap(), end - histories.gaps, end, histories.changed, before)

    def take(self, which: AnyArray | slice) -> ClosedGaps:
        """The observes these positions, or where this mask is true."""
        return ClosedGaps(
            self.row[which], self.start[which], self.end[which], self.changed[which], self.last_change[which]
        )


@dataclass(frozen=True, slots=True)
class Expectation:
    """The evidence of observations on each piece of their gaps, given the current rates and operational time."""

    pieces: GapPieces
    row: IntArray
    """Page of each piece."""
    exposure: FloatArray
    """λ·Λ of each piece: changes that were to be expected beforehand."""
    found: FloatArray
    """1/(1 − e^{−x}) for pieces of a gap that ended in a change, else 0: expected changes are ``found · exposure``."""

    @property
    def changes(self) -> FloatArray:
        """Changes to be expected in each piece after the observation."""
        return self.found * self.exposure


def expect(time: OperationalTime, observations: ClosedGaps, rates: FloatArray) -> Expectation:
    """The E-step: ``rates[k]`` is the rate, per operational second, of the page of observation k. O(pieces)."""
    pieces = cut(observations.start, observations.end, time.steps(observations.row, observations.last_change))
    row = observations.row[pieces.gap]
    exposure = rates[pieces.gap] * time.passed(row, pieces)
    x = np.bincount(pieces.gap, exposure, len(observations))
    found = np.where(observations.changed, 1.0 / -np.expm1(-np.maximum(x, _SMALLEST_X)), 0.0)
    return Expectation(pieces, row, exposure, found[pieces.gap])


@dataclass(slots=True)
class StepCounts:
    """What is known of a table of steps: changes and exposure on each. Grows by folding; see the module."""

    edges: FloatArray
    prior: FloatArray
    """The factors before any observation."""
    strength: float
    """How many changes the prior is worth, on each step."""
    changes: FloatArray
    exposure: FloatArray
    """Changes to be expected if the factor were 1."""
    usual: int | None
    """The step of factor 1; ``None`` if factors are to be 1 on average.

    Then pages whose event is not known are taken to be on the last step: they never leave it, so what they say of a
    step of their own holds for any factor, with rates to match, and nothing can be learned of it.
    """
    scale: float = 1.0
    """What the prior is multiplied by; see :meth:`settle`."""
    unit: float = 1.0
    """What all factors are divided by; see :meth:`settle`."""

    @classmethod
    def of(cls, edges: FloatArray, prior: FloatArray, strength: float, usual: int | None) -> StepCounts:
        """Nothing but the prior."""
        return cls(edges, prior, strength, np.zeros(len(prior)), np.zeros(len(prior)), usual)

    def table(self) -> StepTable:
        """The factors as they are known now."""
        prior = self.scale * self.prior
        changes, exposure = self.strength + self.changes, self.strength / prior + self.exposure
        if self.usual is not None:
            return StepTable(self.edges, changes / exposure / self.unit)
        factor = np.clip(never_rising(changes[:-1], exposure[:-1]), prior[:-1] / RANGE, prior[:-1] * RANGE)
        return StepTable(self.edges, np.append(factor, factor[-1]) / self.unit)

    def settle(self) -> float:
        """Pin the scale, before rates are learned again; while rates stay, so must the scale.

        Returns what the factors were divided by: rates times this are those of the new scale.
        """
        if self.usual is not None:
            before = float(self.table().factor[self.usual])
            self.unit *= before
            return before
        # The prior is about proportions: it gets the scale at which it, too, is 1 on average.
        before = self._mean(self.table().factor)
        self.scale = 1.0 / self._mean(self.prior)
        self.unit = 1.0
        self.unit = self._mean(self.table().factor)
        return before

    def _mean(self, factor: FloatArray) -> float:
        """Of factors, each by its exposure; 1 where there was none, which counts for as much as the prior of a step."""
        total = self.strength + float(self.exposure.sum())
        return (self.strength + float((factor * self.exposure).sum())) / total

    def add(self, step: IntArray, held: StepTable, expected: Expectation) -> None:
        """Fold in observations; ``held`` is the table under which they were expected. O(pieces)."""
        steps = len(self.prior)
        self.changes += np.bincount(step, expected.changes, steps)
        self.exposure += np.bincount(step, expected.exposure, steps) / held.factor

    def clear(self) -> None:
        """Forget all observations: a new round of EM starts."""
        self.changes[:] = 0.0
        self.exposure[:] = 0.0


def never_rising(changes: FloatArray, exposure: FloatArray) -> FloatArray:
    """Changes over exposure by step, where it never rises: the most likely such rates. O(steps).

    Neighbours that would rise are pooled until none does (pool adjacent violators, Ayer et al. 1955).

    >>> never_rising(np.array([8.0, 1.0, 5.0]), np.array([2.0, 1.0, 1.0])).tolist()
    [4.0, 3.0, 3.0]
    """
    pools: list[tuple[float, float, int]] = []
    for found, exposed in zip(changes.tolist(), exposure.tolist(), strict=True):
        pool = (found, exposed, 1)
        while pools and pools[-1][0] * pool[1] < pool[0] * pools[-1][1]:
            before = pools.pop()
            pool = (before[0] + pool[0], before[1] + pool[1], before[2] + pool[2])
        pools.append(pool)
    return np.repeat([found / exposed for found, exposed, _ in pools], [steps for *_, steps in pools])


BURST_EDGES = np.array([1.0, 3.0, 7.0, 30.0, 90.0]) * DAY
BURST_PRIOR = np.ones(len(BURST_EDGES) + 2)
BURST_STRENGTH = 20.0
"""Changes on a step that outweigh the prior."""


def no_bursts_seen() -> StepCounts:
    """The prior, before any observation: no bursts."""
    return StepCounts.of(BURST_EDGES, BURST_PRIOR, BURST_STRENGTH, usual=len(BURST_EDGES))


AGE_EDGES = np.array([7.0, 30.0, 90.0, 365.0, 3 * 365.0]) * DAY
"""Up to a week, a month, three months, a year, three years, and older."""
AGE_PRIOR = np.array([32.0, 4.3, 2.1, 1.0, 0.58, 0.36, 0.36])
"""Rates relative to each other, by step; at last that of pages of unknown age."""
AGE_STRENGTH = 10.0
"""Changes on a step that outweigh the prior."""
_MANY = 20
_SHARE = 0.05


def no_ages_seen() -> StepCounts:
    """The prior, before any observation."""
    return StepCounts.of(AGE_EDGES, AGE_PRIOR, AGE_STRENGTH, usual=None)


def known_births(discovered: FloatArray, start: float) -> FloatArray:
    """When each page appeared, NaN where that is no evidence on its age. O(n log n).

    Pages found up to a day after ``start`` were there before; those of a day on which at least 20 pages and 5 % of all
    pages known by its end appear came with an import. A day is judged by what was known when it ended: pages found
    later change nothing.

    >>> known_births(np.array([0.0, 40 * DAY]), start=0.0).tolist()
    [nan, 3456000.0]
    """
    out = np.where(np.isfinite(discovered) & (discovered >= start + DAY), discovered, np.nan)
    found = np.flatnonzero(np.isfinite(discovered))
    day = np.floor(discovered[found] / DAY)
    _, which, pages = np.unique(day, return_inverse=True, return_counts=True)
    imported = pages >= np.maximum(_MANY, _SHARE * np.cumsum(pages))
    out[found[imported[which]]] = np.nan
    return np.asarray(out)


LONGEST = 3 * DAY
"""Longest gap that can resolve hours; a host whose median gap is longer has no profile."""
WEEK_STRENGTH = 5.0
"""Changes in an hour that outweigh the prior."""


@dataclass(slots=True)
class WeekCounts:
    """Changes and exposure of each host in each hour of the week. Mutable: observations are folded in."""

    rhythmic: BoolArray
    """Hosts that have a profile. Shape (hosts,)."""
    changes: FloatArray
    """Shape (hosts, 168)."""
    exposure: FloatArray

    @classmethod
    def of(cls, host: IntArray, gap: FloatArray, hosts: int) -> WeekCounts:
        """Nothing known. ``host[k]`` is the host of gap k: those with a short median gap may learn. O(n log n)."""
        order = np.lexsort((gap, host))
        found, heads, counts = np.unique(host[order], return_index=True, return_counts=True)
        rhythmic = np.zeros(hosts, dtype=np.bool_)
        rhythmic[found] = gap[order][heads + (counts - 1) // 2] <= LONGEST
        return cls(rhythmic, np.zeros((hosts, HOURS)), np.zeros((hosts, HOURS)))

    def table(self) -> WeekTable:
        """The profiles as they are known now, each of mean 1."""
        hourly = (WEEK_STRENGTH + self.changes) / (WEEK_STRENGTH + self.exposure)
        return WeekTable(hourly / hourly.mean(axis=1, keepdims=True))

    def add(self, time: OperationalTime, observations: ClosedGaps, expected: Expectation) -> None:
        """Fold in observations; ``time`` is the operational time under which they were expected. O(pieces + hosts)."""
        held, pieces = time.week, expected.pieces
        if held is None:
            msg = "observations must be expected under a week, be it a neutral one"
            raise ValueError(msg)
        host = time.host[time.cluster[expected.row]]
        span = held.between(host, pieces.start, pieces.end)
        short = (observations.end - observations.start)[pieces.gap] <= LONGEST
        rows = np.flatnonzero(short & (span > 0) & self.rhythmic[host])
        host, start, end = host[rows], pieces.start[rows], pieces.end[rows]
        weight = expected.exposure[rows] / span[rows]
        hosts = len(self.rhythmic)
        self.exposure += _hours(hosts, host, start, end, weight)
        self.changes += _hours(hosts, host, start, end, weight * expected.found[rows]) * held.hourly

    def clear(self) -> None:
        """Forget all observations: a new round of EM starts."""
        self.changes[:] = 0.0
        self.exposure[:] = 0.0


def _hours(hosts: int, host: IntArray, start: FloatArray, end: FloatArray, weight: FloatArray) -> FloatArray:
    """Σ weight · (seconds of the gap within the hour), by differences, over two weeks that are folded into one."""
    _, first, into = locate_hour(start)
    passed = into + (end - start)
    ahead = np.floor(passed / HOUR).astype(np.int64)
    last = first + ahead
    cell, cells = host * (2 * HOURS), hosts * 2 * HOURS
    out = np.bincount(cell + first, weight * np.minimum(end - start, HOUR - into), cells)
    crossing = np.flatnonzero(ahead)
    out += np.bincount((cell + last)[crossing], (weight * (passed - ahead * HOUR))[crossing], cells)
    rises = np.bincount((cell + first + 1)[crossing], weight[crossing], cells)
    rises -= np.bincount((cell + last)[crossing], weight[crossing], cells)
    whole = np.maximum(np.cumsum(rises.reshape(hosts, 2 * HOURS), axis=1), 0.0) * HOUR
    both = out.reshape(hosts, 2 * HOURS) + whole
    return np.asarray(both[:, :HOURS] + both[:, HOURS:])
