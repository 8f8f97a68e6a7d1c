"""Pages that need no parser: serialised as a parser would, in compiled kernels, in a fifth of the time.

Browsers accept any text as a page, and only a parser knows what they make of broken ones. But in most pages tags match,
or end where the standard implies it. Such a page is serialised here as a parser does (see ``tag_scan.py``), up to white
space, comments and the document type, which no later step reads. At anything else the kernel gives up, and the parser
reads the page. Import it late: it loads numba.
"""

from __future__ import annotations

from contextlib import suppress

import numpy as np

from recrawl.detect.html.tag_scan import LESS, MORE, SPACE, Bytes, Numbers
from recrawl.detect.html.wellformed_tree import (
    APOSTROPHE,
    BANG,
    BEGIN,
    BETWEEN_TAGS,
    BITS,
    BODY,
    CELL,
    END,
    EQUALS,
    HEAD,
    HTML,
    HYPHEN,
    IN_ELEMENT,
    IN_HEAD,
    IN_TABLE,
    KNOWN,
    LONGEST_ELEMENT,
    NAME,
    NEWLINE,
    OF_CHARACTER,
    OF_ELEMENT,
    ON_NEW_LINE,
    OTHER_IN_HEAD,
    QUOTE,
    RAW,
    RETURN,
    SCRIPT,
    SELECT,
    SLASH,
    TEXT_ONLY,
    VALUE,
    VOID,
    WALL,
    ElementTables,
    P,
    begin_unsaid,
    beginning,
    close,
    ending,
    ends_nothing,
    is_blank,
    is_letter,
    is_lone_p,
    is_markup,
    meant_by,
    nearest,
    put_end,
    put_raw,
    put_text,
    small,
)
from recrawl.model.compiled import inlined_kernel

DEEPEST = 512
"""Elements that are open at once."""
_AT_ONCE = 3
"""Elements that one tag can start: a section of a table, a row and a cell, or the page, its body and an element."""
MOST_ATTRIBUTES = 32
GROWTH = 8
"""Bytes that are written for each that is read, at most."""
MARGIN = 256
"""Bytes that may be written beyond that."""

_BEFORE, _BEFORE_HEAD, _IN_HEAD, _AFTER_HEAD, _IN_BODY, _AFTER = range(6)
"""Where in a page we are."""
_UNSAID, _OTHER, _STRICT = range(3)
"""Kinds of pages, by what they say: nothing, or a document type that is HTML and no more, or is not."""
_HTML, _HEAD, _BODY, _SECTION, _ROW = range(5)
"""Rows of elements that start unsaid."""
_LETTER_P = 112


@inlined_kernel
def is_written(out: Bytes, place: int, begin: int, end: int) -> bool:
    """Whether what was written from ``begin`` to ``end`` is a name that stands at a place before, too."""
    while begin < end and out[place] == out[begin]:
        place, begin = place + 1, begin + 1
    return begin == end and out[place] == EQUALS


