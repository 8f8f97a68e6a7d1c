"""The line: pages in hand and errands, each waiting in the frontier until it is due and its host is free."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress

import numpy as np

from recrawl.crawl.errands import Errands
from recrawl.crawl.hands import Hands
from recrawl.crawl.target import Target
from recrawl.detect import Known
from recrawl.model import IntArray
from recrawl.schedule.frontier import Frontier
from recrawl.schedule.frontier_queues import Fetches
from recrawl.store.values import Leased


class Line:
    """Keeps the frontier and what waits in it in step: nothing is in hand and not on offer, nor the other way round."""

    def __init__(self, frontier: Frontier, hands: Hands, errands: Errands) -> None:
        self._frontier = frontier
        self._hands = hands
        self._errands = errands

    def hold(self, leased: Leased, known: Sequence[Known | None], sources: Mapping[int, tuple[str, str]]) -> None:
        """Take in pages that were leased, with what is known of them and how they are asked for."""
        self._hands.hold(leased, known, sources)
        self._frontier.offer(leased.page, leased.host, leased.due)

    def join(self, errands: Iterable[Target]) -> None:
        """Take in errands, due as they say."""
        for errand in errands:
            self._offer(errand)

    def next_many(self, now: float, most: int) -> Fetches:
        """Whose turn it is. Each has to be taken, and then to be ``done``, ``put_back`` or ``turned_away``."""
        return self._frontier.next_many(now, most)

    def take(self, page: int) -> Target:
        """Set out for a page, or on an errand."""
        return self._errands.take(page) if page < 0 else self._hands.take(page)

    def done(self, target: Target, ended: float, duration: float) -> None:
        """The request for it ended after so many seconds; the pause of its host begins."""
        self._frontier.done(target.page, target.host, ended, duration)

    def let_go(self, target: Target, ended: float) -> None:
        """Free the host of a target if that was not done yet: our own code failed on the way to it."""
        with suppress(ValueError):  # it was done
            self._frontier.done(target.page, target.host, ended, 0.0)

    def leave_out(self, target: Target) -> None:
        """Take a page out of the line, as if it were being visited."""
        self._hands.forget(target.page)
        self._withdraw(np.array([target.page], np.int64))

    def spared(self, target: Target) -> None:
        """Nothing had to be asked to be done with it; its host is as free as before."""
        self._frontier.spared(target.page, target.host)

    def put_back(self, target: Target) -> None:
        """It has to be asked for again, or for the first time, when its host has its turn."""
        self._keep(target)
        self._offer(target)

    def turned_away(self, target: Target, until: float) -> None:
        """Nothing was asked, so nothing pauses; it waits until then."""
        self._keep(target)
        self._frontier.give_back(target.page, target.host, target.due, until)

    def take_moved(self, host: int) -> list[Target]:
        """Take out every page that a redirect led to this host."""
        moved = self._hands.take_moved(host)
        self._withdraw(np.array([target.page for target in moved], np.int64))
        return moved

    def take_seen(self) -> list[Target]:
        """Take out every page that waits for its second look."""
        seen = self._hands.take_seen()
        self._withdraw(np.array([target.page for target in seen], np.int64))
        return seen

    def renew(self, now: float, running: Sequence[int]) -> int:
        """Keep the leases we have; if somebody took one of ours, nobody is left in the line. How many that were."""
        lost = self._hands.renew(now, running)
        self._withdraw(lost)
        return len(lost)

    def give_back(self, host: int) -> None:
        """Give back the pages of a host that nobody has begun with."""
        self._withdraw(self._hands.give_back(host))

    def empty(self, *, begun: bool = True) -> None:
        """Give back every page, or those alone that nobody has begun with; errands stay."""
        self._withdraw(self._hands.empty(begun=begun))

    def _keep(self, target: Target) -> None:
        (self._errands if target.is_errand else self._hands).put_back(target)

    def _offer(self, target: Target) -> None:
        self._frontier.offer(np.array([target.page]), np.array([target.host]), np.array([target.due]))

    def _withdraw(self, pages: IntArray) -> None:
        self._frontier.withdraw(pages)
