"""A scheduler for Scrapy: the spider fetches a page again when that is worth it, within a budget, for ever.

    ADDONS = {"recrawl.integrations.scrapy.Addon": 500}
    RECRAWL_WORKSPACE = "my-archive"

The add-on sets :class:`Scheduler` and :class:`Reporter`. The scheduler stores every GET request of the spider in the
workspace and hands out what is due and allowed, as conditional requests. The reporter, a downloader middleware, reports
each response, and the workspace learns from that when to come back.

Rules of this file:

1. The reactor never waits for the store: one thread talks to it, in batches.
2. What the store cannot hold stays in memory and is sent at once: requests with a body or another method, retries,
   redirects, and callbacks that are no methods of the spider.
3. What was handed out and not answered when the spider ends is withdrawn; after a kill its lease ends.
"""

from __future__ import annotations

import contextlib
import hashlib
import json
import logging
from collections import deque
from collections.abc import Callable, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, Self
from weakref import WeakKeyDictionary

from scrapy import Request
from scrapy.core.scheduler import BaseScheduler
from scrapy.exceptions import IgnoreRequest
from scrapy.utils.misc import build_from_crawler, load_object
from scrapy.utils.request import request_from_dict

from recrawl.app.frontier.url_frontier import FrontierUrl, UrlFrontier, UrlReport
from recrawl.crawl.clock import RealClock
from recrawl.detect.reported_visits import ReportedVisit
from recrawl.errors import ConfigError, StoreError

if TYPE_CHECKING:
    from scrapy import Spider
    from scrapy.crawler import Crawler
    from scrapy.dupefilters import BaseDupeFilter
    from scrapy.http import Response
    from scrapy.settings import BaseSettings

_log = logging.getLogger(__name__)
MARK = "recrawl_url"
"""In the meta of a request: the URL that was handed out, of which its response is reported."""
_METADATA = "recrawl_metadata"
"""The metadata that was handed out with it."""
_STORED = "scrapy"
"""The metadata of a URL with what is needed to make its request again."""
_OF_OURS = ("redirect_urls", "redirect_times", "retry_times", "redirect_ttl")
"""In the meta of a request: a middleware made it from one that was sent."""
_REFUSED = -9998
"""The status of what robots.txt forbids (conventions L3)."""
_BATCH = 500
"""Reports or found URLs that are written together."""
_AWAY = 5.0
"""Seconds until a store that is away is tried again."""
_AGAIN = 0.5
"""Seconds until a workspace that had nothing to hand out is asked again."""


class Addon:
    """Sets the scheduler and the reporter."""

    def update_settings(self, settings: BaseSettings) -> None:
        """Called by Scrapy."""
        settings.set("SCHEDULER", Scheduler, "addon")
        settings["DOWNLOADER_MIDDLEWARES"][Reporter] = 10


