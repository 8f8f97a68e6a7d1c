"""What the pages of all units ask for, in the store of each: so all units find the same price for a visit.

Workers publish and read demand in the store of their own unit only (``crawl.control.price_exchange``). The agent of the
unit copies what they publish into the coordination database, and what others published there into the store. So a
worker never waits for the coordination database, and while that is away the last known demand of the others counts,
less and less after two days.

A unit whose workers have all stopped leaves what they published last: its budget stays reserved for that time. The
demand of a unit that left is deleted.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import replace

from recrawl.crawl.control.price_exchange import FOREIGN
from recrawl.store.coordination import Coordination, PartitionDemand

_SAME = 1.0
"""Seconds by which the time of one publication may differ between two databases: their clocks are compared again."""


def exchange_demand(store: Coordination, shared: Coordination, unit: str, units: Collection[str], ahead: float) -> None:
    """Copy demand between the store of a unit and the coordination database, in both directions.

    ``units`` are all registered ones. ``ahead`` is by how many seconds the clock of the coordination database is ahead
    of that of the unit. O(partitions); nothing is written that is there already.
    """
    here = {said.partition: said for said in store.demands()}
    there = {said.partition: said for said in shared.demands()}
    ours = {f"{unit}{FOREIGN}{name}": said for name, said in here.items() if FOREIGN not in name}
    theirs = {name: said for name, said in there.items() if _unit_of(name) in units and _unit_of(name) != unit}
    _copy(ours, there, shared, ahead)
    _copy(theirs, here, store, -ahead)
    for name in there:
        if name not in theirs and name not in ours and (ours or _unit_of(name) != unit):
            shared.withdraw_partition(name)
    for name in here:
        if FOREIGN in name and name not in theirs:
            store.withdraw_partition(name)


def withdraw_demand(shared: Coordination, unit: str) -> None:
    """Delete what a unit published: it leaves."""
    for said in shared.demands():
        if _unit_of(said.partition) == unit:
            shared.withdraw_partition(said.partition)


def _copy(
    source: Mapping[str, PartitionDemand], known: Mapping[str, PartitionDemand], target: Coordination, ahead: float
) -> None:
    for name, said in source.items():
        time = said.time + ahead
        if name not in known or abs(known[name].time - time) > _SAME:
            target.publish_demand(replace(said, partition=name, time=time))


def _unit_of(partition: str) -> str:
    return partition.partition(FOREIGN)[0]
