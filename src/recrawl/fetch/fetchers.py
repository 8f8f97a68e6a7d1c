"""Fetchers by name, and what they are given: the entry points of the group ``recrawl.fetchers``.

A fetcher is opened by a callable that takes :class:`FetchTerms` and returns an asynchronous context manager of a
:class:`~recrawl.fetch.request.Fetcher`. The setting ``fetch.fetcher`` chooses one for the pages of a crawl. Clients of
other archives always use HTTP.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from contextlib import AbstractAsyncContextManager
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import TypeAlias

from recrawl import plugins
from recrawl.fetch.http.address_policy import AddressPolicy
from recrawl.fetch.http.bytes_in_flight import BytesInFlight
from recrawl.fetch.http.dns import HostResolver
from recrawl.fetch.http.http_fetcher import HttpFetcher, TransferLimits
from recrawl.fetch.request import Fetcher
from recrawl.time import Clock


@dataclass(frozen=True, slots=True)
class FetchTerms:
    """What a fetcher works with, and the limits it must keep."""

    clock: Clock
    """Captures have its time."""
    user_agent: str
    """Sent with every request."""
    limits: TransferLimits = field(default_factory=TransferLimits)
    """How long and how much one request may take."""
    reach: AddressPolicy | None = None
    """Addresses that may be connected to; ``None`` for all."""
    names: HostResolver | None = None
    """Finds addresses by these rules, and is shared with the IP limits; ``None``: the fetcher has its own."""
    http2: bool = True
    """Whether HTTP/2 may be spoken."""
    in_flight: BytesInFlight | None = None
    """Bounds the bytes of all answers together, if given."""


OpenFetcher: TypeAlias = Callable[[FetchTerms], AbstractAsyncContextManager[Fetcher]]
"""Opens a fetcher, which is closed when its context ends."""


def http_fetcher(terms: FetchTerms) -> AbstractAsyncContextManager[Fetcher]:
    """The built-in fetcher for http and https."""
    return HttpFetcher(
        terms.clock,
        terms.user_agent,
        limits=terms.limits,
        reach=terms.reach,
        names=terms.names,
        http2=terms.http2,
        in_flight=terms.in_flight,
    )


FETCHERS: Mapping[str, OpenFetcher] = MappingProxyType({"http": http_fetcher})
"""The built-in fetchers by name."""


def fetcher_named(name: str) -> OpenFetcher:
    """How to open a fetcher: a built-in one, one of an entry point, or ``package.module:Name``.

    Raises:
        ConfigError: there is none, or it cannot be loaded.
    """
    opener: OpenFetcher = plugins.find("fetcher", name, FETCHERS)
    return opener
