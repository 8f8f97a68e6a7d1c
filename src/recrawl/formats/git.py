"""A git repository of a website's sources as the change histories of its pages.

Each commit on the first-parent line that touches a source of a page is a change of the page, at the committer's
time: when it went live. This is how the public data sets of change histories were made (``formats.dataset`` reads
them); what is read here can be written in the same form. Contents are not looked at, so the columns about texts and
links are not there.

Rules:
 1. A page is a URL (``formats.git_pages``); several files may feed one page. It lives as long as one of them does.
 2. A page changes when the contents of its sources do. A file that moves and keeps its URL and its bytes is no event.
 3. A move to another URL is a deletion and an addition, each naming the other. In a restructuring (at least 10 moves,
    and more than a fifth of the pages alive) the page keeps its identity, and its URL as first seen.
 4. A commit is *bulk* if it touches at least 5 pages and more than a fifth of those alive before it.
 5. Clocks go wrong: the dates that form the longest non-decreasing run are kept, all others take the one before.
"""

from __future__ import annotations

from array import array
from bisect import bisect_right
from pathlib import Path

import numpy as np

from recrawl.formats.captures import Report
from recrawl.formats.changes import Change
from recrawl.formats.git_log import Commit, FileChange, read_commits
from recrawl.formats.git_pages import PathRule
from recrawl.formats.git_recording import BULK_SHARE, NOWHERE, Recording
from recrawl.model import IntArray

RESTRUCTURING_MOVES = 10
"""Fewer moves in one commit are no restructuring."""


def read_git(  # noqa: PLR0913 - a repository, and how to look at it
    folder: Path,
    rule: PathRule,
    *,
    site: str = "",
    branch: str = "HEAD",
    similarity: int = 60,
    report: Report | None = None,
) -> Recording:
    """Read the history of a repository. Memory grows by events and pages, not by the length of the log.

    ``report`` is told how many changes were to files that are no pages, and that there are no commits at all.

    Raises:
        InputError: see ``read_commits``.
    """
    replay, empty = _Replay(rule), True
    for commit in read_commits(folder, branch=branch, similarity=similarity):
        replay.take(commit)
        empty = False
    if report is not None and empty:
        report.skip("a repository without commits")
    if report is not None and replay.passed_over:
        report.skip("a change to a file that is no page", replay.passed_over)
    return replay.recording(site or folder.resolve().name)


def monotone(times: IntArray) -> IntArray:
    """Times that never go back: those on the longest non-decreasing run stay, the others take the one kept before.

    What precedes the first kept one takes that. O(n log n).

    >>> monotone(np.array([10, 11, 99, 12, 5, 13])).tolist()
    [10, 11, 11, 12, 12, 13]
    """
    ends: list[int] = []
    where: list[int] = []
    before = np.full(len(times), -1)
    for at, time in enumerate(times.tolist()):
        length = bisect_right(ends, time)
        before[at] = where[length - 1] if length else -1
        ends[length : length + 1] = [time]
        where[length : length + 1] = [at]
    kept = np.zeros(len(times), np.bool_)
    at = where[-1] if where else -1
    while at >= 0:
        kept[at] = True
        at = int(before[at])
    latest = np.maximum.accumulate(np.where(kept, np.arange(len(times)), -1))
    latest[latest < 0] = int(np.argmax(kept)) if len(times) else 0
    return times[latest]


class _Touch:
    """What one commit did to the sources of one page: the blobs it had and has no more, and those it has now."""

    __slots__ = ("came", "gone")

    def __init__(self) -> None:
        self.gone: list[bytes] = []
        self.came: list[bytes] = []


