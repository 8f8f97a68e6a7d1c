"""Area plots of a report: what became of a site's links, HTML pages, images and other files from crawl to crawl."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from recrawl.assess.archive_quality import ArchiveQuality
from recrawl.assess.changes_over_time import CrawlSteps, PageOutcome, SeenLinks, crawl_changes, crawl_steps
from recrawl.model import BoolArray, FloatArray, IntArray
from recrawl.model.plurals import counted
from recrawl.store.base import HistoryStore
from recrawl.time import format_duration
from recrawl.web.html_templates import when
from recrawl.web.report.report_page import Figure, Section

_TITLE, _ANCHOR = "From crawl to crawl", "crawls"
_FEWEST_FOR_AREAS = 3
_PAGES_AT_ONCE = 10_000
_KINDS = ("HTML pages", "Images", "Other files")
_HTML, _IMAGE, _OTHER = range(len(_KINDS))
_ALL = ("Links", *_KINDS)
_NAMES = {
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
        for became, (words, colour) in _NAMES.items()
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
