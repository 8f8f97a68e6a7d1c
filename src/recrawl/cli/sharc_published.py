"""``recrawl experiment sharc-blur`` and ``sharc-coherence``: the synthetic tables of the thesis beside ours."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

import typer

from recrawl.errors import InputError

if TYPE_CHECKING:
    from recrawl.show.sharc import CurvePanel
    from recrawl.simulate.capture_published import PublishedTable, Setting
    from recrawl.simulate.capture_trial import Trial
    from recrawl.simulate.laws import Law


@dataclass(frozen=True, slots=True)
class Asked:
    """What an experiment is asked for."""

    only: str
    """Names of tables with commas between; none for all."""
    pages: int
    seed: int
    repeats: int
    changes: str
    """``poisson`` or ``whole``."""
    jobs: int | None

    def law(self) -> Law:
        """By which changes are drawn."""
        from recrawl.simulate.laws import Poisson, WholeGaps

        return WholeGaps() if self.changes == "whole" else Poisson()


@dataclass(frozen=True, slots=True)
class Cell:
    """A strategy in a row of a table, and what came of it."""

    setting: Setting
    strategy: str
    trial: Trial

    @property
    def published(self) -> float | None:
        """The printed number, if there is one."""
        return self.setting.published.get(self.strategy)


def run_blur(output: Path, asked: Asked) -> None:
    """Write sharc-blur.csv, .md and .png into ``output``."""
    from recrawl.simulate.capture_published import BLUR_TABLES

    tables = _chosen(BLUR_TABLES, asked.only)
    cells = _cells(tables, asked)
    notes = [_BLUR_NOTE, agreement(cells, whole=True)]
    _write(output, "sharc-blur", tables, cells, notes, whole=True, best="sharc-offline")


def run_coherence(output: Path, asked: Asked) -> None:
    """Write sharc-coherence.csv, .md and .png into ``output``."""
    from recrawl.simulate.capture_published import COHERENCE_TABLES

    tables = _chosen(COHERENCE_TABLES, asked.only)
    cells = _cells(tables, asked, also=("sharc-optimal",))
    notes = [_COHERENCE_NOTE, agreement(cells, whole=False)]
    _write(output, "sharc-coherence", tables, cells, notes, whole=False, best="sharc-optimal")


_BLUR_NOTE = """\
Average blur a page: published / expected with changes whole seconds apart / expected with a Poisson process. Strategies
that follow links have a value for every order of the links: least–greatest of the repeats. `hottest-first` and
`hottest-last` are the published columns HL and HF, which are exchanged."""
_COHERENCE_NOTE = """\
Pages that change between visit and revisit: published / expected with a Poisson process. Strategies that follow links
have a value for every order of the links: least–greatest of the repeats."""


def _chosen(tables: Sequence[PublishedTable], only: str) -> list[PublishedTable]:
    names = [name.strip() for name in only.split(",") if name.strip()]
    known = [table.name for table in tables]
    missing = [name for name in names if name not in known]
    if missing:
        raise InputError(f"There is no table {missing[0]!r} here.", f"There are: {', '.join(known)}.")
    return [table for table in tables if not names or table.name in names]


def _cells(tables: Sequence[PublishedTable], asked: Asked, also: Sequence[str] = ()) -> list[Cell]:
    from recrawl.cli.sharc_runs import run_tasks
    from recrawl.simulate.capture_trial import run_trial

    places = [
        (setting, strategy)
        for table in tables
        for setting in table.settings_within(asked.pages)
        for strategy in (*also, *table.columns)
    ]
    tasks = [
        partial(run_trial, setting, strategy, seed=asked.seed, repeats=asked.repeats, law=asked.law())
        for setting, strategy in places
    ]
    trials = run_tasks(tasks, what="captures", jobs=asked.jobs)
    return [Cell(*place, trial) for place, trial in zip(places, trials, strict=True)]


def _write(  # noqa: PLR0913 - what is written, by keyword
    output: Path,
    name: str,
    tables: Sequence[PublishedTable],
    cells: Sequence[Cell],
    notes: Sequence[str],
    *,
    whole: bool,
    best: str,
) -> None:
    from recrawl.cli.sharc_pages import write_page
    from recrawl.show.experiments import write_csv
    from recrawl.show.sharc import draw_curves

    output.mkdir(parents=True, exist_ok=True)
    write_csv(output / f"{name}.csv", columns(cells))
    parts = list(notes)
    for table in tables:
        own = [cell for cell in cells if cell.setting.table == table.name]
        parts += [f"## Table {table.name}: {table.title[0].lower()}{table.title[1:]}", _grid(own, whole=whole)]
    text = "\n\n".join(parts) + "\n"
    write_page(output / f"{name}.md", text)
    panels = [
        _panel(table, [cell for cell in cells if cell.setting.table == table.name], best=best, whole=whole)
        for table in tables
    ]
    draw_curves(
        output / f"{name}.png",
        panels,
        columns=min(len(panels), 2),
        y_label=f"in units of {best}",
        title="Lines: expected; rings: published",
    )
    typer.echo(text)
    typer.echo(f"Written: {output / f'{name}.md'}, {output / f'{name}.csv'}, {output / f'{name}.png'}")


def columns(cells: Sequence[Cell]) -> dict[str, list[object]]:
    """Every number, one row a strategy and setting."""
    rows: list[dict[str, object]] = [
        {
            "table": cell.setting.table,
            "pages": cell.setting.pages,
            "skew": cell.setting.skew,
            "slow_down": cell.setting.slow_down,
            "outdegree": cell.setting.outdegree,
            "leaves": cell.setting.leaves,
            "strategy": cell.strategy,
            "published": cell.published,
            "expected_least": min(cell.trial.expected),
            "expected_greatest": max(cell.trial.expected),
            "expected_whole_least": min(cell.trial.expected_whole),
            "expected_whole_greatest": max(cell.trial.expected_whole),
            "deviation": cell.trial.deviation,
            "actual_mean": sum(cell.trial.actual) / len(cell.trial.actual),
            "actual_least": min(cell.trial.actual),
            "actual_greatest": max(cell.trial.actual),
            "repeats": len(cell.trial.actual),
        }
        for cell in cells
    ]
    return {name: [row[name] for row in rows] for name in rows[0]}


def agreement(cells: Sequence[Cell], *, whole: bool) -> str:
    """How far the published numbers are from what is expected, strategy by strategy."""
    from statistics import median

    from recrawl.show.experiments import markdown_table

    rows = []
    for strategy in dict.fromkeys(cell.strategy for cell in cells if cell.published is not None):
        own = [cell for cell in cells if cell.strategy == strategy and cell.published is not None]
        laws = ([[cell.trial.expected_whole for cell in own]] if whole else []) + [[c.trial.expected for c in own]]
        apart = [[_apart(cell, values) for cell, values in zip(own, law, strict=True)] for law in laws]
        beside = [
            median(abs(one) / cell.published for one, cell in zip(law, own, strict=True) if cell.published)
            for law in apart
        ]
        within = sum(
            abs(one) <= 2.0 * cell.trial.deviation + _ROUNDED * whole for one, cell in zip(apart[0], own, strict=True)
        )
        rows.append([strategy, f"{len(own)}", *(f"{share:.1%}" for share in beside), f"{within} of {len(own)}"])
    headings = ["median distance", "numbers", *(["whole seconds"] if whole else []), "Poisson", "within 2 s.d."]
    return markdown_table(headings, rows) if rows else "No numbers were published of these sites."


_ROUNDED = 0.005
"""Blur is printed with two decimals."""


def _apart(cell: Cell, values: Sequence[float]) -> float:
    """Distance of the published number from the range of ours; 0 within it."""
    published = cell.published or 0.0
    return max(published - max(values), 0.0) + min(published - min(values), 0.0)


def _grid(cells: Sequence[Cell], *, whole: bool) -> str:
    from recrawl.show.experiments import markdown_table

    strategies = list(dict.fromkeys(cell.strategy for cell in cells))
    settings = list({cell.setting.value: cell.setting for cell in cells}.values())
    by_place = {(cell.setting.value, cell.strategy): cell for cell in cells}
    rows = [
        [_named(setting.value), *(_shown(by_place[setting.value, name], whole=whole) for name in strategies)]
        for setting in settings
    ]
    return markdown_table([settings[0].varied, *strategies], rows)


def _named(value: float) -> str:
    return f"{value:,.0f}" if value >= _MANY else f"{value:g}"


_MANY = 100
"""From here on numbers are shown with separators."""


def _shown(cell: Cell, *, whole: bool) -> str:
    digits = 2 if whole else 0
    published = "–" if cell.published is None else f"{cell.published:.{digits}f}"
    laws = ([cell.trial.expected_whole] if whole else []) + [cell.trial.expected]
    return " / ".join([published, *(_range(values, digits) for values in laws)])


def _range(values: Sequence[float], digits: int) -> str:
    low, high = f"{min(values):.{digits}f}", f"{max(values):.{digits}f}"
    return low if low == high else f"{low}–{high}"


def _panel(table: PublishedTable, cells: Sequence[Cell], *, best: str, whole: bool) -> CurvePanel:
    """Everything in units of what the best strategy is expected to reach."""
    from recrawl.show.sharc import Curve, CurvePanel

    def values(cell: Cell) -> tuple[float, ...]:
        return cell.trial.expected_whole if whole else cell.trial.expected

    unit = {cell.setting.value: values(cell)[0] for cell in cells if cell.strategy == best}
    curves = []
    for strategy in dict.fromkeys(cell.strategy for cell in cells):
        own = [cell for cell in cells if cell.strategy == strategy]
        units = [unit[cell.setting.value] for cell in own]
        means = [sum(values(cell)) / len(values(cell)) / one for cell, one in zip(own, units, strict=True)]
        low, high = ([pick(values(cell)) / one for cell, one in zip(own, units, strict=True)] for pick in (min, max))
        printed = [cell.published and cell.published / one for cell, one in zip(own, units, strict=True)]
        x = [cell.setting.value for cell in own]
        curves.append(Curve(strategy, x, means, printed, low, high, ours=strategy == best))
    return CurvePanel(f"{table.name}: {table.title}", table.varied, curves, log_x=table.varied != "skew")
