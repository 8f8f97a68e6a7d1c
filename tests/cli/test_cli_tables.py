"""What tables show: every number has a text."""

import math

import pytest
from click import unstyle
from hypothesis import given
from hypothesis import strategies as st

from recrawl.cli.tables import print_table, shown_time

YEAR = 365.25 * 86_400


@given(st.floats())
def test_every_time_can_be_shown(when):
    assert shown_time(when)


@pytest.mark.parametrize(
    ("when", "shown"),
    [
        (0.0, "1970-01-01 00:00"),
        (-1.0, "1969-12-31 23:59"),
        (1_700_000_000.9, "2023-11-14 22:13"),
        (-31_556_908_800.0, "0970-01-01 00:00"),
        (8_100 * YEAR, "far future"),
        (1e300, "far future"),
        (-1e300, "far past"),
        (math.inf, "never"),
        (-math.inf, "–"),
        (math.nan, "–"),
    ],
)
def test_times_near_and_far(when, shown):
    assert shown_time(when) == shown


@pytest.mark.parametrize(("columns", "gap"), [(40, 3), (35, 3), (34, 2), (33, 2), (32, 1), (31, 1)])
def test_columns_move_together_before_words_break(monkeypatch, capsys, columns, gap):
    monkeypatch.setenv("COLUMNS", str(columns))
    monkeypatch.setenv("FORCE_COLOR", "1")
    headings = ("reported", "precision", "seen after")
    print_table(headings, [("14", "100%", "16.6 s")], right=headings)
    assert (" " * gap).join(headings) in unstyle(capsys.readouterr().out)
