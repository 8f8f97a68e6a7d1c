"""The ready queue: leased pages and auxiliary fetches, each in the frontier until it is due and its host is free."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress

import numpy as np

from recrawl.crawl.visit.visit_target import VisitTarget
from recrawl.crawl.worker.lease_pool import LeasePool
from recrawl.crawl.worker.sitemap_feed_poller import AuxiliaryFetches
from recrawl.detect import PageState
from recrawl.model import IntArray
from recrawl.schedule.frontier.frontier_heaps import Fetches
from recrawl.schedule.frontier.host_frontier import Frontier
from recrawl.store.store_values import LeasedPages


class ReadyQueue:
    """Keeps the frontier and the lease pool in step: each waiting target is in both."""

    def __init__(self, frontier: Frontier, lease_pool: LeasePool, auxiliary_fetches: AuxiliaryFetches) -> None:
        self._frontier = frontier
        self._lease_pool = lease_pool
        self._auxiliary_fetches = auxiliary_fetches

    def hold(
        self, leased: LeasedPages, known: Sequence[PageState | None], sources: Mapping[int, tuple[str, str]]
    ) -> None:
        """Queue leased pages with their state and access methods."""
        self._lease_pool.hold(leased, known, sources)
        self._frontier.offer(leased.page, leased.host, leased.due)

    def join(self, auxiliary_fetches: Iterable[VisitTarget]) -> None:
        """Queue auxiliary fetches at their due times."""
        for auxiliary in auxiliary_fetches:
            self._offer(auxiliary)

    def next_many(self, now: float, most: int) -> Fetches:
        """The next targets. Each has to be taken, and then ``done``, ``put_back`` or ``defer``."""
        return self._frontier.next_many(now, most)

    def take(self, page: int) -> VisitTarget:
        """Take a page or an auxiliary fetch out to request it."""
        return self._auxiliary_fetches.take(page) if page < 0 else self._lease_pool.take(page)

    def enter(self, target: VisitTarget, now: float) -> float:
        """Reserve the host of an auxiliary fetch or redirected page; return when to try again, or ``-inf``."""
        return self._lease_pool.enter(target, now)

    def waited(self, target: VisitTarget, now: float) -> float:
        """Seconds for which a target has waited for a host that others hold."""
        return self._lease_pool.waited(target, now)

    def leave(self, target: VisitTarget, ready: float) -> None:
        """End the request for such a target; its host pauses until ``ready``."""
        self._lease_pool.leave(target, ready)

    def free_hosts(self) -> None:
        """Return the reserved hosts whose requests ended."""
        self._lease_pool.free_hosts()

    def done(self, target: VisitTarget, ended: float, duration: float) -> None:
        """Record that the request ended after ``duration`` seconds; the pause of its host starts."""
        self._frontier.done(target.page, target.host, ended, duration)

    def let_go(self, target: VisitTarget, ended: float) -> None:
        """Free the host of a target if that was not done yet, because our own code failed before."""
        with suppress(ValueError):  # it was done
            self._frontier.done(target.page, target.host, ended, 0.0)

    def leave_out(self, target: VisitTarget) -> None:
        """Take a page out of the queue, as if it were being visited."""
        self._lease_pool.forget(target.page)
        self._withdraw(np.array([target.page], np.int64))

    def spared(self, target: VisitTarget) -> None:
        """Record that a target needed no request; its host stays as free as before."""
        self._lease_pool.stop_waiting(target)
        self._frontier.spared(target.page, target.host)

    def put_back(self, target: VisitTarget) -> None:
        """Queue a target to be requested again, or for the first time, in the next turn of its host."""
        self._keep(target)
        self._offer(target)

    def defer(self, target: VisitTarget, until: float) -> None:
        """Queue a target until ``until``. Nothing was sent, so its host does not pause."""
        self._keep(target)
        self._frontier.give_back(target.page, target.host, target.due, until)

    def take_moved(self, host: int) -> list[VisitTarget]:
        """Take out every page that a redirect led to this host."""
        moved = self._lease_pool.take_moved(host)
        self._withdraw(np.array([target.page for target in moved], np.int64))
        return moved

    def take_unconfirmed(self) -> list[VisitTarget]:
        """Take out every page that waits for its confirmation."""
        seen = self._lease_pool.take_unconfirmed()
        self._withdraw(np.array([target.page for target in seen], np.int64))
        return seen

    def renew(self, now: float, running: Sequence[int]) -> int:
        """Renew our leases; if another worker took one of them, empty the queue.

        Returns the number of pages removed.
        """
        lost = self._lease_pool.renew(now, running)
        self._withdraw(lost)
        return len(lost)

    def give_back(self, host: int) -> None:
        """Return the pages of a host that have no exchange under way."""
        self._withdraw(self._lease_pool.give_back(host))

    def empty(self, *, begun: bool = True) -> None:
        """Return every page, or (``begun=False``) only those without an exchange; auxiliary fetches stay."""
        self._withdraw(self._lease_pool.empty(begun=begun))

    def _keep(self, target: VisitTarget) -> None:
        (self._auxiliary_fetches if target.is_auxiliary else self._lease_pool).put_back(target)

    def _offer(self, target: VisitTarget) -> None:
        self._frontier.offer(np.array([target.page]), np.array([target.host]), np.array([target.due]))

    def _withdraw(self, pages: IntArray) -> None:
        self._frontier.withdraw(pages)
