"""Memento client (RFC 7089): lists the mementos of an archive, finds the nearest one, and gets its original bytes.

``recrawl.formats`` parses TimeMaps, so the parser is an argument. Further maps are followed, by default only on the
archive's own host; a map that came before, by name or by content, is not followed again.

The original capture is restored from the archive's response. An archive adds its own headers to those of the original,
and renames originals that would clash to ``X-Archive-Orig-Date`` and the like (conventions M2): the Wayback Machine
renames all of them, pywb only some. The restored header has the original names and agrees with the body: the transfer
encoding of the archive's connection is removed, and a content encoding that the body no longer has is not named.
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
from recrawl.fetch.archives.archive_client import MAX_REDIRECTS, ArchiveClient, is_memento
from recrawl.fetch.http.transfer import links
from recrawl.model import Capture
from recrawl.time import from_http_date, to_http_date
from recrawl.urls import address, host_of

_ARCHIVED = re.compile(r"(https?://.*?/)(\d{4,14})([a-z]{2}_)?/(https?:/{1,2}.+|[^/]+\..+)", re.DOTALL)
_RENAMED = "x-archive-orig-"
_OF_ALL_ORIGINALS = "x-archive-src"
"""Only the Wayback Machine names the file of a memento, and it renames all headers."""
_ARCHIVES_OWN = frozenset(
    {
        "connection", "content-location", "date", "keep-alive", "link", "memento-datetime", "server", "trailer",
        "transfer-encoding", "x-archive-guessed-content-type", "x-archive-guessed-charset", "x-archive-redirect-reason",
    }
)  # fmt: skip


class NotGivenError(FetchError):
    """An archive answers, but not with the requested memento."""


def known_raw_uri(memento: str) -> str:
    """As :func:`raw_uri`; empty if the URI does not reveal it."""
    return raw_uri(memento) if _ARCHIVED.fullmatch(memento) else ""


def raw_uri(memento: str) -> str:
    """The URI under which pywb and Wayback-like archives serve a memento as it was captured.

    >>> raw_uri("https://web.archive.org/web/20240101000000/http://example.org/")
    'https://web.archive.org/web/20240101000000id_/http://example.org/'
    """
    found = _ARCHIVED.fullmatch(memento)
    if found is None:
        raise InputError(
            f"the raw form of the memento {memento!r} is not known",
            "Only URIs such as https://archive.example/20240101000000/http://example.org/ have one.",
        )
    return f"{found[1]}{found[2]}id_/{found[4]}"


def memento_time(capture: Capture) -> float | None:
    """When a memento was captured, seconds since the epoch; ``None`` if the archive does not say it legibly."""
    return from_http_date(capture.header("memento-datetime"))


def original_capture(capture: Capture, *, body_of: Callable[[Capture], bytes]) -> Capture:
    """The capture in an archive's response: its original URL, time, status, headers and payload.

    Raises:
        NotGivenError: the response is not a memento.
        InputError: it is garbled.
    """
    if not is_memento(capture):
        raise NotGivenError(
            f"{capture.url}: the archive answered {capture.status}, not with a memento.",
            "Check that the archive holds it and shows it in raw form.",
        )
    time = memento_time(capture)
    if time is None:
        raise InputError(f"the Memento-Datetime {capture.header('memento-datetime')!r} is no date", source=capture.url)
    status_line, _, block = capture.raw_head.partition(b"\n")
    headers, encoded = _restored(block.decode("latin-1")), capture.header("content-encoding").lower()
    named = {name.lower(): value.lower() for name, value in headers}
    without_transfer = Capture(capture.url, capture.time, capture.status, _bare_head(capture), capture.raw_body)
    on_the_way = bool(encoded) and named.get("content-encoding", "") != encoded  # added by the archive itself
    body = body_of(capture if on_the_way else without_transfer)
    if not encoded:
        headers = [one for one in headers if one[0].lower() != "content-encoding"]
    headers = [one for one in headers if one[0].lower() != "content-length" or one[1] == str(len(body))]
    head = status_line.rstrip(b"\r") + b"\r\n" + b"".join(f"{n}: {v}\r\n".encode("latin-1") for n, v in headers)
    return Capture(_original_url(capture), time, capture.status, head + b"\r\n", body, duration=capture.duration)


def _bare_head(capture: Capture) -> bytes:
    """A header with the transfer encoding only, so that decoding removes nothing else."""
    transfer = capture.header("transfer-encoding")
    return f"HTTP/1.1 200 OK\r\nTransfer-Encoding: {transfer}\r\n\r\n".encode("latin-1")


def _restored(block: str) -> list[tuple[str, str]]:
    """The original headers under their own names, in the order of the response."""
    split = [line.split(":", 1) for line in block.split("\n") if ":" in line]
    pairs = [(name.strip(), value.strip()) for name, value in split]
    renamed = {name.lower()[len(_RENAMED) :] for name, _ in pairs if name.lower().startswith(_RENAMED)}
    all_renamed = any(name.lower() == _OF_ALL_ORIGINALS for name, _ in pairs)
    kept = []
    for name, value in pairs:
        lower = name.lower()
        if lower.startswith(_RENAMED):
            kept.append((name[len(_RENAMED) :], value))
        elif lower not in renamed | _ARCHIVES_OWN and (not all_renamed or lower == "content-type"):
            kept.append((name, value))
    return [(name, value) for name, value in kept if name.lower() != "transfer-encoding"]


def _original_url(capture: Capture) -> str:
    """The captured URL: as the archive names it, else the end of the memento's URL."""
    for link in links(capture.header("link")):
        if "original" in link.relations:
            return link.uri
    found = _ARCHIVED.fullmatch(capture.url)
    return found[4] if found else capture.url


