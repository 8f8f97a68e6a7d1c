"""Which worker owns which bucket: fair, deterministic, and with as few moves as possible."""

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from recrawl.schedule.frontier.bucket_assignment import (
    NOBODY,
    SETTLED,
    assign_buckets,
    assign_units,
    numbered_owners,
    settled_capacity,
)
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


units = st.lists(
    st.tuples(st.text(min_size=1, max_size=12), st.floats(0.01, 1e4)),
    min_size=1,
    max_size=12,
    unique_by=lambda one: one[0],
)


def by_name(some: list[tuple[str, float]]) -> np.ndarray:
    """The name of the unit of each bucket."""
    names = [name for name, _ in some]
    return np.array(names, dtype=object)[assign_units(names, np.array([capacity for _, capacity in some]))]


@given(units, st.randoms())
def test_all_units_compute_the_same_whatever_their_order(some, shuffle) -> None:
    mixed = list(some)
    shuffle.shuffle(mixed)
    assert np.array_equal(by_name(some), by_name(mixed))


@given(units)
def test_a_unit_that_joins_takes_its_share_and_nothing_else_moves(some) -> None:
    *before, new = some
    if not before:
        return
    old, now = by_name(before), by_name(some)
    assert set(now[old != now]) <= {new[0]}
    share = new[1] / sum(capacity for _, capacity in some)
    # Six standard deviations of a binomial count: the hash is no better and no worse than chance.
    assert abs((old != now).sum() - BUCKETS * share) <= 6 * np.sqrt(BUCKETS * share * (1 - share)) + 6


@given(units, st.floats(1.01, 50.0))
def test_more_capacity_never_loses_a_bucket_and_moves_none_between_others(some, factor) -> None:
    *others, (name, capacity) = some
    old, now = by_name(some), by_name([*others, (name, capacity * factor)])
    assert set(now[old != now]) <= {name}


@given(units)
def test_a_unit_that_leaves_gives_its_own_away_only(some) -> None:
    *others, (name, capacity) = some
    old, without = by_name(some), by_name([*others, (name, 0.0)]) if others else None
    if without is None:
        assert set(assign_units([name], np.zeros(1)).tolist()) == {NOBODY}
        return
    assert name not in set(without)
    assert set(old[old != without]) <= {name}
    assert np.array_equal(without, by_name(others))
    assert capacity > 0


@given(st.floats(0.01, 1e6), st.floats(0.01, 1e6))
def test_a_capacity_in_force_stays_unless_it_is_far_off(before, measured) -> None:
    after = settled_capacity(before, measured)
    assert after in {before, measured}
    assert measured / SETTLED - 1e-9 * measured <= after <= measured * SETTLED + 1e-9 * measured
