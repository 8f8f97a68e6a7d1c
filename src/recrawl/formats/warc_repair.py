"""WARC files that a killed process left open: cut to their last whole record and given their final name.

A file that is being written is locked by its writer, and the system drops the lock when the process ends, however it
ends. So a file that can be locked has no writer. Where the system has no such locks, files stay as they are.
"""

from __future__ import annotations

import os
from contextlib import suppress
from pathlib import Path
from types import ModuleType
from typing import BinaryIO

from recrawl.formats.warc_members import whole_end

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


def repair(folder: Path) -> list[Path]:
    """Finish the files in a folder that nobody writes any more; their final paths.

    Bytes behind the last whole gzip member are cut off; a file without any is removed. Files that a process still
    writes are left alone, and so is one whose final name is taken.
    """
    finished = []
    for path in sorted(folder.glob(f"*.warc.gz{OPEN}")):
        final = path.with_name(path.name.removesuffix(OPEN))
        with suppress(FileNotFoundError), path.open("r+b") as file:  # its writer may just have closed it
            if lock(file) and is_at(file, path) and not final.exists() and _finish(file, path, final):
                finished.append(final)
    return finished


def _finish(file: BinaryIO, path: Path, final: Path) -> bool:
    end = whole_end(file)
    if end == 0:
        path.unlink()
        return False
    if end < os.fstat(file.fileno()).st_size:
        os.ftruncate(file.fileno(), end)
        os.fsync(file.fileno())
    path.rename(final)
    return True
