"""Thompson sampling, optimism and the parts of the valued policy, each for itself."""

from __future__ import annotations

import numpy as np
import pytest

from recrawl.estimate.operational.factor_state import TimeFactor
from recrawl.estimate.point_evidence import PointBelief
from recrawl.model import GammaBelief, GridBelief, Pages, Verdict, Visits
from recrawl.model.belief import half_octaves
from recrawl.schedule.learning.belief_state import on_grid
from recrawl.schedule.learning.page_clocks import ClockSelection as Usefulness
from recrawl.schedule.learning.page_clocks import by_host
from recrawl.schedule.objectives import OBJECTIVES, BlendedObjective, CapturedChanges, FreshnessObjective
from recrawl.schedule.policies.exploration import Optimistic, Thompson
from recrawl.schedule.policies.valued import ValuedPolicy
from recrawl.schedule.price.paced_value import PacedBelief, paced_value, time_to_reach
from recrawl.time import DAY

PAGES = Pages.of(np.arange(20), discovered=-100 * DAY)


def told(policy, days=60, seed=1):
    """Every page every third day, with changes of its own pace."""
    rng = np.random.default_rng(seed)
    policy.add(PAGES)
    for day in range(0, days, 3):
        changed = rng.random(20) < -np.expm1(-3 / (2 + np.arange(20)))
        verdict = np.where(changed, Verdict.CHANGED, Verdict.UNCHANGED) if day else Verdict.UNKNOWN
        policy.tell(Visits.of(PAGES.id, np.full(20, day * DAY), verdict=verdict))
    policy.fit(20 * 0.1 / DAY, days * DAY)
    return policy


@pytest.mark.parametrize("make", [Thompson, Optimistic])
def test_explorers_are_due_when_urgent_and_urgency_never_falls(make):
    policy = told(make())
    due = policy.due(PAGES.id, 60 * DAY)
    before = np.zeros(20)
    for at in (60 * DAY, 75 * DAY, 120 * DAY):
        urgency = policy.urgency(PAGES.id, at)
        clear = np.abs(due - at) > 1.0
        np.testing.assert_array_equal((urgency >= 1)[clear], (due <= at)[clear])
        assert (urgency >= before * (1 - 1e-9)).all()
        before = urgency


def test_thompson_draws_by_its_seed_and_anew_after_each_look():
    first, again, other = (told(Thompson(seed=seed)).urgency(PAGES.id, 80 * DAY) for seed in (1, 1, 2))
    np.testing.assert_array_equal(first, again)
    assert (first != other).any()


def test_optimism_is_above_the_mean_and_their_names_say_what_they_are():
    plain, optimistic = told(ValuedPolicy()), told(Optimistic())
    assert (optimistic.urgency(PAGES.id, 80 * DAY) >= plain.urgency(PAGES.id, 80 * DAY) - 1e-9).all()
    assert (Thompson().name, Optimistic().name) == ("thompson-archive", "ucb-archive")
    with pytest.raises(TypeError, match="grid"):
        told(Thompson(belief="gamma")).urgency(PAGES.id, 80 * DAY)


@pytest.mark.parametrize("name", OBJECTIVES)
def test_compiled_code_values_pages_as_the_objectives_do(name):
    rng = np.random.default_rng(2)
    rates = half_octaves()
    belief = GridBelief.of(rates, rng.random((50, len(rates))))
    rows, passed = rng.permutation(50)[:33], rng.exponential(30 * DAY, 33)
    pace = np.exp(rng.normal(0, 1, 33))
    plain = OBJECTIVES[name].value(PacedBelief(belief.take(rows), pace), passed / pace)
    np.testing.assert_allclose(paced_value(OBJECTIVES[name], belief, rows, passed, pace), plain, rtol=1e-6)


def test_a_paced_belief_is_that_of_the_faster_rate():
    slow, t = GammaBelief(np.array([1.5, 0.7]), np.array([10.0, 20.0])), np.array([3.0, 8.0])
    pace = np.array([4.0, 0.5])
    paced, fast = PacedBelief(slow, pace), GammaBelief(slow.a, slow.b / pace)
    for question in ("survival", "p_change", "unchanged_time", "change_density"):
        np.testing.assert_allclose(getattr(paced, question)(t), getattr(fast, question)(t), rtol=1e-12)
    np.testing.assert_allclose(paced.mean(), fast.mean())
    np.testing.assert_allclose(paced.quantile(0.3), fast.quantile(0.3))
    np.testing.assert_allclose(paced.expect(np.sqrt), fast.expect(np.sqrt), rtol=1e-9)
    assert len(paced.take(np.array([1]))) == 1


