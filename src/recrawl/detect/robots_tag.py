"""What a server asks of robots in its answer: ``X-Robots-Tag``, by the same words as ``meta robots``."""

from __future__ import annotations

import re

from recrawl.model import Capture

_FIELD = re.compile(rb"^x-robots-tag[ \t]*:([^\r\n]*)", re.IGNORECASE | re.MULTILINE)
_SCOPE = re.compile(r"\s*([a-z][a-z0-9_-]*)\s*:(.*)", re.DOTALL)
_WITH_VALUE = frozenset({"max-image-preview", "max-snippet", "max-video-preview", "unavailable_after"})
"""Words that take a value behind a colon, and so are no names of robots."""
NO_FOLLOWING = frozenset({"nofollow", "none"})


def words(directives: str) -> frozenset[str]:
    """The words of a list of directives, lower-case.

    >>> sorted(words("NoIndex, nofollow"))
    ['nofollow', 'noindex']
    """
    return frozenset(directives.lower().replace(",", " ").split())


def forbids_following(capture: Capture, agent: str) -> bool:
    r"""Whether the head of an answer asks us, or all robots, not to follow the links of the page.

    A field that begins with the name of a robot is for that one only.

    >>> head = b"HTTP/1.1 200 OK\r\nX-Robots-Tag: otherbot: nofollow\r\nX-Robots-Tag: recrawl: none\r\n\r\n"
    >>> forbids_following(Capture("http://x/", 0.0, 200, head), "recrawl")
    True
    >>> forbids_following(Capture("http://x/", 0.0, 200, head), "anybot")
    False
    """
    if b"x-robots-tag" not in capture.raw_head.lower():  # nearly all
        return False
    for field in _FIELD.findall(capture.raw_head):
        directives = field.decode("latin-1").lower()
        scope = _SCOPE.fullmatch(directives)
        if scope and scope[1] not in _WITH_VALUE:
            if scope[1] != agent:
                continue
            directives = scope[2]
        if not NO_FOLLOWING.isdisjoint(words(directives)):
            return True
    return False
