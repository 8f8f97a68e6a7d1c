"""The change rates that a capture strategy is given, from beliefs about pages.

A strategy takes one rate a page. Which number stands best for a belief depends on the aim. Blur is linear in the rate,
so strategies that visit once get the mean. Expected coherence is a sum of probabilities to stay unchanged, so
strategies that revisit get the rate that gives the believed probability (:func:`steady_rates`). A page that disappears
is lost for a revisit as one that changes, and a page that exists has never disappeared before: its own history says
nothing about that. So the hazard of its host is added (:func:`disappearance_hazard`).
"""

from __future__ import annotations

import numpy as np

from recrawl.model import Belief, FloatArray, IntArray
from recrawl.time import DAY

YEAR = 365.25 * DAY
"""Seconds."""
PRIOR_HAZARD = 0.05 / YEAR
"""Disappearances a second of a page of a host that nothing is known of."""
PRIOR_WATCHED = 20.0 * YEAR
"""Seconds of pages that the prior is worth."""


def steady_rates(belief: Belief, horizon: float) -> FloatArray:
    """The rates by which pages stay unchanged for ``horizon`` seconds with the believed chance: −ln E[e^{−λT}]/T.

    Never above the mean; the mean if the horizon is 0.
    """
    if horizon <= 0.0:
        return belief.mean()
    stays = belief.survival(np.full(len(belief), horizon))
    return np.asarray(-np.log(np.maximum(stays, np.finfo(np.float64).tiny)) / horizon)


def disappearance_hazard(lost: FloatArray | IntArray, watched: FloatArray) -> FloatArray:
    """Disappearances of pages a second on each host: ``lost`` pages in ``watched`` seconds of pages.

    The mean of a Gamma posterior; without data the prior, 5 % a year.

    >>> (disappearance_hazard(np.array([0, 50]), np.array([0.0, 100 * YEAR])) * YEAR).round(3).tolist()
    [0.05, 0.425]
    """
    return np.asarray((lost + PRIOR_HAZARD * PRIOR_WATCHED) / (watched + PRIOR_WATCHED))
