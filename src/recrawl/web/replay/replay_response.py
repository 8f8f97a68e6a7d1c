"""Archived bytes as responses: raw, or as a page that is safe to view.

Rules of this file:
 1. Archived content never acts on anything. Every answer with archived bytes has a policy that sandboxes it: it runs no
    script, sends no form, and loads nothing but from this archive. It keeps the origin of this server, which is not
    that of the dashboard: without an origin, browsers would not send the cookie with its links and images, and clients
    that need a token would see neither. Without scripts the origin cannot be abused.
 2. Raw bytes (``id_``) are the body as the server sent it, without transfer-encoding. Nothing is added.
 3. Headers of the original never become ours, except those without which the body makes no sense; all of them are there
    under ``X-Archive-Orig-``.
 4. A browser never guesses media types.

An archived HTML page for viewing: links lead into the archive, and a small banner shows its sharpness.

This is not a full replay. Scripts do not run, so resources that only scripts load are missing; pywb replays these. It
has no dependencies, and the content of the page cannot act.
"""

from __future__ import annotations

import html
import re
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

from recrawl.errors import require
from recrawl.formats.timemap import ArchiveUris
from recrawl.model import Capture
from recrawl.store.archived_copies import Kept, is_record_of, original
from recrawl.store.base import Store
from recrawl.urls import address
from recrawl.web.replay.replay_port import RefusalError, ReplayPort

_ATTRIBUTES = ("href", "src", "poster", "data", "background")
_SELECTOR = "[href], [src], [poster], [data], [background], [srcset], [style], base, meta[http-equiv]"
_CANDIDATE = re.compile(r"[\s,]*([^\s,]\S*)")
_DESCRIPTORS = re.compile(r"(?:\([^)]*\)?|[^,(])*")
_EMBEDDED, _SHEET = "if_", "cs_"
"""Modifiers of what stands in a page, and of style sheets, whose addresses are made ones of the archive, too."""
BANNER_ID = "recrawl-banner"


@dataclass(frozen=True, slots=True)
class ReplayLinks:
    """Where addresses of a page lead: into the archive, at the time of the page."""

    uris: ArchiveUris
    timestamp: str
    """14 digits: page requisites are shown in the copy that is most coherent with this time."""
    rewrite_css: Callable[[str, Callable[[str, bool], str | None]], str]
    """Gives a style sheet with other addresses; see :class:`recrawl.web.replay.replay_port.ByteSource`."""

    def place(self, written: str, base: str, modifier: str = "") -> str | None:
        """The address in the archive; ``None`` where something else than a page of the web is meant."""
        if not written.strip() or written.strip().startswith("#"):
            return None
        found = address(written, base=base)
        if found is None:
            return None
        mark = written.partition("#")[2]
        return self.uris.memento(found.url, self.timestamp + modifier) + (f"#{mark}" if mark else "")

    def style_sheet(self, text: str, base: str) -> str:
        """A style sheet with every address of the web made one of the archive."""
        return self.rewrite_css(
            text, lambda written, imports: self.place(written, base, _SHEET if imports else _EMBEDDED)
        )


def to_look_at(page: str, url: str, inside: ReplayLinks, banner: str = "") -> str:
    """The page with every address of the web made one of the archive, and a banner as the first thing in its body."""
    parser: Any = require("selectolax.lexbor", "crawl").LexborHTMLParser
    tree = parser(page)
    base = _base(tree, url)
    for node in {node.mem_id: node for node in tree.css(_SELECTOR)}.values():  # some are found twice
        attributes = node.attributes
        if node.tag in ("base", "meta"):
            node.decompose()  # neither may lead elsewhere; addresses are whole by now
            continue
        modifier = _modifier(node.tag, attributes.get("rel") or "")
        for name in _ATTRIBUTES:
            place = inside.place(attributes.get(name) or "", base, modifier)
            if place is not None:
                node.attrs[name] = place
        if attributes.get("srcset"):
            node.attrs["srcset"] = _srcset(attributes["srcset"], lambda one: inside.place(one, base, _EMBEDDED))
        if attributes.get("style"):
            node.attrs["style"] = inside.style_sheet(attributes["style"], base)
    for node in tree.css("style"):
        text = node.text(deep=True) or ""
        if node.child is not None and "</style" not in text.lower():  # which only foreign elements can hold
            node.child.replace_with(inside.style_sheet(text, base))
    if banner and tree.body is not None:  # a page of frames has none
        _put_first(tree.body, parser(banner).css_first("details"))
    written: str = tree.html or ""
    return written


