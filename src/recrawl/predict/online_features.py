"""What is known of a page before it is fetched, as the thesis feeds it to its classifiers (SHARC 6.3)."""

from __future__ import annotations

from typing import NamedTuple

import ada_url


class OnlineFeatures(NamedTuple):
    """The URL, taken apart; and the media type, which the head of an answer tells."""

    domain: str
    mime: str
    depth: int
    """Slashes in the path."""
    length: int
    """Characters of the URL."""
    segment1: str
    """The first three parts of the path; empty where there are fewer."""
    segment2: str
    segment3: str
    has_tilde: bool
    has_underline: bool
    has_question: bool
    has_semicolon: bool
    has_colon: bool
    has_comma: bool
    has_percent: bool


def online_features(url: str, mime: str) -> OnlineFeatures:
    """The features of a URL as it is written. Signs are looked up behind ``scheme://`` (reading 003.39).

    >>> found = online_features("http://example.org/~me/a_b.php?y=1", "text/html")
    >>> found.depth, found.segment1, found.segment3, found.has_tilde, found.has_colon
    (2, '~me', '', True, False)
    """
    parts = ada_url.URL(url)
    path = str(parts.pathname)
    rest = url.partition("://")[2]
    first, second, third, *_ = [*(part for part in path.split("/") if part), "", "", ""]
    signs = (sign in rest for sign in "~_?;:,%")
    return OnlineFeatures(str(parts.hostname), mime, path.count("/"), len(url), first, second, third, *signs)
