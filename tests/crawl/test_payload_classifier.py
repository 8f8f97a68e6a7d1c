"""What a live crawl judged, an import of its archive files judges again, to the last count."""

from __future__ import annotations

import asyncio
from datetime import UTC, datetime
from pathlib import Path

import numpy as np
import pytest

from recrawl.crawl.visit.change_classifier import ClassifierRules
from recrawl.crawl.worker.crawl_assembly import WorkerSettings
from recrawl.formats.columnar.capture_batches import ReadReport
from recrawl.formats.warc.warc_reader import index_warc, read_capture
from recrawl.model import Capture, ChangeKind, Outcome, Verdict
from recrawl.schedule.policies.valued import ValuedPolicy
from recrawl.simulate.sites import synthetic_web
from recrawl.store.open import open_store
from recrawl.store.store_values import CaptureColumns
from recrawl.time import DAY, VirtualClock
from recrawl.transfer import payload_classifier
from recrawl.transfer.archive_import import CleaningRules, Importer
from recrawl.transfer.payload_classifier import PayloadClassifier
from recrawl_testweb.fault_injection import FaultProfile
from recrawl_testweb.virtual_trial import TrialSettings, run_trial


def rows(store, *, without=()):
    visits = store.visits()
    urls = store.urls(visits.page)
    columns = [column.tolist() for name, column in visits.columns().items() if name not in ("page", "cost", *without)]
    return {(url, written(row[0])): row[1:] for url, row in zip(urls, zip(*columns, strict=True), strict=True)}


def follows_a_cut_answer(expected, key):
    """Whether an answer that was cut short came after the last whole one before this visit."""
    before = sorted((other for other in expected if other[0] == key[0] and other[1] < key[1]), reverse=True)
    for outcome, _verdict, _kinds, status, *_ in (expected[other] for other in before):
        if outcome in (Outcome.FETCHED, Outcome.GONE):
            return False
        if outcome == Outcome.UNREACHABLE and status > 0:
            return True
    return False


def written(time):
    """A time as archive files have it: rounded to microseconds in one way, so that no two roundings meet."""
    return datetime.fromtimestamp(time, UTC)


def links(store):
    found = store.outlinks(store.pages().id)
    pairs = zip(store.urls(found.source), store.urls(found.target), strict=True)
    return {pair: written(seen) for pair, seen in zip(pairs, found.first_seen.tolist(), strict=True)}


@pytest.mark.slow
@pytest.mark.parametrize(("fault_profile", "many"), [("mild", payload_classifier._MANY), ("wild", 1)])
def test_an_imported_crawl_says_what_the_live_crawl_said(fault_profile, many, tmp_path, monkeypatch):
    """Also where there are so many captures that they are read in compiled code."""
    monkeypatch.setattr(payload_classifier, "_MANY", many)
    web = synthetic_web(pages=30, start=1.79e9, days=5, seed=6, hot=0.8)
    settings = TrialSettings(
        WorkerSettings(80 / DAY, "twice/1 (+https://example.org/)", classifier=ClassifierRules(confirm_changes=False)),
        fault_profile=getattr(FaultProfile, fault_profile)(),
        seed=6,
    )
    with (
        open_store(str(tmp_path / "live.db"), create=True) as live,
        open_store(str(tmp_path / "again.db"), create=True) as again,
    ):
        asyncio.run(run_trial(web, ValuedPolicy(), store=live, folder=tmp_path, settings=settings))
        importer, report = (
            Importer(again, VirtualClock(1.8e9), CleaningRules(merge_within=0.0)),
            ReadReport(strict=True),
        )
        for file in sorted((tmp_path / "warc").glob("*.warc.gz")):
            importer.take(str(file), "1", index_warc(file, report), report, file=str(file))
        pages = again.pages().id
        importer.judge()
        PayloadClassifier(again, lambda file, offset: read_capture(Path(file), offset)).judge(pages)
        expected, found = (rows(store, without=("size",)) for store in (live, again))  # a revisit has no body
        archived = {key: value for key, value in expected.items() if value[3] > 0}  # a status: an answer was kept
        assert len(archived) > 100
        # Which version a 304 confirms after an answer that was cut short is only known to the crawler that asked.
        unclear = {key for key in archived if archived[key][3] == 304 and follows_a_cut_answer(expected, key)}
        assert len(unclear) < len(archived) / 50
        assert {key: found[key] for key in archived if key not in unclear} == {
            key: value for key, value in archived.items() if key not in unclear
        }
        assert all(found[key][1] in (Verdict.UNKNOWN, Verdict.UNCHANGED) for key in unclear)
        assert links(again) == links(live)


