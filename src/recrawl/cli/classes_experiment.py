"""``recrawl experiment classes``: errors of assigned change classes, Tables 3 and 5 of Barbosa et al."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
import typer

from recrawl.errors import InputError

if TYPE_CHECKING:
    from recrawl.assess.scores import Interval
    from recrawl.model import FloatArray, IntArray
    from recrawl.show.experiments import Panel
    from recrawl.simulate.class_trial import Trial

PUBLISHED = {
    "random": 0.7522,
    "static": 0.2564,
    "random + Bayesian": 0.3473,
    "random + historic": 0.2833,
    "static + Bayesian": 0.3787,
    "static + historic": 0.1495,
}
"""Error rates of Tables 3 and 5."""
_SHARES = (0.0, 0.01, 0.03, 0.1, 0.3, 1.0)
"""Of the period: when errors are counted."""


@dataclass(frozen=True, slots=True)
class Score:
    """One method on one data set, its classes found in one way."""

    data: str
    scale: str
    method: str
    after: int
    """Days; for a first class 0."""
    pages: int
    visits: float
    """To a page in the whole period, the first one not counted."""
    wrong: Interval
    """Share of the pages in a wrong class."""
    too_often: float
    too_seldom: float
    balanced: float
    """Mean of the shares in each true class."""


def run(data: Path, output: Path, *, seed: int, repeats: int, days: int) -> None:
    """Try all methods on each data set; write classes.csv, classes.md and classes.png into ``output``."""
    from recrawl.cli.datasets import collections, find_datasets
    from recrawl.show.experiments import draw_panels, write_csv
    from recrawl.simulate.class_trial import SCALES, monitored, prepare

    output.mkdir(parents=True, exist_ok=True)
    scores: list[Score] = []
    intervals: dict[tuple[str, str], FloatArray] = {}
    for folder in find_datasets(data):
        rng = np.random.default_rng(seed)
        found = collections(folder)
        try:
            rounds = [monitored(found, rng, days=days) for _ in range(repeats)]
            trials = {scale: [prepare(pages, rng, scale=scale) for pages in rounds] for scale in SCALES}
        except ValueError as error:
            raise InputError(str(error), "Take fewer --days, or longer records.", source=str(folder)) from None
        for scale, same in trials.items():
            intervals[folder.name, scale] = same[0].groups.classes.interval
            scores += _scores(folder.name, scale, same, rng)
    write_csv(output / "classes.csv", _columns(scores))
    text = _report(scores, intervals, days)
    (output / "classes.md").write_text(text, encoding="utf-8")
    draw_panels(
        output / "classes.png",
        _panels(scores),
        x_label="days since the first visit",
        y_label="share of pages in a wrong class",
        title="Change classes assigned by static and historic classification",
    )
    typer.echo(text)
    typer.echo(f"Written: {output / 'classes.md'}, {output / 'classes.csv'}, {output / 'classes.png'}")


def _scores(data: str, scale: str, trials: list[Trial], rng: np.random.Generator) -> list[Score]:
    """All repeats of one data set pooled; whole directories are resampled for the intervals."""
    from recrawl.assess.assigned_classes import class_error
    from recrawl.assess.ratios import ratio_with_interval
    from recrawl.simulate.class_trial import METHODS, classify, first_classes

    true = np.concatenate([trial.true for trial in trials])
    cluster = np.concatenate([trial.pages.cluster for trial in trials])
    count = max(len(trial.groups.classes) for trial in trials)

    def score(method: str, after: int, assigned: IntArray, visits: float) -> Score:
        error = class_error(assigned, true, count)
        wrong = ratio_with_interval((assigned != true).astype(np.float64), np.ones(len(true)), cluster, rng)
        of_class = error.confusion.sum(axis=1)
        some = of_class > 0
        balanced = float(np.mean(1.0 - np.diag(error.confusion)[some] / of_class[some]))
        sides = error.too_often, error.too_seldom
        return Score(data, scale, method, after, len(true), visits, wrong, *sides, balanced)

    firsts = [first_classes(trial) for trial in trials]
    found = [score(name, 0, np.concatenate([first[name] for first in firsts]), 0.0) for name in firsts[0]]
    days = sorted({round(share * trials[0].pages.days) for share in _SHARES})
    for method in METHODS:
        same = [classify(trial, method, days) for trial in trials]
        visits = float(np.concatenate([one.visits for one in same]).mean())
        found += [score(method, day, np.concatenate([one.assigned[day] for one in same]), visits) for day in days]
    return found


def _columns(scores: list[Score]) -> dict[str, list[object]]:
    rows: list[dict[str, object]] = [
        {
            "data": one.data,
            "classes": one.scale,
            "method": one.method,
            "days": one.after,
            "pages": one.pages,
            "visits": one.visits,
            "error": one.wrong.mean,
            "error_low": one.wrong.low,
            "error_high": one.wrong.high,
            "too_often": one.too_often,
            "too_seldom": one.too_seldom,
            "balanced_error": one.balanced,
        }
        for one in scores
    ]
    return {name: [row[name] for row in rows] for name in rows[0]}


def _report(scores: list[Score], intervals: dict[tuple[str, str], FloatArray], days: int) -> str:
    """A section a data set and way of clustering: Table 3, then Table 5."""
    from recrawl.show.experiments import markdown_table
    from recrawl.simulate.class_trial import METHODS
    from recrawl.time import DAY

    parts = []
    for (data, scale), interval in intervals.items():
        same = [one for one in scores if (one.data, one.scale) == (data, scale)]
        firsts = [one for one in same if one.method not in METHODS]
        lasts = [one for one in same if one.method in METHODS and one.after == days]
        classes = ", ".join(f"{float(f'{each:.3g}'):,g}" for each in (interval / DAY).tolist())
        head = ["first class", "published", "here", "95 %", "balanced"]
        rows = [[one.method, *_errors(one)] for one in firsts]
        parts += [
            f"## {data}, classes from {scale}",
            f"Classes of {classes} days; {same[0].pages:,} pages. Share of them in a wrong class at first (Table 3) …",
            markdown_table(head, rows),
            f"… and after {days:,} days (Table 5).",
            markdown_table(
                ["method", *head[1:], "too often", "too seldom", "visits"],
                [
                    [one.method, *_errors(one), f"{one.too_often:.1%}", f"{one.too_seldom:.1%}", f"{one.visits:.1f}"]
                    for one in lasts
                ],
            ),
        ]
    return "\n\n".join(parts) + "\n"


def _errors(one: Score) -> list[str]:
    published = f"{PUBLISHED[one.method]:.1%}" if one.method in PUBLISHED else "–"
    return [published, f"{one.wrong.mean:.1%}", f"{one.wrong.low:.1%}–{one.wrong.high:.1%}", f"{one.balanced:.1%}"]


def _panels(scores: list[Score]) -> list[Panel]:
    """Error against days, a panel a data set, with the classes from logarithms."""
    from recrawl.show.experiments import Line, Panel
    from recrawl.simulate.class_trial import METHODS, SCALES

    panels = []
    for data in dict.fromkeys(one.data for one in scores):
        lines = []
        for method in METHODS:
            same = [one for one in scores if (one.data, one.scale, one.method) == (data, SCALES[1], method)]
            errors = [one.wrong for one in same]
            ends = ([one.mean for one in errors], [one.low for one in errors], [one.high for one in errors])
            lines.append(Line(method, [float(one.after) for one in same], *ends, ours=method == METHODS[-1]))
        panels.append(Panel(data, lines))
    return panels
