"""Simulations, crawls and captures from Python: real pages on loopback, and the same results as the commands."""

import asyncio
import os
import re
import signal
import threading
from dataclasses import replace
from pathlib import Path

import matplotlib.pyplot as plt
import numpy as np
import pytest

import recrawl
from recrawl.app.workspace.workspace import make_workspace
from recrawl.crawl.clock import RealClock
from recrawl.errors import ConfigError, InputError
from recrawl.schedule.policies.policy_registry import POLICIES
from recrawl.simulate.sites import tree_site
from recrawl.time import HOUR
from recrawl_testweb.fault_injection import FaultProfile
from recrawl_testweb.virtual_web_server import VirtualWebServer

GUIDE = Path(__file__).resolve().parents[2] / "docs" / "how-to" / "use-from-python.md"
DATA = Path(__file__).resolve().parents[1] / "data" / "recorded"
LOCAL = {
    "fetch.contact": "me@example.org",
    "fetch.allow_networks": "127.0.0.0/8 ::1",
    "politeness.min_delay": "5ms",
}


@pytest.fixture(scope="module")
def site():
    """A site of six pages that hardly change, at a name that every resolver takes for this machine."""
    clock = RealClock()
    now, rng = clock.now(), np.random.default_rng(2)
    web = tree_site("site", np.full(6, 1e-9), start=now - HOUR, end=now + HOUR, rng=rng, outdegree=4)
    web = replace(web, hosts=("site.localhost",))
    with VirtualWebServer(web, clock, fault_profile=FaultProfile(crawl_delay=0.0)) as served:
        yield served


@pytest.fixture
def workspace(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    make_workspace(Path("ws"), {})
    return Path("ws")


def test_a_site_is_captured_also_where_an_event_loop_runs(workspace, site):
    async def notebook():
        return recrawl.run_capture(
            workspace, site.seeds()[0], strategy="bfs-lifo", delay="5ms", max_pages=5, settings=LOCAL
        )

    found = asyncio.run(notebook())
    assert found.number == 1
    assert found.facts["quality"]["pages"] == 5
    assert "5 pages found" in str(found)
    assert str(found) in repr(found)
    assert found.provenance.question == "run_capture"
    assert found.provenance.arguments["strategy"] == "bfs-lifo"
    assert found.provenance.settings["fetch.contact"] == "me@example.org"
    assert list((workspace / "warc").glob("*.warc.gz"))
    with recrawl.load(workspace) as archive:
        assert len(archive.rates()) == 5


def test_a_workspace_is_crawled_until_nothing_is_due(workspace, site, say):
    say("add", "-w", str(workspace), site.seeds()[0])
    found = recrawl.run_crawl(workspace, once=True, duration="5min", budget="100/s", settings=LOCAL)
    assert found.visits >= 6
    assert found.failed == 0
    assert found.ended_by == "nothing more is due that may be visited now"
    assert found.provenance.settings["schedule.budget"] > 1000
    assert "visits" in repr(found)
    again = recrawl.run_crawl(workspace, once=True, duration=60, settings=LOCAL)
    assert again.visits == 0


def test_an_interrupt_ends_a_crawl_and_keeps_its_visits(workspace, site, say):
    say("add", "-w", str(workspace), site.seeds()[0])

    over = threading.Event()

    def interrupt():
        with recrawl.load(workspace) as archive:
            while not len(archive.histories()):
                threading.Event().wait(0.02)
        os.kill(os.getpid(), signal.SIGINT)
        while not over.wait(60.0):  # Python drops an interrupt that arrives while a finaliser runs
            os.kill(os.getpid(), signal.SIGINT)

    threading.Thread(target=interrupt, daemon=True).start()
    with pytest.raises(KeyboardInterrupt):
        recrawl.run_crawl(workspace, duration="5min", settings=LOCAL)
    over.set()
    with recrawl.load(workspace) as archive:
        assert len(archive.rates()) >= 1


@pytest.mark.slow
@pytest.mark.usefixtures("here")
def test_the_code_of_the_guide_runs(workspace, site, say, capsys):
    say("add", "-w", str(workspace), site.seeds()[0])
    names = {"site": site.seeds()[0], "settings": {**LOCAL, "schedule.budget": "100/s"}}
    blocks = re.findall(r"^```python\n(.*?)^```$", GUIDE.read_text(encoding="utf-8"), re.MULTILINE | re.DOTALL)
    assert len(blocks) > 5
    capsys.readouterr()
    for block in blocks:
        exec(block, names)
    plt.close("all")
    printed = capsys.readouterr().out
    assert "<Rates of 4 pages: rates of crawls/ as of 2024-06-01T00:00:00Z" in printed
    assert "6 pages found" in printed
    assert Path("rates.csv-metadata.json").is_file()


@pytest.mark.parametrize(
    ("run", "said"),
    [
        (lambda: recrawl.run_crawl("ws"), "would never end"),
        (lambda: recrawl.run_crawl("ws", duration=0), "in the past"),
        (lambda: recrawl.run_crawl("ws", once=True, settings=LOCAL), "no pages to visit"),
        (lambda: recrawl.run_crawl("nowhere", once=True), "no workspace in nowhere"),
        (lambda: recrawl.run_crawl("ws", once=True, settings={"fetch.colour": "red"}), "unknown setting"),
        (lambda: recrawl.run_capture("ws", "http://a.org/", scope="galaxy"), "There is no scope='galaxy'"),
        (lambda: recrawl.run_capture("ws", "http://a.org/", strategy="best"), "best"),
        (lambda: recrawl.run_simulation("best"), "best"),
        (lambda: recrawl.run_simulation(budget=0), "With 0 visits a day"),
        (lambda: recrawl.run_simulation(data="ws"), "there is no data set here"),
    ],
)
def test_errors_say_what_to_do(workspace, run, said):
    with pytest.raises((ConfigError, InputError)) as error:
        run()
    assert said in str(error.value)
    assert error.value.remedy


def test_policies_are_simulated_on_recorded_changes_by_name_or_as_objects():
    found = recrawl.run_simulation(["uniform", "nutch"], DATA, pages=20, tick="28d")
    again = recrawl.run_simulation([POLICIES["uniform"](), "nutch"], DATA, pages=20, tick="28d")
    assert found["policy"] == ["uniform", "nutch"]
    assert again["freshness"][1] == found["freshness"][1]
    assert 0 < found["freshness"][0] < 1
    assert again["policy"][0] == type(POLICIES["uniform"]()).__name__
    assert found.provenance.seed == 1
    assert found.provenance.sources == (str(DATA),)
