r"""Strategies on one synthetic site of the thesis: what is expected of them, and what came of some histories.

Most strategies see rates only, so their schedule is one and the same whatever the order of the links on a page; it is
made once. Breadth-first and depth-first follow the links: each repeat has another order, and another schedule.

What to expect of captures of pages whose changes are whole seconds apart, exactly.

The published SHARC tables were made with gaps max(1, ⌊Exp(λ)⌋) (``laws.WholeGapProcess``), not with a Poisson process.
These gaps are 1 with probability 1 − q² and j ≥ 2 with (1 − q)q^j, where q = e^{−λ}. The generating function of the
chance u_k of a change at second k is then (1 − qz)/((1 − z)(1 − cz)) with c = q(1 − q), so

.. math:: u_k = a + b\,c^k, \qquad a = \frac{1 - q}{1 - c}, \quad b = 1 - a,

and all sums over changes have closed forms. Seconds are counted from the first request of a capture, where every page
counts as just changed. Everything is O(n).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from zlib import crc32

import numpy as np

from recrawl.capture import CaptureTerms
from recrawl.model import FloatArray
from recrawl.simulate.change_processes import ChangeProcess, EventTimes, PoissonProcess
from recrawl.simulate.simulated_capture import (
    SimulatedCapture,
    VirtualSite,
    capture_named,
    slots,
    thesis_site,
    tree_graph,
)
from recrawl_lab.trials.capture_published import PublishedRow


def expected_blur(rate: FloatArray, visit: FloatArray, end: float) -> FloatArray:
    """Expected actual blur (SHARC 4.19) of each page over the seconds 0 … ``end``; ``visit`` in whole seconds.

    >>> expected_blur(np.array([1.0, 50.0]), np.array([1.0, 1.0]), 2.0).round(4).tolist()
    [0.4323, 0.5]
    """
    if end <= 0:
        return np.zeros(len(rate))
    q = np.exp(-rate)
    c = q * -np.expm1(-rate)
    a = -np.expm1(-rate) / (1.0 - c)
    steady = visit * (visit + 1.0) / 2.0 + (end - visit) * (end - visit - 1.0) / 2.0
    early, all_of_it = _first_moment(c, visit), _first_moment(c, end)
    later = end * (_mass(c, end) - _mass(c, visit)) - (all_of_it - early)
    return np.asarray((a * steady + (1.0 - a) * (early + later)) / end)


def page_coherence(rate: FloatArray, visit: FloatArray, revisit: FloatArray) -> FloatArray:
    """Probability that a page does not change after ``visit`` and up to ``revisit``, both in whole seconds.

    The last change is at some second k up to the visit, and the next gap reaches beyond the revisit:
    Σ_k u_k q^{revisit − k + 1}.

    >>> page_coherence(np.array([0.1, 0.1]), np.array([5.0, 5.0]), np.array([5.0, 9.0])).round(4).tolist()
    [1.0, 0.6637]
    """
    q = np.exp(-rate)
    p = -np.expm1(-rate)
    a = p / (1.0 - q * p)
    settled = np.exp(-rate * (revisit - visit + 1.0)) * -np.expm1(-rate * (visit + 1.0)) / (1.0 - q * p)
    fresh = (1.0 - a) * np.exp(-rate * revisit) * (1.0 - p ** (visit + 1.0))
    return np.where(revisit > visit, settled + fresh, 1.0)


def _mass(c: FloatArray, last: FloatArray | float) -> FloatArray:
    """Σ c^k for k = 1 … last."""
    return np.asarray(c * (1.0 - c**last) / (1.0 - c))


def _first_moment(c: FloatArray, last: FloatArray | float) -> FloatArray:
    """Σ k c^k for k = 1 … last."""
    return np.asarray(c * (1.0 - (last + 1.0) * c**last + last * c ** (last + 1.0)) / (1.0 - c) ** 2)


@dataclass(frozen=True, slots=True)
class StrategyTrial:
    """Average blur a page of a single-visit strategy, or incoherent pages of a visit-revisit strategy."""

    expected: tuple[float, ...]
    """If changes are a Poisson process; one value for each repeat with a schedule of its own."""
    expected_whole: tuple[float, ...]
    """The same if changes are whole seconds apart."""
    actual: tuple[float, ...]
    """What came of the changes drawn, one value a repeat."""
    deviation: float
    """Standard deviation of what comes of one Poisson history, by the first schedule."""


@dataclass(frozen=True, slots=True)
class StrategyEntry:
    """A strategy that takes part, with the threshold it is given."""

    strategy: str
    threshold: float = 0.95

    @property
    def by_links(self) -> bool:
        """Whether the order of links decides its schedule."""
        return self.strategy.startswith(("bfs", "dfs"))


def run_trials(
    setting: PublishedRow,
    entries: Sequence[StrategyEntry],
    *,
    seed: int,
    repeats: int,
    law: ChangeProcess | None = None,
) -> list[StrategyTrial]:
    """Capture the site of a setting ``repeats`` times by each strategy, changes drawn by ``law`` (default: Poisson).

    All meet the same links and the same changes. The number of pages is known to all. O(repeats · (changes +
    strategies · pages)) beside the strategies' own work.
    """
    own = (seed, crc32(f"{setting.table} {setting.value}".encode()))
    site = thesis_site(
        setting.pages,
        end=0.0,
        rng=np.random.default_rng((*own, 0, 0)),
        skew=setting.skew,
        outdegree=setting.outdegree,
        leaves=setting.leaves,
    )
    most = max((slots(entry.strategy, setting.pages) for entry in entries), default=1)
    taken = [_capture(site, setting, entry) for entry in entries]
    expected = [[_expected(one)] for one in taken]
    whole = [[_expected_whole(one)] for one in taken]
    deviation = [_deviation(one) for one in taken]
    actual: list[list[float]] = [[] for _ in entries]
    for repeat in range(repeats):
        if repeat:
            graph = tree_graph(setting.pages, setting.outdegree, np.random.default_rng((*own, 0, repeat)))
            for place, entry in enumerate(entries):
                if entry.by_links:
                    taken[place] = _capture(replace(site, graph=graph), setting, entry)
                    expected[place].append(_expected(taken[place]))
                    whole[place].append(_expected_whole(taken[place]))
        span = max(most - 1, 1) * setting.slow_down
        changes = (law or PoissonProcess()).times(site.rate, 0.0, span, np.random.default_rng((*own, 1, repeat)))
        for place, one in enumerate(taken):
            actual[place].append(_actual(one, site, changes))
    columns = zip(expected, whole, actual, deviation, strict=True)
    return [StrategyTrial(tuple(a), tuple(b), tuple(c), d) for a, b, c, d in columns]


def _capture(site: VirtualSite, setting: PublishedRow, entry: StrategyEntry) -> SimulatedCapture:
    terms = CaptureTerms(delay=setting.slow_down, expected=setting.pages, threshold=entry.threshold)
    return capture_named(site, entry.strategy, terms)


def _expected(taken: SimulatedCapture) -> float:
    return taken.expected_blur() if taken.plan.revisit is None else taken.expected_incoherence()


def _expected_whole(taken: SimulatedCapture) -> float:
    rate = taken.site.rate[taken.page]
    if taken.plan.revisit is None:
        return float(expected_blur(rate, taken.visit, taken.end).mean())
    return float((1.0 - page_coherence(rate, taken.visit, taken.revisit)).sum())


def _deviation(taken: SimulatedCapture) -> float:
    """A change at h adds h − start or end − h to the blur; pages are independent of each other."""
    rate, before, after = taken.site.rate[taken.page], taken.visit - taken.start, taken.end - taken.visit
    if taken.plan.revisit is not None:
        stays = np.exp(-rate * (taken.revisit - taken.visit))
        return float(np.sqrt((stays * (1.0 - stays)).sum()))
    span = max(taken.end - taken.start, 1e-9)
    return float(np.sqrt((rate * (before**3 + after**3) / 3.0).sum()) / span / len(rate))


def _actual(taken: SimulatedCapture, site: VirtualSite, changes: EventTimes) -> float:
    met = replace(taken, site=replace(site, changes=changes))
    return met.actual_blur() if taken.plan.revisit is None else float(met.incoherence())
