"""The overview: how the crawl goes now, what the budget buys, and what cannot be had."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from recrawl.show.dashboard.answers import Survey
from recrawl.show.dashboard.kept import Found
from recrawl.show.dashboard.routes import Answer, Asked, View

NEXT = 8
"""Pages shown that come next."""
NAMED = 6
"""Requests named that cannot be met."""


@dataclass(frozen=True, slots=True)
class Known:
    """What is kept, each renewed behind the scenes."""

    counts: Callable[[], Found[dict[str, Any]]]
    work: Callable[[], Found[dict[str, Any]]]
    survey: Callable[[], Found[Survey]]


def views(known: Known) -> list[View]:
    """The start page."""
    return [
        View(
            "/",
            "/api/overview",
            "Overview",
            "How the crawl goes now: rate, what is due and late, budget and price, what a tenth more would buy.",
            lambda asked: answer(known, asked),
            "dashboard/overview.html",
            keys={
                "now": "When it was asked, seconds since the epoch.",
                "counts": "How much there is, and as of when.",
                "work": "Who is at work, what is due and late, what the budget leaves, and as of when.",
                "plan": "Price, what other budgets would buy, what cannot be met, what comes next, and as of when.",
            },
            menu="Overview",
        )
    ]


def answer(known: Known, asked: Asked) -> Answer:
    """What is known now; ``null`` where it is still being worked out."""
    survey = known.survey()
    facts: Mapping[str, Any] | None = None if survey.value is None else survey.value.facts
    return {
        "now": asked.now,
        "counts": told(known.counts()),
        "work": told(known.work()),
        "plan": told(Found(facts, survey.at, survey.error, survey.running)),
    }


def told(found: Found[Any]) -> Answer:
    """What was found, as of when; or why there is nothing."""
    return {"facts": found.value, "at": found.at, "error": found.error, "running": found.running}
