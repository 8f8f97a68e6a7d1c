"""Download times: log-normal per host, learned from past crawls, and shrunk where a host has little history.

The log of a download's seconds is the host's median μ_h, plus how slow everything is in this crawl (variance δ²), plus
how slow this host is in this crawl (τ²), plus the variation from page to page (σ_h²). μ_h itself varies from host to
host (ω²). The variation from page to page has its empirical shape over all hosts: its tails are heavier than those of a
normal distribution, and they decide how long a long list takes. The variances are found by moments, each with a small
weight on a default, so that a short history does not claim to know them; the medians follow by Bayes' rule. A host
without history is a draw from all hosts. Requests without a response have a share of each host (Beta), and take as long
as such requests took before, of the same host or of all: refusals come at once and time-outs late, which is no
log-normal.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from scipy import special

from recrawl.model import BoolArray, FloatArray, IntArray

LEAST_SECONDS = 1e-3
"""What is shorter counts as a millisecond."""
_MEAN = 2.0
"""Seconds of a download of which nothing is known (paper 001 §5)."""
_OMEGA, _SIGMA, _TAU, _DELTA = 1.0, 0.7, 0.3, 0.15
_HOSTS_WORTH, _OBSERVATIONS_WORTH, _CRAWLS_WORTH = 3.0, 10.0, 2.0
"""How many hosts, downloads and crawls the defaults count for."""
NODES = 1_024
"""Places of the distribution from page to page that are kept, equally likely."""
_TAILS = 4.0
"""Degrees of freedom of what differs from crawl to crawl: now and then a host is much slower than ever before."""
_TAIL_UNIT = math.sqrt(1.0 - 2.0 / _TAILS)
"""Makes the variance 1."""
_FAILING, _REQUESTS_WORTH = 0.02, 20.0
"""Share of requests without an answer, and how many requests that counts for."""
_FAILURE_SECONDS = 10.0
"""How long a request without an answer takes, if there was none before."""
_FAILURES_WORTH = 2.0
"""How many failures of its own what is known of all hosts counts for."""


@dataclass(frozen=True, slots=True)
class Downloads:
    """Past downloads as columns."""

    host: IntArray
    """Row of the host, from 0."""
    crawl: IntArray
    """In which crawl it was; where there are no crawls, on which day."""
    seconds: FloatArray
    answered: BoolArray

    def __len__(self) -> int:
        return len(self.host)


@dataclass(frozen=True, slots=True)
class DownloadTimes:
    """What is believed of the next crawl. One entry per host, log seconds."""

    middle: FloatArray
    doubt: FloatArray
    """Standard deviation of what is believed of ``middle``."""
    spread: FloatArray
    """Standard deviation from page to page."""
    shape: FloatArray
    """What differs from page to page in units of ``spread``: equally likely values, ascending. Of all hosts."""
    of_host: float
    """Standard deviation of a host from crawl to crawl."""
    of_crawl: float
    """Standard deviation of all hosts together from crawl to crawl."""
    crawls: float
    """How many crawls both are known from, those that the defaults count for included."""
    failed: FloatArray
    """Requests without an answer, the default's included: a of Beta(a, b)."""
    answered: FloatArray
    """Requests with one: b."""
    failures: FloatArray
    """Seconds of past requests without an answer, by host, and then some that stand for all."""
    failures_from: IntArray
    """Host h has ``failures[failures_from[h]:failures_from[h + 1]]``; what follows the last host stands for all."""
    limit: float
    """No request takes longer."""

    def __len__(self) -> int:
        return len(self.middle)

    def take(self, rows: IntArray) -> DownloadTimes:
        """The hosts at these rows. O(rows and their failures)."""
        sizes = np.diff(self.failures_from)[rows]
        bounds = np.concatenate([np.zeros(1, np.int64), np.cumsum(sizes)])
        own = np.repeat(self.failures_from[rows] - bounds[:-1], sizes) + np.arange(bounds[-1])
        of_all = self.failures[self.failures_from[-1] :]
        return DownloadTimes(
            self.middle[rows], self.doubt[rows], self.spread[rows], self.shape,
            self.of_host, self.of_crawl, self.crawls, self.failed[rows], self.answered[rows],
            np.concatenate([self.failures[own], of_all]), bounds, self.limit,
        )  # fmt: skip

    def mean(self) -> FloatArray:
        """Expected seconds of one request to each host, failures included."""
        variance = self.doubt**2 + self.spread**2 + self.of_host**2 + self.of_crawl**2
        share = self.failed / (self.failed + self.answered)
        return (1.0 - share) * _capped_mean(self.middle, np.sqrt(variance), self.limit) + share * self.failure_mean()

    def failure_mean(self) -> FloatArray:
        """Expected seconds of a request to each host that gets no answer."""
        own = np.diff(self.failures_from)
        total = np.concatenate([np.zeros(1), np.cumsum(self.failures)])
        of_own = total[self.failures_from[1:]] - total[self.failures_from[:-1]]
        of_all = float(self.failures[self.failures_from[-1] :].mean())
        return np.asarray((of_own + _FAILURES_WORTH * of_all) / (own + _FAILURES_WORTH))

    def draw_failures(self, host: IntArray, rng: np.random.Generator) -> FloatArray:
        """Seconds of requests to these hosts that get no answer."""
        own = np.diff(self.failures_from)[host]
        last = self.failures_from[-1]
        from_all = rng.random(len(host)) * (own + _FAILURES_WORTH) >= own
        place = rng.random(len(host))
        row = np.where(
            from_all,
            last + place * (len(self.failures) - last),
            self.failures_from[host] + place * own,
        )
        return np.asarray(self.failures[row.astype(np.int64)])

    def next_crawl(self, rng: np.random.Generator) -> NextCrawl:
        """Draw how slow each host will be. O(hosts)."""
        doubt = self.doubt * rng.standard_normal(len(self))
        # A variance that is known from few crawls may be a larger or a smaller one.
        of_host, of_crawl = np.array([self.of_host, self.of_crawl]) * np.sqrt(
            self.crawls / rng.chisquare(self.crawls, 2)
        )
        today = of_host * _TAIL_UNIT * rng.standard_t(_TAILS, len(self)) + of_crawl * rng.standard_normal()
        middle = self.middle + doubt + today
        return NextCrawl(self, middle, rng.beta(self.failed, self.answered))


