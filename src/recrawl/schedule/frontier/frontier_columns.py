"""The queues of a large frontier: columns and compiled kernels, 45 to 110 bytes per page including spare capacity.

Three structures, none of which ever has a stale entry:

 * an index from page id to slot: open addressing, at most half full;
 * for each host a pairing heap of its pages by (due, page id), whose links are columns of the slots: adding a page
   takes O(1), removing any page O(log n) amortised;
 * two binary heaps of hosts: those that *wait*, by the time when they can serve, and those that are *ready*, by their
   first page. Each host stores its position, so that it can be moved.

Politeness can only delay hosts behind the back of the queues, so a host is re-checked when it reaches the front.
Imported only where numba is installed.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Final, TypeAlias

import numpy as np
import numpy.typing as npt

from recrawl.model import BoolArray, FloatArray, IntArray
from recrawl.model.compiled import compiled_now
from recrawl.schedule.frontier.host_frontier import Fetches
from recrawl.schedule.politeness.host_politeness import Politeness

Slots: TypeAlias = npt.NDArray[np.int32]

State: TypeAlias = tuple[
    IntArray, FloatArray, Slots, FloatArray, IntArray, Slots, Slots, Slots, IntArray, FloatArray, BoolArray
]
"""All columns, in the order of the next names."""
ID: Final = 0
"""Page of a slot."""
DUE: Final = 1
LINKS: Final = 2
"""Of a slot: its host, first child, next sibling, and the sibling or parent before it."""
HOST, CHILD, NEXT, BEFORE = 0, 1, 2, 3
WHEN: Final = 3
"""What a host is queued by: when it can serve while it waits, when its first page was due once it is ready."""
IN_FLIGHT: Final = 4
"""The page a host is being asked for."""
AT: Final = 5
"""Of a host: the slot of its first page, its place in a queue, and in which."""
FIRST, PLACE, WHERE = 0, 1, 2
INDEX: Final = 6
"""The slot of a page, by buckets."""
QUEUES: Final = 7
"""Hosts that wait, and hosts that are ready: two heaps."""
COUNTS: Final = 8
FREE_AT: Final = 9
"""A host may be asked; owned by politeness."""
BUSY: Final = 10

NONE = -1
LOOSE = -2
"""``before`` of a slot that is in no heap."""
NOWHERE, WAITING, READY, LIFTED = 0, 1, 2, 3
"""``where`` a host is; lifted: to be placed at the end of the call."""
OFFERS, USED, FREE = 2, 3, 4
"""Places in the counts, after those of the two queues: pages on offer, slots ever used, the first free slot."""

_MIX = np.uint64(0x9E3779B97F4A7C15)


# -- the index --------------------------------------------------------------------------------


@compiled_now
def _bucket(page: int, state: State) -> int:
    mixed = np.uint64(page) * _MIX
    mixed ^= mixed >> np.uint64(32)
    return np.int64(mixed & np.uint64(len(state[INDEX]) - 1))  # type: ignore[return-value]


@compiled_now
def find(page: int, state: State) -> int:
    """The bucket of the page, or the empty one where it would be."""
    bucket = _bucket(page, state)
    while state[INDEX][bucket] != NONE and state[ID][state[INDEX][bucket]] != page:
        bucket = (bucket + 1) & (len(state[INDEX]) - 1)
    return bucket


@compiled_now
def _forget(bucket: int, state: State) -> None:
    """Empty a bucket and move those after it up, so that nothing becomes unreachable."""
    mask = len(state[INDEX]) - 1
    hole = bucket
    after = (bucket + 1) & mask
    while state[INDEX][after] != NONE:
        wanted = _bucket(state[ID][state[INDEX][after]], state)
        if (after - wanted) & mask >= (after - hole) & mask:
            state[INDEX][hole] = state[INDEX][after]
            hole = after
        after = (after + 1) & mask
    state[INDEX][hole] = NONE


@compiled_now
def build_index(used: int, state: State) -> None:
    """Fill an empty index with all slots that hold a page."""
    for slot in range(used):
        if state[LINKS][slot, HOST] != NONE:
            state[INDEX][find(state[ID][slot], state)] = slot


# -- the pages of a host ----------------------------------------------------------------------


@compiled_now
def _before(a: int, b: int, state: State) -> bool:
    due = state[DUE]
    return bool(due[a] < due[b] or (due[a] == due[b] and state[ID][a] < state[ID][b]))


@compiled_now
def _link(a: int, b: int, state: State) -> int:
    """One heap of two; its first page."""
    if _before(b, a, state):
        a, b = b, a
    child = state[LINKS][a, CHILD]
    state[LINKS][b, NEXT] = child
    if child != NONE:
        state[LINKS][child, BEFORE] = b
    state[LINKS][b, BEFORE] = a
    state[LINKS][a, CHILD] = b
    return a


@compiled_now
def _join(first: int, state: State) -> int:
    """One heap of siblings: in pairs from the left, then all from the right."""
    pairs, a = NONE, first
    while a != NONE:
        b = state[LINKS][a, NEXT]
        rest = NONE if b == NONE else state[LINKS][b, NEXT]
        if b != NONE:
            a = _link(a, b, state)
        state[LINKS][a, NEXT] = pairs
        pairs, a = a, rest
    if pairs == NONE:
        return NONE
    root = pairs
    pairs = state[LINKS][root, NEXT]
    while pairs != NONE:
        rest = state[LINKS][pairs, NEXT]
        root = _link(root, pairs, state)
        pairs = rest
    state[LINKS][root, NEXT] = NONE
    state[LINKS][root, BEFORE] = NONE
    return root


@compiled_now
def _unlink(slot: int, state: State) -> None:
    """Take a page out of the heap of its host."""
    host = state[LINKS][slot, HOST]
    children = _join(state[LINKS][slot, CHILD], state)
    before, after = state[LINKS][slot, BEFORE], state[LINKS][slot, NEXT]
    if before == NONE:
        state[AT][host, FIRST] = children
    else:
        if state[LINKS][before, CHILD] == slot:
            state[LINKS][before, CHILD] = after
        else:
            state[LINKS][before, NEXT] = after
        if after != NONE:
            state[LINKS][after, BEFORE] = before
        if children != NONE:
            root = _link(state[AT][host, FIRST], children, state)
            state[LINKS][root, NEXT], state[LINKS][root, BEFORE] = NONE, NONE
            state[AT][host, FIRST] = root
    state[LINKS][slot, CHILD], state[LINKS][slot, NEXT], state[LINKS][slot, BEFORE] = NONE, NONE, LOOSE


# -- the queues of hosts ----------------------------------------------------------------------


@compiled_now
def _sooner(a: int, b: int, where: int, state: State) -> bool:
    when = state[WHEN]
    if when[a] != when[b] or where == WAITING:
        return bool(when[a] < when[b])
    return bool(state[ID][state[AT][a, FIRST]] < state[ID][state[AT][b, FIRST]])


@compiled_now
def _rise(place: int, where: int, state: State) -> int:
    queue = state[QUEUES][where - 1]
    host = queue[place]
    while place > 0:
        parent = (place - 1) >> 1
        if not _sooner(host, queue[parent], where, state):
            break
        queue[place] = queue[parent]
        state[AT][queue[place], PLACE] = place
        place = parent
    queue[place] = host
    state[AT][host, PLACE] = place
    return place


@compiled_now
def _sink(place: int, where: int, state: State) -> None:
    queue, size = state[QUEUES][where - 1], state[COUNTS][where - 1]
    host = queue[place]
    while 2 * place + 1 < size:
        child = 2 * place + 1
        if child + 1 < size and _sooner(queue[child + 1], queue[child], where, state):
            child += 1
        if not _sooner(queue[child], host, where, state):
            break
        queue[place] = queue[child]
        state[AT][queue[place], PLACE] = place
        place = child
    queue[place] = host
    state[AT][host, PLACE] = place


@compiled_now
def _enter(host: int, where: int, state: State) -> None:
    place = state[COUNTS][where - 1]
    state[COUNTS][where - 1] += 1
    state[QUEUES][where - 1, place] = host
    state[AT][host, WHERE] = where
    _rise(place, where, state)


@compiled_now
def _leave(host: int, state: State) -> None:
    """Take a host out of its queue; to be called before its first page changes."""
    where = state[AT][host, WHERE]
    if where in (NOWHERE, LIFTED):
        return
    place = state[AT][host, PLACE]
    state[COUNTS][where - 1] -= 1
    last = state[COUNTS][where - 1]
    state[AT][host, WHERE] = NOWHERE
    if place != last:
        state[QUEUES][where - 1, place] = state[QUEUES][where - 1, last]
        _sink(_rise(place, where, state), where, state)


@compiled_now
def _servable(host: int, state: State) -> float:
    """When the host can next serve a page; inf if it has none or is being asked."""
    first = state[AT][host, FIRST]
    if first == NONE or state[BUSY][host]:
        return math.inf
    return float(max(state[DUE][first], state[FREE_AT][host]))


@compiled_now
def _settle(host: int, state: State) -> None:
    """Put a host that is in no queue where it belongs: among the waiting, or nowhere."""
    when = _servable(host, state)
    state[AT][host, WHERE] = NOWHERE
    if when < math.inf:
        state[WHEN][host] = when
        _enter(host, WAITING, state)


# -- what the frontier calls ------------------------------------------------------------------


@compiled_now
def take_in(page: IntArray, host: IntArray, due: FloatArray, state: State, loose: Slots) -> int:
    """Give every page a slot with its new due time and host, in no heap yet. Fills ``loose``; how many they are."""
    found = 0
    for i in range(len(page)):
        bucket = find(page[i], state)
        slot = int(state[INDEX][bucket])
        if slot == NONE:
            slot = int(state[COUNTS][FREE])
            if slot == NONE:
                slot = int(state[COUNTS][USED])
                state[COUNTS][USED] += 1
            else:
                state[COUNTS][FREE] = state[LINKS][slot, NEXT]
            state[INDEX][bucket] = slot
            state[COUNTS][OFFERS] += 1
            state[ID][slot] = page[i]
            state[LINKS][slot, CHILD], state[LINKS][slot, NEXT], state[LINKS][slot, BEFORE] = NONE, NONE, LOOSE
            loose[found] = slot
            found += 1
        elif state[LINKS][slot, BEFORE] != LOOSE:
            old = state[LINKS][slot, HOST]
            leads = state[AT][old, FIRST] == slot
            if leads:
                _leave(old, state)
            _unlink(slot, state)
            if leads:
                _settle(old, state)
            loose[found] = slot
            found += 1
        state[DUE][slot], state[LINKS][slot, HOST] = due[i], host[i]
    return found


@compiled_now
def put_in(loose: Slots, state: State) -> None:
    """Add loose slots to the heaps of their hosts, and place the hosts whose first page this changed."""
    for slot in loose:
        host = state[LINKS][slot, HOST]
        first = state[AT][host, FIRST]
        if first == NONE:
            _leave(host, state)
            state[AT][host, WHERE] = LIFTED
            state[LINKS][slot, BEFORE] = NONE
            state[AT][host, FIRST] = slot
            continue
        if _before(slot, first, state):
            _leave(host, state)
            state[AT][host, WHERE] = LIFTED
        root = _link(first, slot, state)
        state[LINKS][root, NEXT], state[LINKS][root, BEFORE] = NONE, NONE
        state[AT][host, FIRST] = root
    for slot in loose:
        host = state[LINKS][slot, HOST]
        if state[AT][host, WHERE] == LIFTED:
            _settle(host, state)


@compiled_now
def _drop(slot: int, state: State) -> None:
    """Free a slot that is in no heap."""
    _forget(find(state[ID][slot], state), state)
    state[LINKS][slot, HOST], state[LINKS][slot, NEXT] = NONE, state[COUNTS][FREE]
    state[COUNTS][FREE] = slot
    state[COUNTS][OFFERS] -= 1


@compiled_now
def take_off(page: IntArray, state: State) -> None:
    """Withdraw pages."""
    for one in page:
        slot = int(state[INDEX][find(one, state)])
        if slot == NONE:
            continue
        host = state[LINKS][slot, HOST]
        leads = state[AT][host, FIRST] == slot
        if leads:
            _leave(host, state)
        _unlink(slot, state)
        _drop(slot, state)
        if leads:
            _settle(host, state)


@compiled_now
def pop_due(now: float, state: State, page: IntArray, host: IntArray) -> tuple[int, float]:
    """Fill ``page`` and ``host`` with what to fetch at ``now``; how many they are, and until when to wait for more."""
    found = 0
    while found < len(page):
        while state[COUNTS][WAITING - 1] > 0:
            one = int(state[QUEUES][WAITING - 1, 0])
            when = _servable(one, state)
            if when != state[WHEN][one]:
                _leave(one, state)
                _settle(one, state)
            elif when <= now:
                _leave(one, state)
                state[WHEN][one] = state[DUE][state[AT][one, FIRST]]
                _enter(one, READY, state)
            else:
                break
        if state[COUNTS][READY - 1] == 0:
            waiting = state[COUNTS][WAITING - 1] > 0
            return found, float(state[WHEN][state[QUEUES][WAITING - 1, 0]]) if waiting else math.inf
        one = int(state[QUEUES][READY - 1, 0])
        _leave(one, state)
        if _servable(one, state) > now:
            _settle(one, state)
            continue
        slot = int(state[AT][one, FIRST])
        page[found], host[found] = state[ID][slot], one
        found += 1
        state[IN_FLIGHT][one] = state[ID][slot]
        state[BUSY][one] = True
        _unlink(slot, state)
        _drop(slot, state)
    return found, now


@compiled_now
def take_back(host: IntArray, state: State) -> None:
    """Place hosts whose requests have ended."""
    for one in host:
        _leave(one, state)
        _settle(one, state)


_SORTED = 1_000
"""Of this many pages at once, the last due go in first: then every heap is a chain, and taking its first page is
O(1)."""


class ColumnQueues:
    """Pages on offer, for millions of pages. Only where numba is installed."""

    def __init__(self, politeness: Politeness) -> None:
        self._politeness = politeness
        self._id, self._due, self._links = np.empty(1024, np.int64), np.empty(1024), np.empty((1024, 4), np.int32)
        self._when, self._in_flight, self._at = np.empty(0), np.empty(0, np.int64), np.empty((0, 3), np.int32)
        self._index = np.full(2048, NONE, np.int32)
        self._queues = np.empty((2, 0), np.int32)
        self._counts = np.array([0, 0, 0, 0, NONE], np.int64)

    def __len__(self) -> int:
        """Pages on offer."""
        return int(self._counts[OFFERS])

    @property
    def nbytes(self) -> int:
        """Memory of all columns."""
        return sum(column.nbytes for column in self._state)

    def offer(self, page: IntArray, host: IntArray, due: FloatArray) -> None:
        """Add pages, or give them a new due time and host. O(1) each, and O(n log n) to sort many at once."""
        rows = self._politeness.rows(host)
        self._grow(len(page))
        loose = np.empty(len(page), np.int32)
        due = due.astype(np.float64)
        loose = loose[: take_in(page.astype(np.int64), rows, due, self._state, loose)]
        if len(loose) > _SORTED:
            loose = loose[np.argsort(-self._due[loose], kind="stable")]
        put_in(loose, self._state)

    def withdraw(self, page: IntArray) -> None:
        """Take pages off. O(log n) each."""
        self._grow(0)
        take_off(page.astype(np.int64), self._state)

    def next_many(self, now: float, most: int) -> Fetches:
        """Up to ``most`` pages to fetch at ``now``, each taken off, and its host until ``done``. O(log n) each."""
        self._grow(0)
        page, row = np.empty(most, np.int64), np.empty(most, np.int64)
        found, until = pop_due(now, self._state, page, row)
        return Fetches(page[:found], self._politeness.hosts(row[:found]), until)

    def done(self, page: int, host: int, now: float, duration: float) -> None:
        """This fetch has ended after N seconds; its host starts its pause. O(log n)."""
        self.done_many(np.array([page]), np.array([host]), now, np.array([duration]))

    def done_many(self, page: IntArray, host: IntArray, now: float, duration: FloatArray) -> None:
        """These fetches have ended after N seconds each; their hosts start their pauses. O(log n) each."""
        rows = self._politeness.rows(host)
        self._grow(0)
        if len(rows) == 1:
            wrong = 0 if self._in_flight[rows[0]] != page[0] or not self._politeness.columns[1][rows[0]] else None
        else:
            right = (self._in_flight[rows] == page) & self._politeness.columns[1][rows]
            wrong = 0 if len(np.unique(rows)) < len(rows) else None
            wrong = wrong if right.all() else int(np.argmin(right))
        if wrong is not None:
            raise ValueError(f"page {page[wrong]} of host {host[wrong]} is not being fetched")
        if len(rows) == 1:
            self._politeness.done(int(host[0]), now, float(duration[0]))
        else:
            self._politeness.done_many(rows, now, duration)
        take_back(rows, self._state)

    def undone(self, page: int, host: int, until: float) -> None:
        """This fetch did not take place; its host makes no pause, but is left alone until then. O(log n)."""
        rows = self._politeness.rows(np.array([host]))
        self._grow(0)
        if self._in_flight[rows[0]] != page or not self._politeness.columns[1][rows[0]]:
            raise ValueError(f"page {page} of host {host} is not being fetched")
        self._politeness.undone(host)
        self._politeness.block_until(host, until)
        take_back(rows, self._state)

    def adopt(self, in_flight: Mapping[int, int]) -> None:
        """Take over fetches that other queues handed out: of each host, which page."""
        rows = self._politeness.rows(np.fromiter(in_flight, np.int64, len(in_flight)))
        self._grow(0)
        self._in_flight[rows] = np.fromiter(in_flight.values(), np.int64, len(in_flight))

    # -- inside -------------------------------------------------------------------------------

    @property
    def _state(self) -> State:
        pages, hosts = (self._id, self._due, self._links), (self._when, self._in_flight, self._at)
        return *pages, *hosts, self._index, self._queues, self._counts, *self._politeness.columns

    def _grow(self, pages: int) -> None:
        """Enlarge the columns for more pages, and for all hosts that politeness knows."""
        hosts = len(self._politeness)
        if hosts > len(self._at):
            more = max(hosts, 3 * len(self._at) // 2) - len(self._at)
            self._when = np.concatenate([self._when, np.zeros(more)])
            self._in_flight = np.concatenate([self._in_flight, np.zeros(more, np.int64)])
            unknown = np.tile(np.array([NONE, 0, NOWHERE], np.int32), (more, 1))
            self._at = np.concatenate([self._at, unknown])
            self._queues = np.concatenate([self._queues, np.empty((2, more), np.int32)], axis=1)
        needed = len(self) + pages
        if needed > len(self._id):
            more = max(needed, 3 * len(self._id) // 2) - len(self._id)
            self._id = np.concatenate([self._id, np.empty(more, np.int64)])
            self._due = np.concatenate([self._due, np.empty(more)])
            self._links = np.concatenate([self._links, np.empty((more, 4), np.int32)])
        if 2 * needed > len(self._index):
            self._index = np.full(1 << int(2 * needed - 1).bit_length(), NONE, np.int32)
            build_index(int(self._counts[USED]), self._state)
