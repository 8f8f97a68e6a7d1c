"""Captures on a virtual clock: what comes of them is what the closed forms expect, and odd sites are captured too."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from recrawl.capture import OFFLINE, REVISITING, STRATEGIES, CaptureTerms
from recrawl.capture.strategy import LinkGraph
from recrawl.model import Verdict
from recrawl.simulate.virtual_web import EventTimes, WholeGapProcess
from recrawl_lab.trials.capture_trial import PublishedRow, StrategyEntry, run_trials
from recrawl_lab.trials.simulated_capture import VirtualSite, capture_named, thesis_site, tree_graph

TERMS = CaptureTerms(delay=1.0)


def quiet(offsets, targets, seeds=(0,)):
    """A site of unchanging pages."""
    graph = LinkGraph(np.array(offsets), np.array(targets, dtype=np.int64))
    pages = len(graph)
    return VirtualSite(graph, np.array(seeds, dtype=np.int64), np.zeros(pages), EventTimes.of([], [], pages))


@settings(max_examples=30, deadline=None)
@given(pages=st.integers(1, 200), outdegree=st.integers(1, 50), seed=st.integers(0, 9))
def test_a_tree_links_every_page_but_the_root_once_from_its_parent(pages, outdegree, seed):
    graph = tree_graph(pages, outdegree, np.random.default_rng(seed))
    assert sorted(graph.targets.tolist()) == list(range(1, pages))
    source = np.repeat(np.arange(pages), np.diff(graph.offsets))
    assert ((graph.targets - 1) // outdegree == source).all()


def test_links_come_in_random_order_and_equal_seeds_give_equal_sites():
    first, second, other = (thesis_site(300, end=50.0, outdegree=299, rng=np.random.default_rng(s)) for s in (1, 1, 2))
    assert np.array_equal(first.graph.targets, second.graph.targets)
    assert np.array_equal(first.changes.times, second.changes.times)
    assert not np.array_equal(first.graph.targets, other.graph.targets)


@pytest.mark.parametrize("law", [None, WholeGapProcess()], ids=["poisson", "whole"])
@pytest.mark.parametrize("strategy", ["sharc-offline", "bfs", "hottest-last-lifo", "bfs-fifo", "sharc-revisits"])
def test_what_comes_of_many_histories_is_what_is_expected(strategy, law):
    setting = PublishedRow("", "skew", 1_000, 1.2, 2.0, 20, "hot", {})
    repeats = 40
    (trial,) = run_trials(setting, [StrategyEntry(strategy)], seed=3, repeats=repeats, law=law)
    expected = np.mean(trial.expected_whole if law else trial.expected)
    # Whole seconds spread the changes a little more evenly than chance does.
    assert abs(np.mean(trial.actual) - expected) < 4.0 * trial.deviation / np.sqrt(repeats)
    assert trial.deviation > 0


@pytest.mark.parametrize("strategy", sorted(STRATEGIES))
def test_verdicts_of_the_visits_are_the_incoherent_pages(strategy):
    site = thesis_site(60, end=200.0, outdegree=4, skew=0.5, rng=np.random.default_rng(5))
    taken = capture_named(site, strategy, CaptureTerms(delay=1.5, expected=60), start=10.0)
    visits, quality = taken.visits(), taken.quality()
    assert (np.diff(visits.time) >= 0).all()
    assert (visits.verdict == Verdict.CHANGED).sum() == quality.incoherence
    assert set(visits.page.tolist()) == set(range(60))
    observations = 120 if strategy in REVISITING else 60
    assert observations - 1 <= len(visits) <= observations
    assert quality.unreached == 0
    assert taken.end == 10.0 + 1.5 * (len(visits) - 1)


@pytest.mark.parametrize("strategy", sorted(STRATEGIES))
def test_a_site_of_one_page_is_captured_sharply(strategy):
    site = thesis_site(1, end=10.0, rng=np.random.default_rng(0))
    quality = capture_named(site, strategy, TERMS).quality()
    assert quality.pages == 1
    if strategy not in REVISITING:
        assert quality.expected_blur == quality.actual_blur == 0.0


@pytest.mark.parametrize("strategy", sorted(STRATEGIES))
def test_pages_that_nothing_links_to_are_counted_as_unreached(strategy):
    site = quiet([0, 1, 1, 2, 2], [1, 3])  # 0 → 1, 2 → 3, and only 0 is known
    quality = capture_named(site, strategy, TERMS).quality()
    assert (quality.pages, quality.unreached) == ((4, 0) if strategy in OFFLINE else (2, 2))
    assert quality.actual_blur == quality.incoherence == 0


def test_a_site_without_pages_has_nothing_to_capture():
    quality = capture_named(quiet([0], [], seeds=()), "bfs", TERMS).quality()
    assert quality.pages == 0
    assert np.isnan(quality.actual_blur)


def test_believed_rates_decide_the_order_and_true_rates_the_quality():
    site = thesis_site(50, end=100.0, rng=np.random.default_rng(1))
    right = capture_named(site, "sharc-offline", TERMS).quality()
    wrong = capture_named(site, "sharc-offline", TERMS, believed=site.rate[::-1].copy()).quality()
    blind = capture_named(site, "bfs", TERMS, believed=site.rate[::-1].copy()).quality()
    assert right.expected_blur < wrong.expected_blur
    assert blind == capture_named(site, "bfs", TERMS).quality()


def test_columns_of_a_site_must_fit_together():
    with pytest.raises(ValueError, match="2 pages with links, 1 rates"):
        VirtualSite(
            LinkGraph(np.array([0, 0, 0]), np.empty(0, np.int64)), np.array([0]), np.ones(1), EventTimes.of([], [], 2)
        )
