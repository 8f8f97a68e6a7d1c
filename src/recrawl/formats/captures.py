"""Captures as an archive lists them, without their bytes: the columns every reader of this room yields.

One row is one capture: what a CDX line, a WARC record, a TimeMap entry or a line of a crawl log says. Readers
stream record batches of this schema; writers take them. Text that a source does not give is empty, numbers are the
values named below, so that no column holds nulls.
"""

from __future__ import annotations

import enum
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from typing import Any

from recrawl.errors import InputError, our_fault, require

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


@dataclass(slots=True)
class Report:
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

    def broken(self, what: str, *, source: str, position: int | None, remedy: str = "") -> None:
        """One record is broken: count it, tell it, and go on; or raise it."""
        self._tell(InputError(what, remedy, source=source, position=position))

    def _tell(self, error: InputError) -> None:
        if self.strict:
            raise error
        self.bad += 1
        self.on_bad(error)

    def failed(self, error: Exception, *, source: str, position: int) -> None:
        """Our own code failed on a record: as ``broken``."""
        self._tell(our_fault(error, source, position))

    def overran(self, read: int, size: int, *, source: str, position: int) -> None:
        """A record claims more bytes than it has, and ``read`` bytes of a file of ``size`` were read for it.

        One record does that in a file that is cut. If all do, most of the file is read again for each of them.

        Raises:
            InputError: so much was read in this way that the file must be made for it.
        """
        self.overrun += read
        if self.overrun > 2 * size + _MOST_OVERRUN:
            raise InputError(
                "too many records claim more bytes than they have", "Get it anew.", source=source, position=position
            )

    def skip(self, reason: str, count: int = 1) -> None:
        """Pass over records that are no captures."""
        self.skipped[reason] = self.skipped.get(reason, 0) + count


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
