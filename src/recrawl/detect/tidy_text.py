"""Text of pages that need no parser, written as one would write it, in machine code.

What is not plain is left to a parser: names of characters that mean two, are long, or need no semicolon; bytes of 0.
Whoever changes this file has to remove the compiled code of ``tidy_scan.py``, which these kernels become part of: that
is made anew only when its own file changes. To be imported late: numba is loaded with it.
"""

from __future__ import annotations

import numpy as np

from recrawl.detect.eight_bytes import LOW, ONES, eight, is_byte, put_eight
from recrawl.detect.tag_kinds import LESS, MORE, Bytes, Numbers
from recrawl.detect.tidy_kinds import LONGEST_CHARACTER, OF_CHARACTER, Known
from recrawl.model.compiled import bare_code

IN_ELEMENT, BETWEEN_TAGS, VALUE = range(3)
"""Kinds of text: in an element that has no others in it, between tags, and of attributes."""
AND, SLASH, BANG, HYPHEN, QUOTE, APOSTROPHE, EQUALS, RETURN, NEWLINE = 38, 47, 33, 45, 34, 39, 61, 13, 10
_SEMICOLON, _ASKS, _HALF, _NO_BREAK = 59, 63, 0xC2, 160
_U64 = np.uint64


@bare_code
def is_blank(code: int) -> bool:
    """Whether a character is space to those who build trees."""
    return code == 32 or code == 10 or code == 9 or code == 13 or code == 12  # noqa: PLR2004, PLR1714 - characters


@bare_code
def small(code: int) -> int:
    """The small letter of one in ASCII."""
    return code + 32 if 65 <= code <= 90 else code  # noqa: PLR2004 - A to Z


@bare_code
def is_letter(code: int) -> bool:
    """Whether a name can begin with it."""
    return 97 <= (code | 32) <= 122  # noqa: PLR2004 - a to z


@bare_code
def meant_by(number: int, table: Numbers) -> int:
    """What a table says of a number; 0 if nothing."""
    last = len(table) - 1
    slot = number & last
    while table[slot, 0]:
        if table[slot, 0] == number:
            return int(table[slot, 1])
        slot = (slot + 1) & last
    return 0


@bare_code
def put(out: Bytes, at: int, code: int, known: Known) -> int:
    """Write a character as parsers do; where the next one goes."""
    for row in range(len(known.written)):
        if known.written[row, 0] == code:
            for letter in range(1, known.written[row, 1]):
                out[at + letter - 1] = known.written[row, letter + 1]
            return at + int(known.written[row, 1]) - 1
    if code < 0x80:  # noqa: PLR2004 - UTF-8 from here on
        out[at] = code
        return at + 1
    if code < 0x800:  # noqa: PLR2004
        out[at], out[at + 1] = 0xC0 | code >> 6, 0x80 | code & 63
        return at + 2
    if code < 0x10000:  # noqa: PLR2004
        out[at], out[at + 1], out[at + 2] = 0xE0 | code >> 12, 0x80 | code >> 6 & 63, 0x80 | code & 63
        return at + 3
    out[at], out[at + 1] = 0xF0 | code >> 18, 0x80 | code >> 12 & 63
    out[at + 2], out[at + 3] = 0x80 | code >> 6 & 63, 0x80 | code & 63
    return at + 4


@bare_code
def reference(data: Bytes, place: int, known: Known, in_value: bool) -> tuple[int, int]:
    """The character that is meant at an ampersand, and by how many bytes; -1 if that is not plain."""
    after, number = place + 1, 0
    if data[after] == 35:  # noqa: PLR2004 - a number follows
        after += 1
        hexadecimal = data[after] | 32 == 120  # noqa: PLR2004 - x
        after += hexadecimal
        begin = after
        while after - begin < 8:  # noqa: PLR2004 - more is nonsense
            code = int(data[after])
            if 48 <= code <= 57:  # noqa: PLR2004 - digits
                number = number * (16 if hexadecimal else 10) + code - 48
            elif hexadecimal and 97 <= code | 32 <= 102:  # noqa: PLR2004 - a to f
                number = number * 16 + (code | 32) - 87
            else:
                break
            after += 1
        is_plain = 32 <= number < 127 or 160 <= number < 0xD800 or 0xE000 <= number < 0xFDD0  # noqa: PLR2004
        is_plain = is_plain or (0x10000 <= number < 0x110000 and number & 0xFFFE != 0xFFFE)  # noqa: PLR2004
        return (number if is_plain and data[after] == _SEMICOLON else -1), after + 1 - place
    is_old = was_old = False
    while 48 <= data[after] <= 57 or is_letter(data[after]):  # noqa: PLR2004 - digits
        number = number * OF_CHARACTER + int(data[after])
        after += 1
        is_old = meant_by(number, known.old) > 0
        was_old = was_old or is_old
    if data[after] == _SEMICOLON and after > place + 1:
        if after > place + 1 + LONGEST_CHARACTER:
            return -1, 1
        code = meant_by(number, known.characters)
        return (code or (-1 if was_old else AND)), (after + 1 - place if code else 1)
    # In a value an old name means itself where it may be the name of a parameter.
    is_plain = not was_old or (in_value and (data[after] == EQUALS or not is_old))
    return (AND if is_plain else -1), 1


