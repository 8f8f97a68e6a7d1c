"""Fetching: one request in, one capture out; robots.txt; access methods; clients of other archives.

A failed fetch of a page is data: a :class:`recrawl.model.Capture` with status 0 and the reason as text. The clients of
other archives raise a ``FetchError`` after their last retry.
"""

from recrawl.fetch.archives.archive_client import ArchiveClient, ArchivePoliteness, RateLimitedError
from recrawl.fetch.archives.archive_url import CdxAddress, MapAddress, archive_address
from recrawl.fetch.archives.cdx_client import (
    CdxClient,
    CdxDialect,
    CdxServerFilter,
    CdxServerPage,
    CdxServerQuery,
    CdxState,
    Paging,
)
from recrawl.fetch.archives.memento_client import MapForm, MapState, MementoClient, NegotiatedMemento, TimeMapResponse
from recrawl.fetch.http.dns import HostResolver, IpGate
from recrawl.fetch.http.http_fetcher import HttpFetcher, TransferLimits
from recrawl.fetch.request import Fetcher, FetchRequest
from recrawl.fetch.robots_cache import HostRobots, RobotsCache

__all__ = [
    "ArchiveClient",
    "ArchivePoliteness",
    "CdxAddress",
    "CdxClient",
    "CdxDialect",
    "CdxServerFilter",
    "CdxServerPage",
    "CdxServerQuery",
    "CdxState",
    "FetchRequest",
    "Fetcher",
    "HostResolver",
    "HostRobots",
    "HttpFetcher",
    "IpGate",
    "MapAddress",
    "MapForm",
    "MapState",
    "MementoClient",
    "NegotiatedMemento",
    "Paging",
    "RateLimitedError",
    "RobotsCache",
    "TimeMapResponse",
    "TransferLimits",
    "archive_address",
]
