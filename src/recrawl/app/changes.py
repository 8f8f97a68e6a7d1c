"""What changed on the pages of a workspace: events from visits, each with one sentence, for people and feed readers.

An event is a visit that says something new about its page: its content changed, it was seen for the first time, it
went away or came back, it redirects elsewhere, or it began to fail and still does. Events are selected in columns; only
those that are shown have their versions read and compared.
"""

from __future__ import annotations

import enum
import math
import uuid
from dataclasses import dataclass
from fnmatch import fnmatchcase
from typing import TYPE_CHECKING

import numpy as np

from recrawl.model import ChangeKind, IntArray, Outcome, Verdict, Visits
from recrawl.time import to_iso

if TYPE_CHECKING:
    from recrawl.app.workspace.workspace import Workspace
    from recrawl.formats.warc.archived_bytes import ArchivedBytes
    from recrawl.parse.parse_pool import ParsePool
    from recrawl.store.base import Store


class ChangeEvent(enum.StrEnum):
    """What happened to a page."""

    CHANGED = "changed"
    ADDED = "added"
    """Seen for the first time."""
    GONE = "gone"
    BACK = "back"
    MOVED = "moved"
    """It redirects, and did not, or to another address than before."""
    FAILING = "failing"
    """Its visits fail since then; the last one before succeeded."""


EVENTS = tuple(ChangeEvent)
KINDS = {
    "text": ChangeKind.TEXT,
    "links": ChangeKind.LINKS,
    "new-links": ChangeKind.NEW_LINKS,
    "data": ChangeKind.DATA,
    "type": ChangeKind.TYPE,
    "existence": ChangeKind.EXISTENCE,
    "publications": ChangeKind.NEW_PUBLICATIONS,
}
"""Kinds of change that can be asked for, by name."""


@dataclass(frozen=True, slots=True)
class ChangesQuestion:
    """Which changes."""

    since: float = -math.inf
    """Visits from this time on, seconds since the epoch."""
    until: float = math.inf
    host: int | None = None
    events: frozenset[ChangeEvent] = frozenset(EVENTS)
    kinds: ChangeKind = ChangeKind.NONE
    """Of changes only those of one of these kinds; all if ``NONE``."""
    min_change: float = 0.0
    """Of changes only those at least so large, from 0 to 1. Changes that were not measured are shown."""
    match: str = ""
    """Only URLs with this text, or that match it as a pattern with * and ?."""
    limit: int = 50
    """Latest events, at most."""


@dataclass(frozen=True, slots=True)
class PageChange:
    """One event."""

    page: int
    url: str
    event: ChangeEvent
    time: float
    """Of the visit that found it, seconds since the epoch."""
    previous: float
    """Of the last answered visit before: the event happened in between. NaN if there was none."""
    status: int
    kinds: tuple[str, ...]
    magnitude: float
    """Share of the page that changed; NaN if it was not measured."""
    summary: str
    """One sentence."""
    links_added: tuple[str, ...] = ()
    links_removed: tuple[str, ...] = ()

    @property
    def id(self) -> str:
        """Stable and unique in a workspace: page and time to the microsecond."""
        return _change_id(self.page, self.time)

    def facts(self) -> dict[str, object]:
        """JSON values."""
        return {
            "id": self.id,
            "url": self.url,
            "page": self.page,
            "event": self.event.value,
            "time": self.time,
            "previous": self.previous,
            "status": self.status,
            "kinds": list(self.kinds),
            "magnitude": self.magnitude,
            "summary": self.summary,
            "links_added": list(self.links_added),
            "links_removed": list(self.links_removed),
        }


@dataclass(frozen=True, slots=True)
class FoundChanges:
    """The latest events that were asked for, latest first, and how many there are in all."""

    changes: tuple[PageChange, ...]
    total: int


_MOST_KNOWN = 2_000


def _change_id(page: int, time: float) -> str:
    return f"{page}-{round(time * 1e6)}"


