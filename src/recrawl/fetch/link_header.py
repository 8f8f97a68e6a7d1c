"""Links in headers and in maps: the way Memento ties originals, mementos and maps together."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass

_LINK = re.compile(r"<([^<>\s]*)>([^<>]*)")
_PARAMETER = re.compile(r';\s*([\w*!.-]+)\s*=\s*(?:"([^"]*)"|([^",;\s]+))')


@dataclass(frozen=True, slots=True)
class Link:
    """A link of a Link header or of a map in link-format."""

    uri: str
    parameters: Mapping[str, str]

    @property
    def relations(self) -> frozenset[str]:
        """What the target is to the page."""
        return frozenset(self.parameters.get("rel", "").lower().split())


def links(text: str) -> Iterator[Link]:
    """The links of a Link header or of a map in link-format (RFC 8288, RFC 6690). O(n).

    >>> [(link.uri, sorted(link.relations)) for link in links('<http://a/,b>; rel="first memento", <c>; rel=self')]
    [('http://a/,b', ['first', 'memento']), ('c', ['self'])]
    """
    for uri, rest in _LINK.findall(text):
        yield Link(uri, {name.lower(): quoted or bare for name, quoted, bare in _PARAMETER.findall(rest)})
