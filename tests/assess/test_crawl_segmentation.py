"""Crawls found again in an archive, their pairs, and what follows for the archive."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from recrawl.assess.archive_quality import (
    archive_quality,
    crawl_blur,
    last_change_classes,
    tally,
    usual_delay,
    weighted_mean,
)
from recrawl.assess.blur_coherence import RevisitResult, average_blur
from recrawl.assess.crawl_segmentation import NO_REVISIT, consecutive, pair, segment_crawls
from recrawl.assess.observations import Observations
from recrawl.assess.site_structure import ChangeClass
from recrawl.model import ChangeKind, Outcome, Verdict, Visits
from recrawl.time import DAY, HOUR


def weekly(pages, crawls, found, delay=60.0, period=7 * DAY):
    """Visits of weekly crawls, in page order; ``found[crawl][page]`` is a verdict, or ``None`` for not captured."""
    rows = [
        (page, crawl * period + page * delay, found[crawl][page])
        for crawl in range(crawls)
        for page in range(pages)
        if found[crawl][page] is not None
    ]
    page, time, verdict = zip(*rows, strict=True)
    return Observations.from_visits(Visits.of(page, time, verdict=verdict))


@given(st.integers(1, 6), st.integers(2, 5), st.floats(1.0, 3600.0), st.floats(0.05, 0.7))
@settings(max_examples=30, deadline=None)
def test_crawls_are_found_that_take_less_than_three_quarters_of_their_period(pages, crawls, delay, share):
    period = max(delay * pages / share, 4.1 * delay)  # a delay as long as the pause would be a pause
    observations = weekly(pages, crawls, [[0] * pages] * crawls, delay, period)
    rounds = segment_crawls(observations, np.zeros(pages, np.int64))
    assert rounds.of_observation.tolist() == list(range(crawls)) * pages


def test_a_pause_can_be_named_and_sites_are_cut_by_themselves():
    observations = Observations.from_visits(Visits.of([1, 2, 3, 3], [0.0, 10.0, 3.0, 103.0]))
    rounds = segment_crawls(observations, np.array([0, 0, 1]), 5.0)
    assert (rounds.site.tolist(), rounds.start.tolist(), rounds.end.tolist()) == (
        [0, 1, 0, 1],
        [0.0, 3.0, 10.0, 103.0],
        [0.0, 3.0, 10.0, 103.0],
    )
    assert rounds.of_observation.tolist() == [0, 2, 1, 3]
    assert len(segment_crawls(observations, np.array([0, 0, 0]), 1000.0)) == 1


def test_a_page_is_paired_with_its_next_capture_whichever_crawl_has_it():
    same, other = Verdict.UNCHANGED, Verdict.CHANGED
    observations = weekly(3, 3, [[0, 0, 0], [other, None, same], [same, same, None]])
    site = np.zeros(3, np.int64)
    rounds = segment_crawls(observations, site)
    pairs = pair(observations, rounds, site)
    first = pairs.round == 0
    assert pairs.found[first].tolist() == [RevisitResult.CHANGED, RevisitResult.UNCHANGED, RevisitResult.UNCHANGED]
    again = observations.time[pairs.revisit[first]]
    assert again.tolist() == [7 * DAY, 14 * DAY + 60.0, 7 * DAY + 120.0]
    assert pairs.revisit[pairs.round == 2].tolist() == [NO_REVISIT, NO_REVISIT]
    assert not pairs.new.any()


def test_a_capture_with_revisits_is_paired_within_itself():
    visit, revisit = [0.0, 1.0, 2.0, 3.0], [8.0, 7.0, 6.0, 5.0]
    observations = Observations.from_visits(
        Visits.of([1, 2, 3, 4] * 2, visit + revisit, verdict=[0] * 4 + [1, 2, 1, 1])
    )
    site = np.zeros(4, np.int64)
    rounds = segment_crawls(observations, site, 100.0)
    pairs = pair(observations, rounds, site)
    assert pairs.found.tolist() == [
        RevisitResult.UNCHANGED,
        RevisitResult.CHANGED,
        RevisitResult.UNCHANGED,
        RevisitResult.UNCHANGED,
    ]
    quality = archive_quality(observations, np.full(4, 0.01), np.ones(4), site, rounds=rounds)
    said = quality.of_crawl(0)
    assert (said.joint.start, said.joint.end, said.changed.tolist()) == (3.0, 5.0, [2])


def test_classes_of_change_tell_links_content_missing_new_and_unseen():
    page = [1, 2, 3, 4, 5, 1, 2, 3, 4, 6]
    time = [0.0, 1.0, 2.0, 3.0, 4.0, 1000.0, 1001.0, 1002.0, 1003.0, 1005.0]
    verdict = [0] * 5 + [1, 2, 2, 2, 0]
    kinds = [0] * 5 + [0, ChangeKind.CONTENT, ChangeKind.CONTENT | ChangeKind.LINKS, ChangeKind.EXISTENCE, 0]
    outcome = [Outcome.FETCHED] * 8 + [Outcome.GONE, Outcome.FETCHED]
    observations = Observations.from_visits(Visits.of(page, time, verdict=verdict, kinds=kinds, outcome=outcome))
    quality = archive_quality(observations, np.full(6, 1e-4), np.ones(6), np.zeros(6, np.int64))
    assert last_change_classes(quality).tolist() == [
        ChangeClass.UNCHANGED,
        ChangeClass.CONTENT,
        ChangeClass.LINKS,
        ChangeClass.MISSING,
        ChangeClass.UNSEEN,
        ChangeClass.NEW,
    ]
    counts = tally(quality, quality.pairs, quality.pairs.round, 2)
    assert counts.captures.tolist() == [5, 4]  # a page that is gone is not in the crawl that finds it gone
    assert (counts.coherent[0], counts.changed[0], counts.links[0], counts.missing[0], counts.unseen[0]) == (
        1,
        2,
        1,
        1,
        1,
    )
    assert counts.new.tolist() == [0, 1]
    assert counts.judged().tolist() == [4, 0]


def test_the_blur_of_a_crawl_is_that_of_its_statement():
    rng = np.random.default_rng(5)
    same = [[0] * 6, [1] * 6, [1] * 6]
    observations = weekly(6, 3, same, delay=HOUR)
    rate, weight = rng.uniform(0, 2 / DAY, 6), rng.uniform(0.5, 2.0, 6)
    quality = archive_quality(observations, rate, weight, np.zeros(6, np.int64))
    said = [quality.of_crawl(crawl).predicted_blur.average for crawl in range(3)]
    assert crawl_blur(quality) == pytest.approx(said)
    visit = np.arange(6) * HOUR
    # Revisits are a week later: within the crawl only the visits matter.
    assert said[0] == pytest.approx(average_blur(rate, visit, 0.0, 5 * HOUR, None, weight))
    assert usual_delay(quality) == HOUR
    assert quality.of_crawl(0).expected_coherence == pytest.approx(np.exp(-rate * 7 * DAY).sum())


def test_an_archive_of_one_instant_has_no_blur():
    quality = archive_quality(
        Observations.from_visits(Visits.of([1, 2], [5.0, 5.0], outcome=[Outcome.FETCHED, Outcome.GONE])),
        np.array([0.5, 0.5]),
        np.ones(2),
        np.zeros(2, np.int64),
    )
    assert quality.achieved.tolist()[0] == 0.0
    assert np.isnan(quality.distance[1])
    assert np.isnan(usual_delay(quality))


def test_a_mean_leaves_out_what_is_not_known():
    value, weight, label = np.array([1.0, 4.0, np.nan]), np.array([1.0, 2.0, 1.0]), np.array([0, 0, 1])
    assert weighted_mean(value, weight, label, 3).tolist()[0] == 3.0
    assert np.isnan(weighted_mean(value, weight, label, 3)[1:]).all()


def test_consecutive_captures_are_pairs_too():
    outcome = [Outcome.FETCHED] * 3 + [Outcome.GONE, Outcome.FETCHED]
    observations = Observations.from_visits(
        Visits.of([1, 1, 1, 1, 2], [0.0, 1.0, 2.0, 3.0, 0.0], verdict=[0, 1, 2, 2, 0], outcome=outcome)
    )
    pairs = consecutive(observations)
    assert pairs.row.tolist() == [0, 0, 0, 1]  # what is gone is no capture
    assert pairs.found.tolist() == [
        RevisitResult.UNCHANGED,
        RevisitResult.CHANGED,
        RevisitResult.MISSING,
        RevisitResult.UNKNOWN,
    ]
    assert pairs.revisit.tolist() == [1, 2, 3, NO_REVISIT]
    assert len(consecutive(Observations.from_visits(Visits.empty()))) == 0


def test_a_look_that_is_visit_and_revisit_in_one_is_coherent_by_itself():
    observations = Observations.from_visits(
        Visits.of([1, 1, 2, 2], [0.0, 2.0, 1.0, 90.0], verdict=[0, Verdict.UNCHANGED, 0, 2])
    )
    site, once = np.zeros(2, np.int64), np.array([False, False, True, False])
    rounds = segment_crawls(observations, site, 10.0)
    pairs = pair(observations, rounds, site, once)
    assert pairs.round.tolist() == [0, 0, 1]
    assert observations.time[pairs.revisit[:2]].tolist() == [2.0, 1.0]
    assert pairs.found.tolist() == [RevisitResult.UNCHANGED, RevisitResult.UNCHANGED, RevisitResult.UNKNOWN]
    assert pair(observations, rounds, site).found.tolist() == [
        RevisitResult.UNCHANGED,
        RevisitResult.CHANGED,
        RevisitResult.UNKNOWN,
    ]


def test_a_second_look_that_could_not_be_compared_hides_nothing():
    says = [Verdict.UNKNOWN, Verdict.UNCHANGED, Verdict.UNKNOWN]
    observations = Observations.from_visits(Visits.of([1, 1, 1], [0.0, 5.0, 6.0], verdict=says))
    site = np.zeros(1, np.int64)
    pairs = pair(observations, segment_crawls(observations, site, 100.0), site)
    assert pairs.revisit.tolist() == [1]
    assert pairs.found.tolist() == [RevisitResult.UNCHANGED]