def find_changes(
    place: Workspace,
    store: Store,
    question: ChangesQuestion,
    pool: ParsePool | None = None,
    known: dict[str, PageChange] | None = None,
) -> FoundChanges:
    """The latest events. O(visits of the period) in columns, and a comparison of two versions for each event shown.

    Versions are compared in the pool, if there is one: one page can then cost only its own summary. ``known`` keeps
    descriptions for later calls, ``_MOST_KNOWN`` at most.
    """
    from recrawl.formats.warc.archived_bytes import ArchivedBytes as Archived

    visits = store.visits(since=question.since, until=question.until, host=question.host)
    rows, events = _events(store, visits, question)
    if question.match and len(rows):
        pages, of_page = np.unique(visits.page[rows], return_inverse=True)
        pattern = question.match if set(question.match) & set("*?[") else f"*{question.match}*"
        fits = np.array([fnmatchcase(url, pattern) for url in store.urls(pages)], bool)[of_page]
        rows, events = rows[fits], events[fits]
    latest = np.lexsort((visits.page[rows], -visits.time[rows]))[: question.limit]
    found = visits.take(rows[latest])
    previous = _previous_answers(store, found)
    archived = Archived.of(place.archive, store)
    urls = store.urls(found.page)
    described = []
    for row, code in enumerate(events[latest].tolist()):
        event, key = EVENTS[code], _change_id(int(found.page[row]), float(found.time[row]))
        change = known.get(key) if known is not None else None
        if change is None or change.event is not event:
            change = _described(place, store, archived, found, row, urls[row], event, previous[row], pool)
            if known is not None:
                known[key] = change
                while len(known) > _MOST_KNOWN:
                    known.pop(next(iter(known)), None)
        described.append(change)
    return FoundChanges(tuple(described), len(rows))


def _events(store: Store, visits: Visits, question: ChangesQuestion) -> tuple[IntArray, IntArray]:
    """The rows of visits (by page and time) that are events, and for each its place in ``EVENTS``."""
    answered, outcome = visits.answered(), visits.outcome
    changed = answered & (visits.verdict == Verdict.CHANGED)
    gone = outcome == Outcome.GONE
    code = np.full(len(visits), EVENTS.index(ChangeEvent.CHANGED), np.int64)
    code[changed & (outcome == Outcome.REDIRECTED)] = EVENTS.index(ChangeEvent.MOVED)
    code[changed & ~gone & ((visits.kinds & ChangeKind.EXISTENCE) > 0)] = EVENTS.index(ChangeEvent.BACK)
    code[gone] = EVENTS.index(ChangeEvent.GONE)
    event = changed.copy()
    is_content = changed & (code == EVENTS.index(ChangeEvent.CHANGED))
    if question.kinds:
        event &= ~is_content | ((visits.kinds & question.kinds) > 0)
    if question.min_change > 0:
        event &= ~is_content | (visits.magnitude < 0) | (visits.magnitude >= question.min_change)
    for also, rows in (
        (ChangeEvent.ADDED, _first_answers(store, visits, question.since)),
        (ChangeEvent.FAILING, _first_failures(store, visits, question.since)),
    ):
        if also in question.events:
            event[rows], code[rows] = True, EVENTS.index(also)
    wanted = np.array([one in question.events for one in EVENTS])
    rows = np.flatnonzero(event & wanted[code])
    resources = store.resources(np.unique(visits.page[rows]))
    rows = np.asarray(rows[~np.isin(visits.page[rows], resources)], np.int64)
    return rows, code[rows]


def _first_answers(store: Store, visits: Visits, since: float) -> IntArray:
    """Visits of the period that first brought their page."""
    rows = np.flatnonzero(visits.answered())
    pages, first = np.unique(visits.page[rows], return_index=True)
    rows = rows[first]
    new = (visits.verdict[rows] == Verdict.UNKNOWN) & (visits.outcome[rows] != Outcome.GONE)
    pages, rows = pages[new], rows[new]
    rows = np.asarray(rows, np.int64)
    if not math.isfinite(since) or not len(pages):
        return rows
    # A page that was discovered in the period was not visited before it.
    older = pages[store.pages(pages).discovered < since]
    if len(older):
        earlier = store.visits(pages=older, until=math.nextafter(since, -math.inf))
        rows = np.asarray(rows[~np.isin(pages, earlier.page[earlier.answered()])], np.int64)
    return rows


