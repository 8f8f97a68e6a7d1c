"""Signals of change: what they are worth, how they earn trust, what a policy does with them."""

from __future__ import annotations

import pickle

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import special

from recrawl.estimate.site_signals import SignalledGaps, learn
from recrawl.model import Pages, Verdict, Visits
from recrawl.schedule.learning.online_fit import SignalState
from recrawl.schedule.policies.valued import ValuedPolicy
from recrawl.time import DAY
from recrawl_lab.trials import ranking


def one(*values):
    return [np.array([value]) for value in values]


def test_the_exact_value_is_the_published_one():
    assert ranking.exact(*one(1.0, 0.08, 0.22, 0.1))[0] == pytest.approx(1.70558358417, rel=1e-11)


def test_the_exact_value_without_signals_and_at_its_other_edges():
    g = 1 - 2 * np.exp(-1.0)
    assert ranking.exact(*one(1.0, 0.08, 0.0, 0.0))[0] == pytest.approx(g / 0.08)
    assert ranking.exact(*one(1.0, 0.08, 0.1, 0.0999))[0] == pytest.approx(g / 0.0801)
    beyond_doubt = ranking.exact(*one(np.inf, 0.08, 0.22, 0.0))[0]
    assert beyond_doubt == pytest.approx(1 / 0.3)
    assert np.isfinite(ranking.exact(*one(1.0, 0.0, 0.2, 0.1))[0])


def test_the_time_until_a_page_is_suspicious_enough_is_that_of_a_simulation():
    """Ψ: how long it takes until αt + κn reaches ℓ, with signals coming at the rate γ."""
    alpha, gamma, false, limit = 0.08, 0.22, 0.1, 1.0
    kappa = np.log(gamma / false)
    rng = np.random.default_rng(4)
    cycles = 40_000
    clock, stale, length = np.zeros(cycles), np.zeros(cycles), np.zeros(cycles)
    live = np.arange(cycles)
    while len(live):
        wait, rest = rng.exponential(1 / gamma, len(live)), (limit - stale[live]) / alpha
        over = wait >= rest
        length[live] = clock[live] + np.where(over, rest, wait)
        clock[live] += np.minimum(wait, rest)
        stale[live] += alpha * np.minimum(wait, rest) + np.where(over, 0.0, kappa)
        live = live[~over & (stale[live] < limit)]
    psi = length.mean()
    i = np.arange(int(limit / kappa) + 1)
    said = (special.gammainc(i + 1, gamma * (limit - i * kappa) / alpha) / gamma).sum()
    assert psi == pytest.approx(said, rel=0.02)


@given(st.floats(0.01, 1.0), st.floats(0.01, 1.0), st.floats(0.05, 0.95), st.floats(0.05, 3.0))
def test_values_never_fall_as_a_page_grows_more_suspicious(alpha, gamma, share, stale):
    value = ranking.exact(*one(stale, alpha, gamma, share * gamma))[0]
    later = ranking.exact(*one(stale * 1.1, alpha, gamma, share * gamma))[0]
    assert 0 <= value <= later * (1 + 1e-9)


def looks_with_signals(q, false_per_change, rng, *, pages=40):
    """Looks every five days; changes signalled with probability q, and false signals."""
    rate = 1 / 10
    page = np.repeat(np.arange(pages), 30)
    gap = np.full(len(page), 5.0)
    changes = rng.poisson(rate * gap)
    signals = rng.binomial(changes, q) + rng.poisson(rate * false_per_change * gap)
    return SignalledGaps(page, gap, signals, changes > 0)


def test_weights_of_good_signals_are_found_and_useless_ones_are_not_trusted():
    rng = np.random.default_rng(7)
    good, bad = looks_with_signals(0.6, 0.3, rng), looks_with_signals(0.0, 1.0, rng)
    both = SignalledGaps(
        np.concatenate([good.page, bad.page + 40]),
        np.concatenate([good.gap, bad.gap]),
        np.concatenate([good.signals, bad.signals]),
        np.concatenate([good.changed, bad.changed]),
    )
    found = learn(both, np.repeat([0, 1], 40))
    assert found.trusted.tolist() == [True, False]
    assert found.weight[0] == pytest.approx(np.log((0.6 + 0.3) / 0.3), rel=0.25)
    assert found.used()[1] == 0.0
    assert np.median(found.quiet_rate[:40]) == pytest.approx(0.1 * 0.4, rel=0.4)


