"""A git repository of a website's sources as the change histories of its pages.

Each commit on the first-parent line that touches a source of a page is a change of the page, at the committer's time:
when it went live. A merge counts as one commit, with everything it brought. The public data sets of change histories
were made this way (``formats.columnar.dataset`` reads them), and this module can write the same form. Contents are not
read, so the columns about texts and links are missing. The ``git`` program streams the log; memory is that of one
commit.

Rules:

1. A page is a URL (:class:`PathRule`); several files may feed one page. It lives as long as one of them does.
2. A page changes when the contents of its sources do. A file that moves and keeps its URL and its bytes is no event.
3. A move to another URL is a deletion and an addition, each naming the other. In a restructuring (at least 10 moves,
   and more than a fifth of the pages alive) the page keeps its identity, and its URL as first seen.
4. A commit is *bulk* if it touches at least 5 pages and more than a fifth of those alive before it.
5. Clocks go wrong: the dates that form the longest non-decreasing run are kept, all others take the one before.

The rule from a path to a URL:

1. Page-like files count: md, markdown, mdx, html, htm, rst, txt, php, erb (also in pairs, as ``.html.erb``).
2. Hidden files and folders, templates, includes, tests and drafts are no pages, nor are the usual files of a repository
   (README below the root counts as the index of its folder, CONTRIBUTING, LICENSE and the like do not count).
3. ``root`` restricts the repository to one folder; below it ``content/`` and ``_pages/`` (Hugo, Jekyll) are removed.
4. ``_posts/2024-05-06-name.md`` becomes ``2024/05/06/name`` (Jekyll); other collections lose their underscore.
5. The extension is removed, ``index``, ``_index`` and ``README`` stand for their folder, letters become lower case.
6. The rest is appended to ``base_url``, bytes percent-encoded, and ends in ``suffix``.

Sites differ; where the rule is wrong, the URL is wrong and the times are right.
"""

from __future__ import annotations

import re
import subprocess
import tempfile
from array import array
from bisect import bisect_right
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Any, NamedTuple
from urllib.parse import quote

import numpy as np

from recrawl.errors import ConfigError, DiskFullError, InputError, RecrawlError, require
from recrawl.formats.atomic_files import FULL, unfinished_file
from recrawl.formats.columnar.capture_batches import ReadReport
from recrawl.formats.columnar.dataset import ChangeLog, LoggedChange
from recrawl.model import AnyArray, IntArray
from recrawl.model.arrays import starts_of_runs
from recrawl.time import LAST_SECOND
from recrawl.urls import address

EXTENSIONS = frozenset({b"md", b"markdown", b"mdx", b"html", b"htm", b"rst", b"txt", b"php", b"erb"})
"""Of page-like files."""
_NOT_PAGES = frozenset(
    b"_includes _layouts _partials _templates _drafts _data _sass includes layouts partials templates theme themes"
    b" test tests spec node_modules vendor archetypes".split()
)
"""Folders that hold no pages."""
_NOT_PAGE = frozenset(
    b"contributing license licence copying code_of_conduct changelog security authors maintainers robots humans"
    b" requirements pull_request_template issue_template codeowners".split()
)
"""Files, without extension, that are no pages."""
_ROOTS = frozenset({b"content", b"_pages"})
_INDEX = frozenset({b"index", b"_index", b"readme"})
_POST = re.compile(rb"(\d{4})-(\d{1,2})-(\d{1,2})-(.+)", re.DOTALL)
_POSTS = frozenset({b"_posts", b"posts"})


