"""Links and visible text of an HTML page, as a reader without scripts meets them."""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass, field
from functools import partial
from typing import Any, NamedTuple

from recrawl.detect.noise import drop_noisy_elements, without_noise
from recrawl.detect.parts import NO_RUNS, Runs, Text, runs_of, text_in_parts
from recrawl.detect.robots_tag import NO_FOLLOWING, words
from recrawl.detect.rules import NO_PAGE_RULES, PageRules
from recrawl.errors import require
from recrawl.urls import Address, address

_INVISIBLE = ["script", "style", "template", "noscript", "iframe", "noembed", "noframes"]
_LINKS = "a[href], area[href], frame[src], iframe[src], link[rel][href], meta[http-equiv][content]"
_REFRESH = re.compile(r"\s*[\d.]+(?:\s*[;,]\s*|\s+)(?:url\s*=\s*)?[\"']?([^\"']+)", re.IGNORECASE)
_HREF = re.compile(r'<(?:a|area) [^>]*?(?:xlink:)?href="([^"]*)"')
_FEEDS = frozenset({"application/atom+xml", "application/feed+json", "application/rss+xml"})
MOST_FEEDS = 8


@dataclass(frozen=True, slots=True)
class Document:
    """What is compared and what is followed of a page, its noise removed."""

    links: tuple[Address, ...]
    """Outlinks in the order of the page, each key once, the page itself left out."""
    parts: Text
    """The visible text, part by part, without noise and without what the user's rules leave out."""
    canonical: str = ""
    """The URL the page gives as its own name, empty if it gives none."""
    nofollow: frozenset[str] = frozenset()
    """Keys of links that the page asks not to follow wherever it names them, by ``rel`` or by ``meta robots``."""
    feeds: tuple[str, ...] = ()
    """Absolute URLs of the feeds that the page names, at most :data:`MOST_FEEDS`."""
    runs: Runs = NO_RUNS
    """The parts before they were cleaned, to find out which links stand in which."""
    base: str = ""
    """What relative links are resolved against."""
    partial: bool = False
    """Rules left parts of the page out."""

    @property
    def text(self) -> str:
        """The visible text as one."""
        return " ".join(self.parts.said)

    def links_outside(self, mask: frozenset[int]) -> frozenset[str]:
        """Keys of the links that stand somewhere outside the paths in the mask and outside what rules leave out."""
        heard = (html for path, html in zip(*self.runs, strict=True) if path not in mask)
        written = {href for html in heard for href in _HREF.findall(html)}
        found = (address(href.replace("&amp;", "&"), base=self.base) for href in written)
        return frozenset(link.key for link in found if link)


class _Link(NamedTuple):
    """A reference to another page, as written."""

    href: str
    is_canonical: bool = False
    nofollow: bool = False


@dataclass(slots=True)
class _Named:
    """What a page names, as written."""

    links: list[_Link] = field(default_factory=list)
    feeds: list[str] = field(default_factory=list)
    nothing_followed: bool = False
    """``meta robots`` asks to follow none of the links."""


