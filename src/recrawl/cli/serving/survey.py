"""What ``recrawl plan`` knows of all pages at once: when each is due and why, and what budgets buy."""

from __future__ import annotations

from dataclasses import asdict
from typing import TYPE_CHECKING, Any

import numpy as np

from recrawl.cli.plan_next import cannot_be_met, next_pages, reasons, shown_price, what_if, what_if_rows
from recrawl.cli.plan_outlook import Outlook, look_ahead
from recrawl.cli.predict_use import expected_changes, expected_links
from recrawl.cli.tables import rows_of
from recrawl.crawl.controls import limits
from recrawl.show.dashboard.answers import Survey
from recrawl.time import DAY

if TYPE_CHECKING:
    from recrawl.cli.workspace import Workspace
    from recrawl.model import IntArray
    from recrawl.store.base import Store

NEXT = 10
"""Pages named that come next."""


def survey_of(place: Workspace, store: Store, now: float) -> Survey:
    """A fit to all that is known now. O(visits + pages · steps), as ``recrawl plan``."""
    settings = place.limited(limits(store.controls())).configuration.settings
    outlook = look_ahead(store, settings, now, expected_changes(place, store, now), expected_links(place, store, now))
    rows = np.arange(len(outlook.pages))
    belief = outlook.belief
    with np.errstate(divide="ignore"):
        every, longest, shortest = (1.0 / belief.quantile(q) for q in (0.5, 0.05, 0.95))
    ids = outlook.pages.id
    worth = outlook.policy.urgency(ids, now)
    p_changed = outlook.expert.changed(ids, now)
    words, why = np.unique(np.array(reasons(outlook, rows), dtype=np.str_), return_inverse=True)
    return Survey(
        facts=_facts(store, outlook, p_changed),
        page=ids,
        due=outlook.due,
        why=why.astype(np.int64),
        reasons=tuple(words.tolist()),
        worth=worth,
        p_changed=p_changed,
        every=every,
        shortest=shortest,
        longest=longest,
        last_look=outlook.last_look,
        orders={
            "often": ids[np.argsort(every, kind="stable")],
            "seldom": ids[np.argsort(-every, kind="stable")],
            "worth": ids[np.argsort(-np.nan_to_num(worth, nan=-np.inf), kind="stable")],
            "changed": ids[np.argsort(-np.nan_to_num(p_changed, nan=-np.inf), kind="stable")],
        },
    )


def _facts(store: Store, outlook: Outlook, p_changed: Any) -> dict[str, Any]:  # noqa: ANN401 - a column
    """What is told of the whole: the price, three budgets, what cannot be had, what comes next."""
    objective = outlook.settings.schedule.objective
    buys = what_if(outlook)
    unmet = cannot_be_met(outlook, buys)
    seen = ~np.isnan(outlook.last_look)
    first: IntArray = np.lexsort((outlook.pages.id, outlook.due))[:NEXT]
    coming = rows_of({"id": outlook.pages.id[first].tolist(), **next_pages(store, outlook, first)})
    return {
        "policy": outlook.policy.name,
        "objective": objective,
        "budget_per_day": outlook.budget * DAY,
        "price": outlook.policy.price,
        "price_words": "" if outlook.policy.price is None else shown_price(outlook.policy.price, objective),
        "pages": len(outlook.pages),
        "seen": int(seen.sum()),
        "fresh": float(1.0 - p_changed[seen].mean()) if seen.any() else None,
        "late": int((outlook.due < outlook.now).sum()),
        "hopeless": int(buys.now.hopeless),
        "budgets": {name: asdict(getattr(buys, name)) for name in ("less", "now", "more")},
        "budget_rows": [list(row) for row in what_if_rows(buys, outlook.budget, objective)],
        "unmet": [asdict(one) for one in unmet],
        "next": coming,
    }