def test_the_test_seldom_passes_useless_signals():
    rng = np.random.default_rng(8)
    passed = sum(bool(learn(looks_with_signals(0.0, 1.0, rng), np.zeros(40, int)).trusted[0]) for _ in range(60))
    assert passed <= 4


def test_signals_are_counted_once_and_within_their_gap():
    heard = SignalState()
    heard.add(np.array([3, 3, 3, 5]), np.array([1.0, 2.0, 2.0, 1.5]))
    row, start, end = np.array([3, 3, 5, 4]), np.array([1.0, 0.0, 0.0, 0.0]), np.array([2.0, 1.0, 9.0, 9.0])
    assert heard.count(row, start, end).tolist() == [1, 1, 1, 0]


def test_signals_that_are_heard_again_take_no_more_room():
    heard, every, none = SignalState(), np.arange(1_000), np.zeros(1_000)

    def hear_all_and_count():
        heard.add(every, none + 1.0)
        assert (heard.count(every, none, none + 2.0) == 1).all()
        return len(pickle.dumps(heard))

    once = hear_all_and_count()
    assert [hear_all_and_count() for _ in range(5)] == [once] * 5


def heard_and_seen(q, false_per_change, seed=3, pages=30, days=300):
    """A policy that looked at every page every five days and heard its signals; all of one host."""
    rng = np.random.default_rng(seed)
    policy = ValuedPolicy(factors=())
    policy.add(Pages.of(np.arange(pages)))
    time = np.arange(0, days, 5.0)
    changes = rng.poisson(5 / 20, (pages, len(time)))
    changes[:, 0] = 0
    verdict = np.where(changes > 0, Verdict.CHANGED, Verdict.UNCHANGED)
    policy.tell(Visits.of(np.repeat(np.arange(pages), len(time)), np.tile(time * DAY, pages), verdict=verdict.ravel()))
    signals = rng.binomial(changes, q) + rng.poisson(5 / 20 * false_per_change, changes.shape)
    row, observation = np.nonzero(np.minimum(signals, 1))
    when = (time[observation] - 5.0 * rng.random(len(observation))) * DAY
    policy.signal(row, when)
    now = (time[-1] + 2) * DAY
    policy.fit(pages * 0.03 / DAY, now)
    return policy, now


def test_a_trusted_signal_makes_a_page_urgent_and_due_at_once():
    policy, now = heard_and_seen(0.9, 0.02)
    everyone = np.arange(30)
    before = policy.urgency(everyone, now)
    policy.signal(np.array([4]), np.array([now - DAY / 2]))
    after = policy.urgency(everyone, now)
    assert after[4] > 3 * before[4]
    assert after[4] == after.max()
    np.testing.assert_array_equal(np.delete(after, 4), np.delete(before, 4))
    assert policy.due(everyone, now)[4] <= now
    assert (policy.urgency(everyone, now + 30 * DAY) >= after).all()


def test_useless_signals_change_nothing():
    policy, now = heard_and_seen(0.0, 1.0)
    before = policy.urgency(np.arange(30), now)
    policy.signal(np.arange(30), np.full(30, now - 1.0))
    np.testing.assert_array_equal(policy.urgency(np.arange(30), now), before)


def test_a_signal_up_to_the_last_look_is_spent():
    policy, now = heard_and_seen(0.9, 0.02)
    policy.signal(np.array([4]), np.array([now - DAY / 2]))
    policy.tell(Visits.of([4], [now], verdict=[Verdict.CHANGED]))
    assert policy.urgency(np.array([4]), now + 60.0)[0] < 0.1


def test_a_signal_about_a_stranger_is_refused():
    with pytest.raises(LookupError, match="never added"):
        ValuedPolicy().signal(np.array([1]), np.array([0.0]))
