"""What ``recrawl assess`` prints and writes."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import KW_ONLY, dataclass
from pathlib import Path
from typing import Any

import typer

from recrawl.cli.assess_answer import Answer
from recrawl.cli.assess_composites import composite_columns
from recrawl.cli.assess_facts import facts, words
from recrawl.cli.assess_sources import Archive
from recrawl.cli.assess_tables import Columns, crawls, first_rows, pages, sections, subsites
from recrawl.cli.rates_output import check_picture, write_columns
from recrawl.cli.tables import json_text, print_json, print_table
from recrawl.errors import InputError
from recrawl.formats.disk import complete_file, told
from recrawl.show.experiments import markdown_table
from recrawl.store.base import Store
from recrawl.time import format_duration


@dataclass(frozen=True, slots=True)
class Wanted:
    """In which forms the answer is wanted."""

    limit: int
    """Rows of a table that are printed."""
    output: Path | None = None
    graphml: Path | None = None
    """The tree of pages, unchanged parts folded …"""
    tree: Path | None = None
    """… and all of it."""
    plot: Path | None = None
    _: KW_ONLY
    as_json: bool = False

    def check(self) -> None:
        """Refuse what cannot be written before any work is done."""
        if self.plot is not None:
            check_picture(self.plot)
        if self.output is not None and self.output.exists() and not self.output.is_dir():
            raise InputError(f"{self.output} is not a folder.", "Name a folder; it is made if it is not there.")


def tell_problems(archive: Archive) -> None:
    """Name what could not be read, and files of which nothing was taken."""
    for error in archive.errors.first:
        typer.echo(str(error), err=True)
    if (rest := archive.errors.count - len(archive.errors.first)) > 0:
        typer.echo(f"… and {rest:,} more.", err=True)
    for one in archive.brought:
        if not one.accepted:
            reasons = ", ".join(f"{count} {reason}" for reason, count in one.skipped.items())
            typer.echo(f"{one.source}: no capture in it{f' ({reasons})' if reasons else ''}.", err=True)


def print_answer(found: Answer, archive: Archive | None, wanted: Wanted) -> None:
    """The statement in words, and the head of each table; or all of it as JSON."""
    if wanted.as_json:
        print_json(facts(found, archive, wanted.limit))
        return
    for line in words(found, archive):
        typer.echo(line)
    for title, columns in tables(found).items():
        rows = len(next(iter(columns.values())))
        if not rows or (title == _CRAWLS and rows == 1):
            continue
        shown = first_rows(columns, wanted.limit)
        more = "" if rows <= wanted.limit else f", {wanted.limit} of {rows:,}"
        typer.echo(f"\n{title}{more}:")
        headings, lines = _readable(title, shown)
        print_table(headings, lines, right=headings[_TEXTS[title] :])


def tables(found: Answer) -> dict[str, Columns]:
    """All tables by their titles."""
    return {
        _CRAWLS: crawls(found),
        _SECTIONS: sections(found),
        _PAGES: pages(found),
        _COMPOSITES: composite_columns(found.composed),
        _PARTS: subsites(found),
    }


def write_answer(store: Store, found: Answer, archive: Archive | None, wanted: Wanted) -> list[Path]:
    """Write what was asked for; return the files."""
    written: list[Path] = []
    if wanted.output is not None:
        written += _write_folder(wanted.output, found, archive)
    if wanted.graphml is not None or wanted.tree is not None:
        from recrawl.cli.assess_tree import write_trees

        written += write_trees(store, found, folded=wanted.graphml, whole=wanted.tree)
    if wanted.plot is not None:
        from recrawl.show.quality_picture import draw_quality

        draw_quality(found.quality, sections(found), wanted.plot)
        written.append(wanted.plot)
    return written


def _write_folder(folder: Path, found: Answer, archive: Archive | None) -> list[Path]:
    with told(folder):
        folder.mkdir(parents=True, exist_ok=True)
    text, parts = [*words(found, archive), ""], tables(found)
    for title, columns in parts.items():
        headings, lines = _readable(title, first_rows(columns, _IN_MARKDOWN))
        text += [f"## {title}", "", markdown_table(headings, lines), ""]
    documents = {
        "quality.md": "\n".join(["# Quality of the archive", "", *text]),
        "quality.json": json_text(facts(found, archive, _IN_JSON)),
    }
    for name, document in documents.items():
        with complete_file(folder / name) as stream:
            stream.write(document.encode("utf-8", errors="backslashreplace"))
    for title, columns in parts.items():
        write_columns(folder / f"{_FILES[title]}.csv", columns)
    return [folder / name for name in (*documents, *(f"{name}.csv" for name in _FILES.values()))]


def _readable(title: str, columns: Columns) -> tuple[list[str], list[list[str]]]:
    """The columns that people look at, as texts."""
    names = _SHOWN[title]
    cells = [[_cell(name, value) for value in columns[name]] for name in names]
    headings = [_HEADINGS.get(name, name.replace("_", " ")) for name in names]
    return headings, [list(row) for row in zip(*cells, strict=True)]


def _cell(name: str, value: Any) -> str:  # noqa: ANN401 - a value of any column
    if value is None or value != value:  # noqa: PLR0124 - NaN: nothing is known
        return "not known" if name in _ESTIMATED else "–"
    if name in {"expected_coherent", "coherent_alone", "gain", "usual_gain"}:
        return f"{value:.1f}"
    if name in {"distance", "seconds"}:
        return format_duration(value)
    if name == "sections":
        some = str(value).split(" ")
        return " ".join(some[:_NAMED]) + (f" and {len(some) - _NAMED} more" if len(some) > _NAMED else "")
    if name in {"from", "until", "shown", "captured"}:
        return str(value)[:16].replace("T", " ")
    return _plain(value)


def _plain(value: Any) -> str:  # noqa: ANN401 - a value of any column
    match value:
        case bool():
            return "yes" if value else "no"
        case float():
            return f"{value:.3g}"
        case int():
            return f"{value:,}"
        case _:
            return str(value)


_IN_MARKDOWN, _IN_JSON = 50, 1000
"""Rows of a table that go into these documents; the CSV files have all."""
_NAMED = 3
"""Sections of a sub-site that a line names."""
_CRAWLS, _SECTIONS, _PAGES, _COMPOSITES, _PARTS = (
    "Crawls, worst first",
    "Sections, worst first",
    "Pages, worst first",
    "Captured pages with what they embed, most damaged first",
    "Sub-sites, best gain first",
)
_FILES = {
    _CRAWLS: "crawls",
    _SECTIONS: "sections",
    _PAGES: "pages",
    _COMPOSITES: "composites",
    _PARTS: "subsites",
}
_TEXTS = {_CRAWLS: 3, _SECTIONS: 1, _PAGES: 1, _COMPOSITES: 3, _PARTS: 2}
"""Columns of text that each table begins with."""
_COUNTS = ("coherent", "changed", "missing", "unseen", "expected_coherent")
_SHOWN: dict[str, Sequence[str]] = {
    _CRAWLS: ("site", "from", "until", "pages", "new", *_COUNTS, "blur_predicted"),
    _SECTIONS: ("section", "pages", "captures", *_COUNTS, "distance", "blur", "blur_total"),
    _PAGES: ("url", "captures", "changes_per_day", *_COUNTS[:-1], "distance", "blur_total", "proved"),
    _COMPOSITES: ("url", "captured", "state", "embedded", "missing", "prima_facie_violative", "completeness", "damage"),
    _PARTS: ("site", "sections", "pages", "coherent_alone", "gain", "usual_gain", "seconds"),
}
_ESTIMATED = frozenset(
    {"changes_per_day", "expected_coherent", "blur", "blur_total", "blur_predicted", "coherent_alone"}
)
"""Columns whose missing values are not known, rather than not there."""
_HEADINGS = {
    "expected_coherent": "expected coherent",
    "changes_per_day": "changes/day",
    "seconds": "takes",
    "blur_total": "blur × weight",
}
