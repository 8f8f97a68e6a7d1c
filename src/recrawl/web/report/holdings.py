"""What there is: pages, visits, what they found, what failed, and what was missed."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from recrawl.assess.archive_quality import ArchiveQuality
from recrawl.assess.changes_over_time import ObservationResult, bins, counts_over_time, observation_results
from recrawl.model import ByteArray, FloatArray, IntArray, Outcome
from recrawl.model.plurals import counted
from recrawl.time import DAY, HOUR, WEEK, format_duration, to_iso
from recrawl.web.report.report_page import (
    Column,
    ColumnKind,
    Figure,
    ReportTable,
    Section,
    Tile,
    axis,
    chart,
    series,
)

_FEW = 2
_MOST_BARS = 12
_MOST_BINS = 45
_NAMES = {
    ObservationResult.FIRST: ("first observation", "new"),
    ObservationResult.CHANGED: ("changed", "changed"),
    ObservationResult.UNCHANGED: ("unchanged", "unchanged"),
    ObservationResult.UNJUDGED: ("not comparable", "unseen"),
    ObservationResult.GONE: ("not found", "missing"),
}
"""The results of observations: label and colour."""
_FAILURES = {
    Outcome.REFUSED: "forbidden by robots.txt or our own rules",
    Outcome.REJECTED: "refused by the server (4xx)",
    Outcome.SERVER_ERROR: "server errors (5xx, 429)",
    Outcome.UNREACHABLE: "no complete response (DNS, connection, timeout)",
}


@dataclass(frozen=True, slots=True)
class Holdings:
    """All that the section is made from."""

    quality: ArchiveQuality
    sites: Sequence[str]
    """Names of hosts, by the numbers of ``quality.site``."""
    mime: Sequence[str]
    """Media type of each page, row by row; empty where not known."""
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
    """Changes dated by the site, after the first observation of the page."""
    hidden: FloatArray
    """Changes of each page expected to hide behind those seen."""


def holdings_section(found: Holdings) -> Section:
    """The section, whatever little there is."""
    quality = found.quality
    says = observation_results(quality.observations)
    kinds = np.bincount(says, minlength=len(ObservationResult))
    return Section(
        "Contents",
        "holdings",
        words=[*_words(found, kinds), *_missed_words(found)],
        tiles=_tiles(found, kinds),
        figures=[*_over_time(found, says), *_types(found.mime), *_by_host(found, says)],
        tables=[_hosts(found, says), *_failures(found.failed_outcome), *_files(found.files)],
        notes=[
            "A visit is wasted if it found the page unchanged.",
            (
                "A change is certainly missed if the site itself dated it (in a sitemap, a feed or a Last-Modified "
                "header) and "
                "dated a later one, and no observation lies in between: that version is lost, if the dates are "
                "correct. Changes "
                "before the first observation of a page do not count."
            ),
            (
                "In addition, some changes are hidden: two changes between two observations count as one. At a rate λ "
                "a gap G in "
                "which a page changed holds λG/(1 − exp(−λG)) changes on average."
            ),
        ],
    )


def _words(found: Holdings, kinds: IntArray) -> list[str]:
    quality, failed = found.quality, len(found.failed_time)
    observations = int(kinds.sum())
    were = "was" if len(quality.observations) == 1 else "were"
    lines = [
        (
            f"{counted(len(quality.observations), 'page')} on {counted(len(found.sites), 'host')} {were} observed "
            f"{counted(observations, 'time')} from {to_iso(quality.start)[:10]} to {to_iso(quality.end)[:10]} "
            f"({format_duration(quality.end - quality.start)})."
        )
    ]
    again = int(kinds[ObservationResult.CHANGED] + kinds[ObservationResult.UNCHANGED])
    if not again:
        return [*lines, "No page could be compared with an earlier copy yet: changes are not known."]
    share = kinds[ObservationResult.UNCHANGED] / again
    lines.append(
        f"Of {counted(again, 'observation')} that could be compared with an earlier one, "
        f"{int(kinds[ObservationResult.CHANGED]):,} found a change and "
        f"{int(kinds[ObservationResult.UNCHANGED]):,} ({share:.0%}) found no change."
    )
    if failed:
        lines.append(f"{counted(failed, 'visit')} failed without a result.")
    return lines


def _missed_words(found: Holdings) -> list[str]:
    missed, hidden = int(found.missed.sum()), float(found.hidden.sum())
    if not found.dated:
        certain = "No site dated a change of an observed page, so no change is known to have been missed"
    else:
        dated = counted(found.dated, "change")
        certain = f"Of {dated} that sites dated themselves during the observation, {missed:,} were certainly missed"
    if hidden >= 0.5:  # noqa: PLR2004 - below, it rounds to none
        return [f"{certain}; about {hidden:,.0f} more are expected to be hidden behind observed changes."]
    return [f"{certain}."]


def _tiles(found: Holdings, kinds: IntArray) -> list[Tile]:
    quality = found.quality
    again = int(kinds[ObservationResult.CHANGED] + kinds[ObservationResult.UNCHANGED])
    tiles = [
        Tile("pages", f"{len(quality.observations):,}", f"on {counted(len(found.sites), 'host')}"),
        Tile("observations", f"{int(kinds.sum()):,}", f"in {counted(len(quality.rounds), 'crawl')}"),
        Tile(
            "span",
            format_duration(quality.end - quality.start),
            f"{to_iso(quality.start)[:10]} to {to_iso(quality.end)[:10]}",
        ),
        Tile("observed changes", f"{int(kinds[ObservationResult.CHANGED]):,}", f"of {again:,} comparable observations"),
    ]
    if again:
        tiles.append(
            Tile(
                "wasted visits",
                f"{kinds[ObservationResult.UNCHANGED] / again:.0%}",
                f"{int(kinds[ObservationResult.UNCHANGED]):,} found no change",
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
    if len(quality.observations.time) < _FEW or not quality.end > quality.start:
        return []
    ends = np.concatenate([[quality.start, quality.end], found.failed_time])
    edges = bins(float(ends.min()), float(ends.max()), _MOST_BINS)
    observations = counts_over_time(quality.observations.time, says, len(ObservationResult), edges)
    failed = counts_over_time(found.failed_time, np.zeros(len(found.failed_time), np.int64), 1, edges)[0]
    length = float(edges[1] - edges[0])
    names = [to_iso(edge)[: 10 if length >= DAY else 16].replace("T", " ") for edge in edges[:-1].tolist()]
    parts = [
        series(word, "bars", [], observations[kind], stack="visits", colour=colour)
        for kind, (word, colour) in _NAMES.items()
        if observations[kind].any()
    ]
    if failed.any():
        parts.append(series("failed", "bars", [], failed, stack="visits", colour="series-5"))
    title = f"Results of visits, by {_unit(length)}"
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
    """Results of observations of the most observed hosts."""
    if len(found.sites) < _FEW:
        return []
    observations = found.quality.observations
    of_observation = found.quality.site[observations.row_of_observation()]
    count = np.bincount(of_observation, minlength=len(found.sites))
    most = np.argsort(-count, kind="stable")[:_MOST_BARS]
    table = np.bincount(
        of_observation * len(ObservationResult) + says, minlength=len(found.sites) * len(ObservationResult)
    ).reshape(-1, len(ObservationResult))
    parts = [
        series(word, "bars", table[most, kind], [], stack="observations", colour=colour)
        for kind, (word, colour) in _NAMES.items()
        if table[most, kind].any()
    ]
    names = [found.sites[site] for site in most.tolist()]
    data = chart(axis("observations", "count"), axis("", "names", names=names), parts)
    words = (
        ""
        if len(most) == len(found.sites)
        else f"The {len(most)} hosts with the most observations, of {len(found.sites):,}."
    )
    return [
        Figure("looks-by-host", "Results of observations, by host", "chart", data, words, height=110 + 24 * len(names))
    ]


def _hosts(found: Holdings, says: ByteArray) -> ReportTable:
    observations, site, count = found.quality.observations, found.quality.site, len(found.sites)
    of_observation = site[observations.row_of_observation()]
    first, last = np.full(count, np.inf), np.full(count, -np.inf)
    np.minimum.at(first, of_observation, observations.time)
    np.maximum.at(last, of_observation, observations.time)

    def many(kind: ObservationResult) -> IntArray:
        return np.bincount(of_observation[says == kind], minlength=count)

    known = found.failed_site >= 0
    columns = [
        Column("host", ColumnKind.TEXT, list(found.sites)),
        Column("pages", ColumnKind.COUNT, np.bincount(site, minlength=count)),
        Column("observations", ColumnKind.COUNT, np.bincount(of_observation, minlength=count)),
        Column("changed", ColumnKind.COUNT, many(ObservationResult.CHANGED)),
        Column("unchanged", ColumnKind.COUNT, many(ObservationResult.UNCHANGED)),
        Column("not found", ColumnKind.COUNT, many(ObservationResult.GONE)),
        Column("failed", ColumnKind.COUNT, np.bincount(found.failed_site[known], minlength=count)),
        Column("certainly missed", ColumnKind.COUNT, np.bincount(site, found.missed, count).astype(np.int64)),
        Column("first observation", ColumnKind.TIME, first),
        Column("last observation", ColumnKind.TIME, last),
    ]
    return ReportTable("hosts", "Hosts", columns)


def _failures(outcome: IntArray) -> list[ReportTable]:
    counts = {words: int((outcome == kind).sum()) for kind, words in _FAILURES.items()}
    there = {words: count for words, count in counts.items() if count}
    if not there:
        return []
    columns = [Column("why", ColumnKind.TEXT, list(there)), Column("visits", ColumnKind.COUNT, list(there.values()))]
    return [ReportTable("failures", "Failed visits", columns)]


def _files(files: Mapping[str, int]) -> list[ReportTable]:
    if not files:
        return []
    columns = [Column("format", ColumnKind.TEXT, list(files)), Column("files", ColumnKind.COUNT, list(files.values()))]
    return [ReportTable("formats", "Files", columns)]
