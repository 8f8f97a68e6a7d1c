"""Learning from looks, day by day: beliefs, clocks and priors as one fold that no batching can disturb.

What is known after a day is a function of all looks up to it, whatever the batches were in which they were told:

 * looks wait until their day is over (a shorter period at first: ``schedule.periods``), and are then folded together,
   by page id and time: first into the clocks (one bulk edit speeds up the siblings), then, in operational time, into
   the beliefs;
 * on a growing schedule (a quarter more looks, or a tenth more pages) there is a *review*: clusters are found anew, and
   so are the calendar and the priors; all looks are folded into the new priors again;
 * looks of the day that is not over yet move the belief about their own page at once, in passing: when the day ends
   that is undone and done properly;
 * a look told after its day was folded makes all days be folded again.

So recovery is replay, and what a question finds does not depend on the questions before it.
"""

from __future__ import annotations

import copy
from collections.abc import Callable

import numpy as np

from recrawl.estimate.operational_learning import Looks
from recrawl.estimate.page_age import known_births
from recrawl.model import AnyArray, FloatArray, Histories, IntArray
from recrawl.model.arrays import offsets_of
from recrawl.schedule.believing import Beliefs
from recrawl.schedule.clocks import Clocks
from recrawl.schedule.columns import Columns
from recrawl.schedule.ledger import Gaps, Ledger
from recrawl.schedule.periods import Periods
from recrawl.schedule.signals import Signals
from recrawl.time import DAY

_MORE_LOOKS = 1.25
_MORE_PAGES = 1.1
_UNLIKELY = 1e-3
"""Probabilities are taken for no less, so that one surprise does not decide alone."""


