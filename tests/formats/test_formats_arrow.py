"""Visits and histories through Arrow and Parquet."""

from __future__ import annotations

import subprocess
import sys
from contextlib import suppress
from dataclasses import fields

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as arrays

from recrawl.errors import InputError
from recrawl.formats.columnar.arrow_tables import (
    PageUrls,
    histories_from_table,
    histories_to_table,
    located_visits,
    read_histories,
    read_located_visits,
    read_visits,
    visits_from_table,
    visits_to_table,
    write_histories,
    write_visits,
)
from recrawl.model import UNMEASURED, VISIT_COLUMNS, ChangeKind, Histories, Outcome, Verdict, Visits

small = settings(suppress_health_check=[HealthCheck.function_scoped_fixture], deadline=None, max_examples=30)
RANGES = {
    "time": st.floats(-1e12, 1e12),
    "outcome": st.integers(0, max(Outcome)),
    "verdict": st.integers(0, max(Verdict)),
    "kinds": st.integers(0, sum(ChangeKind)).map(lambda kinds: kinds & ~ChangeKind.LINKS_COMPARED),
    "magnitude": st.just(-1.0) | st.floats(0, 1, width=32),
}


@st.composite
def visits(draw):
    length = draw(st.integers(0, 30))
    columns = [draw(arrays.arrays(dtype, length, elements=RANGES.get(name))) for name, dtype in VISIT_COLUMNS.items()]
    return Visits(*columns)


@st.composite
def histories(draw):
    length = draw(st.integers(0, 30))
    page = draw(arrays.arrays(np.int64, length, elements=st.integers(0, 6)))
    time = draw(arrays.arrays(np.float64, length, elements=st.integers(0, 10**9)))
    verdict = draw(arrays.arrays(np.uint8, length, elements=st.integers(0, 2)))
    outcome = draw(arrays.arrays(np.uint8, length, elements=st.sampled_from([0, 3, 7])))
    return Histories.from_visits(Visits.of(page, time, verdict=verdict, outcome=outcome))


def assert_same(one, two):
    assert type(one) is type(two)
    for column in fields(one):
        ours, theirs = getattr(one, column.name), getattr(two, column.name)
        assert ours.dtype == theirs.dtype, column.name
        np.testing.assert_array_equal(ours, theirs, err_msg=column.name)


@given(visits())
def test_visits_survive_arrow_without_a_copy(original):
    back = visits_from_table(visits_to_table(original))
    assert_same(original, back)
    for name in VISIT_COLUMNS:
        assert np.shares_memory(getattr(original, name), getattr(back, name)) == (len(original) > 0), name


@given(histories())
def test_histories_survive_arrow_without_a_copy(original):
    back = histories_from_table(histories_to_table(original))
    assert_same(original, back)
    for column in fields(original):
        ours, theirs = getattr(original, column.name), getattr(back, column.name)
        assert np.shares_memory(ours, theirs) == (len(ours) > 0), column.name


@small
@given(visits())
def test_visits_survive_a_file(tmp_path, original):
    write_visits(tmp_path / "visits.parquet", original)
    assert_same(original, read_visits(tmp_path / "visits.parquet"))


@small
@given(histories())
def test_histories_survive_a_file(tmp_path, original):
    write_histories(tmp_path / "histories.parquet", original)
    assert_same(original, read_histories(tmp_path / "histories.parquet"))


@given(histories(), st.integers(0, 6), st.integers(0, 6))
def test_a_slice_and_pieces_of_a_table_are_histories_too(original, start, length):
    table = histories_to_table(original)
    part = histories_from_table(table.slice(start, length))
    assert_same(original._rows(np.arange(len(original))[start : start + length]), part)
    pieces = pa.concat_tables([table.slice(0, start), table.slice(start)])
    assert_same(original, histories_from_table(pieces))


def test_a_large_file_in_several_row_groups_comes_back(tmp_path):
    many = Visits.of(np.arange(300_000), np.linspace(0.0, 1e9, 300_000))
    pq.write_table(visits_to_table(many), tmp_path / "v.parquet", row_group_size=70_000)
    assert_same(many, read_visits(tmp_path / "v.parquet"))


