"""Faults of our own code: one page can only harm itself.

An exception that our own code raises while it works on a page becomes a failed visit of that page, with the status of
Heritrix for it (conventions L3), and an event that names the step, the URL, the error and where it was raised. What is
done beside pages (logs, metrics, displays) is reported once and does not end a run either.

Two kinds of trouble are no faults: a disk that is full and a store that is away. They concern every page, and pass;
whoever meets them waits (:class:`recrawl.crawl.setback.Setback`).
"""

from __future__ import annotations

import sys
import traceback
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from types import MappingProxyType
from typing import TypeVar

from recrawl.crawl.log import JsonLinesLog
from recrawl.errors import DiskFullError, StoreError
from recrawl.formats.disk import FULL

T = TypeVar("T")

STEPS: Mapping[str, str] = MappingProxyType(
    {
        # from the lease to the request
        "recall the host": "recrawl.crawl.judging:Judging.prepare",
        "recall the page": "recrawl.crawl.recorder:Recorder.recall",
        "queue the page": "recrawl.crawl.line:Line.hold",
        "visit": "recrawl.crawl.visitor:Visitor.go",
        "read robots.txt": "recrawl.fetch.robots:RobotsCache.rules",
        "check robots.txt": "recrawl.crawl.visitor:Visitor.without_asking",
        "choose validators": "recrawl.crawl.judging:Judging.sends",
        "fetch": "recrawl.fetch.http:HttpFetcher.fetch",
        # the answer
        "judge the answer": "recrawl.crawl.judging:Judging.heard",
        "follow redirects": "recrawl.crawl.visitor:Visitor._found",
        "free the host": "recrawl.crawl.settling:Settling._release",
        "detect an outage": "recrawl.crawl.outage:Doubts.weigh",
        "rate the host": "recrawl.crawl.settling:Settling._mind",
        "apply robots.txt": "recrawl.crawl.settling:Settling._apply",
        "take in the result": "recrawl.crawl.settling:Settling._follow",
        "read a sitemap or feed": "recrawl.crawl.announcements:Announcements.done",
        "take in a sitemap or feed": "recrawl.crawl.recorder:Recorder.hear",
        "keep robots.txt": "recrawl.crawl.visitor:Visitor.keep_rules",
        "wait for the group": "recrawl.crawl.acknowledging:Acknowledging.add",
        # recording
        "discover pages": "recrawl.crawl.recorder:Recorder.discover",
        "read links": "recrawl.crawl.recorder:Recorder._links",
        "read embeds": "recrawl.crawl.recorder:Recorder._take_embeds",
        "read dates": "recrawl.crawl.recorder:Recorder._dates",
        "trust dates": "recrawl.crawl.judging:Judging.believes_dates",
        "note redirects": "recrawl.crawl.recorder:Recorder._redirects",
        "archive the answer": "recrawl.crawl.archive:WarcArchive.keep",
        "make a WARC record": "recrawl.crawl.archive:WarcArchive._entry",
        "write to the WARC file": "recrawl.formats.warc:WarcWriter.append",
        "archive beside pages": "recrawl.crawl.archive:WarcArchive.keep_aside",
        "respell the URL": "recrawl.crawl.recorder:Recorder._respelled",
        "sum up what was learned": "recrawl.crawl.judging:Judging.lessons",
        "tell the policy": "recrawl.schedule.agenda:Agenda.tell",
        "decide when to return": "recrawl.schedule.agenda:Agenda.due",
        "sync the WARC file": "recrawl.crawl.archive:WarcArchive.settle",
        "commit": "recrawl.crawl.recorder:Recorder.acknowledge",
        # after the commit
        "learn from the visit": "recrawl.crawl.judging:Judging.learn",
        "remember the page": "recrawl.crawl.recorder:Recorder._remember",
        "release the WARC file": "recrawl.crawl.archive:WarcArchive.acknowledged",
        "find feeds": "recrawl.crawl.announcements:Announcements.visited",
        "write recrawl.log": "recrawl.crawl.log:JsonLinesLog.events",
        "write crawl.log": "recrawl.crawl.heritrix_log:HeritrixLog.write",
        "count visits": "recrawl.crawl.metrics:Metrics.add",
        # beside pages
        "lease pages": "recrawl.crawl.hands:Hands.lease",
        "renew leases": "recrawl.crawl.hands:Hands.renew",
        "choose the next pages": "recrawl.crawl.line:Line.next_many",
        "fit the policy": "recrawl.crawl.fitting:Fitting.fit",
    }
)
"""The steps of a visit, from the lease to what follows the commit, and what is done beside pages: name and function.

Faults are injected into each of them by the tests (``tests/crawl/fault_injection.py``).
"""

