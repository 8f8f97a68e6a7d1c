"""Beliefs about the pages of a store, for the commands that print them."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import TypeAlias

import numpy as np

from recrawl.detect.digest_verdicts import is_resource
from recrawl.errors import InputError, meant
from recrawl.estimate import site_signals
from recrawl.estimate.estimator import Estimator, RateEstimate, RateEvidence, estimate
from recrawl.estimate.estimators import DEFAULT, ESTIMATORS
from recrawl.estimate.gap_columns import highest_identifiable_rate
from recrawl.estimate.operational.operational_posterior import ClockedBelief, OperationalPosterior
from recrawl.estimate.point_evidence import PointBelief
from recrawl.estimate.posterior.posterior_estimators import DatedPosterior, GammaPosterior, Posterior
from recrawl.estimate.site_signals import SourceStatements, as_known_at, exact_times_as_observations, is_exact
from recrawl.model import (
    Belief,
    BoolArray,
    ChangeKind,
    FloatArray,
    GammaBelief,
    GridBelief,
    Histories,
    IntArray,
    Outcome,
    Verdict,
    Visits,
)
from recrawl.model.arrays import ends_of_runs, offsets_of, ragged_search, starts_of_runs
from recrawl.model.histories import LINK_KINDS
from recrawl.predict.related_pages import UrlClusters
from recrawl.store.base import HistoryStore, PageTable, Store
from recrawl.store.store_values import LAST_MODIFIED, REVISIT, ClaimColumns

Expected: TypeAlias = Callable[[IntArray], FloatArray]
"""How often pages, given by id, are expected to change, per second: what a model says."""
LinkBeliefs: TypeAlias = Mapping[str, Callable[[IntArray], GammaBelief]]
"""What is believed of the rates of new links of pages, given by id: of ``internal`` and ``external`` ones."""
LEVEL = 0.9
"""Of the intervals that are shown."""
CLUSTERS_UP_TO = 300_000
"""Pages up to which directories are groups of their own beside hosts: beyond, reading every URL would take longest."""

_LINKLESS = frozenset(
    {
        "application/json",
        "application/pdf",
        "application/x-ndjson",
        "text/csv",
        "text/tab-separated-values",
    }
)
"""Media types in which no links are looked for."""
_PAGES_AT_ONCE = 10_000
_FIRST_REDIRECT = 300
"""Statuses below it are those of content, or unknown."""


@dataclass(frozen=True, slots=True)
class VisitSpan:
    """Which visits teach: those of a span of time, and in what respect a change is one."""

    since: float | None = None
    until: float | None = None
    kind: ChangeKind | None = None
    pages: IntArray | None = None
    """Only these; ``None`` for all."""


@dataclass(frozen=True, slots=True)
class TrainingHistory:
    """What a store's visits say of every page that was seen, row by row."""

    histories: Histories
    """As seen."""
    exact: BoolArray
    """Whether the changes of a page were logged, not found by observations."""
    evidence: RateEvidence
    """The input of estimators: the same, with logged changes as exact observations."""
    gone_since: FloatArray | None = None
    """The first of the last responses that reported a page gone; NaN for existing pages. ``None``: not computed."""


