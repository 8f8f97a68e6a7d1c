r"""Operational time that is only as clever as the looks allow: each factor is on only where it predicts better.

The looks are split by time. The factors are learned from the looks up to the split; then the later looks are gone
through in order of time, a batch at a time: each batch is predicted from what was known before it, scored by the log
loss of "changed at this look", and folded in. So siblings can warn each other, and nothing is known before it was seen.

A factor is taken if it lowers the loss by more than one standard error, found from the gains of whole clusters (pages
of one cluster change together and are no independent witnesses). Factors are tried in turn, the best first, each beside
those already taken. This is done on a sample of clusters, so it costs little beside the fit.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from recrawl.estimate import grid
from recrawl.estimate.grid_prior import fit_priors
from recrawl.estimate.operational_learning import Looks
from recrawl.estimate.tempo_state import Factor, Places, Tempo, fit
from recrawl.estimate.weekly_profile import LONGEST
from recrawl.model import FloatArray, Histories, IntArray
from recrawl.time import DAY

MARGIN = 1.0
"""Standard errors by which a factor must lower the loss."""
SPLIT = 0.6
"""Share of the looks that come before the split."""
_BATCHES = (100, 400)
"""Batches the later looks of the sample are gone through in, at least and at most; none is shorter than a day ..."""
_BATCH = 100
"""... and between these bounds each has so many looks, on average: a batch has costs of its own."""
_FEWEST = 50
"""Later looks, changed and unchanged each, below which nothing can be said and nothing is switched on."""
_MOST_LOOKS = 200_000
"""Looks of the sample by which factors are chosen."""
_FEWEST_UNITS = 10
"""With fewer clusters than this, pages are the witnesses."""
_TINY = 1e-12


@dataclass(frozen=True, slots=True)
class Gain:
    """What a factor brought when it was tried beside others."""

    factor: Factor
    beside: tuple[Factor, ...]
    """Already switched on."""
    gain: float
    """By how much it lowered the mean log loss of a look, nats."""
    error: float
    """Standard error of the gain."""
    taken: bool


class Choice(NamedTuple):
    """The factors to use, and why."""

    factors: tuple[Factor, ...]
    """Switched on, in the order they were taken."""
    trials: tuple[Gain, ...]
    loss: float
    """Mean log loss of the later looks without any factor; NaN if there were too few to tell."""


def choose(histories: Histories, places: Places, *, allowed: Collection[Factor] = tuple(Factor)) -> Choice:
    """The ``allowed`` factors that predict later looks better. Row i of the histories is page i of the places."""
    rows = _sample(histories, places)
    sample = histories.take(rows)
    spots = _places_of(places, rows)
    times = np.sort(sample.look_times())
    if not len(times):
        return Choice((), (), float("nan"))
    split = float(times[int(SPLIT * (len(times) - 1))])
    later = Looks.of(sample)
    later = later.take(later.end > split)
    found = int(later.changed.sum())
    if min(found, len(later) - found) < _FEWEST:
        return Choice((), (), float("nan"))
    left = [f for f in Factor if f in allowed and (f != Factor.WEEK or np.median(sample.gaps) <= LONGEST)]
    units = _witnesses(spots, later)
    batches = min(max(len(later) / _BATCH, _BATCHES[0]), _BATCHES[1])
    batch = max((float(times[-1]) - split) / batches, DAY)
    taken: tuple[Factor, ...] = ()
    best = held_out_loss(sample, spots, taken, split, batch=batch)
    loss = float(best.mean())
    trials: list[Gain] = []
    while left:
        tried = {factor: held_out_loss(sample, spots, (*taken, factor), split, batch=batch) for factor in left}
        gains = {factor: mean_and_error(best - losses, units) for factor, losses in tried.items()}
        winner = max(left, key=lambda factor: gains[factor][0])
        good = gains[winner][0] > MARGIN * gains[winner][1]
        trials += [Gain(factor, taken, *gains[factor], taken=good and factor == winner) for factor in left]
        if not good:
            break
        taken, best = (*taken, winner), tried[winner]
        left.remove(winner)
    return Choice(taken, tuple(trials), loss)


def held_out_loss(  # noqa: PLR0913 - what is known, what to use of it, and how the test is run
    histories: Histories,
    places: Places,
    factors: Collection[Factor],
    split: float,
    *,
    batch: float = DAY,
    jump: float | None = grid.JUMP,
) -> FloatArray:
    """Log loss of each look after ``split``, predicted from the looks before its batch of ``batch`` seconds alone.

    The belief is the grid posterior with jump filter, its priors learned up to the split. The filter counts
    operational time, so where time runs slowly a page is trusted longer. In the order of ``Looks.of(histories)``,
    without the looks up to the split.
    """
    past = histories.window(-np.inf, split)
    tempo = fit(past, places, factors)
    told = tempo.time().stretch(past)
    levels = (places.host[places.cluster], places.cluster)
    priors = fit_priors(told, levels)
    of = priors.rows(levels, len(told))
    belief = grid.fit(told, priors.belief, of=of, jump=jump)
    later = Looks.of(histories)
    later = later.take(later.end > split)
    out = np.empty(len(later))
    for place in _in_batches(later.end, batch):
        looks = later.take(place)
        held = belief.take(looks.row)
        passed = _elapsed(tempo, looks)
        p = grid.at(held, priors.belief, passed, of=of[looks.row], jump=jump).p_change(passed)
        out[place] = _surprise(p, looks)
        if factors:
            tempo.fold(looks, held.mean())
            passed = _elapsed(tempo, looks)
        grid.update(belief, looks.row, passed, looks.changed, priors.belief, of=of, jump=jump)
    return out


def _elapsed(tempo: Tempo, looks: Looks) -> FloatArray:
    return tempo.time(looks.row).elapsed(looks.row, looks.start, looks.end, looks.last_change)


def _surprise(p: FloatArray, looks: Looks) -> FloatArray:
    """−ln of the probability given to what each look found."""
    p = np.clip(p, _TINY, 1.0 - _TINY)
    return -np.log(np.where(looks.changed, p, 1.0 - p))


def mean_and_error(values: FloatArray, unit: IntArray) -> tuple[float, float]:
    """The mean of the values and its standard error, if only the units (clusters, pages) are independent."""
    _, which = np.unique(unit, return_inverse=True)
    mean = float(values.mean())
    totals = np.bincount(which, values - mean)
    units = len(totals)
    if units < 2:  # noqa: PLR2004 - one witness has no spread
        return mean, float("inf")
    return mean, float(np.sqrt(units / (units - 1) * (totals**2).sum()) / len(values))


def _in_batches(end: FloatArray, length: float) -> Iterator[IntArray]:
    """Positions in order of time, those within ``length`` seconds (counted from the epoch) at once."""
    order = np.argsort(end, kind="stable")
    number = np.floor(end[order] / length)
    cuts = np.flatnonzero(np.diff(number)) + 1
    for place in np.split(order, cuts) if len(order) else ():
        yield np.sort(place)


def _witnesses(places: Places, looks: Looks) -> IntArray:
    cluster = places.cluster[looks.row]
    return cluster if len(np.unique(cluster)) >= _FEWEST_UNITS else looks.row


def _sample(histories: Histories, places: Places) -> IntArray:
    """Rows of whole clusters, evenly spread over the clusters, with about as many looks as may be had."""
    looks = np.bincount(places.cluster, histories.counts(), len(places.host))
    share = min(_MOST_LOOKS / max(float(looks.sum()), 1.0), 1.0)
    number = np.arange(len(looks))
    keep = np.floor((number + 1) * share) > np.floor(number * share)
    keep |= (looks == looks.max(initial=0.0)) & ~keep.any()
    return np.flatnonzero(keep[places.cluster])


def _places_of(places: Places, rows: IntArray) -> Places:
    """The places of these pages alone, clusters and hosts numbered anew."""
    clusters, cluster = np.unique(places.cluster[rows], return_inverse=True)
    _, host = np.unique(places.host[clusters], return_inverse=True)
    return Places(cluster.astype(np.int64), host.astype(np.int64), places.born[rows])
