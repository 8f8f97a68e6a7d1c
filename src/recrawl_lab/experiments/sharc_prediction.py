"""``recrawl experiment sharc-prediction``: predicted bins of change rates, Tables 6.3 and 6.4 of the SHARC thesis.

Published shares stand beside ours.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import isnan
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from recrawl.errors import InputError, counted
from recrawl_lab.experiments.report_folder import ReportFolder

if TYPE_CHECKING:
    from recrawl_lab.sharc_plots import DotChart
    from recrawl_lab.trials.bin_trial import BinPrediction, SitePrediction


PUBLISHED = {
    "MPII": (72_071, 1_356, (0.90857, 0.97951, 0.97502, 0.97951)),
    "DMOZ": (177_446, 50_855, (0.27398, 0.43520, 0.48670, 0.43753)),
    "MOD": (10_047, 5_988, (0.79379, 0.85995, 0.80794, 0.86886)),
    "DFID": (2_186, 1_131, (0.70653, 0.67437, 0.74020, 0.71256)),
    "ARMY": (37_330, 15_259, (0.78423, 0.80660, 0.79312, 0.82406)),
    "RAF": (27_836, 4_286, (0.85848, 0.86561, 0.89453, 0.91902)),
    "DH": (15_884, 12_203, (0.37011, 0.41658, 0.41798, 0.46002)),
}
"""Table 6.1, pages and those that changed; Table 6.3 in the order of ``PRINTED``."""
PUBLISHED_SITEMAPS = {
    "DeutscheWelle": (5_309, (1.0, 0.99981)),
    "Intereconomia": (2_948, (0.98464, 0.99889)),
    "EuroNews": (672, (0.99977, 0.99977)),
}
"""Tables 6.2 and 6.4: pages, naive Bayes and C4.5."""
PRINTED = (("online", "naive Bayes"), ("online", "tree"), ("offline", "naive Bayes"), ("offline", "tree"))
COLUMNS = (*PRINTED, ("online", "siblings"))
_SITEMAP = (("sitemap", "naive Bayes"), ("sitemap", "tree"), ("sitemap", "siblings"))
_SHOWN = {
    "as printed": "rates of the whole record, features at its end (Table 6.3 as printed)",
    "ahead": "features in the middle of the record, rates after it",
    "honest sitemaps": "the changefreq of an honest sitemap (Table 6.4)",
    "as published": "the changefreq of published sitemaps (Table 6.4)",
}


@dataclass(frozen=True, slots=True)
class ReportPart:
    """The sites of one data set in one reading."""

    data: str
    reading: str
    sites: tuple[SitePrediction, ...]
    binned: bool = True
    """Whether classes are bins of rates, and not what sitemaps say."""


def columns(parts: Sequence[ReportPart]) -> dict[str, list[object]]:
    """Everything, one row a score."""
    rows: list[dict[str, object]] = [
        {
            "data": part.data,
            "reading": part.reading,
            "site": site.name,
            "pages": site.pages,
            "never_changed": "" if isnan(site.still) else site.still,
            "classes": site.classes,
            "largest": site.commonest,
            "features": one.features,
            "learner": one.learner,
            "right": one.right.mean,
            "right_low": one.right.low,
            "right_high": one.right.high,
            "wrong_by_one": "" if isnan(one.near) else one.near,
            "wrong_by_one_by_chance": "" if isnan(one.near_by_chance) else one.near_by_chance,
            "rank_correlation": "" if isnan(one.order) else one.order,
        }
        for part in parts
        for site in part.sites
        for one in site.scores
    ]
    return {name: [row[name] for row in rows] for name in rows[0]}


def report(parts: Sequence[ReportPart]) -> str:
    """The published tables, then two tables a data set and reading."""
    sections = ["## Published", _published(), _published_sitemaps()]
    for part in parts:
        sections += [f"## {part.data}: {_SHOWN[part.reading]}", _right(part, COLUMNS if part.binned else _SITEMAP)]
        if part.binned:
            sections.append("How near the wrong ones are, for trees:")
            sections.append(_near(part))
    return "\n\n".join(sections) + "\n"


def _published() -> str:
    from recrawl.app.result_tables import markdown_table

    rows = [
        [name, f"{pages:,}", f"{1 - changed / pages:.1%}", *(f"{one:.1%}" for one in right)]
        for name, (pages, changed, right) in PUBLISHED.items()
    ]
    heads = [f"{learner}, {features}" for features, learner in PRINTED]
    return markdown_table(["site (Tables 6.1 and 6.3)", "pages", "never changed", *heads], rows)


def _published_sitemaps() -> str:
    from recrawl.app.result_tables import markdown_table

    rows = [
        [name, f"{pages:,}", *(f"{one:.2%}" for one in right)] for name, (pages, right) in PUBLISHED_SITEMAPS.items()
    ]
    return markdown_table(["sitemap (Tables 6.2 and 6.4)", "pages", "naive Bayes", "tree"], rows)


def _right(part: ReportPart, wanted: Sequence[tuple[str, str]]) -> str:
    from recrawl.app.result_tables import markdown_table

    kind = "bin" if part.binned else "category"
    heads = [f"{learner}, {features}" if part.binned else learner for features, learner in wanted]
    rows = []
    for site in part.sites:
        found = _by_name(site)
        cells = [f"{found[one].right.mean:.1%}" for one in wanted]
        best = found[wanted[-2]].right
        cells.append(f"{best.low:.1%}–{best.high:.1%}")
        counts = [f"{site.pages:,}", _share(site.still), str(site.classes), f"{site.commonest:.1%}"]
        rows.append([site.name, *counts, *cells])
    numbers = ["pages", "never changed", "bins" if part.binned else "categories", f"in the largest {kind}"]
    return markdown_table(["site", *numbers, *heads, f"95 % of {heads[-2]}"], rows)


def _near(part: ReportPart) -> str:
    """Of trees alone; the CSV has all."""
    from recrawl.app.result_tables import markdown_table

    rows = []
    for site in part.sites:
        found = _by_name(site)
        cells: list[str] = [site.name]
        for features in ("online", "offline"):
            one = found[features, "tree"]
            cells += [_share(one.near), _share(one.near_by_chance), "–" if isnan(one.order) else f"{one.order:.2f}"]
        rows.append(cells)
    heads = [
        f"{what}, {features}"
        for features in ("online", "offline")
        for what in ("off by one bin", "by chance", "rank correlation")
    ]
    return markdown_table(["site", *heads], rows)


def _by_name(site: SitePrediction) -> dict[tuple[str, str], BinPrediction]:
    return {(one.features, one.learner): one for one in site.scores}


def _share(value: float) -> str:
    return "–" if isnan(value) else f"{value:.1%}"


def dots(parts: Sequence[ReportPart]) -> list[DotChart]:
    """Published shares, then those of each data set in both readings."""
    from recrawl_lab.sharc_plots import DotChart

    names = [f"{learner}, {features}" for features, learner in COLUMNS]
    published: dict[str, list[float]] = {"largest bin": [1 - one[1] / one[0] for one in PUBLISHED.values()]}
    published |= {name: [one[2][place] for one in PUBLISHED.values()] for place, name in enumerate(names[:-1])}
    panels = [DotChart("published (bar: never changed)", list(PUBLISHED), published)]
    for part in parts:
        if part.binned:
            shares: dict[str, list[float]] = {"largest bin": [site.commonest for site in part.sites]}
            for name, key in zip(names, COLUMNS, strict=True):
                shares[name] = [_by_name(site)[key].right.mean for site in part.sites]
            rows = [site.name.partition("/")[0] for site in part.sites]
            panels.append(DotChart(f"{part.data}, {part.reading}", rows, shares))
    return panels


@dataclass(frozen=True, slots=True)
class SharcPredictionOptions:
    """The options."""

    sitemaps: Sequence[Path]
    fewest: int
    """Pages that a site must have."""
    seed: int
    repeats: int


def run(data: Path, output: Path, asked: SharcPredictionOptions) -> None:
    """Predict bins on each site of each data set; write a table, a report and a plot into ``output``."""
    from recrawl.app.compare.benchmark_runs import find_datasets
    from recrawl.app.progress import bar
    from recrawl_lab.sharc_plots import draw_site_dots

    folders = [folder for folder in find_datasets(data) if (folder / "pages.parquet").is_file()]
    if not folders:
        raise InputError("no data set here tells of pages", "Name one with pages.parquet.", source=str(data))
    written = ReportFolder(output)
    sitemaps = [_of_sitemap(file, asked) for file in asked.sitemaps]
    parts = []
    with bar("sites", len(folders)) as advance:
        for folder in folders:
            parts += _parts(folder, asked)
            advance()
    parts += [ReportPart("sitemaps", "as published", tuple(sitemaps), binned=False)] * bool(sitemaps)
    written.table("sharc-prediction.csv", columns(parts))
    draw_site_dots(
        written.file("sharc-prediction.png"),
        dots(parts),
        x_label="share of pages in the right bin",
        title="Bins of change rates predicted from features",
        ours="siblings, online",
    )
    written.end("sharc-prediction.md", report(parts))


def _parts(folder: Path, asked: SharcPredictionOptions) -> list[ReportPart]:
    """Both readings of Table 6.3, and what honest sitemaps would say."""
    from recrawl_lab.experiments.experiment_data import recorded_pages
    from recrawl_lab.trials.bin_trial import SITEMAP, predicted, predicted_bins
    from recrawl_lab.trials.capture_recorded import claimed_categories
    from recrawl_lab.trials.rate_training import READINGS, WHOLE, pooled, training_pages

    recorded = recorded_pages(folder)
    rng = np.random.default_rng(asked.seed)
    parts = []
    for reading in READINGS:
        found = training_pages(recorded, reading)
        wanted = [one for one in found if len(one) >= asked.fewest]
        if len(found) > 1:
            wanted.append(pooled([one for one in found if len(one)], "all sites"))
        if not any(len(one) >= asked.fewest for one in wanted):
            remedy = "Ask for fewer with --fewest, or take longer records."
            raise InputError(f"no site has {counted(asked.fewest, 'page')}", remedy, source=str(folder))
        found_bins = [predicted_bins(one, rng, repeats=asked.repeats) for one in wanted]
        parts.append(ReportPart(folder.name, reading, tuple(found_bins)))
        if reading == WHOLE:
            said = [predicted(one, claimed_categories(one.rate), SITEMAP, rng, repeats=asked.repeats) for one in wanted]
            honest = ReportPart(folder.name, "honest sitemaps", tuple(said), binned=False)
    return [*parts, honest]


def _of_sitemap(file: Path, asked: SharcPredictionOptions) -> SitePrediction:
    """Table 6.4 on a published sitemap: its changefreq from the domain, the depth and the days since lastmod.

    Entries without changefreq are left out.
    """
    from recrawl.formats.sitemap_feed import FREQUENCIES, parse_sitemap
    from recrawl_lab.trials.bin_trial import FOLDS, SITEMAP, predicted
    from recrawl_lab.trials.rate_training import sitemap_training

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
    training = sitemap_training(file.name, [one.url for one in entries], last)
    return predicted(training, category, SITEMAP, np.random.default_rng(asked.seed), repeats=asked.repeats)
