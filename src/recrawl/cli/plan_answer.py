"""What ``recrawl plan`` has to say of the pages that come next: by columns, and as plain values for other programs."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from recrawl.cli.knowledge import Span, host_id, learn
from recrawl.cli.plan_next import Columns, Unmet, WhatIf, cannot_be_met, chosen, next_pages, what_if
from recrawl.cli.plan_outlook import Outlook
from recrawl.cli.tables import rows_of
from recrawl.model import FloatArray
from recrawl.time import DAY

if TYPE_CHECKING:
    from recrawl.store.base import Store


@dataclass(frozen=True, slots=True)
class Coming:
    """The pages that come next, what the budget buys, and what cannot be had."""

    outlook: Outlook
    columns: Columns
    """Of the first pages, by due time."""
    due: FloatArray
    """Of all pages that were asked about."""
    buys: WhatIf
    unmet: list[Unmet]

    @property
    def late(self) -> FloatArray:
        """Seconds by which pages are late, of those that are."""
        late = self.outlook.now - self.due
        return late[late > 0]


def coming(store: Store, outlook: Outlook, host: str | None, limit: int | None) -> Coming:
    """The first ``limit`` pages of a host, or of all. O(n log n) for n pages."""
    wanted = np.flatnonzero(chosen(outlook, host_id(store, host)))
    order = wanted[np.lexsort((outlook.pages.id[wanted], outlook.due[wanted]))]
    known = learn(store, Span(until=outlook.now), expected=outlook.expected)
    buys = what_if(outlook, known)
    columns = next_pages(store, outlook, order[:limit], known)
    return Coming(outlook, columns, outlook.due[wanted], buys, cannot_be_met(outlook, buys))


def facts(found: Coming) -> dict[str, Any]:
    """All of it for other programs."""
    outlook = found.outlook
    return {
        "now": outlook.now,
        "policy": outlook.policy.name,
        "budget_per_day": outlook.budget * DAY,
        "price": outlook.policy.price,
        "pages": len(found.due),
        "late": len(found.late),
        "next": rows_of(found.columns),
        "budgets": {name: asdict(getattr(found.buys, name)) for name in ("less", "now", "more")},
        "unmet": [asdict(one) for one in found.unmet],
    }
