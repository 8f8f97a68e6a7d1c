"""A report as plain data, and the HTML file made of it.

Sections say what is said, drawn and listed; templates and scripts give them shape. The data of figures that
``charts.js`` draws are axes and series of plain columns. Everything is in one file, which opens without a network.
"""

from __future__ import annotations

import enum
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field
from typing import Any

from recrawl.model import AnyArray, FloatArray
from recrawl.time import to_iso
from recrawl.web.html_templates import InlineAssets, environment, plain


def axis(title: str, scale: str = "linear", **more: object) -> dict[str, Any]:
    """An axis. ``scale``: linear, log, time (seconds since the epoch), names, share, seconds or count.

    ``more`` may hold ``names``, ``min`` and ``max``, and ``log=True`` for shares or seconds on a logarithmic scale.
    """
    return {"title": title, "scale": scale, **more}


def series(name: str, draw: str, x: object, y: object, **more: object) -> dict[str, Any]:
    """One series. ``draw``: line, step, bars, area, points, band, whiskers or histogram."""
    return {"name": name, "draw": draw, "x": x, "y": y, **more}


def histogram(name: str, edges: FloatArray, shares: FloatArray, **more: object) -> dict[str, Any]:
    """Bars between edges."""
    return {"name": name, "draw": "histogram", "x": edges[:-1], "y": shares, "edges": edges, **more}


def chart(x: dict[str, Any], y: dict[str, Any], all_series: Sequence[dict[str, Any]], **more: object) -> dict[str, Any]:
    """The data of a figure of kind ``chart``."""
    return {"x": x, "y": y, "series": list(all_series), **more}


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
    """The name of a :class:`~recrawl.assess.site_structure.ChangeClass`, with its colour."""


@dataclass(frozen=True, slots=True)
class Column:
    """A column of a table. ``None`` and NaN stand for what is not known."""

    title: str
    kind: ColumnKind
    values: Sequence[Any] | AnyArray
    hint: str = ""
    """What the values mean, shown when the pointer rests on the title."""


@dataclass(frozen=True, slots=True)
class ReportTable:
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
        shown = ("title", "kind", "values", "hint")
        return {"columns": [{name: getattr(one, name) for name in shown} for one in self.columns]}


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
    tables: Sequence[ReportTable] = ()
    tiles: Sequence[Tile] = ()
    notes: Sequence[str] = field(default=())
    """How the numbers came about; behind a switch."""
    level: int = 2
    """2 for a part of the report, 3 for a part of a part."""


SCHEMA = "recrawl-report/1"
_ALWAYS = ("page.js", "tables.js")
_CHARTS = ("vendor/echarts.min.js", "charts.js")
_STYLES = ("look.css",)


@dataclass(frozen=True, slots=True)
class ReportPage:
    """All that a report says."""

    title: str
    about: str
    """What it is about, in a sentence."""
    made: float
    """Seconds since the epoch."""
    version: str
    """Of recrawl."""
    sections: Sequence[Section]


@dataclass(frozen=True, slots=True)
class ReportExtras:
    """What figures of other kinds than ``charts.js`` draws need: scripts by kind, and style sheets."""

    scripts: Mapping[str, Sequence[str]]
    styles: Sequence[str] = ()


def report_html(report: ReportPage, extras: ReportExtras | None = None) -> str:
    """The page. Only scripts that are needed are in it, and its policy lets no others run."""
    extras = extras or ReportExtras({})
    assets = InlineAssets()
    scripts = _scripts(report.sections, extras)
    template = environment(assets).get_template("report/page.html")
    return str(
        template.render(
            report=report,
            made=to_iso(report.made),
            policy=assets.policy(scripts),
            scripts=scripts,
            styles=[*_STYLES, *extras.styles],
        )
    )


def _scripts(sections: Sequence[Section], extras: ReportExtras) -> list[str]:
    kinds = {figure.kind for section in sections for figure in section.figures}
    wanted = [*_ALWAYS, *(_CHARTS if kinds else ())]
    for kind, scripts in extras.scripts.items():
        if kind in kinds:
            wanted += scripts
    return list(dict.fromkeys(wanted))


def report_json(report: ReportPage) -> dict[str, Any]:
    """The same for other programs: every word, number and column of the page. Times are seconds since the epoch."""
    sections = [plain(asdict(section)) for section in report.sections]
    return {
        "schema": SCHEMA,
        "title": report.title,
        "about": report.about,
        "made": to_iso(report.made),
        "version": report.version,
        "sections": sections,
    }
