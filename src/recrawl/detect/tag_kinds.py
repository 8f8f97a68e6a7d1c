"""What tags are to the kernels of ``tag_scan.py`` and to those who go on with what they note."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import numpy.typing as npt

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
ROOM_FOR_NAMES = LONGEST_NAMES + 2 * MOST_NAMES
"""Numbers: letters, and where names begin and end."""


class Tables(NamedTuple):
    """What the kernels look up; words are rows of letters that end with 0."""

    kinds: Numbers
    """Kinds of elements by the number of their name, in slots with open addressing."""
    attributes: Bytes
    noise: Bytes
    """Classes, ids and roles of elements that are noise."""
    words: Bytes
    crc: Numbers
    """CRC-32 of each byte."""