@inlined_kernel
def read_attributes(  # noqa: C901, PLR0911, PLR0912, PLR0913, PLR0917 - one pass over all characters
    data: Bytes, place: int, size: int, known: ElementTables, out: Bytes, at: int, seen: Numbers
) -> tuple[int, int]:
    """Write the attributes of a tag: where it ends, and where the next goes; -1 if they are not plain."""
    count = 0
    while place < size:
        while is_blank(data[place]) or data[place] == SLASH:
            place += 1
        if data[place] == MORE:
            return place + 1, at
        start, begin, number, is_new = at, place, 0, True
        out[at] = SPACE
        at += 1
        while not (is_blank(data[place]) or data[place] in (SLASH, MORE, EQUALS)):
            code = small(int(data[place]))
            if code in (LESS, 0):
                return -1, at
            out[at], number = code, number * OF_CHARACTER + code
            at, place = at + 1, place + 1
        if place == begin or count == MOST_ATTRIBUTES:
            return -1, at
        for row in range(count):
            is_new = is_new and not (seen[row, 0] == number and is_written(out, seen[row, 1], start + 1, at))
        seen[count, 0], seen[count, 1] = number, start + 1
        count += is_new
        while is_blank(data[place]):
            place += 1
        out[at], out[at + 1] = EQUALS, QUOTE
        at += 2
        if data[place] == EQUALS:
            place += 1
            while is_blank(data[place]):
                place += 1
            mark = int(data[place])
            begin = place = place + (mark in (QUOTE, APOSTROPHE))
            if place == begin and mark == MORE:
                return -1, at
            if mark in (QUOTE, APOSTROPHE):
                while place < size and data[place] != mark:
                    place += 1
            else:
                while place < size and not is_blank(data[place]) and data[place] != MORE:
                    if data[place] in (QUOTE, APOSTROPHE, LESS, 96):
                        return -1, at
                    place += 1
            begin, at = put_text(data, begin, place, known, out, at, VALUE)
            if begin < 0:
                return -1, 0
            place += mark in (QUOTE, APOSTROPHE)
        out[at] = QUOTE
        at = at + 1 if is_new else start  # the first of its name counts
    return -1, at


@inlined_kernel
def end_of_content(data: Bytes, place: int, size: int, out: Bytes, begin: int, end: int) -> int:  # noqa: PLR0913, PLR0917
    """Where the end of an element that holds no elements starts, its name written from ``begin`` on; -1 if nowhere."""
    while place < size:
        if data[place] == LESS and data[place + 1] == SLASH:
            letter = begin
            while letter < end and small(int(data[place + 2 + letter - begin])) == out[letter]:
                letter += 1
            if letter == end:  # so this is within the page, or what is behind it
                after = data[place + 2 + end - begin]
                if is_blank(after) or after in (MORE, SLASH):
                    return place
        place += 1
    return -1


@inlined_kernel
def end_of_declaration(  # noqa: C901, PLR0911 - one for each case
    data: Bytes, place: int, size: int, known: ElementTables
) -> tuple[int, bool]:
    """Where a comment or a document type ends, and whether it is a comment; -1 if it is neither, or not plain."""
    if data[place + 1] != BANG:  # somebody's instructions to a machine
        return -1, False
    if data[place + 2] == HYPHEN and data[place + 3] == HYPHEN:
        end = place + 4
        if data[end] == MORE or (data[end] == HYPHEN and data[end + 1] == MORE):
            return -1, True
        while end + 2 < size:
            if data[end] == HYPHEN and data[end + 1] == HYPHEN:
                if data[end + 2] == MORE:
                    return end + 3, True
                if data[end + 2] == BANG:
                    return -1, True
            end += 1
        return -1, True
    end = place
    while end - place < len(known.doctype) - 1:
        if small(int(data[end])) != small(int(known.doctype[end - place])):
            return -1, False
        end += 1
    if data[end] != MORE and not is_blank(data[end]):
        return -1, False
    while end < size and data[end] not in (MORE, LESS):
        end += 1
    return (end + 1 if end < size and data[end] == MORE else -1), False


@inlined_kernel
def is_strict(data: Bytes, place: int, end: int) -> bool:
    """Whether a document type says no more than HTML, what it says beyond that being between two places."""
    for letter in range(place, end):  # noqa: SIM110 - a generator is nothing for a kernel
        if not is_blank(data[letter]):
            return False
    return True


@inlined_kernel
def move_on(  # noqa: PLR0913, PLR0917 - all that is read and written
    out: Bytes, at: int, stack: Numbers, depth: int, known: ElementTables, where: int, wanted: int
) -> tuple[int, int]:
    """Start and end what lies between two places of a page: where the next goes, and the depth there."""
    while where < wanted:
        if where == _IN_HEAD:
            at, depth = close(out, at, stack, depth, depth - 1), depth - 1
        else:
            row = _HTML if where == _BEFORE else _HEAD if where == _BEFORE_HEAD else _BODY
            at, depth = begin_unsaid(out, at, stack, depth, known, row), depth + 1
        where += 1
    return at, depth


