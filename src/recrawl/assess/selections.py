"""Precision, recall and F1 of repeated choices of pages: all choices pooled, or averaged over time (HACS).

Each row of ``counts`` is one choice: pages rightly chosen, wrongly chosen, wrongly left and rightly left.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from recrawl.model import FloatArray, IntArray


@dataclass(frozen=True, slots=True)
class Scores:
    """NaN where there is nothing to divide by."""

    precision: float
    recall: float
    f1: float


def micro(counts: IntArray) -> Scores:
    """Scores of the summed counts (HACS Table 3, reading 000.6). Shape (choices, 4).

    >>> micro(np.array([[1, 3, 5, 2], [0, 3, 2, 0]]))
    Scores(precision=0.14285714285714285, recall=0.125, f1=0.13333333333333333)
    """
    return Scores(*(float(value[0]) for value in _scores(counts.sum(axis=0, keepdims=True))))


def macro(counts: IntArray) -> Scores:
    """Mean of the scores of the choices, each over those where it is defined (reading 000.6).

    F1 is undefined where precision and recall are both 0, so a policy can have an F1 above either.

    >>> macro(np.array([[1, 3, 5, 2], [0, 3, 2, 0]])).f1
    0.2
    """
    defined = (value[~np.isnan(value)] for value in _scores(counts))
    return Scores(*(float(value.mean()) if len(value) else float("nan") for value in defined))


def _scores(counts: IntArray) -> tuple[FloatArray, FloatArray, FloatArray]:
    right, wrong, missed = (counts[:, column].astype(np.float64) for column in range(3))
    with np.errstate(invalid="ignore"):
        precision, recall = right / (right + wrong), right / (right + missed)
        return precision, recall, 2.0 * precision * recall / (precision + recall)