@dataclass(frozen=True, slots=True)
class BeliefTable:
    """Histories of all pages that were ever seen and the belief about each, row by row."""

    training: TrainingHistory
    estimate: RateEstimate

    @property
    def histories(self) -> Histories:
        """Of all pages seen, by ascending id."""
        return self.training.histories

    @property
    def belief(self) -> Belief:
        """About the same pages."""
        return self.estimate.belief

    @property
    def rate(self) -> FloatArray:
        """The median of the belief about each page, per second; NaN for pages observed once.

        The one number that all commands show; never above the rate that the observations can resolve. The mean is not
        used:
        for a page that changed at every observation only a lower bound is known, and the tail dominates the mean.
        """
        rate = middle_of(self.belief, self.training.evidence.histories)
        return np.where(self.histories.counts() > 0, rate, np.nan)

    @property
    def gone_since(self) -> FloatArray:
        """The first of the last responses that reported each page gone; NaN for existing pages."""
        since = self.training.gone_since
        return np.full(len(self.histories), np.nan) if since is None else since

    def interval(self) -> tuple[FloatArray, FloatArray]:
        """Ends of the 90 % intervals of the same, per second."""
        low, high = (self.belief.quantile(q) for q in ((1.0 - LEVEL) / 2.0, (1.0 + LEVEL) / 2.0))
        return np.minimum(low, self.rate), np.maximum(high, self.rate)

    def changed(self, now: float) -> FloatArray:
        """Probability that each page changed since it was last seen; NaN of pages seen once, or gone."""
        found = self.belief.p_change(np.maximum(now - self.histories.last_visit, 0.0))
        return np.where((self.histories.counts() > 0) & np.isnan(self.gone_since), found, np.nan)

    def rows(self, page: IntArray) -> IntArray:
        """The row of each of these pages; −1 for one that was never seen. O(pages · log rows)."""
        ids = self.histories.page
        if not len(ids):
            return np.full(len(page), -1, np.int64)
        place = np.minimum(np.searchsorted(ids, page), len(ids) - 1)
        return np.where(ids[place] == page, place, -1)

    def at(self, page: IntArray, column: FloatArray) -> FloatArray:
        """A column of these rows for pages given by id; NaN for those never seen."""
        row = self.rows(page)
        out = np.full(len(page), np.nan)
        out[row >= 0] = column[row[row >= 0]]
        return out


def middle_of(belief: Belief, observed: Histories) -> FloatArray:
    """The median of each belief, or the highest rate that the observations can resolve, if that is lower.

    Estimates of a single rate are not changed.
    """
    middle = belief.quantile(0.5)
    return middle if isinstance(belief, PointBelief) else np.minimum(middle, highest_identifiable_rate(observed))


def learn(
    store: Store, span: VisitSpan | None = None, estimator: Estimator | None = None, expected: Expected | None = None
) -> BeliefTable:
    """Beliefs about all observed pages, by the default estimator unless another is given.

    The posteriors also use the predicted rates of a model, if there is one. Those on a grid also use claims of sites:
    about their last changes as far as they proved reliable, and about change frequencies (``changefreq``) as a prior
    that a few observations outweigh.
    """
    span = span or VisitSpan()
    training = training_of(store, span)
    chosen = estimator or ESTIMATORS[DEFAULT]
    believes = isinstance(chosen, Posterior | OperationalPosterior | GammaPosterior)
    if believes and expected is not None and _is_any_change(span.kind) and len(training.histories):
        training = replace(training, evidence=replace(training.evidence, expected=expected(training.histories.page)))
    if not isinstance(chosen, Posterior | OperationalPosterior):
        return BeliefTable(training, estimate_from(training, chosen))
    claims = claims_of(store, training, span)
    if len(sources := statements_of(claims, training.histories)):
        chosen = DatedPosterior(sources, chosen) if isinstance(chosen, Posterior) else replace(chosen, sources=sources)
    found = estimate_from(training, chosen)
    return BeliefTable(training, replace(found, belief=_hinted(found.belief, claims, training.histories)))


def claims_of(store: HistoryStore, training: TrainingHistory, span: VisitSpan) -> ClaimColumns:
    """The claims in a period about the pages of a training history, by page and time.

    Nothing for pages with a log, which is exact, nor if only some kinds of change count: claims do not name the kind.
    """
    heard = training.histories.page[~training.exact] if _is_any_change(span.kind) else np.empty(0, np.int64)
    claims = store.claims(heard)
    return claims.take(np.flatnonzero(claims.time <= (np.inf if span.until is None else span.until)))


def _is_any_change(kind: ChangeKind | None) -> bool:
    """Whether what counts is that a page changed, not in what respect."""
    return kind in (None, ChangeKind.CONTENT, ChangeKind.TEXT)


