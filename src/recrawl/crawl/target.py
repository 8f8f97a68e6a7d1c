"""What the driver has in hand: where to go, and what came of going there."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TypeAlias

from recrawl.detect import Judgement, Known
from recrawl.fetch.robots import Rules
from recrawl.model import Capture, Visit


@dataclass(frozen=True, slots=True)
class Target:
    """A page to visit, or an errand: a sitemap to read, which is no page. Errands have negative numbers."""

    page: int
    host: int
    url: str
    due: float
    known: Known | None = None

    @property
    def is_errand(self) -> bool:
        """True for a sitemap."""
        return self.page < 0


@dataclass(frozen=True, slots=True)
class Visited:
    """A page was visited, or refused by the rules of its host (then there is no capture)."""

    target: Target
    visit: Visit
    judgement: Judgement
    capture: Capture | None = None


@dataclass(frozen=True, slots=True)
class RulesRead:
    """The rules of the host had to be read first; the target still waits."""

    target: Target
    rules: Rules


@dataclass(frozen=True, slots=True)
class ErrandDone:
    """A sitemap was fetched."""

    target: Target
    capture: Capture


Result: TypeAlias = Visited | RulesRead | ErrandDone
"""What comes of going to a target."""
