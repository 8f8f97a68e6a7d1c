"""``recrawl capture`` is killed in both phases and goes on: every page is seen twice, and what is stated is so."""

import json
import os
import signal
import subprocess
import sys
import time
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from recrawl.crawl.clock import RealClock
from recrawl.simulate.sites import lognormal_rates, tree_site
from recrawl.store.open import open_store
from recrawl.time import HOUR
from recrawl_testweb.virtual_web_server import VirtualWebServer

PAGES = 30
CLOCKS = 0.005
"""Seconds by which the clocks of two processes may differ; requests are further apart."""
WARCIO = Path(sys.executable).parent / "warcio"


def command(home, *more):
    quick = ("--delay", "100ms", "--set", "fetch.allow_networks=127.0.0.0/8 ::1", "--set", "politeness.factor=0")
    return [sys.executable, "-m", "recrawl", "capture", home, "--strategy", "hottest-first-lifo", *quick, *more]


def started(folder, *arguments):
    inherited = {name: value for name, value in os.environ.items() if not name.startswith("RECRAWL_")}  # noqa: TID251 - a child's environment
    env = inherited | {"RECRAWL_FETCH_CONTACT": "me@example.org", "RECRAWL_WORKSPACE": str(folder)}
    return subprocess.Popen(arguments, env=env, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)


def kill_after(process, store, steps):
    """Kill the process as soon as so many steps are recorded."""
    try:
        for _ in range(12_000):  # two minutes: compiled code may have to be made first
            captures = store.site_captures()
            if captures and len(store.site_log(captures[0].id).steps) >= steps:
                return
            assert process.poll() is None, process.communicate()
            time.sleep(0.01)
        pytest.fail("the capture does not get on")
    finally:
        process.send_signal(signal.SIGKILL)
        process.communicate()


@pytest.mark.slow
def test_a_capture_survives_kills_in_both_phases(workspace):
    clock, rng = RealClock(), np.random.default_rng(5)
    rate = lognormal_rates(PAGES, median=1 / 20.0, sigma=2.0, rng=rng)
    now = clock.now()
    site = tree_site("site", rate, start=now - HOUR, end=now + HOUR, rng=rng, outdegree=5)
    with (
        VirtualWebServer(replace(site, hosts=("site.localhost",)), clock) as living,
        open_store(workspace / "recrawl.db") as store,
    ):
        home = living.seeds()[0]
        kill_after(started(workspace, *command(home)), store, PAGES // 3)
        kill_after(started(workspace, *command(home)), store, PAGES + 1)
        assert PAGES < len(store.site_log(store.site_captures()[0].id).steps) < 2 * PAGES
        last = started(workspace, sys.executable, "-m", "recrawl", "capture", "--resume", "--json",
                       "--set", "fetch.allow_networks=127.0.0.0/8 ::1", "--set", "politeness.factor=0")  # fmt: skip
        out, err = last.communicate(timeout=240)
        assert last.returncode == 0, err
        requests = living.requests()
        [capture] = store.site_captures()
        log = store.site_log(capture.id)
        urls = store.urls(log.found.page)
        number = {url: place for place, url in enumerate(living.urls())}
    observations = {}
    for step in log.steps:
        observations.setdefault(number[urls[step.number]], []).append(step)
    assert set(observations) == set(range(PAGES))
    assert all([step.revisit for step in seen] == [False, True] for seen in observations.values())
    # Only what was on its way when a process was killed was asked for once more.
    asked = np.bincount(requests.page[requests.page >= 0], minlength=PAGES)
    assert asked.min() == 2
    said = json.loads(out)["quality"]
    # A page that seems to have changed is looked at twice before that is believed.
    assert (asked - 2).sum() <= 2 + len(said["changedPages"])
    assert said["pages"] == PAGES
    judge_by_the_truth(site, observations, requests, {number[url] for url in said["changedPages"]})
    assert said["coherence"]["coherent"] + len(said["changedPages"]) == PAGES
    checked = subprocess.run(
        [WARCIO, "check", "-v", *(workspace / "warc").glob("*.warc.gz")], capture_output=True, text=True, check=False
    )
    assert checked.returncode == 0, checked.stdout
    assert not list((workspace / "warc").glob("*.open"))


def judge_by_the_truth(site, observations, requests, changed):
    """Pages whose version the server changed between the two looks are those called changed, and no other.

    A look is timed when the request sets out; what it sees is the version when the server has it. Pages that differ
    again when they are looked at once more may be taken for noisy.
    """
    judged = 0
    for page, (first, second) in observations.items():
        arrived = requests.time[requests.page == page]
        before = site.version(page, arrived[arrived > first.time - CLOCKS].min())
        after = {int(site.version(page, when)) for when in arrived[arrived > second.time - CLOCKS].tolist()}
        if len(after) == 1:
            assert (after != {int(before)}) == (page in changed), page
            judged += 1
    assert judged > PAGES / 2
    assert 0 < len(changed) < PAGES
