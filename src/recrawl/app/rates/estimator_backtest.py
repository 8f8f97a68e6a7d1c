"""``recrawl rates compare``: every estimator, scored on the workspace's own past."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from recrawl.app.rates.belief_table import TrainingHistory, training_of
from recrawl.app.rates.rates_table import RatesQuestion, wanted_pages
from recrawl.assess.prediction_scores import MethodScore, compare, moments, next_observations
from recrawl.errors import InputError, counted
from recrawl.estimate.estimator import Estimator, RateEvidence
from recrawl.estimate.estimators import ESTIMATORS
from recrawl.model import BoolArray, FloatArray, IntArray
from recrawl.store.base import Store

SEED = 4
FEWEST = 100
"""Predictions below which no comparison is made: intervals would hold everything."""
MOST_PAGES = 20_000
"""Pages, evenly spread, on which the methods are compared; all of them teach no more about the methods."""
_FEWEST_HOSTS = 10
"""Hosts from which on they are what is resampled; with fewer it is pages."""


@dataclass(frozen=True, slots=True)
class EstimatorComparison:
    """Scores of all methods, the best first, and what they rest on."""

    scores: list[MethodScore]
    predictions: int
    changed: int
    pages: int
    moments: int
    grouped_by: str


@dataclass(frozen=True, slots=True)
class BacktestPredictions:
    """Predictable observations, and the prediction of each method."""

    row: IntArray
    """Row of the evidence."""
    changed: BoolArray
    """Whether the observation found a change."""
    p: dict[str, FloatArray]
    """Probability of a change, by the name of the method."""


def compare_estimators(store: Store, question: RatesQuestion) -> EstimatorComparison:
    """Fit on the past at several times, predict the next observation of each page, and score all methods."""
    training = training_of(store, question.span)
    chosen = some_observations(training, wanted_pages(store, question, training), MOST_PAGES)
    times = moments(chosen.histories)
    found = predict_links(chosen, times, {question.estimator.name: question.estimator} | ESTIMATORS)
    if len(found.row) < FEWEST:
        raise InputError(
            f"Only {len(found.row)} observations can be predicted from earlier ones; a comparison needs {FEWEST}.",
            "Crawl longer, or import an archive. Logs of changes (git) do not count: they hold no observations.",
        )
    hosts = chosen.levels[0][found.row]
    many = len(np.unique(hosts)) >= _FEWEST_HOSTS
    scores = compare(found.p, found.changed, hosts if many else found.row, np.random.default_rng(SEED))
    by = "hosts" if many else "pages"
    pages = len(np.unique(found.row))
    return EstimatorComparison(scores, len(found.row), int(found.changed.sum()), pages, len(times), by)


def some_observations(training: TrainingHistory, kept: BoolArray, most: int) -> RateEvidence:
    """The evidence of at most ``most`` of the selected pages, evenly spread.

    A log has no observations to predict: it is written when something changes.
    """
    rows = np.flatnonzero(~training.exact & kept)
    if len(rows) > most:
        rows = rows[np.linspace(0, len(rows) - 1, most).astype(np.int64)]
    return _take(training.evidence, rows)


def _take(evidence: RateEvidence, rows: IntArray) -> RateEvidence:
    return RateEvidence(evidence.histories.take(rows), tuple(level[rows] for level in evidence.levels), evidence.kind)


def predict_links(
    evidence: RateEvidence, times: list[float], estimators: Mapping[str, Estimator]
) -> BacktestPredictions:
    """The prediction of each method for the observation after each time; every gap is predicted once."""
    done = np.zeros(len(evidence.histories.gaps), np.bool_)
    row, changed = [np.empty(0, np.int64)], [np.empty(0, np.bool_)]
    p: dict[str, list[FloatArray]] = {name: [np.empty(0)] for name in estimators}
    for at in times:
        known = RateEvidence(evidence.histories.window(-np.inf, at), evidence.levels, evidence.kind)
        ahead = next_observations(evidence.histories, at)
        fresh = ~done[ahead.place]
        done[ahead.place] = True
        rows = ahead.row[fresh]
        row.append(rows)
        changed.append(ahead.changed[fresh])
        for name, estimator in estimators.items():
            p[name].append(estimator(known).take(rows).p_change(ahead.gap[fresh]))
    return BacktestPredictions(
        np.concatenate(row),
        np.concatenate(changed),
        {name: np.concatenate(parts) for name, parts in p.items()},
    )


def facts(found: EstimatorComparison) -> dict[str, Any]:
    """The comparison for programs."""
    return {
        "predictions": found.predictions,
        "changed": found.changed,
        "pages": found.pages,
        "moments": found.moments,
        "resampled": found.grouped_by,
        "estimators": [
            {
                "name": score.name,
                "log_loss": list(score.log_loss),
                "brier": list(score.brier),
                "calibration_error": score.calibration_error,
                "behind_best": list(score.behind),
                "ties_with_best": score.ties,
            }
            for score in found.scores
        ],
    }


def columns(found: EstimatorComparison) -> dict[str, list[Any]]:
    """One row a method, for files."""
    scores = found.scores
    table: dict[str, list[Any]] = {"estimator": [score.name for score in scores]}
    for name in ("log_loss", "brier", "behind"):
        for place, end in enumerate(("", "_low", "_high")):
            table[f"{name}{end}"] = [getattr(score, name)[place] for score in scores]
    return table | {
        "calibration_error": [score.calibration_error for score in scores],
        "ties_with_best": [score.ties for score in scores],
    }


def table_rows(found: EstimatorComparison) -> list[tuple[str, ...]]:
    """One row a method: mark, name, scores with intervals, calibration error."""
    best = found.scores[0].name
    return [
        (
            "best" if score.name == best else "as good" if score.ties else "",
            score.name,
            f"{score.log_loss.mean:.4f}",
            f"{score.log_loss.low:.4f}–{score.log_loss.high:.4f}",
            "" if score.name == best else f"+{score.behind.mean:.4f}",
            f"{score.brier.mean:.4f}",
            f"{score.brier.low:.4f}–{score.brier.high:.4f}",
            f"{score.calibration_error:.3f}",
        )
        for score in found.scores
    ]


HEADINGS = ("", "estimator", "log loss", "95%", "behind", "Brier", "95% ", "calibration error")


def rests_on(found: EstimatorComparison) -> str:
    """What the scores rest on, in a sentence."""
    return (
        f"From {counted(found.predictions, 'prediction')} of the next observation of {counted(found.pages, 'page')}, "
        "made "
        f"at {counted(found.moments, 'time')} from earlier observations; "
        f"{found.changed / found.predictions:.0%} found a change. "
        "Lower is better. "
        f"Intervals resample whole {found.grouped_by}."
    )