@inlined_kernel
def read_name(data: Bytes, place: int) -> tuple[int, int]:
    """Where the name of an element ends, and its number; -1 if it is long, or not of letters, digits and hyphens."""
    number, begin = 0, place
    while not (is_blank(data[place]) or data[place] == SLASH or data[place] == MORE):
        code = small(int(data[place]))
        if 97 <= code <= 122:  # noqa: PLR2004 - letters
            code -= 96
        elif 48 <= code <= 57:  # noqa: PLR2004 - digits
            code -= 20
        elif code == HYPHEN:
            code = 27
        else:
            return -1, 0
        number = number * OF_ELEMENT + code
        place += 1
        if place > begin + LONGEST_ELEMENT:
            return -1, 0
    return place, number


@inlined_kernel
def end_of_tag(data: Bytes, place: int) -> int:
    """Where a tag that has no attributes ends, its name ending at a place; -1 if it has any."""
    while is_blank(data[place]):
        place += 1
    return place + 1 if data[place] == MORE else -1


@inlined_kernel
def declaration(  # noqa: PLR0913, PLR0917 - all that is read and written
    data: Bytes, place: int, size: int, known: ElementTables, out: Bytes, at: int, where: int, kind: int
) -> tuple[int, int, int]:
    """Write a comment or a document type: where it ends, where the next goes, and of which kind the page is then."""
    end, is_comment = end_of_declaration(data, place, size, known)
    if end < 0 or (not is_comment and (where > _BEFORE or kind != _UNSAID)):
        return -1, at, kind
    if is_comment:
        if where < _AFTER:
            out[at], out[at + 1], out[at + 2], out[at + 3] = LESS, BANG, HYPHEN, HYPHEN
            out[at + 4], out[at + 5], out[at + 6] = HYPHEN, HYPHEN, MORE
            at += 7
        return end, at, kind
    for letter in range(len(known.doctype)):
        out[at + letter] = known.doctype[letter]
    return end, at + len(known.doctype), _STRICT if is_strict(data, place + len(known.doctype) - 1, end - 1) else _OTHER


@inlined_kernel
def text(  # noqa: PLR0913, PLR0917 - all that is read and written
    data: Bytes,
    place: int,
    size: int,
    known: ElementTables,
    out: Bytes,
    at: int,
    stack: Numbers,
    depth: int,
    where: int,
) -> tuple[int, int, int, int]:
    """Write the text up to the next tag: up to where, where the next goes, the depth, and where we are."""
    in_table_itself = where == _IN_BODY and bool(stack[depth - 1, BITS] & IN_TABLE)
    if where != _IN_BODY or in_table_itself:
        begin = place
        while is_blank(data[place]):
            place += 1
        if where >= _IN_HEAD:  # space before the text belongs to where we are
            _, at = put_text(data, begin, place, known, out, at, IN_ELEMENT)
        if place == size or (data[place] == LESS and is_markup(data, place)):
            return place, at, depth, where
        if where == _AFTER or in_table_itself:
            return -1, at, depth, where
    at, depth = move_on(out, at, stack, depth, known, where, _IN_BODY)
    place, at = put_text(data, place, size, known, out, at, BETWEEN_TAGS)
    return place, at, depth, _IN_BODY


