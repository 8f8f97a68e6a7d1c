"""Memento (RFC 7089, conventions M1 and M2): TimeGate, TimeMaps, mementos, and how sharp each response is.

The module finds the capture nearest to a requested time and its neighbours, and reads its bytes. It builds the ``Link``
header, which leads to the resource at other times, and reports the sharpness of the response as headers and as JSON.
"""

from __future__ import annotations

import math
from bisect import bisect_left, bisect_right
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from recrawl.assess.composite_coherence import STATE_WORDS, ChoiceRule, CoherenceState
from recrawl.assess.observations import Observations
from recrawl.assess.replay_selection import (
    FEW_OBSERVATIONS,
    CopySpread,
    Sharpness,
    observations_of_one,
    sharpness,
    sharpness_of_one,
    spread,
)
from recrawl.formats.timemap import PAGE_SIZE, ArchiveUris, MapPage, TimeMap, TimeMapMemento, to_cdxj, to_json, to_link
from recrawl.model import Capture, Page
from recrawl.store.archived_copies import Kept, is_readable, some_of, walk
from recrawl.store.base import CaptureIndex, PageTable, Store
from recrawl.time import format_duration, to_http_date, to_iso, to_timestamp14
from recrawl.urls import address
from recrawl.web.replay.replay_port import (
    MementoRequest,
    RefusalError,
    ReplayPort,
    ShownComposite,
    accepted,
    coherence_header,
    coherence_words,
    moment_of,
    web_url,
)
from recrawl.web.replay.replay_response import (
    REDIRECTS,
    SAFETY,
    ArchivedResponse,
    ReplayLinks,
    archived,
    banner_of,
    original_headers,
    raw,
    to_look_at,
)

_FEW = 50
"""Captures of a page up to which all of them are read at once."""


@dataclass(frozen=True, slots=True)
class FoundCapture:
    """The capture that answers for a moment, and where it stands among the others. Times in seconds since the epoch."""

    kept: Kept
    first: float
    last: float
    before: float | None
    """The one before it, if there is one."""
    after: float | None


def page_of(store: PageTable, url: str) -> Page:
    """The page of a requested URL."""
    if address(url) is None:
        raise RefusalError(f"{url[:200]!r} is not a URL of a web page. Example: http://example.org/.")
    page = store.find(url)
    if page is None:
        raise RefusalError(f"{url[:200]} was never archived here.", 404)
    return page


def nearest(store: Store, url: str, at: float) -> FoundCapture:
    """The capture nearest to a time, of two the earlier; infinity for the last one. O(log n)."""
    series = CaptureSeries(store, page_of(store, url))
    return _placed(series, _nearest(series, at))


def placed(store: Store, kept: Kept) -> FoundCapture:
    """A capture, and where it stands among the others of its page."""
    return _placed(CaptureSeries(store, page_of(store, kept.url)), kept)


def _nearest(series: CaptureSeries, at: float) -> Kept:
    before = next(series.walk(at, backwards=True), None)
    after = next(series.walk(math.nextafter(at, math.inf)), None) if math.isfinite(at) else None
    sides = [side for side in (before, after) if side is not None]
    if not sides:
        raise RefusalError(f"{series.page.url} was never archived here.", 404)
    found = min(sides, key=lambda side: (abs(at - side.time) if math.isfinite(at) else 0, side.time))
    # An address names a second: of several captures in it, the first.
    return next(series.walk(math.floor(found.time)))


def named(store: Store, url: str, second: float) -> FoundCapture | None:
    """The capture that started in a second, as named by 14 digits; ``None`` if there is none."""
    series = CaptureSeries(store, page_of(store, url))
    kept = next(series.walk(second), None)
    return _placed(series, kept) if kept is not None and kept.time < second + 1.0 else None


def _placed(series: CaptureSeries, kept: Kept) -> FoundCapture:
    first, last = (next(series.walk(end, backwards=end > 0)) for end in (-math.inf, math.inf))
    second = math.floor(kept.time)  # neighbours are in other seconds: in this one they would have the same address
    before = next(series.walk(math.nextafter(second, -math.inf), backwards=True), None)
    after = next(series.walk(second + 1.0), None)
    return FoundCapture(kept, first.time, last.time, before.time if before else None, after.time if after else None)


