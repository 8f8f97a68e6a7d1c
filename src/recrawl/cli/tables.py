"""Print rows as tables, JSON or CSV, and say which command made them.

Tables are fitted to the width of the terminal. Widths are in terminal cells.
"""

from __future__ import annotations

import math
import os
from collections.abc import Callable, Mapping, Sequence
from textwrap import wrap
from typing import TYPE_CHECKING, Any, TypeAlias

import typer
from rich.cells import cell_len

from recrawl.app.display import finite, json_text, shown_rate, shown_time
from recrawl.app.provenance import Provenance, changed_settings
from recrawl.cli.commands import RUNNING, hyphenated
from recrawl.time import format_duration

if TYPE_CHECKING:
    from recrawl.app.workspace.configuration import Configuration

Column: TypeAlias = tuple[str, Sequence[str]]
"""Heading and cells."""
_WHOLE = 10
"""Text up to this width stays on one line, such as ``4.62 d``."""
_BROKEN = 20
"""Wider words, mostly URLs, may be broken."""


def without_spare(columns: Sequence[Column], spare: Sequence[str], width: int) -> list[Column]:
    """The columns without as many spare ones, in their order, as must go to fit the words of the others.

    >>> [heading for heading, _ in without_spare([("url", ["/a"]), ("since", ["2026-11-14 00:30"])], ["since"], 12)]
    ['url']
    """
    kept = list(columns)
    for name in spare:
        if sum(map(_least, kept)) > _room(kept, width):
            kept = [column for column in kept if column[0] != name]
    return kept


def shared_widths(columns: Sequence[Column], width: int) -> list[int]:
    """The widths of the columns in a table of this width: words stay whole where possible, and cells take few lines.

    >>> shared_widths([("url", ["http://data.example/library/2"]), ("why", ["above threshold"])], 39)
    [27, 9]
    """
    widths, room = list(map(_least, columns)), _room(columns, width)
    while sum(widths) > max(room, len(columns)):
        widths[widths.index(max(widths))] -= 1
    full = [max(map(cell_len, (heading, *cells))) for heading, cells in columns]
    grown = _grown(columns, widths, full, room)
    # Width that a column does not need goes to the others.
    taken = list(map(_taken, columns, grown))
    most = [used if used < had else wanted for used, had, wanted in zip(taken, grown, full, strict=True)]
    return _grown(columns, taken, most, room)


def _grown(columns: Sequence[Column], widths: Sequence[int], most: Sequence[int], room: int) -> list[int]:
    """Distribute free width to the columns whose cells take the most lines; no column gets more than its maximum."""
    usual = [sum(map(cell_len, cells)) / max(len(cells), 1) for _, cells in columns]
    grown = list(widths)
    for _ in range(room - sum(widths)):
        folded = [one for one, width in enumerate(grown) if width < most[one]]
        if folded:
            grown[max(folded, key=lambda one: usual[one] / grown[one])] += 1
    return grown


def _taken(column: Column, width: int) -> int:
    """The share of its width that a column needs."""
    heading, cells = column
    lines = (line for text in (heading, *cells) for line in wrap(text, width, break_on_hyphens=False))
    return max([1, *(min(cell_len(line), width) for line in lines)])


def _least(column: Column) -> int:
    """The smallest width at which a column breaks only very long words."""
    heading, cells = column
    words = [word for text in (heading, *cells) for word in text.split()]
    whole = [text for text in cells if cell_len(text) <= _WHOLE]
    return max([1, *(min(cell_len(text), _BROKEN) for text in (*words, *whole))])


def _room(columns: Sequence[Column], width: int) -> int:
    """The width for the columns, less one cell beside and between them."""
    return width - len(columns) - 1


PIPED_WIDTH = 200
"""The width if the output is not a terminal: most URLs stay whole."""


def print_table(
    columns: Sequence[str],
    rows: Sequence[Sequence[str]],
    *,
    right: Sequence[str] = (),
    spare: Sequence[str] = (),
) -> None:
    """Print rows under their headings, with the columns in ``right`` aligned right. Text is printed without markup.

    In a terminal too narrow for the words of all columns, the columns in ``spare`` are left out one after the other.
    """
    from rich.box import SIMPLE_HEAD
    from rich.console import Console
    from rich.table import Table
    from rich.text import Text

    console = Console()
    if not console.is_terminal:
        console.width = PIPED_WIDTH
    every = [(name, [row[place] for row in rows]) for place, name in enumerate(columns)]
    shown = without_spare(every, spare, console.width)
    table = Table(box=SIMPLE_HEAD if any(columns) else None, pad_edge=False, show_header=any(columns))
    for name, _ in shown:
        table.add_column(name, justify="right" if name in right else "left", overflow="fold")
    for row in zip(*(cells for _, cells in shown), strict=True):
        table.add_row(*(Text(cell) for cell in row))
    # In a narrow terminal, columns move together where that keeps words whole.
    wide = console.options.update_width(PIPED_WIDTH)
    for padding in (table.padding, (0, 1, 0, 0), (0, 0)) if table.box else (table.padding, (0, 1, 0, 0)):
        table.padding = padding
        if console.measure(table, options=wide).maximum <= console.width:
            break
    else:
        if table.box:
            for column, width in zip(table.columns, shared_widths(shown, console.width), strict=True):
                column.width = width
    console.print(table)
    if len(shown) < len(every):
        left_out = [name for name in columns if name not in dict(shown)]
        typer.echo(f"The terminal is too narrow for: {', '.join(left_out)}.")


