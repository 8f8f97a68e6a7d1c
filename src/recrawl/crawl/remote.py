"""Histories from archives that answer questions: CDX servers and TimeMaps, politely and resumably.

Each answer is kept before the next is asked for, together with where to go on; so an import that was interrupted
asks only for what is missing.
"""

from __future__ import annotations

import hashlib
import io
from dataclasses import replace

from recrawl.crawl.importing import Importer
from recrawl.detect import decoded
from recrawl.errors import InputError
from recrawl.fetch.archive_client import ArchiveClient
from recrawl.fetch.archive_url import CdxAddress, MapAddress, archive_address
from recrawl.fetch.cdx_server import CdxServer, CdxState
from recrawl.fetch.memento import MapState, MementoClient
from recrawl.formats.captures import Report
from recrawl.formats.cdx_answers import read_answer
from recrawl.formats.timemap import TimeMap, read_timemap, to_batches
from recrawl.store.base import Store
from recrawl.store.values import ImportMark
from recrawl.time import Clock


class RemoteArchives:
    """Asks archives for what they hold and notes the captures they list."""

    def __init__(self, store: Store, importer: Importer, client: ArchiveClient, clock: Clock) -> None:
        self._store = store
        self._importer = importer
        self._client = client
        self._clock = clock

    async def bring(self, url: str, report: Report) -> ImportMark:
        """Import what the URL of a CDX query or of a TimeMap lists.

        Raises:
            InputError: the URL is neither.
            FetchError: the archive fails; what it answered so far is kept.
        """
        mark = self._store.import_mark(url) or ImportMark(url, _FINGERPRINT)
        if mark.finished:
            report.skip("imported before", mark.accepted)
            return mark
        match archive_address(url):
            case CdxAddress() as address:
                mark = await self._cdx(url, address, mark, report)
            case MapAddress() as address:
                mark = await self._maps(url, address, mark, report)
            case _:
                raise InputError(
                    "this URL is neither a CDX query nor a TimeMap",
                    "Use one like https://ARCHIVE/cdx/search/cdx?url=example.org/* or "
                    "https://ARCHIVE/timemap/link/http://example.org/.",
                    source=url,
                )
        self._store.set_import_mark(replace(mark, finished=True))
        return mark

    async def _cdx(self, url: str, address: CdxAddress, mark: ImportMark, report: Report) -> ImportMark:
        server = CdxServer(self._client, address.endpoint, body_of=decoded, dialect=address.dialect)
        saved = self._store.load_state(_state_name(url))
        async for answer in server.answers(address.query, CdxState.from_text(saved.decode()) if saved else None):
            batches = read_answer(io.BytesIO(answer.body), answer.url, report)
            taken = self._importer.take(answer.url, _digest(answer.body), batches, report)
            mark = self._went_on(mark, taken, answer.state.to_text())
        return mark

    async def _maps(self, url: str, address: MapAddress, mark: ImportMark, report: Report) -> ImportMark:
        def read(data: bytes, source: str) -> TimeMap:
            return read_timemap(data, source, report)

        archive = MementoClient(self._client, timemap=address.template, body_of=decoded, read_map=read)
        saved = self._store.load_state(_state_name(url))
        state = MapState.from_text(saved.decode()) if saved else None
        async for answer in archive.timemaps(address.url, address.form, state):
            batches = to_batches(answer.timemap.mementos)
            taken = self._importer.take(answer.url, _digest(answer.body), batches, report)
            mark = self._went_on(mark, taken, answer.state.to_text())
        return mark

    def _went_on(self, mark: ImportMark, taken: ImportMark, state: str) -> ImportMark:
        """One more answer is kept: note that, and where to go on."""
        mark = replace(mark, position=mark.position + 1, accepted=mark.accepted + taken.accepted)
        self._store.set_import_mark(mark)
        self._store.save_state(_state_name(mark.source), state.encode(), self._clock.now())
        return mark


_FINGERPRINT = "remote"
"""What an archive answers cannot be compared without asking again."""


def _state_name(url: str) -> str:
    return f"import {url}"


def _digest(body: bytes) -> str:
    return hashlib.blake2b(body, digest_size=16).hexdigest()