def read_html(html: str, url: str, rules: PageRules = NO_PAGE_RULES, *, in_machine_code: bool = False) -> Document:
    """Parse a page found at ``url``. Any text is a page; broken HTML is read as browsers read it.

    Links are those of ``a``, ``area``, ``frame``, ``iframe``, ``meta refresh`` and ``link rel=canonical``,
    resolved against ``base href``. Elements that are noise are left out of links and text alike; what ``rules`` leave
    out is missing in the text only. ``in_machine_code`` is for those who read thousands of pages.

    >>> page = read_html("<base href=/b/><p>Hello <a href=c>you</a><script>x()</script>", "http://example.com/a")
    >>> page.text, page.links[0].url
    ('Hello you', 'http://example.com/b/c')
    """
    tree = _tree_without_noise(html)
    lower = html.lower()  # to ask the text is a hundred times cheaper than to ask the tree
    base = base_of(tree, url) if "<base" in lower else url
    own = address(url)
    links: dict[str, Address] = {} if own is None else {own.key: own}
    canonical, shunned, followed = "", set[str](), set[str]()
    named = _Named(nothing_followed="robots" in lower and _asks_not_to_follow(tree))
    _collect(tree, named)
    # Pages name the same place many times, and taking a URL apart is the dearest step here: each spelling once.
    for link in dict.fromkeys(named.links):
        found = address(link.href, base=base)
        if found is None:
            continue
        links.setdefault(found.key, found)
        canonical = found.url if link.is_canonical and not canonical else canonical
        (shunned if link.nofollow else followed).add(found.key)
    tree.strip_tags(_INVISIBLE)
    if "<xmp" in lower or "<plaintext" in lower:
        _make_text(tree)
    kept = rules.applied(tree)
    runs = runs_of(kept)
    return Document(
        tuple(found for found in links.values() if found is not own),
        rules.cut(text_in_parts(runs, partial(without_noise, in_machine_code=in_machine_code))),
        canonical,
        frozenset(links) if named.nothing_followed else frozenset(shunned - followed),
        _resolved(named.feeds, base),
        runs,
        base,
        partial=bool(rules.ignored or rules.only),
    )


def _tree_without_noise(html: str) -> Any:  # noqa: ANN401 - a selectolax tree
    tree = require("selectolax.lexbor", "crawl").LexborHTMLParser(html)
    drop_noisy_elements(tree)
    return tree


def base_of(tree: Any, url: str) -> str:  # noqa: ANN401 - a selectolax tree
    """What relative links of a parsed page found at ``url`` are resolved against."""
    node = tree.css_first("base[href]")
    found = address(node.attributes.get("href") or "", base=url) if node else None
    return found.url if found else url


def _make_text(tree: Any) -> None:  # noqa: ANN401 - a selectolax tree
    """Make plain text of old elements whose content is no markup: it would be written out as if it were."""
    for node in tree.css("xmp, plaintext"):
        node.replace_with(f" {node.text(deep=True)} ")


def _resolved(feeds: Iterable[str], base: str) -> tuple[str, ...]:
    found = (address(href, base=base) for href in dict.fromkeys(feeds))
    return tuple(one.url for one in found if one)[:MOST_FEEDS]


def _collect(tree: Any, named: _Named) -> None:  # noqa: ANN401 - a selectolax tree
    """Every reference to another page, in the order of the page."""
    for node in tree.css(_LINKS):
        attributes = node.attributes
        if node.tag == "meta":
            _collect_meta(attributes, named)
        elif node.tag == "link":
            _collect_link(attributes, named)
        else:
            # In SVG the selector also matches xlink:href, which has another name among the attributes.
            href = attributes.get("href") or attributes.get("xlink:href") or attributes.get("src")
            if href:
                rel = attributes.get("rel")
                named.links.append(_Link(href, nofollow=bool(rel) and "nofollow" in rel.lower().split()))


def _asks_not_to_follow(tree: Any) -> bool:  # noqa: ANN401 - a selectolax tree
    """Whether ``meta robots`` says nofollow."""
    said = (node.attributes for node in tree.css("meta[name][content]"))
    ours = (one.get("content") or "" for one in said if (one.get("name") or "").strip().lower() == "robots")
    return any(not NO_FOLLOWING.isdisjoint(words(content)) for content in ours)


def _collect_meta(attributes: dict[str, str | None], named: _Named) -> None:
    found = _REFRESH.match(attributes.get("content") or "")
    if found and (attributes.get("http-equiv") or "").strip().lower() == "refresh":
        named.links.append(_Link(found[1]))


def _collect_link(attributes: dict[str, str | None], named: _Named) -> None:
    rel, href = (attributes.get("rel") or "").lower().split(), attributes.get("href") or ""
    if "canonical" in rel:
        named.links.append(_Link(href, is_canonical=True))
    elif "alternate" in rel and (attributes.get("type") or "").strip().lower() in _FEEDS and href:
        named.feeds.append(href)
