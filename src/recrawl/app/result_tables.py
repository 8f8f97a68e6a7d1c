"""Results as files: tables as CSV, Parquet and Markdown, and plots with one line a method."""

from __future__ import annotations

import csv
import io
import json
import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from recrawl.app.provenance import KEY, Provenance
from recrawl.errors import ConfigError, require
from recrawl.formats.atomic_files import complete_file, reporting_write_errors

if TYPE_CHECKING:
    from contextlib import AbstractContextManager

    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

ENDINGS = (".csv", ".parquet")
PLOT_SUFFIXES = (".png", ".svg", ".pdf")


def check_ending(file: Path) -> None:
    """Refuse a file whose ending does not say what to write, before any work is done."""
    if file.suffix.lower() not in ENDINGS:
        raise ConfigError(f"The name {file} does not determine the format.", "Use the extension .csv or .parquet.")


def check_plot(file: Path) -> None:
    """The same for a plot."""
    if file.suffix.lower() not in PLOT_SUFFIXES:
        raise ConfigError(
            f"The name {file} does not determine the format of the plot.",
            f"Use one of the extensions {', '.join(PLOT_SUFFIXES)}.",
        )


def arrow_table(columns: Mapping[str, Sequence[Any]], provenance: Provenance | None = None) -> Any:  # noqa: ANN401 - a pyarrow.Table
    """A table of Arrow, with the provenance in its metadata. A number that is not finite becomes null."""
    pa = require("pyarrow", "columns")
    table = pa.table({name: pa.array([_cell(value) for value in values]) for name, values in columns.items()})
    return table if provenance is None else table.replace_schema_metadata({KEY: provenance.json()})


def write_columns(file: Path, columns: Mapping[str, Sequence[Any]], provenance: Provenance | None = None) -> None:
    """Write a table, replacing the file only when complete. A number that is not finite becomes an empty cell.

    A Parquet file has the provenance in the metadata of its schema. A CSV file has it beside it, in
    ``FILE-metadata.json``, as CSV on the Web (W3C) has it: readers of CSV find no line that they do not expect.
    """
    if file.suffix.lower() == ".parquet":
        parquet = require("pyarrow.parquet", "columns")
        table = arrow_table(columns, provenance)
        with complete_file(file) as stream:
            parquet.write_table(table, stream)
        return
    with complete_file(file) as stream:
        text = io.TextIOWrapper(stream, encoding="utf-8", newline="")
        writer = csv.writer(text, lineterminator="\n")
        writer.writerow(columns)
        writer.writerows(zip(*([_cell(value) for value in values] for values in columns.values()), strict=True))
        text.flush()
        text.detach()
    _write_csv_metadata(file, columns, provenance)


def _write_csv_metadata(file: Path, columns: Iterable[str], provenance: Provenance | None) -> None:
    if provenance is None:
        return
    about = {
        "@context": "http://www.w3.org/ns/csvw",
        "url": file.name,
        "dc:creator": f"recrawl {provenance.version}",
        "tableSchema": {"columns": [{"name": name, "titles": name} for name in columns]},
        "notes": [provenance.facts()],
    }
    with complete_file(file.with_name(f"{file.name}-metadata.json")) as stream:
        stream.write((json.dumps(about, indent=2, ensure_ascii=False, default=str) + "\n").encode())


def _cell(value: object) -> object:
    return None if isinstance(value, float) and not math.isfinite(value) else value


_STYLE = {"font.size": 9, "axes.spines.top": False, "axes.spines.right": False, "svg.hashsalt": "recrawl"}


def plot_style() -> AbstractContextManager[None]:
    """The style of our plots, as a context manager."""
    style: AbstractContextManager[None] = require("matplotlib", "plot").rc_context(_STYLE)
    return style


def new_figure() -> Figure:
    """A figure that no window or notebook owns: drawing it leaves the backend of others as it is."""
    with plot_style():
        figure: Figure = require("matplotlib.figure", "plot").Figure(layout="constrained")
        return figure


def save_figure(figure: Figure, path: Path) -> None:
    """Write a figure as PNG, SVG or PDF, by the ending of ``path``; equal figures give equal files."""
    metadata = {".svg": {"Date": None}, ".pdf": {"CreationDate": None}}.get(path.suffix.lower())
    with reporting_write_errors(path), plot_style():
        figure.savefig(path, dpi=130, metadata=metadata)


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


def write_csv(path: Path, columns: Mapping[str, Sequence[object]], provenance: Provenance | None = None) -> None:
    """A table by columns, with its provenance beside it. Numbers are written in full, ``nan`` as such."""
    with path.open("w", encoding="utf-8", newline="") as file:
        rows = csv.writer(file, lineterminator="\n")
        rows.writerow(columns)
        rows.writerows(zip(*columns.values(), strict=True))
    _write_csv_metadata(path, columns, provenance)


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
class PlotLine:
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
class PlotPanel:
    """One plot of several lines."""

    title: str
    lines: Sequence[PlotLine]


def draw_panels(  # noqa: PLR0913 - what is drawn, and what is written beside it
    path: Path, panels: Sequence[PlotPanel], *, x_label: str, y_label: str, title: str, even: bool = False
) -> None:
    """Write panels side by side as PNG, SVG or PDF, by the ending of the file; see :func:`plot_panels`."""
    figure = new_figure()
    plot_panels(figure, panels, x_label=x_label, y_label=y_label, title=title, even=even)
    save_figure(figure, path)


def plot_panels(  # noqa: PLR0913 - what is drawn, and what is written beside it
    figure: Figure, panels: Sequence[PlotPanel], *, x_label: str, y_label: str, title: str, even: bool = False
) -> list[Axes]:
    """Draw panels side by side, in rows of equal length where there are more than four; the axes, one a panel.

    x is on a symmetric log scale, which includes 0; with ``even`` on a linear one.
    """
    rows = -(-len(panels) // _IN_A_ROW)
    columns = -(-len(panels) // rows)
    figure.set_size_inches(4.2 * columns + 1.6, 4.2 * rows)
    with plot_style():
        axes = figure.subplots(rows, columns, squeeze=False)
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
    return list(axes.flat[: len(panels)])


_IN_A_ROW = 4
"""Panels, at most."""
_ROUND = 100.0
"""Numbers from which on an axis has no fractions; below, it has three digits."""


def _draw_panel(axis: Any, panel: PlotPanel, *, even: bool) -> None:  # noqa: ANN401 - matplotlib ships no types we rely on
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
