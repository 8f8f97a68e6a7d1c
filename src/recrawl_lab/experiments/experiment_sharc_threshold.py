"""``recrawl experiment sharc-threshold``: Tables 5.1 and 5.2 of the thesis beside ours."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from math import nan
from pathlib import Path
from typing import TYPE_CHECKING

from recrawl_lab.experiments.report_folder import ReportFolder

if TYPE_CHECKING:
    from recrawl_lab.experiments.sharc_published import SharcPublishedOptions
    from recrawl_lab.sharc_plots import CurvePanel
    from recrawl_lab.trials.capture_published import PublishedRow
    from recrawl_lab.trials.capture_trial import StrategyTrial

WITHOUT = ("sharc-selective", "sharc-optimal", "hottest-last-lifo")
"""Strategies that need no threshold, for comparison."""


@dataclass(frozen=True, slots=True)
class ThresholdCase:
    """A strategy with a threshold on a site of some skew."""

    skew: float
    strategy: str
    threshold: float | None
    """``None`` where it makes no difference."""


def run(output: Path, asked: SharcPublishedOptions) -> None:
    """Write sharc-threshold.csv, .md and .png into ``output``."""
    from recrawl_lab.sharc_plots import draw_curves
    from recrawl_lab.trials.capture_published import THRESHOLD_TABLES, threshold_settings

    settings = {one.skew: one if one.pages <= asked.pages else one.shrunk(asked.pages) for one in threshold_settings()}
    comparable = all(one.pages <= asked.pages for one in threshold_settings())
    written = ReportFolder(output)
    trials = _trials(settings, asked)
    written.table("sharc-threshold.csv", _columns(settings, trials, comparable=comparable))
    parts = [_NOTE]
    for table in THRESHOLD_TABLES:
        parts += [f"## Table {table}: {_TITLES[table]}", _grid(table, trials, comparable=comparable)]
    parts += ["## SHARC-Intervals before and after shrinking", _SHRINKING_NOTE, _shrinking_grid(settings)]
    panels = [_panel(table, skew, trials, comparable=comparable) for table in THRESHOLD_TABLES for skew in settings]
    draw_curves(
        written.file("sharc-threshold.png"),
        panels,
        columns=len(settings),
        y_label="incoherent pages",
        title="Which pages to give up, by threshold",
    )
    written.end("sharc-threshold.md", "\n\n".join(parts) + "\n")


_TITLES = {"5.1": "SHARC-Threshold", "5.2": "SHARC-Intervals"}
_NOTE = """\
Pages expected to change between visit and revisit, by threshold. The least of a row is bold. Strategies without a
threshold have one number."""

_SHRINKING_NOTE = """\
SHARC-Intervals with all pages known moves its intervals together after they are placed. Hopeful pages can only gain by
that, hopeless ones are moved outwards. Pages expected to change between visit and revisit, before / after."""


def _shrinking_grid(settings: Mapping[float, PublishedRow]) -> str:
    """What shrinking does to the expected coherence, by skew and threshold (reading 003.24)."""
    from recrawl.app.result_tables import markdown_table
    from recrawl.capture.sharc_intervals import shrinking
    from recrawl.simulate.sites import power_rates
    from recrawl_lab.trials.capture_published import THRESHOLDS

    rows = []
    for skew, setting in settings.items():
        rate = power_rates(setting.pages, skew=skew)
        kept = [shrinking(rate, setting.slow_down, tau) for tau in THRESHOLDS]
        row = [f"{setting.pages - one.before:.0f} / {setting.pages - one.after:.0f}" for one in kept]
        rows.append([f"skew {skew:g}", *row])
    return markdown_table(["threshold", *(f"{tau:g}" for tau in THRESHOLDS)], rows)


def _trials(settings: Mapping[float, PublishedRow], asked: SharcPublishedOptions) -> dict[ThresholdCase, StrategyTrial]:
    from recrawl.app.process_tasks import run_tasks
    from recrawl_lab.trials.capture_published import THRESHOLD_STRATEGIES, THRESHOLDS
    from recrawl_lab.trials.capture_trial import StrategyEntry, run_trials

    named = [(name, tau) for names in THRESHOLD_STRATEGIES.values() for name in names for tau in THRESHOLDS]
    entries = [StrategyEntry(name, tau) for name, tau in named] + [StrategyEntry(name) for name in WITHOUT]
    thresholds = [tau for _, tau in named] + [None] * len(WITHOUT)
    tasks = [
        partial(run_trials, setting, entries, seed=asked.seed, repeats=asked.repeats, law=asked.law())
        for setting in settings.values()
    ]
    return {
        ThresholdCase(skew, entry.strategy, threshold): trial
        for skew, trials in zip(settings, run_tasks(tasks, what="sites", jobs=asked.jobs), strict=True)
        for entry, threshold, trial in zip(entries, thresholds, trials, strict=True)
    }


def _columns(
    settings: Mapping[float, PublishedRow], trials: Mapping[ThresholdCase, StrategyTrial], *, comparable: bool
) -> dict[str, list[object]]:
    rows: list[dict[str, object]] = [
        {
            "skew": place.skew,
            "pages": settings[place.skew].pages,
            "strategy": place.strategy,
            "threshold": place.threshold,
            "published": _published(place) if comparable else None,
            "expected": trial.expected[0],
            "expected_whole": trial.expected_whole[0],
            "deviation": trial.deviation,
            "actual_mean": sum(trial.actual) / len(trial.actual),
            "repeats": len(trial.actual),
        }
        for place, trial in trials.items()
    ]
    return {name: [row[name] for row in rows] for name in rows[0]}


def _published(place: ThresholdCase) -> int | None:
    """The printed number that a strategy is to be compared with."""
    from recrawl_lab.trials.capture_published import THRESHOLD_STRATEGIES, THRESHOLD_TABLES, THRESHOLDS

    for table, strategies in THRESHOLD_STRATEGIES.items():
        if place.strategy in strategies and place.threshold is not None:
            return THRESHOLD_TABLES[table][place.skew][THRESHOLDS.index(place.threshold)]
    return None


def _grid(table: str, trials: Mapping[ThresholdCase, StrategyTrial], *, comparable: bool) -> str:
    from recrawl.app.result_tables import markdown_table
    from recrawl_lab.trials.capture_published import THRESHOLD_STRATEGIES, THRESHOLD_TABLES, THRESHOLDS

    rows = []
    for skew, printed in THRESHOLD_TABLES[table].items():
        if comparable:
            rows.append([f"skew {skew:g}, published", *_marked(printed)])
        for name in THRESHOLD_STRATEGIES[table]:
            values = [trials[ThresholdCase(skew, name, tau)].expected[0] for tau in THRESHOLDS]
            rows.append([f"skew {skew:g}, {name}", *_marked(values)])
        for name in WITHOUT:
            value = f"{trials[ThresholdCase(skew, name, None)].expected[0]:.0f}"
            rows.append([f"skew {skew:g}, {name}", value, *[""] * (len(THRESHOLDS) - 1)])
    return markdown_table(["threshold", *(f"{tau:g}" for tau in THRESHOLDS)], rows)


def _marked(values: Sequence[float]) -> list[str]:
    """Whole numbers, the least of them bold: what looks alike is marked alike."""
    whole = [round(value) for value in values]
    return [f"**{value}**" if value == min(whole) else f"{value}" for value in whole]


def _panel(table: str, skew: float, trials: Mapping[ThresholdCase, StrategyTrial], *, comparable: bool) -> CurvePanel:
    from recrawl_lab.sharc_plots import Curve, CurvePanel
    from recrawl_lab.trials.capture_published import THRESHOLD_STRATEGIES, THRESHOLD_TABLES, THRESHOLDS

    nothing = [None] * len(THRESHOLDS)
    curves = []
    for name in THRESHOLD_STRATEGIES[table]:
        values = [trials[ThresholdCase(skew, name, tau)].expected[0] for tau in THRESHOLDS]
        curves.append(Curve(name, THRESHOLDS, values, nothing))
    if comparable:
        curves.append(Curve("", THRESHOLDS, [nan] * len(THRESHOLDS), THRESHOLD_TABLES[table][skew]))
    for name in WITHOUT:
        level = trials[ThresholdCase(skew, name, None)].expected[0]
        curves.append(Curve(name, THRESHOLDS, [level] * len(THRESHOLDS), nothing, ours=name == "sharc-optimal"))
    return CurvePanel(f"{table}: {_TITLES[table]}, skew {skew:g}", "threshold", curves)
