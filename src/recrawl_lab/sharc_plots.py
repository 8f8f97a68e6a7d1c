"""Plots of the SHARC experiments: curves beside published values, and one dot per method and site."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from math import log10
from pathlib import Path
from typing import Any

from recrawl.app.result_tables import COLOURS, OURS
from recrawl.errors import require

_GRID = "#e5e9ee"


@dataclass(frozen=True, slots=True)
class Curve:
    """One strategy in a panel: our values as a line, published ones as rings."""

    name: str
    """Empty for published values that belong to no line."""
    x: Sequence[float]
    y: Sequence[float]
    published: Sequence[float | None]
    low: Sequence[float] = ()
    high: Sequence[float] = ()
    """Ends of the range of each y; empty where there is none."""
    ours: bool = False
    """Drawn to be seen first."""


@dataclass(frozen=True, slots=True)
class CurvePanel:
    """Curves over one axis."""

    title: str
    x_label: str
    curves: Sequence[Curve]
    log_x: bool = False


def draw_curves(path: Path, panels: Sequence[CurvePanel], *, columns: int, y_label: str, title: str) -> None:
    """Panels in rows of ``columns``, values on a logarithmic axis; PNG or SVG by the ending of the path."""
    pyplot = _pyplot()
    rows = -(-len(panels) // columns)
    names = list(dict.fromkeys(curve.name for panel in panels for curve in panel.curves))
    colour = {name: COLOURS[place % len(COLOURS)] for place, name in enumerate(names)} | {"": "#000000"}
    with pyplot.rc_context(_SETTINGS):
        figure, axes = pyplot.subplots(
            rows, columns, figsize=(3.6 * columns + 2.0, 3.2 * rows), constrained_layout=True, squeeze=False
        )
        for axis, panel in zip(axes.flat, panels, strict=False):
            for curve in panel.curves:
                _draw_curve(axis, curve, OURS if curve.ours else colour[curve.name])
            _scale(axis, panel)
            axis.set_title(panel.title, loc="left", fontsize=9)
            axis.set_xlabel(panel.x_label)
            axis.grid(axis="y", color=_GRID, lw=0.6)
        for axis in axes.flat[len(panels) :]:
            axis.set_visible(False)
        for first in axes[:, 0]:
            first.set_ylabel(y_label)
        handles = {
            label: handle for axis in axes.flat for handle, label in zip(*axis.get_legend_handles_labels(), strict=True)
        }
        handles["○ published"] = pyplot.Line2D([], [], color="none")
        figure.legend(list(handles.values()), list(handles), loc="outside right upper", frameon=False)
        figure.suptitle(title, fontsize=12, fontweight="bold", x=0.01, ha="left")
        _save(figure, path, pyplot)


def _scale(axis: Any, panel: CurvePanel) -> None:  # noqa: ANN401 - matplotlib ships no types we rely on
    """Logarithmic values with plain numbers; along x the points themselves are named."""
    ticker = require("matplotlib.ticker", "plot")
    axis.set_yscale("log")
    for which in (axis.yaxis.set_major_formatter, axis.yaxis.set_minor_formatter):
        which(ticker.FuncFormatter(lambda value, _: f"{value:g}"))
    axis.yaxis.set_minor_locator(ticker.LogLocator(subs=(1.5, 2.0, 3.0, 5.0)))
    axis.set_xscale("log" if panel.log_x else "linear")
    points = sorted({x for curve in panel.curves for x in curve.x})
    places = [log10(x) for x in points] if panel.log_x else points
    room = (places[-1] - places[0]) / _NAMES
    crowded = [after - before < room for before, after in pairwise(places)] + [False]
    axis.set_xticks(points, ["" if full else _short(x) for x, full in zip(points, crowded, strict=True)])
    axis.xaxis.set_minor_locator(ticker.NullLocator())


_NAMES = 14
"""As many names of points fit under a panel."""


def _short(x: float) -> str:
    """A number with little room.

    >>> _short(0.5), _short(50_000.0), _short(1e6)
    ('0.5', '50 k', '1 M')
    """
    for unit, name in ((1e6, "M"), (1e3, "k")):
        if x >= unit:
            return f"{x / unit:g} {name}"
    return f"{x:g}"


def _draw_curve(axis: Any, curve: Curve, colour: str) -> None:  # noqa: ANN401 - matplotlib ships no types we rely on
    width, order = (2.4, 3) if curve.ours else (1.2, 2)
    axis.plot(curve.x, curve.y, color=colour, lw=width, marker="o", ms=2.5, label=curve.name or None, zorder=order)
    if curve.low:
        axis.vlines(curve.x, curve.low, curve.high, color=colour, lw=3.0, alpha=0.3)
    printed = [(x, y) for x, y in zip(curve.x, curve.published, strict=True) if y]
    if printed:
        axis.plot(*zip(*printed, strict=True), ls="none", marker="o", ms=7, mfc="none", mec=colour, zorder=order)


@dataclass(frozen=True, slots=True)
class DotPanel:
    """Strategies on many sites: for each strategy a value a site; nothing where it is not known."""

    title: str
    x_label: str
    values: Mapping[str, Sequence[float | None]]
    ours: Sequence[str]
    """Drawn to be seen first: as filled dots, and the first of them as a ring, which may lie around another."""


def draw_dots(path: Path, sites: Sequence[str], panels: Sequence[DotPanel], *, title: str) -> None:
    """Panels side by side, one line a site, one dot a strategy."""
    pyplot = _pyplot()
    names = list(dict.fromkeys(name for panel in panels for name in panel.values))
    colour = {name: COLOURS[place % len(COLOURS)] for place, name in enumerate(names)}
    with pyplot.rc_context(_SETTINGS):
        figure, axes = pyplot.subplots(
            1,
            len(panels),
            figsize=(4.0 * len(panels) + 2.4, 0.28 * len(sites) + 1.8),
            constrained_layout=True,
            squeeze=False,
            sharey=True,
        )
        for axis, panel in zip(axes[0], panels, strict=True):
            for name, values in panel.values.items():
                known = [(x, row) for row, x in enumerate(values) if x is not None]
                x, y = [x for x, _ in known], [row for _, row in known]
                axis.scatter(x, y, label=name, **_dot(name, panel.ours, colour[name]))
            axis.set_title(panel.title, loc="left", fontsize=9)
            axis.set_xlabel(panel.x_label)
            axis.set_yticks(range(len(sites)), sites)
            axis.grid(axis="y", color=_GRID, lw=0.6)
        axes[0, 0].invert_yaxis()
        handles, labels = axes[0, -1].get_legend_handles_labels()
        figure.legend(handles, labels, loc="outside right upper", frameon=False)
        figure.suptitle(title, fontsize=12, fontweight="bold", x=0.01, ha="left")
        _save(figure, path, pyplot)


def _dot(name: str, ours: Sequence[str], colour: str) -> dict[str, Any]:
    if name not in ours:
        return {"s": 20, "marker": "D", "alpha": 0.65, "color": colour}
    if name == ours[0]:
        return {"s": 70, "zorder": 4, "facecolors": "none", "edgecolors": OURS, "linewidths": 1.4}
    return {"s": 34, "zorder": 3, "color": colour}


_SETTINGS = {"font.size": 8, "axes.spines.top": False, "axes.spines.right": False, "svg.hashsalt": "recrawl"}


def _pyplot() -> Any:  # noqa: ANN401 - matplotlib ships no types we rely on
    pyplot = require("matplotlib.pyplot", "plot")
    require("matplotlib", "plot").use("Agg")
    return pyplot


def _save(figure: Any, path: Path, pyplot: Any) -> None:  # noqa: ANN401 - matplotlib ships no types we rely on
    figure.savefig(path, dpi=120, metadata={"Date": None} if path.suffix == ".svg" else None)
    pyplot.close(figure)


_IN_A_ROW = 3
"""Panels, at most."""


@dataclass(frozen=True, slots=True)
class DotChart:
    """One plot."""

    title: str
    rows: Sequence[str]
    """From the top down."""
    shares: Mapping[str, Sequence[float]]
    """For each method a share from 0 to 1 a row. The first is what needs no method, drawn as a bar behind the dots."""


def draw_site_dots(path: Path, panels: Sequence[DotChart], *, x_label: str, title: str, ours: str = "") -> None:
    """Panels in rows of three at most; PNG or SVG by the ending. The method ``ours`` is drawn to be seen first."""
    pyplot: Any = require("matplotlib.pyplot", "plot")
    require("matplotlib", "plot").use("Agg")
    settings = {"font.size": 9, "axes.spines.top": False, "axes.spines.right": False, "svg.hashsalt": "recrawl"}
    with pyplot.rc_context(settings):
        tallest = max(len(panel.rows) for panel in panels)
        columns = min(len(panels), _IN_A_ROW)
        rows = -(-len(panels) // columns)
        size = (4.2 * columns + 1.6, rows * (0.25 * tallest + 1.2))
        figure, axes = pyplot.subplots(rows, columns, figsize=size, constrained_layout=True, squeeze=False)
        for axis in axes.flat[len(panels) :]:
            axis.set_axis_off()
        for axis, panel in zip(axes.flat, panels, strict=False):
            _draw(axis, panel, ours)
            axis.set_xlabel(x_label)
        handles, labels = axes.flat[len(panels) - 1].get_legend_handles_labels()
        figure.legend(handles, labels, loc="outside right upper", frameon=False)
        figure.suptitle(title, fontsize=12, fontweight="bold", x=0.01, ha="left")
        figure.savefig(path, dpi=130, metadata={"Date": None} if path.suffix == ".svg" else None)
        pyplot.close(figure)


def _draw(axis: Any, panel: DotChart, ours: str) -> None:  # noqa: ANN401 - matplotlib ships no types we rely on
    places = range(len(panel.rows))
    background, *methods = panel.shares
    axis.barh(places, panel.shares[background], color="#e5e9ee", height=0.7, label=background)
    for number, method in enumerate(methods):
        colour = OURS if method == ours else COLOURS[number + 1]
        axis.plot(
            panel.shares[method],
            places,
            color=colour,
            marker="o",
            ms=7 if method == ours else 5,
            lw=0,
            label=method,
            zorder=4 if method == ours else 3,
        )
    axis.set_yticks(places, panel.rows)
    axis.invert_yaxis()
    axis.set_xlim(0.0, 1.02)
    axis.set_title(panel.title, loc="left")
    axis.grid(axis="x", color="#cfd6dd", lw=0.6)
