"""Features of pages as they were known at a given time, and those of look back, look around.

*Look back, look around* are the few features that carry almost all information about new links (paper 004). *Back*: the
new links of the page in the last periods, and their mean. *Around*: the same of its related pages, and their link
change rate, weighted by similarity.

Time up to a given moment is divided into periods of equal length. A table of counts has a row per page and a column per
period, the oldest first; NaN marks an unknown period. A page that was not known when the period started has no count,
because all its links would be new.

The counts end with the last known period. Paper 004 takes the change rate of related pages over all periods, including
the predicted one (reading 004.2), so pages that appear together leak each other's future. That form exists only for
reproduction, and needs the counts of that period as an argument.

Features are static and dynamic, of the page and of its network. :func:`page_features` first removes everything at or
after that time from the evidence, so nothing can leak from the future. (One feature of paper 004 as printed uses one
period more; only with ``literal=True``, reading 004.2.)

Dynamic features (paper 004, §5.2) are those of the page's own past (DP) and of the past of its links and related pages
(DN). Lag i is the state i periods ago, or the i-th last period. Three features beyond the paper span the whole history:
the age of the page, the time since its last change, and its mean rate.

:func:`first_sight` gives only the features that every page has at discovery and at its first observation, as input of
priors. So a model is trained on exactly what it is asked about new pages.

:func:`observation_counts` turns observations into counts. An observation tells that a page changed, not how often. A
Gamma belief that starts at the prior of the population, Gamma(a₀, b₀), and ends at Gamma(a, b) has the evidence of
a − a₀ changes in the time b − b₀. :mod:`recrawl.predict.count_prior` is trained on these.
"""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from recrawl.estimate.posterior import gamma_posterior
from recrawl.estimate.posterior.gamma_posterior import fit_prior
from recrawl.model import AnyArray, BoolArray, FloatArray, Histories, IntArray
from recrawl.predict import static_features
from recrawl.predict.page_versions import STATE, PageTexts, PageVersions, TimedLinks, picked
from recrawl.predict.related_pages import NEIGHBOURS, RelatedPages, Semantics, SingleArray, reduced, related_pages
from recrawl.predict.static_features import (
    NETWORK,
    Column,
    Feature,
    FeatureGroup,
    FeatureTable,
    NetworkState,
    network_state,
    table_of,
    url_columns,
    version_columns,
)
from recrawl.time import DAY
from recrawl.urls import host_of


@dataclass(frozen=True, slots=True)
class LinkPeriods:
    """``count`` periods of ``length`` seconds each, the last of which ends just before ``end``."""

    end: float
    length: float
    count: int

    @property
    def edges(self) -> FloatArray:
        """The start of each period, oldest first, and the end of the last. Shape (count + 1,)."""
        return self.end - self.length * np.arange(self.count, -1, -1.0)


@dataclass(frozen=True, slots=True)
class PeriodCounts:
    """What happened on n pages in each period. All of shape (n, periods); NaN if not known."""

    new_internal: FloatArray
    """New links within the site, summed over the observations of the period."""
    new_external: FloatArray
    changed: FloatArray
    """1 if an observation of the period found other content, else 0."""

    def new_links(self, *, internal: bool) -> FloatArray:
        """The counts of one kind of links."""
        return self.new_internal if internal else self.new_external


def period_counts(versions: PageVersions, page: IntArray, periods: LinkPeriods) -> PeriodCounts:
    r"""What the observations of each period found on each of these ascending page ids. O(rows + pages · periods).

    A count is |N(tᵢ₊₁) \ N(tᵢ)| (paper 004, §5.1) if the period has one observation; the counts of several observations
    are summed, so a link that goes and comes back within the period counts again. Unless the versions are ``complete``,
    a period without an observation is unknown; new links count for the period of the observation that finds them.
    """
    edges = periods.edges
    row = np.searchsorted(page, versions.page)
    period = np.searchsorted(edges, versions.time, side="right") - 1
    inside = (period >= 0) & (period < periods.count)
    cell = (row * periods.count + period)[inside]
    shape = (len(page), periods.count)
    known = _known(versions, page, edges)
    if not versions.complete:
        known &= np.bincount(cell, minlength=shape[0] * shape[1]).reshape(shape) > 0

    def total(column: AnyArray) -> FloatArray:
        # An observation that could not count leaves its whole period unknown: NaN spreads through the sum.
        summed = np.bincount(cell, column[inside].astype(np.float64), minlength=shape[0] * shape[1])
        return np.where(known, summed.reshape(shape), np.nan)

    changes = total(versions.changed)
    return PeriodCounts(
        total(versions.new_internal), total(versions.new_external), np.where(known, changes > 0, np.nan)
    )


