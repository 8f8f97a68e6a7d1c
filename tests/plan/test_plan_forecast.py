"""What past crawls teach of the next one: download times, growth, and the time all of it takes."""

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from recrawl.plan import crawl_time as forecasting
from recrawl.plan.crawl_time import HostTreatment, PlannedCrawl, forecast, learn_growth
from recrawl.plan.download_times import Downloads, learn_downloads
from recrawl.schedule.politeness.host_politeness import PolitenessRules
from recrawl_lab.trials.crawl_time_trial import KINDS, crawl_world, draw_world, evaluate_kind, median_error

POLITE = HostTreatment(PolitenessRules(5.0, 3.0, 30.0))
NO_PAST = Downloads(np.empty(0, np.int64), np.empty(0, np.int64), np.empty(0), np.empty(0, np.bool_))


def past(seed=0, *, hosts=30, crawls=6, spread=0.5, between=0.8):
    each, of_host, of_crawl = 40, 0.3, 0.2
    rng = np.random.default_rng(seed)
    middle = between * rng.standard_normal(hosts)
    today = of_host * rng.standard_normal((hosts, crawls)) + of_crawl * rng.standard_normal(crawls)
    host, crawl = np.repeat(np.arange(hosts), crawls * each), np.tile(np.repeat(np.arange(crawls), each), hosts)
    log = middle[host] + today[host, crawl] + spread * rng.standard_normal(len(host))
    return middle, Downloads(host, crawl, np.exp(log), np.ones(len(host), np.bool_))


def crawl_of(pages, threads=4, delay=math.nan):
    return PlannedCrawl(np.asarray(pages, dtype=np.int64), np.full(len(pages), delay), threads, POLITE)


# -- download times --------------------------------------------------------------------------------------


def test_middles_and_variances_are_found():
    found = [learn_downloads(past(seed, hosts=60, crawls=12)[1], 60) for seed in range(4)]
    assert np.mean([one.spread.mean() for one in found]) == pytest.approx(0.5, rel=0.05)
    assert np.mean([one.of_host for one in found]) == pytest.approx(0.3, rel=0.15)
    assert np.mean([one.of_crawl for one in found]) == pytest.approx(0.2, rel=0.4)
    middle, downloads = past(0, hosts=60, crawls=12)
    errors = learn_downloads(downloads, 60).middle - middle
    assert np.abs(errors - errors.mean()).mean() < 0.3 / math.sqrt(12) * 1.5


def test_little_is_known_of_a_host_seen_little_and_of_one_never_seen():
    _, downloads = past()
    rows = np.concatenate([np.flatnonzero(downloads.host > 0), np.flatnonzero(downloads.host == 0)[:1]])
    some = Downloads(downloads.host[rows], downloads.crawl[rows], downloads.seconds[rows], downloads.answered[rows])
    found = learn_downloads(some, 31)
    assert found.doubt[1] < found.doubt[0] < found.doubt[30]
    assert found.middle[30] == pytest.approx(found.middle[1:30].mean(), abs=0.2)
    own = math.log(some.seconds[-1])
    between = sorted([found.middle[30], own])
    assert between[0] <= found.middle[0] <= between[1]


def test_nothing_is_known_without_a_past():
    found = learn_downloads(NO_PAST, 2)
    assert found.mean() == pytest.approx([2.0, 2.0], rel=0.4)
    assert np.isfinite(
        found.next_crawl(np.random.default_rng(0)).seconds(np.zeros(9, np.int64), np.random.default_rng(0))
    ).all()


def test_failures_take_as_long_as_failures_took():
    host = np.repeat([0, 1], 200)
    answered = np.tile([True, False], 200)
    seconds = np.where(answered, 1.0, np.where(host == 0, 20.0, 0.1))
    found = learn_downloads(Downloads(host, np.zeros(400, np.int64), seconds, answered), 3, limit=20.0)
    rng = np.random.default_rng(1)
    assert found.failed / (found.failed + found.answered) == pytest.approx([0.5, 0.5, 0.48], abs=0.01)
    assert np.median(found.draw_failures(np.zeros(99, np.int64), rng)) == 20.0
    assert np.median(found.draw_failures(np.ones(99, np.int64), rng)) == 0.1
    future = found.next_crawl(rng)
    drawn = future.seconds(np.repeat([0, 1], 20_000), rng).reshape(2, -1)
    assert drawn.mean(axis=1) == pytest.approx(future.mean()[:2], rel=0.05)
    assert drawn.max() <= 20.0


