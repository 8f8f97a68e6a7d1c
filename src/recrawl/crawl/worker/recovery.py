"""Recovery: brings the files and leases of a dead worker into a clear state before the next one starts.

A visit counts once the store acknowledges it, and its bytes are on disk before that. So a file that a dead worker left
open may hold records of unacknowledged visits after the last acknowledged record. Their pages are still due and will be
fetched again. The records are cut off: a reader finds both visit and record, or neither.
"""

from __future__ import annotations

from pathlib import Path
from typing import BinaryIO

from recrawl.crawl.control.worker_registry import WorkerRegistry, dead_workers
from recrawl.formats.warc.warc_repair import Keeper, Span
from recrawl.formats.warc.warc_stream import record_at
from recrawl.store.base import Store

_MOST = 10_000
"""Maximum captures after the last acknowledged one that can have been in flight. More belong to another store."""
_CAPTURES = frozenset({"response", "revisit", "resource"})


def give_back(store: Store, folder: Path, now: float, pause: float) -> list[str]:
    """Return the leases of workers that died in a workspace and remove them from the worker registry; their names.

    They may have requested a host just before, so those hosts pause first: as long as they ask for, at least ``pause``
    seconds.
    """
    dead = []
    for worker in dead_workers(folder):
        store.release_worker(worker, now, pause=pause)
        WorkerRegistry(store, worker).leave(now)
        dead.append(worker)
    return dead


def acknowledged_by(store: Store) -> Keeper:
    """Keeps a file up to the last record that the store acknowledges, and later records that belong to no page.

    Robots.txt, sitemaps and documents about the archive are not visits, and stay. A file with nothing but its first
    record is deleted. If too many records are unknown, another store must have acknowledged them, and all stay. Reads
    only the records after the last acknowledged one.
    """

    def keep(file: BinaryIO, name: str, whole: list[Span]) -> list[Span]:
        known = set(store.capture_offsets(name).tolist())
        last = next((place for place in reversed(range(len(whole))) if whole[place][0] in known), -1)
        kept, dropped = whole[: last + 1], set[str]()
        for span in whole[last + 1 :]:
            headers = _headers(file, span[0])
            if _is_of_a_page(store, headers):
                dropped.add(headers["WARC-Record-ID"])
            elif headers.get("WARC-Concurrent-To") not in dropped:
                kept.append(span)
        if len(dropped) > _MOST:
            return whole
        return kept if len(kept) > 1 else []

    return keep


def _headers(file: BinaryIO, start: int) -> dict[str, str]:
    """The headers of the record at an offset; empty if it is damaged, then it is no visit of ours."""
    record = record_at(file, start)
    headers: dict[str, str] = {} if record is None else record.headers.to_dict()
    return headers


def _is_of_a_page(store: Store, headers: dict[str, str]) -> bool:
    """Whether a record is a capture of a page."""
    return headers.get("WARC-Type") in _CAPTURES and store.find(headers.get("WARC-Target-URI", "")) is not None
