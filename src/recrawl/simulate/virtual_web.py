"""A virtual web: pages, links and their changes, known exactly at all times.

Rules:

- A page exists in one or more intervals [born, died).
- A page *changes* at known times while it exists. Its version at t is the number of changes up to t; a reappearance
  counts as a change, the first birth does not.
- A link is on its page in [added, removed). Links appear and disappear only when their page is born or changes, so a
  version determines the links (``unexplained_links`` counts exceptions).
- Time is an argument; there is no clock.
"""

from __future__ import annotations

import enum
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from recrawl.model import BoolArray, ByteArray, FloatArray, IntArray
from recrawl.simulate.change_processes import EventTimes


class PageKind(enum.IntEnum):
    """What a page serves."""

    HTML = 0
    RDF = 1
    """A thing described in RDF, and in HTML for people."""
    JSON = 2
    CSV = 3


class VirtualPage(NamedTuple):
    """One page at one moment."""

    alive: bool
    born: bool
    """It has been there at some time up to now."""
    version: int
    modified: float
    """When it took its present form: its last change, or its birth."""


@dataclass(frozen=True, slots=True)
class WebLinks:
    """Links of all pages as columns, by source page, then target, then time."""

    source: IntArray
    target: IntArray
    added: FloatArray
    removed: FloatArray
    """Infinity where the link stays."""
    offsets: IntArray
    """Page p owns rows ``offsets[p]:offsets[p + 1]``."""

    @classmethod
    def of(
        cls,
        source: npt.ArrayLike,
        target: npt.ArrayLike,
        added: npt.ArrayLike,
        removed: npt.ArrayLike,
        *,
        pages: int,
    ) -> WebLinks:
        """Columns from rows in any order. O(n log n)."""
        source, target = np.asarray(source, dtype=np.int64), np.asarray(target, dtype=np.int64)
        added, removed = (np.broadcast_to(np.asarray(c, dtype=np.float64), source.shape) for c in (added, removed))
        order = np.lexsort((added, target, source))
        source = source[order]
        offsets = np.searchsorted(source, np.arange(pages + 1))
        return cls(source, target[order], added[order], removed[order], offsets)

    def __len__(self) -> int:
        return len(self.source)


