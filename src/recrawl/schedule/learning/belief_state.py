"""Beliefs about all pages of a policy, in one of two forms: weights on a grid of rates, or two numbers per page.

Both receive observations in operational time, and re-estimate the priors of hosts and clusters on request.
"""

from __future__ import annotations

import copy
from collections.abc import Callable, Sequence
from typing import Protocol, Self, TypeAlias

import numpy as np

from recrawl.estimate.posterior import gamma_posterior, grid_posterior
from recrawl.estimate.posterior.expected_rates import (
    SharpenedGamma,
    SharpenedPriors,
    fit_sharpened,
    fit_sharpened_gamma,
)
from recrawl.estimate.posterior.gamma_posterior import GroupPriors, fit_group_priors, fit_prior, vague
from recrawl.estimate.posterior.grid_posterior import GridPriors, fit_priors
from recrawl.model import AnyArray, Belief, BoolArray, FloatArray, GammaBelief, GridBelief, Histories, IntArray, Pages
from recrawl.model.belief import WeightArray, half_octaves
from recrawl.schedule.learning.observation_columns import GrowingColumns

PagePrior: TypeAlias = Callable[[Pages], Belief]
"""What is believed of pages before any observation of them, one row per page: in place of the priors that are
learned."""
ExpectedRates: TypeAlias = Callable[[Pages], FloatArray]
"""How often pages are expected to change by their observations, per second: it counts beside the priors that are
learned."""

_SPARE = 1_024
"""Pages that a replica has room for at least."""


class BeliefState(Protocol):
    """What is believed of pages in rows, and how it is learned. Gaps are operational seconds."""

    def __len__(self) -> int: ...

    def append(self, pages: Pages, levels: Sequence[IntArray]) -> None:
        """Add rows for new pages, with their priors; ``levels`` are the groups of each, wide to narrow."""
        ...

    def learn(self, histories: Histories, pages: Pages, levels: Sequence[IntArray], rows: IntArray) -> None:
        """Estimate the priors again and update them by all observations; row i of the histories is row ``rows[i]``."""
        ...

    def update(self, rows: IntArray, gap: FloatArray, changed: BoolArray) -> None:
        """Fold in observations, those of one row in the order given."""
        ...

    def of(self, rows: AnyArray | slice) -> Belief:
        """The belief about these rows; a slice is a view."""
        ...

    def copy_of(self, rows: IntArray) -> AnyArray:
        """What :meth:`put_back` needs to undo updates of these rows."""
        ...

    def put_back(self, rows: IntArray, held: AnyArray) -> None:
        """Make these rows what they were."""
        ...

    def replica(self) -> Self:
        """A twin to be pickled: it shares memory, and has a little room to grow."""
        ...


