"""The visible parts of a page: each run of text between two block elements, and its identity.

A part has three hashes of 32 bits, which depend on the page alone, so that they can be stored:

    path      the block elements around it with their classes and ids, without positions; the last bit says whether the
              part has only links
    template  path and text with all numbers left out; 0 for a text without numbers, or with numbers only
    content   the text

Noise is learned per path and template (``noise_keys``): "visitor 10,293" and "visitor 10,294" are one template, and a
box of random articles is one path. Digits and random tokens in names are left out of a path, so that ``post-17`` and
``post-18`` are one.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from functools import lru_cache
from typing import NamedTuple, Protocol
from zlib import crc32

from recrawl.detect.noise.noise_keys import hidden_rows
from recrawl.detect.text.shingles import SAMPLE, Shingles, shingles

BLOCKS = (
    "address|article|aside|blockquote|body|button|caption|center|dd|details|dialog|div|dl|dt|fieldset|figcaption|"
    "figure|footer|form|h[1-6]|head|header|hgroup|html|label|legend|li|main|menu|nav|ol|optgroup|option|p|pre|"
    "section|select|summary|table|tbody|td|textarea|tfoot|th|thead|title|tr|ul"
)
_TAG_OF_BLOCK = rf"</?(?:{BLOCKS})(?: [^>]*)?>"
_BLOCK = re.compile(_TAG_OF_BLOCK)
_BORDER = re.compile(rf"({_TAG_OF_BLOCK}(?:\s*{_TAG_OF_BLOCK})*)")
_NAMED = re.compile(r' (class|id)="([^"]*)"')
_DIGITS = re.compile(r"\d+")
_NAME_PIECE = re.compile(r"(?<![A-Za-z#])[A-Za-z#]+")  # starts where the piece does: linear however long it is
TOKEN_NUMBERS = 3
"""Numbers in one piece of a class or id that make it a random token, as in ``view-dom-id-54e26c91``."""
_COMMENT = re.compile(r"<!--.*?-->", re.DOTALL)
_NUMBER = re.compile(r"\b[^\W\d]*+\d[\w.,:]*")
_WORD = re.compile(r"[^\W\d_]{2}")
_ENTITIES = (("&nbsp;", " "), ("&lt;", "<"), ("&gt;", ">"), ("&amp;", "&"))
"""All that a parser writes for characters of a text; the last must be undone last."""
BETWEEN = "\x01"
"""Stands between the parts of a text while all are cleaned at once. In ASCII, so that ASCII texts stay so."""
_TAG = re.compile(rf"<[^>{BETWEEN}]*>")  # an element may be called "title<ul", and then a run holds half a tag
LONGEST_TEMPLATE = 200
"""Characters."""
_LONG_BORDER = 1000
"""Characters beyond which a border or a tag is not remembered: it will not come again, and memory is bounded."""
_NO_PLACE = frozenset({"<html", "<body", "<head"})


class TextRuns(NamedTuple):
    """The pieces of a page between its block elements, with inline elements still in them."""

    path: Sequence[int]
    html: Sequence[str]


NO_RUNS = TextRuns((), ())


class PartRuns(Protocol):
    """Anything like :class:`TextRuns`."""

    @property
    def path(self) -> Sequence[int]:
        """Where each run stands."""

    @property
    def html(self) -> Sequence[str]:
        """What is written there."""


class PageParts(NamedTuple):
    """The parts of one version in the order of the page, column by column."""

    path: Sequence[int]
    template: Sequence[int]
    content: Sequence[int]


class PartColumns(NamedTuple):
    """Parts as a fingerprint keeps them."""

    parts: int
    paths: int
    """How many different ones there are."""
    templates: int
    """How many parts have one."""
    data: bytes
    """Paths; the number of each part's path among them; contents; which parts have templates, and these."""


