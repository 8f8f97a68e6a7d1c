import numpy as np
import pytest

from recrawl.model import Verdict, Visits
from recrawl.store.store_values import CaptureColumns, CaptureEnds, CaptureRecord, KeyRange

URLS = [
    "http://b.example/",
    "http://a.example/z",
    "http://a.example/dir/one",
    "http://a.example/dir/two",
    "http://sub.a.example/",
    f"http://a.example/long/{'x' * 400}b",
    f"http://a.example/long/{'x' * 400}a",
]


def listed(page, times, *, digest=b"d" * 20):
    count = len(times)
    return CaptureColumns(
        np.full(count, page),
        np.array(times, np.float64),
        np.full(count, 200),
        ["text/html"] * count,
        [digest] * count,
        np.full(count, 10),
        ["elsewhere.warc.gz"] * count,
        np.arange(count),
        np.full(count, 5),
    )


@pytest.fixture
def pages(store):
    """Pages by URL; each has captures at 1, 2 and 3 times ten."""
    ids = dict(zip(URLS, store.discover(URLS, 0.0).tolist(), strict=True))
    for page in ids.values():
        store.add_captures(listed(page, [10.0, 20.0, 30.0]))
    store.discover(["http://a.example/dir/never-captured"], 0.0)
    return ids


def found(keyed):
    return list(zip(keyed.key, keyed.captures.time.tolist(), strict=True))


def test_captures_of_a_page_are_cut_from_either_end(store, pages):
    page = pages["http://a.example/z"]
    assert store.captures_between(page, 10.0, 25.0, 9).time.tolist() == [10.0, 20.0]
    assert store.captures_between(page, 15.0, np.inf, 1).time.tolist() == [20.0]
    assert store.captures_between(page, -np.inf, 29.0, 1, backwards=True).time.tolist() == [20.0]
    assert store.captures_between(page, 31.0, 99.0, 9).time.tolist() == []


def test_the_ends_of_a_page(store, pages):
    assert store.capture_ends(pages["http://b.example/"]) == CaptureEnds(10.0, 30.0, 3)
    assert store.capture_ends(10_000) is None
    assert store.last_page() == max(pages.values()) + 1


def test_pages_come_in_the_order_of_the_bytes_of_their_keys(store, pages):
    everything = store.captures_by_key(KeyRange("", "\x7f"), 100)
    assert len(everything) == 3 * len(URLS)
    assert found(everything) == sorted(found(everything))
    assert len(set(everything.url)) == len(URLS)
    assert everything.captures.page.tolist() == [pages[url] for url in everything.url]


@pytest.mark.parametrize("backwards", [False, True])
@pytest.mark.parametrize("limit", [1, 2, 4, 100])
def test_answers_in_pieces_are_the_whole_answer(store, pages, limit, backwards):
    assert pages
    whole = found(store.captures_by_key(KeyRange("example,a)/", "example,a)0", backwards=backwards), 100))
    pieces, beyond = [], None
    while True:
        keys = KeyRange("example,a)/", "example,a)0", backwards=backwards, beyond=beyond)
        piece = found(store.captures_by_key(keys, limit))
        if not piece:
            break
        pieces += piece
        beyond = piece[-1]
    assert pieces == whole == sorted(whole, reverse=backwards)
    assert len(whole) == 15


def test_a_range_of_keys_and_time(store, pages):
    assert pages
    keys = KeyRange("example,a)/dir/", "example,a)/dir0", since=15.0, until=20.0)
    assert found(store.captures_by_key(keys, 9)) == [("example,a)/dir/one", 20.0), ("example,a)/dir/two", 20.0)]
    long = f"example,a)/long/{'x' * 400}a"
    assert {key for key, _ in found(store.captures_by_key(KeyRange(long, long), 9))} == {long}


def test_captures_are_counted_and_skipped(store, pages):
    assert pages
    keys = KeyRange("example,a)/dir/", "example,a)/dir0", since=15.0)
    assert store.count_by_key(keys) == 4
    assert found(store.captures_by_key(keys, 9, skip=3)) == [("example,a)/dir/two", 30.0)]


def test_dropping_takes_back_the_visit_and_leaves_our_own(store, pages):
    page = pages["http://a.example/z"]
    ours = CaptureRecord(page, 40.0, 200, "text/html", b"e" * 20, 10, "ours.warc.gz", 0, 5)
    store.record(Visits.of([page, page], [20.0, 40.0], verdict=[Verdict.UNCHANGED, Verdict.CHANGED]), captures=[ours])
    store.set_judged(store.unjudged())
    assert store.drop_captures(np.array([page, page, page]), np.array([20.0, 40.0, 99.0])) == 1
    assert store.captures_between(page, 0.0, np.inf, 9).time.tolist() == [10.0, 30.0, 40.0]
    assert store.visits(pages=np.array([page])).time.tolist() == [40.0]
    assert store.unjudged().tolist() == [page]
