"""Bins of rates predicted: what can be learned is, what comes later stays unknown, and chance is worked out."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from recrawl.predict.feature_extraction import FeatureEvidence
from recrawl.predict.page_versions import PageVersions
from recrawl.simulate.sampling import Events, collect
from recrawl.time import DAY
from recrawl_lab.trials.bin_trial import nearness, predicted, predicted_bins
from recrawl_lab.trials.rate_training import AHEAD, WHOLE, RecordedPages, pooled, sitemap_training, training_pages

DAYS = 1000
SIZE = 120


def recorded(late=1.0, sites=1):
    """Sites whose pages in /hot/ change every ten days, in /warm/ every hundred and in /cold/ never.

    After the middle they change ``late`` times as often. Versions count the changes so far in their images.
    """
    rng = np.random.default_rng(1)
    collections, page, time, images, urls = [], [], [], [], []
    for site in range(sites):
        kind = np.arange(SIZE) % 3
        names = tuple(f"http://s{site}.test/{('hot', 'warm', 'cold')[one]}/{row}" for row, one in enumerate(kind))
        events = []
        for row, one in enumerate(kind):
            count = (DAYS // 10, DAYS // 100, 0)[one]
            early = rng.uniform(1, DAYS / 2 - 1, count // 2)
            after = np.random.default_rng(row).uniform(DAYS / 2 + 1, DAYS - 1, int(late * count / 2))
            when = np.concatenate([[0.0], np.sort(early), np.sort(after)]) * DAY
            events += [(row, at, place == 0) for place, at in enumerate(when)]
        events.append((SIZE - 1, DAYS * DAY, False))
        rows, at, added = (np.array(column) for column in zip(*events, strict=True))
        none = np.zeros(len(rows), dtype=np.bool_)
        collections.append(collect(f"s{site}", names, Events(rows, at, added, none, none)))
        page.append(rows + site * SIZE)
        time.append(at)
        images.append(np.arange(len(rows)) - np.searchsorted(rows, rows))
        urls += names
    versions = PageVersions.of(
        np.concatenate(page), np.concatenate(time), {"images": np.concatenate(images)}, complete=True
    )
    ids = np.arange(sites * SIZE)
    return RecordedPages(tuple(collections), FeatureEvidence(ids, tuple(urls), versions), ids)


@pytest.mark.parametrize("reading", [WHOLE, AHEAD])
def test_what_urls_and_looks_tell_is_learned(reading):
    (training,) = training_pages(recorded(), reading)
    assert len(training) == SIZE
    assert np.bincount(np.arange(SIZE) % 3, weights=training.rate * DAY * 3 / SIZE).round(2).tolist() == [
        0.1,
        0.01,
        0.0,
    ]
    found = predicted_bins(training, np.random.default_rng(2))
    assert found.still == pytest.approx(1 / 3, abs=0.01)
    assert found.commonest == pytest.approx(1 / 3, abs=0.02)
    scores = {(one.features, one.learner): one for one in found.scores}
    learned = {(a, b) for a in ("online", "offline") for b in ("naive Bayes", "tree")}
    assert set(scores) == learned | {("online", "siblings")}
    # Bins within a kind cannot be told by the URL, kinds can.
    for learner in ("tree", "siblings"):
        one = scores["online", learner]
        assert one.right.low <= one.right.mean <= one.right.high
        assert one.right.mean > found.commonest
        assert one.order > 0.8
        assert one.near > one.near_by_chance


def test_looks_as_printed_tell_what_happened_and_looks_ahead_do_not():
    often, seldom = recorded(late=3.0), recorded(late=0.0)
    before = [training_pages(one, AHEAD)[0] for one in (often, seldom)]
    np.testing.assert_array_equal(before[0].table.values, before[1].table.values)
    assert before[0].rate.sum() > 10 * before[1].rate.sum()
    after = [training_pages(one, WHOLE)[0] for one in (often, seldom)]
    assert (after[0].table.column("images")[0], after[1].table.column("images")[0]) == (200.0, 50.0)


def test_days_since_the_last_change_are_those_to_the_look():
    (training,) = training_pages(recorded(), AHEAD)
    age = training.table.column("days_since_change")
    assert age[2] == pytest.approx(DAYS / 2)
    assert (age[0::3] < 60).all()
    assert (age >= 0).all()


def test_sites_together_have_several_domains():
    several = training_pages(recorded(sites=2), WHOLE)
    whole = pooled(several, "both")
    assert len(whole) == 2 * SIZE
    assert whole.table.page.tolist() == list(range(2 * SIZE))
    assert len(np.unique(whole.table.column("domain"))) == 2


def test_classes_that_do_not_exist_are_not_in_between():
    (training,) = training_pages(recorded(), WHOLE)
    category = np.array([2, 4, 7])[np.arange(SIZE) % 3]
    found = predicted(training, category, {"sitemap": ("domain", "path_depth")}, np.random.default_rng(3))
    assert found.classes == 3
    assert {one.features for one in found.scores} == {"sitemap"}
    told = {one.learner: one.right.mean for one in found.scores}
    assert max(told["tree"], told["naive Bayes"]) < 0.5
    assert told["siblings"] == 1.0


def test_repeats_draw_other_folds():
    (training,) = training_pages(recorded(), AHEAD)
    once, thrice = (predicted_bins(training, np.random.default_rng(4), repeats=count) for count in (1, 3))
    assert [one.right.mean for one in once.scores] != [one.right.mean for one in thrice.scores]
    assert thrice.pages == once.pages == SIZE


def test_a_sitemap_tells_ages_from_its_latest_change():
    urls = ["http://a.test/x", "http://a.test/y", "http://a.test/z"]
    training = sitemap_training("map", urls, np.array([5 * DAY, np.nan, 2 * DAY]))
    np.testing.assert_array_equal(training.table.column("days_since_change"), [0.0, np.nan, 3.0])
    assert np.isnan(sitemap_training("silent", urls, np.full(3, np.nan)).table.column("days_since_change")).all()


@given(st.lists(st.tuples(st.integers(0, 4), st.integers(0, 4)), min_size=1, max_size=40))
def test_nearness_and_chance(pairs):
    true, said = (np.array(column) for column in zip(*pairs, strict=True))
    near, chance = nearness(true, said, 5)
    wrong = [(t, s) for t, s in pairs if t != s]
    if not wrong:
        assert np.isnan(near)
        return
    assert near == pytest.approx(np.mean([abs(t - s) == 1 for t, s in wrong]))
    expected = []
    for one, _ in wrong:
        others = [guess for guess in said.tolist() if guess != one]
        expected.append(sum(abs(guess - one) == 1 for guess in others) / len(others))
    assert chance == pytest.approx(np.mean(expected))
