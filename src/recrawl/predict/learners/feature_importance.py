"""Why a model says what it says of a page: how far each feature moves its answer.

A feature moves the answer by as much as the answer would differ, on average, if the page had that feature from another
page: the factor between the rate predicted and the (geometric) mean of the rates predicted then. Features that say the
same share what they say, so factors need not multiply to the whole.

Which features a model needs: how much worse it does when one of them is shuffled (Breiman 2001; paper 004, §5.3).

Features that say the same stand in for each other, so each of them alone seems to matter little: read it as a
comparison within one model.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from recrawl.model import FloatArray, GammaBelief
from recrawl.predict.features.feature_table import FeatureTable
from recrawl.predict.learners.link_learners import LinkModel


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

    ``score`` says how good predicted values are, higher being better. O(columns · repeats) times the cost of scoring.
    """
    whole = score(model.predict_links(table))
    values = table.values.copy()
    shuffled = FeatureTable(table.page, table.columns, values, table.as_of)
    found = []
    for place, column in enumerate(table.columns):
        lost = []
        for _ in range(repeats):
            values[:, place] = rng.permutation(table.values[:, place])
            lost.append(whole - score(model.predict_links(shuffled)))
        values[:, place] = table.values[:, place]
        found.append(Importance(column.name, float(np.mean(lost)), float(np.std(lost))))
    return sorted(found, key=lambda one: -one.loss)


OTHERS = 100
"""Pages that lend their features, evenly spread."""


def contributions(ask: Callable[[FeatureTable], GammaBelief], page: FeatureTable, others: FeatureTable) -> FloatArray:
    """The factor of each feature of one page (a table of one row). O(columns · others · trees)."""
    step = max(len(others) // OTHERS, 1)
    lent = others.values[::step][:OTHERS]
    own = float(np.log(ask(page).mean()[0]))
    columns, lenders = len(page.columns), len(lent)
    asked = np.repeat(page.values, columns * lenders, axis=0).reshape(columns, lenders, columns)
    for place in range(columns):
        asked[place, :, place] = lent[:, place]
    rows = asked.reshape(-1, columns)
    said = np.log(ask(FeatureTable(np.arange(len(rows)), page.columns, rows, page.as_of)).mean())
    return np.asarray(np.exp(own - said.reshape(columns, lenders).mean(axis=1)))
