"""The probability that a page has changed since it was seen, by the clock of the policy."""

import numpy as np
import pytest

from recrawl.model import GammaBelief, Pages, Verdict, Visits
from recrawl.schedule.policies.valued import ValuedPolicy
from recrawl.time import DAY

OLD, YOUNG, DAYS = 20, 40, 60


def slowing_down(**choices):
    """A policy that saw pages change daily in their first four days and hardly ever after them."""
    policy = ValuedPolicy(**choices)
    born = np.concatenate([np.zeros(OLD), np.repeat(np.arange(10.0, 50.0), YOUNG // 40), [DAYS - 1.0]])
    pages = Pages.of(np.arange(len(born)), discovered=born * DAY)
    policy.add(pages)
    rng = np.random.default_rng(3)
    for page, day in enumerate(born.tolist()):
        at = np.arange(day, DAYS) + 0.25
        chance = np.where((at - day < 4.0) & (day > 0), 0.7, 0.01)
        verdict = np.where(rng.random(len(at)) < chance, Verdict.CHANGED, Verdict.UNCHANGED)
        verdict[0] = Verdict.UNKNOWN
        policy.tell(Visits.of(np.full(len(at), page), at * DAY, verdict=verdict))
    return policy, pages.id


@pytest.mark.parametrize("belief", ["grid", "gamma"])
def test_it_never_falls_while_nobody_looks_though_the_pace_does(belief):
    policy, page = slowing_down(belief=belief)
    moments = (DAYS + np.linspace(0.0, 60.0, 200)) * DAY
    changed = np.array([policy.changed(page, now) for now in moments])
    assert (np.diff(changed, axis=0) >= -1e-12).all()
    assert ((changed > 0) & (changed < 1)).all()
    newest = page[-1:]
    pace = [policy.belief(newest, now).mean()[0] for now in moments[[0, -1]]]
    assert pace[1] < pace[0] / 2


def test_it_is_the_survival_of_the_belief_where_time_is_wall_time():
    policy = ValuedPolicy(prior=lambda pages: GammaBelief(np.full(len(pages), 2.0), np.full(len(pages), DAY)),
                    belief="gamma", factors=())  # fmt: skip
    policy.add(Pages.of([4, 5, 6]))
    policy.tell(Visits.of([4, 5], [0.0, 2 * DAY]))
    changed = policy.changed(np.array([5, 6, 4]), 3 * DAY)
    np.testing.assert_allclose(changed, [1 - (1 / 2) ** 2, np.nan, 1 - (1 / 4) ** 2])


def test_a_trusted_signal_raises_it_and_a_look_puts_it_back():
    policy = ValuedPolicy(factors=())
    pages = Pages.of(np.arange(30))
    policy.add(pages)
    day = np.tile(np.arange(40.0), 30)
    page = np.repeat(pages.id, 40)
    changed = (day + page) % 8 == 0
    policy.signal(page[changed], (day[changed] - 0.5) * DAY)
    policy.tell(Visits.of(page, day * DAY, verdict=np.where(changed, Verdict.CHANGED, Verdict.UNCHANGED)))
    quiet = policy.changed(pages.id, 40 * DAY)
    policy.signal(np.array([7]), np.array([39.5 * DAY]))
    told = policy.changed(pages.id, 40 * DAY)
    assert told[7] > quiet[7] + 0.3
    np.testing.assert_allclose(np.delete(told, 7), np.delete(quiet, 7))
    policy.tell(Visits.of([7], [40 * DAY], verdict=Verdict.UNCHANGED))
    assert policy.changed(np.array([7]), 40 * DAY)[0] == pytest.approx(0.0, abs=1e-9)
