"""What ``recrawl plan`` knows of all pages at once: when each is due and why, and what budgets buy."""

from __future__ import annotations

from dataclasses import asdict
from typing import TYPE_CHECKING, Any

import numpy as np

from recrawl.cli.knowledge import Knowledge, Span, learn
from recrawl.cli.plan_next import cannot_be_met, changed_since, next_pages, reasons, shown_price, what_if, what_if_rows
from recrawl.cli.plan_outlook import Outlook, look_ahead
from recrawl.cli.predict_use import expected_changes, expected_links
from recrawl.cli.tables import rows_of
from recrawl.crawl.controls import limits
from recrawl.show.dashboard.answers import Survey
from recrawl.time import DAY

if TYPE_CHECKING:
    from recrawl.cli.workspace import Workspace
    from recrawl.model import FloatArray, IntArray
    from recrawl.store.base import Store

NEXT = 10
"""Pages named that come next."""


def survey_of(place: Workspace, store: Store, now: float) -> Survey:
    """A fit to all that is known now. O(visits + pages · steps), as ``recrawl plan``."""
    settings = place.limited(limits(store.controls())).configuration.settings
    outlook = look_ahead(store, settings, now, expected_changes(place, store, now), expected_links(place, store, now))
    rows = np.arange(len(outlook.pages))
    ids = outlook.pages.id
    known = learn(store, Span(until=now), expected=outlook.expected)
    with np.errstate(divide="ignore"):
        every, longest, shortest = (1.0 / known.at(ids, rate) for rate in (known.rate, *known.interval()))
    worth = outlook.policy.urgency(ids, now)
    p_changed = changed_since(outlook, ids, known)
    words, why = np.unique(np.array(reasons(outlook, rows), dtype=np.str_), return_inverse=True)
    return Survey(
        facts=_facts(store, outlook, known, p_changed),
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
            "often": ids[np.argsort(every, kind="stable")],  # pages of which nothing is known come last
            "seldom": ids[np.argsort(-every, kind="stable")],
            "worth": ids[np.argsort(-np.nan_to_num(worth, nan=-np.inf), kind="stable")],
            "changed": ids[np.argsort(-np.nan_to_num(p_changed, nan=-np.inf), kind="stable")],
        },
    )


def _facts(store: Store, outlook: Outlook, known: Knowledge, p_changed: FloatArray) -> dict[str, Any]:
    """What is told of the whole: the price, three budgets, what cannot be had, what comes next."""
    objective = outlook.settings.schedule.objective
    buys = what_if(outlook, known)
    unmet = cannot_be_met(outlook, buys)
    seen, told = ~np.isnan(outlook.last_look), ~np.isnan(p_changed)
    first: IntArray = np.lexsort((outlook.pages.id, outlook.due))[:NEXT]
    coming = rows_of({"id": outlook.pages.id[first].tolist(), **next_pages(store, outlook, first, known)})
    return {
        "policy": outlook.policy.name,
        "objective": objective,
        "budget_per_day": outlook.budget * DAY,
        "price": outlook.policy.price,
        "price_words": "" if outlook.policy.price is None else shown_price(outlook.policy.price, objective),
        "pages": len(outlook.pages),
        "seen": int(seen.sum()),
        "known": int(told.sum()),
        "fresh": float(1.0 - p_changed[told].mean()) if told.any() else None,
        "late": int((outlook.due < outlook.now).sum()),
        "hopeless": int(buys.now.hopeless),
        "budgets": {name: asdict(getattr(buys, name)) for name in ("less", "now", "more")},
        "budget_rows": [list(row) for row in what_if_rows(buys, outlook.budget, objective)],
        "unmet": [asdict(one) for one in unmet],
        "next": coming,
    }