def _first_failures(store: Store, visits: Visits, since: float) -> IntArray:
    """The first of the failed visits with which the period ends for a page whose visit before succeeded."""
    if not len(visits):
        return np.empty(0, np.int64)
    last = np.append(visits.page[1:] != visits.page[:-1], True)
    begin = np.flatnonzero(np.append(True, visits.page[1:] != visits.page[:-1]))
    answered_at = np.where(visits.answered(), np.arange(len(visits)), -1)
    last_answer = np.maximum.reduceat(answered_at, begin)  # by page
    fails = last_answer < np.flatnonzero(last)
    start = np.maximum(last_answer + 1, begin)
    answered_before = last_answer >= 0
    unknown = fails & ~answered_before
    if unknown.any() and math.isfinite(since):
        pages = visits.page[begin[unknown]]
        earlier = store.visits(pages=pages, until=math.nextafter(since, -math.inf))
        ends = np.append(earlier.page[1:] != earlier.page[:-1], True) if len(earlier) else np.empty(0, bool)
        answered_before[unknown] = np.isin(pages, earlier.page[ends & earlier.answered()])
    return np.asarray(start[fails & answered_before], np.int64)


def _previous_answers(store: Store, found: Visits) -> list[float]:
    """When the page of each of these visits was last seen before; NaN if never."""
    if not len(found):
        return []
    history = store.visits(pages=np.unique(found.page), until=float(found.time.max()))
    history = history.take(history.answered())
    times = []
    for page, time in zip(found.page.tolist(), found.time.tolist(), strict=True):
        low, high = np.searchsorted(history.page, [page, page + 1])
        at = int(np.searchsorted(history.time[low:high], time))
        times.append(float(history.time[low + at - 1]) if at else math.nan)
    return times


def _described(  # noqa: PLR0913, PLR0917 - what is known of one event
    place: Workspace,
    store: Store,
    archived: ArchivedBytes,
    found: Visits,
    row: int,
    url: str,
    event: ChangeEvent,
    previous: float,
    pool: ParsePool | None,
) -> PageChange:
    from recrawl.app.status import failure_words, in_words
    from recrawl.app.visit_explanation import VisitStory, compared, story_of
    from recrawl.detect.explanation import Explanation, summary
    from recrawl.model import Page
    from recrawl.parse.parse_pool import OverBudgetError
    from recrawl.time import format_duration

    page, time, status = int(found.page[row]), float(found.time[row]), int(found.status[row])
    magnitude, size = float(found.magnitude[row]), int(found.size[row])
    kinds = ChangeKind(int(found.kinds[row]))
    named = tuple(name for name, kind in KINDS.items() if kind & kinds)
    story: VisitStory | None = None
    told: Explanation | None = None
    why = "the archive does not hold both versions"
    if event in {ChangeEvent.CHANGED, ChangeEvent.BACK, ChangeEvent.MOVED}:
        [host] = store.pages(np.array([page])).host.tolist()
        story = story_of(store, archived, Page(page, host, url, ""), time, changed=False)
        try:
            told = compared(story, place.configuration.settings.detect.standards(), pool)
        except OverBudgetError as error:
            why = f"the versions were not compared: {error}"
    match event:
        case ChangeEvent.ADDED:
            said = f"First visit: {f'{size:,} bytes' if size else in_words(Outcome(int(found.outcome[row])))}."
        case ChangeEvent.GONE:
            said = f"The page is gone: the server answers {status}." if status else "The page is gone."
        case ChangeEvent.FAILING:
            said = f"Its visits fail since then: {failure_words(status)}."
        case ChangeEvent.MOVED:
            target = "" if story is None or story.after is None else story.after.header("location")
            said = f"It redirects to {_printable(target)}." if target else "It redirects to another address."
        case ChangeEvent.BACK:
            said = "The page is back."
            if not math.isnan(previous):
                said = f"The page is back, {format_duration(time - previous)} after a visit that did not find it."
        case ChangeEvent.CHANGED:
            said = f"Changed in {', '.join(named) or 'content'}; {why}." if told is None else summary(told)
    return PageChange(
        page,
        url,
        event,
        time,
        previous,
        status,
        named,
        magnitude if magnitude >= 0 else math.nan,
        said,
        () if told is None else told.links_added,
        () if told is None else told.links_removed,
    )


def _printable(text: str) -> str:
    clean = "".join(letter for letter in text if letter.isprintable())
    return clean if len(clean) <= _LONGEST_TARGET else clean[: _LONGEST_TARGET - 1] + "…"


_LONGEST_TARGET = 200


