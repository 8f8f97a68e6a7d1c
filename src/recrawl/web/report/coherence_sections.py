"""The sections about what belongs together: pages with their page requisites, and sections that change together."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from recrawl.assess.composite_coherence import STATE_WORDS, CoherenceState, Composites, CompositeSummary, summary_of
from recrawl.assess.site_structure import SubSites
from recrawl.model.plurals import counted
from recrawl.web.report.report_page import (
    Column,
    ColumnKind,
    Figure,
    ReportTable,
    Section,
    Tile,
    axis,
    chart,
    histogram,
    series,
)

_TITLE, _ANCHOR = "Pages with their page requisites", "composites"
_MOST_ROWS = 500
_BINS = 20
_NOT_KNOWN = "not known"
_NOTES = (
    (
        "A page requisite is prima facie coherent if it is proved to have been as shown when the page was captured: "
        "captured "
        "in the same second; last modified before the page and captured after it; or captured before and after it "
        "with the "
        "same content. It is possibly coherent if it was captured before and nothing shows that it was replaced, "
        "possibly "
        "violative if it was captured after and nothing shows that it existed before, prima facie violative if it is "
        "proved "
        "to have been different (Ainsworth, Nelson, Van de Sompel 2015)."
    ),
    (
        "A page is as coherent as the worst of its archived parts. Damage is the missing share, each resource "
        "weighted by "
        "kind and size (Brunelle et al. 2014). Nothing is rendered, so positions, and sizes that a page does not "
        "state, are "
        "assumed."
    ),
    (
        "Published figures, of other archives: at most 38.7% of pages coherent, 17.9% coherent and complete, mean "
        "damage .13 to .16."
    ),
)


def composites_section(found: Composites | None, urls: Sequence[str], words: Sequence[str]) -> Section:
    """The section; with ``None`` it says that nothing is known."""
    if found is None or not bool((found.embedded() > 0).any()):
        return Section(_TITLE, _ANCHOR, list(words), notes=_NOTES, level=3)
    said = summary_of(found)
    return Section(
        _TITLE,
        _ANCHOR,
        list(words),
        figures=[_states(said), *_damages(found)],
        tables=[_table(found, urls)],
        tiles=_tiles(said),
        notes=_NOTES,
        level=3,
    )


def _tiles(said: CompositeSummary) -> list[Tile]:
    def share(count: int) -> str:
        part = said.share(count)
        return _NOT_KNOWN if part is None else f"{part:.1%}"

    return [
        Tile(
            "proved as shown",
            share(said.coherent),
            f"of {said.embedding:,} pages; at most {share(said.not_violative)}",
        ),
        Tile("proved not as shown", share(said.violative), f"{said.violative:,} pages"),
        Tile("complete", share(said.complete), f"{share(said.coherent_complete)} provably coherent, too"),
        Tile(
            "mean damage",
            _NOT_KNOWN if said.damage is None else f"{said.damage:.3f}",
            f"{said.resources[CoherenceState.MISSING]:,} resources missing",
        ),
    ]


def _states(said: CompositeSummary) -> Figure:
    names = [STATE_WORDS[state] for state in CoherenceState]
    counts = [said.resources[state] for state in CoherenceState]
    data = chart(axis("resources", "count"), axis("", "names", names=names), [series("resources", "bars", counts, [])])
    return Figure("composite-states", "Page requisites by state", "chart", data, height=80 + 24 * len(names))


def _damages(found: Composites) -> list[Figure]:
    damage = found.damage()[found.embedded() > 0]
    damage = damage[~np.isnan(damage)]
    if not len(damage):
        return []
    edges = np.linspace(0.0, 1.0, _BINS + 1)
    shares = np.histogram(damage, edges)[0] / len(damage)
    data = chart(axis("memento damage"), axis("pages", "share"), [histogram("pages", edges, shares)])
    return [Figure("composite-damage", "Memento damage", "chart", data)]


def _table(found: Composites, urls: Sequence[str]) -> ReportTable:
    embedding = np.flatnonzero(found.embedded() > 0)
    rows = found.worst_first()
    rows = rows[np.isin(rows, embedding)][:_MOST_ROWS]
    some = found.take(rows)
    columns = [
        Column("page", ColumnKind.URL, [urls[row] for row in rows.tolist()]),
        Column("captured", ColumnKind.TIME, some.time),
        Column("state", ColumnKind.TEXT, [STATE_WORDS[CoherenceState(int(one))] for one in some.state()]),
        Column("embeds", ColumnKind.COUNT, some.embedded()),
        *(Column(STATE_WORDS[one], ColumnKind.COUNT, some.counts[:, one]) for one in CoherenceState),
        Column("completeness", ColumnKind.SHARE, some.completeness()),
        Column("damage", ColumnKind.NUMBER, some.damage()),
    ]
    more = "" if len(rows) == len(embedding) else f"The first {len(rows):,} of {len(embedding):,} captured pages."
    return ReportTable("composites", "Captured pages with their page requisites, most damaged first", columns, more)


_LEAST_GAIN = 1.0
"""Coherent pages below which a part is not worth a capture of its own."""
_MOST_SUBSITES = 500


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
        return Section(_PARTS_TITLE, _PARTS_ANCHOR, [none], notes=_SUBSITE_NOTES, level=3)
    words = (
        f"{counted(together, 'group')} of sections {'changes' if together == 1 else 'change'} together; "
        f"{counted(gaining, 'part')} would gain a coherent page or more by a capture of {_its(gaining)} own."
    )
    return Section(
        _PARTS_TITLE,
        _PARTS_ANCHOR,
        [words],
        tables=[_subsite_table(rows[:_MOST_SUBSITES])],
        notes=_SUBSITE_NOTES,
        level=3,
    )


def _its(count: int) -> str:
    return "its" if count == 1 else "their"


def _subsite_table(rows: Sequence[tuple[SiteParts, int]]) -> ReportTable:
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


_PARTS_TITLE, _PARTS_ANCHOR = "Sections that change together", "subsites"
_SUBSITE_NOTES = [
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