_NAMES = MappingProxyType({function: name for name, function in STEPS.items()})


def waits_for(error: BaseException) -> StoreError | None:
    """The disk that is full or the store that is away, if that is what the error is about; ``None`` for a fault."""
    if isinstance(error, StoreError):
        return error
    if isinstance(error, OSError) and error.errno in FULL:
        return DiskFullError(f"The disk is full ({error}).", "Free some space; the crawl then goes on.")
    return None


def step_of(error: BaseException) -> str:
    """The name of the step that raised an error: the innermost that is listed, else our innermost function."""
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
class Fault:
    """An exception that our own code raised."""

    step: str
    """The name of the step, by :data:`STEPS`."""
    error: str
    trace: str

    @classmethod
    def of(cls, error: BaseException) -> Fault:
        """What is to be told of an exception."""
        try:
            said = repr(error)
        except Exception:  # noqa: BLE001 - whatever a foreign __repr__ does
            said = type(error).__name__
        return cls(step_of(error), said, "".join(traceback.format_exception(error)))

    @property
    def words(self) -> str:
        """In a line: the step, and the error without its trace."""
        return f"{self.step}: {self.error}"[:_LONGEST]


_LONGEST = 300
"""Letters of a fault in a list."""


class Faults:
    """Reports faults, and keeps those of work beside pages from ending the run."""

    def __init__(self, log: JsonLinesLog | None = None) -> None:
        """Without a log nothing is reported."""
        self._log = log
        self._reported: set[tuple[str, str]] = set()

    def broke_visit(self, url: str, fault: Fault) -> None:
        """Report that a page is recorded as failed because our own code failed."""
        details = {"url": url, **_details(fault)}
        self._say(lambda log: log.event("fetch", "visit broken", level="error", details=details))

    def beside_pages(self, error: Exception, url: str = "") -> None:
        """Report a fault that costs no visit, the first of its step and kind: the same may come at every turn."""
        fault = Fault.of(error)
        kind = fault.step, type(error).__name__
        if kind not in self._reported:
            self._reported.add(kind)
            details = {**({"url": url} if url else {}), **_details(fault)}
            self._say(lambda log: log.event("crawl", "step failed", level="error", details=details))

    @contextmanager
    def contained(self) -> Iterator[None]:
        """A fault inside the block is reported and ends the block, not the run.

        Raises:
            StoreError: the disk is full, or the store away.
        """
        try:
            yield
        except Exception as error:
            if (trouble := waits_for(error)) is not None:
                raise trouble from error
            self.beside_pages(error)

    def each(self, work: Callable[[Sequence[T]], object], batch: Sequence[T], url_of: Callable[[T], str]) -> None:
        """Do work that may be repeated on a batch; if that fails, on one at a time, so that one harms no other.

        Raises:
            StoreError: the disk is full, or the store away.
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
            pass  # the log keeps the line until there is room
        except Exception as error:  # noqa: BLE001 - the log itself is broken: whoever watches is told, once
            kind = "log", type(error).__name__
            if kind not in self._reported:
                self._reported.add(kind)
                with suppress(Exception):
                    sys.stderr.write(f"recrawl cannot write its log: {error!r}\n")


def _details(fault: Fault) -> dict[str, object]:
    return {"step": fault.step, "error": fault.error, "traceback": fault.trace}
