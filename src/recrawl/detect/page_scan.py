"""The text of a page in parts, read in machine code, given its tags as ``tag_scan.py`` reads them.

It does what ``parts.py`` does with patterns, to the same result. To be imported late: numba is loaded with it.
"""

from __future__ import annotations

from recrawl.detect.tag_kinds import A_BEGINS, A_ENDS, BORDER, COMMENT, GAP, LESS, MORE, SPACE, Bytes, Numbers
from recrawl.model.compiled import bare_code

AND = 38
A_COMMENT = -1
"""Stands for the beginning of a piece that is a comment, and is read as a space."""
_A, _SOMETHING = 1, 2
"""What a run begins or ends with."""
STATES = 11
SIZE, PENDING, DIGITS, BEGIN, FIRST, LAST, PIECE, FIRST_PIECE, PIECES, RUNS, PARTS = range(STATES)
"""The state of the reading: bytes of text, whether a space is due, whether the part may have digits, where it began;
what the run begins and ends with, where its open piece begins, its first piece; how many of all were noted."""


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
def read_text(  # noqa: C901, PLR0912 - one pass over all characters
    data: Bytes, place: int, end: int, out: Bytes, state: Numbers
) -> None:
    """Write the text up to the next tag, with single spaces."""
    size, pending, digits, something = state[SIZE], state[PENDING], 0, False
    while place < end:
        code, width = int(data[place]), 1
        if 62 < code < 128:  # noqa: PLR2004 - nearly all: letters, and more of them behind
            if pending and size:
                out[size] = SPACE
                size += 1
            pending = 0
            while 62 < code < 128:  # noqa: PLR2004
                out[size] = code
                size, place = size + 1, place + 1
                if place == end:
                    break
                code = int(data[place])
            continue
        if code == SPACE or 9 <= code <= 13 or 28 <= code <= 31:  # noqa: PLR2004 - characters
            pending, place = 1, place + 1
            continue
        if code == AND:
            something = True  # to those who do not read entities, a space that is written as one is no space
            code, width = entity(data, place)
            if code == SPACE:
                pending, place = 1, place + width
                continue
        elif 48 <= code <= 57:  # noqa: PLR2004 - digits
            digits = 1
        elif code >= 192:  # noqa: PLR2004 - the first byte of a character, which may be a space or a digit
            width = wide_space(data, place)
            if width:
                pending, place = 1, place + width
                continue
            digits, width = 1, 1
        if pending and size:
            out[size] = SPACE
            size += 1
        pending = 0
        out[size] = code
        size, place = size + 1, place + width
    state[PENDING] = pending
    if something or size > state[SIZE]:
        note(state, _SOMETHING, _SOMETHING)
    state[SIZE] = size
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
    data: Bytes, tags: Numbers, out: Bytes, state: Numbers, runs: Numbers, pieces: Numbers, parts: Numbers
) -> None:
    """Read the text of a page between its tags. O(length).

    Written are the text to ``out``; to ``runs`` paths, first and last pieces; to ``pieces`` where they begin and end;
    to ``parts`` paths, where they begin and end in the text, whether they may have digits. How many there are is in
    ``state``.
    """
    place = path = 0
    for row in range(len(tags)):
        begin, end, what = tags[row, 0], tags[row, 1], tags[row, 2]
        read_text(data, place, begin, out, state)
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
    read_text(data, place, len(data), out, state)
    end_run(len(data), path, state, runs, pieces, parts)
