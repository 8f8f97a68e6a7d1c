"""Synthetic sites: trees of pages with known rates and readable paths, whose pages and links appear and disappear.

Pages are numbered breadth first in a complete tree: page i has the parent ⌊(i−1)/outdegree⌋, page 0 is the home page.
Every page links to its children and its parent. Pages and links appear or disappear at a change of the linking page, so
they do not add to its rate.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal, NamedTuple

import numpy as np

from recrawl.model import BoolArray, ByteArray, FloatArray, IntArray
from recrawl.simulate.virtual_web import (
    BurstProcess,
    ChangeProcess,
    EventTimes,
    PageKind,
    PoissonProcess,
    RhythmicProcess,
    VirtualWeb,
    WebLinks,
    join,
)
from recrawl.time import DAY, HOUR

_TOPICS = (
    "harbour", "market", "library", "weather", "railway", "theatre", "garden", "council", "school", "river",
    "museum", "bakery", "observatory", "clinic", "forest", "lighthouse", "workshop", "archive", "stadium", "orchard",
    "bridge", "quarry", "meadow", "station",
)  # fmt: skip
_MATTERS = (
    "news", "timetable", "visitors", "accounts", "history", "people", "repairs", "events", "notices", "prices",
    "projects", "reports", "questions", "plans", "records", "opening", "gallery", "letters", "research", "rules",
)  # fmt: skip
_ENDING = {PageKind.HTML: ".html", PageKind.RDF: "", PageKind.JSON: ".json", PageKind.CSV: ".csv"}
PRIVATE = "/private/"
"""Where pages lie that robots.txt asks crawlers to leave alone."""


def paths_and_titles(parent: IntArray, kind: ByteArray, private: BoolArray) -> tuple[list[str], list[str]]:
    """A path and a title for each page of a tree in which parents come before their children.

    Pages with children are directories below their parent's; the rest are files. ``private`` pages lie
    under ``/private/``. Names repeat words but never a path, as each ends in the page's number. O(n) Python:
    once for each web.

    >>> tree, html = np.array([-1, 0, 1]), np.zeros(3, np.uint8)
    >>> paths_and_titles(tree, html, np.zeros(3, bool))[0]
    ['/', '/market-1/', '/market-1/visitors-2.html']
    """
    inner = np.zeros(len(parent), dtype=np.bool_)
    inner[parent[parent >= 0]] = True
    directory: list[str] = []
    paths: list[str] = []
    titles: list[str] = []
    for page, above in enumerate(parent.tolist()):
        if above < 0:
            directory.append("/")
            paths.append("/")
            titles.append("Home")
            continue
        name, title = name_and_title(page, top=above == 0)
        place = f"{PRIVATE if private[page] else directory[above]}{name}"
        directory.append(f"{place}/")
        paths.append(directory[page] if inner[page] else f"{place}{_ENDING[PageKind(kind[page])]}")
        titles.append(title)
    return paths, titles


def name_and_title(number: int, *, top: bool) -> tuple[str, str]:
    """Last part of the path of a page, without its ending, and its title; ``top`` if its parent is the home page.

    >>> name_and_title(2, top=False)
    ('visitors-2', 'Library: visitors (2)')
    """
    topic, matter = _TOPICS[number % len(_TOPICS)], _MATTERS[number % len(_MATTERS)]
    return f"{topic if top else matter}-{number}", f"{topic.capitalize()}: {matter} ({number})"


DOMAIN = "living.test"
"""All made-up hosts lie here: names under ``.test`` never resolve (RFC 6761)."""
HOST_LAWS: dict[str, ChangeProcess] = {
    "news": BurstProcess(size=2.5, spacing=2 * HOUR),
    "office": RhythmicProcess.working_hours(),
    "data": PoissonProcess(),
}
"""How the hosts of a synthetic web change, in their order."""


def power_rates(
    pages: int, *, scale: float = 1.0, skew: float = 1.0, leaves: Literal["cold", "hot"] = "cold"
) -> FloatArray:
    """Rates λ_i = scale/(i+1)^skew per second (SHARC 4.6); with hot leaves in reverse order.

    >>> power_rates(3, scale=6.0).tolist(), power_rates(3, scale=6.0, leaves="hot").tolist()
    ([6.0, 3.0, 2.0], [2.0, 3.0, 6.0])
    """
    rates = scale / np.arange(1, pages + 1, dtype=np.float64) ** skew
    return rates if leaves == "cold" else rates[::-1].copy()


def lognormal_rates(pages: int, *, median: float, sigma: float, rng: np.random.Generator) -> FloatArray:
    """Log-normal rates: ``median`` per second, ``sigma`` of ln λ (0: all alike; 1.5: like many real sites)."""
    return np.asarray(rng.lognormal(np.log(median), sigma, pages))


@dataclass(frozen=True, slots=True)
class SiteGrowth:
    """What comes and goes on a site during its span."""

    appearing: float = 0.0
    """Share of the leaves that are born later, at a change of their parent."""
    vanishing: float = 0.0
    """Share of the leaves that die, at a change of their parent, which drops the link then."""
    cross_links: float = 0.0
    """Links from one page to any other for each page of the site, added and perhaps removed at changes."""


@dataclass(frozen=True, slots=True)
class PageMixture:
    """Which pages are not plain HTML or not for crawlers: shares of the leaves."""

    rdf: float = 0.0
    json: float = 0.0
    csv: float = 0.0
    private: float = 0.0
    """Under ``/private/``, which robots.txt disallows."""


def tree_site(  # noqa: PLR0913 - what makes a site, by keyword, nearly all optional
    name: str,
    rate: FloatArray,
    *,
    start: float,
    end: float,
    rng: np.random.Generator,
    outdegree: int = 8,
    law: ChangeProcess | None = None,
    growth: SiteGrowth | None = None,
    mixture: PageMixture | None = None,
) -> VirtualWeb:
    """One host with one page for each rate (per second), alive and changing from ``start`` to ``end``.

    O(n log n) for n pages, changes and links together.

    >>> rng = np.random.default_rng(0)
    >>> site = tree_site("news", power_rates(20, scale=1e-4), start=0.0, end=86400.0, rng=rng)
    >>> site.url(0), site.links_at(19, 0.0).tolist()
    ('http://news.living.test/', [2])
    """
    pages = len(rate)
    tree = _PageTree.of(pages, outdegree)
    changes = (law or PoissonProcess()).times(rate, start, end, rng)
    lifetimes = _lifetimes(tree, changes, growth or SiteGrowth(), start, rng)
    changes = changes.where(lifetimes.hold(changes))
    kind, private = _kinds(tree.leaf, mixture or PageMixture(), rng)
    paths, titles = paths_and_titles(tree.parent, kind, private)
    return VirtualWeb(
        hosts=(f"{name}.{DOMAIN}",),
        host=np.zeros(pages, dtype=np.int64),
        path=paths,
        title=[f"{name.capitalize()} | {title}" for title in titles],
        kind=kind,
        rate=rate,
        lifetimes=lifetimes.events(),
        changes=changes,
        links=_links(tree, lifetimes, changes, growth or SiteGrowth(), rng),
        start=start,
        end=end,
    )


def synthetic_web(  # noqa: PLR0913 - by keyword, nearly all optional
    *, pages: int = 300, start: float, days: float = 28.0, seed: int = 0, hot: float = 0.5, sigma: float = 1.2
) -> VirtualWeb:
    """A small web of three hosts to try things on: news in bursts, an office with a week, open data at random.

    The median page changes once in ``1/hot`` days; rates are log-normal with ``sigma``. Pages come and
    go, a few serve RDF, JSON or CSV, and a few are private.
    """
    rng = np.random.default_rng(seed)
    end = start + days * DAY
    growth = SiteGrowth(appearing=0.08, vanishing=0.04, cross_links=0.5)
    plain, data = PageMixture(private=0.03), PageMixture(rdf=0.25, json=0.2, csv=0.2)
    sizes = np.diff(np.linspace(0, pages, len(HOST_LAWS) + 1).astype(int))
    sites = []
    for (name, law), mixture, size in zip(HOST_LAWS.items(), (plain, plain, data), sizes.tolist(), strict=True):
        rate = np.sort(lognormal_rates(size, median=hot / DAY, sigma=sigma, rng=rng))[::-1].copy()
        sites.append(tree_site(name, rate, start=start, end=end, rng=rng, law=law, growth=growth, mixture=mixture))
    return join(sites)


# -- inside -----------------------------------------------------------------------------------


class _PageTree(NamedTuple):
    """A complete tree in breadth-first numbering."""

    parent: IntArray
    """−1 for the home page."""
    leaf: BoolArray

    @classmethod
    def of(cls, pages: int, outdegree: int) -> _PageTree:
        parent = (np.arange(pages) - 1) // outdegree
        leaf = np.ones(pages, dtype=np.bool_)
        leaf[parent[1:]] = False
        leaf[:1] = False  # the home page of a site of one page stays
        return cls(parent, leaf)


class _Lifetimes(NamedTuple):
    """One life for each page."""

    born: FloatArray
    died: FloatArray

    def hold(self, changes: EventTimes) -> BoolArray:
        """Where a change falls into the life of its page."""
        row = changes.row_of_event()
        return np.asarray((changes.times > self.born[row]) & (changes.times < self.died[row]))

    def events(self) -> EventTimes:
        page, mortal = np.arange(len(self.born)), np.isfinite(self.died)
        times = np.concatenate([self.born, self.died[mortal]])
        return EventTimes.of(np.concatenate([page, page[mortal]]), times, len(page))


class _Picks(NamedTuple):
    """One change picked at random from each of some pages."""

    found: BoolArray
    """Where the page had a change to pick."""
    time: FloatArray


def _pick(changes: EventTimes, page: IntArray, after: FloatArray, rng: np.random.Generator) -> _Picks:
    """A change of each page strictly after a time, all equally likely."""
    passed = changes.until(page, after)
    left = changes.counts()[page] - passed
    found = left > 0
    place = changes.offsets[page] + passed + rng.integers(0, np.maximum(left, 1))
    return _Picks(found, changes.times[np.minimum(place, max(len(changes.times) - 1, 0))] if found.any() else after)


def _lifetimes(
    tree: _PageTree, changes: EventTimes, growth: SiteGrowth, start: float, rng: np.random.Generator
) -> _Lifetimes:
    """When each page is born and dies; leaves whose parent has no fitting change stay as they are."""
    pages = len(tree.parent)
    born, died = np.full(pages, start), np.full(pages, np.inf)
    late = np.flatnonzero(tree.leaf & (rng.random(pages) < growth.appearing))
    if len(late):
        picks = _pick(changes, tree.parent[late], born[late], rng)
        born[late[picks.found]] = picks.time[picks.found]
    doomed = np.flatnonzero(tree.leaf & (rng.random(pages) < growth.vanishing))
    if len(doomed):
        picks = _pick(changes, tree.parent[doomed], born[doomed], rng)
        died[doomed[picks.found]] = picks.time[picks.found]
    return _Lifetimes(born, died)


def _kinds(leaf: BoolArray, mixture: PageMixture, rng: np.random.Generator) -> tuple[ByteArray, BoolArray]:
    draw = rng.random(len(leaf))
    bounds = np.cumsum([mixture.rdf, mixture.json, mixture.csv])
    choices = np.array([PageKind.RDF, PageKind.JSON, PageKind.CSV, PageKind.HTML], dtype=np.uint8)
    kind = np.where(leaf, choices[np.searchsorted(bounds, draw, "right")], PageKind.HTML).astype(np.uint8)
    return kind, leaf & (rng.random(len(leaf)) < mixture.private)


def _links(
    tree: _PageTree, lifetimes: _Lifetimes, changes: EventTimes, growth: SiteGrowth, rng: np.random.Generator
) -> WebLinks:
    """Tree links both ways, and cross links that come and go at changes of their source."""
    parent, (born, died) = tree.parent, lifetimes
    pages = len(parent)
    child = np.arange(1, pages)
    above = parent[1:]
    source = rng.integers(0, pages, int(growth.cross_links * pages))
    target = rng.integers(0, pages, len(source))
    fresh = (source != target) & (parent[source] != target) & (parent[target] != source)
    _, first = np.unique(source * pages + target, return_index=True)
    fresh &= np.isin(np.arange(len(source)), first)
    source, target = source[fresh], target[fresh]
    added, removed = born[source], np.full(len(source), np.inf)
    if len(source) and len(changes.times):
        begins = _pick(changes, source, added, rng)
        added = np.where(begins.found, begins.time, added)
        ends = _pick(changes, source, added, rng)
        removed = np.where(ends.found & (rng.random(len(source)) < 0.5), ends.time, removed)  # noqa: PLR2004 - a coin
    return WebLinks.of(
        np.concatenate([above, child, source]),
        np.concatenate([child, above, target]),
        np.concatenate([born[1:], born[1:], added]),
        np.concatenate([died[1:], np.full(pages - 1, np.inf), removed]),
        pages=pages,
    )
