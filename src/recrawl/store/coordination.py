"""The port for coordination: what the partitions of one crawl publish to each other.

A partition is what one worker schedules: the pages of its buckets. Each publishes what its pages ask for at some
prices, and a sample of its histories; each reads those of all others. So all of them find the same price and the same
population prior, and nobody has to decide for the others.

Every store implements the port, for its own workers. A database beside the stores can implement it for several stores
that form one crawl: the port refers to nothing else that is in a store.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np

from recrawl.model import FloatArray
from recrawl.store.engine.database import Database


@dataclass(frozen=True, slots=True)
class PartitionDemand:
    """What the pages of one partition ask for, as it was last published."""

    partition: str
    """A unique name: that of the worker."""
    time: float
    """When it was published, seconds since the epoch."""
    buckets: int
    """Number of buckets whose pages it covers."""
    pages: int
    """Number of pages."""
    waiting: int
    """How many of them wait for their first visit."""
    price: float | None
    """The price in force, as value per unit of cost; ``None`` before there was one."""
    asked_for: float
    """What the pages ask for at this price, in cost per second."""
    least: float
    """The demand at an infinite price, in cost per second."""
    most: float
    """The demand at the price 0, in cost per second; inf if there is no bound."""
    prices: FloatArray
    """Prices of the demand curve: ascending, > 0. Empty if the policy has no price."""
    asked: FloatArray
    """The demand at each of these prices, in cost per second."""


class Coordination(Protocol):
    """Demand and samples of partitions, by the name of the partition. Every call is one transaction."""

    def publish_demand(self, demand: PartitionDemand) -> None:
        """Replace what this partition published before."""
        ...

    def demands(self) -> list[PartitionDemand]:
        """What all partitions published, by name. O(partitions)."""
        ...

    def publish_sample(self, partition: str, sample: bytes, now: float) -> None:
        """Replace the sample of histories of this partition, in whatever form the readers agree on."""
        ...

    def samples(self, since: float = -np.inf) -> dict[str, bytes]:
        """Samples that were published after ``since``, by partition."""
        ...

    def withdraw_partition(self, partition: str) -> None:
        """Delete the demand and the sample of a partition that exists no more.

        A store also does so when it releases the buckets of a worker.
        """
        ...


class SqlCoordination:
    """Part of the store over any database: see :class:`Coordination`."""

    _database: Database

    def publish_demand(self, demand: PartitionDemand) -> None:
        """Replace the demand of a partition."""
        row = (
            demand.partition,
            demand.time,
            demand.buckets,
            demand.pages,
            demand.waiting,
            demand.price,
            demand.asked_for,
            demand.least,
            demand.most,
            _packed(demand.prices),
            _packed(demand.asked),
        )
        self._database.write(lambda session: session.run(session.statements.publish_demand, *row), lasting=False)

    def demands(self) -> list[PartitionDemand]:
        """The demand of all partitions."""
        rows = self._database.read(lambda session: session.rows(session.statements.demands))
        return [PartitionDemand(*map(_value, row)) for row in rows]

    def publish_sample(self, partition: str, sample: bytes, now: float) -> None:
        """Replace the sample of a partition."""
        self._database.write(
            lambda session: session.run(session.statements.publish_sample, partition, now, sample), lasting=False
        )

    def samples(self, since: float = -np.inf) -> dict[str, bytes]:
        """The samples of all partitions."""
        rows = self._database.read(lambda session: session.rows(session.statements.samples, since))
        return {str(partition): bytes(data) for partition, data in rows}

    def withdraw_partition(self, partition: str) -> None:
        """Delete what a partition published."""
        self._database.write(
            lambda session: [session.run(one, partition) for one in session.statements.withdraw_partition],
            lasting=False,
        )


def _packed(numbers: FloatArray) -> bytes:
    return numbers.astype("<f8").tobytes()


def _value(stored: object) -> Any:  # noqa: ANN401 - a value of a row
    return np.frombuffer(stored, "<f8").astype(np.float64) if isinstance(stored, bytes) else stored
