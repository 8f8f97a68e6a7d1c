"""Links and visible text of an HTML page, as a reader without scripts meets them."""

from __future__ import annotations

import re
import string
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from functools import cache, partial
from typing import TYPE_CHECKING, Any, NamedTuple, cast

from recrawl.detect.noise import drop_noisy_elements, without_noise
from recrawl.detect.parts import NO_RUNS, Pieces, Told, runs_of, text_in_parts
from recrawl.detect.robots_tag import NO_FOLLOWING, words
from recrawl.detect.rules import NO_PAGE_RULES, PageRules
from recrawl.errors import require
from recrawl.model.compiled import can_compile
from recrawl.model.values import plain_value
from recrawl.urls import Address, address

if TYPE_CHECKING:
    from recrawl.detect.scanned import Scanned

_INVISIBLE = ["script", "style", "template", "noscript", "iframe", "noembed", "noframes"]
_LINKS = "a[href], area[href], frame[src], iframe[src], link[rel][href], meta[http-equiv][content]"
_REFRESH = re.compile(r"\s*[\d.]+(?:\s*[;,]\s*|\s+)(?:url\s*=\s*)?[\"']?([^\"']+)", re.IGNORECASE)
_HREF = re.compile(r'<(?:a|area) [^>]*?(?:xlink:)?href="([^"]*)"')
_FEEDS = frozenset({"application/atom+xml", "application/feed+json", "application/rss+xml"})
_NAMES_BEGIN = frozenset(f"/{string.ascii_letters}{string.digits}")
"""What a link begins with that, if it has no scheme, depends on the directory of its page and not on the page."""
MOST_FEEDS = 8


@plain_value
class Document:
    """What is compared and what is followed of a page, its noise removed."""

    links: tuple[Address, ...]
    """Outlinks in the order of the page, each key once, the page itself left out."""
    parts: Told
    """The visible text, part by part, without noise and without what the user's rules leave out."""
    canonical: str = ""
    """The URL the page gives as its own name, empty if it gives none."""
    nofollow: frozenset[str] = frozenset()
    """Keys of links that the page asks not to follow wherever it names them, by ``rel`` or by ``meta robots``."""
    feeds: tuple[str, ...] = ()
    """Absolute URLs of the feeds that the page names, at most :data:`MOST_FEEDS`."""
    runs: Pieces = NO_RUNS
    """The parts before they were cleaned, to find out which links stand in which."""
    base: str = ""
    """What relative links are resolved against."""
    partial: bool = False
    """Rules left parts of the page out."""
    link_keys: frozenset[str] = frozenset()
    """Of the links."""

    @property
    def text(self) -> str:
        """The visible text as one."""
        return " ".join(self.parts.said)

    def links_outside(self, paths: frozenset[int]) -> frozenset[str]:
        """Keys of the links that stand somewhere outside these paths and outside what rules leave out."""
        heard = (html for path, html in zip(self.runs.path, self.runs.html, strict=True) if path not in paths)
        written = {href for html in heard for href in _HREF.findall(html)}
        found = (address(href.replace("&amp;", "&"), base=self.base) for href in written)
        return frozenset(link.key for link in found if link)


class _Link(NamedTuple):
    """A reference to another page, as written."""

    href: str
    is_canonical: bool = False
    nofollow: bool = False


class _Neighbours(dict[str | _Link, str]):
    """The keys of links on the pages of a directory, as far as they do not depend on the page."""

    def __init__(self, directory: str) -> None:
        super().__init__()
        self._directory = directory
        self.named: dict[str, Address] = {}
        """The links themselves, by their keys."""
        self.others = 0
        """How often somebody asked for a link of which there is more to say."""

    def __missing__(self, href: str | _Link) -> str:
        """The key of a link that was not met before; empty if there is more to say of it.

        Its meaning depends on the page, or on more than the link, or it is another spelling of one that was met, or
        there is no room for it. Of no directory there is more to say of all links.
        """
        is_plain = isinstance(href, str) and href[:1] in _NAMES_BEGIN and ":" not in href
        if is_plain and self._directory and not self.is_full():
            found = address(str(href), base=self._directory)
            if found is None or self.named.setdefault(found.key, found) == found:
                key = self[href] = found.key if found else _NO_LINK
                return key
        self.others += 1
        return _OTHER

    def is_full(self) -> bool:
        """Whether as much was met as is kept."""
        return len(self) >= _MOST_NEIGHBOURS


