"""Policies that rank pages by how long ago they last updated: HACS and Last-Obs (HACS §III).

A page's score at a time t is a·(t + e − τ): τ its last update, e the horizon the paper looks ahead, a its rate (HACS)
or 1 (Last-Obs). A page is due when its score reaches the threshold: a given one, or the one that the best K pages
reach at the last fit, K being what the budget pays for in one round. After a look nobody asks again for one round:
the papers decide once a round. A round lasts a ``period``, or less where the budget would pay for more than half of the
pages in it: who visits everybody in every round has nothing to choose.
"""

from __future__ import annotations

from typing import Protocol

import numpy as np

from recrawl.errors import ConfigError
from recrawl.model import FloatArray, Histories, IntArray, Pages, Visits
from recrawl.schedule.by_interval import refuse_bad_budget
from recrawl.schedule.columns import Columns
from recrawl.schedule.gap_log import GapLog
from recrawl.schedule.ledger import Ledger
from recrawl.schedule.looks import fold

_MOST = 0.5
"""Share of the pages that are visited in a round, at most, where the budget decides how many."""
_LEAST = 1e-12
"""What scores are divided by at a threshold of 0, so that pages still differ in urgency."""


class SlopeModel(Protocol):
    """What a ranking knows of pages at a fit."""

    @property
    def name(self) -> str:
        """What settings and reports call the ranking."""
        ...

    @property
    def unfitted_slope(self) -> float:
        """Slope of a page before the first fit."""
        ...

    def __call__(self, histories: Histories, now: float) -> tuple[FloatArray, FloatArray]:
        """The slope a ≥ 0 of each page, and its last update τ; τ is NaN for a page without any look that counts."""
        ...


class UpdateRanking:
    """A ranking as a :class:`~recrawl.schedule.policy.Policy`. O(1) a look; a fit is O(looks log looks).

    ``longest`` is a floor against starvation that the papers do not have (inf for theirs): pages that were never seen
    to change have no score, and nobody would come back to them.
    """

    price = None

    def __init__(
        self, model: SlopeModel, *, horizon: float, period: float, longest: float, threshold: float | None
    ) -> None:
        if not (horizon >= 0 and 0 < period <= longest):
            raise ConfigError(
                f"{model.name}: {horizon} s ahead and {period} s to {longest} s between visits are not possible.",
                "Give durations above 0, the longest last.",
            )
        self._model = model
        self._horizon = horizon
        self._period = self._round = period
        self._longest = longest
        self._given = threshold
        self._threshold = np.inf if threshold is None else threshold
        self._ledger = Ledger()
        self._log = GapLog()
        self._table = Columns({"slope": np.float64, "update": np.float64})

    @property
    def name(self) -> str:
        """The model's name."""
        return self._model.name

    @property
    def threshold(self) -> float:
        """The score from which pages are due; inf before a fit to a budget."""
        return self._threshold

    def __len__(self) -> int:
        """How many pages it knows."""
        return len(self._ledger)

    def scores(self, page: IntArray, now: float) -> FloatArray:
        """The score of each of these pages; 0 for a page that was never seen."""
        return self._scores(self._ledger.rows(page), now)

    def add(self, pages: Pages) -> None:
        """Learn of pages."""
        new = self._ledger.add(pages)
        self._table.append(
            slope=np.full(len(new), self._model.unfitted_slope),
            update=np.full(len(new), np.nan),
        )

    def tell(self, visits: Visits) -> None:
        """Move the last updates, to the middle of the gap a change was found in; slopes wait for the next fit."""
        looks = fold(self._ledger.rows(visits.page), visits, self._ledger.last_look)
        opens = looks.opens()
        closed = looks.take(~opens)
        self._log.append(closed.row, closed.seconds, closed.changed)
        update = self._table["update"]
        update[looks.row[opens]] = looks.time[opens]
        found = closed.take(closed.changed)
        update[found.row] = found.time - found.seconds / 2.0  # of equal indices the last assignment stands

    def fit(self, budget: float, now: float) -> None:
        """Estimate the slopes anew; without a given threshold, set the round and what the best pages of one reach."""
        refuse_bad_budget(budget)
        if not len(self._ledger):
            return
        by_id, histories = self._log.histories(self._ledger)
        self._table["slope"][by_id], self._table["update"][by_id] = self._model(histories, now)
        if self._given is None:
            cost = self._ledger.pages.cost
            self._round = min(self._period, _MOST * float(cost.sum()) / budget) if budget > 0 else self._period
            best = budget * self._round / float(cost.mean())
            best = max(best, 1.0) if budget > 0 else 0.0
            self._threshold = nth_largest(self._scores(np.arange(len(self)), now), best)

    def due(self, page: IntArray, now: float) -> FloatArray:  # noqa: ARG002 - due times are absolute
        """When the score reaches the threshold, a round to ``longest`` after the last look; else at discovery."""
        rows = self._ledger.rows(page)
        slope, start = self._table["slope"][rows], self._table["update"][rows] - self._horizon
        with np.errstate(divide="ignore", invalid="ignore"):
            reached = start if self._threshold == 0 else start + self._threshold / slope
        wait = np.nan_to_num(reached - self._ledger.last_look[rows], nan=np.inf, posinf=np.inf)
        return self._ledger.due_after(page, np.clip(wait, self._round, self._longest))

    def urgency(self, page: IntArray, now: float) -> FloatArray:
        """The score in units of the threshold, held below 1 within a round and raised to 1 at ``longest``."""
        rows = self._ledger.rows(page)
        urgency = self._scores(rows, now) / max(self._threshold, _LEAST)
        if self._threshold == 0:  # every page with a look that counts is due
            urgency = np.where(np.isnan(self._table["update"][rows]), urgency, urgency + 1.0)
        rounds = self._ledger.urgency(page, self._round, now)
        urgency = np.where(rounds < 1, np.minimum(urgency, rounds), urgency)
        return np.maximum(urgency, self._ledger.urgency(page, self._longest, now))

    def _scores(self, rows: IntArray, now: float) -> FloatArray:
        since = np.nan_to_num(now + self._horizon - self._table["update"][rows], nan=0.0)
        return np.asarray(self._table["slope"][rows] * np.maximum(since, 0.0))


def nth_largest(values: FloatArray, n: float) -> float:
    """The value that n of them reach: inf for none, 0 for all or more. O(values).

    >>> nth_largest(np.array([3.0, 1.0, 2.0]), 2.4)
    2.0
    """
    count = int(min(n, len(values)))
    if count == len(values):
        return 0.0
    return float(-np.partition(-values, count - 1)[count - 1]) if count else np.inf
