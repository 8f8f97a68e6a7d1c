"""Links, visible text and page requisites of an HTML page, as a reader without scripts sees them.

The module also reads ``X-Robots-Tag``, which has the same words as ``meta robots``, and refuses pages that are built to
keep a parser busy. A running parser cannot be stopped, and three kinds of pages cost it more than their length:

    deep        at every block element it searches the open elements above it, which takes as long as the page is deep;
                a few megabytes of ``<span>`` before as many of ``<div>`` take hours. Browsers give up at 512 levels
    formatted   ``<font size=1><p><font size=2><p>...``: in each paragraph it opens again all unclosed formatting
                elements, each with a new node; fifty kilobytes make millions
    attributes  it compares each attribute of an element with all its other attributes

Such pages are compared by their bytes.
"""

from __future__ import annotations

import re
import string
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from functools import cache, partial
from itertools import product
from typing import TYPE_CHECKING, Any, NamedTuple, cast

import numpy as np

from recrawl.detect.change_criteria import NO_PAGE_RULES, PageRules
from recrawl.detect.noise.text_noise import drop_noisy_elements, without_noise
from recrawl.detect.text.text_parts import NO_RUNS, PartedText, PartRuns, runs_of, text_in_parts
from recrawl.errors import require
from recrawl.model import Capture
from recrawl.model.arrays import plain_value
from recrawl.model.compiled import can_compile
from recrawl.urls import Address, address

if TYPE_CHECKING:
    from recrawl.detect.html.scanned_page import ScannedPage


_FIELD = re.compile(rb"^x-robots-tag[ \t]*:([^\r\n]*)", re.IGNORECASE | re.MULTILINE)
_SCOPE = re.compile(r"\s*([a-z][a-z0-9_-]*)\s*:(.*)", re.DOTALL)
_WITH_VALUE = frozenset({"max-image-preview", "max-snippet", "max-video-preview", "unavailable_after"})
"""Words that take a value behind a colon, and so are no names of robots."""
NO_FOLLOWING = frozenset({"nofollow", "none"})


def words(directives: str) -> frozenset[str]:
    """The words of a list of directives, lower-case.

    >>> sorted(words("NoIndex, nofollow"))
    ['nofollow', 'noindex']
    """
    return frozenset(directives.lower().replace(",", " ").split())


def forbids_following(capture: Capture, agent: str) -> bool:
    r"""Whether the head of an answer asks us, or all robots, not to follow the links of the page.

    A field that starts with the name of a robot is for that one only.

    >>> head = b"HTTP/1.1 200 OK\r\nX-Robots-Tag: otherbot: nofollow\r\nX-Robots-Tag: recrawl: none\r\n\r\n"
    >>> forbids_following(Capture("http://x/", 0.0, 200, head), "recrawl")
    True
    >>> forbids_following(Capture("http://x/", 0.0, 200, head), "anybot")
    False
    """
    if b"x-robots-tag" not in capture.raw_head.lower():  # nearly all
        return False
    for value in _FIELD.findall(capture.raw_head):
        directives = value.decode("latin-1").lower()
        scope = _SCOPE.fullmatch(directives)
        if scope and scope[1] not in _WITH_VALUE:
            if scope[1] != agent:
                continue
            directives = scope[2]
        if not NO_FOLLOWING.isdisjoint(words(directives)):
            return True
    return False


