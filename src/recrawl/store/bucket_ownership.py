"""Which worker owns which bucket, and the moves of buckets between workers.

Rules of this file:

1. Only the owner of a bucket leases pages of its hosts, and only while the bucket has no heir.
2. A bucket changes hands in three ways: a worker claims one that nobody owns; its owner hands it over to its heir, once
   it has no lease in it or has waited long enough; or its owner leaves or is dead.
3. Each change of hands raises the token of the bucket. A lease carries the token under which it was made, so a visit by
   a worker that lost the bucket meanwhile cannot change the page any more.
4. Hosts are reserved beside that (``page_leases``): a host with a request under way is left alone, whoever owns it.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from recrawl.model import IntArray
from recrawl.store.engine.database import DatabaseSession
from recrawl.store.store_values import BucketRows
from recrawl.urls import BUCKETS


def buckets(session: DatabaseSession) -> BucketRows:
    """All buckets; one without a row was never owned."""
    owner: list[str | None] = [None] * BUCKETS
    heir: list[str | None] = [None] * BUCKETS
    token, since = np.zeros(BUCKETS, np.int64), np.zeros(BUCKETS)
    for number, owned_by, count, given_to, time in session.rows(session.statements.buckets):
        owner[number], heir[number], token[number], since[number] = owned_by, given_to, count, time
    return BucketRows(owner, heir, token, since)


def claim(session: DatabaseSession, worker: str, wanted: IntArray, now: float) -> int:
    """Take buckets that nobody owns, or whose owner is in the registry no more."""
    if not len(wanted):
        return 0
    columns = ([worker] * len(wanted), np.ones(len(wanted), np.int64), np.full(len(wanted), now))
    return session.apply(session.statements.claim_buckets, np.sort(wanted), *columns)


def plan_moves(  # noqa: PLR0913, PLR0917 - as the store's own call
    session: DatabaseSession, worker: str, moving: IntArray, heirs: Sequence[str], kept: IntArray, now: float
) -> int:
    """Name the heirs of buckets of this worker, which leases no more of their pages; ``kept`` buckets have none."""
    session.rows(session.statements.lock_buckets_of, worker)
    if len(kept):
        session.run(session.statements.keep_buckets, worker, kept)
    named = np.array(heirs, dtype=object)
    return sum(
        session.run(session.statements.move_buckets, heir, now, worker, np.ascontiguousarray(moving[named == heir]))
        for heir in sorted(set(heirs))
    )


def hand_over(session: DatabaseSession, worker: str, now: float, patience: float) -> int:
    """Give buckets to their heirs that have no lease of this worker, or have waited for that for ``patience``."""
    session.rows(session.statements.lock_buckets_of, worker)
    return session.run(session.statements.hand_over, now, worker, now - patience)


def release(session: DatabaseSession, worker: str, now: float) -> int:
    """Give all buckets of a worker away at once: to their heirs, or to nobody. Nobody waits for it as an heir.

    Its demand for visits ends with that.
    """
    session.rows(session.statements.lock_buckets_of, worker)
    session.run(session.statements.forget_heir, worker)
    for statement in session.statements.withdraw_partition:
        session.run(statement, worker)
    return session.run(session.statements.release_buckets, now, worker)
