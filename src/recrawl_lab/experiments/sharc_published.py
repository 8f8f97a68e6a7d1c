"""``recrawl experiment sharc-blur``, ``sharc-coherence`` and ``sharc-threshold``: synthetic tables of the thesis."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from math import nan
from pathlib import Path
from typing import TYPE_CHECKING

from recrawl.errors import ConfigError
from recrawl_lab.experiments.report_folder import ReportFolder

if TYPE_CHECKING:
    from recrawl.simulate.virtual_web import ChangeProcess
    from recrawl_lab.sharc_plots import Curve, CurvePanel
    from recrawl_lab.trials.capture_trial import PublishedRow, PublishedTable, StrategyTrial


_MANY = 100
"""From here on numbers are shown with separators."""
_CLOSE = 2.0
"""Standard deviations within which a published number agrees."""


@dataclass(frozen=True, slots=True)
class TableCell:
    """A strategy in a row of a table, and what came of it."""

    setting: PublishedRow
    strategy: str
    trial: StrategyTrial

    @property
    def published(self) -> float | None:
        """The printed number, if there is one."""
        return self.setting.published.get(self.strategy)

    def expected(self, *, whole: bool) -> tuple[float, ...]:
        """What is expected by a law of changes, one value a schedule."""
        return self.trial.expected_whole if whole else self.trial.expected

    def distance(self, *, whole: bool) -> float:
        """Of the published number from the range of what is expected; 0 within it, or where nothing was published."""
        if self.published is None:
            return 0.0
        values = self.expected(whole=whole)
        return max(self.published - max(values), min(values) - self.published, 0.0)


@dataclass(frozen=True, slots=True)
class SharcTables:
    """All cells of one experiment."""

    cells: Sequence[TableCell]
    whole: bool
    """Show also what is expected of changes whole seconds apart, and compare by it."""
    best: str
    """The strategy in whose units plots are drawn."""
    digits: int
    """Decimals that were printed."""

    def columns(self) -> dict[str, list[object]]:
        """Every number, one row a strategy and setting."""
        rows = [self._row(cell) for cell in self.cells]
        return {name: [row[name] for row in rows] for name in rows[0]}

    @staticmethod
    def _row(cell: TableCell) -> dict[str, object]:
        setting, trial = cell.setting, cell.trial
        return {
            "table": setting.table,
            "pages": setting.pages,
            "skew": setting.skew,
            "slow_down": setting.slow_down,
            "outdegree": setting.outdegree,
            "leaves": setting.leaves,
            "strategy": cell.strategy,
            "published": cell.published,
            "expected_least": min(trial.expected),
            "expected_greatest": max(trial.expected),
            "expected_whole_least": min(trial.expected_whole),
            "expected_whole_greatest": max(trial.expected_whole),
            "deviation": trial.deviation,
            "actual_mean": sum(trial.actual) / len(trial.actual),
            "actual_least": min(trial.actual),
            "actual_greatest": max(trial.actual),
            "repeats": len(trial.actual),
        }

    # -- Markdown --------------------------------------------------------------------------------

    def agreement(self) -> str:
        """How far the published numbers are from what is expected, strategy by strategy."""
        from recrawl.app.result_tables import markdown_table

        printed = [cell for cell in self.cells if cell.published]
        if not printed:
            return "Nothing was published of these sites."
        by_strategy = {
            name: [cell for cell in printed if cell.strategy == name]
            for name in dict.fromkeys(cell.strategy for cell in printed)
        }
        laws = ["whole seconds", "Poisson"] if self.whole else ["Poisson"]
        rows = [self._agreement(name, own) for name, own in by_strategy.items()]
        return markdown_table(["median distance", "numbers", *laws, "within 2 s.d."], rows)

    def _agreement(self, strategy: str, cells: Sequence[TableCell]) -> list[str]:
        from statistics import median

        shares = [
            median(cell.distance(whole=whole) / cell.published for cell in cells if cell.published)
            for whole in self._laws()
        ]
        rounded = 0.5 * 10.0**-self.digits
        close = [cell.distance(whole=self.whole) <= _CLOSE * cell.trial.deviation + rounded for cell in cells]
        return [strategy, f"{len(cells)}", *(f"{share:.1%}" for share in shares), f"{sum(close)}"]

    def grid(self, table: PublishedTable) -> str:
        """A published table again: in each cell the printed number, and what is expected."""
        from recrawl.app.result_tables import markdown_table

        own = {(cell.setting.value, cell.strategy): cell for cell in self._of(table)}
        values = list(dict.fromkeys(value for value, _ in own))
        strategies = list(dict.fromkeys(strategy for _, strategy in own))
        rows = [[_named(value), *(self._shown(own[value, name]) for name in strategies)] for value in values]
        return markdown_table([table.varied, *strategies], rows)

    def _shown(self, cell: TableCell) -> str:
        published = "–" if cell.published is None else f"{cell.published:.{self.digits}f}"
        return " / ".join([published, *(self._range(cell.expected(whole=whole)) for whole in self._laws())])

    def _range(self, values: Sequence[float]) -> str:
        low, high = (f"{end:.{self.digits}f}" for end in (min(values), max(values)))
        return low if low == high else f"{low}–{high}"

    # -- plots --------------------------------------------------------------------------------

    def panel(self, table: PublishedTable) -> CurvePanel:
        """Everything in units of what the best strategy is expected to reach."""
        from recrawl_lab.sharc_plots import CurvePanel

        cells = self._of(table)
        unit = {cell.setting.value: cell.expected(whole=self.whole)[0] for cell in cells if cell.strategy == self.best}
        curves = [
            self._curve([cell for cell in cells if cell.strategy == name], unit)
            for name in dict.fromkeys(cell.strategy for cell in cells)
        ]
        return CurvePanel(f"{table.name}: {table.title}", table.varied, curves, log_x=table.varied != "skew")

    def _curve(self, cells: Sequence[TableCell], unit: dict[float, float]) -> Curve:
        from recrawl_lab.sharc_plots import Curve

        ratios = [[value / unit[c.setting.value] for value in c.expected(whole=self.whole)] for c in cells]
        return Curve(
            cells[0].strategy,
            [cell.setting.value for cell in cells],
            [sum(values) / len(values) for values in ratios],
            [cell.published and cell.published / unit[cell.setting.value] for cell in cells],
            [min(values) for values in ratios],
            [max(values) for values in ratios],
            ours=cells[0].strategy == self.best,
        )

    # -- inside ----------------------------------------------------------------------------------

    def _laws(self) -> tuple[bool, ...]:
        return (True, False) if self.whole else (False,)

    def _of(self, table: PublishedTable) -> list[TableCell]:
        return [cell for cell in self.cells if cell.setting.table == table.name]


def _named(value: float) -> str:
    return f"{value:,.0f}" if value >= _MANY else f"{value:g}"


@dataclass(frozen=True, slots=True)
class SharcPublishedOptions:
    """What an experiment is asked for."""

    only: str
    """Names of tables with commas between; none for all."""
    pages: int
    seed: int
    repeats: int
    changes: str
    """``poisson`` or ``whole``."""
    jobs: int | None

    def law(self) -> ChangeProcess:
        """By which changes are drawn."""
        from recrawl.simulate.virtual_web import PoissonProcess, WholeGapProcess

        return WholeGapProcess() if self.changes == "whole" else PoissonProcess()


def run_blur(output: Path, asked: SharcPublishedOptions) -> None:
    """Write sharc-blur.csv, .md and .png into ``output``."""
    from recrawl_lab.trials.capture_trial import BLUR_TABLES

    chosen = _chosen(BLUR_TABLES, asked.only)
    written = ReportFolder(output)
    tables = SharcTables(_cells(chosen, asked), whole=True, best="sharc-offline", digits=2)
    _write(written, "sharc-blur", chosen, tables, _BLUR_NOTE)


def run_coherence(output: Path, asked: SharcPublishedOptions) -> None:
    """Write sharc-coherence.csv, .md and .png into ``output``."""
    from recrawl_lab.trials.capture_trial import COHERENCE_TABLES

    chosen = _chosen(COHERENCE_TABLES, asked.only)
    written = ReportFolder(output)
    cells = _cells(chosen, asked, also=("sharc-optimal",))
    tables = SharcTables(cells, whole=False, best="sharc-optimal", digits=0)
    _write(written, "sharc-coherence", chosen, tables, _COHERENCE_NOTE)


_BLUR_NOTE = """\
Average blur a page: published / expected with changes whole seconds apart / expected with a Poisson process. Strategies
that follow links have a value for every order of the links: least–greatest of the repeats. `hottest-first` and
`hottest-last` are the published columns HL and HF, which are exchanged."""
_COHERENCE_NOTE = """\
Pages that change between visit and revisit: published / expected with a Poisson process. Strategies that follow links
have a value for every order of the links: least–greatest of the repeats."""
_AGREEMENT_NOTE = """\
How far the published numbers are from what is expected (the median, as a share of the number), and how many are within
two standard deviations of one run."""


def _chosen(tables: Sequence[PublishedTable], only: str) -> list[PublishedTable]:
    names = [name.strip() for name in only.split(",") if name.strip()]
    known = [table.name for table in tables]
    missing = [name for name in names if name not in known]
    if missing:
        raise ConfigError(f"There is no table {missing[0]!r} here.", f"There are: {', '.join(known)}.")
    return [table for table in tables if not names or table.name in names]


def _cells(tables: Sequence[PublishedTable], asked: SharcPublishedOptions, also: Sequence[str] = ()) -> list[TableCell]:
    from recrawl.app.compare.benchmark_runs import run_tasks
    from recrawl_lab.trials.capture_trial import StrategyEntry, run_trials

    rows = [
        (setting, [StrategyEntry(strategy) for strategy in (*also, *table.columns)])
        for table in tables
        for setting in table.settings_within(asked.pages)
    ]
    tasks = [
        partial(run_trials, setting, entries, seed=asked.seed, repeats=asked.repeats, law=asked.law())
        for setting, entries in rows
    ]
    trials = run_tasks(tasks, what="sites", jobs=asked.jobs)
    return [
        TableCell(setting, entry.strategy, trial)
        for (setting, entries), row in zip(rows, trials, strict=True)
        for entry, trial in zip(entries, row, strict=True)
    ]


def _write(written: ReportFolder, name: str, chosen: Sequence[PublishedTable], tables: SharcTables, note: str) -> None:
    from recrawl_lab.sharc_plots import draw_curves

    written.table(f"{name}.csv", tables.columns())
    parts = ["## How well they agree", _AGREEMENT_NOTE, tables.agreement(), "## The tables", note]
    for table in chosen:
        parts += [f"### Table {table.name}: {table.title[0].lower()}{table.title[1:]}", tables.grid(table)]
    draw_curves(
        written.file(f"{name}.png"),
        [tables.panel(table) for table in chosen],
        columns=min(len(chosen), 2),
        y_label=f"in units of {tables.best}",
        title="Lines: expected; rings: published",
    )
    written.end(f"{name}.md", "\n\n".join(parts) + "\n")


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
    from recrawl_lab.trials.capture_trial import THRESHOLD_TABLES, threshold_settings

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
    from recrawl_lab.trials.capture_trial import THRESHOLDS

    rows = []
    for skew, setting in settings.items():
        rate = power_rates(setting.pages, skew=skew)
        kept = [shrinking(rate, setting.slow_down, tau) for tau in THRESHOLDS]
        row = [f"{setting.pages - one.before:.0f} / {setting.pages - one.after:.0f}" for one in kept]
        rows.append([f"skew {skew:g}", *row])
    return markdown_table(["threshold", *(f"{tau:g}" for tau in THRESHOLDS)], rows)


def _trials(settings: Mapping[float, PublishedRow], asked: SharcPublishedOptions) -> dict[ThresholdCase, StrategyTrial]:
    from recrawl.app.compare.benchmark_runs import run_tasks
    from recrawl_lab.trials.capture_trial import THRESHOLD_STRATEGIES, THRESHOLDS, StrategyEntry, run_trials

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
    from recrawl_lab.trials.capture_trial import THRESHOLD_STRATEGIES, THRESHOLD_TABLES, THRESHOLDS

    for table, strategies in THRESHOLD_STRATEGIES.items():
        if place.strategy in strategies and place.threshold is not None:
            return THRESHOLD_TABLES[table][place.skew][THRESHOLDS.index(place.threshold)]
    return None


def _grid(table: str, trials: Mapping[ThresholdCase, StrategyTrial], *, comparable: bool) -> str:
    from recrawl.app.result_tables import markdown_table
    from recrawl_lab.trials.capture_trial import THRESHOLD_STRATEGIES, THRESHOLD_TABLES, THRESHOLDS

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
    """Whole numbers, the smallest in bold; equal printed numbers are marked alike."""
    whole = [round(value) for value in values]
    return [f"**{value}**" if value == min(whole) else f"{value}" for value in whole]


def _panel(table: str, skew: float, trials: Mapping[ThresholdCase, StrategyTrial], *, comparable: bool) -> CurvePanel:
    from recrawl_lab.sharc_plots import Curve, CurvePanel
    from recrawl_lab.trials.capture_trial import THRESHOLD_STRATEGIES, THRESHOLD_TABLES, THRESHOLDS

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