def _known(versions: PageVersions, page: IntArray, edges: FloatArray) -> BoolArray:
    """Whether a page had been observed before a period started."""
    first = picked(versions.time, _first_row(versions, page))
    return np.asarray(first[:, None] < edges[None, :-1])


def _first_row(versions: PageVersions, page: IntArray) -> IntArray:
    starts = versions.offsets(page)
    return np.where(starts[1:] > starts[:-1], starts[:-1], -1)


@dataclass(frozen=True, slots=True)
class LinkTargets:
    """What is to be predicted of each page for the last period of a table of counts. NaN where that is unknown."""

    number: FloatArray
    """NNL: new links in the last period."""
    presence: FloatArray
    """NL: 1 if there is any, else 0."""
    change_rate: FloatArray
    """LCR: share of the known periods with new links, the last included (reading 004.1)."""


def link_targets(counts: FloatArray) -> LinkTargets:
    """The targets of paper 004 (§5.1) from counts of new links, shape (pages, periods).

    >>> link_targets(np.array([[1.0, 1, 1, 2, 0, 2, 1, 3]])).change_rate.tolist()
    [0.875]
    """
    last = counts[:, -1]
    return LinkTargets(last, np.where(np.isnan(last), np.nan, last > 0), change_rate(counts))


def change_rate(counts: FloatArray) -> FloatArray:
    """The share of the known periods of each page in which the count is not 0; NaN if none is known."""
    return mean_known(np.where(np.isnan(counts), np.nan, counts > 0))


def mean_known(values: FloatArray) -> FloatArray:
    """The mean of the known values of each row; NaN where none is known.

    >>> mean_known(np.array([[1.0, np.nan, 3.0], [np.nan, np.nan, np.nan]])).tolist()
    [2.0, nan]
    """
    known = ~np.isnan(values)
    count = known.sum(axis=1)
    total = np.where(known, values, 0.0).sum(axis=1)
    return np.asarray(np.divide(total, count, out=np.full(len(values), np.nan), where=count > 0))


def lags(counts: FloatArray, history: int) -> FloatArray:
    """The last ``history`` columns, the latest first; NaN where there are not N. Shape (pages, history).

    >>> lags(np.array([[1.0, 2.0, 3.0]]), 2).tolist()
    [[3.0, 2.0]]
    """
    found = np.full((len(counts), history), np.nan)
    held = min(history, counts.shape[1])
    found[:, :held] = counts[:, ::-1][:, :held]
    return found


HISTORY = 8
"""Number of past periods in paper 004."""


@dataclass(frozen=True, slots=True)
class LookBackLookAround:
    """The LBLA features of n pages for one kind of links."""

    back: FloatArray
    """New links of the page, the latest period first. Shape (n, history)."""
    back_mean: FloatArray
    around: FloatArray
    """New links of the related pages. Shape (n, history)."""
    around_mean: FloatArray
    around_change_rate: FloatArray


def look_back_look_around(
    past: FloatArray, related: RelatedPages, *, history: int = HISTORY, literal: FloatArray | None = None
) -> LookBackLookAround:
    """The features from counts of the past, shape (n, periods), the oldest first. O(n k history).

    Args:
        past: new links in each past period; NaN where unknown.
        related: the related pages of each page.
        history: number of past periods.
        literal: counts that include the period to be predicted, for the change rate of related pages as the paper
            has it. It leaks the future: for reproduction only.
    """
    back = lags(past, history)
    rates = change_rate(past if literal is None else literal)
    near = related.mean_of(np.column_stack([back, rates]))
    around, around_rate = near[:, :-1], near[:, -1]
    return LookBackLookAround(back, mean_known(back), around, mean_known(around), around_rate)


KINDS = {"internal": True, "external": False}
"""The two kinds of links, which paper 004 predicts apart."""
REMEMBERED = tuple(name for name in STATE if name != "has_last_modified")
"""States whose past is a feature."""


