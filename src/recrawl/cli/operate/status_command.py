"""``recrawl status``: counts, freshness, due pages and running workers."""

from __future__ import annotations

import dataclasses
import math

from recrawl.app.display import HERE
from recrawl.app.workspace.configuration import parse_assignments
from recrawl.app.workspace.workspace import open_workspace
from recrawl.cli.options import JsonOption, SetOption, WorkspaceOption
from recrawl.model.plurals import counted

EXAMPLES = """
recrawl status -w my-archive
recrawl status --json
"""


def status(workspace: WorkspaceOption = HERE, json_output: JsonOption = False, assignments: SetOption = None) -> None:
    """Show counts, freshness, due pages and running workers.

    Also shows the workers and their speed, the remaining budget, pauses and limits, and the last failures. Freshness is
    an estimate: the probability that a page is unchanged since its last observation, from its change rate and the time
    since, averaged over all pages with at least two observations. If there is a trained model, the status shows whether
    it still fits pages that are newer than its training.
    """
    import numpy as np

    from recrawl.app.display import shown_time
    from recrawl.app.predict.model_use import expected_changes, model_facts
    from recrawl.app.rates.belief_table import learn
    from recrawl.app.status import work_facts, work_rows
    from recrawl.cli.tables import print_json, print_table
    from recrawl.crawl.clock import time_of

    place = open_workspace(workspace, parse_assignments(assignments or []))
    with place.open_store() as store:
        now = time_of(store)
        expected = expected_changes(place, store)
        counts, next_due, known = (
            store.counts(now),
            store.next_due(),
            learn(store, expected=expected),
        )
        work, model = work_facts(place, store, now), model_facts(place, store)
        resources = len(store.resources())
    counts = dataclasses.replace(counts, pages=counts.pages - resources)
    seen = len(known.histories)
    changed = known.changed(now)
    rated = ~np.isnan(changed)
    fresh = float(1.0 - changed[rated].mean()) if rated.any() else float("nan")
    last = float(known.histories.last_visit.max()) if seen else float("nan")
    if json_output:
        facts = {
            "resources": resources,
            "fresh": fresh,
            "seen": seen,
            "last_observed": last,
            "next_due": next_due,
            "now": now,
        }
        place_facts = {"workspace": str(place.folder), "store": place.shown_store}
        model_said = {"model": None if model is None else dataclasses.asdict(model)}
        print_json({**place_facts, **dataclasses.asdict(counts), **facts, **dataclasses.asdict(work), **model_said})
        return
    rows = [
        ("workspace", str(place.folder)),
        ("store", place.shown_store),
        ("pages", f"{counts.pages:,} on {counted(counts.hosts, 'host')}, {seen:,} of them seen"),
        *([("resources", f"{resources:,} of imported archives that are not visited")] if resources else []),
        ("visits", f"{counts.visits:,}: {counts.changed:,} found a change, {counts.failed:,} failed"),
        ("links", f"{counts.links:,}"),
        ("captures", f"{counts.captures:,}"),
        ("last visit", shown_time(last)),
        ("fresh now", _fresh(fresh, int(rated.sum()), seen)),
        ("due now", f"{counted(counts.due, 'page')}, {counts.leased:,} leased by workers"),
        ("next due", shown_time(next_due)),
        *([] if model is None else [("model", f"trained {shown_time(model.until)}. {model.said}")]),
        *work_rows(work, now),
    ]
    print_table(("", ""), rows)


def _fresh(fresh: float, observed_twice: int, seen: int) -> str:
    """The estimated share of unchanged pages, among pages with a known rate."""
    if math.isnan(fresh):
        return "not known: no page was observed twice" if seen else "–"
    which = (
        "the observed pages" if observed_twice == seen else f"{counted(observed_twice, 'page')} observed at least twice"
    )
    return f"{fresh:.0%} of {which} (estimated)"
