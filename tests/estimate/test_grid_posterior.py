"""The grid posterior: exact, the same in batch and stream, in compiled code and numpy, and defined at every edge."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from recrawl.estimate import gap_columns as door
from recrawl.estimate import mle
from recrawl.estimate.posterior import gamma_posterior, grid_posterior
from recrawl.model import GammaBelief, GridBelief, Histories, Visits
from recrawl.model.arrays import offsets_of
from recrawl.model.belief import half_octaves
from recrawl.time import DAY

RATES = half_octaves()
FLAT = GridBelief.of(RATES, np.ones(len(RATES)))
TWO = GridBelief.of(RATES, np.random.default_rng(7).dirichlet(np.ones(len(RATES)), 2))

observations = st.lists(st.tuples(st.floats(1e-6, 1e9), st.booleans()), max_size=12)
ordinary = st.lists(st.tuples(st.floats(60.0, 1e8), st.booleans()), max_size=12)
jumps = st.sampled_from([None, 30 * DAY, grid_posterior.JUMP])


def histories_of(rows, page=None):
    row = np.repeat(np.arange(len(rows)), [len(each) for each in rows])
    gap = np.array([gap for each in rows for gap, _ in each], dtype=np.float64)
    changed = np.array([changed for each in rows for _, changed in each], dtype=np.bool_)
    unknown = np.full(len(rows), np.nan)
    ids = np.arange(len(rows)) if page is None else np.asarray(page)
    return Histories(ids, offsets_of(row, len(rows)), gap, changed, unknown, unknown, unknown)


def exact(row, prior, rates, jump):
    """The filter in long doubles, one look after the other, as the docstring defines it."""
    start = prior.astype(np.longdouble) / prior.astype(np.longdouble).sum()
    held = start
    for gap, changed in row:
        x = rates.astype(np.longdouble) * np.longdouble(gap)
        stay = np.longdouble(1.0) if jump is None else np.exp(-np.longdouble(gap) / jump)
        held = (stay * held + (1 - stay) * start) * (-np.expm1(-x) if changed else np.exp(-x))
        held = held / held.sum()
    return held.astype(np.float64)


@pytest.fixture(params=["compiled code", "numpy"])
def both_paths(request, monkeypatch):
    if request.param == "numpy":
        for module in (grid_posterior, grid_posterior):
            monkeypatch.setattr(module, "can_compile", lambda: False)


def without_compiler(monkeypatch):
    for module in (grid_posterior, grid_posterior, gamma_posterior):
        monkeypatch.setattr(module, "can_compile", lambda: False)


@given(st.lists(ordinary, min_size=1, max_size=4), jumps)
@settings(deadline=None)
def test_is_the_exact_posterior(rows, jump):
    belief = grid_posterior.fit(histories_of(rows), TWO.take(slice(1)), jump=jump)
    for row, weights in zip(rows, belief.weights, strict=True):
        np.testing.assert_allclose(weights, exact(row, TWO.weights[0], RATES, jump), rtol=1e-5, atol=1e-9)


@given(st.lists(observations, min_size=1, max_size=6), jumps)
@settings(deadline=None)
def test_compiled_code_and_numpy_agree(rows, jump):
    histories, of = histories_of(rows), np.arange(len(rows)) % 2
    fast = grid_posterior.fit(histories, TWO, of=of, jump=jump)
    with pytest.MonkeyPatch.context() as patch:
        without_compiler(patch)
        slow = grid_posterior.fit(histories, TWO, of=of, jump=jump)
    np.testing.assert_allclose(fast.weights, slow.weights, rtol=1e-6, atol=1e-30)


@pytest.mark.usefixtures("both_paths")
@pytest.mark.parametrize("jump", [None, grid_posterior.JUMP])
@pytest.mark.parametrize("seed", range(5))
def test_streaming_agrees_with_batch(jump, seed):
    rng = np.random.default_rng(seed)
    rows = [list(zip(rng.lognormal(13, 2, n), rng.random(n) < 0.4, strict=True)) for n in rng.integers(0, 9, 40)]
    histories = histories_of(rows)
    of = rng.integers(0, 2, len(rows))
    whole = grid_posterior.fit(histories, TWO, of=of, jump=jump)
    stream = TWO.take(of)
    row_of_gap = histories.row_of_gap()
    turn = np.argsort(rng.random(len(row_of_gap)))
    place = np.empty(len(turn), dtype=np.int64)
    for row in range(len(rows)):  # any interleaving of the pages that keeps each page's own order
        place[np.flatnonzero(row_of_gap[turn] == row)] = np.flatnonzero(row_of_gap == row)
    for part in np.array_split(place, 4):
        grid_posterior.update(
            stream, row_of_gap[part], histories.gaps[part], histories.changed[part], TWO, of=of, jump=jump
        )
    np.testing.assert_allclose(stream.weights, whole.weights, atol=1e-5)


def test_streaming_ten_thousand_looks_keeps_the_stated_tolerance():
    rng = np.random.default_rng(3)
    gap = rng.lognormal(11, 1, 10_000)
    changed = rng.random(10_000) < -np.expm1(-gap / (3 * DAY))
    histories = histories_of([list(zip(gap, changed, strict=True))])
    stream = FLAT.take(np.array([0]))
    for k in range(len(gap)):
        grid_posterior.update(stream, np.array([0]), gap[k : k + 1], changed[k : k + 1], jump=None)
    whole = grid_posterior.fit(histories, FLAT, jump=None)
    np.testing.assert_allclose(stream.weights, whole.weights, atol=1e-5)


@given(st.lists(observations, min_size=1, max_size=4), st.floats(1e-3, 1e3), jumps)
@settings(deadline=None)
def test_another_unit_of_time_only_rescales(rows, factor, jump):
    base = grid_posterior.fit(histories_of(rows), FLAT, jump=jump)
    scaled = [[(gap * factor, changed) for gap, changed in row] for row in rows]
    prior = GridBelief(RATES / factor, FLAT.weights)
    other = grid_posterior.fit(histories_of(scaled), prior, jump=None if jump is None else jump * factor)
    np.testing.assert_allclose(other.weights, base.weights, rtol=1e-4, atol=1e-9)
    np.testing.assert_allclose(other.mean() * factor, base.mean(), rtol=1e-5)
    np.testing.assert_allclose(other.quantile(0.9) * factor, base.quantile(0.9), rtol=1e-4)


@given(observations, st.integers(0, 10**6))
@settings(deadline=None)
def test_without_filter_the_order_of_looks_does_not_matter(row, seed):
    shuffled = [row[i] for i in np.random.default_rng(seed).permutation(len(row))]
    one, other = (grid_posterior.fit(histories_of([each]), FLAT, jump=None).weights for each in (row, shuffled))
    np.testing.assert_allclose(one, other, rtol=1e-5, atol=1e-9)


@given(observations, observations)
@settings(deadline=None)
def test_the_belief_of_all_evidence_is_the_product_of_the_parts(one, other):
    """Without filter: p(one + other) ∝ p(one)·p(other)/prior, as long as neither excludes what the other holds."""
    prior = TWO.take(slice(1))
    first, second, both = grid_posterior.fit(histories_of([one, other, one + other]), prior, jump=None).weights.astype(
        np.float64
    )
    product = first * second / prior.weights[0]
    if product.sum() > 1e-20:
        np.testing.assert_allclose(both, product / product.sum(), rtol=1e-4, atol=1e-6)


@given(observations, st.floats(1e-6, 1e9), jumps)
@settings(deadline=None)
def test_a_change_raises_and_silence_lowers_the_belief(row, gap, jump):
    rows = [[*row, (gap, True)], [*row, (gap, False)]]
    hot, cold = grid_posterior.fit(histories_of(rows), FLAT, jump=jump).weights.astype(np.float64)
    assert (np.cumsum(hot) <= np.cumsum(cold) + 1e-5).all()


@given(st.lists(ordinary, min_size=1, max_size=4), st.integers(0, 11))
@settings(deadline=None)
def test_one_more_change_among_the_same_gaps_means_a_faster_page(rows, which):
    more = [[(gap, changed or k == which) for k, (gap, changed) in enumerate(row)] for row in rows]
    before, after = (grid_posterior.fit(histories_of(each), FLAT, jump=None) for each in (rows, more))
    assert (after.mean() >= before.mean() * (1 - 1e-5)).all()
    assert (after.quantile(0.5) >= before.quantile(0.5) * (1 - 1e-5)).all()


@pytest.mark.parametrize("n", [200, 2_000, 20_000])
def test_becomes_the_maximum_likelihood_as_data_grow(n):
    rng = np.random.default_rng(n)
    gap = rng.lognormal(np.log(5 * DAY), 1.0, n)
    changed = rng.random(n) < -np.expm1(-gap / (8 * DAY))
    histories = histories_of([list(zip(gap, changed, strict=True))])
    fine = np.geomspace(0.02, 1.0, 4_000) / DAY
    belief = grid_posterior.fit(histories, GridBelief.of(fine, np.ones(len(fine))), jump=None)
    best = mle.rates(histories)[0]
    spread = 1.4 / np.sqrt(n)
    assert np.log(belief.mean()[0] / best) == pytest.approx(0.0, abs=0.2 * spread)
    assert np.log(fine[np.argmax(belief.weights[0])] / best) == pytest.approx(0.0, abs=1e-3)
    coarse = grid_posterior.fit(histories, FLAT, jump=None)
    assert np.log(coarse.mean()[0] / best) == pytest.approx(0.0, abs=np.log(2) / 4 + spread)


@pytest.mark.parametrize("weight", [1.0, 1e-2, 1e-4, 1e-6])
def test_becomes_the_maximum_likelihood_as_the_prior_weakens(weight):
    """A prior as strong as ``weight`` pages like it: the pull on the mode goes with it."""
    rng = np.random.default_rng(1)
    gap = rng.lognormal(np.log(5 * DAY), 1.0, 60)
    changed = rng.random(60) < -np.expm1(-gap / (8 * DAY))
    histories = histories_of([list(zip(gap, changed, strict=True))])
    fine = np.geomspace(0.02, 1.0, 4_000) / DAY
    prior = GridBelief.of(fine, np.exp(-weight * 20 * np.log(fine * 100 * DAY) ** 2))
    pull = np.log(fine[np.argmax(grid_posterior.fit(histories, prior, jump=None).weights[0])] / mle.rates(histories)[0])
    assert abs(pull) < 10 * weight + 1e-3


def test_the_gamma_belief_follows_the_exact_one():
    rng = np.random.default_rng(5)
    gap = rng.exponential(10.0 * DAY, 12)
    changed = rng.random(12) < -np.expm1(-0.08 / DAY * gap)
    histories = histories_of([list(zip(gap, changed, strict=True))])
    fine = np.geomspace(1e-9, 1e2, 3_000) / DAY
    prior = GridBelief.of(fine, np.sqrt(fine * DAY) * np.exp(-15.0 * fine * DAY))
    on_grid = grid_posterior.fit(histories, prior, jump=None).mean()
    two_numbers = gamma_posterior.fit(histories, GammaBelief(np.array([0.5]), np.array([15.0 * DAY]))).mean()
    np.testing.assert_allclose(two_numbers, on_grid, rtol=0.05)


# -- the filter -------------------------------------------------------------------------------


def test_old_looks_fade_and_widen_the_belief():
    belief = grid_posterior.fit(histories_of([[(DAY, True)] * 30]), FLAT, jump=100 * DAY)
    later = grid_posterior.at(belief, FLAT, np.array([200 * DAY]), jump=100 * DAY)
    share = np.exp(-2.0)
    np.testing.assert_allclose(later.weights, share * belief.weights + (1 - share) * FLAT.weights, rtol=1e-5)
    ratio = later.quantile(0.95) / later.quantile(0.05)
    assert ratio > belief.quantile(0.95) / belief.quantile(0.05)
    np.testing.assert_array_equal(grid_posterior.at(belief, FLAT, np.array([0.0])).weights, belief.weights)
    np.testing.assert_array_equal(grid_posterior.at(belief, FLAT, np.array([np.nan])).weights, belief.weights)
    assert grid_posterior.at(belief, FLAT, np.array([DAY]), jump=None) is belief
    np.testing.assert_allclose(grid_posterior.at(belief, FLAT, np.array([np.inf])).weights, FLAT.weights, rtol=1e-6)


def test_a_page_that_changes_its_ways_is_found_out_only_with_the_filter():
    quiet_then_busy = [(10 * DAY, False)] * 100 + [(10 * DAY, True)] * 8
    row = histories_of([quiet_then_busy])
    filtered, steady = grid_posterior.fit(row, FLAT), grid_posterior.fit(row, FLAT, jump=None)
    t = np.array([10 * DAY])
    assert filtered.p_change(t)[0] > 0.6
    assert steady.p_change(t)[0] < 0.15


# -- edges ------------------------------------------------------------------------------------


@pytest.mark.usefixtures("both_paths")
@pytest.mark.parametrize("jump", [None, grid_posterior.JUMP])
def test_never_anything_but_a_proper_belief(jump):
    rows = [
        [],
        [(DAY, False)],
        [(DAY, True)],
        [(1e-6, True)] * 40,
        [(1e-6, False)] * 40,
        [(1e9, True)] * 40,
        [(1e9, False)] * 40,
        [(1e-6, True), (1e9, False)] * 20,
        [(1e-300, True), (5e-324, True)] * 10,
        [(1.7e308, False), (1.7e308, True)] * 10,
        [(1e-20, True)] * 7 + [(5e-324, True)],
        [(1e15, False)] * 500 + [(1e-3, True)] * 500,
    ]
    belief = grid_posterior.fit(histories_of(rows), FLAT, jump=jump)
    assert np.isfinite(belief.weights).all()
    assert (belief.weights > 0).all()
    np.testing.assert_allclose(belief.weights.sum(axis=1), 1.0, rtol=1e-5)
    np.testing.assert_array_equal(belief.weights[0], FLAT.weights[0])
    for answer in (
        belief.mean(),
        belief.quantile(0.05),
        belief.quantile(0.95),
        belief.survival(np.full(len(rows), DAY)),
    ):
        assert np.isfinite(answer).all()


@pytest.mark.usefixtures("both_paths")
def test_a_million_looks_at_one_page():
    rng = np.random.default_rng(0)
    changed = rng.random(10**6) < 0.2
    unknown = np.array([np.nan])
    page = Histories(np.array([1]), np.array([0, 10**6]), np.full(10**6, 3_600.0), changed, *[unknown] * 3)
    for jump in (None, grid_posterior.JUMP):
        found = grid_posterior.fit(page, FLAT, jump=jump).quantile(0.5)[0]
        assert np.log(found * 3_600.0 / -np.log(0.8)) == pytest.approx(0.0, abs=np.log(2) / 4 + 0.01)


@pytest.mark.parametrize("bad", [0.0, -1.0, np.nan, np.inf])
def test_bad_gaps_are_refused_and_the_page_is_named(bad):
    histories = histories_of([[], [(1.0, True)], [(2.0, False), (bad, True)], [(1.0, True)]], page=[3, 5, 8, 9])
    with pytest.raises(ValueError, match="page 8 has a gap of"):
        grid_posterior.fit(histories, FLAT)
    with pytest.raises(ValueError, match="page 8 has a gap of"):
        gamma_posterior.fit(histories, GammaBelief(np.ones(4), np.ones(4)))
    column = np.array([1.0, bad])
    for tell in (
        lambda: grid_posterior.update(
            FLAT.take(np.zeros(9, int)), np.array([1, 8]), column, np.array([True, True]), FLAT
        ),
        lambda: gamma_posterior.update(
            GammaBelief(np.ones(9), np.ones(9)), np.array([1, 8]), column, np.array([True, True])
        ),
    ):
        with pytest.raises(ValueError, match="row 8 has a gap of"):
            tell()


def test_priors_that_do_not_fit_are_refused():
    histories = histories_of([[], [], []])
    with pytest.raises(ValueError, match="2 rows, but there are 3 pages"):
        grid_posterior.fit(histories, TWO)
    with pytest.raises(ValueError, match="1 rows, but there are 3 pages"):
        grid_posterior.fit(histories, TWO, of=np.array([0]))
    other = GridBelief.of(RATES * 2, np.ones(len(RATES)))
    one_look = (np.array([0]), np.array([1.0]), np.array([True]))
    with pytest.raises(ValueError, match="different rates"):
        grid_posterior.update(FLAT.take(np.array([0])), *one_look, other)
    with pytest.raises(ValueError, match="needs the prior"):
        grid_posterior.update(FLAT.take(np.array([0])), *one_look)


def test_rows_that_are_not_there_are_refused():
    belief, gap, changed = FLAT.take(np.zeros(3, int)), np.array([1.0, 1.0]), np.array([True, False])
    for rows in ([0, 3], [-1, 0]):
        with pytest.raises(ValueError, match="of a belief of 3 pages"):
            grid_posterior.update(belief, np.array(rows), gap, changed, FLAT)
        with pytest.raises(ValueError, match="of a belief of 3 pages"):
            gamma_posterior.update(GammaBelief(np.ones(3), np.ones(3)), np.array(rows), gap, changed)
    with pytest.raises(ValueError, match="2 rows, 1 gaps and 2 flags"):
        grid_posterior.update(belief, np.array([0, 1]), gap[:1], changed, FLAT)
    with pytest.raises(ValueError, match="0 to 2 of a prior of 2 rows"):
        grid_posterior.fit(histories_of([[], [], []]), TWO, of=np.array([0, 1, 2]))


def test_the_prior_is_not_modified():
    before = FLAT.weights.copy()
    grid_posterior.fit(histories_of([[(DAY, True)] * 3]), FLAT)
    np.testing.assert_array_equal(FLAT.weights, before)
    own = FLAT.take(slice(None))
    grid_posterior.fit(histories_of([[(DAY, True)] * 3]), own, jump=None)
    np.testing.assert_array_equal(FLAT.weights, before)


@pytest.mark.usefixtures("both_paths")
def test_no_pages_and_no_looks():
    assert len(grid_posterior.fit(Histories.concatenate([]), FLAT)) == 0
    assert len(grid_posterior.fit(Histories.concatenate([]), FLAT, jump=None)) == 0
    belief = FLAT.take(np.array([0, 0]))
    grid_posterior.update(belief, np.empty(0, np.int64), np.empty(0), np.empty(0, np.bool_), FLAT)
    np.testing.assert_array_equal(belief.weights, FLAT.weights[[0, 0]])


def test_visits_to_belief():
    visits = Visits.of([4, 4, 9], [0.0, DAY, 5.0], verdict=[0, 2, 0])
    belief = grid_posterior.fit(Histories.from_visits(visits), FLAT, jump=None)
    expected = exact([(DAY, True)], FLAT.weights[0], RATES, None)
    np.testing.assert_allclose(belief.weights, [expected, FLAT.weights[0]], rtol=1e-6)


def test_looks_by_page_and_one_by_one():
    row, gap, changed = np.array([2, 0, 2]), np.array([1.0, 2.0, 3.0]), np.array([True, False, True])
    grouped = door.PageGaps.of(row, gap, changed)
    assert (grouped.row.tolist(), grouped.first.tolist(), grouped.last.tolist()) == ([0, 2], [0, 1], [1, 3])
    assert grouped.gaps.tolist() == [2.0, 1.0, 3.0]
    assert door.PageGaps.each(row, gap, changed).last.tolist() == [1, 2, 3]
