"""``recrawl experiment classes``: learners and errors of change classes, Tables 1, 3 and 5 of Barbosa et al."""

from __future__ import annotations

import time
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from recrawl.cli.experiments.classes_report import (
    Learners,
    LearnerScore,
    Results,
    Score,
    learner_columns,
    panels,
    report,
    score_columns,
)
from recrawl.cli.experiments.report_folder import ReportFolder
from recrawl.errors import InputError

if TYPE_CHECKING:
    from recrawl.model import IntArray
    from recrawl.simulate.class_trial import Trial
    from recrawl.simulate.monitored import Monitored

_SHARES = (0.0, 0.01, 0.03, 0.1, 0.3, 1.0)
"""Of the period: when errors are counted."""


def run(data: Path, output: Path, *, seed: int, repeats: int, days: int) -> None:
    """Try all learners and methods on each data set; write two tables, a report and a picture into ``output``."""
    from recrawl.cli.waiting import bar, line

    with line("Getting ready"):
        from recrawl.cli.datasets import find_datasets
        from recrawl.show.experiments import draw_panels
        from recrawl.simulate.class_starts import STARTS
        from recrawl.simulate.class_trial import SCALES, methods

        written = ReportFolder(output)
        folders = find_datasets(data)
    results: list[Results] = []
    figures: list[str] = []
    steps = 1 + len(SCALES) * (2 * repeats + len(methods(list(STARTS))))
    with bar("classes", len(folders) * steps) as advance:
        for folder in folders:
            rng = np.random.default_rng(seed)
            rounds = _rounds(folder, rng, repeats, days)
            advance()
            figures.append(figure_2(folder.name, rounds))
            results += [_results(folder, scale, rounds, rng, advance) for scale in SCALES]
    written.table("classes.csv", score_columns(results))
    written.table("classes-learners.csv", learner_columns(results))
    draw_panels(
        written.file("classes.png"),
        panels(results),
        x_label="days since the first visit",
        y_label="share of pages in a wrong class",
        title="Change classes assigned by static and historic classification",
    )
    written.end("classes.md", "\n\n".join([report(results, days).rstrip(), *figures]) + "\n")


def figure_2(name: str, rounds: list[Monitored]) -> str:
    """Sizes and mean rates of the classes that k-means makes of the pages, for each number of classes (Figure 2)."""
    from recrawl.estimate.exact_kmeans import kmeans_1d
    from recrawl.show.experiments import markdown_table

    rate = np.concatenate([pages.rates() for pages in rounds])
    rows = []
    for k in NUMBERS:
        found = kmeans_1d(rate, k)
        size = np.bincount(found.labels, minlength=len(found.centres)).tolist()
        groups = [f"{mean:.3g} ({count:,})" for mean, count in zip(found.centres.tolist(), size, strict=True)]
        rows.append([str(k), PUBLISHED_GROUPS.get(k, "–"), ", ".join(reversed(groups))])
    head = ["k", "published: changes a day of the most dynamic", "here: changes a day of each class (pages)"]
    return f"## Figure 2, {name}: classes by k-means\n\n{markdown_table(head, rows)}"


NUMBERS = range(2, 7)
"""Numbers of classes that the paper tries."""
PUBLISHED_GROUPS = {2: "1.9", 3: "1.9", 4: "3.11, 1"}
"""What the text says of Figure 2, whose numbers are not printed otherwise."""


def _rounds(folder: Path, rng: np.random.Generator, repeats: int, days: int) -> list[Monitored]:
    """The pages of a data set, watched from other moments in each round."""
    from recrawl.cli.recorded_looks import recorded_pages
    from recrawl.simulate.monitored import monitored

    found = recorded_pages(folder)
    try:
        return [monitored(found.collections, rng, days=days, looks=found.looks) for _ in range(repeats)]
    except ValueError as error:
        raise InputError(str(error), "Take fewer --days, or longer records.", source=str(folder)) from None


def _results(
    folder: Path, scale: str, rounds: list[Monitored], rng: np.random.Generator, advance: Callable[[], None]
) -> Results:
    """All of one data set with classes found in one way. ``advance`` is called twice a round and once a method."""
    from recrawl.simulate.class_trial import prepare

    trials = []
    try:
        for pages in rounds:
            trials.append(prepare(pages, rng, scale=scale))
            advance()
    except ValueError as error:
        raise InputError(str(error), "Take fewer --days, or longer records.", source=str(folder)) from None
    interval = tuple(trials[0].groups.classes.interval.tolist())
    learners = _learners(rounds, scale, rng, advance)
    return Results(folder.name, scale, interval, learners, _scores(trials, rng, advance))


def _learners(
    rounds: list[Monitored], scale: str, rng: np.random.Generator, advance: Callable[[], None]
) -> Learners | None:
    """Table 1, all rounds pooled; nothing if a class is too small."""
    from recrawl.assess.ratios import ratio_with_interval
    from recrawl.simulate.class_learning import FEATURES, table_1
    from recrawl.simulate.class_trial import grouped

    found, clusters = [], []
    for pages in rounds:
        groups = grouped(pages.rates(), scale=scale)
        one = table_1(pages.looks, groups.of(pages.rates()), len(groups.classes), rng, time.perf_counter)
        advance()
        if one is None:
            return None
        found.append(one)
        clusters.append(pages.cluster[one.tested])
    cluster = np.concatenate(clusters)
    scores = []
    for same in zip(*(one.learned for one in found), strict=True):
        wrong = np.concatenate([one.wrong for one in same]).astype(np.float64)
        error = ratio_with_interval(wrong, np.ones(len(wrong)), cluster, rng)
        seconds = [float(np.mean([getattr(one, name) for one in same])) for name in ("fitting", "classifying")]
        scores.append(LearnerScore(same[0].learner, same[0].features, error, *seconds))
    chosen = tuple(one.names[FEATURES[-1]] for one in found)
    return Learners(tuple(scores), chosen, found[0].taught, len(found[0].tested), len(found[0].names[FEATURES[1]]))


def _scores(trials: list[Trial], rng: np.random.Generator, advance: Callable[[], None]) -> tuple[Score, ...]:
    """Tables 3 and 5, all rounds pooled; whole directories are resampled for the intervals."""
    from recrawl.assess.assigned_classes import class_error
    from recrawl.assess.ratios import ratio_with_interval
    from recrawl.simulate.class_trial import classify, first_classes, methods

    true = np.concatenate([trial.true for trial in trials])
    cluster = np.concatenate([trial.pages.cluster for trial in trials])
    count = max(len(trial.groups.classes) for trial in trials)

    def score(method: str, after: int, assigned: IntArray, visits: float) -> Score:
        error = class_error(assigned, true, count)
        wrong = ratio_with_interval((assigned != true).astype(np.float64), np.ones(len(true)), cluster, rng)
        of_class = error.confusion.sum(axis=1)
        some = of_class > 0
        balanced = float(np.mean(1.0 - np.diag(error.confusion)[some] / of_class[some]))
        return Score(method, after, len(true), visits, wrong, error.too_often, error.too_seldom, balanced)

    firsts = [first_classes(trial) for trial in trials]
    found = [score(name, 0, np.concatenate([first[name] for first in firsts]), 0.0) for name in firsts[0]]
    days = sorted({round(share * trials[0].pages.days) for share in _SHARES})
    for method in methods(list(trials[0].chances)):
        same = [classify(trial, method, days) for trial in trials]
        visits = float(np.concatenate([one.visits for one in same]).mean())
        found += [score(method, day, np.concatenate([one.assigned[day] for one in same]), visits) for day in days]
        advance()
    return tuple(found)
