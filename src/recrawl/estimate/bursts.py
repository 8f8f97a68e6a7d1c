"""Bursts: a change is often followed by more. Time runs by steps since the last *detected* change (algorithms §7).

The changes themselves are not known, only the looks that found them; so steps count from such a look. A page that was
never found changed is on the step of those that changed long ago, where time has its usual pace: a step of its own
would be learned from gaps that are known to come before a change, and predicted worse than no bursts at all. The
factors are learned from all pages together. They also pick up what the rates of single pages do not know yet: a page
found changed lately is, other things equal, a page of higher rate.
"""

from __future__ import annotations

import numpy as np

from recrawl.estimate.operational_learning import StepCounts
from recrawl.time import DAY

EDGES = np.array([1.0, 3.0, 7.0, 30.0, 90.0]) * DAY
PRIOR = np.ones(len(EDGES) + 2)
STRENGTH = 20.0
"""Changes on a step that outweigh the prior."""


def nothing_seen() -> StepCounts:
    """The prior, before any look: no bursts."""
    return StepCounts.of(EDGES, PRIOR, STRENGTH, usual=len(EDGES))
