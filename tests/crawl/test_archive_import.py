"""Imports: whatever the order of the sources, and however often they are cut short, the same visits follow."""

from __future__ import annotations

import base64
import hashlib
import shutil
from itertools import pairwise

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from recrawl.formats.columnar.capture_batches import NO_SIZE, ReadReport, RecordKind, schema
from recrawl.model import Outcome, Verdict, Visits
from recrawl.store.open import open_store
from recrawl.store.store_values import FITTED, CaptureRecord
from recrawl.time import VirtualClock
from recrawl.transfer import archive_import
from recrawl.transfer.archive_import import ClassifiedVisits, CleaningRules, Importer, digest_bytes, digest_column
from recrawl.transfer.listed_captures import ListedCaptures, differences
from recrawl.urls import surt

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
def store(empty_store, tmp_path):
    with open_store(shutil.copy(empty_store, tmp_path / "store.db")) as opened:
        yield opened


def importer(store, **cleaning):
    return Importer(store, VirtualClock(1e9), CleaningRules(**cleaning))


def by_url(store):
    visits = store.visits()
    columns = [visits.time, visits.verdict, visits.outcome, visits.kinds, visits.status]
    keys = [surt(url) for url in store.urls(visits.page)]
    return list(zip(keys, *(column.tolist() for column in columns), strict=True))


captures = st.lists(
    st.tuples(
        st.sampled_from(["http://a.example/", "http://a.example/x", "http://b.example/"]),
        # Days apart, or within a minute or two: several downloads of one crawl.
        st.tuples(st.integers(1, 4), st.sampled_from([0, 1, 40, 59, 61, 100, 119, 150])).map(
            lambda when: when[0] * DAY + when[1]
        ),
        st.sampled_from(["A" * 32, "B" * 32, "0" * 40, "sha256:" + "0" * 64, ""]),
        st.sampled_from([200, 200, 301, 404, 503, 0]),
        st.sampled_from([RecordKind.RESPONSE, RecordKind.RESPONSE, RecordKind.REVISIT_IDENTICAL]),
    ),
    max_size=16,
)


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture], deadline=None, max_examples=60)
@given(rows=captures, order=st.randoms(use_true_random=False), cuts=st.lists(st.integers(0, 16), max_size=4))
def test_the_order_and_number_of_imports_do_not_matter(rows, order, cuts, empty_store, tmp_path_factory):
    place = tmp_path_factory.mktemp("import")
    one, many = (shutil.copy(empty_store, place / name) for name in ("one.db", "many.db"))
    with open_store(one) as whole, open_store(many) as pieces:
        once = importer(whole)
        once.take("all", "1", [batch(rows)], ReadReport())
        once.judge()
        shuffled = order.sample(rows, len(rows))
        ends = [0, *sorted(cuts), len(rows)]
        for number, (start, end) in enumerate(pairwise(ends)):
            step = importer(pieces)
            step.take(f"part {number}", "1", [batch(shuffled[start:end])], ReadReport())
            step.judge()
        assert sorted(by_url(whole)) == sorted(by_url(pieces))


def test_importing_the_same_thing_twice_adds_nothing(store):
    rows = [("http://a.example/", DAY, "A" * 32), ("http://a.example/", 2 * DAY, "B" * 32)]
    first = importer(store)
    assert first.take("a.cdx", "1", [batch(rows)], ReadReport()).accepted == 2
    assert first.judge() == ClassifiedVisits(new=2)
    before = by_url(store)
    report = ReadReport()
    again = importer(store)
    again.take("a.cdx", "1", [batch(rows)], report)
    assert again.judge() == ClassifiedVisits()
    assert report.skipped == {"imported before": 2}
    again.take("copy of a.cdx", "1", [batch(rows)], ReadReport())
    assert again.judge() == ClassifiedVisits()
    assert by_url(store) == before


def test_an_import_that_was_cut_short_goes_on(store):
    rows = [(f"http://a.example/{n}", n * DAY, "A" * 32) for n in range(1, 11)]
    parts = [batch(rows[:4]), batch(rows[4:8]), batch(rows[8:])]

    def breaks_off():
        yield parts[0]
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        importer(store).take("a.cdx", "1", breaks_off(), ReadReport())
    assert store.import_mark("a.cdx").position == 4
    taken = importer(store).take("a.cdx", "1", parts, ReadReport())
    assert (taken.mark.position, taken.mark.accepted, taken.mark.finished) == (10, 10, True)
    assert (taken.accepted, taken.new) == (6, 6)
    assert len(store.capture_columns(store.pages().id)) == 10


