"""A store's file brought into the memory of the system: a look-up in many places then waits for no disk."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path

_PIECE = 1 << 20
SHARE = 4
"""This part of the machine's memory is taken at most: others need theirs."""


def read_ahead(location: str | Path, over: Callable[[], bool], most: int | None = None) -> int:
    """Read the file of an SQLite store once from its beginning; return how many bytes, 0 for any other store.

    It ends early when it is ``over``, or after ``most`` bytes: a quarter of the machine's memory if not given. The
    interpreter is free meanwhile, so this is for a thread behind the scenes.
    """
    scheme, separator, rest = str(location).partition("://")
    if separator and scheme != "sqlite":
        return 0
    return _read(rest.removeprefix("/") if separator else str(location), over, _share() if most is None else most)


def _read(path: str, over: Callable[[], bool], most: int) -> int:
    import apsw

    # SQLite's own way to the file: to close it in any other way would undo the locks that this process has on it.
    try:
        file = apsw.VFSFile("", path, [apsw.SQLITE_OPEN_MAIN_DB | apsw.SQLITE_OPEN_READONLY, 0])
    except apsw.Error:  # whoever asks for something says why it cannot be read
        return 0
    try:
        end, done = min(file.xFileSize(), most), 0
        while done < end and not over():
            read = len(file.xRead(min(_PIECE, end - done), done))
            if not read:  # it was cut short meanwhile
                break
            done += read
        return done
    finally:
        file.xClose()


def _share() -> int:
    return os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") // SHARE