class Learning:
    """The fold. Memory beside beliefs and clocks: 30 bytes a look, room to grow aside."""

    def __init__(self, ledger: Ledger, start: Callable[[], tuple[Beliefs, Clocks]]) -> None:
        """``start`` makes the beliefs and clocks of no pages, told of no looks."""
        self._ledger = ledger
        self._start = start
        self._log = Columns(
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
        """All looks: what is kept for good, so no wider than it need be. Seconds since the epoch need all of it."""
        self.signals = Signals()
        self.latest = 0.0
        """Of the times of looks and of questions."""
        self._periods = Periods()
        self._is_replica = False
        """Whether periods are folded elsewhere: then looks are learned from in passing, and forgotten."""
        self._start_over()

    def _start_over(self) -> None:
        self.beliefs, self.clocks = self._start()
        self.signals.forget()
        self._log["folded"][:] = False
        self._taken = 0
        """Looks in the log that were looked at; those of periods that are not over are not folded yet ..."""
        self._all_folded = 0
        """... and all before this one are."""
        self._late = False
        self._folded_until = -np.inf
        """Periods that ended by then were folded."""
        self._undo: list[tuple[IntArray, AnyArray]] = []
        self._moved = np.empty(0, np.bool_)
        """Rows that have something to undo."""
        self._looks_folded = self._looks_reviewed = self._pages_reviewed = 0
        self._by_discovery = np.empty(0, np.int64)

    def tell(self, closed: Gaps) -> None:
        """Note looks. O(looks)."""
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
        self._late |= (moved and self._looks_folded > 0) or self._is_late(closed.end)
        self.latest = max(self.latest, float(closed.end.max()))

    def hear(self, row: IntArray, time: FloatArray) -> None:
        """Note signals of change. O(signals)."""
        self.signals.hear(row, time)
        self._late |= self._is_late(time)

    def catch_up(self, now: float) -> None:
        """Make beliefs and clocks those of ``now``: fold the periods that are over, look ahead at the one that is not.

        O(looks since the last call), and once a period O(looks of that period).
        """
        self.latest = max(self.latest, now)
        if self._late and not self._is_replica:
            self._start_over()
        self._grow()
        new = np.arange(self._taken, len(self._log))
        self._taken = len(self._log)
        if self._is_replica:
            self._look_ahead(new)
            self._log, self._taken = self._log.empty(), 0
            return
        if self._periods.end(self._folded_until) <= self.latest or (self._ends(new) <= self.latest).any():
            new = self._fold_what_is_over(new)
        self._folded_until = self.latest
        self._look_ahead(new)

    def replica(self) -> Learning:
        """A twin for :class:`~recrawl.schedule.policy.Replicable`: it has no log, and never folds or reviews."""
        twin = copy.copy(self)
        nothing = {"_log": self._log.empty(), "_taken": 0, "_all_folded": 0, "_undo": []}
        vars(twin).update(nothing, _is_replica=True, _moved=self._moved[:0], _by_discovery=self._by_discovery[:0])
        twin.beliefs, twin.clocks = self.beliefs.replica(), self.clocks.replica()
        return twin

    # -- inside -------------------------------------------------------------------------------

    def _ends(self, positions: IntArray) -> FloatArray:
        """When the period of each of these looks is over."""
        return self._periods.ends(self._log["end"][positions])

    def _is_late(self, time: FloatArray) -> bool:
        """Whether a period was folded already in which one of these times lies."""
        return bool((self._periods.ends(time) <= self._folded_until).any())

    def _fold_what_is_over(self, new: IntArray) -> IntArray:
        """Fold the periods that are over; the looks to look ahead at, which are ``new`` if there is no such period."""
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
        if have == len(self._ledger):
            return
        new = self._ledger.pages.take(slice(have, None))
        start = float(np.min(self._ledger.pages.discovered))
        self.clocks.append(new.host, np.where(new.discovered >= start + DAY, new.discovered, np.nan))
        self.beliefs.append(new, (new.host, self.clocks.cluster[have:]))

    def _fold(self, positions: IntArray, end: float) -> None:
        """The looks of the period that ends at ``end``."""
        self._date()
        until = float(np.ceil(end / DAY) * DAY)
        positions = positions[self._canonical(positions)]
        looks = self._looks(positions)
        self._judge(looks)
        rates = self._rates_after(looks)
        self._log["rate"][positions], self._log["calendar"][positions] = rates, self.clocks.fold(looks, rates, until)
        self._believe(looks)
        self._log["folded"][positions] = True
        self._looks_folded += len(looks)
        discovered = self._ledger.pages.discovered[self._by_discovery]
        known = max(int(np.searchsorted(discovered, end)), 1)
        if self._looks_folded >= _MORE_LOOKS * self._looks_reviewed or known >= _MORE_PAGES * self._pages_reviewed:
            self._looks_reviewed, self._pages_reviewed = self._looks_folded, known
            self._review(until, known)

    def _judge(self, looks: Looks) -> None:
        """Predict looks with and without the calendar, before anything is learned from them."""
        tried = self.clocks.trial(looks)
        if tried is not None:
            belief = self.beliefs.of(looks.row)
            found = [np.clip(belief.p_change(passed), _UNLIKELY, 1.0 - _UNLIKELY) for passed in tried]
            gain = np.log(found[0] / found[1])
            gain[~looks.changed] = np.log1p(-found[0][~looks.changed]) - np.log1p(-found[1][~looks.changed])
            self.clocks.judge(looks.row, gain)

    def _rates_after(self, looks: Looks) -> FloatArray:
        """The rate of the page of each look, as it would be believed with these looks.

        Before them it will not do: a page that always changed may have any rate, however high, and the first look
        that finds it unchanged would then speak for all time standing still.
        """
        rows = np.unique(looks.row)
        held = self.beliefs.copy_of(rows)
        self.beliefs.update(looks.row, self.clocks.elapsed(looks.row, looks.start, looks.end), looks.changed)
        rates = self.beliefs.of(looks.row).mean()
        self.beliefs.put_back(rows, held)
        return rates

    def _review(self, until: float, known: int) -> None:
        """Clusters, calendar and priors anew."""
        self.clocks.regroup(self._ledger.pages, self._by_discovery, known)
        folded = np.flatnonzero(self._log["folded"])
        folded = folded[self._canonical(folded)]
        looks = self._looks(folded)
        rate, calendar = (self._log[it][folded].astype(np.float64) for it in ("rate", "calendar"))
        rate, calendar = self.clocks.relearn(looks, rate, calendar, until)
        self._log["rate"][folded], self._log["calendar"][folded] = rate, calendar
        passed = self.clocks.stretch(looks, calendar)
        by_id = np.argsort(self._ledger.pages.id)
        pages = self._ledger.pages.take(by_id)
        self.signals.learn(looks, passed, self._ledger.pages.host)
        silent = np.flatnonzero(~self.signals.explain(looks, self._ledger.pages.host[looks.row]))
        told = self._told(looks.take(silent), passed[silent], by_id)
        self.beliefs.learn(told, pages, (pages.host, self.clocks.cluster[by_id]), by_id)

    def _look_ahead(self, positions: IntArray) -> None:
        """Let looks of the period that is not over move the belief about their own pages, one look at a time."""
        if not len(positions):
            return
        if not self._is_replica:
            self._keep_to_undo(np.unique(self._log["row"][positions]))
        looks = self._looks(positions[self._canonical(positions)])
        heads = np.flatnonzero(np.diff(looks.row, prepend=-1))
        nth = np.arange(len(looks)) - np.repeat(heads, np.diff(np.append(heads, len(looks))))
        for k in range(int(nth.max()) + 1):
            self._believe(looks.take(nth == k))

    def _keep_to_undo(self, rows: IntArray) -> None:
        """Remember what is believed of these rows, unless that was remembered since the last fold."""
        if len(self._moved) < len(self._ledger):
            self._moved = np.append(self._moved, np.zeros(len(self._ledger) - len(self._moved), np.bool_))
        fresh = rows[~self._moved[rows]]
        if len(fresh):
            self._undo.append((fresh, self.beliefs.copy_of(fresh)))
            self._moved[fresh] = True

    def _believe(self, looks: Looks) -> None:
        """Fold looks into the beliefs, but not those whose change was signalled: beliefs are about the others."""
        if self.signals.trusted():
            looks = looks.take(~self.signals.explain(looks, self._ledger.pages.host[looks.row]))
        self.beliefs.update(looks.row, self.clocks.elapsed(looks.row, looks.start, looks.end), looks.changed)

    def _put_back(self) -> None:
        for rows, held in self._undo:
            self.beliefs.put_back(rows, held)
            self._moved[rows] = False
        self._undo = []

    def _date(self) -> None:
        """Births and the order of discovery, after pages were added."""
        if len(self._by_discovery) == len(self._ledger):
            return
        pages = self._ledger.pages
        self._by_discovery = np.lexsort((pages.id, pages.discovered))
        self.clocks.date(known_births(pages.discovered, float(np.min(pages.discovered))))

    def _canonical(self, positions: IntArray) -> IntArray:
        """The order of these looks by page id and time."""
        return np.lexsort((self._log["end"][positions], self._ledger.pages.id[self._log["row"][positions]]))

    def _looks(self, at: IntArray) -> Looks:
        """The looks at these places of the log."""
        end = self._log["end"][at]
        return Looks(
            self._log["row"][at].astype(np.int64),
            end - self._log["seconds"][at],
            end,
            self._log["changed"][at],
            np.full(len(at), np.nan),
        )

    def _told(self, looks: Looks, passed: FloatArray, by_id: IntArray) -> Histories:
        """The looks so far in operational time, pages in the order of their ids."""
        n = len(by_id)
        rank = np.empty(n, dtype=np.int64)
        rank[by_id] = np.arange(n)
        row = rank[looks.row]
        first = np.full(n, np.nan)
        first[row] = 0.0
        last = np.where(np.isnan(first), np.nan, np.bincount(row, passed, n))
        change = np.full(n, np.nan)
        return Histories(self._ledger.pages.id[by_id], offsets_of(row, n), passed, looks.changed, first, last, change)
