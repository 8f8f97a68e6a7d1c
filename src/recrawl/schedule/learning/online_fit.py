"""Learning from observations day by day: beliefs, clocks and priors as one fold that does not depend on batches.

The state after a day is a function of all observations up to it, in whatever batches they arrived:

 * observations wait until their day is over (a shorter period at first, see below). Then they are folded together, by
   page id and time: first into the clocks (one bulk edit speeds up the siblings), then, in operational time, into the
   beliefs;
 * on a growing schedule (25 % more observations, or 10 % more pages) there is a *review*: clusters, calendar and priors
   are estimated from scratch, and all observations are folded into the new priors;
 * observations of the current day change the belief about their own page at once, provisionally: at the end of the day
   that is undone and computed properly;
 * an observation that arrives after its day was folded makes all days be folded again.

So recovery is replay, and the result of a query does not depend on earlier queries.

A web that changes within minutes cannot wait for midnight: until then the overall speed of its pages is unknown, even
that such high rates exist. So a period also ends whenever the time since the first observation has doubled, from a
minute on, until it is a day. A crawl whose pages rest for a day or more has only days. The ends of periods depend on
the observations, not on their batches.

Signals of change count for nothing until they have proved true (algorithms §4). A signal is one moment at which an
outside source reported a change of a page: its date in a sitemap moved past the last observation, a feed has an entry
for it, a sibling changed. Reliability differs from host to host and is learned from the observations that followed
(``estimate.site_signals``).
"""

from __future__ import annotations

import copy
from collections.abc import Callable

import numpy as np

from recrawl.estimate.operational.operational_factors import ClosedGaps, known_births
from recrawl.estimate.site_signals import SignalledGaps, learn
from recrawl.model import AnyArray, BoolArray, FloatArray, Histories, IntArray
from recrawl.model.arrays import offsets_of
from recrawl.schedule.learning.belief_state import BeliefState
from recrawl.schedule.learning.observation_columns import ClosedGapColumns, GrowingColumns, LastVisits
from recrawl.schedule.learning.page_clocks import PageClocks
from recrawl.time import DAY

_FIRST = 60.0
"""Seconds from the first observation to the end of the first period."""
_EARLY = np.append(_FIRST * np.exp2(np.arange(int(np.log2(DAY / _FIRST)) + 1)), np.inf)


class LearningPeriods:
    """The ends of periods; those of a young crawl are known from the gap between observations that ended first.

    >>> periods = LearningPeriods()
    >>> periods.ends(np.array([90.0])).tolist()
    [86400.0]
    >>> periods.begin(start=np.array([0.0, 5.0]), end=np.array([70.0, 20.0]))
    True
    >>> periods.ends(np.array([90.0])).tolist()
    [125.0]
    """

    def __init__(self) -> None:
        self._first = (np.inf, np.inf)
        """End and start of the gap that ended first."""

    def begin(self, *, start: FloatArray, end: FloatArray) -> bool:
        """Add gaps between observations, at least one; return whether the ends of periods moved."""
        earliest = float(end.min())
        found = (earliest, float(start[end == earliest].min()))
        if found >= self._first:
            return False
        self._first = found
        return True

    def ends(self, time: FloatArray) -> FloatArray:
        """The end of the period in which each of these times lies. O(times)."""
        midnight = (np.floor(time / DAY) + 1.0) * DAY
        start = self._first[1]
        if not np.isfinite(start):
            return np.asarray(midnight)
        early = start + _EARLY
        return np.minimum(midnight, early[np.searchsorted(early, time, side="right")])

    def end(self, time: float) -> float:
        """The end of the period in which one time lies."""
        return float(self.ends(np.array([time]))[0])


_EXPLAINED = 0.5
"""κn from which on signals explain a change, so that it is no evidence on the rate of unsignalled changes."""


