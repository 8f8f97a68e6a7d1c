"""Rows for people, as tables, and for programs, as JSON."""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Mapping, Sequence
from datetime import UTC, datetime
from typing import Any

import typer

from recrawl.time import format_duration

PIPED_WIDTH = 200
"""Columns when the output is not a terminal: wide enough that most URLs stay whole."""


def print_table(
    columns: Sequence[str],
    rows: Sequence[Sequence[str]],
    *,
    right: Sequence[str] = (),
    spare: Sequence[str] = (),
) -> None:
    """Print rows under their headings, the columns named in ``right`` flush right. Text is printed as it is.

    In a terminal too narrow for the words of all columns, those named in ``spare`` are left out, one after the other.
    """
    from rich.box import SIMPLE_HEAD
    from rich.console import Console
    from rich.table import Table
    from rich.text import Text

    from recrawl.cli.column_widths import shared_widths, without_spare

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
    """Print a table given by columns; what each column holds is known by its name. ``spare`` as for tables by rows."""
    shown = [[_SHOWN.get(name, str)(value) for value in values] for name, values in columns.items()]
    headings = [name.replace("_", " ") for name in columns]
    right = [name.replace("_", " ") for name in columns if name not in _TEXTS]
    named = [name.replace("_", " ") for name in spare]
    print_table(headings, list(zip(*shown, strict=True)), right=right, spare=named)


def rows_of(columns: Mapping[str, Sequence[Any]]) -> list[dict[str, object]]:
    """The same table by rows.

    >>> rows_of({"id": [1, 2], "host": ["a", "b"]})
    [{'id': 1, 'host': 'a'}, {'id': 2, 'host': 'b'}]
    """
    return [dict(zip(columns, row, strict=True)) for row in zip(*columns.values(), strict=True)]


def print_json(value: Sequence[Mapping[str, object]] | Mapping[str, object]) -> None:
    """Print strict JSON: a number that is not finite becomes null."""
    typer.echo(json_text(value))


def print_csv(columns: Mapping[str, Sequence[Any]]) -> None:
    """Print a table given by columns as CSV, with a line of headings; nothing where a number is not finite."""
    import csv
    import io

    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow(columns)
    for row in zip(*columns.values(), strict=True):
        writer.writerow("" if _finite(value) is None else value for value in row)
    typer.echo(text.getvalue(), nl=False)


def json_text(value: Sequence[Mapping[str, object]] | Mapping[str, object]) -> str:
    r"""The same as a text.

    >>> json_text({"a": float("nan")})
    '{\n  "a": null\n}'
    """
    return json.dumps(_finite(value), indent=2, ensure_ascii=False, allow_nan=False)


def _finite(value: object) -> object:
    match value:
        case Mapping():
            return {str(key): _finite(entry) for key, entry in value.items()}
        case list() | tuple():
            return [_finite(entry) for entry in value]
        case float():
            return value if math.isfinite(value) else None
        case _:
            return value


def shown_share(share: float) -> str:
    """A share as a percentage; a dash if it is without bound.

    >>> shown_share(0.256), shown_share(float("nan")), shown_share(float("inf"))
    ('26%', 'not known', '–')
    """
    if math.isnan(share):
        return "not known"
    return f"{share:.0%}" if math.isfinite(share) else "–"


def shown_rate(rate: float) -> str:
    """Changes a day, with three digits.

    >>> shown_rate(0.01234), shown_rate(float("nan"))
    ('0.0123', 'not known')
    """
    return "not known" if math.isnan(rate) else f"{rate:.3g}"


def shown_time(when: float, to_the: str = "minutes") -> str:
    """A time as people read it, in UTC; a dash where there is none. Total: every number has a text.

    >>> shown_time(0.0), shown_time(float("nan")), shown_time(float("inf")), shown_time(1e12)
    ('1970-01-01 00:00', '–', 'never', 'far future')
    >>> shown_time(1.5, "seconds")
    '1970-01-01 00:00:01'
    """
    if when == math.inf:
        return "never"
    if not math.isfinite(when):
        return "–"
    if not _FIRST <= when < _LAST:
        return "far future" if when > 0 else "far past"
    return datetime.fromtimestamp(when, UTC).replace(tzinfo=None).isoformat(" ", to_the)


_FIRST, _LAST = (datetime(year, 1, 1, tzinfo=UTC).timestamp() for year in (1, 9999))
"""What a calendar date of four digits can show, in whole years."""

_TEXTS = ("url", "host", "outcome", "verdict", "why", "meaning", "robots", "state", "source", "format", "why_skipped")
_SHOWN: dict[str, Callable[[Any], str]] = {
    "importance": "{:g}".format,
    "delay": format_duration,
    "seconds": "{:.3f}".format,
    **dict.fromkeys(
        ("time", "discovered", "last_look", "last_change", "next_due", "due", "since", "last_try", "next_try"),
        shown_time,
    ),
    "late": format_duration,
    "magnitude": lambda share: "–" if share != share else f"{share:.0%}",  # noqa: PLR0124 - NaN
    "believed": lambda yes: "yes" if yes else "no",
    "quarantined": lambda yes: "yes" if yes else "–",
    "ready_at": lambda when: shown_time(when) if when > 0 else "–",
    **dict.fromkeys(("changes_per_day", "low", "high"), shown_rate),
    "changes_every": lambda seconds: "not known" if math.isnan(seconds) else format_duration(seconds),
}
"""How the values of a column are shown, where it is not as they are."""