class _Replay:
    """The pages as they are after the commits taken so far."""

    def __init__(self, rule: PathRule) -> None:
        self.passed_over = 0
        """Changes to files that are no pages."""
        self._rule = rule
        self._url_of: dict[bytes, str] = {}
        self._page_of: dict[str, int] = {}
        self._urls: list[str] = []
        self._paths: list[bytes] = []
        self._sources: list[int] = []
        """How many files feed each page."""
        self._alive = 0
        self._moves: dict[int, int] = {}
        self._shas: list[str] = []
        self._times, self._authored, self._live = array("q"), array("q"), array("q")
        self._event_page, self._event_commit, self._event_kind = array("q"), array("q"), array("B")

    def take(self, commit: Commit) -> None:
        """Replay one commit. O(its files)."""
        named = [
            (one, self._url(one.old_path, one.old_blob), self._url(one.new_path, one.new_blob)) for one in commit.files
        ]
        self.passed_over += sum(1 for _, old, new in named if not old and not new)
        moved = [(old, new) for _, old, new in named if old and new and old != new]
        alive = self._alive
        if len(moved) >= RESTRUCTURING_MOVES and len(moved) > BULK_SHARE * alive:
            self._keep_identity(moved)
        kinds = self._apply(self._touches(named))
        if not kinds:
            return
        for old, new in moved:
            ends = self._page_of[old], self._page_of[new]
            if kinds.get(ends[0]) == Change.DEL and kinds.get(ends[1]) == Change.ADD:
                self._moves[ends[0]] = ends[1]
        for page, kind in kinds.items():
            self._event_page.append(page)
            self._event_commit.append(len(self._shas))
            self._event_kind.append(kind)
        self._shas.append(commit.sha)
        self._times.append(commit.committed)
        self._authored.append(commit.authored)
        self._live.append(alive)

    def recording(self, site: str) -> Recording:
        """Everything as columns."""
        page = np.array(self._event_page, np.int64)
        order = np.argsort(page, kind="stable")
        moved_from, moved_to = np.full(len(self._urls), NOWHERE), np.full(len(self._urls), NOWHERE)
        for old, new in self._moves.items():
            moved_to[old], moved_from[new] = new, old
        times = np.array(self._times, np.int64)
        return Recording(
            site,
            tuple(self._urls),
            tuple(self._paths),
            moved_from,
            moved_to,
            tuple(self._shas),
            times,
            monotone(times),
            np.array(self._authored, np.int64),
            np.array(self._live, np.int64),
            page[order],
            np.array(self._event_commit, np.int64)[order],
            np.array(self._event_kind, np.uint8)[order],
        )

    def _url(self, path: bytes, blob: bytes) -> str | None:
        if not blob:
            return None
        known = self._url_of.get(path)
        if known is None:
            known = self._rule.url(path)
            if known is not None:  # files that are no pages are many, and seldom touched twice
                self._url_of[path] = known
        return known

    def _touches(self, named: list[tuple[FileChange, str | None, str | None]]) -> dict[int, _Touch]:
        touches: dict[int, _Touch] = {}
        for one, old, new in named:
            if old:
                touches.setdefault(self._page(old), _Touch()).gone.append(one.old_blob)
            if new:
                page = self._page(new)
                touches.setdefault(page, _Touch()).came.append(one.new_blob)
                self._paths[page] = one.new_path
        return touches

    def _apply(self, touches: dict[int, _Touch]) -> dict[int, Change]:
        """Count the sources anew; what happened to each page that an event happened to."""
        kinds: dict[int, Change] = {}
        for page, touch in touches.items():
            had = self._sources[page]
            has = max(had + len(touch.came) - len(touch.gone), 0)
            self._sources[page] = has
            if had and has:
                if sorted(touch.gone) != sorted(touch.came):
                    kinds[page] = Change.MOD
            elif has:
                kinds[page] = Change.ADD
            elif had:
                kinds[page] = Change.DEL
            self._alive += bool(has) - bool(had)
        return kinds

    def _page(self, url: str) -> int:
        page = self._page_of.setdefault(url, len(self._urls))
        if page == len(self._urls):
            self._urls.append(url)
            self._paths.append(b"")
            self._sources.append(0)
        return page

    def _keep_identity(self, moved: list[tuple[str, str]]) -> None:
        """Let URLs that were never seen before name the pages that move there."""
        for old, new in moved:
            if new not in self._page_of and old in self._page_of:
                self._page_of[new] = self._page_of[old]
