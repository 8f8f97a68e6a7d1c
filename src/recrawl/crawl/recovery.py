"""What a dead worker left behind, brought into a clear state before the next one begins.

A visit counts once the store acknowledges it, and its bytes are on the disk before. So behind the last acknowledged
record of a file that a dead worker left open there may be records of visits that nobody acknowledged. Their pages are
still due and will be fetched again; the records are cut off, and a reader finds either both, visit and record, or none.
"""

from __future__ import annotations

from pathlib import Path
from typing import BinaryIO

from recrawl.crawl.presence import departed
from recrawl.crawl.rollcall import RollCall
from recrawl.formats.warc_repair import Keeper, Span
from recrawl.formats.warc_stream import record_at
from recrawl.store.base import Store

_MOST = 10_000
"""Captures behind the last acknowledged one that can have been in flight. More are the work of another store."""
_CAPTURES = frozenset({"response", "revisit", "resource"})


def give_back(store: Store, folder: Path, now: float, pause: float) -> list[str]:
    """Give back what workers that died in a workspace had leased, and strike them from the roll; their names.

    Nobody knows whether they had just asked a host, so those hosts rest first: as long as they ask for, and no shorter
    than ``pause`` seconds.
    """
    dead = []
    for worker in departed(folder):
        store.release_worker(worker, now, pause=pause)
        RollCall(store, worker).leave(now)
        dead.append(worker)
    return dead


def acknowledged_by(store: Store) -> Keeper:
    """Keeps of a file all up to the last record that the store acknowledges, and behind it what belongs to no page.

    Robots.txt, sitemaps and documents about the archive are no visits, and stay. A file of which nothing but the
    first record is left is not kept. Where so much is unknown that another store must have acknowledged it, all of it
    stays. Reads the records behind the last acknowledged one, and no others.
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
    """The headers of the record at an offset; none if it makes no sense, then it is no visit of ours."""
    record = record_at(file, start)
    headers: dict[str, str] = {} if record is None else record.headers.to_dict()
    return headers


def _is_of_a_page(store: Store, headers: dict[str, str]) -> bool:
    """Whether a record is a capture of a page."""
    return headers.get("WARC-Type") in _CAPTURES and store.find(headers.get("WARC-Target-URI", "")) is not None