class PartedText(Protocol):
    """The text of a page in parts, however it is kept."""

    @property
    def path(self) -> Sequence[int]:
        """Where each part stands."""

    @property
    def said(self) -> Sequence[str]:
        """What it says."""

    def written(self) -> bytes:
        """All of it as one, in UTF-8."""

    def parts(self) -> PageParts:
        """The numbers of the parts."""

    def columns(self) -> PartColumns | None:
        """The same as a fingerprint keeps them, where that is available."""

    def sample(self, parts: PageParts, mask: frozenset[int], *, use_kernels: bool = False) -> Shingles:
        """The smallest numbers of the shingles of the text outside the mask; ``parts`` are its own."""

    def saying(self, kept: Sequence[tuple[int, str]]) -> PartedText:
        """A text with these parts."""


class PageText(NamedTuple):
    """The text of a page in parts: where each stands, and what it says."""

    path: Sequence[int]
    said: Sequence[str]

    def written(self) -> bytes:
        """All of it as one, in UTF-8."""
        return " ".join(self.said).encode("utf-8", "surrogatepass")

    def parts(self) -> PageParts:
        """The numbers of the parts. O(length)."""
        content = [crc32(text.encode("utf-8", "surrogatepass")) for text in self.said]
        template = [template_of(*one) for one in zip(self.path, self.said, strict=True)]
        return PageParts(self.path, template, content)

    def columns(self) -> None:
        """Not available: they are made of the parts."""

    def sample(self, parts: PageParts, mask: frozenset[int], *, use_kernels: bool = False) -> Shingles:
        """The smallest numbers of the shingles of the text outside the mask; ``parts`` are its own. O(length)."""
        said = self.said
        if mask:
            said = [one for one, hidden in zip(said, hidden_rows(parts, mask), strict=True) if not hidden]
        return shingles(" ".join(said), SAMPLE, use_kernels=use_kernels)

    def saying(self, kept: Sequence[tuple[int, str]]) -> PageText:
        """A text with these parts."""
        return PageText([path for path, _ in kept], [said for _, said in kept])


def runs_of(html: str) -> TextRuns:
    """The runs of a page, as a parser writes it (balanced, attributes in quotes, ``<`` and ``>`` escaped in them).

    Runs of nothing but space are left out. O(length).

    >>> runs_of('<body><p class="a">One <b>more</b></p> <p>Two</p></body>').html
    ['One <b>more</b>', 'Two']
    """
    if "<!--" in html:
        html = _COMMENT.sub(" ", html)
    pieces = _BORDER.split(html.replace(BETWEEN, " "))
    paths, texts = [0], [pieces[0]]
    around = [0]
    for border, text in zip(pieces[1::2], pieces[2::2], strict=True):
        left, entered = _crossed(border) if len(border) < _LONG_BORDER else _crossed.__wrapped__(border)
        if left:
            del around[max(1, len(around) - left) :]
        for step in entered:
            around.append(crc32(step, around[-1]))
        if text and not text.isspace():
            paths.append(_marked(around[-1], text))
            texts.append(text)
    return TextRuns(paths, texts) if texts[0] and not texts[0].isspace() else TextRuns(paths[1:], texts[1:])


@lru_cache(maxsize=1 << 14)  # the same few borders make all pages of a site
def _crossed(border: str) -> tuple[int, tuple[bytes, ...]]:
    """How many block elements end between two texts, and the steps into those that start there and go on.

    >>> _crossed('</li></ul> <p class="empty"></p> <div id="end"><p>')
    (2, (b'<div id=end', b'<p'))
    """
    left, entered = 0, list[bytes]()
    for tag in _BLOCK.findall(border):
        if tag[1] != "/":
            entered.append(_step(tag) if len(tag) < _LONG_BORDER else _step.__wrapped__(tag))
        elif entered:
            entered.pop()
        else:
            left += 1
    return left, tuple(entered)


def _marked(path: int, text: str) -> int:
    """The path with its last bit set where a run is nothing but links. Path 0 is no place and stays so."""
    if "</a>" not in text or not path:
        return path & ~1
    text = text.strip()
    return path | 1 if text.startswith("<a ") and text.endswith("</a>") else path & ~1


