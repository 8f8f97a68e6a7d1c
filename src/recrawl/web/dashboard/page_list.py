"""The list of pages: searched, filtered and sorted by the store, a screen at a time."""

from __future__ import annotations

import base64
import binascii
import json
import math
from collections.abc import Callable
from typing import Any

import numpy as np

from recrawl.model import FloatArray, IntArray, Verdict, Visits
from recrawl.store.browse import Mark, PageQuery, PageRows
from recrawl.web.dashboard.dashboard_port import DashboardPort, PlanSurvey
from recrawl.web.dashboard.routes import Answer, CheckedParameters, Parameter, RefusedError, View
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


def views(stores: StorePool, answers: DashboardPort, survey: Callable[[], CachedAnswer[PlanSurvey]]) -> list[View]:
    """The list of pages."""
    return [
        View(
            "/pages",
            "/api/pages",
            "Pages",
            "Pages by URL, host or state: observed changes, estimated change rates, and due times.",
            lambda asked: answer(stores, answers, survey, asked),
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


def answer(
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
