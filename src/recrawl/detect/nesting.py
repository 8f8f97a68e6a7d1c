"""Pages nested so deep that reading them is a trap.

A parser asks at every block element whether a paragraph is open above it, which takes as long as the page is deep. A
page of a few megabytes with nothing but ``<div>`` would keep it busy for hours. Browsers give up at 512 levels.
"""

from __future__ import annotations

import re

import numpy as np

DEEPEST = 20_000
"""Levels that are still read, in half a second."""
_NESTING = re.compile(
    r"<(/?)(?:address|article|aside|blockquote|button|center|details|dialog|dir|div|dl|fieldset|figure|footer|form|header|"
    r"hgroup|listing|main|menu|nav|ol|pre|search|section|summary|table|ul)\b",
    re.IGNORECASE,
)
_SHORTEST = len("<dl>")


def is_too_deep(html: str) -> bool:
    """Whether a page has more than :data:`DEEPEST` block elements open at some place. O(length).

    >>> is_too_deep("<div>" * 30_000), is_too_deep("<div></div>" * 30_000)
    (True, False)
    """
    if len(html) <= DEEPEST * _SHORTEST:
        return False
    steps = np.array([-1 if end else 1 for end in _NESTING.findall(html)], np.int64)
    if len(steps) <= DEEPEST:
        return False
    depth = np.cumsum(steps)
    # Ends without a beginning close nothing.
    return bool((depth - np.minimum(np.minimum.accumulate(depth), 0)).max() > DEEPEST)