@dataclass(frozen=True, slots=True)
class FeedFrame:
    """What a feed of changes says of itself."""

    title: str
    id: str
    """A URI that names the feed for ever."""
    home: str = ""
    """Base address of the dashboard, for links to differences; empty if there is none: entries link to the pages."""
    feed: str = ""
    """Address of the feed itself, if it has one."""
    updated: float = 0.0
    """Of a feed without entries, seconds since the epoch."""


def feed_id(store: Store) -> str:
    """A URI for the feeds of a store. It follows from its first page, so a copy or a backup has the same."""
    pages = store.pages(np.array([_FIRST_PAGE]))
    first = f"{store.urls(pages.id)[0]} {pages.discovered[0]!r}" if len(pages) else ""
    return uuid.uuid5(uuid.NAMESPACE_URL, f"recrawl {first}").urn


_FIRST_PAGE = 1


def difference_path(change: PageChange) -> str:
    """Where the dashboard shows both versions side by side."""
    return f"/pages/{change.page}/visit?at={change.time!r}"


def as_atom(found: FoundChanges, frame: FeedFrame) -> bytes:
    """The changes as an Atom feed (RFC 4287). Ids stay the same whenever it is made."""
    from xml.etree.ElementTree import Element, SubElement, tostring

    feed = Element("feed", {"xmlns": "http://www.w3.org/2005/Atom"})

    def add(parent: Element, name: str, text: str = "", **attributes: str) -> None:
        SubElement(parent, name, attributes).text = _xml_text(text) or None

    updated = max((one.time for one in found.changes), default=frame.updated)
    add(feed, "id", frame.id)
    add(feed, "title", frame.title)
    add(feed, "updated", to_iso(updated))
    add(feed, "generator", "recrawl", uri="https://pypi.org/project/recrawl/")
    author = SubElement(feed, "author")
    add(author, "name", "recrawl")
    if frame.feed:
        add(feed, "link", rel="self", type="application/atom+xml", href=frame.feed)
    if frame.home:
        add(feed, "link", rel="alternate", type="text/html", href=f"{frame.home}/changes")
    for one in found.changes:
        entry = SubElement(feed, "entry")
        add(entry, "id", f"{frame.id}/{one.id}")
        add(entry, "title", f"{one.event.value}: {one.url}")
        add(entry, "updated", to_iso(one.time))
        add(entry, "link", rel="alternate", href=_xml_text(_entry_link(one, frame)))
        add(entry, "category", term=one.event.value)
        add(entry, "summary", one.summary)
    document: bytes = tostring(feed, encoding="utf-8", xml_declaration=True)
    return document


def as_json_feed(found: FoundChanges, frame: FeedFrame) -> dict[str, object]:
    """The changes as a JSON Feed (version 1.1)."""
    feed: dict[str, object] = {
        "version": "https://jsonfeed.org/version/1.1",
        "title": frame.title,
        **({"home_page_url": f"{frame.home}/changes"} if frame.home else {}),
        **({"feed_url": frame.feed} if frame.feed else {}),
    }
    items = [
        {
            "id": f"{frame.id}/{one.id}",
            "url": _entry_link(one, frame),
            "external_url": one.url,
            "title": f"{one.event.value}: {one.url}",
            "content_text": one.summary,
            "date_published": to_iso(one.time),
            "tags": [one.event.value, *one.kinds],
        }
        for one in found.changes
    ]
    return {**feed, "items": items}


def as_markdown(found: FoundChanges) -> str:
    """A list in Markdown, latest first; texts of pages stay text."""
    lines = [
        f"- {to_iso(one.time)} **{one.event.value}** {_markdown_text(one.url)}: {_markdown_text(one.summary)}"
        for one in found.changes
    ]
    return "".join(f"{line}\n" for line in lines)


def _entry_link(one: PageChange, frame: FeedFrame) -> str:
    return f"{frame.home}{difference_path(one)}" if frame.home else one.url


def _xml_text(text: str) -> str:
    """The characters that XML 1.0 can hold."""
    return "".join(letter for letter in text if letter in "\t\n\r" or (letter >= " " and letter not in "\ufffe\uffff"))


def _markdown_text(text: str) -> str:
    return "".join(f"\\{letter}" if letter in "\\`*_{}[]<>#|!~" else letter for letter in text)
