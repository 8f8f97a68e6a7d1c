"""Sixty kills over all commands that write, on both stores; ``benchmarks/soak_kills.py`` makes as many as you like."""

from __future__ import annotations

import numpy as np
import pytest
from killed_crawls import a_site, a_starter
from soak_kills import JOBS, Place, Tally, soak

KILLS = {"sqlite": 40, "postgresql": 20}


@pytest.fixture(scope="module")
def starter(tmp_path_factory):
    with a_starter(tmp_path_factory.mktemp("starter")) as started:
        yield started


@pytest.fixture
def site():
    try:
        with a_site() as place:
            yield place
    except OSError:
        pytest.skip("hosts are addresses of loopback here, and this system has but one")


@pytest.fixture(params=KILLS)
def kind(request):
    return request.param


@pytest.fixture
def new_store(kind, request):
    return request.getfixturevalue("new_database") if kind == "postgresql" else lambda: "recrawl.db"


def test_a_backup_beside_three_workers_is_whole_and_a_crawl_goes_on_from_it(new_store, site, starter, tmp_path):
    tally = Tally()
    place = Place(tmp_path / "place", new_store(), site, starter, np.random.default_rng(1), tally)
    place.back_up_beside(3)
    assert tally.restored == 1
    assert tally.verified == 4


def test_kills_of_all_commands_lose_nothing(kind, new_store, site, starter, tmp_path):
    tally = Tally()
    rng = np.random.default_rng(KILLS[kind])
    soak(tmp_path, site, starter, {kind: new_store}, kills=KILLS[kind], tally=tally, rng=rng)
    assert tally.kills.total() >= KILLS[kind]
    assert {name.partition(" ")[0] for name in tally.kills} == set(JOBS)
    assert tally.verified > 0
    assert tally.restored > 0
