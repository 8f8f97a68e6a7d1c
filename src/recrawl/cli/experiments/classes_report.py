"""What ``recrawl experiment classes`` writes: published errors beside those found here, as tables and lines."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from recrawl.time import DAY

if TYPE_CHECKING:
    from recrawl.assess.scores import Interval
    from recrawl.show.experiments import Panel

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
"""Methods in the picture, ours the last."""


@dataclass(frozen=True, slots=True)
class Score:
    """One method."""

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


@dataclass(frozen=True, slots=True)
class LearnerScore:
    """One learner with one set of features."""

    learner: str
    features: str
    wrong: Interval
    """Share of the pages put into a wrong class."""
    fitting: float
    """Seconds, mean of the rounds."""
    classifying: float


@dataclass(frozen=True, slots=True)
class Learners:
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
class Results:
    """All of one data set with classes found in one way."""

    data: str
    scale: str
    interval: tuple[float, ...]
    """Seconds between changes in each class."""
    learners: Learners | None
    """Nothing if there was a class with too few pages."""
    scores: tuple[Score, ...]


def score_columns(results: Sequence[Results]) -> dict[str, list[object]]:
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
            "too_often": one.too_often,
            "too_seldom": one.too_seldom,
            "balanced_error": one.balanced,
            "published": PUBLISHED.get(one.method, ""),
        }
        for result in results
        for one in result.scores
    ]
    return {name: [row[name] for row in rows] for name in rows[0]}


def learner_columns(results: Sequence[Results]) -> dict[str, list[object]]:
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


def report(results: Sequence[Results], days: int) -> str:
    """A section a data set and way of clustering: Table 1, then Table 3, then Table 5."""
    return "\n\n".join(part for one in results for part in _section(one, days)) + "\n"


def _section(result: Results, days: int) -> list[str]:
    from recrawl.show.experiments import markdown_table

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
                [one.method, *_errors(one), f"{one.too_often:.1%}", f"{one.too_seldom:.1%}", f"{one.visits:.1f}"]
                for one in lasts
            ],
        ),
    ]


def _learners_words(learners: Learners | None) -> str:
    if learners is None:
        return "One of them has too few pages to compare learners on equally many of each."
    return (
        f"Errors of learners on equally many pages of each class, {learners.taught:,} to learn from and "
        f"{learners.tested:,} to judge (Table 1), with the features of the paper, with all {learners.features}, and "
        "with those that the wrapper chose; seconds with all."
    )


def _learners_table(learners: Learners) -> str:
    from recrawl.show.experiments import markdown_table
    from recrawl.simulate.class_learning import FEATURES

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
                f"{whole.wrong.low:.1%}–{whole.wrong.high:.1%}",
                f"{whole.fitting:.2f}",
                f"{whole.classifying:.3f}",
                f"{seconds:,.2f}",
            ]
        )
    errors = ["the paper's features", "all features", "chosen features", "95 % (all)"]
    times = ["s to fit", "s to classify", "s to classify, published"]
    return markdown_table(["learner", "published", *errors, *times], rows)


def _chosen(learners: Learners) -> str:
    """Which features were chosen, the most often chosen first."""
    rounds = len(learners.chosen)
    often = Counter(name for one in learners.chosen for name in one)
    shown = [f"`{name}`" + (f" ({count} of {rounds})" if count < rounds else "") for name, count in often.most_common()]
    return f"Chosen: {', '.join(shown)}."


def _errors(one: Score) -> list[str]:
    published = f"{PUBLISHED[one.method]:.1%}" if one.method in PUBLISHED else "–"
    return [published, f"{one.wrong.mean:.1%}", f"{one.wrong.low:.1%}–{one.wrong.high:.1%}", f"{one.balanced:.1%}"]


def panels(results: Sequence[Results]) -> list[Panel]:
    """Error against days, a panel a data set, with the classes from logarithms."""
    from recrawl.show.experiments import Line, Panel
    from recrawl.simulate.class_trial import SCALES

    found = []
    for result in results:
        lines = []
        for method in DRAWN:
            same = [one for one in result.scores if one.method == method]
            errors = [one.wrong for one in same]
            ends = ([one.mean for one in errors], [one.low for one in errors], [one.high for one in errors])
            lines.append(Line(method, [float(one.after) for one in same], *ends, ours=method == DRAWN[-1]))
        if result.scale == SCALES[1]:
            found.append(Panel(result.data, lines))
    return found
