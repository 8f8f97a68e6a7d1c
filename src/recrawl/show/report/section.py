"""The parts of a report as plain data: what is said, drawn and listed. Templates and scripts give them shape."""

from __future__ import annotations

import enum
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from recrawl.model import AnyArray


class ColumnKind(enum.StrEnum):
    """What the values of a column are: how they are written, sorted and aligned."""

    TEXT = "text"
    URL = "url"
    COUNT = "count"
    NUMBER = "number"
    SHARE = "share"
    """Of 1; written in per cent."""
    SECONDS = "seconds"
    """A duration."""
    TIME = "time"
    """Seconds since the epoch."""
    YES = "yes"
    """True or false."""
    CLASS = "class"
    """The name of a :class:`~recrawl.assess.collapse.ChangeClass`, with its colour."""


@dataclass(frozen=True, slots=True)
class Column:
    """A column of a table. ``None`` and NaN stand for what is not known."""

    title: str
    kind: ColumnKind
    values: Sequence[Any] | AnyArray


@dataclass(frozen=True, slots=True)
class Table:
    """Rows that can be sorted, filtered and saved."""

    name: str
    """Unique in the page; the name of the file it is saved as."""
    title: str
    columns: Sequence[Column]
    words: str = ""
    rows_a_page: int = 15

    def __len__(self) -> int:
        return len(self.columns[0].values) if self.columns else 0

    def block(self) -> dict[str, Any]:
        """What the script that draws it reads."""
        return {"columns": [{"title": one.title, "kind": one.kind, "values": one.values} for one in self.columns]}


@dataclass(frozen=True, slots=True)
class Figure:
    """Something drawn, with the data it is drawn from."""

    name: str
    """Unique in the page; the name of the files it is saved as."""
    title: str
    kind: str
    """Which script draws it: ``chart``, ``heat``, or one that another script has registered."""
    data: Mapping[str, Any]
    words: str = ""
    height: int = 320
    """Pixels."""
    wide: bool = False
    """Whether it needs the whole width of the page."""


@dataclass(frozen=True, slots=True)
class Tile:
    """One number that matters, large."""

    title: str
    value: str
    words: str = ""


@dataclass(frozen=True, slots=True)
class Section:
    """A part of the report. What has nothing to show says so in words."""

    title: str
    anchor: str
    words: Sequence[str] = ()
    figures: Sequence[Figure] = ()
    tables: Sequence[Table] = ()
    tiles: Sequence[Tile] = ()
    notes: Sequence[str] = field(default=())
    """How the numbers came about; behind a switch."""
    level: int = 2
    """2 for a part of the report, 3 for a part of a part."""
