"""``recrawl experiment sharc-real``: all strategies on recorded sites, with true, learned and claimed rates.

Recorded sites with their link graphs are read from a data set. Results are tables in Markdown, and plots.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, fields
from functools import partial
from pathlib import Path
from statistics import fmean
from typing import TYPE_CHECKING, Any

import numpy as np

from recrawl.errors import InputError, require
from recrawl.time import format_duration
from recrawl_lab.experiments.report_folder import ReportFolder
from recrawl_lab.trials.capture_recorded import BASELINES, DURATIONS, SINGLE_VISIT, SOURCES, TIMED, VISIT_REVISIT

if TYPE_CHECKING:
    from recrawl.model import AnyArray, IntArray
    from recrawl.simulate.virtual_web import WebLinks
    from recrawl_lab.sharc_plots import DotPanel
    from recrawl_lab.trials.capture_recorded import RecordedSite, RecordedTrial, Source, TimedTrial


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
            "Get the data set again.",
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
        self._trials = {(t.site, t.source, t.strategy): t for t in trials}
        self._spans = {site.name: (site.collection.end - site.middle) / _YEAR for site in sites}
        self.sites = [site.name for site in sites if any(site.name == trial.site for trial in trials)]

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
        return self._trials[site, source, strategy]

    def _shares(self, strategy: str, source: Source, *, expected: bool = False) -> list[float]:
        trials = [self._slow(site, source, strategy) for site in self.sites]
        return [(t.expected_incoherence if expected else t.incoherence) / t.pages for t in trials]

    def _beside_bfs(self, site: str, source: Source, strategy: str, measure: str) -> float | None:
        blur, of_bfs = (float(getattr(self._slow(site, source, name), measure)) for name in (strategy, "bfs"))
        return blur / of_bfs if of_bfs > 0 else None


class DurationTables:
    """Captures of given durations, all sites together, with intervals by resampling the sites."""

    def __init__(self, trials: Sequence[TimedTrial], *, seed: int) -> None:
        self._trials = {(t.site, t.duration, t.strategy, t.source): t for t in trials}
        self._durations = sorted({trial.duration for trial in trials})
        self._seed = seed

    def report(self) -> str:
        """The tables of coherence, of expectations, of blur, and the sites one by one."""
        from recrawl.capture import REVISITING

        twice = [name for name in TIMED if name in REVISITING]
        once = [name for name in TIMED if name not in REVISITING]
        parts = [
            "## By duration",
            _DURATION_NOTE,
            self._table(twice, "bfs-lifo", "incoherence"),
            _BELIEVED_NOTE,
            self._calibration(),
            _DURATION_BLUR_NOTE,
            self._table(once, "bfs", "blur"),
            _BY_SITE_NOTE,
            self._by_site(),
        ]
        return "\n\n".join(parts) + "\n"

    def _table(self, strategies: Sequence[str], beside: str, measure: str) -> str:
        """A row a strategy and source, a column a duration: ratio, interval, and decided captures."""
        from recrawl.app.result_tables import markdown_table

        rows = [[beside, "", *(self._base(duration, beside, measure) for duration in self._durations)]]
        for name in strategies:
            for source in TIMED[name]:
                if name != beside:
                    cells = [self._cell(duration, name, source, beside, measure) for duration in self._durations]
                    rows.append([name, _RATES[source], *cells])
        return markdown_table(["strategy", "rates", *map(format_duration, self._durations)], rows)

    def _base(self, duration: float, beside: str, measure: str) -> str:
        """What the baseline has: the mean share of incoherent pages, or blur a page; and the captures."""
        trials = self._of(duration, beside, "none")
        if not trials:
            return "–"
        value = fmean(_measured(trial, measure) for trial in trials)
        shown = f"{100 * value:.2g} %" if measure == "incoherence" else f"{value:.2g}"
        return f"{shown}, {sum(trial.captures for trial in trials)} of {len(trials)} sites"

    def _cell(self, duration: float, name: str, source: Source, beside: str, measure: str) -> str:
        """The ratio of the means over sites to those of the baseline, its interval, and better : worse captures."""
        mine, other = self._of(duration, name, source), self._of(duration, beside, "none")
        values = np.array([_measured(trial, measure) for trial in mine])
        others = np.array([_measured(trial, measure) for trial in other])
        if not others.sum() > 0:
            return "–"
        some = np.random.default_rng(self._seed).integers(len(others), size=(_RESAMPLES, len(others)))
        below = others[some].sum(axis=1)
        drawn = values[some].sum(axis=1)[below > 0] / below[below > 0]
        low, high = np.quantile(drawn, [0.025, 0.975])
        better, worse = sum(trial.better for trial in mine), sum(trial.worse for trial in mine)
        return f"{values.sum() / others.sum():.2f} ({low:.2f}–{high:.2f}), {better} : {worse}"

    def _calibration(self) -> str:
        """Incoherent pages over all captures of SHARC-Selective: expected by the rates given, and found."""
        from recrawl.app.result_tables import markdown_table

        rows = []
        for source in TIMED["sharc-selective"]:
            cells = []
            for duration in self._durations:
                trials = self._of(duration, "sharc-selective", source)
                believed, found = (
                    sum(trial.captures * value for trial, value in zip(trials, values, strict=True))
                    for values in ([t.believed for t in trials], [t.incoherence for t in trials])
                )
                cells.append(f"{believed:,.0f} / {found:,.0f}")
            rows.append([_RATES[source], *cells])
        return markdown_table(["rates", *map(format_duration, self._durations)], rows)

    def _by_site(self) -> str:
        from recrawl.app.result_tables import markdown_table

        rows = []
        for site in dict.fromkeys(key[0] for key in self._trials):
            cells = []
            for duration in self._durations:
                found = self._trials.get((site, duration, "sharc-selective", "learned"))
                other = self._trials.get((site, duration, "bfs-lifo", "none"))
                if found is None or other is None:
                    cells.append("–")
                else:
                    cells.append(f"{found.incoherence:.2f} / {other.incoherence:.2f}")
            rows.append([site, *cells])
        return markdown_table(["site", *map(format_duration, self._durations)], rows)

    def _of(self, duration: float, strategy: str, source: Source) -> list[TimedTrial]:
        wanted = duration, strategy, source
        return [trial for (_, *what), trial in self._trials.items() if tuple(what) == wanted]


def _measured(trial: TimedTrial, measure: str) -> float:
    """The share of incoherent pages, or the blur a page."""
    return trial.incoherence / trial.pages if measure == "incoherence" else trial.blur


_RESAMPLES = 2_000
"""Draws of as many sites as there are."""
_RATES: Mapping[Source, str] = {
    "none": "",
    "learned": "learned",
    "change-only": "learned, without hazard",
    "median": "learned, median",
    "oracle": "true",
}
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
_DURATION_NOTE = """\
Share of incoherent pages in units of that of `bfs-lifo`: means over the sites, the 95 % interval by resampling the
sites, and the captures that had fewer : more incoherent pages than `bfs-lifo` from the same start. The first row has
the share of `bfs-lifo` itself and the captures. True rates are those from the start to the end of the record."""
_BELIEVED_NOTE = "Incoherent pages of `sharc-selective`, all captures together, expected by the rates given / found:"
_DURATION_BLUR_NOTE = "Blur of single visits in units of that of `bfs`, in the same way:"
_BY_SITE_NOTE = "Incoherent pages of each site, means of its captures: `sharc-selective`, learned rates / `bfs-lifo`."


@dataclass(frozen=True, slots=True)
class SharcRealOptions:
    """What the experiment is asked for."""

    only: Sequence[str]
    """Names of sites; none for all."""
    seed: int
    durations: Sequence[float]
    """Seconds."""
    starts: int
    """Moments at which captures of each site start."""
    jobs: int | None


def run(data: Path, output: Path, asked: SharcRealOptions) -> None:
    """Write sharc-real.csv, sharc-real-durations.csv, .md, .png and sharc-real-blur.png into ``output``."""
    from recrawl.app.compare.benchmark_runs import run_tasks
    from recrawl_lab.sharc_plots import draw_dots
    from recrawl_lab.trials.capture_recorded import (
        RecordedTrial,
        TimedTrial,
        least_incoherence,
        of_durations,
        slowed_down,
    )

    sites = recorded_sites(data, asked.only)
    written = ReportFolder(output)
    largest_first = sorted(sites, key=lambda site: -len(site.collection))
    methods = SINGLE_VISIT + VISIT_REVISIT
    slow = [
        partial(slowed_down, site, source, methods, seed=asked.seed) for site in largest_first for source in SOURCES
    ]
    trials = [trial for part in run_tasks(slow, what="slowed down", jobs=asked.jobs) for trial in part]
    durations = asked.durations or DURATIONS
    quick = [partial(of_durations, site, durations, starts=asked.starts, seed=asked.seed) for site in largest_first]
    timed = [trial for part in run_tasks(quick, what="by duration", jobs=asked.jobs) for trial in part]
    bounds = run_tasks([partial(least_incoherence, site) for site in sites], what="bounds", jobs=asked.jobs)
    tables = RealTables(sites, trials, bounds)
    written.table("sharc-real.csv", _columns_of(trials, RecordedTrial))
    written.table("sharc-real-durations.csv", _columns_of(timed, TimedTrial))
    pictures = written.file("sharc-real.png"), written.file("sharc-real-blur.png")
    draw_dots(pictures[0], tables.sites, tables.coherence_panels(), title="Pages that changed meanwhile")
    draw_dots(pictures[1], tables.sites, tables.blur_panels(), title="Blur of single-visit captures")
    written.end("sharc-real.md", DurationTables(timed, seed=asked.seed).report() + "\n" + tables.report())


def _columns_of(trials: Sequence[Any], kind: type) -> dict[str, list[object]]:
    return {column.name: [getattr(trial, column.name) for trial in trials] for column in fields(kind)}