def print_columns(columns: Mapping[str, Sequence[Any]], *, spare: Sequence[str] = ()) -> None:
    """Print a table given by columns; the column name determines the format. ``spare`` as for tables by rows."""
    shown = [[_SHOWN.get(name, str)(value) for value in values] for name, values in columns.items()]
    headings = [name.replace("_", " ") for name in columns]
    right = [name.replace("_", " ") for name in columns if name not in _TEXTS]
    named = [name.replace("_", " ") for name in spare]
    print_table(headings, list(zip(*shown, strict=True)), right=right, spare=named)


def print_json(
    value: Sequence[Mapping[str, object]] | Mapping[str, object], provenance: Provenance | None = None
) -> None:
    """Print strict JSON: a number that is not finite becomes null. An object gets its provenance; a list has no place.

    >>> print_json({"pages": 3}, Provenance("plan", "0.1.0"))  # doctest: +ELLIPSIS
    {
      "pages": 3,
      "provenance": {
        "question": "plan",
    ...
    """
    if provenance is not None and isinstance(value, Mapping):
        value = {**value, "provenance": provenance.facts()}
    typer.echo(json_text(value))


_NOT_ASKED = {"workspace", "json_output", "assignments", "output", "plot", "graphml", "tree", "file", "jobs", "seed"}
"""Parameters that name places or appear elsewhere in the provenance: they do not change a result."""


def command_provenance(
    configuration: Configuration | None = None,
    sources: Sequence[object] = (),
    *,
    as_of: float | None = None,
    seed: int | None = None,
) -> Provenance | None:
    """The running command with the options that were given, for the files and JSON that it writes.

    The seed is that of the option ``--seed``, or a fixed one of the command. The time of reference is now, unless the
    command has another. ``None`` outside a command.
    """
    from recrawl import __version__
    from recrawl.crawl.clock import RealClock

    context = RUNNING.get()
    if context is None:
        return None
    given = {
        hyphenated(name): str(value) if isinstance(value, os.PathLike) else value
        for name, value in context.params.items()
        if name not in _NOT_ASKED
        and (source := context.get_parameter_source(name)) is not None
        and source.name in {"COMMANDLINE", "ENVIRONMENT"}
    }
    return Provenance(
        context.command_path.removeprefix("recrawl "),
        __version__,
        tuple(map(str, sources)),
        RealClock().now() if as_of is None else as_of,
        context.params.get("seed", seed),
        given,
        {} if configuration is None else changed_settings(configuration),
    )


def print_csv(columns: Mapping[str, Sequence[Any]]) -> None:
    """Print a table given by columns as CSV with a heading line; numbers that are not finite are empty."""
    import csv
    import io

    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow(columns)
    for row in zip(*columns.values(), strict=True):
        writer.writerow("" if finite(value) is None else value for value in row)
    typer.echo(text.getvalue(), nl=False)


_TEXTS = frozenset(
    ("url", "host", "event", "summary", "outcome", "verdict", "why", "meaning", "robots", "state", "source", "format")
) | {"why_skipped"}
_SHOWN: dict[str, Callable[[Any], str]] = {
    "importance": "{:g}".format,
    "delay": format_duration,
    "seconds": "{:.3f}".format,
    **dict.fromkeys(
        (
            "time",
            "discovered",
            "last_observed",
            "last_change",
            "next_due",
            "due",
            "since",
            "last_try",
            "next_try",
            "reported",
        ),
        shown_time,
    ),
    "late": format_duration,
    "magnitude": lambda share: "–" if share != share else f"{share:.0%}",  # noqa: PLR0124 - NaN
    "believed": lambda yes: "yes" if yes else "no",
    "quarantined": lambda yes: "yes" if yes else "–",
    "ready_at": lambda when: shown_time(when) if when > 0 else "–",
    **dict.fromkeys(("changes_per_day", "low", "high"), shown_rate),
    "fitted": lambda when: "–" if when is None else shown_time(when),
    "price": lambda price: "–" if price is None else f"{price:.3g}",
    "demand": lambda visits: "–" if visits is None else f"{visits:,.1f}",
    "changes_every": lambda seconds: "not known" if math.isnan(seconds) else format_duration(seconds),
}
"""The format functions of columns by name."""