def test_another_question_to_the_same_source_is_another_import(store):
    rows = [("http://a.example/1/2/3", DAY, "A" * 32), ("http://a.example/1", DAY, "A" * 32)]
    rows += [("http://a.example/1", DAY + 90, "A" * 32)]
    assert importer(store, depth=1).take("a.cdx", "1", [batch(rows)], ReadReport()).accepted == 2
    assert importer(store).take("a.cdx", "1", [batch(rows)], ReadReport()).new == 1
    importer(store).judge()
    assert len(store.visits()) == 3
    wider = importer(store, merge_within=100.0)
    assert wider.take("a.cdx", "1", [batch(rows)], ReadReport()).new == 0
    assert wider.judge() == ClassifiedVisits(restart=1, withdrawn=1)


def test_again_means_again(store):
    rows = [("http://a.example/", DAY, "A" * 32)]
    importer(store).take("a.cdx", "1", [batch(rows)], ReadReport())
    importer(store).judge()
    store.set_read(store.unread())
    taken = Importer(store, VirtualClock(1e9), again=True).take("a.cdx", "1", [batch(rows)], ReadReport())
    assert (taken.accepted, taken.new) == (1, 0)
    assert len(store.unjudged()) == len(store.unread()) == 1


def test_a_visit_of_our_own_keeps_what_it_cost_when_it_is_judged_anew(store):
    page = store.discover(["http://a.example/"], 0.0)
    ours = CaptureRecord(int(page[0]), 5 * DAY, 200, "text/html", digest_bytes("B" * 32), 7, "mine.warc.gz", 3, 4)
    store.record(Visits.of(page, 5 * DAY, status=200, size=77, cost=1.5), captures=[ours])
    older = importer(store)
    older.take("old.cdx", "1", [batch([("http://a.example/", DAY, "A" * 32)])], ReadReport())
    assert older.judge() == ClassifiedVisits(new=1, restart=1)
    mine = store.visits().take([1])
    assert (mine.verdict[0], mine.cost[0], mine.size[0]) == (Verdict.CHANGED, 1.5, 77)


def test_a_page_with_very_many_captures_is_judged_like_any_other(store, monkeypatch, tmp_path):
    rows = [("http://a.example/", n * DAY, "AB"[n % 3 == 0] * 32) for n in range(1, 60)]
    rows += [(f"http://b.example/{n % 7}", n * DAY, "A" * 32) for n in range(1, 60)]
    with open_store(str(tmp_path / "other.db"), create=True) as other:
        for where in (store, other):
            one = importer(where)
            one.take("a.cdx", "1", [batch(rows)], ReadReport())
            one.judge()
            monkeypatch.setattr(archive_import, "_CAPTURES_AT_ONCE", 20)
        assert by_url(store) == by_url(other)


def test_a_source_that_changed_is_read_again(store):
    importer(store).take("a.cdx", "1", [batch([("http://a.example/", DAY, "A" * 32)])], ReadReport())
    taken = importer(store).take("a.cdx", "2", [batch([("http://a.example/", 2 * DAY, "A" * 32)])], ReadReport())
    assert taken.accepted == 1


def test_a_redirect_to_itself_is_not_a_change(store):
    """http, then https a second later: one page to us, and one download."""
    rows = []
    for day in (1, 2, 3):
        rows += [("http://a.example/", day * DAY, "R" * 32, 301, RecordKind.RESPONSE)]
        rows += [("https://www.a.example/", day * DAY + 1, "A" * 32, 200, RecordKind.RESPONSE)]
    one = importer(store)
    one.take("a.cdx", "1", [batch(rows)], ReadReport())
    one.judge()
    assert [row[2:4] for row in by_url(store)] == [(0, 0), (1, 0), (1, 0)]


def test_revisits_are_unchanged_visits(store):
    rows = [
        ("http://a.example/", DAY, "A" * 32),
        ("http://a.example/", 2 * DAY, "A" * 32, 200, RecordKind.REVISIT_IDENTICAL),
        ("http://a.example/", 3 * DAY, "", 0, RecordKind.REVISIT_NOT_MODIFIED),
    ]
    one = importer(store)
    one.take("a.cdx", "1", [batch(rows)], ReadReport())
    one.judge()
    assert [row[2:4] for row in by_url(store)] == [(0, 0), (1, Outcome.FETCHED), (1, Outcome.NOT_MODIFIED)]


def test_what_is_no_page_or_too_deep_is_counted_and_left_out(store):
    report = ReadReport()
    rows = [
        ("ftp://a.example/", DAY, "A" * 32),
        ("http://a.example/1/2/3/4", DAY, "A" * 32),
        ("http://a.example/1", DAY, "A" * 32),
    ]
    taken = importer(store, depth=2).take("a.cdx", "1", [batch(rows)], report)
    assert taken.accepted == 1
    assert report.skipped == {"deeper than 2": 1, "not an http(s) URL": 1}
    assert len(store.pages()) == 1