@pytest.mark.slow
def test_a_page_that_cannot_be_read_keeps_the_verdict_of_its_digest(tmp_path):
    web = synthetic_web(pages=9, start=1.79e9, days=3, seed=1, hot=2.0)
    with (
        open_store(str(tmp_path / "live.db"), create=True) as live,
        open_store(str(tmp_path / "again.db"), create=True) as again,
    ):
        asyncio.run(
            run_trial(
                web,
                ValuedPolicy(),
                store=live,
                folder=tmp_path,
                settings=TrialSettings(WorkerSettings(80 / DAY, "x/1 (+https://example.org/)")),
            )
        )
        importer, report = Importer(again, VirtualClock(1.8e9)), ReadReport()
        for file in (tmp_path / "warc").glob("*.warc.gz"):
            importer.take(str(file), "1", index_warc(file, report), report, file=str(file))
        importer.judge()
        before = rows(again)
        assert PayloadClassifier(again, lambda _file, _offset: None).judge(again.pages().id) == 0
        assert rows(again) == before
        assert any(row[1] == Verdict.CHANGED for row in before.values())


def test_a_version_without_bytes_is_not_forgotten(tmp_path):
    """A, then B known by its digest only, then A again: the last one is a change, though A was seen before."""
    head = b"HTTP/1.1 200 OK\r\nContent-Type: text/html\r\n\r\n"
    with open_store(str(tmp_path / "store.db"), create=True) as store:
        page = store.discover(["http://a.example/"], 0.0)
        store.add_captures(
            CaptureColumns(
                np.repeat(page, 4),
                np.array([1.0, 2.0, 3.0, 4.0]) * DAY,
                np.full(4, 200),
                ["text/html"] * 4,
                [b"A" * 20, b"B" * 20, b"A" * 20, b"C" * 20],
                np.full(4, 9),
                ["x.warc", "", "x.warc", "x.warc"],
                np.array([0, -1, 0, 1]),
                np.full(4, 9),
            )
        )
        Importer(store, VirtualClock(0.0)).judge()
        texts = [b"<p>one</p>", b"<p>another</p>"]
        PayloadClassifier(store, lambda _file, at: Capture("http://a.example/", 0.0, 200, head, texts[at])).judge(page)
        visits = store.visits()
        assert visits.verdict.tolist() == [Verdict.UNKNOWN, Verdict.CHANGED, Verdict.CHANGED, Verdict.CHANGED]
        assert visits.kinds[3] & ChangeKind.TEXT


