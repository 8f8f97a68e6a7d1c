"""What writers share: a file is there complete or not at all, and a full disk is told as one."""

from __future__ import annotations

import errno
import os
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import BinaryIO

from recrawl.errors import DiskFullError, InputError

FULL = frozenset({errno.ENOSPC, errno.EFBIG, errno.EDQUOT})
"""Error numbers that mean: no room, be it on the disk, in the file or in the quota."""


@contextmanager
def complete_file(path: Path) -> Iterator[BinaryIO]:
    """A new file under another name, which gets its own once the block has ended well and it is on the disk.

    What was there before stays until then. If anything is raised, nothing is left behind.

    Raises:
        DiskFullError: there is no room.
        InputError: it cannot be written there.
    """
    part = path.with_name(f".{path.name}.{os.getpid()}.part")
    with told(path):
        try:
            with part.open("wb") as file:
                yield file
                file.flush()
                os.fsync(file.fileno())
            part.replace(path)
        finally:
            with suppress(OSError):
                part.unlink(missing_ok=True)


@contextmanager
def told(path: Path) -> Iterator[None]:
    """Turn what the operating system says about writing a file into an error with its name and a remedy."""
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