def test_a_table_of_before_has_no_magnitudes():
    table = visits_to_table(Visits.of([1, 2], [0.0, 1.0], magnitude=0.5)).drop_columns(["magnitude"])
    assert visits_from_table(table).magnitude.tolist() == [UNMEASURED, UNMEASURED]


def test_columns_in_another_order_or_narrower_are_taken():
    table = visits_to_table(Visits.of([1, 2], [0.0, 1.0]))
    narrow = changed(table, "page", pa.array([1, 2], pa.int32())).append_column("more", pa.array(["a", "b"]))
    assert_same(Visits.of([1, 2], [0.0, 1.0]), visits_from_table(narrow.select(narrow.column_names[::-1])))


def changed(table, name, values):
    return table.set_column(table.column_names.index(name), name, values)


VISITS = visits_to_table(Visits.of([1, 2], [0.0, 1.0]))
HISTORIES = histories_to_table(
    Histories.from_visits(Visits.of([1, 1, 2, 2], [0.0, 5.0, 1.0, 3.0], verdict=[0, 2, 0, 1]))
)


@pytest.mark.parametrize(
    ("table", "reason"),
    [
        (VISITS.drop_columns("time"), "no column 'time'"),
        (changed(VISITS, "time", pa.array([1.0, None])), "'time' has empty values"),
        (changed(VISITS, "time", pa.array([1.0, float("nan")])), "row 1: a visit has no finite time"),
        (changed(VISITS, "page", pa.array(["a", "b"])), "another type"),
        (changed(VISITS, "page", pa.array([[1], [2]])), "another type"),
        (changed(VISITS, "outcome", pa.array([0, 300], pa.int64())), "another type"),
        (changed(VISITS, "outcome", pa.array([0, 8], pa.uint8())), "row 1: column 'outcome' has a value above 7"),
        (changed(VISITS, "verdict", pa.array([3, 0], pa.uint8())), "row 0: column 'verdict'"),
        (changed(VISITS, "kinds", pa.array([256, 0], pa.uint16())), "row 0: column 'kinds'"),
    ],
)
def test_tables_that_are_no_visits(table, reason):
    with pytest.raises(InputError, match=reason) as caught:
        visits_from_table(table, "here.parquet")
    assert str(caught.value).startswith("here.parquet")


def lists(*rows, kind=None):
    return pa.array(rows, pa.large_list(kind or pa.float64()))


@pytest.mark.parametrize(
    ("table", "reason"),
    [
        (HISTORIES.drop_columns("gaps"), "no column 'gaps'"),
        (changed(HISTORIES, "page", pa.array([2, 2])), "row 0: page ids are not ascending"),
        (changed(HISTORIES, "gaps", lists([5.0], [])), "different lengths"),
        (changed(HISTORIES, "gaps", lists([5.0], None)), "empty values"),
        (changed(HISTORIES, "gaps", lists([5.0], [None])), "empty values"),
        (changed(HISTORIES, "gaps", lists([5.0], [0.0])), "row 1: a gap is not a positive"),
        (changed(HISTORIES, "gaps", lists([float("inf")], [1.0])), "row 0: a gap is not a positive"),
        (changed(HISTORIES, "changed", lists([1], [2], kind=pa.uint8())), "row 1: column 'changed'"),
        (changed(HISTORIES, "first_visit", pa.array([0.0, float("nan")])), "row 1: a page has gaps but no first visit"),
    ],
)
def test_tables_that_are_no_histories(table, reason):
    with pytest.raises(InputError, match=reason):
        histories_from_table(table, "here.parquet")


def test_foreign_files_are_named_and_told_apart(tmp_path):
    path = tmp_path / "x.parquet"
    with pytest.raises(InputError, match="no such file"):
        read_visits(path)
    with pytest.raises(InputError, match="no such file"):
        read_visits(tmp_path)
    path.write_bytes(b"page,time\n1,2\n")
    with pytest.raises(InputError, match="not a readable Parquet file"):
        read_visits(path)
    pq.write_table(pa.table({"page": [1]}), path)
    with pytest.raises(InputError, match="no recrawl file of visits"):
        read_visits(path)
    write_visits(path, Visits.empty())
    with pytest.raises(InputError, match="holds 'visits', not histories") as caught:
        read_histories(path)
    assert str(path) in str(caught.value)


