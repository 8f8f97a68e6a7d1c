"""The numbers of the parts of a text, made in machine code: what each says, and what it says without its numbers.

It does what ``parts.py`` does with patterns, to the same result. To be imported late: numba is loaded with it.
"""

from __future__ import annotations

from zlib import crc32

import numpy as np
import numpy.typing as npt

from recrawl.model.compiled import bare_code

Bytes = npt.NDArray[np.uint8]
Numbers = npt.NDArray[np.int64]
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


@bare_code
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


@bare_code
def is_letter(code: int) -> bool:
    """Whether it is a letter, in ASCII."""
    return 97 <= code <= 122 or 65 <= code <= 90  # noqa: PLR2004 - a to z, A to Z


@bare_code
def is_number(code: int) -> bool:
    """Whether it is a digit, in ASCII."""
    return 48 <= code <= 57  # noqa: PLR2004 - 0 to 9


@bare_code
def is_of_word(code: int) -> bool:
    """Whether it is a letter, a digit or an underscore."""
    return is_letter(code) or is_number(code) or code == 95  # noqa: PLR2004 - _


@bare_code
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
        after = place  # behind the letters that a number may begin with
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


@bare_code
def number_parts(  # noqa: PLR0913, PLR0917 - all that is read and written
    text: Bytes, parts: Numbers, longest: int, most: int, tables: Short, template: Numbers, content: Numbers
) -> int:
    """Write the template and the content of each part; how many templates are ``UNKNOWN``. O(length).

    ``parts`` are as ``page_scan.py`` notes them; what is longer than ``longest`` characters, which take at most
    ``most`` bytes each, has no template.
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


@bare_code
def put_four(out: Bytes, place: int, number: int) -> int:
    """Write a number in four bytes, the lowest first; where the next begins."""
    for lane in range(4):
        out[place + lane] = (number >> (8 * lane)) & 255
    return place + 4


@bare_code
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
