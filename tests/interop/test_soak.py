"""A small run of ``benchmarks/soak.py``: it raises where the log of the server shows what is not allowed."""

from __future__ import annotations

import math

import pytest
from killed_crawls import Request, a_site, a_starter
from soak import SoakPlan, SoakRun

HOSTS = 6


@pytest.fixture
def site():
    try:
        with a_site(hosts=HOSTS) as place:
            yield place
    except OSError:
        pytest.skip("hosts are addresses of loopback here, and this system has but one")


@pytest.fixture(params=["sqlite", "apart"])
def run(request, site, tmp_path):
    location = "recrawl.db" if request.param == "sqlite" else request.getfixturevalue("new_database")()
    apart = request.param == "apart"
    plan = SoakPlan(120, workers=2, budget=12.0, every=2.0, apart=apart, most_kills=1 if apart else math.inf)
    with a_starter(tmp_path) as starter:
        yield SoakRun(tmp_path / "place", location, site, starter, plan)


def test_workers_that_join_leave_and_die_visit_every_page_politely_and_once(run, site):
    found = run.run()
    assert found.killed >= 1
    assert found.joined == found.left + found.killed
    assert found.requests >= found.visits >= found.pages == 120
    assert found.over_budget <= found.allowed_over
    last = site.all[-1]
    site.all.append(Request(last.answered + 0.001, last.url, last.answered + 0.001))
    with pytest.raises(AssertionError, match="asked after"):
        run._check_pauses()
    site.log.extend([last] * 1_000)
    with pytest.raises(AssertionError, match="beyond the budget"):
        run._check_budget()
    with pytest.raises(AssertionError, match="requests that are no visits"):
        run._check_visits()
