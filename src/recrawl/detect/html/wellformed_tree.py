"""Open elements and text of pages that need no parser, in compiled kernels.

Elements may have implied end tags: items of lists, paragraphs, cells. Where more than that would have to end, or start,
the page is left to a parser. The rules are those of the HTML standard, 13.2.6. Text with unusual entities is left to a
parser too: entities that stand for two characters, are long, or need no semicolon; and bytes of 0.

After a change of this file, delete the compiled code of ``wellformed_scan.py``, which inlines these kernels: numba
recompiles it only when its own file changes. Import it late: it loads numba.
"""

from __future__ import annotations

from collections.abc import Iterable
from html.entities import html5
from typing import NamedTuple

import numpy as np

from recrawl.detect.html.tag_scan import LESS, LOW, MORE, ONES, Bytes, Numbers, eight, is_byte, put_eight
from recrawl.model.compiled import inlined_kernel

(
    VOID,
    RAW,
    TEXT_ONLY,
    CLOSES_P,
    MAY_END,
    SPECIAL,
    HEADING,
    WALL,
    IN_HEAD,
    ODD,
    ENDS_OTHERS,
    P,
    ITEM,
    TERM,
    PASSED,
    ANCHOR,
    TABLE,
    SECTION,
    ROW,
    CELL,
    CAPTION,
    COLUMNS,
    COLUMN,
    SELECT,
    OPTION,
    GROUP,
    BUTTON,
    FORM,
    HTML,
    HEAD,
    BODY,
    SCRIPT,
    OTHER_IN_HEAD,
    ON_NEW_LINE,
) = (1 << bit for bit in range(34))
"""What is to be known of an element: it has no end; holds anything up to its end, or text and no elements; ends a
paragraph; ends where another one must; stops those who look around it, always or for a paragraph; stands in a head; is
better left to a parser; its end is that of what may end in it. The others name elements, or tell of a few of them."""

LONGEST_ELEMENT = 12
"""Letters of a name: this many small letters, digits and hyphens make different numbers of 63 bits."""
OF_ELEMENT = 38
"""Names of elements are polynomials of their letters, from 1 on, in this."""
LONGEST_CHARACTER = 9
"""Letters of the name of a character: this many make different numbers of 64 bits."""
OF_CHARACTER = 131
"""The same for names of characters, and of attributes; longer ones may share a number."""
_SLOTS = 1 << 13


def _names(words: str, known: int) -> dict[str, int]:
    return dict.fromkeys(words.split(), known)


def _elements() -> dict[str, int]:
    """What is known of each element that is not like any other."""
    known: dict[str, int] = {}
    for words, bits in (
        ("area br embed img input param source track wbr", VOID | SPECIAL),
        ("base link meta", VOID | SPECIAL | IN_HEAD),
        ("hr", VOID | SPECIAL | CLOSES_P),
        ("style", RAW | SPECIAL | IN_HEAD),
        ("script", RAW | SPECIAL | IN_HEAD | SCRIPT),
        ("iframe", RAW | SPECIAL),
        ("title", TEXT_ONLY | SPECIAL | IN_HEAD),
        ("textarea", TEXT_ONLY | SPECIAL | ON_NEW_LINE),
        ("address div", SPECIAL | CLOSES_P | ENDS_OTHERS | PASSED),
        (
            (
                "article aside blockquote center details dir dl fieldset figcaption figure footer header hgroup main "
                "menu nav ol search section summary ul"
            ),
            SPECIAL | CLOSES_P | ENDS_OTHERS,
        ),
        ("pre", SPECIAL | CLOSES_P | ENDS_OTHERS | ON_NEW_LINE),
        ("dialog", CLOSES_P | ENDS_OTHERS),
        ("h1 h2 h3 h4 h5 h6", SPECIAL | CLOSES_P | ENDS_OTHERS | HEADING),
        ("p", SPECIAL | CLOSES_P | ENDS_OTHERS | MAY_END | P | PASSED),
        ("li", SPECIAL | CLOSES_P | ENDS_OTHERS | MAY_END | ITEM),
        ("dd dt", SPECIAL | CLOSES_P | ENDS_OTHERS | MAY_END | TERM),
        ("form", SPECIAL | CLOSES_P | ENDS_OTHERS | FORM),
        ("button", SPECIAL | ENDS_OTHERS | BUTTON),
        ("noscript", SPECIAL | OTHER_IN_HEAD),
        ("object", SPECIAL | WALL | ENDS_OTHERS),
        ("a", ANCHOR),
        ("table", SPECIAL | WALL | TABLE),
        ("tbody thead tfoot", SPECIAL | SECTION),
        ("tr", SPECIAL | ROW),
        ("td th", SPECIAL | WALL | CELL),
        ("caption", SPECIAL | WALL | CAPTION),
        ("colgroup", SPECIAL | COLUMNS),
        ("col", SPECIAL | VOID | COLUMN),
        ("select", SPECIAL | SELECT),
        ("option", MAY_END | OPTION),
        ("optgroup", MAY_END | GROUP),
        ("html", SPECIAL | WALL | HTML),
        ("head", SPECIAL | HEAD),
        ("body", SPECIAL | BODY),
        (
            (
                "applet basefont bgsound frame frameset image isindex keygen listing marquee math menuitem nobr "
                "noembed noframes plaintext rb rp rt rtc svg template xmp"
            ),
            ODD,
        ),
    ):
        known |= _names(words, bits)
    return known


