"""What changed, as a page, as JSON, and as feeds for feed readers."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import TypeAlias

from recrawl.app.changes import (
    EVENTS,
    KINDS,
    ChangeEvent,
    ChangesQuestion,
    FeedFrame,
    FoundChanges,
    as_atom,
    as_json_feed,
    difference_path,
)
from recrawl.model import ChangeKind
from recrawl.time import DAY, HOUR
from recrawl.web.dashboard.routes import Answer, CheckedParameters, Parameter, View

PERIODS = {"hour": HOUR, "day": DAY, "week": 7 * DAY, "month": 30 * DAY, "year": 365 * DAY}
"""Lengths of time before now, in seconds, by name."""
MOST = 200
"""Changes of one answer."""
FindChanges: TypeAlias = Callable[[str, ChangesQuestion], FoundChanges]
"""The changes of a host by its name (empty for all), and of a question."""

_PARAMETERS = (
    Parameter("period", "How far back from now.", default="day", choices=tuple(PERIODS)),
    Parameter("event", "Only this event.", default="", choices=("", *EVENTS)),
    Parameter("kind", "Only changes of this kind.", default="", choices=("", *KINDS)),
    Parameter("host", "Only pages of this host, by its name.", default=""),
    Parameter("search", "Only URLs that contain this text, or match it as a pattern with * and ?.", default=""),
    Parameter("min_change", "Only changes of at least this share of the page.", "number", default=0.0, least=0, most=1),
    Parameter("limit", "Changes at most, latest first.", "integer", default=50, least=1, most=MOST),
)
_KEYS = {"changes": "Latest first; previous is the visit before: it changed in between.", "total": "Number in all."}


def changes_views(find: FindChanges, title: str, feed_id: Callable[[], str]) -> list[View]:
    """The list of changes, and the same as feeds.

    ``feed_id`` is a URI that stays the same for the workspace.
    """

    def found(asked: CheckedParameters) -> FoundChanges:
        return find(asked["host"], question_of(asked))

    def frame(asked: CheckedParameters, name: str) -> FeedFrame:
        return FeedFrame(f"Changes in {title}", feed_id(), asked.base, f"{asked.base}/feeds/{name}", asked.now)

    def page(asked: CheckedParameters) -> Answer:
        known = found(asked)
        rows = [{**one.facts(), "difference": difference_path(one)} for one in known.changes]
        return {"changes": rows, "total": known.total, "periods": list(PERIODS), "events": list(EVENTS)}

    return [
        View(
            "/changes",
            "/api/changes",
            "Changes",
            "What changed: pages changed, added, gone, back, moved or failing, with a sentence on each.",
            page,
            "dashboard/changes.html",
            _PARAMETERS,
            _KEYS,
            menu="Changes",
        ),
        View(
            "",
            "/feeds/changes.atom",
            "Changes as Atom",
            "The changes as an Atom feed.",
            lambda asked: as_atom(found(asked), frame(asked, "changes.atom")),
            parameters=_PARAMETERS,
            media_type="application/atom+xml",
        ),
        View(
            "",
            "/feeds/changes.json",
            "Changes as JSON Feed",
            "The changes as a JSON Feed.",
            lambda asked: json.dumps(as_json_feed(found(asked), frame(asked, "changes.json"))).encode(),
            parameters=_PARAMETERS,
            keys={"version": "The version of JSON Feed.", "title": "Of the feed.", "items": "Latest first."},
            media_type="application/feed+json",
        ),
    ]


def question_of(asked: CheckedParameters) -> ChangesQuestion:
    """What the parameters ask for, but for the host."""
    return ChangesQuestion(
        since=asked.now - PERIODS[asked["period"]],
        until=asked.now,
        events=frozenset([ChangeEvent(asked["event"])] if asked["event"] else EVENTS),
        kinds=KINDS[asked["kind"]] if asked["kind"] else ChangeKind.NONE,
        min_change=asked["min_change"],
        match=asked["search"],
        limit=asked["limit"],
    )
