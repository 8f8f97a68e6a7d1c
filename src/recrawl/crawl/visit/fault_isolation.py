"""Isolates internal faults: an exception in our own code costs one page at most.

An exception while a page is processed becomes a failed visit of that page, with Heritrix's status for it (conventions
L3), and a log event with step, URL, error and traceback. A fault outside pages (logs, metrics, displays) is reported
once and does not stop a run either.

A full disk and an unreachable store are no internal faults. They concern every page and pass; the worker waits
(:class:`recrawl.crawl.worker.outages.StorageBackoff`).
"""

from __future__ import annotations

import sys
import traceback
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from types import MappingProxyType
from typing import TypeVar

from recrawl.crawl.control.json_log import JsonLinesLog
from recrawl.errors import StoreError
from recrawl.formats.atomic_files import waits_for

T = TypeVar("T")

STEPS: Mapping[str, str] = MappingProxyType(
    {
        # from the lease to the request
        "load the host": "recrawl.crawl.visit.change_classifier:ChangeClassifier.prepare",
        "load the page": "recrawl.crawl.visit.recorder:Recorder.recall",
        "queue the page": "recrawl.crawl.worker.lease_pool:ReadyQueue.hold",
        "take from the queue": "recrawl.crawl.worker.lease_pool:ReadyQueue.take",
        "admit the request": "recrawl.crawl.worker.result_handler:ResultHandler.may_start",
        "visit": "recrawl.crawl.visit.visitor:Visitor.go",
        "hold the host": "recrawl.crawl.worker.lease_pool:LeasePool.enter",
        "read robots.txt": "recrawl.fetch.robots_cache:RobotsCache.rules",
        "check robots.txt": "recrawl.crawl.visit.visitor:Visitor.result_without_request",
        "choose validators": "recrawl.crawl.visit.change_classifier:ChangeClassifier.validators_to_send",
        "fetch": "recrawl.fetch.http.http_fetcher:HttpFetcher.fetch",
        # the answer
        "classify the response": "recrawl.crawl.visit.change_classifier:ChangeClassifier.classify",
        "follow redirects": "recrawl.crawl.visit.visitor:Visitor._found",
        "free the host": "recrawl.crawl.worker.result_handler:ResultHandler._release",
        "detect an outage": "recrawl.crawl.worker.outages:OutageDetector.add_result",
        "rate the host": "recrawl.crawl.worker.result_handler:ResultHandler._update_health",
        "apply robots.txt": "recrawl.crawl.worker.result_handler:ResultHandler._apply",
        "return the host": "recrawl.crawl.worker.lease_pool:LeasePool.free_hosts",
        "handle the result": "recrawl.crawl.worker.result_handler:ResultHandler._follow",
        "read a sitemap or feed": "recrawl.crawl.worker.sitemap_feed_poller:SitemapFeedPoller.done",
        "record a sitemap or feed": "recrawl.crawl.visit.recorder:Recorder.record_claims",
        "keep robots.txt": "recrawl.crawl.visit.visitor:Visitor.keep_rules",
        "wait for the group": "recrawl.crawl.worker.group_commit:GroupCommit.add",
        # recording
        "discover pages": "recrawl.crawl.visit.recorder:Recorder.discover",
        "read links": "recrawl.crawl.visit.recorder:Recorder._links",
        "read embeds": "recrawl.crawl.visit.recorder:Recorder._take_embeds",
        "read dates": "recrawl.crawl.visit.recorder:Recorder._dates",
        "trust dates": "recrawl.crawl.visit.change_classifier:ChangeClassifier.trusts_dates",
        "note redirects": "recrawl.crawl.visit.recorder:Recorder._redirects",
        "archive the response": "recrawl.crawl.visit.warc_archive:WarcArchive.write",
        "make a WARC record": "recrawl.crawl.visit.warc_archive:WarcArchive._entry",
        "write to the WARC file": "recrawl.formats.warc.warc_writer:WarcWriter.append",
        "archive an auxiliary fetch": "recrawl.crawl.visit.warc_archive:WarcArchive.write_auxiliary",
        "respell the URL": "recrawl.crawl.visit.recorder:Recorder._respelled",
        "collect learned facts": "recrawl.crawl.visit.change_classifier:ChangeClassifier.learned_facts",
        "update the policy": "recrawl.schedule.frontier.revisit_scheduler:RevisitScheduler.tell",
        "decide when to return": "recrawl.schedule.frontier.revisit_scheduler:RevisitScheduler.due",
        "sync the WARC file": "recrawl.crawl.visit.warc_archive:WarcArchive.sync",
        "commit": "recrawl.crawl.visit.recorder:Recorder.acknowledge",
        # after the commit
        "learn from the visit": "recrawl.crawl.visit.change_classifier:ChangeClassifier.learn",
        "remember the page": "recrawl.crawl.visit.recorder:Recorder._remember",
        "release the WARC file": "recrawl.crawl.visit.warc_archive:WarcArchive.acknowledged",
        "find feeds": "recrawl.crawl.worker.sitemap_feed_poller:SitemapFeedPoller.visited",
        "write recrawl.log": "recrawl.crawl.control.json_log:JsonLinesLog.events",
        "write crawl.log": "recrawl.crawl.control.heritrix_log:HeritrixLog.write",
        "count visits": "recrawl.crawl.control.metrics:Metrics.add",
        # beside pages
        "lease pages": "recrawl.crawl.worker.lease_pool:LeasePool.lease",
        "renew leases": "recrawl.crawl.worker.lease_pool:LeasePool.renew",
        "choose the next pages": "recrawl.crawl.worker.lease_pool:ReadyQueue.next_many",
        "fit the policy": "recrawl.crawl.worker.inline_fit:InlineFit.fit",
    }
)
"""The steps of a visit, from the lease to the work after the commit, and steps outside pages: name to function.

Tests inject a fault into each of them (``tests/crawl/test_fault_isolation.py``).
"""

