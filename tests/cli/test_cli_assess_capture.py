"""``recrawl assess`` on the files that ``recrawl capture`` wrote says what the capture said of itself."""

import json
from dataclasses import replace

import numpy as np
import pytest

from recrawl.app.assess.assessment import recorded
from recrawl.assess.observations import Observations
from recrawl.crawl.clock import RealClock
from recrawl.simulate.sites import tree_site
from recrawl.store.open import open_store
from recrawl.time import HOUR
from recrawl_testweb.fault_injection import FaultProfile
from recrawl_testweb.virtual_web_server import VirtualWebServer

CONTACT = {"RECRAWL_FETCH_CONTACT": "me@example.org"}
LOCAL = "fetch.allow_networks=127.0.0.0/8 ::1"


@pytest.fixture(scope="module")
def site():
    """Twelve pages, of which every third changes several times a second."""
    clock, rng = RealClock(), np.random.default_rng(7)
    now = clock.now()
    rate = np.where(np.arange(12) % 3 == 2, 20.0, 1e-9)
    web = tree_site("site", rate, start=now - 10.0, end=now + HOUR / 6, rng=rng, outdegree=4)
    with VirtualWebServer(
        replace(web, hosts=("site.localhost",)), clock, fault_profile=FaultProfile(crawl_delay=0.0)
    ) as served:
        yield served


def test_files_of_a_capture_give_the_statement_of_the_capture(run, workspace, site):
    # Pages as quick as these would be taken for noise by a second look.
    terms = (
        "--delay",
        "200ms",
        "--set",
        LOCAL,
        "--set",
        "detect.confirm_changes=no",
        "--strategy",
        "sharc-selective-online",
    )
    done = run("capture", site.seeds()[0], "-w", "ws", *terms, "--json", env=CONTACT)
    assert done.returncode == 0, done.stderr
    itself = json.loads(done.stdout)["quality"]
    assert itself["coherence"]["changed"] > 0
    # Visits and revisits are seconds apart, and all of them count. The pause is given: the usual one is half a second
    # here, and a busy machine may rest as long between two pages.
    told = json.loads(run("assess", workspace / "warc", "--pause", "10m", "--merge-within", "0s", "--json").stdout)
    assert told["crawlsCount"] == 1
    others = told["lastCrawlSeenAgain"]
    assert sorted(others["changedPages"]) == sorted(itself["changedPages"])
    # A page that a plan sees once, in the middle, is coherent with itself; from the files alone nobody can tell.
    assert others["coherence"]["coherent"] in (itself["coherence"]["coherent"], itself["coherence"]["coherent"] - 1)
    assert others["validTogether"]["allCoherentPages"]
    inside = json.loads(run("assess", "-w", "ws", "--json").stdout)
    # Pages that only a capture visits are not scheduled, and yet they count.
    assert inside["lastCrawlSeenAgain"]["weight"] == inside["pages"]
    assert not any("nobody knows" in words for words in inside["words"])
    # The report on the capture begins with what it says of itself, and is about its pages alone.
    done = run("report", "-w", "ws", "--capture", "1", "--json")
    assert done.returncode == 0, done.stderr
    first, holdings, *_ = json.loads(done.stdout)["sections"]
    assert first["title"] == "Capture 1"
    assert first["words"][0].startswith("Capture 1 of http://site.localhost")
    assert holdings["tiles"][0] == {"title": "pages", "value": str(inside["pages"]), "words": "on 1 host"}
    check_the_record(run, itself, workspace)


def check_the_record(run, itself, workspace):
    """A workspace remembers its captures: which looks are theirs, what needed no revisit, what was found where."""
    # By its pauses alone every look would be a crawl.
    told = json.loads(run("assess", "-w", "ws", "--pause", "0s", "--graphml", "tree.graphml", "--json").stdout)
    assert told["crawlsCount"] == told["capturesOnRecord"] == 1
    assert told["lastCrawlSeenAgain"]["coherence"]["coherent"] == itself["coherence"]["coherent"]
    assert told["crawls"][0]["unseen"] == told["crawls"][0]["new"] == 0
    assert any("holds the statements of 1 " in words for words in told["words"])
    tree = (workspace.parent / "tree.graphml").read_text(encoding="utf-8")
    assert "green" in tree
    assert "grey" not in tree  # every page was seen again,
    assert "blue" not in tree  # and none is new
    with open_store(str(workspace / "recrawl.db")) as store:
        observations = Observations.from_visits(store.visits())
        record, found = recorded(store, observations), store.site_log(1).found
        parents = {page: found.page[via] for page, via in zip(found.page, found.via, strict=True) if via >= 0}
        assert {
            observations.page[row]: observations.page[via] for row, via in enumerate(record.via) if via >= 0
        } == parents
        assert len(parents) == len(observations) - 1
        assert record.once.sum() == 1
