"""``recrawl experiment classes``: learners and errors of change classes, Tables 1, 3 and 5 of Barbosa et al.

Published errors stand beside ours, in tables and plots.
"""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from math import isnan
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from recrawl.errors import InputError
from recrawl.time import DAY
from recrawl_lab.experiments.report_folder import ReportFolder

if TYPE_CHECKING:
    from recrawl.app.result_tables import PlotPanel
    from recrawl.assess.prediction_scores import MeanInterval
    from recrawl.model import AnyArray, FloatArray, IntArray
    from recrawl_lab.trials.class_trial import ClassTrial, DailyMonitoring


PUBLISHED = {
    "random": 0.7522,
    "tree": 0.2564,
    "random + Bayesian": 0.3473,
    "random + historic": 0.2833,
    "tree + Bayesian": 0.3787,
    "tree + historic": 0.1495,
}
"""Error rates of Tables 3 and 5."""
PUBLISHED_LEARNERS = {
    "tree": (0.107, 1.63),
    "tree, not pruned": (0.119, 2.41),
    "naive Bayes": (0.405, 120.5),
    "1 nearest": (0.1127, 4393.15),
    "2 nearest": (0.1188, 6335.49),
}
"""Error rates of Table 1, and the seconds that classifying took."""
DRAWN = (
    "random + Bayesian",
    "random + historic",
    "tree + Bayesian",
    "tree + historic",
    "siblings + historic",
    "tree of all chances + Bayesian",
    "siblings chances + Bayesian",
)
"""Methods in the plot, ours the last."""


@dataclass(frozen=True, slots=True)
class MethodError:
    """One method."""

    method: str
    after: int
    """Days; for a first class 0."""
    pages: int
    visits: float
    """To a page in the whole period, the first one not counted."""
    wrong: MeanInterval
    """Share of the pages in a wrong class."""
    too_frequent: float
    too_rare: float
    balanced: float
    """Mean of the shares in each true class."""


@dataclass(frozen=True, slots=True)
class LearnerScore:
    """One learner with one set of features."""

    learner: str
    features: str
    wrong: MeanInterval
    """Share of the pages put into a wrong class."""
    fitting: float
    """Seconds, mean of the rounds."""
    classifying: float


@dataclass(frozen=True, slots=True)
class LearnerTable:
    """Table 1."""

    scores: tuple[LearnerScore, ...]
    chosen: tuple[tuple[str, ...], ...]
    """The features chosen in each round."""
    taught: int
    """Pages learned from, in the first round."""
    tested: int
    features: int
    """That were to choose from."""


@dataclass(frozen=True, slots=True)
class ClassesResults:
    """All of one data set with classes found in one way."""

    data: str
    scale: str
    interval: tuple[float, ...]
    """Seconds between changes in each class."""
    learners: LearnerTable | None
    """Nothing if there was a class with too few pages."""
    scores: tuple[MethodError, ...]


def score_columns(results: Sequence[ClassesResults]) -> dict[str, list[object]]:
    """Tables 3 and 5, and errors over time."""
    rows: list[dict[str, object]] = [
        {
            "data": result.data,
            "classes": result.scale,
            "method": one.method,
            "days": one.after,
            "pages": one.pages,
            "visits": one.visits,
            "error": one.wrong.mean,
            "error_low": one.wrong.low,
            "error_high": one.wrong.high,
            "too_frequent": one.too_frequent,
            "too_rare": one.too_rare,
            "balanced_error": one.balanced,
            "published": PUBLISHED.get(one.method, ""),
        }
        for result in results
        for one in result.scores
    ]
    return {name: [row[name] for row in rows] for name in rows[0]}


def learner_columns(results: Sequence[ClassesResults]) -> dict[str, list[object]]:
    """Table 1. Seconds are left out: they differ from run to run."""
    rows = [
        (result.data, result.scale, one.learner, one.features, one.wrong.mean, one.wrong.low, one.wrong.high)
        for result in results
        if result.learners
        for one in result.learners.scores
    ]
    headings = ("data", "classes", "learner", "features", "error", "error_low", "error_high")
    columns: dict[str, list[object]] = {name: [row[place] for row in rows] for place, name in enumerate(headings)}
    return columns | {"published": [PUBLISHED_LEARNERS[row[2]][0] for row in rows]}


def report(results: Sequence[ClassesResults], days: int) -> str:
    """A section a data set and way of clustering: Table 1, then Table 3, then Table 5."""
    return "\n\n".join(part for one in results for part in _section(one, days)) + "\n"


