"""The archive files of a workspace: in its folder, in object storage, or at the server of another worker.

A capture names its file. The name is looked up in this order: the local folder, the uploads that the store records, and
the further locations of the settings. What is not local is read by byte range, in blocks that a bounded cache on disk
keeps.
"""

from __future__ import annotations

import hashlib
import io
import os
import threading
import time
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import NamedTuple, Protocol, TypeAlias

from recrawl.formats.atomic_files import has_file, is_file_name
from recrawl.formats.warc.archive_storage import ArchiveStorage, S3Options, folder_url, storage_at
from recrawl.model.captures import UploadedFile

BLOCK = 256 << 10
"""Bytes that are read from a remote file at once, at least."""
_AHEAD = 16
"""Blocks that are read at once where a file is read from start to end."""
_HELD = 2 * _AHEAD
"""Blocks of an open file in memory."""
_KNOWN_FOR = 60.0
"""Seconds for which it is known where a file is, and that it is nowhere; one at another worker may grow."""
_MOST_NAMES = 10_000


class UploadRecords(Protocol):
    """As much of a store as tells where files were uploaded to."""

    def uploaded_file(self, name: str, /) -> UploadedFile | None:
        """The upload of a file; ``None`` if there was none."""
        ...


class BlockCache:
    """Blocks of remote files, as files in a folder: the least recently used are removed. Safe for several processes."""

    def __init__(self, folder: Path, limit: int) -> None:
        """``limit`` is the most bytes that stay; 0 for none."""
        self._folder, self._limit = folder, limit
        self._size: int | None = None
        self._lock = threading.Lock()

    def get(self, file: str, block: int, length: int) -> bytes | None:
        """A block of a file; ``None`` if it is not here, or not whole."""
        path = self._path(file, block)
        with suppress(OSError):
            data = path.read_bytes() if self._limit else b""
            if len(data) == length:
                os.utime(path)
                return data
        return None

    def put(self, file: str, block: int, data: bytes) -> None:
        """Keep a block, if there is room on the disk."""
        if not self._limit:
            return
        path = self._path(file, block)
        part = path.with_name(f"{path.name}.{os.getpid()}-{threading.get_ident()}")
        try:
            self._folder.mkdir(parents=True, exist_ok=True)
            part.write_bytes(data)
            part.replace(path)
        except OSError:
            with suppress(OSError):
                part.unlink()
            return
        with self._lock:
            self._size = None if self._size is None else self._size + len(data)
            if self._size is None or self._size > self._limit:
                self._size = self._trim()

    def _path(self, file: str, block: int) -> Path:
        return self._folder / f"{hashlib.sha256(file.encode('utf-8', 'surrogatepass')).hexdigest()[:24]}-{block:x}"

    def _trim(self) -> int:
        """Remove what was not used for longest, until a tenth is free; the bytes that stay."""
        found = []
        with suppress(OSError), os.scandir(self._folder) as entries:
            for entry in entries:
                with suppress(OSError):
                    about = entry.stat()
                    found.append((about.st_mtime_ns, about.st_size, entry.path))
        size = sum(length for _, length, _ in found)
        if size > self._limit:
            for _, length, path in sorted(found):
                with suppress(OSError):
                    Path(path).unlink()
                    size -= length
                if size <= self._limit * 0.9:
                    break
        return size


class RemoteFile:
    """A file elsewhere, with as much of a path as readers of archive files use."""

    def __init__(self, storage: ArchiveStorage, name: str, size: int, cache: BlockCache) -> None:
        self.storage, self.name, self._size, self._cache = storage, name, size, cache

    def __str__(self) -> str:
        return f"{self.storage.location}{self.name}"

    def open(self, mode: str = "rb", buffering: int = 0) -> RangeFile:  # noqa: ARG002 - as of a path
        """The file for reading."""
        return RangeFile(self.storage, self.name, self._size, self._cache)

    def stat(self) -> RemoteSize:
        """Its size."""
        return RemoteSize(self._size)

    def is_dir(self) -> bool:
        """It is none."""
        return False

    def is_file(self) -> bool:
        """It is one."""
        return True


class RemoteSize(NamedTuple):
    """As much as is known of a remote file without reading it."""

    st_size: int
    """Bytes."""


ArchivePath: TypeAlias = Path | RemoteFile
"""An archive file that can be opened."""


