"""What a worker has in its hands: the pages it leased and has not visited yet."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from types import MappingProxyType

import numpy as np

from recrawl.crawl.target import Target
from recrawl.detect import Known
from recrawl.model import IntArray
from recrawl.store.base import Store
from recrawl.store.values import Leased

_NONE: Mapping[int, tuple[str, str]] = MappingProxyType({})
_RENEW_AFTER = 1 / 3
"""Share of their time after which leases are renewed."""
GRACE = 20.0
"""Seconds in which every worker finds that the clock was set, and keeps its leases."""
_AT_ONCE = 512
"""Pages leased in one go: to read what is known of more would hold up those that are due now."""
_POLL = 1.0
"""Seconds until the store is asked again at the earliest, although it had nothing."""
_SOON = 0.02
"""The same where the store knows when it will have something. Hosts that wait for each other's pages would be asked
together from then on, and so ever after."""


class Hands:
    """Leases of one worker: taken when there is room, renewed in time, given back in the end."""

    def __init__(  # noqa: PLR0913, PLR0917 - how much, and for how long
        self, worker: str, store: Store, size: int, per_host: int, lease_time: float, poll: float
    ) -> None:
        self._worker = worker
        self._store = store
        self._size = size
        self._per_host = per_host
        self._lease_time = lease_time
        self._poll = poll
        self._targets: dict[int, Target] = {}
        self._ask_at = self._not_before = -math.inf
        self.renew_at = math.inf
        """When the leases must be renewed, seconds since the epoch; infinity without leases."""

    def __len__(self) -> int:
        """Pages in hand."""
        return len(self._targets)

    def pages(self) -> list[int]:
        """The pages in hand."""
        return list(self._targets)

    @property
    def lease_at(self) -> float:
        """When it makes sense to ask for more, seconds since the epoch; infinity while the hands are full."""
        return max(self._ask_at, self._not_before) if len(self._targets) < self._size else math.inf

    def start_empty(self) -> None:
        """Give back what an earlier run under our name may have left."""
        self._store.acknowledge(self._worker)
        self._targets = {}
        self._ask_at, self.renew_at = -math.inf, math.inf

    def look_again(self) -> None:
        """Something changed: the store may have pages for us."""
        self._ask_at = -math.inf

    def lease(self, now: float, share: tuple[int, int] = (0, 1)) -> Leased | None:
        """Take due pages if there is room and any are to be had.

        ``share`` is our place among so many workers. Each has hosts of its own, so that a quick worker does not keep
        all of them to itself; one that has nothing left to do helps the others.
        """
        if now < self.lease_at:
            return None
        room = min(self._size - len(self._targets), _AT_ONCE)
        leased = self._ask(now, room, share)
        if not (len(leased) or self._targets) and share[1] > 1:
            leased = self._ask(now, max(room // share[1], 1), (0, 1))
        if len(leased) < room:  # that is all there is for now
            poll = self._poll if share[1] == 1 else _POLL  # others may give hosts back at any time
            ready_at = self._store.next_due()
            self._ask_at = min(max(ready_at, now + (_SOON if ready_at > now else _POLL)), now + poll)
        if not len(leased):
            return None
        self.renew_at = min(self.renew_at, now + self._lease_time * _RENEW_AFTER)
        return leased

    def _ask(self, now: float, room: int, share: tuple[int, int]) -> Leased:
        return self._store.lease(self._worker, now, room, per_host=self._per_host, ttl=self._lease_time, share=share)

    def hold(
        self, leased: Leased, known: Sequence[Known | None], sources: Mapping[int, tuple[str, str]] = _NONE
    ) -> None:
        """Keep what was leased, with what is known of it and how it is asked for."""
        columns = zip(leased.page.tolist(), leased.host.tolist(), leased.url, leased.due.tolist(), known, strict=True)
        for row in columns:
            self._targets[row[0]] = Target(*row, source=sources.get(row[0]))

    def take(self, page: int) -> Target:
        """Go and visit this page; its lease stays until the visit is recorded."""
        return self._targets.pop(page)

    def put_back(self, target: Target) -> None:
        """It was not visited yet."""
        self._targets[target.page] = target

    def forget(self, page: int) -> None:
        """A page is not in hand any more, as if it had been taken; its lease stays."""
        self._targets.pop(page, None)

    def take_moved(self, host: int) -> list[Target]:
        """Take out every page that a redirect led to this host and that waits for its turn there."""
        moved = [one for one in self._targets.values() if one.host == host and one.home is not None]
        for target in moved:
            self._targets.pop(target.page)
        return moved

    def take_seen(self) -> list[Target]:
        """Take every page that waits for its second look."""
        seen = [target for target in self._targets.values() if target.seen is not None]
        for target in seen:
            del self._targets[target.page]
        return seen

    def give_back(self, host: int) -> IntArray:
        """Give back the pages of a host that nobody has begun with; returns them. O(pages in hand)."""
        targets = [target for target in self._targets.values() if target.host == host and not target.is_begun]
        pages = np.array([one.page for one in targets], dtype=np.int64)
        if len(pages):
            self._store.acknowledge(self._worker, pages)
        for page in pages.tolist():
            del self._targets[page]
        return pages

    def renew(self, now: float, running: Sequence[int]) -> IntArray:
        """Renew the leases in hand and on the road when a third of their time is over.

        Returns the pages that must not be visited any more: if somebody took one of ours, all that we have not set
        out for yet are given back.
        """
        if now < self.renew_at:
            return np.empty(0, np.int64)
        held = np.unique(np.array([*self._targets, *running], dtype=np.int64))
        kept = self._store.renew(self._worker, now, ttl=self._lease_time, pages=held) if len(held) else 0
        self.renew_at = now + self._lease_time * _RENEW_AFTER if kept else math.inf
        return self.empty() if kept < len(held) else np.empty(0, np.int64)

    def check_soon(self) -> None:
        """Others may have taken us for dead: see which leases are still ours before anything is asked for."""
        if math.isfinite(self.renew_at):
            self.renew_at = -math.inf

    def keep(self, now: float) -> None:
        """Renew all leases if that is overdue: for a thread, beside a loop that is busy. Lost ones stay lost."""
        if now > self.renew_at + self._lease_time * _RENEW_AFTER / 2 > -math.inf:
            self._store.renew(self._worker, now, ttl=self._lease_time)

    def leap(self, before: float, seconds: float, running: Sequence[int], *, alone: bool = False) -> None:
        """The clock, which read ``before``, was set by so many seconds: keep our leases, and let others keep theirs.

        Taking new pages drops leases that have ended, and by the new time all have. So nobody is asked for pages until
        everybody can have renewed his own. Whoever is ``alone`` need not wait for others.
        """
        held = np.unique(np.array([*self._targets, *running], dtype=np.int64))
        now = before + seconds
        if len(held):
            self._store.renew(self._worker, before, ttl=seconds + self._lease_time, pages=held)
            self.renew_at = now + self._lease_time * _RENEW_AFTER
        self._not_before = now if alone else now + GRACE

    def drop_strays(self, running: Sequence[int]) -> None:
        """Give back leases that we have and do not know of: a call that took them failed on its way back."""
        strays = np.setdiff1d(self._store.held(self._worker), [*self._targets, *running]).astype(np.int64)
        if len(strays):
            self._store.acknowledge(self._worker, strays)

    def empty(self, *, begun: bool = True) -> IntArray:
        """Give back every page that was not visited, or those alone that nobody has begun with; returns them."""
        kept = {} if begun else {page: target for page, target in self._targets.items() if target.is_begun}
        pages = np.array([page for page in self._targets if page not in kept], dtype=np.int64)
        self._store.acknowledge(self._worker, pages)
        self._targets = kept
        self._ask_at = -math.inf
        return pages
