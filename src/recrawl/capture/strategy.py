"""The seam between a site capture and whoever carries it out: a state machine without I/O.

A driver tells a strategy of pages as it finds them and asks which to visit next; when no page is left, it asks
which to see again. Simulator and live crawler drive the same object. A strategy never learns the time: one visit
takes one slot, slots follow each other, and the revisits take the slots behind the visits.

Rules every strategy keeps (``tests/conformance/test_strategy.py``):
 1. Each page it was told of is named by ``next_page`` exactly once; no other page ever is.
 2. Being told again of a known page changes nothing, whatever rate and weight come with it.
 3. ``None`` means "none that I know of": after more discoveries there may be more.
 4. Equal calls give equal answers, and the arrays it is given are neither kept nor altered. So a capture that was
    killed goes on by replaying what it had told and asked.
 5. Revisits name visited pages only, each at most once, and only after the last visit.
 6. If there are revisits, every page is seen again, except that the page visited last may be its own revisit
    (reading 003.17). So every interval from visit to revisit holds the moment of the last visit.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple, Protocol

from recrawl.errors import ConfigError
from recrawl.model import FloatArray, IntArray


@dataclass(frozen=True, slots=True, kw_only=True)
class Terms:
    """What a strategy may know of a capture beforehand, beside the pages themselves."""

    delay: float
    """Seconds of one slot: the politeness delay from one request to the next."""
    expected: int | None = None
    """How many pages the site is believed to have; ``None``: estimate it as the capture goes on."""
    threshold: float = 0.95
    """τ, the probability of staying unchanged from visit to revisit that makes a page hopeful (SHARC 5.3, 5.4)."""

    def __post_init__(self) -> None:
        if not 0.0 <= self.delay < float("inf"):
            raise ConfigError(f"a delay of {self.delay} seconds is not possible", "Give seconds, 0 or more.")
        if self.expected is not None and self.expected < 1:
            raise ConfigError(f"no site has {self.expected} pages", "Expect at least 1, or leave the number out.")
        if not 0.0 < self.threshold < 1.0:
            raise ConfigError(f"a threshold of {self.threshold} is no probability", "Choose one between 0 and 1.")


class Strategy(Protocol):
    """Decides the order of a whole-site capture."""

    def discover(self, page: IntArray, rate: FloatArray, weight: FloatArray | None = None) -> None:
        """Be told of pages in the order they were found (on one page: in the order of its links).

        ``rate`` is the believed change rate of each, per second; ``weight`` how much it matters, as a factor of its
        blur and of its coherence (``None``: 1 each). Offline, this is called once with all pages; online, first with
        the seeds and then after each visit with the links of the page visited.
        """
        ...

    def next_page(self) -> int | None:
        """The page to visit now, or ``None`` if every page told of so far has been named."""
        ...

    def revisits(self) -> IntArray:
        """The pages to see a second time, in order. Empty for a single-visit capture."""
        ...


class NewPages(NamedTuple):
    """Pages never seen before, as columns."""

    page: list[int]
    rate: list[float]
    weight: list[float]

    def heat(self) -> list[float]:
        """Rate times weight of each: the slope of its blur."""
        return [rate * weight for rate, weight in zip(self.rate, self.weight, strict=True)]


class KnownPages:
    """Which pages a strategy has been told of; keeps rule 2 for all of them."""

    def __init__(self) -> None:
        self._known: set[int] = set()

    def __len__(self) -> int:
        return len(self._known)

    def admit(self, page: IntArray, rate: FloatArray, weight: FloatArray | None = None) -> NewPages:
        """The pages never seen before with their rates and weights, in order, from now on known. O(len(page)).

        >>> import numpy as np
        >>> known = KnownPages()
        >>> known.admit(np.array([4, 2, 4]), np.array([0.1, 0.2, 0.3]))
        NewPages(page=[4, 2], rate=[0.1, 0.2], weight=[1.0, 1.0])
        """
        known = self._known
        new = NewPages([], [], [])
        weights = [1.0] * len(page) if weight is None else weight.tolist()
        for one, its_rate, its_weight in zip(page.tolist(), rate.tolist(), weights, strict=True):
            if one not in known:
                known.add(one)
                new.page.append(one)
                new.rate.append(its_rate)
                new.weight.append(its_weight)
        return new
