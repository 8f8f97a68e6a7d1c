import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from recrawl.simulate.virtual_web import EventTimes

ROWS = 4
events = st.lists(st.tuples(st.integers(0, ROWS - 1), st.floats(-10, 10).map(lambda t: round(t, 1))))
questions = st.lists(st.tuples(st.integers(0, ROWS - 1), st.floats(-12, 12).map(lambda t: round(t, 1))), min_size=1)


def make(rows):
    return EventTimes.of([row for row, _ in rows], [time for _, time in rows], ROWS)


@given(events, questions)
def test_counts_up_to_a_time_as_a_plain_loop_does(rows, asked):
    row, t = zip(*asked, strict=True)
    expected = [sum(1 for r, time in rows if r == page and time <= when) for page, when in asked]
    assert make(rows).until(row, t).tolist() == expected


@given(events, questions)
def test_finds_the_last_event_as_a_plain_loop_does(rows, asked):
    row, t = zip(*asked, strict=True)
    found = make(rows).last_until(row, t)
    for page, when, last in zip(row, t, found, strict=True):
        before = [time for r, time in rows if r == page and time <= when]
        assert (np.isnan(last) and not before) or last == max(before)


@given(events)
def test_rows_hold_their_own_times_ascending(rows):
    made = make(rows)
    assert len(made) == ROWS
    for row in range(ROWS):
        assert made.row(row).tolist() == sorted(time for r, time in rows if r == row)


@given(events)
def test_where_keeps_rows_and_drops_events(rows):
    made = make(rows)
    kept = made.where(made.times > 0)
    for row in range(ROWS):
        assert kept.row(row).tolist() == [time for time in made.row(row).tolist() if time > 0]


@given(events, events)
def test_concatenation_appends_rows(first, second):
    joined = EventTimes.concatenate([make(first), make(second)])
    assert len(joined) == 2 * ROWS
    assert joined.row(ROWS + 1).tolist() == make(second).row(1).tolist()
    assert joined.row(1).tolist() == make(first).row(1).tolist()


def test_one_time_answers_for_many_rows():
    made = EventTimes.of([0, 1, 1], [1.0, 2.0, 3.0], 3)
    assert made.until(np.arange(3), 2.5).tolist() == [1, 1, 0]
    assert made.until(1, [0.0, 2.0, 9.0]).tolist() == [0, 1, 2]
