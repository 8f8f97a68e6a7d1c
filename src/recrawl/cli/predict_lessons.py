"""What a model learns from: the histories of a workspace, or those of a recorded data set."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from recrawl.errors import InputError
from recrawl.model import Histories, IntArray, Verdict, Visits, words
from recrawl.predict.first_sight import first_sight, site_ids
from recrawl.predict.look_counts import LookCounts
from recrawl.predict.prior_model import LINK_EVENTS, counted
from recrawl.predict.prior_splits import Lessons
from recrawl.time import DAY

if TYPE_CHECKING:
    from recrawl.cli.workspace import Workspace
    from recrawl.model import FloatArray
    from recrawl.predict.feature_table import FeatureTable
    from recrawl.store.base import Store

_LOOK_EVERY = 30 * DAY
_LOOKS = 12
"""Looks at pages of a data set: a year of them. Young pages change more often, and a prior is about these."""
FEWEST = 40
"""Pages with a second look below which nothing can be learned."""


@dataclass(frozen=True, slots=True)
class Material:
    """Lessons, and where they are from."""

    lessons: Lessons
    source: str
    urls: Sequence[str]
    """Of the pages of the lessons."""

    def __post_init__(self) -> None:
        if (count := len(self.lessons)) < FEWEST:
            pages = f"{words.counted(count, 'page')} {'was' if count == 1 else 'were'}"
            raise InputError(
                f"Only {pages} looked at more than once; a model needs {FEWEST}.",
                "Crawl longer, import histories, or learn from a data set with --data.",
            )


def material(place: Workspace, store: Store, data: Path | None, until: float | None = None) -> Material:
    """What can be learned from a workspace, up to a time if one is given, or from a data set.

    Raises:
        InputError: there is too little.
    """
    lessons, urls = _recorded(data) if data is not None else _own(place, store, until)
    return Material(lessons, "workspace" if data is None else data.name, urls)


def sights(place: Workspace, store: Store, page: IntArray, first: FloatArray, urls: Sequence[str]) -> FeatureTable:
    """What was known of pages at first sight, as far as the archive of the workspace tells; under a bar."""
    from recrawl.cli.waiting import bars
    from recrawl.crawl.archived_bytes import ArchivedBytes, imported_into
    from recrawl.crawl.first_looks import first_looks

    with bars() as bar:
        task = bar.add_task("first copies of pages", total=len(page))
        archived = ArchivedBytes(place.warc, imported_into(store))
        looks = first_looks(store, archived.read, page, first, lambda done: bar.advance(task, done))
    return first_sight(page, urls, looks)


def _own(place: Workspace, store: Store, until: float | None) -> tuple[Lessons, list[str]]:
    from recrawl.cli.knowledge import Span, lesson_of

    lesson = lesson_of(store, Span(until=until))
    told = lesson.evidence.histories
    rows = np.flatnonzero(told.counts())
    page, histories = told.page[rows], told.take(rows)
    urls = store.urls(page)
    table = sights(place, store, page, lesson.histories.first_visit[rows], urls)
    return Lessons(table, site_ids(urls), histories, new_links(store, histories, until)), urls


def new_links(store: Store, histories: Histories, until: float | None) -> dict[str, LookCounts]:
    """New links that visits after the first counted on each page, by event; none if nobody ever counted."""
    visits = store.visits(pages=histories.page, until=until)
    told = np.flatnonzero(visits.new_internal >= 0)
    row = np.searchsorted(histories.page, visits.page[told])
    later = visits.time[told] > histories.first_visit[row]
    told, row = told[later], row[later]
    if not len(told):
        return {}
    found = {"internal": visits.new_internal[told], "external": np.maximum(visits.new_external[told], 0)}
    return {LINK_EVENTS[kind]: counted(row, links, histories.observed()) for kind, links in found.items()}


def _recorded(folder: Path) -> tuple[Lessons, list[str]]:
    """Pages of a data set as if somebody had looked at each every month of its first year."""
    from recrawl.cli.link_data import link_data
    from recrawl.cli.waiting import bar

    with bar("reading the data set", 1) as advance:
        record = link_data(folder, texts=(folder / "texts.parquet").is_file())
        advance()
    evidence, versions = record.evidence, record.evidence.versions
    starts = versions.offsets(evidence.page)
    there = np.flatnonzero(starts[1:] > starts[:-1])
    born = versions.time[starts[there]]
    page, when, gone = record.events
    ends = np.full(len(record.sites), -np.inf)
    np.maximum.at(ends, record.site[page], when)
    end = ends[record.site]
    end[page[gone]] = np.minimum(end[page[gone]], when[gone])
    looks = born[:, None] + _LOOK_EVERY * np.arange(1, _LOOKS + 1)
    made = looks <= end[there][:, None]
    changes = _until(
        versions.page[versions.changed], versions.time[versions.changed], there, np.column_stack([born, looks])
    )
    changed = np.diff(changes, axis=1) > 0
    ids = np.broadcast_to(there[:, None], looks.shape)
    verdict = np.where(changed, Verdict.CHANGED, Verdict.UNCHANGED)
    visits = Visits.of(
        np.concatenate([there, ids[made]]),
        np.concatenate([born, looks[made]]),
        verdict=np.concatenate([np.full(len(there), Verdict.UNKNOWN), verdict[made]]),
    )
    histories = Histories.from_visits(visits)
    histories = histories.take(np.flatnonzero(histories.counts()))
    watched = np.isin(versions.page, histories.page)
    urls = [evidence.urls[one] for one in histories.page.tolist()]
    table = first_sight(histories.page, urls, versions.take(watched))
    row = np.searchsorted(histories.page, versions.page[watched])
    in_time = versions.time[watched] <= histories.last_visit[row]
    new = {"internal": versions.new_internal[watched], "external": versions.new_external[watched]}
    links = {
        LINK_EVENTS[kind]: counted(row, np.where(in_time, np.nan_to_num(one), 0.0), histories.observed())
        for kind, one in new.items()
    }
    return Lessons(table, site_ids(urls), histories, links), urls


def _until(page: IntArray, time: FloatArray, asked: IntArray, moments: FloatArray) -> IntArray:
    """How many events each page had by each of its moments; events by page and time."""
    scale = max(float(time.max(initial=0.0)), float(moments.max(initial=0.0))) + 1.0
    key = page * scale + time
    return np.searchsorted(key, asked[:, None] * scale + moments, side="right")
