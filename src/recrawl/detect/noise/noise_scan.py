"""Find places of possible noise in a text in one compiled pass. Most texts have none and need no further work.

The kernel collapses white space and searches for the hint that each rule of ``text_noise.py`` requires, and behind or
before it the first characters of the rule's pattern. It may find too much, never too little; the patterns decide.
Import it late: it loads numba.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from recrawl.model.compiled import inlined_kernel

LONG_WORD = 16
"""Characters of a word from which on it may be a token."""
CLOCK, AGO, TOOK, COUNT, TOKEN, WORD = (1 << place for place in range(6))
"""Kinds of noise: a clock, a relative time, how long a page took, a visitor count, a labelled token, a long word."""
ANYTHING = 63

_HINTS = (
    (AGO, "just now"),
    (TOOK, "generated"),
    (TOOK, "rendered"),
    (TOOK, "loaded"),
    (TOOK, "served"),
    (TOOK, "processed"),
    (TOOK, "executed"),
    (TOOK, "took"),
    (COUNT, "visit"),
    (COUNT, "page"),
    (COUNT, "hits"),
    (COUNT, "users online"),
    (TOKEN, "nonce"),
    (TOKEN, "csrf"),
    (TOKEN, "xsrf"),
    (TOKEN, "token"),
    (TOKEN, "session"),
    (TOKEN, "request"),
    (TOKEN, "trace"),
)
"""What a word starts with. ``ago`` is searched for by itself."""
_SOON = 8
"""Characters between a hint and the sign or number that it needs: `` views `` and the like."""
_ROWS = sorted(_HINTS, key=lambda hint: hint[1])
_LETTERS = np.zeros((len(_ROWS), max(len(hint) for _, hint in _ROWS)), np.uint8)
for _row, _hint in enumerate(_ROWS):
    _LETTERS[_row, : len(_hint[1])] = list(_hint[1].encode())
_LENGTHS = np.array([len(hint) for _, hint in _ROWS])
_KINDS = np.array([kind for kind, _ in _ROWS])
_FIRST = np.searchsorted(_LETTERS[:, 0], np.arange(129))
"""The first row whose hint starts with a letter, or with a later one."""
_SECOND = np.zeros(128, np.int64)
"""The second letters of hints that start with a letter, a bit for each from ``a`` on."""
np.bitwise_or.at(_SECOND, _LETTERS[:, 0], np.int64(1) << (_LETTERS[:, 1].astype(np.int64) - 97))

Codes = npt.NDArray[np.uint8] | npt.NDArray[np.uint32]
"""Characters of a text, one number each."""


def scanned(text: str) -> tuple[str, int]:
    """The text with one space for every run of space and none at its ends, and the kinds of noise that may be in it.

    >>> scanned("  Served   at 09:14:07 ")[0], scanned("No noise here.")[1], scanned("Visits: 12")[1] == COUNT
    ('Served at 09:14:07', 0, True)
    """
    plain = text.isascii()
    codes: Codes = (
        np.frombuffer(text.encode("ascii"), np.uint8)
        if plain
        else np.frombuffer(text.encode("utf-32-le", "surrogatepass"), np.uint32)
    )
    out = np.empty_like(codes)
    size = collapse(codes, out)
    found = scan(out[:size], 0, size, _LETTERS, _LENGTHS, _KINDS, _FIRST, _SECOND, 0)
    kept = out[:size].tobytes()
    return (kept.decode("ascii") if plain else kept.decode("utf-32-le", "surrogatepass")), int(found)


def scanned_words(text: npt.NDArray[np.uint8], marks: npt.NDArray[np.int64], found: npt.NDArray[np.int64]) -> int:
    """The kinds of noise that may start in the words of a text in UTF-8 that are marked; it has single spaces.

    Those of each word are written to ``found``, all of them given back.
    """
    return int(scan_words(text, marks, found, _LETTERS, _LENGTHS, _KINDS, _FIRST, _SECOND))


def hinted() -> npt.NDArray[np.int64]:
    """By the last five bits of two letters, a bit for each letter behind them with which a word may start noise.

    The bit is that of the third letter's last five bits. Signs that have the same bits are found, too.
    """
    found = np.zeros((32, 32), np.int64)
    for hint in ("ago", *(hint for _, hint in _HINTS)):
        first, second, third = (ord(letter) & 31 for letter in hint[:3])
        found[first, second] |= 1 << third
    return found


@inlined_kernel
def collapse(codes: Codes, out: Codes) -> int:
    """Write the text with single spaces to ``out``; how long it is. Space is what ``str.split`` takes for it."""
    size, pending = 0, False
    for code in codes:
        if code == 32 or (9 <= code <= 13) or (28 <= code <= 31):  # noqa: PLR2004 - characters
            pending = True
            continue
        if code >= 128 and (  # noqa: PLR2004
            code in (0x85, 0xA0, 0x1680, 0x2028, 0x2029, 0x202F, 0x205F, 0x3000) or 0x2000 <= code <= 0x200A  # noqa: PLR2004
        ):
            pending = True
            continue
        if pending and size:
            out[size] = 32
            size += 1
        pending = False
        out[size] = code
        size += 1
    return size


@inlined_kernel
def is_digit(code: int) -> bool:
    """Whether a pattern may take it for a digit."""
    return 48 <= code <= 57 or code >= 128  # noqa: PLR2004


@inlined_kernel
def is_in_word(code: int) -> bool:
    """Whether no word can start behind it."""
    return 97 <= code <= 122 or 65 <= code <= 90 or 48 <= code <= 57 or code == 95  # noqa: PLR2004


@inlined_kernel
def lowered(code: int) -> int:
    """The small letter, as far as it matters: two letters beyond ASCII have small ones within."""
    if 65 <= code <= 90:  # noqa: PLR2004 - A to Z
        return code + 32
    if code == 0x212A:  # noqa: PLR2004 - the Kelvin sign
        return 107
    return 105 if code == 0x130 else code  # noqa: PLR2004 - İ


@inlined_kernel
def is_lowered_within_ascii(codes: Codes, place: int) -> bool:
    """Whether one of these two letters stands at a place, in UTF-8."""
    if codes[place] == 0xE2:  # noqa: PLR2004 - the Kelvin sign
        return bool(codes[place + 1] == 0x84 and codes[place + 2] == 0xAA)  # noqa: PLR2004
    return bool(codes[place] == 0xC4 and codes[place + 1] == 0xB0)  # noqa: PLR2004 - İ


@inlined_kernel
def follows(codes: Codes, end: int, kind: int) -> bool:
    """Whether what a pattern of this kind needs behind its hint is there: a number, or a sign."""
    if kind == AGO:
        return True
    for place in range(end, min(end + _SOON, len(codes))):
        code = codes[place]
        if kind == TOOK:
            if is_digit(code):
                return True
        elif code == 58 or code == 61 or (code == 35 and kind == TOKEN):  # noqa: PLR1714, PLR2004 - : = #
            return True
    return False


@inlined_kernel
def is_ago(codes: Codes, place: int) -> bool:
    """Whether "ago" may stand there, with something before it."""
    return 1 < place < len(codes) - 2 and lowered(codes[place + 1]) == 103 and lowered(codes[place + 2]) == 111  # noqa: PLR2004


@inlined_kernel
def scan(  # noqa: C901, PLR0912, PLR0913, PLR0917 - one pass over all characters
    codes: Codes,
    begin: int,
    end: int,
    letters: npt.NDArray[np.uint8],
    lengths: npt.NDArray[np.int64],
    kinds: npt.NDArray[np.int64],
    first: npt.NDArray[np.int64],
    seconds: npt.NDArray[np.int64],
    in_utf8: int,
) -> int:
    """The kinds of noise that may be, or start, in whole words of a text with single spaces. O(length).

    Characters beyond ASCII count as digits and as tokens, so that nothing is missed. In UTF-8 the two of them whose
    small letters are within may be anything.
    """
    found, word, special, inside, size = 0, 0, False, False, len(codes)
    for place in range(begin, end):
        code = int(codes[place])
        if inside and 97 <= code <= 122:  # noqa: PLR2004 - nearly all: a small letter behind another
            word += 1
            continue
        if code == 32:  # noqa: PLR2004 - space
            if word >= LONG_WORD and special:
                found |= WORD
            word, special, inside = 0, False, False
            continue
        if in_utf8 and code >= 128:  # noqa: PLR2004
            if code < 192:  # noqa: PLR2004 - not the first byte of a character
                continue
            if is_lowered_within_ascii(codes, place):
                return ANYTHING
        word += 1
        begins, inside = not inside, is_in_word(code)
        if code < 97:  # noqa: PLR2004 - all but small letters
            if code == 45 or 48 <= code <= 57:  # noqa: PLR2004 - hyphen, digits
                special = True
            elif code == 58 and 0 < place < size - 2 and is_digit(codes[place - 1]) and is_digit(codes[place + 1]):  # noqa: PLR2004
                found |= CLOCK
        elif code >= 128:  # noqa: PLR2004
            special = True
        if not begins:
            continue
        letter = lowered(code)
        if letter >= 128:  # noqa: PLR2004
            continue
        if letter == 97 and word == 1 and is_ago(codes, place):  # noqa: PLR2004 - a
            found |= AGO
        second = lowered(codes[place + 1]) - 97 if place + 1 < size else -1
        if not (0 <= second < 26 and (seconds[letter] >> second) & 1):  # noqa: PLR2004 - nearly all: no hint
            continue
        for row in range(first[letter], first[letter + 1]):
            length = lengths[row]
            if place + length > size or found & kinds[row]:
                continue
            same = 1
            while same < length and lowered(codes[place + same]) == letters[row, same]:
                same += 1
            if same == length and follows(codes, place + length, kinds[row]):
                found |= kinds[row]
    return found | WORD if word >= LONG_WORD and special else found


@inlined_kernel
def scan_words(  # noqa: PLR0913, PLR0917 - all that is read
    codes: npt.NDArray[np.uint8],
    marks: npt.NDArray[np.int64],
    found: npt.NDArray[np.int64],
    letters: npt.NDArray[np.uint8],
    lengths: npt.NDArray[np.int64],
    kinds: npt.NDArray[np.int64],
    first: npt.NDArray[np.int64],
    seconds: npt.NDArray[np.int64],
) -> int:
    """The kinds of noise that may start in some words of a text in UTF-8; ``marks`` tell where these start."""
    everything = 0
    for row in range(len(marks)):
        begin = end = marks[row]
        while end < len(codes) and codes[end] != 32:  # noqa: PLR2004 - space
            end += 1
        found[row] = scan(codes, begin, end, letters, lengths, kinds, first, seconds, 1)
        everything |= found[row]
    return everything