def _section(result: ClassesResults, days: int) -> list[str]:
    from recrawl.app.result_tables import markdown_table

    firsts = [one for one in result.scores if " + " not in one.method]
    lasts = [one for one in result.scores if " + " in one.method and one.after == days]
    classes = ", ".join(f"{float(f'{each / DAY:.3g}'):,g}" for each in result.interval)
    head = ["first class", "published", "here", "95 %", "balanced"]
    return [
        f"## {result.data}, classes from {result.scale}",
        f"Classes of {classes} days. " + _learners_words(result.learners),
        *([_learners_table(result.learners), _chosen(result.learners)] if result.learners else []),
        f"Share of {firsts[0].pages:,} pages in a wrong class at first (Table 3) …",
        markdown_table(head, [[one.method, *_errors(one)] for one in firsts]),
        f"… and after {days:,} days (Table 5).",
        markdown_table(
            ["method", *head[1:], "too often", "too seldom", "visits"],
            [
                [one.method, *_errors(one), f"{one.too_frequent:.1%}", f"{one.too_rare:.1%}", f"{one.visits:.1f}"]
                for one in lasts
            ],
        ),
    ]


def _learners_words(learners: LearnerTable | None) -> str:
    if learners is None:
        return "One of them has too few pages to compare learners on equally many of each."
    return (
        f"Errors of learners on equally many pages of each class, {learners.taught:,} to learn from and "
        f"{learners.tested:,} to judge (Table 1), with the features of the paper, with all {learners.features}, and "
        "with those that the wrapper chose; seconds with all."
    )


def _learners_table(learners: LearnerTable) -> str:
    from recrawl.app.result_tables import markdown_table
    from recrawl_lab.trials.class_trial import FEATURES

    found = {(one.learner, one.features): one for one in learners.scores}
    rows = []
    for learner, (error, seconds) in PUBLISHED_LEARNERS.items():
        several = [found[learner, features] for features in FEATURES]
        whole = several[1]
        rows.append(
            [
                learner,
                f"{error:.1%}",
                *(f"{one.wrong.mean:.1%}" for one in several),
                _ends(whole.wrong),
                f"{whole.fitting:.2f}",
                f"{whole.classifying:.3f}",
                f"{seconds:,.2f}",
            ]
        )
    errors = ["the paper's features", "all features", "chosen features", "95 % (all)"]
    times = ["s to fit", "s to classify", "s to classify, published"]
    return markdown_table(["learner", "published", *errors, *times], rows)


def _chosen(learners: LearnerTable) -> str:
    """Which features were chosen, the most often chosen first."""
    rounds = len(learners.chosen)
    often = Counter(name for one in learners.chosen for name in one)
    shown = [f"`{name}`" + (f" ({count} of {rounds})" if count < rounds else "") for name, count in often.most_common()]
    return f"Chosen: {', '.join(shown)}."


def _ends(share: MeanInterval) -> str:
    """Both ends of an interval; a dash if not known."""
    return "–" if isnan(share.low) else f"{share.low:.1%}–{share.high:.1%}"


def _errors(one: MethodError) -> list[str]:
    published = f"{PUBLISHED[one.method]:.1%}" if one.method in PUBLISHED else "–"
    return [published, f"{one.wrong.mean:.1%}", _ends(one.wrong), f"{one.balanced:.1%}"]


def panels(results: Sequence[ClassesResults]) -> list[PlotPanel]:
    """Error against days, a panel a data set, with the classes from logarithms."""
    from recrawl.app.result_tables import PlotLine, PlotPanel
    from recrawl_lab.trials.class_trial import SCALES

    found = []
    for result in results:
        lines = []
        for method in DRAWN:
            same = [one for one in result.scores if one.method == method]
            errors = [one.wrong for one in same]
            ends = ([one.mean for one in errors], [one.low for one in errors], [one.high for one in errors])
            lines.append(PlotLine(method, [float(one.after) for one in same], *ends, ours=method == DRAWN[-1]))
        if result.scale == SCALES[1]:
            found.append(PlotPanel(result.data, lines))
    return found


_SHARES = (0.0, 0.01, 0.03, 0.1, 0.3, 1.0)
"""Of the period: when errors are counted."""


def run(data: Path, output: Path, *, seed: int, repeats: int, days: int) -> None:
    """Try all learners and methods on each data set; write two tables, a report and a plot into ``output``."""
    from recrawl.app.progress import bar, line

    with line("Starting"):
        from recrawl.app.compare.benchmark_runs import find_datasets
        from recrawl.app.result_tables import draw_panels
        from recrawl_lab.trials.class_trial import SCALES, STARTS, methods

        written = ReportFolder(output)
        folders = find_datasets(data)
    results: list[ClassesResults] = []
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


def figure_2(name: str, rounds: list[DailyMonitoring]) -> str:
    """Sizes and mean rates of the classes that k-means makes of the pages, for each number of classes (Figure 2)."""
    from recrawl.app.result_tables import markdown_table
    from recrawl.schedule.policies.historic_classes import kmeans_1d

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


