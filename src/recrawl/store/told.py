"""What people tell a crawl: how single pages are asked for, and what changes while it runs."""

from __future__ import annotations

import numpy as np

from recrawl.model import IntArray
from recrawl.store.database import Session
from recrawl.store.recording import check_known


def set_source(session: Session, pages: IntArray, method: str, options: str) -> None:
    """Ask for these pages in this way from now on; without a method, as all pages are asked for."""
    check_known(session, pages)
    distinct = np.unique(pages)
    if not len(distinct):
        return
    if method:
        given = ([value] * len(distinct) for value in (method, options))
        session.apply(session.statements.live.set_sources, distinct, *given)
    else:
        session.run(session.statements.live.drop_sources, distinct)


def sources(session: Session, pages: IntArray | None) -> dict[int, tuple[str, str]]:
    """Method and options of those of the pages, or of all, that are asked for in a way of their own."""
    if pages is None:
        rows = session.rows(session.statements.live.all_sources)
    elif not len(pages) or not session.rows(session.statements.live.any_source):
        return {}
    else:
        rows = session.rows(session.statements.live.sources, np.unique(pages))
    return {page: (method, options) for page, method, options in rows}


def set_control(session: Session, name: str, value: str | None, now: float) -> None:
    """Keep a value under a name. One taken back leaves its row, so that it shows when that was."""
    session.run(session.statements.live.set_control, name, value, now)


def controls(session: Session) -> dict[str, str]:
    """Every control in force."""
    return dict(session.rows(session.statements.live.controls))


def controls_changed(session: Session) -> float:
    """When a control was last set or taken back; -inf if never."""
    [(changed,)] = session.rows(session.statements.live.controls_changed)
    return float("-inf") if changed is None else float(changed)
