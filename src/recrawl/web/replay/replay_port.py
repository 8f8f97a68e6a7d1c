"""Requests to the replay server, and its port: what it needs from a workspace, given as plain functions.

URLs contain archived URLs, so they are parsed from the raw path. Times are digits in URLs and queries, and dates in
headers. A request may be invalid, not found, or not permitted.
"""

from __future__ import annotations

import calendar
import re
from collections.abc import Callable
from contextlib import AbstractContextManager
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import NamedTuple, Protocol
from urllib.parse import unquote

from recrawl.assess.composite_coherence import STATE_WORDS, ChoiceRule, CoherenceState
from recrawl.formats.dates import w3c_time
from recrawl.formats.timemap import ArchiveUris
from recrawl.formats.warc.archive_folder import ArchivePath
from recrawl.model import Capture, FloatArray, Visits
from recrawl.store.archived_copies import Kept
from recrawl.store.base import Store
from recrawl.time import from_http_date
from recrawl.urls import address


class RefusalError(Exception):
    """A request that is answered with a sentence and a status."""

    def __init__(self, sentence: str, status: int = 400) -> None:
        super().__init__(sentence)
        self.sentence = sentence
        self.status = status


_FULL = 14
_EARLIEST, _LATEST = "00010101000000", "99991231235959"
_HTTP_DATE = re.compile(r"(Mon|Tue|Wed|Thu|Fri|Sat|Sun), \d\d [A-Z][a-z]{2} \d{4} \d\d:\d\d:\d\d GMT")


def accepted(header: str) -> float:
    """The moment in ``Accept-Datetime``, which has one form only (conventions M1).

    >>> accepted("Thu, 31 May 2007 20:35:00 GMT")
    1180643700.0
    """
    text = header.strip()
    moment = from_http_date(text) if _HTTP_DATE.fullmatch(text) else None
    if moment is None:
        raise RefusalError(
            f"Accept-Datetime is {header[:80]!r}, which is not an HTTP date. Example: Thu, 31 May 2007 20:35:00 GMT"
        )
    return moment


def begin_of(digits: str) -> float:
    """The first instant of a time of 1 to 14 digits, ``yyyyMMddHHmmss`` or the beginning of it (conventions A1).

    >>> begin_of("2024") == begin_of("20240101000000")
    True
    """
    return _moment(_whole(digits, _EARLIEST))


def end_of(digits: str) -> float:
    """The last second of such a time. Months have the days that they have.

    >>> end_of("202402") == end_of("20240229235959")
    True
    """
    whole = _whole(digits, _LATEST)
    if len(digits) <= len("yyyyMM"):
        month = min(int(whole[4:6]), 12)
        whole = f"{whole[:4]}{month:02}{calendar.monthrange(max(int(whole[:4]), 1), max(month, 1))[1]:02}{whole[8:]}"
    return _moment(whole)


def moment_of(text: str) -> float:
    """A moment as people and programs write one: 1 to 14 digits, a date of HTTP, or one of ISO 8601.

    >>> moment_of("2024") == moment_of("2024-01-01") == moment_of("Mon, 01 Jan 2024 00:00:00 GMT")
    True
    """
    if text.isascii() and text.isdigit():
        return begin_of(text)
    found = w3c_time(text)
    if found is None:
        raise RefusalError(
            f"{text[:80]!r} is not a time. Give 1 to 14 digits such as 20240131, or 2024-01-31T12:00:00Z."
        )
    return found


def _whole(digits: str, pattern: str) -> str:
    if not (digits.isascii() and digits.isdigit() and 1 <= len(digits) <= _FULL):
        raise RefusalError(f"{digits[:80]!r} is not a time. Give 1 to 14 digits, yyyyMMddHHmmss or its first digits.")
    return digits + pattern[len(digits) :]


def _moment(whole: str) -> float:
    try:
        return datetime.strptime(whole, "%Y%m%d%H%M%S").replace(tzinfo=UTC).timestamp()
    except ValueError as error:
        raise RefusalError(f"{whole} is not a time: there is no such day or hour.") from error


