"""Whether a model still fits: what it foretold of pages that came after it was trained, beside what was found.

A model that expects half or twice the changes that first looks find, or the new links that are counted, misleads
whoever trusts it. Chance alone can do so where there are few looks; so both the ratio and the number of standard
deviations must be large.
"""

from __future__ import annotations

import enum
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Final

from recrawl.predict.prior_model import CHANGES
from recrawl.predict.prior_trial import Tallied

FEWEST: Final = 30
"""First looks at new pages, or pages with counted links, from which on a model is judged."""
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
    """How a model has done since it was trained, in one kind of event."""

    told: Tallied
    bound: float
    """Factor by which expected and found events may differ; 0 for any."""
    event: str = CHANGES

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
        told, of_changes = self.told, self.event == CHANGES
        if self.fit is Fit.UNJUDGED:
            few = "first looks" if of_changes else f"with counted {self._links}"
            return f"Too few new pages since training to judge it: {told.looks} of {FEWEST} {few}."
        found = (
            f"Of {told.looks:,} first looks at pages that came since, it expected {told.expected:.0f} to find a change;"
            f" {told.found:,.0f} did."
            if of_changes
            else f"On {told.looks:,} pages that came since, it expected {told.expected:.0f} {self._links};"
            f" {told.found:,.0f} came."
        )
        advice = "Train it again: recrawl predict train" if self.fit is Fit.LOST else "It still fits."
        return f"{found} {advice}"

    @property
    def _links(self) -> str:
        return self.event.replace("-", " ")


def worst(drifts: Iterable[Drift]) -> Drift:
    """The one to be told of: a loss before all else, then the first that is judged, else the first."""
    order = (Fit.LOST, Fit.GOOD, Fit.UNJUDGED)
    return min(drifts, key=lambda one: order.index(one.fit))