class SignalState:
    """Signals and how reliable they are by host. 16 bytes per distinct signal.

    A fold over signals and observations; hosts are any numbers.
    """

    def __init__(self) -> None:
        self._signals = np.empty(0, np.complex128)
        """Row and time of each signal once, in order: complex numbers sort by their real part, then by the other."""
        self._new = GrowingColumns({"signal": np.complex128})
        """Signals since the last count, with repetitions."""
        self.forget()

    def forget(self) -> None:
        """Forget the learned reliabilities; keep the signals."""
        self._hosts = np.empty(0, np.int64)
        self._weight = np.empty(0)
        self._typical = np.empty(0)
        self._signalled: FloatArray = np.empty(0)
        self._observed: FloatArray = np.empty(0)

    def add(self, row: IntArray, time: FloatArray) -> None:
        """Add signals about rows; a repeated one counts once."""
        self._new.append(signal=row + 1j * time)

    def any(self) -> bool:
        """Whether there is any signal."""
        return len(self._signals) > 0 or len(self._new) > 0

    def trusted(self) -> bool:
        """Whether any host's signals are used."""
        return bool((self._weight > 0).any())

    def count(self, row: IntArray, start: FloatArray, end: FloatArray) -> IntArray:
        """Signals about each row in (start, end]. O(m log signals), and s log s of all s signals if some are new."""
        if len(self._new):
            self._signals = np.unique(np.concatenate([self._signals, self._new["signal"]]))
            self._new = GrowingColumns({"signal": np.complex128})
        first, last = (np.searchsorted(self._signals, row + 1j * at, side="right") for at in (start, end))
        return np.asarray(np.maximum(last - first, 0), dtype=np.int64)

    def learn(self, observations: ClosedGaps, passed: FloatArray, host: IntArray) -> None:
        """How far the signals of each host can be trusted, from all observations; ``host`` is that of each row."""
        if not self.any():
            return
        heard = self.count(observations.row, observations.start, observations.end)
        self._hosts, own = np.unique(host, return_inverse=True)
        found = learn(SignalledGaps(observations.row, passed, heard, observations.changed), own)
        self._weight = found.used()
        self._signalled = np.bincount(observations.row, heard, len(host)).astype(np.float64)
        self._observed = np.bincount(observations.row, observations.end - observations.start, len(host)).astype(
            np.float64
        )
        signals, observed = (np.bincount(own, column, len(self._hosts)) for column in (self._signalled, self._observed))
        self._typical = np.divide(signals + 0.5, observed, out=np.zeros(len(signals)), where=observed > 0)

    def weight(self, host: IntArray) -> FloatArray:
        """κ of signals about pages of these hosts; 0 where they are not trusted."""
        return self._of_host(self._weight, host)

    def signalled_rate(self, row: IntArray, host: IntArray) -> FloatArray:
        """γ − b = γ(1 − e^{−κ}): changes of each row that are signalled, per second; a page is as its host at first."""
        typical = self._of_host(self._typical, host)
        known = row < len(self._signalled)
        place = np.where(known, row, 0)
        signals, observed = (np.where(known, column[place], 0.0) for column in (self._signalled, self._observed))
        with np.errstate(divide="ignore", invalid="ignore"):
            rate = np.where(typical > 0, (signals + 1.0) / (observed + 1.0 / typical), 0.0)
        return np.asarray(-rate * np.expm1(-self.weight(host)))

    def explain(self, observations: ClosedGaps, host: IntArray) -> BoolArray:
        """Observations whose change was signalled well enough; ``host`` is that of each observation."""
        if not self.trusted():
            return np.zeros(len(observations), dtype=np.bool_)
        heard = self.count(observations.row, observations.start, observations.end)
        return np.asarray(observations.changed & (self.weight(host) * heard > _EXPLAINED))

    def _of_host(self, values: FloatArray, host: IntArray) -> FloatArray:
        if not len(self._hosts):
            return np.zeros(len(host))
        place = np.minimum(np.searchsorted(self._hosts, host), len(self._hosts) - 1)
        return np.where(self._hosts[place] == host, values[place], 0.0)


_MORE_OBSERVATIONS = 1.25
_MORE_PAGES = 1.1
_UNLIKELY = 1e-3
"""Probabilities are taken for no less, so that one surprise does not decide alone."""