@dataclass(frozen=True, slots=True)
class VirtualWeb:
    """The whole truth about a web, as columns with one row per page. Built by ``sites`` or from recordings."""

    hosts: tuple[str, ...]
    host: IntArray
    """Index into ``hosts`` of each page."""
    path: Sequence[str]
    """Path of each page on its host, beginning with a slash; unique on the host."""
    title: Sequence[str]
    kind: ByteArray
    """A :class:`PageKind` for each page."""
    rate: FloatArray
    """True λ of each page, changes per second; NaN if not known (recorded pages)."""
    lifetimes: EventTimes
    """Births and deaths of each page in turn: born, died, born, ..."""
    changes: EventTimes
    links: WebLinks
    start: float
    """The truth is complete from here, seconds since the epoch ..."""
    end: float
    """... to here. Afterwards the web stands still."""
    born: FloatArray = field(init=False)
    """First birth of each page."""
    died: FloatArray = field(init=False)
    """Last death of each page; infinity while it lives."""

    def __post_init__(self) -> None:
        for name in ("path", "title", "kind", "rate", "lifetimes", "changes"):
            if len(getattr(self, name)) != len(self.host):
                msg = f"column {name!r} has {len(getattr(self, name))} rows, host has {len(self.host)}"
                raise ValueError(msg)
        counts = self.lifetimes.counts()
        if not bool((counts > 0).all()):
            msg = "every page needs a birth"
            raise ValueError(msg)
        object.__setattr__(self, "born", self.lifetimes.times[self.lifetimes.offsets[:-1]])
        ends = self.lifetimes.times[self.lifetimes.offsets[1:] - 1]
        object.__setattr__(self, "died", np.where(counts % 2 == 0, ends, np.inf))

    def __len__(self) -> int:
        return len(self.host)

    # -- many pages at once -------------------------------------------------------------------

    def version(self, page: npt.ArrayLike, t: npt.ArrayLike) -> IntArray:
        """Number of changes of each page up to t. O(m log k) for m questions, k changes per page."""
        return self.changes.until(page, t)

    def alive(self, page: npt.ArrayLike, t: npt.ArrayLike) -> BoolArray:
        """Whether each page is there at t. O(m log l) for l lives."""
        return np.asarray(self.lifetimes.until(page, t) % 2 == 1)

    def last_change(self, page: npt.ArrayLike, t: npt.ArrayLike) -> FloatArray:
        """When each page last changed up to t; NaN if it never did."""
        return self.changes.last_until(page, t)

    def modified(self, page: npt.ArrayLike, t: npt.ArrayLike) -> FloatArray:
        """When each page took the form it has at t: its last change or its birth."""
        change = self.last_change(page, t)
        return np.where(np.isnan(change), self.born[np.asarray(page)], change)

    def changes_between(self, a: npt.ArrayLike, b: npt.ArrayLike) -> IntArray:
        """Number of changes of every page in (a, b]; a and b are times, or a time for each page. O(n log k)."""
        every = np.arange(len(self))
        return self.version(every, b) - self.version(every, a)

    def links_between(self, t: float) -> tuple[IntArray, IntArray]:
        """The link graph at t: source and target of every link on a living page. O(links)."""
        there = (self.links.added <= t) & (t < self.links.removed)
        there &= self.alive(np.arange(len(self)), t)[self.links.source]
        return self.links.source[there], self.links.target[there]

    def unexplained_links(self) -> int:
        """How many link times are neither a birth nor a change of the page that carries the link."""
        links = self.links
        source = np.concatenate([links.source, links.source])
        times = np.concatenate([links.added, links.removed])
        bounded = np.isfinite(times)
        source, times = source[bounded], times[bounded]
        known = self.lifetimes.last_until(source, times) == times
        known |= self.changes.last_until(source, times) == times
        return int((~known).sum())

    # -- one page -----------------------------------------------------------------------------

    def state(self, page: int, t: float) -> VirtualPage:
        """One page at t, for a server that is asked for one at a time. O(log k)."""
        lifetimes = self.lifetimes.row(page)
        lived = int(lifetimes.searchsorted(t, "right"))
        changes = self.changes.row(page)
        version = int(changes.searchsorted(t, "right"))
        modified = float(changes[version - 1]) if version else float(lifetimes[0])
        return VirtualPage(lived % 2 == 1, lived > 0, version, modified)

    def links_at(self, page: int, t: float) -> IntArray:
        """Targets of the links on one page at t, ascending. O(links the page ever had)."""
        rows = slice(self.links.offsets[page], self.links.offsets[page + 1])
        there = (self.links.added[rows] <= t) & (t < self.links.removed[rows])
        return self.links.target[rows][there]

    def url(self, page: int, port: int | None = None) -> str:
        """The http URL of a page, with a port if one is given."""
        suffix = f":{port}" if port else ""
        return f"http://{self.hosts[self.host[page]]}{suffix}{self.path[page]}"


def join(webs: Sequence[VirtualWeb], *, link_homes: bool = True) -> VirtualWeb:
    """Several webs as one, page indices in order; the first page of each links to that of the next.

    The links between home pages are there from the birth of the page that carries them.
    """
    first = np.cumsum([0, *(len(web) for web in webs)])[:-1]
    host_shift = np.cumsum([0, *(len(web.hosts) for web in webs)])[:-1]
    columns = {
        name: [np.asarray(getattr(web.links, name)) for web in webs]
        for name in ("source", "target", "added", "removed")
    }
    for name in ("source", "target"):
        columns[name] = [column + shift for column, shift in zip(columns[name], first, strict=True)]
    if link_homes and len(webs) > 1:
        columns["source"].append(first)
        columns["target"].append(np.roll(first, -1))
        columns["added"].append(np.array([web.born[0] for web in webs]))
        columns["removed"].append(np.full(len(webs), np.inf))
    pages = sum(len(web) for web in webs)
    return VirtualWeb(
        hosts=tuple(name for web in webs for name in web.hosts),
        host=np.concatenate([web.host + shift for web, shift in zip(webs, host_shift, strict=True)]),
        path=[path for web in webs for path in web.path],
        title=[title for web in webs for title in web.title],
        kind=np.concatenate([web.kind for web in webs]),
        rate=np.concatenate([web.rate for web in webs]),
        lifetimes=EventTimes.concatenate([web.lifetimes for web in webs]),
        changes=EventTimes.concatenate([web.changes for web in webs]),
        links=WebLinks.of(*(np.concatenate(column) for column in columns.values()), pages=pages),
        start=min(web.start for web in webs),
        end=max(web.end for web in webs),
    )
