"""The rhythm of changes: how much faster pages change on some days and at some hours, and whether that is chance.

Given are the changes expected in each hour of the week, and what a steady page would have had there (its exposure).
Sums over days and over hours of the day give two profiles of mean 1. Whether they differ from a flat one is asked of
the counts by χ²; counts that were spread over the time between two observations vary less than true ones, so the test
errs on the side of no rhythm.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from scipy import special

from recrawl.model import FloatArray
from recrawl.model.plurals import counted

DAYS, HOURS = 7, 24
CERTAIN = 0.01
"""A rhythm is spoken of if a flat one is less likely than this to look so uneven …"""
MATTERS = 1.5
"""… and its fastest day or hour is this many times as fast as its slowest."""
FEWEST_CHANGES = 50.0
DAY_NAMES = ("Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday", "Sunday")


@dataclass(frozen=True, slots=True)
class CycleProfile:
    """How fast pages change in each part of a cycle, relative to the mean."""

    factor: FloatArray
    """Changes over exposure, the mean being 1; NaN where nobody looked."""
    low: FloatArray
    high: FloatArray
    """Ends of the 90 % interval of each."""
    p: float
    """How often a flat profile observes least as uneven; NaN without changes."""

    @property
    def watched(self) -> int:
        """Parts of the cycle in which anybody looked."""
        return int(np.isfinite(self.factor).sum())

    @property
    def complete(self) -> bool:
        """Whether every part was watched: of the others nobody knows whether they are busier."""
        return self.watched == len(self.factor)

    @property
    def certain(self) -> bool:
        """Whether it is neither chance nor too small to matter."""
        if not self.complete:
            return False
        return bool(self.p < CERTAIN) and float(self.factor.max()) >= MATTERS * float(self.factor.min())


@dataclass(frozen=True, slots=True)
class WeeklyRhythm:
    """The week by days and by hours, UTC, from Monday 00:00."""

    changes: float
    """On which it rests."""
    week: FloatArray
    """Factors of all hours of the week. Shape (7, 24); NaN where nobody looked."""
    days: CycleProfile
    hours: CycleProfile


def rhythm(changes: FloatArray, exposure: FloatArray) -> WeeklyRhythm:
    """Profiles from expected changes and exposure in each of the 168 hours of the week. O(1).

    >>> found = rhythm(np.where(np.arange(168) < 120, 3.0, 1.0), np.full(168, 2.0))
    >>> found.days.factor.round(2).tolist(), found.days.certain, found.hours.certain
    ([1.24, 1.24, 1.24, 1.24, 1.24, 0.41, 0.41], True, False)
    """
    seen, there = changes.reshape(DAYS, HOURS), exposure.reshape(DAYS, HOURS)
    scale = float(seen.sum() / there.sum()) if there.sum() > 0 and seen.sum() > 0 else float("nan")
    with np.errstate(divide="ignore", invalid="ignore"):
        week = np.where(there > 0, seen / (there * scale), np.nan)
    return WeeklyRhythm(
        float(seen.sum()),
        week,
        _profile(seen.sum(axis=1), there.sum(axis=1) * scale),
        _profile(seen.sum(axis=0), there.sum(axis=0) * scale),
    )


def _profile(seen: FloatArray, expected: FloatArray) -> CycleProfile:
    looked = expected > 0
    safe = np.where(looked, expected, 1.0)
    # Quantiles of the Gamma that a count leaves of its mean (Jeffreys' prior).
    low, high = (special.gammaincinv(seen + 0.5, q) / safe for q in (0.05, 0.95))
    spread = float(np.sum((seen - expected)[looked] ** 2 / safe[looked]))
    freedom = int(looked.sum()) - 1
    p = float(special.gammaincc(freedom / 2.0, spread / 2.0)) if freedom > 0 and np.isfinite(spread) else float("nan")
    factor, low, high = (np.where(looked, value, np.nan) for value in (seen / safe, low, high))
    return CycleProfile(factor, low, high, p)


def rhythm_words(found: WeeklyRhythm) -> list[str]:
    """What it means, in a sentence or two."""
    if not found.changes >= FEWEST_CHANGES:
        known = f"It is known to within days when {counted(round(found.changes), 'change')} came"
        return [f"{known}; {FEWEST_CHANGES:.0f} are needed to tell a rhythm."]
    days, hours = found.days, found.hours
    if not (days.complete or hours.complete):
        seen = f"Looks fell on {days.watched} of {DAYS} days of the week and {hours.watched} of {HOURS} hours of a day"
        return [f"{seen}: a rhythm can be told when all were watched."]
    return [_days_words(days), _hours_words(hours)]


def _days_words(days: CycleProfile) -> str:
    if not days.complete:
        return f"Looks fell on {days.watched} of {DAYS} days of the week: which are busier cannot be told yet."
    if not days.certain:
        return "No day of the week is clearly busier than another."
    best, worst = int(np.argmax(days.factor)), int(np.argmin(days.factor))
    quiet = float(days.factor[5:].mean())
    rest = f"{days.factor[:5].mean() / quiet:.2g} times as many as" if quiet > 0 else "changes, and none comes on"
    weekend = f"; a working day brings {rest} a day of the weekend"
    return (
        f"Most changes come on a {DAY_NAMES[best]} ({days.factor[best]:.2g} times the mean), fewest on a "
        f"{DAY_NAMES[worst]} ({days.factor[worst]:.2g}){weekend}."
    )


def _hours_words(hours: CycleProfile) -> str:
    if not hours.complete:
        return f"Looks fell on {hours.watched} of {HOURS} hours of the day: which are busier cannot be told yet."
    if not hours.certain:
        return "No hour of the day is clearly busier than another."
    best, worst = int(np.argmax(hours.factor)), int(np.argmin(hours.factor))
    return (
        f"The busiest hour is {best:02}–{(best + 1) % HOURS:02} UTC ({hours.factor[best]:.2g} times the mean), the "
        f"quietest {worst:02}–{(worst + 1) % HOURS:02} UTC ({hours.factor[worst]:.2g})."
    )
