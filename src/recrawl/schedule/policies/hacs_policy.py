"""HACS (§III) and its baselines: HACS, Last-Obs, random and brute force.

**HACS** visits the pages that have most likely changed. From the observations of the last w seconds follow the rate λ
(eq. 5 over interpolated updates) and the last update τ of each page; then

    p = 1 − e^{−λ·((t + e) − τ)}

is the probability that it changed by t + e (reading 000.5). The policy visits the pages with p ≥ θ, or the K with the
highest p. The score here is x = −ln(1 − p) and the threshold −ln(1 − θ), which give the same ranking and cut and do not
saturate at 1: urgency is x in units of the threshold.

The paper counts from the last update, even if a later observation found no change since: right for archives that others
made, wasteful for a crawler. ``hacs-since-look`` counts from the last observation, p = 1 − e^{−λ·(t − last
observation)}. A page is then due whenever λ·(t − last observation) reaches one number for all, so intervals are
proportional to 1/λ.

**Last-Obs** (§III-C) visits the pages that have not been updated for longest. It ranks by t − τ, τ the last update; the
paper also says "last accessed" (reading 000.8). A page that never changes always comes first, so this ranking is a weak
baseline.

Both rank by a score a·(t + e − τ): τ the last update of the page, e the horizon of the paper, a its rate (HACS) or 1
(Last-Obs). A page is due when its score reaches the threshold: a given one, or the score that the best K pages reached
at the last fit, where the budget pays for K visits in one round. A page is not due again within the round of its last
observation: the papers decide once a round. A round lasts a ``period``, or less where the budget would pay for more
than half of the pages in it: a policy that visits every page in every round has nothing to choose.

**Random** (§III-B, C) picks pages at random, as many as the budget allows: the baseline without knowledge. Picking K of
N pages at random repeatedly makes the time between two visits to a page memoryless. So after each observation the wait
is drawn from an exponential distribution with mean N/K: Σ cost over the budget.

**Brute force** (§III-B) visits every page in every round. It misses nothing that a weekly observation can see, at any
cost.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol

import numpy as np

from recrawl.errors import ConfigError
from recrawl.estimate import mle
from recrawl.estimate.estimators import PointEstimator
from recrawl.estimate.mle import interpolate, update_model
from recrawl.estimate.point_evidence import filled
from recrawl.estimate.posterior.gamma_posterior import UNKNOWN_RATE
from recrawl.model import FloatArray, Histories, IntArray, Pages, Visits
from recrawl.schedule.learning.observation_columns import GapLog, GrowingColumns, LastVisits, fold
from recrawl.schedule.learning.replayable_chance import uniform
from recrawl.schedule.policies.by_interval import ByInterval, refuse_bad_budget
from recrawl.schedule.policies.fixed_interval import fixed_period
from recrawl.schedule.policies.proportional import Proportional
from recrawl.time import DAY, HOUR, WEEK

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
        """The slope a ≥ 0 of each page, and its last update τ.

        τ is NaN for a page without any observation that counts.
        """
        ...


class UpdateRanking:
    """A ranking as a :class:`~recrawl.schedule.policy.Policy`.

    O(1) an observation; a fit is O(observations log observations).

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
        self._last_visits = LastVisits()
        self._log = GapLog()
        self._table = GrowingColumns({"slope": np.float64, "update": np.float64})

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
        return len(self._last_visits)

    def scores(self, page: IntArray, now: float) -> FloatArray:
        """The score of each of these pages; 0 for a page that was never seen."""
        return self._scores(self._last_visits.rows(page), now)

    def add(self, pages: Pages) -> None:
        """Add pages."""
        new = self._last_visits.add(pages)
        self._table.append(
            slope=np.full(len(new), self._model.unfitted_slope),
            update=np.full(len(new), np.nan),
        )

    def tell(self, visits: Visits) -> None:
        """Move the last updates, to the middle of the gap a change was found in; slopes wait for the next fit."""
        observations = fold(self._last_visits.rows(visits.page), visits, self._last_visits.last_observed)
        opens = observations.opens()
        closed = observations.take(~opens)
        self._log.append(closed.row, closed.seconds, closed.changed)
        update = self._table["update"]
        update[observations.row[opens]] = observations.time[opens]
        found = closed.take(closed.changed)
        update[found.row] = found.time - found.seconds / 2.0  # of equal indices the last assignment stands

    def fit(self, budget: float, now: float) -> None:
        """Estimate the slopes again; without a given threshold, set the round and what the best pages of one reach."""
        refuse_bad_budget(budget)
        if not len(self._last_visits):
            return
        by_id, histories = self._log.histories(self._last_visits)
        self._table["slope"][by_id], self._table["update"][by_id] = self._model(histories, now)
        if self._given is None:
            cost = self._last_visits.pages.cost
            self._round = min(self._period, _MOST * float(cost.sum()) / budget) if budget > 0 else self._period
            best = budget * self._round / float(cost.mean())
            best = max(best, 1.0) if budget > 0 else 0.0
            self._threshold = nth_largest(self._scores(np.arange(len(self)), now), best)

    def due(self, page: IntArray, now: float) -> FloatArray:  # noqa: ARG002 - due times are absolute
        """When the score reaches the threshold, a round to ``longest`` after the last observation.

        Else at discovery.
        """
        rows = self._last_visits.rows(page)
        slope, start = self._table["slope"][rows], self._table["update"][rows] - self._horizon
        with np.errstate(divide="ignore", invalid="ignore"):
            reached = start if self._threshold == 0 else start + self._threshold / slope
        wait = np.nan_to_num(reached - self._last_visits.last_observed[rows], nan=np.inf, posinf=np.inf)
        return self._last_visits.due_after(page, np.clip(wait, self._round, self._longest))

    def urgency(self, page: IntArray, now: float) -> FloatArray:
        """The score in units of the threshold, held below 1 within a round and raised to 1 at ``longest``."""
        rows = self._last_visits.rows(page)
        urgency = self._scores(rows, now) / max(self._threshold, _LEAST)
        if self._threshold == 0:  # every page with an observation that counts is due
            urgency = np.where(np.isnan(self._table["update"][rows]), urgency, urgency + 1.0)
        rounds = self._last_visits.urgency(page, self._round, now)
        urgency = np.where(rounds < 1, np.minimum(urgency, rounds), urgency)
        return np.maximum(urgency, self._last_visits.urgency(page, self._longest, now))

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


