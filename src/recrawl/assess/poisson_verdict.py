"""What a diagnosis means, in a sentence that a person understands, built from its numbers.

The thresholds, and why these: with much data any departure from Poisson becomes significant, also one that matters to
nobody. So a verdict needs both, significance and size. At a distance of 0.05 one interval in twenty lies on the
other side of some length than by chance; a dispersion of 1.25 makes the standard deviation of counts an eighth wider.
"""

from __future__ import annotations

import enum

from recrawl.assess.poisson import FEWEST_CHANGES, QUANTILES, SHORT, Diagnosis
from recrawl.model.words import counted
from recrawl.time import format_duration

SIGNIFICANT = 0.025
"""Two tests are made, so each is asked for half of 0.05."""
SMALL_DISTANCE = 0.05
SMALL_FACTOR = 1.25
FEWEST_INTERVALS = 20
"""With fewer intervals between changes, of all pages together, nothing is said."""
_QUARTER = QUANTILES.index(0.25)


class Pattern(enum.Enum):
    """How a collection changes."""

    UNKNOWN = "unknown"
    """Too little was seen."""
    POISSON = "poisson"
    """Nothing speaks against pure chance at a steady rate."""
    NEAR_POISSON = "near-poisson"
    """Something does, but it is too small to matter."""
    BURSTS = "bursts"
    """One change makes another soon after more likely."""
    REGULAR = "regular"
    """One change makes another soon after less likely."""
    UNEVEN = "uneven"
    """Neither: busy and quiet times, or preferred distances."""


def pattern_of(diagnosis: Diagnosis) -> Pattern:
    """The verdict: by significance, size, and whether short intervals are more or less frequent than by chance."""
    if diagnosis.intervals < FEWEST_INTERVALS:
        return Pattern.UNKNOWN
    if min(diagnosis.p_dispersion, diagnosis.p_distance) >= SIGNIFICANT:
        return Pattern.POISSON
    dispersion = diagnosis.dispersion
    if diagnosis.distance < SMALL_DISTANCE and 1.0 / SMALL_FACTOR < dispersion < SMALL_FACTOR:
        return Pattern.NEAR_POISSON
    short = diagnosis.quantiles[0, _QUARTER] / diagnosis.quantiles[1, _QUARTER]
    if dispersion >= 1.0 and short < 1.0:
        return Pattern.BURSTS
    if dispersion <= 1.0 and short > 1.0:
        return Pattern.REGULAR
    return Pattern.UNEVEN


def sentences(diagnosis: Diagnosis) -> list[str]:
    """The verdict and what follows from it, then what the looks could not show. One sentence or two each."""
    pattern = pattern_of(diagnosis)
    said = [_MEANING[pattern].format(numbers=_numbers(diagnosis))]
    if pattern is Pattern.UNKNOWN:
        return [*said, _missing(diagnosis)]
    if diagnosis.exact < len(diagnosis.pages):
        said.append(
            "What looks cannot show is allowed for: changes between two looks count as one, dated halfway. Bursts "
            "shorter than the time between looks stay hidden."
        )
    if diagnosis.saturated:
        said.append(
            f"{counted(diagnosis.saturated, 'page')} had changed at every look and could not be tested: "
            "look more often to know."
        )
    return said


def _numbers(diagnosis: Diagnosis) -> str:
    d = diagnosis
    return (
        f"the number of changes varies {d.dispersion:.2g} times as much from one span of time to the next as it would "
        f"by chance, and {d.short:.0%} of the intervals between changes are {format_duration(SHORT)} or shorter where "
        f"chance gives {d.short_expected:.0%}"
    )


def _missing(diagnosis: Diagnosis) -> str:
    why = [f"{counted(diagnosis.too_few, 'page')} changed fewer than {FEWEST_CHANGES} times"]
    if diagnosis.saturated:
        why.append(f"{counted(diagnosis.saturated, 'page')} had changed at every look")
    return (
        f"Only {diagnosis.intervals} intervals between changes can be compared, {FEWEST_INTERVALS} are needed: "
        f"{', '.join(why)}. More visits are needed, or a longer time."
    )


_MEANING = {
    Pattern.UNKNOWN: "How these pages change cannot be told yet.",
    Pattern.POISSON: (
        "These pages change like a Poisson process, by pure chance at a steady rate, as far as can be seen: {numbers}. "
        "Rates and their intervals mean what they say."
    ),
    Pattern.NEAR_POISSON: (
        "These pages change nearly like a Poisson process: {numbers}. The difference is certain but small; rates and "
        "their intervals can be relied on."
    ),
    Pattern.BURSTS: (
        "These pages change in bursts: {numbers}. A page that just changed is likelier to change again soon, and a "
        "quiet one to stay quiet; rates hold on average over longer times, but their intervals are too narrow."
    ),
    Pattern.REGULAR: (
        "These pages change more regularly than by chance: {numbers}. A page that just changed will rest a while, and "
        "one that has not for long is overdue; the intervals of the rates are wider than need be."
    ),
    Pattern.UNEVEN: (
        "These pages change unevenly, neither by pure chance nor simply in bursts or regularly: {numbers}. There may "
        "be busy and quiet seasons, or preferred days; a shorter window of time shows whether rates have changed."
    ),
}
