"""What is known of a page when it is found, and when it was observed once: what its prior is made of.

Only features that any page has from the start are taken, as they were then. So a model learns from old pages exactly
what it will be asked about new ones, and nothing that came later can leak into it.

What observations say about a rate, as a number of changes in a time: for learners that count.

An observation tells that a page changed, not how often; and observations are irregular. A Gamma belief that starts from
the prior of the population, Gamma(a₀, b₀), and ends at Gamma(a, b) has learned as much as from a − a₀ changes counted
in the time b − b₀. That is what ``predict.count_prior`` is trained on.
"""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from recrawl.estimate.posterior import gamma_posterior
from recrawl.estimate.posterior.gamma_posterior import fit_prior
from recrawl.model import FloatArray, Histories, IntArray
from recrawl.predict.features.feature_table import FeatureTable, table_of
from recrawl.predict.features.page_versions import PageVersions
from recrawl.predict.features.static_features import url_columns, version_columns
from recrawl.urls import host_of


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
    change twice from observation to look.
    """
    prior = fit_prior(histories)
    belief = gamma_posterior.fit(histories, prior.take(np.zeros(len(histories), np.int64)))
    return ObservationCounts(np.maximum(belief.a - prior.a, 0.0), np.maximum(belief.b - prior.b, 0.0))