DEEPEST = 20_000
"""Levels that are still read, in half a second."""
MOST_NODES = 1_000_000
"""Formatting elements that a parser may have to open again; some 500 MB."""
MOST_ATTRIBUTES = 5_000
_FEW, _SOME = 1_000, 10_000
"""Tags below which a page cannot be formatted, or nested, to harm: even if each were nested in all before it."""
_LONG_TAG = 20_000
"""Characters between two ends of tags from which on a tag may have many attributes."""
_ENDS_BY_ITSELF = re.compile(
    r"a|area|base|br|col|colgroup|dd|dt|embed|hr|img|input|li|link|meta|nobr|optgroup|option|p|param|rp|rt|source|"
    r"tbody|td|tfoot|th|thead|tr|track|wbr"
)
"""Elements that end where the next one starts, or at once: their starts are no levels."""
_TAG = re.compile(r"<(/?)([a-z][a-z0-9-]*)", re.IGNORECASE)
_NAMES = "b|big|code|em|font|i|s|small|strike|strong|tt|u"
_FORMATTING = re.compile(rf"<(/?)({_NAMES})(?=[\s/>])", re.IGNORECASE)
_WHOLE_FORMATTING = re.compile(rf"<(/?)({_NAMES})((?=[\s/>])[^>]*)>", re.IGNORECASE)
_KEPT_OF_ONE_KIND = 3
"""Of formatting elements that are alike, a parser keeps the last this many open."""
_MAY_FORMAT = np.zeros(1 << 16, np.bool_)
"""By the first two characters behind ``<``, whether a formatting element may start."""
for _name in _NAMES.split("|"):
    _seconds = "\t\n\f\r />" if len(_name) == 1 else _name[1] + _name[1].upper()
    for _first, _second in product(_name[0] + _name[0].upper(), _seconds):
        _MAY_FORMAT[ord(_first) << 8 | ord(_second)] = True
_QUOTED = re.compile(r"\"[^\"]*\"|'[^']*'")


def is_too_costly(html: str) -> bool:
    """Whether parsing a page could take much more than its length says. O(length).

    >>> is_too_costly("<div>" * 30_000), is_too_costly("<div></div>" * 30_000)
    (True, False)
    """
    tags = html.count("<")
    if tags > _FEW and _is_formatted_to_harm(html, tags):
        return True
    return (tags > _SOME and _is_too_deep(html)) or (len(html) > _LONG_TAG and _has_many_attributes(html))


def _is_too_deep(html: str) -> bool:
    """Whether more elements are open at some place than can be read."""
    if html.count("<") - html.count("</") <= DEEPEST:
        return False  # fewer start
    levels = ((end, name.lower()) for end, name in _TAG.findall(html))
    return _most_open((end, name) for end, name in levels if not _ENDS_BY_ITSELF.fullmatch(name)) > DEEPEST


def _most_open(tags: Iterable[tuple[str, str]]) -> int:
    """How many elements are open at once, at most. An end closes nothing but an element of its name."""
    opened: Counter[str] = Counter()
    depth = most = 0
    for end, name in tags:
        if not end:
            opened[name] += 1
            depth += 1
            most = max(most, depth)
        elif opened[name]:
            opened[name] -= 1
            depth -= 1
    return most


def _is_formatted_to_harm(html: str, tags: int) -> bool:
    """Whether formatting elements that stay open, at all tags together, are too many."""
    if _most_formatting(html) * tags <= MOST_NODES:
        return False
    found = _FORMATTING.findall(html)
    if len(found) * tags <= MOST_NODES or _most_open(found) * tags <= MOST_NODES:
        return False
    open_tags: dict[str, list[str]] = {}
    alike: Counter[str] = Counter()
    kept = nodes = done = 0
    for tag in _WHOLE_FORMATTING.finditer(html):
        nodes += kept * html.count("<", done, tag.start())
        done = tag.start()
        if nodes > MOST_NODES:
            return True
        name = tag[2].lower()
        if not tag[1]:
            written = name + tag[3]
            open_tags.setdefault(name, []).append(written)
            alike[written] += 1
            kept += alike[written] <= _KEPT_OF_ONE_KIND
        elif open_tags.get(name):
            written = open_tags[name].pop()
            kept -= alike[written] <= _KEPT_OF_ONE_KIND
            alike[written] -= 1
    return nodes + kept * html.count("<", done) > MOST_NODES


def _most_formatting(html: str) -> int:
    """N formatting elements start in a page, or fewer: as far as can be told without patterns, which are slow."""
    letters = np.frombuffer(html.encode("utf-8", "surrogatepass") + b"  ", np.uint8)
    begins = np.flatnonzero(letters == ord("<"))
    return int(_MAY_FORMAT[letters[begins + 1].astype(np.intp) << 8 | letters[begins + 2]].sum())


