"""The answers of a workspace to its dashboard, in the words of ``status``, ``plan``, ``rates`` and ``explain``.

The overview: how the crawl goes now, what the budget buys, and what cannot be had.
"""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from recrawl.app.changes import ChangesQuestion, FoundChanges, PageChange, feed_id, find_changes
from recrawl.app.rates.rates_table import in_words
from recrawl.app.status import failure_words, work_facts
from recrawl.app.visit_explanation import as_facts, compared, story_of
from recrawl.assess.changes_over_time import activity
from recrawl.detect.explanation import reasons, side_by_side
from recrawl.errors import InputError
from recrawl.estimate.site_signals import exact_times_as_observations
from recrawl.model import Histories, Visits
from recrawl.parse.parse_pool import OverBudgetError, new_parse_pool
from recrawl.store.browse import PageQuery
from recrawl.time import MINUTE
from recrawl.web.dashboard.plan_survey import PageBeliefs, PlanSurvey, SurveyProcess, survey_of
from recrawl.web.dashboard.routes import Answer, CheckedParameters, RefusedError, View
from recrawl.web.dashboard.stale_cache import CachedAnswer

if TYPE_CHECKING:
    from collections.abc import Callable

    from recrawl.app.workspace.workspace import Workspace
    from recrawl.store.base import PageTable
    from recrawl.web.dashboard.plan_survey import PlanSurvey
    from recrawl.web.dashboard.stale_cache import StorePool


NEXT = 8
"""Pages shown that come next."""
NAMED = 6
"""Requests named that cannot be met."""


@dataclass(frozen=True, slots=True)
class OverviewCaches:
    """Cached results, each refreshed in the background."""

    counts: Callable[[], CachedAnswer[dict[str, Any]]]
    work: Callable[[], CachedAnswer[dict[str, Any]]]
    survey: Callable[[], CachedAnswer[PlanSurvey]]


def views(known: OverviewCaches) -> list[View]:
    """The start page."""
    return [
        View(
            "/",
            "/api/overview",
            "Overview",
            "The state of the crawl: rate, due and late pages, budget and threshold, effect of 10% more budget.",
            lambda asked: answer(known, asked),
            "dashboard/overview.html",
            keys={
                "now": "Time of the request, seconds since the epoch.",
                "counts": "Counts, and their time.",
                "work": "Workers, due and late pages, remaining budget, and their time.",
                "plan": "Threshold, effect of other budgets, unmet requests, upcoming fetches, and their time.",
            },
            menu="Overview",
        )
    ]


def answer(known: OverviewCaches, asked: CheckedParameters) -> Answer:
    """What is known now; ``null`` where it is still being worked out."""
    survey = known.survey()
    facts: Mapping[str, Any] | None = None if survey.value is None else survey.value.facts
    return {
        "now": asked.now,
        "counts": told(known.counts()),
        "work": told(known.work()),
        "plan": told(CachedAnswer(facts, survey.at, survey.error, survey.running)),
    }


def told(found: CachedAnswer[Any]) -> Answer:
    """What was found, as of when; or why there is nothing."""
    return {"facts": found.value, "at": found.at, "error": found.error, "running": found.running}


RECENT = 100_000
"""Maximum number of latest visits with their times."""
MOMENTS = 60
"""Maximum number of observations with the belief after each."""
MOST_LOOKS = 5_000
"""Latest observations that count there: older ones say little about the current behaviour."""
MANY = 20_000
"""Pages from which on a survey is made by a child: it would hold up the pages of the dashboard."""
LARGEST_TEXT = 400_000
"""Characters of two versions beyond which they are not set side by side."""