def _srcset(written: str, place: Callable[[str], str | None]) -> str:
    """A ``srcset`` with other addresses, split as HTML says: at spaces, and at commas that end a candidate.

    >>> _srcset("a.png, b,c.png 2x,d.png 480w", str.upper)
    'A.PNG, B,C.PNG 2x, D.PNG 480w'
    """
    at, candidates = 0, []
    while found := _CANDIDATE.match(written, at):
        at, url = found.end(), found[1].rstrip(",")
        descriptors = ""
        if url == found[1] and (rest := _DESCRIPTORS.match(written, at)):
            at, descriptors = rest.end(), rest[0].strip()
        candidates.append(f"{place(url) or url} {descriptors}".strip())
    return ", ".join(candidates)


def _modifier(tag: str, rel: str) -> str:
    """What stands behind the time of an address: nothing where a click leads to another page."""
    if tag in ("a", "area"):
        return ""
    return _SHEET if tag == "link" and "stylesheet" in rel.lower().split() else _EMBEDDED


def _put_first(body: Any, made: Any) -> None:  # noqa: ANN401 - selectolax nodes
    if body.child is None:
        body.insert_child(made)
    else:
        body.child.insert_before(made)


def _base(tree: Any, url: str) -> str:  # noqa: ANN401 - a selectolax tree
    node = tree.css_first("base[href]")
    found = address(node.attributes.get("href") or "", base=url) if node is not None else None
    return found.url if found else url


def banner_of(facts: dict[str, str], links: dict[str, str]) -> str:
    """The banner: one line, closed by default. All text from an archive is escaped.

    It needs no script. It stands in a page with styles of its own, so every style is set here.
    """
    style = (
        "all:initial;display:block;position:relative;z-index:2147483647;font:13px/1.5 system-ui,sans-serif;"
        "background:#16324f;color:#fff;padding:2px 10px"
    )
    rows = "".join(
        f'<div style="display:block">{html.escape(name)}: {html.escape(value)}</div>'
        for name, value in facts.items()
        if name
    )
    ways = " · ".join(
        f'<a style="color:#9fd3ff" href="{html.escape(target, quote=True)}">{html.escape(name)}</a>'
        for name, target in links.items()
    )
    return (
        f'<details id="{BANNER_ID}" style="{style}"><summary style="cursor:pointer">{html.escape(facts[""])}</summary>'
        f'{rows}<div style="display:block">{ways}</div></details>'
    )


POLICY = (
    "sandbox allow-same-origin allow-popups allow-top-navigation-by-user-activation; default-src 'none'; "
    "img-src 'self' data:; media-src 'self' data:; font-src 'self' data:; style-src 'self' 'unsafe-inline'; "
    "frame-src 'self'; object-src 'none'; script-src 'none'; form-action 'none'; base-uri 'none'"
)
"""Rule 1."""
SAFETY = {
    "Content-Security-Policy": POLICY,
    "X-Content-Type-Options": "nosniff",
    "X-Frame-Options": "SAMEORIGIN",
    "Referrer-Policy": "no-referrer",
    "Cross-Origin-Resource-Policy": "same-origin",
    "Cross-Origin-Opener-Policy": "same-origin",
}
"""Of every answer with archived bytes. Other sites may not show them, nor run them as their own scripts."""
_KEPT = ("content-type", "content-encoding", "content-language", "content-disposition")
_TOKEN = re.compile(r"[!#$%&'*+.^_`|~0-9A-Za-z-]+")
_RENAMED = re.compile(r"X-Orig-(?=(?:Transfer-Encoding|Content-Length)\s*$)", re.IGNORECASE)
"""Before the names of headers about chunks that are not stored (conventions W4)."""
_UNWRITABLE = re.compile(r"[\x00-\x08\x0a-\x1f\x7f]")
_MOST_HEADERS = 200
REDIRECTS = frozenset({301, 302, 303, 307, 308})
"""Statuses that lead elsewhere."""
_BODILESS = frozenset({204, 205, 304})
_FRAMES = frozenset({b"transfer-encoding", b"content-encoding", b"content-length"})


