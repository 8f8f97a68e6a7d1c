"""A row per site, a dot a method: for experiments whose results are shares and have no x to be drawn against."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from recrawl.app.result_tables import COLOURS, OURS
from recrawl.errors import require

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


def draw_dots(path: Path, panels: Sequence[DotChart], *, x_label: str, title: str, ours: str = "") -> None:
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
