"""Pages made to keep a parser busy, told before they are parsed.

Nothing stops a parser once it runs, and three kinds of pages cost it more than their length:

    deep        at every block element it asks what is open above it, which takes as long as the page is deep; a few
                megabytes of ``<span>`` before as many of ``<div>`` take hours. Browsers give up at 512 levels
    formatted   ``<font size=1><p><font size=2><p>...``: in each paragraph it opens anew whatever was not closed
                before, each with a node of its own; fifty kilobytes make millions
    attributes  it compares each attribute of an element with all that it has

Such pages are judged by their bytes.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable
from itertools import product

import numpy as np

DEEPEST = 20_000
"""Levels that are still read, in half a second."""
MOST_NODES = 1_000_000
"""Formatting elements that a parser may have to open anew; some 500 MB."""
MOST_ATTRIBUTES = 5_000
_FEW, _SOME = 1_000, 10_000
"""Tags below which a page cannot be formatted, or nested, to harm: even if each were nested in all before it."""
_LONG_TAG = 20_000
"""Characters between two ends of tags from which on a tag may have many attributes."""
_ENDS_BY_ITSELF = re.compile(
    r"a|area|base|br|col|colgroup|dd|dt|embed|hr|img|input|li|link|meta|nobr|optgroup|option|p|param|rp|rt|source|"
    r"tbody|td|tfoot|th|thead|tr|track|wbr"
)
"""Elements that end where the next one begins, or at once: their beginnings are no levels."""
_TAG = re.compile(r"<(/?)([a-z][a-z0-9-]*)", re.IGNORECASE)
_NAMES = "b|big|code|em|font|i|s|small|strike|strong|tt|u"
_FORMATTING = re.compile(rf"<(/?)({_NAMES})(?=[\s/>])", re.IGNORECASE)
_WHOLE_FORMATTING = re.compile(rf"<(/?)({_NAMES})((?=[\s/>])[^>]*)>", re.IGNORECASE)
_KEPT_OF_ONE_KIND = 3
"""Of formatting elements that are alike, a parser keeps the last so many open."""
_MAY_FORMAT = np.zeros(1 << 16, np.bool_)
"""By the first two characters behind ``<``, whether a formatting element may begin."""
for _name in _NAMES.split("|"):
    _seconds = "\t\n\f\r />" if len(_name) == 1 else _name[1] + _name[1].upper()
    for _first, _second in product(_name[0] + _name[0].upper(), _seconds):
        _MAY_FORMAT[ord(_first) << 8 | ord(_second)] = True
_QUOTED = re.compile(r"\"[^\"]*\"|'[^']*'")


def is_too_costly(html: str) -> bool:
    """Whether parsing a page could take much more than its length says. O(length).

    >>> is_too_costly("<div>" * 30_000), is_too_costly("<div></div>" * 30_000)
    (True, False)
    """
    tags = html.count("<")
    if tags > _FEW and _is_formatted_to_harm(html, tags):
        return True
    return (tags > _SOME and _is_too_deep(html)) or (len(html) > _LONG_TAG and _has_many_attributes(html))


def _is_too_deep(html: str) -> bool:
    """Whether more elements are open at some place than can be read."""
    if html.count("<") - html.count("</") <= DEEPEST:
        return False  # not so many begin
    levels = ((end, name.lower()) for end, name in _TAG.findall(html))
    return _most_open((end, name) for end, name in levels if not _ENDS_BY_ITSELF.fullmatch(name)) > DEEPEST


def _most_open(tags: Iterable[tuple[str, str]]) -> int:
    """How many elements are open at once, at most. An end closes nothing but an element of its name."""
    opened: Counter[str] = Counter()
    depth = most = 0
    for end, name in tags:
        if not end:
            opened[name] += 1
            depth += 1
            most = max(most, depth)
        elif opened[name]:
            opened[name] -= 1
            depth -= 1
    return most


def _is_formatted_to_harm(html: str, tags: int) -> bool:
    """Whether formatting elements that stay open, at all tags together, are too many."""
    if _most_formatting(html) * tags <= MOST_NODES:
        return False
    found = _FORMATTING.findall(html)
    if len(found) * tags <= MOST_NODES or _most_open(found) * tags <= MOST_NODES:
        return False
    open_tags: dict[str, list[str]] = {}
    alike: Counter[str] = Counter()
    kept = nodes = done = 0
    for tag in _WHOLE_FORMATTING.finditer(html):
        nodes += kept * html.count("<", done, tag.start())
        done = tag.start()
        if nodes > MOST_NODES:
            return True
        name = tag[2].lower()
        if not tag[1]:
            written = name + tag[3]
            open_tags.setdefault(name, []).append(written)
            alike[written] += 1
            kept += alike[written] <= _KEPT_OF_ONE_KIND
        elif open_tags.get(name):
            written = open_tags[name].pop()
            kept -= alike[written] <= _KEPT_OF_ONE_KIND
            alike[written] -= 1
    return nodes + kept * html.count("<", done) > MOST_NODES


def _most_formatting(html: str) -> int:
    """So many formatting elements begin in a page, or fewer: as far as can be told without patterns, which are slow."""
    letters = np.frombuffer(html.encode("utf-8", "surrogatepass") + b"  ", np.uint8)
    begins = np.flatnonzero(letters == ord("<"))
    return int(_MAY_FORMAT[letters[begins + 1].astype(np.intp) << 8 | letters[begins + 2]].sum())


def _has_many_attributes(html: str) -> bool:
    """Whether some tag has more attributes than can be read: its words, those in quotes left out."""
    if not _has_long_tag(html):
        return False
    for piece in html.split(">"):
        if len(piece) > _LONG_TAG:
            _, begins, tag = piece.rpartition("<")
            if begins and tag[:1].isalpha() and len(_QUOTED.sub(" ", tag).split()) > MOST_ATTRIBUTES:
                return True
    return False


def _has_long_tag(html: str) -> bool:
    """Whether two ends of tags lie far apart, or the last one and the end of the page. O(length), mostly much less."""
    end = 0
    while end + _LONG_TAG < len(html):
        end = html.rfind(">", end, end + _LONG_TAG + 1) + 1
        if not end:
            return True
    return False
