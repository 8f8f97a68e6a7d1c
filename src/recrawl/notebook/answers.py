"""What an archive answers in Python: tables, pictures, plans and statements of quality."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from html import escape
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from recrawl.model.words import counted, told

_SHOWN = 20
"""Rows of a table that a notebook displays."""


class Picture:
    """A picture that a notebook displays, and that can be saved."""

    def __init__(self, draw: Callable[[Path], None]) -> None:
        self._draw = draw

    def save(self, file: str | Path) -> None:
        """Write it as PNG, SVG or PDF, by the ending of the file."""
        from recrawl.cli.rates_output import check_picture

        check_picture(Path(file))
        self._draw(Path(file))

    def _repr_svg_(self) -> str:
        with TemporaryDirectory(prefix="recrawl-picture-") as folder:
            file = Path(folder) / "picture.svg"
            self._draw(file)
            return file.read_text(encoding="utf-8")


@dataclass(frozen=True, slots=True, repr=False)
class Table:
    """Columns of one length, by name. ``pandas.DataFrame(table.columns)`` makes a data frame of it.

    >>> table = Table({"url": ["http://a.org/"], "changes": [3]})
    >>> table["changes"], len(table), table.rows()
    ([3], 1, [{'url': 'http://a.org/', 'changes': 3}])
    >>> table
    <Table of 1 row: url, changes>
    """

    columns: Mapping[str, Sequence[Any]]

    def __repr__(self) -> str:
        return f"<Table of {counted(len(self), 'row')}: {', '.join(self.columns)}>"

    def __len__(self) -> int:
        return len(next(iter(self.columns.values())))

    def __getitem__(self, column: str) -> Sequence[Any]:
        return self.columns[column]

    def __iter__(self) -> Iterator[str]:
        """Names of the columns."""
        return iter(self.columns)

    def rows(self) -> list[dict[str, object]]:
        """The same, row by row."""
        from recrawl.cli.tables import rows_of

        return rows_of(self.columns)

    def save(self, file: str | Path) -> None:
        """Write all rows to a ``.csv`` or ``.parquet`` file."""
        from recrawl.cli.rates_output import check_ending, write_columns

        check_ending(Path(file))
        write_columns(Path(file), self.columns)

    def _repr_html_(self) -> str:
        head = "".join(f"<th>{escape(name)}</th>" for name in self.columns)
        rows = zip(*(values[:_SHOWN] for values in self.columns.values()), strict=True)
        body = "".join(f"<tr>{''.join(f'<td>{escape(str(cell))}</td>' for cell in row)}</tr>" for row in rows)
        more = f"<p>{_SHOWN} of {len(self):,} rows</p>" if len(self) > _SHOWN else ""
        return f"<table><thead><tr>{head}</tr></thead><tbody>{body}</tbody></table>{more}"


@dataclass(frozen=True, slots=True, repr=False)
class Rates(Table):
    """How often pages change, the most often changing first: the columns of ``recrawl rates``. Rates are per day.

    >>> Rates({"host": ["a.org", "b.org"], "changes": [3, 0]}, "host")
    <Rates of 2 hosts: host, changes>
    """

    by: str = "page"
    """What a row is: ``page``, ``section``, ``host`` or ``site``."""

    def __repr__(self) -> str:
        return f"<Rates of {counted(len(self), self.by)}: {', '.join(self.columns)}>"

    def plot(self) -> Picture:
        """How rates differ, and how sure they are."""
        from recrawl.cli.rates_question import By
        from recrawl.cli.rates_table import draw

        columns = {name: list(values) for name, values in self.columns.items()}
        return Picture(lambda file: draw(columns, By(self.by), file))


@dataclass(frozen=True, slots=True, repr=False)
class Plan:
    """What would be fetched next and why, what the budget buys, and what cannot be had.

    >>> Plan(Table({"url": ["http://a.org/"]}), Table({"budget": ["now"]}), {"budget_per_day": 500.0})
    <Plan for 1 page at 500 visits a day>
    """

    next: Table
    """Pages by due time, as ``recrawl plan`` lists them. Times are seconds since the epoch."""
    budgets: Table
    """A tenth less than the budget, the budget, a tenth more: rates are per second."""
    facts: Mapping[str, Any]
    """Everything that ``recrawl plan --json`` prints."""

    def __repr__(self) -> str:
        return f"<Plan for {counted(len(self.next), 'page')} at {told(self.facts['budget_per_day'])} visits a day>"


@dataclass(frozen=True, slots=True, repr=False)
class Quality:
    """How sharp and how coherent an archive is."""

    words: Sequence[str]
    """The statement, line by line, as ``recrawl assess`` prints it."""
    facts: Mapping[str, Any]
    """Everything that ``recrawl assess --json`` prints."""
    crawls: Table
    sections: Table
    pages: Table
    """Worst first, as are crawls and sections."""
    subsites: Table
    """Parts of sites that are worth a capture of their own."""
    _draw: Callable[[Path], None]

    def __repr__(self) -> str:
        return f"<Quality of {counted(len(self.pages), 'page')} in {counted(len(self.crawls), 'crawl')}>"

    def __str__(self) -> str:
        return "\n".join(self.words)

    def plot(self) -> Picture:
        """What became of each crawl, and which sections blur the archive."""
        return Picture(self._draw)
