"""What came of a contest, page by page, and the metrics that sum it up.

Metrics are ratios of sums over pages, so that pages can be resampled and differences taken page by page.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace

import numpy as np

from recrawl.assess.ratios import ratio_with_interval
from recrawl.assess.scores import Interval
from recrawl.assess.selections import Scores, macro, micro
from recrawl.model import AnyArray, FloatArray, IntArray
from recrawl.time import DAY


@dataclass(frozen=True, slots=True)
class Tally:
    """What came of all visits to each page after the time scoring began, one row a page."""

    importance: FloatArray
    watched: FloatArray
    """Seconds the page counts."""
    fresh: FloatArray
    """Seconds its copy was current."""
    aged: FloatArray
    """Integral of the age of its copy, seconds²."""
    changes: IntArray
    """True changes."""
    covered: IntArray
    """Changes that some visit came after: seen alone or merged with others."""
    waited: FloatArray
    """Seconds from each covered change to that visit, summed."""
    visits: IntArray
    """Visits after the first one."""
    caught: IntArray
    """Those that found a change: each copies a version that was not in the archive."""
    missed: FloatArray
    """Integral of the number of changes that the copy lacks, seconds."""
    harmonic: FloatArray
    """Integral of 1 + 1/2 + … + 1/N over the N changes that the copy lacks, seconds."""
    links: FloatArray
    """Links that were new in its changes; 0 where nobody knows."""
    links_waited: FloatArray
    """Seconds from each new link to the visit that found it, or to the end where none did, summed."""
    choices: IntArray
    """For each tick how many pages were rightly chosen, wrongly chosen, wrongly left and rightly left. Shape (t, 4)."""
    rankings: FloatArray
    """Weighted P@K of the order in which the policy wanted pages, at regular times."""

    def __len__(self) -> int:
        return len(self.watched)

    def ratio(self, metric: str) -> float:
        """One of :data:`METRICS` over all pages, weighted by importance."""
        above, below = self.parts(metric)
        whole = float(below.sum())
        return float(above.sum()) / whole if whole > 0 else float("nan")

    def parts(self, metric: str) -> tuple[FloatArray, FloatArray]:
        """Numerator and denominator of a metric, page by page, times importance."""
        above, below = METRICS[metric](self)
        return self.importance * above, self.importance * below

    def interval(
        self,
        metric: str,
        groups: AnyArray,
        rng: np.random.Generator,
        *,
        repeats: int = 1_000,
        than: Tally | None = None,
    ) -> Interval:
        """A metric with its bootstrap interval by whole groups; with ``than``, of the difference to another tally.

        The difference needs equal denominators: those of freshness, age, recall and seen are the same for all policies
        on one field.

        Raises:
            ValueError: the denominators differ.
        """
        above, below = self.parts(metric)
        if than is not None:
            other, same = than.parts(metric)
            if not np.array_equal(below, same):
                msg = f"{metric} has other denominators in the two tallies"
                raise ValueError(msg)
            above = above - other
        return ratio_with_interval(above, below, groups, rng, repeats=repeats)

    def plus(self, other: Tally) -> Tally:
        """Two contests on the same pages taken together, for example on two guesses of when they changed."""
        sums = {name: getattr(self, name) + getattr(other, name) for name in _ADDED}
        return replace(
            self,
            choices=np.concatenate([self.choices, other.choices]),
            rankings=np.concatenate([self.rankings, other.rankings]),
            **sums,
        )

    def micro(self) -> Scores:
        """Precision, recall and F1 of the choices, all ticks pooled (HACS)."""
        return micro(self.choices)

    def macro(self) -> Scores:
        """The same, averaged over ticks (HACS)."""
        return macro(self.choices)

    def summary(self) -> dict[str, float]:
        """Every metric by its name: the ratios, the scores of the choices, and weighted P@K."""
        ratios = {metric: self.ratio(metric) for metric in METRICS}
        choices = {
            f"{kind}_{name}": float(getattr(scores, name))
            for kind, scores in (("micro", self.micro()), ("macro", self.macro()))
            for name in ("precision", "recall", "f1")
        }
        return ratios | choices | {"weighted_p_at_k": self.precision_at_k()}

    def precision_at_k(self) -> float:
        """Mean weighted P@K of the rankings (HACS, reading 000.7); NaN where nothing had to be ranked."""
        return float(self.rankings.mean()) if len(self.rankings) else float("nan")


_ADDED = (
    "watched",
    "fresh",
    "aged",
    "changes",
    "covered",
    "waited",
    "visits",
    "caught",
    "missed",
    "harmonic",
    "links",
    "links_waited",
)

METRICS: dict[str, Callable[[Tally], tuple[AnyArray, AnyArray]]] = {
    "freshness": lambda tally: (tally.fresh, tally.watched),
    "age": lambda tally: (tally.aged / DAY, tally.watched),
    "recall": lambda tally: (np.minimum(tally.caught, tally.covered), tally.changes),
    "precision": lambda tally: (tally.caught, tally.visits),
    "seen": lambda tally: (tally.covered, tally.changes),
    "delay": lambda tally: (tally.waited / DAY, tally.covered),
    "wasted": lambda tally: (tally.visits - tally.caught, tally.visits),
    "missed": lambda tally: (tally.missed, tally.watched),
    "harmonic": lambda tally: (tally.harmonic, tally.watched),
    "link_delay": lambda tally: (tally.links_waited / DAY, tally.links),
}
"""Metrics as ratios. Age and delays are in days; recall and precision are those of datamonitor: changes caught over
changes, and over visits. A visit that finds nothing but changes from before scoring began catches none of those that
count, so no page has caught more than were covered. ``recall`` times the number of changes is the number of distinct
versions captured.
``missed`` is how many changes copies lack on average, ``harmonic`` the same with 1/k for the k-th of them;
``link_delay`` is how long a new link waited to be found, or waits at the end."""

HIGHER_IS_BETTER = frozenset({"freshness", "recall", "precision", "seen"})
"""Metrics of which more is better; of the others less is."""
