"""Strategies on one synthetic site of the thesis: what is expected of them, and what came of some histories.

Most strategies see rates only, so their schedule is one and the same whatever the order of the links on a page; it is
made once. Breadth-first and depth-first follow the links: each repeat has another order, and another schedule.
"""

from __future__ import annotations

from collections.abc import Sequence
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


@dataclass(frozen=True, slots=True)
class Entry:
    """A strategy that takes part, with the threshold it is given."""

    strategy: str
    threshold: float = 0.95

    @property
    def by_links(self) -> bool:
        """Whether the order of links decides its schedule."""
        return self.strategy.startswith(("bfs", "dfs"))


def run_trials(
    setting: Setting, entries: Sequence[Entry], *, seed: int, repeats: int, law: Law | None = None
) -> list[Trial]:
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
        changes = (law or Poisson()).times(site.rate, 0.0, span, np.random.default_rng((*own, 1, repeat)))
        for place, one in enumerate(taken):
            actual[place].append(_actual(one, site, changes))
    columns = zip(expected, whole, actual, deviation, strict=True)
    return [Trial(tuple(a), tuple(b), tuple(c), d) for a, b, c, d in columns]


def _capture(site: VirtualSite, setting: Setting, entry: Entry) -> SimulatedCapture:
    terms = Terms(delay=setting.slow_down, expected=setting.pages, threshold=entry.threshold)
    return capture_named(site, entry.strategy, terms)


def _expected(taken: SimulatedCapture) -> float:
    return taken.expected_blur() if taken.plan.revisit is None else taken.expected_incoherence()


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
    met = replace(taken, site=replace(site, changes=changes))
    return met.actual_blur() if taken.plan.revisit is None else float(met.incoherence())
