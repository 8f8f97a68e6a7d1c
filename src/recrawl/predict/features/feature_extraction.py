"""All features of pages as they were known at a moment: static and dynamic, of the page and of its network.

The first step of :func:`page_features` cuts everything that happened at or after the moment off the evidence; what
follows sees nothing else. (Only the printed form of one feature of paper 004 observations one period further, and only
if asked to; reading 004.2.)
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from recrawl.model import BoolArray, IntArray
from recrawl.predict.features import dynamic_features, static_features
from recrawl.predict.features.feature_table import Column, Feature, FeatureGroup, FeatureTable, table_of
from recrawl.predict.features.page_versions import PageTexts, PageVersions, TimedLinks
from recrawl.predict.features.static_features import NETWORK, NetworkState, network_state
from recrawl.predict.features.text_space import Semantics, reduced
from recrawl.predict.related.look_back_look_around import LinkPeriods, period_counts
from recrawl.predict.related.related_pages import NEIGHBOURS, RelatedPages, SingleArray, related_pages
from recrawl.time import DAY


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
    """Periods looked back; 0 leaves out all dynamic features but the rates of related pages."""
    rate_periods: int = 8
    """Periods that the change rates of related pages are taken over, whatever the history."""
    literal: bool = False
    """Take the change rate of related pages as printed, with a look into the next period. For reproduction only."""


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
        columns += dynamic_features.state_columns(known.versions, known.page, as_of, how.period, how.history)
        columns += dynamic_features.count_columns(past, how.history)
        columns += dynamic_features.life_columns(known.versions, known.page, as_of)
    if around is not None:
        columns += static_features.semantic_columns(around.topics)
        columns += _averages(own, around.related)
        periods = LinkPeriods(as_of + how.period, how.period, how.rate_periods + 1)
        literal = period_counts(evidence.versions, known.page, periods) if how.literal else None
        columns += dynamic_features.related_columns(past, around.related, how.history, literal)
    return table_of(known.page, as_of, columns)


def _network(links: TimedLinks, page: IntArray, as_of: float, how: FeatureOptions, trusted: BoolArray) -> list[Column]:
    """Where the pages stand in the graph now, and where they stood; each state is found from the one before it."""
    times = as_of - how.period * np.arange(how.history, -1, -1.0)
    states: list[NetworkState] = []
    for graph in links.graphs_at(times.tolist(), page):
        states.append(network_state(graph, trusted, states[-1] if states else None))
    now, *earlier = reversed(states)
    static: list[Column] = [(Feature(name, FeatureGroup.SN), getattr(now, name)) for name in NETWORK]
    return static + dynamic_features.network_columns(earlier)


def _home_pages(own: list[Column]) -> BoolArray:
    depth = next(column for feature, column in own if feature.name == "path_depth")
    return np.asarray(np.asarray(depth) == 0, dtype=np.bool_)


def _averages(own: list[Column], related: RelatedPages) -> list[Column]:
    """The features of the page that are quantities, averaged over related pages."""
    numbers = [(feature.name, column) for feature, column in own if not feature.categorical]
    mean = related.mean_of(np.column_stack([np.asarray(column, np.float64) for _, column in numbers]))
    return [(Feature(f"near_{name}", FeatureGroup.SN), mean[:, place]) for place, (name, _) in enumerate(numbers)]
