"""Verdicts from indexes, by the digests of consecutive captures. Pure and columnar.

An index (CDX, TimeMap, crawl log) has no bytes, only the time of each capture, its outcome, and a digest.

Rules of this file:
 1. The first capture of a page with an outcome opens its history: no verdict.
 2. A capture is compared with the last one before it whose version is known. The version is the digest, or that there
    is no such page. The same version is unchanged; another one is a change of content, or of existence. Digests of
    different algorithms cannot be compared: no verdict.
 3. A capture that failed, or has no digest, has no verdict; a revisit record without a digest is unchanged, if there is
    an earlier version.

The module also separates resources from pages. A browser loads style sheets, scripts, images, fonts, sound and video to
show a page; crawlers read robots.txt and sitemaps. Archives have captures of all of these. They are needed for replay,
but have no revisit schedule of their own: a crawler fetches them with the pages that embed them.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from functools import lru_cache
from typing import NamedTuple

import numpy as np

from recrawl.model import ANSWERED, AnyArray, BoolArray, ByteArray, ChangeKind, FloatArray, IntArray, Outcome, Verdict
from recrawl.model.arrays import starts_of_runs

_BY_CLASS = {2: Outcome.FETCHED, 3: Outcome.REDIRECTED, 4: Outcome.REJECTED, 5: Outcome.SERVER_ERROR}
_BY_STATUS = {304: Outcome.NOT_MODIFIED, 404: Outcome.GONE, 410: Outcome.GONE, 429: Outcome.SERVER_ERROR}
_REFUSED = (-9998,)
_SHA1_BYTES = 20


class ListedVerdicts(NamedTuple):
    """One entry per capture."""

    verdict: ByteArray
    kinds: AnyArray


def outcomes_of(status: IntArray, *, no_status: Outcome = Outcome.FETCHED) -> ByteArray:
    """How captures ended, from their status: HTTP's, or Heritrix's negative ones. O(n).

    ``no_status`` is what a missing status (0) means: for a TimeMap, that there was a capture.

    >>> outcomes_of(np.array([200, 304, 404, -2, -9998])).tolist()
    [0, 1, 3, 7, 4]
    """
    outcome = np.full(len(status), Outcome.UNREACHABLE, np.uint8)
    for first_digit, meaning in _BY_CLASS.items():
        outcome[status // 100 == first_digit] = meaning
    for code, meaning in _BY_STATUS.items():
        outcome[status == code] = meaning
    outcome[status == 0] = no_status
    outcome[np.isin(status, _REFUSED)] = Outcome.REFUSED
    return outcome


def versions_of(digest: Sequence[bytes]) -> IntArray:
    """A number for each digest, the same for the same digest; 0 for an empty one. O(n) Python.

    >>> versions_of([b"x", b"", b"y", b"x"]).tolist()
    [1, 0, 2, 1]
    """
    numbers: dict[bytes, int] = {b"": 0}
    return np.array([numbers.setdefault(value, len(numbers)) for value in digest], dtype=np.int64)


def methods_of(digest: Sequence[bytes]) -> IntArray:
    """A number for the algorithm of each digest: digests of different algorithms cannot be compared.

    SHA-1 is 20 bytes; others are text that starts with the name of the algorithm and a colon. What has no name is
    of one kind with what is as long. O(n) Python.

    >>> methods_of([bytes(20), b"md5:00", b"md5:11", bytes(20), b"", b"v1", b"v2"]).tolist()
    [1, 2, 2, 1, 0, 3, 3]
    """
    numbers: dict[bytes | int, int] = {0: 0}
    if all(len(value) in (0, _SHA1_BYTES) for value in digest):
        return np.array([len(value) // _SHA1_BYTES for value in digest], np.int64)
    return np.array([numbers.setdefault(_method(value), len(numbers)) for value in digest], np.int64)


def _method(digest: bytes) -> bytes | int:
    name, colon, _ = digest.partition(b":")
    return name if colon and len(digest) != _SHA1_BYTES else len(digest)


def classify_listed(
    page: IntArray, outcome: ByteArray, repeats: BoolArray, version: IntArray, method: IntArray | None = None
) -> ListedVerdicts:
    """The verdict of each capture. Rows are sorted by page, then time. O(n).

    ``repeats`` marks revisit records; ``version`` has equal numbers for equal digests (see :func:`versions_of`),
    0 where the source gives none; ``method`` has equal numbers for digests of one algorithm (see :func:`methods_of`),
    ``None`` if all are.

    >>> page, ok = np.array([1, 1, 1, 2]), np.zeros(4, np.uint8)
    >>> classify_listed(page, ok, np.zeros(4, bool), np.array([7, 7, 8, 7])).verdict.tolist()
    [0, 1, 2, 0]
    >>> classify_listed(page, ok, np.zeros(4, bool), np.array([7, 7, 8, 7]), np.array([1, 1, 2, 1])).verdict.tolist()
    [0, 1, 0, 0]
    """
    n = len(page)
    verdict = np.full(n, Verdict.UNKNOWN, np.uint8)
    kinds = np.full(n, ChangeKind.NONE, np.uint16)
    answered = outcome <= ANSWERED
    gone = outcome == Outcome.GONE
    known = np.flatnonzero(answered & (gone | (version != 0)))
    if len(known):
        opens = starts_of_runs(page[known])
        before, after = known[:-1], known[1:]
        same = (gone[before] == gone[after]) & (gone[after] | (version[before] == version[after]))
        judged = after[~opens[1:]]
        equal = same[~opens[1:]]
        verdict[judged] = np.where(equal, Verdict.UNCHANGED, Verdict.CHANGED)
        flipped = (gone[before] != gone[after])[~opens[1:]]
        what = np.where(flipped, ChangeKind.EXISTENCE, ChangeKind.CONTENT)
        kinds[judged] = np.where(equal, ChangeKind.NONE, what)
        if method is not None:
            blind = ~gone[before] & ~gone[after] & (method[before] != method[after])
            lost = after[blind & ~opens[1:]]
            verdict[lost], kinds[lost] = Verdict.UNKNOWN, ChangeKind.NONE
    silent = answered & repeats & ~gone & (version == 0)
    verdict[silent & _has_answer_before(page, answered)] = Verdict.UNCHANGED
    return ListedVerdicts(verdict, kinds)


def merge_downloads(page: IntArray, time: FloatArray, outcome: ByteArray, within: float) -> BoolArray:
    """Which captures to keep where a crawl downloaded a page several times (SHARC 7.2).

    Captures of a page within ``within`` seconds of the first of them are one download; its best outcome is kept, and of
    those the last. However often a page was fetched, at most one visit is left in any ``within`` seconds. Rows are
    sorted by page, then time. O(n), and O(log n) more for each download that follows another within ``within`` seconds.

    >>> time, ok = np.array([0.0, 5.0, 99.0]), np.array([2, 0, 0], np.uint8)
    >>> merge_downloads(np.array([1, 1, 1]), time, ok, within=10.0).tolist()
    [False, True, True]
    """
    n = len(page)
    if not n or within <= 0:
        return np.ones(n, np.bool_)
    starts = starts_of_runs(page)
    starts[1:] |= np.diff(time) > within
    _cut_chains(starts, time, within)
    group = np.cumsum(starts) - 1
    best = np.lexsort((-np.arange(n), outcome, group))
    keep = np.zeros(n, np.bool_)
    keep[best[starts_of_runs(group[best])]] = True
    return keep


def _cut_chains(starts: BoolArray, time: FloatArray, within: float) -> None:
    """Start a download again, in ``starts``, wherever the one before started more than ``within`` seconds ago."""
    heads = np.flatnonzero(starts)
    ends = np.append(heads[1:], len(time))
    long = time[ends - 1] - time[heads] > within
    for head, end in zip(heads[long].tolist(), ends[long].tolist(), strict=True):
        first = head
        while (first := first + int(np.searchsorted(time[first:end], time[first] + within, side="right"))) < end:
            starts[first] = True


def _has_answer_before(page: IntArray, answered: BoolArray) -> BoolArray:
    """True where an earlier capture of the same page was answered."""
    rows = np.arange(len(page))
    last = np.maximum.accumulate(np.where(answered, rows, -1))
    before = np.append(-1, last[:-1])[: len(page)]
    first = np.maximum.accumulate(np.where(starts_of_runs(page), rows, 0))
    return before >= first


_SITEMAP = re.compile(r"sitemap.*\.xml(\.gz)?")
_KINDS = ("image/", "font/", "audio/", "video/", "application/font-", "application/x-font-")
_TYPES = frozenset(
    {
        "text/css",
        "text/javascript",
        "text/ecmascript",
        "application/javascript",
        "application/x-javascript",
        "application/ecmascript",
        "application/vnd.ms-fontobject",
        "application/x-shockwave-flash",
        "application/manifest+json",
        "application/wasm",
    }
)
_UNTOLD = frozenset({"", "-", "unk", "application/octet-stream", "application/x-unknown-content-type"})
"""Media types that do not identify the content."""
_ENDING = re.compile(
    r"css|m?js|map|png|jpe|jpe?g|gif|webp|avif|svgz?|ico|bmp|tiff?|woff2?|ttf|otf|eot|mp3|m4[av]|og[agv]|wav|flac|mp4|webm|avi|"
    r"mov|mpe?g|flv|swf"
)
"""Endings of names of what pages embed."""


def is_for_crawlers(url: str) -> bool:
    """Whether a URL is by its name that of a robots.txt or a sitemap: nobody reads these but crawlers.

    >>> [is_for_crawlers(f"http://a.org/{name}") for name in ("robots.txt", "x/Sitemap-1.xml.gz", "x/robots.txt")]
    [True, True, False]
    """
    if "robots.txt" not in (small := url.lower()) and "sitemap" not in small:  # most URLs
        return False
    path = _path(url)
    return path == "/robots.txt" or _SITEMAP.fullmatch(path.rpartition("/")[2]) is not None


@lru_cache(maxsize=1 << 10)
def is_resource_type(mime: str) -> bool | None:
    """Whether a media type is that of a page requisite; ``None`` if it does not identify the content.

    >>> is_resource_type("image/png"), is_resource_type("text/html; charset=utf-8"), is_resource_type("unk")
    (True, False, None)
    """
    name = mime.partition(";")[0].strip().lower()
    return None if name in _UNTOLD else name.startswith(_KINDS) or name in _TYPES


def is_resource(url: str, types: Iterable[str]) -> bool:
    """Whether all captures of a URL are of a resource; ``types`` are the media types of those that succeeded.

    One capture with the type of a page makes it a page. Where no type identifies the content, the path extension does.

    >>> is_resource("http://a.org/x", ["image/png"]), is_resource("http://a.org/x.css", ["text/html"])
    (True, False)
    >>> is_resource("http://a.org/x.css", []), is_resource("http://a.org/robots.txt", ["text/plain"])
    (True, True)
    """
    if is_for_crawlers(url):
        return True
    told = {kind for mime in set(types) if (kind := is_resource_type(mime)) is not None}
    if told:
        return told == {True}
    name = _path(url).rpartition("/")[2]
    _, dot, ending = name.rpartition(".")
    return bool(dot) and _ENDING.fullmatch(ending) is not None


def _path(url: str) -> str:
    """The path of an absolute URL in small letters, without query and fragment."""
    _, slash, path = url.partition("://")[2].partition("#")[0].partition("?")[0].partition("/")
    return f"{slash}{path}".lower()