class SpiderFrontier:
    """The frontier of one crawler, behind a thread."""

    def __init__(self, crawler: Crawler) -> None:
        """The settings are described in docs/how-to/use-with-another-crawler.md."""
        settings = crawler.settings
        folder = settings.get("RECRAWL_WORKSPACE")
        if not folder:
            raise ConfigError("RECRAWL_WORKSPACE is not set.", "Name the folder of a workspace in settings.py.")
        self.politeness = settings.get("RECRAWL_POLITENESS", "recrawl")
        if self.politeness not in {"recrawl", "scrapy"}:
            raise ConfigError(f"RECRAWL_POLITENESS is {self.politeness!r}.", "It is recrawl or scrapy.")
        self.lease = settings.getfloat("RECRAWL_LEASE", 600.0)
        self.batch = settings.getint("RECRAWL_BATCH", 100)
        self.per_queue = 1 if self.politeness == "recrawl" else settings.getint("CONCURRENT_REQUESTS_PER_DOMAIN", 8)
        name = settings.get("RECRAWL_DIGEST")
        self.digest: Callable[[Response], str] = load_object(name) if name else content_digest
        self._flags: dict[str, object] = dict(settings.getdict("RECRAWL_SETTINGS", {}))
        self._folder = Path(folder)
        self._crawler = crawler
        self._clock = RealClock()
        self._thread = ThreadPoolExecutor(1, "recrawl")
        self._frontier: UrlFrontier | None = None
        self._found: list[tuple[str, dict[str, list[str]]]] = []
        self._seen: list[UrlReport] = []
        self._unwritten: tuple[list[tuple[str, dict[str, list[str]]]], list[UrlReport]] = [], []
        """What is being written: it is written again if the store was away."""
        self._writing: Future[None] | None = None
        self._write_at = 0.0
        self._asking: Future[list[FrontierUrl]] | None = None
        self._ask_at = 0.0
        self._timer: Any = None
        """Asks a workspace again that had nothing to hand out, though nothing else happens."""
        self.ready: deque[FrontierUrl] = deque()
        """URLs that were handed out and are not requested yet."""
        self.is_empty = False
        """Whether there was nothing to hand out when it was last asked for."""

    def open(self) -> None:
        """Open the workspace."""
        from recrawl.app.workspace.workspace import open_workspace

        place = open_workspace(self._folder, self._flags)
        self._frontier = self._thread.submit(partial(UrlFrontier, place)).result()

    def close(self) -> None:
        """Write what is left, withdraw what was not requested, and close the workspace."""
        frontier = self._frontier
        if frontier is None:
            return
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
        if self._asking is not None:
            with contextlib.suppress(Exception):
                self.ready.extend(self._asking.result())
        self._write()
        unsent, self.ready = list(self.ready), deque()
        self._thread.submit(frontier.take_back, unsent)
        self._thread.submit(frontier.close)
        self._thread.shutdown(wait=True)
        self._frontier = None

    def found(self, url: str, metadata: dict[str, list[str]]) -> None:
        """Store a URL soon."""
        self._found.append((url, metadata))
        self.turn()

    def seen(self, report: UrlReport) -> None:
        """Store a report soon."""
        self._seen.append(report)
        self.turn()

    @property
    def is_pending(self) -> bool:
        """Whether something is to be written, or was asked for."""
        return bool(self._found or self._seen or self.ready) or self._writing is not None or self._asking is not None

    def turn(self) -> None:
        """Take what the thread has done, and give it more to do. Never waits."""
        if self._writing is not None and self._writing.done():
            done, self._writing = self._writing, None
            self._ask_at = 0.0  # queues whose URLs were reported may give more
            if not self._succeeded(done):
                self._found[:0], self._seen[:0] = self._unwritten
                self._write_at = self._now() + _AWAY
        if self._asking is not None and self._asking.done():
            asked, self._asking = self._asking, None
            well = self._succeeded(asked)
            urls = asked.result() if well else []
            self.ready.extend(urls)
            self.is_empty = well and not urls
            self._ask_at = self._now() + (0.0 if urls else _AGAIN if well else _AWAY)
        if self._writing is None and (self._found or self._seen) and self._now() >= self._write_at:
            self._write()
        if self._asking is None and len(self.ready) < self.batch // 2:
            wait = self._ask_at - self._now()
            if wait <= 0:
                self._asking = self._thread.submit(self._ask)
                self._asking.add_done_callback(self._nudge)
            elif self._timer is None:
                self._timer = _reactor().callLater(wait, self._ask_again)

    def _succeeded(self, done: Future[Any]) -> bool:
        """Whether the thread did its work; not if the store is away, which is tried again.

        Raises:
            Exception: our own code failed.
        """
        error = done.exception()
        if isinstance(error, StoreError):
            _log.warning("The workspace is away, and is tried again: %s", error)
            return False
        if error is not None:
            raise error
        return True

    def _ask_again(self) -> None:
        self._timer = None
        self._wake()

    def _now(self) -> float:
        return self._clock.elapsed()

    def _write(self) -> None:
        found, self._found = self._found, []
        seen, self._seen = self._seen, []
        self._unwritten = found, seen
        self._writing = self._thread.submit(self._written, found, seen)
        self._writing.add_done_callback(self._nudge)

    def _written(self, found: Sequence[tuple[str, dict[str, list[str]]]], seen: Sequence[UrlReport]) -> None:
        assert self._frontier is not None  # noqa: S101 - it is open
        for start in range(0, len(found), _BATCH):
            some = found[start : start + _BATCH]
            self._frontier.discover([url for url, _ in some], [metadata for _, metadata in some])
        for start in range(0, len(seen), _BATCH):
            self._frontier.seen(seen[start : start + _BATCH])

    def _ask(self) -> list[FrontierUrl]:
        assert self._frontier is not None  # noqa: S101 - it is open
        pause = None if self.politeness == "recrawl" else 0.0
        return self._frontier.next(urls=self.batch, per_queue=self.per_queue, lease=self.lease, pause=pause)

    def _nudge(self, _done: Future[Any]) -> None:
        """Let the engine ask for a request; in a thread."""
        _reactor().callFromThread(self._wake)

    def _wake(self) -> None:
        if self._frontier is None:
            return
        self.turn()
        slot = getattr(self._crawler.engine, "_slot", None)
        if slot is not None and not slot.closing:
            slot.nextcall.schedule()


