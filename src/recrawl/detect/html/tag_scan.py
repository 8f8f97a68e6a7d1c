"""Read the tags of serialised HTML in compiled kernels: what they are, where they stand, where they lead.

A parser serialises every tag in one way: ``<name a="b" c="">``, with ``<``, ``>``, ``&`` and quotes in values written
as entities. Any other spelling is called odd, and then the page is read by the slow path.

All kernels that call each other are in one file, and tables are arguments: numba recompiles its cached code only when
the file of a kernel changes. After a change of this file, delete the compiled code of the modules that use it. Import
it late: it loads numba.
"""

from __future__ import annotations

from typing import NamedTuple
from zlib import crc32

import numpy as np
import numpy.typing as npt

from recrawl.detect.noise.text_noise import NAMES
from recrawl.detect.text.text_parts import BLOCKS, TOKEN_NUMBERS
from recrawl.model.compiled import inlined_kernel

Bytes = npt.NDArray[np.uint8]
Numbers = npt.NDArray[np.int64]

OTHER, BLOCK, NO_PLACE, RAW, TREE, VERBATIM, FOREIGN, BASE, ANCHOR, FRAME, IFRAME, LINK, META = range(13)
"""Kinds of elements: inline ones; blocks; blocks that are no place; what is not shown and holds no elements; what is
not shown and does; what is written out as if it were markup; roots of other languages; what names the base; and from
``ANCHOR`` on what may lead to another page."""
BORDER, GAP, COMMENT, INLINE, A_BEGINS, A_ENDS = range(6)
"""What a tag is to the text: the end of a run; nothing, with all up to its end; a space, and which one."""
PLAIN, ESCAPED, WHOLE = range(3)
"""How a reference is told: by its value alone, by a value that has entities in it, or by its whole tag."""
NOISY, HAS_BASE, HAS_ESCAPED, HAS_WHOLE = 1, 2, 4, 8
"""What may be said of a page: some element may be noise; links may have another base; not all of them are plain."""
ATTRIBUTES = 10
"""Rows of the table of attributes."""
LESS, MORE, SPACE = 60, 62, 32
LONGEST_NAMES = 1024
MOST_NAMES = 64
"""Bytes and number of the classes of an element; what has more is odd."""
NAME_CAPACITY = LONGEST_NAMES + 2 * MOST_NAMES
"""Numbers: letters, and where names start and end."""


class TagTables(NamedTuple):
    """What the kernels look up; words are rows of letters that end with 0."""

    kinds: Numbers
    """Kinds of elements by the number of their name, in slots with open addressing."""
    attributes: Bytes
    noise: Bytes
    """Classes, ids and roles of elements that are noise."""
    words: Bytes
    crc: Numbers
    """CRC-32 of each byte."""


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


TABLES = TagTables(
    _table(_BY_KIND),
    _letters("class", "id", "href", "rel", "src", "role", "data-ad-slot", "http-equiv", "name", "xlink:href"),
    _letters(*sorted(NAMES), "marquee", "timer"),
    _letters("nofollow", "canonical", "alternate", "robots"),
    np.array([crc32(bytes([byte]), 0xFFFFFFFF) ^ 0xFFFFFFFF for byte in range(256)], np.int64),
)


_U64 = np.uint64
ONES, LOW, HIGH = _U64(0x0101_0101_0101_0101), _U64(0x7F7F_7F7F_7F7F_7F7F), _U64(0x8080_8080_8080_8080)
"""The lowest bit of each byte, all but the highest, and the highest."""


@inlined_kernel
def eight(data: Bytes, place: int) -> np.uint64:
    """Eight bytes as one number, the first the lowest. Written out, this is one step of the processor."""
    at = _U64(place)
    low = _U64(data[at]) | _U64(data[at + _U64(1)]) << _U64(8) | _U64(data[at + _U64(2)]) << _U64(16)
    middle = _U64(data[at + _U64(3)]) << _U64(24) | _U64(data[at + _U64(4)]) << _U64(32)
    high = _U64(data[at + _U64(5)]) << _U64(40) | _U64(data[at + _U64(6)]) << _U64(48)
    return low | middle | high | _U64(data[at + _U64(7)]) << _U64(56)


