"""The options of ``recrawl rates``: kind of change, unit, order, pages and time."""

from __future__ import annotations

import enum
from dataclasses import dataclass

from recrawl import plugins
from recrawl.app.rates.belief_table import Expected, VisitSpan
from recrawl.errors import ConfigError
from recrawl.estimate.estimator import Estimator
from recrawl.estimate.estimators import ESTIMATORS
from recrawl.model import ChangeKind


class ChangeAspect(enum.StrEnum):
    """In what respect a page changes."""

    ANY = "any"
    CONTENT = "content"
    TEXT = "text"
    LINKS = "links"
    NEW_LINKS = "new-links"
    NEW_PUBLICATIONS = "new-publications"
    EXISTENCE = "existence"
    TYPE = "type"
    DATA = "data"

    @classmethod
    def _missing_(cls, value: object) -> ChangeAspect | None:
        """The other spelling, as tables have it.

        >>> ChangeAspect("new_links")
        <ChangeAspect.NEW_LINKS: 'new-links'>
        """
        return next((kind for kind in cls if value == kind.value.replace("-", "_")), None)


class RatesGrouping(enum.StrEnum):
    """What a row of the table is."""

    PAGE = "page"
    SECTION = "section"
    HOST = "host"
    SITE = "site"
    """A host taken as one page: it changes when any of its pages does (HACS, website level)."""


class RatesOrder(enum.StrEnum):
    """What comes first."""

    RATE = "rate"
    RATE_ASCENDING = "-rate"
    CHANGED = "changed"
    UNCERTAINTY = "uncertainty"
    OBSERVATIONS = "observations"
    RECENT = "recent"
    NAME = "name"


@dataclass(frozen=True, slots=True)
class RatesQuestion:
    """All of it, ready to be answered."""

    estimator: Estimator
    now: float
    """The time of reference: now, or an earlier time."""
    kind: ChangeAspect = ChangeAspect.ANY
    by: RatesGrouping = RatesGrouping.PAGE
    window: float | None = None
    """Only visits within this many seconds before ``now``."""
    sort: RatesOrder = RatesOrder.RATE
    host: str | None = None
    match: str | None = None
    """Part of a URL, or a pattern with ``*`` and ``?`` for a whole one."""
    min_observations: int = 1
    limit: int | None = None
    expected: Expected | None = None
    """What a model expects of pages, if there is one."""

    @property
    def span(self) -> VisitSpan:
        """The visits that count. Visits after ``now`` are ignored."""
        kind = None if self.kind is ChangeAspect.ANY else ChangeKind[self.kind.name]
        return VisitSpan(None if self.window is None else self.now - self.window, self.now, kind)


def estimator_named(name: str) -> Estimator:
    """The estimator of this name: built in, of an entry point, or at ``package.module:Name``.

    Raises:
        ConfigError: there is none, or it cannot be loaded.
    """
    found = plugins.find("estimator", name, ESTIMATORS)
    estimator: Estimator = plugins.made("estimator", name, Estimator, found)
    return estimator


def moment(text: str | None, now: float) -> float:
    """The time that ``--at`` names, or now."""
    from recrawl.formats.dates import w3c_time

    if text is None:
        return now
    when = w3c_time(text)
    if when is None:
        raise ConfigError(f"{text!r} is not a time.", "Write it as 2026-11-15 or 2026-11-15T09:30:00Z.")
    return when
