"""The URLFrontier service over gRPC: translates messages to calls of :class:`recrawl.app.frontier.UrlFrontier`.

Rules of this file:

1. The event loop only moves messages. The store is read and written in threads, one at a time for each crawl.
2. An item is acknowledged once it is committed. A stream that breaks loses nothing that was acknowledged; what was
   handed out and never sent is withdrawn.
3. A client cannot fill the memory: items wait in the stream while too many bytes are held, and what is too large to be
   stored is answered without being kept.
"""

from __future__ import annotations

import asyncio
import hmac
import math
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from functools import partial
from typing import Any, Final, TypeVar

from recrawl.app.frontier.client_metadata import said_of
from recrawl.app.frontier.crawls import DEFAULT, FrontierCrawls
from recrawl.app.frontier.url_frontier import (
    LARGEST_METADATA,
    LONGEST_URL,
    MOST,
    FrontierUrl,
    Status,
    UrlFrontier,
    UrlReport,
    unpacked,
)
from recrawl.errors import ConfigError, RecrawlError, StoreError, require
from recrawl.store.client_pages import ListedPage, QueueCounts
from recrawl.time import DAY
from recrawl.web.urlfrontier.group_writer import GroupWriter
from recrawl.web.urlfrontier.messages import Messages, messages

T = TypeVar("T")

LARGEST_MESSAGE = 4 * 1024 * 1024
"""Bytes of one message."""
LARGEST_ITEM = LONGEST_URL + 2 * LARGEST_METADATA
"""Bytes of one item of a stream; a larger one is skipped."""
LONGEST_ID = 16_384
"""Letters of the id of an item, which is held until it is acknowledged."""
HELD = 64 * 1024 * 1024
"""Bytes of items that all streams together hold at once."""
AT_ONCE = 1_000
"""Items that one stream holds at once."""
STREAMS = 512
"""Calls at once."""
_COMMIT = 4_000
"""Items in one commit."""
_LIST = 1_000
"""URLs that are listed in one read."""
_SIZE = 100
"""Results where a client names no number."""
_LONGEST_PAGE = 10_000
GRACE = 3.0
"""Seconds that calls under way get when the service ends."""


@dataclass(frozen=True, slots=True)
class ServiceTerms:
    """Where and to whom the service answers."""

    host: str = "127.0.0.1"
    port: int = 7071
    token: str = ""
    """What clients send as ``authorization: Bearer``; empty for none."""
    certificate: bytes = b""
    """PEM of the server's certificate and chain, for TLS; empty for none."""
    key: bytes = b""
    client_ca: bytes = b""
    """PEM of authorities one of which must have signed the certificate of a client; empty for none."""


class _CrawlWriters:
    """The threads of one crawl: one that writes reports, a few that read."""

    def __init__(self, frontier: UrlFrontier) -> None:
        self.frontier = frontier
        self.executor = ThreadPoolExecutor(1, "frontier writer")
        self.items = GroupWriter(self._put, self.executor, _COMMIT)
        self.found = GroupWriter(self._discover, self.executor, _COMMIT)

    def _put(self, items: list[Any]) -> list[Status]:
        """Store items of PutURLs: found ones first, so that what was found and fetched in one batch is both."""
        status = [Status.OK] * len(items)
        kinds = [item.WhichOneof("item") for item in items]
        found = [row for row, kind in enumerate(kinds) if kind == "discovered"]
        known = [row for row, kind in enumerate(kinds) if kind == "known"]
        for row in (row for row, kind in enumerate(kinds) if kind is None):
            status[row] = Status.SKIPPED
        if found:
            told = self._discover([items[row].discovered.info for row in found])
            for row, one in zip(found, told, strict=True):
                status[row] = one
        if known:
            for row, one in zip(known, self.frontier.seen([_report(items[row].known) for row in known]), strict=True):
                status[row] = one
        return status

    def _discover(self, infos: list[Any]) -> list[Status]:
        metadata = [_metadata(info) for info in infos]
        return self.frontier.discover([info.url for info in infos], metadata if any(metadata) else None)


