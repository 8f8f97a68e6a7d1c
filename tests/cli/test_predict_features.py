"""``recrawl predict features``: the table of the pure functions, of a workspace as of a time, no look past it."""

import csv
import shutil
from datetime import UTC, datetime
from uuid import NAMESPACE_URL, uuid5

import numpy as np
import pyarrow.parquet as pq
import pytest

from recrawl.app.workspace.workspace import open_workspace
from recrawl.errors import ExitCode
from recrawl.formats.warc.archived_bytes import ArchivedBytes, imported_into
from recrawl.model import Capture, Verdict, Visits
from recrawl.predict.feature_extraction import FeatureOptions, look_around, page_features
from recrawl.predict.related_pages import learn_semantics
from recrawl.time import DAY, to_iso
from recrawl.transfer.page_contents import observations_before, page_evidence

START = 1_700_000_000.0
WEEKS, PAGES = 4, 12
AS_OF = START + 15 * DAY
LIST = "http://a.example/list.html"


def body(number, week):
    """Items are about one of two things and do not change; the list gets two links a week.

    In the last week it has a table, and a link to a page that nobody knew of.
    """
    topic = ("wave tide ship harbour ", "loop type array thread ")[number % 2]
    links = "".join(f'<a href="/item/{one}.html">{one}</a>' for one in range(1, 4 + 2 * week)) if not number else ""
    extra = "<table><tr><td>planted</table><a href=/later.html>later</a>" if not number and week == WEEKS - 1 else ""
    return f"<!doctype html><p>{topic * 9}{links}{extra}".encode()