def is_of_links(path: int) -> bool:
    """Whether the parts at a path are nothing but links: a menu, a list of articles."""
    return path & 1 == 1


@lru_cache(maxsize=1 << 14)
def _step(tag: str) -> bytes:
    """A block element as part of a path: its name, its classes in any order, its id. Outermost ones tell nothing.

    Names that hold a random token are the same whatever the token: some servers make new ones at each request.

    >>> _step('<div class="post odd" id="post-17">'), _step('<body class="page-id-3">')
    (b'<div class=odd,post id=post-#', b'')
    >>> _step('<div class="view-dom-id-54e26c918678da3098b2b9aa101cff09">')
    b'<div class=view-dom-id-#'
    """
    name = tag.rstrip(">").partition(" ")[0]
    if name in _NO_PLACE:
        return b""
    named = (f"{what}={','.join(sorted(_without_tokens(names).split()))}" for what, names in _NAMED.findall(tag))
    return " ".join([name, *sorted(named)]).encode("utf-8", "surrogatepass")


def _without_tokens(names: str) -> str:
    """Classes or ids with ``#`` for each number, and for each piece with several, as ``tag_scan.fed_names`` does."""
    masked = _DIGITS.sub("#", names)
    if masked.count("#") < TOKEN_NUMBERS:
        return masked
    return _NAME_PIECE.sub(lambda piece: "#" if piece[0].count("#") >= TOKEN_NUMBERS else piece[0], masked)


def text_in_parts(runs: PartRuns, clean: Callable[[str], str]) -> PageText:
    """The text of runs, cleaned: ``clean`` is given all at once, :data:`BETWEEN` standing between the parts.

    It must make one space of runs of space. Parts of which nothing is left are left out.

    >>> runs = TextRuns([1, 2, 3], ["Hello <b>you</b> ", "<img>", "&lt;3"])
    >>> text_in_parts(runs, lambda text: " ".join(text.split()))
    PageText(path=[1, 3], said=['Hello you', '<3'])
    """
    if not runs.html:
        return PageText([], [])
    return parted(runs.path, clean(_plain(f" {BETWEEN} ".join(runs.html))))


def parted(paths: Sequence[int], cleaned: str) -> PageText:
    """A text taken apart where :data:`BETWEEN` stands; parts of which nothing is left are left out."""
    said = cleaned.split(BETWEEN)
    kept = [(path, text.strip()) for path, text in zip(paths, said, strict=True) if not text.isspace() and text]
    return PageText([path for path, _ in kept], [text for _, text in kept])


def text_in_lines(text: str, clean: Callable[[str], str]) -> PageText:
    r"""A plain text in parts, its lines, cleaned as in :func:`text_in_parts`. They stand at no path.

    >>> text_in_lines("One\n\n Two", lambda text: " ".join(text.split())).said
    ['One', 'Two']
    """
    lines = text.replace(BETWEEN, " ").splitlines()
    said = [line for line in map(str.strip, clean(f" {BETWEEN} ".join(lines)).split(BETWEEN)) if line]
    return PageText([0] * len(said), said)


def _plain(html: str) -> str:
    """The text of a run, or of several, without inline elements; spaces as they are."""
    if "<" in html:
        html = _TAG.sub(" ", html)
    if "&" in html:
        for written, meant in _ENTITIES:
            html = html.replace(written, meant)
    return html


def template_of(path: int, text: str) -> int:
    """The number of the text at a path without the words that hold digits; 0 if there are none, or no others.

    A counter is a line; what is longer than :data:`LONGEST_TEMPLATE` is prose and has none.

    >>> template_of(7, "Visitor 10,293 today") == template_of(7, "Visitor 9 today")
    True
    >>> template_of(7, "Visitors"), template_of(7, "€ 12.50")
    (0, 0)
    """
    if len(text) > LONGEST_TEMPLATE or _DIGITS.search(text) is None:
        return 0
    template = _NUMBER.sub("#", text)
    return (crc32(template.encode("utf-8", "surrogatepass"), path) or 1) if _WORD.search(template) else 0