@inlined_kernel
def put_eight(out: Bytes, place: int, number: np.uint64) -> None:
    """Write such a number, which is one step, too."""
    at = _U64(place)
    out[at] = np.uint8(number)
    out[at + _U64(1)] = np.uint8(number >> _U64(8))
    out[at + _U64(2)] = np.uint8(number >> _U64(16))
    out[at + _U64(3)] = np.uint8(number >> _U64(24))
    out[at + _U64(4)] = np.uint8(number >> _U64(32))
    out[at + _U64(5)] = np.uint8(number >> _U64(40))
    out[at + _U64(6)] = np.uint8(number >> _U64(48))
    out[at + _U64(7)] = np.uint8(number >> _U64(56))


@inlined_kernel
def from_on(low: np.uint64, code: int) -> np.uint64:
    """The highest bit of each of eight bytes below 128 that is ``code`` or more."""
    return (low + ONES * _U64(128 - code)) & HIGH


@inlined_kernel
def is_byte(low: np.uint64, code: int) -> np.uint64:
    """The highest bit of each of eight bytes below 128 that is ``code``."""
    return ~((low ^ (ONES * _U64(code))) + LOW) & HIGH


CLASS, ID, HREF, REL, SRC, ROLE, AD_SLOT, HTTP_EQUIV, NAME, XLINK = range(10)
"""Rows of the table of attributes."""
NOFOLLOW, CANONICAL, ALTERNATE, ROBOTS = range(4)
"""Rows of the table of words."""
_SLASH, _BANG, _HYPHEN = 47, 33, 45
_LONGEST_NAME = 10
"""Letters of a name that is looked up."""


@inlined_kernel
def is_space(code: int) -> bool:
    """Whether an ASCII character is space to ``str.split``."""
    return code == 32 or 9 <= code <= 13 or 28 <= code <= 31  # noqa: PLR2004 - characters


@inlined_kernel
def lower(code: int) -> int:
    """The small letter of one in ASCII."""
    return code + 32 if 65 <= code <= 90 else code  # noqa: PLR2004 - A to Z


@inlined_kernel
def says(data: Bytes, start: int, end: int, words: Bytes, row: int) -> bool:
    """Whether a piece of the page is the word in a row, in small letters or capitals."""
    if end - start >= words.shape[1] or words[row, end - start]:
        return False
    for place in range(start, end):  # noqa: SIM110 - a generator is nothing for a kernel
        if lower(data[place]) != words[row, place - start]:
            return False
    return True


@inlined_kernel
def mentions(data: Bytes, start: int, end: int, words: Bytes, row: int) -> bool:
    """Whether the word in a row stands somewhere in a piece of the page."""
    length = 0
    while words[row, length]:
        length += 1
    for place in range(start, end - length + 1):  # noqa: SIM110 - a generator is nothing for a kernel
        if says(data, place, place + length, words, row):
            return True
    return False


@inlined_kernel
def kind_of(number: int, kinds: Numbers) -> int:
    """The kind of the element whose name has this number."""
    last = len(kinds) - 1  # their number is a power of two
    slot = number & last
    while kinds[slot, 0]:
        if kinds[slot, 0] == number:
            return int(kinds[slot, 1])
        slot = (slot + 1) & last
    return OTHER


@inlined_kernel
def read_name(data: Bytes, place: int, kinds: Numbers) -> tuple[int, int]:
    """Where the name that starts at a place ends, and the kind of the element."""
    number, start, known = 0, place, True
    while place < len(data) and data[place] != 32 and data[place] != 62:  # noqa: PLR2004 - space, >
        code = int(data[place])
        if 97 <= code <= 122:  # noqa: PLR2004 - a to z
            number = number * 37 + code - 96
        elif 48 <= code <= 57:  # noqa: PLR2004 - digits
            number = number * 37 + code - 21
        else:
            if code < 32 or code in (34, 39, 60):  # noqa: PLR2004 - quotes and < look like other things
                return place, VERBATIM
            known = False
        place += 1
    return place, kind_of(number, kinds) if known and place - start <= _LONGEST_NAME else OTHER


