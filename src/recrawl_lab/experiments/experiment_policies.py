"""``recrawl experiment policies``: the grand table of all policies on all collections at all budgets."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import isnan
from pathlib import Path
from typing import TYPE_CHECKING

from recrawl.errors import InputError
from recrawl.time import DAY
from recrawl_lab.experiments.report_folder import ReportFolder

if TYPE_CHECKING:
    from recrawl.app.compare.benchmark_runs import TallyCache
    from recrawl.simulate.benchmark_field import BenchmarkField
    from recrawl.simulate.policy_benchmark import BenchmarkRules

BUDGETS = (0.01, 0.03, 0.1, 0.3, 1.0)
"""Visits for each page that is there, a day."""
MANY = 20
"""A data set of more collections than this is one field: each alone would be too small."""


@dataclass(frozen=True, slots=True)
class PoliciesOptions:
    """What the grand table is asked for."""

    policies: Sequence[str]
    budgets: Sequence[float]
    only: Sequence[str]
    """Names of collections; none for all."""
    most_pages: int | None
    rules: BenchmarkRules
    """The budget in them does not count."""
    seed: int
    repeats: int
    jobs: int | None
    keep: Path | None
    """Where tallies are kept and taken from; ``None`` for nowhere."""
    kept_only: bool = False
    """Make the table of what was kept."""

    @property
    def kept(self) -> TallyCache | None:
        """The tallies of an earlier call that asked for the same."""
        from recrawl.app.compare.benchmark_runs import TallyCache

        series = f"{self.seed}-{self.repeats}-{self.most_pages or 'all'}-{self.rules.tick:g}"
        return None if self.keep is None else TallyCache(self.keep, series)


def run(data: Path, output: Path, asked: PoliciesOptions) -> None:
    """Run all benchmarks; write policies.csv, policies.md and policies.png into ``output``."""
    from recrawl.app.compare.benchmark_runs import BenchmarkRun, any_entry, known_policies, run_all
    from recrawl.app.result_tables import draw_panels
    from recrawl_lab.experiments.policies_table import GrandTable

    policies = known_policies(asked.policies)
    fields = _fields(data, asked.only, asked.most_pages)
    written = ReportFolder(output)
    runs = [BenchmarkRun(name, policy, budget) for name in fields for policy in policies for budget in asked.budgets]
    tallies = run_all(
        {name: [field] * asked.repeats for name, field in fields.items()},
        runs,
        any_entry,
        asked.rules,
        seed=asked.seed,
        jobs=asked.jobs,
        kept=asked.kept,
        kept_only=asked.kept_only,
    )
    if not tallies:
        raise InputError(
            "Nothing was kept of these runs.", "Leave out --kept-only to hold them.", source=str(asked.keep)
        )
    if all(isnan(tally.ratio("freshness")) for tally in tallies.values()):
        raise InputError(
            "None of these pages was there in the part of the record that is scored.",
            "Take more pages with --pages, or leave it out.",
            source=str(data),
        )
    as_printed = asked.most_pages is None and asked.rules.tick == DAY
    table = GrandTable(fields, tallies, asked.seed, as_printed=as_printed)
    written.table("policies.csv", table.columns())
    draw_panels(
        written.file("policies.png"),
        table.panels(),
        x_label="visits a page a year",
        y_label="median over collections",
        title="What the same visits bring, by policy",
    )
    written.end("policies.md", table.report())


def _fields(data: Path, only: Sequence[str], most_pages: int | None) -> dict[str, BenchmarkField]:
    """The fields of all data sets, by name, largest last. Equal names get the name of their data set."""
    from recrawl.app.compare.benchmark_runs import collections, find_datasets
    from recrawl.simulate.benchmark_field import field_of, field_of_all

    found: dict[str, BenchmarkField] = {}
    for folder in find_datasets(data):
        parts = collections(folder)
        if len(parts) > MANY:
            if not only or folder.name in only:
                found[folder.name] = field_of_all(folder.name, parts, most_pages=most_pages)
            continue
        for part in parts:
            if not only or part.name in only:
                name = part.name if part.name not in found else f"{folder.name}/{part.name}"
                found[name] = field_of(part, most_pages=most_pages)
    missing = set(only) - found.keys()
    if missing:
        raise InputError(
            f"There is no collection {min(missing)!r}.",
            "Name sites as the tables do, or a data set that is taken as a whole.",
            source=str(data),
        )
    return found
