"""What an archive holds: pages, visits, failures, missed changes, and what became of pages from crawl to crawl."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from recrawl.assess.archive_quality import ArchiveQuality
from recrawl.assess.changes_over_time import (
    CrawlSteps,
    ObservationResult,
    PageOutcome,
    SeenLinks,
    bins,
    counts_over_time,
    crawl_changes,
    crawl_steps,
    observation_results,
)
from recrawl.errors import counted
from recrawl.model import BoolArray, ByteArray, FloatArray, IntArray, Outcome
from recrawl.store.base import HistoryStore
from recrawl.time import DAY, HOUR, WEEK, format_duration, to_iso
from recrawl.web.html_templates import when
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

_TITLE, _ANCHOR = "From crawl to crawl", "crawls"
_FEWEST_FOR_AREAS = 3
_PAGES_AT_ONCE = 10_000
_KINDS = ("HTML pages", "Images", "Other files")
_HTML, _IMAGE, _OTHER = range(len(_KINDS))
_ALL = ("Links", *_KINDS)
_AREA_NAMES = {
    PageOutcome.UNCHANGED: ("unchanged", "unchanged"),
    PageOutcome.CHANGED: ("changed", "changed"),
    PageOutcome.NEW: ("new", "new"),
    PageOutcome.DELETED: ("deleted", "missing"),
    PageOutcome.UNKNOWN: ("not compared", "unseen"),
    PageOutcome.LEFT_OUT: ("left out", "line"),
}


def areas_section(store: HistoryStore, quality: ArchiveQuality, sites: list[str], mime: list[str]) -> Section:
    """Changes of all hosts from one period to the next, and of each of the most observed hosts.

    ``mime`` is that of each page, row by row.
    """
    steps = crawl_steps(quality.observations, quality.rounds, quality.site)
    if not steps:
        alone = "There is only one crawl of each site, so nothing can be compared. Capture the site again."
        return Section(_TITLE, _ANCHOR, [alone])
    kind = np.array([media_kind(one) for one in mime], np.int64)
    links = _links(store, quality, np.any([one.rows for one in steps], axis=0))
    parts = [_part(quality, one, sites, kind, links) for one in steps]
    shown = [name for name in _ALL if any(name in one.counts for one in parts)]
    figures = [_figure(name, [one for one in parts if name in one.counts]) for name in shown]
    said = parts[0].words + _usual("pages", parts[0].pages, parts[0].start)
    words = [f"{said} {_SO_WHAT}" if said != parts[0].words else said, *_missing(shown)]
    several = len(np.unique(quality.site)) - (len(steps) - 1) if len(steps) > 1 else 0
    if several > 0:
        words.append(
            f"{counted(several, 'host')} cannot be selected: those with one crawl, or with the fewest observations."
        )
    return Section(_TITLE, _ANCHOR, words, figures, notes=_NOTES)


@dataclass(frozen=True, slots=True)
class _HostArea:
    """What became of one host, or of all together."""

    name: str
    words: str
    """Which steps are compared."""
    start: FloatArray
    """Of each step."""
    counts: dict[str, IntArray]
    """Of links and of each kind of page that there is."""
    pages: IntArray
    """Of all kinds of pages."""


def _part(quality: ArchiveQuality, steps: CrawlSteps, sites: list[str], kind: IntArray, links: SeenLinks) -> _HostArea:
    # Who comes when that is worth a visit leaves pages out for long: nothing is gone for that.
    whole = bool(np.isnan(steps.length))
    inside = steps.rows[links.row]
    ours = SeenLinks(links.row[inside], links.first[inside], links.last[inside])
    found = crawl_changes(quality.observations, steps.rounds, steps.site, kind, ours, by_absence=whole)
    start = steps.rounds.start[found.crawl]
    kinds = [found.pages[:, number] for number in range(found.pages.shape[1])]
    counts = {name: one for name, one in zip(_ALL, [found.links, *kinds], strict=False) if one.any()}
    about = [sites[one] for one in np.unique(quality.site[steps.rows]).tolist()]
    name = about[0] if len(about) == 1 else f"all {len(about):,} hosts"
    return _HostArea(name, _about(about, steps, len(start)), start, counts, found.pages.sum(axis=1))


def media_kind(mime: str) -> int:
    """0 for HTML, 1 for images, 2 for everything else. What is not known is taken for HTML, as most pages are.

    >>> [media_kind(one) for one in ("text/html", "application/xhtml+xml", "image/png", "text/css", "")]
    [0, 0, 1, 2, 0]
    """
    if mime in {"", "text/html", "application/xhtml+xml"}:
        return _HTML
    return _IMAGE if mime.startswith("image/") else _OTHER


def _links(store: HistoryStore, quality: ArchiveQuality, rows: BoolArray) -> SeenLinks:
    observations = quality.observations
    page = observations.page[rows]
    parts = [store.outlinks(page[start : start + _PAGES_AT_ONCE]) for start in range(0, len(page), _PAGES_AT_ONCE)]
    row = np.concatenate([np.searchsorted(observations.page, one.source) for one in parts])
    first, last = (np.concatenate([getattr(one, name) for one in parts]) for name in ("first_seen", "last_seen"))
    return SeenLinks(row, first, last)


def _figure(title: str, parts: list[_HostArea]) -> Figure:
    """The areas of the first part; those of the others can be chosen."""
    drawn = [
        {
            "name": one.name,
            "words": one.words + _usual(_inside(title), one.counts[title], one.start),
            **_areas(title, one.counts[title], one.start),
        }
        for one in parts
    ]
    first = {name: drawn[0][name] for name in ("x", "y", "series")}
    name = f"areas-{title.split(maxsplit=1)[0].lower()}"
    if len(drawn) == 1:
        return Figure(name, title, "chart", first)
    return Figure(name, title, "chart", {**first, "choose": "host", "choices": drawn}, drawn[0]["words"])


def _inside(title: str) -> str:
    """A title as it is written inside a sentence."""
    return title if title.startswith("HTML") else title.lower()


def _areas(title: str, counts: IntArray, start: FloatArray) -> dict[str, Any]:
    many = len(counts) >= _FEWEST_FOR_AREAS
    series = [
        {
            "name": words,
            "draw": "area" if many else "bars",
            "stack": "all",
            "colour": colour,
            "x": start,
            "y": counts[:, became],
        }
        for became, (words, colour) in _AREA_NAMES.items()
        if counts[:, became].any() or became <= PageOutcome.DELETED
    ]
    across: dict[str, Any] = {"title": "from", "scale": "time"}
    if not many:
        across = {"title": "from", "scale": "names", "names": [when(time) for time in start.tolist()]}
    return {"x": across, "y": {"title": _inside(title), "scale": "count", "min": 0}, "series": series}


def _about(sites: list[str], steps: CrawlSteps, compared: int) -> str:
    name = sites[0] if len(sites) == 1 else counted(len(sites), "host")
    if np.isnan(steps.length):
        return f"{counted(compared + 1, 'crawl')} of {name}, each compared with the state before it."
    stretch = f"each stretch of {format_duration(steps.length)} is compared with the state before it."
    return f"{name} was observed continuously: {stretch}" if len(sites) == 1 else f"All {name} together: {stretch}"


def _usual(what: str, counts: IntArray, start: FloatArray) -> str:
    """How much had usually changed, and where most had; nothing of what never changes, as links."""
    judged = counts[:, PageOutcome.UNCHANGED] + counts[:, PageOutcome.CHANGED]
    share = np.where(judged > 0, counts[:, PageOutcome.CHANGED] / np.maximum(judged, 1), -1.0)
    if not share.max(initial=-1.0) > 0:
        return ""
    worst = int(share.argmax())
    usual = float(np.median(share[share >= 0]))
    return (
        f" Usually {100 * usual:.0f}% of the {what} observed again had changed; the most from "
        f"{when(float(start[worst]))} on: "
        f"{100 * share[worst]:.0f}% of {int(judged[worst]):,}."
    )


_SO_WHAT = "Where much changed at once, earlier captures are likely to be incoherent."


def _missing(shown: list[str]) -> list[str]:
    missing = [_inside(name) for name in _ALL if name not in shown]
    return [f"Not drawn, because there are none: {', '.join(missing)}."] if missing else []


_NOTES = [
    (
        "A page is deleted in the crawl that found it gone, or in the first complete crawl without it, if no later "
        "one has "
        "it. A crawl is complete if it has at least half as many pages as the previous one. Pages that are missing in "
        "a "
        "crawl but present in a later one are left out. A link is new, unchanged or deleted."
    ),
    (
        "If pages are observed more than three times per crawl on average, the site is observed continuously. Then "
        "periods "
        "of time take the place of crawls, and only pages that were found gone count as deleted."
    ),
]


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