@dataclass(frozen=True, slots=True)
class PathRule:
    """How paths of one repository become URLs."""

    base_url: str
    root: str = ""
    """Only files below this folder are pages."""
    suffix: str = "/"
    """What the URL of a page that is no folder ends in: ``/``, ``.html`` or nothing."""

    def __post_init__(self) -> None:
        found = address(self.base_url)
        if found is None:
            raise ConfigError(
                f"The base URL {self.base_url!r} is not an http or https URL.", "Write it like https://example.org/."
            )
        object.__setattr__(self, "base_url", found.url.rstrip("/") + "/")
        object.__setattr__(self, "root", self.root.strip("/"))

    def url(self, path: bytes) -> str | None:
        """The URL of the page that this file is a source of; ``None`` if it is of none.

        >>> rule = PathRule("https://a.example")
        >>> rule.url(b"content/News/index.md"), rule.url(b"_posts/2024-05-06-Hi.md"), rule.url(b"src/main.c")
        ('https://a.example/news/', 'https://a.example/2024/05/06/hi/', None)
        """
        if self.root:
            root = self.root.encode() + b"/"
            if not path.startswith(root):
                return None
            path = path[len(root) :]
        stem, page_like = _split(path.lower())
        *folders, name = stem.split(b"/")
        if (
            not page_like
            or not name
            or name in _NOT_PAGE
            or name.startswith(b".")
            or any(_hides(folder) for folder in folders)
        ):
            return None
        parts = _shown(folders, name)
        end = "/" if name in _INDEX else self.suffix
        return self.base_url + quote(b"/".join(parts), safe="/:@!$&'()*+,;=~") + (end if parts else "")


def _split(path: bytes) -> tuple[bytes, bool]:
    """The path without its page-like extensions, and whether it had one."""
    folder, slash, name = path.rpartition(b"/")
    parts = name.split(b".")
    count = len(parts)
    while len(parts) > 1 and parts[-1] in EXTENSIONS:
        parts.pop()
    return folder + slash + b".".join(parts), len(parts) < count


def _hides(folder: bytes) -> bool:
    return folder.startswith(b".") or folder in _NOT_PAGES


def _shown(folders: list[bytes], name: bytes) -> list[bytes]:
    """The path as visitors see it."""
    parts = folders[1:] if folders and folders[0] in _ROOTS else list(folders)
    dated = _POST.fullmatch(name) if parts and parts[-1] in _POSTS else None
    if dated:
        year, month, day, title = dated.groups()
        parts = [*(parts[:-1] if parts[-1] == b"_posts" else parts), year, month.zfill(2), day.zfill(2), title]
    elif name not in _INDEX:
        parts.append(name)
    return [part.removeprefix(b"_") or part for part in parts]


_GIT = ("git", "--no-pager", "--no-replace-objects", "-c", "log.showRoot=true", "-c", "core.fsmonitor=false")
_LOG = (
    *("log", "--first-parent", "-m", "--reverse", "--raw", "--no-abbrev", "-z", "--format=tformat:%x01%H %ct %at"),
    *("--no-ext-diff", "--no-textconv", "--no-show-signature", "--no-notes", "--no-color", "--ignore-submodules=none"),
)
_AT_ONCE = 1 << 20
"""Bytes read from git at a time."""
_REGULAR = b"100"
"""How the mode of a file begins; links (120000) and submodules (160000) are no files."""
_WITH_TWO_PATHS = b"RC"
_HEAD = b"\x01"
"""How the line about a commit begins, by the format we ask for."""


class FileChange(NamedTuple):
    """One file that a commit touched. An absent side has an empty blob."""

    old_path: bytes
    new_path: bytes
    old_blob: bytes
    new_blob: bytes


class GitCommit(NamedTuple):
    """One step of the first-parent line."""

    sha: str
    committed: int
    """Seconds since the epoch, as the committer's clock said."""
    authored: int
    files: list[FileChange]


