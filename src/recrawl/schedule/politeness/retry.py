"""Retry rules: when to try a page again after failed visits. Immutable; pure functions of counts and times."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from types import MappingProxyType

import numpy as np

from recrawl.model import ANSWERED, AnyArray, FloatArray, IntArray, Outcome
from recrawl.model.visits import NO_NAME, NO_TRUST, NOT_ALLOWED, OUR_FAULT
from recrawl.time import DAY, HOUR, MINUTE


@dataclass(frozen=True, slots=True)
class Backoff:
    """Wait ``first`` seconds after the first failure, ``factor`` times as long after each further one, up to a cap.

    >>> Backoff(first=60.0, factor=2.0, longest=200.0).wait(np.array([1, 2, 3, 400])).tolist()
    [60.0, 120.0, 200.0, 200.0]
    """

    first: float
    factor: float
    longest: float

    def wait(self, failures: IntArray) -> FloatArray:
        """Seconds to wait after N failures in a row; 0 after none."""
        doublings = np.clip(failures - 1, 0, 1000)
        with np.errstate(over="ignore"):
            grown = self.first * np.power(self.factor, doublings.astype(np.float64))
        return np.where(failures > 0, np.minimum(grown, self.longest), 0.0)

    def beginning(self, first: float) -> Backoff:
        """The same with another first wait, of ``first`` seconds; the longest is at least as long."""
        return replace(self, first=first, longest=max(first, self.longest))


TRANSIENT = Backoff(first=15 * MINUTE, factor=2.0, longest=DAY)
"""The server is overloaded, broken or out of reach: likely over soon."""
SLOW_TO_HEAL = Backoff(first=6 * HOUR, factor=2.0, longest=7 * DAY)
"""Somebody has to notice and to act: a certificate has expired, a name has no address."""
TROUBLED_HOST = Backoff(first=MINUTE, factor=2.0, longest=4 * HOUR)
"""All pages of a host that does not answer: about a dozen requests on the first day, six on each further one."""
NO_REQUEST_SENT = Backoff(first=MINUTE, factor=2.0, longest=DAY)
"""The address is not one that we connect to: a retry costs nothing, and people fix their settings."""
OUR_OWN = Backoff(first=HOUR, factor=6.0, longest=7 * DAY)
"""Our own code failed on the page: it will fail again until somebody repairs it, and each try costs the host a request.
From the second failure on the page is quarantined; a visit that goes well releases it."""
FORBIDDEN = Backoff(first=DAY, factor=2.0, longest=30 * DAY)
"""Refused by the host or by robots.txt: rules are read again after a day and rarely change."""


def _by_outcome() -> Mapping[Outcome, Backoff]:
    return MappingProxyType(
        {
            Outcome.REFUSED: FORBIDDEN,
            Outcome.REJECTED: Backoff(first=6 * HOUR, factor=2.0, longest=30 * DAY),
            Outcome.SERVER_ERROR: TRANSIENT,
            Outcome.UNREACHABLE: TRANSIENT,
        }
    )


def _by_failure() -> Mapping[int, Backoff]:
    return MappingProxyType(
        {NO_TRUST: SLOW_TO_HEAL, NO_NAME: SLOW_TO_HEAL, NOT_ALLOWED: NO_REQUEST_SENT, OUR_FAULT: OUR_OWN}
    )


@dataclass(frozen=True, slots=True)
class Retry:
    """Which retry rule for which failure."""

    transient: Backoff = TRANSIENT
    """When it is not known how the visits failed."""
    by_outcome: Mapping[Outcome, Backoff] = field(default_factory=_by_outcome)
    by_failure: Mapping[int, Backoff] = field(default_factory=_by_failure)
    """Failure codes of ``model.visits`` whose retry rule differs from that of their outcome."""
    cut: Backoff = Backoff(first=HOUR, factor=2.0, longest=7 * DAY)
    """An answer that breaks off in the middle of its body: each try costs the host as much as an answer."""

    @classmethod
    def beginning(cls, first: float) -> Retry:
        """The usual retry rule, but the first wait for a host that is overloaded or out of reach is ``first`` seconds.

        >>> int(Retry.beginning(5.0).at(np.array([2]), np.array([100.0]))[0])
        110
        """
        transient = TRANSIENT.beginning(first)
        some = {Outcome.SERVER_ERROR: transient, Outcome.UNREACHABLE: transient}
        return cls(transient, MappingProxyType(dict(_by_outcome()) | some))

    def at(
        self,
        failures: IntArray,
        attempt: FloatArray,
        outcome: AnyArray | None = None,
        status: AnyArray | None = None,
    ) -> FloatArray:
        """The earliest time of the next try, seconds since the epoch. O(n).

        ``failures`` counts the failed visits in a row, ``attempt`` is when the last one was made, ``outcome`` and
        ``status`` how it ended. After an answer (or no failure) there is nothing to wait for: the time of the attempt.
        """
        if outcome is None:
            return attempt + self.transient.wait(failures)
        wait = np.where(outcome > ANSWERED, self.transient.wait(failures), 0.0)
        for kind, backoff in self.by_outcome.items():
            wait = np.where(outcome == kind, backoff.wait(failures), wait)
        if status is not None:
            unreachable = outcome == Outcome.UNREACHABLE
            wait = np.where(unreachable & (status > 0), self.cut.wait(failures), wait)
            for number, backoff in self.by_failure.items():
                of_kind = (unreachable | (outcome == Outcome.REFUSED)) & (status == number)
                wait = np.where(of_kind, backoff.wait(failures), wait)
        return attempt + wait