class FrontierService:
    """The methods of the service, by their names."""

    def __init__(self, crawls: FrontierCrawls, address: str, log: Callable[[str, Exception], None]) -> None:
        """``log`` is told of failures of our own code."""
        self._crawls = crawls
        self._address = address
        self._log = log
        self._make: Messages = messages()
        self._writers: dict[str, _CrawlWriters] = {}
        self._held = 0
        self._room = asyncio.Condition()
        self._tasks: set[asyncio.Future[Any]] = set()
        self._turn = 0
        """Which crawl is asked first by the next client that names none."""
        self._reading = ThreadPoolExecutor(4, "frontier reader")

    async def close(self) -> None:
        """Wait for what is being written."""
        await asyncio.gather(*self._tasks, return_exceptions=True)
        for one in self._writers.values():
            one.executor.shutdown()
        self._reading.shutdown()

    # -- crawls -----------------------------------------------------------------------------------

    async def _read(self, work: Callable[[], T]) -> T:
        return await asyncio.get_running_loop().run_in_executor(self._reading, work)

    async def _writer(self, crawl: str) -> _CrawlWriters:
        name = crawl or DEFAULT
        if name not in self._writers:
            frontier = await self._read(lambda: self._crawls.get(name))
            self._writers.setdefault(name, _CrawlWriters(frontier))
        return self._writers[name]

    async def _find(self, crawl: str) -> UrlFrontier | None:
        return await self._read(lambda: self._crawls.find(crawl))

    async def ListNodes(self, _request: Any, _context: Any) -> Any:  # noqa: N802, ANN401
        """The address of this server."""
        return self._make.StringList(values=[self._address])

    async def ListCrawls(self, _request: Any, _context: Any) -> Any:  # noqa: N802, ANN401
        """Ids of crawls that have URLs."""

        def used() -> list[str]:
            found = ((name, self._crawls.find(name)) for name in self._crawls.names)
            return [name for name, frontier in found if frontier is not None and frontier.is_used]

        return self._make.StringList(values=await self._read(used))

    async def DeleteCrawl(self, request: Any, _context: Any) -> Any:  # noqa: N802, ANN401
        """Take all URLs of a crawl out of its schedule."""
        frontier = await self._find(request.value)
        return self._make.Long(value=0 if frontier is None else await self._read(frontier.remove))

    # -- queues -----------------------------------------------------------------------------------

    async def ListQueues(self, request: Any, _context: Any) -> Any:  # noqa: N802, ANN401
        """Names of queues."""
        frontier, size = await self._find(request.crawlID), min(request.size or _SIZE, _LONGEST_PAGE)
        crawl = request.crawlID or DEFAULT
        if frontier is None:
            return self._make.QueueList(crawlID=crawl, start=request.start)
        found = await self._read(partial(frontier.queues, request.start, size, inactive=request.include_inactive))
        return self._make.QueueList(
            values=found.names, total=found.total, start=request.start, size=len(found.names), crawlID=crawl
        )

    async def GetStats(self, request: Any, _context: Any) -> Any:  # noqa: N802, ANN401
        """Counts of a queue or of a crawl."""
        frontier = await self._find(request.crawlID)
        found = QueueCounts(0, 0, 0, 0, 0)
        if frontier is not None:
            found = await self._read(partial(frontier.counts, request.key))
        return self._make.Stats(
            size=found.active,
            inProcess=min(found.in_flight, 2**32 - 1),
            counts={"completed": found.done, "active_queues": found.active_queues},
            numberOfQueues=found.queues,
            crawlID=request.crawlID or DEFAULT,
        )

    async def DeleteQueue(self, request: Any, _context: Any) -> Any:  # noqa: N802, ANN401
        """Take the URLs of a queue out of the schedule."""
        frontier = await self._find(request.crawlID)
        if frontier is None or not request.key:
            return self._make.Long(value=0)
        return self._make.Long(value=await self._read(partial(frontier.remove, request.key)))

    async def BlockQueueUntil(self, request: Any, _context: Any) -> Any:  # noqa: N802, ANN401
        """Hand out nothing of a queue for a while."""
        if (frontier := await self._find(request.crawlID)) is not None:
            await self._read(partial(frontier.block, request.key, float(request.time)))
        return self._make.Empty()

    async def SetDelay(self, request: Any, _context: Any) -> Any:  # noqa: N802, ANN401
        """Let queues rest between two hand-outs."""
        frontier = (await self._writer(request.crawlID)).frontier
        await self._read(partial(frontier.set_delay, request.key, float(request.delay_requestable)))
        return self._make.Empty()

    async def SetCrawlLimit(self, request: Any, _context: Any) -> Any:  # noqa: N802, ANN401
        """Limit how many URLs of a queue are done."""
        if (frontier := await self._find(request.crawlID)) is not None:
            await self._read(partial(frontier.set_limit, request.key, request.limit))
        return self._make.Empty()

    async def SetActive(self, request: Any, _context: Any) -> Any:  # noqa: N802, ANN401
        """Pause or resume all crawls."""

        def change() -> None:
            for name in self._crawls.names:
                if (frontier := self._crawls.find(name)) is not None:
                    frontier.set_active(request.state)

        await self._read(change)
        return self._make.Empty()

    async def GetActive(self, _request: Any, _context: Any) -> Any:  # noqa: N802, ANN401
        """Whether URLs are handed out."""
        frontier = (await self._writer(DEFAULT)).frontier
        return self._make.Boolean(state=frontier.is_active)

    async def SetLogLevel(self, request: Any, _context: Any) -> Any:  # noqa: N802, ANN401
        """Set the level of the log of all crawls."""
        name = self._make.LogLevelParams.Level.Name(request.level) if request.level in range(5) else "INFO"

        def change() -> None:
            for crawl in self._crawls.names:
                if (frontier := self._crawls.find(crawl)) is not None:
                    frontier.set_log_level("debug" if name == "TRACE" else name.lower())

        await self._read(change)
        return self._make.Empty()

    # -- URLs -------------------------------------------------------------------------------------

    async def GetURLs(self, request: Any, context: Any) -> None:  # noqa: N802, ANN401
        """Hand out URLs, batch by batch as the client takes them."""
        wanted = request.crawlID if request.WhichOneof("item") == "crawlID" else None
        if wanted is None and request.key:
            wanted = DEFAULT
        names = self._in_turn() if wanted is None else [wanted or DEFAULT]
        queues = request.max_queues or math.inf
        for name in names:
            frontier = await self._find(name)
            while frontier is not None and queues > 0:
                found = await self._read(
                    partial(
                        frontier.next,
                        per_queue=request.max_urls_per_queue,
                        queues=int(min(queues, MOST)),
                        key=request.key,
                        lease=float(request.delay_requestable),
                    )
                )
                await self._send(frontier, found, name, context)
                queues -= len({one.key for one in found})
                if len(found) < MOST:
                    break

    def _in_turn(self) -> list[str]:
        """All crawls, each first in its turn."""
        names = self._crawls.names
        self._turn = (self._turn + 1) % len(names)
        return [*names[self._turn :], *names[: self._turn]]

    async def _send(self, frontier: UrlFrontier, found: Sequence[FrontierUrl], crawl: str, context: Any) -> None:  # noqa: ANN401
        """Write URLs into a stream. If it ends before, those that were not sent are withdrawn."""
        sent = 0
        try:
            for one in found:
                await context.write(self._info(one.url, one.key, one.metadata, crawl))
                sent += 1
        finally:
            if sent < len(found):
                self._keep(self._read(partial(frontier.take_back, found[sent:])))

    def _keep(self, work: Awaitable[Any]) -> None:
        """Let something go on although its call has ended."""
        task = asyncio.ensure_future(work)
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    def _info(self, url: str, key: str, metadata: Any, crawl: str) -> Any:  # noqa: ANN401
        made = self._make.URLInfo(url=url, key=key, crawlID=crawl)
        for name, values in metadata.items():
            made.metadata[name].values.extend(values)
        return made

    async def PutURLs(self, stream: AsyncIterator[Any], context: Any) -> None:  # noqa: N802, ANN401
        """Store items, and acknowledge each once it is committed."""
        waiting: list[tuple[str, str, Any, int]] = []
        """Id, crawl, item and its size; no item where it is too large."""
        arrived, over = asyncio.Event(), False

        async def read() -> None:
            nonlocal over
            try:
                async for item in stream:
                    size = item.ByteSize()
                    info = item.known.info if item.WhichOneof("item") == "known" else item.discovered.info
                    number, crawl = item.ID or info.url, info.crawlID
                    large = size > LARGEST_ITEM
                    kept = min(size, len(number) + len(crawl)) if large else size
                    await self._wait_for_room(waiting)
                    self._held += kept
                    waiting.append((number, crawl, None if large else item, kept))
                    arrived.set()
                    if len(number) > LONGEST_ID:
                        return
            finally:
                over = True
                arrived.set()

        reading = asyncio.create_task(read())
        try:
            while True:
                await arrived.wait()
                arrived.clear()
                while waiting:
                    some, waiting[:] = waiting[:], []
                    try:
                        await self._put(some, context)
                    finally:
                        await self._free(sum(size for *_, size in some))
                if over and not waiting:
                    break
            await reading
        finally:
            reading.cancel()
            await asyncio.gather(reading, return_exceptions=True)
            await asyncio.shield(self._free(sum(size for *_, size in waiting)))

    async def _wait_for_room(self, waiting: Sequence[object]) -> None:
        """Wait while this stream holds many items, or all streams hold many bytes. One item is always taken."""
        if len(waiting) < AT_ONCE and self._held < HELD:
            return
        async with self._room:
            await self._room.wait_for(lambda: not waiting or (len(waiting) < AT_ONCE and self._held < HELD))

    async def _free(self, size: int) -> None:
        self._held -= size
        async with self._room:
            self._room.notify_all()

    async def _put(self, some: Sequence[tuple[str, str, Any, int]], context: Any) -> None:  # noqa: ANN401
        status: list[Status] = [Status.SKIPPED] * len(some)
        by_crawl: dict[str, list[int]] = {}
        for row, (_, crawl, item, _) in enumerate(some):
            if item is not None:
                by_crawl.setdefault(crawl, []).append(row)
        for crawl, rows in by_crawl.items():
            told = await self._stored(crawl, [some[row][2] for row in rows], "items")
            for row, one in zip(rows, told, strict=True):
                status[row] = one
        make = self._make.AckMessage
        for (number, *_), one in zip(some, status, strict=True):
            await context.write(make(ID=number, status=int(one)))

    async def _stored(self, crawl: str, items: Sequence[Any], kind: str) -> list[Status]:
        """What became of items: all are to be sent again if the store is away, none if there is no such crawl."""
        try:
            writers = await self._writer(crawl)
            return await (writers.items if kind == "items" else writers.found)(items)
        except ConfigError:
            return [Status.SKIPPED] * len(items)
        except StoreError:
            return [Status.FAIL] * len(items)
        except Exception as error:  # noqa: BLE001 - the stream goes on
            self._log("items could not be stored", error)
            return [Status.FAIL] * len(items)

    async def PutDiscovered(self, stream: AsyncIterator[Any], context: Any) -> None:  # noqa: N802, ANN401
        """Store URLs that were found, batch by batch."""
        async for batch in stream:
            status: list[Status] = [Status.SKIPPED] * len(batch.items)
            by_crawl: dict[str, list[int]] = {}
            for row, info in enumerate(batch.items):
                by_crawl.setdefault(info.crawlID, []).append(row)
            for crawl, rows in by_crawl.items():
                infos = [batch.items[row] for row in rows] if len(by_crawl) > 1 else list(batch.items)
                for row, one in zip(rows, await self._stored(crawl, infos, "found"), strict=True):
                    status[row] = one
            await context.write(self._make.BatchAck(ID=batch.ID, statuses=[int(one) for one in status]))

    async def GetURLStatus(self, request: Any, context: Any) -> Any:  # noqa: N802, ANN401
        """What is known of a URL."""
        import grpc

        frontier = await self._find(request.crawlID)
        found = None if frontier is None else await self._read(partial(frontier.find, request.url))
        if found is None:
            return await context.abort(grpc.StatusCode.NOT_FOUND, "This URL is not known.")
        return self._item(found, request.crawlID or DEFAULT)

    def _item(self, found: ListedPage, crawl: str) -> Any:  # noqa: ANN401
        never = found.done or not math.isfinite(found.due)
        item = self._make.URLItem(ID=found.url, creation_date=max(int(found.discovered), 0))
        item.known.info.CopyFrom(self._info(found.url, found.host, unpacked(found.metadata), crawl))
        item.known.refetchable_from_date = 0 if never else max(math.ceil(found.due), 1)
        return item

    async def ListURLs(self, request: Any, context: Any) -> None:  # noqa: N802, ANN401
        """URLs by the order in which they were found."""
        frontier = await self._find(request.crawlID)
        start, after, left = request.start, 0, request.size or _SIZE
        while frontier is not None and left > 0:
            found = await self._read(
                partial(frontier.list_urls, start, min(left, _LIST), after=after, **_choice(request))
            )
            for one in found:
                await context.write(self._item(one, request.crawlID or DEFAULT))
            if len(found) < min(left, _LIST):
                return
            start, after, left = 0, found[-1].page, left - len(found)

    async def CountURLs(self, request: Any, _context: Any) -> Any:  # noqa: N802, ANN401
        """The number of URLs."""
        frontier = await self._find(request.crawlID)
        if frontier is None:
            return self._make.Long(value=0)
        return self._make.Long(value=await self._read(partial(frontier.count_urls, **_choice(request))))

    async def PurgeURLs(self, request: Any, _context: Any) -> Any:  # noqa: N802, ANN401
        """Take URLs out of the schedule that were found some days ago."""
        frontier = await self._find(request.crawlID)
        if frontier is None or not request.days:
            return self._make.Long(value=0)
        purge = partial(frontier.remove, request.key, older=request.days * DAY)
        return self._make.Long(value=await self._read(purge))


