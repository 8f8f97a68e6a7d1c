"""Who competes: every policy by its name, made ready for a field and for one budget for all."""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial

from recrawl.estimate.operational.factor_state import TimeFactor
from recrawl.schedule.policies.policy_registry import EXPLORING, ORACLES, POLICIES, START_FROM_BUDGET, VALUED
from recrawl.schedule.policy import Policy
from recrawl.simulate.benchmark_field import BenchmarkField
from recrawl.time import DAY, HOUR

OURS = "valued-archive"
"""The default of recrawl: evaluated by freshness."""
OURS_FOR_CHANGES = "valued-changes"
"""Ours for those who want every version: evaluated by recall."""
YARDSTICK = "uniform"
OWN_MEASURE: dict[str, str] = {
    OURS: "freshness",
    "valued-freshness": "freshness",
    OURS_FOR_CHANGES: "recall",
    "valued-harmonic": "harmonic",
    "valued-age": "age",
    "valued-blur": "missed",
    "valued-links": "link_delay",
}
"""What each of ours is after, as one of the metrics of a contest."""
PARTS_OFF: dict[str, Mapping[str, object]] = {
    f"{OURS}-without-clusters": {"factors": (TimeFactor.AGE,)},
    f"{OURS}-without-age": {"factors": (TimeFactor.CLUSTERS,)},
    f"{OURS}-in-wall-time": {"factors": ()},
    f"{OURS}-without-jumps": {"jump": None},
}
"""Our default with a part of it switched off, and how: what the part is worth."""
NAMES: tuple[str, ...] = (*POLICIES, *EXPLORING, *PARTS_OFF, *ORACLES)
"""All that can compete, also those that compete only when asked for: explorers, ours without parts, oracles."""
NAMED: tuple[str, ...] = tuple(name for name in POLICIES if name not in VALUED and name != YARDSTICK)
"""The policies of the papers and of other crawlers."""
SAME_AT_A_BUDGET: dict[str, str] = dict.fromkeys(("brute-force", "week", "fixed-interval"), YARDSTICK) | {
    "valued-links": "valued-blur"
}
"""Those whose visits are, one by one, the visits of another, where a budget decides how many there are.

One interval for all pages is even visits. Ours for new links has the formula of blur, with a belief about new links in
place of changes; in a contest, where visits tell changes alone, the two beliefs are one.
"""


def labelled(name: str) -> str:
    """A name as tables show it: an oracle is marked, since nobody could use it.

    >>> labelled("nutch"), labelled("gold")
    ('nutch', 'gold (knows the future)')
    """
    return f"{name} (knows the future)" if name in ORACLES else name


def entry(name: str, field: BenchmarkField, *, shortest: float = HOUR, longest: float = 180 * DAY) -> Policy:
    """A new policy of this name, ready to be told of the pages of a field.

    ``shortest`` and ``longest`` are the intervals, in seconds, between which ours stay. Rules that know intervals and
    no budget start at the interval that spends the budget evenly; ours are told which pages lie in one directory;
    oracles are told the true rates, and so see the future.

    Raises:
        KeyError: there is no such policy.
    """
    if name in ORACLES:
        return ORACLES[name](field.rates)
    make = EXPLORING[name] if name in EXPLORING else POLICIES[OURS if name in PARTS_OFF else name]
    if name in START_FROM_BUDGET:
        make = partial(make, start=None)
    elif name in VALUED or name in EXPLORING or name in PARTS_OFF:
        make = partial(
            make,
            **PARTS_OFF.get(name, {}),
            clusters=field.clusters,
            shortest_interval=shortest,
            longest_interval=longest,
        )
    return make()