def record(number, week):
    """A WARC record of a page in a week."""
    url = f"http://a.example/item/{number}.html" if number else LIST
    date = datetime.fromtimestamp(START + week * 7 * DAY + number, UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
    answer = b"HTTP/1.1 200 OK\r\nContent-Type: text/html\r\nContent-Length: %d\r\n\r\n%s" % (
        len(body(number, week)),
        body(number, week),
    )
    head = (
        f"WARC/1.0\r\nWARC-Type: response\r\nWARC-Target-URI: {url}\r\nWARC-Date: {date}\r\n"
        f"WARC-Record-ID: <urn:uuid:{uuid5(NAMESPACE_URL, url + date)}>\r\n"
        f"Content-Type: application/http;msgtype=response\r\nContent-Length: {len(answer)}\r\n\r\n"
    )
    return head.encode() + answer + b"\r\n\r\n"


def imported(run, new_workspace, folder, weeks):
    """A workspace of the captures of the first so many weeks."""
    folder.mkdir()
    place = shutil.copytree(new_workspace, folder / "ws")
    records = [record(number, week) for week in range(weeks) for number in range(PAGES)]
    (folder / "site.warc").write_bytes(b"".join(records))
    assert run("import", "-w", place, folder / "site.warc").returncode == ExitCode.OK
    return place


@pytest.fixture
def ws(run, new_workspace, tmp_path):
    return imported(run, new_workspace, tmp_path / "whole", WEEKS)


def rows_of(file):
    return {row["url"]: row for row in pq.read_table(file).to_pylist()}


def test_the_table_is_that_of_the_pure_functions(run, ws, tmp_path):
    said = run("predict", "features", "-w", ws, "--at", to_iso(AS_OF), "-o", "all.parquet")
    assert said.returncode == ExitCode.OK, said.stderr
    assert f"of {PAGES} pages by {3 * PAGES} observations" in said.stdout
    written = pq.read_table(tmp_path / "all.parquet")
    place = open_workspace(ws, {})
    with place.open_store() as store:
        ids = np.sort(store.pages().id)
        urls = dict(zip(ids.tolist(), store.urls(ids), strict=True))
        read = ArchivedBytes(place.warc, imported_into(store)).read
        evidence = page_evidence(urls, observations_before(store, read, ids, np.inf))  # all of it: cut by page_features
    evidence = evidence.of_pages(np.array(["later" not in url for url in evidence.urls]))
    rng = np.random.default_rng(1)
    known = evidence.texts.before(AS_OF)
    around = look_around(evidence, AS_OF, learn_semantics(known.last_of(evidence.page), rng), rng)
    table = page_features(evidence, AS_OF, around, FeatureOptions())
    assert written.column_names == ["url", *table.names]
    assert written.column("url").to_pylist() == list(evidence.urls)
    found = np.column_stack([written.column(name).to_numpy() for name in table.names])
    assert np.array_equal(found, table.values, equal_nan=True)
    assert written.schema.metadata[b"schema"].decode() == table.schema
    groups = [written.schema.field(one.name).metadata[b"group"].decode() for one in table.columns]
    assert groups == [one.group for one in table.columns]
    assert set(groups) == {"SP", "SN", "DP", "DN"}
    row = rows_of(tmp_path / "all.parquet")[LIST]
    assert (row["internal_links"], row["new_internal_1"], row["tables"]) == (7, 2, 0)
    assert written.schema.metadata[b"as_of"].decode() == to_iso(AS_OF)


def test_what_comes_later_moves_no_feature(run, new_workspace, ws, tmp_path):
    """The same table comes out where the last week, with a table and more links, never was."""
    before = imported(run, new_workspace, tmp_path / "before", WEEKS - 1)
    for place, name in ((ws, "whole.parquet"), (before, "before.parquet")):
        assert run("predict", "features", "-w", place, "--at", to_iso(AS_OF), "-o", name).returncode == ExitCode.OK
    whole, early = rows_of(tmp_path / "whole.parquet"), rows_of(tmp_path / "before.parquet")
    assert whole == early
    assert run("predict", "features", "-w", ws, "-o", "now.csv", "--group", "sp").returncode == ExitCode.OK
    rows = {row["url"]: row for row in csv.DictReader((tmp_path / "now.csv").read_text().splitlines())}
    assert float(rows[LIST]["tables"]) == 1.0  # so the signal is there for whoever may see it
    assert rows.keys() - whole.keys() == {"http://a.example/later.html"}
    assert "new_internal_1" not in rows[LIST]


def test_looks_that_found_no_change_count_as_looks(ws):
    place = open_workspace(ws, {})
    with place.open_store() as store:
        page = store.find(LIST).id
        again = START + np.array([3.0, 30.0, 60.0]) * DAY
        store.record(Visits.of(np.full(3, page), again, verdict=np.full(3, Verdict.UNCHANGED), status=304))
        read = ArchivedBytes(place.warc, imported_into(store)).read
        observations = [
            (one, observation.time)
            for one, observation in observations_before(store, read, np.array([page]), START + 40 * DAY)
        ]
        weekly = [(page, START + week * 7 * DAY) for week in range(WEEKS)]
        assert observations == sorted([*weekly, (page, again[0]), (page, again[1])])


def test_a_record_that_repeats_an_earlier_one_is_read_as_that():
    class Kept:
        """A store of one page: two versions, then the first again, then one without a digest."""

        def capture_counts(self, pages):
            return np.full(len(pages), 4)

        def captures_of_page(self, page, *, after, limit):
            from recrawl.store.store_values import CaptureColumns

            mime = ["text/html", "text/html", "warc/revisit", "warc/revisit"]
            digest = [b"a", b"b", b"a", b""]
            rows = np.flatnonzero(np.arange(1.0, 5.0) > after)
            some = np.arange(4)
            every = CaptureColumns(
                np.full(4, page), some + 1.0, np.full(4, 200), mime, digest, some, ["f"] * 4, some, some
            )
            return every.take(rows)

        def visits(self, **_asked):
            return Visits.of(np.empty(0, int), np.empty(0))

    def read(_file, offset):
        return Capture("http://a.example/", 0.0, 200, raw_body=b"%d" % offset)

    found = [
        (observation.time, observation.raw_body)
        for _, observation in observations_before(Kept(), read, np.array([7]), 9.0)
    ]
    assert found == [(1.0, b"0"), (2.0, b"1"), (3.0, b"0"), (4.0, b"0")]


def test_what_cannot_be_is_said(run, ws):
    early = run("predict", "features", "-w", ws, "--at", "1990-01-01", "-o", "a.csv")
    assert early.returncode == ExitCode.ERROR
    assert "No page was known before 1990-01-01" in early.stderr
    assert "--period is 0" in run("predict", "features", "-w", ws, "--period", "0s", "-o", "a.csv").stderr
    assert "--period: 'soon' is" in run("predict", "features", "-w", ws, "--period", "soon", "-o", "a.csv").stderr
    assert "not a group of features" in run("predict", "features", "-w", ws, "--group", "xx", "-o", "a.csv").stderr
    assert ".csv or .parquet" in run("predict", "features", "-w", ws, "-o", "a.txt").stderr
