"""The steps along which a site is compared: the crawls that were found, or stretches of time of equal length.

A crawler that comes back to each page when that is worth a visit makes no crawls. It is at a site all the time, and
what pauses cut out of its looks means nothing. Such sites are compared from one stretch of time to the next, all of
them together.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from recrawl.assess.looks import Looks
from recrawl.assess.rounds import Rounds, known_rounds, usual_period
from recrawl.assess.timeline import bins
from recrawl.model import BoolArray, IntArray
from recrawl.model.arrays import starts_of_runs

_ALWAYS = 3.0
"""Looks at a page in a crawl, on average, from which it is none: a visit and a revisit are two."""
_FEWEST, _MOST = 4, 24


@dataclass(frozen=True, slots=True)
class CrawlSteps:
    """Crawls, or stretches of time, of one site or several."""

    rounds: Rounds
    site: int
    """Whose rounds they are."""
    rows: BoolArray
    """The pages they are about."""
    length: float
    """Seconds of a stretch of time; NaN if they are crawls."""


def looked_at_always(looks: Looks, rounds: Rounds, site: IntArray) -> BoolArray:
    """Which sites are looked at all the time, so that what pauses cut out of their looks are no crawls. O(m)."""
    row = looks.row_of_look()
    sites = int(site.max(initial=-1)) + 1
    seen = np.bincount(site[row], minlength=sites)
    pages_of_crawls = np.bincount(site[row[starts_of_runs(row, rounds.of_look)]], minlength=sites)
    return np.asarray(seen > _ALWAYS * pages_of_crawls)


def crawl_steps(looks: Looks, rounds: Rounds, site: IntArray, most: int = 12) -> list[CrawlSteps]:
    """The steps of the ``most`` sites that were looked at most; before them, of several, stretches of time of them all.

    A site with one crawl has none, so there may be no steps at all. Stretches are about as long as pages usually wait
    for the next look, so that most of them are there. O(m log m) for each site.

    >>> from recrawl.model import Visits
    >>> looks = Looks.from_visits(Visits.of(np.repeat([1, 2], 12), [*range(12), *(0.5 + np.arange(12))]))
    >>> rounds = known_rounds(looks, np.zeros(2, np.int64), np.zeros(24, np.int64))
    >>> [(len(steps.rounds), steps.length) for steps in crawl_steps(looks, rounds, np.zeros(2, int))]
    [(12, 1.0)]
    """
    sites = int(site.max(initial=-1)) + 1
    seen = np.bincount(site[looks.row_of_look()], minlength=sites)
    always = looked_at_always(looks, rounds, site)
    crawls = np.bincount(rounds.site, minlength=sites)
    weight = seen * ((crawls > 1) | always)
    chosen = [one for one in np.argsort(-weight, kind="stable")[:most].tolist() if weight[one]]
    steps = [
        stretches(looks, site == one) if always[one] else CrawlSteps(rounds, one, site == one, float("nan"))
        for one in chosen
    ]
    return [stretches(looks, np.ones(len(looks), np.bool_)), *steps] if steps and sites > 1 else steps


def stretches(looks: Looks, rows: BoolArray) -> CrawlSteps:
    """Stretches of time of equal length as the steps of these pages, of which there is at least one. O(m log m)."""
    row = looks.row_of_look()
    other = np.where(rows, 0, 1)
    time = looks.time[rows[row]]
    start, end = float(time.min()), float(time.max())
    period = max(float(usual_period(looks, other)[0]), (end - start) / _MOST)
    wanted = np.clip((end - start) / period, _FEWEST, _MOST) if period > 0 else _FEWEST
    edges = bins(start, end, int(np.ceil(wanted)) + 1)
    stretch = np.searchsorted(edges, looks.time, side="right")
    return CrawlSteps(known_rounds(looks, other, stretch), 0, rows, float(edges[1] - edges[0]))
