"""Imports: whatever the order of the sources, and however often they are cut short, the same visits follow."""

from __future__ import annotations

from itertools import pairwise

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from recrawl.crawl.importing import Cleaning, Importer, digest_bytes, news_in
from recrawl.formats.captures import NO_SIZE, RecordKind, Report, schema
from recrawl.model import Outcome, Verdict, Visits
from recrawl.store.open import open_store
from recrawl.time import VirtualClock

DAY = 86_400.0


def batch(rows):
    """Rows are (url, time, digest) or longer: (…, status, kind)."""
    full = [(*row, 200, RecordKind.RESPONSE)[:5] if len(row) < 5 else row for row in rows]
    columns = {
        "url": [row[0] for row in full],
        "key": [""] * len(full),
        "time": [float(row[1]) for row in full],
        "kind": [int(row[4]) for row in full],
        "status": [row[3] for row in full],
        "mime": ["text/html"] * len(full),
        "digest": [row[2] for row in full],
        "size": [NO_SIZE] * len(full),
        "file": [""] * len(full),
        "offset": [NO_SIZE] * len(full),
        "length": [NO_SIZE] * len(full),
    }
    return pa.RecordBatch.from_pydict(columns, schema=schema())


@pytest.fixture
def store(tmp_path):
    with open_store(str(tmp_path / "store.db"), create=True) as opened:
        yield opened


def importer(store, **cleaning):
    return Importer(store, VirtualClock(1e9), Cleaning(**cleaning))


def by_url(store):
    visits = store.visits()
    urls = store.urls(visits.page)
    return list(zip(urls, visits.time.tolist(), visits.verdict.tolist(), visits.outcome.tolist(), strict=True))


captures = st.lists(
    st.tuples(
        st.sampled_from(["http://a.example/", "http://a.example/x", "http://b.example/"]),
        st.integers(1, 9).map(lambda day: day * DAY),
        st.sampled_from(["A" * 32, "B" * 32, ""]),
        st.sampled_from([200, 404, 503]),
        st.just(RecordKind.RESPONSE),
    ),
    unique_by=lambda row: row[:2],
    max_size=14,
)


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture], deadline=None, max_examples=30)
@given(rows=captures, cuts=st.lists(st.integers(0, 14), max_size=3))
def test_the_order_and_number_of_imports_do_not_matter(rows, cuts, tmp_path_factory):
    place = tmp_path_factory.mktemp("import")
    with (
        open_store(str(place / "one.db"), create=True) as whole,
        open_store(str(place / "many.db"), create=True) as pieces,
    ):
        once = importer(whole)
        once.take("all", "1", [batch(rows)], Report())
        once.judge()
        ends = [0, *sorted(cuts), len(rows)]
        for number, (start, end) in enumerate(pairwise(ends)):
            step = importer(pieces)
            step.take(f"part {number}", "1", [batch(rows[start:end])], Report())
            step.judge()
        assert sorted(by_url(whole)) == sorted(by_url(pieces))


def test_importing_the_same_thing_twice_adds_nothing(store):
    rows = [("http://a.example/", DAY, "A" * 32), ("http://a.example/", 2 * DAY, "B" * 32)]
    first = importer(store)
    assert first.take("a.cdx", "1", [batch(rows)], Report()).accepted == 2
    assert first.judge() == 2
    before = by_url(store)
    report = Report()
    again = importer(store)
    again.take("a.cdx", "1", [batch(rows)], report)
    assert again.judge() == 0
    assert report.skipped == {"imported before": 2}
    again.take("copy of a.cdx", "1", [batch(rows)], Report())
    assert again.judge() == 0
    assert by_url(store) == before


def test_an_import_that_was_cut_short_goes_on(store):
    rows = [(f"http://a.example/{n}", n * DAY, "A" * 32) for n in range(1, 11)]
    parts = [batch(rows[:4]), batch(rows[4:8]), batch(rows[8:])]

    def breaks_off():
        yield parts[0]
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        importer(store).take("a.cdx", "1", breaks_off(), Report())
    assert store.import_mark("a.cdx").position == 4
    mark = importer(store).take("a.cdx", "1", parts, Report())
    assert (mark.position, mark.accepted, mark.finished) == (10, 10, True)
    assert len(store.capture_columns(store.pages().id)) == 10