def read_commits(
    folder: Path, *, branch: str = "HEAD", similarity: int = 60, report: ReadReport | None = None
) -> Iterator[GitCommit]:
    """All commits of a branch, oldest first. A repository without commits has none.

    ``report`` is told of commits that our own code fails on; without one, the first such failure is raised.

    ``similarity`` is how much of a file, in percent, must stay for a move to be seen as one. 100 needs no contents,
    for clones without blobs.

    Raises:
        InputError: git is missing, the folder is no repository, the branch does not exist or git fails.
    """
    within = _ask(folder, "rev-parse", "--show-prefix", what="git does not open this as a repository").strip()
    if within:
        top = "this is a folder within a repository"
        raise InputError(top, "Give its top folder, and this one as the root of the pages.", source=str(folder))
    if branch == "HEAD" and not _has_commits(folder):
        return
    spec = f"{branch}^{{commit}}"
    start = _ask(folder, "rev-parse", "--verify", "--end-of-options", spec, what=f"there is no branch {branch!r}")
    command = [*_GIT, "-C", str(folder), *_LOG, f"-M{similarity}%", start.decode().strip(), "--"]
    with tempfile.TemporaryFile() as complaints:
        process = subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=complaints)  # noqa: S603 - our own words
        try:
            if process.stdout is not None:
                yield from _commits(_tokens(process.stdout), str(folder), report)
            process.wait()
        finally:
            if process.poll() is None:
                process.kill()
                process.wait()
            if process.stdout is not None:
                process.stdout.close()
        if process.returncode:
            complaints.seek(0)
            said = complaints.read(2_000).decode("utf-8", "replace").strip()
            remedy = "Run git fsck there. In a clone without contents, ask for a similarity of 100."
            raise InputError(f"git cannot read its history ({said})", remedy, source=str(folder))


def _ask(folder: Path, *words: str, what: str) -> bytes:
    done = _run(folder, *words)
    if done.returncode:
        said = done.stderr.decode("utf-8", "replace").strip().partition("\n")[0]
        raise InputError(f"{what} ({said})", "Give the folder of a clone.", source=str(folder))
    return done.stdout


def _has_commits(folder: Path) -> bool:
    return not _run(folder, "rev-parse", "--verify", "--quiet", "HEAD^{commit}").returncode


def _run(folder: Path, *words: str) -> subprocess.CompletedProcess[bytes]:
    if not folder.is_dir():
        raise InputError("there is no such folder", "Check the path.", source=str(folder))
    command = [*_GIT, "-C", str(folder), *words]
    try:
        return subprocess.run(command, stdin=subprocess.DEVNULL, capture_output=True, check=False)  # noqa: S603 - our own words
    except FileNotFoundError as error:
        raise InputError(
            "the program git is missing, which reads repositories", "Install git.", source=str(folder)
        ) from error


def _tokens(stream: IO[bytes]) -> Iterator[bytes]:
    """What stands between the zero bytes."""
    rest = b""
    while piece := stream.read(_AT_ONCE):
        *whole, rest = (rest + piece).split(b"\0")
        yield from whole
    if rest:
        yield rest


def _commits(tokens: Iterator[bytes], source: str, report: ReadReport | None = None) -> Iterator[GitCommit]:
    report = report or ReadReport(strict=True)
    head: list[str] = []
    files: list[FileChange] = []
    faulty = False
    for token in tokens:
        if token.startswith(_HEAD):
            if head and not faulty and (commit := _commit(head, files, source, report)) is not None:
                yield commit
            head, files, faulty = token[1:].decode("utf-8", "replace").split(), [], False
        elif not faulty:
            try:
                files.append(_file(token, tokens, source))
            except RecrawlError:
                raise
            except Exception as error:  # noqa: BLE001 - one commit must not cost the others
                report.failed(error, source=f"{source}, commit {' '.join(head[:1])}", position=None)
                faulty = True  # where its next file begins cannot be told
    if head and not faulty and (commit := _commit(head, files, source, report)) is not None:
        yield commit


def _commit(head: list[str], files: list[FileChange], source: str, report: ReadReport) -> GitCommit | None:
    """A commit; nothing if our own code fails on it."""
    with report.isolated(f"{source}, commit {head[0]}", None):
        return _read_commit(head, files, source)
    return None


