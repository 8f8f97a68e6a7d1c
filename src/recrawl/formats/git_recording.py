"""What a repository tells of one site, as columns, and as the tables of the public data sets."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from recrawl.errors import DiskFullError, InputError, require
from recrawl.formats.changes import Change, ChangeLog
from recrawl.formats.disk import FULL, unfinished_file
from recrawl.model import AnyArray, IntArray
from recrawl.model.arrays import starts_of_runs

BULK_PAGES = 5
"""A bulk commit touches at least so many pages,"""
BULK_SHARE = 0.2
"""and more than this share of those alive before it."""
NOWHERE = -1
"""In ``moved_from`` and ``moved_to``: the page did not move."""


@dataclass(frozen=True, slots=True)
class Recording:
    """The history of one site: its pages, its commits that touched pages, and what each did to which page."""

    site: str
    urls: tuple[str, ...]
    paths: tuple[bytes, ...]
    """The last source of each page."""
    moved_from: IntArray
    """The page that became this one, or :data:`NOWHERE`."""
    moved_to: IntArray
    shas: tuple[str, ...]
    said_time: IntArray
    """When each commit was made, by the committer's clock, seconds since the epoch."""
    commit_time: IntArray
    """The same, never going back."""
    author_time: IntArray
    live: IntArray
    """Pages alive before each commit."""
    page: IntArray
    """Of each event; events are sorted by page, then commit."""
    commit: IntArray
    kind: AnyArray
    """A ``Change`` each."""

    def touched(self) -> IntArray:
        """Pages that each commit touched."""
        return np.bincount(self.commit, minlength=len(self.shas))

    def bulk(self) -> AnyArray:
        """Whether each commit is a bulk edit."""
        touched = self.touched()
        return (touched >= BULK_PAGES) & (touched > BULK_SHARE * np.maximum(self.live, 1))

    def changes(self) -> ChangeLog:
        """The exact changes of every page."""
        time = self.commit_time[self.commit].astype(np.float64)
        return ChangeLog(self.site, self.urls, self.page, time, self.kind, self.bulk()[self.commit])

    def tables(self) -> dict[str, Any]:
        """The tables ``pages``, ``events`` and ``commits`` of the public data sets, as ``pyarrow.Table``."""
        pa = require("pyarrow", "columns")
        touched, bulk = self.touched(), self.bulk()
        events = {
            "page_id": pa.array(self.page, pa.int32()),
            "t": pa.array(self.commit_time[self.commit]),
            "kind": pa.array([Change(kind).name.lower() for kind in self.kind.tolist()], pa.string()),
            "bulk": pa.array(bulk[self.commit]),
            "n_touched": pa.array(touched[self.commit], pa.int32()),
            "commit_idx": pa.array(self.commit, pa.int32()),
        }
        commits = {
            "commit_idx": pa.array(np.arange(len(self.shas)), pa.int32()),
            "sha": pa.array([sha[:12] for sha in self.shas], pa.string()),
            "t": pa.array(self.commit_time),
            "author_t": pa.array(self.author_time),
            "n_touched": pa.array(touched, pa.int32()),
            "n_live": pa.array(np.maximum(self.live, 1), pa.int32()),
            "bulk": pa.array(bulk),
        }
        tables = {"pages": self._pages(pa), "events": events, "commits": commits}
        return {name: _table(pa, self.site, columns) for name, columns in tables.items()}

    def _pages(self, pa: Any) -> dict[str, Any]:  # noqa: ANN401 - the pyarrow module
        """Columns of the table of pages. Every page has an event, the first of which is an addition."""
        n = len(self.urls)
        time, bulk = self.commit_time[self.commit], self.bulk()[self.commit]
        first = np.flatnonzero(starts_of_runs(self.page))
        last = np.append(first[1:], len(self.page))[: len(first)] - 1
        modified = self.kind == Change.MOD
        return {
            "page_id": pa.array(np.arange(n), pa.int32()),
            "url": pa.array(self.urls, pa.string()),
            "path": pa.array([path.decode("utf-8", "replace") for path in self.paths], pa.string()),
            "first_seen": pa.array(time[first], pa.int64()),
            "deleted_at": pa.array(time[last], pa.int64(), mask=self.kind[last] != Change.DEL),
            "n_lives": pa.array(np.bincount(self.page[self.kind == Change.ADD], minlength=n), pa.int32()),
            "left_censored": pa.array((self.commit[first] == 0) | bulk[first]),
            "n_changes": pa.array(np.bincount(self.page[modified], minlength=n), pa.int32()),
            "n_changes_nobulk": pa.array(np.bincount(self.page[modified & ~bulk], minlength=n), pa.int32()),
            "depth": pa.array([len([part for part in url.split("/")[3:] if part]) for url in self.urls], pa.int32()),
            "moved_from": pa.array(self.moved_from, pa.int32(), mask=self.moved_from == NOWHERE),
            "moved_to": pa.array(self.moved_to, pa.int32(), mask=self.moved_to == NOWHERE),
        }


def write_recordings(folder: Path, recordings: Sequence[Recording]) -> None:
    """Write ``pages.parquet``, ``events.parquet`` and ``commits.parquet``, as ``formats.dataset`` reads them.

    Each file appears under its name complete or not at all.

    Raises:
        DiskFullError: there is no room.
        InputError: the folder cannot be written to.
    """
    pa = require("pyarrow", "columns")
    parquet = require("pyarrow.parquet", "columns")
    tables = [recording.tables() for recording in recordings]
    try:
        folder.mkdir(parents=True, exist_ok=True)
        for name in ("pages", "events", "commits"):
            with unfinished_file(folder / f"{name}.parquet") as part:
                parquet.write_table(pa.concat_tables([table[name] for table in tables]), part, compression="zstd")
                part.replace(folder / f"{name}.parquet")
    except OSError as error:
        if error.errno in FULL:
            raise DiskFullError(f"{folder}: the disk is full.", "Free some space and write it again.") from error
        raise InputError(f"it cannot be written ({error})", "Check the folder.", source=str(folder)) from error


def _table(pa: Any, site: str, columns: dict[str, Any]) -> Any:  # noqa: ANN401 - pyarrow module and table
    rows = len(next(iter(columns.values())))
    named = pa.repeat(pa.scalar(site, pa.string()), rows).dictionary_encode()
    return pa.table({"site": named, **columns})