class CaptureSeries:
    """The captures of one page by time, without failed fetches.

    If there are few, as for most pages, all are read at once: one query per neighbour costs more.
    """

    def __init__(self, store: Store, page: Page) -> None:
        self.page = page
        self._store = store
        some = store.captures_between(page.id, -math.inf, math.inf, _FEW + 1)
        self._all = some if len(some) <= _FEW else None
        self._times: list[float] = some.time.tolist()

    def walk(self, start: float, *, backwards: bool = False) -> Iterator[Kept]:
        """The captures from a time on, in one direction. The first costs one look-up at most."""
        if self._all is None:
            return walk(self._store, self.page, start, backwards=backwards)
        if backwards:
            return some_of(self._all, range(bisect_right(self._times, start) - 1, -1, -1), self.page.url)
        return some_of(self._all, range(bisect_left(self._times, start), len(self._times)), self.page.url)


MEDIA_TYPES = {"link": "application/link-format", "json": "application/json", "cdxj": "application/cdxj+ors"}
"""Of a TimeMap, by its form."""


@dataclass(frozen=True, slots=True)
class TimeMapPage:
    """A page of a TimeMap, as it is sent."""

    text: str
    media_type: str
    count: int
    """Captures of the whole map."""


class TimeMapQuery(NamedTuple):
    """The requested part of a TimeMap."""

    url: str
    form: str
    number: int = 1
    """The page, from 1."""
    size: int = PAGE_SIZE
    """Mementos in a page, at most."""


def time_map(store: CaptureIndex, uris: ArchiveUris, query: TimeMapQuery) -> TimeMapPage:
    """A page of the map of a URL. O(number · size)."""
    url, form, number, size = query
    if form not in MEDIA_TYPES:
        raise RefusalError(f"There is no TimeMap in the format {form[:40]!r}. Formats: link, json, cdxj.", 404)
    page = page_of(store, url)
    ends = store.capture_ends(page.id)
    if ends is None:
        raise RefusalError(f"{page.url} was never archived here.", 404)
    cuts, more = _cuts(store, page, number, size)
    if not 1 <= number <= len(cuts):
        raise RefusalError(f"The TimeMap of {page.url} has no page {number}.", 404)
    names = [_page_uri(uris, page.url, form, at) for at in range(1, len(cuts) + 1 + more)]
    links = [MapPage(names[at], cut[0], cut[-1]) for at, cut in enumerate(cuts)]
    around = links[max(number - 2, 0) : number - 1]
    if more:
        around.append(MapPage(names[-1], math.nextafter(cuts[-1][-1], math.inf), ends.last))
    mementos = tuple(
        TimeMapMemento(uris.memento(page.url, to_timestamp14(time)), page.url, time) for time in cuts[number - 1]
    )
    whole = TimeMap(
        mementos, original=page.url, timegate=uris.timegate(page.url), self_uri=names[number - 1], pages=tuple(around)
    )
    return TimeMapPage(_written(whole, uris, form), MEDIA_TYPES[form], ends.count)


def _cuts(store: CaptureIndex, page: Page, number: int, size: int) -> tuple[list[list[float]], bool]:
    """The times on the first pages of a TimeMap, each second once, up to the requested page; whether more follow."""
    cuts: list[list[float]] = []
    start = -math.inf
    while len(cuts) <= number:
        some = store.captures_between(page.id, start, math.inf, size)
        if not len(some):
            return cuts, False
        shown = some.time[some.status >= 0].tolist()
        times = [time for at, time in enumerate(shown) if at == 0 or math.floor(time) > math.floor(shown[at - 1])]
        if times:
            cuts.append(times)
        start = math.floor(float(some.time[-1])) + 1.0
    return cuts[:number], True


def _page_uri(uris: ArchiveUris, url: str, form: str, number: int) -> str:
    return uris.timemap(url if number == 1 else f"{number}/{url}", form)


def _written(timemap: TimeMap, uris: ArchiveUris, form: str) -> str:
    if form == "link":
        return "".join(to_link(timemap))
    others = uris.timemaps(timemap.original)
    if form == "json":
        return to_json(timemap, others)
    return "".join(to_cdxj(timemap, others))


if TYPE_CHECKING:
    from starlette.responses import Response


