"""Captures as an archive lists them, without their bytes: the columns that every reader of this package yields.

One row is one capture: a CDX line, a WARC record, a TimeMap entry or a line of a crawl log. Readers stream record
batches of this schema; writers take them. Missing text is empty, and missing numbers have the values named below, so
that no column holds nulls.
"""

from __future__ import annotations

import enum
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from types import TracebackType
from typing import Any, TypeVar

from recrawl.errors import InputError, RecrawlError, our_fault, require

R = TypeVar("R")
T = TypeVar("T")

NO_STATUS = 0
"""The source gives no HTTP status."""
NO_SIZE = -1
"""The source gives no size, length or offset."""


class RecordKind(enum.IntEnum):
    """What the record is, in WARC's words."""

    RESPONSE = 0
    REVISIT_IDENTICAL = 1
    """The payload is the same as that of an earlier capture."""
    REVISIT_NOT_MODIFIED = 2
    """The server said 304."""
    RESOURCE = 3
    """A payload without HTTP, as ARC and some tools write it."""
    FAILED = 4
    """No answer: a line of a crawl log."""


class CaptureRole(enum.IntEnum):
    """What a capture was for, where its source says so."""

    UNKNOWN = 0
    VISIT = 1
    """A visit of a page, however soon after another: a record of a crawl by recrawl."""
    AUXILIARY = 2
    """No visit of a page: robots.txt, a sitemap, one of several requests for a page."""


ROLE = "role"
"""The name of a further column, a :class:`CaptureRole` per row; only batches of sources that tell roles have it."""


def schema() -> Any:  # noqa: ANN401 - pyarrow ships no types
    """The Arrow schema of captures."""
    pa = require("pyarrow", "columns")
    return pa.schema(
        [
            pa.field("url", pa.string(), nullable=False),
            pa.field("key", pa.string(), nullable=False),  # SURT as the source writes it; empty if it gives none
            pa.field("time", pa.float64(), nullable=False),  # seconds since the epoch
            pa.field("kind", pa.uint8(), nullable=False),  # a RecordKind
            pa.field("status", pa.int16(), nullable=False),  # HTTP, Heritrix's negative ones, or NO_STATUS
            pa.field("mime", pa.string(), nullable=False),
            pa.field("digest", pa.string(), nullable=False),  # as the source writes it, without "sha1:"; may be empty
            pa.field("size", pa.int64(), nullable=False),  # payload bytes, or NO_SIZE
            pa.field("file", pa.string(), nullable=False),  # archive file that holds the record; may be empty
            pa.field("offset", pa.int64(), nullable=False),  # of the record in the file, or NO_SIZE
            pa.field("length", pa.int64(), nullable=False),  # of the record as stored, or NO_SIZE
        ]
    )


_MOST_OVERRUN = 256 << 20
"""Bytes that are read once more however small a file is: some tenths of a second."""


_MOST_SPLIT = 1_000
"""Bad records of a source that are told apart from those beside them, each by some attempts."""