@inlined_kernel
def read_attributes(data: Bytes, place: int, kind: int, attributes: Bytes, tag: Numbers) -> int:
    """Note where in a tag the values of attributes that matter stand; where the tag ends, or -1 if it is odd."""
    size = len(data)
    tag[:, :] = -1
    while place < size and data[place] == 32:  # noqa: PLR2004 - space
        start = place = place + 1
        while place < size and data[place] not in (61, 62, 32, 60):  # =, >, space, <; quotes may be in names
            place += 1
        if place == start or place + 1 >= size or data[place] != 61 or data[place + 1] != 34:  # noqa: PLR2004
            return -1
        stop, place = place, place + 2
        value = place
        while place < size and data[place] != 34:  # noqa: PLR2004 - quote
            place += 1
        for which in range(len(attributes)):
            if attributes[which, 0] == data[start] and says(data, start, stop, attributes, which):
                tag[which, 0], tag[which, 1] = value, place
        if kind == BLOCK and value < place and data[place - 1] == 61 and data[place - 2] in (100, 115):  # noqa: PLR2004
            return -1  # what ends in " id=" looks like an attribute to those who do not read all
        place += 1
    return place + 1 if place < size and data[place] == 62 else -1  # noqa: PLR2004 - >


@inlined_kernel
def has_name_of_noise(data: Bytes, start: int, end: int, noise: Bytes) -> bool:
    """Whether one of the classes is among those that noise has."""
    place = start
    while place < end:
        while place < end and is_space(data[place]):
            place += 1
        begin = place
        while place < end and not is_space(data[place]):
            place += 1
        for row in range(len(noise) if begin < place else 0):
            if noise[row, 0] == lower(data[begin]) and says(data, begin, place, noise, row):
                return True
    return False


@inlined_kernel
def may_be_noise(data: Bytes, tag: Numbers, noise: Bytes) -> bool:
    """Whether an element may be one of those that ``ELEMENT_RULES`` name. It may say so too often, never too seldom."""
    if tag[AD_SLOT, 0] >= 0:
        return True
    for which in (CLASS, ID, ROLE):
        if tag[which, 0] >= 0 and has_name_of_noise(data, tag[which, 0], tag[which, 1], noise):
            return True
    return False


@inlined_kernel
def reference_of(  # noqa: PLR0911 - one for each case
    data: Bytes, kind: int, tag: Numbers, words: Bytes
) -> int:
    """How an element refers to another page, ``PLAIN`` or ``WHOLE``; -1 if it does not, -2 if it is odd."""
    rel, rel_end = tag[REL, 0], tag[REL, 1]
    if kind == ANCHOR:
        if tag[XLINK, 0] >= 0:
            return -2
        if tag[HREF, 0] == tag[HREF, 1]:
            return WHOLE if tag[HREF, 0] >= 0 and tag[SRC, 0] >= 0 else -1
        return WHOLE if rel >= 0 and mentions(data, rel, rel_end, words, NOFOLLOW) else PLAIN
    if kind in (FRAME, IFRAME):
        return WHOLE if tag[SRC, 0] >= 0 else -1
    if kind == LINK and rel >= 0:
        named = mentions(data, rel, rel_end, words, CANONICAL) or mentions(data, rel, rel_end, words, ALTERNATE)
        return WHOLE if named else -1
    if kind == META:
        robots = tag[NAME, 0] >= 0 and mentions(data, tag[NAME, 0], tag[NAME, 1], words, ROBOTS)
        return WHOLE if robots or tag[HTTP_EQUIV, 0] >= 0 else -1
    return -1


@inlined_kernel
def fed(table: Numbers, crc: int, code: int) -> int:
    """CRC-32 with one more byte, not yet inverted."""
    return int(table[(crc ^ code) & 255]) ^ (crc >> 8)


@inlined_kernel
def fed_names(  # noqa: C901, PLR0913, PLR0917 - one pass over all characters
    table: Numbers, crc: int, data: Bytes, start: int, end: int, names: Numbers
) -> int:
    """CRC-32 with the classes from ``start`` to ``end``, sorted, ``#`` for digits and tokens; -1 if odd."""
    if end - start > LONGEST_NAMES:
        return -1
    masked, begins, ends = names[2 * MOST_NAMES :], names[:MOST_NAMES], names[MOST_NAMES : 2 * MOST_NAMES]
    size = count = 0
    inside = False
    for place in range(start, end):
        code = int(data[place])
        if code >= 128:  # noqa: PLR2004 - beyond ASCII are other digits and spaces
            return -1
        if is_space(code):
            inside = False
            continue
        if not inside:
            if count == MOST_NAMES:
                return -1
            begins[count] = size
            count, inside = count + 1, True
        if 48 <= code <= 57:  # noqa: PLR2004 - digits
            code = 35
            if place > start and 48 <= data[place - 1] <= 57:  # noqa: PLR2004
                continue
        masked[size] = code
        size += 1
        ends[count - 1] = size
    for row in range(count):
        ends[row] = without_tokens(masked, begins[row], ends[row])
    sort_names(masked, begins[:count], ends[:count])
    for row in range(count):
        if row:
            crc = fed(table, crc, 44)
        for place in range(begins[row], ends[row]):
            crc = fed(table, crc, masked[place])
    return crc


