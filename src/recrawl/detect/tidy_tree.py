"""Open elements of pages that need no parser: what begins and what ends with what, in machine code.

Elements may end without a word: items of lists, paragraphs, cells. Where more than that would have to end, or begin,
the page is left to a parser. Rules are those of the HTML standard, 13.2.6. Whoever changes this file has to remove the
compiled code of ``tidy_scan.py``, which these kernels become part of. To be imported late: numba is loaded with it.
"""

from __future__ import annotations

from recrawl.detect.tag_kinds import LESS, MORE, Bytes, Numbers
from recrawl.detect.tidy_kinds import (
    ANCHOR,
    BODY,
    BUTTON,
    CAPTION,
    CELL,
    CLOSES_P,
    COLUMN,
    COLUMNS,
    ENDS_OTHERS,
    FORM,
    GROUP,
    HEAD,
    HEADING,
    HTML,
    IN_HEAD,
    ITEM,
    MAY_END,
    ODD,
    OPTION,
    PASSED,
    RAW,
    ROW,
    SCRIPT,
    SECTION,
    SELECT,
    SPECIAL,
    TABLE,
    TERM,
    VOID,
    WALL,
    Known,
    P,
)
from recrawl.detect.tidy_text import put_end
from recrawl.model.compiled import bare_code

BITS, NAME, BEGIN, END = range(4)
"""Columns of the stack: what is known of an element, the number of its name, where that was written."""
IN_TABLE = TABLE | SECTION | ROW | COLUMNS
"""Where no text is, and only some elements are."""
_OF_TABLES = SECTION | ROW | CELL | CAPTION | COLUMNS | COLUMN


@bare_code
def close(out: Bytes, at: int, stack: Numbers, depth: int, to: int) -> int:
    """Write the ends of all elements beyond a depth."""
    while depth > to:
        depth -= 1
        at = put_end(out, at, stack[depth, BEGIN], stack[depth, END])
    return at


@bare_code
def begin_unsaid(  # noqa: PLR0913, PLR0917 - all that is read and written
    out: Bytes, at: int, stack: Numbers, depth: int, known: Known, row: int
) -> int:
    """Write the beginning of an element that nobody wrote, and note it."""
    out[at] = LESS
    begin = at = at + 1
    for letter in range(known.implied[row, 2]):
        out[at] = known.letters[row, letter]
        at += 1
    out[at] = MORE
    stack[depth, BITS], stack[depth, NAME] = known.implied[row, 1], known.implied[row, 0]
    stack[depth, BEGIN], stack[depth, END] = begin, at
    return at + 1


@bare_code
def nearest(stack: Numbers, depth: int, wanted: int) -> int:
    """The innermost open element of which something is known; -1 if there is none."""
    row = depth - 1
    while row >= 0 and not stack[row, BITS] & wanted:
        row -= 1
    return row


@bare_code
def may_all_end(stack: Numbers, begin: int, depth: int) -> bool:
    """Whether all elements from one on end without a word."""
    for row in range(begin, depth):  # noqa: SIM110 - a generator is nothing for a kernel
        if not stack[row, BITS] & MAY_END:
            return False
    return True


@bare_code
def without_p(stack: Numbers, depth: int) -> int:
    """The depth once a paragraph that is open ended; -1 if that is not plain."""
    row = nearest(stack, depth, P | WALL | BUTTON)
    if row < 0 or not stack[row, BITS] & P:
        return depth
    return row if may_all_end(stack, row + 1, depth) else -1


@bare_code
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


@bare_code
def in_table(bits: int, stack: Numbers, depth: int, row: int) -> tuple[int, int]:
    """The depth at which a part of a table begins, and how many elements begin before it unsaid; -1 if not plain."""
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


@bare_code
def in_select(bits: int, stack: Numbers, depth: int) -> int:
    """The depth at which something begins in a list of options; -1 if that is not plain."""
    if not bits & (OPTION | GROUP):
        return depth if bits & SCRIPT else -1
    if stack[depth - 1, BITS] & OPTION:
        depth -= 1
    if stack[depth - 1, BITS] & GROUP and bits & GROUP:
        depth -= 1
    return depth


@bare_code
def beginning(bits: int, stack: Numbers, depth: int, strict: bool) -> tuple[int, int]:  # noqa: C901, PLR0911 - cases
    """The depth at which an element begins, and how many others do before it unsaid; -1 if that is not plain."""
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


@bare_code
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


@bare_code
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


@bare_code
def is_lone_p(stack: Numbers, depth: int) -> bool:
    """Whether the end of a paragraph is that of none, so that it is one: an empty one."""
    row, around = nearest(stack, depth, P | WALL | BUTTON), nearest(stack, depth, SELECT | IN_TABLE | CELL | CAPTION)
    if (around >= 0 and stack[around, BITS] & SELECT) or stack[depth - 1, BITS] & IN_TABLE:
        return False
    return row < 0 or not stack[row, BITS] & P