def test_any_belief_can_be_put_on_the_grid():
    rates = half_octaves()
    gamma = GammaBelief(np.array([2.0]), np.array([40 * DAY]))
    put = GridBelief(rates, on_grid(gamma, rates))
    np.testing.assert_allclose(put.mean(), gamma.mean(), rtol=0.03)
    np.testing.assert_allclose(put.quantile(0.9), gamma.quantile(0.9), rtol=0.05)
    known = GridBelief(rates, on_grid(PointBelief(np.array([0.1 / DAY])), rates))
    np.testing.assert_allclose(known.mean(), 0.1 / DAY, rtol=0.2)


def test_values_that_jump_are_found_where_they_jump():
    target = np.array([5.0, 5.0, 50.0, 0.5])
    found = time_to_reach(
        lambda rows, t: np.where(t < 7.0, t, 10 * t)[: len(rows)], target, np.ones(4), np.full(4, 100.0)
    )
    np.testing.assert_allclose(found, [5.0, 5.0, 7.0, 1.0], rtol=1e-9)


def test_hosts_are_cut_into_clusters_in_the_order_of_discovery():
    cluster = by_host(Pages.of(np.arange(700), host=np.arange(700) % 2))
    assert np.bincount(cluster).tolist() == [300, 50, 300, 50]
    assert len(np.unique(cluster[:600])) == 2


def test_the_calendar_is_used_where_it_predicts_better():
    """Two clusters on host 0, of which one is clearly better off without; host 1 does not tell; host 2 is new."""
    verdict, host = Usefulness(), np.array([0, 0, 1])
    assert (verdict.weight(host) == 1.0).all()
    for day in range(0, 500, 10):
        verdict.add(np.array([0, 1]), np.array([0.1, -0.2]), day * DAY, np.array([0, 1, 2]))
    verdict.add(np.array([2, 2]), np.array([0.1, -0.1]), 500 * DAY, np.array([0, 1, 2]))
    assert (verdict.weight(host) == 1.0).all()
    verdict.decide(np.array([0, 1, 2]), host)
    np.testing.assert_allclose(verdict.weight(host), [1, 0, 0], atol=0.05)
    np.testing.assert_allclose(verdict.weight(np.array([0, 0, 1, 2, 0])), [1, 0, 0, 0, 0], atol=0.05)


def test_no_single_look_turns_the_calendar_on_or_off():
    """A gate at a number of standard errors made of one look more or less another clock for a whole cluster."""
    verdict, host = Usefulness(), np.array([0])
    gain, weights = np.repeat([-0.1, 0.1, -0.1], [100, 200, 200]), []
    for number, one in enumerate(gain.tolist()):
        verdict.add(np.array([0]), np.array([one]), 10 * number * DAY, np.array([0]))
        verdict.decide(np.array([0]), host)
        weights.append(float(verdict.weight(host)[0]))
    assert min(weights[100:]) < 0.2  # it does move
    assert max(weights[100:]) > 0.8
    assert np.abs(np.diff(weights[100:])).max() < 0.3


def test_siblings_of_one_edit_decide_no_more_than_one_page():
    """Thirty pages that gain or lose together are one piece of evidence; thirty that do so apart are thirty."""
    gains = np.where(np.arange(20) % 9 % 2, 1.0, -1.0) + 0.2
    together, apart = Usefulness(), Usefulness()
    cluster, host = np.zeros(30, np.int64), np.array([0])
    for block in range(20):
        together.add(np.arange(30), np.full(30, gains[block]), 10 * block * DAY, cluster)
        apart.add(np.arange(30), gains[(block + np.arange(30)) % 20], 10 * block * DAY, cluster)
    for verdict in (together, apart):
        verdict.decide(cluster, host)
    assert 0.05 < together.weight(host)[0] < 0.95
    assert apart.weight(host)[0] > 0.95


