"""``recrawl experiment sharc-prediction``: bins of change rates foretold, Tables 6.3 and 6.4 of the SHARC thesis."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from recrawl.cli.experiments.report_folder import ReportFolder
from recrawl.cli.experiments.sharc_prediction_report import Part, columns, dots, report
from recrawl.errors import InputError
from recrawl.model.words import counted

if TYPE_CHECKING:
    from recrawl.simulate.bin_trial import SiteForetold


@dataclass(frozen=True, slots=True)
class Asked:
    """The options."""

    sitemaps: Sequence[Path]
    fewest: int
    """Pages that a site must have."""
    seed: int
    repeats: int


def run(data: Path, output: Path, asked: Asked) -> None:
    """Foretell bins on each site of each data set; write a table, a report and a picture into ``output``."""
    from recrawl.cli.datasets import find_datasets
    from recrawl.cli.waiting import bars
    from recrawl.show.dot_chart import draw_dots

    folders = [folder for folder in find_datasets(data) if (folder / "pages.parquet").is_file()]
    if not folders:
        raise InputError("no data set here tells of pages", "Name one with pages.parquet.", source=str(data))
    written = ReportFolder(output)
    sitemaps = [_of_sitemap(file, asked) for file in asked.sitemaps]
    parts = []
    with bars() as bar:
        for folder in bar.track(folders, description="sites"):
            parts += _parts(folder, asked)
    parts += [Part("sitemaps", "as published", tuple(sitemaps), binned=False)] * bool(sitemaps)
    written.table("sharc-prediction.csv", columns(parts))
    draw_dots(
        written.file("sharc-prediction.png"),
        dots(parts),
        x_label="share of pages in the right bin",
        title="Bins of change rates foretold from features",
        ours="siblings, online",
    )
    written.end("sharc-prediction.md", report(parts))


def _parts(folder: Path, asked: Asked) -> list[Part]:
    """Both readings of Table 6.3, and what honest sitemaps would say."""
    from recrawl.cli.recorded_looks import recorded_pages
    from recrawl.simulate.bin_trial import SITEMAP, foretold, foretold_bins
    from recrawl.simulate.capture_recorded_rates import claimed_categories
    from recrawl.simulate.rate_lessons import READINGS, WHOLE, lessons, pooled

    recorded = recorded_pages(folder)
    rng = np.random.default_rng(asked.seed)
    parts = []
    for reading in READINGS:
        found = lessons(recorded, reading)
        wanted = [one for one in found if len(one) >= asked.fewest]
        if len(found) > 1:
            wanted.append(pooled([one for one in found if len(one)], "all sites"))
        if not any(len(one) >= asked.fewest for one in wanted):
            remedy = "Ask for fewer with --fewest, or take longer records."
            raise InputError(f"no site has {counted(asked.fewest, 'page')}", remedy, source=str(folder))
        found_bins = [foretold_bins(one, rng, repeats=asked.repeats) for one in wanted]
        parts.append(Part(folder.name, reading, tuple(found_bins)))
        if reading == WHOLE:
            said = [foretold(one, claimed_categories(one.rate), SITEMAP, rng, repeats=asked.repeats) for one in wanted]
            honest = Part(folder.name, "honest sitemaps", tuple(said), binned=False)
    return [*parts, honest]


def _of_sitemap(file: Path, asked: Asked) -> SiteForetold:
    """Table 6.4 on a published sitemap: its changefreq from the domain, the depth and the days since lastmod.

    Entries without changefreq are left out.
    """
    from recrawl.formats.claims import FREQUENCIES
    from recrawl.formats.sitemap import parse_sitemap
    from recrawl.simulate.bin_trial import FOLDS, SITEMAP, foretold
    from recrawl.simulate.rate_lessons import sitemap_lesson

    try:
        found = parse_sitemap(file.read_bytes(), str(file))
    except OSError as error:
        raise InputError(f"it cannot be read ({error.strerror})", "Check the path.", source=str(file)) from None
    entries = [one for one in found.entries if one.changefreq]
    if len(entries) < FOLDS:
        what = f"only {len(entries)} of its pages say how often they change"
        raise InputError(what, f"Take a sitemap with at least {FOLDS}.", source=str(file))
    last = np.array([np.nan if one.lastmod is None else one.lastmod for one in entries])
    category = np.array([int(FREQUENCIES[one.changefreq]) for one in entries])
    lesson = sitemap_lesson(file.name, [one.url for one in entries], last)
    return foretold(lesson, category, SITEMAP, np.random.default_rng(asked.seed), repeats=asked.repeats)
