"""The embedded resources of a page: the kind of each, and how large the page shows it.

:mod:`recrawl.detect.html.html_document` lists the URLs that a crawler fetches. This module is for assessment and replay
of an archived page and reads more: frames, style sheets inside and outside of the page, and which references are
alternatives of each other. Resources that are not shown do not count: icons, manifests, and preloads.

Everything here is bounded: by the bytes that are read, and by :data:`MOST_EMBEDS` and :data:`MOST_ALTERNATIVES`.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Any

from recrawl.detect.body import html_of, media_type, text_of
from recrawl.detect.html.html_document import base_of, candidates, is_too_costly
from recrawl.detect.version import MAX_READ, MOST_HTML, CostlyError, Effort, body_of, is_html
from recrawl.errors import require
from recrawl.model import Capture
from recrawl.model.captures import VIEWPORT, ElementSize, EmbeddedResource, EmbeddedResources, EmbedKind
from recrawl.urls import Address, address

MOST_EMBEDS = 1_000
"""Embedded resources of one page, or of one style sheet, that are read."""
MOST_ALTERNATIVES = 20
"""Alternatives of one resource that are read."""
MOST_CSS = 1 << 20
"""Characters of a style sheet that are read."""

_SOURCES = (
    "img, input[type=image][src], picture > source[srcset], image, link[rel][href], script[src], iframe[src], "
    "frame[src], embed[src], object[data], audio, video, audio > source[src], video > source[src], track[src], "
    "[background], style, [style]"
)
_PLAIN = {
    "img": (("src",), EmbedKind.IMAGE),
    "input": (("src",), EmbedKind.IMAGE),
    "image": (("href", "xlink:href"), EmbedKind.IMAGE),
    "script": (("src",), EmbedKind.SCRIPT),
    "iframe": (("src",), EmbedKind.FRAME),
    "frame": (("src",), EmbedKind.FRAME),
    "embed": (("src",), EmbedKind.MULTIMEDIA),
    "object": (("data",), EmbedKind.MULTIMEDIA),
    "audio": (("src",), EmbedKind.MULTIMEDIA),
    "video": (("src",), EmbedKind.MULTIMEDIA),
    "source": (("src",), EmbedKind.MULTIMEDIA),
    "track": (("src",), EmbedKind.OTHER),
}
"""Attributes that name what an element embeds, and what that is."""
_IMAGES = ("img", "source")
_HOLDERS = frozenset({"picture", "audio", "video", "object"})
"""Elements whose children are alternatives of one resource …"""
_HELD = frozenset({"img", "source", "embed", "object"})
"""… if they are these."""
_UNSTATED = ElementSize()
_LONGEST = 8_000
"""Characters of an address; servers refuse longer ones."""
_AUDIO = ElementSize(300.0, 54.0)
"""What browsers give to the controls of a sound."""
_OTHER_MEDIA = re.compile(
    r"\s*(?:only\s+)?(?:print|speech|aural|braille|embossed|handheld|projection|tty|tv)\b", re.IGNORECASE
)
_LENGTH = re.compile(r"\s*(\d{1,6}(?:\.\d{1,6})?)\s*(%|px)?\s*(?:$|;)", re.IGNORECASE)
_STYLED = {name: re.compile(rf"(?:^|;)\s*{name}\s*:\s*([^;]{{1,40}})", re.IGNORECASE) for name in ("width", "height")}
_CSS = re.compile(
    r"""/\*.*?(?:\*/|\Z)
    |@import\s+(?:url\(\s*)?(?:"(?P<i1>[^"\n]*)"|'(?P<i2>[^'\n]*)'|(?P<i3>[^\s"'();]+))
    |@namespace\b[^;{}]*
    |(?P<font>@font-face\b)
    |(?P<brace>[{}])
    |url\(\s*(?:"(?P<u1>[^"\n]*)"|'(?P<u2>[^'\n]*)'|(?P<u3>(?:[^\s"'()\\]|\\[0-9a-f]{1,6}\s?|\\.)++))\s*\)
    |"(?:[^"\\\n]++|\\.)*+"?|'(?:[^'\\\n]++|\\.)*+'?
    """,
    re.VERBOSE | re.IGNORECASE | re.DOTALL,
)
_ESCAPE = re.compile(r"\\(?:([0-9a-f]{1,6})\s?|(.))", re.IGNORECASE | re.DOTALL)


def read_embeds(capture: Capture, *, stylesheet: bool = False, effort: Effort = Effort.ALL) -> EmbeddedResources | None:
    """What an archived answer embeds; ``None`` if it is no page (or no style sheet) or cannot be read.

    Raises:
        CostlyError: it cannot be read cheaply, and nothing else is wanted.
    """
    body, whole = body_of(capture, effort)
    if not whole or len(body) > MAX_READ:
        return None
    if effort is Effort.CHEAP and len(body) > MOST_HTML:
        raise CostlyError
    content_type = capture.header("content-type")
    if stylesheet:
        return embedded_in_css(text_of(body[: 4 * MOST_CSS], content_type), capture.url)
    if not is_html(media_type(capture), body):
        return None
    html = html_of(body, content_type)
    return None if is_too_costly(html) else embedded_in_html(html, capture.url)


def embedded_in_html(html: str, url: str) -> EmbeddedResources:
    """What the page at ``url`` embeds.

    >>> page = "<img src=a.png srcset='b.png 2x' width=50><iframe src=f.html></iframe><p style='background:url(c.png)'>"
    >>> [(one.kind.name, [address.url for address in one.alternatives]) for one in
    ...  embedded_in_html(page, "http://example.com/").embeds]  # doctest: +NORMALIZE_WHITESPACE
    [('IMAGE', ['http://example.com/a.png', 'http://example.com/b.png']),
     ('FRAME', ['http://example.com/f.html']), ('IMAGE', ['http://example.com/c.png'])]
    """
    tree = require("selectolax.lexbor", "crawl").LexborHTMLParser(html)
    base = base_of(tree, url)
    found = _ResourceCollector(hooks=tree.css_first("[class], [id]") is not None)
    for node in tree.css(_SOURCES):
        if found.full:
            break
        for slot, reference in _references(node, found.hooks):
            found.add(slot, reference, base)
    for node in tree.css("script, style, template"):
        node.decompose()
    words = len(tree.body.text(separator=" ").split()) if tree.body is not None else 0
    return found.told(words)


def embedded_in_css(text: str, url: str) -> EmbeddedResources:
    """What the style sheet at ``url`` embeds: other sheets, images, fonts.

    >>> sheet = "@import 'x'; @font-face {src: url(f.woff2), url(f.woff)} p {background: url('a.png')} /* url(b.png) */"
    >>> [(one.kind.name, len(one.alternatives)) for one in embedded_in_css(sheet, "http://example.com/s.css").embeds]
    [('STYLESHEET', 1), ('OTHER', 2), ('IMAGE', 1)]
    """
    found = _ResourceCollector(hooks=True)
    for slot, reference in _in_css(text, ""):
        if found.full:
            break
        found.add(slot, reference, url)
    return found.told(0, cut=len(text) > MOST_CSS)


def rewrite_css(text: str, inside: Callable[[str, bool], str | None]) -> str:
    """A style sheet with other addresses: ``inside`` is told each as written, and whether a sheet is imported.

    Where it gives ``None``, the reference stays.

    >>> rewrite_css("a {b: url( x.png )} @import url(y.css);", lambda written, sheet: f"/{written}" if sheet else None)
    'a {b: url( x.png )} @import url(/y.css);'
    """

    def replaced(found: re.Match[str]) -> str:
        for names, imports in ((("i1", "i2", "i3"), True), (("u1", "u2", "u3"), False)):
            for name in names:
                if found[name] is not None:
                    place = inside(_unescaped(found[name]), imports)
                    if place is None:
                        return found[0]
                    start, end = found.span(name)
                    begin = found.start()
                    return found[0][: start - begin] + _escaped(place) + found[0][end - begin :]
        return found[0]

    return _CSS.sub(replaced, text)


@dataclass(frozen=True, slots=True)
class _Reference:
    """One address as written, and what it is for."""

    written: str
    kind: EmbedKind
    size: ElementSize = _UNSTATED
    applies: float = 1.0


@dataclass(slots=True)
class _ResourceCollector:
    """What was found so far."""

    hooks: bool
    """Whether the page has classes or ids that rules can name."""
    by_slot: dict[object, dict[str, Address]] = field(default_factory=dict)
    """Alternatives by key, of each element."""
    about: dict[object, _Reference] = field(default_factory=dict)
    """The first reference of each element."""
    cut: bool = False

    @property
    def full(self) -> bool:
        """Whether no more is read."""
        if len(self.by_slot) > MOST_EMBEDS:
            self.cut = True
        return self.cut

    def add(self, slot: object, reference: _Reference, base: str) -> None:
        """Take a reference in, if it names something on the web."""
        written = reference.written.strip()
        if not written or written[0] == "#" or len(written) > _LONGEST or written[:5].lower() == "data:":
            return
        named = address(written, base=base)
        if named is None:
            return
        self.about.setdefault(slot, reference)
        alternatives = self.by_slot.setdefault(slot, {})
        if len(alternatives) < MOST_ALTERNATIVES:
            alternatives.setdefault(named.key, named)

    def told(self, words: int, *, cut: bool = False) -> EmbeddedResources:
        """All of it, each resource once: elements that name the same first are one."""
        resources: dict[str, EmbeddedResource] = {}
        for slot, alternatives in list(self.by_slot.items())[:MOST_EMBEDS]:
            about, (first, *_) = self.about[slot], alternatives
            known = resources.get(first)
            if known is None:
                resources[first] = EmbeddedResource(
                    tuple(alternatives.values()), about.kind, (about.size,), about.applies
                )
            else:
                applies = max(known.applies, about.applies)
                resources[first] = known._replace(sizes=(*known.sizes, about.size), applies=applies)
        return EmbeddedResources(tuple(resources.values()), words, self.cut or cut)


def _references(node: Any, hooks: bool) -> Iterator[tuple[object, _Reference]]:  # noqa: ANN401 - a node
    """Every reference of an element, with what it is an alternative in."""
    attributes, tag = node.attributes, node.tag
    slot = _slot(node)
    if tag in _PLAIN:
        names, kind = _PLAIN[tag]
        size = _size(node.parent if tag == "source" else node)
        yield from ((slot, _Reference(attributes[name], kind, size)) for name in names if attributes.get(name))
    if tag == "link":
        yield from ((slot, one) for one in _sheet(attributes, hooks))
    if tag in _IMAGES and attributes.get("srcset"):
        size = _size(node) if tag == "img" else _UNSTATED
        yield from ((slot, _Reference(one, EmbedKind.IMAGE, size)) for one in candidates(attributes["srcset"]))
    for name in ("poster", "background"):
        if attributes.get(name):
            size = _size(node) if name == "poster" else _UNSTATED
            yield (node.mem_id, name), _Reference(attributes[name], EmbedKind.IMAGE, size)
    if tag == "style" and not _is_elsewhere(attributes.get("media") or ""):
        yield from _in_css(node.text(deep=True) or "", (node.mem_id, "sheet"))
    if attributes.get("style"):
        yield from _in_css(attributes["style"], (node.mem_id, "style"))


def _slot(node: Any) -> object:  # noqa: ANN401 - a node
    """What the references of an element are alternatives in: itself, or the element that holds it."""
    parent = node.parent
    if node.tag in _HELD and parent is not None and parent.tag in _HOLDERS:
        return parent.mem_id
    return node.mem_id


def _sheet(attributes: Any, hooks: bool) -> Iterator[_Reference]:  # noqa: ANN401 - attributes of a node
    """The style sheet that a link names, if it names one."""
    rel = (attributes.get("rel") or "").lower().split()
    if "stylesheet" in rel:
        for_screens = "alternate" not in rel and not _is_elsewhere(attributes.get("media") or "")
        applies = (1.0 if hooks else 0.5) if for_screens else 0.0
        yield _Reference(attributes.get("href") or "", EmbedKind.STYLESHEET, applies=applies)


def _in_css(text: str, slot: object) -> Iterator[tuple[object, _Reference]]:
    """Every reference of a style sheet; those of one font are alternatives."""
    font, depth = None, 0
    for found in _CSS.finditer(text[:MOST_CSS]):
        if found["font"] is not None:
            font, depth = found.start(), 0
        elif found["brace"] is not None:
            depth += 1 if found["brace"] == "{" else -1
            if depth <= 0:
                font = None
        elif (written := found["i1"] or found["i2"] or found["i3"]) is not None:
            yield (slot, found.start()), _Reference(_unescaped(written), EmbedKind.STYLESHEET)
        elif (written := found["u1"] or found["u2"] or found["u3"]) is not None:
            about = _Reference(_unescaped(written), EmbedKind.IMAGE if font is None else EmbedKind.OTHER)
            yield (slot, found.start() if font is None else ("font", font)), about


def _unescaped(written: str) -> str:
    r"""An address of a style sheet without its escapes.

    >>> _unescaped(r"a\20 b\)c")
    'a b)c'
    """

    def plain(found: re.Match[str]) -> str:
        if found[1] is None:
            return found[2]
        code = int(found[1], 16)
        return chr(code) if 0 < code < 0x110000 and not 0xD800 <= code < 0xE000 else "\ufffd"  # noqa: PLR2004 - Unicode

    return _ESCAPE.sub(plain, written) if "\\" in written else written


def _escaped(place: str) -> str:
    """An address as it may stand in a style sheet, with and without quotes."""
    return re.sub(r"[\s\"'()\\<>]", lambda found: "".join(f"%{byte:02X}" for byte in found[0].encode()), place)


def _size(node: Any) -> ElementSize:  # noqa: ANN401 - a node
    """The size that an element states: by its own style, else by its attributes."""
    style = (node.attributes.get("style") or "")[:2_000]
    sides = []
    for name, whole in zip(("width", "height"), VIEWPORT, strict=True):
        styled = _STYLED[name].search(style)
        said = _LENGTH.match((styled[1] if styled else node.attributes.get(name) or "")[:40])
        sides.append(float(said[1]) * (whole / 100 if said[2] == "%" else 1.0) if said else math.nan)
    return _AUDIO if node.tag == "audio" and all(map(math.isnan, sides)) else ElementSize(*sides)


def _is_elsewhere(media: str) -> bool:
    """Whether a style sheet is for no screen at all.

    >>> [_is_elsewhere(media) for media in ("", "print", "screen, print", "(min-width: 10px)", "print, tv")]
    [False, True, False, False, True]
    """
    return bool(media.strip()) and all(_OTHER_MEDIA.match(query) for query in media[:1_000].split(","))
