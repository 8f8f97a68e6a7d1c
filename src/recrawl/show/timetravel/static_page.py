"""An archived HTML page to look at: addresses lead into the archive, and a small banner says how sharp it is.

This is no full replay. Scripts do not run, so what only scripts would load is missing; pywb does that better. It needs
nothing else, and nothing in the page can act on anything.
"""

from __future__ import annotations

import html
import re
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from recrawl.errors import require
from recrawl.formats.timemap_write import ArchiveUris
from recrawl.urls import address

_ATTRIBUTES = ("href", "src", "poster", "data", "background")
_SELECTOR = "[href], [src], [poster], [data], [background], [srcset], [style], base, meta[http-equiv]"
_CANDIDATE = re.compile(r"[\s,]*([^\s,]\S*)")
_DESCRIPTORS = re.compile(r"(?:\([^)]*\)?|[^,(])*")
_EMBEDDED, _SHEET = "if_", "cs_"
"""Modifiers of what stands in a page, and of style sheets, whose addresses are made ones of the archive, too."""
BANNER_ID = "recrawl-banner"


@dataclass(frozen=True, slots=True)
class Inside:
    """Where addresses of a page lead: into the archive, at the time of the page."""

    uris: ArchiveUris
    timestamp: str
    """14 digits: of what the page embeds the copy is shown that goes with this time best."""
    rewrite_css: Callable[[str, Callable[[str, bool], str | None]], str]
    """Gives a style sheet with other addresses; see :class:`recrawl.show.timetravel.archive.Bytes`."""

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


def to_look_at(page: str, url: str, inside: Inside, banner: str = "") -> str:
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
    """The banner: one line, closed unless somebody opens it. All that comes from an archive is escaped.

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
