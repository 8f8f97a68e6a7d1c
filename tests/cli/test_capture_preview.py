"""``recrawl capture plan``: what a capture would be like, from what is known, with nobody there to be asked."""

import json
import math

import pytest

from recrawl.store.open import open_store

HOME = "http://town.localhost:19872/"


@pytest.fixture
def planned(run, workspace):
    """Asks for a plan of the archived site, with these options."""
    run("demo", "--archive", "old", "--pages", "21", "--years", "1", "--port", "19872")
    assert run("import", "old", "-w", "ws").returncode == 0

    def plan(*options):
        result = run("capture", "plan", HOME, "-w", "ws", "--json", *options)
        assert result.returncode == 0, result.stderr
        return json.loads(result.stdout)

    return plan


def test_a_plan_says_how_long_and_how_good(planned, run, workspace):
    slow, quick = planned("--delay", "2min"), planned("--delay", "1s")
    pages = slow["pages"]
    assert pages > 15
    assert slow["requests"] == 2 * pages - 1  # the page in the middle needs no revisit
    assert slow["seconds"] == (slow["requests"] - 1) * 120
    assert slow["expectedCoherent"] < quick["expectedCoherent"] <= pages
    assert slow["expectedBlur"] > quick["expectedBlur"] > 0
    even = planned("--delay", "2min", "--strategy", "bfs-fifo")
    assert even["expectedCoherent"] < slow["expectedCoherent"]
    once = planned("--delay", "2min", "--no-revisit")
    assert (once["requests"], once["expectedCoherent"]) == (pages, None)
    assert planned("--max-pages", "3")["pages"] == 3
    with open_store(str(workspace / "recrawl.db")) as store:
        assert not store.site_captures()
    words = run("capture", "plan", HOME, "-w", "ws", "--delay", "2min").stdout
    assert f"{slow['requests']} requests" in words
    assert f"{slow['expectedCoherent']:.1f} of {pages} pages coherent" in words


def test_the_pause_that_the_settings_ask_for_is_kept(planned):
    found = planned("--set", "politeness.min_delay=7s")
    assert math.isclose(found["delay"], 7.0)


def test_of_a_site_that_nobody_saw_nothing_can_be_said(run, workspace):
    result = run("capture", "plan", "http://nobody.example/", "-w", "ws")
    assert (result.returncode, "is known yet" in result.stderr) == (1, True)
