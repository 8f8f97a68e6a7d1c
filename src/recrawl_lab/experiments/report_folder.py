"""Writes the results of an experiment into a folder: tables, plots and a Markdown page, which is also printed."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path

import typer

from recrawl.errors import require

MARK = "<!-- written by recrawl experiment -->"
"""Below this line a page is written again."""


class ReportFolder:
    """A folder, made if need be, and what has been put into it."""

    def __init__(self, folder: Path) -> None:
        """Start before anything is measured: who cannot write here, or draw, does not wait for hours to hear of it."""
        require("matplotlib", "plot")
        folder.mkdir(parents=True, exist_ok=True)
        self._folder = folder
        self._files: list[Path] = []

    def table(self, name: str, columns: Mapping[str, Sequence[object]]) -> None:
        """Write a table as CSV, with the command, its options, seed and version beside it."""
        from recrawl.app.result_tables import write_csv
        from recrawl.cli.tables import command_provenance

        write_csv(self.file(name), columns, command_provenance())

    def file(self, name: str) -> Path:
        """Where a file of this name belongs, for anyone who draws it."""
        self._files.append(self._folder / name)
        return self._files[-1]

    def end(self, name: str, text: str) -> None:
        """Write the page, print it, and say what was written.

        If the page is there already, what people wrote above :data:`MARK` is kept.
        """
        page = self._folder / name
        page.write_text(_head(page) + text, encoding="utf-8")
        typer.echo(text)
        typer.echo(f"Written: {', '.join(map(str, [page, *self._files]))}")


def _head(page: Path) -> str:
    if not page.is_file():
        return ""
    above, mark, _ = page.read_text(encoding="utf-8").partition(MARK)
    return f"{above}{mark}\n\n" if mark else ""
