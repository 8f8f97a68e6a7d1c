"""How well something foretold came true: classes by what was hit and missed, quantities by how far off they were."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from recrawl.model import BoolArray, FloatArray


@dataclass(frozen=True, slots=True)
class ClassScores:
    """How well a yes or no was foretold. NaN where a score has nothing to divide by."""

    balanced_accuracy: float
    """Mean of the shares of true yes and of true no that were foretold so."""
    precision: float
    """Share of the foretold yes that came true."""
    recall: float
    """Share of the true yes that were foretold."""
    f1: float
    """Harmonic mean of precision and recall."""


def class_scores(foretold: BoolArray, true: BoolArray) -> ClassScores:
    """The scores of paper 004 (§5.3) for a binary target. O(n).

    >>> class_scores(np.array([True, True, False, False]), np.array([True, False, False, False])).f1
    0.6666666666666666
    """
    hit = float((foretold & true).sum())
    spared = float((~foretold & ~true).sum())
    said, was, was_not = float(foretold.sum()), float(true.sum()), float((~true).sum())
    recall = _share(hit, was)
    return ClassScores(
        balanced_accuracy=(recall + _share(spared, was_not)) / 2.0,
        precision=_share(hit, said),
        recall=recall,
        f1=_share(2.0 * hit, said + was),
    )


@dataclass(frozen=True, slots=True)
class QuantityScores:
    """How far foretold quantities were off. NaN without pages."""

    r2: float
    """Share of the variance explained: 1 is perfect, 0 as good as the mean; NaN if all true values are equal."""
    mean_error: float
    """Mean absolute error."""
    median_error: float
    """Median absolute error."""


def quantity_scores(foretold: FloatArray, true: FloatArray) -> QuantityScores:
    """The scores of paper 004 (§5.3) for a quantity. O(n).

    >>> quantity_scores(np.array([1.0, 2.0, 3.0]), np.array([1.0, 2.0, 6.0])).mean_error
    1.0
    """
    if not len(true):
        return QuantityScores(float("nan"), float("nan"), float("nan"))
    off = np.abs(foretold - true)
    spread = float(((true - true.mean()) ** 2).sum())
    r2 = 1.0 - float((off**2).sum()) / spread if spread > 0 else float("nan")
    return QuantityScores(r2, float(off.mean()), float(np.median(off)))


def _share(part: float, whole: float) -> float:
    return part / whole if whole > 0 else float("nan")
