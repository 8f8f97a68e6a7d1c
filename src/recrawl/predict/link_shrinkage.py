"""How many new links a page will have: its own past, shrunken towards that of its related pages.

Look back, look around as one formula. The new links of a page in a period are Poisson with a rate of its own, and that
rate is Gamma around what is expected of a page with such related pages: m, their link change rate times the number of
links that come at once, if any come. With c links of its own in n known periods its rate is Gamma(c + s·m, n + s), and
the expected number

(c + s·m) / (n + s).

So s is the number of periods that the related pages count for. Where it is small this is the mean of the past
(NNL-Av of paper 004), and related pages only part those that have the same past; a page without a past is as its
related pages are. The next number is then negative binomial: wider than Poisson, as recorded numbers are. The mean
number of the related pages would be the plainer m, but one page with hundreds of links then lifts all that are like it.

For whether there will be any, c is the number of periods with new links and m the link change rate of the related
pages: a Beta law, and the same formula. There is one number to learn, s, and it is the one under which what came was
likeliest.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

import numpy as np

from recrawl.model import FloatArray
from recrawl.predict.count_prior import count_likelihood
from recrawl.predict.feature_table import FeatureArray

_OWN: Final = re.compile(r"new_(internal|external)_\d+")
_STRENGTHS: Final = np.exp2(np.arange(-6.0, 6.5, 0.5))
"""Periods: the numbers that are tried."""
_OVERALL: Final = 0.02
"""How much of what is expected around a page is the mean of all pages: nobody's related pages rule new links out."""


@dataclass(frozen=True, slots=True)
class ShrunkenCounts:
    """What was learned, and where its columns lie."""

    strength: float
    """Periods that the related pages count for."""
    overall: float
    """Share of periods with new links, of all pages."""
    at_once: float
    """Mean number of new links in a period that has any; 1 where only presence counts."""
    own: tuple[int, ...]
    """Columns of the page's own past."""
    around: int | None
    """The column of the related pages' link change rate; none if no page has a related one."""
    presence: bool
    """Whether periods with new links are counted, and not the links."""

    def expected(self, rows: FeatureArray) -> FloatArray:
        """The expected number of new links in the next period, or the probability of any. O(rows · periods)."""
        shape, rate = self.belief(rows)
        return shape / rate

    def likelihood(self, rows: FeatureArray, truth: FloatArray) -> FloatArray:
        """The logarithm of the probability of what came in the next period: these numbers, or 1 for any and 0."""
        shape, rate = self.belief(rows)
        if self.presence:
            return np.asarray(np.log(np.where(truth > 0, shape, rate - shape) / rate))
        return count_likelihood(truth, np.ones(len(rows)), shape / rate, shape)

    def belief(self, rows: FeatureArray) -> tuple[FloatArray, FloatArray]:
        """The law of each page's rate: shape and rate of a Gamma, or of a Beta(shape, rate − shape). In periods."""
        past = rows[:, list(self.own)].astype(np.float64)
        known = ~np.isnan(past)
        counted = np.where(known, past > 0 if self.presence else past, 0.0)
        near = np.full(len(rows), np.nan) if self.around is None else rows[:, self.around].astype(np.float64)
        mean = np.where(np.isnan(near), self.overall, (1.0 - _OVERALL) * near + _OVERALL * self.overall) * self.at_once
        return counted.sum(axis=1) + self.strength * mean, known.sum(axis=1) + self.strength


def learn_shrinkage(
    rows: FeatureArray, names: Sequence[str], truth: FloatArray, *, presence: bool = False
) -> ShrunkenCounts:
    """The strength under which what came was likeliest, given the features before it. O(strengths · rows · periods).

    ``names`` are those of the columns of ``rows``, LBLA features of one kind of links. ``truth`` is the number of new
    links of each page in the period that followed, or with ``presence`` 1 if there was any and else 0.

    Raises:
        ValueError: the past of a page is not among the features, or that of both kinds of links is.
    """
    own, around = _places(names)
    known = rows[:, list(own)].astype(np.float64)
    seen = np.concatenate([known[~np.isnan(known)], truth])
    some = int((seen > 0).sum())
    # Where nothing ever happened, or always something, the law still needs a share between the two.
    overall = (some + 0.5) / (len(seen) + 1.0)
    at_once = 1.0 if presence or not some else float(seen.sum()) / some
    tried = [ShrunkenCounts(one, overall, at_once, own, around, presence) for one in _STRENGTHS.tolist()]
    return tried[int(np.argmax([one.likelihood(rows, truth).sum() for one in tried]))]


def _places(names: Sequence[str]) -> tuple[tuple[int, ...], int | None]:
    matches = [(place, _OWN.fullmatch(name)) for place, name in enumerate(names)]
    kinds = {found[1] for _, found in matches if found}
    if len(kinds) != 1:
        msg = "shrunken counts read the past new links of one kind: choose the features LBLA, with a history"
        raise ValueError(msg)
    around = f"near_{kinds.pop()}_link_change_rate"
    own = tuple(place for place, found in matches if found)
    return own, list(names).index(around) if around in names else None