_NAMES = MappingProxyType({function: name for name, function in STEPS.items()})


def step_of(error: BaseException) -> str:
    """The name of the step that raised an error: the innermost listed one, else our innermost function."""
    name = inside = ""
    trace = error.__traceback__
    while trace is not None:
        module = str(trace.tb_frame.f_globals.get("__name__", ""))
        function = f"{module}:{trace.tb_frame.f_code.co_qualname}"
        name = _NAMES.get(function, name)
        inside = function if module.startswith("recrawl.") else inside
        trace = trace.tb_next
    return name or inside or "unknown"


@dataclass(frozen=True, slots=True)
class InternalFault:
    """An exception that our own code raised."""

    step: str
    """The name of the step, as in :data:`STEPS`."""
    error: str
    trace: str

    @classmethod
    def of(cls, error: BaseException) -> InternalFault:
        """The fault of an exception, with step and traceback."""
        try:
            said = repr(error)
        except Exception:  # noqa: BLE001 - a foreign __repr__ may raise anything
            said = type(error).__name__
        return cls(step_of(error), said, "".join(traceback.format_exception(error)))

    @property
    def words(self) -> str:
        """One line: the step, and the error without its traceback."""
        return f"{self.step}: {self.error}"[:_LONGEST]


_LONGEST = 300
"""Maximum characters of a fault in a list."""


class FaultReporter:
    """Reports internal faults, and keeps those outside pages from stopping the run."""

    def __init__(self, log: JsonLinesLog | None = None) -> None:
        """Without a log nothing is reported."""
        self._log = log
        self._reported: set[tuple[str, str]] = set()

    def broke_visit(self, url: str, fault: InternalFault) -> None:
        """Report that a page is recorded as failed because our own code failed."""
        details = {"url": url, **_details(fault)}
        self._say(lambda log: log.event("fetch", "visit failed internally", level="error", details=details))

    def beside_pages(self, error: Exception, url: str = "") -> None:
        """Report a fault that costs no visit, once per step and kind: the same fault may come at every turn."""
        fault = InternalFault.of(error)
        kind = fault.step, type(error).__name__
        if kind not in self._reported:
            self._reported.add(kind)
            details = {**({"url": url} if url else {}), **_details(fault)}
            self._say(lambda log: log.event("crawl", "step failed", level="error", details=details))

    @contextmanager
    def contained(self) -> Iterator[None]:
        """Report a fault inside the block and leave the block; the run goes on.

        Raises:
            StoreError: the disk is full, or the store is unreachable.
        """
        try:
            yield
        except Exception as error:
            if (trouble := waits_for(error)) is not None:
                raise trouble from error
            self.beside_pages(error)

    def each(self, work: Callable[[Sequence[T]], object], batch: Sequence[T], url_of: Callable[[T], str]) -> None:
        """Apply repeatable work to a batch; if that fails, to one item at a time, so that only one fails.

        Raises:
            StoreError: the disk is full, or the store is unreachable.
        """
        try:
            work(batch)
        except Exception as error:
            if (trouble := waits_for(error)) is not None:
                raise trouble from error
            for one in batch:
                try:
                    work([one])
                except Exception as mine:
                    if (trouble := waits_for(mine)) is not None:
                        raise trouble from mine
                    self.beside_pages(mine, url_of(one))

    def _say(self, write: Callable[[JsonLinesLog], None]) -> None:
        if self._log is None:
            return
        try:
            write(self._log)
        except StoreError:
            pass  # the log buffers the event until the disk has room
        except Exception as error:  # noqa: BLE001 - the log itself fails: report that once on stderr
            kind = "log", type(error).__name__
            if kind not in self._reported:
                self._reported.add(kind)
                with suppress(Exception):
                    sys.stderr.write(f"recrawl cannot write its log: {error!r}\n")


def _details(fault: InternalFault) -> dict[str, object]:
    return {"step": fault.step, "error": fault.error, "traceback": fault.trace}