def _neighbours(directory: str) -> _Neighbours:
    """What was met in a directory. Never emptied, but left to those who read a page by it: others begin anew."""
    known = _directories.get(directory)
    if known is None or known.is_full():
        if len(_directories) >= _MOST_DIRECTORIES:
            _directories.clear()
        known = _directories[directory] = _Neighbours(directory)
    return known


_OTHER, _NO_LINK = "", " "
"""Stand for the key of such a link, and for that of what is none."""
_MOST_NEIGHBOURS, _MOST_DIRECTORIES = 512, 512
_directories: dict[str, _Neighbours] = {}


@dataclass(slots=True)
class _Named:
    """What a page names, as written."""

    links: list[_Link | str] = field(default_factory=list)
    """A text is a link of which nothing else is to be said."""
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
    quick = in_machine_code and can_compile() and not (rules.ignored or rules.only)
    page = _scanned_as_it_is(html) if quick else None
    if page is not None:
        return _document(_named_by(page), url, url, rules.cut(page.clean_text()), page.runs)
    tree = _parser()(html)
    page = _scanned(tree) if quick else None
    if page is None or page.maybe_noisy:
        drop_noisy_elements(tree)
        page = page and _scanned(tree)
    if page is not None:
        base = base_of(tree, url) if page.maybe_based else url
        return _document(_named_by(page), url, base, rules.cut(page.clean_text()), page.runs)
    lower = html.lower()  # to ask the text is a hundred times cheaper than to ask the tree
    base = base_of(tree, url) if "<base" in lower else url
    named = _Named(nothing_followed="robots" in lower and _asks_not_to_follow(tree))
    _collect(tree, named)
    tree.strip_tags(_INVISIBLE)
    if "<xmp" in lower or "<plaintext" in lower:
        _make_text(tree)
    kept = rules.applied(tree)
    runs = runs_of(kept)
    text = text_in_parts(runs, partial(without_noise, in_machine_code=in_machine_code))
    return _document(named, url, base, rules.cut(text), runs, partly=bool(rules.ignored or rules.only))


@cache
def _parser() -> Any:  # noqa: ANN401 - of selectolax
    return require("selectolax.lexbor", "crawl").LexborHTMLParser


def _scanned_as_it_is(html: str) -> Scanned | None:
    """The page, if it needs no parser; ``None`` if it does."""
    from recrawl.detect.scanned import scan_tidy_page  # numba is slow to import

    page = scan_tidy_page(html)
    return None if page is None or page.maybe_noisy or page.maybe_based else page


def _scanned(tree: Any) -> Scanned | None:  # noqa: ANN401 - a selectolax tree
    """The page, read many times as fast; ``None`` if it has anything that must be read in the slow way."""
    from recrawl.detect.scanned import scan_page  # numba is slow to import

    return scan_page(tree.html or "")


def _named_by(page: Scanned) -> _Named:
    """What a scanned page names."""
    if page.are_plain:
        return _Named(cast("list[_Link | str]", page.references))
    named = _Named()
    for reference in page.references:
        if isinstance(reference, str):
            named.links.append(reference)
            continue
        element, attributes = reference
        if element == "meta" and _says_not_to_follow(attributes):
            named.nothing_followed = True
        if element != "link" or "href" in attributes:
            _collect_one(element, attributes, named)
    return named


