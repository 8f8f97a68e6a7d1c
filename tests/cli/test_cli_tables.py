"""What tables show: every number has a text."""

import math

import pytest
from click import unstyle
from hypothesis import given
from hypothesis import strategies as st

from recrawl.app.display import shown_time
from recrawl.cli.tables import print_table

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


LONG = "https://library.example.org/collections/manuscripts/section-with-a-long-name/page-7.html?language=de"
WORDY = ("page", "url", "why", "last visit", "next due", "in vain")
ROW = ("7", LONG, "retry after 2 failures", "2026-11-14 00:30", "2026-11-15 04:20", "4.62 d")


def printed(monkeypatch, capsys, columns, **options):
    monkeypatch.setenv("COLUMNS", str(columns))
    monkeypatch.setenv("FORCE_COLOR", "1")
    print_table(WORDY, [ROW], right=("page",), **options)
    return unstyle(capsys.readouterr().out)


@pytest.mark.parametrize("columns", [65, 80, 100, 120])
def test_where_not_all_fits_only_urls_are_broken_and_not_into_crumbs(monkeypatch, capsys, columns):
    shown = printed(monkeypatch, capsys, columns)
    words = {word for text in (*WORDY, *ROW) if text != LONG for word in text.split()}
    assert words <= set(shown.split())
    assert "4.62 d" in shown
    assert LONG[:20] in shown
    assert max(map(len, shown.splitlines())) <= columns


@pytest.mark.parametrize("columns", [13, 30, 60])
def test_where_not_even_words_fit_every_column_is_there(monkeypatch, capsys, columns):
    shown = printed(monkeypatch, capsys, columns)
    assert sum("─" in line for line in shown.splitlines()) == 1
    letters = "".join((*WORDY, *ROW)).replace(" ", "")
    assert sorted("".join(shown.split()).replace("─", "")) == sorted(letters)


def test_spare_columns_are_left_out_one_by_one_where_there_is_no_room(monkeypatch, capsys):
    spare = ("last visit", "in vain")
    said = "The terminal is too narrow for: "
    assert said not in printed(monkeypatch, capsys, 65, spare=spare)
    assert said + "last visit.\n" in printed(monkeypatch, capsys, 64, spare=spare)
    assert said + "last visit, in vain.\n" in printed(monkeypatch, capsys, 53, spare=spare)