@inlined_kernel
def is_letter(code: int) -> bool:
    """Whether it is a letter, in ASCII."""
    return 97 <= code <= 122 or 65 <= code <= 90  # noqa: PLR2004 - a to z, A to Z


@inlined_kernel
def without_tokens(letters: Numbers, begin: int, end: int) -> int:
    """Write one ``#`` for each piece of a name that has several, in place, as ``text_parts`` does; the new end."""
    size = piece = begin
    numbers = 0
    for place in range(begin, end):
        code = int(letters[place])
        if code != 35 and not is_letter(code):  # noqa: PLR2004 - "#"
            if numbers >= TOKEN_NUMBERS:
                letters[piece] = 35
                size = piece + 1
            letters[size] = code
            size += 1
            piece, numbers = size, 0
            continue
        numbers += code == 35  # noqa: PLR2004
        letters[size] = code
        size += 1
    if numbers >= TOKEN_NUMBERS:
        letters[piece] = 35
        size = piece + 1
    return size


@inlined_kernel
def sort_names(letters: Numbers, begins: Numbers, ends: Numbers) -> None:
    """Sort names, given by where each starts and ends, by their letters."""
    for row in range(1, len(begins)):
        place = row
        while place and comes_first(letters, begins[place], ends[place], begins[place - 1], ends[place - 1]):
            begins[place], begins[place - 1] = begins[place - 1], begins[place]
            ends[place], ends[place - 1] = ends[place - 1], ends[place]
            place -= 1


@inlined_kernel
def comes_first(letters: Numbers, begin: int, end: int, other: int, other_end: int) -> bool:
    """Whether one name comes before another."""
    while begin < end and other < other_end and letters[begin] == letters[other]:
        begin, other = begin + 1, other + 1
    return other < other_end and (begin == end or letters[begin] < letters[other])


@inlined_kernel
def path_into(  # noqa: PLR0913, PLR0917 - all that is read
    data: Bytes, place: int, end: int, tag: Numbers, path: int, tables: TagTables, names: Numbers
) -> int:
    """The path within a block whose name is at ``place`` to ``end``, as ``text_parts.py`` computes it; -1 if odd."""
    table = tables.crc
    crc = fed(table, path ^ 0xFFFFFFFF, 60)
    for letter in range(place, end):
        crc = fed(table, crc, int(data[letter]))
    for which in (CLASS, ID):
        if tag[which, 0] < 0:
            continue
        crc = fed(table, crc, 32)
        for letter in range(tables.attributes.shape[1]):
            if tables.attributes[which, letter]:
                crc = fed(table, crc, int(tables.attributes[which, letter]))
        crc = fed_names(table, fed(table, crc, 61), data, tag[which, 0], tag[which, 1], names)
        if crc < 0:
            return -1
    return crc ^ 0xFFFFFFFF


@inlined_kernel
def end_of_raw(data: Bytes, place: int, start: int, end: int, foreign: int) -> int:
    """Where an element whose content is no markup ends, its name standing from ``start`` to ``end``; -1 if odd.

    In other languages such an element may have others in it, and a script within a comment may hold another script.
    """
    size, length = len(data), end - start
    commented = False
    while place < size:
        if data[place] == LESS:
            closes = place + 1 < size and data[place + 1] == _SLASH
            from_ = place + 1 + closes
            same = 0
            while same < length and from_ + same < size and data[from_ + same] == data[start + same]:
                same += 1
            if same == length and closes and from_ + same < size and data[from_ + same] == MORE:
                return from_ + same + 1
            if foreign or (same == length and commented):
                return -1
            commented = commented or (
                place + 3 < size
                and data[place + 1] == _BANG
                and data[place + 2] == _HYPHEN
                and data[place + 3] == _HYPHEN
            )
        place += 1
    return -1


@inlined_kernel
def end_of_comment(data: Bytes, place: int) -> int:
    """Where the comment or the document type that starts at a place ends; -1 if nowhere."""
    hyphens = place + 2 < len(data) and data[place + 2] == _HYPHEN
    for end in range(place + (6 if hyphens else 2), len(data)):
        if data[end] == MORE and (not hyphens or (data[end - 1] == _HYPHEN and data[end - 2] == _HYPHEN)):
            return end + 1
    return -1


