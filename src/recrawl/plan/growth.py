r"""A frontier that grows: how many pages are found, and fetched, while a list of URLs is crawled.

A host given s URLs brings x more, Poisson with mean γ_h·ε·s. γ_h differs from host to host, and ε, of mean 1 and
variance 1/k, from crawl to crawl. All are Gamma, found by moments; the past of a host counts as much as ε lets it.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from recrawl.model import FloatArray, IntArray

_UNSTEADY = 0.1
"""Variance from crawl to crawl, relative to the square of the mean, of a host of which nothing is known."""
_CRAWLS_WORTH = 4.0
"""How many rows of the past that counts for."""


@dataclass(frozen=True, slots=True)
class Growth:
    """What is believed of γ_h, Gamma(a, b), one entry a host; and of ε, Gamma(k, k)."""

    a: FloatArray
    b: FloatArray
    k: float

    def mean(self) -> FloatArray:
        """Pages found for each page given."""
        return self.a / self.b

    def draw(self, given: IntArray, rng: np.random.Generator) -> IntArray:
        """Pages that each host may bring beside those it was given."""
        share = rng.gamma(self.a) / self.b
        if math.isfinite(self.k):
            share = share * rng.gamma(self.k, 1.0 / self.k, len(share))
        return np.asarray(rng.poisson(given * share), dtype=np.int64)


def learn_growth(host: IntArray, given: IntArray, found: IntArray, hosts: int) -> Growth:
    """From past crawls, a row for each host in each: pages given, and pages found beside them. O(rows).

    >>> grown = learn_growth(np.array([0, 1, 1]), np.array([10, 10, 30]), np.array([5, 0, 0]), 3)
    >>> grown.mean().round(2).tolist()
    [0.43, 0.01, 0.25]
    """
    some = given > 0
    host = host[some]
    asked, got = given[some].astype(np.float64), found[some].astype(np.float64)
    share = float(got.sum()) / float(asked.sum()) if len(asked) else 0.0
    if share == 0.0:
        return Growth(np.zeros(hosts), np.ones(hosts), math.inf)
    rows = np.bincount(host, minlength=hosts).astype(np.float64)
    total = np.bincount(host, asked, hosts)
    own = np.bincount(host, got, hosts) / np.where(rows > 0, total, 1.0)
    unsteady = _unsteady(host, asked, got, own, rows)
    # A row of s pages tells x/s with this variance: chance, and what differs from crawl to crawl.
    noise = share / asked + unsteady * np.maximum(own[host], share / 2.0) ** 2
    told = np.bincount(host, 1.0 / noise, hosts)
    best = np.bincount(host, got / asked / noise, hosts)
    seen = told > 0
    middle = float(own[seen].mean())
    between = max(float(((own[seen] - middle) ** 2 - 1.0 / told[seen]).sum()) / max(int(seen.sum()) - 1, 1), 0.0)
    between = max(between, (0.1 * middle) ** 2)
    precision = told + 1.0 / between
    mean = (best + middle / between) / precision
    return Growth(mean**2 * precision, mean * precision, 1.0 / unsteady)


def _unsteady(host: IntArray, given: FloatArray, found: FloatArray, own: FloatArray, rows: FloatArray) -> float:
    """1/k: what is left of the squares of rows about their host's mean when chance is taken out."""
    expected = own[host] * given
    often = rows[host] > 1
    free = np.where(often, 1.0 - 1.0 / np.maximum(rows[host], 1.0), 0.0)
    left = float((((found - expected) ** 2 - free * expected)[often]).sum())
    base = float((free * expected**2)[often].sum())
    crawls = float(free.sum())
    seen = min(max(left / base, 0.0), 4.0) if base > 0 else _UNSTEADY
    return (crawls * seen + _CRAWLS_WORTH * _UNSTEADY) / (crawls + _CRAWLS_WORTH)