MODIFIERS = ("", "id_", "mp_", "if_", "js_", "cs_", "im_")
"""How a memento is wanted (conventions M2): all but ``id_`` and ``if_`` are for people."""
_MEMENTO = re.compile(r"(\d{1,14})([a-z]{2}_)?/(.+)", re.DOTALL | re.ASCII)
_MAP = re.compile(r"timemap/([a-z]+)/(?:(\d{1,6})/)?(.+)", re.DOTALL | re.ASCII)
_ONE_SLASH = re.compile(r"(https?):/+", re.IGNORECASE)
_ENCODED = re.compile(r"https?%3A(%2F|/)", re.IGNORECASE)
_SCHEME = re.compile(r"[a-z][a-z0-9+.-]*:", re.IGNORECASE)


class MementoRequest(NamedTuple):
    """One capture."""

    second: float
    digits: str
    modifier: str
    url: str


class TimeMapRequest(NamedTuple):
    """A page of a TimeMap."""

    form: str
    number: int
    url: str


class TimeGateRequest(NamedTuple):
    """Whatever is nearest to the moment in the header."""

    url: str


def asked_for(rest: str) -> MementoRequest | TimeMapRequest | TimeGateRequest:
    """What stands behind the name of the collection, query and all.

    >>> asked_for("20240101000000id_/http:/example.org/?a=1")
    MementoRequest(second=1704067200.0, digits='20240101000000', modifier='id_', url='http://example.org/?a=1')
    >>> asked_for("timemap/link/2/example.org/"), asked_for("timegate/http://example.org/x")
    (TimeMapRequest(form='link', number=2, url='http://example.org/'), TimeGateRequest(url='http://example.org/x'))
    """
    if found := _MAP.fullmatch(rest):
        return TimeMapRequest(found[1], int(found[2] or 1), web_url(found[3]))
    if rest.startswith("timegate/"):
        return TimeGateRequest(web_url(rest.removeprefix("timegate/")))
    found = _MEMENTO.fullmatch(rest)
    if found and (found[2] or "/" in found[3] or "." in found[3]):
        modifier = found[2] or ""
        if modifier not in MODIFIERS:
            raise RefusalError(f"There is no {modifier} here; there are {', '.join(MODIFIERS[1:])}.", 404)
        return MementoRequest(begin_of(found[1]), found[1], modifier, web_url(found[3]))
    return TimeGateRequest(web_url(rest))


def web_url(text: str) -> str:
    """A URL as people, programs and proxies write it into a path: without scheme, with a slash too few, or encoded.

    >>> web_url("http%3A%2F%2Fexample.org%2Fa%3Fb%3D1"), web_url("example.org/a%2Fb")
    ('http://example.org/a?b=1', 'http://example.org/a%2Fb')
    """
    if _ENCODED.match(text):
        text = unquote(text)
    text = _ONE_SLASH.sub(r"\1://", text, count=1)
    if not _SCHEME.match(text) or re.match(r"[^/]*:\d", text):
        text = f"http://{text.lstrip('/')}"
    found = address(text)
    if found is None:
        raise RefusalError(f"{text[:200]!r} is not a URL of a web page. Example: http://example.org/.")
    return found.url


def uris_at(scheme: str, authority: str, collection: str) -> ArchiveUris:
    """The URLs of this archive as the client sees them."""
    if not re.fullmatch(r"[A-Za-z0-9.\-:\[\]_]{1,255}", authority):
        raise RefusalError("The Host header names no host.")
    return ArchiveUris.below(f"{scheme}://{authority}/{collection}/")


@dataclass(frozen=True, slots=True)
class ShownPart:
    """An embedded resource of a page."""

    url: str
    """As the page names it first."""
    state: CoherenceState
    """With respect to the capture of the page."""
    kept: Kept | None
    """The copy; ``None`` if there is none."""


@dataclass(frozen=True, slots=True)
class ShownComposite:
    """A page with its page requisites."""

    parts: tuple[ShownPart, ...]
    asked: int
    """The number of page requisites, as far as known; of very many not all are looked up."""
    whole: bool
    """Whether all were looked up."""
    damage: float | None
    """Memento damage, 0 to 1; ``None`` if the page has nothing to lose."""

    def counts(self) -> dict[CoherenceState, int]:
        """How many parts are in each state."""
        return {state: sum(part.state is state for part in self.parts) for state in CoherenceState}


