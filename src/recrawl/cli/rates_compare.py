"""``recrawl rates --compare``: every estimator, scored on the workspace's own past."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from recrawl.assess.rates_compare import MethodScore, compare, moments, next_looks
from recrawl.cli.knowledge import Lesson, lesson_of
from recrawl.cli.rates_question import Question
from recrawl.cli.rates_rows import wanted_pages
from recrawl.errors import InputError
from recrawl.estimate.estimator import Estimator, Evidence
from recrawl.estimate.estimators import ESTIMATORS
from recrawl.model import BoolArray, FloatArray, IntArray
from recrawl.model.words import counted
from recrawl.store.base import Store

SEED = 4
FEWEST = 100
"""Predictions below which no comparison is made: intervals would hold everything."""
MOST_PAGES = 20_000
"""Pages, evenly spread, on which the methods are compared; all of them teach no more about the methods."""
_FEWEST_HOSTS = 10
"""Hosts from which on they are what is resampled; with fewer it is pages."""


@dataclass(frozen=True, slots=True)
class Comparison:
    """Scores of all methods, the best first, and what they rest on."""

    scores: list[MethodScore]
    predictions: int
    changed: int
    pages: int
    moments: int
    grouped_by: str


@dataclass(frozen=True, slots=True)
class Foretold:
    """Looks that could have been foretold, and what each method said of them."""

    row: IntArray
    """Row of the evidence."""
    changed: BoolArray
    """Whether the look found a change."""
    p: dict[str, FloatArray]
    """Probability of a change, by the name of the method."""


def compare_estimators(store: Store, question: Question) -> Comparison:
    """Learn from the looks before several moments, predict the next look at each page, and score all methods."""
    lesson = lesson_of(store, question.span)
    chosen = some_looks(lesson, wanted_pages(store, question, lesson), MOST_PAGES)
    times = moments(chosen.histories)
    found = foretell(chosen, times, ESTIMATORS)
    if len(found.row) < FEWEST:
        raise InputError(
            f"Of the looks here {len(found.row)} could have been foretold; a comparison needs {FEWEST}.",
            "Crawl longer, or import an archive; logs of changes (git) do not count, they hold no looks.",
        )
    hosts = chosen.levels[0][found.row]
    many = len(np.unique(hosts)) >= _FEWEST_HOSTS
    scores = compare(found.p, found.changed, hosts if many else found.row, np.random.default_rng(SEED))
    by = "hosts" if many else "pages"
    pages = len(np.unique(found.row))
    return Comparison(scores, len(found.row), int(found.changed.sum()), pages, len(times), by)


def some_looks(lesson: Lesson, kept: BoolArray, most: int) -> Evidence:
    """Evidence of at most so many of the pages that are kept, evenly spread.

    A log has no looks that could be foretold: it is written when something changes.
    """
    rows = np.flatnonzero(~lesson.exact & kept)
    if len(rows) > most:
        rows = rows[np.linspace(0, len(rows) - 1, most).astype(np.int64)]
    return _take(lesson.evidence, rows)


def _take(evidence: Evidence, rows: IntArray) -> Evidence:
    return Evidence(evidence.histories.take(rows), tuple(level[rows] for level in evidence.levels), evidence.kind)


def foretell(evidence: Evidence, times: list[float], estimators: Mapping[str, Estimator]) -> Foretold:
    """What each method says of the look that follows each moment; every gap is foretold once."""
    done = np.zeros(len(evidence.histories.gaps), np.bool_)
    row, changed = [np.empty(0, np.int64)], [np.empty(0, np.bool_)]
    p: dict[str, list[FloatArray]] = {name: [np.empty(0)] for name in estimators}
    for at in times:
        known = Evidence(evidence.histories.window(-np.inf, at), evidence.levels, evidence.kind)
        ahead = next_looks(evidence.histories, at)
        fresh = ~done[ahead.place]
        done[ahead.place] = True
        rows = ahead.row[fresh]
        row.append(rows)
        changed.append(ahead.changed[fresh])
        for name, estimator in estimators.items():
            p[name].append(estimator(known).take(rows).p_change(ahead.gap[fresh]))
    return Foretold(
        np.concatenate(row),
        np.concatenate(changed),
        {name: np.concatenate(parts) for name, parts in p.items()},
    )


def facts(found: Comparison) -> dict[str, Any]:
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


def columns(found: Comparison) -> dict[str, list[Any]]:
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


def table_rows(found: Comparison) -> list[tuple[str, ...]]:
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


HEADINGS = ("", "estimator", "log loss", "95 %", "behind", "Brier", "95 % ", "calibration error")


def rests_on(found: Comparison) -> str:
    """What the scores rest on, in a sentence."""
    return (
        f"Rests on {counted(found.predictions, 'prediction')} of the next look at {counted(found.pages, 'page')}, made "
        f"at {counted(found.moments, 'moment')} from the looks before them; "
        f"{found.changed / found.predictions:.0%} found a change. "
        "Lower is better. "
        f"Intervals resample whole {found.grouped_by}."
    )
