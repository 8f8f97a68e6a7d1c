"""One page: its visits, what was believed of it over time, when it is visited next and why then, and its versions."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np

from recrawl.model import ChangeKind, Outcome, Verdict, Visits
from recrawl.time import to_timestamp14
from recrawl.web.dashboard.dashboard_port import DashboardPort, PlanSurvey
from recrawl.web.dashboard.page_list import beliefs_of
from recrawl.web.dashboard.routes import LARGEST, Answer, CheckedParameters, Parameter, RefusedError, View
from recrawl.web.dashboard.stale_cache import CachedAnswer, StorePool

SHOWN = 400
"""Latest visits that are shown."""
_PAGE = Parameter("page", "The page, by its id.", "integer", required=True, least=0, most=LARGEST, place="path")


def views(stores: StorePool, answers: DashboardPort, survey: Callable[[], CachedAnswer[PlanSurvey]]) -> list[View]:
    """One page, and one visit to it explained."""
    return [
        View(
            "/pages/{page}",
            "/api/pages/{page}",
            "Page",
            "One page: its visits, the belief after each observation, and the reason for its due time.",
            lambda asked: answer(stores, answers, survey, asked),
            "dashboard/page.html",
            (_PAGE,),
            {
                "page": "Id, URL, host, due time, and whether it fails.",
                "visits": "Its latest visits, latest first.",
                "belief": "Belief after each observation: times, and seconds between two changes; null while computed.",
                "next": "Current estimate and the reason for the due time; null while it is computed.",
            },
        ),
        View(
            "/pages/{page}/visit",
            "/api/pages/{page}/visit",
            "Visit",
            "Explanation of the verdict of a visit, with both versions side by side.",
            lambda asked: explanation(stores, answers, asked),
            "dashboard/visit.html",
            (
                _PAGE,
                Parameter(
                    "at",
                    "Explain the last visit before this time, seconds since the epoch. Default: the latest.",
                    "number",
                ),
                Parameter("changed", "Consider only visits that found a change.", "boolean", default=False),
            ),
            {
                "url": "Of the page.",
                "time": "Of the visit.",
                "verdict": "changed, unchanged or unknown.",
                "why": "Reason for the verdict, in a sentence.",
            },
        ),
    ]


def answer(
    stores: StorePool, answers: DashboardPort, survey: Callable[[], CachedAnswer[PlanSurvey]], asked: CheckedParameters
) -> Answer:
    """What is known of a page. O(its visits)."""
    number = asked["page"]
    ids = np.array([number], np.int64)
    with stores.one() as store:
        known = store.pages(ids)
        if not len(known):
            raise _missing(number)
        url, due = store.urls(ids)[0], float(store.due(ids)[0])
        host = store.hosts(known.host)
        visits = store.visits(pages=ids)
        versions = store.capture_counts(ids)
    found = survey()
    belief = None if found.value is None else beliefs_of(found.value, answers, ids)[0]
    return {
        "page": {
            "id": number,
            "url": url,
            "host": host.name[0],
            "paused": bool(host.paused[0]),
            "importance": float(known.importance[0]),
            "discovered": float(known.discovered[0]),
            "due": due,
            "visits": len(visits),
            "changes": int((visits.verdict == Verdict.CHANGED).sum()),
            "failed": int((~visits.answered()).sum()),
            "captures": int(versions[0]),
        },
        "visits": visit_rows(visits, answers, SHOWN),
        "belief": answers.belief(number) if len(visits) else {"time": [], "every": [], "shortest": [], "longest": []},
        "next": belief,
        "believed_at": found.at,
        "running": found.running,
    }


def explanation(stores: StorePool, answers: DashboardPort, asked: CheckedParameters) -> Answer:
    """Why a visit counted as a change or did not."""
    number = asked["page"]
    with stores.one() as store:
        if not len(store.pages(np.array([number], np.int64))):
            raise _missing(number)
    return {"page": number, **answers.explanation(number, asked["at"], changed=asked["changed"])}


def visit_rows(visits: Visits, answers: DashboardPort, most: int) -> list[dict[str, Any]]:
    """The latest visits, latest first, for people and programs."""
    rows = []
    for row in range(len(visits) - 1, max(-1, len(visits) - 1 - most), -1):
        outcome, verdict = Outcome(int(visits.outcome[row])), Verdict(int(visits.verdict[row]))
        status, magnitude = int(visits.status[row]), float(visits.magnitude[row])
        failed = outcome > Outcome.GONE
        rows.append(
            {
                "time": float(visits.time[row]),
                "timestamp": to_timestamp14(float(visits.time[row])),
                "outcome": _words(outcome.name),
                "verdict": _words(verdict.name),
                "kinds": [_words(kind.name or "") for kind in ChangeKind(int(visits.kinds[row]))],
                "status": status,
                "meaning": answers.failure(status) if failed else "",
                "magnitude": magnitude if magnitude >= 0 else math.nan,
                "bytes": int(visits.size[row]),
                "seconds": float(visits.cost[row]),
            }
        )
    return rows


def _words(name: str) -> str:
    return name.lower().replace("_", " ")


def _missing(number: int) -> RefusedError:
    return RefusedError(f"There is no page {number} in this workspace.", "See the list of pages.", status=404)