class OnlineFit:
    """The fold. Memory beside beliefs and clocks: 30 bytes per observation, plus reserve for growth."""

    def __init__(self, last_visits: LastVisits, start: Callable[[], tuple[BeliefState, PageClocks]]) -> None:
        """``start`` makes beliefs and clocks without pages and observations."""
        self._last_visits = last_visits
        self._start = start
        self._log = GrowingColumns(
            {
                "row": np.int32,
                "end": np.float64,
                "seconds": np.float64,
                "calendar": np.float32,
                "rate": np.float32,
                "changed": np.bool_,
                "folded": np.bool_,
            }
        )
        """All observations, kept for good, so in the narrowest types. Seconds since the epoch need 64 bits."""
        self.signals = SignalState()
        self.latest = 0.0
        """The latest time of any observation or query."""
        self._periods = LearningPeriods()
        self._is_replica = False
        """Whether periods are folded elsewhere: then observations are learned from in passing, and forgotten."""
        self._start_over()

    def _start_over(self) -> None:
        self.beliefs, self.clocks = self._start()
        self.signals.forget()
        self._log["folded"][:] = False
        self._taken = 0
        """Observations in the log that were observed; those of periods that are not over are not folded yet ..."""
        self._all_folded = 0
        """... and all before this one are."""
        self._late = False
        self._folded_until = -np.inf
        """Periods that ended by then were folded."""
        self._undo: list[tuple[IntArray, AnyArray]] = []
        self._moved = np.empty(0, np.bool_)
        """Rows that have something to undo."""
        self._observations_folded = self._observations_reviewed = self._pages_reviewed = 0
        self._by_discovery = np.empty(0, np.int64)

    def tell(self, closed: ClosedGapColumns) -> None:
        """Add observations. O(observations)."""
        if not len(closed.row):
            return
        nothing = np.zeros(len(closed.row))
        self._log.append(
            row=closed.row,
            end=closed.end,
            seconds=closed.seconds,
            calendar=nothing,
            rate=nothing,
            changed=closed.changed,
            folded=nothing,
        )
        moved = self._periods.begin(start=closed.end - closed.seconds, end=closed.end)
        self._late |= (moved and self._observations_folded > 0) or self._is_late(closed.end)
        self.latest = max(self.latest, float(closed.end.max()))

    def add_signals(self, row: IntArray, time: FloatArray) -> None:
        """Add signals of change; repeated ones change nothing. O(signals), and s log s of all s signals."""
        new = self.signals.count(row, np.nextafter(time, -np.inf), time) == 0
        self.signals.add(row[new], time[new])
        self._late |= self._is_late(time[new])

    def catch_up(self, now: float) -> None:
        """Bring beliefs and clocks up to ``now``: fold finished periods, apply the current period provisionally.

        O(observations since the last call), and once a period O(observations of that period).
        """
        self.latest = max(self.latest, now)
        if self._late and not self._is_replica:
            self._start_over()
        self._grow()
        new = np.arange(self._taken, len(self._log))
        self._taken = len(self._log)
        if self._is_replica:
            self._predict_ahead(new)
            self._log, self._taken = self._log.empty(), 0
            return
        if self._periods.end(self._folded_until) <= self.latest or (self._ends(new) <= self.latest).any():
            new = self._fold_what_is_over(new)
        self._folded_until = self.latest
        self._predict_ahead(new)

    def replica(self) -> OnlineFit:
        """A twin for :class:`~recrawl.schedule.policy.ReplicablePolicy`: it has no log, and never folds or reviews."""
        twin = copy.copy(self)
        nothing = {"_log": self._log.empty(), "_taken": 0, "_all_folded": 0, "_undo": []}
        vars(twin).update(nothing, _is_replica=True, _moved=self._moved[:0], _by_discovery=self._by_discovery[:0])
        twin.beliefs, twin.clocks = self.beliefs.replica(), self.clocks.replica()
        return twin

    # -- inside -------------------------------------------------------------------------------

    def _ends(self, positions: IntArray) -> FloatArray:
        """When the period of each of these observations is over."""
        return self._periods.ends(self._log["end"][positions])

    def _is_late(self, time: FloatArray) -> bool:
        """Whether one of these times is in a period that was already folded."""
        return bool((self._periods.ends(time) <= self._folded_until).any())

    def _fold_what_is_over(self, new: IntArray) -> IntArray:
        """Fold the finished periods.

        Returns the observations to apply provisionally; these are ``new`` if no period finished.
        """
        waiting = self._all_folded + np.flatnonzero(~self._log["folded"][self._all_folded :])
        ends = self._ends(waiting)
        over = ends <= self.latest
        if not over.any():
            return new
        self._put_back()
        for one in np.unique(ends[over]).tolist():
            self._fold(waiting[ends == one], one)
        waiting = waiting[~over]
        self._all_folded = int(waiting[0]) if len(waiting) else self._taken
        return waiting

    def _grow(self) -> None:
        """Rows for the pages that were added since."""
        have = len(self.beliefs)
        if have == len(self._last_visits):
            return
        new = self._last_visits.pages.take(slice(have, None))
        start = float(np.min(self._last_visits.pages.discovered))
        self.clocks.append(new.host, np.where(new.discovered >= start + DAY, new.discovered, np.nan))
        self.beliefs.append(new, (new.host, self.clocks.cluster[have:]))

    def _fold(self, positions: IntArray, end: float) -> None:
        """The observations of the period that ends at ``end``."""
        self._date()
        until = float(np.ceil(end / DAY) * DAY)
        positions = positions[self._canonical(positions)]
        observations = self._observations(positions)
        self._test_calendar(observations, until)
        rates = self._rates_after(observations)
        self._log["rate"][positions], self._log["calendar"][positions] = (
            rates,
            self.clocks.fold(observations, rates, until),
        )
        self._believe(observations)
        self._log["folded"][positions] = True
        self._observations_folded += len(observations)
        discovered = self._last_visits.pages.discovered[self._by_discovery]
        known = max(int(np.searchsorted(discovered, end)), 1)
        if (
            self._observations_folded >= _MORE_OBSERVATIONS * self._observations_reviewed
            or known >= _MORE_PAGES * self._pages_reviewed
        ):
            self._observations_reviewed, self._pages_reviewed = self._observations_folded, known
            self._review(until, known)

    def _test_calendar(self, observations: ClosedGaps, until: float) -> None:
        """Predict observations with and without the calendar, before anything is learned from them."""
        tried = self.clocks.trial(observations)
        if tried is not None:
            belief = self.beliefs.of(observations.row)
            found = [np.clip(belief.p_change(passed), _UNLIKELY, 1.0 - _UNLIKELY) for passed in tried]
            gain = np.log(found[0] / found[1])
            gain[~observations.changed] = np.log1p(-found[0][~observations.changed]) - np.log1p(
                -found[1][~observations.changed]
            )
            self.clocks.add_calendar_gain(observations.row, gain, until)

    def _rates_after(self, observations: ClosedGaps) -> FloatArray:
        """The expected rate of the page of each observation, after these observations.

        The rate before them does not serve: the rate of a page that always changed has no upper bound, and its first
        unchanged observation would then be evidence that operational time stands still.
        """
        rows = np.unique(observations.row)
        held = self.beliefs.copy_of(rows)
        self.beliefs.update(
            observations.row,
            self.clocks.elapsed(observations.row, observations.start, observations.end),
            observations.changed,
        )
        rates = self.beliefs.of(observations.row).mean()
        self.beliefs.put_back(rows, held)
        return rates

    def _review(self, until: float, known: int) -> None:
        """Estimate clusters, calendar and priors again from all observations."""
        self.clocks.regroup(self._last_visits.pages, self._by_discovery, known)
        folded = np.flatnonzero(self._log["folded"])
        folded = folded[self._canonical(folded)]
        observations = self._observations(folded)
        rate, calendar = (self._log[it][folded].astype(np.float64) for it in ("rate", "calendar"))
        rate, calendar = self.clocks.relearn(observations, rate, calendar, until)
        self._log["rate"][folded], self._log["calendar"][folded] = rate, calendar
        passed = self.clocks.stretch(observations, calendar)
        by_id = np.argsort(self._last_visits.pages.id)
        pages = self._last_visits.pages.take(by_id)
        self.signals.learn(observations, passed, self._last_visits.pages.host)
        silent = np.flatnonzero(~self.signals.explain(observations, self._last_visits.pages.host[observations.row]))
        histories = self._operational_histories(observations.take(silent), passed[silent], by_id)
        self.beliefs.learn(histories, pages, (pages.host, self.clocks.cluster[by_id]), by_id)

    def _predict_ahead(self, positions: IntArray) -> None:
        """Apply the observations of the current period to the beliefs about their own pages, in the order of time."""
        if not len(positions):
            return
        if not self._is_replica:
            self._keep_to_undo(np.unique(self._log["row"][positions]))
        observations = self._observations(positions[self._canonical(positions)])
        heads = np.flatnonzero(np.diff(observations.row, prepend=-1))
        nth = np.arange(len(observations)) - np.repeat(heads, np.diff(np.append(heads, len(observations))))
        for k in range(int(nth.max()) + 1):
            self._believe(observations.take(nth == k))

    def _keep_to_undo(self, rows: IntArray) -> None:
        """Save the beliefs about these rows, unless they were saved since the last fold."""
        if len(self._moved) < len(self._last_visits):
            self._moved = np.append(self._moved, np.zeros(len(self._last_visits) - len(self._moved), np.bool_))
        fresh = rows[~self._moved[rows]]
        if len(fresh):
            self._undo.append((fresh, self.beliefs.copy_of(fresh)))
            self._moved[fresh] = True

    def _believe(self, observations: ClosedGaps) -> None:
        """Fold observations into the beliefs, except signalled changes: beliefs are about unsignalled changes."""
        if self.signals.trusted():
            observations = observations.take(
                ~self.signals.explain(observations, self._last_visits.pages.host[observations.row])
            )
        self.beliefs.update(
            observations.row,
            self.clocks.elapsed(observations.row, observations.start, observations.end),
            observations.changed,
        )

    def _put_back(self) -> None:
        for rows, held in self._undo:
            self.beliefs.put_back(rows, held)
            self._moved[rows] = False
        self._undo = []

    def _date(self) -> None:
        """Births and the order of discovery, after pages were added."""
        if len(self._by_discovery) == len(self._last_visits):
            return
        pages = self._last_visits.pages
        self._by_discovery = np.lexsort((pages.id, pages.discovered))
        self.clocks.date(known_births(pages.discovered, float(np.min(pages.discovered))))

    def _canonical(self, positions: IntArray) -> IntArray:
        """The order of these observations by page id and time."""
        return np.lexsort((self._log["end"][positions], self._last_visits.pages.id[self._log["row"][positions]]))

    def _observations(self, at: IntArray) -> ClosedGaps:
        """The observations at these positions of the log."""
        end = self._log["end"][at]
        return ClosedGaps(
            self._log["row"][at].astype(np.int64),
            end - self._log["seconds"][at],
            end,
            self._log["changed"][at],
            np.full(len(at), np.nan),
        )

    def _operational_histories(self, observations: ClosedGaps, passed: FloatArray, by_id: IntArray) -> Histories:
        """The observations so far in operational time, pages in the order of their ids."""
        n = len(by_id)
        rank = np.empty(n, dtype=np.int64)
        rank[by_id] = np.arange(n)
        row = rank[observations.row]
        first = np.full(n, np.nan)
        first[row] = 0.0
        last = np.where(np.isnan(first), np.nan, np.bincount(row, passed, n))
        change = np.full(n, np.nan)
        return Histories(
            self._last_visits.pages.id[by_id], offsets_of(row, n), passed, observations.changed, first, last, change
        )
