"""Whether a model still fits: what it foretold of pages that came after it was trained, beside what was found.

A model that expects half or twice the changes that first looks find misleads whoever trusts it. Chance alone can do so
where there are few looks; so both the ratio and the number of standard deviations must be large.
"""

from __future__ import annotations

import enum
from dataclasses import dataclass
from typing import Final

from recrawl.predict.prior_trial import Foretold

FEWEST: Final = 30
"""First looks at new pages from which on a model is judged."""
CLEAR: Final = 4.0
"""Standard deviations beyond which it is no chance. Pages of one site change together, so fewer would not do."""


class Fit(enum.StrEnum):
    """What is found."""

    UNJUDGED = "unjudged"
    """Too few new pages were looked at a second time."""
    GOOD = "good"
    LOST = "lost"
    """It is time to train anew."""


@dataclass(frozen=True, slots=True)
class Drift:
    """How a model has done since it was trained."""

    told: Foretold
    bound: float
    """Factor by which expected and found changes may differ; 0 for any."""

    @property
    def fit(self) -> Fit:
        """The verdict."""
        if self.told.looks < FEWEST:
            return Fit.UNJUDGED
        ratio = max(self.told.calibration, 1.0 / self.told.calibration)
        lost = self.bound > 0 and ratio > self.bound and abs(self.told.surprise) > CLEAR
        return Fit.LOST if lost else Fit.GOOD

    def sentence(self) -> str:
        """The verdict in words."""
        told = self.told
        if self.fit is Fit.UNJUDGED:
            return f"Too few new pages since training to judge it: {told.looks} of {FEWEST} first looks."
        found = (
            f"Of {told.looks:,} first looks at pages that came since, it expected {told.expected:.0f} to find a change;"
            f" {told.found:,} did."
        )
        advice = "Train it again: recrawl predict train" if self.fit is Fit.LOST else "It still fits."
        return f"{found} {advice}"
