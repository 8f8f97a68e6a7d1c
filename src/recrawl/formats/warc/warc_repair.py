"""Repairs WARC files that a killed process left open: cuts them to what counts and gives them their final name.

The writer of a file holds its lock, and the system drops the lock when the process ends, however it ends. So a file
that can be locked has no writer. Where the system has no such locks, files stay as they are.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from types import ModuleType
from typing import BinaryIO, TypeAlias

from recrawl.formats.warc.archive_stream import members

Span: TypeAlias = tuple[int, int]
"""Where a gzip member begins and ends in its file."""
Keeper: TypeAlias = Callable[[BinaryIO, str, list[Span]], list[Span]]
"""Told a file, its final name and its whole members, in order; says which of them to keep, in order."""

fcntl: ModuleType | None
try:
    import fcntl
except ImportError:  # Windows
    fcntl = None

OPEN = ".open"


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


def repair(folder: Path, keeper: Keeper | None = None) -> list[Path]:
    """Finish the files in a folder that nobody writes any more; their final paths.

    Bytes behind the last whole gzip member are cut off, and so is what the ``keeper`` does not keep; a file of which
    nothing stays is removed. Files that a process still writes are left alone, and so is one whose final name is taken.
    """
    finished = []
    for path in sorted(folder.glob(f"*.warc.gz{OPEN}")):
        final = path.with_name(path.name.removesuffix(OPEN))
        with suppress(FileNotFoundError), path.open("r+b") as file:  # its writer may just have closed it
            if lock(file) and is_at(file, path) and not final.exists() and _finish(file, path, final, keeper):
                finished.append(final)
    return finished


def _finish(file: BinaryIO, path: Path, final: Path, keeper: Keeper | None) -> bool:
    whole = list(members(file))
    kept = keeper(file, final.name, whole) if keeper else whole
    if not kept:
        path.unlink()
        return False
    _keep_only(file, whole, kept)
    path.rename(final)
    return True


def _keep_only(file: BinaryIO, whole: list[Span], kept: list[Span]) -> None:
    """Cut the file at the first member that is not kept, and write again what is kept behind it.

    Damage between whole members stays where it is: only what follows the last of them can be the fault of a kill.
    """
    descriptor = file.fileno()
    same = next((place for place, (a, b) in enumerate(zip(whole, kept, strict=False)) if a != b), len(kept))
    end = kept[same - 1][1] if same else 0
    again = b"".join(os.pread(descriptor, stop - start, start) for start, stop in kept[same:])
    if end < os.fstat(descriptor).st_size:
        os.ftruncate(descriptor, end)
        os.pwrite(descriptor, again, end)
        os.fsync(descriptor)
