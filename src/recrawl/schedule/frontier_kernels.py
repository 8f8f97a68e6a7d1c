r"""The queues of the frontier as columns, in machine code.

Three structures, none of which ever holds a stale entry:

 * an index from page id to slot: open addressing, at most half full;
 * for each host a pairing heap of its pages by (due, page id), whose links are columns of the slots: a page is added
   in O(1), and taken from anywhere in O(log n) amortised;
 * two binary heaps of hosts: those that *wait*, by the moment when they can serve, and those that are *ready*, by their
   first page. Each host knows its place, so that it can be moved.

What politeness does behind the queues' back only puts hosts off, so it is put right when a host comes to the front.
Only imported where numba is installed.
"""

from __future__ import annotations

import math
from typing import Final, TypeAlias

import numpy as np
import numpy.typing as npt

from recrawl.model import BoolArray, FloatArray, IntArray
from recrawl.model.compiled import machine_code

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
ASKED: Final = 4
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


@machine_code
def _bucket(page: int, state: State) -> int:
    mixed = np.uint64(page) * _MIX
    mixed ^= mixed >> np.uint64(32)
    return np.int64(mixed & np.uint64(len(state[INDEX]) - 1))  # type: ignore[return-value]


@machine_code
def find(page: int, state: State) -> int:
    """The bucket of the page, or the empty one where it would be."""
    bucket = _bucket(page, state)
    while state[INDEX][bucket] != NONE and state[ID][state[INDEX][bucket]] != page:
        bucket = (bucket + 1) & (len(state[INDEX]) - 1)
    return bucket


@machine_code
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


@machine_code
def build_index(used: int, state: State) -> None:
    """Fill an empty index with all slots that hold a page."""
    for slot in range(used):
        if state[LINKS][slot, HOST] != NONE:
            state[INDEX][find(state[ID][slot], state)] = slot


# -- the pages of a host ----------------------------------------------------------------------


@machine_code
def _before(a: int, b: int, state: State) -> bool:
    due = state[DUE]
    return bool(due[a] < due[b] or (due[a] == due[b] and state[ID][a] < state[ID][b]))


@machine_code
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


@machine_code
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


@machine_code
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


@machine_code
def _sooner(a: int, b: int, where: int, state: State) -> bool:
    when = state[WHEN]
    if when[a] != when[b] or where == WAITING:
        return bool(when[a] < when[b])
    return bool(state[ID][state[AT][a, FIRST]] < state[ID][state[AT][b, FIRST]])


@machine_code
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


@machine_code
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


@machine_code
def _enter(host: int, where: int, state: State) -> None:
    place = state[COUNTS][where - 1]
    state[COUNTS][where - 1] += 1
    state[QUEUES][where - 1, place] = host
    state[AT][host, WHERE] = where
    _rise(place, where, state)


@machine_code
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


@machine_code
def _servable(host: int, state: State) -> float:
    """When the host can next serve a page; inf if it has none or is being asked."""
    first = state[AT][host, FIRST]
    if first == NONE or state[BUSY][host]:
        return math.inf
    return float(max(state[DUE][first], state[FREE_AT][host]))


@machine_code
def _settle(host: int, state: State) -> None:
    """Put a host that is in no queue where it belongs: among the waiting, or nowhere."""
    when = _servable(host, state)
    state[AT][host, WHERE] = NOWHERE
    if when < math.inf:
        state[WHEN][host] = when
        _enter(host, WAITING, state)


# -- what the frontier calls ------------------------------------------------------------------


@machine_code
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


@machine_code
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


@machine_code
def _drop(slot: int, state: State) -> None:
    """Free a slot that is in no heap."""
    _forget(find(state[ID][slot], state), state)
    state[LINKS][slot, HOST], state[LINKS][slot, NEXT] = NONE, state[COUNTS][FREE]
    state[COUNTS][FREE] = slot
    state[COUNTS][OFFERS] -= 1


@machine_code
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


@machine_code
def hand_out(now: float, state: State, page: IntArray, host: IntArray) -> tuple[int, float]:
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
        state[ASKED][one] = state[ID][slot]
        state[BUSY][one] = True
        _unlink(slot, state)
        _drop(slot, state)
    return found, now


@machine_code
def take_back(host: IntArray, state: State) -> None:
    """Place hosts whose requests have ended."""
    for one in host:
        _leave(one, state)
        _settle(one, state)