class ArchivedHeader(NamedTuple):
    """A header as it came."""

    name: str
    value: str


@dataclass(frozen=True, slots=True)
class ArchivedResponse:
    """The bytes behind a capture: the head of its own record where it has one, the body of the record it repeats."""

    kept: Kept
    capture: Capture

    @property
    def status(self) -> int:
        """The status of the original; 200 where there is none that could be sent."""
        return self.capture.status if 200 <= self.capture.status <= 599 else 200  # noqa: PLR2004 - HTTP

    def headers(self) -> list[ArchivedHeader]:
        """All headers that can be sent on, in order."""
        found = []
        for line in self.capture.raw_head.split(b"\n")[1:]:
            name, colon, value = line.decode("latin-1").partition(":")
            name = _RENAMED.sub("", name)
            if colon and _TOKEN.fullmatch(name.strip()):
                found.append(ArchivedHeader(name.strip(), _UNWRITABLE.sub(" ", value).strip()))
        return found[:_MOST_HEADERS]


def archived(archive: ReplayPort, store: Store, kept: Kept) -> ArchivedResponse:
    """The bytes of a capture, or a refusal that says why there are none."""
    source = original(store, kept) if kept.repeats else kept
    body = archive.bytes_.read(source.file, source.offset) if source and source.file and source.offset >= 0 else None
    if source is None or body is None or not is_record_of(body, source):
        raise RefusalError(
            f"{kept.url} was captured at {kept.timestamp}, but the file with its bytes is not in this workspace.", 404
        )
    if not kept.repeats:
        return ArchivedResponse(kept, body)
    own = archive.bytes_.read(kept.file, kept.offset) if kept.file and kept.offset >= 0 else None
    if own is not None and not is_record_of(own, kept):
        own = None
    # A 304 has no head of its own (conventions W7); an identical revisit has (W6).
    if own is not None and own.raw_head and own.status in range(200, 300):
        body = replace(body, raw_head=_head_over(own, body), status=own.status)
    return ArchivedResponse(kept, body)


def _head_over(own: Capture, body: Capture) -> bytes:
    """The head of a record that repeats another, over the body of that one, which is framed as its own head says."""
    first, *lines = own.raw_head.split(b"\n")
    kept = [line for line in lines if line.partition(b":")[0].strip().lower() not in _FRAMES and line.strip()]
    framed = [f"{name.decode()}: {body.header(name.decode())}\r".encode("latin-1") for name in sorted(_FRAMES)]
    return b"\n".join([first, *kept, *(line for line in framed if not line.endswith(b": \r")), b"\r", b""])


def raw(archive: ReplayPort, found: ArchivedResponse) -> bytes:
    """The body as it came, without transfer-encoding (rule 2)."""
    return b"" if found.status in _BODILESS else archive.bytes_.payload(found.capture)


def original_headers(found: ArchivedResponse, uris: ArchiveUris, timestamp: str) -> list[tuple[str, str]]:
    """What an answer says of the original (rule 3). Where it redirects, the way leads into the archive.

    ``timestamp`` is the time there, 14 digits and perhaps a modifier.
    """
    told = [(f"X-Archive-Orig-{name}", value) for name, value in found.headers()]
    seen: set[str] = set()
    for name, value in found.headers():
        low = name.lower()
        if low in _KEPT and low not in seen and value:
            seen.add(low)
            told.append((name, value))
        if low == "location" and found.status in REDIRECTS and low not in seen:
            target = address(value, base=found.kept.url)
            if target is not None:
                seen.add(low)
                told.append(("Location", uris.memento(target.url, timestamp)))
    if "content-type" not in seen:
        told.append(("Content-Type", "application/octet-stream"))
    if found.capture.truncated:
        told.append(("X-Recrawl-Truncated", found.capture.truncated))
    return told
