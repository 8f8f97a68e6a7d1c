"""What a dead worker left behind, brought into a clear state before the next one begins.

A visit counts once the store acknowledges it, and its bytes are on the disk before. So behind the last acknowledged
record of a file that a dead worker left open there may be records of visits that nobody acknowledged. Their pages are
still due and will be fetched again; the records are cut off, and a reader finds either both, visit and record, or none.
"""

from __future__ import annotations

from typing import BinaryIO

import numpy as np

from recrawl.formats.warc_repair import Keeper, Span
from recrawl.formats.warc_stream import record_at
from recrawl.store.base import Store

_CAPTURES = frozenset({"response", "revisit"})


def acknowledged_by(store: Store) -> Keeper:
    """Keeps of a file all up to the last record that the store acknowledges, and behind it what belongs to no page.

    Robots.txt, sitemaps and documents about the archive are no visits, and stay. A file of which nothing but the
    first record is left is not kept. Looks at the records behind the last acknowledged one, and no others.
    """

    def keep(file: BinaryIO, name: str, whole: list[Span]) -> list[Span]:
        dropped: set[str] = set()
        behind: list[tuple[Span, dict[str, str]]] = []
        for span in reversed(whole):
            headers = _headers(file, span[0])
            page = _page_of(store, headers)
            if page is not None and _is_acknowledged(store, page, name, span[0]):
                break
            if page is not None:
                dropped.add(headers.get("WARC-Record-ID", ""))
            behind.append((span, headers))
        kept = whole[: len(whole) - len(behind)]
        for span, headers in reversed(behind):
            if not dropped & {headers.get("WARC-Record-ID"), headers.get("WARC-Concurrent-To")}:
                kept.append(span)
        return kept if len(kept) > 1 else []

    return keep


def _headers(file: BinaryIO, start: int) -> dict[str, str]:
    """The headers of the record at an offset; none if it makes no sense, then it is no visit of ours."""
    record = record_at(file, start)
    headers: dict[str, str] = {} if record is None else record.headers.to_dict()
    return headers


def _page_of(store: Store, headers: dict[str, str]) -> int | None:
    """The page that a record is a capture of, if it is one."""
    if headers.get("WARC-Type") not in _CAPTURES:
        return None
    page = store.find(headers.get("WARC-Target-URI", ""))
    return None if page is None else page.id


def _is_acknowledged(store: Store, page: int, name: str, start: int) -> bool:
    return any(known.warc_file == name and known.warc_offset == start for known in store.captures(np.array([page])))