class GridBeliefState:
    """The default: 36 weights in float32 and the number of a prior, 152 bytes per page.

    Where each page has a prior of its own, given or by the rate ``expected`` of it, 144 bytes more.
    """

    def __init__(self, prior: PagePrior | None, jump: float | None, expected: ExpectedRates | None = None) -> None:
        self._given = prior
        self._expected = None if prior is not None else expected
        self._sharpened: SharpenedPriors | None = None
        self._jump = jump
        flat = Histories.concatenate([])
        self._priors: GridPriors = fit_priors(flat, rates=half_octaves())
        self._weights: WeightArray = np.empty((0, len(self._priors.belief.rates)), np.float32)
        self._room = self._weights
        """Where priors lie that are each of one page, with room to grow."""
        self._prior_of = np.empty(0, np.int64)
        self._length = 0

    def __len__(self) -> int:
        return self._length

    def append(self, pages: Pages, levels: Sequence[IntArray]) -> None:
        """Rows for new pages. Amortised O(new · rates)."""
        n = self._length + len(pages)
        if n > len(self._weights):
            room = max(n, self._length + self._length // 2)
            weights = np.empty((room, self._weights.shape[1]), np.float32)
            weights[: self._length] = self._weights[: self._length]
            prior_of = np.empty(room, np.int64)
            prior_of[: self._length] = self._prior_of[: self._length]
            self._weights, self._prior_of = weights, prior_of
        new = slice(self._length, n)
        if self._given is None:
            self._prior_of[new] = self._add_sharpened(pages, self._priors.rows(levels, len(pages)))
        else:
            self._prior_of[new] = self._add(on_grid(self._given(pages), self._priors.belief.rates))
        self._weights[new] = self._priors.belief.weights[self._prior_of[new]]
        self._length = n

    def learn(self, histories: Histories, pages: Pages, levels: Sequence[IntArray], rows: IntArray) -> None:
        """O(gaps · rates)."""
        if self._given is None:
            seen = np.flatnonzero(histories.counts())
            self._fit(histories.take(seen), [level[seen] for level in levels], pages.take(seen))
            of = self._add_sharpened(pages, self._priors.rows(levels, len(rows)))
        else:
            of = self._prior_of[rows]
        belief = grid_posterior.fit(histories, self._priors.belief, of=of, jump=self._jump)
        if belief.weights.shape[1] != self._weights.shape[1]:
            self._weights = np.empty((len(self._weights), belief.weights.shape[1]), np.float32)
        self._prior_of[rows] = of
        self._weights[rows] = belief.weights

    def update(self, rows: IntArray, gap: FloatArray, changed: BoolArray) -> None:
        """O(observations · rates)."""
        grid_posterior.update(
            self.of(slice(None)), rows, gap, changed, self._priors.belief, of=self._own, jump=self._jump
        )

    def of(self, rows: AnyArray | slice) -> GridBelief:
        """The belief about these rows."""
        return GridBelief(self._priors.belief.rates, self._weights[: self._length][rows])

    def copy_of(self, rows: IntArray) -> AnyArray:
        """Their weights."""
        return self._weights[rows]

    def put_back(self, rows: IntArray, held: AnyArray) -> None:
        """Write their weights."""
        self._weights[rows] = held

    def replica(self) -> Self:
        """As it is, with room for a few more pages: to make room later copies everything."""
        twin, n = copy.copy(self), self._length
        room = n + max(_SPARE, n // 20)
        weights, prior_of = self._weights[:room], self._prior_of[:room]
        if len(weights) < room:
            weights, prior_of = np.zeros((room, weights.shape[1]), np.float32), np.zeros(room, np.int64)
            weights[:n], prior_of[:n] = self._weights[:n], self._prior_of[:n]
        vars(twin).update(_weights=weights, _prior_of=prior_of, _room=self._room[:0])
        return twin

    @property
    def _own(self) -> IntArray:
        return self._prior_of[: self._length]

    def _fit(self, histories: Histories, levels: Sequence[IntArray], pages: Pages) -> None:
        """Learn the priors of groups from pages that were observed."""
        if self._expected is None:
            self._priors = fit_priors(histories, levels)
        else:
            self._sharpened = fit_sharpened(histories, levels, self._expected(pages))
            self._priors = self._sharpened.priors

    def _add_sharpened(self, pages: Pages, row: IntArray) -> IntArray:
        """The rows of the priors of these pages, whose groups have these: the same, if nothing is expected of each."""
        if self._expected is None or self._sharpened is None or not len(pages):
            return row
        return self._add(self._sharpened.of(row, self._expected(pages)))

    def _add(self, own: WeightArray) -> IntArray:
        """One more row of priors for each page. Amortised O(pages · rates)."""
        rates, known = self._priors.belief.rates, self._priors.belief.weights
        n = len(known) + len(own)
        if known.base is not self._room or n > len(self._room):
            self._room = np.empty((n + n // 2, len(rates)), np.float32)
            self._room[: len(known)] = known
        self._room[len(known) : n] = own
        self._priors = GridPriors(GridBelief(rates, self._room[:n]), self._priors.groups)
        return np.arange(len(known), n)


def on_grid(belief: Belief, rates: FloatArray) -> WeightArray:
    """Any belief as weights on a grid: its probability of the cell around each rate.

    O(pages · rates). A belief on the same grid stays what it is.
    """
    if isinstance(belief, GridBelief) and np.array_equal(belief.rates, rates):
        return belief.weights
    edges = np.sqrt(rates[1:] * rates[:-1])
    below = np.stack([belief.expect(lambda rate, e=edge: (rate <= e).astype(np.float64)) for edge in edges], axis=1)  # type: ignore[misc]
    weights = np.diff(below, axis=1, prepend=0.0, append=1.0)
    return GridBelief.of(rates, np.maximum(weights, 0.0)).weights


class GammaBeliefState:
    """The low-memory form: a Gamma distribution, 16 bytes per page. It does not forget."""

    def __init__(self, prior: PagePrior | None, expected: ExpectedRates | None = None) -> None:
        self._given = prior
        self._expected = None if prior is not None else expected
        self._sharpened: SharpenedGamma | None = None
        self._shape = GrowingColumns({"a": np.float64, "b": np.float64})
        unknown = vague(Histories.concatenate([]))
        self._hosts = fit_group_priors(Histories.concatenate([]), np.empty(0, np.int64), unknown)

    def __len__(self) -> int:
        return len(self._shape)

    def append(self, pages: Pages, levels: Sequence[IntArray]) -> None:  # noqa: ARG002 - hosts are all it tells apart
        """Rows for new pages."""
        prior = self._prior(pages)
        self._shape.append(a=prior.a, b=prior.b)

    def learn(self, histories: Histories, pages: Pages, levels: Sequence[IntArray], rows: IntArray) -> None:  # noqa: ARG002 - hosts are all it tells apart
        """O(gaps)."""
        if self._given is None:
            self._fit(histories, pages)
        belief = gamma_posterior.fit(histories, self._prior(pages))
        self._shape["a"][rows], self._shape["b"][rows] = belief.a, belief.b

    def update(self, rows: IntArray, gap: FloatArray, changed: BoolArray) -> None:
        """O(observations)."""
        gamma_posterior.update(self.of(slice(None)), rows, gap, changed)

    def of(self, rows: AnyArray | slice) -> GammaBelief:
        """The belief about these rows."""
        return GammaBelief(self._shape["a"][rows], self._shape["b"][rows])

    def copy_of(self, rows: IntArray) -> AnyArray:
        """Both numbers."""
        return np.stack([self._shape["a"][rows], self._shape["b"][rows]])

    def put_back(self, rows: IntArray, held: AnyArray) -> None:
        """Write both numbers."""
        self._shape["a"][rows], self._shape["b"][rows] = held

    def replica(self) -> Self:
        """As it is: two numbers a page are quickly copied."""
        return self

    def _fit(self, histories: Histories, pages: Pages) -> None:
        """Learn the priors of hosts."""

        def by_host(observations: Histories) -> GroupPriors:
            return fit_group_priors(observations, pages.host, fit_prior(observations))

        if self._expected is None:
            self._hosts = by_host(histories)
        else:
            self._sharpened = fit_sharpened_gamma(histories, pages.host, self._expected(pages), by_host)

    def _prior(self, pages: Pages) -> GammaBelief:
        if self._sharpened is not None and self._expected is not None and len(pages):
            return self._sharpened.of(pages.host, self._expected(pages))
        if self._given is None:
            return self._hosts.of(pages.host)
        found = self._given(pages)
        if not isinstance(found, GammaBelief):
            msg = "the low-memory form takes priors as GammaBelief"
            raise TypeError(msg)
        return found
