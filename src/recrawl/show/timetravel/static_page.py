"""An archived HTML page to look at: addresses lead into the archive, and a small banner says how sharp it is.

This is no full replay. Scripts do not run, so what only scripts would load is missing; pywb does that better. It needs
nothing else, and nothing in the page can act on anything.
"""

from __future__ import annotations

import html
import re
from typing import Any

from recrawl.errors import require
from recrawl.formats.timemap_write import ArchiveUris
from recrawl.urls import address

_ATTRIBUTES = ("href", "src", "poster", "data", "background")
_SELECTOR = "[href], [src], [poster], [data], [background], [srcset], base, meta[http-equiv]"
_CANDIDATE = re.compile(r"(\s*)([^\s,]+)((?:\s+[^,]*)?)(,|$)")
BANNER_ID = "recrawl-banner"


def to_look_at(page: str, url: str, inside_of: tuple[ArchiveUris, str], banner: str = "") -> str:
    """The page with every address of the web made one of the archive, and a banner as the first thing in its body.

    ``inside_of`` is the archive, and the 14 digits of the time at which the page is looked at.
    """
    uris, timestamp = inside_of
    parser: Any = require("selectolax.lexbor", "crawl").LexborHTMLParser
    tree = parser(page)
    base = _base(tree, url)

    def inside(written: str, modifier: str = "") -> str | None:
        if not written.strip() or written.strip().startswith("#"):
            return None
        found = address(written, base=base)
        if found is None:
            return None
        mark = written.partition("#")[2]
        return uris.memento(found.url, timestamp + modifier) + (f"#{mark}" if mark else "")

    for node in tree.css(_SELECTOR):
        attributes = node.attributes
        if node.tag in ("base", "meta"):
            node.decompose()  # neither may lead elsewhere; addresses are whole by now
            continue
        for name in _ATTRIBUTES:
            place = inside(attributes.get(name) or "", "" if node.tag in ("a", "area") else "if_")
            if place is not None:
                node.attrs[name] = place
        if attributes.get("srcset"):
            node.attrs["srcset"] = _CANDIDATE.sub(
                lambda one: f"{one[1]}{inside(one[2], 'if_') or one[2]}{one[3]}{one[4]}", attributes["srcset"]
            )
    if banner and tree.body is not None:  # a page of frames has none
        _put_first(tree.body, parser(banner).css_first("details"))
    written: str = tree.html or ""
    return written


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
