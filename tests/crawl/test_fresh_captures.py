"""Captures classified from memory: the store must be the same as if all of them were read back from it."""

from __future__ import annotations

import shutil
from pathlib import Path

import apsw
import numpy as np
import pytest

from recrawl.formats.cdx.cdx_lines import HEADER
from recrawl.formats.cdx.line_blocks import read_blocks
from recrawl.model import Visits
from recrawl.store.open import open_store
from recrawl.store.store_values import CaptureColumns, CaptureRecord
from recrawl.time import VirtualClock, to_timestamp14
from recrawl.transfer import archive_import
from recrawl.transfer.archive_import import CleaningRules, Importer
from recrawl.transfer.fresh_captures import FreshCaptures
from recrawl.transfer.import_sources import ImportSources

SAMPLES = Path(__file__).parents[1] / "data/formats"
NOW = 1.8e9
MIMES = ("text/html", "text/html", "image/png", "warc/revisit", "-")
URLS = ("{}", "{}/style.css", "{}/robots.txt", "{}/a?b={}")


def index(folder, *, pages=900, captures=7, shuffle=False):
    """An index with revisits, errors, digests of several kinds, several downloads at once, and pages in any order."""
    rng = np.random.default_rng(3)
    lines = []
    for page in range(pages):
        url = f"http://site{page % 40}.example/" + URLS[page % len(URLS)].format(page, page)
        for number in range(int(rng.integers(1, captures))):
            time = to_timestamp14(1.2e9 + number * 40 * (1 + 20_000 * int(rng.integers(0, 2))) + page)
            digest = ("AB"[int(rng.integers(0, 2))] * 32, "0" * 40, "sha256:" + "0" * 64, "-", "odd")[
                int(rng.choice(5, p=[0.8, 0.05, 0.05, 0.05, 0.05]))
            ]
            mime, status = MIMES[int(rng.integers(0, 5))], ("200", "404", "301", "-")[int(rng.integers(0, 4))]
            key = f"example,site{page % 40:02})/{page:05}"
            lines.append(f"{key} {time} {url} {mime} {status} {digest} - - 100 {page} x.warc.gz")
    lines.sort()
    if shuffle:
        rng.shuffle(lines)
    path = folder / "made.cdx"
    path.write_text("\n".join([HEADER, *lines]) + "\n")
    return path


def bring(store, *paths, **cleaning):
    importer = Importer(store, VirtualClock(NOW), CleaningRules(**cleaning))
    sources = ImportSources(store, importer, VirtualClock(NOW), Path("nowhere"), strict=False)
    for path in paths:
        list(sources.bring(path))
    touched = importer.touched()
    judged = importer.judge()
    assert len(store.unjudged()) == 0
    return judged, importer.merged(touched, np.empty(0, np.int64)), touched.tolist()


def tables(path):
    """Every row of every table."""
    with apsw.Connection(str(path)) as database:
        names = [name for (name,) in database.execute("SELECT name FROM sqlite_schema WHERE type = 'table'")]
        return {name: sorted(database.execute(f"SELECT * FROM {name}"), key=repr) for name in names}


def both(tmp_path, empty_store, monkeypatch, *paths, **cleaning):
    """What an import says and stores; with the captures in memory, and with all of them read back."""
    found = []
    for name in ("in memory", "read back"):
        place = Path(shutil.copy(empty_store, tmp_path / f"{name}.db"))
        with monkeypatch.context() as patch, open_store(place) as store:
            if name == "read back":
                patch.setattr(FreshCaptures, "add", lambda *_arguments: None)
            said = bring(store, *paths, **cleaning)
        found.append((said, tables(place)))
    return found


@pytest.mark.parametrize("shuffle", [False, True])
@pytest.mark.parametrize("within", [0.0, 60.0])
def test_the_store_is_the_same_as_if_captures_were_read_back(shuffle, within, tmp_path, empty_store, monkeypatch):
    path = index(tmp_path, shuffle=shuffle)
    in_memory, read_back = both(tmp_path, empty_store, monkeypatch, path, merge_within=within)
    assert in_memory == read_back
    assert in_memory[0][0].new > 1_000
    assert (in_memory[0][1].captures > 100) == (within > 0)


