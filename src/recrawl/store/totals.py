"""How much a store holds."""

from __future__ import annotations

import numpy as np

from recrawl.model import ANSWERED, AnyArray, Verdict
from recrawl.store.ahead import noted
from recrawl.store.database import Session
from recrawl.store.history import Selection, standing_looks
from recrawl.store.segments import LOOK
from recrawl.store.values import StoreCounts


def rough_size(session: Session) -> tuple[int, int]:
    """The largest page id and the visits of all segments. O(segments)."""
    [(pages,)] = session.rows(session.statements.last_page)
    [(_, visits)] = session.rows(session.statements.segments)
    return int(pages), int(visits)


def counts(session: Session, now: float) -> StoreCounts:
    """Totals; visits of full segments were counted when they were sealed, the others are counted here."""
    [(pages, hosts, links, captures, leased, due)] = session.rows(session.statements.count, now)
    rewritten = session.rows(session.statements.any_mark) or noted(session).visits
    looked = _standing if rewritten else _recorded
    visits, changed, failed = looked(session)
    return StoreCounts(
        pages=pages,
        hosts=hosts,
        visits=visits,
        changed=changed,
        failed=failed,
        links=links,
        captures=captures,
        leased=leased,
        due=due,
    )


def _recorded(session: Session) -> tuple[int, int, int]:
    """Visits of full segments were counted when they were sealed, the others are counted here."""
    [sealed] = session.rows(session.statements.count_sealed)
    visits, changed, failed = (
        int(old) + new
        for old, new in zip(sealed, _counted(session.table(LOOK, session.statements.looks_of_open)), strict=True)
    )
    return visits, changed, failed


def _standing(session: Session) -> tuple[int, int, int]:
    """Imports judge visits again and take some back, others are misdated: each has to be looked at. O(visits)."""
    return _counted(standing_looks(session, Selection()))


def _counted(looks: AnyArray | dict[str, AnyArray]) -> tuple[int, int, int]:
    return (
        len(looks["page"]),
        int(np.count_nonzero(looks["verdict"] == Verdict.CHANGED)),
        int(np.count_nonzero(looks["outcome"] > ANSWERED)),
    )
