"""Which worker owns which bucket: fair, deterministic, and with as few moves as possible."""

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from recrawl.schedule.frontier.bucket_assignment import NOBODY, assign_buckets, numbered_owners
from recrawl.urls import BUCKETS


@st.composite
def owned(draw: st.DrawFn) -> tuple[np.ndarray, int]:
    workers = draw(st.integers(1, 40))
    seed = draw(st.integers(0, 2**32 - 1))
    size = draw(st.sampled_from([1, 7, 64, BUCKETS]))
    skew = draw(st.floats(0.3, 4.0))
    rng = np.random.default_rng(seed)
    return np.floor(rng.random(size) ** skew * (workers + 1)).astype(np.int64) - 1, workers


@given(owned())
def test_shares_differ_by_one_at_most(case: tuple[np.ndarray, int]) -> None:
    owner, workers = case
    planned = assign_buckets(owner, workers)
    counts = np.bincount(planned, minlength=workers)
    assert planned.min() >= 0
    assert counts.max() - counts.min() <= 1
    assert counts.sum() == len(owner)


@given(owned())
def test_no_fairer_assignment_moves_fewer(case: tuple[np.ndarray, int]) -> None:
    owner, workers = case
    moved = int((assign_buckets(owner, workers) != owner).sum())
    counts = np.sort(np.bincount(owner[owner >= 0], minlength=workers))[::-1]
    quotient, remainder = divmod(len(owner), workers)
    # Whoever gets the larger shares, a worker keeps no more than its share: best for those who own most.
    kept = np.minimum(counts, quotient + (np.arange(workers) < remainder)).sum()
    assert moved == len(owner) - kept


@given(owned())
def test_a_fair_assignment_stays(case: tuple[np.ndarray, int]) -> None:
    owner, workers = case
    planned = assign_buckets(owner, workers)
    assert np.array_equal(assign_buckets(planned, workers), planned)
    assert np.array_equal(assign_buckets(owner.copy(), workers), planned)


@given(st.integers(1, 60))
def test_a_worker_that_joins_gets_its_share_and_nobody_else_does(workers: int) -> None:
    before = assign_buckets(np.full(BUCKETS, NOBODY), workers)
    after = assign_buckets(before, workers + 1)
    assert set(after[after != before].tolist()) == {workers}
    assert int((after != before).sum()) == BUCKETS // (workers + 1)


@given(st.integers(2, 60), st.integers(0, 59))
def test_a_worker_that_leaves_moves_only_its_own(workers: int, gone: int) -> None:
    gone %= workers
    before = assign_buckets(np.full(BUCKETS, NOBODY), workers)
    left = np.where(before == gone, NOBODY, before - (before > gone))
    after = assign_buckets(left, workers - 1)
    assert np.array_equal(after[left >= 0], left[left >= 0])


def test_without_workers_nobody_owns_anything() -> None:
    assert set(assign_buckets(np.zeros(4, np.int64), 0).tolist()) == {NOBODY}


def test_owners_are_numbered() -> None:
    assert numbered_owners(["b", None, "", "gone", "a"], ["a", "b"]).tolist() == [1, NOBODY, NOBODY, NOBODY, 0]