def _hinted(belief: Belief, claims: ClaimColumns, histories: Histories) -> Belief:
    """The belief with the last ``changefreq`` said of each page as its prior (SHARC Def. 6.1, corrected reading)."""
    said = np.flatnonzero(claims.changefreq > 0)
    if not len(said):
        return belief
    changefreq = np.zeros(len(histories), np.int64)
    changefreq[np.searchsorted(histories.page, claims.page[said])] = claims.changefreq[said]
    rate = site_signals.rates(changefreq, "corrected")
    if isinstance(belief, GridBelief):
        return site_signals.hint(belief, rate)
    if isinstance(belief, ClockedBelief):
        return replace(belief, learned=replace(belief.learned, belief=site_signals.hint(belief.learned.belief, rate)))
    return belief


def statements_of(claims: ClaimColumns, histories: Histories) -> tuple[SourceStatements, ...]:
    """The last change of each page by Last-Modified headers and sitemaps.

    A header is stored when it changes; all observations in between received the same.
    """
    told = np.isfinite(claims.lastmod)
    header = told & np.array([source == LAST_MODIFIED for source in claims.source], np.bool_)
    elsewhere = told & ~header
    found = []
    if elsewhere.any():
        found.append(SourceStatements(claims.page[elsewhere], claims.time[elsewhere], claims.lastmod[elsewhere]))
    if header.any():
        found.append(_at_each_observation(histories, claims.page[header], claims.time[header], claims.lastmod[header]))
    return tuple(found)


def _at_each_observation(
    histories: Histories, page: IntArray, time: FloatArray, lastmod: FloatArray
) -> SourceStatements:
    """The last header stored before each observation; ``page`` and ``time`` ascend. O(observations · log headers)."""
    ids, row = np.unique(page, return_inverse=True)
    offsets = offsets_of(row.astype(np.int64), len(ids))
    place = np.searchsorted(ids, histories.page)
    known = np.isin(histories.page, ids)
    asked = np.concatenate([histories.row_of_gap(), np.arange(len(histories))])
    observations = np.concatenate([histories.observation_times(), histories.first_visit])
    mine = known[asked] & np.isfinite(observations)
    asked, observations = asked[mine], observations[mine]
    last = ragged_search(offsets, time, place[asked], observations, after_equal=True) - 1
    heard = last >= offsets[place[asked]]
    return SourceStatements(histories.page[asked[heard]], observations[heard], lastmod[last[heard]])


def estimate_from(training: TrainingHistory, estimator: Estimator) -> RateEstimate:
    """The estimates for a training history. For a log, every estimator of a single rate gives X/T, the most likely one.

    Formulas for equal gaps, or that compare expected with found changes, do not apply to a log.
    """
    found = estimate(estimator, training.evidence)
    if not isinstance(found.belief, PointBelief) or not bool(training.exact.any()):
        return found
    histories = training.histories
    logged = histories.changes() / np.where(training.exact, histories.observed(), 1.0)
    return replace(found, belief=PointBelief(np.where(training.exact, logged, found.belief.rate)))


def training_of(store: Store, span: VisitSpan) -> TrainingHistory:
    """What the visits of a span say of every page that was seen in it, and which host and cluster each lies in."""
    observations = store.observations(span.pages, since=span.since)
    if span.until is not None:
        observations = as_known_at(observations, span.until)
    if span.kind is not None and span.kind & LINK_KINDS:
        observations = _of_links(store, observations)
    told = exact_times_as_observations(observations)
    visited = Histories.from_visits(observations, span.kind)
    watched = visited if told is observations else Histories.from_visits(told, span.kind)
    seen = ~np.isnan(visited.first_visit)
    seen &= ~np.isin(visited.page, store.resources())
    histories = visited if bool(seen.all()) else visited.take(seen)
    exact = _logged(observations, histories)
    host = store.pages(histories.page).host
    levels: tuple[IntArray, ...] = (host,)
    if len(histories) <= CLUSTERS_UP_TO:
        levels = (host, UrlClusters().add(store.urls(histories.page)))
    evidence = RateEvidence(watched.align(histories.page), levels, span.kind)
    return TrainingHistory(histories, exact, evidence, gone_since_of(observations, histories.page))