def _read_commit(head: list[str], files: list[FileChange], source: str) -> GitCommit:
    """A commit from its name and its two times. Git takes any number for a time: those beyond our years are clamped."""
    try:
        name, *times = head
        committed, authored = (max(0, min(int(time), int(LAST_SECOND))) for time in times)
    except ValueError as error:
        raise InputError(
            f"git's answer makes no sense: {' '.join(head)[:80]!r}", "Run git fsck there.", source=source
        ) from error
    return GitCommit(name, committed, authored, files)


def _file(token: bytes, tokens: Iterator[bytes], source: str) -> FileChange:
    try:
        old_mode, new_mode, old_blob, new_blob, status = token.lstrip(b"\n:").split(b" ")
        old_path = next(tokens, b"")
        new_path = next(tokens, b"") if status[0] in _WITH_TWO_PATHS else old_path
    except (ValueError, IndexError) as error:
        raise InputError(
            f"git's answer makes no sense: {token[:80]!r}", "Run git fsck there.", source=source
        ) from error
    return FileChange(
        old_path,
        new_path,
        old_blob if old_mode.startswith(_REGULAR) else b"",
        new_blob if new_mode.startswith(_REGULAR) else b"",
    )


BULK_PAGES = 5
"""A bulk commit touches at least N pages,"""
BULK_SHARE = 0.2
"""and more than this share of those alive before it."""
NOWHERE = -1
"""In ``moved_from`` and ``moved_to``: the page did not move."""


@dataclass(frozen=True, slots=True)
class GitRecording:
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
    """A ``LoggedChange`` each."""

    def touched(self) -> IntArray:
        """Pages that each commit touched."""
        return np.bincount(self.commit, minlength=len(self.shas))

    def bulk(self) -> AnyArray:
        """Whether each commit is a bulk edit."""
        touched = self.touched()
        return (touched >= BULK_PAGES) & (touched > BULK_SHARE * np.maximum(self.live, 1))

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
            "kind": pa.array([LoggedChange(kind).name.lower() for kind in self.kind.tolist()], pa.string()),
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
        modified = self.kind == LoggedChange.MOD
        return {
            "page_id": pa.array(np.arange(n), pa.int32()),
            "url": pa.array(self.urls, pa.string()),
            "path": pa.array([path.decode("utf-8", "replace") for path in self.paths], pa.string()),
            "first_seen": pa.array(time[first], pa.int64()),
            "deleted_at": pa.array(time[last], pa.int64(), mask=self.kind[last] != LoggedChange.DEL),
            "n_lives": pa.array(np.bincount(self.page[self.kind == LoggedChange.ADD], minlength=n), pa.int32()),
            "left_censored": pa.array((self.commit[first] == 0) | bulk[first]),
            "n_changes": pa.array(np.bincount(self.page[modified], minlength=n), pa.int32()),
            "n_changes_nobulk": pa.array(np.bincount(self.page[modified & ~bulk], minlength=n), pa.int32()),
            "depth": pa.array([len([part for part in url.split("/")[3:] if part]) for url in self.urls], pa.int32()),
            "moved_from": pa.array(self.moved_from, pa.int32(), mask=self.moved_from == NOWHERE),
            "moved_to": pa.array(self.moved_to, pa.int32(), mask=self.moved_to == NOWHERE),
        }


def write_recordings(folder: Path, recordings: Sequence[GitRecording]) -> None:
    """Write ``pages.parquet``, ``events.parquet`` and ``commits.parquet``, as ``columnar/dataset.py`` reads them.

    Each file appears under its name complete or not at all.

    Raises:
        DiskFullError: there is no room.
        InputError: the folder cannot be written to.
    """
    pa = require("pyarrow", "columns")
    parquet = require("pyarrow.parquet", "columns")
    tables = [recording.tables() for recording in recordings]
    try:
        folder.mkdir(parents=True, exist_ok=True)
        for name in ("pages", "events", "commits"):
            with unfinished_file(folder / f"{name}.parquet") as part:
                parquet.write_table(pa.concat_tables([table[name] for table in tables]), part, compression="zstd")
                part.replace(folder / f"{name}.parquet")
    except OSError as error:
        if error.errno in FULL:
            raise DiskFullError(f"{folder}: the disk is full.", "Free some space and write it again.") from error
        raise InputError(f"it cannot be written ({error})", "Check the folder.", source=str(folder)) from error