def test_untimed_downloads_count_only_as_answers():
    _, downloads = past(hosts=3)
    more = Downloads(
        np.append(downloads.host, 0),
        np.append(downloads.crawl, 0),
        np.append(downloads.seconds, 0.0),
        np.append(downloads.answered, True),
    )
    before, after = learn_downloads(downloads, 3), learn_downloads(more, 3)
    assert after.middle == pytest.approx(before.middle)
    assert after.answered[0] > before.answered[0]


# -- growth -----------------------------------------------------------------------------------------------


def test_growth_is_learned_by_host_and_shrunk():
    rng = np.random.default_rng(5)
    true = rng.gamma(2.0, 0.3, 40)
    host, given_pages = np.tile(np.arange(40), 5), rng.integers(20, 200, 200)
    steady = rng.gamma(10.0, 0.1, 200)
    found = rng.poisson(true[host] * steady * given_pages)
    grown = learn_growth(host, given_pages, found, 41)
    assert np.corrcoef(grown.mean()[:40], true)[0, 1] > 0.9
    assert grown.mean()[40] == pytest.approx(true.mean(), rel=0.3)
    assert 1 / grown.k == pytest.approx(0.1, rel=0.5)
    drawn = np.stack([grown.draw(np.full(41, 100), rng) for _ in range(4_000)])
    assert drawn.mean(axis=0) == pytest.approx(100 * grown.mean(), rel=0.1)


def test_what_never_grew_does_not_grow():
    none = learn_growth(np.array([0, 1]), np.array([10, 0]), np.array([0, 3]), 2)
    assert none.draw(np.array([1_000, 1_000]), np.random.default_rng(0)).tolist() == [0, 0]
    assert learn_growth(*(np.empty(0, np.int64),) * 3, 2).mean().tolist() == [0.0, 0.0]


# -- the whole --------------------------------------------------------------------------------------------


@given(st.lists(st.integers(0, 30), min_size=1, max_size=8), st.integers(1, 6), st.floats(0.1, 9.0), st.integers(0, 99))
@settings(deadline=None, max_examples=30)
def test_more_pages_or_rest_never_make_it_shorter_nor_threads_longer_than_the_bounds_say(pages, threads, delay, seed):
    times = learn_downloads(past(hosts=8)[1], 8)

    def ask(pages, threads, delay):
        padded = [*pages, *[0] * (8 - len(pages))]
        return forecast(crawl_of(padded, threads, delay), times, np.random.default_rng(seed), draws=20)

    found = ask(pages, threads, delay)
    assert found.low <= found.seconds <= found.high
    assert found.seconds >= max(found.longest, found.work) * (1 - 1e-9)
    assert found.seconds <= (found.longest + found.work) * 2
    slower, wider = ask(pages, threads, delay + 2.0), ask(pages, threads + 1, delay)
    assert slower.longest >= found.longest
    assert wider.work <= found.work
    assert wider.longest == pytest.approx(found.longest)


def test_one_host_after_another():
    times = learn_downloads(past(hosts=4)[1], 4)
    alone = forecast(crawl_of([50, 0, 0, 0], 8, 10.0), times, np.random.default_rng(0))
    assert alone.seconds == pytest.approx(alone.longest)
    assert alone.slowest == 0
    assert alone.seconds == pytest.approx(49 * 10.0 + 50 * times.mean()[0], rel=0.2)
    assert alone.useful_concurrency < 1


def test_longest_first_is_not_slower_where_threads_are_scarce():
    times = learn_downloads(past(hosts=20, between=0.1, spread=0.1)[1], 20)
    pages = [200, *[40] * 19]
    quick = PlannedCrawl(np.array(pages), np.full(20, 0.05), 3, HostTreatment(PolitenessRules(0.0, 0.0, 0.0)))
    turns, longest = (forecast(quick, times, np.random.default_rng(0), order=o, draws=30) for o in ("turns", "longest"))
    assert longest.seconds < turns.seconds
    assert longest.seconds == pytest.approx(max(longest.longest, longest.work), rel=0.05)


