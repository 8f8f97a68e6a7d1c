"""Tables for people."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

PIPED_WIDTH = 200
"""Columns when the output is not a terminal: wide enough that URLs stay whole."""


def print_table(
    columns: Sequence[str], rows: Iterable[Sequence[str]], *, right: Sequence[str] = (), title: str = ""
) -> None:
    """Print rows under their headings, the columns named in ``right`` flush right. Text is printed as it is."""
    from rich.box import SIMPLE_HEAD
    from rich.console import Console
    from rich.table import Table
    from rich.text import Text

    table = Table(box=SIMPLE_HEAD, title=title or None, title_justify="left", pad_edge=False)
    for name in columns:
        table.add_column(name, justify="right" if name in right else "left", overflow="fold")
    for row in rows:
        table.add_row(*(Text(cell) for cell in row))
    console = Console()
    Console(width=None if console.is_terminal else PIPED_WIDTH).print(table)