_STAMPED = re.compile(r"/\d{14}(?:[a-z]{2}_)?/")
_NO_SUCH = (404, 406, 410)


class MapForm(enum.Enum):
    """The forms of a TimeMap (conventions M3, M4)."""

    LINK = "link"
    JSON = "json"
    CDXJ = "cdxj"


class FurtherMap(Protocol):
    """A link to a further map."""

    @property
    def uri(self) -> str:
        """May be relative to the map."""
        ...


class ParsedMap(Protocol):
    """The parts of a parsed map that are needed: ``recrawl.formats.timemap.TimeMap`` has them."""

    @property
    def pages(self) -> Sequence[FurtherMap]:
        """Further maps of the same page, in the same form."""
        ...


M = TypeVar("M", bound=ParsedMap)


@dataclass(frozen=True, slots=True)
class MapState:
    """Which maps are read and which follow. Opaque: save its text, and pass it back to resume."""

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
        """As text, on one line."""
        return json.dumps([self.url, self.form, self.pending, self.seen])

    @classmethod
    def from_text(cls, text: str) -> Self:
        """Parse the text of :meth:`to_text`."""
        try:
            url, form, pending, seen = json.loads(text)
            state = cls(str(url), str(form), tuple(map(str, pending)), tuple(map(str, seen)))
        except (ValueError, TypeError) as error:
            raise InputError("the saved state of a TimeMap cannot be read", "Start again.") from error
        return state


@dataclass(frozen=True, slots=True)
class TimeMapResponse(Generic[M]):
    """One map, or one page of a long one."""

    url: str
    """Where it is."""
    body: bytes
    """As received."""
    timemap: M
    """As parsed."""
    state: MapState
    """The state to resume after it."""


@dataclass(frozen=True, slots=True)
class NegotiatedMemento:
    """The memento that a TimeGate names as nearest."""

    uri: str
    time: float | None
    """When it was captured, seconds since the epoch, if the archive says so already."""


class MementoClient(Generic[M]):
    """An archive or an aggregator of archives.

    ``timemap`` and ``timegate`` are templates with ``{url}``, the first also with ``{form}``:
    ``https://archive.example/coll/timemap/{form}/{url}`` and ``https://archive.example/coll/{url}``. ``body_of``
    returns the decoded body of a response (``recrawl.detect.decoded``). ``read_map`` parses the map in the bytes from a
    URL (``recrawl.formats.timemap.read_timemap`` with a report); if it raises InputError the map is requested
    again.
    """

    def __init__(  # noqa: PLR0913 - its parts, then its settings
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
    ) -> AsyncIterator[TimeMapResponse[M]]:
        """The maps of a page, one after the other; none if the archive does not know it.

        Raises:
            FetchError: the archive fails, or its maps have no end. The last state is still valid.
            InputError: the state belongs to another page or form.
        """
        state = state or MapState(url, form.value, (_filled(self._timemap, url, form.value),))
        if (state.url, state.form) != (url, form.value):
            raise InputError("the saved state belongs to another TimeMap", "Start again.")
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
            home.add(host_of(known))  # where the archive itself redirected to
            seen.update(dict.fromkeys((place, known, digest, *_normal(place, known))))
            for target in _normal(*(page.uri for page in timemap.pages), base=known):
                elsewhere = not self._other_hosts and host_of(target) not in home
                if not elsewhere and target not in seen and target not in pending:
                    pending.append(target)
            state = MapState(url, form.value, tuple(pending), tuple(seen))
            if not repeated:
                yield TimeMapResponse(known, body, timemap, state)
        if pending:
            raise FetchError(
                f"{self._timemap}: the maps of {url} have no end after {self._max_maps}.",
                "Go on from the saved state if you believe them.",
            )

    def _answer(self, capture: Capture, *, first: bool) -> tuple[str, bytes, M] | None:
        """The URL of a map, its bytes and its content; ``None`` if the archive has no map of the page."""
        if capture.status in _NO_SUCH and first:
            return None
        if capture.status != 200:  # noqa: PLR2004 - the only one with a map
            raise FetchError(
                f"{capture.url}: the archive answered {capture.status} instead of a TimeMap.",
                "Check the address of the archive.",
            )
        body = self._body_of(capture)
        return capture.url, body, self._read_map(body, capture.url)

    async def nearest(self, url: str, when: float) -> NegotiatedMemento | None:
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

        The raw form, ``…/20240101000000id_/http…``, is requested, so that the archive adds nothing to the page. If the
        URI does not reveal the raw one, the request prefers the original content, and the archive has to confirm that:
        else the content may be rewritten.

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


def _gate_answer(capture: Capture) -> NegotiatedMemento | str | None:
    """The memento that a TimeGate names, or the next URL to request."""
    if capture.status in _NO_SUCH and not is_memento(capture):
        return None
    if is_memento(capture):
        named = address(capture.header("content-location") or capture.url, base=capture.url)
        return NegotiatedMemento(named.url if named else capture.url, memento_time(capture))
    location = capture.header("location")
    if 300 <= capture.status < 400 and location:  # noqa: PLR2004 - a redirect
        target = address(location, base=capture.url)
        if target is not None:
            return NegotiatedMemento(target.url, None) if _STAMPED.search(target.url) else target.url
    if capture.status == 200:  # noqa: PLR2004 - pywb answers with a frame and names the memento in a header
        for link in links(capture.header("link")):
            if "memento" in link.relations:
                return NegotiatedMemento(link.uri, None)
    raise FetchError(
        f"{capture.url}: the TimeGate answered {capture.status} and names no memento.",
        "Check the address of the TimeGate.",
    )


def _preferred(capture: Capture, read: Callable[[Capture], Capture]) -> Capture:
    """The original capture, if the archive confirms that it is as captured."""
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