@pytest.mark.parametrize("version", ["2", "", "x"])
def test_a_newer_layout_asks_for_an_upgrade(tmp_path, version):
    label = {"recrawl.table": "visits", "recrawl.version": version}
    pq.write_table(VISITS.replace_schema_metadata(label), tmp_path / "x.parquet")
    with pytest.raises(InputError, match="Upgrade"):
        read_visits(tmp_path / "x.parquet")


@small
@given(st.data())
def test_damage_never_passes_unnoticed(tmp_path, data):
    path = tmp_path / "x.parquet"
    original = Visits.of(np.arange(50), np.arange(50.0), size=np.arange(50) ** 2)
    write_visits(path, original)
    whole = bytearray(path.read_bytes())
    if data.draw(st.booleans()):
        del whole[data.draw(st.integers(0, len(whole) - 1)) :]
    else:
        place = data.draw(st.integers(0, len(whole) - 1))
        whole[place] ^= data.draw(st.integers(1, 255))
    path.write_bytes(whole)
    with suppress(InputError):
        assert_same(original, read_visits(path))  # the damage hit something nobody reads


def test_a_failed_write_leaves_the_old_file(tmp_path):
    path = tmp_path / "visits.parquet"
    write_visits(path, Visits.of([1], [2.0]))
    script = (
        "import resource, sys, numpy as np; from pathlib import Path; from recrawl.errors import DiskFullError;"
        "from recrawl.formats.columnar.arrow_tables import write_visits; from recrawl.model import Visits;"
        "resource.setrlimit(resource.RLIMIT_FSIZE, (4000, 4000));\n"
        "try: write_visits(Path(sys.argv[1]), Visits.of(np.arange(10**5), np.random.default_rng(1).random(10**5)))\n"
        "except DiskFullError as error: print(error)"
    )
    pytest.importorskip("resource", reason="file size limits stand in for a full disk, and this system has none")
    result = subprocess.run([sys.executable, "-c", script, str(path)], capture_output=True, text=True, check=False)
    assert "disk is full" in result.stdout, result.stderr
    assert_same(Visits.of([1], [2.0]), read_visits(path))
    assert list(tmp_path.iterdir()) == [path]


def test_a_folder_that_is_not_there_is_told(tmp_path):
    with pytest.raises(InputError, match="cannot be written"):
        write_visits(tmp_path / "no" / "visits.parquet", Visits.empty())


def test_visits_travel_with_their_urls(tmp_path):
    visits = Visits.of([3, 7, 7], [1.0, 2.0, 3.0], verdict=[0, 0, 2])
    urls = PageUrls(np.array([3, 7]), ["http://a.example/", "http://b.example/"])
    write_visits(tmp_path / "visits.parquet", visits, urls)
    found, pages = read_located_visits(tmp_path / "visits.parquet")
    assert found.time.tolist() == [1.0, 2.0, 3.0]
    assert (pages.page.tolist(), list(pages.url)) == ([3, 7], ["http://a.example/", "http://b.example/"])
    assert read_visits(tmp_path / "visits.parquet").page.tolist() == [3, 7, 7]
    write_visits(tmp_path / "numbers.parquet", visits)
    with pytest.raises(InputError, match="no column 'url'"):
        read_located_visits(tmp_path / "numbers.parquet")


def test_located_visits_come_group_by_group(tmp_path):
    path, count = tmp_path / "visits.parquet", 50
    page = np.repeat(np.arange(count), 2)
    original = Visits.of(page, np.arange(2.0 * count))
    write_visits(path, original, PageUrls(np.arange(count), [f"http://a/{n}" for n in range(count)]))
    table = pq.read_table(path)
    pq.write_table(table, path, row_group_size=15)
    groups = list(located_visits(path))
    assert [len(visits) for visits, _ in groups] == [15] * 6 + [10]
    assert np.concatenate([visits.time for visits, _ in groups]).tolist() == original.time.tolist()
    for visits, urls in groups:
        found = [urls.url[place] for place in np.searchsorted(urls.page, visits.page)]
        assert found == [f"http://a/{n}" for n in visits.page]
    pq.write_table(table.slice(0, 7), path)
    with pytest.raises(InputError, match="not how many were written"):
        next(located_visits(path))
    write_visits(path, original)
    with pytest.raises(InputError, match="no column 'url'"):
        next(located_visits(path))
