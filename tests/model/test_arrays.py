from __future__ import annotations

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from recrawl.model.arrays import offsets_of, order_by, starts_of_runs

majors = st.integers(-3, 3) | st.sampled_from([-(2**62), 2**62])


@given(st.lists(st.tuples(majors, st.floats(-1e300, 1e300)), max_size=50))
def test_order_by_sorts_like_python(rows):
    major = np.array([m for m, _ in rows], dtype=np.int64)
    minor = np.array([t for _, t in rows], dtype=np.float64)
    order = order_by(major, minor)
    taken = rows if order is None else [rows[i] for i in order]
    assert taken == sorted(rows)
    assert (order is None) == (rows == sorted(rows))


@given(st.lists(st.integers(0, 9), max_size=30))
def test_offsets_count_every_row(values):
    rows = np.array(sorted(values), dtype=np.int64)
    offsets = offsets_of(rows, 10)
    assert [rows[offsets[i] : offsets[i + 1]].tolist() for i in range(10)] == [[i] * values.count(i) for i in range(10)]


@given(st.lists(st.integers(0, 2), max_size=20))
def test_runs_start_where_the_value_changes(values):
    starts = starts_of_runs(np.array(values, dtype=np.int64)).tolist()
    assert starts == [i == 0 or values[i] != values[i - 1] for i in range(len(values))]