class RangeFile(io.RawIOBase):
    """A remote file that is open for reading. Memory: at most a few megabytes."""

    def __init__(self, storage: ArchiveStorage, name: str, size: int, cache: BlockCache) -> None:
        self._storage, self.name, self.size, self._cache = storage, name, size, cache
        self._key = f"{storage.location}{name} {size}"
        self._at = 0
        self._next = -1
        """The block that comes if the file is read in order."""
        self._blocks: dict[int, bytes] = {}

    def readable(self) -> bool:
        """It is."""
        return True

    def seekable(self) -> bool:
        """It is."""
        return True

    def tell(self) -> int:
        """Where the next byte is read."""
        return self._at

    def seek(self, offset: int, whence: int = os.SEEK_SET) -> int:
        """Go to a place."""
        self._at = offset + (0, self._at, self.size)[whence]
        return self._at

    def readinto(self, buffer: memoryview) -> int:  # type: ignore[override]
        """The next bytes."""
        data = self.pread(len(buffer), self._at)
        buffer[: len(data)] = data
        self._at += len(data)
        return len(data)

    def read(self, size: int = -1) -> bytes:
        """The next bytes; all that are left without a size."""
        data = self.pread(self.size if size < 0 else size, self._at)
        self._at += len(data)
        return data

    def pread(self, size: int, at: int) -> bytes:
        """Up to ``size`` bytes at a place.

        Raises:
            StorageError: the storage does not give them.
        """
        end = min(at + size, self.size)
        if at >= end:
            return b""
        first, last = at // BLOCK, (end - 1) // BLOCK
        pieces = [self._block(number, last) for number in range(first, last + 1)]
        start = at - first * BLOCK
        return (pieces[0] if len(pieces) == 1 else b"".join(pieces))[start : start + end - at]

    def _block(self, number: int, last: int) -> bytes:
        """A block; those up to ``last`` are wanted, too."""
        found = self._blocks.get(number)
        if found is None:
            found = self._cache.get(self._key, number, self._length(number))
            if found is None:
                in_order = number == self._next
                count = min(max(last - number + 1, _AHEAD if in_order else 1), _AHEAD)
                found = self._load(number, count)
            else:
                self._hold(number, found)
            self._next = max(self._blocks, default=number) + 1
        return found

    def _load(self, number: int, count: int) -> bytes:
        """Read some blocks; the first of them."""
        start, end = number * BLOCK, min((number + count) * BLOCK, self.size)
        data = self._storage.read(self.name, start, end, self.size)
        for place, offset in enumerate(range(0, len(data), BLOCK)):
            piece = data[offset : offset + BLOCK]
            self._cache.put(self._key, number + place, piece)
            self._hold(number + place, piece)
        return data[:BLOCK]

    def _hold(self, number: int, data: bytes) -> None:
        while len(self._blocks) >= _HELD:
            del self._blocks[next(iter(self._blocks))]
        self._blocks[number] = data

    def _length(self, number: int) -> int:
        return min(BLOCK, self.size - number * BLOCK)


@dataclass(frozen=True, slots=True)
class StorageOptions:
    """Where archive files are besides the local folder, and how they are kept here."""

    upload: str = ""
    """Location of object storage for closed files; empty for none."""
    locations: tuple[str, ...] = ()
    """Further locations that are searched for files."""
    s3: S3Options = field(default_factory=S3Options)
    cache: Path | None = None
    """Folder of blocks that were read from elsewhere."""
    cache_size: int = 0
    """Bytes."""
    keep_local: float | None = None
    """Seconds for which an uploaded file stays in the local folder; ``None`` for ever."""


class ArchiveFolder:
    """The archive files of a workspace by name. Safe for several threads."""

    def __init__(
        self,
        path: Path,
        options: StorageOptions | None = None,
        uploaded: Callable[[str], UploadedFile | None] = lambda _name: None,
    ) -> None:
        """Without ``options`` only the folder ``path`` is read. ``uploaded`` tells where a file was uploaded to."""
        self.path = path
        self.options = options
        self._uploaded = uploaded
        cache = options.cache if options else None
        self._cache = BlockCache(cache or path, options.cache_size if options and cache else 0)
        self._elsewhere: dict[str, tuple[float, RemoteFile | None]] = {}

    @classmethod
    def of(cls, warc: Path | ArchiveFolder, store: UploadRecords) -> ArchiveFolder:
        """The files of a folder, also those that a store records as uploaded."""
        return cls(warc) if isinstance(warc, Path) else cls(warc.path, warc.options, store.uploaded_file)

    def find(self, name: str) -> ArchivePath | None:
        """A closed file; ``None`` if it is nowhere.

        Raises:
            StorageError: a location does not say whether it has the file.
        """
        path = self.path / name
        return path if has_file(path) else self.remote(name)

    def remote(self, name: str) -> RemoteFile | None:
        """The same, elsewhere only."""
        if self.options is None or not is_plain_name(name):
            return None
        known = self._elsewhere.get(name)
        if known is not None and known[0] > _seconds():
            return known[1]
        found = self.in_storage(name) or self._search(name, self.options)
        if len(self._elsewhere) >= _MOST_NAMES:
            self._elsewhere.clear()
        self._elsewhere[name] = (_seconds() + _KNOWN_FOR, found)
        return found

    def in_storage(self, name: str) -> RemoteFile | None:
        """A file that the store records as uploaded."""
        uploaded = self._uploaded(name) if self.options and is_plain_name(name) else None
        if uploaded is None or self.options is None:
            return None
        return RemoteFile(storage_at(uploaded.location, self.options.s3), name, uploaded.size, self._cache)

    def _search(self, name: str, options: StorageOptions) -> RemoteFile | None:
        for location in options.locations:
            storage = storage_at(location, options.s3)
            about = storage.about(name)
            if about is not None:
                return RemoteFile(storage, name, about.size, self._cache)
        return None

    def uncached(self) -> ArchiveFolder:
        """The same, read past the cache: for checks of what the storage has."""
        options = self.options
        if options is None:
            return self
        return ArchiveFolder(self.path, replace(options, cache=None, cache_size=0), self._uploaded)


def _seconds() -> float:
    """For what is known only for a while."""
    return time.monotonic()  # noqa: TID251 - no time of the crawl


def is_plain_name(name: str) -> bool:
    """Whether a name is that of a file without folders, so that it leads out of no location.

    >>> [is_plain_name(name) for name in ("a.warc.gz", "../a.warc.gz", "/srv/a.warc.gz", "", "..")]
    [True, False, False, False, False]
    """
    is_plain = is_file_name(name) and name.isprintable() and not {"/", "\\"} & set(name)
    return is_plain and name not in {"", ".", ".."}


def locations_of(text: str) -> tuple[str, ...]:
    """Locations that are separated by spaces.

    Raises:
        ConfigError: one is none.
    """
    return tuple(folder_url(one) for one in text.split())
