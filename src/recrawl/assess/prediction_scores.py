"""Scores of predictions: classes, selections, rankings, probabilities and quantities, and back-tests of estimators.

- Selections of pages: precision, recall and F1, over all selections pooled (micro) or averaged over time (macro; HACS).
  Each row of ``counts`` is one selection: true positives, false positives, false negatives and true negatives.
- Rankings: precision at the top, and rank correlation.
- Probabilities ("this page will have changed by the next observation"): log loss, Brier score and calibration. Each
  score is one number per prediction, so that methods can be compared pair by pair, and averaged with an interval
  (:func:`mean_with_interval`).
- Ratios over pages, such as fresh time over observed time. Pages that are edited together are not independent evidence,
  so whole groups are resampled. With equal denominators the numerators of two methods subtract, which gives the
  interval of their difference.
- Estimators (:func:`compare`): fitted to the observations before a moment, they predict the next observation of each
  page. Several moments are used, so that short and long histories count. Each gap is predicted at most once. All
  methods predict the same observations, so their scores are paired.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from scipy import special

from recrawl.model import AnyArray, BoolArray, FloatArray, Histories, IntArray


@dataclass(frozen=True, slots=True)
class SelectionScores:
    """NaN where there is nothing to divide by."""

    precision: float
    recall: float
    f1: float


def micro(counts: IntArray) -> SelectionScores:
    """Scores of the summed counts (HACS Table 3, reading 000.6). Shape (choices, 4).

    >>> micro(np.array([[1, 3, 5, 2], [0, 3, 2, 0]]))
    SelectionScores(precision=0.14285714285714285, recall=0.125, f1=0.13333333333333333)
    """
    return SelectionScores(*(float(value[0]) for value in _scores(counts.sum(axis=0, keepdims=True))))


def macro(counts: IntArray, *, zero_if_missed: bool = False) -> SelectionScores:
    """Mean of the scores of the choices, each over those where it is defined (reading 000.6).

    F1 is undefined where precision and recall are both 0, so a policy can have an F1 above either. With
    ``zero_if_missed`` it is 0 there if a page was to be found: then it is averaged over the same choices as recall, and
    one lucky choice among many does not decide.

    >>> macro(np.array([[1, 3, 5, 2], [0, 3, 2, 0]])).f1
    0.2
    >>> macro(np.array([[1, 3, 5, 2], [0, 3, 2, 0], [0, 1, 0, 4]]), zero_if_missed=True).f1
    0.1
    """
    precision, recall, f1 = _scores(counts)
    if zero_if_missed:
        f1 = np.where(recall == 0, 0.0, f1)
    defined = (value[~np.isnan(value)] for value in (precision, recall, f1))
    return SelectionScores(*(float(value.mean()) if len(value) else float("nan") for value in defined))


def _scores(counts: IntArray) -> tuple[FloatArray, FloatArray, FloatArray]:
    right, wrong, missed = (counts[:, column].astype(np.float64) for column in range(3))
    with np.errstate(invalid="ignore"):
        precision, recall = right / (right + wrong), right / (right + missed)
        return precision, recall, 2.0 * precision * recall / (precision + recall)


def weighted_precision_at_k(ranked: IntArray, expected: IntArray) -> float:
    """Mean of |top K of ranked ∩ top K of expected| / K with weights 1/log₂(K+1) (HACS, reading 000.7).

    Both are page ids, best first, each at most once; K runs to the length of ``expected``. NaN if that is 0.
    O(n log n).

    >>> weighted_precision_at_k(np.array([1, 2]), np.array([1, 2]))
    1.0
    """
    n = len(expected)
    if not n:
        return float("nan")
    _, at_ranked, at_expected = np.intersect1d(ranked, expected, assume_unique=True, return_indices=True)
    # A page is in both tops from the K on at which the later of the two has reached it.
    joins = np.maximum(at_ranked, at_expected)
    shared = np.cumsum(np.bincount(joins[joins < n], minlength=n))
    k = np.arange(1, n + 1)
    weight = 1.0 / np.log2(k + 1)
    return float(weight @ (shared / k) / weight.sum())


def area_of_perfect_ranking(truth: FloatArray) -> float:
    """The mean Precision@k% over k = 1 … 100 of a ranking by the truth itself: the ceiling of that measure.

    It is below 1 where many values are equal, since equal values are in random order on both sides. NaN without pages.

    >>> from_58_of_1000 = np.concatenate([np.arange(58.0) + 1.0, np.zeros(942)])
    >>> round(area_of_perfect_ranking(from_58_of_1000), 3)
    0.646
    """
    return float(np.mean([precision_at_percent(truth, truth, percent) for percent in range(1, 101)]))


def precision_at_percent(truth: FloatArray, predicted: FloatArray, percent: float) -> float:
    """Share of the predicted top ``percent`` of pages that are in the true top (LBLA, reading 004.5).

    The top holds m = max(1, ⌊percent·n/100 + ½⌋) pages. Equal values are in random order, on both sides
    independently: this is the exact expectation over those orders. NaN without pages. O(n).

    >>> precision_at_percent(np.array([3.0, 2.0, 1.0, 0.0]), np.array([9.0, 0.0, 5.0, 0.0]), 50)
    0.5
    """
    n = len(truth)
    if not n:
        return float("nan")
    top = min(n, max(1, int(np.floor(percent * n / 100.0 + 0.5))))
    return float(_chance_in_top(truth, top) @ _chance_in_top(predicted, top) / top)


def precision_area(truth: FloatArray, predicted: FloatArray) -> float:
    """Mean of :func:`precision_at_percent` over 1, 2, …, 100 per cent (LBLA). O(100 n)."""
    return float(np.mean([precision_at_percent(truth, predicted, percent) for percent in range(1, 101)]))


def spearman(first: FloatArray, second: FloatArray) -> float:
    """Rank correlation, equal values sharing their average rank; NaN where one side is constant. O(n log n).

    >>> spearman(np.array([1.0, 2.0, 3.0]), np.array([2.0, 4.0, 9.0]))
    1.0
    """
    a, b = (_average_ranks(values) - (len(values) + 1) / 2.0 for values in (first, second))
    scale = float(np.sqrt((a @ a) * (b @ b)))
    return float(a @ b) / scale if scale > 0 else float("nan")


def _average_ranks(values: FloatArray) -> FloatArray:
    """Ranks from 1, equal values sharing the mean of theirs."""
    _, group, size = np.unique(values, return_inverse=True, return_counts=True)
    return np.asarray((np.cumsum(size) - (size - 1) / 2.0)[group])


def _chance_in_top(values: FloatArray, top: int) -> FloatArray:
    """Probability that each value is among the ``top`` largest when equal ones are in random order."""
    threshold = np.partition(values, len(values) - top)[len(values) - top]
    above, tied = values > threshold, values == threshold
    return np.where(above, 1.0, np.where(tied, (top - above.sum()) / tied.sum(), 0.0))


CLIP = 1e-3
"""No prediction is taken for surer than 1 in 1,000: one certain error would otherwise outweigh everything else."""


def log_loss(p: FloatArray, happened: BoolArray, clip: float = CLIP) -> FloatArray:
    """−ln of the probability given to what happened, a prediction each. Lower is better; ln 2 is a coin's.

    >>> log_loss(np.array([0.5, 0.0]), np.array([True, True])).round(3).tolist()
    [0.693, 6.908]
    """
    bounded = np.clip(p, clip, 1.0 - clip)
    return -np.log(np.where(happened, bounded, 1.0 - bounded))


def brier(p: FloatArray, happened: BoolArray) -> FloatArray:
    """Squared error of the probability, a prediction each. Lower is better; 0.25 is a coin's.

    >>> brier(np.array([0.5, 1.0]), np.array([True, True])).tolist()
    [0.25, 0.0]
    """
    return np.square(p - happened)


@dataclass(frozen=True, slots=True)
class Calibration:
    """Predicted against observed shares, over bins of equally many predictions."""

    predicted: FloatArray
    """Mean probability of the bin."""
    observed: FloatArray
    """Share of its predictions that came true."""
    count: IntArray

    @property
    def error(self) -> float:
        """Mean distance of predicted from observed, over all predictions; NaN without any."""
        total = int(self.count.sum())
        return float(np.abs(self.predicted - self.observed) @ self.count / total) if total else float("nan")

    def interval(self, level: float = 0.9) -> tuple[FloatArray, FloatArray]:
        """Between which shares the true one of each bin lies, given its count (Jeffreys' interval).

        >>> [end.round(2).tolist() for end in Calibration(np.ones(1), np.full(1, 0.5), np.full(1, 8)).interval()]
        [[0.24], [0.76]]
        """
        came_true = self.observed * self.count
        ends = (
            special.betaincinv(came_true + 0.5, self.count - came_true + 0.5, q)
            for q in ((1.0 - level) / 2.0, (1.0 + level) / 2.0)
        )
        low, high = ends
        return np.minimum(low, self.observed), np.maximum(high, self.observed)


def calibration(p: FloatArray, happened: BoolArray, bins: int = 10) -> Calibration:
    """Sort the predictions, cut them into bins, compare. Equal predictions stay together. O(n log n).

    >>> calibration(np.array([0.1, 0.1, 0.9, 0.9]), np.array([False, False, True, False]), 2).observed.tolist()
    [0.0, 0.5]
    """
    order = np.argsort(p, kind="stable")
    ranked, came_true = p[order], happened[order]
    marks = (np.arange(1, bins) * len(p)) // bins if len(p) else np.empty(0, dtype=np.int64)
    cuts = np.searchsorted(ranked, ranked[marks])
    edges = np.unique(np.concatenate([[0], cuts, [len(p)]]).astype(np.int64))
    count = np.diff(edges)
    if not len(count):
        return Calibration(np.empty(0), np.empty(0), count)
    starts = edges[:-1]
    return Calibration(
        np.add.reduceat(ranked, starts) / count,
        np.add.reduceat(came_true.astype(np.float64), starts) / count,
        count,
    )


class MeanInterval(NamedTuple):
    """A mean and what it could as well have been."""

    mean: float
    low: float
    high: float


def mean_with_interval(
    values: FloatArray, groups: AnyArray, rng: np.random.Generator, *, repeats: int = 1_000, level: float = 0.95
) -> MeanInterval:
    """The mean, with a bootstrap interval that resamples whole groups of values.

    Pages edited together are no independent evidence: ``groups[i]`` names the group of value i. NaN throughout
    without values; with one group the interval is the mean.
    O(n log n + repeats · groups).
    """
    if not len(values):
        return MeanInterval(float("nan"), float("nan"), float("nan"))
    _, index = np.unique(groups, return_inverse=True)
    size = np.bincount(index).astype(np.float64)
    total = np.asarray(np.bincount(index, values), dtype=np.float64)
    means = _resampled_means(total, size, rng, repeats)
    low, high = np.quantile(means, [(1.0 - level) / 2.0, (1.0 + level) / 2.0])
    return MeanInterval(float(values.mean()), float(low), float(high))


def _resampled_means(total: FloatArray, size: FloatArray, rng: np.random.Generator, repeats: int) -> FloatArray:
    """Means over as many groups as there are, drawn with replacement, in blocks of bounded memory."""
    groups = len(size)
    out = np.empty(repeats)
    block = max(1, _DRAWS // groups)
    for start in range(0, repeats, block):
        stop = min(start + block, repeats)
        drawn = rng.integers(0, groups, (stop - start, groups))
        out[start:stop] = total[drawn].sum(axis=1) / size[drawn].sum(axis=1)
    return out


_DRAWS = 4_000_000
"""Group draws held at a time."""


def ratio_with_interval(  # noqa: PLR0913 - the two columns, and how they are resampled
    numerator: FloatArray,
    denominator: FloatArray,
    groups: AnyArray,
    rng: np.random.Generator,
    *,
    repeats: int = 1_000,
    level: float = 0.95,
) -> MeanInterval:
    """Σ numerator / Σ denominator with a bootstrap interval; ``groups[i]`` names the group of page i.

    NaN throughout where the denominators add up to 0; with one group the interval is the ratio. Groups with neither
    numerator nor denominator are left out, and so are draws of groups that have no denominator at all: nothing can be
    said of them. O(n log n + repeats · groups).

    >>> ratio_with_interval(np.ones(4), np.full(4, 2.0), np.arange(4), np.random.default_rng(1))
    MeanInterval(mean=0.5, low=0.5, high=0.5)
    """
    whole = float(denominator.sum())
    if not whole > 0:
        return MeanInterval(float("nan"), float("nan"), float("nan"))
    _, index = np.unique(groups, return_inverse=True)
    above, below = (np.asarray(np.bincount(index, part), dtype=np.float64) for part in (numerator, denominator))
    some = (below > 0) | (above != 0)
    above, below = above[some], below[some]
    drawn = np.concatenate(
        [
            _ratios(above, below, rng.integers(0, len(below), (count, len(below))))
            for count in _blocks(repeats, len(below))
        ]
    )
    low, high = np.quantile(drawn[np.isfinite(drawn)], [(1.0 - level) / 2.0, (1.0 + level) / 2.0])
    return MeanInterval(float(numerator.sum()) / whole, float(low), float(high))


def _ratios(above: FloatArray, below: FloatArray, drawn: AnyArray) -> FloatArray:
    with np.errstate(divide="ignore"):  # a draw without any denominator
        return np.asarray(above[drawn].sum(axis=1) / below[drawn].sum(axis=1))


def _blocks(repeats: int, groups: int) -> list[int]:
    """How many repeats are drawn at a time, so that memory stays bounded."""
    most = max(1, _DRAWS // groups)
    return [min(most, repeats - start) for start in range(0, repeats, most)]


@dataclass(frozen=True, slots=True)
class ClassScores:
    """How well a yes or no was predicted. NaN where a score has nothing to divide by."""

    balanced_accuracy: float
    """Mean of the shares of true yes and of true no that were predicted so."""
    precision: float
    """Share of the predicted yes that came true."""
    recall: float
    """Share of the true yes that were predicted."""
    f1: float
    """Harmonic mean of precision and recall."""


def class_scores(predicted: BoolArray, true: BoolArray) -> ClassScores:
    """The scores of paper 004 (§5.3) for a binary target. O(n).

    >>> class_scores(np.array([True, True, False, False]), np.array([True, False, False, False])).f1
    0.6666666666666666
    """
    hit = float((predicted & true).sum())
    spared = float((~predicted & ~true).sum())
    said, was, was_not = float(predicted.sum()), float(true.sum()), float((~true).sum())
    recall = _share(hit, was)
    return ClassScores(
        balanced_accuracy=(recall + _share(spared, was_not)) / 2.0,
        precision=_share(hit, said),
        recall=recall,
        f1=_share(2.0 * hit, said + was),
    )


@dataclass(frozen=True, slots=True)
class QuantityScores:
    """How far predicted quantities were off. NaN without pages."""

    r2: float
    """Share of the variance explained: 1 is perfect, 0 as good as the mean; NaN if all true values are equal."""
    mean_error: float
    """Mean absolute error."""
    median_error: float
    """Median absolute error."""


def quantity_scores(predicted: FloatArray, true: FloatArray) -> QuantityScores:
    """The scores of paper 004 (§5.3) for a quantity. O(n).

    >>> quantity_scores(np.array([1.0, 2.0, 3.0]), np.array([1.0, 2.0, 6.0])).mean_error
    1.0
    """
    if not len(true):
        return QuantityScores(float("nan"), float("nan"), float("nan"))
    off = np.abs(predicted - true)
    spread = float(((true - true.mean()) ** 2).sum())
    r2 = 1.0 - float((off**2).sum()) / spread if spread > 0 else float("nan")
    return QuantityScores(r2, float(off.mean()), float(np.median(off)))


def _share(part: float, whole: float) -> float:
    return part / whole if whole > 0 else float("nan")


MOMENTS = (0.5, 0.6, 0.7, 0.8, 0.9)
"""After which shares of all observations predictions are made."""


@dataclass(frozen=True, slots=True)
class NextObservations:
    """The first observation of each page after a moment, if there was one before it too."""

    row: IntArray
    """Row of the histories, ascending."""
    gap: FloatArray
    """Seconds since the last observation before the moment."""
    changed: BoolArray
    """Whether it found a change."""
    place: IntArray
    """Index of the gap in the histories."""

    def __len__(self) -> int:
        return len(self.row)


@dataclass(frozen=True, slots=True)
class MethodScore:
    """How well one method predicted."""

    name: str
    log_loss: MeanInterval
    """Lower is better; 95 % interval."""
    brier: MeanInterval
    calibration_error: float
    """Mean distance between predicted and observed shares of change."""
    behind: MeanInterval
    """Log loss minus that of the best method, prediction by prediction."""

    @property
    def ties(self) -> bool:
        """Whether it could be as good as the best, for all these predictions tell."""
        return self.behind.low <= 0.0


def next_observations(histories: Histories, at: float) -> NextObservations:
    """The observation that follows ``at`` on each page, and the gap it closes. O(gaps).

    >>> from recrawl.model import Visits
    >>> h = Histories.from_visits(Visits.of([1, 1, 1], [0.0, 4.0, 9.0], verdict=[0, 1, 2]))
    >>> found = next_observations(h, 5.0)
    >>> found.gap.tolist(), found.changed.tolist()
    ([5.0], [True])
    """
    closed = histories.observation_times()
    opened = np.empty_like(closed)
    opened[1:] = closed[:-1]
    some = np.flatnonzero(histories.counts())
    opened[histories.offsets[some]] = histories.first_visit[some]
    place = np.flatnonzero((opened <= at) & (closed > at))
    return NextObservations(histories.row_of_gap()[place], histories.gaps[place], histories.changed[place], place)


def moments(histories: Histories) -> list[float]:
    """The moments at which to predict, ascending: after half of all observations, six tenths, and so on."""
    observations = histories.observation_times()
    return np.unique(np.quantile(observations, MOMENTS)).tolist() if len(observations) else []


def compare(
    predictions: Mapping[str, FloatArray], changed: BoolArray, groups: AnyArray, rng: np.random.Generator
) -> list[MethodScore]:
    """Score methods that predicted the same observations; the best, by log loss, comes first.

    ``predictions[name][k]`` is the probability that observation k finds a change. ``groups`` are resampled whole:
    observations that are not independent evidence (of one page, of one host) share one.
    """
    losses = {name: log_loss(p, changed) for name, p in predictions.items()}
    best = min(losses, key=lambda name: float(losses[name].mean()))
    scores = [
        MethodScore(
            name,
            mean_with_interval(losses[name], groups, rng),
            mean_with_interval(brier(p, changed), groups, rng),
            calibration(p, changed).error,
            mean_with_interval(losses[name] - losses[best], groups, rng),
        )
        for name, p in predictions.items()
    ]
    return sorted(scores, key=lambda score: score.log_loss.mean)
