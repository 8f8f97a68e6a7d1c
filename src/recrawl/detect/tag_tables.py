"""What the kernels of ``tag_scan.py`` look up: names of elements, attributes and words, as numbers and letters."""

from __future__ import annotations

from zlib import crc32

import numpy as np

from recrawl.detect.noise import NAMES
from recrawl.detect.parts import BLOCKS
from recrawl.detect.tag_kinds import (
    ANCHOR,
    BASE,
    BLOCK,
    FOREIGN,
    FRAME,
    IFRAME,
    LINK,
    META,
    NO_PLACE,
    RAW,
    TREE,
    VERBATIM,
    Bytes,
    Numbers,
    Tables,
)

_BY_KIND = {
    BLOCK: [name for name in BLOCKS.split("|") if name not in ("h[1-6]", "html", "head", "body")]
    + [f"h{level}" for level in range(1, 7)],
    NO_PLACE: ["html", "head", "body"],
    RAW: ["script", "style", "noembed", "noframes"],
    TREE: ["template", "noscript"],
    ANCHOR: ["a", "area"],
    FRAME: ["frame"],
    IFRAME: ["iframe"],
    LINK: ["link"],
    META: ["meta"],
    BASE: ["base"],
    FOREIGN: ["svg", "math"],
    VERBATIM: ["xmp", "plaintext"],
}
_SLOTS = 1024


def _number(name: str) -> int:
    """A name of up to ten small letters and digits as a number, different for each."""
    number = 0
    for letter in name.encode():
        number = number * 37 + (letter - 96 if letter >= 97 else letter - 21)  # noqa: PLR2004 - letters, then digits
    return number


def _table(kinds: dict[int, list[str]]) -> Numbers:
    """Kinds by number, in a table of slots with open addressing."""
    table = np.zeros((_SLOTS, 2), np.int64)
    for kind, names in kinds.items():
        for name in names:
            number = _number(name)
            slot = number % _SLOTS
            while table[slot, 0]:
                slot = (slot + 1) % _SLOTS
            table[slot] = number, kind
    return table


def _letters(*words: str) -> Bytes:
    table = np.zeros((len(words), max(map(len, words)) + 1), np.uint8)
    for row, word in enumerate(words):
        table[row, : len(word)] = list(word.encode())
    return table


TABLES = Tables(
    _table(_BY_KIND),
    _letters("class", "id", "href", "rel", "src", "role", "data-ad-slot", "http-equiv", "name", "xlink:href"),
    _letters(*sorted(NAMES), "marquee", "timer"),
    _letters("nofollow", "canonical", "alternate", "robots"),
    np.array([crc32(bytes([byte]), 0xFFFFFFFF) ^ 0xFFFFFFFF for byte in range(256)], np.int64),
)
