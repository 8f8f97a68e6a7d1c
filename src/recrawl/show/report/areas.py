"""Area plots of a report: what became of a site's links, HTML pages, images and other files from crawl to crawl."""

from __future__ import annotations

from typing import Any

import numpy as np

from recrawl.assess.archive_quality import ArchiveQuality
from recrawl.assess.crawl_changes import Became, CrawlChanges, SeenLinks, crawl_changes
from recrawl.assess.crawl_steps import CrawlSteps, crawl_steps
from recrawl.model import BoolArray, FloatArray, IntArray
from recrawl.show.html import when
from recrawl.show.report.section import Figure, Section
from recrawl.show.words import counted
from recrawl.store.base import Store
from recrawl.time import format_duration

_TITLE, _ANCHOR = "From crawl to crawl", "crawls"
_FEWEST_FOR_AREAS = 3
_PAGES_AT_ONCE = 10_000
_KINDS = ("HTML pages", "Images", "Other files")
_HTML, _IMAGE, _OTHER = range(len(_KINDS))
_NAMES = {
    Became.UNCHANGED: ("unchanged", "unchanged"),
    Became.CHANGED: ("changed", "changed"),
    Became.NEW: ("new", "new"),
    Became.DELETED: ("deleted", "missing"),
    Became.UNKNOWN: ("not judged", "unseen"),
    Became.LEFT_OUT: ("left out", "line"),
}


def areas_section(store: Store, quality: ArchiveQuality, sites: list[str], mime: list[str]) -> Section:
    """The crawls of the site that was looked at most, or what became of all sites that are looked at all the time.

    ``mime`` is that of each page, row by row.
    """
    steps = crawl_steps(quality.looks, quality.rounds, quality.site)
    if steps is None:
        alone = "There is one crawl of each site, and nothing to compare it with. Capture the site again."
        return Section(_TITLE, _ANCHOR, [alone])
    kind = np.array([media_kind(one) for one in mime], np.int64)
    links = _links(store, quality, steps.rows)
    # Who comes when that is worth a visit leaves pages out for long: nothing is gone for that.
    whole = bool(np.isnan(steps.length))
    found = crawl_changes(quality.looks, steps.rounds, steps.site, kind, links, by_absence=whole)
    start = steps.rounds.start[found.crawl]
    tables = [("Links", "areas-links", found.links)]
    for number, name in enumerate(_KINDS):
        if number < found.pages.shape[1]:
            tables.append((name, f"areas-{name.split()[0].lower()}", found.pages[:, number]))
    shown = [(name, anchor, counts) for name, anchor, counts in tables if counts.any()]
    figures = [_figure(name, anchor, counts, start) for name, anchor, counts in shown]
    about = [sites[one] for one in np.unique(quality.site[steps.rows]).tolist()]
    words = [_about(about, steps, len(start)) + _usual(found, start), *_missing([one[0] for one in shown])]
    return Section(_TITLE, _ANCHOR, words, figures, notes=_NOTES)


def media_kind(mime: str) -> int:
    """0 for HTML, 1 for images, 2 for everything else. What is not known is taken for HTML, as most pages are.

    >>> [media_kind(one) for one in ("text/html", "application/xhtml+xml", "image/png", "text/css", "")]
    [0, 0, 1, 2, 0]
    """
    if mime in {"", "text/html", "application/xhtml+xml"}:
        return _HTML
    return _IMAGE if mime.startswith("image/") else _OTHER


def _links(store: Store, quality: ArchiveQuality, rows: BoolArray) -> SeenLinks:
    looks = quality.looks
    page = looks.page[rows]
    parts = [store.outlinks(page[start : start + _PAGES_AT_ONCE]) for start in range(0, len(page), _PAGES_AT_ONCE)]
    row = np.concatenate([np.searchsorted(looks.page, one.source) for one in parts])
    first, last = (np.concatenate([getattr(one, name) for one in parts]) for name in ("first_seen", "last_seen"))
    return SeenLinks(row, first, last)


def _figure(title: str, name: str, counts: IntArray, start: FloatArray) -> Figure:
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
        if counts[:, became].any() or became <= Became.DELETED
    ]
    across: dict[str, Any] = {"title": "from", "scale": "time"}
    if not many:
        across = {"title": "from", "scale": "names", "names": [when(time) for time in start.tolist()]}
    data = {"x": across, "y": {"title": title.lower(), "scale": "count", "min": 0}, "series": series}
    return Figure(name, title, "chart", data)


def _about(sites: list[str], steps: CrawlSteps, compared: int) -> str:
    name = sites[0] if len(sites) == 1 else counted(len(sites), "host")
    if np.isnan(steps.length):
        return f"{counted(compared + 1, 'crawl')} of {name}, each compared with what was known before it."
    was = "was" if len(sites) == 1 else "were"
    stretch = format_duration(steps.length)
    return f"{name} {was} looked at all the time: each stretch of {stretch} is compared with what was known before it."


def _usual(found: CrawlChanges, start: FloatArray) -> str:
    """How much had usually changed, and where most had."""
    counts = found.pages.sum(axis=1)
    judged = counts[:, Became.UNCHANGED] + counts[:, Became.CHANGED]
    share = np.where(judged > 0, counts[:, Became.CHANGED] / np.maximum(judged, 1), -1.0)
    if not share.max(initial=-1.0) >= 0:
        return ""
    worst = int(share.argmax())
    usual = float(np.median(share[share >= 0]))
    return (
        f" Usually {100 * usual:.0f} % of the pages seen again had changed; most from {when(float(start[worst]))} on: "
        f"{100 * share[worst]:.0f} % of {counted(int(judged[worst]), 'page')}. Where much changed at once, what was "
        "captured before is likely to be incoherent."
    )


def _missing(shown: list[str]) -> list[str]:
    missing = [name.lower() for name in ("Links", *_KINDS) if name not in shown]
    return [f"Not drawn, for there are none: {', '.join(missing)}."] if missing else []


_NOTES = [
    (
        "A page is deleted in the crawl that found it gone, or in the first whole crawl that no longer had it, if "
        "none had it again. A crawl is whole if it has at least half as many pages as the one before. Pages that a "
        "crawl does not have but a later one does are left out. A link is new, unchanged or deleted."
    ),
    (
        "Where pages are looked at more than three times in a crawl, on average, it is no crawl: the site is looked "
        "at all the time. There stretches of time take the place of crawls, and only what was found gone is deleted."
    ),
]