def state_columns(versions: PageVersions, page: IntArray, as_of: float, period: float, history: int) -> list[Column]:
    """The states of 1, 2, …, ``history`` periods ago. O(history · (rows + pages · states))."""
    columns: list[Column] = []
    for lag in range(1, history + 1):
        row = versions.valid_at(page, as_of - lag * period)
        columns += [
            (Feature(f"{name}_{lag}", FeatureGroup.DP), picked(getattr(versions, name), row)) for name in REMEMBERED
        ]
    return columns


def count_columns(past: PeriodCounts, history: int) -> list[Column]:
    """New links and changes of the last periods, the latest first, with means and rates over them."""
    columns: list[Column] = []
    for kind, internal in KINDS.items():
        back = lags(past.new_links(internal=internal), history)
        columns += [(Feature(f"new_{kind}_{lag + 1}", FeatureGroup.DP), back[:, lag]) for lag in range(history)]
        columns.append((Feature(f"new_{kind}_mean", FeatureGroup.DP), mean_known(back)))
        columns.append((Feature(f"{kind}_link_change_rate", FeatureGroup.DP), change_rate(back)))
    columns.append((Feature("content_change_rate", FeatureGroup.DP), mean_known(lags(past.changed, history))))
    return columns


def life_columns(versions: PageVersions, page: IntArray, as_of: float) -> list[Column]:
    """Days known, days since and events a day of changes and of new links, over all the past. O(rows)."""
    starts = versions.offsets(page)
    some = starts[1:] > starts[:-1]
    first = picked(versions.time, np.where(some, starts[:-1], -1))
    last = picked(versions.time, np.where(some, starts[1:] - 1, -1))
    row = np.searchsorted(page, versions.page)
    later = np.ones(len(versions), np.bool_)
    later[starts[:-1][some]] = False
    watched = (np.full(len(page), as_of) if versions.complete else last) - first
    columns: list[Column] = [(Feature("days_known", FeatureGroup.DP), (as_of - first) / DAY)]
    events = {
        "change": versions.changed,
        "new_internal": versions.new_internal > 0,
        "new_external": versions.new_external > 0,
    }
    for name, happened in events.items():
        at = later & happened
        columns.append((Feature(f"days_since_{name}", FeatureGroup.DP), (as_of - _last(versions, row, at, page)) / DAY))
        count = np.bincount(row[at], minlength=len(page)).astype(np.float64)
        columns.append((Feature(f"{name}_per_day", FeatureGroup.DP), _per_day(count, watched)))
    return columns


def _last(versions: PageVersions, row: AnyArray, at: AnyArray, page: IntArray) -> FloatArray:
    """The time of the last row of each page among those ``at``; NaN if none."""
    time = np.full(len(page), np.nan)
    time[row[at]] = versions.time[at]  # of equal indices the last assignment stands
    return time


def _per_day(count: FloatArray, watched: FloatArray) -> FloatArray:
    rate = np.full(len(count), np.nan)
    return np.asarray(np.divide(count * DAY, watched, out=rate, where=watched > 0))


def network_columns(past: Sequence[NetworkState]) -> list[Column]:
    """Inlinks and ranks of 1, 2, … periods ago, in this order."""
    return [
        (Feature(f"{name}_{lag}", FeatureGroup.DN), getattr(state, name))
        for lag, state in enumerate(past, start=1)
        for name in NETWORK
    ]


def related_columns(
    past: PeriodCounts, related: RelatedPages, history: int, literal: PeriodCounts | None = None
) -> list[Column]:
    """New links of related pages in the last periods, and their change rates over all periods of ``past``.

    ``literal`` has the period to be predicted too; see
    :func:`recrawl.predict.feature_extraction.look_back_look_around`.
    """
    columns: list[Column] = []
    for kind, internal in KINDS.items():
        found = look_back_look_around(
            past.new_links(internal=internal),
            related,
            history=history,
            literal=None if literal is None else literal.new_links(internal=internal),
        )
        columns += [
            (Feature(f"near_new_{kind}_{lag + 1}", FeatureGroup.DN), found.around[:, lag]) for lag in range(history)
        ]
        if history:
            columns.append((Feature(f"near_new_{kind}_mean", FeatureGroup.DN), found.around_mean))
        columns.append((Feature(f"near_{kind}_link_change_rate", FeatureGroup.DN), found.around_change_rate))
    changes = related.mean_of(np.column_stack([mean_known(past.changed)]))[:, 0]
    columns.append((Feature("near_content_change_rate", FeatureGroup.DN), changes))
    return columns


