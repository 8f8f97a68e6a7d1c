"""Verdicts from lists: what the digests of consecutive captures say about change. Pure and columnar.

An index (CDX, TimeMap, crawl log) gives no bytes, only when a page was captured, how that ended, and a digest.

Rules of this file:
 1. The first capture of a page that tells anything opens its history: no verdict.
 2. A capture is compared with the last one before it whose version is known. The version is the digest, or that there
    is no such page. The same version is unchanged; another one is a change of content, or of existence. Digests of
    different algorithms cannot be compared: no verdict.
 3. A capture that failed, or has no digest, says nothing; a record that calls itself a repetition but names no digest
    is unchanged, if there is anything it can repeat.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from recrawl.model import ANSWERED, AnyArray, BoolArray, ByteArray, ChangeKind, FloatArray, IntArray, Outcome, Verdict
from recrawl.model.arrays import starts_of_runs

_BY_CLASS = {2: Outcome.FETCHED, 3: Outcome.REDIRECTED, 4: Outcome.REJECTED, 5: Outcome.SERVER_ERROR}
_BY_STATUS = {304: Outcome.NOT_MODIFIED, 404: Outcome.GONE, 410: Outcome.GONE, 429: Outcome.SERVER_ERROR}
_REFUSED = (-9998,)
_SHA1_BYTES = 20


class ListedVerdicts(NamedTuple):
    """One entry a capture."""

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
    """A number for the algorithm of each digest: digests of different algorithms say nothing about each other.

    SHA-1 is 20 bytes; others are text that begins with the name of the algorithm and a colon. What has no name is
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


def judge_listed(
    page: IntArray, outcome: ByteArray, repeats: BoolArray, version: IntArray, method: IntArray | None = None
) -> ListedVerdicts:
    """What each capture says about change. Rows are sorted by page, then time. O(n).

    ``repeats`` marks revisit records; ``version`` has equal numbers for equal digests (see :func:`versions_of`),
    0 where the source gives none; ``method`` has equal numbers for digests of one algorithm (see :func:`methods_of`),
    ``None`` if all are.

    >>> page, ok = np.array([1, 1, 1, 2]), np.zeros(4, np.uint8)
    >>> judge_listed(page, ok, np.zeros(4, bool), np.array([7, 7, 8, 7])).verdict.tolist()
    [0, 1, 2, 0]
    >>> judge_listed(page, ok, np.zeros(4, bool), np.array([7, 7, 8, 7]), np.array([1, 1, 2, 1])).verdict.tolist()
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

    Captures of a page within ``within`` seconds of the first of them are one download; its best outcome is kept, and
    of those the last. However often a page was fetched, there is one visit left in so many seconds. Rows are sorted by
    page, then time. O(n), and O(log n) more for each download that follows another within so many seconds.

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
    """Begin a download anew, in ``starts``, wherever the one before began more than ``within`` seconds ago."""
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