@pytest.mark.parametrize("delay", [2.0, math.nan])
def test_a_large_crawl_is_judged_by_its_bounds(monkeypatch, delay):
    times = learn_downloads(past()[1], 30)
    crawl = crawl_of(np.arange(30) * 20, 3, delay)
    whole = forecast(crawl, times, np.random.default_rng(0))
    monkeypatch.setattr(forecasting, "_MOST_REQUESTS", (100_000, 100_000))
    some = forecast(crawl, times, np.random.default_rng(1))
    assert len(some.draws) == len(whole.draws)
    assert some.seconds >= max(some.longest, some.work) * (1 - 1e-9)
    for part, near in (("seconds", 0.12), ("longest", 0.12), ("work", 0.12), ("low", 0.2), ("high", 0.2)):
        assert getattr(some, part) == pytest.approx(getattr(whole, part), rel=near)


def test_hosts_unheard_of_may_be_as_slow_as_any():
    times = learn_downloads(past(hosts=3)[1], 3)
    delay = np.array([1.0, 60.0, 1.0])
    pages, rules = np.array([1, 1, 100]), HostTreatment(PolitenessRules(0.0, 0.0, 0.0))
    known = forecast(PlannedCrawl(pages, delay, 4, rules), times, np.random.default_rng(0))
    unheard = forecast(
        PlannedCrawl(pages, delay, 4, rules, np.array([False, False, True])), times, np.random.default_rng(0)
    )
    assert unheard.high > 5 * known.high


def test_nothing_to_do():
    assert forecast(crawl_of([0, 0]), learn_downloads(NO_PAST, 2), np.random.default_rng(0)).seconds == 0.0


def test_rests_are_those_of_the_politeness_rules():
    seconds, delay = np.array([0.1, 2.0, 9.0, 2.0, 2.0]), np.array([math.nan, math.nan, math.nan, 1.0, 1_000.0])
    expected = [POLITE.rules.pause(s, None if math.isnan(d) else d) for s, d in zip(seconds, delay, strict=True)]
    assert POLITE.pause(seconds, delay).tolist() == expected


# -- judged on simulated crawls ---------------------------------------------------------------------------


@pytest.mark.parametrize("kind", KINDS, ids=lambda kind: kind.name)
def test_the_error_is_a_third_of_the_old_one_and_the_interval_covers(kind):
    judged = evaluate_kind(kind, 20, np.random.default_rng(12), draws=50)
    assert median_error(judged, "recrawl") <= median_error(judged, "printed") / 3
    assert median_error(judged, "recrawl") <= median_error(judged, "corrected")
    assert 0.75 <= np.mean([one.covered for one in judged]) <= 1.0


def test_past_crawls_go_to_known_hosts_only():
    rng = np.random.default_rng(2)
    world = draw_world(KINDS[2], rng)
    record = crawl_world(world, 0, rng)
    assert (record.given > 0).tolist() == world.known.tolist()
    assert np.bincount(record.downloads.host, minlength=len(world)).tolist() == (record.given + record.found).tolist()
    assert record.found.sum() > 0


def test_heavy_tails_of_past_downloads_are_drawn_again():
    rng = np.random.default_rng(4)
    off = rng.standard_t(3.0, 20_000) / np.sqrt(3.0)
    past = Downloads(np.zeros(20_000, np.int64), np.arange(20_000) % 4, np.exp(0.5 * off), np.ones(20_000, np.bool_))
    times = learn_downloads(past, 1, limit=60.0)
    assert times.shape.mean() == pytest.approx(0.0, abs=0.05)
    assert times.shape[-1] > 4.5
    future = times.next_crawl(rng)
    drawn = future.seconds(np.zeros(20_000, np.int64), rng) / np.exp(future.middle[0])
    for share in (0.5, 0.9, 0.99):
        assert np.quantile(drawn, share) == pytest.approx(np.quantile(past.seconds, share), rel=0.15)


def test_of_nothing_known_the_shape_is_normal():
    nobody = Downloads(np.empty(0, np.int64), np.empty(0, np.int64), np.empty(0), np.empty(0, np.bool_))
    shape = learn_downloads(nobody, 2).shape
    assert shape.std() == pytest.approx(1.0, rel=0.01)
    assert shape[-1] == pytest.approx(-shape[0])