def test_a_page_with_very_many_captures_is_read_piece_by_piece(tmp_path, monkeypatch):
    """The same visits, and never more captures at once than the bound, whatever the pages have."""
    head = b"HTTP/1.1 200 OK\r\nContent-Type: text/html\r\n\r\n"
    count, largest = 90, []

    def read(_file, at):
        return Capture("http://a.example/", 0.0, 200, head, f"<p>{at // 3}</p><a href=/{at // 5}>x</a>".encode())

    def visits(name, bound):
        monkeypatch.setattr(payload_classifier, "_CAPTURES_AT_ONCE", bound)
        with open_store(str(tmp_path / name), create=True) as store:
            pages = store.discover(["http://a.example/", "http://a.example/b", "http://a.example/c"], 0.0)
            page = np.repeat(pages, [count, 3, 4])
            number = np.concatenate([np.arange(count), np.arange(3), np.arange(4)])
            revisit = number % 7 == 6
            store.add_captures(
                CaptureColumns(
                    page,
                    number * DAY / 2 + np.where(number % 10 == 9, DAY / 2 - 30, 0),
                    np.full(len(page), 200),
                    ["warc/revisit" if again else "text/html" for again in revisit.tolist()],
                    [bytes([at // 3]) * 20 for at in number.tolist()],
                    np.full(len(page), 9),
                    ["x.warc"] * len(page),
                    number,
                    np.full(len(page), 9),
                )
            )
            Importer(store, VirtualClock(0.0)).judge()
            in_pieces = payload_classifier.captures_in_pieces

            def watched(*arguments):
                for piece in in_pieces(*arguments):
                    largest.append(len(piece))
                    yield piece

            with monkeypatch.context() as patch:
                patch.setattr(payload_classifier, "captures_in_pieces", watched)
                PayloadClassifier(store, read, 60.0).judge(store.unread())
            assert len(store.unread()) == 0
            return rows(store)

    whole = visits("whole.db", 10_000)
    largest.clear()
    assert visits("pieces.db", 8) == whole
    assert max(largest) <= 8
    assert sum(largest) == count + 7
    assert len(whole) == count + 7 - (count - 1) // 10


def test_a_page_that_links_name_is_heard_of_when_the_first_of_them_was_seen(tmp_path):
    head = b"HTTP/1.1 200 OK\r\nContent-Type: text/html\r\n\r\n"
    bodies = [b"<p>one</p><a href=/x>x</a>", b"<p>two</p><a href=/x>x</a><a href=/y>y</a>", b"<a href=/y>y</a>"]
    with open_store(str(tmp_path / "store.db"), create=True) as store:
        pages = store.discover(["http://a.example/", "http://a.example/b"], 0.0)
        store.add_captures(
            CaptureColumns(
                pages[[0, 0, 1]],
                np.array([2.0, 5.0, 3.0]) * DAY,
                np.full(3, 200),
                ["text/html"] * 3,
                [b"A" * 20, b"B" * 20, b"C" * 20],
                np.full(3, 9),
                ["x.warc"] * 3,
                np.arange(3),
                np.full(3, 9),
            )
        )
        Importer(store, VirtualClock(0.0)).judge()
        PayloadClassifier(store, lambda _file, at: Capture("http://a.example/", 0.0, 200, head, bodies[at])).judge(
            pages
        )
        heard = {name: store.find(f"http://a.example/{name}").discovered / DAY for name in ("x", "y")}
        assert heard == {"x": 2.0, "y": 3.0}  # /y by the second page, which is read after the first


@pytest.mark.parametrize(("digest", "verdict"), [(b"\2" * 20, Verdict.CHANGED), (b"md5:00", Verdict.UNCHANGED)])
def test_what_was_cut_off_is_judged_by_the_digest_of_all_of_it(tmp_path, digest, verdict):
    head = b"HTTP/1.1 200 OK\r\nContent-Type: text/plain\r\n\r\n"
    with open_store(str(tmp_path / "x.db"), create=True) as store:
        page = store.discover(["http://long.test/"], 0.0)
        two = np.array([0, 1])
        store.add_captures(
            CaptureColumns(
                np.repeat(page, 2),
                (two + 1) * DAY,
                np.full(2, 200),
                ["text/plain"] * 2,
                [b"\1" * 20, digest],
                np.full(2, 99),
                ["a.warc"] * 2,
                two,
                np.ones(2, np.int64),
            )
        )
        PayloadClassifier(
            store,
            lambda _file, offset: Capture(
                "http://long.test/", DAY * (offset + 1), 200, head, b"the same beginning", truncated="length"
            ),
        ).judge(page)
        assert store.visits().verdict.tolist() == [Verdict.UNKNOWN, verdict]