def link_header(uris: ArchiveUris, found: FoundCapture) -> str:
    """Original, TimeGate, TimeMaps, and the first, last, previous and next memento beside the one that is shown."""
    url = found.kept.url
    links = [
        f'<{url}>; rel="original"',
        f'<{uris.timegate(url)}>; rel="timegate"',
        f'<{uris.timemap(url, "link")}>; rel="timemap"; type="application/link-format"',
        f'<{uris.timemap(url, "json")}>; rel="timemap"; type="application/json"',
        f'<{uris.timemap(url, "cdxj")}>; rel="timemap"; type="application/cdxj+ors"',
    ]
    relations: dict[int, list[str]] = {}
    for name, time in (("first", found.first), ("last", found.last), ("prev", found.before), ("next", found.after)):
        if time is not None:
            relations.setdefault(math.floor(time), []).append(name)
    relations.setdefault(math.floor(found.kept.time), [])
    for second in sorted(relations):
        rel = " ".join([*relations[second], "memento"])
        links.append(f'<{uris.memento(url, to_timestamp14(second))}>; rel="{rel}"; datetime="{to_http_date(second)}"')
    return ", ".join(links)


MOST_PARTS = 300
"""Maximum number of page requisites of one page that are looked up."""


@dataclass(frozen=True, slots=True)
class EmbeddedParts:
    """The page requisites of a page, and the copies that would be shown."""

    asked: int
    """Page requisites of the page."""
    kept: tuple[Kept, ...]
    """Those that are archived: of each the copy that goes with the page best."""
    missing: tuple[str, ...]
    sharp: Sharpness
    spread: CopySpread
    """Of the page and its parts."""
    composite: ShownComposite
    """The states of the parts."""

    @property
    def states(self) -> list[CoherenceState]:
        """The state of each copy."""
        return [part.state for part in self.composite.parts if part.kept is not None]

    @property
    def together(self) -> bool:
        """Whether the complete page, with all requisites looked up and present, was provably valid at one instant."""
        return self.spread.together and len(self.kept) == self.asked


def sharpness_of(
    archive: ReplayPort, store: Store, kept: Sequence[Kept], at: float, *, first_readable: bool | None = None
) -> Sharpness:
    """The sharpness of these copies for a time. O(visits of their pages).

    ``first_readable`` says whether the bytes of the first can be read, if known; the others are checked.
    """
    known = [] if first_readable is None else [first_readable]
    readable = [*known, *(is_readable(archive.bytes_.head, store, one) for one in kept[len(known) :])]
    page, time = np.array([one.page for one in kept], np.int64), np.array([one.time for one in kept])
    visits = store.observations(np.unique(page))
    if len(kept) == 1 and len(visits) <= FEW_OBSERVATIONS:
        rates = archive.rates(store, visits)
        rate = float(rates[0]) if len(rates) else math.nan
        return sharpness_of_one(observations_of_one(visits), rate, kept[0].time, at, readable=readable[0])
    observations = Observations.from_visits(visits)
    return sharpness(observations, archive.rates(store, visits), page, time, at, readable=np.array(readable, np.bool_))


def parts_of(  # noqa: PLR0913, PLR0917 - the page, and how its parts are chosen
    archive: ReplayPort, store: Store, kept: Kept, capture: Capture, at: float, rule: ChoiceRule = ChoiceRule.COHERENT
) -> EmbeddedParts | None:
    """The parts of an HTML page that was read, and how far all lie apart; ``None`` if they cannot be read."""
    composite = archive.composer.page(store, kept, capture, rule, MOST_PARTS)
    if composite is None:
        return None
    found = tuple(part.kept for part in composite.parts if part.kept is not None)
    missing = tuple(part.url for part in composite.parts if part.state is CoherenceState.MISSING)
    sharp = sharpness_of(archive, store, [kept, *found], at, first_readable=True)
    return EmbeddedParts(composite.asked, found, missing, sharp, spread(sharp), composite)


