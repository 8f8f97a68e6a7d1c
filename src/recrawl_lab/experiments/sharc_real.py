"""``recrawl experiment sharc-real``: all strategies on recorded sites, with true, learned and claimed rates.

Recorded sites with their link graphs are read from a data set. Results are tables in Markdown, and plots.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, fields
from functools import partial
from math import isnan
from pathlib import Path
from statistics import fmean
from typing import TYPE_CHECKING, Any

import numpy as np

from recrawl.errors import InputError, require
from recrawl_lab.experiments.report_folder import ReportFolder
from recrawl_lab.trials.capture_recorded import AT_SPEED, BASELINES, SINGLE_VISIT, SOURCES, VISIT_REVISIT

if TYPE_CHECKING:
    from recrawl.model import AnyArray, IntArray
    from recrawl.simulate.virtual_web import WebLinks
    from recrawl_lab.sharc_plots import DotPanel
    from recrawl_lab.trials.capture_recorded import RecordedSite, RecordedTrial, Source


def recorded_sites(data: Path, only: Sequence[str]) -> list[RecordedSite]:
    """The sites of all data sets in a folder that tell links (edges.parquet), or those named.

    Raises:
        InputError: there is no such site, or no links are told.
    """
    from recrawl.app.compare.benchmark_runs import collections, find_datasets
    from recrawl_lab.trials.capture_recorded import RecordedSite

    found = []
    for folder in find_datasets(data):
        if not (folder / "edges.parquet").is_file():
            continue
        wanted = [one for one in collections(folder) if not only or one.name in only]
        links = _links(folder, {one.name: len(one) for one in wanted})
        found += [RecordedSite(one, links[one.name]) for one in wanted]
    missing = sorted(set(only) - {site.name for site in found})
    if missing or not found:
        what = (
            f"There is no site {missing[0]!r} with links." if missing else "No data set here tells the links of pages."
        )
        raise InputError(what, "Name a folder with pages.parquet, events.parquet and edges.parquet.", source=str(data))
    return found


def _links(folder: Path, sizes: dict[str, int]) -> dict[str, WebLinks]:
    """The links of each site, between pages by their place in the order of page numbers."""
    from recrawl.simulate.virtual_web import WebLinks

    pages = _columns(folder / "pages.parquet", ("site", "page_id"))
    edges = _columns(folder / "edges.parquet", ("site", "src", "dst", "t_add", "t_rem"))
    links = {}
    for site, size in sizes.items():
        ids = np.sort(pages["page_id"][pages["site"] == site].astype(np.int64))
        rows = edges["site"] == site
        removed = edges["t_rem"][rows].astype(np.float64)
        links[site] = WebLinks.of(
            _places(ids, edges["src"][rows], folder),
            _places(ids, edges["dst"][rows], folder),
            edges["t_add"][rows].astype(np.float64),
            np.where(np.isnan(removed), np.inf, removed),
            pages=size,
        )
    return links


def _places(ids: IntArray, page: AnyArray, folder: Path) -> IntArray:
    place = np.searchsorted(ids, page.astype(np.int64))
    if len(page) and not (len(ids) and np.array_equal(ids[np.minimum(place, len(ids) - 1)], page)):
        raise InputError(
            "a link is between pages that pages.parquet does not have",
            "Get the data set anew.",
            source=str(folder / "edges.parquet"),
        )
    return place


def _columns(file: Path, names: tuple[str, ...]) -> dict[str, AnyArray]:
    pa: Any = require("pyarrow", "columns")
    pq: Any = require("pyarrow.parquet", "columns")
    lacking = [name for name in names if name not in pq.read_schema(file).names]
    if lacking:
        raise InputError(f"there is no column {lacking[0]!r}", "Take a data set that tells links.", source=str(file))
    table = pq.read_table(file, columns=list(names))
    columns = {}
    for name in names:
        column = table.column(name)
        plain = column.cast(pa.string()) if pa.types.is_dictionary(column.type) else column
        columns[name] = np.asarray(plain.to_numpy(zero_copy_only=False))
    return columns


_YEAR = 365.25 * 86400.0
_NEARLY = 1e-6
"""Pages; less is a matter of rounding."""
_SLOW = "slowed down"
_BLIND = ("bfs", "dfs")
"""Strategies that use no rates."""
_DRAWN = (
    "sharc-optimal",
    "sharc-selective",
    "sharc-selective-online",
    "hottest-last-lifo",
    "bfs-lifo",
    "dfs-lifo",
    "bfs-fifo",
)


class RealTables:
    """All trials, and what they say."""

    def __init__(self, sites: Sequence[RecordedSite], trials: Sequence[RecordedTrial], bounds: Sequence[float]) -> None:
        """``bounds`` are what no schedule of each site goes below, in expected incoherent pages."""
        self._bounds = {site.name: bound for site, bound in zip(sites, bounds, strict=True)}
        self._trials = {(t.site, t.source, t.strategy, _speed(t.delay)): t for t in trials}
        self._spans = {site.name: (site.collection.end - site.middle) / _YEAR for site in sites}
        self.sites = [site.name for site in sites if any(site.name == trial.site for trial in trials)]
        self._speeds = list(dict.fromkeys(_speed(trial.delay) for trial in trials if not isnan(trial.delay)))

    # -- Markdown --------------------------------------------------------------------------------

    def report(self) -> str:
        """All tables."""
        parts = [
            "## Expected incoherence with true rates",
            _CLAIM_NOTE,
            self._claim(),
            "## Blur, as in Table 4.3",
            _BLUR_NOTE,
            *self._by_source(SINGLE_VISIT, lambda t: f"{t.expected_blur:.2f} / {t.actual_blur:.2f}", SOURCES[:3]),
            "## Incoherence, as in Tables 5.6 to 5.8",
            _COHERENCE_NOTE,
            *self._by_source(VISIT_REVISIT, lambda t: f"{t.expected_incoherence:.0f} / {t.incoherence:.0f}", SOURCES),
            "## All sites together",
            _SUMMARY_NOTE,
            self._summary(),
            "## At a realistic speed",
            _SPEED_NOTE,
            *self._at_speed(),
        ]
        return "\n\n".join(parts) + "\n"

    def _claim(self) -> str:
        """On every site: the optimum, SHARC-Selective, and the best that people do without them."""
        from recrawl.app.result_tables import markdown_table

        rows = []
        for site in self.sites:
            value = {name: self._slow(site, "oracle", name).expected_incoherence for name in VISIT_REVISIT}
            best = min(BASELINES, key=value.__getitem__)
            optimal, selective = value["sharc-optimal"], value["sharc-selective"]
            holds = optimal <= selective + _NEARLY and selective <= value[best] + _NEARLY
            pages = self._slow(site, "oracle", best).pages
            numbers = [self._bounds[site], optimal, selective, value["sharc-selective-online"], value[best]]
            shown = [f"{number:.2f}" for number in numbers]
            rows.append([site, f"{pages:,.0f}", f"{self._spans[site]:.1f}", *shown, best, "yes" if holds else "**no**"])
        headings = [
            "site",
            "pages",
            "years",
            "bound",
            "optimal",
            "selective",
            "selective, online",
            "best baseline",
            "",
            "holds",
        ]
        return markdown_table(headings, rows)

    def _by_source(
        self, strategies: Sequence[str], shown: Callable[[RecordedTrial], str], sources: Sequence[Source]
    ) -> list[str]:
        from recrawl.app.result_tables import markdown_table

        parts = []
        for source in sources:
            names = [name for name in strategies if source == "oracle" or not name.startswith(_BLIND)]
            rows = [[site, *(shown(self._slow(site, source, name)) for name in names)] for site in self.sites]
            parts += [_SOURCE_TITLES[source], markdown_table(["site", *names], rows)]
        return parts

    def _summary(self) -> str:
        """Mean over the sites of the share of pages that changed, by strategy and source."""
        from recrawl.app.result_tables import markdown_table

        rows = []
        for name in VISIT_REVISIT:
            cells = [f"{100 * fmean(self._shares(name, 'oracle', expected=True)):.1f} %"]
            cells += [f"{100 * fmean(self._shares(name, source)):.1f} %" for source in SOURCES]
            rows.append([name, *cells])
        return markdown_table(["strategy", "expected, oracle", *SOURCES], rows)

    def _at_speed(self) -> list[str]:
        from recrawl.app.result_tables import markdown_table

        parts = []
        for speed in self._speeds:
            rows = []
            for site in self.sites:
                trials = [self._trials[site, "learned", name, speed] for name in AT_SPEED]
                rows.append([site, f"{trials[0].pages:,.0f}", *(_speed_cell(trial) for trial in trials)])
            parts += [f"{speed}, learned rates:", markdown_table(["site", "pages", *AT_SPEED], rows)]
        return parts

    # -- plots --------------------------------------------------------------------------------

    def coherence_panels(self) -> list[DotPanel]:
        """Share of incoherent pages: expected with true rates, actual with true rates, actual with learned rates."""
        from recrawl_lab.sharc_plots import DotPanel

        kinds: tuple[tuple[str, Source, bool], ...] = (
            ("expected, true rates", "oracle", True),
            ("actual, true rates", "oracle", False),
            ("actual, learned rates", "learned", False),
        )
        return [
            DotPanel(
                title,
                "share of pages",
                {name: self._shares(name, source, expected=expected) for name in _DRAWN},
                _DRAWN[:3],
            )
            for title, source, expected in kinds
        ]

    def blur_panels(self) -> list[DotPanel]:
        """Blur in units of that of breadth-first."""
        from recrawl_lab.sharc_plots import DotPanel

        kinds: tuple[tuple[str, Source, str], ...] = (
            ("expected, true rates", "oracle", "expected_blur"),
            ("actual, true rates", "oracle", "actual_blur"),
            ("actual, learned rates", "learned", "actual_blur"),
        )
        return [
            DotPanel(
                title,
                "blur, in units of breadth-first",
                {name: [self._beside_bfs(site, source, name, measure) for site in self.sites] for name in SINGLE_VISIT},
                SINGLE_VISIT[:2],
            )
            for title, source, measure in kinds
        ]

    # -- inside ----------------------------------------------------------------------------------

    def _slow(self, site: str, source: Source, strategy: str) -> RecordedTrial:
        return self._trials[site, source, strategy, _SLOW]

    def _shares(self, strategy: str, source: Source, *, expected: bool = False) -> list[float]:
        trials = [self._slow(site, source, strategy) for site in self.sites]
        return [(t.expected_incoherence if expected else t.incoherence) / t.pages for t in trials]

    def _beside_bfs(self, site: str, source: Source, strategy: str, measure: str) -> float | None:
        blur, of_bfs = (float(getattr(self._slow(site, source, name), measure)) for name in (strategy, "bfs"))
        return blur / of_bfs if of_bfs > 0 else None


def _speed(delay: float) -> str:
    return _SLOW if isnan(delay) else f"{delay:g} s between requests"


def _speed_cell(trial: RecordedTrial) -> str:
    """Blur of a thousand pages of single visits, incoherent pages of two: expected / actual."""
    if trial.strategy in SINGLE_VISIT:
        return f"{1000 * trial.expected_blur:.2f} / {1000 * trial.actual_blur:.2f}"
    return f"{trial.expected_incoherence:.2f} / {trial.incoherence:.2f}"


_SOURCE_TITLES = {
    "oracle": "With true rates:",
    "learned": "With rates learned from weekly visits in the first half:",
    "sitemap": "With an honest sitemap of the first half, Definition 6.1 as printed:",
    "sitemap-corrected": "With an honest sitemap of the first half, Definition 6.1 as corrected:",
}
_CLAIM_NOTE = """\
Pages expected to change between visit and revisit, captures slowed down to the second half of the record, true rates.
No schedule can go below the *bound*. *Holds*: optimal ≤ selective ≤ the best of the eight baselines."""
_BLUR_NOTE = """\
Average blur a page, captures slowed down: expected / actual. Both readings of Definition 6.1 put the pages in the same
order, so their blur is the same."""
_COHERENCE_NOTE = "Pages that change between visit and revisit, captures slowed down: expected / actual."
_SUMMARY_NOTE = """\
Mean over the sites of the share of pages that change between visit and revisit: expected with true rates, and actual by
what was believed."""
_SPEED_NOTE = """\
Means over all captures, expected / actual: blur of a thousand pages by the first four strategies, pages that change
between visit and revisit by the others."""


DELAYS = (1.0, 10.0, 60.0)
"""Seconds between requests."""


@dataclass(frozen=True, slots=True)
class SharcRealOptions:
    """What the experiment is asked for."""

    only: Sequence[str]
    """Names of sites; none for all."""
    seed: int
    delays: Sequence[float] | None
    instants: int
    jobs: int | None


def run(data: Path, output: Path, asked: SharcRealOptions) -> None:
    """Write sharc-real.csv, .md, .png and sharc-real-blur.png into ``output``."""
    from recrawl.app.compare.benchmark_runs import run_tasks
    from recrawl_lab.sharc_plots import draw_dots
    from recrawl_lab.trials.capture_recorded import least_incoherence

    sites = recorded_sites(data, asked.only)
    written = ReportFolder(output)
    trials = _trials(sites, asked)
    bounds = run_tasks([partial(least_incoherence, site) for site in sites], what="bounds", jobs=asked.jobs)
    tables = RealTables(sites, trials, bounds)
    written.table("sharc-real.csv", _result_columns(trials))
    pictures = written.file("sharc-real.png"), written.file("sharc-real-blur.png")
    draw_dots(pictures[0], tables.sites, tables.coherence_panels(), title="Pages that changed meanwhile")
    draw_dots(pictures[1], tables.sites, tables.blur_panels(), title="Blur of single-visit captures")
    written.end("sharc-real.md", tables.report())


def _trials(sites: Sequence[RecordedSite], asked: SharcRealOptions) -> list[RecordedTrial]:
    from recrawl.app.compare.benchmark_runs import run_tasks
    from recrawl_lab.trials.capture_recorded import (
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


def _result_columns(trials: Sequence[RecordedTrial]) -> dict[str, list[object]]:
    from recrawl_lab.trials.capture_recorded import RecordedTrial

    return {column.name: [getattr(trial, column.name) for trial in trials] for column in fields(RecordedTrial)}