@dataclass(frozen=True, slots=True)
class NextCrawl:
    """One way in which the next crawl may be."""

    times: DownloadTimes
    middle: FloatArray
    failing: FloatArray
    """Share of requests without an answer."""

    def seconds(self, host: IntArray, rng: np.random.Generator) -> FloatArray:
        """Draw how long a request to each of these hosts takes. O(n)."""
        shape = self.times.shape
        off = shape[rng.integers(0, len(shape), len(host))]
        seconds = np.exp(self.middle[host] + self.times.spread[host] * off)
        fails = rng.random(len(host)) < self.failing[host]
        seconds[fails] = self.times.draw_failures(host[fails], rng)
        return np.minimum(seconds, self.times.limit)

    def mean(self) -> FloatArray:
        """Expected seconds of a request to each host."""
        answer = _capped_mean(self.middle, self.times.spread, self.times.limit)
        return (1.0 - self.failing) * answer + self.failing * self.times.failure_mean()


def learn_downloads(past: Downloads, hosts: int, *, limit: float = math.inf) -> DownloadTimes:
    """What past downloads say of ``hosts`` hosts, when none may take longer than ``limit`` seconds. O(n log n).

    Downloads of 0 seconds were not timed, and say only whether there was an answer.

    >>> past = Downloads(np.zeros(50, int), np.zeros(50, int), np.full(50, 0.5), np.ones(50, bool))
    >>> np.exp(learn_downloads(past, 2).middle).round(1).tolist()
    [0.5, 0.7]
    """
    timed = past.answered & (past.seconds > 0)
    spread, within, shape = _page_to_page(past, timed, hosts)
    cells = _Cells.of(past, timed)
    of_host, of_crawl = _crawl_to_crawl(cells, within)
    middle, doubt = _middles(cells, spread, of_host**2 + of_crawl**2, hosts)
    lost = np.bincount(past.host[~past.answered], minlength=hosts).astype(np.float64)
    kept = np.bincount(past.host[past.answered], minlength=hosts).astype(np.float64)
    share = (lost.sum() + _FAILING * _REQUESTS_WORTH) / (lost.sum() + kept.sum() + _REQUESTS_WORTH)
    return DownloadTimes(
        middle, doubt, spread, shape, of_host, of_crawl, _crawls(cells),
        lost + share * _REQUESTS_WORTH, kept + (1.0 - share) * _REQUESTS_WORTH,
        *_failures(past, hosts, limit), limit,
    )  # fmt: skip


def _failures(past: Downloads, hosts: int, limit: float) -> tuple[FloatArray, IntArray]:
    """Seconds of requests without an answer by host, with all of them once more at the end."""
    rows = np.flatnonzero(~past.answered & (past.seconds > 0))
    rows = rows[np.argsort(past.host[rows], kind="stable")]
    own = np.minimum(np.maximum(past.seconds[rows], LEAST_SECONDS), limit)
    default = np.full(1, min(_FAILURE_SECONDS, limit))
    return np.concatenate([own, own, default]), np.searchsorted(past.host[rows], np.arange(hosts + 1))


def _capped_mean(middle: FloatArray, spread: FloatArray, limit: float) -> FloatArray:
    """E[min(X, limit)] of log-normal X."""
    mean = np.exp(middle + 0.5 * spread**2)
    if math.isinf(limit):
        return mean
    over = (math.log(limit) - middle) / np.maximum(spread, 1e-12)
    return np.asarray(mean * special.ndtr(over - spread) + limit * special.ndtr(-over))


