"""Why a model says what it says of a page: how far each feature moves its answer.

A feature moves the answer by as much as the answer would differ, on average, if the page had that feature from another
page: the factor between the rate foretold and the (geometric) mean of the rates foretold then. Features that say the
same share what they say, so factors need not multiply to the whole.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from recrawl.model import FloatArray, GammaBelief
from recrawl.predict.feature_table import FeatureTable

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