def listed(times, digests, *, ours=False):
    n = len(times)
    return ListedCaptures(
        np.ones(n, np.int64),
        np.array(times, float),
        np.full(n, 200),
        ["text/html"] * n,
        np.zeros(n, bool),
        [digest * 20 for digest in digests],
        np.full(n, -1),
        np.full(n, ours),
        np.zeros(n, bool),
        np.zeros(n, bool),
    )


def test_what_a_better_judge_said_stays_unless_its_ground_moved():
    known = Visits.of(
        [1, 1, 1, 1],
        [1.0, 2.0, 4.0, 5.0],
        verdict=[Verdict.UNKNOWN, Verdict.UNCHANGED, Verdict.CHANGED, Verdict.UNCHANGED],
    )
    found = differences(listed([1, 2, 3, 4, 5], [b"A", b"B", b"C", b"C", b"D"]), known, 0.0)
    assert found.visits.time.tolist() == [3.0, 4.0]
    assert found.visits.verdict.tolist() == [Verdict.CHANGED, Verdict.UNCHANGED]
    assert found.new == 1


@pytest.mark.parametrize("ours", [False, True])
def test_only_what_others_downloaded_is_merged(ours):
    known = Visits.of([1, 1], [1.0, 100.0])
    found = differences(listed([1, 50, 100], [b"A", b"A", b"A"], ours=ours), known, 60.0)
    assert found.withdrawn[1].tolist() == ([] if ours else [1.0])


def test_live_visits_and_imported_ones_make_one_history(store):
    page = store.discover(["http://a.example/"], 0.0)
    store.record(Visits.of(page, [5 * DAY], verdict=Verdict.UNKNOWN))
    importer_ = importer(store)
    importer_.take(
        "old.cdx",
        "1",
        [batch([("http://a.example/", DAY, "A" * 32), ("http://a.example/", 2 * DAY, "B" * 32)])],
        ReadReport(),
    )
    importer_.judge()
    assert np.diff(store.visits().time).tolist() == [DAY, 3 * DAY]


def test_what_was_taken_and_not_judged_is_judged_by_the_next_import(store):
    """A kill between taking and judging loses no visit."""
    rows = [("http://a.example/", day * DAY, digest * 32) for day, digest in ((1, "A"), (2, "B"), (3, "B"))]
    importer(store).take("a.cdx", "1", [batch(rows)], ReadReport())
    assert len(store.visits()) == 0
    later = importer(store)
    later.take("a.cdx", "1", [batch(rows)], ReadReport())
    assert later.judge() == ClassifiedVisits(new=3)
    assert [row[2] for row in by_url(store)] == [0, 2, 1]
    assert importer(store).judge() == ClassifiedVisits()


ALGORITHMS = ("md5", "sha1", "sha256", "sha512")


@given(st.binary(max_size=4), st.sampled_from(ALGORITHMS))
def test_the_same_digest_in_every_spelling(data, algorithm):
    digest = hashlib.new(algorithm, data).digest()
    base32 = base64.b32encode(digest).decode()
    spellings = [digest.hex(), base32, f"{algorithm}:{digest.hex()}", f"{algorithm.upper()}:{digest.hex().upper()}"]
    spellings += [f"{algorithm}:{base32}", f"{algorithm}:{base32.rstrip('=')}"]
    assert len({digest_bytes(text) for text in spellings}) == 1
    assert digest_column([*spellings, "", "-"]) == [digest_bytes(spellings[0])] * len(spellings) + [b"", b""]


@given(st.lists(st.text(max_size=40) | st.from_regex(r"[A-Z2-7]{32}", fullmatch=True), max_size=9))
def test_a_column_of_digests_is_each_of_them(texts):
    assert digest_column(texts) == [digest_bytes(text) for text in texts]


def test_digests_of_different_algorithms_say_nothing_about_each_other(store):
    sha1, sha256 = "A" * 32, "sha256:" + "0" * 64
    rows = [
        ("http://a.example/", day * DAY, digest) for day, digest in enumerate((sha1, "0" * 40, sha256, sha256, sha1))
    ]
    one = importer(store)
    one.take("a.cdx", "1", [batch(rows)], ReadReport())
    one.judge()
    assert [row[2] for row in by_url(store)] == [0, Verdict.UNCHANGED, 0, Verdict.UNCHANGED, 0]


def test_an_import_makes_the_next_crawl_wait_for_a_fit(store):
    """The imported visits change the due times that an earlier fit wrote."""
    store.set_control(FITTED, "valued-archive", 1.0)
    imports = importer(store)
    imports.judge()
    assert store.controls()[FITTED] == "valued-archive"
    imports.take("a.cdx", "1", [batch([("http://a.example/", DAY, "sha1:x")])], ReadReport())
    imports.judge()
    assert FITTED not in store.controls()
