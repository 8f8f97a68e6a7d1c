"""Imports histories from CDX servers and TimeMaps, politely and resumably.

Each response is stored before the next request, together with where to resume. So an interrupted import requests only
what is missing.
"""

from __future__ import annotations

import hashlib
import io
from dataclasses import replace

from recrawl.detect import decoded
from recrawl.errors import InputError
from recrawl.fetch.archives.archive_client import ArchiveClient
from recrawl.fetch.archives.archive_url import CdxAddress, MapAddress, archive_address
from recrawl.fetch.archives.cdx_client import CdxClient, CdxState
from recrawl.fetch.archives.memento_client import MapState, MementoClient
from recrawl.formats.cdx.cdx_responses import read_answer
from recrawl.formats.columnar.capture_batches import ReadReport
from recrawl.formats.memento.timemap import TimeMap, read_timemap, to_batches
from recrawl.store.base import Store
from recrawl.time import Clock
from recrawl.transfer.archive_import import ImportedSource, Importer
from recrawl.transfer.memento_bytes import MementoList


class RemoteArchives:
    """Queries archives and records the captures they list."""

    def __init__(
        self, store: Store, importer: Importer, client: ArchiveClient, clock: Clock, mementos: MementoList | None = None
    ) -> None:
        """``mementos`` receives all listed captures, if their bytes are wanted, too."""
        self._store = store
        self._mementos = mementos
        self._importer = importer
        self._client = client
        self._clock = clock

    async def bring(self, url: str, report: ReadReport) -> ImportedSource:
        """Import what the URL of a CDX query or of a TimeMap lists now: the list may have grown.

        An interrupted query resumes, if it is the same one.

        Raises:
            InputError: the URL is neither.
            FetchError: the archive fails; the responses so far are stored.
        """
        mark = self._importer.begin(self._question(url), _FINGERPRINT)
        if mark.finished or not mark.position:  # an archive grows, so it is queried again; an interrupted query resumes
            mark = replace(mark, position=0, accepted=0, finished=False)
            self._store.save_state(self._question(url), b"", self._clock.now())
        taken = ImportedSource(mark)
        match archive_address(url):
            case CdxAddress() as address:
                taken = await self._cdx(url, address, taken, report)
            case MapAddress() as address:
                taken = await self._maps(url, address, taken, report)
            case _:
                raise InputError(
                    "this URL is neither a CDX query nor a TimeMap",
                    "Use one like https://ARCHIVE/cdx/search/cdx?url=example.org/* or "
                    "https://ARCHIVE/timemap/link/http://example.org/.",
                    source=url,
                )
        mark = replace(taken.mark, skipped=sum(report.skipped.values()), broken=report.bad, finished=True)
        self._store.set_import_mark(mark)
        return replace(taken, mark=mark)

    async def _cdx(self, url: str, address: CdxAddress, so_far: ImportedSource, report: ReadReport) -> ImportedSource:
        server = CdxClient(self._client, address.endpoint, body_of=decoded, dialect=address.dialect)
        saved = self._store.load_state(self._question(url))
        async for answer in server.answers(address.query, CdxState.from_text(saved.decode()) if saved else None):
            batches = list(read_answer(io.BytesIO(answer.body), answer.url, report))
            taken = self._importer.take(answer.url, _digest(answer.body), batches, report)
            if self._mementos is not None:
                for batch in batches:
                    self._mementos.of_index(batch.column("url").to_pylist(), batch.column("time").to_numpy())
            so_far = self._went_on(so_far, taken, answer.state.to_text())
        return so_far

    async def _maps(self, url: str, address: MapAddress, so_far: ImportedSource, report: ReadReport) -> ImportedSource:
        def read(data: bytes, source: str) -> TimeMap:
            return read_timemap(data, source, report)

        archive = MementoClient(self._client, timemap=address.template, body_of=decoded, read_map=read)
        saved = self._store.load_state(self._question(url))
        state = MapState.from_text(saved.decode()) if saved else None
        async for answer in archive.timemaps(address.url, address.form, state):
            batches = to_batches(answer.timemap.mementos, report, answer.url)
            taken = self._importer.take(answer.url, _digest(answer.body), batches, report)
            if self._mementos is not None:
                self._mementos.of_map(answer.timemap)
            so_far = self._went_on(so_far, taken, answer.state.to_text())
        return so_far

    def _question(self, url: str) -> str:
        """The name under which the store holds how far a query was read; each response has its own URL.

        Captures that were listed while bytes were not wanted do not wait for them, so that is another query.
        """
        return f"import {url}" if self._mementos is None else f"import with bytes {url}"

    def _went_on(self, so_far: ImportedSource, taken: ImportedSource, state: str) -> ImportedSource:
        """Record that one more response is stored, and where to resume."""
        mark = so_far.mark
        mark = replace(mark, position=mark.position + 1, accepted=mark.accepted + taken.accepted)
        self._store.set_import_mark(mark)
        self._store.save_state(mark.source, state.encode(), self._clock.now())
        return ImportedSource(mark, so_far.accepted + taken.accepted, so_far.new + taken.new)


_FINGERPRINT = "remote"
"""The responses of an archive cannot be compared without another request."""


def _digest(body: bytes) -> str:
    return hashlib.blake2b(body, digest_size=16).hexdigest()
