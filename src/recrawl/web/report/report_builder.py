"""All sections of a report, from a store: the results of ``recrawl assess`` and ``recrawl rates``, in order.

The report of a workspace starts with the statement of its own site capture, if there is one. The module also adds
the scripts and style sheets of figures that are more than charts.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from recrawl.app.assess.assess_facts import composed_in, composite_words, crawls, pages, paragraphs, sections
from recrawl.app.assess.assessment import (
    ArchiveAssessment,
    AssessmentQuestion,
    SitePages,
    answer,
    media_types,
    pages_of_archive,
    pages_of_capture,
)
from recrawl.app.rates.estimator_backtest import predict_links, some_observations
from recrawl.app.rates.rates_diagnosis import SEED, findings_of
from recrawl.app.rates.rates_table import RateRows, RatesGrouping, RatesQuestion, rows_for
from recrawl.app.site_capture import report_lines
from recrawl.assess.archive_quality import sharpness_over_time, staying_fresh
from recrawl.assess.changes_over_time import bins
from recrawl.assess.observations import certainly_missed, dated_changes, expected_missed
from recrawl.assess.poisson_test import (
    LogNormalFit,
    WeeklyRhythm,
    fit_lognormal,
    interval_spread,
    intervals_of,
    rhythm,
)
from recrawl.assess.prediction_scores import calibration, log_loss, moments
from recrawl.crawl.site_capture.capture_course import course_of, report_of
from recrawl.errors import StoreError
from recrawl.estimate.estimator import Estimator, RateEvidence
from recrawl.estimate.operational.factor_state import TimeFactor, fit
from recrawl.estimate.operational.operational_posterior import places_of
from recrawl.estimate.operational.operational_time import HOURS
from recrawl.model import BoolArray, FloatArray, IntArray, Verdict
from recrawl.store.base import HistoryStore, PageTable, Store
from recrawl.store.store_values import SiteCapture
from recrawl.time import DAY
from recrawl.web.report import site_graph
from recrawl.web.report.behaviour import ChangeBehaviour, ChangeLevel, behaviour_sections
from recrawl.web.report.holdings import Holdings, areas_section, holdings_section
from recrawl.web.report.quality_sections import (
    MOST_ROWS,
    SharpnessData,
    SiteParts,
    composites_section,
    quality_sections,
    subsites_section,
)
from recrawl.web.report.report_page import ReportExtras, Section
from recrawl.web.report.site_graph import graph_section, scatter_section

if TYPE_CHECKING:
    from recrawl.app.assess.archive_reading import TemporaryArchive
    from recrawl.formats.warc.archive_folder import ArchiveFolder


EXTRAS = ReportExtras(site_graph.SCRIPTS, site_graph.STYLES)


def statement_section(store: HistoryStore, capture: SiteCapture) -> Section:
    """The statement in words; of a capture that is not finished, that it is not."""
    title = f"Capture {capture.id}"  # short, for the navigation bar; its site is named below
    if not capture.is_finished:
        unfinished = f"This capture of {capture.site} is not finished. Continue it with recrawl capture --resume."
        return Section(title, "capture", [unfinished])
    try:
        log = store.site_log(capture.id)
        course = course_of(capture, log, store.urls(log.found.page))
    except StoreError:  # made by another version with another visiting order: abandoned pages are not shown
        course = None
    return Section(title, "capture", report_lines(store, report_of(store, capture, course)))


MOST_FORETOLD = 4_000
"""Maximum number of pages whose observations are predicted, evenly spread: a curve of ten points needs no more."""
FEWEST_FORETOLD = 100
_SLASHES = 3


@dataclass(frozen=True, slots=True)
class ReportRows:
    """Rows that a report is about, and their names."""

    rows: RateRows
    which: IntArray
    """Positions, ascending."""
    names: Sequence[str]
    """One each."""


def behaviour_of(pages: ReportRows, sites: ReportRows, estimator: Estimator) -> ChangeBehaviour:
    """Everything about change, of some pages and of their sites as wholes."""
    learned = pages.rows
    kept = np.zeros(len(learned), np.bool_)
    kept[pages.which] = True
    found = findings_of(learned, kept)
    home = np.flatnonzero([_is_home(url) for url in pages.names])
    seed_scope = ReportRows(learned, pages.which[home], [pages.names[row] for row in home.tolist()])
    p, changed = _predicted(some_observations(learned.training, kept, MOST_FORETOLD), estimator)
    enough = len(p) >= FEWEST_FORETOLD
    share = np.full(len(p), changed.mean() if enough else 0.0)
    return ChangeBehaviour(
        [_level("page", pages, found.pages), _level("homepage", seed_scope), _level("site", sites)],
        found.diagnosis,
        rhythm_of(learned, pages.which),
        calibration(p, changed) if enough else None,
        len(p),
        float(log_loss(p, changed).mean()) if enough else float("nan"),
        float(log_loss(share, changed).mean()) if enough else float("nan"),
        estimator.name,
    )


def _level(name: str, chosen: ReportRows, known: LogNormalFit | None = None) -> ChangeLevel:
    """What is known of these rows, in the shape the report wants; only those that changed have columns."""
    rows, which = chosen.rows, chosen.which
    moving = np.flatnonzero((rows.changes[which] > 0) & (rows.rate[which] > 0) & np.isfinite(rows.rate[which]))
    changed = which[moving]
    slow, fast = rows.bounds(changed)
    histories = rows.training.histories
    median = intervals_of(histories, rows.training.exact).medians(len(histories))[changed]
    rate = rows.rate[changed]
    with np.errstate(divide="ignore"):
        low, high = 1.0 / fast, 1.0 / slow
    return ChangeLevel(
        name,
        len(which),
        int((np.diff(histories.offsets)[which] > 0).sum()),
        interval_spread(rows.belief.take(which)) if len(which) else None,
        [chosen.names[row] for row in moving.tolist()],
        1.0 / rate,
        low,
        high,
        median,
        rows.changes[changed],
        known or fit_lognormal(rate, np.random.default_rng(SEED)),
    )


def _is_home(url: str) -> bool:
    """Whether a URL, as the store writes it, is that of the page / of a host.

    >>> [_is_home(url) for url in ("http://a.org/", "http://a.org/?q", "http://a.org/x/")]
    [True, False, False]
    """
    return url.endswith("/") and url.count("/") == _SLASHES


def _predicted(chosen: RateEvidence, estimator: Estimator) -> tuple[FloatArray, BoolArray]:
    """The predictions of the estimator, at several times, for the next observation of each page, and the results."""
    if not len(chosen.histories.gaps):
        return np.empty(0), np.empty(0, np.bool_)
    found = predict_links(chosen, moments(chosen.histories), {estimator.name: estimator})
    return found.p[estimator.name], found.changed


def rhythm_of(pages: RateRows, rows: IntArray) -> WeeklyRhythm:
    """The week of these pages, as the estimator in operational time learns it, of all hosts together."""
    evidence = pages.training.evidence
    some = RateEvidence(evidence.histories.take(rows), tuple(level[rows] for level in evidence.levels), evidence.kind)
    if not len(some.histories.gaps):
        return rhythm(np.zeros(HOURS), np.zeros(HOURS))
    week = fit(some.histories, places_of(some), (TimeFactor.WEEK,)).week
    if week is None:
        return rhythm(np.zeros(HOURS), np.zeros(HOURS))
    return rhythm(week.changes.sum(axis=0), week.exposure.sum(axis=0))


_MOST_BINS = 24
_AHEAD = (0.0, *(DAY * np.geomspace(0.1, 1_000.0, 16)).tolist())
"""Seconds after the requested time at which freshness is predicted."""


@dataclass(frozen=True, slots=True)
class ReportScope:
    """What a report is to be about."""

    asked: AssessmentQuestion
    question: RatesQuestion
    versions: str | None = None
    """Where the versions of a page are listed: a link with ``{url}`` or ``{id}`` in it."""
    capture: int | None = None
    """The site capture whose graph is drawn; by default that of the whole archive."""


def sections_of(store: Store, wanted: ReportScope, archive: TemporaryArchive | None = None) -> list[Section]:
    """Every section.

    Raises:
        NothingToJudgeError: there is no capture of the requested pages.
    """
    found = answer(store, wanted.asked)
    # The clock of a simulated crawl may be ahead of ours.
    question = replace(wanted.question, by=RatesGrouping.PAGE, now=max(wanted.question.now, found.quality.end))
    learned = rows_for(store, question)
    mime = media_types(store, found.quality.observations.page)
    drawn = _drawn(store, found, wanted.capture, mime)
    return [
        holdings_section(_holdings(store, found, wanted, archive, mime)),
        *quality_sections(_quality(found, learned, question.now, archive)),
        _composites(store, found, wanted.asked.warc),
        subsites_section([SiteParts(found.sites[one.site], one.sections, one.found) for one in found.parts]),
        *behaviour_sections(_behaviour(store, found, learned, question)),
        areas_section(store, found.quality, found.sites, mime),
        scatter_section(drawn),
        graph_section(drawn, wanted.versions),
    ]


def _composites(store: Store, found: ArchiveAssessment, warc: Path | ArchiveFolder | None) -> Section:
    composed = composed_in(store, found.quality.observations.page, warc)
    if composed is None:
        return composites_section(None, [], composite_words(None))
    return composites_section(composed.found, composed.urls, composite_words(composed))


def _drawn(store: Store, found: ArchiveAssessment, capture: int | None, mime: list[str]) -> SitePages:
    """The pages of graph and scatter plot: as the archive has them at last, or as one capture found them."""
    if capture is None:
        return pages_of_archive(store, found.quality, found.urls, found.recorded.via, mime)
    drawn = pages_of_capture(store, capture)
    looked = found.quality.observations.page
    row = np.minimum(np.searchsorted(looked, drawn.page), len(looked) - 1)
    # By now more is known about rates than when the strategy got them.
    return replace(drawn, rate=np.where(looked[row] == drawn.page, found.quality.rate[row], drawn.rate))


def _holdings(
    store: HistoryStore,
    found: ArchiveAssessment,
    wanted: ReportScope,
    archive: TemporaryArchive | None,
    mime: list[str],
) -> Holdings:
    observations = found.quality.observations
    visits = store.visits()
    failed = visits.take(~visits.answered() & (visits.verdict == Verdict.UNKNOWN))
    if wanted.asked.pages is not None:
        failed = failed.take(np.isin(failed.page, wanted.asked.pages))
    claims = store.claims(observations.page)
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
        certainly_missed(observations, *told),
        int(dated_changes(observations, *told).sum()),
        expected_missed(observations, found.quality.rate),
    )


def _sites_of(store: PageTable, page: IntArray, sites: list[str]) -> IntArray:
    """The number of the host of each page, -1 if none of its pages was ever seen."""
    ids, place = np.unique(store.pages(page).host if len(page) else np.empty(0, np.int64), return_inverse=True)
    number = {name: number for number, name in enumerate(sites)}
    named = np.array([number.get(name, -1) for name in store.hosts(ids).name], np.int64)
    return named[place] if len(page) else np.empty(0, np.int64)


def _quality(
    found: ArchiveAssessment, learned: RateRows, now: float, archive: TemporaryArchive | None
) -> SharpnessData:
    quality = found.quality
    there = ~quality.observations.gone[quality.observations.offsets[1:] - 1]
    rows = np.searchsorted(learned.training.histories.page, quality.observations.page[there])
    known = len(learned.training.histories.gaps) > 0
    staying = (
        staying_fresh(
            learned.belief.take(rows), learned.last_observed[rows], quality.weight[there], now + np.array(_AHEAD)
        )
        if known
        else None
    )
    whole, moment, _, *crawl = paragraphs(found, archive)
    return SharpnessData(
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


def _behaviour(store: Store, found: ArchiveAssessment, learned: RateRows, question: RatesQuestion) -> ChangeBehaviour:
    page = found.quality.observations.page
    pages = ReportRows(learned, np.searchsorted(learned.training.histories.page, page), found.urls)
    whole = rows_for(store, replace(question, by=RatesGrouping.SITE))
    ours = np.flatnonzero(np.isin(whole.host, store.pages(page).host))
    names = whole.names or []
    return behaviour_of(pages, ReportRows(whole, ours, [names[row] for row in ours.tolist()]), question.estimator)
