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
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from recrawl.errors import require
from recrawl.formats.captures import Report
from recrawl.formats.changes import Change, ChangeLog
from recrawl.formats.git_log import Commit, FileChange, read_commits
from recrawl.formats.git_pages import PathRule
from recrawl.model import AnyArray, IntArray
from recrawl.model.arrays import starts_of_runs
from recrawl.time import HOUR

BULK_PAGES = 5
BULK_SHARE = 0.2
RESTRUCTURING_MOVES = 10
NOWHERE = -1
"""In ``moved_from`` and ``moved_to``: the page did not move."""


@dataclass(frozen=True, slots=True)
class Recording:
    """The history of one site: its pages, its commits that touched pages, and what each did to which page."""

    site: str
    urls: tuple[str, ...]
    paths: tuple[bytes, ...]
    """The last source of each page."""
    moved_from: IntArray
    """The page that became this one, or :data:`NOWHERE`."""
    moved_to: IntArray
    shas: tuple[str, ...]
    said_time: IntArray
    """When each commit was made, by the committer's clock, seconds since the epoch."""
    commit_time: IntArray
    """The same, never going back."""
    author_time: IntArray
    live: IntArray
    """Pages alive before each commit."""
    page: IntArray
    """Of each event; events are sorted by page, then commit."""
    commit: IntArray
    kind: AnyArray
    """A ``Change`` each."""

    def touched(self) -> IntArray:
        """Pages that each commit touched."""
        return np.bincount(self.commit, minlength=len(self.shas))

    def bulk(self) -> AnyArray:
        """Whether each commit is a bulk edit."""
        touched = self.touched()
        return (touched >= BULK_PAGES) & (touched > BULK_SHARE * np.maximum(self.live, 1))

    def clock_fixes(self, over: float = HOUR) -> int:
        """How many commits have another time than their clock said, by more than ``over`` seconds."""
        return int((np.abs(self.commit_time - self.said_time) > over).sum())

    def changes(self) -> ChangeLog:
        """The exact changes of every page."""
        time = self.commit_time[self.commit].astype(np.float64)
        return ChangeLog(self.site, self.urls, self.page, time, self.kind, self.bulk()[self.commit])

    def tables(self) -> dict[str, Any]:
        """The tables ``pages``, ``events`` and ``commits`` of the public data sets, as ``pyarrow.Table``."""
        pa = require("pyarrow", "columns")
        touched, bulk = self.touched(), self.bulk()
        events = {
            "page_id": pa.array(self.page, pa.int32()),
            "t": pa.array(self.commit_time[self.commit]),
            "kind": pa.array([Change(kind).name.lower() for kind in self.kind.tolist()], pa.string()),
            "bulk": pa.array(bulk[self.commit]),
            "n_touched": pa.array(touched[self.commit], pa.int32()),
            "commit_idx": pa.array(self.commit, pa.int32()),
        }
        commits = {
            "commit_idx": pa.array(np.arange(len(self.shas)), pa.int32()),
            "sha": pa.array([sha[:12] for sha in self.shas], pa.string()),
            "t": pa.array(self.commit_time),
            "author_t": pa.array(self.author_time),
            "n_touched": pa.array(touched, pa.int32()),
            "n_live": pa.array(np.maximum(self.live, 1), pa.int32()),
            "bulk": pa.array(bulk),
        }
        tables = {"pages": self._pages(pa), "events": events, "commits": commits}
        return {name: _table(pa, self.site, columns) for name, columns in tables.items()}

    def _pages(self, pa: Any) -> dict[str, Any]:  # noqa: ANN401 - the pyarrow module
        """Columns of the table of pages. Every page has an event, the first of which is an addition."""
        n = len(self.urls)
        time, bulk = self.commit_time[self.commit], self.bulk()[self.commit]
        first = np.flatnonzero(starts_of_runs(self.page))
        last = np.append(first[1:], len(self.page))[: len(first)] - 1
        modified = self.kind == Change.MOD
        return {
            "page_id": pa.array(np.arange(n), pa.int32()),
            "url": pa.array(self.urls, pa.string()),
            "path": pa.array([path.decode("utf-8", "replace") for path in self.paths], pa.string()),
            "first_seen": pa.array(time[first], pa.int64()),
            "deleted_at": pa.array(time[last], pa.int64(), mask=self.kind[last] != Change.DEL),
            "n_lives": pa.array(np.bincount(self.page[self.kind == Change.ADD], minlength=n), pa.int32()),
            "left_censored": pa.array((self.commit[first] == 0) | bulk[first]),
            "n_changes": pa.array(np.bincount(self.page[modified], minlength=n), pa.int32()),
            "n_changes_nobulk": pa.array(np.bincount(self.page[modified & ~bulk], minlength=n), pa.int32()),
            "depth": pa.array([len([part for part in url.split("/")[3:] if part]) for url in self.urls], pa.int32()),
            "moved_from": pa.array(self.moved_from, pa.int32(), mask=self.moved_from == NOWHERE),
            "moved_to": pa.array(self.moved_to, pa.int32(), mask=self.moved_to == NOWHERE),
        }


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

    ``report`` is told how many changes were to files that are no pages.

    Raises:
        InputError: see ``read_commits``.
    """
    replay = _Replay(rule)
    for commit in read_commits(folder, branch=branch, similarity=similarity):
        replay.take(commit)
    if report is not None and replay.passed_over:
        report.skip("a change to a file that is no page", replay.passed_over)
    return replay.recording(site or folder.resolve().name)


def write_recordings(folder: Path, recordings: Sequence[Recording]) -> None:
    """Write ``pages.parquet``, ``events.parquet`` and ``commits.parquet``, as ``formats.dataset`` reads them."""
    pa = require("pyarrow", "columns")
    parquet = require("pyarrow.parquet", "columns")
    folder.mkdir(parents=True, exist_ok=True)
    tables = [recording.tables() for recording in recordings]
    for name in ("pages", "events", "commits"):
        whole = pa.concat_tables([table[name] for table in tables])
        parquet.write_table(whole, folder / f"{name}.parquet", compression="zstd")


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


def _table(pa: Any, site: str, columns: dict[str, Any]) -> Any:  # noqa: ANN401 - pyarrow module and table
    rows = len(next(iter(columns.values())))
    named = pa.repeat(pa.scalar(site, pa.string()), rows).dictionary_encode()
    return pa.table({"site": named, **columns})