def _has_many_attributes(html: str) -> bool:
    """Whether some tag has more attributes than can be read: its words, those in quotes left out."""
    if not _has_long_tag(html):
        return False
    for piece in html.split(">"):
        if len(piece) > _LONG_TAG:
            _, begins, tag = piece.rpartition("<")
            if begins and tag[:1].isalpha() and len(_QUOTED.sub(" ", tag).split()) > MOST_ATTRIBUTES:
                return True
    return False


def _has_long_tag(html: str) -> bool:
    """Whether two ends of tags lie far apart, or the last one and the end of the page. O(length), mostly much less."""
    end = 0
    while end + _LONG_TAG < len(html):
        end = html.rfind(">", end, end + _LONG_TAG + 1) + 1
        if not end:
            return True
    return False


_INVISIBLE = ["script", "style", "template", "noscript", "iframe", "noembed", "noframes"]
_LINKS = "a[href], area[href], frame[src], iframe[src], link[rel][href], meta[http-equiv][content]"
_REFRESH = re.compile(r"\s*[\d.]+(?:\s*[;,]\s*|\s+)(?:url\s*=\s*)?[\"']?([^\"']+)", re.IGNORECASE)
_HREF = re.compile(r'<(?:a|area) [^>]*?(?:xlink:)?href="([^"]*)"')
_FEEDS = frozenset({"application/atom+xml", "application/feed+json", "application/rss+xml"})
_NAMES_BEGIN = frozenset(f"/{string.ascii_letters}{string.digits}")
"""What a link starts with that, if it has no scheme, depends on the directory of its page and not on the page."""
MOST_FEEDS = 8


@plain_value
class Document:
    """What is compared and what is followed of a page, its noise removed."""

    links: tuple[Address, ...]
    """Outlinks in the order of the page, each key once, the page itself left out."""
    parts: PartedText
    """The visible text, part by part, without noise and without what the user's rules leave out."""
    canonical: str = ""
    """The URL the page gives as its own name, empty if it gives none."""
    nofollow: frozenset[str] = frozenset()
    """Keys of links that the page asks not to follow wherever it names them, by ``rel`` or by ``meta robots``."""
    feeds: tuple[str, ...] = ()
    """Absolute URLs of the feeds that the page names, at most :data:`MOST_FEEDS`."""
    runs: PartRuns = NO_RUNS
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
    """What was met in a directory. Never emptied, but left to those who read a page by it: others start over."""
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


def read_html(html: str, url: str, rules: PageRules = NO_PAGE_RULES, *, use_kernels: bool = False) -> Document:
    """Parse a page found at ``url``. Any text is a page; broken HTML is read as browsers read it.

    Links are those of ``a``, ``area``, ``frame``, ``iframe``, ``meta refresh`` and ``link rel=canonical``,
    resolved against ``base href``. Elements that are noise are left out of links and text alike; what ``rules`` leave
    out is missing in the text only. ``use_kernels`` is for those who read thousands of pages.

    >>> page = read_html("<base href=/b/><p>Hello <a href=c>you</a><script>x()</script>", "http://example.com/a")
    >>> page.text, page.links[0].url
    ('Hello you', 'http://example.com/b/c')
    """
    quick = use_kernels and can_compile() and not (rules.ignored or rules.only)
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
    text = text_in_parts(runs, partial(without_noise, use_kernels=use_kernels))
    return _document(named, url, base, rules.cut(text), runs, partly=bool(rules.ignored or rules.only))


@cache
def _parser() -> Any:  # noqa: ANN401 - of selectolax
    return require("selectolax.lexbor", "crawl").LexborHTMLParser


def _scanned_as_it_is(html: str) -> ScannedPage | None:
    """The page, if it needs no parser; ``None`` if it does."""
    from recrawl.detect.html.scanned_page import scan_wellformed_page  # numba is slow to import

    page = scan_wellformed_page(html)
    return None if page is None or page.maybe_noisy or page.maybe_based else page


def _scanned(tree: Any) -> ScannedPage | None:  # noqa: ANN401 - a selectolax tree
    """The page, read many times as fast; ``None`` if it has anything that must be read in the slow way."""
    from recrawl.detect.html.scanned_page import scan_page  # numba is slow to import

    return scan_page(tree.html or "")


def _named_by(page: ScannedPage) -> _Named:
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