def _element_number(name: str) -> int:
    number = 0
    for letter in name.encode():
        number = number * OF_ELEMENT + (letter - 96 if letter > 96 else letter - 20)  # noqa: PLR2004 - letters, digits
    return number


def _character_number(name: str) -> int:
    """As the kernels make it: signed, of 64 bits."""
    number = 0
    for letter in name.encode():
        number = (number * OF_CHARACTER + letter) & 0xFFFF_FFFF_FFFF_FFFF
    return number - (1 << 64) if number >> 63 else number


def _table(rows: Iterable[tuple[int, int]]) -> Numbers:
    """Values by number, in slots with open addressing."""
    table = np.zeros((_SLOTS, 2), np.int64)
    for number, meant in rows:
        slot = number & (_SLOTS - 1)
        while table[slot, 0]:
            slot = (slot + 1) & (_SLOTS - 1)
        table[slot] = number, meant
    return table


def _implied() -> tuple[Numbers, Bytes]:
    """Elements that start unsaid: their numbers, what is known of them, how long their names are; and those."""
    names, known = ("html", "head", "body", "tbody", "tr"), _elements()
    letters = np.zeros((len(names), 8), np.uint8)
    for row, name in enumerate(names):
        letters[row, : len(name)] = list(name.encode())
    return np.array([(_element_number(name), known[name], len(name)) for name in names], np.int64), letters


def _written() -> Bytes:
    names = {"&": "&amp;", "<": "&lt;", ">": "&gt;", '"': "&quot;", "\xa0": "&nbsp;"}
    rows = np.zeros((len(names), 8), np.uint8)
    for row, (character, name) in enumerate(names.items()):
        rows[row, : len(name) + 2] = [ord(character), len(name) + 1, *name.encode()]
    return rows


class ElementTables(NamedTuple):
    """What the kernels look up."""

    elements: Numbers
    """By the numbers of their names."""
    characters: Numbers
    """Characters by the numbers of their names; -1 where a name means two."""
    old: Numbers
    """Of those whose names need no semicolon."""
    implied: Numbers
    """Elements that start unsaid."""
    letters: Bytes
    written: Bytes
    """Characters that parsers write by names: the character, how long that is with one more, and the name."""
    doctype: Bytes
    """As parsers write it."""


KNOWN = ElementTables(
    _table((_element_number(name), bits) for name, bits in _elements().items()),
    _table(
        (_character_number(name[:-1]), ord(meant) if len(meant) == 1 else -1)
        for name, meant in html5.items()
        if name.endswith(";") and len(name) <= LONGEST_CHARACTER + 1
    ),
    _table((_character_number(name), 1) for name in html5 if not name.endswith(";")),
    *_implied(),
    _written(),
    np.frombuffer(b"<!DOCTYPE html>", np.uint8),
)


IN_ELEMENT, BETWEEN_TAGS, VALUE = range(3)
"""Kinds of text: in an element that has no others in it, between tags, and of attributes."""
AND, SLASH, BANG, HYPHEN, QUOTE, APOSTROPHE, EQUALS, RETURN, NEWLINE = 38, 47, 33, 45, 34, 39, 61, 13, 10
_SEMICOLON, _ASKS, _HALF, _NO_BREAK = 59, 63, 0xC2, 160
_U64 = np.uint64


@inlined_kernel
def is_blank(code: int) -> bool:
    """Whether a character is space to those who build trees."""
    return code == 32 or code == 10 or code == 9 or code == 13 or code == 12  # noqa: PLR2004, PLR1714 - characters


@inlined_kernel
def small(code: int) -> int:
    """The small letter of one in ASCII."""
    return code + 32 if 65 <= code <= 90 else code  # noqa: PLR2004 - A to Z


@inlined_kernel
def is_letter(code: int) -> bool:
    """Whether a name can start with it."""
    return 97 <= (code | 32) <= 122  # noqa: PLR2004 - a to z


