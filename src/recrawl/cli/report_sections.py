"""All sections of a report, from a store: what ``recrawl assess`` and ``recrawl rates`` find out, in order."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from recrawl.assess.missed_changes import certainly_missed, dated_changes, expected_missed
from recrawl.assess.quality_over_time import sharpness_over_time, staying_fresh
from recrawl.assess.timeline import bins
from recrawl.cli.assess_answer import Answer, Asked, answer
from recrawl.cli.assess_composites import composed_in, composite_words
from recrawl.cli.assess_facts import paragraphs
from recrawl.cli.assess_tables import crawls, pages, sections
from recrawl.cli.rates_question import By, Question
from recrawl.cli.rates_rows import Rows, rows_for
from recrawl.cli.report_behaviour import Chosen, behaviour_of
from recrawl.model import IntArray, Verdict
from recrawl.show.report.areas import areas_section
from recrawl.show.report.behaviour import Behaviour, behaviour_sections
from recrawl.show.report.composites import composites_section
from recrawl.show.report.graph import graph_section
from recrawl.show.report.holdings import Holdings, holdings_section
from recrawl.show.report.scatter import scatter_section
from recrawl.show.report.section import Section
from recrawl.show.report.sharpness import MOST_ROWS, Quality, quality_sections
from recrawl.show.report.site_pages import SitePages, media_types, pages_of_archive, pages_of_capture
from recrawl.show.report.subsites import SiteParts, subsites_section
from recrawl.store.base import Store
from recrawl.time import DAY

if TYPE_CHECKING:
    from recrawl.cli.assess_sources import Archive

_MOST_BINS = 24
_AHEAD = (0.0, *(DAY * np.geomspace(0.1, 1_000.0, 16)).tolist())
"""Seconds after the moment asked about, at which freshness is foretold."""


@dataclass(frozen=True, slots=True)
class Wanted:
    """What a report is to be about."""

    asked: Asked
    question: Question
    versions: str | None = None
    """Where the versions of a page are listed: a link with ``{url}`` or ``{id}`` in it."""
    capture: int | None = None
    """The capture of a site whose graph is drawn; the whole archive's if nobody says."""
    warc: Path | None = None
    """Where archive files lie, if their bytes may be read."""


def sections_of(store: Store, wanted: Wanted, archive: Archive | None = None) -> list[Section]:
    """Every section.

    Raises:
        NothingToJudgeError: there is no capture of what is asked about.
    """
    found = answer(store, wanted.asked)
    # The clock of a simulated crawl may be ahead of ours.
    question = replace(wanted.question, by=By.PAGE, now=max(wanted.question.now, found.quality.end))
    learned = rows_for(store, question)
    mime = media_types(store, found.quality.looks.page)
    drawn = _drawn(store, found, wanted.capture, mime)
    return [
        holdings_section(_holdings(store, found, wanted, archive, mime)),
        *quality_sections(_quality(found, learned, question.now, archive)),
        _composites(store, found, wanted.warc),
        subsites_section([SiteParts(found.sites[one.site], one.sections, one.found) for one in found.parts]),
        *behaviour_sections(_behaviour(store, found, learned, question)),
        areas_section(store, found.quality, found.sites, mime),
        scatter_section(drawn),
        graph_section(drawn, wanted.versions),
    ]


def _composites(store: Store, found: Answer, warc: Path | None) -> Section:
    composed = composed_in(store, found.quality.looks.page, warc)
    if composed is None:
        return composites_section(None, [], composite_words(None))
    return composites_section(composed.found, composed.urls, composite_words(composed))


def _drawn(store: Store, found: Answer, capture: int | None, mime: list[str]) -> SitePages:
    """The pages of graph and scatter plot: as the archive has them at last, or as one capture found them."""
    if capture is None:
        return pages_of_archive(store, found.quality, found.urls, found.recorded.via, mime)
    drawn = pages_of_capture(store, capture)
    looked = found.quality.looks.page
    row = np.minimum(np.searchsorted(looked, drawn.page), len(looked) - 1)
    # By now more is known of rates than when the strategy was told.
    return replace(drawn, rate=np.where(looked[row] == drawn.page, found.quality.rate[row], drawn.rate))


def _holdings(store: Store, found: Answer, wanted: Wanted, archive: Archive | None, mime: list[str]) -> Holdings:
    looks = found.quality.looks
    visits = store.visits()
    failed = visits.take(~visits.answered() & (visits.verdict == Verdict.UNKNOWN))
    if wanted.asked.pages is not None:
        failed = failed.take(np.isin(failed.page, wanted.asked.pages))
    claims = store.claims(looks.page)
    told = claims.page, claims.time, claims.lastmod
    files = Counter(one.format.value for one in archive.brought if one.accepted) if archive is not None else {}
    return Holdings(
        found.quality,
        found.sites,
        mime,
        dict(files),
        failed.time,
        failed.outcome.astype(np.int64),
        _sites_of(store, failed.page, found.sites),
        certainly_missed(looks, *told),
        int(dated_changes(looks, *told).sum()),
        expected_missed(looks, found.quality.rate),
    )


def _sites_of(store: Store, page: IntArray, sites: list[str]) -> IntArray:
    """The number of the host of each page, -1 if none of its pages was ever seen."""
    ids, place = np.unique(store.pages(page).host if len(page) else np.empty(0, np.int64), return_inverse=True)
    number = {name: number for number, name in enumerate(sites)}
    named = np.array([number.get(name, -1) for name in store.hosts(ids).name], np.int64)
    return named[place] if len(page) else np.empty(0, np.int64)


def _quality(found: Answer, learned: Rows, now: float, archive: Archive | None) -> Quality:
    quality = found.quality
    there = ~quality.looks.gone[quality.looks.offsets[1:] - 1]
    rows = np.searchsorted(learned.lesson.histories.page, quality.looks.page[there])
    known = len(learned.lesson.histories.gaps) > 0
    staying = (
        staying_fresh(learned.belief.take(rows), learned.last_look[rows], quality.weight[there], now + np.array(_AHEAD))
        if known
        else None
    )
    whole, moment, _, *crawl = paragraphs(found, archive)
    return Quality(
        quality,
        [*whole, *moment],
        crawl[0] if crawl else [],
        sharpness_over_time(quality, bins(quality.start, quality.end, _MOST_BINS)),
        now,
        staying,
        crawls(found),
        sections(found),
        pages(found, MOST_ROWS),
        found.shown,
        found.at,
        found.together,
        found.urls,
    )


def _behaviour(store: Store, found: Answer, learned: Rows, question: Question) -> Behaviour:
    page = found.quality.looks.page
    pages = Chosen(learned, np.searchsorted(learned.lesson.histories.page, page), found.urls)
    whole = rows_for(store, replace(question, by=By.SITE))
    ours = np.flatnonzero(np.isin(whole.host, store.pages(page).host))
    names = whole.names or []
    return behaviour_of(pages, Chosen(whole, ours, [names[row] for row in ours.tolist()]), question.estimator)
