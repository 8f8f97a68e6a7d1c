"""A page read in machine code: what the kernels of ``page_scan.py`` found, as text in parts and as references.

To be imported late: numba is loaded with it.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from contextlib import suppress
from functools import cached_property, lru_cache

import numpy as np

from recrawl.detect.fingerprint import MOST_PARTS
from recrawl.detect.noise import without_kinds
from recrawl.detect.noise_keys import hidden_rows
from recrawl.detect.noise_scan import scanned_words
from recrawl.detect.page_scan import (
    A_COMMENT,
    MARKS,
    PADDING,
    PARTS,
    PIECES,
    RUNS,
    SIZE,
    STATES,
    WORD_TERMS,
    WORDS,
    read_page,
)
from recrawl.detect.part_scan import CRC, UNKNOWN, number_parts, pack_parts
from recrawl.detect.parts import BETWEEN, LONGEST_TEMPLATE, Columns, Parts, Text, template_of
from recrawl.detect.shingle_scan import Wide, shingles_of_words
from recrawl.detect.shingle_terms import Shingles
from recrawl.detect.shingles import SAMPLE, shingles_of
from recrawl.detect.tag_kinds import (
    ATTRIBUTES,
    HAS_BASE,
    HAS_ESCAPED,
    HAS_WHOLE,
    NOISY,
    ROOM_FOR_NAMES,
    WHOLE,
    Numbers,
)
from recrawl.detect.tag_scan import read_tags
from recrawl.detect.tag_tables import TABLES
from recrawl.detect.tidied import tidied
from recrawl.model.values import plain_value

_MOST_BYTES = 4
"""Of a character in UTF-8."""
_MANY_WORDS = 2_000
"""As many as a page has of which not all shingles are kept."""
_COMMON, _LARGE = 1 << 16, 1 << 20
"""Bytes of a page that there is room for from the beginning, and of one for which none is kept."""
_SHORTEST_TAG = 2
"""Bytes, whatever stands there: kernels do not look where their room ends."""
_PADDED = bytes(PADDING)
_ATTRIBUTE = re.compile(r' ([^=> ]+)="([^"]*)"')
_ENTITIES = (("&nbsp;", "\xa0"), ("&lt;", "<"), ("&gt;", ">"), ("&quot;", '"'), ("&amp;", "&"))


class ScannedRuns:
    """The runs of a page, cut out of it only when they are asked for."""

    def __init__(self, data: bytes, runs: Numbers, pieces: Numbers) -> None:
        self._data, self._runs, self._pieces = data, runs, pieces

    @cached_property
    def path(self) -> list[int]:
        """Where each run stands."""
        return [int(path) for path in self._runs[:, 0]]

    @cached_property
    def html(self) -> list[str]:
        """What is written there, with a space for each comment and without what is not shown."""
        data, pieces = self._data, self._pieces.tolist()
        cut = [b" " if begin == A_COMMENT else data[begin:end] for begin, end in pieces]
        return [b"".join(cut[first:last]).decode() for _, first, last in self._runs.tolist()]


class ScannedText:
    """The text of a page as bytes, where its parts begin and end, and the numbers of its words."""

    def __init__(self, written: bytes, parts: Numbers, words: Wide | None = None) -> None:
        self._written = written
        self._parts = parts
        self._words = words

    @cached_property
    def path(self) -> list[int]:
        """Where each part stands."""
        path: list[int] = self._parts[:, 0].tolist()
        return path

    def _spans(self) -> Iterator[tuple[int, int]]:
        """Where each part begins and ends."""
        return zip(self._parts[:, 1].tolist(), self._parts[:, 2].tolist(), strict=True)

    @cached_property
    def said(self) -> list[str]:
        """What each part says."""
        if not self._written.isascii():
            return [self._written[begin:end].decode() for begin, end in self._spans()]
        text = self._written.decode("ascii")
        return [text[begin:end] for begin, end in self._spans()]

    def written(self) -> bytes:
        """All of it as one, in UTF-8."""
        return self._written

    def parts(self) -> Parts:
        """The numbers of the parts. O(length)."""
        template, content = self._numbers
        return Parts(self.path, template.tolist(), content.tolist())

    def columns(self) -> Columns | None:
        """The same as a fingerprint keeps them; ``None`` if there are too many."""
        many = len(self._parts)
        if many > MOST_PARTS:
            return None
        out = np.empty(14 * many, np.uint8)
        paths, templates, size = pack_parts(self._parts, *self._numbers, np.empty(many + 1, np.int64), out)
        return Columns(many, paths, templates, out[:size].tobytes())

    @cached_property
    def _numbers(self) -> tuple[Numbers, Numbers]:
        """Templates and contents."""
        written, rows = self._written, self._parts
        template, content = np.empty(len(rows), np.int64), np.empty(len(rows), np.int64)
        most = 1 if written.isascii() else _MOST_BYTES
        text = np.frombuffer(written, np.uint8)
        unknown = number_parts(text, rows, LONGEST_TEMPLATE, most, CRC, template, content)
        for row in np.flatnonzero(template == UNKNOWN).tolist() if unknown else ():
            path, begin, end = rows[row, :3].tolist()
            template[row] = _template_of(path, written[begin:end])
        return template, content

    def sample(self, parts: Parts, mask: frozenset[int], *, in_machine_code: bool = True) -> Shingles:
        """The smallest numbers of the shingles of the text outside the mask; ``parts`` are its own. O(length)."""
        hidden, written = hidden_rows(parts, mask) if mask else [], self._written
        if any(hidden):
            spans = zip(self._spans(), hidden, strict=True)
            written = b" ".join([written[begin:end] for (begin, end), is_hidden in spans if not is_hidden])
        elif self._words is not None:
            return shingles_of_words(self._words, SAMPLE)
        return shingles_of(written, SAMPLE, in_machine_code=in_machine_code)

    def saying(self, kept: Sequence[tuple[int, str]]) -> Text:
        """A text with these parts."""
        return Text([path for path, _ in kept], [said for _, said in kept])

    def cleaned(self, places: Numbers, may_be: int) -> ScannedText:
        """The text without noise of some kinds, which is in parts that have these places, if anywhere. O(length)."""
        rows = np.unique(np.searchsorted(self._parts[:, 1], places, "right") - 1)
        before = [self._written[begin:end].decode() for begin, end in self._parts[rows, 1:3].tolist()]
        after = [said.strip() for said in without_kinds(f" {BETWEEN} ".join(before), may_be).split(BETWEEN)]
        if after == before:
            return self
        pieces = [self._written[begin:end] for begin, end in self._spans()]
        for row, said in zip(rows.tolist(), after, strict=True):
            pieces[row] = said.encode()
        size = np.array([len(piece) for piece in pieces], np.int64)
        kept = np.flatnonzero(size)
        parts, size = self._parts[kept], size[kept]
        parts[:, 2] = np.cumsum(size + 1) - 1
        parts[:, 1] = parts[:, 2] - size
        return ScannedText(b" ".join(filter(None, pieces)), parts)


@lru_cache(maxsize=1 << 14)  # menus are on all pages of a site
def _template_of(path: int, said: bytes) -> int:
    return template_of(path, said.decode())


@plain_value
class Scanned:
    """What was found on a page."""

    runs: ScannedRuns
    text: ScannedText
    """Noise and all."""
    references: list[str | tuple[str, dict[str, str]]]
    """Where links lead, as written, or the name and the attributes of an element, in the order of the page."""
    are_plain: bool
    """All references are of the first kind."""
    maybe_noisy: bool
    """Some element may be noise, by its class, id or role."""
    maybe_based: bool
    """The page may name a base."""
    marks: Numbers
    """Where words of the text begin that may be noise."""

    def clean_text(self) -> ScannedText:
        """The text without noise: patterns go through the parts that may have any, and none spans two. O(length)."""
        found = np.empty(len(self.marks), np.int64)
        may_be = scanned_words(np.frombuffer(self.text.written(), np.uint8), self.marks, found)
        return self.text.cleaned(self.marks[found > 0], may_be) if may_be else self.text


class _Room:
    """Arrays that the kernels write to, for pages of at most so many bytes with so many tags."""

    def __init__(self, size: int, tags: int) -> None:
        self.size = size
        self.tags, self.links, self.around = _rows(tags, 4), _rows(tags, 3), np.empty(tags + 1, np.int64)
        self.tag, self.names = _rows(ATTRIBUTES, 2), np.empty(ROOM_FOR_NAMES, np.int64)
        self.out, self.state = np.empty(size + PADDING, np.uint8), np.empty(STATES, np.int64)
        self.runs, self.pieces, self.parts = (_rows(2 * tags + 1, columns) for columns in (3, 2, 4))
        self.words, self.marks = np.empty(size // 2 + 2, np.uint64), np.empty(size // 2 + 2, np.int64)


_rooms: list[_Room] = []
"""Those that nobody uses: as many as there are threads that read pages."""


def _room_for(written: bytes) -> _Room:
    """Room to read a page in. It is used again: memory that is asked for anew has to be found, and is slow at first.

    What is not written to takes no memory, so there may be more rows than most pages have tags.
    """
    size = len(written)
    if size > _LARGE:
        return _Room(size, written.count(b"<") + 1)
    room = None
    with suppress(IndexError):
        room = _rooms.pop()
    if room is None or room.size < size:
        size = max(2 * size, _COMMON)
        room = _Room(size, size // _SHORTEST_TAG + 1)
    return room


def _rows(many: int, columns: int) -> Numbers:
    return np.empty((many, columns), np.int64)


def scan_page(html: str) -> Scanned | None:
    """Read a page that a parser wrote; ``None`` if it must be read in another way. O(length)."""
    if BETWEEN in html:
        return None
    written = html.encode()
    return _scan(written + _PADDED, written, html)


def scan_tidy_page(html: str) -> Scanned | None:
    """Read a page that needs no parser; ``None`` if it needs one. O(length)."""
    padded = None if BETWEEN in html else tidied(html, PADDING)
    if padded is None:
        return None
    written = padded[:-PADDING]
    return _scan(padded, written, written.decode())


def _scan(padded: bytes, written: bytes, html: str) -> Scanned | None:
    """Read a page as a parser writes it: with some bytes behind it, without, and as text."""
    room, data = _room_for(written), np.frombuffer(padded, np.uint8)
    tags, links, state = room.tags, room.links, room.state
    count, linked, flags = read_tags(data[:-PADDING], TABLES, tags, links, room.tag, room.names, room.around)
    page = None
    if count >= 0:
        state.fill(0)
        runs, pieces, parts, words, marks = room.runs, room.pieces, room.parts, room.words, room.marks
        read_page(data, tags[:count], WORD_TERMS, room.out, state, runs, pieces, parts, words, marks)
        noted = state.tolist()
        page = Scanned(
            ScannedRuns(written, runs[: noted[RUNS]].copy(), pieces[: noted[PIECES]].copy()),
            ScannedText(room.out[: noted[SIZE]].tobytes(), parts[: noted[PARTS]].copy(), words[: noted[WORDS]].copy()),
            _references(html, written, links[:linked], plain=not flags & (HAS_ESCAPED | HAS_WHOLE)),
            not flags & HAS_WHOLE,
            bool(flags & NOISY),
            bool(flags & HAS_BASE),
            marks[: noted[MARKS]].copy(),
        )
    if len(written) <= _LARGE:
        _rooms.append(room)
    return page


def warm_up() -> None:
    """Compile all there is to compile, which takes seconds where it is not on disk yet."""
    words = " ".join(map(str, range(_MANY_WORDS)))
    page = scan_tidy_page(f'<p class="a">One <a href="/b">more</a></p>{words}')
    if page is not None:
        text = page.clean_text()
        for mask in (frozenset[int](), frozenset(text.path[:1])):
            text.sample(text.parts(), mask, in_machine_code=True)
        text.columns()


def _references(html: str, written: bytes, links: Numbers, *, plain: bool) -> list[str | tuple[str, dict[str, str]]]:
    found: list[str | tuple[str, dict[str, str]]]
    spans = zip(links[:, 1].tolist(), links[:, 2].tolist(), strict=True)  # two lists make no lists of pairs
    if len(html) == len(written):
        found = [html[begin:end] for begin, end in spans]
    else:
        found = [written[begin:end].decode() for begin, end in spans]
    for row in () if plain else np.flatnonzero(links[:, 0]).tolist():
        one = str(found[row])
        found[row] = _element(one) if links[row, 0] == WHOLE else _unescaped(one)
    return found


def _unescaped(value: str) -> str:
    if "&" in value:
        for entity, meant in _ENTITIES:
            value = value.replace(entity, meant)
    return value


def _element(tag: str) -> tuple[str, dict[str, str]]:
    """Name and attributes of an element, from its tag."""
    name = tag[1:-1].partition(" ")[0]
    return name, {attribute: _unescaped(value) for attribute, value in _ATTRIBUTE.findall(tag)}
