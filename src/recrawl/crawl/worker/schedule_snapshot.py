"""Stores what the scheduler has learned, so that the next start replays only the visits since.

Policy state is a fold over visits. Without a snapshot a start reads every visit. With one it maps a file and reads the
visits that are newer, so a start costs what happened since the last fit.

The snapshot is a cache and holds nothing that the store does not: it may be deleted at any time. It is used only if it
says the same as a replay would, so it is refused if

 * other code, other settings or other versions of Python or numpy wrote it;
 * visits before its time were added, withdrawn or classified again since (an import, a repaired clock, a restored
   backup): the store then counts other visits before that time;
 * the host, importance or cost of a page that it knows has changed, or the page is no longer to be visited.

A workspace may come from somebody else, and unpickling can run code. So the file may only name classes of the pure
packages, which do no input or output, and what numpy needs for arrays. Anything else in it is refused.
"""

from __future__ import annotations

import hashlib
import io
import mmap
import pickle
import struct
import sys
import zlib
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Any, Final

import numpy as np

import recrawl
from recrawl.errors import RecrawlError
from recrawl.formats.atomic_files import complete_file
from recrawl.model import IntArray, Pages
from recrawl.schedule.frontier.revisit_scheduler import RevisitScheduler
from recrawl.store.base import HistoryStore
from recrawl.store.store_values import VisitCounts

_MAGIC = b"recrawl schedule 1\n"
_HEAD = struct.Struct("<32sIQQ")
"""Key, checksum of the pickle and the table of arrays, their lengths in bytes."""
_SPAN = struct.Struct("<QQI")
"""Position, length and checksum of an array."""
_SMALL = 4_096
"""Bytes up to which an array is part of the pickle."""
_ALIGNED = 64
_SETS = 16
"""Files of sets of buckets that are kept: some for each of several workers."""
_PURE: Final = ("recrawl.model", "recrawl.estimate", "recrawl.schedule")
_ARRAYS: Final = frozenset(
    {
        ("numpy", "dtype"),
        ("numpy", "ndarray"),
        ("numpy._core.multiarray", "_reconstruct"),
        ("numpy._core.multiarray", "scalar"),
        ("numpy._core.numeric", "_frombuffer"),
        ("numpy.core.multiarray", "_reconstruct"),
        ("numpy.core.multiarray", "scalar"),
        ("numpy.core.numeric", "_frombuffer"),
    }
)


@dataclass(frozen=True, slots=True)
class LoadedVisits:
    """Which visits a state contains."""

    until: float
    """All visits up to this time that were recorded then, seconds since the epoch."""
    complete_until: float
    """Visits before this time were all recorded: others record theirs late."""
    before: VisitCounts
    """Visits before ``complete_until`` that the store counted."""
    in_all: VisitCounts
    """Visits before ``until`` that the store counted."""


class ScheduleSnapshot:
    """A file with the state of a scheduler; one more for each set of buckets that a worker had.

    Sets of buckets come again: workers that join or leave one after the other get the same ones.
    """

    def __init__(self, path: Path, settings: str) -> None:
        """``settings`` describes everything the policy was made from; a state of other settings is not used.

        The state of a part of the pages lies beside ``path``, with the digest of its buckets in the name.
        """
        self._path = path
        self._key = _key(settings)

    def save(self, scheduler: RevisitScheduler, loaded: LoadedVisits, buckets: IntArray | None = None) -> bool:
        """Replace the file by the present state; return whether there was one to save. O(bytes).

        ``buckets`` are those whose pages the scheduler has, if not all. Of other sets only the latest files are kept.

        Raises:
            RecrawlError: the disk is full, or the file cannot be written.
        """
        state = scheduler.snapshot()
        if state is None:
            return False
        path = self._file(buckets)
        path.parent.mkdir(exist_ok=True)
        with complete_file(path) as out:
            _write(out, self._key, (loaded, state), scheduler.given)
        if buckets is not None:
            self._delete_old()
        return True

    def _file(self, buckets: IntArray | None) -> Path:
        if buckets is None:
            return self._path
        digest = hashlib.sha256(np.ascontiguousarray(buckets, "<i8").tobytes()).hexdigest()
        return self._path.with_name(f"{self._path.name}-{digest[:12]}")

    def _delete_old(self) -> None:
        """Delete all but the latest files of sets of buckets."""
        files = self._path.parent.glob(f"{self._path.name}-" + "[0-9a-f]" * 12)
        for path in sorted(files, key=lambda file: file.stat().st_mtime)[:-_SETS]:
            path.unlink(missing_ok=True)

    def load(
        self, scheduler: RevisitScheduler, store: HistoryStore, pages: Pages, buckets: IntArray | None = None
    ) -> LoadedVisits | None:
        """Restore the state of a scheduler without pages; ``None``, and nothing changed, if there is none to use.

        ``pages`` are all that are to be visited, in these buckets or in all of them. Large arrays are mapped
        copy-on-write. O(pages + bytes).
        """
        if not scheduler.given:
            return None
        try:
            with self._file(buckets).open("rb") as file:
                found = _read(file, self._key, scheduler.given)
            if found is None:
                return None
            loaded, state = found
            if not isinstance(loaded, LoadedVisits) or not _is_current(loaded, store):
                return None
            return loaded if scheduler.restore(state, pages) else None
        except OSError:
            return None
        except RecrawlError:
            raise
        except Exception:  # noqa: BLE001 - a damaged file may raise anything, and a replay does as well
            return None