def headers_of(sharp: Sharpness, parts: EmbeddedParts | None = None) -> dict[str, str]:
    """The answer's sharpness in headers; the first copy is the answer itself.

    >>> given = Sharpness(*(np.array([value]) for value in (10.0, 4.0, 2.0, 9.0, 0.5, True)))
    >>> headers_of(given)["X-Recrawl-Distance"], headers_of(given)["X-Recrawl-Expected-Changes"]
    ('-6', '0.5')
    """
    told = {
        "X-Recrawl-Asked": to_http_date(float(sharp.at[0])),
        "X-Recrawl-Distance": f"{math.trunc(sharp.away()[0])}",
        "X-Recrawl-Provably-Valid": "yes" if sharp.proved()[0] else "no",
        "X-Recrawl-Valid-From": to_http_date(float(sharp.first[0])),
        "X-Recrawl-Valid-Until": to_http_date(float(sharp.last[0])),
    }
    if math.isfinite(sharp.expected[0]):
        told["X-Recrawl-Expected-Changes"] = f"{sharp.expected[0]:.3g}"
    if parts is not None:
        told["X-Recrawl-Parts"] = f"{len(parts.kept)}/{parts.asked}"
        told["X-Recrawl-Parts-Spread"] = f"{math.trunc(parts.spread.seconds)}"
        told["X-Recrawl-Parts-Together"] = "yes" if parts.together else "no"
        told["X-Recrawl-Parts-Coherence"] = coherence_header(parts.composite)
        if parts.composite.damage is not None:
            told["X-Recrawl-Parts-Damage"] = f"{parts.composite.damage:.3f}"
    return told


def as_json(sharp: Sharpness, row: int = 0) -> dict[str, Any]:
    """The same for one copy as JSON values; unknown values are null."""
    expected = float(sharp.expected[row])
    return {
        "asked": to_iso(float(sharp.at[row])),
        "datetime": to_iso(float(sharp.time[row])),
        "distance_seconds": float(sharp.away()[row]),
        "expected_changes": expected if math.isfinite(expected) else None,
        "provably_valid": bool(sharp.proved()[row]),
        "valid_from": to_iso(float(sharp.first[row])),
        "valid_until": to_iso(float(sharp.last[row])),
    }


_DIGITS = 14
_BARE = ("id_", "if_")
"""Without a banner: the bytes themselves, and what stands in frames."""
_FOR_PEOPLE = ("", "mp_")
_UNSPREAD = ("js_", "cs_", "im_")
_EMBEDDED = ("if_", *_UNSPREAD)
"""What stands in a page: its time is that of the page, and the copy is chosen that goes with the page best."""
_STYLE_SHEET = "cs_"
_SERVER_ERROR = 500
"""From this status on an answer is no version of the resource."""


