"""``/api/frontier/next`` and ``/api/frontier/seen``: the frontier as plain HTTP and JSON, for crawlers without gRPC.

The same as GetURLs and PutURLs of ``recrawl frontier``, on the same core (``app.frontier``). The first call opens the
frontier; a dashboard that nobody asks for URLs costs nothing more.
"""

from __future__ import annotations

import math
import threading
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from recrawl.app.frontier.client_metadata import said_of
from recrawl.app.frontier.url_frontier import LARGEST_METADATA, LEASE, LONGEST_LEASE, LONGEST_URL, MOST, Status
from recrawl.detect.reported_visits import ReportedVisit
from recrawl.errors import ConfigError
from recrawl.web.dashboard.routes import Answer, JsonCall, RefusedError, Schema

if TYPE_CHECKING:
    from recrawl.app.frontier.crawls import FrontierCrawls
    from recrawl.app.frontier.url_frontier import FrontierUrl, UrlFrontier, UrlReport
    from recrawl.app.workspace.workspace import Workspace

LARGEST = 8 * 1024 * 1024
"""Bytes of a request."""
_YEAR_9999 = 253_402_300_799
_TEXT: Schema = {"type": "string", "maxLength": 2_000}
_CRAWL: Schema = {
    "type": "string",
    "pattern": "^[A-Za-z0-9][A-Za-z0-9._-]{0,62}$",
    "description": "Crawl id; DEFAULT, the workspace itself, if left out.",
}
_METADATA: Schema = {
    "type": "object",
    "description": f"Texts to be stored with the URL, at most {LARGEST_METADATA} bytes: lists of strings by name.",
    "additionalProperties": {"type": "array", "maxItems": 1_000, "items": {"type": "string"}},
}
_URL: Schema = {"type": "string", "minLength": 1, "maxLength": LONGEST_URL}


def _said(kind: str, words: str, **more: object) -> Schema:
    return {"type": kind, "description": words, **more}


NEXT: Schema = {
    "type": "object",
    "additionalProperties": False,
    "properties": {
        "crawl": _CRAWL,
        "key": {**_TEXT, "description": "Only of this queue: a host, or a domain with all its hosts."},
        "urls": _said("integer", "Maximum number of URLs.", minimum=1, maximum=MOST, default=100),
        "per_queue": _said("integer", "Maximum number of URLs of one host in flight.", minimum=1, maximum=MOST),
        "queues": _said("integer", "Maximum number of hosts.", minimum=1, maximum=MOST),
        "lease": _said(
            "number",
            "Seconds after which a URL is handed out again unless it is reported.",
            minimum=1,
            maximum=LONGEST_LEASE,
            default=LEASE,
        ),
    },
}
_VISIT: Schema = {
    "type": "object",
    "additionalProperties": False,
    "required": ["url"],
    "properties": {
        "url": _URL,
        "status": _said("integer", "HTTP status; negative as in Heritrix.", minimum=-9_999, maximum=999),
        "failed": _said("boolean", "There was no answer."),
        "digest": {**_TEXT, "description": "Of the content: SHA-1 in base32 or hexadecimal, or any other text."},
        "etag": {**_TEXT, "description": "The header ETag."},
        "last_modified": {**_TEXT, "description": "The header Last-Modified."},
        "redirect_to": {**_URL, "description": "Target of a redirect."},
        "mime": {**_TEXT, "description": "Media type."},
        "changed": _said("boolean", "Whether the crawler itself found a change; it wins over the digest."),
        "size": _said("integer", "Bytes received.", minimum=0, maximum=2**53),
        "seconds": _said("number", "Duration of the request.", minimum=0, maximum=1e6),
        "retry_after": _said("number", "Seconds for which the host asks to be left alone.", minimum=0, maximum=1e9),
        "refetch": _said(
            "number",
            "When the crawler wants it again, seconds since the epoch; 0 for never. See frontier.refetch_date.",
            minimum=0,
            maximum=_YEAR_9999,
        ),
        "metadata": _METADATA,
    },
}
SEEN: Schema = {
    "type": "object",
    "additionalProperties": False,
    "properties": {
        "crawl": _CRAWL,
        "visits": {"type": "array", "maxItems": MOST, "items": _VISIT},
        "discovered": {
            "type": "array",
            "maxItems": 10 * MOST,
            "items": {
                "type": "object",
                "additionalProperties": False,
                "required": ["url"],
                "properties": {"url": _URL, "metadata": _METADATA},
            },
        },
    },
}


