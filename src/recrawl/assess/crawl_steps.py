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


def crawl_steps(looks: Looks, rounds: Rounds, site: IntArray) -> CrawlSteps | None:
    """The steps of the site that was looked at most, or of all that are looked at all the time if it is one of them.

    ``None`` if no site has more than one crawl. Stretches are about as long as pages usually wait for the next look, so
    that most of them are there. O(m log m).

    >>> from recrawl.model import Visits
    >>> looks = Looks.from_visits(Visits.of(np.repeat([1, 2], 12), [*range(12), *(0.5 + np.arange(12))]))
    >>> steps = crawl_steps(looks, known_rounds(looks, np.zeros(2, np.int64), np.zeros(24, np.int64)), np.zeros(2, int))
    >>> len(steps.rounds), steps.length
    (12, 1.0)
    """
    row = looks.row_of_look()
    sites = int(site.max(initial=-1)) + 1
    seen = np.bincount(site[row], minlength=sites)
    pages_of_crawls = np.bincount(site[row[starts_of_runs(row, rounds.of_look)]], minlength=sites)
    always = seen > _ALWAYS * pages_of_crawls
    crawls = np.bincount(rounds.site, minlength=sites)
    weight = seen * ((crawls > 1) | always)
    if not weight.any():
        return None
    most = int(weight.argmax())
    if not always[most]:
        return CrawlSteps(rounds, most, site == most, float("nan"))
    rows = np.asarray(always[site])
    other = np.where(rows, 0, 1)
    time = looks.time[rows[row]]
    start, end = float(time.min()), float(time.max())
    period = max(float(usual_period(looks, other)[0]), (end - start) / _MOST)
    edges = bins(start, end, int(np.ceil(np.clip((end - start) / period, _FEWEST, _MOST))) + 1)
    stretch = np.searchsorted(edges, looks.time, side="right")
    return CrawlSteps(known_rounds(looks, other, stretch), 0, rows, float(edges[1] - edges[0]))
