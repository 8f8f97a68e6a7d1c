"""Exports the store in the formats of other tools."""

from __future__ import annotations

import base64
from collections.abc import Callable, Iterator
from http import HTTPStatus
from pathlib import Path
from typing import Any

import numpy as np

from recrawl.errors import require
from recrawl.formats.cdx.cdx_columns import REVISIT
from recrawl.formats.columnar.capture_batches import NO_SIZE, RecordKind, schema
from recrawl.model import IntArray
from recrawl.store.base import CaptureIndex, HistoryStore
from recrawl.store.store_values import CaptureColumns
from recrawl.transfer.listed_captures import captures_in_pieces, chunks_of
from recrawl.urls import surt

_PAGES_AT_ONCE, _CAPTURES_AT_ONCE = 5_000, 50_000
_SHA1_BYTES = 20


def capture_batches(
    store: CaptureIndex,
    pages: IntArray | None = None,
    *,
    name_of: Callable[[str], str] = lambda file: Path(file).name,
    progress: Callable[[int, int], None] = lambda _done, _all: None,
) -> Iterator[Any]:
    """All captures (of these pages) as record batches of :func:`recrawl.formats.columnar.capture_batches.schema`.

    ``name_of`` says what to call a file that the store names; ``progress`` is told pages done and all pages. Memory
    does not grow with the captures of the store, nor with those of one page.
    """
    pa = require("pyarrow", "columns")
    for some, captures in _columns(store, pages, progress):
        urls = dict(zip(some.tolist(), store.urls(some), strict=True))
        keys = {page: surt(url) or "" for page, url in urls.items()}
        page = captures.page.tolist()
        repeats = [mime == REVISIT for mime in captures.mime]
        yield pa.RecordBatch.from_arrays(
            [
                pa.array([urls[number] for number in page], pa.string()),
                pa.array([keys[number] for number in page], pa.string()),
                pa.array(captures.time),
                pa.array(_kinds(captures.status, np.array(repeats, np.bool_))),
                pa.array(captures.status.astype(np.int16)),
                pa.array(
                    ["" if again else mime for mime, again in zip(captures.mime, repeats, strict=True)], pa.string()
                ),
                pa.array([digest_text(digest) for digest in captures.digest], pa.string()),
                pa.array(captures.size),
                pa.array([name_of(file) for file in captures.warc_file], pa.string()),
                pa.array(np.where(captures.warc_offset < 0, NO_SIZE, captures.warc_offset)),
                pa.array(np.where(captures.warc_length < 0, NO_SIZE, captures.warc_length)),
            ],
            schema=schema(),
        )


def capture_files(
    store: CaptureIndex, progress: Callable[[int, int], None] = lambda _done, _all: None
) -> Iterator[str]:
    """For every capture the file it lies in, as the store names it; empty text for none."""
    for _, captures in _columns(store, None, progress):
        yield from captures.warc_file


def _columns(
    store: CaptureIndex, pages: IntArray | None, progress: Callable[[int, int], None]
) -> Iterator[tuple[IntArray, CaptureColumns]]:
    """Captures some ten thousand at a time, with the pages they are of: a page may have one or a million."""
    chosen = store.pages().id if pages is None else pages
    done = 0
    for some in chunks_of(store, chosen, _CAPTURES_AT_ONCE, _PAGES_AT_ONCE):
        for captures in captures_in_pieces(store, some, _CAPTURES_AT_ONCE):
            if len(captures):
                yield some, captures
        done += len(some)
        progress(done, len(chosen))


def digest_text(digest: bytes) -> str:
    """A digest as indexes write it: SHA-1 in base32, any other as it was given.

    >>> digest_text(bytes(20)), digest_text(b"md5:0cc1")
    ('AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA', 'md5:0cc1')
    """
    return base64.b32encode(digest).decode() if len(digest) == _SHA1_BYTES else digest.decode("utf-8", "replace")


def page_batches(store: HistoryStore, progress: Callable[[int, int], None] = lambda _done, _all: None) -> Iterator[Any]:
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
                "observations": histories.counts() + ~np.isnan(histories.first_visit),
                "changes": histories.changes(),
            }
        )
        progress(start + len(some), len(pages))


def link_batches(store: HistoryStore, progress: Callable[[int, int], None] = lambda _done, _all: None) -> Iterator[Any]:
    """Links as edges of a graph: source, target, first and last seen (seconds since the epoch)."""
    pa = require("pyarrow", "columns")
    pages = store.pages().id
    for start in range(0, len(pages), _PAGES_AT_ONCE):
        some = pages[start : start + _PAGES_AT_ONCE]
        links = store.outlinks(some)
        columns = {name: getattr(links, name) for name in ("source", "target", "first_seen", "last_seen")}
        yield pa.RecordBatch.from_pydict(columns)
        progress(start + len(some), len(pages))


def _kinds(status: IntArray, repeats: Any) -> Any:  # noqa: ANN401 - arrays of flags
    kinds = np.where(repeats, RecordKind.REVISIT_IDENTICAL, RecordKind.RESPONSE)
    kinds = np.where(repeats & (status == HTTPStatus.NOT_MODIFIED), RecordKind.REVISIT_NOT_MODIFIED, kinds)
    return np.where(status < 0, RecordKind.FAILED, kinds).astype(np.uint8)