class CompositeSelector(Protocol):
    """Finds what a page is shown with; given by who wires it."""

    def page(self, store: Store, kept: Kept, capture: Capture, rule: ChoiceRule, most: int) -> ShownComposite | None:
        """A page with a limited number of requisites; ``None`` if its markup cannot be read."""
        ...

    def part(self, store: Store, url: str, at: float) -> tuple[Kept, CoherenceState] | None:
        """The copy of one resource that goes best with a page captured at a time; ``None`` if there is none."""
        ...

    def style_sheet(self, capture: Capture) -> str | None:
        """The text of a style sheet; ``None`` if it is something else, or too long."""
        ...


def coherence_words(found: ShownComposite) -> str:
    """Whether the page existed as it is shown, for people."""
    counts = found.counts()
    said = ", ".join(f"{counts[state]} {STATE_WORDS[state]}" for state in CoherenceState if counts[state])
    if counts[CoherenceState.PRIMA_FACIE_VIOLATIVE]:
        return f"no, parts are from another time ({said})"
    if found.whole and found.parts and counts[CoherenceState.PRIMA_FACIE_COHERENT] == len(found.parts):
        return "yes, provably"
    return f"not proved ({said})" if said else "not proved"


def coherence_header(found: ShownComposite) -> str:
    """How many parts are in each state, for programs: ``5 prima facie coherent, 1 possibly coherent, …``."""
    return ", ".join(f"{count} {STATE_WORDS[state]}" for state, count in found.counts().items())


class ByteSource(Protocol):
    """Reads archived bytes, and what is in them."""

    def read(self, file: str, offset: int) -> Capture | None:
        """The record at an offset of an archive file; ``None`` if it cannot be had."""
        ...

    def head(self, file: str, offset: int) -> Capture | None:
        """The same with none of its body: whether it is there, and of which page and time."""
        ...

    def payload(self, capture: Capture) -> bytes:
        """The body without transfer-encoding, content-encoding untouched."""
        ...

    def page(self, capture: Capture) -> str | None:
        """The text of an HTML page; ``None`` if it is something else or cannot be decoded."""
        ...

    def rewrite_css(self, text: str, inside: Callable[[str, bool], str | None]) -> str:
        """A style sheet with rewritten URLs: ``inside`` receives each as written, and whether it imports a sheet."""
        ...


@dataclass(frozen=True, slots=True)
class IngestedLines:
    """The result of received index lines."""

    added: int
    bad: int
    """Lines that make no sense and were passed over."""


@dataclass(frozen=True, slots=True)
class IngestOptions:
    """How lines of an index are taken over."""

    skip_bad: bool = False
    """Pass over lines that make no sense; else one spoils all."""
    schedule: bool = False
    """Visit the pages they name from now on; else they are only known."""


@dataclass(frozen=True, slots=True)
class ReplayPort:
    """A workspace, as far as time travel is concerned."""

    name: str
    """Of the workspace, for people."""
    store: Callable[[], AbstractContextManager[Store]]
    """A store for the duration of a request."""
    bytes_: ByteSource
    rates: Callable[[Store, Visits], FloatArray]
    """Changes per second of each page observed in these visits, by ascending id; NaN where that is not known."""
    composer: CompositeSelector
    """Finds what a page is shown with."""
    clock: Callable[[], float]
    """Now, seconds since the epoch."""
    ingest: Callable[[bytes, IngestOptions], IngestedLines] | None = None
    """Take lines of CDX or CDXJ over. Raises ``InputError`` if a line is bad that is not to be passed over."""
    file: Callable[[str], ArchivePath | None] | None = None
    """An archive file of this workspace by name, for other workers; ``None`` if it has none of that name."""
    package: Callable[[], Path] | None = None
    """The whole archive as one WACZ file, made again after additions. ``InputError`` if it is empty."""