def test_a_source_that_changed_is_read_again(store):
    importer(store).take("a.cdx", "1", [batch([("http://a.example/", DAY, "A" * 32)])], Report())
    mark = importer(store).take("a.cdx", "2", [batch([("http://a.example/", 2 * DAY, "A" * 32)])], Report())
    assert mark.accepted == 1


def test_a_redirect_to_itself_is_not_a_change(store):
    """http, then https a second later: one page to us, and one download."""
    rows = []
    for day in (1, 2, 3):
        rows += [("http://a.example/", day * DAY, "R" * 32, 301, RecordKind.RESPONSE)]
        rows += [("https://www.a.example/", day * DAY + 1, "A" * 32, 200, RecordKind.RESPONSE)]
    one = importer(store)
    one.take("a.cdx", "1", [batch(rows)], Report())
    one.judge()
    assert [row[2:] for row in by_url(store)] == [(0, 0), (1, 0), (1, 0)]


def test_revisits_are_unchanged_visits(store):
    rows = [
        ("http://a.example/", DAY, "A" * 32),
        ("http://a.example/", 2 * DAY, "A" * 32, 200, RecordKind.REVISIT_IDENTICAL),
        ("http://a.example/", 3 * DAY, "", 0, RecordKind.REVISIT_NOT_MODIFIED),
    ]
    one = importer(store)
    one.take("a.cdx", "1", [batch(rows)], Report())
    one.judge()
    assert [row[2:] for row in by_url(store)] == [(0, 0), (1, Outcome.FETCHED), (1, Outcome.NOT_MODIFIED)]


def test_what_is_no_page_or_too_deep_is_counted_and_left_out(store):
    report = Report()
    rows = [
        ("ftp://a.example/", DAY, "A" * 32),
        ("http://a.example/1/2/3/4", DAY, "A" * 32),
        ("http://a.example/1", DAY, "A" * 32),
    ]
    mark = importer(store, depth=2).take("a.cdx", "1", [batch(rows)], report)
    assert mark.accepted == 1
    assert report.skipped == {"deeper than 2": 1, "not an http(s) URL": 1}
    assert len(store.pages()) == 1


def test_what_a_better_judge_said_stays_unless_its_ground_moved():
    known = Visits.of([1, 1, 1], [1.0, 2.0, 4.0], verdict=[Verdict.UNKNOWN, Verdict.UNCHANGED, Verdict.CHANGED])
    judged = Visits.of(
        [1, 1, 1, 1], [1.0, 2.0, 3.0, 4.0], verdict=[0, Verdict.CHANGED, Verdict.CHANGED, Verdict.UNCHANGED]
    )
    assert news_in(judged, np.ones(4, dtype=bool), known).tolist() == [False, False, True, True]


def test_live_visits_and_imported_ones_make_one_history(store):
    page = store.discover(["http://a.example/"], 0.0)
    store.record(Visits.of(page, [5 * DAY], verdict=Verdict.UNKNOWN))
    importer_ = importer(store)
    importer_.take(
        "old.cdx",
        "1",
        [batch([("http://a.example/", DAY, "A" * 32), ("http://a.example/", 2 * DAY, "B" * 32)])],
        Report(),
    )
    importer_.judge()
    assert np.diff(store.visits().time).tolist() == [DAY, 3 * DAY]


def test_what_was_taken_and_not_judged_is_judged_by_the_next_import(store):
    """A kill between taking and judging loses no visit."""
    rows = [("http://a.example/", day * DAY, digest * 32) for day, digest in ((1, "A"), (2, "B"), (3, "B"))]
    importer(store).take("a.cdx", "1", [batch(rows)], Report())
    assert len(store.visits()) == 0
    later = importer(store)
    later.take("a.cdx", "1", [batch(rows)], Report())
    assert later.judge() == 3
    assert [row[2] for row in by_url(store)] == [0, 2, 1]
    store.set_judged(store.unjudged())
    assert importer(store).judge() == 0


@pytest.mark.parametrize("text", ["sha1:" + "A" * 32, "A" * 32, "0" * 40, "sha1:" + "0" * 40])
def test_the_same_digest_in_every_spelling(text):
    assert digest_bytes(text) == bytes(20)
