"""The answers of a workspace to its dashboard, in the words of ``status``, ``plan``, ``rates`` and ``explain``."""

from __future__ import annotations

import dataclasses
import math
from typing import TYPE_CHECKING, Any

import numpy as np

from recrawl.assess.activity import activity
from recrawl.cli.explain import as_facts, compared, story_of
from recrawl.cli.rates_words import in_words
from recrawl.cli.serving.page_beliefs import PageBeliefs
from recrawl.cli.serving.survey import survey_of
from recrawl.cli.serving.survey_child import SurveyChild
from recrawl.cli.status_words import failure_words
from recrawl.cli.status_work import work_facts
from recrawl.cli.wiring import parse_limits_of
from recrawl.crawl.judging import readers
from recrawl.crawl.parse_pool import OverBudgetError
from recrawl.detect.explanation import reasons
from recrawl.detect.side_by_side import side_by_side
from recrawl.errors import InputError
from recrawl.estimate.watched import as_watched
from recrawl.model import Histories, Visits
from recrawl.show.dashboard.routes import RefusedError
from recrawl.store.browse import PageQuery
from recrawl.time import MINUTE

if TYPE_CHECKING:
    from collections.abc import Callable

    from recrawl.cli.workspace import Workspace
    from recrawl.show.dashboard.answers import Survey
    from recrawl.show.dashboard.stores import Stores
    from recrawl.store.base import Store

RECENT = 100_000
"""Latest visits of which it is told when they were made."""
MOMENTS = 60
"""Looks after which it is told what was believed."""
MOST_LOOKS = 5_000
"""Latest looks that count there: what a page was like before says little of it now."""
MANY = 20_000
"""Pages from which on a survey is made by a child: it would hold up the pages of the dashboard."""
LARGEST_TEXT = 400_000
"""Characters of two versions beyond which they are not set side by side."""


class WorkspaceAnswers:
    """Answers from the store and the archive files of one workspace."""

    def __init__(
        self, place: Workspace, stores: Stores, clock: Callable[[], float], beliefs: PageBeliefs | None = None
    ) -> None:
        self._place = place
        self._stores = stores
        self._clock = clock
        self._child = SurveyChild(place)
        detect = place.configuration.settings.detect
        self._pool = readers(parse_limits_of(detect), detect.standards())
        self.beliefs = beliefs or PageBeliefs(place, clock)

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
            facts = dataclasses.asdict(work_facts(self._place, store, now))
            backlog, next_due = store.backlog(now), store.next_due()
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

    def survey(self) -> Survey:
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
        looks = visits.take(np.flatnonzero(visits.answered())[-MOST_LOOKS:])
        if len(looks) < 2:  # noqa: PLR2004 - one says nothing about rates
            return empty
        grown = _as_it_grew(looks)
        grown = grown.take(grown.counts() > 0)
        with np.errstate(divide="ignore"):
            every, longest, shortest = (1.0 / rate for rate in found.value.over_time(page, host, grown))
        columns = {"time": grown.last_visit, "every": every, "shortest": shortest, "longest": longest}
        return {name: column.tolist() for name, column in columns.items()}

    def explanation(self, page: int, at: float | None, *, changed: bool) -> dict[str, Any]:
        """Why the last visit up to a time (that found a change) counted as it did, with both versions side by side."""
        from recrawl.crawl.archived_bytes import ArchivedBytes, imported_into

        with self._stores.one() as store:
            try:
                story = story_of(
                    store,
                    ArchivedBytes(self._place.warc, imported_into(store)),
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

    @staticmethod
    def in_words(every: float, shortest: float, longest: float) -> str:
        """How often something changes, as people say it."""
        return in_words(every, shortest, longest)

    @staticmethod
    def failure(status: int) -> str:
        """What the status of a failed visit means."""
        return failure_words(status)


def _page(store: Store, page: int) -> Any:  # noqa: ANN401 - a Page
    from recrawl.model import Page

    ids = np.array([page])
    [host], [url] = store.pages(ids).host.tolist(), store.urls(ids)
    return Page(page, host, url, "")


def _as_it_grew(looks: Visits) -> Histories:
    """A history for each of some looks: what was known right after it. O(looks · ``MOMENTS``)."""
    chosen = np.unique(np.linspace(0, len(looks) - 1, min(len(looks), MOMENTS)).astype(np.int64))
    rows = np.concatenate([np.arange(last + 1) for last in chosen.tolist()])
    number = np.repeat(np.arange(len(chosen)), chosen + 1)
    grown = dataclasses.replace(looks.take(rows), page=number)
    return Histories.from_visits(as_watched(grown))
