"""How far true numbers of new links lie around the foretold mean: Poisson, or with a heavier tail.

NGBoost in paper 004 takes the numbers for Poisson, though most pages have none and a few have hundreds. The two other
laws here have the same mean and one more number: the negative binomial, in which pages of the same mean differ in
their rates, and the zero-inflated Poisson, in which a share of the pages is asleep. That number is found by maximum
likelihood, on pages that the means were not learned from: on their own pages learners look surer than they are.
"""

from __future__ import annotations

import enum
from dataclasses import dataclass
from typing import Final

import numpy as np
from scipy import optimize, special

from recrawl.model import FloatArray
from recrawl.predict.count_prior import count_likelihood

_LEAST: Final = 1e-4
"""The least mean: a learner that is sure of none would rule a link out."""
_WIDEST: Final = 8.0
"""Bound of the number that is sought, on its own scale."""


class CountHead(enum.StrEnum):
    """The laws."""

    POISSON = "Poisson"
    NEGATIVE_BINOMIAL = "negative binomial"
    ZERO_INFLATED = "zero-inflated Poisson"


@dataclass(frozen=True, slots=True)
class FittedHead:
    """A law with its number."""

    head: CountHead
    number: float
    """Logarithm of the shape, or log odds of a page being asleep; 0 for Poisson, which has none."""

    def likelihood(self, mean: FloatArray, count: FloatArray) -> FloatArray:
        """The logarithm of the probability of each count, given its foretold mean. O(n).

        >>> told = FittedHead(CountHead.POISSON, 0.0).likelihood(np.array([1.0, 1.0]), np.array([0.0, 1.0]))
        >>> told.round(3).tolist()
        [-1.0, -1.0]
        """
        expected = np.maximum(mean, _LEAST)
        if self.head is CountHead.NEGATIVE_BINOMIAL:
            shape = np.full(len(mean), np.exp(self.number))
            return count_likelihood(count, np.ones(len(mean)), expected, shape)
        if self.head is CountHead.POISSON:
            return _poisson(expected, count)
        awake, asleep = special.log_expit(-self.number), special.log_expit(self.number)
        told = awake + _poisson(expected * np.exp(-awake), count)
        return np.asarray(np.where(count > 0, told, np.logaddexp(asleep, told)))


def fit_head(head: CountHead, mean: FloatArray, count: FloatArray) -> FittedHead:
    """The law under which these counts are likeliest, given means that were foretold without them. O(n) a step."""
    if head is CountHead.POISSON:
        return FittedHead(head, 0.0)

    def loss(number: float) -> float:
        return -float(FittedHead(head, number).likelihood(mean, count).sum())

    found = optimize.minimize_scalar(loss, bounds=(-_WIDEST, _WIDEST), method="bounded")
    return FittedHead(head, float(found.x))


def _poisson(mean: FloatArray, count: FloatArray) -> FloatArray:
    return np.asarray(special.xlogy(count, mean) - mean - special.gammaln(count + 1.0))
