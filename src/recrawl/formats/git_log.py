"""The history of a git repository, commit by commit, from the ``git`` program.

The first-parent line of a branch is what went live: a merge counts as one commit, with all it brought. Nothing of
the log is kept; memory is that of one commit.
"""

from __future__ import annotations

import subprocess
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import IO, NamedTuple

from recrawl.errors import InputError
from recrawl.time import LAST_SECOND

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


class FileChange(NamedTuple):
    """One file that a commit touched. An absent side has an empty blob."""

    old_path: bytes
    new_path: bytes
    old_blob: bytes
    new_blob: bytes


class Commit(NamedTuple):
    """One step of the first-parent line."""

    sha: str
    committed: int
    """Seconds since the epoch, as the committer's clock said."""
    authored: int
    files: list[FileChange]


def read_commits(folder: Path, *, branch: str = "HEAD", similarity: int = 60) -> Iterator[Commit]:
    """All commits of a branch, oldest first. A repository without commits has none.

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
                yield from _commits(_tokens(process.stdout), str(folder))
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


def _commits(tokens: Iterator[bytes], source: str) -> Iterator[Commit]:
    head: list[str] = []
    files: list[FileChange] = []
    for token in tokens:
        if token.startswith(b"\x01"):
            if head:
                yield _commit(head, files, source)
            head, files = token[1:].decode("utf-8", "replace").split(), []
        else:
            files.append(_file(token, tokens, source))
    if head:
        yield _commit(head, files, source)


def _commit(head: list[str], files: list[FileChange], source: str) -> Commit:
    """A commit from its name and its two times. Git takes any number for a time: those beyond our years are clamped."""
    try:
        name, *times = head
        committed, authored = (max(0, min(int(time), int(LAST_SECOND))) for time in times)
    except ValueError as error:
        raise InputError(
            f"git's answer makes no sense: {' '.join(head)[:80]!r}", "Run git fsck there.", source=source
        ) from error
    return Commit(name, committed, authored, files)


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
