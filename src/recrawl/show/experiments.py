"""What experiments print: tables as CSV and Markdown, and one line a method in a picture."""

from __future__ import annotations

import csv
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from recrawl.errors import require

COLOURS = (
    "#9aa5b1",
    "#d1495b",
    "#edae49",
    "#66a182",
    "#8d5a97",
    "#2e4057",
    "#00798c",
    "#b5651d",
    "#5f7a3f",
    "#c77dba",
    "#3a86ff",
    "#000000",
    "#a3b18a",
)
OURS = "#1b6ca8"


def write_csv(path: Path, columns: Mapping[str, Sequence[object]]) -> None:
    """A table by columns. Numbers are written in full."""
    with path.open("w", encoding="utf-8", newline="") as file:
        rows = csv.writer(file, lineterminator="\n")
        rows.writerow(columns)
        rows.writerows(zip(*columns.values(), strict=True))


def markdown_table(headings: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    """A table in Markdown; the first column is text, the others are numbers.

    >>> print(markdown_table(["method", "loss"], [["mle", "0.31"]]))
    | method | loss |
    |---|--:|
    | mle | 0.31 |
    """
    lines = [headings, ["---", *["--:"] * (len(headings) - 1)], *rows]
    shown = [f"| {' | '.join(line)} |" for line in lines]
    shown[1] = f"|{'|'.join(lines[1])}|"
    return "\n".join(shown)


@dataclass(frozen=True, slots=True)
class Line:
    """One method in a panel."""

    name: str
    x: Sequence[float]
    y: Sequence[float]
    low: Sequence[float]
    high: Sequence[float]
    """Ends of the interval of each y."""
    ours: bool = False
    """Drawn to be seen first."""


@dataclass(frozen=True, slots=True)
class Panel:
    """One picture of several lines."""

    title: str
    lines: Sequence[Line]


def draw_panels(  # noqa: PLR0913 - what is drawn, and what is written beside it
    path: Path, panels: Sequence[Panel], *, x_label: str, y_label: str, title: str, even: bool = False
) -> None:
    """Panels side by side, in rows of equal length where there are more than four; PNG or SVG by the ending.

    x is on a scale that has room for 0 and spreads small numbers; with ``even`` on a plain one.
    """
    pyplot: Any = require("matplotlib.pyplot", "plot")
    require("matplotlib", "plot").use("Agg")
    settings = {"font.size": 9, "axes.spines.top": False, "axes.spines.right": False, "svg.hashsalt": "recrawl"}
    with pyplot.rc_context(settings):
        rows = -(-len(panels) // _IN_A_ROW)
        columns = -(-len(panels) // rows)
        size = (4.2 * columns + 1.6, 4.2 * rows)
        figure, axes = pyplot.subplots(rows, columns, figsize=size, constrained_layout=True, squeeze=False)
        for axis in axes.flat[len(panels) :]:
            axis.set_axis_off()
        for axis, panel in zip(axes.flat, panels, strict=False):
            _draw_panel(axis, panel, even=even)
            axis.set_xlabel(x_label)
        for axis in axes[:, 0]:
            axis.set_ylabel(y_label)
        handles, labels = axes.flat[0].get_legend_handles_labels()
        figure.legend(handles, labels, loc="outside right upper", frameon=False)
        figure.suptitle(title, fontsize=12, fontweight="bold", x=0.01, ha="left")
        figure.savefig(path, dpi=130, metadata={"Date": None} if path.suffix == ".svg" else None)
        pyplot.close(figure)


_IN_A_ROW = 4
"""Panels, at most."""
_ROUND = 100.0
"""Numbers from which on an axis has no fractions; below, it has three digits."""


def _draw_panel(axis: Any, panel: Panel, *, even: bool) -> None:  # noqa: ANN401 - matplotlib ships no types we rely on
    for place, line in enumerate(panel.lines):
        colour = OURS if line.ours else COLOURS[place % len(COLOURS)]
        width = 2.4 if line.ours else 1.2
        axis.plot(
            line.x, line.y, color=colour, lw=width, marker="o", ms=3, label=line.name, zorder=3 if line.ours else 2
        )
        if line.ours:
            axis.fill_between(line.x, line.low, line.high, color=colour, alpha=0.15, lw=0)
    if not even:
        axis.set_xscale("symlog", linthresh=1.0)
    ticks = sorted({x for line in panel.lines for x in line.x})
    axis.set_xticks(ticks, [f"{tick:.3g}" if abs(tick) < _ROUND else f"{tick:,.0f}" for tick in ticks])
    axis.minorticks_off()
    axis.set_title(panel.title, loc="left")
    axis.grid(axis="y", color="#e5e9ee", lw=0.6)