def _rounds(folder: Path, rng: np.random.Generator, repeats: int, days: int) -> list[DailyMonitoring]:
    """The pages of a data set, watched from other moments in each round."""
    from recrawl_lab.experiments.experiment_data import recorded_pages
    from recrawl_lab.trials.class_trial import monitored

    found = recorded_pages(folder)
    try:
        return [monitored(found.collections, rng, days=days, observations=found.observations) for _ in range(repeats)]
    except ValueError as error:
        raise InputError(str(error), "Take fewer --days, or longer records.", source=str(folder)) from None


def _results(
    folder: Path, scale: str, rounds: list[DailyMonitoring], rng: np.random.Generator, advance: Callable[[], None]
) -> ClassesResults:
    """All of one data set with classes found in one way. ``advance`` is called twice a round and once a method."""
    from recrawl_lab.trials.class_trial import prepare

    trials = []
    try:
        for pages in rounds:
            trials.append(prepare(pages, rng, scale=scale))
            advance()
    except ValueError as error:
        raise InputError(str(error), "Take fewer --days, or longer records.", source=str(folder)) from None
    interval = tuple(trials[0].groups.classes.interval.tolist())
    learners = _learners(rounds, scale, rng, advance)
    return ClassesResults(folder.name, scale, interval, learners, _scores(trials, rng, advance))


def _learners(
    rounds: list[DailyMonitoring], scale: str, rng: np.random.Generator, advance: Callable[[], None]
) -> LearnerTable | None:
    """Table 1, all rounds pooled; nothing if a class is too small."""
    from recrawl_lab.trials.class_trial import FEATURES, grouped, table_1

    found, clusters = [], []
    for pages in rounds:
        groups = grouped(pages.rates(), scale=scale)
        one = table_1(pages.observations, groups.of(pages.rates()), len(groups.classes), rng, time.perf_counter)
        advance()
        if one is None:
            return None
        found.append(one)
        clusters.append(pages.cluster[one.tested])
    cluster = np.concatenate(clusters)
    scores = []
    for same in zip(*(one.learned for one in found), strict=True):
        wrong = np.concatenate([one.wrong for one in same]).astype(np.float64)
        error = _share_wrong(wrong, cluster, rng)
        seconds = [float(np.mean([getattr(one, name) for one in same])) for name in ("fitting", "classifying")]
        scores.append(LearnerScore(same[0].learner, same[0].features, error, *seconds))
    chosen = tuple(one.names[FEATURES[-1]] for one in found)
    return LearnerTable(tuple(scores), chosen, found[0].taught, len(found[0].tested), len(found[0].names[FEATURES[1]]))


def _share_wrong(wrong: FloatArray, cluster: AnyArray, rng: np.random.Generator) -> MeanInterval:
    """The share of pages in a wrong class; the interval is not known (NaN) for pages of one directory."""
    from recrawl.assess.prediction_scores import ratio_with_interval

    found = ratio_with_interval(wrong, np.ones(len(wrong)), cluster, rng)
    return found if len(np.unique(cluster)) > 1 else found._replace(low=float("nan"), high=float("nan"))


def _scores(trials: list[ClassTrial], rng: np.random.Generator, advance: Callable[[], None]) -> tuple[MethodError, ...]:
    """Tables 3 and 5, all rounds pooled; whole directories are resampled for the intervals."""
    from recrawl.assess.rate_errors import class_error
    from recrawl_lab.trials.class_trial import classify, first_classes, methods

    true = np.concatenate([trial.true for trial in trials])
    cluster = np.concatenate([trial.pages.cluster for trial in trials])
    count = max(len(trial.groups.classes) for trial in trials)

    def score(method: str, after: int, assigned: IntArray, visits: float) -> MethodError:
        error = class_error(assigned, true, count)
        wrong = _share_wrong((assigned != true).astype(np.float64), cluster, rng)
        of_class = error.confusion.sum(axis=1)
        some = of_class > 0
        balanced = float(np.mean(1.0 - np.diag(error.confusion)[some] / of_class[some]))
        return MethodError(method, after, len(true), visits, wrong, error.too_frequent, error.too_rare, balanced)

    firsts = [first_classes(trial) for trial in trials]
    found = [score(name, 0, np.concatenate([first[name] for first in firsts]), 0.0) for name in firsts[0]]
    days = sorted({round(share * trials[0].pages.days) for share in _SHARES})
    for method in methods(list(trials[0].chances)):
        same = [classify(trial, method, days) for trial in trials]
        visits = float(np.concatenate([one.visits for one in same]).mean())
        found += [score(method, day, np.concatenate([one.assigned[day] for one in same]), visits) for day in days]
        advance()
    return tuple(found)