@inlined_kernel
def end_tag(  # noqa: PLR0913, PLR0917 - all that is read and written
    data: Bytes, place: int, known: ElementTables, out: Bytes, at: int, stack: Numbers, depth: int, where: int
) -> tuple[int, int, int, int]:
    """Write what an end ends: up to where it was read, where the next goes, the depth, and where we are."""
    place, number = read_name(data, place + 2)
    bits = meant_by(number, known.elements)
    place = end_of_tag(data, place) if place > 0 else -1
    if where < _IN_HEAD or (where < _IN_BODY and not bits & HEAD) or (where == _AFTER and not bits & HTML):
        return -1, at, depth, where
    if bits & (HTML | BODY):
        return place if nearest(stack, depth, WALL | SELECT) <= 0 else -1, at, depth, _AFTER
    if ends_nothing(bits, number, stack, depth):
        return place, at, depth, where
    if bits & P and is_lone_p(stack, depth):
        out[at], out[at + 1], out[at + 2] = LESS, _LETTER_P, MORE
        return place, put_end(out, at + 3, at + 1, at + 2), depth, where
    to = ending(bits, number, stack, depth)
    if to < (1 if bits & HEAD else 2):
        return -1, at, depth, where
    return place, close(out, at, stack, depth, to), to, _AFTER_HEAD if bits & HEAD else where


@inlined_kernel
def place_of(bits: int, where: int) -> int:
    """Where in a page an element can start, if we are not beyond that; -1 if it cannot any more."""
    if bits & (HTML | HEAD | BODY):
        wanted = _BEFORE if bits & HTML else _BEFORE_HEAD if bits & HEAD else _AFTER_HEAD
        return wanted if where <= wanted else -1
    if where == _AFTER or (where < _IN_BODY and bits & OTHER_IN_HEAD):
        return -1
    if bits & IN_HEAD and where < _IN_BODY:
        # A parser puts what comes too late into the head. Nobody sees where a script is.
        return _IN_HEAD if where <= _IN_HEAD else _AFTER_HEAD if bits & RAW else -1
    return _IN_BODY


@inlined_kernel
def put_content(  # noqa: PLR0913, PLR0917 - all that is read and written
    data: Bytes, place: int, size: int, known: ElementTables, out: Bytes, at: int, bits: int, name: int, name_end: int
) -> tuple[int, int]:
    """Write what an element holds that holds no elements, and its end; -1 if that is not plain."""
    end = end_of_content(data, place, size, out, name, name_end)
    if end < 0:
        return -1, at
    if bits & RAW:
        at = put_raw(data, place, end, out, at, bits & SCRIPT)
    else:
        _, at = put_text(data, place, end, known, out, at, IN_ELEMENT)
    if at < 0:
        return -1, at
    return end_of_tag(data, end + 2 + name_end - name), put_end(out, at, name, name_end)


@inlined_kernel
def start_tag(  # noqa: PLR0913, PLR0917 - all that is read and written
    data: Bytes,
    place: int,
    size: int,
    known: ElementTables,
    out: Bytes,
    at: int,
    stack: Numbers,
    depth: int,
    where: int,
    kind: int,
    seen: Numbers,
) -> tuple[int, int, int, int]:
    """Write a tag and all that it starts and ends: up to where, where the next goes, the depth, and where we are."""
    begin = place + 1
    place, number = read_name(data, begin)
    bits = meant_by(number, known.elements)
    wanted = place_of(bits, where)
    if place < 0 or wanted < 0:
        return -1, at, depth, where
    at, depth = move_on(out, at, stack, depth, known, where, wanted)
    if wanted == _IN_BODY:
        to, unsaid = beginning(bits, stack, depth, kind == _STRICT)
        if to < 0:
            return -1, at, depth, where
        at, depth = close(out, at, stack, depth, to), to
        last = _ROW if bits & CELL else _SECTION
        for row in range(last + 1 - unsaid, last + 1):
            at, depth = begin_unsaid(out, at, stack, depth, known, row), depth + 1
    out[at] = LESS
    name = at = at + 1
    for letter in range(begin, place):
        out[at] = small(int(data[letter]))
        at += 1
    name_end = at
    place, at = read_attributes(data, place, size, known, out, at, seen)
    if place < 0:
        return -1, at, depth, where
    out[at] = MORE
    at += 1
    if bits & ON_NEW_LINE:  # what it holds starts on the next line
        place += data[place] == RETURN
        place += data[place] == NEWLINE
    if bits & (RAW | TEXT_ONLY):
        place, at = put_content(data, place, size, known, out, at, bits, name, name_end)
    elif not bits & VOID:
        stack[depth, BITS], stack[depth, NAME] = bits, number
        stack[depth, BEGIN], stack[depth, END] = name, name_end
        depth += 1
    return place, at, depth, wanted + 1 if bits & (HTML | HEAD | BODY) else wanted


