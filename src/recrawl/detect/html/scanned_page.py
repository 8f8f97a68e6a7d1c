"""A page read by compiled kernels: text in parts with their hashes, and references.

The kernels of ``tag_scan.py`` read the tags. From them this module makes the same parts and hashes as ``text_parts.py``
makes with regular expressions. Import it late: it loads numba.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from contextlib import suppress
from functools import cached_property, lru_cache
from typing import NamedTuple
from zlib import crc32

import numpy as np
import numpy.typing as npt

from recrawl.detect.fingerprint import MOST_PARTS
from recrawl.detect.html.tag_scan import (
    A_BEGINS,
    A_ENDS,
    ATTRIBUTES,
    BORDER,
    COMMENT,
    GAP,
    HAS_BASE,
    HAS_ESCAPED,
    HAS_WHOLE,
    HIGH,
    LESS,
    LOW,
    MORE,
    NAME_CAPACITY,
    NOISY,
    ONES,
    SPACE,
    TABLES,
    WHOLE,
    Bytes,
    Numbers,
    eight,
    from_on,
    is_byte,
    is_letter,
    put_eight,
    read_tags,
)
from recrawl.detect.html.wellformed_scan import repaired_html
from recrawl.detect.noise.noise_keys import hidden_rows
from recrawl.detect.noise.noise_scan import LONG_WORD, hinted, scanned_words
from recrawl.detect.noise.text_noise import without_kinds
from recrawl.detect.text.shingle_scan import Wide, shingles_of_words
from recrawl.detect.text.shingles import BASE, LONGEST, SAMPLE, Shingles, shingles_of
from recrawl.detect.text.text_parts import BETWEEN, LONGEST_TEMPLATE, PageParts, PageText, PartColumns, template_of
from recrawl.model.arrays import plain_value
from recrawl.model.compiled import inlined_kernel

AND = 38
A_COMMENT = -1
"""Stands for the start of a piece that is a comment, and is read as a space."""
_A, _SOMETHING = 1, 2
"""What a run starts or ends with."""
STATES = 14
SIZE, PENDING, DIGITS, BEGIN, FIRST, LAST, PIECE, FIRST_PIECE, PIECES, RUNS, PARTS, WORDS, MARKS, WORD = range(STATES)
"""The state of the reading: bytes of text, whether a space is due, whether the part may have digits, where it started;
what the run starts and ends with, where its open piece starts, its first piece; how many of all were noted; where the
last word starts."""
PADDING = 8
"""Bytes behind the page and behind the text: words are read and written eight bytes at a time."""
_U64 = np.uint64
_POWERS = tuple(_U64(pow(int(BASE), power, 1 << 64)) for power in range(8))


class WordTerms(NamedTuple):
    """What the kernels look up for words."""

    powers: Wide
    """Of the base of the numbers of words, from 1 on."""
    hints: Numbers
    """By the last five bits of two letters, a bit for each letter behind them with which a word may start noise."""


WORD_TERMS = WordTerms(np.cumprod([_U64(1)] + [BASE] * (LONGEST - 1), dtype=np.uint64), hinted())


@inlined_kernel
def wide_space(data: Bytes, place: int) -> int:
    """How many bytes the space beyond ASCII has that stands at a place; 0 if there is none."""
    first = data[place]
    if first == 0xC2:  # noqa: PLR2004 - bytes of UTF-8
        return 2 if data[place + 1] in (0x85, 0xA0) else 0
    if first not in (0xE1, 0xE2, 0xE3):
        return 0
    second, third = data[place + 1], data[place + 2]
    if first == 0xE2:  # noqa: PLR2004
        if second == 0x80 and (third <= 0x8A or third in (0xA8, 0xA9, 0xAF)):  # noqa: PLR2004
            return 3
        return 3 if second == 0x81 and third == 0x9F else 0  # noqa: PLR2004
    if first == 0xE1:  # noqa: PLR2004
        return 3 if second == 0x9A and third == 0x80 else 0  # noqa: PLR2004
    return 3 if second == 0x80 and third == 0x80 else 0  # noqa: PLR2004


@inlined_kernel
def entity(data: Bytes, place: int) -> tuple[int, int]:
    """The character that is written as an entity at a place, and with how many bytes; an ampersand if it is none."""
    size = len(data)
    if place + 4 < size and data[place + 1] == 97 and data[place + 2] == 109 and data[place + 3] == 112:  # noqa: PLR2004
        return AND, 5 if data[place + 4] == 59 else 1  # noqa: PLR2004
    if place + 3 < size and data[place + 2] == 116 and data[place + 3] == 59:  # noqa: PLR2004 - t;
        if data[place + 1] == 108:  # noqa: PLR2004 - l
            return LESS, 4
        if data[place + 1] == 103:  # noqa: PLR2004 - g
            return MORE, 4
    if place + 5 < size and data[place + 1] == 110 and data[place + 2] == 98 and data[place + 5] == 59:  # noqa: PLR2004
        return SPACE, 6
    return AND, 1


@inlined_kernel
def is_space(code: int) -> bool:
    """Whether an ASCII character is space to ``str.split``."""
    return code <= 32 and (code == 32 or 9 <= code <= 13 or code >= 28)  # noqa: PLR2004 - characters


@inlined_kernel
def byte_of(number: np.uint64, lane: int) -> np.uint64:
    """One of eight bytes."""
    return (number >> _U64(8 * lane)) & _U64(255)


@inlined_kernel
def number_of(word: np.uint64) -> np.uint64:
    """The polynomial of eight bytes, from the power 0 on."""
    low = byte_of(word, 0) + byte_of(word, 1) * _POWERS[1] + byte_of(word, 2) * _POWERS[2]
    high = byte_of(word, 3) * _POWERS[3] + byte_of(word, 4) * _POWERS[4] + byte_of(word, 5) * _POWERS[5]
    return low + high + byte_of(word, 6) * _POWERS[6] + byte_of(word, 7) * _POWERS[7]


@inlined_kernel
def read_word(  # noqa: PLR0913, PLR0917 - all that is read and written
    data: Bytes, place: int, out: Bytes, size: int, powers: Wide, hints: Numbers
) -> tuple[int, np.uint64, bool, bool]:
    """Write a word up to the first byte that is not plain: how long it is, its number, whether it has digits.

    Last whether it may be noise: it starts like a hint, is long, or has signs before its end and is no number.
    """
    length, number = 0, _U64(0)
    odd = letters = colons = digits = _U64(0)
    begins = int(eight(data, place))
    hint = (hints[begins & 31, (begins >> 8) & 31] >> ((begins >> 16) & 31)) & 1
    while True:
        chunk = eight(data, place + length)
        low = chunk & LOW
        stops = (chunk & HIGH) | (from_on(low, 33) ^ HIGH) | is_byte(low, LESS) | is_byte(low, AND)
        first = stops & (_U64(0) - stops)
        inside = (first >> _U64(7)) - _U64(1)
        word = chunk & inside
        put_eight(out, size + length, word)
        number += number_of(word) * powers[length & (LONGEST - 1)]
        small = low | (ONES * _U64(32))
        letter = from_on(small, 97) & ~from_on(small, 123)
        odd |= inside & ~letter & HIGH & ~(first >> _U64(8))
        letters |= letter & inside
        colons |= is_byte(low, 58) & inside
        digits |= from_on(low, 48) & ~from_on(low, 58) & inside
        length += int(((inside & ONES) * ONES) >> _U64(56))
        if stops:
            break
    suspect = bool(hint) or length >= LONG_WORD or bool(odd and (letters | colons))
    return length, number, bool(digits), suspect


@inlined_kernel
def read_rest(data: Bytes, place: int, end: int, out: Bytes, size: int) -> tuple[int, int, int, int]:
    """Write the rest of a word with whatever it has: up to where it was read and written, and whether a space follows.

    Last whether it may have digits.
    """
    digits = 0
    while place < end:
        code, width = int(data[place]), 1
        if is_space(code):
            return place, size, 1, digits
        if code == AND:
            code, width = entity(data, place)
            if code == SPACE:
                return place + width, size, 1, digits
        elif 48 <= code <= 57:  # noqa: PLR2004 - digits
            digits = 1
        elif code >= 192:  # noqa: PLR2004 - the first byte of a character, which may be a space or a digit
            width = wide_space(data, place)
            if width:
                return place + width, size, 1, digits
            digits, width = 1, 1
        out[size] = code
        size, place = size + 1, place + width
    return place, size, 0, digits


@inlined_kernel
def read_text(  # noqa: PLR0913, PLR0917 - all that is read and written
    data: Bytes, place: int, end: int, out: Bytes, state: Numbers, words: Wide, marks: Numbers, terms: WordTerms
) -> None:
    """Write the text up to the next tag, with single spaces; number its words, and mark those that may be noise."""
    size, pending, count, marked, begin = state[SIZE], state[PENDING], state[WORDS], state[MARKS], state[WORD]
    digits, something = False, False
    while place < end:
        if is_space(data[place]):
            pending, place = 1, place + 1
            continue
        before, after = size, 0
        if pending or not size:
            out[size] = SPACE
            begin = size = size + (size > 0)
            length, number, has_digits, suspect = read_word(data, place, out, size, terms.powers, terms.hints)
            size, place, digits = size + length, place + length, digits or has_digits
        else:  # only something that is not shown lies between this and the word before
            count -= 1
            number, suspect = words[count], False
            marked -= marked > 0 and marks[marked - 1] == begin
        if place < end and data[place] == SPACE:  # nearly always
            place, after = place + 1, 1
        elif place < end and not is_space(data[place]):
            # To those who do not read entities, a space that is written as one is no space.
            plain, something, suspect = size, something or data[place] == AND, True
            place, size, after, may_have = read_rest(data, place, end, out, size)
            digits = digits or bool(may_have)
            for at in range(plain, size):
                number += _U64(out[at]) * terms.powers[(at - begin) & (LONGEST - 1)]
        pending = after
        if size == begin:
            size = before
            continue
        words[count], marks[marked] = number, begin
        count, marked = count + 1, marked + suspect
    if something or size > state[SIZE]:
        note(state, _SOMETHING, _SOMETHING)
    state[SIZE], state[PENDING], state[WORDS], state[MARKS], state[WORD] = size, pending, count, marked, begin
    state[DIGITS] |= digits


@inlined_kernel
def note(state: Numbers, first: int, last: int) -> None:
    """Note what a run goes on with."""
    if not state[FIRST]:
        state[FIRST] = first
    state[LAST] = last


@inlined_kernel
def end_piece(place: int, state: Numbers, pieces: Numbers) -> None:
    """Note a piece of the run that ends at a place."""
    pieces[state[PIECES], 0], pieces[state[PIECES], 1] = state[PIECE], place
    state[PIECES] += 1


@inlined_kernel
def end_run(  # noqa: PLR0913, PLR0917 - all that is read and written
    place: int, path: int, state: Numbers, runs: Numbers, pieces: Numbers, parts: Numbers
) -> None:
    """Note the run that ends at a place, and its text, if there are any."""
    if state[FIRST]:
        end_piece(place, state, pieces)
        marked = path & ~1
        if path and state[FIRST] == _A and state[LAST] == _A:
            marked |= 1
        row = state[RUNS]
        runs[row, 0], runs[row, 1], runs[row, 2] = marked, state[FIRST_PIECE], state[PIECES]
        state[RUNS] += 1
        if state[SIZE] > state[BEGIN]:
            row = state[PARTS]
            parts[row, 0], parts[row, 1] = marked, state[BEGIN] + (state[BEGIN] > 0)
            parts[row, 2], parts[row, 3] = state[SIZE], state[DIGITS]
            state[PARTS] += 1
    else:
        state[PIECES] = state[FIRST_PIECE]
    state[BEGIN], state[FIRST_PIECE] = state[SIZE], state[PIECES]
    state[PENDING], state[DIGITS], state[FIRST], state[LAST] = 1, 0, 0, 0


@inlined_kernel
def read_page(  # noqa: PLR0913, PLR0917 - all that is read and written
    data: Bytes,
    tags: Numbers,
    terms: WordTerms,
    out: Bytes,
    state: Numbers,
    runs: Numbers,
    pieces: Numbers,
    parts: Numbers,
    words: Wide,
    marks: Numbers,
) -> None:
    """Read the text of a page between its tags, both with :data:`PADDING`. O(length).

    Written are the text to ``out``; to ``runs`` paths, first and last pieces; to ``pieces`` where they start and end;
    to ``parts`` paths, where they start and end in the text, whether they may have digits; to ``words``
    their numbers, as ``shingle_scan.py`` makes them but for one power of the base; to ``marks`` where words start in
    the text that may be noise. How many there are is in ``state``.
    """
    place = path = 0
    for row in range(len(tags)):
        begin, end, what = tags[row, 0], tags[row, 1], tags[row, 2]
        read_text(data, place, begin, out, state, words, marks, terms)
        place = end
        if what == BORDER:
            end_run(begin, path, state, runs, pieces, parts)
            path, state[PIECE] = tags[row, 3], end
            continue
        if what == GAP:
            end_piece(begin, state, pieces)
            state[PIECE] = end
            continue
        state[PENDING] = 1
        if what == COMMENT:
            end_piece(begin, state, pieces)
            state[PIECE] = A_COMMENT
            end_piece(end, state, pieces)
            state[PIECE] = end
        else:
            note(state, _A if what == A_BEGINS else _SOMETHING, _A if what == A_ENDS else _SOMETHING)
    read_text(data, place, len(data) - PADDING, out, state, words, marks, terms)
    end_run(len(data) - PADDING, path, state, runs, pieces, parts)


Short = npt.NDArray[np.uint32]

UNKNOWN = -1
"""Stands for a template that has to be made in another way: the part has characters beyond ASCII."""
_LANES = 8
_ALL = 0xFFFFFFFF
_WIDE = np.int64


def _tables() -> Short:
    """CRC-32 of each byte with up to seven zero bytes behind it: eight bytes are taken in one step."""
    tables = np.empty((_LANES, 256), np.uint32)
    tables[0] = [crc32(bytes([byte]), _ALL) ^ _ALL for byte in range(256)]
    for lane in range(1, _LANES):
        tables[lane] = tables[0][tables[lane - 1] & 255] ^ (tables[lane - 1] >> 8)
    return tables


CRC = _tables()


@inlined_kernel
def crc_of(text: Bytes, begin: int, end: int, tables: Short) -> int:
    """CRC-32 of the bytes from ``begin`` to ``end``."""
    crc, place = _WIDE(0xFFFFFFFF), begin
    while place + 8 <= end:
        low = crc ^ (
            _WIDE(text[place])
            | _WIDE(text[place + 1]) << 8
            | _WIDE(text[place + 2]) << 16
            | _WIDE(text[place + 3]) << 24
        )
        crc = _WIDE(
            tables[7, low & 255]
            ^ tables[6, (low >> 8) & 255]
            ^ tables[5, (low >> 16) & 255]
            ^ tables[4, (low >> 24) & 255]
            ^ tables[3, text[place + 4]]
            ^ tables[2, text[place + 5]]
            ^ tables[1, text[place + 6]]
            ^ tables[0, text[place + 7]]
        )
        place += 8
    while place < end:
        crc = _WIDE(tables[0, (crc ^ text[place]) & 255]) ^ (crc >> 8)
        place += 1
    return int(crc ^ 0xFFFFFFFF)


@inlined_kernel
def is_number(code: int) -> bool:
    """Whether it is a digit, in ASCII."""
    return 48 <= code <= 57  # noqa: PLR2004 - 0 to 9


@inlined_kernel
def is_of_word(code: int) -> bool:
    """Whether it is a letter, a digit or an underscore."""
    return is_letter(code) or is_number(code) or code == 95  # noqa: PLR2004 - _


@inlined_kernel
def template_at(  # noqa: PLR0913, PLR0917 - all that is read
    text: Bytes, begin: int, end: int, path: int, longest: int, tables: Short
) -> int:
    """The template of the part from ``begin`` to ``end``, as ``parts.template_of`` makes it, or ``UNKNOWN``."""
    has_number = False
    for place in range(begin, end):
        if text[place] >= 128:  # noqa: PLR2004 - beyond ASCII are other digits and letters
            return UNKNOWN
        has_number = has_number or is_number(text[place])
    if not has_number or end - begin > longest:
        return 0
    crc, place, letters, has_word = path ^ 0xFFFFFFFF, begin, 0, False
    while place < end:
        after = place  # behind the letters that a number may start with
        if is_of_word(text[place]) and not (place > begin and is_of_word(text[place - 1])):
            while after < end and (is_letter(text[after]) or text[after] == 95):  # noqa: PLR2004 - _
                after += 1
        if after < end and is_number(text[after]) and (place == begin or not is_of_word(text[place - 1])):
            place = after
            while place < end and (is_of_word(text[place]) or text[place] in (44, 46, 58)):  # , . :
                place += 1
            code, letters = 35, 0
        else:
            code = text[place]
            letters = letters + 1 if is_letter(code) else 0
            has_word = has_word or letters > 1
            place += 1
        crc = int(tables[0, (crc ^ code) & 255]) ^ (crc >> 8)
    return max(crc ^ 0xFFFFFFFF, 1) if has_word else 0


@inlined_kernel
def number_parts(  # noqa: PLR0913, PLR0917 - all that is read and written
    text: Bytes, parts: Numbers, longest: int, most: int, tables: Short, template: Numbers, content: Numbers
) -> int:
    """Write the template and the content of each part; return how many templates are ``UNKNOWN``. O(length).

    ``parts`` are as ``read_page`` writes them. A part longer than ``longest`` characters, of at most ``most`` bytes
    each, has no template.
    """
    unknown = 0
    for row in range(len(parts)):
        begin, end = parts[row, 1], parts[row, 2]
        content[row] = crc_of(text, begin, end, tables)
        template[row] = 0
        if parts[row, 3] and end - begin <= most * longest:
            template[row] = template_at(text, begin, end, parts[row, 0], longest, tables)
            unknown += template[row] == UNKNOWN
    return unknown


@inlined_kernel
def put_four(out: Bytes, place: int, number: int) -> int:
    """Write a number in four bytes, the lowest first; where the next starts."""
    for lane in range(4):
        out[place + lane] = (number >> (8 * lane)) & 255
    return place + 4


@inlined_kernel
def pack_parts(parts: Numbers, template: Numbers, content: Numbers, paths: Numbers, out: Bytes) -> tuple[int, int, int]:
    """Write parts as a fingerprint keeps them; how many paths, templates and bytes there are.

    There may be 256 parts; ``paths`` is room for one more, ``out`` for 14 bytes each. O(parts times paths), mostly
    much less: neighbours lie at one path.
    """
    many, count, number, filled = len(parts), 0, 0, 0
    numbers = out[4 * many :]
    for row in range(many):
        if number >= count or paths[number] != parts[row, 0]:
            number = 0
            while number < count and paths[number] != parts[row, 0]:
                number += 1
            paths[number] = parts[row, 0]
            count = max(count, number + 1)
        numbers[row] = number
    size = 0
    for row in range(count):
        size = put_four(out, size, paths[row])
    for row in range(many):  # never beyond where they stand
        out[size + row] = numbers[row]
    size += many
    for row in range(many):
        size = put_four(out, size, content[row])
    for row in range(many):
        out[size + filled] = row
        filled += template[row] != 0
    size += filled
    for row in range(many):
        if template[row]:
            size = put_four(out, size, template[row])
    return count, filled, size


_MOST_BYTES = 4
"""Of a character in UTF-8."""
_MANY_WORDS = 2_000
"""As many as a page has of which not all shingles are kept."""
_COMMON, _LARGE = 1 << 16, 1 << 20
"""Bytes of a page that there is room for from the start, and of one for which none is kept."""
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
    """The text of a page as bytes, where its parts start and end, and the numbers of its words."""

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
        """Where each part starts and ends."""
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

    def parts(self) -> PageParts:
        """The numbers of the parts. O(length)."""
        template, content = self._numbers
        return PageParts(self.path, template.tolist(), content.tolist())

    def columns(self) -> PartColumns | None:
        """The same as a fingerprint keeps them; ``None`` if there are too many."""
        many = len(self._parts)
        if many > MOST_PARTS:
            return None
        out = np.empty(14 * many, np.uint8)
        paths, templates, size = pack_parts(self._parts, *self._numbers, np.empty(many + 1, np.int64), out)
        return PartColumns(many, paths, templates, out[:size].tobytes())

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

    def sample(self, parts: PageParts, mask: frozenset[int], *, use_kernels: bool = True) -> Shingles:
        """The smallest numbers of the shingles of the text outside the mask; ``parts`` are its own. O(length)."""
        hidden, written = hidden_rows(parts, mask) if mask else [], self._written
        if any(hidden):
            spans = zip(self._spans(), hidden, strict=True)
            written = b" ".join([written[begin:end] for (begin, end), is_hidden in spans if not is_hidden])
        elif self._words is not None:
            return shingles_of_words(self._words, SAMPLE)
        return shingles_of(written, SAMPLE, use_kernels=use_kernels)

    def saying(self, kept: Sequence[tuple[int, str]]) -> PageText:
        """A text with these parts."""
        return PageText([path for path, _ in kept], [said for _, said in kept])

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
class ScannedPage:
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
    """Where words of the text start that may be noise."""

    def clean_text(self) -> ScannedText:
        """The text without noise: patterns go through the parts that may have any, and none spans two. O(length)."""
        found = np.empty(len(self.marks), np.int64)
        may_be = scanned_words(np.frombuffer(self.text.written(), np.uint8), self.marks, found)
        return self.text.cleaned(self.marks[found > 0], may_be) if may_be else self.text


class _ScanBuffers:
    """Arrays that the kernels write to, for pages of at most N bytes with N tags."""

    def __init__(self, size: int, tags: int) -> None:
        self.size = size
        self.tags, self.links, self.around = _rows(tags, 4), _rows(tags, 3), np.empty(tags + 1, np.int64)
        self.tag, self.names = _rows(ATTRIBUTES, 2), np.empty(NAME_CAPACITY, np.int64)
        self.out, self.state = np.empty(size + PADDING, np.uint8), np.empty(STATES, np.int64)
        self.runs, self.pieces, self.parts = (_rows(2 * tags + 1, columns) for columns in (3, 2, 4))
        self.words, self.marks = np.empty(size // 2 + 2, np.uint64), np.empty(size // 2 + 2, np.int64)


_buffers: list[_ScanBuffers] = []
"""Those that nobody uses: as many as there are threads that read pages."""


def _buffers_for(written: bytes) -> _ScanBuffers:
    """Room to read a page in. It is used again: memory that is asked for again has to be found, and is slow at first.

    What is not written to takes no memory, so there may be more rows than most pages have tags.
    """
    size = len(written)
    if size > _LARGE:
        return _ScanBuffers(size, written.count(b"<") + 1)
    room = None
    with suppress(IndexError):
        room = _buffers.pop()
    if room is None or room.size < size:
        size = max(2 * size, _COMMON)
        room = _ScanBuffers(size, size // _SHORTEST_TAG + 1)
    return room


def _rows(many: int, columns: int) -> Numbers:
    return np.empty((many, columns), np.int64)


def scan_page(html: str) -> ScannedPage | None:
    """Read a page that a parser wrote; ``None`` if it must be read in another way. O(length)."""
    if BETWEEN in html:
        return None
    written = html.encode()
    return _scan(written + _PADDED, written, html)


def scan_wellformed_page(html: str) -> ScannedPage | None:
    """Read a page that needs no parser; ``None`` if it needs one. O(length)."""
    padded = None if BETWEEN in html else repaired_html(html, PADDING)
    if padded is None:
        return None
    written = padded[:-PADDING]
    return _scan(padded, written, written.decode())


def _scan(padded: bytes, written: bytes, html: str) -> ScannedPage | None:
    """Read a page as a parser writes it: with some bytes behind it, without, and as text."""
    room, data = _buffers_for(written), np.frombuffer(padded, np.uint8)
    tags, links, state = room.tags, room.links, room.state
    count, linked, flags = read_tags(data[:-PADDING], TABLES, tags, links, room.tag, room.names, room.around)
    page = None
    if count >= 0:
        state.fill(0)
        runs, pieces, parts, words, marks = room.runs, room.pieces, room.parts, room.words, room.marks
        read_page(data, tags[:count], WORD_TERMS, room.out, state, runs, pieces, parts, words, marks)
        noted = state.tolist()
        page = ScannedPage(
            ScannedRuns(written, runs[: noted[RUNS]].copy(), pieces[: noted[PIECES]].copy()),
            ScannedText(room.out[: noted[SIZE]].tobytes(), parts[: noted[PARTS]].copy(), words[: noted[WORDS]].copy()),
            _references(html, written, links[:linked], plain=not flags & (HAS_ESCAPED | HAS_WHOLE)),
            not flags & HAS_WHOLE,
            bool(flags & NOISY),
            bool(flags & HAS_BASE),
            marks[: noted[MARKS]].copy(),
        )
    if len(written) <= _LARGE:
        _buffers.append(room)
    return page


def warm_up() -> None:
    """Compile all there is to compile, which takes seconds where it is not on disk yet."""
    words = " ".join(map(str, range(_MANY_WORDS)))
    page = scan_wellformed_page(f'<p class="a">One <a href="/b">more</a></p>{words}')
    if page is not None:
        text = page.clean_text()
        for mask in (frozenset[int](), frozenset(text.path[:1])):
            text.sample(text.parts(), mask, use_kernels=True)
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