class WorkspaceDashboard:
    """Answers from the store and the archive files of one workspace."""

    def __init__(
        self, place: Workspace, stores: StorePool, clock: Callable[[], float], beliefs: PageBeliefs | None = None
    ) -> None:
        self._place = place
        self._stores = stores
        self._clock = clock
        self._child = SurveyProcess(place)
        detect = place.configuration.settings.detect
        self._pool = new_parse_pool(detect.parse_limits(), detect.standards())
        self.beliefs = beliefs or PageBeliefs(place, clock)
        self._described: dict[str, PageChange] = {}

    def counts(self) -> dict[str, Any]:
        """How much there is, and when the latest visits were made. Behind the scenes: may take seconds."""
        now = self._clock()
        with self._place.open_store() as store:
            counts, recent = store.counts(now), store.latest_visits(RECENT)
        seen = activity(recent)
        return {
            **dataclasses.asdict(counts),
            "last_visit": float(recent.time[0]) if len(recent) else math.nan,
            "activity": {name: getattr(seen, name).tolist() for name in ("edges", "visits", "changed", "failed")},
        }

    def work(self) -> dict[str, Any]:
        """Who is at work and how fast, what is due and late, what the budget leaves."""
        now = self._clock()
        with self._place.open_store() as store:
            backlog, next_due = store.backlog(now), store.next_due()
            facts = dataclasses.asdict(work_facts(self._place, store, now, backlog))
            minute = store.latest_visits(1_000)
        lately = int((minute.time > now - MINUTE).sum())
        return {
            **facts,
            "due": backlog.due,
            "due_paused": backlog.paused,
            "next_due": next_due,
            "visits_last_minute": lately,
            "visits_last_minute_at_least": lately == len(minute) and lately > 0,
            "workspace": str(self._place.folder),
            "store": self._place.shown_store,
        }

    def survey(self) -> PlanSurvey:
        """What is expected of all pages. Behind the scenes: may take minutes."""
        now = self._clock()
        with self._place.open_store() as store:
            newest = store.browse_pages(PageQuery(order="found", descending=True, limit=1), now).page
            if not len(newest) or newest[0] < MANY:
                return survey_of(self._place, store, now)
        return self._child.survey(now)

    def close(self) -> None:
        """End what is under way."""
        self._child.close()
        self._pool.close()

    def belief(self, page: int) -> dict[str, list[float]] | None:
        """What was believed of a page after its observations, the first aside; of many, after some.

        ``None`` while it is learned. The last is what ``recrawl rates`` says of the page.
        """
        found = self.beliefs.kept.get()
        empty: dict[str, list[float]] = {"time": [], "every": [], "shortest": [], "longest": []}
        if found.value is None:
            return None if found.running else empty
        with self._stores.one() as store:
            visits = store.visits(pages=np.array([page]))
            [host] = store.pages(np.array([page])).host
        observations = visits.take(np.flatnonzero(visits.answered())[-MOST_LOOKS:])
        if len(observations) < 2:  # noqa: PLR2004 - one says nothing about rates
            return empty
        grown = _as_it_grew(observations)
        grown = grown.take(grown.counts() > 0)
        with np.errstate(divide="ignore"):
            every, longest, shortest = (1.0 / rate for rate in found.value.over_time(page, host, grown))
        columns = {"time": grown.last_visit, "every": every, "shortest": shortest, "longest": longest}
        return {name: column.tolist() for name, column in columns.items()}

    def explanation(self, page: int, at: float | None, *, changed: bool) -> dict[str, Any]:
        """Why the last visit up to a time (that found a change) counted as it did, with both versions side by side."""
        from recrawl.formats.warc.archived_bytes import ArchivedBytes

        with self._stores.one() as store:
            try:
                story = story_of(
                    store,
                    ArchivedBytes.of(self._place.archive, store),
                    _page(store, page),
                    math.inf if at is None else at,
                    changed=changed,
                )
            except InputError as error:  # a question that makes sense, of a visit that there is not
                raise RefusedError(error.what, "Leave out at and changed, or wait for a visit.", status=404) from error
        try:
            told = compared(story, self._place.configuration.settings.detect.standards(), self._pool)
        except OverBudgetError as error:
            raise RefusedError(
                f"These versions cannot be compared: {error}.",
                "Raise detect.read_time or detect.read_memory.",
                status=422,
            ) from error
        facts: dict[str, Any] = {name: value for name, value in as_facts(story, told, None).items() if name != "page"}
        facts["steps"] = [] if told is None else [list(step) for step in reasons(told)]
        facts["side_by_side"] = None
        if told is not None:
            before, after = told.before.lines, told.after.lines
            if sum(map(len, before)) + sum(map(len, after)) <= LARGEST_TEXT:
                rows = side_by_side(before, after)
                facts["side_by_side"] = rows and [
                    {"side": row.side.value, "before": row.before, "after": row.after, "skipped": row.skipped}
                    for row in rows
                ]
        times = story.visits.time
        facts["earlier"] = float(times[story.row - 1]) if story.row > 0 else None
        facts["later"] = float(times[story.row + 1]) if story.row + 1 < len(times) else None
        return facts

    def changes(self, host: str, question: ChangesQuestion) -> FoundChanges:
        """What changed on a host, or on all. Descriptions are kept, since those of one visit do not change."""
        with self._stores.one() as store:
            if host:
                number = store.find_host(host)
                if number is None:
                    return FoundChanges((), 0)
                question = dataclasses.replace(question, host=number)
            return find_changes(self._place, store, question, self._pool, self._described)

    def feed_id(self) -> str:
        """A URI for the feeds of this workspace."""
        with self._stores.one() as store:
            return feed_id(store)

    @staticmethod
    def in_words(every: float, shortest: float, longest: float) -> str:
        """How often something changes, as people say it."""
        return in_words(every, shortest, longest)

    @staticmethod
    def failure(status: int) -> str:
        """What the status of a failed visit means."""
        return failure_words(status)


def _page(store: PageTable, page: int) -> Any:  # noqa: ANN401 - a Page
    from recrawl.model import Page

    ids = np.array([page])
    [host], [url] = store.pages(ids).host.tolist(), store.urls(ids)
    return Page(page, host, url, "")


def _as_it_grew(observations: Visits) -> Histories:
    """A history up to each of some observations. O(observations · ``MOMENTS``)."""
    chosen = np.unique(np.linspace(0, len(observations) - 1, min(len(observations), MOMENTS)).astype(np.int64))
    rows = np.concatenate([np.arange(last + 1) for last in chosen.tolist()])
    number = np.repeat(np.arange(len(chosen)), chosen + 1)
    grown = dataclasses.replace(observations.take(rows), page=number)
    return Histories.from_visits(exact_times_as_observations(grown))
