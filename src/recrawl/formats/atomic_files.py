"""Writing files: a file appears complete or not at all, and a full disk is reported as such.

A file under construction has a temporary name, and its writer holds its lock. The system drops the lock when the
process ends, however it ends. So an unfinished file that can be locked was left by a dead process. The next process
that writes into the same folder removes it.
"""

from __future__ import annotations

import errno
import os
import secrets
import shutil
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from types import ModuleType
from typing import BinaryIO

from recrawl.errors import DiskFullError, InputError, StoreError

fcntl: ModuleType | None
try:
    import fcntl
except ImportError:  # Windows
    fcntl = None

FULL = frozenset({errno.ENOSPC, errno.EFBIG, errno.EDQUOT})
"""Error numbers that mean: no room, be it on the disk, in the file or in the quota."""
PART = ".recrawl.part"
"""How names of unfinished files and folders end; they begin with a dot."""
_LONGEST_PATH, _LONGEST_NAME = 4_096, 255
"""Bytes that Linux takes as a path, and as one part of it; other systems take no more."""
_LOCK = "lock"
"""The file in an unfinished folder whose lock its writer holds."""


def lock(file: BinaryIO, *, wait: bool = False) -> bool:
    """Take the lock of a file until it is closed; whether it was free, or became so."""
    if fcntl is None:
        return False
    try:
        fcntl.flock(file.fileno(), fcntl.LOCK_EX if wait else fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError:
        return False
    return True


def is_at(file: BinaryIO, path: Path) -> bool:
    """Whether the open file is still the one of that name."""
    try:
        return os.path.samestat(os.fstat(file.fileno()), path.stat())
    except FileNotFoundError:
        return False


def sync_folder(folder: Path) -> None:
    """Return once the names in a folder are on the disk, where the system can say so."""
    if hasattr(os, "O_DIRECTORY"):
        descriptor = os.open(folder, os.O_RDONLY | os.O_DIRECTORY)
        try:
            os.fsync(descriptor)
        finally:
            os.close(descriptor)


def waits_for(error: BaseException) -> StoreError | None:
    """The disk that is full or the store that is away, if that is what the error is about; ``None`` for a fault."""
    if isinstance(error, StoreError):
        return error
    if isinstance(error, OSError) and error.errno in FULL:
        return DiskFullError(f"The disk is full ({error}).", "Free some space; the crawl then goes on.")
    return None


def has_file(path: Path) -> bool:
    r"""Whether a file lies at a path that an index of others may have named.

    No file has a name of many thousand characters or with a NUL in it; ``Path.is_file`` raises for some of these.

    >>> has_file(Path("x" * 9_000)), has_file(Path("a\0b")), has_file(Path("."))
    (False, False, False)
    """
    with suppress(OSError, ValueError):
        return path.is_file()
    return False


def is_file_name(name: str) -> bool:
    r"""Whether a file can have this name, with or without folders.

    >>> is_file_name("a/b.warc.gz"), is_file_name("x" * 300), is_file_name("a\0b"), is_file_name("\ud800")
    (True, False, False, False)
    """
    try:
        raw = os.fsencode(name)
    except UnicodeEncodeError:
        return False
    return b"\0" not in raw and len(raw) < _LONGEST_PATH and max(map(len, raw.split(b"/"))) <= _LONGEST_NAME


@contextmanager
def complete_file(path: Path) -> Iterator[BinaryIO]:
    """A new file under another name, which gets its own once the block has ended well and it is on the disk.

    What was there before stays until then. If anything is raised, nothing is left behind; what killed processes left
    behind in the folder is removed.

    Raises:
        DiskFullError: there is no room.
        InputError: it cannot be written there.
    """
    with reporting_write_errors(path), unfinished_file(path) as part:
        with part.open("r+b") as file:
            yield file
            file.flush()
            os.fsync(file.fileno())
        part.replace(path)


@contextmanager
def unfinished_file(path: Path) -> Iterator[Path]:
    """A new empty file beside ``path`` under another name, for whoever renames it in the end; else it is removed.

    It may be opened and written by its name; it must not be replaced by another file before it is renamed.
    """
    _remove_once(path.parent)
    while True:
        part = path.with_name(f".{path.name}.{secrets.token_hex(4)}{PART}")
        with part.open("xb") as held:
            lock(held, wait=True)
            if not is_at(held, part):
                continue  # somebody took it for abandoned before it was locked
            try:
                yield part
            finally:
                with suppress(OSError):
                    if is_at(held, part):
                        part.unlink()
            return


@contextmanager
def scratch_folder(parent: Path) -> Iterator[Path]:
    """A new folder in ``parent`` for files of the moment, removed in the end, or by who writes there next."""
    _remove_once(parent)
    while True:
        folder = parent / f".{secrets.token_hex(4)}{PART}"
        folder.mkdir()
        try:
            held = (folder / _LOCK).open("xb")
        except FileNotFoundError:
            continue  # somebody took it for abandoned
        with held:
            lock(held, wait=True)
            if not is_at(held, folder / _LOCK):
                continue
            try:
                yield folder
            finally:
                shutil.rmtree(folder, ignore_errors=True)
            return


def remove_abandoned(folder: Path) -> list[str]:
    """Remove the unfinished files and folders that processes left which ended before they were done; their names.

    Those that somebody still writes stay, and so do those of a folder that cannot be read or written. O(files there).
    """
    removed: list[str] = []
    try:
        found = [Path(entry.path) for entry in os.scandir(folder) if _is_part(entry.name)]
    except OSError:
        return removed
    for path in found:
        is_folder = path.is_dir() and not path.is_symlink()
        held = path / _LOCK if is_folder else path
        with suppress(OSError):
            if is_folder and not held.exists():
                path.rmdir()  # its maker died between two steps; if it holds something, it is none of ours
                removed.append(path.name)
                continue
            with held.open("rb") as file:
                if not lock(file) or not is_at(file, held):
                    continue
                if is_folder:
                    shutil.rmtree(path)
                else:
                    path.unlink()
                removed.append(path.name)
    return removed


def find_abandoned(folder: Path) -> list[Path]:
    """The unfinished files and folders in a folder whose writers are gone. They stay. O(files there)."""
    found = []
    for path in sorted(folder.glob(f".*{PART}")):
        held = path / _LOCK if path.is_dir() else path
        with suppress(OSError):
            if not held.exists():
                found.append(path)
                continue
            with held.open("rb") as file:
                if lock(file) and is_at(file, held):
                    found.append(path)
    return found


def _remove_once(folder: Path) -> None:
    """The same, once in a process: who writes a thousand files into a folder does not look through it each time."""
    if folder not in _looked_through:
        if len(_looked_through) >= _MOST_FOLDERS:
            _looked_through.clear()
        _looked_through.add(folder)
        remove_abandoned(folder)


_looked_through: set[Path] = set()
_MOST_FOLDERS = 1_000


def _is_part(name: str) -> bool:
    return name.startswith(".") and name.endswith(PART)


@contextmanager
def reporting_write_errors(path: Path) -> Iterator[None]:
    """Turn an OSError raised while a file is written into an error with the name of the file and a remedy."""
    try:
        yield
    except OSError as error:
        if error.errno in FULL:
            raise DiskFullError(f"{path}: the disk is full.", "Free some space and write it again.") from error
        raise InputError(
            f"it cannot be written ({error.strerror or error})",
            "Check the folder and its permissions.",
            source=str(path),
        ) from error


def is_running(process: int) -> bool:
    """Whether a process of that number runs: one that leaves a half-written file behind names itself in it."""
    try:
        os.kill(process, 0)
    except ProcessLookupError:
        return False
    except OSError:
        return True
    return True
