"""What the store holds, in the forms other tools read."""

from __future__ import annotations

import base64
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np

from recrawl.crawl.importing import REVISIT
from recrawl.errors import require
from recrawl.formats.captures import NO_SIZE, RecordKind, schema
from recrawl.model import IntArray
from recrawl.store.base import Store
from recrawl.urls import surt

_PAGES_AT_ONCE = 5_000
_SHA1_BYTES = 20
_NOT_MODIFIED = 304


def capture_batches(store: Store, pages: IntArray | None = None, *, only_files: bool = False) -> Iterator[Any]:
    """All captures (of these pages) as record batches of :func:`recrawl.formats.captures.schema`.

    With ``only_files``, only those whose bytes lie in an archive file. Files are named by their last part, as indexes
    do. Memory: the captures of some thousand pages.
    """
    pa = require("pyarrow", "columns")
    chosen = store.pages().id if pages is None else pages
    for start in range(0, len(chosen), _PAGES_AT_ONCE):
        some = chosen[start : start + _PAGES_AT_ONCE]
        captures = store.capture_columns(some)
        rows = [row for row in range(len(captures)) if captures.warc_file[row] or not only_files]
        if not rows:
            continue
        urls = dict(zip(some.tolist(), store.urls(some), strict=True))
        keys = {page: surt(url) or "" for page, url in urls.items()}
        page = captures.page[rows].tolist()
        repeats = [captures.mime[row] == REVISIT for row in rows]
        status = captures.status[rows]
        yield pa.RecordBatch.from_arrays(
            [
                pa.array([urls[number] for number in page], pa.string()),
                pa.array([keys[number] for number in page], pa.string()),
                pa.array(captures.time[rows]),
                pa.array(_kinds(status, np.array(repeats, np.bool_))),
                pa.array(status.astype(np.int16)),
                pa.array(
                    ["" if again else captures.mime[row] for row, again in zip(rows, repeats, strict=True)], pa.string()
                ),
                pa.array([digest_text(captures.digest[row]) for row in rows], pa.string()),
                pa.array(captures.size[rows]),
                pa.array([Path(captures.warc_file[row]).name for row in rows], pa.string()),
                pa.array(np.where(captures.warc_offset[rows] < 0, NO_SIZE, captures.warc_offset[rows])),
                pa.array(np.where(captures.warc_length[rows] < 0, NO_SIZE, captures.warc_length[rows])),
            ],
            schema=schema(),
        )


def digest_text(digest: bytes) -> str:
    """A digest as indexes write it: SHA-1 in base32, any other as it was given.

    >>> digest_text(bytes(20)), digest_text(b"md5:0cc1")
    ('AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA', 'md5:0cc1')
    """
    return base64.b32encode(digest).decode() if len(digest) == _SHA1_BYTES else digest.decode("utf-8", "replace")


def page_batches(store: Store) -> Iterator[Any]:
    """Pages as nodes of a graph: id, url, looks, changes, importance."""
    pa = require("pyarrow", "columns")
    pages = store.pages()
    for start in range(0, len(pages), _PAGES_AT_ONCE):
        some = pages.take(slice(start, start + _PAGES_AT_ONCE))
        histories = store.histories(pages=some.id).align(some.id)
        yield pa.RecordBatch.from_pydict(
            {
                "id": some.id,
                "url": store.urls(some.id),
                "importance": some.importance,
                "looks": histories.counts() + ~np.isnan(histories.first_visit),
                "changes": histories.changes(),
            }
        )


def link_batches(store: Store) -> Iterator[Any]:
    """Links as edges of a graph: source, target, first and last seen (seconds since the epoch)."""
    pa = require("pyarrow", "columns")
    pages = store.pages().id
    for start in range(0, len(pages), _PAGES_AT_ONCE):
        links = store.outlinks(pages[start : start + _PAGES_AT_ONCE])
        columns = {name: getattr(links, name) for name in ("source", "target", "first_seen", "last_seen")}
        yield pa.RecordBatch.from_pydict(columns)


def _kinds(status: IntArray, repeats: Any) -> Any:  # noqa: ANN401 - arrays of flags
    kinds = np.where(repeats, RecordKind.REVISIT_IDENTICAL, RecordKind.RESPONSE)
    kinds = np.where(repeats & (status == _NOT_MODIFIED), RecordKind.REVISIT_NOT_MODIFIED, kinds)
    return np.where(status < 0, RecordKind.FAILED, kinds).astype(np.uint8)
