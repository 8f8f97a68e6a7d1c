"""What the kernels of ``tidy_scan.py`` know of elements and of characters that have names.

Whoever changes this file has to remove their compiled code: it is made anew only when its own file changes.
"""

from __future__ import annotations

from collections.abc import Iterable
from html.entities import html5
from typing import NamedTuple

import numpy as np

from recrawl.detect.tag_kinds import Bytes, Numbers

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
"""Letters of a name: so many small letters, digits and hyphens make different numbers of 63 bits."""
OF_ELEMENT = 38
"""Names of elements are polynomials of their letters, from 1 on, in this."""
LONGEST_CHARACTER = 9
"""Letters of the name of a character: so many make different numbers of 64 bits."""
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
    """Elements that begin unsaid: their numbers, what is known of them, how long their names are; and those."""
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


class Known(NamedTuple):
    """What the kernels look up."""

    elements: Numbers
    """By the numbers of their names."""
    characters: Numbers
    """Characters by the numbers of their names; -1 where a name means two."""
    old: Numbers
    """Of those whose names need no semicolon."""
    implied: Numbers
    """Elements that begin unsaid."""
    letters: Bytes
    written: Bytes
    """Characters that parsers write by names: the character, how long that is with one more, and the name."""
    doctype: Bytes
    """As parsers write it."""


KNOWN = Known(
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
