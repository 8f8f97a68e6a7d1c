"""A policy replayed on a virtual web sees what was so, when it says it looked."""

from __future__ import annotations

import numpy as np
import pytest

from recrawl.model import Outcome, Verdict
from recrawl.schedule.frontier.host_frontier import Frontier
from recrawl.schedule.frontier.revisit_scheduler import RevisitScheduler
from recrawl.schedule.policies.fixed_interval import FixedInterval, Uniform
from recrawl.schedule.policies.valued import ValuedPolicy
from recrawl.schedule.politeness.host_politeness import Politeness, PolitenessRules
from recrawl.simulate.sites import synthetic_web
from recrawl.time import DAY, HOUR
from recrawl_testweb.policy_replay import Replay

WEB = synthetic_web(pages=60, start=1.79e9, days=10, seed=5, hot=0.7)
PAUSE = 30.0


def replay(policy, budget=100 / DAY):
    polite = Politeness(PolitenessRules(shortest=PAUSE, longest=PAUSE))
    return Replay(WEB, RevisitScheduler(policy, budget=budget), Frontier(polite)).run(WEB.start, WEB.end)


@pytest.fixture(scope="module")
def visits():
    return replay(ValuedPolicy())


@pytest.mark.slow
def test_every_verdict_is_the_truth(visits):
    for page in range(len(WEB)):
        mine = visits.take(visits.page == page)
        assert (np.diff(mine.time) > 0).all()
        alive = WEB.alive(mine.page, mine.time)
        assert (mine.outcome == np.where(alive, Outcome.FETCHED, Outcome.GONE)).all()
        seen = np.where(alive, WEB.version(mine.page, mine.time), -1)
        changed = seen[1:] != seen[:-1]
        assert mine.verdict[:1].tolist() == [Verdict.UNKNOWN]
        assert (mine.verdict[1:] == np.where(changed, Verdict.CHANGED, Verdict.UNCHANGED)).all()


def test_no_page_is_visited_before_it_is_born_and_all_are_visited(visits):
    assert (visits.time >= WEB.born[visits.page]).all()
    assert set(visits.page.tolist()) == set(np.flatnonzero(WEB.born < WEB.end).tolist())


def test_hosts_are_left_alone_between_visits(visits):
    for host in range(3):
        times = np.sort(visits.time[WEB.host[visits.page] == host])
        assert np.diff(times).min() >= PAUSE


@pytest.mark.parametrize("policy", [ValuedPolicy, Uniform])
def test_budgets_are_kept_in_the_long_run(policy):
    spent = len(replay(policy(), budget=60 / DAY)) / 10
    assert spent == pytest.approx(60, rel=0.25)


def test_a_fixed_interval_comes_back_after_it():
    visits = replay(FixedInterval(12 * HOUR))
    for page in range(len(WEB)):
        gaps = np.diff(visits.time[visits.page == page])
        assert (gaps >= 12 * HOUR).all()
        assert (gaps < 12 * HOUR + 60 * PAUSE).all()


def test_a_host_that_rests_for_longer_than_the_run_is_asked_once():
    polite = Politeness(PolitenessRules(shortest=20 * DAY, longest=20 * DAY))
    visits = Replay(WEB, RevisitScheduler(ValuedPolicy(), budget=100 / DAY), Frontier(polite)).run(WEB.start, WEB.end)
    assert len(visits) == len(set(WEB.host[visits.page].tolist())) == 3
