"""``recrawl experiment sharc-real``: all strategies on recorded sites, with true, learned and claimed rates."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, fields
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from recrawl.cli.experiments.report_folder import ReportFolder

if TYPE_CHECKING:
    from recrawl.simulate.capture_recorded import RecordedSite
    from recrawl.simulate.capture_recorded_trial import RecordedTrial

DELAYS = (1.0, 10.0, 60.0)
"""Seconds between requests."""


@dataclass(frozen=True, slots=True)
class Asked:
    """What the experiment is asked for."""

    only: Sequence[str]
    """Names of sites; none for all."""
    seed: int
    delays: Sequence[float] | None
    instants: int
    jobs: int | None


def run(data: Path, output: Path, asked: Asked) -> None:
    """Write sharc-real.csv, .md, .png and sharc-real-blur.png into ``output``."""
    from recrawl.cli.experiments.sharc_data import recorded_sites
    from recrawl.cli.experiments.sharc_real_report import RealTables
    from recrawl.cli.tasks import run_tasks
    from recrawl.show.sharc import draw_dots
    from recrawl.simulate.capture_recorded_trial import least_incoherence

    sites = recorded_sites(data, asked.only)
    written = ReportFolder(output)
    trials = _trials(sites, asked)
    bounds = run_tasks([partial(least_incoherence, site) for site in sites], what="bounds", jobs=asked.jobs)
    tables = RealTables(sites, trials, bounds)
    written.table("sharc-real.csv", _columns(trials))
    pictures = written.file("sharc-real.png"), written.file("sharc-real-blur.png")
    draw_dots(pictures[0], tables.sites, tables.coherence_panels(), title="Pages that changed meanwhile")
    draw_dots(pictures[1], tables.sites, tables.blur_panels(), title="Blur of single-visit captures")
    written.end("sharc-real.md", tables.report())


def _trials(sites: Sequence[RecordedSite], asked: Asked) -> list[RecordedTrial]:
    from recrawl.cli.tasks import run_tasks
    from recrawl.simulate.capture_recorded_trial import (
        AT_SPEED,
        SINGLE_VISIT,
        SOURCES,
        VISIT_REVISIT,
        realistic,
        slowed_down,
    )

    strategies = SINGLE_VISIT + VISIT_REVISIT
    largest_first = sorted(sites, key=lambda site: -len(site.collection))
    tasks = [
        partial(slowed_down, site, source, strategies, seed=asked.seed) for site in largest_first for source in SOURCES
    ]
    tasks += [
        partial(realistic, site, source, AT_SPEED, delay, instants=asked.instants, seed=asked.seed)
        for site in largest_first
        for source in SOURCES[:2]
        for delay in asked.delays or DELAYS
    ]
    found = run_tasks(tasks, what="captures", jobs=asked.jobs)
    return [trial for part in found for trial in part]


def _columns(trials: Sequence[RecordedTrial]) -> dict[str, list[object]]:
    from recrawl.simulate.capture_recorded_trial import RecordedTrial

    return {column.name: [getattr(trial, column.name) for trial in trials] for column in fields(RecordedTrial)}