def _is_current(loaded: LoadedVisits, store: HistoryStore) -> bool:
    """Whether the store still has the visits that the state was made of, and no others before their time."""
    return (
        store.count_before(loaded.complete_until) == loaded.before
        and store.count_before(loaded.until).visits >= loaded.in_all.visits
    )


def _key(settings: str) -> bytes:
    """A digest of the settings, the versions, and the code whose objects the file holds."""
    digest = hashlib.sha256()
    for text in (settings, sys.version, np.__version__):
        digest.update(text.encode() + b"\0")
    root = Path(recrawl.__file__).parent
    for package in _PURE:
        for source in sorted((root / package.split(".")[1]).rglob("*.py")):
            digest.update(source.relative_to(root).as_posix().encode() + b"\0")
            digest.update(source.read_bytes())
    return digest.digest()


def _write(out: IO[bytes], key: bytes, state: object, given: Sequence[object]) -> None:
    """Head, arrays, table of arrays, pickle. The head is written last, so an interrupted file has none."""
    start = len(_MAGIC) + _HEAD.size
    out.write(bytes(start))
    table = bytearray()

    def keep(buffer: pickle.PickleBuffer) -> bool:
        raw = buffer.raw()
        if raw.nbytes < _SMALL:
            return True
        out.write(bytes(-out.tell() % _ALIGNED))
        table.extend(_SPAN.pack(out.tell(), raw.nbytes, zlib.crc32(raw)))
        out.write(raw)
        return False

    stream = io.BytesIO()
    _StatePickler(stream, given, keep).dump(state)
    tail = bytes(table) + stream.getvalue()
    out.write(tail)
    out.seek(0)
    out.write(_MAGIC + _HEAD.pack(key, zlib.crc32(tail), len(table), len(tail)))


def _read(file: IO[bytes], key: bytes, given: Sequence[object]) -> Any:  # noqa: ANN401 - what was written
    """The state in a file; ``None`` if it is of other code or damaged."""
    magic, head = file.read(len(_MAGIC)), file.read(_HEAD.size)
    if magic != _MAGIC or len(head) < _HEAD.size:
        return None
    own, checksum, table_size, tail_size = _HEAD.unpack(head)
    if own != key:
        return None
    whole = memoryview(mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_COPY))
    if tail_size > len(whole):
        return None
    tail = whole[len(whole) - tail_size :]
    if zlib.crc32(tail) != checksum:
        return None
    buffers = []
    for position, length, expected in _SPAN.iter_unpack(tail[:table_size]):
        part = whole[position : position + length]
        if len(part) != length or zlib.crc32(part) != expected:
            return None
        buffers.append(part)
    return _StateUnpickler(io.BytesIO(tail[table_size:]), given, buffers).load()


class _StatePickler(pickle.Pickler):
    """Leaves out what the policy was given: connections, models, functions."""

    def __init__(self, stream: IO[bytes], given: Sequence[object], keep: Callable[[pickle.PickleBuffer], Any]) -> None:
        super().__init__(stream, protocol=5, buffer_callback=keep)
        self._given = {id(one): place for place, one in enumerate(given) if one is not None}

    def persistent_id(self, obj: object) -> int | None:
        """The place of an object among those that were given."""
        return self._given.get(id(obj))


class _StateUnpickler(pickle.Unpickler):
    """Creates objects of pure packages and arrays only, and inserts what the policy is given now."""

    def __init__(self, stream: IO[bytes], given: Sequence[object], buffers: list[memoryview]) -> None:
        super().__init__(stream, buffers=buffers)
        self._given = given

    def persistent_load(self, pid: object) -> object:
        """What the policy was given."""
        if not isinstance(pid, int) or not 0 <= pid < len(self._given):
            raise pickle.UnpicklingError("it names an object that the policy was not given")
        return self._given[pid]

    def find_class(self, module: str, name: str) -> Any:  # noqa: ANN401 - a class
        """A class that may be in a state."""
        if (module, name) in _ARRAYS:
            return super().find_class(module, name)
        pure = any(module == package or module.startswith(package + ".") for package in _PURE)
        if (pure or module in {__name__, VisitCounts.__module__}) and "." not in name:
            found = super().find_class(module, name)
            if isinstance(found, type) and found.__module__ == module:
                return found
        raise pickle.UnpicklingError(f"a state has no {module}.{name}")
