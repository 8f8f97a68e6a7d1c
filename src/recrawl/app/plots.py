"""Plots of archive quality and of rates.

Quality: the results of each crawl, and the sections with the most blur. Rates: their distribution, their uncertainty,
and the test for a Poisson process.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from recrawl.app.result_tables import new_figure, plot_style, save_figure
from recrawl.assess.archive_quality import ArchiveQuality, tally
from recrawl.errors import require
from recrawl.model import FloatArray, IntArray
from recrawl.time import to_iso

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure


_SECTIONS = 12
_NAMED_CRAWLS = 10
"""Maximum number of crawl names below the plot; of more, some at equal steps."""
_GAPS_UP_TO = 60
"""Crawls up to which there are gaps between their bars."""
_PARTS = (
    ("unchanged", "#66a182"),
    ("content changed", "#edae49"),
    ("links changed", "#d1495b"),
    ("gone", "#2e2e2e"),
    ("not observed again", "#c9ced6"),
)


def draw_quality(quality: ArchiveQuality, sections: Mapping[str, Sequence[Any]], path: Path) -> None:
    """Write the plot as PNG, SVG or PDF, by the ending of ``path``; ``sections`` is their table, worst first."""
    figure = new_figure()
    plot_quality(figure, quality, sections)
    save_figure(figure, path)


def plot_quality(figure: Figure, quality: ArchiveQuality, sections: Mapping[str, Sequence[Any]]) -> list[Axes]:
    """Draw the quality of an archive. Two axes.

    On the left the pages of each crawl by what their next capture found (SHARC 8.3), new ones marked; on the right the
    blur of the worst sections.
    """
    figure.set_size_inches(11, 4)
    with plot_style():
        left, right = figure.subplots(1, 2)
        _draw_crawls(left, quality)
        _draw_sections(right, sections)
    return [left, right]


def _draw_crawls(axis: Any, quality: ArchiveQuality) -> None:  # noqa: ANN401 - matplotlib ships no types
    counts = tally(quality, quality.pairs, quality.pairs.round, len(quality.rounds))
    parts = (counts.coherent, counts.changed - counts.links, counts.links, counts.missing, counts.unseen)
    place = np.arange(len(quality.rounds))
    floor = np.zeros(len(place))
    width = 1.0 if len(place) > _GAPS_UP_TO else 0.8
    for (name, colour), part in zip(_PARTS, parts, strict=True):
        axis.bar(place, part, bottom=floor, width=width, color=colour, label=name)
        floor = floor + part
    new = counts.new > 0
    if bool(new.any()):
        axis.plot(place[new], counts.new[new], "_", color="#1b6ca8", ms=8, label="new")
    unlisted = " (unchanged pages are not listed)" if bool(counts.not_known.any()) else ""
    axis.set(title=f"Result of the next capture{unlisted}", xlabel="crawls, by start", ylabel="pages")
    axis.set_ylim(0, 1.05 * max(float(floor.max(initial=0.0)), 1.0))
    axis.yaxis.get_major_locator().set_params(integer=True)
    named = _some(len(place), _NAMED_CRAWLS)
    axis.set_xticks(named, crawl_names(quality.rounds.start[named].tolist()), rotation=30, ha="right")
    # Above the axes, where it hides no bar.
    axis.legend(frameon=False, fontsize=8, ncols=3, loc="lower center", bbox_to_anchor=(0.5, 1.08))


def crawl_names(starts: Sequence[float]) -> list[str]:
    """The start of crawls in UTC, by day, minute or second, as needed to distinguish them.

    >>> crawl_names([0.0, 86_400.0]), crawl_names([0.0, 70.0])
    (['1970-01-01', '1970-01-02'], ['1970-01-01 00:00', '1970-01-01 00:01'])
    """
    texts = [to_iso(start).rstrip("Z").replace("T", " ") for start in starts]
    return next(
        (names for length in (10, 16) if len(set(names := [text[:length] for text in texts])) == len(texts)), texts
    )


def _some(count: int, most: int) -> IntArray:
    """At most ``most`` of the first ``count`` numbers, at equal steps."""
    return np.arange(0, count, max(-(-count // most), 1))


def _draw_sections(axis: Any, sections: Mapping[str, Sequence[Any]]) -> None:  # noqa: ANN401 - matplotlib ships no types
    blur = np.array(sections["blur_total"][:_SECTIONS], np.float64)
    names = [name.partition("://")[2] for name in sections["section"][:_SECTIONS]]
    place = np.arange(len(blur))[::-1]
    known = np.isfinite(blur)
    axis.barh(place[known], blur[known], color="#1b6ca8")
    for where in place[~known].tolist():  # a bar of no length would say that nothing is blurred
        axis.annotate("not known", (0.0, where), xytext=(3, 0), textcoords="offset points", va="center", fontsize=8)
    axis.set_ylim(-0.6, len(blur) - 0.4)
    axis.set_yticks(place, [name if len(name) <= 32 else f"…{name[-31:]}" for name in names])  # noqa: PLR2004 - fits
    if not bool(known.any()):
        axis.set_xticks([])  # numbers below an empty axis would look like values
    axis.set(
        title="Sections with the most blur",
        xlabel="blur of all their pages:\nexpected changes between requested and shown time",
    )


PAGES, HOSTS, CHANCE = "#1b6ca8", "#d1495b", "#9aa5b1"
_COLOURS = (PAGES, HOSTS)
_FEWEST_BARS = 8
"""Values below which a histogram shows nothing."""


@dataclass(frozen=True, slots=True)
class RateSample:
    """Days between changes of some things, and the curve of a distribution fitted to them, if any."""

    name: str
    days: FloatArray
    curve: tuple[FloatArray, FloatArray] | None = None
    """Days, and density over ln(days)."""


@dataclass(frozen=True, slots=True)
class RatesPlot:
    """The columns of the plot of a table."""

    sample: RateSample
    """Of all that the table is about."""
    every_days: FloatArray
    """Of the rows shown."""
    low_days: FloatArray
    high_days: FloatArray
    """Ends of the 90 % interval."""
    title: str


@dataclass(frozen=True, slots=True)
class DiagnosisPlot:
    """The columns behind figures 4 to 6 of HACS."""

    samples: tuple[RateSample, ...]
    """Pages and hosts."""
    rescaled: FloatArray
    """Intervals between changes in units of 1/λ of their page, ascending."""
    reference: FloatArray
    """Quantiles for Poisson pages under the same observations, ascending and evenly spaced in probability."""
    every_days: FloatArray
    """1/λ of each page."""
    median_days: FloatArray
    """Its median interval."""
    title: str


def plot_rates(figure: Figure, plot: RatesPlot) -> list[Axes]:
    """Draw a table: how rates differ, and how sure they are. Two axes."""
    figure.set_size_inches(10, 3.8)
    with plot_style():
        spread, sure = figure.subplots(1, 2)
        _distribution(spread, (plot.sample,))
        order = np.argsort(plot.every_days, kind="stable")
        every, low, high = (days[order] for days in (plot.every_days, plot.low_days, plot.high_days))
        finite = np.isfinite(every)
        place = np.arange(len(every))[finite]
        sure.plot(place, every[finite], ".", ms=4, color=PAGES)
        if len(place):
            bottom, top = every[finite].min() / 20, every[finite].max() * 20
            sure.vlines(place, np.maximum(low[finite], bottom), np.minimum(high[finite], top), color=PAGES + "40")
        sure.set(title="Uncertainty", xlabel="rows shown, by rate", ylabel="days, with 90% interval")
        _log_axis(sure.yaxis)
        _title(figure, plot.title)
    return [spread, sure]


def plot_diagnosis(figure: Figure, plot: DiagnosisPlot) -> list[Axes]:
    """Draw figures 4 to 6 of HACS. Four axes: rates, intervals, quantiles, medians."""
    figure.set_size_inches(10, 7)
    with plot_style():
        axes: list[Axes] = list(figure.subplots(2, 2).flat)
        _distribution(axes[0], plot.samples)
        _intervals(axes[1], plot)
        _quantiles(axes[2], plot)
        _medians(axes[3], plot)
        _title(figure, plot.title)
    return axes


def _title(figure: Figure, title: str) -> None:
    figure.suptitle(title, fontsize=11, fontweight="bold", x=0.01, ha="left")


def _distribution(axis: Any, samples: tuple[RateSample, ...]) -> None:  # noqa: ANN401 - matplotlib ships no types
    """Figure 4: shares over ln(days), so that bars and fitted curves have one scale."""
    for sample, colour in zip(samples, _COLOURS, strict=False):
        days = sample.days[np.isfinite(sample.days) & (sample.days > 0)]
        if len(days) < _FEWEST_BARS:
            for position in days.tolist():
                axis.axvline(position, color=colour, linewidth=1, alpha=0.6)
            axis.plot([], [], color=colour, label=f"{len(days)} {sample.name}")
            continue
        edges = np.linspace(np.log(days.min()) - 0.05, np.log(days.max()) + 0.05, min(40, 6 + len(days) // 8))
        shares, _ = np.histogram(np.log(days), edges, density=True)
        axis.stairs(shares, np.exp(edges), fill=True, color=colour, alpha=0.35, label=f"{len(days):,} {sample.name}")
        if sample.curve is not None:
            axis.plot(*sample.curve, color=colour, linewidth=1.5, label="log-normal")
    axis.set(title="Days between changes (1/λ)", xlabel="days", ylabel="density over ln(days)")
    _log_axis(axis.xaxis)
    axis.legend(frameon=False)


_WIDE = 10**4.5
"""From this ratio of its ends on, a logarithmic axis names powers of ten only."""


def _log_axis(axis: Any) -> None:  # noqa: ANN401 - matplotlib ships no types
    """A logarithmic axis, drawn after its values, with plain numbers such as 0.2 and 500 that stay apart."""
    ticker = require("matplotlib.ticker", "plot")
    axis.axes.set(**{f"{axis.axis_name}scale": "log"})
    low, high = sorted(axis.get_view_interval())
    steps = (1.0, 2.0, 5.0) if high < _WIDE * low else (1.0,)
    axis.set_major_locator(ticker.LogLocator(10.0, steps, numticks=10))
    axis.set_major_formatter(ticker.FuncFormatter(lambda value, _: f"{value:,.6g}"))
    axis.set_minor_formatter(ticker.NullFormatter())


def _intervals(axis: Any, plot: DiagnosisPlot) -> None:  # noqa: ANN401 - matplotlib ships no types
    """Figure 6: the share of intervals longer than a multiple of 1/λ; a straight line for the exponential."""
    x, reference = plot.rescaled, plot.reference
    axis.plot(x, 1.0 - np.arange(len(x)) / max(len(x), 1), color=PAGES, linewidth=2, label="seen")
    share = 1.0 - (np.arange(len(reference)) + 0.5) / max(len(reference), 1)
    axis.plot(reference, share, color=CHANCE, linewidth=1.5, label="Poisson, same observations")
    line = np.linspace(0.0, max(5.0, float(x[-1]) if len(x) else 5.0), 50)
    axis.plot(line, np.exp(-line), color=HOSTS, linewidth=1, linestyle="--", label="exponential")
    axis.set(title="Intervals between changes", xlabel="interval, in units of 1/λ", ylabel="share of longer intervals")
    axis.set(yscale="log", ylim=(max(0.5 / max(len(x), 1), 1e-4), 1.3))
    axis.legend(frameon=False)


def _quantiles(axis: Any, plot: DiagnosisPlot) -> None:  # noqa: ANN401 - matplotlib ships no types
    """Observed against expected quantiles: on the line for Poisson, even if observations hide short intervals."""
    if len(plot.rescaled):
        q = (np.arange(len(plot.reference)) + 0.5) / len(plot.reference)
        seen = np.quantile(plot.rescaled, q)
        axis.plot(plot.reference, seen, ".", ms=4, color=PAGES)
        ends = np.array([min(seen[0], plot.reference[0]), max(seen[-1], plot.reference[-1])])
        axis.plot(ends, ends, color=CHANCE, linewidth=1, label="Poisson")
        axis.legend(frameon=False)
    axis.set(title="Quantiles of intervals", xlabel="Poisson, same observations", ylabel="observed, in units of 1/λ")


def _medians(axis: Any, plot: DiagnosisPlot) -> None:  # noqa: ANN401 - matplotlib ships no types
    """Figure 5, as a scatter: median interval of each page against 1/λ."""
    axis.plot(plot.every_days, plot.median_days, ".", ms=4, alpha=0.6, color=PAGES)
    if len(plot.every_days):
        ends = np.array([plot.every_days.min(), plot.every_days.max()])
        axis.plot(ends, ends * np.log(2.0), color=HOSTS, linewidth=1, linestyle="--", label="exponential: 0.69/λ")
        axis.plot(ends, ends, color=CHANCE, linewidth=1, label="1/λ")
        _log_axis(axis.xaxis)
        _log_axis(axis.yaxis)
        axis.legend(frameon=False)
    axis.set(title="Median interval of each page", xlabel="1/λ, days", ylabel="median interval, days")
