"""Were pages put into the right class of change rate? The error rate of Barbosa et al. (§4, Tables 3 and 5)."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from recrawl.model import FloatArray, IntArray


@dataclass(frozen=True, slots=True)
class ClassError:
    """How assigned classes compare with true ones. NaN without pages."""

    error_rate: float
    """Share of pages in a wrong class, weighted."""
    too_often: float
    """Share in a class of more frequent change than the true one: visits in vain."""
    too_seldom: float
    """Share in a class of rarer change: stale copies."""
    confusion: FloatArray
    """Weight of the pages by true class (row) and assigned class (column)."""


def class_error(assigned: IntArray, true: IntArray, classes: int, weight: FloatArray | None = None) -> ClassError:
    """Compare classes page by page; class 0 is the most dynamic (reading 002.3). O(n).

    >>> class_error(np.array([0, 1, 1, 2]), np.array([0, 1, 2, 1]), 3).error_rate
    0.5
    """
    w = np.ones(len(true)) if weight is None else weight
    confusion = np.zeros((classes, classes))
    np.add.at(confusion, (true, assigned), w)
    whole = float(confusion.sum())
    if not whole > 0:
        return ClassError(float("nan"), float("nan"), float("nan"), confusion)
    often = float(np.tril(confusion, -1).sum()) / whole
    seldom = float(np.triu(confusion, 1).sum()) / whole
    return ClassError(often + seldom, often, seldom, confusion)