def gone_since_of(visits: Visits, page: IntArray) -> FloatArray:
    """When each of these pages was found gone and never found again; NaN for pages that are there. O(visits).

    Visits are by page and time, ``page`` ascends.
    """
    answers = visits.take(visits.answered() & np.isin(visits.page, page))
    gone = answers.outcome == Outcome.GONE
    began = np.flatnonzero(starts_of_runs(answers.page, gone))
    last = began[ends_of_runs(answers.page[began])]
    since = np.full(len(page), np.nan)
    since[np.searchsorted(page, answers.page[last])] = np.where(gone[last], answers.time[last], np.nan)
    return since


def _of_links(store: Store, observations: Visits) -> Visits:
    """The visits; those of media without links (fonts, images, style sheets) are no evidence about links.

    Neither are those of tables and other data, unless one of them ever had a link: JSON may be JSON-LD.
    """
    page = np.unique(observations.page)
    linked = np.unique(observations.page[(observations.new_internal > 0) | (observations.new_external > 0)])
    known = zip(store.urls(page), _media_types(store, page), np.isin(page, linked).tolist(), strict=True)
    without = page[
        np.fromiter(
            (
                is_resource(url, types) or (not links and bool(types) and types <= _LINKLESS)
                for url, types, links in known
            ),
            np.bool_,
            len(page),
        )
    ]
    if not len(without):
        return observations
    verdict = np.where(np.isin(observations.page, without), np.uint8(Verdict.UNKNOWN), observations.verdict)
    return replace(observations, verdict=verdict)


def _media_types(store: Store, page: IntArray) -> list[set[str]]:
    """The media type of the last response of each page; of an imported page those of its captures."""
    types = [{mime} if (mime := _media_type(last.mime)) else set() for last in store.validators(page)]
    imported = np.array([row for row, known in enumerate(types) if not known], np.int64)
    for start in range(0, len(imported), _PAGES_AT_ONCE):
        rows = imported[start : start + _PAGES_AT_ONCE]
        captures = store.capture_columns(page[rows])
        place = rows[np.searchsorted(page[rows], captures.page)]
        for row, mime, status in zip(place.tolist(), captures.mime, captures.status.tolist(), strict=True):
            if status < _FIRST_REDIRECT and mime != REVISIT:
                types[row].add(_media_type(mime))
    return types


def _media_type(written: str) -> str:
    return written.partition(";")[0].strip().lower()


def _logged(observations: Visits, histories: Histories) -> BoolArray:
    """Pages that changed, and all of whose changes came with their exact times."""
    changes, exact = histories.changes(), is_exact(observations)
    if not bool(exact.any()):
        return np.zeros(len(histories), np.bool_)
    page = observations.page[exact]
    place = np.minimum(np.searchsorted(histories.page, page), max(len(histories) - 1, 0))
    counted = histories.page[place] == page if len(histories) else np.zeros(len(page), np.bool_)
    return np.asarray((changes > 0) & (np.bincount(place[counted], minlength=len(histories)) >= changes))


def section_labels(urls: list[str]) -> tuple[IntArray, list[str]]:
    """The section each URL lies in, as a number, and the name of each number: ``http://host/first-directory/``.

    >>> section_labels(["http://a.org/x/1", "http://a.org/2", "http://a.org/x/"])
    (array([0, 1, 0]), ['http://a.org/x/', 'http://a.org/'])
    """
    numbers: dict[str, int] = {}
    label = np.fromiter((numbers.setdefault(_section(url), len(numbers)) for url in urls), np.int64, len(urls))
    return label, list(numbers)


def _section(url: str) -> str:
    """What :func:`recrawl.urls.section` says, of a URL as the store writes it: by cuts, ten times as fast."""
    scheme, _, host, path = url.split("/", 3)
    directory, below, _ = path.partition("?")[0].partition("/")
    return f"{scheme}//{host}/{directory}/" if below else f"{scheme}//{host}/"


def host_id(store: PageTable, name: str | None) -> int | None:
    """The id of a host by its name; ``None`` for no name; an error for an unknown one."""
    if name is None:
        return None
    hosts = store.hosts()
    if name not in hosts.name:
        remedy = meant(name, hosts.name, "List all with recrawl list hosts.")
        raise InputError(f"There is no host {name!r} in this workspace.", remedy)
    return int(hosts.id[hosts.name.index(name)])
