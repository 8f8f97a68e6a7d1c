"""Ask archives by Memento (RFC 7089): which captures they hold, which is nearest, and its bytes as captured.

What a TimeMap says is known to ``recrawl.formats``, so its reader is an argument; here maps are asked for, one by one.
Further maps are followed, unless told otherwise only on the archive's own host; a map that came before, by name or by
content, is not followed again.
"""

from __future__ import annotations

import enum
import hashlib
import json
import re
from collections.abc import AsyncIterator, Callable, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Generic, Protocol, Self, TypeVar

from recrawl.errors import ConfigError, FetchError, InputError
from recrawl.fetch.archive_client import MAX_REDIRECTS, ArchiveClient, is_memento
from recrawl.fetch.link_header import links
from recrawl.fetch.memento_capture import NotGivenError, known_raw_uri, memento_time, original_capture
from recrawl.model import Capture
from recrawl.time import to_http_date
from recrawl.urls import address, host_of

_STAMPED = re.compile(r"/\d{14}(?:[a-z]{2}_)?/")
_NO_SUCH = (404, 406, 410)


class MapForm(enum.Enum):
    """The forms of a TimeMap (conventions M3, M4)."""

    LINK = "link"
    JSON = "json"
    CDXJ = "cdxj"


class FurtherMap(Protocol):
    """Where a map says that more is."""

    @property
    def uri(self) -> str:
        """May be relative to the map."""
        ...


class ReadMap(Protocol):
    """What is asked of a map that was read: ``recrawl.formats.timemap.TimeMap`` has it."""

    @property
    def pages(self) -> Sequence[FurtherMap]:
        """Further maps of the same page, in the same form."""
        ...


M = TypeVar("M", bound=ReadMap)


@dataclass(frozen=True, slots=True)
class MapState:
    """Which maps are read and which are to come. Opaque: save its text, and hand it back to go on."""

    url: str
    form: str
    pending: tuple[str, ...]
    seen: tuple[str, ...] = ()
    """URLs and content digests."""

    @property
    def done(self) -> bool:
        """Whether all maps are read."""
        return not self.pending

    def to_text(self) -> str:
        """As text, in one line."""
        return json.dumps([self.url, self.form, self.pending, self.seen])

    @classmethod
    def from_text(cls, text: str) -> Self:
        """What :meth:`to_text` wrote."""
        try:
            url, form, pending, seen = json.loads(text)
            state = cls(str(url), str(form), tuple(map(str, pending)), tuple(map(str, seen)))
        except (ValueError, TypeError) as error:
            raise InputError("the saved state of a TimeMap cannot be read", "Begin anew.") from error
        return state


@dataclass(frozen=True, slots=True)
class MapAnswer(Generic[M]):
    """One map, or one page of a long one."""

    url: str
    """Where it is."""
    body: bytes
    """As it came."""
    timemap: M
    """As it was read."""
    state: MapState
    """To go on after it."""


@dataclass(frozen=True, slots=True)
class Negotiated:
    """The memento that a TimeGate names as nearest."""

    uri: str
    time: float | None
    """When it was captured, seconds since the epoch, if the archive says so already."""


