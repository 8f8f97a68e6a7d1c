"""The Gamma belief: golden values, batch against stream, against the exact posterior, and its edges."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import integrate, special

from recrawl.estimate.posterior import gamma_posterior
from recrawl.model import GammaBelief, Histories, Verdict, Visits

observations = st.lists(st.tuples(st.floats(1e-6, 1e9), st.booleans()), max_size=12)


def histories_of(rows):
    """Histories with exactly these (gap, changed) per page, page ids 0, 1, …; every page was seen once before."""
    visits = []
    for page, row in enumerate(rows):
        visits.append(Visits.of([page], [0.0]))
        gaps = np.array([gap for gap, _ in row])
        verdict = [Verdict.CHANGED if changed else Verdict.UNCHANGED for _, changed in row]
        visits.append(Visits.of(np.full(len(row), page), np.cumsum(gaps), verdict=np.array(verdict, dtype=np.uint8)))
    return Histories.from_visits(Visits.concatenate(visits))


def same_prior(n, a=0.5, b=15.0):
    return GammaBelief(np.full(n, a), np.full(n, b))


def test_golden_step():
    after = gamma_posterior.fit(histories_of([[(10.0, True)]]), same_prior(1))
    assert after.a[0] == pytest.approx(1.424148582388, rel=1e-11)
    assert after.b[0] == pytest.approx(17.9923007663, rel=1e-11)


def test_an_unchanged_gap_only_adds_its_length():
    after = gamma_posterior.fit(histories_of([[(10.0, False), (7.0, False)]]), same_prior(1))
    assert (after.a[0], after.b[0]) == (0.5, 32.0)


@given(st.floats(0.1, 20.0), st.floats(1e-3, 1e6), st.floats(0.05, 50.0))
@settings(deadline=None)
def test_one_change_keeps_mean_and_variance_of_the_exact_posterior(a, b, ratio):
    gap = ratio * b
    after = gamma_posterior.fit(histories_of([[(gap, True)]]), same_prior(1, a, b))
    prior = same_prior(1, a, b)
    weight = prior.expect(lambda rate: -np.expm1(-rate * gap))[0]
    mean = prior.expect(lambda rate: rate * -np.expm1(-rate * gap))[0] / weight
    square = prior.expect(lambda rate: rate**2 * -np.expm1(-rate * gap))[0] / weight
    assert after.mean()[0] == pytest.approx(mean, rel=1e-5)
    assert (after.a / after.b**2)[0] == pytest.approx(square - mean**2, rel=1e-4)


def test_mean_is_close_to_the_exact_posterior_after_many_looks():
    rng = np.random.default_rng(5)
    gaps = rng.exponential(10.0, 12)
    changed = rng.random(12) < -np.expm1(-0.08 * gaps)
    row = list(zip(gaps.tolist(), changed.tolist(), strict=True))
    after = gamma_posterior.fit(histories_of([row]), same_prior(1))

    def posterior(log_rate, power):
        rate = np.exp(log_rate)
        likelihood = np.prod(np.where(changed, -np.expm1(-rate * gaps), np.exp(-rate * gaps)))
        return rate ** (0.5 + power) * np.exp(-15.0 * rate) * likelihood

    exact = integrate.quad(posterior, -20, 5, args=(1,))[0] / integrate.quad(posterior, -20, 5, args=(0,))[0]
    assert after.mean()[0] == pytest.approx(exact, rel=0.05)


@given(st.lists(observations, min_size=1, max_size=6), st.integers(0, 10**6))
@settings(deadline=None)
def test_streaming_agrees_with_batch(rows, seed):
    histories = histories_of(rows)
    whole = gamma_posterior.fit(histories, same_prior(len(rows)))
    rng = np.random.default_rng(seed)
    stream = same_prior(len(rows))
    row_of_gap = histories.row_of_gap()
    turn = np.argsort(rng.random(len(row_of_gap)))
    place = np.empty(len(turn), dtype=np.int64)
    for row in range(len(rows)):  # any interleaving of the pages that keeps each page's own order
        mine = np.flatnonzero(row_of_gap[turn] == row)
        place[mine] = np.flatnonzero(row_of_gap == row)
    for part in np.array_split(place, rng.integers(1, 5)):
        gamma_posterior.update(stream, row_of_gap[part], histories.gaps[part], histories.changed[part])
    np.testing.assert_allclose(stream.a, whole.a, rtol=1e-12)
    np.testing.assert_allclose(stream.b, whole.b, rtol=1e-12)


@given(st.lists(observations, min_size=1, max_size=4), st.floats(1e-3, 1e3))
@settings(deadline=None)
def test_another_unit_of_time_only_rescales(rows, factor):
    base = gamma_posterior.fit(histories_of(rows), same_prior(len(rows)))
    histories = histories_of(rows)
    scaled = Histories(
        histories.page,
        histories.offsets,
        histories.gaps * factor,
        histories.changed,
        *(time * factor for time in (histories.first_visit, histories.last_visit, histories.last_change)),
    )
    other = gamma_posterior.fit(scaled, same_prior(len(rows), b=15.0 * factor))
    np.testing.assert_allclose(other.a, base.a, rtol=1e-7)
    np.testing.assert_allclose(other.b, base.b * factor, rtol=1e-7)


@given(st.lists(observations, min_size=1, max_size=4), st.floats(0.05, 50.0), st.floats(1e-3, 1e9))
@settings(deadline=None)
def test_never_anything_but_a_proper_belief(rows, a, b):
    after = gamma_posterior.fit(histories_of(rows), same_prior(len(rows), a, b))
    assert np.isfinite(after.a).all()
    assert np.isfinite(after.b).all()
    assert (after.a > 0).all()
    assert (after.b > 0).all()


def test_a_change_raises_and_silence_lowers_the_mean():
    rows = [[(5.0, True)], [(5.0, False)], []]
    after = gamma_posterior.fit(histories_of(rows), same_prior(3)).mean()
    assert after[0] > after[2] > after[1]


def test_the_prior_is_not_modified_and_must_fit():
    prior = same_prior(1)
    gamma_posterior.fit(histories_of([[(5.0, True)]]), prior)
    assert (prior.a[0], prior.b[0]) == (0.5, 15.0)
    with pytest.raises(ValueError, match="2 rows"):
        gamma_posterior.fit(histories_of([[]]), same_prior(2))


def test_no_pages_and_no_looks():
    assert len(gamma_posterior.fit(Histories.concatenate([]), same_prior(0))) == 0
    belief = same_prior(2)
    gamma_posterior.update(belief, np.empty(0, np.int64), np.empty(0), np.empty(0, np.bool_))
    assert belief.a.tolist() == [0.5, 0.5]


def test_digamma_of_a_belief_is_its_mean_log():
    belief = GammaBelief(np.array([0.7]), np.array([3.0]))
    assert belief.expect(np.log)[0] == pytest.approx(special.digamma(0.7) - np.log(3.0), rel=1e-6)


@given(st.lists(observations, min_size=1, max_size=30))
@settings(deadline=None)
def test_compiled_code_and_numpy_agree(rows):
    histories = histories_of(rows)
    fast = gamma_posterior.fit(histories, same_prior(len(rows)))
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(gamma_posterior, "can_compile", lambda: False)
        slow = gamma_posterior.fit(histories, same_prior(len(rows)))
        stream = same_prior(len(rows))
        gamma_posterior.update(stream, histories.row_of_gap(), histories.gaps, histories.changed)
    np.testing.assert_allclose(slow.a, fast.a, rtol=1e-9)
    np.testing.assert_allclose(slow.b, fast.b, rtol=1e-9)
    np.testing.assert_allclose(stream.a, fast.a, rtol=1e-9)


@pytest.mark.parametrize("compiler", [True, False])
def test_a_hundred_thousand_looks_at_one_page_among_many(compiler, monkeypatch):
    if not compiler:
        monkeypatch.setattr(gamma_posterior, "can_compile", lambda: False)
        monkeypatch.setattr(gamma_posterior, "_fold_observations", gamma_posterior._fold_observations.__wrapped__)
    rng = np.random.default_rng(0)
    counts = np.array([100_000, *[5] * 20])
    offsets = np.concatenate([[0], np.cumsum(counts)])
    changed = rng.random(offsets[-1]) < 0.2
    unknown = np.full(21, np.nan)
    histories = Histories(np.arange(21), offsets, np.full(offsets[-1], 3_600.0), changed, unknown, unknown, unknown)
    after = gamma_posterior.fit(histories, same_prior(21, b=15.0 * 86_400))
    assert after.mean()[0] * 3_600.0 == pytest.approx(-np.log(0.8), rel=0.02)
    alone = gamma_posterior.fit(histories.take(np.array([7])), same_prior(1, b=15.0 * 86_400))
    assert after.a[7] == pytest.approx(alone.a[0], rel=1e-12)
