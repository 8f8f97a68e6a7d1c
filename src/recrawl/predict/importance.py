"""Which features a model needs: how much worse it does when one of them is shuffled (Breiman 2001; paper 004, §5.3).

Features that say the same stand in for each other, so each of them alone seems to matter little: read it as a
comparison within one model.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from recrawl.model import FloatArray
from recrawl.predict.feature_table import FeatureTable
from recrawl.predict.link_learners import LinkModel


@dataclass(frozen=True, slots=True)
class Importance:
    """What the score loses without a feature."""

    name: str
    loss: float
    """Mean over the shuffles; about 0 for what the model does not need."""
    spread: float
    """Standard deviation over the shuffles."""


def importances(
    model: LinkModel,
    table: FeatureTable,
    score: Callable[[FloatArray], float],
    rng: np.random.Generator,
    *,
    repeats: int = 5,
) -> list[Importance]:
    """All features of a table, the most needed first; equally needed ones in the order of the table.

    ``score`` says how good foretold values are, higher being better. O(columns · repeats) times the cost of scoring.
    """
    whole = score(model.foretell(table))
    values = table.values.copy()
    shuffled = FeatureTable(table.page, table.columns, values, table.as_of)
    found = []
    for place, column in enumerate(table.columns):
        lost = []
        for _ in range(repeats):
            values[:, place] = rng.permutation(table.values[:, place])
            lost.append(whole - score(model.foretell(shuffled)))
        values[:, place] = table.values[:, place]
        found.append(Importance(column.name, float(np.mean(lost)), float(np.std(lost))))
    return sorted(found, key=lambda one: -one.loss)