@inlined_kernel
def next_tag(data: Bytes, place: int) -> int:
    """Where the next tag starts."""
    while place < len(data) and data[place] != LESS:
        place += 1
    return place


@inlined_kernel
def note_reference(  # noqa: PLR0913, PLR0917 - all that is read and written
    data: Bytes, place: int, end: int, kind: int, tag: Numbers, words: Bytes, link: Numbers
) -> int:
    """Note where a tag leads, if it leads anywhere; how many links were noted, or -1 if it is odd."""
    how = reference_of(data, kind, tag, words)
    if how < 0:
        return how + 1
    link[0], link[1], link[2] = how, place, end
    if how == PLAIN:
        link[1], link[2] = tag[HREF, 0], tag[HREF, 1]
        for letter in range(link[1], link[2]):
            if data[letter] == 38:  # noqa: PLR2004 - &
                link[0] = ESCAPED
    return 1


@inlined_kernel
def read_tags(  # noqa: C901, PLR0912, PLR0913, PLR0915, PLR0917 - one pass over all tags
    data: Bytes, tables: TagTables, rows: Numbers, links: Numbers, tag: Numbers, names: Numbers, around: Numbers
) -> tuple[int, int, int]:
    """Read the tags of a page that a parser wrote, in UTF-8. O(length).

    Written are to ``rows`` where each tag starts and ends, what it is to the text, and the path behind it; to ``links``
    how each reference is told, and from where to where. Given back is how many there are of both, and what may be said
    of the page; -1 for the first if it is odd. The last three are room to work in: for a tag, for the classes of one,
    and for paths, one more than ``rows``.
    """
    size, around[0], noted = len(data), 0, True
    depth = hidden = templates = foreign = gap = flags = count = linked = 0
    place = next_tag(data, 0)
    while place < size - 1:
        after = data[place + 1]
        what, closing = INLINE, after == _SLASH
        begin = place + 1 + closing
        if after == _BANG:
            end, kind = end_of_comment(data, place), OTHER
            what = COMMENT if data[begin + 1] == _HYPHEN else INLINE
        else:
            name_end, kind = read_name(data, begin, tables.kinds)
            if name_end < size and data[name_end] == MORE:  # most tags have no attributes
                end = name_end + 1
                if noted:
                    tag[:, :], noted = -1, False
            else:
                end, noted = read_attributes(data, name_end, kind, tables.attributes, tag), True
            if not closing and name_end + 1 < end:
                if may_be_noise(data, tag, tables.noise):
                    flags |= NOISY
                if kind >= ANCHOR and not templates:
                    found = note_reference(data, place, end, kind, tag, tables.words, links[linked])
                    if found > 0 and links[linked, 0] != PLAIN:
                        flags |= HAS_ESCAPED if links[linked, 0] == ESCAPED else HAS_WHOLE
                    end, linked = end if found >= 0 else -1, linked + found
        if end < 0 or kind == VERBATIM:
            return -1, 0, 0
        if kind in (BLOCK, NO_PLACE) and not hidden:
            what = BORDER
            depth = max(0, depth - 1) if closing else depth + 1
            if not closing:
                around[depth] = around[depth - 1]
                if kind == BLOCK:
                    around[depth] = path_into(data, begin, name_end, tag, around[depth - 1], tables, names)
                end = end if around[depth] >= 0 else -1
        elif kind in (RAW, IFRAME):
            what, end = GAP, end_of_raw(data, end, begin, name_end, foreign)
        elif kind == TREE:
            what = GAP
            is_template = data[begin] == 116  # noqa: PLR2004 - t
            end = -1 if is_template and foreign else end
            if closing:
                hidden, templates = hidden - 1, templates - is_template
                place = gap
            else:
                gap = gap if hidden else place
                hidden, templates = hidden + 1, templates + is_template
        elif kind == FOREIGN:
            foreign += -1 if closing else 1
        elif kind == BASE:
            flags |= HAS_BASE
        elif kind == ANCHOR and name_end - begin == 1 and (closing or data[name_end] == SPACE):
            what = A_ENDS if closing else A_BEGINS
        if end < 0:
            return -1, 0, 0
        if not hidden:
            rows[count, 0], rows[count, 1], rows[count, 2], rows[count, 3] = place, end, what, around[depth]
            count += 1
        place = next_tag(data, end)
    return (count, linked, flags) if not hidden else (-1, 0, 0)