@inlined_kernel
def meant_by(number: int, table: Numbers) -> int:
    """What a table says of a number; 0 if nothing."""
    last = len(table) - 1
    slot = number & last
    while table[slot, 0]:
        if table[slot, 0] == number:
            return int(table[slot, 1])
        slot = (slot + 1) & last
    return 0


@inlined_kernel
def put(out: Bytes, at: int, code: int, known: ElementTables) -> int:
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


@inlined_kernel
def reference(data: Bytes, place: int, known: ElementTables, in_value: bool) -> tuple[int, int]:
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


@inlined_kernel
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


@inlined_kernel
def is_markup(data: Bytes, place: int) -> bool:
    """Whether the sign at a place starts a tag, or what looks like one."""
    after = data[place + 1]
    return is_letter(after) or after in (SLASH, BANG, _ASKS)


@inlined_kernel
def put_text(  # noqa: PLR0913, PLR0917 - all that is read and written
    data: Bytes, place: int, end: int, known: ElementTables, out: Bytes, at: int, kind: int
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


@inlined_kernel
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


@inlined_kernel
def put_end(out: Bytes, at: int, begin: int, end: int) -> int:
    """Write the end of the element whose name was written from ``begin`` to ``end``."""
    out[at], out[at + 1] = LESS, SLASH
    at += 2
    for letter in range(begin, end):
        out[at] = out[letter]
        at += 1
    out[at] = MORE
    return at + 1


BITS, NAME, BEGIN, END = range(4)
"""Columns of the stack: what is known of an element, the number of its name, where that was written."""
IN_TABLE = TABLE | SECTION | ROW | COLUMNS
"""Where no text is, and only some elements are."""
_OF_TABLES = SECTION | ROW | CELL | CAPTION | COLUMNS | COLUMN


@inlined_kernel
def close(out: Bytes, at: int, stack: Numbers, depth: int, to: int) -> int:
    """Write the ends of all elements beyond a depth."""
    while depth > to:
        depth -= 1
        at = put_end(out, at, stack[depth, BEGIN], stack[depth, END])
    return at


@inlined_kernel
def begin_unsaid(  # noqa: PLR0913, PLR0917 - all that is read and written
    out: Bytes, at: int, stack: Numbers, depth: int, known: ElementTables, row: int
) -> int:
    """Write the start of an element that nobody wrote, and note it."""
    out[at] = LESS
    begin = at = at + 1
    for letter in range(known.implied[row, 2]):
        out[at] = known.letters[row, letter]
        at += 1
    out[at] = MORE
    stack[depth, BITS], stack[depth, NAME] = known.implied[row, 1], known.implied[row, 0]
    stack[depth, BEGIN], stack[depth, END] = begin, at
    return at + 1


@inlined_kernel
def nearest(stack: Numbers, depth: int, wanted: int) -> int:
    """The innermost open element of which something is known; -1 if there is none."""
    row = depth - 1
    while row >= 0 and not stack[row, BITS] & wanted:
        row -= 1
    return row


@inlined_kernel
def may_all_end(stack: Numbers, begin: int, depth: int) -> bool:
    """Whether all elements from one on end without a word."""
    for row in range(begin, depth):  # noqa: SIM110 - a generator is nothing for a kernel
        if not stack[row, BITS] & MAY_END:
            return False
    return True


@inlined_kernel
def without_p(stack: Numbers, depth: int) -> int:
    """The depth once a paragraph that is open ended; -1 if that is not plain."""
    row = nearest(stack, depth, P | WALL | BUTTON)
    if row < 0 or not stack[row, BITS] & P:
        return depth
    return row if may_all_end(stack, row + 1, depth) else -1


@inlined_kernel
def without_item(stack: Numbers, depth: int, kind: int) -> int:
    """The depth once an item of a list ended that the next one ends; -1 if that is not plain."""
    row = depth - 1
    while row >= 0 and not stack[row, BITS] & kind:
        if stack[row, BITS] & SPECIAL and not stack[row, BITS] & PASSED:
            return depth
        row -= 1
    if row < 0:
        return depth
    return row if may_all_end(stack, row + 1, depth) else -1


@inlined_kernel
def in_table(bits: int, stack: Numbers, depth: int, row: int) -> tuple[int, int]:
    """The depth at which a part of a table starts, and how many elements start before it unsaid; -1 if not plain."""
    around = stack[row, BITS]
    if around & CELL and may_all_end(stack, row + 1, depth):
        depth = row
    elif row != depth - 1 or around & CAPTION:
        return -1, 0
    if stack[depth - 1, BITS] & COLUMNS:
        if bits & COLUMN:
            return depth, 0
        depth -= 1
    if stack[depth - 1, BITS] & ROW and not bits & CELL:
        depth -= 1
    if stack[depth - 1, BITS] & SECTION and not bits & (CELL | ROW):
        depth -= 1
    top = stack[depth - 1, BITS]
    if bits & CELL:
        return (depth, 0 if top & ROW else 1 if top & SECTION else 2) if top & (ROW | SECTION | TABLE) else (-1, 0)
    if bits & ROW:
        return (depth, 0 if top & SECTION else 1) if top & (SECTION | TABLE) else (-1, 0)
    return (depth, 0) if top & TABLE and not bits & COLUMN else (-1, 0)


@inlined_kernel
def in_select(bits: int, stack: Numbers, depth: int) -> int:
    """The depth at which something starts in a list of options; -1 if that is not plain."""
    if not bits & (OPTION | GROUP):
        return depth if bits & SCRIPT else -1
    if stack[depth - 1, BITS] & OPTION:
        depth -= 1
    if stack[depth - 1, BITS] & GROUP and bits & GROUP:
        depth -= 1
    return depth


@inlined_kernel
def beginning(bits: int, stack: Numbers, depth: int, strict: bool) -> tuple[int, int]:  # noqa: C901, PLR0911 - cases
    """The depth at which an element starts, and how many others do before it unsaid; -1 if that is not plain."""
    row = nearest(stack, depth, SELECT | IN_TABLE | CELL | CAPTION)
    if bits & ODD:
        return -1, 0
    if row >= 0 and stack[row, BITS] & SELECT:
        return in_select(bits, stack, depth), 0
    if bits & _OF_TABLES:
        return in_table(bits, stack, depth, row) if row >= 0 else (-1, 0)
    if row == depth - 1 and row >= 0 and stack[row, BITS] & IN_TABLE:
        return (depth if bits & RAW and bits & IN_HEAD and not stack[row, BITS] & COLUMNS else -1), 0
    if bits & (OPTION | GROUP) or (bits & (ANCHOR | FORM) and nearest(stack, depth, bits & (ANCHOR | FORM)) >= 0):
        return -1, 0
    if bits & BUTTON:
        around = nearest(stack, depth, BUTTON | WALL)
        if around >= 0 and stack[around, BITS] & BUTTON:
            return -1, 0
    if bits & (ITEM | TERM):
        depth = without_item(stack, depth, bits & (ITEM | TERM))
    if depth > 0 and bits & (CLOSES_P | TABLE):
        after = without_p(stack, depth)
        depth = after if after == depth or bits & CLOSES_P or strict else -1
    if depth > 0 and bits & HEADING and stack[depth - 1, BITS] & HEADING:
        return -1, 0
    return depth, 0


@inlined_kernel
def ending(bits: int, number: int, stack: Numbers, depth: int) -> int:
    """The depth once the element of this name ended; -1 if that is not plain."""
    row, passes = depth - 1, 0
    if bits & (CELL | ROW | SECTION | TABLE):
        row = nearest(stack, depth, SELECT | CAPTION | CELL | IN_TABLE)
        if row < 0 or not may_all_end(stack, row + 1, depth):
            return -1
        # A cell ends with its row, that with its section, and that with its table.
        passes = 0 if bits & CELL else CELL if bits & ROW else CELL | ROW | (SECTION | COLUMNS if bits & TABLE else 0)
    elif bits & (ENDS_OTHERS | CAPTION):
        passes = MAY_END
    elif bits & (GROUP | SELECT):
        passes = OPTION | GROUP
    while row > 0 and stack[row, NAME] != number:
        if not stack[row, BITS] & passes:
            return -1
        row -= 1
    return row


@inlined_kernel
def ends_nothing(bits: int, number: int, stack: Numbers, depth: int) -> bool:
    """Whether an end is that of nothing that is open, so that everybody passes over it."""
    if bits & (P | VOID | HTML | HEAD | BODY) or (bits & HEADING and nearest(stack, depth, HEADING) >= 0):
        return False
    if stack[depth - 1, BITS] & COLUMNS:  # it ends the columns
        return False
    for row in range(depth):  # noqa: SIM110 - a generator is nothing for a kernel
        if stack[row, NAME] == number:
            return False
    return True


@inlined_kernel
def is_lone_p(stack: Numbers, depth: int) -> bool:
    """Whether the end of a paragraph is that of none, so that it is one: an empty one."""
    row, around = nearest(stack, depth, P | WALL | BUTTON), nearest(stack, depth, SELECT | IN_TABLE | CELL | CAPTION)
    if (around >= 0 and stack[around, BITS] & SELECT) or stack[depth - 1, BITS] & IN_TABLE:
        return False
    return row < 0 or not stack[row, BITS] & P
