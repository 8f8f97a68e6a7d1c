"""Leased pages: the lease pool, the thread that renews their leases, and the queue of pages that are ready.

The lease pool holds pages that this worker leased and has not visited yet. The event loop reports every few seconds
that the worker lives, and renews its leases. A fit, a slow store or a busy machine may delay that for longer than other
workers wait. Then the thread does it.

The ready queue holds leased pages and auxiliary fetches, each in the frontier until it is due and its host is free.
"""

from __future__ import annotations

import math
import threading
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from types import MappingProxyType

import numpy as np

from recrawl.crawl.visit.visit_machine import VisitEvent, VisitTarget
from recrawl.crawl.worker.sitemap_feed_poller import AuxiliaryFetches
from recrawl.detect import PageState
from recrawl.errors import StoreError
from recrawl.model import IntArray
from recrawl.schedule.frontier.host_frontier import Fetches, Frontier
from recrawl.store.base import ScheduleStore
from recrawl.store.store_values import LeasedPages

_NONE: Mapping[int, tuple[str, str]] = MappingProxyType({})
_RENEW_AFTER = 1 / 3
"""Share of the lease time after which leases are renewed."""
GRACE = 20.0
"""Seconds in which every worker notices that the clock was set, and renews its leases."""
_AT_ONCE = 512
"""Pages leased in one call. Reading the state of more would delay those that are due now."""
_POLL = 1.0
"""Minimum seconds between two calls, although the store had nothing."""
_POLL_OF_ERRANDS = 15.0
"""The same for the host of a sitemap or feed, which can wait."""
_SOON = 0.02
"""The same where the store knows when it will have pages. Hosts that wait for each other's pages would be requested
together from then on."""


