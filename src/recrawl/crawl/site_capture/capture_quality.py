"""The quality of a capture, computed from its recorded steps alone."""

from __future__ import annotations

import json
import uuid
from dataclasses import dataclass
from typing import Any

import numpy as np

from recrawl.assess.capture_statement import (
    CapturedPages,
    CaptureStatement,
    Names,
    RevisitResult,
    iso,
    statement,
    statement_json,
)
from recrawl.capture.strategy import ProvenBound
from recrawl.crawl.site_capture.capture_course import CaptureCourse
from recrawl.crawl.site_capture.capture_order import CaptureOrder
from recrawl.model import ANSWERED, AnyArray, FloatArray, IntArray, Outcome, Verdict
from recrawl.store.base import Store
from recrawl.store.store_values import SiteCapture, SiteLog

SCHEMA = "recrawl-site-capture/1"
MOST_NAMED = 1_000
"""Maximum pages named in each list of a stored statement; the counts cover all."""


@dataclass(frozen=True, slots=True)
class CaptureReport:
    """The result of a capture. Pages by id."""

    capture: SiteCapture
    found: int
    """Pages of the capture, whatever their outcome."""
    observations: int
    """Visits and revisits, including failed ones that were repeated."""
    quality: CaptureStatement
    """Of the pages that are in the archive."""
    gone: IntArray
    """Pages that were gone at their visit."""
    refused: IntArray
    """Pages that robots.txt forbids."""
    failed: IntArray
    """Pages that could not be fetched: no answer, or one that says nothing about the page."""
    proven: ProvenBound | None = None
    """What the strategy can prove of its plan, made before the first visit."""


def report_of(store: Store, capture: SiteCapture, course: CaptureCourse | None = None) -> CaptureReport:
    """The report of a capture from its recorded steps. O(pages + steps).

    ``course`` is the one that made these steps; without it the pages that the strategy gave up are unknown.
    """
    log = store.site_log(capture.id)
    page = log.found.page
    seen = _last_observations(log, revisit=False)
    there = (seen.outcome <= ANSWERED) & (seen.outcome != Outcome.GONE) & seen.made
    again = _last_observations(log, revisit=True)
    once = there & ~again.made & CaptureOrder.from_json(capture.terms).revisits
    found = _found(store, page, seen.time, again)
    hopeless = None if course is None else course.given_up()
    pages = CapturedPages.of(
        page[there],
        seen.time[there],
        rate=log.found.rate[there],
        weight=log.found.weight[there],
        revisit=np.where(once, seen.time, again.time)[there],
        found=np.where(once, RevisitResult.UNCHANGED, found)[there],
        hopeless=None if hopeless is None else np.isin(np.arange(len(page)), hopeless)[there],
    )
    return CaptureReport(
        capture,
        found=len(page),
        observations=len(log.steps),
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
        "observations": report.observations,
        "pagesFound": report.found,
        "gone": _named(report.gone, names),
        "refused": _named(report.refused, names),
        "failed": _named(report.failed, names),
        "plan": _proven(report.proven),
        "quality": statement_json(report.quality, names, MOST_NAMED),
    }


def capture_urn(capture: SiteCapture) -> str:
    """A unique and stable name for a capture.

    >>> capture_urn(SiteCapture(1, "https://example.org/", "{}", 1.0, 0.0, 9.0, ""))
    'urn:uuid:e8bb9f89-33f6-57fc-b022-df4ba1a0acf5'
    """
    return uuid.uuid5(uuid.NAMESPACE_URL, f"{capture.started!r} {capture.site}").urn


def _proven(proven: ProvenBound | None) -> dict[str, float] | None:
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
class _PhaseObservations:
    """The last observation of each page in one phase, by number."""

    made: AnyArray
    time: FloatArray
    outcome: IntArray
    verdict: IntArray


def _last_observations(log: SiteLog, *, revisit: bool) -> _PhaseObservations:
    pages = len(log.found)
    observations = _PhaseObservations(
        np.zeros(pages, np.bool_), np.full(pages, np.nan), np.zeros(pages, int), np.zeros(pages, int)
    )
    for step in log.steps:
        if step.revisit == revisit:
            observations.made[step.number] = True
            observations.time[step.number] = step.time
            observations.outcome[step.number] = step.outcome
            observations.verdict[step.number] = step.verdict
    return observations


def _found(store: Store, page: IntArray, visit: FloatArray, again: _PhaseObservations) -> IntArray:
    """The outcomes of the revisits. A change that another visit saw between visit and revisit counts, too."""
    found = np.where(again.outcome == Outcome.GONE, RevisitResult.MISSING, again.verdict)
    found[~again.made | (again.outcome > ANSWERED)] = RevisitResult.UNKNOWN
    judged = np.flatnonzero(found == RevisitResult.UNCHANGED)
    if len(judged):
        observations = store.observations(page[judged])
        changed = observations.take(observations.verdict == Verdict.CHANGED)
        by_page = judged[np.argsort(page[judged])]
        row = by_page[np.searchsorted(page[by_page], changed.page)]
        between = (changed.time > visit[row]) & (changed.time < again.time[row])
        found[row[between]] = RevisitResult.CHANGED
    return found
