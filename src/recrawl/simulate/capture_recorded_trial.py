"""Every strategy on a recorded site, with what it may believe: slowed down as in the thesis, or at a realistic speed.

Captures lie in the second half of the record. What is learned or claimed comes from before a capture begins. Expected
quality is by the true rates of the second half, actual quality by what really happened.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Literal

import numpy as np

from recrawl.capture import REVISITING, Terms
from recrawl.capture.sharc_optimal import optimal
from recrawl.model import FloatArray, IntArray
from recrawl.simulate.capture_recorded import RecordedSite
from recrawl.simulate.capture_recorded_rates import hinted_rates, learned_belief, past_rates, steady_rates
from recrawl.simulate.capture_run import Quality, capture_named, slots

Source = Literal["oracle", "learned", "sitemap", "sitemap-corrected"]
"""Where rates come from: the future, visits in the past, or Definition 6.1 as printed or corrected."""
SOURCES: tuple[Source, ...] = ("oracle", "learned", "sitemap", "sitemap-corrected")
SINGLE_VISIT = ("sharc-offline", "sharc-online", "hottest-first", "hottest-last", "bfs", "dfs", "olston-pandey")
"""Strategies for low blur."""
BASELINES = tuple(
    f"{name}-{order}" for name in ("hottest-first", "hottest-last", "bfs", "dfs") for order in ("fifo", "lifo")
)
"""What people do without SHARC, each page seen twice."""
VISIT_REVISIT = (
    "sharc-optimal",
    "sharc-selective",
    "sharc-selective-online",
    "sharc-threshold",
    "sharc-intervals",
    "sharc-intervals-online",
    "sharc-revisits",
    *BASELINES,
)
"""Strategies for high coherence."""
AT_SPEED = (
    "sharc-offline",
    "sharc-online",
    "hottest-last",
    "bfs",
    "sharc-selective",
    "sharc-selective-online",
    "hottest-last-lifo",
    "bfs-lifo",
    "bfs-fifo",
)
"""Strategies that are also tried at realistic speed."""


@dataclass(frozen=True, slots=True)
class RecordedTrial:
    """What came of one strategy on one site; the mean over all captures."""

    site: str
    source: Source
    strategy: str
    delay: float
    """Seconds between two requests; NaN where the captures were slowed down to fill the span."""
    captures: int
    pages: float
    expected_blur: float
    actual_blur: float
    expected_incoherence: float
    incoherence: float


@dataclass(frozen=True, slots=True)
class BelievedRates:
    """What a strategy is told, per second; ``None`` for the true rates."""

    once: FloatArray | None
    """For single visits: mean rates, since blur is linear in the rate."""
    twice: FloatArray | None
    """For visit and revisit: rates that give the believed chance to stay unchanged."""

    def of(self, strategy: str) -> FloatArray | None:
        """The rates for the strategy of that name."""
        return self.twice if strategy in REVISITING else self.once


def believed(  # noqa: PLR0913 - whose rates, when, by whom, and for what
    site: RecordedSite, page: IntArray, now: float, source: Source, *, horizon: float, seed: int
) -> BelievedRates:
    """Rates of the pages by what could be known at ``now``; ``horizon`` is how long a page typically has to stay."""
    match source:
        case "oracle":
            return BelievedRates(None, None)
        case "learned":
            belief = learned_belief(site, page, now, np.random.default_rng(seed))
            return BelievedRates(belief.mean(), steady_rates(belief, horizon))
        case "sitemap":
            hinted = hinted_rates(past_rates(site, page, now), "literal")
        case "sitemap-corrected":
            hinted = hinted_rates(past_rates(site, page, now), "corrected")
    return BelievedRates(hinted, hinted)


def slowed_down(site: RecordedSite, source: Source, strategies: Iterable[str], *, seed: int) -> list[RecordedTrial]:
    """One capture that takes the whole second half of the record (SHARC 4.5.3): delay = span/(slots − 1)."""
    start, end = site.middle, site.collection.end
    page = site.pages_at(start)
    if not len(page):
        return []
    whole = site.site_at(page, start, end)
    rates = believed(site, page, start, source, horizon=(end - start) / 2.0, seed=seed)
    trials = []
    for name in strategies:
        terms = Terms(delay=(end - start) / max(slots(name, len(page)) - 1, 1), expected=len(page))
        quality = capture_named(whole, name, terms, start=start, believed=rates.of(name)).quality()
        trials.append(_mean(site.name, source, name, float("nan"), [quality]))
    return trials


def least_incoherence(site: RecordedSite) -> float:
    """What no schedule of the slowed-down capture goes below, with true rates: proved by duality; 0 without pages."""
    start, end = site.middle, site.collection.end
    page = site.pages_at(start)
    if not len(page):
        return 0.0
    rate = site.site_at(page, start, end).rate
    return len(page) - optimal(rate, (end - start) / (2 * len(page) - 1)).bound


def realistic(  # noqa: PLR0913 - the parts of a trial
    site: RecordedSite, source: Source, strategies: Sequence[str], delay: float, *, instants: int, seed: int
) -> list[RecordedTrial]:
    """Captures with ``delay`` seconds between requests, begun at ``instants`` moments evenly over the second half."""
    found: dict[str, list[Quality]] = {name: [] for name in strategies}
    for start, page in _moments(site, delay, instants):
        span = 2 * len(page) * delay
        there = replace(site.site_at(page, start, start + span), rate=_true_rates(site, page))
        rates = believed(site, page, start, source, horizon=span / 2.0, seed=seed)
        terms = Terms(delay=delay, expected=len(page))
        for name in strategies:
            taken = capture_named(there, name, terms, start=start, believed=rates.of(name))
            found[name].append(taken.quality())
    return [_mean(site.name, source, name, delay, taken) for name, taken in found.items() if taken]


def _moments(site: RecordedSite, delay: float, instants: int) -> Iterator[tuple[float, IntArray]]:
    """When captures begin, late ones early enough to end with the record, and the pages of each."""
    room = site.collection.end - site.middle - 2 * len(site.pages_at(site.middle)) * delay
    for number in range(instants):
        start = site.middle + max(room, 0.0) * (number + 0.5) / instants
        page = site.pages_at(start)
        if len(page):
            yield start, page


def _true_rates(site: RecordedSite, page: IntArray) -> FloatArray:
    """Changes a second of each page from the middle of the record, or its birth, to the end."""
    end = site.collection.end
    first = np.maximum(site.collection.watched().born[page], site.middle)
    changes, row = site.events().take(page), np.arange(len(page))
    return np.asarray((changes.until(row, end) - changes.until(row, first)) / np.maximum(end - first, 1.0))


def _mean(site: str, source: Source, strategy: str, delay: float, taken: Sequence[Quality]) -> RecordedTrial:
    names = ("pages", "expected_blur", "actual_blur", "expected_incoherence", "incoherence")
    means = {name: float(np.mean([getattr(one, name) for one in taken])) for name in names}
    return RecordedTrial(site=site, source=source, strategy=strategy, delay=delay, captures=len(taken), **means)
