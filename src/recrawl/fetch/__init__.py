"""Access to the outside: one request in, one capture out, and what robots.txt allows; clients for other archives.

A failed fetch of a page is data: a :class:`recrawl.model.Capture` with status 0 and the reason in words. The clients
that read an archive's lists raise a ``FetchError`` once their patience is at its end.
"""

from recrawl.fetch.archive_client import ArchiveClient, Manners, RateLimitedError
from recrawl.fetch.archive_url import CdxAddress, MapAddress, archive_address
from recrawl.fetch.cdx_query import CdxQuery, Dialect, Filter
from recrawl.fetch.cdx_server import CdxAnswer, CdxServer, CdxState, Paging
from recrawl.fetch.doors import Doors
from recrawl.fetch.http import HttpFetcher, Limits
from recrawl.fetch.memento import MapAnswer, MapForm, MapState, MementoClient, Negotiated
from recrawl.fetch.names import Names
from recrawl.fetch.request import Fetcher, Request
from recrawl.fetch.robots import RobotsCache, Rules

__all__ = [
    "ArchiveClient",
    "CdxAddress",
    "CdxAnswer",
    "CdxQuery",
    "CdxServer",
    "CdxState",
    "Dialect",
    "Doors",
    "Fetcher",
    "Filter",
    "HttpFetcher",
    "Limits",
    "Manners",
    "MapAddress",
    "MapAnswer",
    "MapForm",
    "MapState",
    "MementoClient",
    "Names",
    "Negotiated",
    "Paging",
    "RateLimitedError",
    "Request",
    "RobotsCache",
    "Rules",
    "archive_address",
]
