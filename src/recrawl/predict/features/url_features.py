"""What a URL alone says about its page: the features known before the first fetch.

From Barbosa et al. (paper 002, §3.2: directory level) and LBLA (paper 004, §4.2: depths, internal links), with
readings 002.6, 004.3 and 004.6. A URL may come without a scheme; ``http`` is then meant.

Names as numbers that are the same in every run: media types, top-level domains, parts of paths.

A name gets a bucket by a hash of its own, so a page found tomorrow needs no dictionary of what was found today, and a
model reads both alike. Different names may share a bucket; with 254 of them rarely two frequent ones do.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import NamedTuple

import ada_url
import numpy as np

from recrawl.errors import InputError
from recrawl.model import BoolArray, IntArray

BUCKETS = 254
"""As many as histogram-based trees take as categories, the unknown one aside."""


def bucket(name: str) -> int:
    """The bucket of a name, case ignored; −1 for the empty one.

    >>> bucket("text/html") == bucket("TEXT/HTML"), bucket("")
    (True, -1)
    """
    if not name:
        return -1
    return int.from_bytes(hashlib.blake2b(name.casefold().encode(), digest_size=8).digest()) % BUCKETS


def buckets(names: Sequence[str]) -> IntArray:
    """The bucket of each name. O(names), and one hash a distinct one."""
    known = {name: bucket(name) for name in set(names)}
    return np.fromiter((known[name] for name in names), np.int64, len(names))


_SCHEME = re.compile(r"^[a-z][a-z0-9+.-]*://", re.IGNORECASE)
_WWW = "www."


class UrlDepths(NamedTuple):
    """How deep a URL lies."""

    path: int
    """Segments of its path."""
    domain: int
    """Labels of its host name, ``www`` and the top level included."""


@dataclass(frozen=True, slots=True)
class UrlFeatures:
    """Static features of n URLs, as columns."""

    directory_level: IntArray
    path_depth: IntArray
    domain_depth: IntArray
    characters: IntArray
    """Length of the URL."""
    digits: IntArray
    """Digits in it: dates and numbers mark items, their absence marks lists."""
    arguments: IntArray
    """Arguments of its query."""
    is_directory: BoolArray
    """Whether its path ends in a slash."""

    def __len__(self) -> int:
        return len(self.characters)


def url_features(urls: Sequence[str]) -> UrlFeatures:
    """The features of each URL. O(characters), one URL at a time in Python.

    >>> found = url_features(["http://example.com/news/2026/08/", "example.com/a?x=1&y=2"])
    >>> found.directory_level.tolist(), found.digits.tolist(), found.arguments.tolist()
    ([4, 1], [6, 2], [0, 2])
    """
    parsed = [_parse(url) for url in urls]
    depths = [_depths(one) for one in parsed]
    return UrlFeatures(
        directory_level=_whole(_level(one) for one in parsed),
        path_depth=_whole(depth.path for depth in depths),
        domain_depth=_whole(depth.domain for depth in depths),
        characters=_whole(len(one.href) for one in parsed),
        digits=_whole(sum(map(str.isdigit, one.href)) for one in parsed),
        arguments=_whole(sum(map(bool, one.search[1:].split("&"))) for one in parsed),
        is_directory=_whole(one.pathname.endswith("/") for one in parsed) != 0,
    )


def directory_level(url: str) -> int:
    """Directories above and including the page's own, the root being 1; the file name does not count.

    >>> directory_level("www.yahoo.com"), directory_level("www.yahoo.com/mail/"), directory_level("http://a.b/c/d.html")
    (1, 2, 2)
    """
    return _level(_parse(url))


def url_depths(url: str) -> UrlDepths:
    """Depth in the path, every segment counted, and in the domain, every label counted.

    >>> url_depths("http://domain.com/en/news/article123456/"), url_depths("http://sub.domain.com/").domain
    (UrlDepths(path=3, domain=2), 3)
    """
    return _depths(_parse(url))


def is_internal(source: str, target: str) -> bool:
    """Whether a link stays on its site: the same scheme, and the same host but for a leading ``www.``.

    >>> is_internal("https://www.example.org/a", "https://example.org/b")
    True
    >>> is_internal("https://www.example.org/a", "http://www.example.org/b")
    False
    """
    one, other = _parse(source), _parse(target)
    return bool(one.protocol == other.protocol and one.host.removeprefix(_WWW) == other.host.removeprefix(_WWW))


def _whole(values: Iterable[int]) -> IntArray:
    return np.fromiter(values, dtype=np.int64)


def _parse(url: str) -> ada_url.URL:
    try:
        return ada_url.URL(url if _SCHEME.match(url) else f"http://{url}")
    except ValueError:
        raise InputError(f"{url!r} is not a URL.", "Give it as http://host/path or host/path.") from None


def _level(parsed: ada_url.URL) -> int:
    return 1 + sum(map(bool, parsed.pathname.split("/")[:-1]))


def _depths(parsed: ada_url.URL) -> UrlDepths:
    return UrlDepths(sum(map(bool, parsed.pathname.split("/"))), sum(map(bool, parsed.hostname.split("."))))