def change_probability(
    histories: Histories, t: float, *, horizon: float = WEEK, window: float = np.inf, interpolated: bool = True
) -> FloatArray:
    """The p of each page at the time ``t``, from the observations in [t − window, t]; 0 without a gap. O(gaps).

    >>> from recrawl.model import Visits
    >>> h = Histories.from_visits(Visits.of([1] * 3, [0.0, 10.0, 20.0], verdict=[0, 2, 1]))
    >>> change_probability(h, 20.0, horizon=10.0).round(3).tolist()  # eq. 5 over the gaps 5 (changed) and 15
    [0.763]
    """
    known = update_model(histories.window(t - window, t), interpolated=interpolated)
    since = np.maximum(t + horizon - known.last_update, 0.0)
    return np.asarray(np.nan_to_num(-np.expm1(-known.rate * since), nan=0.0))


@dataclass(frozen=True, slots=True)
class HacsModel:
    """Rates and last updates from the observations in a window before each fit."""

    window: float
    unknown_rate: float | None
    """Of a page without a gap in the window; ``None`` for the pooled rate of all pages."""
    name: str

    @property
    def unfitted_slope(self) -> float:
        """The rate of a page before the first fit."""
        return UNKNOWN_RATE if self.unknown_rate is None else self.unknown_rate

    def __call__(self, histories: Histories, now: float) -> tuple[FloatArray, FloatArray]:
        """The rate λ of each page, and its last update τ."""
        recent = histories.window(now - self.window, now) if np.isfinite(self.window) else histories
        known = update_model(recent)
        if self.unknown_rate is None:
            rate = filled(known.rate, recent)
        else:
            rate = np.nan_to_num(known.rate, nan=self.unknown_rate)
        return rate, known.last_update


