"""How much a store holds."""

from __future__ import annotations

import numpy as np

from recrawl.model import ANSWERED, Verdict
from recrawl.store.database import Session
from recrawl.store.segments import LOOK
from recrawl.store.values import StoreCounts


def counts(session: Session, now: float) -> StoreCounts:
    """Totals; visits of full segments were counted when they were sealed, the others are counted here."""
    [(pages, hosts, links, captures, leased, due)] = session.rows(session.statements.count, now)
    [sealed] = session.rows(session.statements.count_sealed)
    looks = session.table(LOOK, session.statements.looks_of_open)
    fresh = (
        len(looks),
        int(np.count_nonzero(looks["verdict"] == Verdict.CHANGED)),
        int(np.count_nonzero(looks["outcome"] > ANSWERED)),
    )
    visits, changed, failed = (int(old) + new for old, new in zip(sealed, fresh, strict=True))
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