def _document(named: _Named, url: str, base: str, text: Told, runs: Pieces, *, partly: bool = False) -> Document:  # noqa: PLR0913
    """The page at ``url``, from what was read of it."""
    own = address(url)
    directory = own.url[: own.url.partition("?")[0].rfind("/") + 1] if own and base == url else ""
    # Pages name the same places many times, and so do their neighbours: to take a URL apart is the dearest step here.
    neighbours = _neighbours(directory)
    before = neighbours.others
    links: dict[str, object] = dict.fromkeys(map(neighbours.__getitem__, named.links))
    meant, canonical, shunned = neighbours.named, "", frozenset[str]()
    if neighbours.others > before:
        meant, canonical, shunned = _looked_closer(named.links, neighbours, base)
        links = {**meant}
    links.pop(_NO_LINK, None)
    if named.nothing_followed:
        shunned = frozenset([*links, own.key] if own else links)
    if own is not None:
        links.pop(own.key, None)
    feeds = _resolved(named.feeds, base) if named.feeds else ()
    found = tuple(map(meant.__getitem__, links))
    return Document(found, text, canonical, shunned, feeds, runs, base, partial=partly, link_keys=frozenset(links))


def _looked_closer(
    written: Iterable[_Link | str], neighbours: _Neighbours, base: str
) -> tuple[dict[str, Address], str, frozenset[str]]:
    """Links by their keys, the first spelling of each, in the order of the page.

    With them the canonical URL among them, and the keys of those that are not to be followed.
    """
    links, canonical, shunned, followed = dict[str, Address](), "", set[str](), set[str]()
    for link in dict.fromkeys(written):
        key = neighbours[link]
        if key == _NO_LINK:
            continue
        one = neighbours.named[key] if key else address(link if isinstance(link, str) else link.href, base=base)
        if one is None:
            continue
        links.setdefault(one.key, one)
        if isinstance(link, str) or not link.nofollow:
            followed.add(one.key)
        else:
            shunned.add(one.key)
        if not canonical and not isinstance(link, str) and link.is_canonical:
            canonical = one.url
    return links, canonical, frozenset(shunned - followed)


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
        _collect_one(node.tag, node.attributes, named)


def _collect_one(tag: str, attributes: Mapping[str, str | None], named: _Named) -> None:
    if tag == "meta":
        _collect_meta(attributes, named)
    elif tag == "link":
        _collect_link(attributes, named)
    else:
        # In SVG the selector also matches xlink:href, which has another name among the attributes.
        href = attributes.get("href") or attributes.get("xlink:href") or attributes.get("src")
        if href:
            named.links.append(_Link(href, nofollow="nofollow" in (attributes.get("rel") or "").lower().split()))


def _asks_not_to_follow(tree: Any) -> bool:  # noqa: ANN401 - a selectolax tree
    """Whether ``meta robots`` says nofollow."""
    return any(_says_not_to_follow(node.attributes) for node in tree.css("meta[name][content]"))


def _says_not_to_follow(attributes: Mapping[str, str | None]) -> bool:
    if (attributes.get("name") or "").strip().lower() != "robots":
        return False
    return not NO_FOLLOWING.isdisjoint(words(attributes.get("content") or ""))


def _collect_meta(attributes: Mapping[str, str | None], named: _Named) -> None:
    found = _REFRESH.match(attributes.get("content") or "")
    if found and (attributes.get("http-equiv") or "").strip().lower() == "refresh":
        named.links.append(_Link(found[1]))


def _collect_link(attributes: Mapping[str, str | None], named: _Named) -> None:
    rel, href = (attributes.get("rel") or "").lower().split(), attributes.get("href") or ""
    if "canonical" in rel:
        named.links.append(_Link(href, is_canonical=True))
    elif "alternate" in rel and (attributes.get("type") or "").strip().lower() in _FEEDS and href:
        named.feeds.append(href)