def test_gains_within_nine_days_are_one_piece_of_evidence():
    verdict, cluster, host = Usefulness(), np.zeros(1, np.int64), np.array([0])
    for minute in range(1, 1000):
        verdict.add(np.array([0]), np.array([-0.1]), minute * 60.0, cluster)
    verdict.decide(cluster, host)
    assert verdict.weight(host)[0] > 0.01


def test_what_pages_proved_stays_with_them_when_clusters_are_found_anew():
    verdict = Usefulness()
    for day in range(0, 200, 10):
        verdict.add(np.arange(4), np.array([0.1, 0.1, -0.1, -0.1]), day * DAY, np.array([0, 0, 1, 1]))
    verdict.decide(np.array([0, 0, 1, 1]), np.array([0, 0]))
    np.testing.assert_allclose(verdict.weight(np.array([0, 0])), [1, 0], atol=0.05)
    verdict.decide(np.array([1, 1, 0, 0]), np.array([0, 0]))
    np.testing.assert_allclose(verdict.weight(np.array([0, 0])), [0, 1], atol=0.05)


def test_a_bulk_edit_found_on_some_pages_makes_their_siblings_urgent():
    """Two directories, each edited as a whole every 60 days, in turn; pages are looked at on different days."""
    policy = ValuedPolicy(CapturedChanges(), clusters=lambda pages: pages.id // 20, factors=(TimeFactor.CLUSTERS,))
    page = np.arange(40)
    policy.add(Pages.of(page, discovered=-400 * DAY))
    edits = np.arange(-60, 600, 60)[None, :] + 30 * (page // 20)[:, None]
    last = np.zeros(40)
    for day in range(481):
        rows = page[page % 10 == day % 10] if day < 480 else np.array([0, 1, 2, 20, 21, 22])
        changed = ((edits[rows] > last[rows, None]) & (edits[rows] <= day)).any(axis=1)
        policy.tell(Visits.of(rows, np.full(len(rows), day * DAY), verdict=np.where(changed, 2, 1)))
        last[rows] = day
        if day == 470:
            policy.fit(40 * 0.05 / DAY, day * DAY)
    waiting = np.array([3, 4, 5, 6])
    edited, others = (policy.urgency(waiting + first, 481 * DAY) for first in (0, 20))
    assert (edited > 2 * others).all()


def test_young_pages_are_visited_sooner_for_changes():
    """Of equal pages the one found last week is expected to change more."""
    policy = ValuedPolicy(CapturedChanges(), factors=(TimeFactor.AGE,))
    policy.add(Pages.of(np.arange(30), discovered=-800 * DAY))
    policy.add(Pages.of([99], discovered=-2 * DAY))
    policy.tell(Visits.of([*range(30), 99], np.zeros(31)))
    policy.fit(31 * 0.05 / DAY, DAY)
    due = policy.due(np.array([0, 99]), DAY)
    assert due[1] < due[0]


def test_objectives_of_different_units_blend_on_a_clock_of_their_own():
    mixed = BlendedObjective("mixed", ((0.5 / DAY, FreshnessObjective()), (0.5, CapturedChanges())))
    policy = told(ValuedPolicy(mixed))
    due = policy.due(PAGES.id, 60 * DAY)
    assert np.isfinite(due).all()
    assert policy.allocation.rate.sum() == pytest.approx(20 * 0.1 / DAY, rel=1e-6)


def test_a_look_told_late_gives_what_it_would_have_given_in_time():
    visits = Visits.of([1, 1, 1, 2, 2, 2], np.array([0, 4, 9, 0, 5, 9]) * DAY, verdict=[0, 2, 1, 0, 2, 2])
    in_time, late = ValuedPolicy(), ValuedPolicy()
    for policy in (in_time, late):
        policy.add(PAGES)
    in_time.tell(visits)
    late.tell(visits.take(visits.page == 1))
    late.fit(1 / DAY, 20 * DAY)
    late.urgency(PAGES.id, 20 * DAY)
    late.tell(visits.take(visits.page == 2))
    for policy in (in_time, late):
        policy.fit(1 / DAY, 20 * DAY)
    np.testing.assert_array_equal(in_time.urgency(PAGES.id, 30 * DAY), late.urgency(PAGES.id, 30 * DAY))
