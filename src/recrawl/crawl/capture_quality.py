"""How good a capture came out, from what was recorded of it: nothing else is needed."""

from __future__ import annotations

import json
import uuid
from dataclasses import dataclass
from typing import Any

import numpy as np

from recrawl.assess.statement import CapturedPages, Found, Statement, statement
from recrawl.assess.statement_json import Names, iso, statement_json
from recrawl.capture.decision import Proven
from recrawl.crawl.capture_course import Course
from recrawl.crawl.capture_order import CaptureOrder
from recrawl.model import ANSWERED, AnyArray, FloatArray, IntArray, Outcome, Verdict
from recrawl.store.base import Store
from recrawl.store.site_values import SiteCapture, SiteLog

SCHEMA = "recrawl-site-capture/1"
MOST_NAMED = 1_000
"""Pages named in each list of a stored statement; the counts are of all."""


@dataclass(frozen=True, slots=True)
class CaptureReport:
    """What came of a capture. Pages by id."""

    capture: SiteCapture
    found: int
    """Pages that belong to it, whatever came of them."""
    looks: int
    """Visits and revisits, those that failed and were made again included."""
    quality: Statement
    """Of the pages that are in the archive."""
    gone: IntArray
    """Pages that were not there when visited."""
    refused: IntArray
    """Pages that robots.txt forbids."""
    failed: IntArray
    """Pages that could not be had: no answer, or one that says nothing of the page."""
    proven: Proven | None = None
    """What the strategy can prove of its plan, made before the first visit."""


def report_of(store: Store, capture: SiteCapture, course: Course | None = None) -> CaptureReport:
    """The report of a capture from its recorded steps. O(pages and steps).

    ``course`` is the one that took these steps; without it nobody says which pages the strategy gave up.
    """
    log = store.site_log(capture.id)
    page = log.found.page
    seen = _last_looks(log, revisit=False)
    there = (seen.outcome <= ANSWERED) & (seen.outcome != Outcome.GONE) & seen.made
    again = _last_looks(log, revisit=True)
    once = there & ~again.made & CaptureOrder.from_json(capture.terms).revisits
    found = _found(store, page, seen.time, again)
    hopeless = None if course is None else course.given_up()
    pages = CapturedPages.of(
        page[there],
        seen.time[there],
        rate=log.found.rate[there],
        weight=log.found.weight[there],
        revisit=np.where(once, seen.time, again.time)[there],
        found=np.where(once, Found.UNCHANGED, found)[there],
        hopeless=None if hopeless is None else np.isin(np.arange(len(page)), hopeless)[there],
    )
    return CaptureReport(
        capture,
        found=len(page),
        looks=len(log.steps),
        quality=statement(pages),
        gone=page[seen.made & (seen.outcome == Outcome.GONE)],
        refused=page[seen.made & (seen.outcome == Outcome.REFUSED)],
        failed=page[seen.made & (seen.outcome > Outcome.REFUSED)],
        proven=None if course is None else course.proven(),
    )


def report_json(report: CaptureReport, names: Names) -> dict[str, Any]:
    """The report of a finished capture as plain values, for JSON; ``names`` gives the URLs of page ids."""
    capture = report.capture
    return {
        "schema": SCHEMA,
        "capture": capture_urn(capture),
        "site": capture.site,
        "terms": json.loads(capture.terms),
        "delay": capture.delay,
        "started": iso(capture.started),
        "finished": iso(capture.finished),
        "looks": report.looks,
        "pagesFound": report.found,
        "gone": _named(report.gone, names),
        "refused": _named(report.refused, names),
        "failed": _named(report.failed, names),
        "plan": _proven(report.proven),
        "quality": statement_json(report.quality, names, MOST_NAMED),
    }


def capture_urn(capture: SiteCapture) -> str:
    """A name for a capture that no other has, the same whenever it is asked for.

    >>> capture_urn(SiteCapture(1, "https://example.org/", "{}", 1.0, 0.0, 9.0, ""))
    'urn:uuid:e8bb9f89-33f6-57fc-b022-df4ba1a0acf5'
    """
    return uuid.uuid5(uuid.NAMESPACE_URL, f"{capture.started!r} {capture.site}").urn


def _proven(proven: Proven | None) -> dict[str, float] | None:
    if proven is None:
        return None
    return {
        "pages": proven.pages,
        "expectedCoherence": proven.expected_coherence,
        "bound": proven.bound,
        "gap": proven.gap,
    }


def _named(pages: IntArray, names: Names) -> dict[str, Any]:
    return {"count": len(pages), "pages": list(names(pages[:MOST_NAMED]))}


@dataclass(frozen=True, slots=True)
class _Looks:
    """The last look at each page in one phase, by number."""

    made: AnyArray
    time: FloatArray
    outcome: IntArray
    verdict: IntArray


def _last_looks(log: SiteLog, *, revisit: bool) -> _Looks:
    pages = len(log.found)
    looks = _Looks(np.zeros(pages, np.bool_), np.full(pages, np.nan), np.zeros(pages, int), np.zeros(pages, int))
    for step in log.steps:
        if step.revisit == revisit:
            looks.made[step.number] = True
            looks.time[step.number] = step.time
            looks.outcome[step.number] = step.outcome
            looks.verdict[step.number] = step.verdict
    return looks


def _found(store: Store, page: IntArray, visit: FloatArray, again: _Looks) -> IntArray:
    """What the revisits found. A change that somebody else saw between visit and revisit counts, too."""
    found = np.where(again.outcome == Outcome.GONE, Found.MISSING, again.verdict)
    found[~again.made | (again.outcome > ANSWERED)] = Found.UNKNOWN
    judged = np.flatnonzero(found == Found.UNCHANGED)
    if len(judged):
        looks = store.looks(page[judged])
        changed = looks.take(looks.verdict == Verdict.CHANGED)
        by_page = judged[np.argsort(page[judged])]
        row = by_page[np.searchsorted(page[by_page], changed.page)]
        between = (changed.time > visit[row]) & (changed.time < again.time[row])
        found[row[between]] = Found.CHANGED
    return found