class FrontierCalls:
    """The calls of one workspace."""

    def __init__(self, place: Workspace) -> None:
        self._place = place
        self._lock = threading.Lock()
        self._crawls: FrontierCrawls | None = None

    @property
    def calls(self) -> list[JsonCall]:
        """What the dashboard serves."""
        return [
            JsonCall(
                "/api/frontier/next",
                "Hand out URLs that are worth a fetch and may be requested now, to a crawler of others.",
                self._next,
                NEXT,
                {
                    "urls": "URLs, with what is known of their last version for a conditional request.",
                    "lease": "Seconds.",
                },
                LARGEST,
            ),
            JsonCall(
                "/api/frontier/seen",
                "Report fetches and found URLs; both are stored when the answer arrives.",
                self._seen,
                SEEN,
                {"visits": "ok or skipped, one per visit.", "discovered": "ok (new) or skipped, one per URL."},
                LARGEST,
            ),
        ]

    def close(self) -> None:
        """Close the frontiers that were opened."""
        with self._lock:
            crawls, self._crawls = self._crawls, None
            if crawls is not None:
                crawls.close()

    def _open(self) -> FrontierCrawls:
        from recrawl.app.frontier.crawls import FrontierCrawls

        with self._lock:
            if self._crawls is None:
                self._crawls = FrontierCrawls(self._place)
            return self._crawls

    def _next(self, asked: Mapping[str, Any], _now: float) -> Answer:
        frontier = self._open().find(asked.get("crawl", ""))
        if frontier is None:
            raise RefusedError("There is no such crawl.", "Send URLs for it first.", status=404)
        lease = float(asked.get("lease", LEASE))
        found = frontier.next(
            urls=asked.get("urls", 100),
            per_queue=asked.get("per_queue", 0),
            queues=asked.get("queues", 0),
            key=asked.get("key", ""),
            lease=lease,
        )
        return {"urls": [_handed_out(one) for one in found], "lease": lease}

    def _seen(self, told: Mapping[str, Any], _now: float) -> Answer:
        frontier = self._writable(told.get("crawl", ""))
        found = told.get("discovered", [])
        metadata = [one.get("metadata", {}) for one in found]
        discovered = frontier.discover([one["url"] for one in found], metadata if any(metadata) else None)
        visits = frontier.seen([_report(one) for one in told.get("visits", [])])
        return {"visits": _words(visits), "discovered": _words(discovered)}

    def _writable(self, crawl: str) -> UrlFrontier:
        try:
            return self._open().get(crawl)
        except ConfigError as error:
            raise RefusedError(error.what, error.remedy, status=422) from error


def _words(status: list[Status]) -> list[str]:
    return [one.name.lower() for one in status]


def _handed_out(one: FrontierUrl) -> Answer:
    return {
        "url": one.url,
        "key": one.key,
        "due": one.due,
        "etag": one.validators.etag or None,
        "last_modified": one.validators.last_modified or None,
        "metadata": {name: list(values) for name, values in one.metadata.items()},
    }


def _report(one: Mapping[str, Any]) -> UrlReport:
    """A report in its own words, or else in those of its metadata."""
    from recrawl.app.frontier.url_frontier import UrlReport

    metadata = one.get("metadata", {})
    visit, rest = said_of(metadata)
    own = {name: one[name] for name in ReportedVisit.__slots__ if name in one}
    if own:
        visit = ReportedVisit(**own)
    return UrlReport(
        one["url"], visit, metadata, float(one.get("refetch", math.nan)), float(one.get("retry_after", rest))
    )
