"""Writing WARC files: whole captures only, and ``.open`` behind the name until closed (conventions W1, W2)."""

from __future__ import annotations

import os
import socket
from contextlib import suppress
from dataclasses import dataclass
from datetime import UTC, datetime
from itertools import count
from pathlib import Path
from types import TracebackType
from typing import Self

from recrawl.errors import DiskFullError, InputError
from recrawl.formats.disk import FULL
from recrawl.formats.warc_records import CaptureRef, records_of, warcinfo
from recrawl.model import Capture
from recrawl.time import Clock

__all__ = ["CaptureRef", "WarcInfo", "WarcLocation", "WarcWriter"]


@dataclass(frozen=True, slots=True)
class WarcLocation:
    """Where the response or revisit record of a capture lies."""

    file: str
    """Name of the file once it is closed."""
    offset: int
    length: int
    """Bytes of its gzip member."""
    ref: CaptureRef
    """What a later capture of the page may repeat: this response, or the one this revisit refers to."""


@dataclass(frozen=True, slots=True)
class WarcInfo:
    """Who made a file: for its name and its first record."""

    prefix: str = "RECRAWL"
    software: str = "recrawl"
    operator: str = ""
    is_part_of: str = ""
    robots: str = "obey"
    host: str = ""
    """Name of the crawling machine; asked of the system if empty."""
    port: int = 0

    def fields(self) -> dict[str, str]:
        """As ``warcinfo`` names them."""
        return {
            "software": self.software,
            "format": "WARC File Format 1.1",
            "conformsTo": "https://iipc.github.io/warc-specifications/specifications/warc-format/warc-1.1/",
            "hostname": self.host or socket.gethostname(),
            "operator": self.operator,
            "isPartOf": self.is_part_of,
            "robots": self.robots,
        }


class WarcWriter:
    """Appends captures to one new WARC file in ``folder``. A context manager, for one task at a time."""

    def __init__(self, folder: Path, clock: Clock, info: WarcInfo | None = None) -> None:
        info = info or WarcInfo()
        opened = clock.now()
        first = warcinfo(opened, info.fields())
        self._size = 0
        self._warcinfo_id = f"<{first.id}>"
        try:
            folder.mkdir(parents=True, exist_ok=True)
            self.path = _free_name(folder, info, opened)
            """Where the file will be once it is closed."""
            self._open_path = _open_name(self.path)
            self._file = self._open_path.open("xb", buffering=0)
        except OSError as error:
            raise InputError(
                f"no WARC file can be made ({error.strerror})",
                "Check the folder and its permissions.",
                source=str(folder),
            ) from error
        try:
            self._append(first.member(("WARC-Filename", self.path.name)))
        except BaseException:
            self._file.close()
            self._open_path.unlink()
            raise

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def close(self) -> None:
        """Make the file durable and give it its final name."""
        if not self._file.closed:
            os.fsync(self._file.fileno())
            self._file.close()
            self._open_path.rename(self.path)

    def write(self, capture: Capture, *, revisit_of: CaptureRef | None = None) -> WarcLocation:
        """Append a capture and return where it is. It has reached the operating system when this returns.

        ``revisit_of`` is the response the capture may repeat. If it does, because the server said 304 or the
        payload is the same, a revisit record takes the place of the body; else it is written in full.

        Raises:
            ValueError: nothing was received, so there is nothing to keep.
            DiskFullError: the disk is full; the file ends with the capture before.
        """
        if not capture.raw_head:
            msg = f"{capture.url}: a capture without an answer cannot be archived"
            raise ValueError(msg)
        ref, records = records_of(capture, revisit_of)
        members = [record.member(("WARC-Warcinfo-ID", self._warcinfo_id)) for record in records]
        offset = self._append(b"".join(members))
        return WarcLocation(self.path.name, offset, len(members[0]), ref)

    def _append(self, data: bytes) -> int:
        """Write all of it or nothing; where it begins."""
        offset, rest = self._size, memoryview(data)
        try:
            while rest:
                rest = rest[self._file.write(rest) :]
        except OSError as error:
            with suppress(OSError):
                self._file.truncate(offset)
                self._file.seek(offset)
            if error.errno in FULL:
                raise DiskFullError(
                    f"{self._open_path}: the disk is full.", "Free some space; what was written before is kept."
                ) from error
            raise
        self._size += len(data)
        return offset


def _open_name(path: Path) -> Path:
    return path.with_name(path.name + ".open")


def _free_name(folder: Path, info: WarcInfo, opened: float) -> Path:
    """The first name of the template that no file has yet: a virtual clock may open two at one time."""
    moment = datetime.fromtimestamp(opened, UTC)
    stamp = f"{moment:%Y%m%d%H%M%S}{moment.microsecond // 1000:03}"
    place = f"{os.getpid()}~{info.host or socket.gethostname()}~{info.port}"
    names = (folder / f"{info.prefix}-{stamp}-{serial:05}-{place}.warc.gz" for serial in count())
    return next(path for path in names if not path.exists() and not _open_name(path).exists())
