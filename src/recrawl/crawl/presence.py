"""Who is at work in a workspace: each worker holds the lock of a file of its name for as long as it lives.

The system drops a lock when its process ends, however it ends. So a file that can be locked was left by a worker that
died, and what it had leased can be given back at once instead of when the leases end. Where the system has no such
locks nobody is known to be dead, and leases end by themselves.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import BinaryIO

from recrawl.errors import InputError
from recrawl.formats.warc_repair import is_at, lock

WORKERS = "workers"
"""The folder of a workspace with a file for each worker."""


@contextmanager
def present(folder: Path, worker: str) -> Iterator[None]:
    """Be at work in a workspace under a name, until the block ends.

    If it ends by an error, the file stays, as that of a worker that died: its leases may not have been given back.

    Raises:
        InputError: the folder cannot be written to.
    """
    path = folder / WORKERS / worker
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        file = _locked(path)
    except OSError as error:
        remedy = "Check the folder and its permissions."
        raise InputError(f"it cannot be written to ({error.strerror})", remedy, source=str(folder)) from error
    with file:
        yield
        path.unlink(missing_ok=True)


def _locked(path: Path) -> BinaryIO:
    while True:
        file = path.open("ab")
        lock(file, wait=True)
        if is_at(file, path):
            return file
        file.close()  # somebody took it for the file of a dead worker before it was locked


def at_work(folder: Path) -> list[str]:
    """Names of the workers that are alive in a workspace."""
    return sorted(path.name for path in _files(folder) if not _is_left(path))


def departed(folder: Path) -> Iterator[str]:
    """Names of the workers that died in a workspace. Each is forgotten once the next one is asked for."""
    for path in _files(folder):
        with suppress(FileNotFoundError), path.open("rb") as file:
            if lock(file) and is_at(file, path):
                yield path.name
                path.unlink()


def _files(folder: Path) -> list[Path]:
    place = folder / WORKERS
    return sorted(place.iterdir()) if place.is_dir() else []


def _is_left(path: Path) -> bool:
    try:
        with path.open("rb") as file:
            return lock(file)
    except FileNotFoundError:
        return True
