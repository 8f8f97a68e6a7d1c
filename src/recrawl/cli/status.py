"""``recrawl status``: what there is, how fresh it is and what is due."""

from __future__ import annotations

import dataclasses
import math

from recrawl.cli.configuration import parse_assignments
from recrawl.cli.options import HERE, JsonOption, SetOption, WorkspaceOption
from recrawl.cli.workspace import open_workspace
from recrawl.model.words import counted

EXAMPLES = """
recrawl status -w my-archive
recrawl status --json
"""


def status(workspace: WorkspaceOption = HERE, json_output: JsonOption = False, assignments: SetOption = None) -> None:
    """Say what there is, how fresh it is and what is due.

    Below that: who is at work and how fast, what the budget leaves, what is paused or limited, and what failed last.
    Freshness is an estimate: the probability that a page is still as it was when last seen, from how often it changes
    and how long ago that was, averaged over all pages that were seen at least twice. Where there is a model of what to
    expect of new pages, it is said whether it still fits those that came since it was trained.
    """
    import numpy as np

    from recrawl.cli.knowledge import learn
    from recrawl.cli.predict_use import expected_changes, model_facts
    from recrawl.cli.status_work import work_facts, work_rows
    from recrawl.cli.tables import print_json, print_table, shown_time
    from recrawl.crawl.store_time import time_of

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
    seen = len(known.histories)
    changed = known.changed(now)
    told = ~np.isnan(changed)
    fresh = float(1.0 - changed[told].mean()) if told.any() else float("nan")
    last = float(known.histories.last_visit.max()) if seen else float("nan")
    if json_output:
        facts = {"fresh": fresh, "seen": seen, "last_look": last, "next_due": next_due, "now": now}
        place_facts = {"workspace": str(place.folder), "store": place.shown_store}
        model_said = {"model": None if model is None else dataclasses.asdict(model)}
        print_json({**place_facts, **dataclasses.asdict(counts), **facts, **dataclasses.asdict(work), **model_said})
        return
    rows = [
        ("workspace", str(place.folder)),
        ("store", place.shown_store),
        ("pages", f"{counts.pages:,} on {counted(counts.hosts, 'host')}, {seen:,} of them seen"),
        ("visits", f"{counts.visits:,}: {counts.changed:,} found a change, {counts.failed:,} failed"),
        ("links", f"{counts.links:,}"),
        ("captures", f"{counts.captures:,}"),
        ("last look", shown_time(last)),
        ("fresh now", _fresh(fresh, int(told.sum()), seen)),
        ("due now", f"{counted(counts.due, 'page')}, {counts.leased:,} leased by workers"),
        ("next due", shown_time(next_due)),
        *([] if model is None else [("model", f"trained {shown_time(model.until)}. {model.said}")]),
        *work_rows(work, now),
    ]
    print_table(("", ""), rows)


def _fresh(fresh: float, told: int, seen: int) -> str:
    """The share of pages that are as they were when last seen: of those of which something is known."""
    if math.isnan(fresh):
        return "not known: no page was seen twice" if seen else "–"
    which = "the pages seen" if told == seen else f"{counted(told, 'page')} seen at least twice"
    return f"{fresh:.0%} of {which} (estimated)"