def _reactor() -> Any:  # noqa: ANN401 - Twisted's interfaces are not types
    """The reactor that Scrapy has installed by now."""
    from twisted.internet import reactor

    return reactor


_frontiers: WeakKeyDictionary[Crawler, SpiderFrontier] = WeakKeyDictionary()


def frontier_of(crawler: Crawler) -> SpiderFrontier:
    """The frontier that scheduler and reporter of a crawler share."""
    if crawler not in _frontiers:
        _frontiers[crawler] = SpiderFrontier(crawler)
    return _frontiers[crawler]


class Scheduler(BaseScheduler):
    """Returns the requests that the workspace says are worth making."""

    def __init__(self, crawler: Crawler) -> None:
        self._frontier = frontier_of(crawler)
        self._for_ever = crawler.settings.getbool("RECRAWL_FOREVER", True)
        self._filter: BaseDupeFilter = build_from_crawler(load_object(crawler.settings["DUPEFILTER_CLASS"]), crawler)
        self._memory: deque[Request] = deque()
        self._spider: Spider | None = None

    @classmethod
    def from_crawler(cls, crawler: Crawler) -> Self:
        """Called by Scrapy."""
        return cls(crawler)

    def open(self, spider: Spider) -> None:
        """Open the workspace."""
        self._spider = spider
        self._frontier.open()
        self._filter.open()

    def close(self, reason: str) -> None:
        """Close the workspace."""
        self._frontier.close()
        self._filter.close(reason)

    def has_pending_requests(self) -> bool:
        """Whether the spider goes on: always, unless RECRAWL_FOREVER is off and nothing is due."""
        if self._for_ever or self._memory:
            return True
        self._frontier.turn()
        return self._frontier.is_pending or not self._frontier.is_empty

    def enqueue_request(self, request: Request) -> bool:
        """Store a request in the workspace, or keep it in memory; False if it is a duplicate there."""
        request = _without_marks(request)
        metadata = stored(request, self._spider)
        if metadata is not None:
            self._frontier.found(request.url, metadata)
            return True
        if not request.dont_filter and not _is_ours(request) and self._filter.request_seen(request):
            self._filter.log(request, self._spider)  # type: ignore[arg-type]
            return False
        self._memory.append(request)
        return True

    def next_request(self) -> Request | None:
        """The next request, if any may be sent now."""
        if self._memory:
            return self._memory.popleft()
        self._frontier.turn()
        while self._frontier.ready:
            one = self._frontier.ready.popleft()
            request = remade(one, self._spider)
            if request is not None:
                return request
        return None


class Reporter:
    """A downloader middleware that reports what came of each URL that was handed out. It belongs next to the engine."""

    def __init__(self, crawler: Crawler) -> None:
        self._frontier = frontier_of(crawler)

    @classmethod
    def from_crawler(cls, crawler: Crawler) -> Self:
        """Called by Scrapy."""
        return cls(crawler)

    def process_response(self, request: Request, response: Response, spider: Spider | None = None) -> Response:  # noqa: ARG002 - Scrapy's own
        """Report a response that the spider gets."""
        asked = request.meta.get(MARK)
        if request.method != "GET" or (asked is None and "redirect_urls" not in request.meta):
            return response
        visit = visit_of(request, response, self._frontier.digest)
        if asked is not None and asked != request.url:
            moved = ReportedVisit(status=302, redirect_to=request.url)
            self._frontier.seen(UrlReport(asked, moved, request.meta.get(_METADATA, {})))
            self._frontier.seen(UrlReport(request.url, visit, request.meta.get(_METADATA, {})))
        else:
            rest = _seconds(response.headers.get("Retry-After"))
            metadata = request.meta.get(_METADATA, {})
            self._frontier.seen(UrlReport(request.url, visit, metadata, retry_after=rest))
        return response

    def process_exception(self, request: Request, exception: Exception, spider: Spider | None = None) -> None:  # noqa: ARG002 - Scrapy's own
        """Report that there was no answer, once no other middleware tries again."""
        asked = request.meta.get(MARK)
        if asked is not None:
            status = _REFUSED if isinstance(exception, IgnoreRequest) else 0
            visit = ReportedVisit(status=status, failed=True)
            self._frontier.seen(UrlReport(asked, visit, request.meta.get(_METADATA, {})))


