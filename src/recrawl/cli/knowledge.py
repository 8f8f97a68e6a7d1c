"""What a store's visits teach, wired together for the verbs that print it."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import TypeAlias

import numpy as np

from recrawl.crawl.site_claims import LAST_MODIFIED
from recrawl.errors import InputError, meant
from recrawl.estimate import sitemap
from recrawl.estimate.clocked_belief import ClockedBelief
from recrawl.estimate.dated_posterior import DatedPosterior
from recrawl.estimate.estimator import Estimate, Estimator, Evidence, estimate
from recrawl.estimate.estimators import DEFAULT, ESTIMATORS
from recrawl.estimate.gaps import highest_rate_told
from recrawl.estimate.operational_posterior import OperationalPosterior
from recrawl.estimate.point import PointBelief
from recrawl.estimate.posterior import GammaPosterior, Posterior
from recrawl.estimate.trust import Statements
from recrawl.estimate.watched import as_watched, is_exact
from recrawl.model import (
    Belief,
    BoolArray,
    ChangeKind,
    FloatArray,
    GammaBelief,
    GridBelief,
    Histories,
    IntArray,
    Visits,
)
from recrawl.model.arrays import offsets_of, ragged_search
from recrawl.predict.clusters import UrlClusters
from recrawl.store.base import Store
from recrawl.store.values import Claims

Expected: TypeAlias = Callable[[IntArray], FloatArray]
"""How often pages, given by id, are expected to change, per second: what a model says."""
LinkBeliefs: TypeAlias = Mapping[str, Callable[[IntArray], GammaBelief]]
"""What is believed of the rates of new links of pages, given by id: of ``internal`` and ``external`` ones."""
LEVEL = 0.9
"""Of the intervals that are shown."""
CLUSTERS_UP_TO = 300_000
"""Pages up to which directories are groups of their own beside hosts: beyond, reading every URL would take longest."""


@dataclass(frozen=True, slots=True)
class Span:
    """Which visits teach: those of a span of time, and in what respect a change is one."""

    since: float | None = None
    until: float | None = None
    kind: ChangeKind | None = None
    pages: IntArray | None = None
    """Only these; ``None`` for all."""


@dataclass(frozen=True, slots=True)
class Lesson:
    """What a store's visits say of every page that was seen, row by row."""

    histories: Histories
    """As seen."""
    exact: BoolArray
    """Whether the changes of a page were logged, not found by looks."""
    evidence: Evidence
    """What estimators are given: the same, with logs told as if somebody had watched."""


@dataclass(frozen=True, slots=True)
class Knowledge:
    """Histories of all pages that were ever seen and the belief about each, row by row."""

    lesson: Lesson
    estimate: Estimate

    @property
    def histories(self) -> Histories:
        """Of all pages seen, by ascending id."""
        return self.lesson.histories

    @property
    def belief(self) -> Belief:
        """About the same pages."""
        return self.estimate.belief

    @property
    def rate(self) -> FloatArray:
        """The middle of what is believed of each page, per second; NaN of pages seen once: nothing is known of them.

        The one number that all commands show; never above what its observations can tell. The mean is none: of a page
        that changed at every observation only a lower bound is known, and the mean of such a belief is all tail.
        """
        rate = middle_of(self.belief, self.lesson.evidence.histories)
        return np.where(self.histories.counts() > 0, rate, np.nan)

    def interval(self) -> tuple[FloatArray, FloatArray]:
        """Ends of the 90 % intervals of the same, per second."""
        low, high = (self.belief.quantile(q) for q in ((1.0 - LEVEL) / 2.0, (1.0 + LEVEL) / 2.0))
        return np.minimum(low, self.rate), np.maximum(high, self.rate)

    def changed(self, now: float) -> FloatArray:
        """Probability that each page changed since it was last seen; NaN of pages seen once."""
        found = self.belief.p_change(np.maximum(now - self.histories.last_visit, 0.0))
        return np.where(self.histories.counts() > 0, found, np.nan)

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
    """The middle of each belief, or the highest rate that the observations can tell, if that is lower.

    What a formula for a single rate says is left as it is.
    """
    middle = belief.quantile(0.5)
    return middle if isinstance(belief, PointBelief) else np.minimum(middle, highest_rate_told(observed))


def learn(
    store: Store, span: Span | None = None, estimator: Estimator | None = None, expected: Expected | None = None
) -> Knowledge:
    """Beliefs about all pages that were seen, by the default estimator unless another is given.

    The posteriors also heed how often a model expects pages to change, if there is one. And those on a grid hear what
    sites say: of their last changes as far as they proved true, and how often pages are said to change (``changefreq``)
    as a prior that a few looks outgrow.
    """
    span = span or Span()
    lesson = lesson_of(store, span)
    chosen = estimator or ESTIMATORS[DEFAULT]
    believes = isinstance(chosen, Posterior | OperationalPosterior | GammaPosterior)
    if believes and expected is not None and _is_any_change(span.kind) and len(lesson.histories):
        lesson = replace(lesson, evidence=replace(lesson.evidence, expected=expected(lesson.histories.page)))
    if not isinstance(chosen, Posterior | OperationalPosterior):
        return Knowledge(lesson, estimate_from(lesson, chosen))
    claims = claims_of(store, lesson, span)
    if len(sources := statements_of(claims, lesson.histories)):
        chosen = DatedPosterior(sources, chosen) if isinstance(chosen, Posterior) else replace(chosen, sources=sources)
    found = estimate_from(lesson, chosen)
    return Knowledge(lesson, replace(found, belief=_hinted(found.belief, claims, lesson.histories)))


