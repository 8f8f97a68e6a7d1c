"""What ``recrawl rates`` can be asked: in what respect, by what, in which order, of which pages and which time."""

from __future__ import annotations

import enum
from dataclasses import dataclass

from recrawl.cli.knowledge import Expected, Span
from recrawl.errors import ConfigError, meant
from recrawl.estimate.estimator import Estimator
from recrawl.estimate.estimators import ESTIMATORS
from recrawl.model import ChangeKind


class Kind(enum.StrEnum):
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
    def _missing_(cls, value: object) -> Kind | None:
        """The other spelling, as tables have it.

        >>> Kind("new_links")
        <Kind.NEW_LINKS: 'new-links'>
        """
        return next((kind for kind in cls if value == kind.value.replace("-", "_")), None)


class By(enum.StrEnum):
    """What a row of the table is."""

    PAGE = "page"
    SECTION = "section"
    HOST = "host"
    SITE = "site"
    """A host taken as one page: it changes when any of its pages does (HACS, website level)."""


class Sort(enum.StrEnum):
    """What comes first."""

    OFTEN = "often"
    SELDOM = "seldom"
    CHANGED = "changed"
    UNSURE = "unsure"
    LOOKS = "looks"
    RECENT = "recent"
    NAME = "name"


@dataclass(frozen=True, slots=True)
class Question:
    """All of it, ready to be answered."""

    estimator: Estimator
    now: float
    """The moment of which it is asked: now, or an earlier one."""
    kind: Kind = Kind.ANY
    by: By = By.PAGE
    window: float | None = None
    """Only visits of so many seconds before ``now``."""
    sort: Sort = Sort.OFTEN
    host: str | None = None
    match: str | None = None
    """Part of a URL, or a pattern with ``*`` and ``?`` for a whole one."""
    min_looks: int = 1
    limit: int | None = None
    expected: Expected | None = None
    """What a model expects of pages, if there is one."""

    @property
    def span(self) -> Span:
        """The visits that count. Visits after ``now`` are from a future that nobody knows."""
        kind = None if self.kind is Kind.ANY else ChangeKind[self.kind.name]
        return Span(None if self.window is None else self.now - self.window, self.now, kind)


def estimator_named(name: str) -> Estimator:
    """The estimator of this name; an error that names all for another."""
    if name not in ESTIMATORS:
        raise ConfigError(f"There is no estimator {name!r}.", meant(name, ESTIMATORS))
    return ESTIMATORS[name]


def moment(text: str | None, now: float) -> float:
    """The time that ``--at`` names, or now."""
    from recrawl.formats.dates import w3c_time

    if text is None:
        return now
    when = w3c_time(text)
    if when is None:
        raise ConfigError(f"{text!r} is not a time.", "Write it as 2026-11-15 or 2026-11-15T09:30:00Z.")
    return when