@dataclass(frozen=True, slots=True)
class FeatureEvidence:
    """What is known of n pages, in time. Parts that are missing leave their features out."""

    page: IntArray
    """Page ids, ascending, unique."""
    urls: tuple[str, ...]
    versions: PageVersions
    """Of these pages only."""
    links: TimedLinks | None = None
    """Between any pages."""
    texts: PageTexts | None = None
    trusted: BoolArray | None = None
    """Pages that TrustRank starts from; the home pages of their hosts if not given."""

    def __post_init__(self) -> None:
        if len(self.page) != len(self.urls) or bool((np.diff(self.page) <= 0).any()):
            msg = "there must be one URL a page, and page ids must ascend"
            raise ValueError(msg)
        if not bool(np.isin(self.versions.page, self.page).all()):
            msg = "there are versions of pages that are not given"
            raise ValueError(msg)

    def of_pages(self, chosen: BoolArray) -> FeatureEvidence:
        """The evidence of the pages where this mask is true. Links keep to all pages; graphs leave the others out."""
        page = self.page[chosen]
        return replace(
            self,
            page=page,
            urls=tuple(self.urls[place] for place in np.flatnonzero(chosen)),
            versions=self.versions.take(np.isin(self.versions.page, page)),
            trusted=None if self.trusted is None else self.trusted[chosen],
        )

    def before(self, time: float) -> FeatureEvidence:
        """Only what was known before this time."""
        return replace(
            self,
            versions=self.versions.before(time),
            links=None if self.links is None else self.links.before(time),
            texts=None if self.texts is None else self.texts.before(time),
        )


@dataclass(frozen=True, slots=True)
class FeatureOptions:
    """What decides which features there are, and what they mean."""

    period: float = 7 * DAY
    """Seconds of a period."""
    history: int = 8
    """Number of past periods; 0 leaves out all dynamic features but the rates of related pages."""
    rate_periods: int = 8
    """Periods that the change rates of related pages are taken over, whatever the history."""
    literal: bool = False
    """Take the change rate of related pages as printed, which uses the next period. For reproduction only."""


@dataclass(frozen=True, slots=True)
class RelatedContext:
    """What pages are about as of a time, and which of them are related."""

    page: IntArray
    as_of: float
    topics: SingleArray
    """The reduced semantic vectors."""
    related: RelatedPages
    """With the recall of the search."""


def look_around(
    evidence: FeatureEvidence,
    as_of: float,
    semantics: Semantics,
    rng: np.random.Generator,
    *,
    neighbours: int = NEIGHBOURS,
) -> RelatedContext:
    """Read the texts of all pages as of a time, and find their related pages.

    ``semantics`` belong to the model: learn them from texts of the training time.
    """
    texts = PageTexts.of([], [], []) if evidence.texts is None else evidence.texts.before(as_of)
    vectors = semantics.space.vectors(texts.last_of(evidence.page))
    related = related_pages(vectors, rng, k=neighbours)
    return RelatedContext(evidence.page, as_of, reduced(vectors, semantics.axes), related)


def page_features(
    evidence: FeatureEvidence, as_of: float, around: RelatedContext | None = None, options: FeatureOptions | None = None
) -> FeatureTable:
    """The features of all pages of the evidence as of a time.

    Columns depend only on the options, on whether there are links and whether there are surroundings; so tables of
    other pages and times have the same schema. O(history · (versions + links · rounds) + pages · neighbours · columns).
    """
    if around is not None and (around.as_of > as_of or not np.array_equal(around.page, evidence.page)):
        msg = "the surroundings are of other pages or of a later time"
        raise ValueError(msg)
    how = options or FeatureOptions()
    known = evidence.before(as_of)
    own = static_features.url_columns(known.urls)
    own += static_features.version_columns(known.versions, known.versions.valid_at(known.page, as_of))
    past = period_counts(known.versions, known.page, LinkPeriods(as_of, how.period, max(how.history, how.rate_periods)))
    columns = list(own)
    if known.links is not None:
        trusted = _home_pages(own) if known.trusted is None else known.trusted
        columns += _network(known.links, known.page, as_of, how, trusted)
    if how.history:
        columns += state_columns(known.versions, known.page, as_of, how.period, how.history)
        columns += count_columns(past, how.history)
        columns += life_columns(known.versions, known.page, as_of)
    if around is not None:
        columns += static_features.semantic_columns(around.topics)
        columns += _averages(own, around.related)
        periods = LinkPeriods(as_of + how.period, how.period, how.rate_periods + 1)
        literal = period_counts(evidence.versions, known.page, periods) if how.literal else None
        columns += related_columns(past, around.related, how.history, literal)
    return table_of(known.page, as_of, columns)


