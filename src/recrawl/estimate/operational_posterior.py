"""The default: the grid posterior in operational time, which also hears trusted dates.

Which factors stretch time (shared intensity of clusters, age, bursts, week) is chosen by how well each predicts later
looks of the same evidence (``estimate.tempo``); where none does, this is the posterior in wall time. The narrowest
level of the evidence is taken for the clusters, the widest for the hosts. A page is taken to be born when it was first
seen, unless it was there from the start or came with many others (``page_age.known_births``).
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace

import numpy as np

from recrawl.estimate.clocked_belief import ClockedBelief, usual_speed
from recrawl.estimate.dated_posterior import Heard, hear, mixed
from recrawl.estimate.estimator import Evidence
from recrawl.estimate.operational import OperationalTime
from recrawl.estimate.page_age import known_births
from recrawl.estimate.posterior import Learned, Posterior
from recrawl.estimate.tempo import choose
from recrawl.estimate.tempo_state import Factor, Places, fit
from recrawl.estimate.trust import Statements
from recrawl.estimate.watched import as_dated
from recrawl.model import Histories, IntArray


@dataclass(frozen=True, slots=True)
class OperationalPosterior:
    """The grid posterior on the clocks of the pages."""

    posterior: Posterior = field(default_factory=Posterior)
    allowed: tuple[Factor, ...] = tuple(Factor)
    """Factors that may be switched on, where they prove useful."""
    sources: tuple[Statements, ...] = ()
    """What sites say of their last changes; heard as far as they proved true."""
    name: str = "operational"

    def __call__(self, evidence: Evidence) -> ClockedBelief:
        """The belief about each page. Seconds for the choice of factors, then O(gaps · rates)."""
        factors: tuple[Factor, ...] = choose(evidence.histories, places_of(evidence), allowed=self.allowed).factors
        return self.with_factors(evidence, factors)

    def with_factors(
        self, evidence: Evidence, factors: tuple[Factor, ...], places: Places | None = None
    ) -> ClockedBelief:
        """The same with factors that were chosen before, and with ``places`` if they are better known."""
        histories = evidence.histories
        clock = fit(histories, places or places_of(evidence), factors).time()
        stretched = replace(evidence, histories=clock.stretch(histories))
        learned = self.posterior.learn(stretched)
        heard = hear(evidence, self.sources)
        if heard.any():
            learned = self._dated(learned, stretched, heard, _operational(clock, evidence, heard))
        usual = usual_speed(clock, histories, stretched.histories, learned.belief.quantile(0.5))
        return ClockedBelief(learned, clock, histories.last_visit, histories.last_change, usual)

    def follow(self, belief: ClockedBelief, rows: IntArray, histories: Histories) -> ClockedBelief:
        """What would be believed of pages of an earlier fit had they been observed as ``histories`` say.

        Row i of the histories is about the page in row ``rows[i]`` of the belief, whose prior and clock it has: so one
        page can be asked about after each of its observations. Dates that sites claim are not heard. O(gaps · rates).
        """
        clock = belief.clock.take(rows)
        told = clock.stretch(histories)
        learned = self.posterior.learn(Evidence(told), belief.learned.priors, belief.learned.row[rows])
        usual = usual_speed(clock, histories, told, learned.belief.quantile(0.5))
        return ClockedBelief(learned, clock, histories.last_visit, histories.last_change, usual)

    def _dated(self, learned: Learned, stretched: Evidence, heard: Heard, passed: Heard) -> Learned:
        told = as_dated(stretched.histories, passed.gap, passed.age)
        dated = self.posterior.learn(replace(stretched, histories=told), learned.priors, learned.row)
        return replace(learned, belief=mixed(learned.belief, dated.belief, heard.weight))


def places_of(evidence: Evidence) -> Places:
    """Cluster, host and birth of each page, as far as evidence tells."""
    pages = len(evidence)
    narrow = evidence.levels[-1] if evidence.levels else np.zeros(pages, dtype=np.int64)
    wide = evidence.levels[0] if evidence.levels else narrow
    _, first, cluster = np.unique(narrow, return_index=True, return_inverse=True)
    _, host = np.unique(wide[first], return_inverse=True)
    seen = evidence.histories.first_visit
    start = float(np.nanmin(seen)) if bool(np.isfinite(seen).any()) else 0.0
    return Places(cluster.astype(np.int64), host.astype(np.int64), known_births(seen, start))


def _operational(clock: OperationalTime, evidence: Evidence, heard: Heard) -> Heard:
    """The ages of dated changes by the clocks of their pages."""
    histories = evidence.histories
    look = histories.look_times()[heard.gap]
    row = histories.row_of_gap()[heard.gap]
    return replace(heard, age=clock.elapsed(row, look - heard.age, look, histories.last_change[row]))
