"""The text of a page in parts, read in machine code, given its tags as ``tag_scan.py`` reads them.

It does what ``parts.py`` does with patterns, to the same result. To be imported late: numba is loaded with it.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from recrawl.detect.eight_bytes import HIGH, LOW, ONES, eight, from_on, is_byte, put_eight
from recrawl.detect.noise_scan import LONG_WORD, hinted
from recrawl.detect.shingle_scan import Wide
from recrawl.detect.shingle_terms import BASE, LONGEST
from recrawl.detect.tag_kinds import A_BEGINS, A_ENDS, BORDER, COMMENT, GAP, LESS, MORE, SPACE, Bytes, Numbers
from recrawl.model.compiled import bare_code

AND = 38
A_COMMENT = -1
"""Stands for the beginning of a piece that is a comment, and is read as a space."""
_A, _SOMETHING = 1, 2
"""What a run begins or ends with."""
STATES = 14
SIZE, PENDING, DIGITS, BEGIN, FIRST, LAST, PIECE, FIRST_PIECE, PIECES, RUNS, PARTS, WORDS, MARKS, WORD = range(STATES)
"""The state of the reading: bytes of text, whether a space is due, whether the part may have digits, where it began;
what the run begins and ends with, where its open piece begins, its first piece; how many of all were noted; where the
last word begins."""
PADDING = 8
"""Bytes behind the page and behind the text: words are read and written eight bytes at a time."""
_U64 = np.uint64
_POWERS = tuple(_U64(pow(int(BASE), power, 1 << 64)) for power in range(8))


class WordTerms(NamedTuple):
    """What the kernels look up for words."""

    powers: Wide
    """Of the base of the numbers of words, from 1 on."""
    hints: Numbers
    """By the last five bits of two letters, a bit for each letter behind them with which a word may begin noise."""


WORD_TERMS = WordTerms(np.cumprod([_U64(1)] + [BASE] * (LONGEST - 1), dtype=np.uint64), hinted())


@bare_code
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


@bare_code
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


@bare_code
def is_space(code: int) -> bool:
    """Whether an ASCII character is space to ``str.split``."""
    return code <= 32 and (code == 32 or 9 <= code <= 13 or code >= 28)  # noqa: PLR2004 - characters


@bare_code
def byte_of(number: np.uint64, lane: int) -> np.uint64:
    """One of eight bytes."""
    return (number >> _U64(8 * lane)) & _U64(255)


@bare_code
def number_of(word: np.uint64) -> np.uint64:
    """The polynomial of eight bytes, from the power 0 on."""
    low = byte_of(word, 0) + byte_of(word, 1) * _POWERS[1] + byte_of(word, 2) * _POWERS[2]
    high = byte_of(word, 3) * _POWERS[3] + byte_of(word, 4) * _POWERS[4] + byte_of(word, 5) * _POWERS[5]
    return low + high + byte_of(word, 6) * _POWERS[6] + byte_of(word, 7) * _POWERS[7]


@bare_code
def read_word(  # noqa: PLR0913, PLR0917 - all that is read and written
    data: Bytes, place: int, out: Bytes, size: int, powers: Wide, hints: Numbers
) -> tuple[int, np.uint64, bool, bool]:
    """Write a word up to the first byte that is not plain: how long it is, its number, whether it has digits.

    Last whether it may be noise: it begins like a hint, is long, or has signs before its end and is no number.
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


@bare_code
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


@bare_code
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


@bare_code
def note(state: Numbers, first: int, last: int) -> None:
    """Note what a run goes on with."""
    if not state[FIRST]:
        state[FIRST] = first
    state[LAST] = last


@bare_code
def end_piece(place: int, state: Numbers, pieces: Numbers) -> None:
    """Note a piece of the run that ends at a place."""
    pieces[state[PIECES], 0], pieces[state[PIECES], 1] = state[PIECE], place
    state[PIECES] += 1


@bare_code
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


@bare_code
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

    Written are the text to ``out``; to ``runs`` paths, first and last pieces; to ``pieces`` where they begin and end;
    to ``parts`` paths, where they begin and end in the text, whether they may have digits; to ``words``
    their numbers, as ``shingle_scan.py`` makes them but for one power of the base; to ``marks`` where words begin in
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