def content_digest(response: Response) -> str:
    """The SHA-1 of the decoded content: what RECRAWL_DIGEST replaces."""
    return "sha1:" + hashlib.sha1(response.body, usedforsecurity=False).hexdigest()


def visit_of(request: Request, response: Response, digest: Callable[[Response], str]) -> ReportedVisit:
    """What a response says of its page."""
    return ReportedVisit(
        status=response.status,
        digest=digest(response) if response.status // 100 == 2 else "",  # noqa: PLR2004 - HTTP
        etag=_text(response.headers.get("ETag")),
        last_modified=_text(response.headers.get("Last-Modified")),
        mime=_text(response.headers.get("Content-Type")).partition(";")[0].strip(),
        size=len(response.body),
        seconds=float(request.meta.get("download_latency", 0.0)),
    )


def stored(request: Request, spider: Spider | None) -> dict[str, list[str]] | None:
    """The metadata from which a request is made again; ``None`` if the workspace cannot hold it."""
    if request.method != "GET" or request.body or _is_ours(request):
        return None
    try:
        facts = request.to_dict(spider=spider)
    except ValueError:  # a callback that is no method of the spider
        return None
    default = {"method": "GET", "encoding": "utf-8", "priority": 0, "dont_filter": True}
    kept = {
        name: value
        for name, value in facts.items()
        if name not in {"url", "body", "headers", "dont_filter"} and value and value != default.get(name)
    }
    if request.headers:
        kept["headers"] = {_text(name): [_text(one) for one in values] for name, values in request.headers.items()}
    if not kept:
        return {}
    try:
        return {_STORED: [json.dumps(kept)]}
    except (TypeError, ValueError):  # meta or arguments that JSON cannot hold
        return None


def remade(one: FrontierUrl, spider: Spider | None) -> Request | None:
    """The conditional request for a URL that was handed out; ``None`` if the spider has no such callback any more."""
    [text] = one.metadata.get(_STORED, ["{}"])[:1]
    try:
        facts = {**json.loads(text), "url": one.url}
        request = request_from_dict(facts, spider=spider)
    except (ValueError, TypeError, AttributeError, NameError):
        return None
    request = request.replace(dont_filter=True)
    known = one.validators
    if known.etag:
        request.headers.setdefault("If-None-Match", known.etag)
    if known.last_modified:
        request.headers.setdefault("If-Modified-Since", known.last_modified)
    request.meta[MARK] = one.url
    request.meta[_METADATA] = dict(one.metadata)
    return request


def _is_ours(request: Request) -> bool:
    """Whether a middleware made a request from one that was sent: it goes on at once."""
    return MARK in request.meta or any(name in request.meta for name in _OF_OURS)


def _without_marks(request: Request) -> Request:
    """A request of the spider without what it copied from the meta of a response: it is no retry and no redirect."""
    asked = request.meta.get(MARK)
    if asked is None or asked == request.url or asked in request.meta.get("redirect_urls", ()):
        return request
    copied = {MARK, _METADATA, *_OF_OURS}
    return request.replace(meta={name: value for name, value in request.meta.items() if name not in copied})


def _text(value: Any) -> str:  # noqa: ANN401 - bytes, text or nothing
    return value.decode("latin-1") if isinstance(value, bytes) else str(value or "")


def _seconds(value: bytes | None) -> float:
    """The seconds of a Retry-After; 0 if it is a date or missing."""
    text = _text(value).strip()
    return float(text) if text.isascii() and text.isdigit() and len(text) < 10 else 0.0  # noqa: PLR2004
