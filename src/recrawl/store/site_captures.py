"""Captures of whole sites: started once, extended step by step, finished once."""

from __future__ import annotations

from typing import Any

import numpy as np

from recrawl.errors import StoreError
from recrawl.model import IntArray
from recrawl.store.engine.database import DatabaseSession
from recrawl.store.store_values import FoundPages, SiteCapture, SiteCounts, SiteLog, SiteProgress, SiteStep

_PAGES = np.dtype(
    [("page", np.int64), ("via", np.int64), ("after", np.int64), ("rate", np.float64), ("weight", np.float64)]
)


def begin(  # noqa: PLR0913 - one argument a column
    session: DatabaseSession, site: str, terms: str, *, delay: float, now: float, known: FoundPages
) -> int:
    """Note a capture and the pages known beforehand; return its id. Doing it again at the same instant adds nothing."""
    rows = session.rows(session.statements.sites.begun, now, site)
    [(capture,)] = rows or session.rows(session.statements.sites.add, site, terms, delay, now)
    _add_pages(session, capture, known, first=0, after=0)
    return int(capture)


def advance(session: DatabaseSession, progress: SiteProgress) -> None:
    """Note one step and what it found; an error if somebody else made this step."""
    step, statements = progress.step, session.statements.sites
    row = (step.step, step.number, int(step.revisit), step.time, int(step.outcome), int(step.verdict))
    added = session.run(statements.add_step, progress.capture, *row)
    if not added and session.rows(statements.step, progress.capture, step.step) != [row]:
        raise StoreError(
            f"Another process is at work on capture {progress.capture}: it made step {step.step} before us.",
            "Wait until it is done, or stop it and resume the capture.",
        )
    _add_pages(session, progress.capture, progress.found, first=progress.known, after=step.step + 1)


def _add_pages(session: DatabaseSession, capture: int, found: FoundPages, *, first: int, after: int) -> None:
    if not len(found):
        return
    session.apply(
        session.statements.sites.add_pages,
        np.full(len(found), capture),
        np.arange(first, first + len(found)),
        found.page,
        found.via,
        np.full(len(found), after),
        found.rate,
        found.weight,
    )


def finish(session: DatabaseSession, capture: int, statement: str, now: float) -> None:
    """Note that a capture is complete, and how good it is."""
    session.run(session.statements.sites.finish, now, statement, capture)


def latest(session: DatabaseSession, before: int, limit: int) -> list[int]:
    """The numbers of the latest captures before one, latest first."""
    return [int(number) for (number,) in session.rows(session.statements.sites.latest, before, limit)]


def some_of(session: DatabaseSession, only: IntArray | None) -> list[SiteCapture]:
    """Every capture, oldest first, or only those numbers."""
    statements = session.statements.sites
    if only is not None:
        rows = session.rows(statements.only, only) if len(only) else []
    else:
        rows = session.rows(statements.all)
    return [
        SiteCapture(number, site, terms, delay, started, np.inf if finished is None else finished, statement or "")
        for number, site, terms, delay, started, finished, statement in rows
    ]


def counts_of(session: DatabaseSession, capture: int) -> SiteCounts:
    """How far a capture is."""
    statements = session.statements.sites
    [(pages,)] = session.rows(statements.count_pages, capture)
    steps = session.rows(statements.count_steps, capture)
    made = {bool(revisit): int(numbers) for revisit, numbers, _ in steps}
    last = max((time for _, _, time in steps), default=-np.inf)
    return SiteCounts(int(pages), made.get(False, 0), made.get(True, 0), last)


def log_of(session: DatabaseSession, capture: int) -> SiteLog:
    """Pages and steps of a capture, each in order."""
    table = session.table(_PAGES, session.statements.sites.pages, capture)
    page, via, after, rate, weight = (np.ascontiguousarray(table[name]) for name in _PAGES.fields or ())
    steps = _steps(session.rows(session.statements.sites.steps, capture))
    return SiteLog(FoundPages(page, via, rate, weight), after, steps)


def some_steps(session: DatabaseSession, capture: int, every: int) -> list[SiteStep]:
    """Every N-th step of a site capture, with N = ``every``, in order."""
    return _steps(session.rows(session.statements.sites.some_steps, capture, every))


def _steps(rows: list[tuple[Any, ...]]) -> list[SiteStep]:
    return [
        SiteStep(step, number, bool(revisit), time, outcome, verdict)
        for step, number, revisit, time, outcome, verdict in rows
    ]
