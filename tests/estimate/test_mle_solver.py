"""The likelihood equation solved three ways (numpy, compiled code, 40-digit arithmetic), over anything gaps can be."""

from __future__ import annotations

from decimal import Decimal, localcontext

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from recrawl.estimate import mle
from recrawl.model import Histories
from recrawl.model.arrays import offsets_of

SECOND_TO_DECADES = st.floats(1e-6, 1e9)
FEW_LENGTHS = st.sampled_from([1.0, 7.0, 7.5, 30.0, 1e-3])


def ragged(rows):
    """Histories from [(gap, changed), …] of each page; page ids are 100, 101, …"""
    gaps = np.array([gap for row in rows for gap, _ in row], dtype=float)
    flags = np.array([flag for row in rows for _, flag in row], dtype=bool)
    index = np.repeat(np.arange(len(rows)), [len(row) for row in rows])
    nothing = np.full(len(rows), np.nan)
    return Histories(np.arange(len(rows)) + 100, offsets_of(index, len(rows)), gaps, flags, nothing, nothing, nothing)


def by_kernel(histories, *, compress=True):
    pytest.importorskip("numba")
    return mle.compiled_rates(histories.offsets, histories.gaps, histories.changed, compress=compress)


def exact(changed, unchanged, start):
    """The root with 40 digits, from changed gaps as {length: count}; ``start`` is close to it."""
    with localcontext(prec=100):  # e^x − 1 loses up to half of them
        away = sum((Decimal(gap) for gap in unchanged), Decimal(0))
        counts = [(Decimal(gap), count) for gap, count in changed.items()]
        # close in from the left, where tangents of a convex falling function cannot overshoot
        rate = Decimal(float(start)) * Decimal("0.999")
        for _ in range(60):
            powers = [(gap, count, (rate * gap).exp()) for gap, count in counts if rate * gap < 500]
            value = sum(count * gap / (power - 1) for gap, count, power in powers) - away
            slope = -sum(count * gap * gap * power / (power - 1) ** 2 for gap, count, power in powers)
            step = value / slope
            rate -= step
            if abs(step) < rate * Decimal("1e-40"):
                return rate
    raise AssertionError("no convergence")


def relative_error(rate, true):
    return abs(float(Decimal(float(rate)) / true - 1))


def tally(gaps):
    counts = {}
    for gap in gaps:
        counts[float(gap)] = counts.get(float(gap), 0) + 1
    return counts


interior = st.tuples(
    st.lists(SECOND_TO_DECADES, min_size=1, max_size=12), st.lists(SECOND_TO_DECADES, min_size=1, max_size=12)
)


@given(interior)
@settings(deadline=None, max_examples=60)
def test_both_paths_agree_with_exact_arithmetic(page):
    changed, unchanged = page
    histories = ragged([[(gap, True) for gap in changed] + [(gap, False) for gap in unchanged]])
    found = mle.rates_by_numpy(histories)[0]
    true = exact(tally(changed), unchanged, found)
    assert relative_error(found, true) < 1e-12
    assert relative_error(by_kernel(histories)[0], true) < 1e-12


@pytest.mark.parametrize("lengths", [3, 50])
def test_a_million_looks_at_one_page_keep_their_digits(lengths):
    rng = np.random.default_rng(lengths)
    menu = np.exp(rng.normal(np.log(0.1), 1.0, lengths))
    gaps = rng.choice(menu, 1_000_000)
    changed = rng.random(len(gaps)) < -np.expm1(-2.0 * gaps)
    nothing = np.full(1, np.nan)
    histories = Histories(np.array([0]), np.array([0, len(gaps)]), gaps, changed, nothing, nothing, nothing)
    found = mle.rates(histories)[0]
    true = exact(tally(gaps[changed]), gaps[~changed].tolist(), found)
    assert relative_error(found, true) < 1e-12
    for compress in (False, True):
        assert relative_error(mle.rates_by_numpy(histories, compress=compress)[0], true) < 1e-12
        assert relative_error(by_kernel(histories, compress=compress)[0], true) < 1e-12


observations = st.lists(st.tuples(SECOND_TO_DECADES | FEW_LENGTHS, st.booleans()), max_size=30)
regular = st.lists(st.tuples(FEW_LENGTHS, st.booleans()), max_size=30)


@given(st.lists(observations | regular, max_size=12))
@settings(deadline=None)
def test_compiled_code_and_compression_change_nothing(rows):
    histories = ragged(rows)
    expected = mle.rates_by_numpy(histories, compress=False)
    for found in (
        mle.rates_by_numpy(histories),
        by_kernel(histories),
        by_kernel(histories, compress=False),
        mle.rates(histories),
    ):
        np.testing.assert_allclose(found, expected, rtol=1e-12)


def test_the_kernel_works_in_blocks_of_pages(monkeypatch):
    rng = np.random.default_rng(1)
    rows = [[(gap, bool(rng.random() < 0.4)) for gap in rng.exponential(5.0, n)] for n in rng.integers(0, 40, 300)]
    histories = ragged(rows)
    whole = by_kernel(histories)
    for size in (1, 7, 64):
        monkeypatch.setattr(mle, "_GAPS_AT_A_TIME", size)
        np.testing.assert_array_equal(by_kernel(histories), whole)


def test_special_cases_on_both_paths():
    histories = ragged([[], [(5, False), (7, False)], [(5, True), (7, True)], [(3, True)], [(3, False)], []])
    eq4 = [np.log(2.5 / 0.5) * 2 / 12, np.log(1.5 / 0.5) / 3]
    expected = [np.nan, 0.0, eq4[0], eq4[1], 0.0, np.nan]
    np.testing.assert_allclose(mle.rates(histories), expected, rtol=1e-14)
    np.testing.assert_allclose(by_kernel(histories), expected, rtol=1e-14)
    assert not np.signbit(mle.rates(histories)[1])
    assert len(mle.rates(ragged([]))) == 0
    assert len(by_kernel(ragged([]))) == 0


@given(st.lists(observations, min_size=1, max_size=6), st.floats(1e-3, 1e3))
@settings(deadline=None)
def test_a_thousand_pages_at_once_give_what_each_gives_alone_in_any_order_and_unit(rows, factor):
    together = mle.rates(ragged(rows))
    np.testing.assert_allclose([mle.rates(ragged([row]))[0] for row in rows], together, rtol=1e-12)
    np.testing.assert_allclose(mle.rates(ragged([row[::-1] for row in rows])), together, rtol=1e-12)
    scaled = mle.rates(ragged([[(gap * factor, flag) for gap, flag in row] for row in rows]))
    np.testing.assert_allclose(scaled * factor, together, rtol=1e-10)
