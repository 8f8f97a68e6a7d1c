"""Archived pages with their page requisites: read from archive files, and assessed by when all parts were captured.

Cheap pages and style sheets are parsed in this process, all others in the pool (:mod:`recrawl.parse.parse_pool`). What
cannot be parsed within the limits is not assessed.

Limits of one page: :data:`recrawl.detect.html.embedded_resources.MOST_EMBEDS` resources in the page and in each style
sheet, :data:`MOST_RESOURCES` in all, style sheets :data:`DEEPEST` levels deep, :data:`MOST_REDIRECTS` redirects. A
frame is one resource; its own requisites belong to the page inside it.

:func:`composites_of` surveys the captured pages of a store: all of them, or a sample.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from typing import Any, Protocol, TypeVar

import numpy as np

from recrawl.assess.composite_coherence import (
    GONE,
    NO_CAPTURE,
    ChoiceRule,
    CoherenceState,
    Composites,
    CompositeSummary,
    ResourceCaptures,
    choose,
    importance,
    missing_resources,
    summary_json,
    summary_of,
    wanted_last_modified,
)
from recrawl.detect import ChangeCriteria
from recrawl.detect.digest_verdicts import methods_of, outcomes_of, versions_of
from recrawl.formats.warc.archived_bytes import ArchivedBytes
from recrawl.model import Capture, FloatArray, IntArray, Outcome
from recrawl.model.arrays import offsets_of
from recrawl.model.captures import EmbeddedResource, EmbeddedResources, EmbedKind
from recrawl.parse.parse_pool import ParseLimits, ParsePool, embeds_apart, new_parse_pool
from recrawl.store.base import CaptureIndex, Store
from recrawl.store.store_values import REVISIT, CaptureColumns
from recrawl.time import from_http_date
from recrawl.transfer.listed_captures import chunks_of
from recrawl.urls import Address, address

DEEPEST = 3
"""Levels of style sheets: one that the page names, one that this imports, and one more."""
MOST_REDIRECTS = 3
MOST_RESOURCES = 3_000
"""Maximum page requisites of one page that are looked up."""
_CAPTURES_AT_ONCE = 200_000
"""Captures of resources in memory; those of one resource are read whole."""
_PAGES_AT_ONCE = 2_000
_REMEMBERED, _LISTS_REMEMBERED = 200_000, 2_000
_HEAD, _WHOLE = 0, 16 << 20
"""Bytes of a body that are read."""
K = TypeVar("K")
V = TypeVar("V")


class ReadRecord(Protocol):
    """Reads archived bytes: as :meth:`recrawl.formats.warc.archived_bytes.ArchivedBytes.read`."""

    def __call__(self, file: str, offset: int, *, max_body: int = ...) -> Capture | None:
        """The record at an offset of a file, its body cut at ``max_body`` bytes; ``None`` if it cannot be read."""
        ...


@dataclass(frozen=True, slots=True)
class CapturedPage:
    """A capture of a page, and the place of its bytes (for a revisit, those of the original)."""

    page: int
    url: str
    time: float
    """Seconds since the epoch."""
    file: str
    offset: int


@dataclass(frozen=True, slots=True)
class ShownResource:
    """A page requisite, and the copy of it that is shown."""

    embed: EmbeddedResource
    state: CoherenceState
    url: str
    """Of the copy: the alternative that is archived, or what it redirects to. The first alternative if none is."""
    capture: CaptureColumns | None = None
    """The one row of the copy; ``None`` if there is none."""


@dataclass(slots=True)
class _ResourceLookup:
    """One page requisite during its look-up."""

    row: int
    """Row of the page it belongs to."""
    embed: EmbeddedResource
    depth: int
    """Style sheets between it and the page."""
    state: CoherenceState = CoherenceState.MISSING
    shown: tuple[Address, CaptureColumns] | None = None


@dataclass(slots=True)
class CompositeReader:
    """Assesses captured pages with their page requisites. Not for several threads at once."""

    store: Store
    read: ReadRecord
    has: Callable[[str], bool]
    """Whether an archive file is available."""
    pool: ParsePool | None = None
    _embeds: dict[tuple[str, int, bool], EmbeddedResources | None] = field(default_factory=dict)
    _pages: dict[str, int] = field(default_factory=dict)
    """Ids of pages by key; -1 for unknown ones."""
    _dates: dict[tuple[str, int], float] = field(default_factory=dict)
    _files: dict[str, bool] = field(default_factory=dict)

    def judge(self, roots: Sequence[CapturedPage], rule: ChoiceRule = ChoiceRule.COHERENT) -> Composites:
        """Every page that can be read, in the order given; the others are left out."""
        lists = [self._embedded(root.file, root.offset, sheet=False) for root in roots]
        readable = [(root, told) for root, told in zip(roots, lists, strict=True) if told is not None]
        parts, cut = self._parts(readable, rule, survey=True)
        return Composites.of(
            np.array([root.page for root, _ in readable], np.int64),
            np.array([root.time for root, _ in readable]),
            np.array([told.words for _, told in readable], np.int64),
            np.array(cut, np.bool_),
            np.array([part.row for part in parts], np.int64),
            np.array([part.state for part in parts], np.uint8),
            _importance(parts),
        )

    def copy_of(
        self, url: str, at: float, rule: ChoiceRule = ChoiceRule.COHERENT
    ) -> tuple[CoherenceState, CaptureColumns] | None:
        """The copy of one resource that is shown with a page captured ``at``; ``None`` if there is none to show."""
        named = address(url)
        if named is None:
            return None
        part = _ResourceLookup(0, EmbeddedResource((named,), EmbedKind.OTHER), 0)
        found = self._answers([(part, named)], np.array([at]), rule)[0]
        return None if found is None or found[1] is None else (found[0], found[1])

    def shown(
        self,
        root: CapturedPage,
        told: EmbeddedResources,
        rule: ChoiceRule = ChoiceRule.COHERENT,
        most: int = MOST_RESOURCES,
    ) -> tuple[Composites, list[ShownResource]]:
        """One page whose requisites are known: its state, and what is shown of each, at most ``most``."""
        parts, cut = self._parts([(root, told)], rule, most)
        columns = [np.array(one) for one in ([root.page], [root.time], [told.words], cut)]
        rows = np.zeros(len(parts), np.int64)
        states = np.array([part.state for part in parts], np.uint8)
        found = Composites.of(columns[0], columns[1], columns[2], columns[3], rows, states, _importance(parts))
        return found, [
            ShownResource(
                part.embed,
                part.state,
                part.embed.alternatives[0].url if part.shown is None else part.shown[0].url,
                None if part.shown is None else part.shown[1],
            )
            for part in parts
        ]

    def _parts(
        self,
        roots: Sequence[tuple[CapturedPage, EmbeddedResources]],
        rule: ChoiceRule,
        most: int = MOST_RESOURCES,
        *,
        survey: bool = False,
    ) -> tuple[list[_ResourceLookup], list[bool]]:
        """All requisites of these pages with their states; and for each page whether it has more than that.

        A ``survey`` is about what the archive has; else about what can be shown here.
        """
        known = [set[str]() for _ in roots]
        cut = [told.cut for _, told in roots]
        times = np.array([root.time for root, _ in roots])
        parts: list[_ResourceLookup] = []
        level = _new_parts(((row, told) for row, (_, told) in enumerate(roots)), 0, known, cut, most)
        for depth in range(1, DEEPEST + 1):
            self._look_up(level, times, rule, survey=survey)
            parts += level
            if depth == DEEPEST:
                break
            sheets = [(part.row, self._embedded_in(part)) for part in level if part.embed.kind is EmbedKind.STYLESHEET]
            named = ((row, told) for row, told in sheets if told is not None)
            level = _new_parts(named, depth, known, cut, most)
            if not level:
                break
        return parts, cut

    def _embedded_in(self, part: _ResourceLookup) -> EmbeddedResources | None:
        """The requisites of a style sheet."""
        if part.shown is None:
            return None
        place = self._bytes_of(part.shown[1])
        return None if place is None else self._embedded(*place, sheet=True)

    def _bytes_of(self, capture: CaptureColumns) -> tuple[str, int] | None:
        """The place of the bytes of a capture, which may repeat another."""
        if capture.mime[0] != REVISIT and capture.warc_file[0] and self._has(capture.warc_file[0]):
            return capture.warc_file[0], int(capture.warc_offset[0])
        listed = self.store.capture_columns(capture.page)
        for row, digest in enumerate(listed.digest):
            file = listed.warc_file[row]
            if digest == capture.digest[0] and listed.mime[row] != REVISIT and file and self._has(file):
                return file, int(listed.warc_offset[row])
        return None

    def _look_up(self, parts: list[_ResourceLookup], times: FloatArray, rule: ChoiceRule, *, survey: bool) -> None:
        """Find the copy that is shown of each part, and its state; follow redirects."""
        asked = [(part, named) for part in parts for named in part.embed.alternatives]
        for hop in range(MOST_REDIRECTS + 1):
            answers = self._answers(asked, times, rule, survey=survey)
            first: dict[int, tuple[CoherenceState, Address, CaptureColumns]] = {}
            away: set[int] = set()
            for (part, named), found in zip(asked, answers, strict=True):
                if found is not None and found[1] is not None:
                    first.setdefault(id(part), (found[0], named, found[1]))
                elif found is not None:
                    away.add(id(part))
            moved: list[tuple[_ResourceLookup, Address]] = []
            for part in {id(part): part for part, _ in asked}.values():
                part.shown = None
                if id(part) not in first:
                    part.state = CoherenceState.NOT_KNOWN if id(part) in away else CoherenceState.MISSING
                    continue
                state, named, capture = first[id(part)]
                part.state = max(part.state, state) if hop else state
                if outcomes_of(capture.status)[0] != Outcome.REDIRECTED:
                    part.shown = named, capture
                elif hop < MOST_REDIRECTS and (target := self._target(named, capture)) is not None:
                    moved.append((part, target))
                else:
                    part.state = CoherenceState.MISSING
            if not moved:
                return
            asked = moved

    def _target(self, named: Address, capture: CaptureColumns) -> Address | None:
        """The target of a redirect."""
        head = self.read(capture.warc_file[0], int(capture.warc_offset[0]), max_body=_HEAD)
        location = "" if head is None else head.header("location")
        return address(location, base=named.url) if location else None

    def _answers(
        self,
        asked: Sequence[tuple[_ResourceLookup, Address]],
        times: FloatArray,
        rule: ChoiceRule,
        *,
        survey: bool = False,
    ) -> list[tuple[CoherenceState, CaptureColumns | None] | None]:
        """The state and the row of the copy shown of each address; ``None`` where there is none.

        A listed copy without available bytes has a state and no row.
        """
        answers: list[tuple[CoherenceState, CaptureColumns | None] | None] = [None] * len(asked)
        page = np.array([self._page(named) for _, named in asked], np.int64)
        at = times[np.array([part.row for part, _ in asked], np.int64)] if asked else np.empty(0)
        known = np.unique(page[page >= 0])
        for some in chunks_of(self.store, known, _CAPTURES_AT_ONCE, _PAGES_AT_ONCE):
            rows = np.flatnonzero(np.isin(page, some))
            listed = self.store.capture_columns(some)
            listed = listed.take(np.flatnonzero(outcomes_of(listed.status) <= Outcome.GONE))
            if not len(listed):
                continue
            captures = self._captures(listed, some, survey=survey)
            resource = np.searchsorted(some, page[rows])
            for place in wanted_last_modified(captures, resource, at[rows]).tolist():
                captures.last_modified[place] = self._date(listed, place)
            found = choose(captures, resource, at[rows], rule)
            is_listed = outcomes_of(listed.status) < Outcome.GONE
            away = missing_resources(captures, is_listed, resource, at[rows], rule, found, better=survey).tolist()
            columns = rows.tolist(), found.place.tolist(), found.state.tolist(), away
            for row, place, state, is_away in zip(*columns, strict=True):
                if is_away:
                    answers[row] = CoherenceState.NOT_KNOWN, None
                elif place != NO_CAPTURE:
                    answers[row] = CoherenceState(state), listed.take(np.array([place]))
        return answers

    def _captures(self, listed: CaptureColumns, pages: IntArray, *, survey: bool) -> ResourceCaptures:
        """Captures as columns for the assessment; no Last-Modified is known yet.

        In a ``survey``, bytes stand for all captures with their digest: an import fetches them once.
        """
        outcome, version = outcomes_of(listed.status), versions_of(listed.digest)
        gone = outcome == Outcome.GONE
        has_bytes = np.array([bool(file) and self._has(file) for file in listed.warc_file], np.bool_)
        has_bytes &= (listed.warc_offset >= 0) & ~gone
        repeats = np.array([mime == REVISIT for mime in listed.mime], np.bool_)
        held = {
            (page, digest)
            for page, digest, there in zip(listed.page.tolist(), listed.digest, has_bytes & ~repeats, strict=True)
            if there and digest
        }
        again = np.array([key in held for key in zip(listed.page.tolist(), listed.digest, strict=True)], np.bool_)
        again &= outcome < Outcome.GONE
        return ResourceCaptures(
            offsets_of(np.searchsorted(pages, listed.page), len(pages)),
            listed.time,
            np.where(gone, GONE, version),
            methods_of(listed.digest),
            np.where(repeats, again, has_bytes | again if survey else has_bytes),
            np.full(len(listed), np.nan),
        )

    def _date(self, listed: CaptureColumns, row: int) -> float:
        """The Last-Modified of a capture, seconds since the epoch; NaN if it has none."""
        place = listed.warc_file[row], int(listed.warc_offset[row])
        if place not in self._dates:
            head = self.read(*place, max_body=_HEAD) if place[0] and place[1] >= 0 else None
            said = None if head is None else from_http_date(head.header("last-modified"))
            _remember(self._dates, place, math.nan if said is None else said)
        return self._dates[place]

    def _page(self, named: Address) -> int:
        """The id of a page; -1 if it is unknown."""
        if named.key not in self._pages:
            found = self.store.find(named.url)
            _remember(self._pages, named.key, -1 if found is None else found.id)
        return self._pages[named.key]

    def _has(self, file: str) -> bool:
        if file not in self._files:
            _remember(self._files, file, self.has(file))
        return self._files[file]

    def _embedded(self, file: str, offset: int, *, sheet: bool) -> EmbeddedResources | None:
        """The requisites of the page or style sheet at this place; ``None`` if it cannot be read."""
        place = file, offset, sheet
        if place not in self._embeds:
            capture = self.read(file, offset, max_body=_WHOLE) if file and offset >= 0 else None
            found = None if capture is None else embeds_apart(capture, self.pool, sheet=sheet)
            _remember(self._embeds, place, found, _LISTS_REMEMBERED)
        return self._embeds[place]


def _new_parts(
    told: Iterable[tuple[int, EmbeddedResources]], depth: int, known: list[set[str]], cut: list[bool], most: int
) -> list[_ResourceLookup]:
    """The resources of these pages that they do not have yet; notes which pages have too many."""
    parts: list[_ResourceLookup] = []
    for row, found in told:
        cut[row] |= found.cut
        for embed in found.embeds:
            key = embed.alternatives[0].key
            if key in known[row]:
                continue
            if len(known[row]) >= most:
                cut[row] = True
                break
            known[row].add(key)
            parts.append(_ResourceLookup(row, embed, depth))
    return parts


def _importance(parts: Sequence[_ResourceLookup]) -> FloatArray:
    """What each resource is worth, in all places where it is shown."""
    if not parts:
        return np.empty(0)
    counts = np.array([len(part.embed.sizes) for part in parts])
    sizes = np.array([size for part in parts for size in part.embed.sizes], np.float64)
    kind = np.repeat(np.array([part.embed.kind for part in parts]), counts)
    applies = np.repeat(np.array([part.embed.applies for part in parts], np.float64), counts)
    worth = importance(kind, sizes[:, 0], sizes[:, 1], applies)
    starts = np.concatenate([[0], np.cumsum(counts)[:-1]])
    summed = np.add.reduceat(worth, starts)
    # A style sheet or a script that is named twice is loaded once.
    once = np.isin([part.embed.kind for part in parts], (EmbedKind.STYLESHEET, EmbedKind.SCRIPT))
    return np.where(once, worth[starts], summed)


def _remember(where: dict[K, V], key: K, value: V, most: int = _REMEMBERED) -> None:
    """Store a value; if there are too many, drop all."""
    if len(where) >= most:
        where.clear()
    where[key] = value


MOST_PAGES = 2_000
"""Default number of captured pages that are assessed."""
MOST_OF_A_PAGE = 50
"""Captures of one page that are assessed, of a large archive."""
_JUDGED_AT_ONCE = 200
_ROOTS_AT_ONCE = 500
_HTML = frozenset({"text/html", "application/xhtml+xml"})
_SPREADS = np.uint64(0x9E3779B97F4A7C15)
"""An odd number whose products spread ids evenly (Knuth, TAOCP 6.4)."""


@dataclass(frozen=True, slots=True)
class CompositeFindings:
    """The findings about captured pages with their requisites."""

    found: Composites
    urls: list[str]
    """Of each row."""
    unread: int
    """Captured pages that could not be read."""
    whole: bool
    """Whether all captured pages were assessed; else a sample."""

    def summary(self) -> CompositeSummary:
        """All of them together."""
        return summary_of(self.found)


def composites_of(
    store: Store,
    pages: IntArray,
    archived: ArchivedBytes,
    most: int = MOST_PAGES,
    *,
    limits: ParseLimits | None = None,
) -> CompositeFindings | None:
    """Assess about ``most`` captures of these pages with their requisites; ``None`` if none can be read."""
    if most <= 0:
        return None
    chosen = captured_pages(store, pages, most, archived.has)
    # Copies of one content are read once if they come together.
    roots = sorted(chosen.roots, key=lambda root: (root.file, root.offset, root.time))
    parts: list[Composites] = []
    with new_parse_pool(limits or ParseLimits(), ChangeCriteria()) as pool:
        reader = CompositeReader(store, archived.read, archived.has, pool)
        parts = [reader.judge(roots[at : at + _JUDGED_AT_ONCE]) for at in range(0, len(roots), _JUDGED_AT_ONCE)]
    if not any(len(part) for part in parts):
        return None
    found = Composites.joined(parts)
    url_of = {root.page: root.url for root in roots}
    urls = [url_of[page] for page in found.page.tolist()]
    whole = chosen.looked_through == len(pages) and len(roots) == chosen.captures
    return CompositeFindings(found, urls, len(roots) - len(found), whole)


def composite_facts(composed: CompositeFindings | None) -> dict[str, Any] | None:
    """As plain values; ``None`` if nothing is known."""
    if composed is None:
        return None
    return {**summary_json(composed.summary()), "sample": not composed.whole, "unread": composed.unread}


@dataclass(frozen=True, slots=True)
class ChosenPages:
    """Captured pages that are assessed for all."""

    roots: list[CapturedPage]
    captures: int
    """Captures of HTML pages among the pages that were searched."""
    looked_through: int
    """Pages that were searched, of all requested."""


def captured_pages(store: CaptureIndex, pages: IntArray, most: int, has: Callable[[str], bool]) -> ChosenPages:
    """Captures of these pages that are HTML and have bytes: all of them, or about ``most``.

    Of many, pages are taken in a fixed random order, each with up to :data:`MOST_OF_A_PAGE` of its captures, evenly
    spread. O(captures of the searched pages).
    """
    mixed = (pages.astype(np.uint64) * _SPREADS) >> np.uint64(32)
    order = pages[np.argsort(mixed, kind="stable")]
    files: dict[str, bool] = {}

    def is_available(file: str) -> bool:
        if file not in files:
            files[file] = has(file)
        return files[file]

    roots: list[CapturedPage] = []
    captures = looked_through = 0
    for some in chunks_of(store, order, _ROOTS_AT_ONCE, _ROOTS_AT_ONCE):
        if len(roots) >= most:
            break
        looked_through += len(some)
        ids = np.sort(some)
        url_of = dict(zip(ids.tolist(), store.urls(ids), strict=True))
        listed = store.capture_columns(ids)
        places = _places_of_html(listed, is_available)
        captures += len(places)
        by_page: dict[int, list[CapturedPage]] = {}
        for row, (file, offset) in places.items():
            page = int(listed.page[row])
            root = CapturedPage(page, url_of[page], float(listed.time[row]), file, offset)
            by_page.setdefault(page, []).append(root)
        for of_page in by_page.values():
            step = max(1, math.ceil(len(of_page) / MOST_OF_A_PAGE))
            roots += of_page[::step]
    return ChosenPages(roots, captures, looked_through)


def _places_of_html(listed: CaptureColumns, is_available: Callable[[str], bool]) -> dict[int, tuple[str, int]]:
    """Rows of captures that show an HTML page, and where its bytes lie."""
    outcome = outcomes_of(listed.status)
    held: dict[tuple[int, bytes], tuple[str, int]] = {}
    found: dict[int, tuple[str, int]] = {}
    for row, (mime, file) in enumerate(zip(listed.mime, listed.warc_file, strict=True)):
        if (
            mime in _HTML
            and outcome[row] == Outcome.FETCHED
            and file
            and listed.warc_offset[row] >= 0
            and is_available(file)
        ):
            found[row] = file, int(listed.warc_offset[row])
            held[int(listed.page[row]), listed.digest[row]] = found[row]
    for row, mime in enumerate(listed.mime):
        place = held.get((int(listed.page[row]), listed.digest[row]))
        # A revisit record, or a capture that was not fetched from its archive since these bytes are the same.
        repeats = mime == REVISIT or (mime in _HTML and row not in found)
        if repeats and place is not None and listed.digest[row] and outcome[row] < Outcome.REDIRECTED:
            found[row] = place
    return dict(sorted(found.items()))
