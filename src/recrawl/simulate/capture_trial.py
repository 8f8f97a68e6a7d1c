"""One strategy on one synthetic site of the thesis: what is expected of it, and what came of some histories.

Most strategies see rates only, so their schedule is one and the same whatever the order of the links on a page; it is
made once. Breadth-first and depth-first follow the links: each repeat has another order, and another schedule.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from zlib import crc32

import numpy as np

from recrawl.capture import Terms
from recrawl.simulate import capture_whole_gaps
from recrawl.simulate.capture_published import Setting
from recrawl.simulate.capture_run import SimulatedCapture, capture_named, slots
from recrawl.simulate.capture_site import VirtualSite, thesis_site, tree_graph
from recrawl.simulate.laws import Law, Poisson
from recrawl.simulate.web_events import EventTimes


@dataclass(frozen=True, slots=True)
class Trial:
    """Average blur a page of a single-visit strategy, or incoherent pages of a visit-revisit strategy."""

    expected: tuple[float, ...]
    """If changes are a Poisson process; one value for each repeat with a schedule of its own."""
    expected_whole: tuple[float, ...]
    """The same if changes are whole seconds apart."""
    actual: tuple[float, ...]
    """What came of the changes drawn, one value a repeat."""
    deviation: float
    """Standard deviation of what comes of one Poisson history, by the first schedule."""


def run_trial(  # noqa: PLR0913 - the parts of a trial, by keyword
    setting: Setting,
    strategy: str,
    *,
    seed: int,
    repeats: int,
    law: Law | None = None,
    threshold: float = 0.95,
) -> Trial:
    """Capture the site of a setting ``repeats`` times, changes drawn by ``law`` (Poisson if not given).

    Strategies tried with the same seed on the same setting meet the same links and the same changes. The number of
    pages is known to all.
    """
    terms = Terms(delay=setting.slow_down, expected=setting.pages, threshold=threshold)
    own = (seed, crc32(f"{setting.table} {setting.value}".encode()))
    by_links = strategy.startswith(("bfs", "dfs"))
    site = thesis_site(
        setting.pages,
        end=0.0,
        rng=np.random.default_rng((*own, 0, 0)),
        skew=setting.skew,
        outdegree=setting.outdegree,
        leaves=setting.leaves,
    )
    taken = capture_named(site, strategy, terms)
    deviation = _deviation(taken)
    expected, whole, actual = [], [], []
    for repeat in range(repeats):
        if repeat and by_links:
            graph = tree_graph(setting.pages, setting.outdegree, np.random.default_rng((*own, 0, repeat)))
            taken = capture_named(replace(site, graph=graph), strategy, terms)
        if not repeat or by_links:
            expected.append(_expected(taken))
            whole.append(_expected_whole(taken))
        span = max(slots(strategy, setting.pages) - 1, 1) * terms.delay
        changes = (law or Poisson()).times(site.rate, 0.0, span, np.random.default_rng((*own, 1, repeat)))
        actual.append(_actual(taken, site, changes))
    return Trial(tuple(expected), tuple(whole), tuple(actual), deviation)


def _expected(taken: SimulatedCapture) -> float:
    quality = taken.quality()
    return quality.expected_blur if taken.plan.revisit is None else quality.expected_incoherence


def _expected_whole(taken: SimulatedCapture) -> float:
    rate = taken.site.rate[taken.page]
    if taken.plan.revisit is None:
        return float(capture_whole_gaps.expected_blur(rate, taken.visit, taken.end).mean())
    return float((1.0 - capture_whole_gaps.page_coherence(rate, taken.visit, taken.revisit)).sum())


def _deviation(taken: SimulatedCapture) -> float:
    """A change at h adds h − start or end − h to the blur; pages are independent of each other."""
    rate, before, after = taken.site.rate[taken.page], taken.visit - taken.start, taken.end - taken.visit
    if taken.plan.revisit is not None:
        stays = np.exp(-rate * (taken.revisit - taken.visit))
        return float(np.sqrt((stays * (1.0 - stays)).sum()))
    span = max(taken.end - taken.start, 1e-9)
    return float(np.sqrt((rate * (before**3 + after**3) / 3.0).sum()) / span / len(rate))


def _actual(taken: SimulatedCapture, site: VirtualSite, changes: EventTimes) -> float:
    quality = replace(taken, site=replace(site, changes=changes)).quality()
    return quality.actual_blur if taken.plan.revisit is None else float(quality.incoherence)
