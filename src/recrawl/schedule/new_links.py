r"""Ours for whoever wants new links: come back when the delay of those that wait to be found is worth the price.

New links come at the rate ν of a page, and each waits until the next visit: after t seconds the delay of all of them is
ν·t²/2, the objective ``links`` (algorithms §1). A model says what to believe of ν before the first visit, Gamma(a, b)
(``predict.prior_model``); a visit counts the links it finds, so after X of them in the time T the belief is

    ν ~ Gamma(a + X, b + T).

Visits that did not count links, because nothing had changed, found none.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TypeAlias

import numpy as np

from recrawl.model import AnyArray, BoolArray, FloatArray, GammaBelief, Histories, IntArray, Pages, Visits
from recrawl.schedule.believing import Beliefs
from recrawl.schedule.clocks import Clocks, by_host
from recrawl.schedule.columns import Columns
from recrawl.schedule.learning import Learning
from recrawl.schedule.ledger import Gaps
from recrawl.schedule.objectives import OBJECTIVES
from recrawl.schedule.page_prices import HostLimits
from recrawl.schedule.valued import Valued
from recrawl.time import DAY, HOUR

LinkPrior: TypeAlias = Callable[[Pages], GammaBelief]
"""What to believe of the rates of new links of pages before any visit, one row a page, per second."""


class NewLinks(Valued):
    """The policy of recrawl for new links, in wall time. 32 bytes a page beside what every policy of ours needs."""

    def __init__(
        self,
        prior: LinkPrior,
        *,
        shortest_interval: float = HOUR,
        longest_interval: float = 180 * DAY,
        host_limits: HostLimits | None = None,
    ) -> None:
        super().__init__(
            OBJECTIVES["links"],
            shortest_interval=shortest_interval,
            longest_interval=longest_interval,
            factors=(),
            host_limits=host_limits,
        )
        found = _Found()

        def start() -> tuple[Beliefs, Clocks]:
            return LinkBeliefs(prior, found), Clocks((), longest_interval, by_host)

        self._found = found
        self._learning = Learning(self._ledger, start)

    def tell(self, visits: Visits) -> None:
        """Note looks and the links they found; links of the first look at a page are not new. O(visits log visits)."""
        closed = self._ledger.tell(visits)
        self._found.grow(len(self._ledger))
        self._found.count(closed, self._ledger.rows(visits.page), visits)
        self._learning.tell(closed)


class _Found:
    """New links counted on each row, and the time they took to come."""

    def __init__(self) -> None:
        self.columns = Columns({"links": np.float64, "seconds": np.float64})

    def grow(self, pages: int) -> None:
        """Rows for all pages."""
        more = np.zeros(pages - len(self.columns))
        self.columns.append(links=more, seconds=more)

    def count(self, closed: Gaps, row: IntArray, visits: Visits) -> None:
        """Add what these visits found; ``closed`` are the gaps they closed, ``row`` the row of each visit."""
        np.add.at(self.columns["seconds"], closed.row, closed.seconds)
        links = np.maximum(visits.new_internal, 0) + np.maximum(visits.new_external, 0)
        some = np.flatnonzero(links)
        if len(some):
            ends = closed.row + 1j * closed.end
            told = some[np.isin(row[some] + 1j * visits.time[some], ends)]
            np.add.at(self.columns["links"], row[told], links[told])


class LinkBeliefs:
    """Gamma(a + X, b + T) of each row; what is counted comes past the looks, so looks change nothing here."""

    def __init__(self, prior: LinkPrior, found: _Found) -> None:
        self._prior = prior
        self._found = found
        self._shape = Columns({"a": np.float64, "b": np.float64})

    def __len__(self) -> int:
        return len(self._shape)

    def append(self, pages: Pages, levels: Sequence[IntArray]) -> None:  # noqa: ARG002 - the model knows more
        """Rows for new pages, as the model says."""
        prior = self._prior(pages)
        self._shape.append(a=prior.a, b=prior.b)
        if len(self._shape) > len(self._found.columns):
            self._found.grow(len(self._shape))

    def learn(self, histories: Histories, pages: Pages, levels: Sequence[IntArray], rows: IntArray) -> None:  # noqa: ARG002 - only the model is asked anew
        """Ask the model anew: it may be another by now."""
        prior = self._prior(pages)
        self._shape["a"][rows], self._shape["b"][rows] = prior.a, prior.b

    def update(self, rows: IntArray, gap: FloatArray, changed: BoolArray) -> None:
        """Nothing: a change may bring no link, or ten."""

    def of(self, rows: AnyArray | slice) -> GammaBelief:
        """The belief about these rows."""
        links, seconds = self._found.columns["links"][rows], self._found.columns["seconds"][rows]
        return GammaBelief(self._shape["a"][rows] + links, self._shape["b"][rows] + seconds)

    def copy_of(self, rows: IntArray) -> AnyArray:
        """Nothing that updates could change."""
        return np.empty((len(rows), 0))

    def put_back(self, rows: IntArray, held: AnyArray) -> None:
        """Nothing was changed."""
