"""``recrawl experiment lbla``: predictions of new links, figures 9 to 15 of paper 004, on recorded pages.

Every figure of the paper is a named number of one split. The report has means over times and draws with intervals,
beside the published values.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Collection, Iterable, Sequence
from dataclasses import dataclass, replace
from math import isnan
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from recrawl.formats.atomic_files import complete_file
from recrawl_lab.experiments.report_folder import ReportFolder

if TYPE_CHECKING:
    from recrawl.app.predict.model_data import RecordedLinks
    from recrawl.app.result_tables import PlotPanel
    from recrawl.assess.prediction_scores import MeanInterval
    from recrawl_lab.trials.lbla_trial import LblaPlan, LblaSplit, LblaTrial


DATA, RATE, PRESENCE, LEARNERS, ORDER, CURVE, HEADS, IMPORTANCE = (
    "data",
    "change rate",
    "presence",
    "learners",
    "rankings",
    "precision",
    "laws",
    "importance",
)
"""The tables."""
FIGURES = {"9": RATE, "10": RATE, "12": PRESENCE, "13": IMPORTANCE, "14": ORDER, "15": ORDER}
"""Figures of the paper, and the table that each is drawn from."""
PERCENTS = (1, 2, 3, 5, 10, 20, 30, 50, 100)
BASELINES = ("NNL-Av", "NNL-Pr", "CCR")
OURS = "NNL-SC-LBLA"
LBLA_ALONE = (OURS, "NNL-ET-LBLA")
"""Rankings by the number of new links that see nothing but LBLA features."""
DRAWN = (*LBLA_ALONE, "NNL-ET", "NNL-NGB", *BASELINES)
"""Rankings in the plot."""


class LblaNumber(NamedTuple):
    """One result."""

    links: str
    table: str
    method: str
    measure: str
    value: float


@dataclass(frozen=True, slots=True)
class LblaRun:
    """What was measured on one split at one time."""

    at: float
    split: str
    draw: int
    numbers: tuple[LblaNumber, ...]


def measured(
    split: LblaSplit, progress: Callable[[], object], *, tables: Collection[str] = (), alone: bool = False
) -> list[LblaNumber]:
    """The numbers of one split: those of some tables, of all if none is named.

    If ``alone`` only those of LBLA features against one feature. ``progress`` is called :func:`steps` times.
    """
    from recrawl_lab.trials.lbla_trial import KINDS

    whole = split.trials[max(split.trials)]
    found: list[LblaNumber] = []
    for links in KINDS:
        if alone:
            found += [*_data(split, whole, links), *_orders(whole, links, (OURS,))]
            progress()
            continue
        found += _data(split, whole, links)
        parts = {
            RATE: _rates(whole, links),
            PRESENCE: _presence(split, whole, links),
            LEARNERS: _learners(whole, links),
            ORDER: _orders(whole, links),
            HEADS: _heads(whole, links),
            IMPORTANCE: _importance(split, whole, links),
        }
        for table, part in parts.items():
            if not tables or table in tables:
                found += part
                progress()
    return found


def steps(tables: Collection[str], *, alone: bool) -> int:
    """How often :func:`measured` calls ``progress``."""
    return 2 * (1 if alone else len(set(tables)) or 6)


def _data(split: LblaSplit, trial: LblaTrial, links: str) -> Iterable[LblaNumber]:
    import numpy as np

    from recrawl.predict.static_features import PredictionTarget

    told = {
        "examples to learn from": float(len(trial.train.table)),
        "pages judged": float(len(trial.test.table)),
        "sites judged": float(split.sites),
        "recall of related pages": split.recall,
        "share with new links": float(np.nanmean(trial.test.truth(links, PredictionTarget.NL))),
    }
    return (LblaNumber(links, DATA, "all", measure, value) for measure, value in told.items())


def _rates(trial: LblaTrial, links: str) -> Iterable[LblaNumber]:
    from recrawl.predict.static_features import FeatureSet
    from recrawl_lab.learners.link_learners import Learner

    for features in FeatureSet:
        # The page's own past is no feature here, so PAGE would be STATIC once more.
        if features is not FeatureSet.PAGE:
            rate = trial.change_rate(links, features, Learner.HISTOGRAM_BOOSTING)
            shown = {"R²": rate.r2, "mean error": rate.mean_error, "median error": rate.median_error}
            yield from (LblaNumber(links, RATE, str(features), name, value) for name, value in shown.items())


def _presence(split: LblaSplit, trial: LblaTrial, links: str) -> Iterable[LblaNumber]:
    from recrawl.predict.static_features import FeatureSet
    from recrawl_lab.learners.link_learners import Learner

    learner = Learner.EXTRA_TREES
    sets = [one for one in FeatureSet if one not in {FeatureSet.ALL, FeatureSet.LBLA}]
    scores = {str(one): trial.presence(links, one, learner) for one in sets}
    for history, one in split.trials.items():
        scores[f"all, history {history}"] = one.presence(links, FeatureSet.ALL, learner)
    scores["LBLA alone"] = trial.presence(links, FeatureSet.LBLA, learner)
    scores["as in the last period (NNL-Pr)"] = trial.presence_as_before(links)
    for method, score in scores.items():
        shown = {"balanced accuracy": score.balanced_accuracy, "F1": score.f1}
        shown |= {"precision": score.precision, "recall": score.recall}
        yield from (LblaNumber(links, PRESENCE, method, name, value) for name, value in shown.items())


def _learners(trial: LblaTrial, links: str) -> Iterable[LblaNumber]:
    from recrawl.predict.static_features import FeatureSet, PredictionTarget
    from recrawl_lab.learners.link_learners import Learner

    for features in (FeatureSet.LBLA, FeatureSet.ALL):
        for learner in Learner:
            if learner is Learner.SHRUNKEN_COUNTS and features is not FeatureSet.LBLA:
                continue
            method = f"{learner}, {features}"
            if learner is not Learner.NATURAL_BOOSTING:
                chance = trial.presence(links, features, learner)
                yield LblaNumber(links, LEARNERS, method, "balanced accuracy", chance.balanced_accuracy)
                yield LblaNumber(links, LEARNERS, method, "F1", chance.f1)
            number = trial.quantity(links, PredictionTarget.NNL, features, learner)
            yield LblaNumber(links, LEARNERS, method, "R² of the number", number.r2)
            yield LblaNumber(links, LEARNERS, method, "mean error", number.mean_error)


def _orders(trial: LblaTrial, links: str, only: Collection[str] = ()) -> Iterable[LblaNumber]:
    from recrawl.predict.static_features import PredictionTarget
    from recrawl_lab.trials.lbla_trial import CONTESTANTS

    predictors = [one for one in CONTESTANTS if not only or one.name in only]
    ranked = trial.ranked(links, predictors)
    area = {one.name: one.area for one in ranked if one.target is PredictionTarget.NNL}
    for one in ranked:
        yield LblaNumber(links, ORDER, one.name, f"Spearman {one.target}", one.spearman)
        yield LblaNumber(links, ORDER, one.name, f"area {one.target}", one.area)
    for name in [one for one in LBLA_ALONE if one in area]:
        for baseline in BASELINES:
            yield LblaNumber(links, ORDER, name, f"area NNL over {baseline}", area[name] - area[baseline])
    scores = trial.scores(links, predictors)
    for name in [one for one in DRAWN if one in scores]:
        found = trial.precision(links, scores[name], PERCENTS)
        yield from (
            LblaNumber(links, CURVE, name, f"{percent}%", value) for percent, value in zip(PERCENTS, found, strict=True)
        )


def _heads(trial: LblaTrial, links: str) -> Iterable[LblaNumber]:
    yield from (LblaNumber(links, HEADS, name, "log loss", loss) for name, loss in trial.count_losses(links).items())


def _importance(split: LblaSplit, trial: LblaTrial, links: str) -> Iterable[LblaNumber]:
    # A thousand questions to a model: once for each time is enough.
    if split.draw or not split.same_sites:
        return
    from recrawl.predict.static_features import FeatureSet
    from recrawl_lab.learners.link_learners import Learner

    found = trial.importance(links, FeatureSet.ALL, Learner.HISTOGRAM_BOOSTING, repeats=1)
    yield from (LblaNumber(links, IMPORTANCE, one.name, "loss of balanced accuracy", one.loss) for one in found)


PUBLISHED: dict[tuple[str, str, str], float] = {
    ("internal", "R²", "SP"): 0.50,
    ("internal", "R²", "SP+sem"): 0.65,
    ("internal", "mean error", "SP+sem"): 0.14,
    ("external", "R²", "SP"): 0.45,
    ("internal", "balanced accuracy", "all, history 1"): 0.84,
    ("external", "Spearman LCR", "LCR-ET"): 0.79,
    ("external", "Spearman LCR", "LCR-ET-LBLA"): 0.82,
}
"""What paper 004 says in words, by links, measure and method; its figures have no numbers."""
_TITLES = {
    RATE: "link change rate by features (figures 9 and 10; boosted trees)",
    PRESENCE: "presence of new links by features and history (figure 12; randomised trees)",
    LEARNERS: "learners of presence and number",
    ORDER: "rankings (figure 14; area of Precision@k% of figure 15)",
    HEADS: "laws of the number around its mean (LBLA features)",
    IMPORTANCE: "features needed to predict presence, found by shuffling (figure 13; boosted trees, all features)",
}
_FURTHEST = 30
"""Per cent of the pages, in the plot."""
_LOOKING = ("learned", "as in the last period")
_NOTE = (
    "Learned from {learned:,.0f} examples of four times, one period of {period} apart, and evaluated on {judged:,.0f} "
    "pages of {sites:.0f} sites: means of {runs}, at {times} with {draws} of the evaluated pages. In the "
    "period that followed, {internal:.1%} of the pages had new internal links and {external:.1%} new external ones; "
    "in a week of the paper it was 25 to 32 % and 6 to 9 %. Of the truly related pages {related:.1%} were found."
)


def columns(runs: Sequence[LblaRun]) -> dict[str, list[object]]:
    """Every number of every run, for a table."""
    from recrawl.time import to_iso

    rows = [
        (
            to_iso(run.at)[:10],
            run.draw,
            run.split,
            *one[:4],
            f"{one.value:.6g}",
            PUBLISHED.get((one.links, one.measure, one.method)),
        )
        for run in runs
        for one in run.numbers
    ]
    headings = ("at", "draw", "split", "links", "table", "method", "measure", "here", "published")
    return {name: [row[place] for row in rows] for place, name in enumerate(headings)}


def report(runs: Sequence[LblaRun], plan: LblaPlan) -> str:
    """A section for each split, with a table for each figure and kind of links."""
    parts = []
    for split in dict.fromkeys(run.split for run in runs):
        found = _Means([run for run in runs if run.split == split])
        against = [found.against()] if found.methods("internal", ORDER) else []
        parts += [f"## {split.capitalize()}", found.note(plan), *against, *found.tables()]
    return "\n\n".join(["# New links predicted", *parts]) + "\n"


def precision_panels(runs: Sequence[LblaRun]) -> list[PlotPanel]:
    """Precision@k% of the rankings by number, for each split and kind of links."""
    from recrawl.app.result_tables import PlotLine, PlotPanel

    panels = []
    for title, found, links in _each(runs):
        lines = []
        # Further down the list pages without new links tie, and every ranking is as good as chance.
        drawn = [percent for percent in PERCENTS if percent <= _FURTHEST]
        for method in found.methods(links, CURVE):
            at = [found.of(links, CURVE, method, f"{percent}%") for percent in drawn]
            means, low, high = ([one[place] for one in at] for place in range(3))
            lines.append(PlotLine(method, drawn, means, low, high, ours=method == OURS))
        panels.append(PlotPanel(title, lines))
    return panels


def history_panels(runs: Sequence[LblaRun]) -> list[PlotPanel]:
    """Balanced accuracy by history, for each split and kind of links."""
    from recrawl.app.result_tables import PlotLine, PlotPanel

    panels = []
    for title, found, links in _each(runs):
        sizes = found.histories(links)
        learned = [found.of(links, PRESENCE, f"all, history {size}", "balanced accuracy") for size in sizes]
        before = found.of(links, PRESENCE, "as in the last period (NNL-Pr)", "balanced accuracy")
        lines = []
        for name, at in zip(_LOOKING, (learned, [before] * len(sizes)), strict=True):
            means, low, high = ([one[place] for one in at] for place in range(3))
            lines.append(PlotLine(name, sizes, means, low, high, ours=name == _LOOKING[0]))
        panels.append(PlotPanel(title, lines))
    return panels


def _each(runs: Sequence[LblaRun]) -> Iterable[tuple[str, _Means, str]]:
    for split in dict.fromkeys(run.split for run in runs):
        found = _Means([run for run in runs if run.split == split])
        yield from ((f"{split}: {links}", found, links) for links in ("internal", "external"))


class _Means:
    """The numbers of one split over all runs; intervals come from resampling whole times."""

    def __init__(self, runs: Sequence[LblaRun]) -> None:
        self.runs = runs
        self._values: dict[tuple[str, str, str, str], list[tuple[float, float]]] = {}
        for run in runs:
            for one in run.numbers:
                if not isnan(one.value):
                    self._values.setdefault(one[:4], []).append((run.at, one.value))

    def of(self, links: str, table: str, method: str, measure: str) -> MeanInterval:
        """A mean with its interval; NaN where nothing was measured."""
        import numpy as np

        from recrawl.assess.prediction_scores import mean_with_interval

        told = self._values.get((links, table, method, measure), [])
        values, times = np.array([value for _, value in told]), np.array([time for time, _ in told])
        return mean_with_interval(values, times, np.random.default_rng(1))

    def methods(self, links: str, table: str) -> list[str]:
        """Those of a table, in its order."""
        return list(dict.fromkeys(key[2] for key in self._values if key[:2] == (links, table)))

    def histories(self, links: str) -> list[int]:
        """Sizes of history that were tried."""
        start = "all, history "
        names = {key[2] for key in self._values if key[:2] == (links, PRESENCE) and key[2].startswith(start)}
        return sorted(int(name.removeprefix(start)) for name in names)

    def note(self, plan: LblaPlan) -> str:
        """What was learned from and evaluated."""
        from recrawl.errors import counted
        from recrawl.time import format_duration

        told = {measure: self.of("internal", DATA, "all", measure).mean for measure in _MEASURED}
        share = {links: self.of(links, DATA, "all", "share with new links").mean for links in ("internal", "external")}
        times = {run.at for run in self.runs}
        return _NOTE.format(
            **{_MEASURED[measure]: value for measure, value in told.items()},
            **share,
            period=format_duration(plan.period),
            runs=counted(len(self.runs), "run"),
            times=counted(len(times), "time"),
            draws=counted(plan.draws, "draw"),
        )

    def against(self) -> str:
        """How far LBLA features alone are ahead of one feature, and in how many runs they do not lose."""
        from recrawl.app.result_tables import markdown_table

        rows = []
        for links in ("internal", "external"):
            for method in [one for one in self.methods(links, ORDER) if one in LBLA_ALONE]:
                cells = []
                for baseline in BASELINES:
                    measure = f"area NNL over {baseline}"
                    told = [value for _, value in self._values[links, ORDER, method, measure]]
                    mean, low, high = self.of(links, ORDER, method, measure)
                    held = sum(value >= 0 for value in told)
                    interval = "" if len(told) == 1 else f" ({low:+.4f} to {high:+.4f})"  # one run has none
                    cells.append(f"{mean:+.4f}{interval}, {held} of {len(told)}")
                rows.append([f"{method}, {links}", *cells])
        head = ["area of Precision@k% over …", *BASELINES]
        difference = "the difference" if len(self.runs) == 1 else "the difference with its interval"
        words = f"LBLA features alone against one feature: {difference}, and the runs not lost."
        return f"{words}\n\n{markdown_table(head, rows)}"

    def tables(self) -> Iterable[str]:
        """A table for each figure and kind of links; where the paper gives a number it stands behind ours."""
        from recrawl.app.result_tables import markdown_table

        for links, table in dict.fromkeys(key[:2] for key in self._values):
            if table in {DATA, CURVE}:
                continue
            here = [key for key in self._values if key[:2] == (links, table)]
            measures = [one for one in dict.fromkeys(key[3] for key in here) if one not in _LEFT_OUT]
            methods = self._needed(here) if table == IMPORTANCE else self.methods(links, table)
            rows = [[method, *(self._shown(links, table, method, one) for one in measures)] for method in methods]
            yield f"### {links.capitalize()} links: {_TITLES[table]}\n\n" + markdown_table(["method", *measures], rows)

    def _needed(self, here: list[tuple[str, str, str, str]]) -> list[str]:
        """The ten most needed features, the most needed first."""
        total = {key[2]: sum(value for _, value in self._values[key]) for key in here}
        return sorted(total, key=lambda name: -total[name])[:10]

    def _shown(self, links: str, table: str, method: str, measure: str) -> str:
        mean, low, high = self.of(links, table, method, measure)
        if isnan(mean):
            return "–"
        published = PUBLISHED.get((links, measure, method))
        shown = f"{mean:.3f}" if low == high else f"{mean:.3f} ({low:.3f}–{high:.3f})"
        return shown if published is None else f"{shown}, published {published:.2f}"


_MEASURED = {
    "examples to learn from": "learned",
    "pages judged": "judged",
    "sites judged": "sites",
    "recall of related pages": "related",
}
_LEFT_OUT = {"area LCR", "area NL", "precision", "recall", *(f"area NNL over {one}" for one in BASELINES)}
"""Measures that are only in the table of all numbers."""


_FORM = 3
"""Of what is kept, and of the draws: what was kept in another form is measured again."""


def run(  # noqa: PLR0913, PLR0917 - what, where to, when, how, and how much of it
    data: Path,
    output: Path,
    times: Sequence[float],
    plan: LblaPlan,
    keep: Path | None = None,
    tables: Collection[str] = (),
) -> None:
    """Compare learners, feature sets and baselines; write a report, a table and plots into ``output``.

    ``plan`` says how, ``times`` when, ``tables`` which of them, if not all. What is measured of each time is kept in
    the folder ``keep`` and not repeated.
    """
    from recrawl.app.progress import bars
    from recrawl.app.result_tables import draw_panels
    from recrawl.errors import InputError

    written = ReportFolder(output)
    with bars() as bar:
        task = bar.add_task("learning", total=len(times) * plan.draws * 2 * steps(tables, alone=plan.alone))
        read = _reader(data)
        runs = [
            one
            for time in times
            for one in _kept(data, read, replace(plan, at=time), tables, keep, lambda: bar.advance(task))
        ]
    if not runs:
        raise InputError("no site has pages at that time and a record of the period after it", "Give another --at.")
    written.table("lbla.csv", columns(runs))
    if not tables or ORDER in tables:
        draw_panels(
            written.file("lbla.png"),
            precision_panels(runs),
            x_label="k: per cent of the pages",
            y_label="share of the top k% found",
            title="Pages with the most new links, found by rank",
        )
    if not plan.alone and (not tables or PRESENCE in tables):
        draw_panels(
            written.file("lbla-history.png"),
            history_panels(runs),
            x_label="past periods",
            y_label="balanced accuracy",
            title="Will there be new links?",
            even=True,
        )
    written.end("lbla.md", report(runs, plan))


def tables_of(figures: str) -> list[str]:
    """The tables that some figures are drawn from, named as ``9,14``; none for none.

    Raises:
        ConfigError: there is no such figure.
    """
    from recrawl.errors import ConfigError

    named = [name.strip() for name in figures.split(",") if name.strip()]
    unknown = [name for name in named if name not in FIGURES]
    if unknown:
        raise ConfigError(f"--only {unknown[0]}: there is no such figure.", f"There are {', '.join(FIGURES)}.")
    return list(dict.fromkeys(FIGURES[name] for name in named))


def moment(date: str) -> float:
    """The start of a day, UTC, from ``2024-01-02``.

    Raises:
        ConfigError: it is no date.
    """
    from datetime import UTC, datetime

    from recrawl.errors import ConfigError

    try:
        return datetime.strptime(date, "%Y-%m-%d").replace(tzinfo=UTC).timestamp()
    except ValueError:
        raise ConfigError(f"{date!r} is no date.", "Give it as 2024-01-02.") from None


def _reader(data: Path) -> Callable[[], RecordedLinks]:
    """The data set, read when first asked for: what is kept needs none."""
    from functools import cache

    from recrawl.app.predict.model_data import link_data

    return cache(lambda: link_data(data))


def _kept(  # noqa: PLR0913, PLR0917 - what to measure, how, and where it is kept
    data: Path,
    read: Callable[[], RecordedLinks],
    plan: LblaPlan,
    tables: Collection[str],
    keep: Path | None,
    progress: Callable[[], object],
) -> list[LblaRun]:
    """What was measured at one time, now or earlier."""
    if keep is None:
        return _measured(read(), plan, tables, progress)
    keep.mkdir(parents=True, exist_ok=True)
    asked = " ".join([data.resolve().name, str(plan), str(_FORM), *sorted(tables)])
    name = hashlib.blake2b(asked.encode(), digest_size=8).hexdigest()
    file = keep / f"lbla-{name}.json"
    if not file.exists():
        found = _measured(read(), plan, tables, progress)
        with complete_file(file) as stream:
            stream.write(json.dumps([(one.at, one.split, one.draw, one.numbers) for one in found]).encode())
    told = json.loads(file.read_text(encoding="utf-8"))
    return [
        LblaRun(time, split, draw, tuple(LblaNumber(*number) for number in numbers))
        for time, split, draw, numbers in told
    ]


def _measured(
    recorded: RecordedLinks, plan: LblaPlan, tables: Collection[str], progress: Callable[[], object]
) -> list[LblaRun]:
    from recrawl_lab.trials.lbla_trial import splits

    return [
        LblaRun(plan.at, one.name, one.draw, tuple(measured(one, progress, tables=tables, alone=plan.alone)))
        for one in splits(recorded, plan)
    ]
