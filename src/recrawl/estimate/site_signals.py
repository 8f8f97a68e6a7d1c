"""Dates and signals of sites: known change times, changefreq, and how far sources are trusted.

**changefreq** of a sitemap gives a prior of the change rate (SHARC Definition 6.1). Categories C₀ … C_n (always,
hourly, …, never) have intervals T₀ < … < T_{n−1}; "never" has none. With c = ln(1/τ):

    λ₀ = 1,   λ_i = c·(T_{i−1} + T_i)/(2·T_{i−1}·T_i),   λ_n = c/(2·T_{n−1}),

the mean of the bounds c/T_{i−1} and c/T_i of a category. Two readings (reading 003.36): *literal*, c = ln(1/τ), by
which a page stays unchanged over its interval with probability τ; *corrected*, c = ln(1/(1 − τ)), by which it changes
in it with probability τ, as the text wants, capped at λ₀, since hourly would exceed always. Sites exaggerate, and many
say "daily" of everything, so the prior is a weak one: half a change's worth.

**Known change times** become observations, so that every estimator can use them. An observation means "changed at some
time since the observation before". A known time of change adds that nothing changed between it and the observation.
Both are expressed by splitting the gap: a moment that ends in a change, and a quiet rest. Up to a constant the
likelihood of that is λ·e^{−λτ}, the exact one (algorithms §5).

From complete logs (git histories, feeds) the rate is N changes over the time T (SHARC 6.2). The thesis counts changes
in slots of Δ and divides by their number; divided by Δ it is N/T (reading 003.37).

**Dates.** The statements of a source are compared with our own observations, and counted per host. A statement (c, L)
says at the time c: "the page last changed at L". It is **false** if L is after c, if the gap between observations that
contains L was found unchanged, or if a gap between L and c was found changed; else it is **true**, if an observation
could have contradicted it. Two shares determine the trust in a source for a group of pages (a host):

    moved = P(true | the last gap before c, or the one with L, was found changed): does the date move with the page?
    kept  = P(true | that gap was found unchanged): does it stand still with it?
    w = E[moved]·E[kept],   each a Beta(1, 1) that counted its true and false statements.

Both are needed: a date that never moves is right on every quiet page, and one that is always "now" on every lively one.
The weight is 0 (the source is off) if w < 0.7, or if most statements say "this very moment" (within 5 seconds).
Counters of two periods add up.

**Signals** (algorithms §4, after Busa-Fekete et al. 2025) are a sitemap date that moved, an entry in a feed, a sibling
that changed. Each change of a page is signalled with some probability, and there are false signals. After the time t
and n signals a page is unchanged with probability e^{−ℓ}, ℓ = αt + κn: α is the rate of unsignalled changes,
κ = ln(γ/b) the weight of a signal, with γ the rate of signals and b that of false ones. An observation finds a change
with probability 1 − e^{−ℓ}. EM divides the found changes between both: with E = z·ℓ/(1 − e^{−ℓ})

    α ← (Σ E·αt/ℓ + a₀)/(Σ t + b₀) of a page,      κ ← (Σ E·κn/ℓ + 1)/(Σ n + 1) of a host.

Useless signals get a κ of 0.15 to 0.4 this way, so signals of a host count only after a likelihood-ratio test against
κ = 0: trusted blindly, even good signals are worse than none.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal, NamedTuple

import numpy as np
import numpy.typing as npt

from recrawl.model import (
    ANSWERED,
    BoolArray,
    ByteArray,
    ChangeKind,
    FloatArray,
    GammaBelief,
    GridBelief,
    Histories,
    IntArray,
    Outcome,
    Verdict,
    Visits,
)
from recrawl.model.arrays import offsets_of, starts_of_runs
from recrawl.time import DAY

Reading = Literal["literal", "corrected"]

CONFIDENCE = 0.95
"""τ of the thesis."""
INTERVALS = (60.0, 3600.0, DAY, 7.0 * DAY, 30.0 * DAY, 365.0 * DAY)
"""Seconds of always (the thesis' delay between two visits, a minute), hourly, daily, weekly, monthly, yearly."""
UNSAID = 0
"""The number of a page without a changefreq; 1 is always, 7 never (``formats.sitemap_feed.ChangeFrequency``)."""


def category_rates(intervals: npt.ArrayLike, tau: float = CONFIDENCE, reading: Reading = "literal") -> FloatArray:
    """λ of each category, one more than there are intervals, per unit of time; λ₀ is 1.

    >>> category_rates([1.0, 60.0], 0.9).round(6).tolist()
    [1.0, 0.053558, 0.000878]
    """
    bound = np.asarray(intervals, dtype=np.float64)
    if not (len(bound) and 0.0 < tau < 1.0 and bound[0] > 0 and (np.diff(bound) > 0).all()):
        msg = f"intervals must be positive and ascend, and 0 < tau < 1; got {bound.tolist()} and {tau}"
        raise ValueError(msg)
    strength = -np.log(tau) if reading == "literal" else -np.log1p(-tau)
    limits = strength / bound
    means = (limits + np.append(limits[1:], 0.0)) / 2.0
    rates = np.concatenate([[1.0], means])
    return rates if reading == "literal" else np.minimum(rates, 1.0)


def rates(changefreq: IntArray, reading: Reading = "literal", tau: float = CONFIDENCE) -> FloatArray:
    """λ of each page, per second, from the category that its sitemap claims; NaN where nothing is said.

    The unit of time of the definition is the interval of "always", so that its λ₀ = 1 is one change in it.

    >>> [round(1 / rate / DAY, 1) for rate in rates(np.array([3, 4])).tolist()]  # daily, weekly
    [1.6, 34.1]
    """
    unit = INTERVALS[0]
    table = np.append(np.nan, category_rates(np.array(INTERVALS) / unit, tau, reading) / unit)
    known = (changefreq >= 0) & (changefreq < len(table))
    return np.asarray(table[np.where(known, changefreq, UNSAID)])


def prior(
    changefreq: IntArray, otherwise: GammaBelief, reading: Reading = "literal", *, strength: float = 0.5
) -> GammaBelief:
    """Gamma(s, s/λ) where a category is claimed, of the mean rate it says.

    ``otherwise`` (one row per page) elsewhere.
    """
    said = rates(changefreq, reading)
    known = np.isfinite(said)
    return GammaBelief(np.where(known, strength, otherwise.a), np.where(known, strength / said, otherwise.b))


def hint(belief: GridBelief, rate: FloatArray) -> GridBelief:
    """The belief under a prior around what is claimed.

    A log-normal with σ = 2, so wide that a few observations outgrow it.

    ``rate[i]`` is what is claimed of page i, per second; NaN or 0 where nothing is. A claim that is off by a factor
    of seven costs no more than half a nat. Memory in bounded blocks.
    """
    weights = belief.weights.copy()
    logs = np.log(belief.rates)
    for start in range(0, len(belief), _BLOCK):
        block = slice(start, start + _BLOCK)
        with np.errstate(invalid="ignore", divide="ignore"):
            claimed = np.log(rate[block])
        rows = np.flatnonzero(np.isfinite(claimed))
        pull = np.exp(-0.5 * np.square((logs - np.clip(claimed[rows, None], logs[0], logs[-1])) / _SPREAD))
        mixed = weights[block][rows] * pull
        weights[start + rows] = (mixed / mixed.sum(axis=1, keepdims=True)).astype(np.float32)
    return GridBelief(belief.rates, weights)


_SPREAD = 2.0
"""Standard deviation of ln λ around a claim."""
_BLOCK = 65_536


MOMENT = 1.0
"""Seconds in which a change of known time is taken to have happened."""


def is_exact(visits: Visits) -> BoolArray:
    """Which visits are changes of known time: somebody logged them (``ChangeKind.EXACT``)."""
    return np.asarray((visits.verdict == Verdict.CHANGED) & ((visits.kinds & np.uint16(ChangeKind.EXACT)) != 0))


def as_known_at(visits: Visits, now: float) -> Visits:
    """The visits up to ``now``, and what logs say about the time since.

    A log names each change, so a page did not change between two of its events. If ``now`` lies between them, the page
    was as the earlier one left it, and an observation at ``now`` says so. Without it a log would end with the last
    change of each page before ``now``, and every page would seem to change far more often than it did. Visits that
    somebody made say nothing about the time after them. The visit that closes a log has the same time for all its
    pages, so pages that never changed are recognised by it. O(n log n), O(n) without logs.
    """
    later = visits.time > now
    if not bool(later.any()):
        return visits
    exact = is_exact(visits)
    if not bool(exact.any()):
        return visits.take(~later)
    told = visits.sorted()
    later, exact = told.time > now, is_exact(told)
    follows = ~starts_of_runs(told.page)
    quiet = (told.verdict == Verdict.UNCHANGED) & follows
    closings = np.unique(told.time[quiet & np.append(np.False_, exact[:-1])])
    next_event = np.flatnonzero(later & follows & np.append(np.False_, ~later[:-1]))
    logged = exact[next_event] | (quiet[next_event] & np.isin(told.time[next_event], closings))
    last = next_event[logged] - 1
    last = last[told.time[last] < now]
    silent = Visits.of(
        told.page[last], np.full(len(last), now), outcome=_as_left(told.outcome[last]), verdict=Verdict.UNCHANGED
    )
    return Visits.concatenate([told.take(~later), silent]).sorted()


def exact_times_as_observations(visits: Visits) -> Visits:
    """Exact changes as observations: a moment before each of them one that found the page as it had been.

    A log names each change, so nothing changed between an exact change and the visit before it. Taken for ordinary
    observations, visits made only at changes would make any page seem to change without end. Anyone who learns from
    visits (estimators and policies alike) receives them in this form, so that all have the same beliefs.

    The visit that opens the history of a page says nothing about change, so nothing is put before it. Visits that are
    not exact stay as they are. The answer is sorted by page and time where anything is added. O(n log n), O(n) if
    sorted; ``visits`` itself where nothing is exact.
    """
    if not bool(is_exact(visits).any()):
        return visits
    told = visits.sorted()
    before = np.diff(told.time, prepend=-np.inf)
    at = np.flatnonzero(is_exact(told) & ~starts_of_runs(told.page) & (before > 0))
    silent = Visits.of(
        told.page[at],
        told.time[at] - np.minimum(MOMENT, before[at] / 2.0),
        outcome=_as_left(told.outcome[at - 1]),
        verdict=Verdict.UNCHANGED,
    )
    return Visits.concatenate([told, silent]).sorted()


def _as_left(outcome: ByteArray) -> ByteArray:
    """What an observation of pages finds after these events: the page is there, or gone."""
    return np.where(outcome <= ANSWERED, outcome, np.uint8(Outcome.FETCHED))


def as_dated(histories: Histories, gap: IntArray, age: FloatArray) -> Histories:
    """Changed gaps of which the last change is known, as observations: a moment with that change, and a quiet ``age``.

    ``gap`` are the positions of such gaps, each once; ``age`` the seconds from the last change to the observation that
    closed it. What was before that change within the gap nobody knows, so it is told of no more. O(gaps).
    """
    if not len(gap):
        return histories
    order = np.argsort(gap)
    moment = np.full(len(gap), MOMENT)
    return _retold(histories, gap[order], (moment, np.maximum(age[order], MOMENT)), (True, False))


def _retold(
    histories: Histories, split: IntArray, lengths: tuple[FloatArray, FloatArray], changed: tuple[bool, bool]
) -> Histories:
    """The histories with each gap at ``split`` (ascending) replaced by two of these lengths and flags."""
    pieces = np.ones(len(histories.gaps), dtype=np.int64)
    pieces[split] = 2
    last = np.cumsum(pieces) - 1
    gaps, flags = np.repeat(histories.gaps, pieces), np.repeat(histories.changed, pieces)
    for place, length, flag in zip((last[split] - 1, last[split]), lengths, changed, strict=True):
        gaps[place], flags[place] = length, flag
    offsets = offsets_of(np.repeat(histories.row_of_gap(), pieces), len(histories))
    times = histories.first_visit, histories.last_visit, histories.last_change
    return Histories(histories.page, offsets, gaps, flags, *times)


def rate(changes: npt.ArrayLike, observed: npt.ArrayLike) -> FloatArray:
    """N/T per unit of ``observed``; NaN where nothing was observed.

    >>> rate(11, 40.0).tolist()
    0.275
    """
    n, t = np.asarray(changes, dtype=np.float64), np.asarray(observed, dtype=np.float64)
    return np.asarray(np.divide(n, t, out=np.full(np.broadcast(n, t).shape, np.nan), where=t > 0))


BELOW_THIS_OFF = 0.7
"""The minimum weight of a source that is used."""
INSTANT = 5.0
"""Seconds between L and c within which L is "now"; so far may clocks differ."""

BEFORE_ALL_OBSERVATIONS = -1
AFTER_ALL_OBSERVATIONS = -2


class SourceStatements(NamedTuple):
    """What one source says: at ``time`` it said that ``page`` last changed at ``changed_at``. Columns, any order.

    For Last-Modified, ``time`` is that of the visit; for a sitemap or feed, when that was fetched. Statements that are
    not finite, or at the epoch or before it (a clock nobody set), say nothing.
    """

    page: IntArray
    time: FloatArray
    changed_at: FloatArray


class CheckedStatements(NamedTuple):
    """Statements about pages with a history, each held against the observations."""

    row: IntArray
    """Row of the page in the histories."""
    time: FloatArray
    changed_at: FloatArray
    """Not after ``time``, unless false for that reason."""
    gap: IntArray
    """The gap that contains ``changed_at``, or one of the two constants above."""
    tested: BoolArray
    """Whether an observation, or the order of times, could show it false."""
    true: BoolArray
    """Whether nothing did."""
    about_change: BoolArray
    """Whether the gap it was tested by was found changed."""


def check(histories: Histories, statements: SourceStatements) -> CheckedStatements:
    """Hold each statement against the observations of its page.

    O(m + s log observations) for m gaps and s statements.
    """
    row, known = _rows(histories, statements.page)
    known &= np.isfinite(statements.time) & np.isfinite(statements.changed_at) & (statements.changed_at > 0.0)
    row, said, claimed = row[known], statements.time[known], statements.changed_at[known]
    ahead = claimed > said + INSTANT
    claimed = np.where(ahead, claimed, np.minimum(claimed, said))
    all_observations = _ObservationTimes.of(histories)
    observations = np.diff(all_observations.offsets)[row]
    seen = all_observations.before(row, said, including=True)  # observations 0 … seen − 1 came before the statement
    place = all_observations.before(row, claimed, including=False)  # the observation that closes the gap of L
    closed = np.maximum(place, seen - 1)  # the last observation that can tell
    inside = place < observations
    # changes found by observations 1 … i of a row; observations 0 … i of row r close the gaps offsets[r] … offsets[r] +
    # i − 1
    found = np.concatenate([[0], np.cumsum(histories.changed)])
    head = histories.offsets[row]
    last = np.minimum(closed, np.maximum(observations - 1, 0))
    after = found[head + last] - found[head + np.minimum(place, last)]
    at_gap = np.where(inside & (place > 0), head + place - 1, 0)
    changed = np.append(histories.changed, np.False_)
    contained = (place == 0) | changed[at_gap]
    tested = ahead | (inside & (last > 0))
    about = ahead | changed[np.where(tested & (last > 0), head + last - 1, len(histories.gaps))]
    gap = np.where(inside, np.where(place > 0, at_gap, BEFORE_ALL_OBSERVATIONS), AFTER_ALL_OBSERVATIONS)
    return CheckedStatements(row, said, claimed, gap, tested, ~ahead & (~inside | (contained & (after == 0))), about)


@dataclass(frozen=True, slots=True)
class SourceTrust:
    """Counters of true and false statements of one source. One row per group of pages."""

    group: IntArray
    """Ids, ascending."""
    moved: IntArray
    """Statements (true, false) tested by a changed gap. Shape (n, 2)."""
    kept: IntArray
    """Statements (true, false) tested by an unchanged gap. Shape (n, 2)."""
    instant: IntArray
    """Statements (not "now", "now"). Shape (n, 2)."""

    def __len__(self) -> int:
        return len(self.group)

    def weights(self) -> FloatArray:
        """The weight w of each group, 0 where it is off.

        >>> told_well = np.array([[18, 0]])
        >>> SourceTrust(np.array([1]), told_well, told_well, told_well).weights().round(4).tolist()  # (19/20)²
        [0.9025]
        """
        moved, kept = ((1.0 + counts[:, 0]) / (2.0 + counts.sum(axis=1)) for counts in (self.moved, self.kept))
        weight = moved * kept
        on = (weight >= BELOW_THIS_OFF) & (self.instant[:, 1] <= self.instant[:, 0])
        return np.where(on, weight, 0.0)

    def of(self, group: IntArray) -> FloatArray:
        """The weight of each of these groups; 0 for one without statements. O(n log groups)."""
        if not len(self):
            return np.zeros(len(group))
        place = np.minimum(np.searchsorted(self.group, group), len(self) - 1)
        return np.where(self.group[place] == group, self.weights()[place], 0.0)

    def plus(self, other: SourceTrust) -> SourceTrust:
        """The counters of both: of two periods, or of two workers."""
        ids, index = np.unique(np.concatenate([self.group, other.group]), return_inverse=True)
        sums = []
        for mine, theirs in ((self.moved, other.moved), (self.kept, other.kept), (self.instant, other.instant)):
            total = np.zeros((len(ids), 2), dtype=np.int64)
            np.add.at(total, index, np.concatenate([mine, theirs]))
            sums.append(total)
        return SourceTrust(ids, *sums)


def count(checked: CheckedStatements, group: IntArray) -> SourceTrust:
    """Counters of the groups with statements; ``group[i]`` is the group of row i of the histories."""
    ids, index = np.unique(group[checked.row], return_inverse=True)
    now = np.abs(checked.time - checked.changed_at) <= INSTANT
    columns = []
    for rows, good in (
        (checked.tested & checked.about_change, checked.true),
        (checked.tested & ~checked.about_change, checked.true),
        (np.ones(len(index), dtype=np.bool_), ~now),
    ):
        both = [np.bincount(index[rows & side], minlength=len(ids)) for side in (good, ~good)]
        columns.append(np.stack(both, axis=1).astype(np.int64).reshape(len(ids), 2))
    return SourceTrust(ids.astype(np.int64), *columns)


def _rows(histories: Histories, page: IntArray) -> tuple[IntArray, BoolArray]:
    """The row of each page, and whether it has one."""
    if not len(histories):
        return np.zeros(len(page), dtype=np.int64), np.zeros(len(page), dtype=np.bool_)
    row = np.minimum(np.searchsorted(histories.page, page), len(histories) - 1)
    return row, np.asarray(histories.page[row] == page)


class _ObservationTimes(NamedTuple):
    """The times of all observations, the opening ones included; row i has ``times[offsets[i]:offsets[i+1]]``."""

    offsets: IntArray
    times: FloatArray

    @classmethod
    def of(cls, histories: Histories) -> _ObservationTimes:
        opened = ~np.isnan(histories.first_visit)
        offsets = histories.offsets + np.append(0, np.cumsum(opened))
        times = np.empty(offsets[-1])
        opens = np.zeros(len(times), dtype=np.bool_)
        opens[offsets[:-1][opened]] = True
        times[opens], times[~opens] = histories.first_visit[opened], histories.observation_times()
        return cls(offsets, times)

    def before(self, row: IntArray, time: FloatArray, *, including: bool) -> IntArray:
        """How many observations of each row came before each time, or at it if ``including``.

        All rows at once, by bisection.
        """
        low, high = self.offsets[row], self.offsets[row + 1]
        first = low
        while bool((low < high).any()):
            middle = (low + high) // 2
            observation = self.times[np.minimum(middle, len(self.times) - 1)]
            later = (low < high) & ((observation <= time) if including else (observation < time))
            low, high = np.where(later, middle + 1, low), np.where(later, high, np.minimum(high, middle))
        return np.asarray(low - first)


LEVEL = 0.01
"""How likely useless signals may pass the test."""
_ROUNDS = 60
_OWN = 0.5
"""a₀: weight of all pages of a host in the estimate of one of them, in changes."""
_FEWEST = 5
"""Observations with signals below which nothing is tested."""
_TINY = 1e-300


@dataclass(frozen=True, slots=True)
class SignalledGaps:
    """Observations that closed a gap, with the signals received in it. Columns of equal length."""

    page: IntArray
    """Any numbering 0 … pages − 1."""
    gap: FloatArray
    """Seconds, operational if the clock runs so."""
    signals: IntArray
    """Signals within the gap."""
    changed: BoolArray


@dataclass(frozen=True, slots=True)
class SignalReliability:
    """What signals are worth on each host."""

    weight: FloatArray
    """κ of each host, ≥ 0, whether trusted or not. Shape (hosts,)."""
    statistic: FloatArray
    """Twice the gain in log-likelihood over κ = 0."""
    trusted: BoolArray
    """Whether the test finds that the signals of the host carry information."""
    quiet_rate: FloatArray
    """α of each page: changes per second that nobody signals. Shape (pages,)."""

    def used(self) -> FloatArray:
        """κ where trusted, else 0."""
        return np.where(self.trusted, self.weight, 0.0)


def learn(observations: SignalledGaps, host: IntArray, *, level: float = LEVEL) -> SignalReliability:
    """κ of hosts 0, 1, … from the observations of their pages; ``host[i]`` is that of page i. O(observations · rounds).

    The test is one-sided: with κ = 0 half of the statistics are 0, the rest χ² with one degree of freedom.

    >>> observations = SignalledGaps(np.zeros(400, int), np.ones(400), np.arange(400) % 2, np.arange(400) % 2 == 1)
    >>> told = learn(observations, np.zeros(1, int))
    >>> bool(told.trusted[0]), bool(told.weight[0] > 3)
    (True, True)
    """
    from scipy import special

    hosts = int(host.max(initial=-1)) + 1
    of = host[observations.page]
    without, _ = _fit(observations, host, np.zeros(hosts))
    with_, weight = _fit(observations, host, np.ones(hosts))
    gain = _log_likelihood(observations, with_, weight[of]) - _log_likelihood(observations, without, np.zeros(len(of)))
    statistic = np.maximum(2.0 * np.bincount(of, gain, hosts), 0.0)
    heard = np.bincount(of, observations.signals > 0, hosts) >= _FEWEST
    trusted = heard & (0.5 * special.erfc(np.sqrt(statistic / 2.0)) < level)
    return SignalReliability(weight, statistic, trusted, with_)


def _fit(observations: SignalledGaps, host: IntArray, weight: FloatArray) -> tuple[FloatArray, FloatArray]:
    """EM from equal rates and this κ; a κ of 0 stays 0."""
    hosts, pages, of = len(weight), len(host), host[observations.page]
    seconds = np.bincount(of, observations.gap, hosts)
    typical = ((np.bincount(of, observations.changed, hosts) + _OWN) / np.maximum(seconds, _TINY))[host]
    watched, heard = (
        np.bincount(observations.page, observations.gap, pages),
        np.bincount(of, observations.signals, hosts),
    )
    rate = typical.copy()
    for _ in range(_ROUNDS):
        own, told = rate[observations.page] * observations.gap, weight[of] * observations.signals
        hidden = np.where(observations.changed, 1.0 / -np.expm1(-np.maximum(own + told, _TINY)), 0.0)
        rate = (np.bincount(observations.page, hidden * own, pages) + _OWN) / (watched + _OWN / typical)
        weight = np.where(weight > 0, (np.bincount(of, hidden * told, hosts) + 1.0) / (heard + 1.0), 0.0)
    return rate, weight


def _log_likelihood(observations: SignalledGaps, rate: FloatArray, weight: FloatArray) -> FloatArray:
    stale = np.maximum(rate[observations.page] * observations.gap + weight * observations.signals, _TINY)
    return np.where(observations.changed, np.log(-np.expm1(-stale)), -stale)
