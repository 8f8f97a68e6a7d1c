"""How good an archive is: blur, coherence and freshness, and which pages and page requisites belong together."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

import numpy as np

from recrawl.assess.archive_quality import (
    ArchiveQuality,
    SharpnessOverTime,
    StalenessForecast,
    crawl_blur,
    tally,
)
from recrawl.assess.changes_over_time import observed_always, stretches
from recrawl.assess.composite_coherence import STATE_WORDS, CoherenceState, Composites, CompositeSummary, summary_of
from recrawl.assess.observations import JointValidity
from recrawl.assess.replay_selection import SelectedCopies
from recrawl.assess.site_structure import SubSites
from recrawl.errors import counted
from recrawl.model import BoolArray
from recrawl.time import DAY, format_duration, to_iso
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
        tables=[_coherence_table(found, urls)],
        tiles=_coherence_tiles(said),
        notes=_NOTES,
        level=3,
    )


def _coherence_tiles(said: CompositeSummary) -> list[Tile]:
    def share(count: int) -> str:
        part = said.share(count)
        return _NOT_KNOWN if part is None else f"{part:.1%}"

    return [
        Tile(
            "proved as shown",
            share(said.coherent),
            f"of {said.embedding:,} pages; {share(said.not_violative)} have archived parts, none of them violative",
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


def _coherence_table(found: Composites, urls: Sequence[str]) -> ReportTable:
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


MOST_ROWS = 2_000
"""Rows of a table that a report holds; ``recrawl assess --output`` writes all."""
_MOST_BARS = 15
_FEW = 2

Columns = Mapping[str, Sequence[Any]]


@dataclass(frozen=True, slots=True)
class SharpnessData:
    """All that the section is made from."""

    quality: ArchiveQuality
    words: Sequence[str]
    """What ``recrawl assess`` says."""
    last_crawl: Sequence[str]
    """What it says of the last crawl that was seen again, beginning with its name; nothing if there is none."""
    sharpness: SharpnessOverTime
    now: float
    staying: StalenessForecast | None
    """Freshness from the requested time on. ``None`` if no rates are known."""
    crawls: Columns
    sections: Columns
    pages: Columns
    """The tables of ``recrawl assess``, worst first; of pages at least as many as a report holds."""
    shown: SelectedCopies
    at: float
    """The moment for which ``shown`` is what is shown."""
    together: JointValidity
    urls: Sequence[str]


def quality_sections(found: SharpnessData) -> list[Section]:
    """The section on the whole, and one on the last crawl that was seen again, if there is any."""
    if not found.last_crawl:
        return [_whole(found)]
    title, *said = found.last_crawl
    return [_whole(found), Section(title.rstrip(":"), "last-crawl", said, level=3)]


def _whole(found: SharpnessData) -> Section:
    return Section(
        "Quality",
        "quality",
        words=found.words,
        tiles=_tiles(found),
        figures=[*_over_time(found.sharpness), *_crawls(found.quality), *_staying(found), *_worst(found.sections)],
        tables=[*_tables(found), *_breaking(found)],
        notes=[
            (
                "Blur is the expected number of changes between a requested time and the shown copy, given all "
                "observations. 0 is "
                "sharp; at 1 a page has changed once in between on average."
            ),
            (
                "A capture is coherent if the next observation found the page unchanged: this proves it for the time "
                "between. Pages "
                "were valid together if one instant lies in the known validity of each."
            ),
            (
                "Freshness is the expected share of pages that are unchanged since their last observation; age is the "
                "time since a "
                "copy became outdated, 0 for a current one. Both follow from the beliefs about the rates."
            ),
        ],
    )


def _tiles(found: SharpnessData) -> list[Tile]:
    quality = found.quality
    tiles = []
    known = np.isfinite(quality.achieved)
    if bool(known.any()):
        mean = float(np.average(quality.achieved[known], weights=quality.weight[known]))
        tiles.append(Tile("blur", f"{mean:.3g}", "expected changes between a time and its copy"))
    away = np.isfinite(quality.distance)
    if bool(away.any()) and quality.end > quality.start:
        tiles.append(
            Tile(
                "distance",
                format_duration(float(quality.distance[away].mean())),
                "from a time to its copy, on average",
            )
        )
    counts = tally(quality, quality.consecutive, np.zeros(len(quality.consecutive.row), np.int64), 1)
    judged = int(counts.judged()[0])
    if bool(counts.not_known[0]):
        tiles.append(Tile("coherent", "not known", "unchanged captures are not listed"))
    elif judged:
        tiles.append(
            Tile("coherent", f"{counts.coherent[0] / judged:.0%}", f"of {counted(judged, 'capture')} observed again")
        )
    if found.staying is not None and np.isfinite(found.staying.fresh[0]):
        tiles.append(Tile("fresh now", f"{found.staying.fresh[0]:.0%}", f"expected on {to_iso(found.now)[:10]}"))
        tiles.append(Tile("mean age now", format_duration(float(found.staying.age[0])), "since copies became outdated"))
    shown = int(found.shown.there().sum())
    if shown:
        tiles.append(
            Tile(
                "valid together",
                f"{int(found.together.inside.sum()):,}",
                f"of {counted(shown, 'page')} shown for {to_iso(found.at)[:10]}",
            )
        )
    return tiles


def _over_time(found: SharpnessOverTime) -> list[Figure]:
    middle = (found.edges[:-1] + found.edges[1:]) / 2.0
    known = np.isfinite(found.distance)
    if int(known.sum()) < _FEW:
        return []
    parts = [
        series(
            "distance to the copy", "line", middle[known], found.distance[known], axis=2, colour="series-8", dashed=True
        )
    ]
    if bool(np.isfinite(found.blur).any()):
        parts.insert(0, series("blur", "line", middle[known], found.blur[known]))
    data = chart(axis("", "time"), axis("blur", min=0), parts, y2=axis("distance", "seconds", min=0))
    words = "For times in each period: the distance of the shown copy, and the changes in between."
    return [Figure("blur-over-time", "Blur over time", "chart", data, words)]


def _crawls(quality: ArchiveQuality) -> list[Figure]:
    """Coherence and blur of each crawl, of those hosts that are crawled; of the others, stretch by stretch."""
    rounds = quality.rounds
    if quality.observations.is_log():
        return []
    always = observed_always(quality.observations, rounds, quality.site)
    figures = _stretches(quality, always)
    real = ~always[rounds.site]
    if int(real.sum()) < _FEW:
        return figures
    counts = tally(quality, quality.pairs, quality.pairs.round, len(rounds))
    judged = counts.judged()
    seen = (judged > 0) & real & ~counts.not_known
    if bool(seen.any()):
        found = counts.coherent[seen] / judged[seen]
        parts = [series("found", "points", rounds.start[seen], found, size=8)]
        predicted = seen & (counts.expected_of > 0)
        if bool(predicted.any()):
            expected = counts.expected[predicted] / counts.expected_of[predicted]
            parts.append(series("expected from the rates", "points", rounds.start[predicted], expected, size=6))
        data = chart(
            axis("start of the crawl", "time"), axis("coherent, of those observed again", "share", min=0, max=1), parts
        )
        figures.append(Figure("coherence-by-crawl", "Coherence of each crawl", "chart", data))
    blur = crawl_blur(quality)
    known = np.isfinite(blur) & real
    if int(known.sum()) >= _FEW:
        parts = [series("predicted blur", "points", rounds.start[known], blur[known], size=8)]
        data = chart(axis("start of the crawl", "time"), axis("expected changes per page", min=0), parts)
        words = "For times within the crawl: expected changes between a time and the capture of a page."
        figures.append(Figure("blur-by-crawl", "Blur of each crawl", "chart", data, words))
    return figures


def _stretches(quality: ArchiveQuality, always: BoolArray) -> list[Figure]:
    """Who is at a host all the time makes no crawls: there every stretch of time is taken for a capture."""
    rows = always[quality.site]
    if not bool(rows.any()):
        return []
    steps = stretches(quality.observations, rows)
    pairs = quality.consecutive
    own = rows[pairs.row]
    # Copies of other hosts are counted in one more period, which is not used.
    label = np.where(own, steps.rounds.of_observation[pairs.visit], len(steps.rounds))
    counts = tally(quality, pairs, label, len(steps.rounds) + 1)
    shown = np.flatnonzero((counts.judged()[:-1] > 0) & ~counts.not_known[:-1] & (steps.rounds.site == steps.site))
    if len(shown) < _FEW:
        return []
    found = counts.coherent[shown] / counts.judged()[shown]
    parts = [series("found", "points", steps.rounds.start[shown], found, size=8)]
    predicted = shown[counts.expected_of[shown] > 0]
    if len(predicted):
        expected = counts.expected[predicted] / counts.expected_of[predicted]
        parts.append(series("expected from the rates", "points", steps.rounds.start[predicted], expected, size=6))
    data = chart(axis("from", "time"), axis("coherent, of those observed again", "share", min=0, max=1), parts)
    length, hosts = format_duration(steps.length), counted(int(always.sum()), "host")
    words = (
        f"{hosts} {'is' if int(always.sum()) == 1 else 'are'} observed continuously, so there are no separate crawls. "
        f"Here each period of {length} counts as a capture: the share of its copies that the next observation found "
        "unchanged. Blur is shown over time, not by crawl."
    )
    return [Figure("coherence-by-stretch", "Coherence by period", "chart", data, words)]


def _staying(found: SharpnessData) -> list[Figure]:
    if found.staying is None or not bool(np.isfinite(found.staying.fresh).all()):
        return []
    days = (found.staying.time - found.now) / DAY
    parts = [
        series("fresh", "line", days[1:], found.staying.fresh[1:], colour="series-3"),
        series("mean age", "line", days[1:], found.staying.age[1:], axis=2, colour="series-8", dashed=True),
    ]
    data = chart(
        axis(f"days after {to_iso(found.now)[:10]}", "log"),
        axis("unchanged pages", "share", min=0, max=1),
        parts,
        y2=axis("age", "seconds", min=0),
    )
    now = f"Today {found.staying.fresh[0]:.0%} are expected to be unchanged since their last observation."
    return [Figure("staying-fresh", "Without further visits", "chart", data, now)]


def _worst(sections: Columns) -> list[Figure]:
    heavy = np.array([np.nan if value is None else value for value in sections["blur_total"]], np.float64)
    rows = np.flatnonzero(heavy > 0).tolist()
    if len(rows) < _FEW:
        return []
    rows = rows[:_MOST_BARS]
    names = [sections["section"][row] for row in rows]
    values = [sections["blur"][row] for row in rows]
    data = chart(
        axis("blur", min=0), axis("", "names", names=names), [series("blur", "bars", values, [], colour="series-2")]
    )
    words = "By blur times the weight of their pages, worst first; the bar is the blur per page."
    return [Figure("least-sharp", "The least sharp sections", "chart", data, words, height=80 + 24 * len(names))]


def _tables(found: SharpnessData) -> list[ReportTable]:
    no_crawls = _no_crawls(found.quality)
    tables = [
        _table("crawls", "Crawls, worst first", found.crawls, _CRAWLS, len(found.crawls["site"]), words=no_crawls),
        _table("sections", "Sections, worst first", found.sections, _SECTIONS, len(found.sections["section"])),
        _table("pages", "Pages, worst first", found.pages, _PAGES, len(found.urls)),
    ]
    return [table for table in tables if len(table)]


def _no_crawls(quality: ArchiveQuality) -> str:
    """What rows mean that are no crawls, in a sentence; nothing if there are none."""
    always = int(observed_always(quality.observations, quality.rounds, quality.site).sum())
    if not always or quality.observations.is_log():
        return ""
    looked = f"{counted(always, 'host')} {'is' if always == 1 else 'are'} observed continuously"
    return f"{looked}: rows of {'it' if always == 1 else 'them'} are periods between two pauses, not crawls."


def _table(  # noqa: PLR0913 - what is shown of what, and what is said of it
    name: str,
    title: str,
    columns: Columns,
    kinds: Mapping[str, tuple[str, ColumnKind]],
    rows: int,
    *,
    words: str = "",
) -> ReportTable:
    """The columns for display, limited to the rows of a report; ``rows`` is the total."""
    if rows > MOST_ROWS:
        words = f"{words} The first {MOST_ROWS:,} of {rows:,}; recrawl assess --output writes all.".lstrip()
    made = [
        Column(
            heading,
            kind,
            [_moment(value) if kind is ColumnKind.TIME else value for value in columns[key][:MOST_ROWS]],
            _HINTS.get(key, ""),
        )
        for key, (heading, kind) in kinds.items()
    ]
    return ReportTable(name, title, made, words)


def _moment(text: str | None) -> float | None:
    """Seconds since the epoch of a time in ISO 8601."""
    return None if text is None else datetime.fromisoformat(text).timestamp()


def _breaking(found: SharpnessData) -> list[ReportTable]:
    rows = np.flatnonzero(found.shown.there() & ~found.together.inside)
    if not len(rows):
        return []
    away = np.maximum(found.shown.first[rows] - found.together.end, found.together.start - found.shown.last[rows])
    rows = rows[np.argsort(-away, kind="stable")]
    more = "" if len(rows) <= MOST_ROWS else f" The first {MOST_ROWS:,} of {len(rows):,}."
    away = -np.sort(-away)[:MOST_ROWS]
    rows = rows[:MOST_ROWS]
    start, end = to_iso(found.together.start), to_iso(found.together.end)
    best = f"at {start}" if start == end else f"from {start} to {end}"
    columns = [
        Column("page", ColumnKind.URL, [found.urls[row] for row in rows.tolist()]),
        Column("distance", ColumnKind.SECONDS, np.maximum(away, 0.0), "time to that period"),
        Column("known valid from", ColumnKind.TIME, found.shown.first[rows]),
        Column("until", ColumnKind.TIME, found.shown.last[rows]),
        Column("expected changes", ColumnKind.NUMBER, found.shown.expected[rows]),
    ]
    words = (
        f"Most pages shown for {to_iso(found.at)} were valid together {best}. These are not known to have been.{more}"
    )
    return [ReportTable("breaking", "Pages that break joint validity", columns, words)]


_HINTS = {
    "coherent": "captures that the next observation of the page found unchanged",
    "changed": "captures that the next observation of the page found changed",
    "missing": "captures whose page was gone at the next observation",
    "unseen": "captures without a later observation of the page",
    "expected_coherent": "coherent captures expected from the change rates",
    "distance": "mean time between a requested time and the shown copy",
    "blur": "expected changes per page between a requested time and the shown copy",
    "blur_predicted": "expected changes per page between a time within the crawl and the capture of the page",
    "blur_total": "blur times the weight of the pages",
    "chance_unchanged": "probability that the shown copy is as the page was at the time of the report",
    "proved": "whether observations before and after the time of the report prove it",
}
_COUNTS = {
    "coherent": ("coherent", ColumnKind.COUNT),
    "changed": ("changed", ColumnKind.COUNT),
    "missing": ("missing", ColumnKind.COUNT),
    "unseen": ("not revisited", ColumnKind.COUNT),
}
_CRAWLS = {
    "site": ("host", ColumnKind.TEXT),
    "from": ("from", ColumnKind.TIME),
    "until": ("until", ColumnKind.TIME),
    "pages": ("pages", ColumnKind.COUNT),
    "new": ("new", ColumnKind.COUNT),
    **_COUNTS,
    "expected_coherent": ("expected coherent", ColumnKind.NUMBER),
    "blur_predicted": ("blur", ColumnKind.NUMBER),
}
_SECTIONS = {
    "section": ("section", ColumnKind.URL),
    "pages": ("pages", ColumnKind.COUNT),
    "observations": ("observations", ColumnKind.COUNT),
    **_COUNTS,
    "distance": ("distance", ColumnKind.SECONDS),
    "blur": ("blur", ColumnKind.NUMBER),
    "blur_total": ("blur × weight", ColumnKind.NUMBER),
}
_PAGES = {
    "url": ("page", ColumnKind.URL),
    "observations": ("observations", ColumnKind.COUNT),
    "changes_per_day": ("changes a day", ColumnKind.NUMBER),
    **_COUNTS,
    "distance": ("distance", ColumnKind.SECONDS),
    "blur": ("blur", ColumnKind.NUMBER),
    "chance_unchanged": ("P(current)", ColumnKind.SHARE),
    "proved": ("proved", ColumnKind.YES),
    "last_observed": ("last observation", ColumnKind.TIME),
}
