"""Histories from archives that answer questions: CDX servers and TimeMaps, politely and resumably.

Each answer is kept before the next is asked for, together with where to go on; so an import that was interrupted
asks only for what is missing.
"""

from __future__ import annotations

import hashlib
import io
from dataclasses import replace

from recrawl.crawl.importing import Importer, Taken
from recrawl.crawl.memento_bytes import MementoList
from recrawl.detect import decoded
from recrawl.errors import InputError
from recrawl.fetch.archive_client import ArchiveClient
from recrawl.fetch.archive_url import CdxAddress, MapAddress, archive_address
from recrawl.fetch.cdx_server import CdxServer, CdxState
from recrawl.fetch.memento import MapState, MementoClient
from recrawl.formats.captures import Report
from recrawl.formats.cdx_answers import read_answer
from recrawl.formats.timemap import read_timemap
from recrawl.formats.timemap_values import TimeMap, to_batches
from recrawl.store.base import Store
from recrawl.time import Clock


class RemoteArchives:
    """Asks archives for what they hold and notes the captures they list."""

    def __init__(
        self, store: Store, importer: Importer, client: ArchiveClient, clock: Clock, mementos: MementoList | None = None
    ) -> None:
        """``mementos`` is told of all that is listed, if the bytes are wanted, too."""
        self._store = store
        self._mementos = mementos
        self._importer = importer
        self._client = client
        self._clock = clock

    async def bring(self, url: str, report: Report) -> Taken:
        """Import what the URL of a CDX query or of a TimeMap lists, now: what it listed before may have grown.

        An asking that was cut short goes on, if it was the same question.

        Raises:
            InputError: the URL is neither.
            FetchError: the archive fails; what it answered so far is kept.
        """
        mark = self._importer.begin(self._question(url), _FINGERPRINT)
        if mark.finished or not mark.position:  # an archive grows, so it is asked anew; an asking cut short goes on
            mark = replace(mark, position=0, accepted=0, finished=False)
            self._store.save_state(self._question(url), b"", self._clock.now())
        taken = Taken(mark)
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

    async def _cdx(self, url: str, address: CdxAddress, so_far: Taken, report: Report) -> Taken:
        server = CdxServer(self._client, address.endpoint, body_of=decoded, dialect=address.dialect)
        saved = self._store.load_state(self._question(url))
        async for answer in server.answers(address.query, CdxState.from_text(saved.decode()) if saved else None):
            batches = list(read_answer(io.BytesIO(answer.body), answer.url, report))
            taken = self._importer.take(answer.url, _digest(answer.body), batches, report)
            if self._mementos is not None:
                for batch in batches:
                    self._mementos.of_index(batch.column("url").to_pylist(), batch.column("time").to_numpy())
            so_far = self._went_on(so_far, taken, answer.state.to_text())
        return so_far

    async def _maps(self, url: str, address: MapAddress, so_far: Taken, report: Report) -> Taken:
        def read(data: bytes, source: str) -> TimeMap:
            return read_timemap(data, source, report)

        archive = MementoClient(self._client, timemap=address.template, body_of=decoded, read_map=read)
        saved = self._store.load_state(self._question(url))
        state = MapState.from_text(saved.decode()) if saved else None
        async for answer in archive.timemaps(address.url, address.form, state):
            batches = to_batches(answer.timemap.mementos)
            taken = self._importer.take(answer.url, _digest(answer.body), batches, report)
            if self._mementos is not None:
                self._mementos.of_map(answer.timemap)
            so_far = self._went_on(so_far, taken, answer.state.to_text())
        return so_far

    def _question(self, url: str) -> str:
        """Under what the store knows how far the answers to a question were read; each answer has its own URL.

        What was listed while bytes were not wanted does not wait for them, so that is another question.
        """
        return f"import {url}" if self._mementos is None else f"import with bytes {url}"

    def _went_on(self, so_far: Taken, taken: Taken, state: str) -> Taken:
        """One more answer is kept: note that, and where to go on."""
        mark = so_far.mark
        mark = replace(mark, position=mark.position + 1, accepted=mark.accepted + taken.accepted)
        self._store.set_import_mark(mark)
        self._store.save_state(mark.source, state.encode(), self._clock.now())
        return Taken(mark, so_far.accepted + taken.accepted, so_far.new + taken.new)


_FINGERPRINT = "remote"
"""What an archive answers cannot be compared without asking again."""


def _digest(body: bytes) -> str:
    return hashlib.blake2b(body, digest_size=16).hexdigest()
