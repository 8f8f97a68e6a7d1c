"""From the answer of an archive back to the answer it once got.

An archive puts headers of its own beside those of the original. It renames originals that would clash,
``X-Archive-Orig-Date`` (conventions M2): the Wayback Machine all of them, pywb only some. The head made here has the
original ones under their own names and agrees with the body beside it: the framing of the connection to the archive
is taken off, and an encoding that is not on the body any more is not named.
"""

from __future__ import annotations

import re
from collections.abc import Callable

from recrawl.errors import FetchError, InputError
from recrawl.fetch.archive_client import is_memento
from recrawl.fetch.link_header import links
from recrawl.model import Capture
from recrawl.time import from_http_date

_ARCHIVED = re.compile(r"(https?://.*?/)(\d{4,14})([a-z]{2}_)?/(https?:/{1,2}.+|[^/]+\..+)", re.DOTALL)
_RENAMED = "x-archive-orig-"
_OF_ALL_ORIGINALS = "x-archive-src"
"""Only the Wayback Machine names the file a memento comes from, and it renames all headers."""
_ARCHIVES_OWN = frozenset(
    {
        "connection", "content-location", "date", "keep-alive", "link", "memento-datetime", "server", "trailer",
        "transfer-encoding", "x-archive-guessed-content-type", "x-archive-guessed-charset", "x-archive-redirect-reason",
    }
)  # fmt: skip


class NotGivenError(FetchError):
    """An archive answers, but not with the memento that was asked for."""


def known_raw_uri(memento: str) -> str:
    """As :func:`raw_uri`; empty if the URI does not tell it."""
    return raw_uri(memento) if _ARCHIVED.fullmatch(memento) else ""


def raw_uri(memento: str) -> str:
    """The URI under which pywb and Wayback-like archives give a memento as it was captured.

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
    """The capture that an archive's answer stands for: its own URL, time, status, headers and payload.

    Raises:
        NotGivenError: the answer is not a memento.
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
    on_the_way = bool(encoded) and named.get("content-encoding", "") != encoded  # put on by the archive itself
    body = body_of(capture if on_the_way else without_transfer)
    if not encoded:
        headers = [one for one in headers if one[0].lower() != "content-encoding"]
    headers = [one for one in headers if one[0].lower() != "content-length" or one[1] == str(len(body))]
    head = status_line.rstrip(b"\r") + b"\r\n" + b"".join(f"{n}: {v}\r\n".encode("latin-1") for n, v in headers)
    return Capture(_original_url(capture), time, capture.status, head + b"\r\n", body, duration=capture.duration)


def _bare_head(capture: Capture) -> bytes:
    """A head that names the framing only, so that decoding takes off the framing only."""
    transfer = capture.header("transfer-encoding")
    return f"HTTP/1.1 200 OK\r\nTransfer-Encoding: {transfer}\r\n\r\n".encode("latin-1")


def _restored(block: str) -> list[tuple[str, str]]:
    """The original headers under their own names, in the order of the answer."""
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
    """The URL that was captured: as the archive names it, else the end of the memento's own."""
    for link in links(capture.header("link")):
        if "original" in link.relations:
            return link.uri
    found = _ARCHIVED.fullmatch(capture.url)
    return found[4] if found else capture.url