def hacs(
    *,
    theta: float | None = None,
    window: float = np.inf,
    horizon: float = WEEK,
    longest: float = 180 * DAY,
    unknown_rate: float | None = None,
) -> UpdateRanking:
    """HACS with the threshold ``theta``, or with the best K that the budget pays for.

    ``window`` is the paper's history size w, ``horizon`` its e, also the time between two rounds; rounds are shorter
    where the budget pays for more than half of the pages in one (:class:`UpdateRanking`). A page without a gap has
    p = 0 in the paper (``unknown_rate=0``), which is fine where histories come from an archive; a crawler that learns
    only from its own observations would never take a second one. So by default such a page has the pooled rate of all.
    """
    if theta is not None and not 0 <= theta < 1:
        raise ConfigError(f"A threshold of {theta} is no probability to wait for.", "Give theta from 0 to below 1.")
    if not window > 0:
        raise ConfigError(f"A history of {window} s holds no look.", "Give a window above 0.")
    name = "hacs" if theta is None else "hacs-threshold"
    return UpdateRanking(
        HacsModel(window, unknown_rate, name),
        horizon=horizon,
        period=horizon,
        longest=longest,
        threshold=None if theta is None else -np.log1p(-theta),
    )


def hacs_threshold(
    *, theta: float = 0.7, window: float = np.inf, horizon: float = WEEK, longest: float = 180 * DAY
) -> UpdateRanking:
    """HACS with a threshold, by default in the middle of those that the paper found best (0.5 to 0.9)."""
    return hacs(theta=theta, window=window, horizon=horizon, longest=longest)


def hacs_since_observation(*, shortest: float = HOUR, longest: float = 180 * DAY) -> Proportional:
    """The pages most likely changed since the last observation, as many as the budget pays for.

    Intervals in seconds.
    """
    estimator = PointEstimator("mle-interpolated", mle.rates, interpolated=True)
    return Proportional(name="hacs-since-look", estimator=estimator, shortest=shortest, longest=longest)


@dataclass(frozen=True, slots=True)
class LastObservationModel:
    """All pages alike; only the last update counts."""

    name: str = "last-obs"
    unfitted_slope: float = 1.0

    def __call__(self, histories: Histories, now: float) -> tuple[FloatArray, FloatArray]:  # noqa: ARG002 - at any time
        """A slope of 1, and the last update, or the first observation if none was seen."""
        change = interpolate(histories).last_change
        return np.ones(len(histories)), np.where(np.isnan(change), histories.first_visit, change)


def last_observation(*, period: float = WEEK, longest: float = 180 * DAY) -> UpdateRanking:
    """The best K by the time since the last update, K being what the budget pays for in one ``period``, in seconds."""
    return UpdateRanking(LastObservationModel(), horizon=0.0, period=period, longest=longest, threshold=None)


class RandomOrder:
    """Waits drawn by chance: the same for the same seed, page and last observation."""

    name = "random"
    price = None

    def __init__(self, *, seed: int = 0, unfitted_interval: float = 180 * DAY) -> None:
        self._seed = seed
        self._last_visits = LastVisits()
        self._mean = unfitted_interval

    def __len__(self) -> int:
        """How many pages it knows."""
        return len(self._last_visits)

    def add(self, pages: Pages) -> None:
        """Add pages."""
        self._last_visits.add(pages)

    def tell(self, visits: Visits) -> None:
        """Note when pages were observed."""
        fold(self._last_visits.rows(visits.page), visits, self._last_visits.last_observed)

    def fit(self, budget: float, now: float) -> None:  # noqa: ARG002 - the mean is the same at any time
        """Share the budget, in units of cost per second; without pages the mean wait stays."""
        refuse_bad_budget(budget)
        if len(self._last_visits):
            self._mean = float(self._last_visits.pages.cost.sum()) / budget if budget > 0 else np.inf

    def due(self, page: IntArray, now: float) -> FloatArray:  # noqa: ARG002 - due times are absolute
        """A drawn wait after the last observation; at discovery if there was none."""
        return self._last_visits.due_after(page, self._waits(page))

    def urgency(self, page: IntArray, now: float) -> FloatArray:
        """Drawn waits since the last observation."""
        return self._last_visits.urgency(page, self._waits(page), now)

    def _waits(self, page: IntArray) -> FloatArray:
        chance = uniform(self._seed, page, self._last_visits.last_observed[self._last_visits.rows(page)])
        return -np.log(chance) * self._mean


def brute_force(*, period: float = WEEK) -> ByInterval:
    """Every page every ``period`` seconds: the paper's evaluation interval e, a week. It follows no budget."""
    return fixed_period("brute-force", period)
