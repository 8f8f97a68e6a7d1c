"""``recrawl experiment sharc-blur`` and ``sharc-coherence``: the synthetic tables of the thesis beside ours."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from recrawl.cli.experiments.report_folder import ReportFolder
from recrawl.errors import ConfigError

if TYPE_CHECKING:
    from recrawl.cli.experiments.sharc_tables import Cell, SharcTables
    from recrawl.simulate.capture_published import PublishedTable
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


def run_blur(output: Path, asked: Asked) -> None:
    """Write sharc-blur.csv, .md and .png into ``output``."""
    from recrawl.cli.experiments.sharc_tables import SharcTables
    from recrawl.simulate.capture_published import BLUR_TABLES

    chosen = _chosen(BLUR_TABLES, asked.only)
    written = ReportFolder(output)
    tables = SharcTables(_cells(chosen, asked), whole=True, best="sharc-offline", digits=2)
    _write(written, "sharc-blur", chosen, tables, _BLUR_NOTE)


def run_coherence(output: Path, asked: Asked) -> None:
    """Write sharc-coherence.csv, .md and .png into ``output``."""
    from recrawl.cli.experiments.sharc_tables import SharcTables
    from recrawl.simulate.capture_published import COHERENCE_TABLES

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


def _cells(tables: Sequence[PublishedTable], asked: Asked, also: Sequence[str] = ()) -> list[Cell]:
    from recrawl.cli.experiments.sharc_tables import Cell
    from recrawl.cli.tasks import run_tasks
    from recrawl.simulate.capture_trial import Entry, run_trials

    rows = [
        (setting, [Entry(strategy) for strategy in (*also, *table.columns)])
        for table in tables
        for setting in table.settings_within(asked.pages)
    ]
    tasks = [
        partial(run_trials, setting, entries, seed=asked.seed, repeats=asked.repeats, law=asked.law())
        for setting, entries in rows
    ]
    trials = run_tasks(tasks, what="sites", jobs=asked.jobs)
    return [
        Cell(setting, entry.strategy, trial)
        for (setting, entries), row in zip(rows, trials, strict=True)
        for entry, trial in zip(entries, row, strict=True)
    ]


def _write(written: ReportFolder, name: str, chosen: Sequence[PublishedTable], tables: SharcTables, note: str) -> None:
    from recrawl.show.sharc import draw_curves

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
