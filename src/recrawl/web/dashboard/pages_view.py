"""The list of pages, searched, filtered and sorted by the store, and the view of one page."""

from __future__ import annotations

import base64
import binascii
import json
import math
from collections.abc import Callable
from typing import Any

import numpy as np

from recrawl.model import ChangeKind, FloatArray, IntArray, Outcome, Verdict, Visits
from recrawl.store.browse import Mark, PageQuery, PageRows
from recrawl.time import to_timestamp14
from recrawl.web.dashboard.plan_survey import DashboardPort, PlanSurvey
from recrawl.web.dashboard.routes import LARGEST, Answer, CheckedParameters, Parameter, RefusedError, View
from recrawl.web.dashboard.stale_cache import CachedAnswer, StorePool

MOST_ROWS = 200
NOBODY = -1
"""The id of no host: of a name that is not known there are no pages."""
ORDERS = {
    "url": "by URL",
    "url-down": "by URL, descending",
    "due": "due first",
    "due-last": "due last",
    "newest": "discovered last",
    "oldest": "discovered first",
    "rate": "changes most often",
    "-rate": "changes least often",
    "worth": "most worth a visit",
    "changed": "most likely changed since",
}
"""The orders by name, as people read them."""
_BY_STORE = {
    "url": ("url", False),
    "url-down": ("url", True),
    "due": ("due", False),
    "due-last": ("due", True),
    "newest": ("found", True),
    "oldest": ("found", False),
}
STATES = {
    "": "any",
    "due": "due now",
    "waiting": "due later",
    "never": "never to be visited",
    "failing": "failing",
    "gone": "gone",
}


def list_views(stores: StorePool, answers: DashboardPort, survey: Callable[[], CachedAnswer[PlanSurvey]]) -> list[View]:
    """The list of pages."""
    return [
        View(
            "/pages",
            "/api/pages",
            "Pages",
            "Pages by URL, host or state: observed changes, estimated change rates, and due times.",
            lambda asked: list_answer(stores, answers, survey, asked),
            "dashboard/pages.html",
            (
                Parameter(
                    "search",
                    "Only pages with this text in their URL; for a whole URL, those that start with it.",
                    default="",
                ),
                Parameter("host", "Only pages of this host, by its name.", default=""),
                Parameter("state", "Only pages in this state.", default="", choices=tuple(STATES)),
                Parameter(
                    "sort",
                    "Sort order; by belief only for scheduled pages.",
                    default="url",
                    choices=tuple(ORDERS),
                ),
                Parameter(
                    "after",
                    "Value of next in the previous response.",
                    default="",
                    pattern="[A-Za-z0-9_-]*",
                ),
                Parameter("limit", "Rows.", "integer", default=50, least=1, most=MOST_ROWS),
            ),
            {
                "pages": "The rows.",
                "next": "Value of after for more; null at the end.",
                "sifted": "Number of pages scanned for these rows. A list can be short or empty and still continue.",
                "believed_at": "Time of the beliefs; null while they are computed.",
            },
            menu="Pages",
        )
    ]


def list_answer(
    stores: StorePool, answers: DashboardPort, survey: Callable[[], CachedAnswer[PlanSurvey]], asked: CheckedParameters
) -> Answer:
    """One screen of pages."""
    found = survey()
    with stores.one() as store:
        query = _query(asked, found, store.find_host)
        rows = store.browse_pages(query, asked.now)
        observations = store.observations(rows.page)
        names = store.hosts(np.unique(rows.host))
    host = dict(zip(names.id.tolist(), names.name, strict=True))
    return {
        "pages": _rows(rows, observations, found.value, answers, host),
        "next": None if rows.next is None else packed(rows.next),
        "sifted": rows.sifted,
        "believed_at": found.at,
        "orders": ORDERS,
        "states": STATES,
    }


def _query(
    asked: CheckedParameters, found: CachedAnswer[PlanSurvey], find_host: Callable[[str], int | None]
) -> PageQuery:
    order, descending, ids = "url", False, None
    if asked["sort"] in _BY_STORE:
        order, descending = _BY_STORE[asked["sort"]]
    elif found.value is None:
        why = found.error or "Beliefs are still being computed."
        raise RefusedError(why, "Use another sort order, or try again later.", status=503)
    else:
        ids = found.value.orders[asked["sort"]]
    number = None
    if asked["host"]:
        number = find_host(asked["host"])
        number = NOBODY if number is None else number
    return PageQuery(
        host=number,
        host_name=asked["host"],
        text=asked["search"],
        state=asked["state"],
        order=order,  # type: ignore[arg-type]  # as _BY_STORE says
        descending=descending,
        after=unpacked(asked["after"]) if asked["after"] else None,
        limit=asked["limit"],
        ids=ids,
    )


