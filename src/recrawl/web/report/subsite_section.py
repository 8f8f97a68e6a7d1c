"""Which parts of each site change together, and what they would gain by captures of their own."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from recrawl.assess.subsite_detection import SubSites
from recrawl.model.plurals import counted
from recrawl.web.report.report_section import Column, ColumnKind, ReportTable, Section

_LEAST_GAIN = 1.0
"""Coherent pages below which a part is not worth a capture of its own."""
_MOST_ROWS = 500


@dataclass(frozen=True, slots=True)
class SiteParts:
    """The parts of one host."""

    host: str
    sections: Sequence[str]
    """Names, by the numbers of ``found.members``."""
    found: SubSites


def subsites_section(parts: Sequence[SiteParts]) -> Section:
    """Parts of several sections that change together, and parts that gain by being captured alone."""
    rows = [
        (one, place)
        for one in parts
        for place in range(len(one.found))
        if len(one.found.members[place]) > 1 or one.found.gain()[place] >= _LEAST_GAIN
    ]
    together = sum(len(one.found.members[place]) > 1 for one, place in rows)
    gaining = sum(bool(one.found.gain()[place] >= _LEAST_GAIN) for one, place in rows)
    if not rows:
        none = "No sections of any host change together, and none would gain from a separate capture."
        return Section(_TITLE, _ANCHOR, [none], notes=_NOTES, level=3)
    words = (
        f"{counted(together, 'group')} of sections {'changes' if together == 1 else 'change'} together; "
        f"{counted(gaining, 'part')} would gain a coherent page or more by a capture of {_its(gaining)} own."
    )
    return Section(_TITLE, _ANCHOR, [words], tables=[_table(rows[:_MOST_ROWS])], notes=_NOTES, level=3)


def _its(count: int) -> str:
    return "its" if count == 1 else "their"


def _table(rows: Sequence[tuple[SiteParts, int]]) -> ReportTable:
    def numbers(name: str) -> list[float]:
        return [float(getattr(one.found, name)[place]) for one, place in rows]

    gain = [float(one.found.gain()[place]) for one, place in rows]
    lasts = [float(one.found.lasts()[place]) for one, place in rows]
    named = [" ".join(_path(one.sections[part]) for part in one.found.members[place].tolist()) for one, place in rows]
    columns = [
        Column("host", ColumnKind.TEXT, [one.host for one, _ in rows]),
        Column("sections that change together", ColumnKind.TEXT, named),
        Column("sections", ColumnKind.COUNT, [len(one.found.members[place]) for one, place in rows]),
        Column("pages", ColumnKind.COUNT, np.array(numbers("pages"), np.int64)),
        Column("coherent alone", ColumnKind.NUMBER, numbers("alone")),
        Column("gain", ColumnKind.NUMBER, gain),
        Column("gain anywhere", ColumnKind.NUMBER, numbers("usual")),
        Column("lasts", ColumnKind.SECONDS, lasts),
    ]
    return ReportTable("subsites", "Sub-sites", columns)


def _path(section: str) -> str:
    """A section without its host, which stands beside it.

    >>> _path("https://example.org/news/"), _path("https://example.org/")
    ('/news/', '/')
    """
    return "/" + section.partition("://")[2].partition("/")[2]


_TITLE, _ANCHOR = "Sections that change together", "subsites"
_NOTES = [
    (
        "Sections of a host (by path) with five pages or more form one sub-site if the shares of their changed pages "
        "correlate by more than one half."
    ),
    (
        "The gain is the expected number of additional coherent pages if the sub-site and the rest are captured one "
        "after "
        "the other instead of together; for comparison, the gain of as many random pages."
    ),
]
