"""Parses response headers: Retry-After (RFC 9110, 10.2.3; conventions R4) and Link (RFC 8288), which Memento uses."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from recrawl.model import Capture
from recrawl.time import DAY, from_http_date

_LINK = re.compile(r"<([^<>\s]*)>([^<>]*)")
_PARAMETER = re.compile(r';\s*([\w*!.-]+)\s*=\s*(?:"([^"]*)"|([^",;\s]+))')


@dataclass(frozen=True, slots=True)
class HeaderLink:
    """A link of a Link header or of a map in link-format."""

    uri: str
    parameters: Mapping[str, str]

    @property
    def relations(self) -> frozenset[str]:
        """The relations of the target to the page."""
        return frozenset(self.parameters.get("rel", "").lower().split())


def links(text: str) -> Iterator[HeaderLink]:
    """The links of a Link header or of a map in link-format (RFC 8288, RFC 6690). O(n).

    >>> [(link.uri, sorted(link.relations)) for link in links('<http://a/,b>; rel="first memento", <c>; rel=self')]
    [('http://a/,b', ['first', 'memento']), ('c', ['self'])]
    """
    for uri, rest in _LINK.findall(text):
        yield HeaderLink(uri, {name.lower(): quoted or bare for name, quoted, bare in _PARAMETER.findall(rest)})


_ASKING = (429, 503)
_SECONDS = re.compile(r"[0-9]{1,12}")
LONGEST = 30 * DAY
"""Maximum seconds granted at once; a host that wants more can ask again."""


def retry_after(capture: Capture) -> float | None:
    r"""Seconds that a 429 or 503 asks us to wait, given as seconds or as a date; ``None`` if it does not ask.

    >>> retry_after(Capture("http://x/", 0.0, 503, b"HTTP/1.1 503 Busy\r\nRetry-After: 120\r\n\r\n"))
    120.0
    """
    text = capture.header("retry-after").strip() if capture.status in _ASKING else ""
    if not text:
        return None
    if _SECONDS.fullmatch(text):
        wait = float(text)
    else:
        until = from_http_date(text)
        if until is None:
            return None
        wait = until - capture.time
    return min(max(wait, 0.0), LONGEST)
