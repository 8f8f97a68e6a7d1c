"""What an import could not read: the first few in memory, all of them counted, and in a file if they are many."""

from __future__ import annotations

import errno
import json
from pathlib import Path
from typing import TYPE_CHECKING, Self, TextIO

from recrawl.errors import DiskFullError, InputError, RecrawlError

if TYPE_CHECKING:
    from types import TracebackType

KEPT = 20
"""Errors that are shown. An archive can have millions."""
_FULL = (errno.ENOSPC, errno.EDQUOT, errno.EFBIG)


class ImportErrors:
    """Takes errors as they come. More than can be shown go to a file, a JSON object a line."""

    def __init__(self, file: Path) -> None:
        self.count = 0
        self.first: list[InputError] = []
        self.file: Path | None = None
        """Where all of them are, if there are more than shown."""
        self._path = file
        self._stream: TextIO | None = None

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._stream is None:
            return
        try:
            self._stream.close()
        except OSError as problem:
            if error is None:  # else this or a worse error is already reported
                raise self._explained(problem) from problem

    def tell(self, error: InputError) -> None:
        """Note one error. O(1) memory after the first few.

        Raises:
            DiskFullError: the disk has no space for the file.
        """
        self.count += 1
        if self.count <= KEPT:
            self.first.append(error)
            return
        try:
            if self._stream is None:
                self._path.parent.mkdir(parents=True, exist_ok=True)
                self._stream = self._path.open("w", encoding="utf-8", errors="backslashreplace")
                self.file = self._path
                for earlier in self.first:
                    self._write(earlier)
            self._write(error)
        except OSError as problem:
            raise self._explained(problem) from problem

    def stopped_by(self, error: InputError) -> None:
        """Record the error that ended the import, unless it is already reported."""
        if error not in self.first:
            self.count += 1
            self.first.append(error)

    def _explained(self, problem: OSError) -> RecrawlError:
        if problem.errno in _FULL:
            return DiskFullError(f"{self._path}: the disk is full.", "Free some space and import again.")
        return InputError(
            f"the list of errors cannot be written ({problem.strerror})", "Check the folder.", source=str(self._path)
        )

    def _write(self, error: InputError) -> None:
        if self._stream is not None:
            self._stream.write(json.dumps(row_of(error)) + "\n")


def row_of(error: InputError) -> dict[str, object]:
    """An error as data: which file, where in it, and what is wrong.

    >>> row_of(InputError("the line is cut off", source="a.cdx", position=7))
    {'source': 'a.cdx', 'position': 7, 'error': 'a.cdx at byte 7: the line is cut off'}
    """
    return {"source": error.source, "position": error.position, "error": str(error)}
