"""TimeGate and mementos: which capture answers, its bytes, and how sharp the answer is (conventions M1 and M2)."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

from recrawl.assess.composite import STATE_WORDS, ChoiceRule
from recrawl.assess.sharpness import Sharpness
from recrawl.formats.timemap_write import ArchiveUris
from recrawl.show.timetravel.addresses import MementoAsked, web_url
from recrawl.show.timetravel.archive import Archive
from recrawl.show.timetravel.captures import Found, named, nearest, placed
from recrawl.show.timetravel.composite import coherence_words
from recrawl.show.timetravel.links import link_header
from recrawl.show.timetravel.moments import accepted, moment_of
from recrawl.show.timetravel.refusal import RefusalError
from recrawl.show.timetravel.replay import REDIRECTS, SAFETY, Archived, archived, original_headers, raw
from recrawl.show.timetravel.sharp import Parts, as_json, headers_of, parts_of, sharpness_of
from recrawl.show.timetravel.static_page import Inside, banner_of, to_look_at
from recrawl.store.base import Store
from recrawl.time import format_duration, to_http_date, to_iso, to_timestamp14

if TYPE_CHECKING:
    from starlette.responses import Response

_DIGITS = 14
_BARE = ("id_", "if_")
"""Without a banner: the bytes themselves, and what stands in frames."""
_FOR_PEOPLE = ("", "mp_")
_UNSPREAD = ("js_", "cs_", "im_")
_EMBEDDED = ("if_", *_UNSPREAD)
"""What stands in a page: its time is that of the page, and the copy is chosen that goes with the page best."""
_STYLE_SHEET = "cs_"


class Mementos:
    """Answers for one archive."""

    def __init__(self, archive: Archive, replay: str = "") -> None:
        self._archive = archive
        self._replay = replay

    def gate(self, store: Store, uris: ArchiveUris, url: str, accept: str) -> Response:
        """Redirect to the memento nearest to the moment asked for; without one, to the last."""
        at = accepted(accept) if accept else math.inf
        found = nearest(store, url, at)
        asked = _within(at, found.kept.time) if math.isfinite(at) else self._archive.clock()
        headers = {"Vary": "accept-datetime", "Link": link_header(uris, found)}
        headers |= headers_of(sharpness_of(self._archive, store, [found.kept], asked))
        return _redirect(uris.memento(found.kept.url, found.kept.timestamp), headers)

    def memento(self, store: Store, uris: ArchiveUris, asked: MementoAsked, accept: str) -> Response:
        """The capture that the address names, or the way to the nearest one.

        People get that one at once: behind a redirect nobody would know any more which time they asked for, and the
        banner could not tell how far the copy is from it.
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
            inside = Inside(uris, found.kept.timestamp, self._archive.bytes_.rewrite_css)
            return _rewritten(to_look_at(page, found.kept.url, inside, banner), "text/html", there.status, headers)
        sheet = self._archive.composer.style_sheet(there.capture) if asked.modifier == _STYLE_SHEET else None
        if sheet is not None:
            inside = Inside(uris, asked.digits, self._archive.bytes_.rewrite_css)
            return _rewritten(inside.style_sheet(sheet, found.kept.url), "text/css", there.status, headers)
        return _response(raw(self._archive, there), there.status, headers)

    def _answering(self, store: Store, asked: MementoAsked, exact: Found | None) -> tuple[Found, dict[str, str]]:
        """The capture that answers; of what is embedded also how it stands to the page of that time, as a header."""
        if asked.modifier not in _EMBEDDED or len(asked.digits) != _DIGITS:
            return exact or nearest(store, asked.url, asked.second), {}
        if exact is not None:
            return exact, {}
        chosen = self._archive.composer.part(store, asked.url, asked.second)
        if chosen is None:  # nothing with bytes: what is known of it is told as ever
            return nearest(store, asked.url, asked.second), {}
        kept, state = chosen
        return placed(store, kept), {"X-Recrawl-Coherence": STATE_WORDS[state]}

    def facts(self, store: Store, uris: ArchiveUris, url: str, at: str, rule: str = "") -> dict[str, Any]:
        """How sharp the answer for a moment would be, and that of each part of the page, chosen by a rule."""
        if not url:
            raise RefusalError("Give a url and, if you like, a time: /api/memento?url=http://example.org/&at=20240131.")
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

    def _banner(self, uris: ArchiveUris, found: Found, there: Archived, parts: Parts | None) -> str:
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
    """The time of a copy, if what is asked for is the second that it was made in; else what is asked for."""
    return time if asked <= time < asked + 1.0 else asked


def _how_far(sharp: Sharpness) -> str:
    """How far a page is from the time asked for, and what may lie between; nothing if it is of that very time.

    >>> import numpy as np
    >>> given = Sharpness(*(np.array([value]) for value in (7210.0, 10.0, 10.0, 10.0, 0.25, True)))
    >>> _how_far(given)
    ' · 2 h before the time asked for · about 0.25 changes between'
    """
    away, expected = float(sharp.away()[0]), float(sharp.expected[0])
    if abs(away) < 1.0:
        return ""
    told = f" · {format_duration(abs(away))} {'before' if away < 0 else 'after'} the time asked for"
    if sharp.proved()[0]:
        return f"{told} · provably as it was"
    return told + (f" · about {expected:.2g} changes between" if math.isfinite(expected) else "")


def _in_words(parts: Parts) -> dict[str, str]:
    """The sharpness of a page, for its banner."""
    first, last = (to_iso(float(side[0])) for side in (parts.sharp.first, parts.sharp.last))
    told = {"Known to be valid": first if first == last else f"{first} to {last}"}
    if parts.asked:
        spread = format_duration(parts.spread.seconds)
        told["Parts"] = f"{len(parts.kept)} of {parts.asked} archived, {spread} between the earliest and the latest"
        told["Valid together"] = "yes, provably" if parts.together else "not proved"
        told["Existed as shown"] = coherence_words(parts.composite)
        damage = parts.composite.damage
        told["Damage by what is missing"] = "not known" if damage is None else f"{damage:.2f} of 1"
    return told


def _parts_json(parts: Parts, uris: ArchiveUris, rule: ChoiceRule) -> dict[str, Any]:
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