@dataclass(slots=True)
class ReadReport:
    """What a reader could not take: told as it happens, counted by reason. With ``strict`` the first one is raised.

    Readers give all that stands before what they raise for: :func:`and_rest`.
    """

    strict: bool = False
    on_bad: Callable[[InputError], None] = lambda _error: None
    bad: int = 0
    """Records that make no sense."""
    skipped: dict[str, int] = field(default_factory=dict)
    """Records that make sense and are not captures, by reason."""
    overrun: int = 0
    """Bytes read for records that claim more than there is."""
    _split: int = 0
    """Records that were found by halves."""

    def broken(self, what: str, *, source: str, position: int | None, remedy: str = "") -> None:
        """One record is broken: count it, tell it, and go on; or raise it."""
        self._tell(InputError(what, remedy, source=source, position=position))

    def _tell(self, error: InputError) -> None:
        if self.strict:
            raise error
        self.bad += 1
        self.on_bad(error)

    def failed(self, error: Exception, *, source: str, position: int | None) -> None:
        """Our own code failed on a record: as ``broken``."""
        self._tell(our_fault(error, source, position))

    def isolated(self, source: str, position: int | None) -> _Isolated:
        """A block that works on one record: where our own code fails in it, that is reported, and the rest goes on."""
        return _Isolated(self, source, position)

    def by_halves(
        self,
        records: R,
        work: Callable[[R], T],
        name: Callable[[R], str],
        damage: tuple[type[Exception], ...] = (),
    ) -> Iterator[T]:
        """What ``work`` makes of some records: a sequence, a range, an array, or a record batch.

        Where our own code fails, it works on each half, down to the one record it fails on. That is reported under
        its ``name`` and passed over. ``work`` can be repeated: what it skipped in vain is not counted. Exceptions in
        ``damage`` are the fault of the source. One call where nothing fails, O(b log n) more for b bad records of n;
        behind :data:`_MOST_SPLIT` of them in one source, what fails is passed over as it is.

        >>> report = ReadReport(on_bad=print)
        >>> sum(report.by_halves([1, 2, 0, 4], lambda some: sum(4 // one for one in some), str))
        [0]: recrawl itself failed here (ZeroDivisionError('integer division or modulo by zero')). Please report it.
        7
        """
        waiting = [records] if _count(records) else []
        while waiting:
            some = waiting.pop()
            skipped = dict(self.skipped)
            try:
                done = work(some)
            except RecrawlError:
                raise
            except Exception as error:  # noqa: BLE001 - whatever it is, one record is the cause
                self.skipped.clear()
                self.skipped.update(skipped)
                count = _count(some)
                if count > 1 and self._split < _MOST_SPLIT:
                    waiting += [_part(some, count // 2, count), _part(some, 0, count // 2)]
                    continue
                self._split += 1
                where = name(_part(some, 0, 1)) + (f" and the {count - 1} behind it" if count > 1 else "")
                if isinstance(error, damage):
                    self.broken(f"it cannot be read ({error})", source=where, position=None)
                else:
                    self.failed(error, source=where, position=None)
                self.bad += count - 1
                continue
            yield done

    def overran(self, read: int, size: int, *, source: str, position: int) -> None:
        """A record claims more bytes than it has, and ``read`` bytes of a file of ``size`` were read for it.

        One record does that in a file that is cut. If all do, most of the file is read again for each of them.

        Raises:
            InputError: too much was read in this way, so that the file must be made for it.
        """
        self.overrun += read
        if self.overrun > 2 * size + _MOST_OVERRUN:
            raise InputError(
                "too many records claim more bytes than they have", "Get it again.", source=source, position=position
            )

    def skip(self, reason: str, count: int = 1) -> None:
        """Pass over records that are no captures."""
        self.skipped[reason] = self.skipped.get(reason, 0) + count


def _count(records: Any) -> int:  # noqa: ANN401 - whatever can be cut
    return len(records) if not hasattr(records, "num_rows") else int(records.num_rows)


def _part(records: R, start: int, end: int) -> R:
    cut: Any = records
    part: R = cut.slice(start, end - start) if hasattr(cut, "num_rows") else cut[start:end]
    return part


class _Isolated:
    """See :meth:`Report.isolated`. A class, because it is entered once a record."""

    __slots__ = ("_position", "_report", "_source")

    def __init__(self, report: ReadReport, source: str, position: int | None) -> None:
        self._report, self._source, self._position = report, source, position

    def __enter__(self) -> None:
        return None

    def __exit__(
        self, _kind: type[BaseException] | None, error: BaseException | None, _trace: TracebackType | None
    ) -> bool:
        if not isinstance(error, Exception) or isinstance(error, RecrawlError):
            return False
        self._report.failed(error, source=self._source, position=self._position)
        return True


def and_rest(given: Iterable[Any], rest: Callable[[InputError | None], Iterable[Any]]) -> Iterator[Any]:
    """What a reader gives, and in the end the ``rest`` that it holds; where it raises, the rest comes before the error.

    ``rest`` is told what is raised, if anything is.

    >>> def reader():
    ...     yield 1
    ...     raise InputError("broken")
    >>> found = and_rest(reader(), lambda error: [2, 3])
    >>> next(found), next(found), next(found)
    (1, 2, 3)
    """
    try:
        yield from given
    except InputError as damage:
        yield from rest(damage)
        raise
    yield from rest(None)
