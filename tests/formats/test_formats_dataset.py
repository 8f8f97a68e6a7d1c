"""Data sets of change histories: small ones in the repository, and the public ones with the counts they promise."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet
import pytest

from recrawl.errors import InputError
from recrawl.formats.columnar.dataset import ChangeLog, LoggedChange, is_dataset, read_dataset, sites
from recrawl.model import Outcome

RECORDED = Path(__file__).resolve().parents[1] / "data" / "recorded"


REPEATED = [("documents", 473_155, 1_287), ("scholarly", 54_939, 106), ("data-sources", 476_574, 394)]
"""Events of each set, as its README counts them, and how many of those share page and time with another."""


def promised(readme: Path, key: str) -> list[dict[str, str]]:
    """The first table of a README whose first column has this title."""
    rows: list[list[str]] = []
    for line in readme.read_text().splitlines():
        cells = [cell.strip() for cell in line.strip().strip("|").split("|")]
        if line.startswith(f"| {key} ") or (rows and line.startswith("|")):
            rows.append(cells)
        elif rows:
            break
    return [dict(zip(rows[0], row, strict=True)) for row in rows[2:]]


def count(log: ChangeLog, kind: LoggedChange) -> int:
    return int((log.kind == kind).sum())


@pytest.mark.big
def test_documents_are_complete(data_folder):
    table = {row["site"]: row for row in promised(data_folder / "documents" / "README.md", "site")}
    events = 0
    for log in read_dataset(data_folder / "documents"):
        row = table.pop(log.site)
        assert (len(log.urls), len(log)) == (int(row["pages"]), int(row["events"]))
        assert count(log, LoggedChange.MOD) == int(row["changes"])
        assert int((log.bulk & (log.kind == LoggedChange.MOD)).sum()) == int(row["bulk_chg"])
        alive = len(log.urls) - len(set(log.page[_last(log) & (log.kind == LoggedChange.DEL)].tolist()))
        assert alive == int(row["alive"])
        assert bool((np.diff(log.page) >= 0).all())
        assert log.histories().changes().sum() > 0
        events += count(log, LoggedChange.MOD)
    assert (table, events) == ({}, 413_796)


def _last(log: ChangeLog) -> np.ndarray:
    return np.append(log.page[1:] != log.page[:-1], True)


@pytest.mark.big
def test_scholarly_is_complete(data_folder):
    table = {row["site"]: row for row in promised(data_folder / "scholarly" / "README.md", "site")}
    found = {log.site: (len(log.urls), len(log)) for log in read_dataset(data_folder / "scholarly")}
    assert found == {site: (int(row["pages"]), int(row["events"])) for site, row in table.items()}
    assert sum(events for _, events in found.values()) == 54_939


@pytest.mark.big
def test_data_sources_are_complete(data_folder):
    table = {row["repo"]: row for row in promised(data_folder / "data-sources" / "README.md", "repo")}
    found = {
        log.site: (len(log.urls), count(log, LoggedChange.MOD)) for log in read_dataset(data_folder / "data-sources")
    }
    assert found == {repo: (int(row["sources"]), int(row["changes"])) for repo, row in table.items()}


def test_a_small_one():
    assert is_dataset(RECORDED)
    (site,) = sites(RECORDED)
    (log,) = read_dataset(RECORDED, [site])
    events = pa.parquet.read_table(RECORDED / "events.parquet")
    assert len(log) == events.num_rows
    assert sites(RECORDED)[site] == len(log.urls)
    assert set(log.kind.tolist()) <= set(LoggedChange)
    assert sum(batch.num_rows for batch in log.batches(rows=100)) == len(log)


def test_events_of_a_page_at_one_time_are_one_visit(tmp_path):
    events = {
        "site": ["a"] * 7,
        "page_id": [0, 0, 0, 0, 0, 1, 1],
        "t": [5, 5, 6, 6, 7, 5, 6],
        "kind": ["add", "mod", "del", "add", "mod", "add", "mod"],
        "bulk": [False, False, False, False, True, False, True],
    }
    log, _ = read_dataset(write(tmp_path, events))
    assert (len(log), log.repeated) == (7, 2)
    visits = log.visits(until=9.0)
    assert len(visits) == len(log) - log.repeated + 2
    assert visits.time.tolist() == [5, 6, 7, 9, 5, 6, 9]
    assert visits.verdict.tolist() == [0, 2, 2, 1, 0, 2, 1]
    assert visits.outcome.tolist() == [Outcome.FETCHED] * 7
    assert log.visits(bulk=False).verdict.tolist() == [0, 2, 0, 0, 0]


@pytest.mark.big
@pytest.mark.parametrize(("name", "events", "repeated"), REPEATED)
def test_all_events_of_the_public_sets_are_visits_or_repeat_one(data_folder, name, events, repeated):
    logs = list(read_dataset(data_folder / name))
    assert (sum(map(len, logs)), sum(log.repeated for log in logs)) == (events, repeated)
    assert sum(len(log.visits()) for log in logs) == events - repeated


def test_what_is_missing_is_named(tmp_path):
    assert not is_dataset(tmp_path)
    with pytest.raises(InputError, match=r"neither pages\.parquet"):
        list(read_dataset(tmp_path))
    with pytest.raises(InputError, match="no site 'nowhere'"):
        list(read_dataset(RECORDED, ["nowhere"]))


PAGES = {"site": ["a", "a", "b"], "page_id": [1, 0, 0], "url": ["http://a/1", "http://a/0", "http://b/0"]}
EVENTS = {
    "site": ["a", "a", "b"],
    "page_id": [0, 1, 0],
    "t": [5, 6, 7],
    "kind": ["add", "add", "del"],
    "bulk": [True, False, False],
}


def write(folder: Path, events: dict[str, list[object]], pages: dict[str, list[object]] = PAGES) -> Path:
    pa.parquet.write_table(pa.table(pages), folder / "pages.parquet")
    pa.parquet.write_table(pa.table(events), folder / "events.parquet")
    return folder


def test_pages_in_any_order_and_sites_without_events(tmp_path):
    pages = {name: [*column, extra] for (name, column), extra in zip(PAGES.items(), ["c", 0, "http://c/"], strict=True)}
    first, second, third = read_dataset(write(tmp_path, EVENTS, pages))
    assert first.urls == ("http://a/0", "http://a/1")
    assert (first.page.tolist(), first.time.tolist(), first.bulk.tolist()) == ([0, 1], [5.0, 6.0], [True, False])
    assert (second.site, second.kind.tolist()) == ("b", [LoggedChange.DEL])
    assert (third.site, len(third), third.urls) == ("c", 0, ("http://c/",))


@pytest.mark.parametrize(
    ("change", "reason"),
    [
        ({"site": ["a", "b", "a"], "page_id": [0, 0, 1]}, "several places"),
        ({"site": ["a", "a", "x"]}, "does not have"),
        ({"page_id": [0, 7, 0]}, "not in the table"),
        ({"kind": ["add", "mod", "moved"]}, "'moved'"),
    ],
)
def test_rows_that_do_not_fit_get_their_sentence(tmp_path, change, reason):
    with pytest.raises(InputError, match=reason):
        list(read_dataset(write(tmp_path, EVENTS | change)))


def test_missing_columns_and_broken_files_get_their_sentence(tmp_path):
    write(tmp_path, {name: column for name, column in EVENTS.items() if name != "kind"})
    with pytest.raises(InputError, match="no column 'kind'"):
        list(read_dataset(tmp_path))
    (tmp_path / "events.parquet").write_bytes(b"PAR1 torn")
    with pytest.raises(InputError, match="not a readable Parquet"):
        list(read_dataset(tmp_path))
