"""Plots of rates: their distribution, their uncertainty, and the test for a Poisson process."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from recrawl.app.result_tables import plot_style
from recrawl.model import FloatArray

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

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
        sure.set(title="Uncertainty", xlabel="rows shown, by rate", ylabel="days, with 90 % interval")
        sure.set_yscale("log")
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
    axis.set(title="Days between changes (1/λ)", xlabel="days", ylabel="density over ln(days)", xscale="log")
    axis.legend(frameon=False)


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
        axis.set(xscale="log", yscale="log")
        axis.legend(frameon=False)
    axis.set(title="Median interval of each page", xlabel="1/λ, days", ylabel="median interval, days")