class Mementos:
    """Answers for one archive."""

    def __init__(self, archive: ReplayPort, replay: str = "") -> None:
        self._archive = archive
        self._replay = replay

    def gate(self, store: Store, uris: ArchiveUris, url: str, accept: str) -> Response:
        """Redirect to the memento nearest to the requested time; without a time, to the last."""
        at = accepted(accept) if accept else math.inf
        found = nearest(store, url, at)
        asked = _within(at, found.kept.time) if math.isfinite(at) else self._archive.clock()
        headers = {"Vary": "accept-datetime", "Link": link_header(uris, found)}
        headers |= headers_of(sharpness_of(self._archive, store, [found.kept], asked))
        return _redirect(uris.memento(found.kept.url, found.kept.timestamp), headers)

    def memento(self, store: Store, uris: ArchiveUris, asked: MementoRequest, accept: str) -> Response:
        """The capture that the URL names, or a redirect to the nearest one.

        Browsers get the nearest one directly: after a redirect the requested time would be lost, and the banner could
        not show the distance.
        """
        exact = named(store, asked.url, asked.second) if len(asked.digits) == _DIGITS else None
        found, coherence = self._answering(store, asked, exact)
        at = _within(accepted(accept) if accept and exact else asked.second, found.kept.time)
        place = uris.memento(found.kept.url, found.kept.timestamp + asked.modifier)
        # A style sheet or a redirect in a page is answered at once: what it leads to keeps the time of the page.
        leads_on = asked.modifier in _EMBEDDED and (asked.modifier == _STYLE_SHEET or found.kept.status in REDIRECTS)
        if not exact and not leads_on and asked.modifier not in _FOR_PEOPLE:
            sharp = sharpness_of(self._archive, store, [found.kept], at)
            return _redirect(place, {"Link": link_header(uris, found)} | headers_of(sharp) | coherence)
        there = archived(self._archive, store, found.kept)
        page = self._archive.bytes_.page(there.capture) if asked.modifier not in _UNSPREAD else None
        parts = None if page is None else parts_of(self._archive, store, found.kept, there.capture, at)
        if parts is None:
            sharp = sharpness_of(self._archive, store, [found.kept], at, first_readable=True)
        else:
            sharp = parts.sharp
        headers = [
            ("Memento-Datetime", to_http_date(found.kept.time)),
            ("Link", link_header(uris, found)),
            *([] if exact else [("Content-Location", place)]),
            *original_headers(there, uris, (asked.digits if leads_on else found.kept.timestamp) + asked.modifier),
            *headers_of(sharp, parts).items(),
            *coherence.items(),
            *SAFETY.items(),
        ]
        if page is not None and asked.modifier != "id_":
            banner = "" if asked.modifier in _BARE else self._banner(uris, found, there, parts)
            inside = ReplayLinks(uris, found.kept.timestamp, self._archive.bytes_.rewrite_css)
            return _rewritten(to_look_at(page, found.kept.url, inside, banner), "text/html", there.status, headers)
        sheet = self._archive.composer.style_sheet(there.capture) if asked.modifier == _STYLE_SHEET else None
        if sheet is not None:
            inside = ReplayLinks(uris, asked.digits, self._archive.bytes_.rewrite_css)
            return _rewritten(inside.style_sheet(sheet, found.kept.url), "text/css", there.status, headers)
        return _response(raw(self._archive, there), there.status, headers)

    def _answering(
        self, store: Store, asked: MementoRequest, exact: FoundCapture | None
    ) -> tuple[FoundCapture, dict[str, str]]:
        """The capture that answers; of what is embedded also how it stands to the page of that time, as a header."""
        if asked.modifier not in _EMBEDDED or len(asked.digits) != _DIGITS:
            return exact or nearest(store, asked.url, asked.second), {}
        if exact is not None:
            return exact, {}
        chosen = self._archive.composer.part(store, asked.url, asked.second)
        if chosen is None:  # nothing with bytes: the metadata are returned as usual
            return nearest(store, asked.url, asked.second), {}
        kept, state = chosen
        return placed(store, kept), {"X-Recrawl-Coherence": STATE_WORDS[state]}

    def part(self, store: Store, url: str, second: float) -> Kept | None:
        """The capture of a resource that is shown in a page captured in a second; ``None`` if none can be shown."""
        if store.find(url) is None:
            return None
        exact = named(store, url, second)
        if exact is not None and exact.kept.status < _SERVER_ERROR:
            return exact.kept
        chosen = self._archive.composer.part(store, url, second)
        return None if chosen is None else chosen[0]

    def facts(self, store: Store, uris: ArchiveUris, url: str, at: str, rule: str = "") -> dict[str, Any]:
        """How sharp the answer for a moment would be, and that of each part of the page, chosen by a rule."""
        if not url:
            raise RefusalError("Give a url and optionally a time: /api/memento?url=http://example.org/&at=20240131.")
        if rule not in ("", *ChoiceRule):
            raise RefusalError(f"rule is {rule[:40]!r}; write {' or '.join(ChoiceRule)}.")
        chosen = ChoiceRule(rule or ChoiceRule.COHERENT)
        asked = moment_of(at) if at else self._archive.clock()
        found = nearest(store, web_url(url), asked)
        kept = found.kept
        asked = _within(asked, kept.time)
        told: dict[str, Any] = {"url": kept.url, "uri": uris.memento(kept.url, kept.timestamp), "status": kept.status}
        parts, readable = None, True
        try:
            there = archived(self._archive, store, kept)
            if self._archive.bytes_.page(there.capture) is not None:
                parts = parts_of(self._archive, store, kept, there.capture, asked, chosen)
        except RefusalError:
            readable = False
        if parts is None:
            sharp = sharpness_of(self._archive, store, [kept], asked, first_readable=readable)
            return told | as_json(sharp) | {"parts": None}
        return told | as_json(parts.sharp) | {"parts": _parts_json(parts, uris, chosen)}

    def _banner(
        self, uris: ArchiveUris, found: FoundCapture, there: ArchivedResponse, parts: EmbeddedParts | None
    ) -> str:
        kept = found.kept
        facts = {"": f"Archived {to_iso(kept.time)}"}
        if parts is not None:
            facts[""] += _how_far(parts.sharp)
            facts |= _in_words(parts)
        if there.capture.truncated:
            facts["Cut short"] = there.capture.truncated
        facts["Address"] = kept.url
        links = {}
        for name, time in (("earlier", found.before), ("later", found.after)):
            if time is not None:
                links[name] = uris.memento(kept.url, to_timestamp14(time))
        links["raw"] = uris.memento(kept.url, f"{kept.timestamp}id_")
        if self._replay:
            links["with scripts"] = f"{self._replay}{kept.timestamp}/{kept.url}"
        return banner_of(facts, links)


