"""What ``recrawl plan`` knows of all pages at once: when each is due and why, and what budgets buy."""

from __future__ import annotations

from dataclasses import asdict
from typing import TYPE_CHECKING, Any

import numpy as np

from recrawl.app.display import rows_of
from recrawl.app.plan.plan_next import (
    cannot_be_met,
    changed_since,
    next_pages,
    reasons,
    shown_price,
    what_if,
    what_if_rows,
)
from recrawl.app.plan.plan_outlook import PlanOutlook, look_ahead
from recrawl.app.predict.model_use import expected_changes, expected_links
from recrawl.app.rates.belief_table import BeliefTable, VisitSpan, learn
from recrawl.crawl.control.runtime_limits import limits
from recrawl.time import DAY
from recrawl.web.dashboard.dashboard_port import PlanSurvey

if TYPE_CHECKING:
    from recrawl.app.workspace.workspace import Workspace
    from recrawl.model import FloatArray, IntArray
    from recrawl.store.base import Store

NEXT = 10
"""Pages named that come next."""


def survey_of(place: Workspace, store: Store, now: float) -> PlanSurvey:
    """A fit to all that is known now. O(visits + pages · steps), as ``recrawl plan``."""
    settings = place.limited(limits(store.controls())).configuration.settings
    outlook = look_ahead(store, settings, now, expected_changes(place, store, now), expected_links(place, store, now))
    rows = np.arange(len(outlook.pages))
    ids = outlook.pages.id
    known = learn(store, VisitSpan(until=now), expected=outlook.expected)
    with np.errstate(divide="ignore"):
        every, longest, shortest = (1.0 / known.at(ids, rate) for rate in (known.rate, *known.interval()))
    worth = outlook.policy.urgency(ids, now)
    p_changed = changed_since(outlook, ids, known)
    words, why = np.unique(np.array(reasons(outlook, rows), dtype=np.str_), return_inverse=True)
    return PlanSurvey(
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
        last_observed=outlook.last_observed,
        orders={
            "rate": ids[np.argsort(every, kind="stable")],  # pages of which nothing is known come last
            "-rate": ids[np.argsort(-every, kind="stable")],
            "worth": ids[np.argsort(-np.nan_to_num(worth, nan=-np.inf), kind="stable")],
            "changed": ids[np.argsort(-np.nan_to_num(p_changed, nan=-np.inf), kind="stable")],
        },
    )


def _facts(store: Store, outlook: PlanOutlook, known: BeliefTable, p_changed: FloatArray) -> dict[str, Any]:
    """The overall plan: the threshold, three budgets, unmet requests, upcoming fetches."""
    objective = outlook.settings.schedule.objective
    buys = what_if(outlook, known)
    unmet = cannot_be_met(outlook, buys)
    seen, told = ~np.isnan(outlook.last_observed), ~np.isnan(p_changed)
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
