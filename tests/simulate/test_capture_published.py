"""The synthetic tables of the thesis: what is expected on their sites, by an independent implementation."""

import pytest

from recrawl.capture import STRATEGIES
from recrawl_lab.trials.capture_trial import (
    BLUR_TABLES,
    COHERENCE_TABLES,
    THRESHOLD_TABLES,
    THRESHOLDS,
    StrategyEntry,
    run_trials,
)

TABLES = {table.name: table for table in (*BLUR_TABLES, *COHERENCE_TABLES)}


def trial(table, value, strategy):
    setting = next(one for one in TABLES[table].settings() if one.value == value)
    return run_trials(setting, [StrategyEntry(strategy)], seed=1, repeats=1)[0]


@pytest.mark.parametrize(
    ("table", "value", "strategy", "expected"),
    [
        ("4.4a", 1e4, "hottest-first", 2.25),
        ("4.4a", 1e4, "hottest-last", 1.74),
        ("4.4a", 1e4, "sharc-online", 1.68),
        ("4.4b", 1e4, "hottest-first", 1.45),
        ("4.4b", 1e4, "sharc-online", 1.21),
        ("4.5a", 10, "hottest-last", 19.73),
        ("4.5b", 10, "hottest-first", 20.89),
        ("4.6a", 1.0, "olston-pandey", 4.38),
        ("4.6b", 1.0, "sharc-online", 2.63),
    ],
)
def test_expected_blur_of_a_row(table, value, strategy, expected):
    assert trial(table, value, strategy).expected_whole[0] == pytest.approx(expected, abs=0.006)


@pytest.mark.parametrize(
    ("table", "value", "strategy", "expected"),
    [
        ("5.9", 1e4, "sharc-revisits", 4155),
        ("5.9", 1e4, "hottest-first-lifo", 4126),
        ("5.9", 1e4, "hottest-last-lifo", 3039),
        ("5.9", 1e4, "bfs-fifo", 4155),
        ("5.10", 1e4, "hottest-last-lifo", 3238),
        ("5.11", 3, "sharc-selective", 5618),
        ("5.12", 3, "sharc-selective-online", 6448),
        ("5.13", 2.0, "sharc-selective-online", 36),
        ("5.14", 1.5, "sharc-selective", 374),
    ],
)
def test_expected_incoherence_of_a_row(table, value, strategy, expected):
    assert trial(table, value, strategy).expected[0] == pytest.approx(expected, abs=0.6)


def test_every_column_is_a_strategy_and_every_row_is_complete():
    for table in TABLES.values():
        assert set(table.columns) <= set(STRATEGIES)
        assert all(len(row) == len(table.columns) + 1 for row in table.rows)
    assert all(len(row) == len(THRESHOLDS) for rows in THRESHOLD_TABLES.values() for row in rows.values())


def test_large_sites_are_left_out_and_shrunk_only_where_nothing_else_is_left():
    sizes = TABLES["4.4a"]
    assert [one.pages for one in sizes.settings_within(100_000)] == [10_000, 50_000, 100_000]
    shrunk = sizes.settings_within(500)
    assert [(one.pages, one.outdegree, dict(one.published)) for one in shrunk] == [(500, 100, {})]
    skews = TABLES["5.13"].settings_within(500)
    assert [(one.skew, one.pages, one.outdegree) for one in skews] == [(1.0, 500, 25), (1.5, 500, 25), (2.0, 500, 25)]


def test_equal_seeds_give_equal_trials_and_others_do_not():
    setting = TABLES["4.5b"].settings_within(300)[0]
    first, again, other = (run_trials(setting, [StrategyEntry("dfs")], seed=seed, repeats=2)[0] for seed in (1, 1, 2))
    assert first == again
    assert first.actual != other.actual
    assert first.expected != other.expected