def _within(asked: float, time: float) -> float:
    """The time of a copy if the requested second is its own; else the requested time."""
    return time if asked <= time < asked + 1.0 else asked


def _how_far(sharp: Sharpness) -> str:
    """The distance of a copy from the requested time, and the expected changes; empty if it is of that time.

    >>> import numpy as np
    >>> given = Sharpness(*(np.array([value]) for value in (7210.0, 10.0, 10.0, 10.0, 0.25, True)))
    >>> _how_far(given)
    ' · 2 h before the requested time · about 0.25 changes between'
    """
    away, expected = float(sharp.away()[0]), float(sharp.expected[0])
    if abs(away) < 1.0:
        return ""
    told = f" · {format_duration(abs(away))} {'before' if away < 0 else 'after'} the requested time"
    if sharp.proved()[0]:
        return f"{told} · provably as it was"
    return told + (f" · about {expected:.2g} changes between" if math.isfinite(expected) else "")


def _in_words(parts: EmbeddedParts) -> dict[str, str]:
    """The sharpness of a page, for its banner."""
    first, last = (to_iso(float(side[0])) for side in (parts.sharp.first, parts.sharp.last))
    told = {"Known to be valid": first if first == last else f"{first} to {last}"}
    if parts.asked:
        spread = format_duration(parts.spread.seconds)
        told["Parts"] = f"{len(parts.kept)} of {parts.asked} archived, {spread} between the earliest and the latest"
        told["Valid together"] = "yes, provably" if parts.together else "not proved"
        told["Existed as shown"] = coherence_words(parts.composite)
        damage = parts.composite.damage
        told["Memento damage"] = "not known" if damage is None else f"{damage:.2f} of 1"
    return told


def _parts_json(parts: EmbeddedParts, uris: ArchiveUris, rule: ChoiceRule) -> dict[str, Any]:
    listed = [
        {
            "url": kept.url,
            "uri": uris.memento(kept.url, kept.timestamp),
            "coherence": STATE_WORDS[state],
            **as_json(parts.sharp, row),
        }
        for row, (kept, state) in enumerate(zip(parts.kept, parts.states, strict=True), start=1)
    ]
    return {
        "count": parts.asked,
        "archived": len(parts.kept),
        "missing": list(parts.missing),
        "earliest": to_iso(parts.spread.earliest),
        "latest": to_iso(parts.spread.latest),
        "spread_seconds": parts.spread.seconds,
        "provably_together": parts.together,
        "rule": rule.value,
        "coherence": {STATE_WORDS[state]: count for state, count in parts.composite.counts().items()},
        "existed_as_shown": coherence_words(parts.composite),
        "damage": parts.composite.damage,
        "list": listed,
    }


def _redirect(place: str, headers: dict[str, str]) -> Response:
    from starlette.responses import Response

    return Response(status_code=302, headers=headers | {"Location": place, "Cache-Control": "no-store"} | _SAFE)


_SAFE = {"X-Content-Type-Options": "nosniff"}


def _rewritten(text: str, media_type: str, status: int, headers: list[tuple[str, str]]) -> Response:
    """An answer whose body is ours, in the encoding that it is sent in."""
    kept = [(name, value) for name, value in headers if name.lower() not in ("content-type", "content-encoding")]
    return _response(text.encode("utf-8", "replace"), status, [*kept, ("Content-Type", f"{media_type}; charset=utf-8")])


def _response(body: bytes, status: int, headers: list[tuple[str, str]]) -> Response:
    """An answer with headers of which some come several times."""
    from starlette.responses import Response

    made = Response(body, status_code=status)
    made.raw_headers = [(b"content-length", str(len(body)).encode())]
    made.raw_headers += [
        (name.lower().encode("latin-1"), value.encode("latin-1", "replace")) for name, value in headers
    ]
    return made