@bare_code
def put_plain(data: Bytes, place: int, out: Bytes, at: int) -> int:
    """Write what stands for itself wherever it is, eight bytes in a step; how much that is."""
    length = 0
    while True:
        chunk = eight(data, place + length)
        low = chunk & LOW
        marks = (
            is_byte(low, LESS) | is_byte(low, MORE) | is_byte(low, AND) | is_byte(low, QUOTE) | is_byte(low, APOSTROPHE)
        )
        marks = (marks | is_byte(low, RETURN) | is_byte(low, 0)) & ~chunk | is_byte(low, _HALF & 127) & chunk
        put_eight(out, at + length, chunk)
        if marks:
            first = ((marks & (_U64(0) - marks)) >> _U64(7)) - _U64(1)
            return length + int(((first & ONES) * ONES) >> _U64(56))
        length += 8


@bare_code
def is_markup(data: Bytes, place: int) -> bool:
    """Whether the sign at a place begins a tag, or what looks like one."""
    after = data[place + 1]
    return is_letter(after) or after in (SLASH, BANG, _ASKS)


@bare_code
def put_text(  # noqa: PLR0913, PLR0917 - all that is read and written
    data: Bytes, place: int, end: int, known: Known, out: Bytes, at: int, kind: int
) -> tuple[int, int]:
    """Write text of a kind: up to where, and where the next goes; -1 for both if it is not plain."""
    in_value = kind == VALUE
    while True:
        length = min(put_plain(data, place, out, at), end - place)
        place, at = place + length, at + length
        code, meant, width = int(data[place]), -1, 1
        if place >= end or (code == LESS and kind == BETWEEN_TAGS and is_markup(data, place)):
            return place, at
        if code == 0:
            return -1, -1
        if code == AND:
            meant, width = reference(data, place, known, in_value)
            if meant < 0:
                return -1, -1
        elif code in (LESS, MORE, QUOTE):
            meant = code
        elif code == _HALF and data[place + 1] == _NO_BREAK:
            meant, width = _NO_BREAK, 2
        if meant < 0 or (meant == QUOTE and not in_value):
            out[at] = NEWLINE if code == RETURN else code if meant < 0 else meant
            at += code != RETURN or data[place + 1] != NEWLINE
        else:
            at = put(out, at, meant, known)
        place += width


@bare_code
def put_raw(data: Bytes, place: int, end: int, out: Bytes, at: int, scripted: int) -> int:  # noqa: PLR0913, PLR0917
    """Write what is no markup as it is; where the next goes, or -1 if it is not plain."""
    commented = False
    while place < end:
        code = data[place]
        if code == LESS and scripted:
            commented = commented or (data[place + 1] == BANG and data[place + 2] == data[place + 3] == HYPHEN)
            if commented and data[place + 1] | 32 == 115:  # noqa: PLR2004 - s, as in a script within a script
                return -1
        if code == 0:
            return -1
        if code != RETURN or data[place + 1] != NEWLINE:
            out[at] = NEWLINE if code == RETURN else code
            at += 1
        place += 1
    return at


@bare_code
def put_end(out: Bytes, at: int, begin: int, end: int) -> int:
    """Write the end of the element whose name was written from ``begin`` to ``end``."""
    out[at], out[at + 1] = LESS, SLASH
    at += 2
    for letter in range(begin, end):
        out[at] = out[letter]
        at += 1
    out[at] = MORE
    return at + 1
