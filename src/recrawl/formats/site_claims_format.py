"""Claims of a site about its own pages, in a sitemap or a feed. They are stored as claimed and need not be true."""

from __future__ import annotations

import enum
from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple

from recrawl.errors import require
from recrawl.formats.columnar.capture_batches import ReadReport

BATCH = 20_000
"""Rows of a batch."""
_SHOWN = 200
"""Letters of a URL that names an entry in an error."""


class ChangeFrequency(enum.IntEnum):
    """How often a page is said to change (``changefreq``)."""

    UNSAID = 0
    ALWAYS = 1
    HOURLY = 2
    DAILY = 3
    WEEKLY = 4
    MONTHLY = 5
    YEARLY = 6
    NEVER = 7


FREQUENCIES = {one.name.lower(): one for one in ChangeFrequency if one}
"""The words of the protocol."""


class EntryFault(NamedTuple):
    """An entry of a sitemap or feed that our own code failed on. All others are read."""

    position: int
    """At which byte of the unpacked file."""
    error: str

    @property
    def words(self) -> str:
        """In a line, as :func:`recrawl.errors.our_fault` has it."""
        return f"recrawl itself failed here ({self.error})"


class ClaimedPage(NamedTuple):
    """One URL and what is claimed of it."""

    url: str
    lastmod: float | None = None
    """Seconds since the epoch; ``None`` if it claims nothing that can be read."""
    changefreq: str = ""
    """One of :data:`FREQUENCIES`, or empty."""
    priority: float | None = None
    """0 to 1, among the pages of the same site."""


def schema() -> Any:  # noqa: ANN401 - pyarrow ships no types
    """The Arrow schema of claims. No column holds nulls."""
    pa = require("pyarrow", "columns")
    return pa.schema(
        [
            pa.field("url", pa.string(), nullable=False),
            pa.field("source", pa.string(), nullable=False),  # the sitemap or feed that says so
            pa.field("time", pa.float64(), nullable=False),  # when the source was fetched, seconds since the epoch
            pa.field("lastmod", pa.float64(), nullable=False),  # NaN if unsaid
            pa.field("changefreq", pa.uint8(), nullable=False),  # a Frequency
            pa.field("priority", pa.float64(), nullable=False),  # NaN if unsaid
        ]
    )


def to_batches(
    entries: Sequence[ClaimedPage], source: str, fetched: float, report: ReadReport, rows: int = BATCH
) -> Iterator[Any]:
    """Entries of a source as Arrow record batches of :func:`schema`."""
    for first in range(0, len(entries), rows):
        yield from report.by_halves(
            entries[first : first + rows],
            lambda part: _batch(part, source, fetched),
            lambda part: f"{source}, {part[0].url[:_SHOWN]}",
        )


def _batch(part: Sequence[ClaimedPage], source: str, fetched: float) -> Any:  # noqa: ANN401 - pyarrow ships no types
    pa, nan = require("pyarrow", "columns"), float("nan")
    return pa.RecordBatch.from_arrays(
        [
            pa.array([entry.url for entry in part], pa.string()),
            pa.repeat(pa.scalar(source, pa.string()), len(part)),
            pa.repeat(pa.scalar(fetched, pa.float64()), len(part)),
            pa.array([nan if entry.lastmod is None else entry.lastmod for entry in part], pa.float64()),
            pa.array([FREQUENCIES.get(entry.changefreq, ChangeFrequency.UNSAID) for entry in part], pa.uint8()),
            pa.array([nan if entry.priority is None else entry.priority for entry in part], pa.float64()),
        ],
        schema=schema(),
    )
