"""The evaluation of HACS (§III): which pages will have new links in a week, week by week.

Pages are captured by a schedule. At each reference time t, the captures of the last w weeks give every page captured in
them a probability p of an update by t + e. Evaluation 1 selects pages with p ≥ θ and compares with the true updates in
(t, t + e]; Random selects equally many of the same pages, Brute Force all. Evaluation 2 ranks by p (or by the time
since the last update, or at random) and compares with the true order of the updates after t.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np

from recrawl.assess.prediction_scores import SelectionScores, macro, micro, weighted_precision_at_k
from recrawl.estimate.mle import interpolate, update_model
from recrawl.model import BoolArray, FloatArray, Histories, IntArray
from recrawl.schedule.policies.hacs_policy import change_probability
from recrawl.simulate.sampling import PageTruth, VisitSchedule, sample
from recrawl.simulate.virtual_web import EventTimes
from recrawl.time import WEEK

WINDOWS = tuple(range(1, 13))
"""History sizes w, weeks."""
THRESHOLDS = tuple(round(0.1 * step, 1) for step in range(11))
Average = Literal["micro", "macro"]
MODELS = ("hacs", "random", "brute force")
RANKINGS = ("hacs", "last-obs", "random")


@dataclass(frozen=True, slots=True)
class HacsChoices:
    """What the models chose with one history size and threshold."""

    weeks: int
    theta: float
    counts: dict[str, IntArray]
    """For each model one row a reference point: rightly chosen, wrongly chosen, wrongly left, rightly left."""

    def micro(self, model: str) -> SelectionScores:
        """All reference points pooled."""
        return micro(self.counts[model])

    def macro(self, model: str) -> SelectionScores:
        """Averaged over reference points; F1 is 0 where a model found none of the updates that came."""
        return macro(self.counts[model], zero_if_missed=True)

    def points(self, model: str) -> int:
        """At how many reference points an update came, so that recall and F1 are defined."""
        right, _, missed, _ = self.counts[model].T
        return int((right + missed > 0).sum())


@dataclass(frozen=True, slots=True)
class HacsEvaluation:
    """Both evaluations of one level: home pages, or whole sites."""

    choices: list[HacsChoices]
    precision_at_k: dict[tuple[str, int], float]
    """Mean weighted P@K of each ranking and history size."""

    def best(self, weeks: int, average: Average = "micro") -> HacsChoices:
        """The choices with the threshold θ̂ at which the F1 of HACS is highest, pooled or averaged over points.

        Each average has a θ̂ of its own (Table I). With few pages a macro average may rest on a handful of reference
        points: :meth:`HacsChoices.points` says on how many.
        """

        def f1(one: HacsChoices) -> float:
            value: float = getattr(one, average)("hacs").f1
            return value if value == value else -1.0  # noqa: PLR0124 - NaN alone differs from itself

        return max((one for one in self.choices if one.weeks == weeks), key=f1)


def evaluate(  # noqa: PLR0913 - data, schedule and grid
    truth: PageTruth,
    schedule: VisitSchedule,
    rng: np.random.Generator,
    *,
    windows: Sequence[int] = WINDOWS,
    thresholds: Sequence[float] = THRESHOLDS,
    ahead: float = WEEK,
    progress: Callable[[], None] = lambda: None,
) -> HacsEvaluation:
    """Capture the pages of a truth, whose changes are updates, and evaluate the choices made each week.

    ``progress`` is called once for each history size. O(weeks · windows · captures).
    """
    captures = Histories.from_visits(sample(truth, schedule, rng)).align(np.arange(len(truth)))
    return judge(captures, truth, rng, windows=windows, thresholds=thresholds, ahead=ahead, progress=progress)


def observed_updates(captures: Histories) -> PageTruth:
    """What real captures tell of updates, to be evaluated against: each at the middle of its gap (HACS §II-B2).

    A site is there from its first capture to its last: what came after that nobody knows. Row i is row i.
    """
    told = interpolate(captures)
    row = captures.row_of_gap()[captures.changed]
    middle = (captures.observation_times() - captures.gaps / 2.0)[captures.changed]
    changes = EventTimes.of(row, middle, len(captures))
    first, last = float(np.nanmin(told.first_visit)), float(np.nanmax(captures.last_visit))
    return PageTruth(captures.first_visit, captures.last_visit, changes, first, last)


def judge(  # noqa: PLR0913 - data and grid
    captures: Histories,
    truth: PageTruth,
    rng: np.random.Generator,
    *,
    windows: Sequence[int] = WINDOWS,
    thresholds: Sequence[float] = THRESHOLDS,
    ahead: float = WEEK,
    progress: Callable[[], None] = lambda: None,
) -> HacsEvaluation:
    """Evaluate the choices made each week from these captures against a truth, row by row."""
    points = np.arange(truth.start + ahead, truth.end - ahead, ahead)
    choices: list[HacsChoices] = []
    ranked: dict[tuple[str, int], float] = {}
    for weeks in windows:
        counts = {(theta, model): np.zeros((len(points), 4), np.int64) for theta in thresholds for model in MODELS}
        scores: dict[str, list[float]] = {name: [] for name in RANKINGS}
        for place, t in enumerate(points.tolist()):
            known = captures.window(t - weeks * WEEK, t).align(captures.page)
            rows = np.flatnonzero(np.isfinite(known.first_visit) & (truth.died > t))
            if not len(rows):
                continue
            chance = change_probability(known.take(rows), t, horizon=ahead)
            next_update = _first_after(truth, rows, t)
            _count(counts, place, chance, next_update <= t + ahead, rng)
            for name, order in _rankings(known.take(rows), chance, t, rng).items():
                expected = rows[np.argsort(next_update, kind="stable")][: int(np.isfinite(next_update).sum())]
                if len(expected):
                    scores[name].append(weighted_precision_at_k(rows[order], expected))
        choices += [
            HacsChoices(weeks, theta, {model: counts[theta, model] for model in MODELS}) for theta in thresholds
        ]
        ranked |= {(name, weeks): float(np.mean(values)) if values else float("nan") for name, values in scores.items()}
        progress()
    return HacsEvaluation(choices, ranked)


def _first_after(truth: PageTruth, rows: IntArray, t: float) -> FloatArray:
    """When each page first updates after t; inf if it never does."""
    place = truth.changes.offsets[rows] + truth.changes.until(rows, t)
    inside = place < truth.changes.offsets[rows + 1]
    return np.append(truth.changes.times, np.inf)[np.where(inside, place, len(truth.changes.times))]


def _count(
    counts: dict[tuple[float, str], IntArray],
    place: int,
    chance: FloatArray,
    updated: BoolArray,
    rng: np.random.Generator,
) -> None:
    lot = rng.permutation(len(chance))
    for (theta, model), table in counts.items():
        chosen = chance >= theta
        if model == "random":
            chosen = lot < int(chosen.sum())
        elif model == "brute force":
            chosen = np.ones(len(chance), dtype=np.bool_)
        right, wrong = int((chosen & updated).sum()), int((chosen & ~updated).sum())
        missed = int((~chosen & updated).sum())
        table[place] = right, wrong, missed, len(chance) - right - wrong - missed


def _rankings(known: Histories, chance: FloatArray, t: float, rng: np.random.Generator) -> dict[str, IntArray]:
    """Rows in the order of each ranking, best first; equal ones in random order."""
    draw = rng.random(len(chance))
    since = t - update_model(known).last_update
    return {
        "hacs": np.lexsort((draw, -chance)),
        "last-obs": np.lexsort((draw, -np.nan_to_num(since, nan=-np.inf))),
        "random": np.argsort(draw),
    }
