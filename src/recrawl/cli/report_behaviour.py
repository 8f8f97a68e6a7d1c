"""How the pages of a report change, from what ``recrawl rates`` learns."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from recrawl.assess.interval_spread import interval_spread
from recrawl.assess.intervals import intervals_of
from recrawl.assess.rates_compare import moments
from recrawl.assess.rates_spread import LogNormalFit, fit_lognormal
from recrawl.assess.rhythm import Rhythm, rhythm
from recrawl.assess.scores import calibration, log_loss
from recrawl.cli.rates_compare import foretell, some_looks
from recrawl.cli.rates_diagnose import SEED, findings_of
from recrawl.cli.rates_rows import Rows
from recrawl.estimate.estimator import Estimator, Evidence
from recrawl.estimate.operational_posterior import places_of
from recrawl.estimate.operational_tables import HOURS
from recrawl.estimate.tempo_state import Factor, fit
from recrawl.model import BoolArray, FloatArray, IntArray
from recrawl.show.report.behaviour import Behaviour, Level

MOST_FORETOLD = 4_000
"""Pages whose looks are foretold, evenly spread: a curve of ten points needs no more."""
FEWEST_FORETOLD = 100
_SLASHES = 3


@dataclass(frozen=True, slots=True)
class Chosen:
    """Rows that a report is about, and their names."""

    rows: Rows
    which: IntArray
    """Positions, ascending."""
    names: Sequence[str]
    """One each."""


def behaviour_of(pages: Chosen, sites: Chosen, estimator: Estimator) -> Behaviour:
    """Everything about change, of some pages and of their sites as wholes."""
    learned = pages.rows
    kept = np.zeros(len(learned), np.bool_)
    kept[pages.which] = True
    found = findings_of(learned, kept)
    home = np.flatnonzero([_is_home(url) for url in pages.names])
    homes = Chosen(learned, pages.which[home], [pages.names[row] for row in home.tolist()])
    p, changed = _foretold(some_looks(learned.lesson, kept, MOST_FORETOLD), estimator)
    enough = len(p) >= FEWEST_FORETOLD
    share = np.full(len(p), changed.mean() if enough else 0.0)
    return Behaviour(
        [_level("page", pages, found.pages), _level("homepage", homes), _level("site", sites)],
        found.diagnosis,
        rhythm_of(learned, pages.which),
        calibration(p, changed) if enough else None,
        len(p),
        float(log_loss(p, changed).mean()) if enough else float("nan"),
        float(log_loss(share, changed).mean()) if enough else float("nan"),
        estimator.name,
    )


def _level(name: str, chosen: Chosen, known: LogNormalFit | None = None) -> Level:
    """What is known of these rows, in the shape the report wants; only those that changed have columns."""
    rows, which = chosen.rows, chosen.which
    moving = np.flatnonzero((rows.changes[which] > 0) & (rows.rate[which] > 0) & np.isfinite(rows.rate[which]))
    changed = which[moving]
    slow, fast = rows.bounds(changed)
    histories = rows.lesson.histories
    median = intervals_of(histories, rows.lesson.exact).medians(len(histories))[changed]
    rate = rows.rate[changed]
    with np.errstate(divide="ignore"):
        low, high = 1.0 / fast, 1.0 / slow
    return Level(
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


def _foretold(chosen: Evidence, estimator: Estimator) -> tuple[FloatArray, BoolArray]:
    """What the estimator said, at several moments, of the next look at each page, and what that found."""
    if not len(chosen.histories.gaps):
        return np.empty(0), np.empty(0, np.bool_)
    found = foretell(chosen, moments(chosen.histories), {estimator.name: estimator})
    return found.p[estimator.name], found.changed


def rhythm_of(pages: Rows, rows: IntArray) -> Rhythm:
    """The week of these pages, as the estimator in operational time learns it, of all hosts together."""
    evidence = pages.lesson.evidence
    some = Evidence(evidence.histories.take(rows), tuple(level[rows] for level in evidence.levels), evidence.kind)
    if not len(some.histories.gaps):
        return rhythm(np.zeros(HOURS), np.zeros(HOURS))
    week = fit(some.histories, places_of(some), (Factor.WEEK,)).week
    if week is None:
        return rhythm(np.zeros(HOURS), np.zeros(HOURS))
    return rhythm(week.changes.sum(axis=0), week.exposure.sum(axis=0))
