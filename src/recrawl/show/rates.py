"""Pictures of rates: how they differ from page to page, how sure they are, and whether changes come by chance."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from recrawl.errors import require
from recrawl.formats.disk import told
from recrawl.model import FloatArray

PAGES, HOSTS, CHANCE = "#1b6ca8", "#d1495b", "#9aa5b1"
_COLOURS = (PAGES, HOSTS)
_SETTINGS = {"font.size": 9, "axes.spines.top": False, "axes.spines.right": False, "svg.hashsalt": "recrawl"}
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
class RatesPicture:
    """The columns behind the picture of a table."""

    sample: RateSample
    """Of all that the table is about."""
    every_days: FloatArray
    """Of the rows shown."""
    low_days: FloatArray
    high_days: FloatArray
    """Ends of the 90 % interval."""
    title: str


@dataclass(frozen=True, slots=True)
class DiagnosisPicture:
    """The columns behind figures 4 to 6 of HACS."""

    samples: tuple[RateSample, ...]
    """Pages and hosts."""
    rescaled: FloatArray
    """Intervals between changes in units of 1/λ of their page, ascending."""
    reference: FloatArray
    """Quantiles of the same, of Poisson pages under the same looks, ascending and evenly spaced in probability."""
    every_days: FloatArray
    """1/λ of each page."""
    median_days: FloatArray
    """Its median interval."""
    title: str


def draw_rates(picture: RatesPicture, path: Path) -> None:
    """Write the picture of a table as PNG, SVG or PDF, by the ending of ``path``."""
    figure, axes = _figure(1, 2, (10, 3.8))
    _distribution(axes[0], (picture.sample,))
    order = np.argsort(picture.every_days, kind="stable")
    every, low, high = (days[order] for days in (picture.every_days, picture.low_days, picture.high_days))
    finite = np.isfinite(every)
    place = np.arange(len(every))[finite]
    axes[1].plot(place, every[finite], ".", ms=4, color=PAGES)
    if len(place):
        bottom, top = every[finite].min() / 20, every[finite].max() * 20
        axes[1].vlines(place, np.maximum(low[finite], bottom), np.minimum(high[finite], top), color=PAGES + "40")
    axes[1].set(title="How sure that is", xlabel="rows shown, by rate", ylabel="days, with 90 % interval")
    axes[1].set_yscale("log")
    _save(figure, path, picture.title)


def draw_diagnosis(picture: DiagnosisPicture, path: Path) -> None:
    """Write figures 4 to 6 as one picture: PNG, SVG or PDF, by the ending of ``path``."""
    figure, axes = _figure(2, 2, (10, 7))
    _distribution(axes[0, 0], picture.samples)
    _intervals(axes[0, 1], picture)
    _quantiles(axes[1, 0], picture)
    _medians(axes[1, 1], picture)
    _save(figure, path, picture.title)


def _figure(rows: int, columns: int, size: tuple[float, float]) -> tuple[Any, Any]:
    """A figure that no window or notebook owns: drawing it leaves the backend of others as it is."""
    with require("matplotlib", "plot").rc_context(_SETTINGS):
        figure = require("matplotlib.figure", "plot").Figure(figsize=size, layout="constrained")
        return figure, figure.subplots(rows, columns)


def _save(figure: Any, path: Path, title: str) -> None:  # noqa: ANN401 - matplotlib ships no types
    figure.suptitle(title, fontsize=11, fontweight="bold", x=0.01, ha="left")
    metadata = {".svg": {"Date": None}, ".pdf": {"CreationDate": None}}.get(path.suffix.lower())
    with told(path), require("matplotlib", "plot").rc_context(_SETTINGS):
        figure.savefig(path, dpi=130, metadata=metadata)


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


def _intervals(axis: Any, picture: DiagnosisPicture) -> None:  # noqa: ANN401 - matplotlib ships no types
    """Figure 6: how many intervals last longer than so many times 1/λ; a straight line for the exponential."""
    x, reference = picture.rescaled, picture.reference
    axis.plot(x, 1.0 - np.arange(len(x)) / max(len(x), 1), color=PAGES, linewidth=2, label="seen")
    share = 1.0 - (np.arange(len(reference)) + 0.5) / max(len(reference), 1)
    axis.plot(reference, share, color=CHANCE, linewidth=1.5, label="chance, same looks")
    line = np.linspace(0.0, max(5.0, float(x[-1]) if len(x) else 5.0), 50)
    axis.plot(line, np.exp(-line), color=HOSTS, linewidth=1, linestyle="--", label="exponential")
    axis.set(title="Intervals between changes", xlabel="interval, in units of 1/λ", ylabel="share that lasts longer")
    axis.set(yscale="log", ylim=(max(0.5 / max(len(x), 1), 1e-4), 1.3))
    axis.legend(frameon=False)


def _quantiles(axis: Any, picture: DiagnosisPicture) -> None:  # noqa: ANN401 - matplotlib ships no types
    """Seen against expected quantiles: on the line if it is Poisson, also where looks hide short intervals."""
    if len(picture.rescaled):
        q = (np.arange(len(picture.reference)) + 0.5) / len(picture.reference)
        seen = np.quantile(picture.rescaled, q)
        axis.plot(picture.reference, seen, ".", ms=4, color=PAGES)
        ends = np.array([min(seen[0], picture.reference[0]), max(seen[-1], picture.reference[-1])])
        axis.plot(ends, ends, color=CHANCE, linewidth=1, label="pure chance")
        axis.legend(frameon=False)
    axis.set(title="Quantiles of intervals", xlabel="by chance, same looks", ylabel="seen, in units of 1/λ")


def _medians(axis: Any, picture: DiagnosisPicture) -> None:  # noqa: ANN401 - matplotlib ships no types
    """Figure 5, as a scatter: median interval of each page against 1/λ."""
    axis.plot(picture.every_days, picture.median_days, ".", ms=4, alpha=0.6, color=PAGES)
    if len(picture.every_days):
        ends = np.array([picture.every_days.min(), picture.every_days.max()])
        axis.plot(ends, ends * np.log(2.0), color=HOSTS, linewidth=1, linestyle="--", label="exponential: 0.69/λ")
        axis.plot(ends, ends, color=CHANCE, linewidth=1, label="1/λ")
        axis.set(xscale="log", yscale="log")
        axis.legend(frameon=False)
    axis.set(title="Median interval of each page", xlabel="1/λ, days", ylabel="median interval, days")
