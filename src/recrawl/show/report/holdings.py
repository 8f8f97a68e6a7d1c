"""What there is: pages, visits, what they found, what failed, and what was missed."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from recrawl.assess.archive_quality import ArchiveQuality
from recrawl.assess.timeline import Told, bins, counts_over_time, told
from recrawl.model import ByteArray, FloatArray, IntArray, Outcome
from recrawl.model.words import counted
from recrawl.show.report.chart import axis, chart, series
from recrawl.show.report.section import Column, ColumnKind, Figure, Section, Table, Tile
from recrawl.time import DAY, HOUR, WEEK, format_duration, to_iso

_FEW = 2
_MOST_BARS = 12
_MOST_BINS = 45
_NAMES = {
    Told.FIRST: ("first seen", "new"),
    Told.CHANGED: ("changed", "changed"),
    Told.UNCHANGED: ("unchanged", "unchanged"),
    Told.UNJUDGED: ("not comparable", "unseen"),
    Told.GONE: ("not there", "missing"),
}
"""What looks told: the word for it, and the colour."""
_FAILURES = {
    Outcome.REFUSED: "forbidden by robots.txt or our own rules",
    Outcome.REJECTED: "refused by the server (4xx)",
    Outcome.SERVER_ERROR: "server errors (5xx, 429)",
    Outcome.UNREACHABLE: "no complete answer (name, connection, time-out)",
}


@dataclass(frozen=True, slots=True)
class Holdings:
    """All that the section is made from."""

    quality: ArchiveQuality
    sites: Sequence[str]
    """Names of hosts, by the numbers of ``quality.site``."""
    mime: Sequence[str]
    """Media type of each page, row by row; empty where nobody knows."""
    files: Mapping[str, int]
    """Archive files that were read, by format; empty for a workspace."""
    failed_time: FloatArray
    """When visits failed, seconds since the epoch."""
    failed_outcome: IntArray
    failed_site: IntArray
    """Number of the host, as in ``sites``; -1 for a host of which no page was ever seen."""
    missed: IntArray
    """Changes of each page that were certainly missed."""
    dated: int
    """Changes that sites dated themselves, after the first look at the page."""
    hidden: FloatArray
    """Changes of each page expected to hide behind those seen."""


def holdings_section(found: Holdings) -> Section:
    """The section, whatever little there is."""
    quality = found.quality
    says = told(quality.looks)
    kinds = np.bincount(says, minlength=len(Told))
    return Section(
        "What there is",
        "holdings",
        words=[*_words(found, kinds), *_missed_words(found)],
        tiles=_tiles(found, kinds),
        figures=[*_over_time(found, says), *_types(found.mime), *_by_host(found, says)],
        tables=[_hosts(found, says), *_failures(found.failed_outcome), *_files(found.files)],
        notes=[
            "A visit is wasted if it found the page unchanged: in hindsight nobody need have come.",
            (
                "A change is certainly missed if the site itself dated it (in a sitemap, a feed or a "
                "Last-Modified header) and dated another one later, and nobody looked in between: its version is "
                "lost, if the site tells the truth. Changes before the first look at a page do not count."
            ),
            (
                "Expected beside these are changes that hide behind others: two changes between two looks are "
                "seen as one. At a rate λ a time G in which a page changed holds λG/(1 − exp(−λG)) changes on "
                "average."
            ),
        ],
    )


def _words(found: Holdings, kinds: IntArray) -> list[str]:
    quality, failed = found.quality, len(found.failed_time)
    looks = int(kinds.sum())
    were = "was" if len(quality.looks) == 1 else "were"
    lines = [
        (
            f"{counted(len(quality.looks), 'page')} on {counted(len(found.sites), 'host')} {were} looked at "
            f"{counted(looks, 'time')} from {to_iso(quality.start)[:10]} to {to_iso(quality.end)[:10]} "
            f"({format_duration(quality.end - quality.start)})."
        )
    ]
    again = int(kinds[Told.CHANGED] + kinds[Told.UNCHANGED])
    if not again:
        return [*lines, "No page could be compared with an earlier copy of itself yet: nothing is known of changes."]
    share = kinds[Told.UNCHANGED] / again
    lines.append(
        f"Of {counted(again, 'look')} that could be compared with one before, {int(kinds[Told.CHANGED]):,} found a "
        f"change and {int(kinds[Told.UNCHANGED]):,} ({share:.0%}) found nothing new."
    )
    if failed:
        lines.append(f"{counted(failed, 'visit')} failed and told nothing.")
    return lines


def _missed_words(found: Holdings) -> list[str]:
    missed, hidden = int(found.missed.sum()), float(found.hidden.sum())
    if not found.dated:
        certain = "No site dated a change of a page that was watched, so none is known for certain to have been missed"
    else:
        dated = counted(found.dated, "change")
        certain = f"Of {dated} that sites dated themselves while pages were watched, {missed:,} were certainly missed"
    if hidden >= 0.5:  # noqa: PLR2004 - below, it rounds to none
        return [f"{certain}; about {hidden:,.0f} more are expected to hide behind the changes that were seen."]
    return [f"{certain}."]


def _tiles(found: Holdings, kinds: IntArray) -> list[Tile]:
    quality = found.quality
    again = int(kinds[Told.CHANGED] + kinds[Told.UNCHANGED])
    tiles = [
        Tile("pages", f"{len(quality.looks):,}", f"on {counted(len(found.sites), 'host')}"),
        Tile("looks", f"{int(kinds.sum()):,}", f"in {counted(len(quality.rounds), 'crawl')}"),
        Tile(
            "span",
            format_duration(quality.end - quality.start),
            f"{to_iso(quality.start)[:10]} to {to_iso(quality.end)[:10]}",
        ),
        Tile("changes seen", f"{int(kinds[Told.CHANGED]):,}", f"of {again:,} looks that could tell"),
    ]
    if again:
        tiles.append(
            Tile(
                "wasted visits",
                f"{kinds[Told.UNCHANGED] / again:.0%}",
                f"{int(kinds[Told.UNCHANGED]):,} found nothing new",
            )
        )
    failed = len(found.failed_time)
    tiles.append(Tile("failed visits", f"{failed:,}", f"{failed / max(failed + int(kinds.sum()), 1):.1%} of all"))
    tiles.append(
        Tile(
            "certainly missed",
            f"{int(found.missed.sum()):,}",
            f"changes; {float(found.hidden.sum()):,.0f} more expected",
        )
    )
    return tiles


def _over_time(found: Holdings, says: ByteArray) -> list[Figure]:
    quality = found.quality
    if len(quality.looks.time) < _FEW or not quality.end > quality.start:
        return []
    ends = np.concatenate([[quality.start, quality.end], found.failed_time])
    edges = bins(float(ends.min()), float(ends.max()), _MOST_BINS)
    looks = counts_over_time(quality.looks.time, says, len(Told), edges)
    failed = counts_over_time(found.failed_time, np.zeros(len(found.failed_time), np.int64), 1, edges)[0]
    length = float(edges[1] - edges[0])
    names = [to_iso(edge)[: 10 if length >= DAY else 16].replace("T", " ") for edge in edges[:-1].tolist()]
    parts = [
        series(word, "bars", [], looks[kind], stack="visits", colour=colour)
        for kind, (word, colour) in _NAMES.items()
        if looks[kind].any()
    ]
    if failed.any():
        parts.append(series("failed", "bars", [], failed, stack="visits", colour="series-5"))
    title = f"What visits found, by {_unit(length)}"
    data = chart(axis("", "names", names=names), axis("visits", "count"), parts)
    return [Figure("visits-over-time", title, "chart", data, wide=True, height=280)]


def _unit(length: float) -> str:
    return {HOUR: "hour", DAY: "day", WEEK: "week"}.get(length, format_duration(length))


def _types(mime: Sequence[str]) -> list[Figure]:
    counts = Counter(one or "unknown" for one in mime)
    if len(counts) < _FEW:
        return []
    most = counts.most_common(_MOST_BARS)
    rest = len(mime) - sum(count for _, count in most)
    if rest:
        most.append(("others", rest))
    names, values = zip(*most, strict=True)
    data = chart(
        axis("pages", "count"), axis("", "names", names=list(names)), [series("pages", "bars", list(values), [])]
    )
    return [Figure("media-types", "Media types", "chart", data, height=80 + 24 * len(names))]


def _by_host(found: Holdings, says: ByteArray) -> list[Figure]:
    """What looks at the hosts with most of them told."""
    if len(found.sites) < _FEW:
        return []
    looks = found.quality.looks
    of_look = found.quality.site[looks.row_of_look()]
    count = np.bincount(of_look, minlength=len(found.sites))
    most = np.argsort(-count, kind="stable")[:_MOST_BARS]
    table = np.bincount(of_look * len(Told) + says, minlength=len(found.sites) * len(Told)).reshape(-1, len(Told))
    parts = [
        series(word, "bars", table[most, kind], [], stack="looks", colour=colour)
        for kind, (word, colour) in _NAMES.items()
        if table[most, kind].any()
    ]
    names = [found.sites[site] for site in most.tolist()]
    data = chart(axis("looks", "count"), axis("", "names", names=names), parts)
    words = "" if len(most) == len(found.sites) else f"The {len(most)} hosts with most looks, of {len(found.sites):,}."
    return [Figure("looks-by-host", "What looks found, by host", "chart", data, words, height=110 + 24 * len(names))]


def _hosts(found: Holdings, says: ByteArray) -> Table:
    looks, site, count = found.quality.looks, found.quality.site, len(found.sites)
    of_look = site[looks.row_of_look()]
    first, last = np.full(count, np.inf), np.full(count, -np.inf)
    np.minimum.at(first, of_look, looks.time)
    np.maximum.at(last, of_look, looks.time)

    def many(kind: Told) -> IntArray:
        return np.bincount(of_look[says == kind], minlength=count)

    known = found.failed_site >= 0
    columns = [
        Column("host", ColumnKind.TEXT, list(found.sites)),
        Column("pages", ColumnKind.COUNT, np.bincount(site, minlength=count)),
        Column("looks", ColumnKind.COUNT, np.bincount(of_look, minlength=count)),
        Column("changed", ColumnKind.COUNT, many(Told.CHANGED)),
        Column("unchanged", ColumnKind.COUNT, many(Told.UNCHANGED)),
        Column("not there", ColumnKind.COUNT, many(Told.GONE)),
        Column("failed", ColumnKind.COUNT, np.bincount(found.failed_site[known], minlength=count)),
        Column("certainly missed", ColumnKind.COUNT, np.bincount(site, found.missed, count).astype(np.int64)),
        Column("first look", ColumnKind.TIME, first),
        Column("last look", ColumnKind.TIME, last),
    ]
    return Table("hosts", "Hosts", columns)


def _failures(outcome: IntArray) -> list[Table]:
    counts = {words: int((outcome == kind).sum()) for kind, words in _FAILURES.items()}
    there = {words: count for words, count in counts.items() if count}
    if not there:
        return []
    columns = [Column("why", ColumnKind.TEXT, list(there)), Column("visits", ColumnKind.COUNT, list(there.values()))]
    return [Table("failures", "Visits that failed", columns)]


def _files(files: Mapping[str, int]) -> list[Table]:
    if not files:
        return []
    columns = [Column("format", ColumnKind.TEXT, list(files)), Column("files", ColumnKind.COUNT, list(files.values()))]
    return [Table("formats", "Files that were read", columns)]