def _table(pa: Any, site: str, columns: dict[str, Any]) -> Any:  # noqa: ANN401 - pyarrow module and table
    rows = len(next(iter(columns.values())))
    named = pa.repeat(pa.scalar(site, pa.string()), rows).dictionary_encode()
    return pa.table({"site": named, **columns})


RESTRUCTURING_MOVES = 10
"""Fewer moves in one commit are no restructuring."""


def read_git(  # noqa: PLR0913 - a repository, and how to look at it
    folder: Path,
    rule: PathRule,
    *,
    site: str = "",
    branch: str = "HEAD",
    similarity: int = 60,
    report: ReadReport | None = None,
) -> GitRecording:
    """Read the history of a repository. Memory grows by events and pages, not by the length of the log.

    ``report`` is told how many changes were to files that are no pages, that there are no commits at all, and which
    commits and files our own code failed on: without one, the first such failure is raised.

    Raises:
        InputError: see ``read_commits``.
    """
    report = report or ReadReport(strict=True)
    replay, empty = _Replay(rule, str(folder), report), True
    for commit in read_commits(folder, branch=branch, similarity=similarity, report=report):
        with report.isolated(f"{folder}, commit {commit.sha}", None):
            replay.take(commit)
        empty = False
    if empty:
        report.skip("a repository without commits")
    if replay.passed_over:
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

    def __init__(self, rule: PathRule, folder: str, report: ReadReport) -> None:
        self._folder, self._report = folder, report
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

    def take(self, commit: GitCommit) -> None:
        """Replay one commit. O(its files)."""
        named = []
        for one in commit.files:
            try:
                named.append((one, self._url(one.old_path, one.old_blob), self._url(one.new_path, one.new_blob)))
            except Exception as error:  # noqa: BLE001 - one file must not cost the others of the commit
                path = one.new_path.decode("utf-8", "replace")
                self._report.failed(error, source=f"{self._folder}, commit {commit.sha}, {path}", position=None)
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
            if kinds.get(ends[0]) == LoggedChange.DEL and kinds.get(ends[1]) == LoggedChange.ADD:
                self._moves[ends[0]] = ends[1]
        for page, kind in kinds.items():
            self._event_page.append(page)
            self._event_commit.append(len(self._shas))
            self._event_kind.append(kind)
        self._shas.append(commit.sha)
        self._times.append(commit.committed)
        self._authored.append(commit.authored)
        self._live.append(alive)

    def recording(self, site: str) -> GitRecording:
        """Everything as columns."""
        page = np.array(self._event_page, np.int64)
        order = np.argsort(page, kind="stable")
        moved_from, moved_to = np.full(len(self._urls), NOWHERE), np.full(len(self._urls), NOWHERE)
        for old, new in self._moves.items():
            moved_to[old], moved_from[new] = new, old
        times = np.array(self._times, np.int64)
        return GitRecording(
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

    def _apply(self, touches: dict[int, _Touch]) -> dict[int, LoggedChange]:
        """Count the sources again; what happened to each page that an event happened to."""
        kinds: dict[int, LoggedChange] = {}
        for page, touch in touches.items():
            had = self._sources[page]
            has = max(had + len(touch.came) - len(touch.gone), 0)
            self._sources[page] = has
            if had and has:
                if sorted(touch.gone) != sorted(touch.came):
                    kinds[page] = LoggedChange.MOD
            elif has:
                kinds[page] = LoggedChange.ADD
            elif had:
                kinds[page] = LoggedChange.DEL
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
