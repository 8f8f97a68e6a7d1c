"""Tables: columns by name, for notebooks, pandas, polars, Arrow and files."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from html import escape
from importlib import import_module
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING, Any

from recrawl.app.provenance import Provenance
from recrawl.errors import ConfigError, counted

if TYPE_CHECKING:
    import pandas as pd
    import polars as pl
    from matplotlib.figure import Figure

_HTML_ROWS, _TEXT_ROWS = 20, 5
"""Rows that a notebook and a terminal display."""
_CELL, _LINE = 40, 110
"""Characters of a cell and of a line, at most, on a terminal."""


@dataclass(frozen=True, slots=True, repr=False)
class Table:
    """Columns of one length, by name. Iterating gives the rows, each a dictionary.

    ``pandas.DataFrame(table)`` and ``polars.DataFrame(table)`` make a data frame of it; any library that reads the
    Arrow C stream interface reads it.

    >>> table = Table({"url": ["http://a.org/"], "changes": [3]})
    >>> table["changes"], len(table), list(table.columns)
    ([3], 1, ['url', 'changes'])
    >>> next(iter(table))
    {'url': 'http://a.org/', 'changes': 3}
    >>> table
    <Table of 1 row>
    url            changes
    http://a.org/  3
    """

    columns: Mapping[str, Sequence[Any]]
    provenance: Provenance | None = None
    """Where the table comes from; it is written into files."""

    def __len__(self) -> int:
        return len(next(iter(self.columns.values()), ()))

    def __getitem__(self, column: str) -> Sequence[Any]:
        return self.columns[column]

    def __iter__(self) -> Iterator[dict[str, Any]]:
        return (dict(zip(self.columns, row, strict=True)) for row in zip(*self.columns.values(), strict=True))

    def rows(self) -> list[dict[str, Any]]:
        """All rows."""
        return list(self)

    def to_pandas(self) -> pd.DataFrame:
        """The table as a data frame of pandas, which has to be installed. Its ``attrs`` hold the provenance."""
        frame: pd.DataFrame = _library("pandas").DataFrame({name: list(self[name]) for name in self.columns})
        if self.provenance is not None:
            frame.attrs["recrawl"] = self.provenance.facts()
        return frame

    def to_polars(self) -> pl.DataFrame:
        """The table as a data frame of polars, which has to be installed."""
        frame: pl.DataFrame = _library("polars").DataFrame(self.to_arrow())
        return frame

    def to_arrow(self) -> Any:  # noqa: ANN401 - pyarrow ships no types
        """The table as a ``pyarrow.Table``, with the provenance in its schema. A number that is not finite is null."""
        from recrawl.app.result_tables import arrow_table

        return arrow_table(self.columns, self.provenance)

    def __arrow_c_stream__(self, requested_schema: object = None) -> object:
        """The Arrow C stream interface (PyCapsule); needs the extra ``columns``."""
        stream: object = self.to_arrow().__arrow_c_stream__(requested_schema)
        return stream

    def save(self, file: str | Path) -> None:
        """Write all rows to a ``.csv`` or ``.parquet`` file, with the provenance.

        Parquet holds it in the metadata of the schema, under ``recrawl``. Beside a CSV file it is in
        ``FILE-metadata.json``, under ``notes`` (CSV on the Web).
        """
        from recrawl.app.result_tables import check_ending, write_columns

        check_ending(Path(file))
        write_columns(Path(file), self.columns, self.provenance)

    def _title(self) -> str:
        about = "" if self.provenance is None else f": {self.provenance.sentence()}"
        return f"{type(self).__name__} of {counted(len(self), self._row_name())}{about}"

    def _row_name(self) -> str:
        return "row"

    def __repr__(self) -> str:
        cells = {name: [name, *map(_cell, values[:_TEXT_ROWS])] for name, values in self.columns.items()}
        widths = {name: max(map(len, texts)) for name, texts in cells.items()}
        shown: list[str] = []
        for name, width in widths.items():
            if shown and sum(widths[one] + 2 for one in shown) + width > _LINE:
                break
            shown.append(name)
        lines = ["  ".join(cell.ljust(widths[name]) for name, cell in zip(shown, row, strict=True)).rstrip()
                 for row in zip(*(cells[name] for name in shown), strict=True)]  # fmt: skip
        more = [f"… {len(self) - _TEXT_ROWS:,} more rows"] if len(self) > _TEXT_ROWS else []
        hidden = list(self.columns)[len(shown) :]
        more += [f"… more columns: {', '.join(hidden)}"] if hidden else []
        return "\n".join([f"<{self._title()}>", *lines, *more])

    def _repr_html_(self) -> str:
        head = "".join(f"<th>{escape(name)}</th>" for name in self.columns)
        rows = islice(zip(*self.columns.values(), strict=True), _HTML_ROWS)
        body = "".join(f"<tr>{''.join(f'<td>{escape(_cell(cell, None))}</td>' for cell in row)}</tr>" for row in rows)
        more = f"<p>{_HTML_ROWS} of {len(self):,} rows</p>" if len(self) > _HTML_ROWS else ""
        caption = f"<caption>{escape(self._title())}</caption>"
        return f"<table>{caption}<thead><tr>{head}</tr></thead><tbody>{body}</tbody></table>{more}"


def table_of(rows: Sequence[Mapping[str, Any]], provenance: Provenance | None = None) -> Table:
    """A table of rows that have the same keys; an empty one of none.

    >>> table_of([{"a": 1}, {"a": 2}])["a"]
    [1, 2]
    """
    return Table({name: [row[name] for row in rows] for name in rows[0]} if rows else {}, provenance)


def new_plot() -> Figure:
    """A figure of ``matplotlib.pyplot``: notebooks show it, with the backend that the user chose."""
    from recrawl.app.result_tables import plot_style
    from recrawl.errors import require

    pyplot = require("matplotlib.pyplot", "plot")
    with plot_style():
        figure: Figure = pyplot.figure(layout="constrained")
        return figure


def _cell(value: object, most: int | None = _CELL) -> str:
    text = f"{value:.4g}" if isinstance(value, float) else str(value)
    return text if most is None or len(text) <= most else f"{text[: most - 1]}…"


def _library(name: str) -> Any:  # noqa: ANN401 - a module
    try:
        return import_module(name)
    except ModuleNotFoundError as missing:
        raise ConfigError(f"{name} is not installed.", f"Install it with: pip install {name}") from missing
