"""Units as users see them: settings, ``list units``, ``status`` and ``leave``."""

import json

import pytest

from recrawl.app.workspace.workspace import open_workspace
from recrawl.app.workspace.workspace_wiring import unit_terms
from recrawl.crawl.clock import RealClock
from recrawl.crawl.control.worker_registry import SILENCE
from recrawl.crawl.units.unit_agent import UnitAgent
from recrawl.errors import ConfigError
from recrawl.store.unit_exchange import open_unit_store

UNIT = ("--set", "units.coordination=../shared.db", "--set", "units.address=https://a.example/")


def step(folder, name, past=0.0):
    """What the agent of a worker does, some seconds ago."""
    terms = unit_terms(open_workspace(folder, {"units.name": name, "units.coordination": "../shared.db"}))
    store, outgoing = open_unit_store(terms.store)
    with store:
        agent = UnitAgent(terms, store, outgoing)
        state = agent.step(RealClock().now() - past)
        agent.close()
    return state


def test_units_are_listed_and_one_that_is_gone_is_removed(run, workspace):
    assert run("init", "other").returncode == 0
    step(workspace.parent / "other", "beta", past=10 * SILENCE)
    for _ in range(2):
        step(workspace, "alpha")
    told = json.loads(run("list", "units", "--json", "-w", "ws", "--set", "units.name=alpha", *UNIT).stdout)
    assert [(one["unit"], one["state"]) for one in told] == [("alpha", "idle"), ("beta", "silent")]
    assert [one["buckets"] for one in told] == [0, 1024]  # a silent unit keeps what it has
    assert "alpha: 0 of 1,024 buckets" in run("status", "-w", "ws", "--set", "units.name=alpha", *UNIT).stdout
    done = run("leave", "--unit", "beta", "-w", "ws", "--set", "units.name=alpha", *UNIT)
    assert done.stdout == "Removed the unit beta. The others take over its buckets.\n"
    step(workspace, "alpha")
    facts = json.loads(run("status", "--json", "-w", "ws", "--set", "units.name=alpha", *UNIT).stdout)["unit"]
    assert (facts["unit"], facts["buckets"], facts["outbox"], facts["error"]) == ("alpha", 1024, 0, "")
    done = run("leave", "-w", "ws", "--set", "units.name=alpha", *UNIT)
    assert "No other unit runs." in done.stderr


def test_a_workspace_without_units_has_none(run, workspace):
    assert "This workspace is no unit." in run("list", "units", "-w", "ws").stderr
    assert "This workspace is no unit." in run("leave", "-w", "ws").stderr
    assert json.loads(run("status", "--json", "-w", "ws").stdout)["unit"] is None
    assert "unit" not in run("status", "-w", "ws").stdout


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"units.name": "a"}, r"units\.coordination is not"),
        ({"units.coordination": "c.db"}, r"units\.name is not"),
        ({"units.name": "a b", "units.coordination": "c.db"}, "is not a name"),
    ],
)
def test_a_unit_has_a_name_and_a_coordination_database(workspace, given, message):
    with pytest.raises(ConfigError, match=message):
        unit_terms(open_workspace(workspace, given))


def test_the_store_of_a_unit_cannot_be_the_coordination_database(workspace):
    place = open_workspace(workspace, {"units.name": "a", "units.coordination": "recrawl.db"})
    with pytest.raises(ConfigError, match="is the store of this unit"):
        unit_terms(place)