def _choice(request: Any) -> dict[str, Any]:  # noqa: ANN401
    """Which URLs are listed or counted."""
    return {"key": request.key, "text": request.filter, "any_case": request.ignoreCase}


def _metadata(info: Any) -> dict[str, list[str]]:  # noqa: ANN401
    return {name: list(values.values) for name, values in info.metadata.items()} if info.metadata else {}


def _report(known: Any) -> UrlReport:  # noqa: ANN401
    metadata = _metadata(known.info)
    visit, retry_after = said_of(metadata)
    return UrlReport(known.info.url, visit, metadata, float(known.refetchable_from_date), retry_after)


class FrontierServer:
    """A gRPC server with the service."""

    def __init__(self, crawls: FrontierCrawls, terms: ServiceTerms, log: Callable[[str, Exception], None]) -> None:
        self._crawls, self._terms, self._log = crawls, terms, log

    async def serve(self, ready: Callable[[int], None], over: asyncio.Event) -> None:
        """Serve until ``over`` is set; ``ready`` gets the port once clients can connect.

        Raises:
            RecrawlError: the address is in use, or the certificate cannot be used.
        """
        grpc: Final = require("grpc", "frontier")
        require("google.protobuf", "frontier")
        terms = self._terms
        shown = f"[{terms.host}]" if ":" in terms.host else terms.host
        server = grpc.aio.server(
            options=[
                ("grpc.max_receive_message_length", LARGEST_MESSAGE),
                ("grpc.max_metadata_size", 16 * 1024),
                ("grpc.so_reuseport", 0),
            ],
            maximum_concurrent_rpcs=STREAMS,
        )
        address = f"{shown}:{terms.port}"
        try:
            if terms.certificate:
                credentials = grpc.ssl_server_credentials(
                    [(terms.key, terms.certificate)], terms.client_ca or None, bool(terms.client_ca)
                )
                port = server.add_secure_port(address, credentials)
            else:
                port = server.add_insecure_port(address)
        except RuntimeError as error:
            raise RecrawlError(
                f"Nothing can be served at {address}.", "Give another address with --listen, or check the certificate."
            ) from error
        service = FrontierService(self._crawls, f"{shown}:{port}", self._log)
        server.add_generic_rpc_handlers((_handlers(grpc, service, terms.token, self._log),))
        await server.start()
        try:
            ready(port)
            await over.wait()
        finally:
            await server.stop(GRACE)
            await service.close()