@inlined_kernel
def tidy(data: Bytes, size: int, known: ElementTables, out: Bytes, stack: Numbers, seen: Numbers) -> int:  # noqa: PLR0913, PLR0917
    """Write a page as parsers do; how long it is, or -1 if a parser has to read it. O(length times depth).

    ``data`` has some bytes of 0 behind the page; ``stack`` and ``seen`` are room to work in.
    """
    # Numbers as they come, not known ones: or kernels would be compiled for these, and once more for all others.
    place = at = depth = int(np.int64(0))
    where, kind = int(np.int64(_BEFORE)), int(np.int64(_UNSAID))
    while 0 <= place < size:
        if depth + _AT_ONCE > DEEPEST:
            return -1
        after = data[place + 1]
        if data[place] != LESS or not is_markup(data, place):
            place, at, depth, where = text(data, place, size, known, out, at, stack, depth, where)
        elif after == SLASH:
            if not is_letter(data[place + 2]):
                return -1
            place, at, depth, where = end_tag(data, place, known, out, at, stack, depth, where)
        elif is_letter(after):
            place, at, depth, where = start_tag(data, place, size, known, out, at, stack, depth, where, kind, seen)
        else:
            place, at, kind = declaration(data, place, size, known, out, at, where, kind)
    return close(out, at, stack, depth, 0) if place >= 0 and where >= _IN_BODY else -1


_LARGEST = 1 << 20
"""Bytes of a page for which room is kept; larger ones are rare, and a parser reads them."""
_COMMON = 1 << 16
_PADDED = bytes(32)
"""Behind a page, so that nobody has to look whether it ends here."""


class _WellformedBuffers:
    """Arrays that the kernels write to, for pages of at most N bytes. What is not written to takes no memory."""

    def __init__(self, size: int) -> None:
        self.size = size
        self.out = np.empty(GROWTH * size + MARGIN, np.uint8)
        self.stack, self.seen = np.empty((DEEPEST, 4), np.int64), np.empty((MOST_ATTRIBUTES, 2), np.int64)


_buffers: list[_WellformedBuffers] = []
"""Those that nobody uses: as many as there are threads that read pages."""


def repaired_html(html: str, padding: int = 0) -> bytes | None:
    """The page as a parser would write it, but for what nobody reads; ``None`` if one has to read it. O(length).

    It is written in UTF-8, and has N bytes of 0 behind it.

    >>> repaired_html("<!DOCTYPE html><ul><li>One<li>Two &copy;</ul>").decode()
    '<!DOCTYPE html><html><head></head><body><ul><li>One</li><li>Two ©</li></ul></body></html>'
    >>> print(repaired_html("<b>One<p>two</b>"))
    None
    """
    try:
        written = html.encode()
    except UnicodeEncodeError:  # halves of characters
        return None
    if len(written) > _LARGEST:
        return None
    room = None
    with suppress(IndexError):
        room = _buffers.pop()
    if room is None or room.size < len(written):
        room = _WellformedBuffers(max(2 * len(written), _COMMON))
    data, out = np.frombuffer(written + _PADDED, np.uint8), room.out
    size = tidy(data, len(written), KNOWN, out, room.stack, room.seen)
    page = out[:size].tobytes() + bytes(padding) if size >= 0 else None
    _buffers.append(room)
    return page