@dataclass(frozen=True, slots=True)
class _Cells:
    """Downloads of one host in one crawl, taken together."""

    host: IntArray
    crawl: IntArray
    count: FloatArray
    mean: FloatArray

    @classmethod
    def of(cls, past: Downloads, timed: BoolArray) -> _Cells:
        crawls, crawl = np.unique(past.crawl[timed], return_inverse=True)
        key = past.host[timed] * max(len(crawls), 1) + crawl
        found, cell = np.unique(key, return_inverse=True)
        count = np.bincount(cell, minlength=len(found)).astype(np.float64)
        log = np.log(np.maximum(past.seconds[timed], LEAST_SECONDS))
        mean = np.bincount(cell, log, len(found)) / count
        return cls(found // max(len(crawls), 1), found % max(len(crawls), 1), count, mean)


def _page_to_page(past: Downloads, timed: BoolArray, hosts: int) -> tuple[FloatArray, float, FloatArray]:
    """σ of each host, σ² of all, and the shape of what is left in units of σ."""
    log = np.log(np.maximum(past.seconds[timed], LEAST_SECONDS))
    _, crawl = np.unique(past.crawl[timed], return_inverse=True)
    host = past.host[timed]
    _, cell, count = np.unique(host * (crawl.max(initial=0) + 1) + crawl, return_inverse=True, return_counts=True)
    off = log - (np.bincount(cell, log) / count)[cell] if len(log) else log
    squares = np.bincount(host, off**2, hosts)
    freedom = np.maximum(np.bincount(host, 1.0 - 1.0 / count[cell], hosts), 0.0)
    pooled = (squares.sum() + _OBSERVATIONS_WORTH * _SIGMA**2) / (freedom.sum() + _OBSERVATIONS_WORTH)
    spread = np.sqrt((squares + _OBSERVATIONS_WORTH * pooled) / (freedom + _OBSERVATIONS_WORTH))
    own = off / spread[host] / np.sqrt(np.maximum(1.0 - 1.0 / count[cell], 0.5)) if len(log) else log
    return spread, float(pooled), _shape(own)


def _shape(off: FloatArray) -> FloatArray:
    """Equally likely values of a distribution of which these were seen; a normal one counts for some more."""
    places = (np.arange(NODES) + 0.5) / NODES
    normal = special.ndtri((np.arange(int(_OBSERVATIONS_WORTH)) + 0.5) / _OBSERVATIONS_WORTH)
    if not len(off):
        return np.asarray(special.ndtri(places))
    return np.asarray(np.quantile(np.concatenate([off, normal]), places, method="hazen"))


def _crawl_to_crawl(cells: _Cells, within: float) -> tuple[float, float]:
    """τ and δ: what the means of a host differ from crawl to crawl beyond chance, and what all hosts share of it."""
    hosts = int(cells.host.max(initial=-1)) + 1
    crawls = np.bincount(cells.host, minlength=hosts)
    often = crawls[cells.host] > 1
    if not often.any():
        return _TAU, _DELTA
    host, count = cells.host[often], cells.count[often]
    off = cells.mean[often] - (np.bincount(cells.host, cells.mean, hosts) / np.maximum(crawls, 1))[host]
    freedom = float((1.0 - 1.0 / crawls[host]).sum())
    noise = float((within / count * (1.0 - 1.0 / crawls[host])).sum()) / freedom
    total = max(float((off**2).sum()) / freedom - noise, 0.0)
    there = np.bincount(cells.crawl[often])
    shared = np.bincount(cells.crawl[often], off)[there > 0] / there[there > 0]
    days = len(shared)
    by_chance = (total + noise) / float(there[there > 0].mean())
    common = min(max(float((shared**2).sum()) / max(days - 1, 1) - by_chance, 0.0), total)
    worth = _CRAWLS_WORTH / (_CRAWLS_WORTH + days - 1)
    tau = (1.0 - worth) * (total - common) + worth * _TAU**2
    delta = (1.0 - worth) * common + worth * _DELTA**2
    return math.sqrt(tau), math.sqrt(delta)


def _crawls(cells: _Cells) -> float:
    return len(np.unique(cells.crawl)) + _CRAWLS_WORTH


def _middles(cells: _Cells, spread: FloatArray, between_crawls: float, hosts: int) -> tuple[FloatArray, FloatArray]:
    """μ of each host and how sure it is: cells weighted by how much they say, then shrunk towards all hosts."""
    precision = 1.0 / (between_crawls + spread[cells.host] ** 2 / cells.count)
    own = np.bincount(cells.host, precision, hosts)
    seen = own > 0
    mean = np.bincount(cells.host, precision * cells.mean, hosts)[seen] / own[seen]
    default = math.log(_MEAN) - 0.5 * (_OMEGA**2 + _SIGMA**2)
    weight = len(mean) + 1.0
    middle = (mean.sum() + default) / weight
    between = max(float(((mean - middle) ** 2).sum() - (1.0 / own[seen]).sum()), 0.0)
    omega = (between + _HOSTS_WORTH * _OMEGA**2) / (len(mean) + _HOSTS_WORTH)
    total = own + 1.0 / omega
    found = np.full(hosts, middle)
    found[seen] = (own[seen] * mean + middle / omega) / total[seen]
    # The median of all hosts is itself an estimate from few hosts.
    unsure = np.where(seen, 0.0, omega / (len(mean) + _HOSTS_WORTH))
    return found, np.sqrt(1.0 / total + unsure)
