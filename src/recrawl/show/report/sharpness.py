"""How good the archive is: blur and coherence by crawl and over time, freshness now, and who is to blame."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

import numpy as np

from recrawl.assess.archive_quality import ArchiveQuality, crawl_blur, tally
from recrawl.assess.crawl_steps import looked_at_always, stretches
from recrawl.assess.joint_validity import JointValidity
from recrawl.assess.quality_over_time import SharpnessOverTime, Staying
from recrawl.assess.shown import Shown
from recrawl.model import BoolArray
from recrawl.model.words import counted
from recrawl.show.report.chart import axis, chart, series
from recrawl.show.report.section import Column, ColumnKind, Figure, Section, Table, Tile
from recrawl.time import DAY, format_duration, to_iso

MOST_ROWS = 2_000
"""Rows of a table that a report holds; ``recrawl assess --output`` writes all."""
_MOST_BARS = 15
_FEW = 2

Columns = Mapping[str, Sequence[Any]]


@dataclass(frozen=True, slots=True)
class Quality:
    """All that the section is made from."""

    quality: ArchiveQuality
    words: Sequence[str]
    """What ``recrawl assess`` says."""
    last_crawl: Sequence[str]
    """What it says of the last crawl that was seen again, beginning with its name; nothing if there is none."""
    sharpness: SharpnessOverTime
    now: float
    staying: Staying | None
    """Freshness from the moment asked about on; its first time is that moment. ``None`` if nobody knows rates."""
    crawls: Columns
    sections: Columns
    pages: Columns
    """The tables of ``recrawl assess``, worst first; of pages at least as many as a report holds."""
    shown: Shown
    at: float
    """The moment for which ``shown`` is what is shown."""
    together: JointValidity
    urls: Sequence[str]


def quality_sections(found: Quality) -> list[Section]:
    """The section on the whole, and one on the last crawl that was seen again, if there is any."""
    if not found.last_crawl:
        return [_whole(found)]
    title, *said = found.last_crawl
    return [_whole(found), Section(title.rstrip(":"), "last-crawl", said, level=3)]


def _whole(found: Quality) -> Section:
    return Section(
        "How good it is",
        "quality",
        words=found.words,
        tiles=_tiles(found),
        figures=[*_over_time(found.sharpness), *_crawls(found.quality), *_staying(found), *_worst(found.sections)],
        tables=[*_tables(found), *_breaking(found)],
        notes=[
            (
                "Blur is the expected number of changes between a moment somebody asks for and the copy that is "
                "shown for it, given what all looks found. 0 is sharp; at 1 a page has changed once in between, "
                "on average."
            ),
            (
                "A capture is coherent if the next look at the page found it unchanged: then it is proved for all "
                "the time between. Pages were valid together if there is an instant that lies in the known "
                "validity of each."
            ),
            (
                "Freshness is the share of pages expected to be as they were when last seen; age is the time "
                "since a copy ceased to be current, 0 for a current one. Both follow from what is believed of "
                "each page's rate."
            ),
        ],
    )


def _tiles(found: Quality) -> list[Tile]:
    quality = found.quality
    tiles = []
    known = np.isfinite(quality.achieved)
    if bool(known.any()):
        mean = float(np.average(quality.achieved[known], weights=quality.weight[known]))
        tiles.append(Tile("blur", f"{mean:.3g}", "expected changes between a moment and its copy"))
    away = np.isfinite(quality.distance)
    if bool(away.any()) and quality.end > quality.start:
        tiles.append(
            Tile(
                "distance",
                format_duration(float(quality.distance[away].mean())),
                "from any moment to its copy, on average",
            )
        )
    counts = tally(quality, quality.consecutive, np.zeros(len(quality.consecutive.row), np.int64), 1)
    judged = int(counts.judged()[0])
    if bool(counts.not_known[0]):
        tiles.append(Tile("coherent", "not known", "captures that found a page unchanged are not listed"))
    elif judged:
        tiles.append(
            Tile("coherent", f"{counts.coherent[0] / judged:.0%}", f"of {counted(judged, 'capture')} seen again")
        )
    if found.staying is not None and np.isfinite(found.staying.fresh[0]):
        tiles.append(Tile("fresh now", f"{found.staying.fresh[0]:.0%}", f"expected on {to_iso(found.now)[:10]}"))
        tiles.append(
            Tile("mean age now", format_duration(float(found.staying.age[0])), "since copies ceased to be current")
        )
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
    words = "For moments in each stretch of time: how far the copy is that is shown, and how many changes lie between."
    return [Figure("blur-over-time", "Blur over time", "chart", data, words)]


def _crawls(quality: ArchiveQuality) -> list[Figure]:
    """Coherence and blur of each crawl, of those hosts that are crawled; of the others, stretch by stretch."""
    rounds = quality.rounds
    if quality.looks.is_log():
        return []
    always = looked_at_always(quality.looks, rounds, quality.site)
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
        foretold = seen & (counts.expected_of > 0)
        if bool(foretold.any()):
            expected = counts.expected[foretold] / counts.expected_of[foretold]
            parts.append(series("expected by the rates", "points", rounds.start[foretold], expected, size=6))
        data = chart(
            axis("start of the crawl", "time"), axis("coherent, of those seen again", "share", min=0, max=1), parts
        )
        figures.append(Figure("coherence-by-crawl", "Coherence of each crawl", "chart", data))
    blur = crawl_blur(quality)
    known = np.isfinite(blur) & real
    if int(known.sum()) >= _FEW:
        parts = [series("predicted blur", "points", rounds.start[known], blur[known], size=8)]
        data = chart(axis("start of the crawl", "time"), axis("expected changes a page", min=0), parts)
        words = "For moments within the crawl: expected changes between them and the time a page was captured."
        figures.append(Figure("blur-by-crawl", "Blur of each crawl", "chart", data, words))
    return figures


def _stretches(quality: ArchiveQuality, always: BoolArray) -> list[Figure]:
    """Who is at a host all the time makes no crawls: there every stretch of time is taken for a capture."""
    rows = always[quality.site]
    if not bool(rows.any()):
        return []
    steps = stretches(quality.looks, rows)
    pairs = quality.consecutive
    own = rows[pairs.row]
    # Copies of other hosts are counted in one more stretch, which nobody looks at.
    label = np.where(own, steps.rounds.of_look[pairs.visit], len(steps.rounds))
    counts = tally(quality, pairs, label, len(steps.rounds) + 1)
    shown = np.flatnonzero((counts.judged()[:-1] > 0) & ~counts.not_known[:-1] & (steps.rounds.site == steps.site))
    if len(shown) < _FEW:
        return []
    found = counts.coherent[shown] / counts.judged()[shown]
    parts = [series("found", "points", steps.rounds.start[shown], found, size=8)]
    foretold = shown[counts.expected_of[shown] > 0]
    if len(foretold):
        expected = counts.expected[foretold] / counts.expected_of[foretold]
        parts.append(series("expected by the rates", "points", steps.rounds.start[foretold], expected, size=6))
    data = chart(axis("from", "time"), axis("coherent, of those seen again", "share", min=0, max=1), parts)
    length, hosts = format_duration(steps.length), counted(int(always.sum()), "host")
    words = (
        f"{hosts} {'is' if int(always.sum()) == 1 else 'are'} looked at all the time, so there is no crawl that could "
        f"be coherent. Here each stretch of {length} is taken for a capture: how many of the copies made in it the "
        "next look found unchanged. Their blur is told over time, not by crawl."
    )
    return [Figure("coherence-by-stretch", "Coherence, stretch by stretch", "chart", data, words)]


def _staying(found: Quality) -> list[Figure]:
    if found.staying is None or not bool(np.isfinite(found.staying.fresh).all()):
        return []
    days = (found.staying.time - found.now) / DAY
    parts = [
        series("fresh", "line", days[1:], found.staying.fresh[1:], colour="series-3"),
        series("mean age", "line", days[1:], found.staying.age[1:], axis=2, colour="series-8", dashed=True),
    ]
    data = chart(
        axis(f"days after {to_iso(found.now)[:10]}", "log"),
        axis("pages still as last seen", "share", min=0, max=1),
        parts,
        y2=axis("age", "seconds", min=0),
    )
    now = f"Today {found.staying.fresh[0]:.0%} are expected to be as they were when last seen."
    return [Figure("staying-fresh", "If nobody comes back", "chart", data, now)]


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
    words = "By blur times the weight of their pages, worst first; the bar is the blur of a page."
    return [Figure("least-sharp", "The least sharp sections", "chart", data, words, height=80 + 24 * len(names))]


def _tables(found: Quality) -> list[Table]:
    no_crawls = _no_crawls(found.quality)
    tables = [
        _table("crawls", "Crawls, worst first", found.crawls, _CRAWLS, len(found.crawls["site"]), words=no_crawls),
        _table("sections", "Sections, worst first", found.sections, _SECTIONS, len(found.sections["section"])),
        _table("pages", "Pages, worst first", found.pages, _PAGES, len(found.urls)),
    ]
    return [table for table in tables if len(table)]


def _no_crawls(quality: ArchiveQuality) -> str:
    """What rows mean that are no crawls, in a sentence; nothing if there are none."""
    always = int(looked_at_always(quality.looks, quality.rounds, quality.site).sum())
    if not always or quality.looks.is_log():
        return ""
    looked = f"{counted(always, 'host')} {'is' if always == 1 else 'are'} looked at all the time"
    return f"{looked}: what is listed of {'it' if always == 1 else 'them'} lies between two pauses, and is no crawl."


def _table(  # noqa: PLR0913 - what is shown of what, and what is said of it
    name: str,
    title: str,
    columns: Columns,
    kinds: Mapping[str, tuple[str, ColumnKind]],
    rows: int,
    *,
    words: str = "",
) -> Table:
    """The columns that people look at, of as many rows as a report holds; ``rows`` is how many there are in all."""
    if rows > MOST_ROWS:
        words = f"{words} The first {MOST_ROWS:,} of {rows:,}; recrawl assess --output writes all.".lstrip()
    made = [
        Column(
            heading, kind, [_moment(value) if kind is ColumnKind.TIME else value for value in columns[key][:MOST_ROWS]]
        )
        for key, (heading, kind) in kinds.items()
    ]
    return Table(name, title, made, words)


def _moment(text: str | None) -> float | None:
    """Seconds since the epoch of a time in ISO 8601."""
    return None if text is None else datetime.fromisoformat(text).timestamp()


def _breaking(found: Quality) -> list[Table]:
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
        Column("away from it", ColumnKind.SECONDS, np.maximum(away, 0.0)),
        Column("known valid from", ColumnKind.TIME, found.shown.first[rows]),
        Column("until", ColumnKind.TIME, found.shown.last[rows]),
        Column("expected changes", ColumnKind.NUMBER, found.shown.expected[rows]),
    ]
    words = f"Most pages shown for {to_iso(found.at)} were valid together {best}. These were not known to be.{more}"
    return [Table("breaking", "Pages that break joint validity", columns, words)]


_COUNTS = {
    "coherent": ("coherent", ColumnKind.COUNT),
    "changed": ("changed", ColumnKind.COUNT),
    "missing": ("missing", ColumnKind.COUNT),
    "unseen": ("unseen", ColumnKind.COUNT),
}
_CRAWLS = {
    "site": ("host", ColumnKind.TEXT),
    "from": ("from", ColumnKind.TIME),
    "until": ("until", ColumnKind.TIME),
    "pages": ("pages", ColumnKind.COUNT),
    "new": ("new", ColumnKind.COUNT),
    **_COUNTS,
    "expected_coherent": ("expected", ColumnKind.NUMBER),
    "blur_predicted": ("blur", ColumnKind.NUMBER),
}
_SECTIONS = {
    "section": ("section", ColumnKind.URL),
    "pages": ("pages", ColumnKind.COUNT),
    "looks": ("looks", ColumnKind.COUNT),
    **_COUNTS,
    "distance": ("distance", ColumnKind.SECONDS),
    "blur": ("blur", ColumnKind.NUMBER),
    "blur_total": ("blur × weight", ColumnKind.NUMBER),
}
_PAGES = {
    "url": ("page", ColumnKind.URL),
    "looks": ("looks", ColumnKind.COUNT),
    "changes_per_day": ("changes a day", ColumnKind.NUMBER),
    **_COUNTS,
    "distance": ("distance", ColumnKind.SECONDS),
    "blur": ("blur", ColumnKind.NUMBER),
    "chance_unchanged": ("as shown", ColumnKind.SHARE),
    "proved": ("proved", ColumnKind.YES),
    "last_look": ("last look", ColumnKind.TIME),
}
