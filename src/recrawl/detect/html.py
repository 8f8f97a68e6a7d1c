"""Links and visible text of an HTML page, as a reader without scripts meets them."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from recrawl.detect.noise import drop_noisy_elements, without_noise
from recrawl.errors import require
from recrawl.urls import Address, address

_INVISIBLE = ["script", "style", "template", "noscript"]
_LINKS = "a[href], area[href], frame[src], iframe[src], link[rel][href], meta[http-equiv][content]"
_REFRESH = re.compile(r"\s*[\d.]+(?:\s*[;,]\s*|\s+)(?:url\s*=\s*)?[\"']?([^\"']+)", re.IGNORECASE)


@dataclass(frozen=True, slots=True)
class Document:
    """What is compared and what is followed of a page, its noise removed."""

    links: tuple[Address, ...]
    """Outlinks in the order of the page, each key once, the page itself left out."""
    text: str
    canonical: str = ""
    """The URL the page gives as its own name, empty if it gives none."""


def read_html(html: str, url: str) -> Document:
    """Parse a page found at ``url``. Any text is a page; broken HTML is read as browsers read it.

    Links are those of ``a``, ``area``, ``frame``, ``iframe``, ``meta refresh`` and ``link rel=canonical``,
    resolved against ``base href``. Elements that are noise are left out of links and text alike.

    >>> page = read_html("<base href=/b/><p>Hello <a href=c>you</a><script>x()</script>", "http://example.com/a")
    >>> page.text, page.links[0].url
    ('Hello you', 'http://example.com/b/c')
    """
    tree = _tree_without_noise(html)
    base = _base(tree, url)
    own = address(url)
    links: dict[str, Address] = {} if own is None else {own.key: own}
    canonical = ""
    # Pages name the same place many times, and taking a URL apart is the dearest step here: each spelling once.
    for href, is_canonical in dict.fromkeys(_hrefs(tree)):
        found = address(href, base=base)
        if found is None:
            continue
        links.setdefault(found.key, found)
        canonical = found.url if is_canonical and not canonical else canonical
    tree.strip_tags(_INVISIBLE)
    text = without_noise(tree.root.text(separator=" ") if tree.root else "")
    return Document(tuple(found for found in links.values() if found is not own), text, canonical)


def text_runs(html: str) -> list[str]:
    """The visible text run by run, as its elements divide it, clocks and the like still in it.

    >>> text_runs("<h1>News</h1><p>Served  09:14:07<p>All is well.")
    ['News', 'Served 09:14:07', 'All is well.']
    """
    tree = _tree_without_noise(html)
    tree.strip_tags(_INVISIBLE)
    runs = (tree.root.text(separator="\n") if tree.root else "").splitlines()
    return [" ".join(run.split()) for run in runs if not run.isspace() and run]


def _tree_without_noise(html: str) -> Any:  # noqa: ANN401 - a selectolax tree
    tree = require("selectolax.lexbor", "crawl").LexborHTMLParser(html)
    drop_noisy_elements(tree)
    return tree


def _base(tree: Any, url: str) -> str:  # noqa: ANN401 - a selectolax tree
    node = tree.css_first("base[href]")
    found = address(node.attributes.get("href") or "", base=url) if node else None
    return found.url if found else url


def _hrefs(tree: Any) -> Iterator[tuple[str, bool]]:  # noqa: ANN401 - a selectolax tree
    """Every reference to another page as written, and whether it is the canonical one."""
    for node in tree.css(_LINKS):
        attributes = node.attributes
        if node.tag == "meta":
            refresh = (attributes.get("http-equiv") or "").strip().lower() == "refresh"
            found = _REFRESH.match(attributes.get("content") or "") if refresh else None
            if found:
                yield found[1], False
        elif node.tag == "link":
            if "canonical" in (attributes.get("rel") or "").lower().split():
                yield attributes.get("href") or "", True
        else:
            # In SVG the selector also matches xlink:href, which has another name among the attributes.
            href = attributes.get("href") or attributes.get("xlink:href") or attributes.get("src")
            if href:
                yield href, False