def packed(mark: Mark) -> str:
    """A place in a list as one word for addresses.

    >>> unpacked(packed(("org,example)/", 7))), unpacked(packed((math.inf, 7)))
    (('org,example)/', 7), (inf, 7))
    """
    return base64.urlsafe_b64encode(json.dumps(mark).encode()).decode().rstrip("=")


def unpacked(word: str) -> Mark:
    """The place that such a word stands for.

    Raises:
        RefusedError: it stands for none.
    """
    try:
        value, number = json.loads(base64.b64decode(word + "=" * (-len(word) % 4), altchars=b"-_", validate=True))
        if isinstance(value, str | int | float) and isinstance(number, int) and 0 <= number < 2**63:
            if not isinstance(value, str):
                return float(value), number
            if "\x00" not in value and value.isprintable():
                return value, number
    except (ValueError, TypeError, binascii.Error, OverflowError, RecursionError):
        pass
    raise RefusedError("after is not a position in this list.", "Give the value of next in the previous response.")


def _rows(
    rows: PageRows, observations: Visits, survey: PlanSurvey | None, answers: DashboardPort, host: dict[int, str]
) -> list[dict[str, Any]]:
    visits, changes, last, last_change = _history(rows.page, observations)
    beliefs = [None] * len(rows) if survey is None else beliefs_of(survey, answers, rows.page)
    return [
        {
            "id": page,
            "url": rows.url[row],
            "host": host[int(rows.host[row])],
            "due": float(rows.due[row]),
            "importance": float(rows.importance[row]),
            "discovered": float(rows.discovered[row]),
            "mime": rows.mime[row],
            "gone": rows.gone[row],
            "failures": int(rows.failures[row]),
            "visits": int(visits[row]),
            "changes": int(changes[row]),
            "last_observed": float(last[row]),
            "last_change": float(last_change[row]),
            "belief": beliefs[row],
        }
        for row, page in enumerate(rows.page.tolist())
    ]


def beliefs_of(survey: PlanSurvey, answers: DashboardPort, pages: IntArray) -> list[dict[str, Any] | None]:
    """What is believed of these pages; ``None`` of those the survey does not know."""
    told: list[dict[str, Any] | None] = []
    for row in survey.rows(pages).tolist():
        if row < 0:
            told.append(None)
            continue
        every, shortest, longest = (float(column[row]) for column in (survey.every, survey.shortest, survey.longest))
        told.append(
            {
                "every": every,
                "shortest": shortest,
                "longest": longest,
                "words": answers.in_words(every, shortest, longest),
                "p_changed": float(survey.p_changed[row]),
                "worth": float(survey.worth[row]),
                "due": float(survey.due[row]),
                "why": survey.reasons[int(survey.why[row])],
            }
        )
    return told


def _history(page: IntArray, observations: Visits) -> tuple[IntArray, IntArray, FloatArray, FloatArray]:
    """Visits, changes found, last answer and last change of each of these distinct pages."""
    order = np.argsort(page)
    row = order[np.searchsorted(page, observations.page, sorter=order)] if len(page) else observations.page
    changed = observations.verdict == Verdict.CHANGED
    last, last_change = np.full(len(page), math.nan), np.full(len(page), math.nan)
    answered = observations.answered()
    last[row[answered]] = observations.time[answered]  # ascending within a page: the latest stays
    last_change[row[changed]] = observations.time[changed]
    return (
        np.bincount(row, minlength=len(page)),
        np.bincount(row[changed], minlength=len(page)),
        last,
        last_change,
    )


SHOWN = 400
"""Latest visits that are shown."""
_PAGE = Parameter("page", "The page, by its id.", "integer", required=True, least=0, most=LARGEST, place="path")


def page_views(stores: StorePool, answers: DashboardPort, survey: Callable[[], CachedAnswer[PlanSurvey]]) -> list[View]:
    """One page, and one visit to it explained."""
    return [
        View(
            "/pages/{page}",
            "/api/pages/{page}",
            "Page",
            "One page: its visits, the belief after each observation, and the reason for its due time.",
            lambda asked: page_answer(stores, answers, survey, asked),
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


def page_answer(
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