def claims_of(store: Store, lesson: Lesson, span: Span) -> Claims:
    """What was claimed in a span about the pages of a lesson, by page and time.

    Nothing of pages with a log, which knows better, nor where only some kinds of change count: claims do not tell what
    changed.
    """
    heard = lesson.histories.page[~lesson.exact] if _is_any_change(span.kind) else np.empty(0, np.int64)
    claims = store.claims(heard)
    return claims.take(np.flatnonzero(claims.time <= (np.inf if span.until is None else span.until)))


def _is_any_change(kind: ChangeKind | None) -> bool:
    """Whether what counts is that a page changed, not in what respect."""
    return kind in (None, ChangeKind.CONTENT, ChangeKind.TEXT)


def _hinted(belief: Belief, claims: Claims, histories: Histories) -> Belief:
    """The belief with the last ``changefreq`` said of each page as its prior (SHARC Def. 6.1, corrected reading)."""
    said = np.flatnonzero(claims.changefreq > 0)
    if not len(said):
        return belief
    changefreq = np.zeros(len(histories), np.int64)
    changefreq[np.searchsorted(histories.page, claims.page[said])] = claims.changefreq[said]
    rate = sitemap.rates(changefreq, "corrected")
    if isinstance(belief, GridBelief):
        return sitemap.hint(belief, rate)
    if isinstance(belief, ClockedBelief):
        return replace(belief, learned=replace(belief.learned, belief=sitemap.hint(belief.learned.belief, rate)))
    return belief


def statements_of(claims: Claims, histories: Histories) -> tuple[Statements, ...]:
    """What Last-Modified headers and sitemaps said of the last change of each page.

    A header is noted when it changes; each look in between heard the same.
    """
    told = np.isfinite(claims.lastmod)
    header = told & np.array([source == LAST_MODIFIED for source in claims.source], np.bool_)
    elsewhere = told & ~header
    found = []
    if elsewhere.any():
        found.append(Statements(claims.page[elsewhere], claims.time[elsewhere], claims.lastmod[elsewhere]))
    if header.any():
        found.append(_at_each_look(histories, claims.page[header], claims.time[header], claims.lastmod[header]))
    return tuple(found)


def _at_each_look(histories: Histories, page: IntArray, time: FloatArray, lastmod: FloatArray) -> Statements:
    """What the last header noted up to each look said; ``page`` and ``time`` ascend. O(looks · log headers)."""
    ids, row = np.unique(page, return_inverse=True)
    offsets = offsets_of(row.astype(np.int64), len(ids))
    place = np.searchsorted(ids, histories.page)
    known = np.isin(histories.page, ids)
    asked = np.concatenate([histories.row_of_gap(), np.arange(len(histories))])
    looks = np.concatenate([histories.look_times(), histories.first_visit])
    mine = known[asked] & np.isfinite(looks)
    asked, looks = asked[mine], looks[mine]
    last = ragged_search(offsets, time, place[asked], looks, after_equal=True) - 1
    heard = last >= offsets[place[asked]]
    return Statements(histories.page[asked[heard]], looks[heard], lastmod[last[heard]])


def estimate_from(lesson: Lesson, estimator: Estimator) -> Estimate:
    """What an estimator makes of a lesson. Of a log, every formula for a single rate says X/T, its most likely one.

    Formulas for looks at equal gaps, or that compare expected with found changes, make no sense of a log otherwise.
    """
    found = estimate(estimator, lesson.evidence)
    if not isinstance(found.belief, PointBelief) or not bool(lesson.exact.any()):
        return found
    histories = lesson.histories
    logged = histories.changes() / np.where(lesson.exact, histories.observed(), 1.0)
    return replace(found, belief=PointBelief(np.where(lesson.exact, logged, found.belief.rate)))


def lesson_of(store: Store, span: Span) -> Lesson:
    """What the visits of a span say of every page that was seen in it, and which host and cluster each lies in."""
    looks = store.looks(span.pages, since=span.since)
    if span.until is not None:
        looks = looks.take(looks.time <= span.until)
    told = as_watched(looks)
    visited = Histories.from_visits(looks, span.kind)
    watched = visited if told is looks else Histories.from_visits(told, span.kind)
    seen = ~np.isnan(visited.first_visit)
    seen &= ~np.isin(visited.page, store.resources())
    histories = visited if bool(seen.all()) else visited.take(seen)
    exact = _logged(looks, histories)
    host = store.pages(histories.page).host
    levels: tuple[IntArray, ...] = (host,)
    if len(histories) <= CLUSTERS_UP_TO:
        levels = (host, UrlClusters().add(store.urls(histories.page)))
    return Lesson(histories, exact, Evidence(watched.align(histories.page), levels, span.kind))


def _logged(looks: Visits, histories: Histories) -> BoolArray:
    """Pages that changed, and all of whose changes came with their exact times."""
    changes, exact = histories.changes(), is_exact(looks)
    if not bool(exact.any()):
        return np.zeros(len(histories), np.bool_)
    page = looks.page[exact]
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


def host_id(store: Store, name: str | None) -> int | None:
    """The id of a host by its name; ``None`` for no name; an error for an unknown one."""
    if name is None:
        return None
    hosts = store.hosts()
    if name not in hosts.name:
        remedy = meant(name, hosts.name, "recrawl list hosts shows all.")
        raise InputError(f"There is no host {name!r} in this workspace.", remedy)
    return int(hosts.id[hosts.name.index(name)])