class MementoClient(Generic[M]):
    """An archive or an aggregator of archives.

    ``timemap`` and ``timegate`` are templates with ``{url}``, the first also with ``{form}``:
    ``https://archive.example/coll/timemap/{form}/{url}`` and ``https://archive.example/coll/{url}``. ``body_of`` gives
    the decoded body of an answer (``recrawl.detect.decoded``). ``read_map`` reads the map in the bytes that came from
    a URL (``recrawl.formats.timemap.read_timemap`` with a report); if it raises InputError the map is asked for again.
    """

    def __init__(  # noqa: PLR0913 - what it needs of others, then its settings
        self,
        client: ArchiveClient,
        *,
        timemap: str = "",
        timegate: str = "",
        body_of: Callable[[Capture], bytes],
        read_map: Callable[[bytes, str], M],
        other_hosts: bool = False,
        max_maps: int = 10_000,
    ) -> None:
        for name, template in (("timemap", timemap), ("timegate", timegate)):
            if template and "{url}" not in template:
                raise ConfigError(
                    f"The {name} {template!r} has no place for the URL.", "Write {url} where the URL belongs."
                )
        self._client = client
        self._timemap = timemap
        self._timegate = timegate
        self._body_of = body_of
        self._read_map = read_map
        self._other_hosts = other_hosts
        self._max_maps = max_maps

    async def timemaps(
        self, url: str, form: MapForm = MapForm.LINK, state: MapState | None = None
    ) -> AsyncIterator[MapAnswer[M]]:
        """The maps of a page, one after the other; none if the archive does not know it.

        Raises:
            FetchError: the archive fails, or its maps have no end. The last state still holds.
            InputError: the state belongs to another page or form.
        """
        state = state or MapState(url, form.value, (_filled(self._timemap, url, form.value),))
        if (state.url, state.form) != (url, form.value):
            raise InputError("the saved state belongs to another TimeMap", "Begin anew.")
        seen, pending = dict.fromkeys(state.seen), list(state.pending)
        home = {host_of(place) for place in pending}
        for _ in range(self._max_maps):
            if not pending:
                return
            place = pending.pop(0)
            answer = await self._client.ask(place, partial(self._answer, first=not seen))
            if answer is None:
                return
            known, body, timemap = answer
            digest = hashlib.sha256(body).hexdigest()
            repeated = digest in seen
            home.add(host_of(known))  # where the archive itself sent us
            seen.update(dict.fromkeys((place, known, digest, *_normal(place, known))))
            for target in _normal(*(page.uri for page in timemap.pages), base=known):
                elsewhere = not self._other_hosts and host_of(target) not in home
                if not elsewhere and target not in seen and target not in pending:
                    pending.append(target)
            state = MapState(url, form.value, tuple(pending), tuple(seen))
            if not repeated:
                yield MapAnswer(known, body, timemap, state)
        if pending:
            raise FetchError(
                f"{self._timemap}: the maps of {url} have no end after {self._max_maps}.",
                "Go on from the saved state if you believe them.",
            )

    def _answer(self, capture: Capture, *, first: bool) -> tuple[str, bytes, M] | None:
        """Where a map is, its bytes, and what they say; ``None`` if the archive has no map of the page."""
        if capture.status in _NO_SUCH and first:
            return None
        if capture.status != 200:  # noqa: PLR2004 - the only one with a map
            raise FetchError(
                f"{capture.url}: the archive answered {capture.status} instead of a TimeMap.",
                "Check the address of the archive.",
            )
        body = self._body_of(capture)
        return capture.url, body, self._read_map(body, capture.url)

    async def nearest(self, url: str, when: float) -> Negotiated | None:
        """The memento nearest to ``when``, seconds since the epoch; ``None`` if there is none (conventions M1)."""
        place = _filled(self._timegate, url, "")
        headers = (("Accept-Datetime", to_http_date(when)),)
        for _ in range(MAX_REDIRECTS + 1):
            found = await self._client.ask(place, _gate_answer, headers=headers, follow=False)
            if not isinstance(found, str):
                return found
            place = found
        raise FetchError(f"{place}: the TimeGate redirects more than {MAX_REDIRECTS} times.", "Check its address.")

    async def raw(self, memento: str) -> Capture:
        """A memento as it was captured: bytes, headers and time of the original (conventions M2).

        The archive is asked for its raw form, ``…/20240101000000id_/http…``, so that it adds nothing to the page. If
        the URI does not tell the raw one, the archive is asked to prefer the original content, and has to say that it
        did: else what it sends may be rewritten.

        Raises:
            NotGivenError: the archive has no such memento, or answers with something else.
            FetchError: it does not answer.
        """
        read = partial(original_capture, body_of=self._body_of)
        raw = known_raw_uri(memento)
        if raw:
            return await self._client.ask(raw, read)
        prefer = (("Prefer", "original-content, original-links, original-headers"),)
        return await self._client.ask(memento, partial(_preferred, read=read), headers=prefer)


def _filled(template: str, url: str, form: str) -> str:
    if not template:
        raise ConfigError("This archive has no such address.", "Name it, with {url} where the URL belongs.")
    return template.replace("{form}", form).replace("{url}", url)


def _gate_answer(capture: Capture) -> Negotiated | str | None:
    """The memento that a TimeGate names, or where else to ask."""
    if capture.status in _NO_SUCH and not is_memento(capture):
        return None
    if is_memento(capture):
        named = address(capture.header("content-location") or capture.url, base=capture.url)
        return Negotiated(named.url if named else capture.url, memento_time(capture))
    location = capture.header("location")
    if 300 <= capture.status < 400 and location:  # noqa: PLR2004 - a redirect
        target = address(location, base=capture.url)
        if target is not None:
            return Negotiated(target.url, None) if _STAMPED.search(target.url) else target.url
    if capture.status == 200:  # noqa: PLR2004 - pywb answers with a frame and names the memento in a header
        for link in links(capture.header("link")):
            if "memento" in link.relations:
                return Negotiated(link.uri, None)
    raise FetchError(
        f"{capture.url}: the TimeGate answered {capture.status} and names no memento.",
        "Check the address of the TimeGate.",
    )


def _preferred(capture: Capture, read: Callable[[Capture], Capture]) -> Capture:
    """The original capture, if the archive says that it sends it as it was captured."""
    if is_memento(capture) and "original-content" not in capture.header("preference-applied").lower():
        raise NotGivenError(
            f"{capture.url}: the archive does not say that it sends the memento as it was captured.",
            "Name the place of raw mementos with --replay.",
        )
    return read(capture)


def _normal(*uris: str, base: str | None = None) -> list[str]:
    """The URIs as a browser writes them, without those that are not http."""
    found = (address(uri, base=base) for uri in uris)
    return [target.url for target in found if target is not None]