def test_sample_files_give_the_same_store(tmp_path, empty_store, monkeypatch):
    in_memory, read_back = both(tmp_path, empty_store, monkeypatch, SAMPLES)
    assert in_memory == read_back
    assert in_memory[0][0].new > 20


def test_nothing_is_read_back_of_pages_that_are_new(tmp_path, empty_store, monkeypatch):
    def fails(*_arguments):
        raise AssertionError("captures were read back")

    with open_store(shutil.copy(empty_store, tmp_path / "store.db")) as store:
        monkeypatch.setattr(archive_import, "listed_captures", fails)
        assert bring(store, index(tmp_path))[0].new > 1_000


@pytest.mark.parametrize("shuffle", [False, True])
@pytest.mark.parametrize("most", [1, 50, 1_000])
def test_a_bound_of_memory_changes_no_visit(shuffle, most, tmp_path, empty_store, monkeypatch):
    path = index(tmp_path, shuffle=shuffle)
    monkeypatch.setitem(read_blocks.__kwdefaults__, "size", 4_096)  # many batches
    stores = [open_store(shutil.copy(empty_store, tmp_path / f"{name}.db")) for name in ("bounded", "whole")]
    with stores[0] as bounded, stores[1] as whole:
        kept = []
        real = FreshCaptures.add

        def adding(self, captures, *texts):
            real(self, captures, *texts)
            kept.append(len(self))

        with monkeypatch.context() as patch:
            patch.setattr(FreshCaptures, "add", adding)
            patch.setattr(FreshCaptures.__init__, "__defaults__", (most,))
            bring(bounded, path)
        bring(whole, path)
        one, other = bounded.visits(), whole.visits()
        for name, column in one.columns().items():
            assert np.array_equal(column, other.columns()[name]), name
        assert len(kept) > 10
        assert max(kept) <= most + 200  # a batch more


def test_pages_that_somebody_else_visits_meanwhile_are_read_from_the_store(tmp_path, empty_store):
    path = index(tmp_path, pages=40)
    with open_store(shutil.copy(empty_store, tmp_path / "store.db")) as store:
        importer = Importer(store, VirtualClock(NOW), CleaningRules())
        list(ImportSources(store, importer, VirtualClock(NOW), tmp_path).bring(path))
        page = store.pages().id[:1]
        digest = store.capture_columns(page).digest[-1]
        visit = Visits.of(page, np.array([1.25e9]), status=200)
        record = CaptureRecord(int(page[0]), 1.25e9, 200, "text/html", b"n" * 20, 5, "ours.warc.gz", 0, 9)
        store.record(visit, captures=[record])
        importer.judge()
        found = store.visits(pages=page)
        assert 1.25e9 in found.time.tolist()
        assert len(store.capture_columns(page)) >= len(found)
        assert digest != record.digest


def test_many_rows_are_counted_once(tmp_path, empty_store):
    """The count that triggers keep for each row, however many rows one statement inserts."""
    place = Path(shutil.copy(empty_store, tmp_path / "store.db"))
    with open_store(place) as store:
        pages = store.discover([f"http://a.example/{number}" for number in range(3_000)], NOW)
        zeros = np.zeros(len(pages), np.int64)
        names, texts = ["f"] * len(pages), [f"{n}" for n in range(len(pages))]
        columns = (pages, np.full(len(pages), 5.5), zeros + 200, texts, [b""] * len(pages), zeros, names, zeros, zeros)
        assert store.add_captures(CaptureColumns(*columns))[0] == 3_000
        assert store.add_captures(CaptureColumns(*columns))[0] == 0
        assert store.counts(NOW).captures == 3_000
        assert store.counts(NOW).pages == 3_000
        read = store.capture_columns(pages)
        assert (read.mime, set(read.warc_file), set(read.time.tolist())) == (texts, {"f"}, {5.5})
        assert store.drop_captures(pages[:7], np.full(7, 5.5)) == 7  # and triggers work as before
        assert store.counts(NOW).captures == 2_993