def _document(  # noqa: PLR0913 - what a document is made of
    named: _Named, url: str, base: str, text: PartedText, runs: PartRuns, *, partly: bool = False
) -> Document:
    """The page at ``url``, from what was read of it."""
    own = address(url)
    directory = own.url[: own.url.partition("?")[0].rfind("/") + 1] if own and base == url else ""
    # Pages name the same places many times, and so do their neighbours: to take a URL apart is the dearest step here.
    neighbours = _neighbours(directory)
    before = neighbours.others
    links: dict[str, object] = dict.fromkeys(map(neighbours.__getitem__, named.links))
    meant, canonical, shunned = neighbours.named, "", frozenset[str]()
    if neighbours.others > before:
        meant, canonical, shunned = _parsed_closely(named.links, neighbours, base)
        links = {**meant}
    links.pop(_NO_LINK, None)
    if named.nothing_followed:
        shunned = frozenset([*links, own.key] if own else links)
    if own is not None:
        links.pop(own.key, None)
    feeds = _resolved(named.feeds, base) if named.feeds else ()
    found = tuple(map(meant.__getitem__, links))
    return Document(found, text, canonical, shunned, feeds, runs, base, partial=partly, link_keys=frozenset(links))


def _parsed_closely(
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


_SOURCES = (
    "img[src], img[srcset], source[src], source[srcset], link[rel][href], link[imagesrcset], script[src], embed[src], "
    "object[data], audio[src], video[src], video[poster], track[src], input[type=image][src]"
)
_ATTRIBUTES = ("src", "data", "poster")
_LOADED = frozenset({"apple-touch-icon", "icon", "manifest", "modulepreload", "preload", "stylesheet"})
"""Values of ``rel`` by which a page loads something; all others point somewhere."""
_CANDIDATE = re.compile(r"[\s,]*([^\s,]\S*)")
_DESCRIPTORS = re.compile(r"(?:\([^)]*\)?|[^,(])*")


def embeds_of(html: str, url: str) -> tuple[Address, ...]:
    """Addresses of all that the page at ``url`` embeds, each key once, in the order of the page.

    Of a image in several sizes, all. What stands in the page itself (``data:``) is no address. Other pages are no
    embeds: frames are links.

    >>> page = "<img src=a.png srcset='b,c.png 2x, data:image/png;base64,AA 3x, d.png'>"
    >>> [one.url for one in embeds_of(page, "http://example.com/")]
    ['http://example.com/a.png', 'http://example.com/b,c.png', 'http://example.com/d.png']
    """
    tree = require("selectolax.lexbor", "crawl").LexborHTMLParser(html)
    base = base_of(tree, url)
    found = (address(written, base=base) for written in dict.fromkeys(_embedded(tree)) if written.strip())
    first: dict[str, Address] = {}
    for one in found:
        if one is not None:
            first.setdefault(one.key, one)
    return tuple(first.values())


def candidates(srcset: str) -> Iterator[str]:
    """The URLs of a ``srcset``, split as HTML says: at spaces, and at commas that end a candidate.

    >>> list(candidates("a.png, b,c.png 2x,d.png 480w , e.png,")), list(candidates("data:image/png;base64,AA== 1x"))
    (['a.png', 'b,c.png', 'd.png', 'e.png'], ['data:image/png;base64,AA=='])
    """
    place = 0
    while found := _CANDIDATE.match(srcset, place):
        place, written = found.end(), found[1]
        url = written.rstrip(",")
        yield url
        if url == written:  # what follows belongs to it, up to a comma outside of parentheses
            descriptors = _DESCRIPTORS.match(srcset, place)
            place = descriptors.end() if descriptors else place


def _embedded(tree: Any) -> Iterator[str]:  # noqa: ANN401 - a selectolax tree
    """Every reference as written."""
    for node in tree.css(_SOURCES):
        attributes = node.attributes
        loads = node.tag != "link" or not _LOADED.isdisjoint((attributes.get("rel") or "").lower().split())
        if loads and node.tag == "link":
            yield attributes.get("href") or ""
        yield from (attributes.get(name) or "" for name in _ATTRIBUTES if name in attributes)
        for name in ("srcset", "imagesrcset"):
            yield from candidates(attributes.get(name) or "")
