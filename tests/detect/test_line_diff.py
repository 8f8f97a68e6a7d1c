"""Two versions beside each other lose nothing and mark only what differs."""

from __future__ import annotations

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from recrawl.detect import explanation as module
from recrawl.detect.explanation import LineSide, side_by_side

LINES = st.lists(st.text("ab c.", max_size=8), max_size=12)


def _text(pieces):
    return "".join(text for text, _ in pieces)


def _counted(rows):
    return sum(row.skipped if row.side is LineSide.SKIPPED else 1 for row in rows)


@given(LINES, LINES)
def test_each_side_is_its_version(before, after):
    assume(before != after)
    rows = side_by_side(before, after, context=1000)
    assert [_text(row.before) for row in rows if row.side is not LineSide.CAME] == before
    assert [_text(row.after) for row in rows if row.side is not LineSide.WENT] == after


@given(LINES, LINES)
def test_what_is_not_marked_is_on_both_sides(before, after):
    for row in side_by_side(before, after, context=1000):
        if row.side in {LineSide.SAME, LineSide.EDITED}:
            same = [[text for text, differs in side if not differs] for side in (row.before, row.after)]
            assert "".join(same[0]) == "".join(same[1])
        if row.side is LineSide.EDITED:
            assert any(differs for side in (row.before, row.after) for _, differs in side)


@given(LINES, LINES, st.integers(0, 3))
def test_lines_left_out_are_counted(before, after, context):
    whole, short = side_by_side(before, after, context=1000), side_by_side(before, after, context=context)
    assert _counted(short) == _counted(whole)
    changes = [row for row in whole if row.side not in {LineSide.SAME, LineSide.SKIPPED}]
    assert [row for row in short if row.side not in {LineSide.SAME, LineSide.SKIPPED}] == changes


def test_equal_versions_are_left_out_whole():
    [row] = side_by_side(["a"] * 7, ["a"] * 7)
    assert (row.side, row.skipped) == (LineSide.SKIPPED, 7)


def test_versions_of_endless_lines_are_not_compared(monkeypatch):
    monkeypatch.setattr(module, "MOST_LINES", 3)
    assert side_by_side(["a"] * 4, ["a"]) is None


def test_long_lines_are_marked_as_a_whole():
    [row] = side_by_side(["a " * 3000], ["b " * 3000])
    assert row.side is LineSide.EDITED
    assert row.before == (("a " * 3000, True),)


@pytest.mark.timeout(60)
def test_a_page_that_repeats_itself_costs_no_more_than_others():
    """Compared without a thought, these take minutes; and whoever makes web pages may make such ones."""
    rows = side_by_side(["a"] * 1_500, ["b", "a"] * 750)
    assert {row.side for row in rows} >= {LineSide.CAME}


def test_words_are_compared_up_to_a_limit(monkeypatch):
    before = [f"The fee of tour {number} is 3 EUR" for number in range(50)]
    after = [line.replace("3 EUR", "4 EUR") for line in before]
    words = 8 + 7  # and the spaces between them
    monkeypatch.setattr(module, "MOST_PAIRS", 10 * words**2)
    rows = [row for row in side_by_side(before, after) if row.side is LineSide.EDITED]
    assert len(rows) == 50
    assert sum(len(row.after) > 1 for row in rows) == 10
    assert [text for text, differs in rows[-1].after if differs] == [after[-1]]