class LeasePool:
    """Leases of one worker: taken when there is room, renewed in time, returned at the end."""

    def __init__(  # noqa: PLR0913, PLR0917 - sizes and durations
        self, worker: str, store: ScheduleStore, size: int, per_host: int, lease_time: float, poll: float
    ) -> None:
        self._worker = worker
        self._store = store
        self._size = size
        self._per_host = per_host
        self._lease_time = lease_time
        self._poll = poll
        self._targets: dict[int, VisitTarget] = {}
        self._holds: dict[int, int] = {}
        """By target number, the page whose lease reserves a host for something else than its pages."""
        self._refused_since: dict[int, float] = {}
        """By target number, when the host that the target waits for was first refused."""
        self._lost: set[int] = set()
        """Pages that were under way when their leases were found lost, and may be put back later."""
        self._over: list[tuple[int, int, float]] = []
        """Hosts that were requested and are not returned yet: host, page, and when its pause ends."""
        self._ask_at = self._not_before = -math.inf
        self.renew_at = math.inf
        """When the leases must be renewed, seconds since the epoch; infinity without leases."""

    def __len__(self) -> int:
        """Number of pages in the pool."""
        return len(self._targets)

    def __contains__(self, page: int) -> bool:
        """Whether a page is in the pool."""
        return page in self._targets

    def pages(self) -> list[int]:
        """The pages in the pool."""
        return list(self._targets)

    @property
    def lease_at(self) -> float:
        """When to lease more, seconds since the epoch; infinity while the pool is full."""
        return max(self._ask_at, self._not_before) if len(self._targets) < self._size else math.inf

    def start_empty(self) -> None:
        """Return leases that an earlier run under our name may have left."""
        self._store.acknowledge(self._worker)
        _returned(self._targets.values())
        self._targets, self._holds, self._over, self._refused_since = {}, {}, [], {}
        self._ask_at, self.renew_at = -math.inf, math.inf

    def lease_soon(self) -> None:
        """Allow a lease call soon: the store may have pages for us."""
        self._ask_at = -math.inf

    def lease(self, now: float, workers: int = 1, *, owned: bool = False) -> LeasedPages | None:
        """Lease due pages if there is room and any are due; with ``owned``, only of hosts in our own buckets.

        ``workers`` is the number of live workers, who may return hosts at any time.
        """
        if now < self.lease_at:
            return None
        room = min(self._size - len(self._targets), _AT_ONCE)
        leased = self._store.lease(self._worker, now, room, per_host=self._per_host, ttl=self._lease_time, owned=owned)
        if len(leased) < room:  # that is all there is for now
            poll = self._poll if workers == 1 else _POLL
            ready_at = self._store.next_due(self._worker if owned else None)
            self._ask_at = min(max(ready_at, now + (_SOON if ready_at > now else _POLL)), now + poll)
        if not len(leased):
            return None
        self.renew_at = min(self.renew_at, now + self._lease_time * _RENEW_AFTER)
        return leased

    def hold(
        self, leased: LeasedPages, known: Sequence[PageState | None], sources: Mapping[int, tuple[str, str]] = _NONE
    ) -> None:
        """Store leased pages with their state and access methods."""
        columns = zip(leased.page.tolist(), leased.host.tolist(), leased.url, leased.due.tolist(), known, strict=True)
        for row, token in zip(columns, leased.token.tolist(), strict=True):
            self._targets[row[0]] = VisitTarget(*row, source=sources.get(row[0]), token=token)
        self._lost.difference_update(leased.page.tolist())

    def take(self, page: int) -> VisitTarget:
        """Take a page out to visit it; its lease stays until the visit is recorded."""
        return self._targets.pop(page)

    def put_back(self, target: VisitTarget) -> None:
        """Put back a page that was not visited yet."""
        self._targets[target.page] = target

    def forget(self, page: int) -> None:
        """Remove a page from the pool; its lease stays."""
        if (target := self._targets.pop(page, None)) is not None:
            target.machine.feed(VisitEvent.DROP)

    def enter(self, target: VisitTarget, now: float) -> float:
        """Reserve the host of a target that is no page of it: an auxiliary fetch, or a page that a redirect led there.

        Returns when to try again, seconds since the epoch; ``-inf`` if it may be requested now.
        """
        self._refused_since.setdefault(target.page, now)
        hold = self._store.hold_host(self._worker, target.host, now, ttl=self._lease_time)
        if hold.until > now:
            return min(hold.until, now + (_POLL if target.home is not None else _POLL_OF_ERRANDS))
        self._refused_since.pop(target.page, None)
        self._holds[target.page] = hold.page
        self.renew_at = min(self.renew_at, now + self._lease_time * _RENEW_AFTER)
        return -math.inf

    def waited(self, target: VisitTarget, now: float) -> float:
        """Seconds for which a target has waited for a host that others hold."""
        return now - self._refused_since.get(target.page, now)

    def stop_waiting(self, target: VisitTarget) -> None:
        """Record that the target no longer waits for its host."""
        self._refused_since.pop(target.page, None)

    def leave(self, target: VisitTarget, ready: float) -> None:
        """End the request for a target that is no page of its host; the host pauses until ``ready``."""
        if (page := self._holds.pop(target.page, None)) is not None:
            self._over.append((target.host, page, ready))

    def free_hosts(self) -> None:
        """Return the reserved hosts whose requests ended. Can be repeated if the store fails."""
        while self._over:
            host, page, ready = self._over[0]
            self._store.free_host(self._worker, host, page, ready)
            self._over.pop(0)

    def _holding(self) -> list[int]:
        """Pages that are leased only to reserve their hosts."""
        return [page for page in (*self._holds.values(), *(page for _, page, _ in self._over)) if page >= 0]

    def take_moved(self, host: int) -> list[VisitTarget]:
        """Take out every page that a redirect led to this host and that waits there."""
        moved = [one for one in self._targets.values() if one.host == host and one.home is not None]
        for target in moved:
            del self._targets[target.page]
        return moved

    def take_unconfirmed(self) -> list[VisitTarget]:
        """Take out every page that waits for its confirmation."""
        seen = [target for target in self._targets.values() if target.seen is not None]
        for target in seen:
            del self._targets[target.page]
        return seen

    def give_back(self, host: int) -> IntArray:
        """Return the pages of a host that have no exchange under way; the result lists them. O(pages in the pool)."""
        targets = [target for target in self._targets.values() if target.host == host and not target.is_begun]
        pages = np.array([one.page for one in targets], dtype=np.int64)
        if len(pages):
            self._store.acknowledge(self._worker, pages)
        _returned(targets)
        for page in pages.tolist():
            del self._targets[page]
        return pages

    def renew(self, now: float, running: Sequence[int]) -> IntArray:
        """Renew the leases of waiting and running pages when a third of their time is over.

        Returns the pages that must not be visited any more. If another worker took one of ours, all pages that were not
        requested yet are returned.
        """
        if now < self.renew_at:
            return np.empty(0, np.int64)
        held = np.unique(np.array([*self._targets, *running, *self._holding()], dtype=np.int64))
        kept = self._store.renew(self._worker, now, ttl=self._lease_time, pages=held) if len(held) else 0
        self.renew_at = now + self._lease_time * _RENEW_AFTER if kept else math.inf
        self._lost.intersection_update(running)
        if kept == len(held):
            return np.empty(0, np.int64)
        self._lost.update(set(running).difference(self._store.held(self._worker).tolist()))
        return self.empty()

    def drop_lost(self) -> IntArray:
        """Remove pages that were put back after their leases were found lost; the result lists them. O(lost pages)."""
        pages = [page for page in self._lost if page in self._targets]
        _returned([self._targets.pop(page) for page in pages])
        self._lost.difference_update(pages)
        return np.array(pages, dtype=np.int64)

    def check_soon(self) -> None:
        """Check soon which leases are still ours: other workers may have considered this one dead."""
        if math.isfinite(self.renew_at):
            self.renew_at = -math.inf

    def keep(self, now: float) -> None:
        """Renew all leases if that is overdue. For a thread beside a busy loop. Lost leases stay lost."""
        if now > self.renew_at + self._lease_time * _RENEW_AFTER / 2 > -math.inf:
            self._store.renew(self._worker, now, ttl=self._lease_time)

    def shift_clock(self, before: float, seconds: float, running: Sequence[int], *, alone: bool = False) -> None:
        """Renew our leases after the clock, which read ``before``, was set by ``seconds``; let others renew theirs.

        Leasing drops expired leases, and by the new time all are expired. So nothing is leased until every worker can
        have renewed its own. A worker that is ``alone`` need not wait.
        """
        held = np.unique(np.array([*self._targets, *running, *self._holding()], dtype=np.int64))
        now = before + seconds
        if len(held):
            self._store.renew(self._worker, before, ttl=seconds + self._lease_time, pages=held)
            self.renew_at = now + self._lease_time * _RENEW_AFTER
        self._not_before = now if alone else now + GRACE

    def drop_strays(self, running: Sequence[int]) -> None:
        """Return leases that we hold without knowing: the call that took them failed on its way back."""
        strays = np.setdiff1d(self._store.held(self._worker), [*self._targets, *running, *self._holding()]).astype(
            np.int64
        )
        if len(strays):
            self._store.acknowledge(self._worker, strays)

    def empty(self, *, begun: bool = True) -> IntArray:
        """Return every unvisited page, or (``begun=False``) those without an exchange; the result lists them."""
        kept = {} if begun else {page: target for page, target in self._targets.items() if target.is_begun}
        pages = np.array([page for page in self._targets if page not in kept], dtype=np.int64)
        self._store.acknowledge(self._worker, pages)
        _returned(target for page, target in self._targets.items() if page not in kept)
        self._targets = kept
        self._ask_at = -math.inf
        return pages


def _returned(targets: Iterable[VisitTarget]) -> None:
    """Tell these visits that their leases were returned."""
    for target in targets:
        target.machine.feed(VisitEvent.RETURN)


_CHECK_EVERY = 1.0
"""Seconds between two checks whether the loop is late."""


@contextmanager
def leases_kept(keep: Callable[[], None]) -> Iterator[None]:
    """Call ``keep`` every second in a thread while the block runs.

    If the store is unreachable, the next call retries.
    """
    over = threading.Event()

    def watch() -> None:
        while not over.wait(_CHECK_EVERY):
            with suppress(StoreError):
                keep()

    thread = threading.Thread(target=watch, name="lease keeper", daemon=True)
    thread.start()
    try:
        yield
    finally:
        over.set()
        thread.join()


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

    def free(self, page: int, host: int) -> None:
        """Free the host of a target that could not be requested, unless it is free by now."""
        with suppress(ValueError):  # it was
            self._frontier.spared(page, host)

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

    def drop_lost(self) -> None:
        """Remove pages that were under way when their leases were found lost, and were put back since."""
        self._withdraw(self._lease_pool.drop_lost())

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