def _network(links: TimedLinks, page: IntArray, as_of: float, how: FeatureOptions, trusted: BoolArray) -> list[Column]:
    """Where the pages stand in the graph now, and where they stood; each state is found from the one before it."""
    times = as_of - how.period * np.arange(how.history, -1, -1.0)
    states: list[NetworkState] = []
    for graph in links.graphs_at(times.tolist(), page):
        states.append(network_state(graph, trusted, states[-1] if states else None))
    now, *earlier = reversed(states)
    static: list[Column] = [(Feature(name, FeatureGroup.SN), getattr(now, name)) for name in NETWORK]
    return static + network_columns(earlier)


def _home_pages(own: list[Column]) -> BoolArray:
    depth = next(column for feature, column in own if feature.name == "path_depth")
    return np.asarray(np.asarray(depth) == 0, dtype=np.bool_)


def _averages(own: list[Column], related: RelatedPages) -> list[Column]:
    """The features of the page that are quantities, averaged over related pages."""
    numbers = [(feature.name, column) for feature, column in own if not feature.categorical]
    mean = related.mean_of(np.column_stack([np.asarray(column, np.float64) for _, column in numbers]))
    return [(Feature(f"near_{name}", FeatureGroup.SN), mean[:, place]) for place, (name, _) in enumerate(numbers)]


def first_sight(page: IntArray, urls: Sequence[str], versions: PageVersions | None = None) -> FeatureTable:
    """The features of pages, ascending ids, at the first observation of each; unknown where there was none.

    O(characters).
    """
    observations = PageVersions.of([], []) if versions is None else versions
    starts = observations.offsets(page)
    first = np.where(starts[1:] > starts[:-1], starts[:-1], -1)
    return table_of(page, np.inf, [*url_columns(urls), *version_columns(observations, first)])


def when_found(table: FeatureTable) -> FeatureTable:
    """Only what is known before the first observation."""
    return table.only([feature.name for feature, _ in url_columns(())])


def site_ids(urls: Sequence[str]) -> IntArray:
    """A number for the host of each URL: the same in every workspace. 63 bits of a hash.

    >>> one, other, same = site_ids(["http://a.org/x", "http://b.org/", "http://a.org/y"]).tolist()
    >>> one == same, one == other
    (True, False)
    """
    hosts = [host_of(url) or "" for url in urls]
    known = {host: _number(host) for host in set(hosts)}
    return np.fromiter((known[host] for host in hosts), np.int64, len(hosts))


def _number(host: str) -> int:
    return int.from_bytes(hashlib.blake2b(host.encode(), digest_size=8).digest()) >> 1


@dataclass(frozen=True, slots=True)
class ObservationCounts:
    """For each page."""

    count: FloatArray
    """Changes, not always whole ones; none where there was no observation."""
    exposure: FloatArray
    """Seconds; 0 where there was no observation."""


def observation_counts(histories: Histories) -> ObservationCounts:
    """As how many changes in how much time the observations of each page count. O(gaps) a round of empirical Bayes.

    Observations that found no change count with their whole time; those that found one count for up to a change, and
    for less than their time if the page surely changed early in it. So where nearly every observation finds a change,
    slow pages have more say than fast ones, and a mean over pages of different rates comes out low: by a third if they
    change twice between observations.
    """
    prior = fit_prior(histories)
    belief = gamma_posterior.fit(histories, prior.take(np.zeros(len(histories), np.int64)))
    return ObservationCounts(np.maximum(belief.a - prior.a, 0.0), np.maximum(belief.b - prior.b, 0.0))
