"""HTTP by libcurl: many exchanges at once, each with the bytes exactly as they came over the wire (``transfer.py``).

Rules of this file:
 1. Whatever happens on the remote side becomes a capture.
 2. No connection is opened to an address that is out of reach (``reach.py``), whoever named it. Names are looked up
    by ``names.py`` alone, and the connection goes to the very address that was found.
 3. HTTP/2 is spoken to whoever offers it over TLS, if we are told to.
"""

from __future__ import annotations

import ssl
from collections.abc import Mapping
from types import TracebackType
from typing import Any, Self

from recrawl.errors import require
from recrawl.fetch.names import Names
from recrawl.fetch.open_files import idle_connections
from recrawl.fetch.reach import Reach
from recrawl.fetch.request import Request, checked_user_agent
from recrawl.fetch.transfer import Limits, Transfer
from recrawl.fetch.transfers import Transfers
from recrawl.model import Capture
from recrawl.model.failures import NO_CONNECTION, NO_ROUTE
from recrawl.time import Clock

__all__ = ["HttpFetcher", "Limits"]


class HttpFetcher:
    """Fetches over HTTP with many transfers at once on the running event loop.

    Use it as an async context manager and await all fetches before it ends. ``resolve`` pins
    ``"host:port"`` to an IP address instead of asking DNS. ``reach`` says which addresses may be connected to; without
    it all may. ``names`` finds addresses, and is shared with whoever else needs them; without it the fetcher
    has its own. The capture's time is the clock's; its duration is what libcurl measured. Handles and connections are
    reused; how many requests run at once is the caller's choice.
    """

    def __init__(  # noqa: PLR0913 - who asks, and within which bounds; all but two optional
        self,
        clock: Clock,
        user_agent: str,
        *,
        resolve: Mapping[str, str] | None = None,
        limits: Limits | None = None,
        ca_file: str = "",
        reach: Reach | None = None,
        names: Names | None = None,
        http2: bool = True,
    ) -> None:
        self._pycurl: Any = require("pycurl", "crawl")
        self._clock = clock
        self._user_agent = checked_user_agent(user_agent)
        self._limits = limits or Limits()
        self._names = names or Names(clock, reach=reach, pins=resolve, patience=self._limits.connect)
        self._names_are_ours = names is None
        self._reach = reach
        self._http2 = http2
        self._ca_file = ca_file or ssl.get_default_verify_paths().cafile
        self._transfers = Transfers(self._pycurl, idle_connections(self._limits.connections))
        self._idle: list[Transfer] = []
        self._spelled: dict[str, str] = {}

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self.close()

    async def close(self) -> None:
        """Close all connections. Fetches still running are cancelled."""
        if self._names_are_ours:
            await self._names.close()
        self._transfers.close()
        while self._idle:
            self._idle.pop().curl.close()

    async def fetch(self, request: Request) -> Capture:
        """Ask once and return what came, whatever it was."""
        found = await self._names.find(request.url)
        began = self._clock.now()
        if not found.address:
            return Capture(request.url, began, 0, error=found.error, failure=found.failure)
        transfer = self._idle.pop() if self._idle else self._new_transfer()
        # One that is cancelled here does not return to the idle ones: it may be in the middle of anything.
        try:
            transfer.prepare(request, found.address)
            code, words = await self._transfers.perform(transfer.curl)
        except self._pycurl.error as failure:
            code, words = failure.args
        finally:
            transfer.let_go()
        capture = transfer.capture(request.url, began, code, words)
        self._idle.append(transfer)
        if capture.failure in (NO_CONNECTION, NO_ROUTE):
            self._names.use_next(request.url)
        return capture

    def _new_transfer(self) -> Transfer:
        transfer = Transfer(self._pycurl, self._limits, self._reach, self._spelled)
        options, curl = self._pycurl, transfer.curl
        curl.setopt(options.USERAGENT, self._user_agent)
        version = options.CURL_HTTP_VERSION_2TLS if self._http2 else options.CURL_HTTP_VERSION_1_1
        curl.setopt(options.HTTP_VERSION, version)
        if self._ca_file:
            curl.setopt(options.CAINFO, self._ca_file)
        return transfer