def _handlers(grpc: Any, service: FrontierService, token: str, log: Callable[[str, Exception], None]) -> Any:  # noqa: ANN401
    """The handlers of all methods, behind the check of the token."""
    made = messages()
    kinds = {
        (False, False): grpc.unary_unary_rpc_method_handler,
        (False, True): grpc.unary_stream_rpc_method_handler,
        (True, True): grpc.stream_stream_rpc_method_handler,
    }
    handlers = {
        method.name: kinds[method.takes_stream, method.gives_stream](
            _guarded(grpc, getattr(service, method.name), token, log),
            request_deserializer=method.request.FromString,
            response_serializer=method.response.SerializeToString,
        )
        for method in made.methods
    }
    return grpc.method_handlers_generic_handler(made.service, handlers)


def _guarded(
    grpc: Any,  # noqa: ANN401 - the module
    work: Callable[[Any, Any], Awaitable[Any]],
    token: str,
    log: Callable[[str, Exception], None],
) -> Callable[[Any, Any], Awaitable[Any]]:
    """A method that answers strangers and failures as gRPC does."""
    expected = f"Bearer {token}".encode()

    async def answer(request: Any, context: Any) -> Any:  # noqa: ANN401
        if token:
            said = dict(context.invocation_metadata() or ()).get("authorization", "")
            shown = said.encode() if isinstance(said, str) else bytes(said)
            if not hmac.compare_digest(shown, expected):
                await context.abort(grpc.StatusCode.UNAUTHENTICATED, "Send the token as authorization: Bearer.")
        try:
            return await work(request, context)
        except StoreError as error:
            await context.abort(grpc.StatusCode.UNAVAILABLE, str(error))
        except RecrawlError as error:
            await context.abort(grpc.StatusCode.INVALID_ARGUMENT, str(error))
        except grpc.aio.AbortError:
            raise
        except Exception as error:  # noqa: BLE001 - reported, and answered without details
            log("a call failed", error)
            await context.abort(grpc.StatusCode.INTERNAL, "recrawl itself failed here; see its log.")

    return answer
