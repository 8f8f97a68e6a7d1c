"""``recrawl changes`` on an archive file with pages that are edited, move, go away and come back."""

import csv
import gzip
import http
import io
import json
import uuid
from xml.etree import ElementTree as ET

import feedparser
import pytest

from recrawl.app.workspace.workspace import open_workspace
from recrawl.formats.dates import w3c_time
from recrawl.model import Outcome, Visits
from recrawl.model.visits import NO_CONNECTION
from recrawl.time import DAY

LONG = "<p>" + " ".join(f"word{number}" for number in range(80))
EDITED = f"{LONG}<p>Fee: 4 EUR<p>We open at nine. It is 10:00:02<p><a href=/new>Why?</a>"
NEWS, SHOP, DATA = "http://news.example/", "http://shop.example/old", "http://news.example/fees.csv"
RECORDS = (
    (NEWS, "2026-11-01T10:00:00Z", 200, "text/html", f"{LONG}<p>Fee: 3 EUR<p>We open at nine. It is 10:00:00"),
    (SHOP, "2026-11-01T11:00:00Z", 200, "text/html", "<p>Shoes"),
    (DATA, "2026-11-01T12:00:00Z", 200, "text/csv", "kind,fee\nchild,3\n"),
    (NEWS, "2026-11-02T10:00:00Z", 200, "text/html", f"{LONG}<p>Fee: 3 EUR<p>We open at nine. It is 10:00:01"),
    (
        NEWS,
        "2026-11-03T10:00:00Z",
        200,
        "text/html",
        EDITED,
    ),
    (SHOP, "2026-11-03T11:00:00Z", 404, "text/html", "<p>Nothing here"),
    (DATA, "2026-11-03T12:00:00Z", 200, "text/csv", "kind,fee\nchild,3\nadult,6\n"),
    (SHOP, "2026-11-05T11:00:00Z", 200, "text/html", "<p>Shoes"),
    (SHOP, "2026-11-06T11:00:00Z", 301, "http://shop.example/new", ""),
)
ALL = ("--since", "2026-10-01", "--until", "2026-12-01")


def response(url: str, date: str, status: int, kind: str, text: str) -> bytes:
    """A response record; ``kind`` is the media type, or the target of a redirect."""
    field = "Location" if status // 100 == 3 else "Content-Type"
    head = f"HTTP/1.1 {status} {http.HTTPStatus(status).phrase}\r\n{field}: {kind}\r\n\r\n"
    block = head.encode() + text.encode()
    fields = {
        "WARC-Type": "response",
        "WARC-Record-ID": f"<{uuid.uuid4().urn}>",
        "WARC-Target-URI": url,
        "WARC-Date": date,
        "Content-Type": "application/http; msgtype=response",
        "Content-Length": str(len(block)),
    }
    lines = "".join(f"{name}: {value}\r\n" for name, value in fields.items())
    return gzip.compress(f"WARC/1.1\r\n{lines}\r\n".encode() + block + b"\r\n\r\n")


@pytest.fixture
def workspace(tmp_path, run):
    (tmp_path / "crawl.warc.gz").write_bytes(b"".join(response(*record) for record in RECORDS))
    assert run("init", "w").returncode == 0
    assert run("import", "crawl.warc.gz", "-w", "w").returncode == 0
    return "w"


def found(run, workspace, *options):
    result = run("changes", "-w", workspace, "--json", *options)
    assert result.returncode == 0, result.stderr
    return json.loads(result.stdout)


def events(changes):
    return [(one["event"], one["url"], one["time"]) for one in changes]


def test_every_kind_of_event_is_found_once_and_latest_first(run, workspace):
    changes = found(run, workspace, *ALL)
    expected = [
        ("moved", SHOP, "2026-11-06T11:00:00Z"),
        ("back", SHOP, "2026-11-05T11:00:00Z"),
        ("changed", DATA, "2026-11-03T12:00:00Z"),
        ("gone", SHOP, "2026-11-03T11:00:00Z"),
        ("changed", NEWS, "2026-11-03T10:00:00Z"),
        ("added", DATA, "2026-11-01T12:00:00Z"),
        ("added", SHOP, "2026-11-01T11:00:00Z"),
        ("added", NEWS, "2026-11-01T10:00:00Z"),
    ]
    assert events(changes) == [(event, url, w3c_time(time)) for event, url, time in expected]
    assert len({one["id"] for one in changes}) == len(changes)


def test_each_change_has_a_sentence_and_the_visit_before(run, workspace):
    of = {(one["event"], one["url"]): one for one in found(run, workspace, *ALL)}
    news = of["changed", NEWS]
    assert news["summary"] == "Fee: 3 EUR → Fee: 4 EUR; 1 line added: “Why?”; 1 link added."
    assert news["previous"] == w3c_time("2026-11-02T10:00:00Z")
    assert news["links_added"] == ["http://news.example/new"]
    assert of["changed", DATA]["summary"] == "1 row added: “adult,6”."
    assert of["gone", SHOP]["summary"] == "The page is gone: the server answers 404."
    assert of["moved", SHOP]["summary"] == "It redirects to http://shop.example/new."
    assert of["back", SHOP]["summary"].startswith("The page is back, 2 d after")
    assert of["added", NEWS]["previous"] is None


def test_the_period_ends_and_begins_where_it_is_told(run, workspace):
    assert events(found(run, workspace, "--since", "1d", "--until", "2026-11-03T11:30:00Z")) == [
        ("gone", SHOP, w3c_time("2026-11-03T11:00:00Z")),
        ("changed", NEWS, w3c_time("2026-11-03T10:00:00Z")),
    ]


def test_changes_are_chosen_by_event_kind_host_and_url(run, workspace):
    assert {one["event"] for one in found(run, workspace, *ALL, "--event", "gone", "--event", "back")} == {
        "gone",
        "back",
    }
    changed = ("--event", "changed")
    assert [one["url"] for one in found(run, workspace, *ALL, *changed, "--kind", "links")] == [NEWS]
    assert {one["url"] for one in found(run, workspace, *ALL, "--host", "shop.example")} == {SHOP}
    assert {one["url"] for one in found(run, workspace, *ALL, "--match", "*.csv")} == {DATA}
    size = {one["url"]: one["magnitude"] for one in found(run, workspace, *ALL, *changed)}
    smaller, larger = sorted(size, key=size.__getitem__)
    middle = str((size[smaller] + size[larger]) / 2)
    assert [one["url"] for one in found(run, workspace, *ALL, *changed, "--min-change", middle)] == [larger]
    assert len(found(run, workspace, *ALL, "--limit", "3")) == 3


def test_a_page_that_begins_to_fail_is_told_once_and_not_after_it_recovered(run, workspace, tmp_path):
    began = w3c_time("2026-11-10T00:00:00Z")
    with open_workspace(tmp_path / workspace, {}).open_store() as store:
        page, other = store.find(NEWS).id, store.find(DATA).id
        failed = [page, page, other]
        times = [began, began + DAY, began]
        store.record(Visits.of(failed, times, outcome=Outcome.UNREACHABLE, status=NO_CONNECTION))
        store.record(Visits.of([other], [began + 2 * DAY], outcome=Outcome.NOT_MODIFIED, verdict=1))
    failing = found(run, workspace, *ALL, "--event", "failing")
    assert events(failing) == [("failing", NEWS, began)]
    assert "refuse" in failing[0]["summary"] or "connect" in failing[0]["summary"]
    # Of a period in which all its visits failed, only if that is when it began.
    assert len(found(run, workspace, "--since", "2026-11-09", "--until", "2026-12-01", "--event", "failing")) == 1
    assert found(run, workspace, "--since", "2026-11-10T12:00:00Z", "--until", "2026-12-01", "--event", "failing") == []


def test_tables_csv_and_markdown_say_the_same(run, workspace):
    table = run("changes", "-w", workspace, *ALL)
    assert "Fee: 3 EUR → Fee: 4 EUR" in table.stdout
    rows = list(csv.DictReader(io.StringIO(run("changes", "-w", workspace, *ALL, "--csv").stdout)))
    assert [row["event"] for row in rows] == [one["event"] for one in found(run, workspace, *ALL)]
    lines = run("changes", "-w", workspace, *ALL, "--as", "markdown").stdout.splitlines()
    assert len(lines) == len(rows)
    assert lines[1].startswith("- 2026-11-05T11:00:00Z **back** http://shop.example/old: ")


def test_the_atom_feed_is_valid_and_its_ids_stay(run, workspace, tmp_path):
    text = run("changes", "-w", workspace, *ALL, "--as", "atom").stdout
    feed = feedparser.parse(text)
    assert not feed.bozo
    assert feed.version == "atom10"
    assert [entry.title for entry in feed.entries][:2] == [f"moved: {SHOP}", f"back: {SHOP}"]
    assert feed.feed.updated == "2026-11-06T11:00:00Z"
    again = feedparser.parse(run("changes", "-w", workspace, *ALL, "--limit", "2", "--as", "atom").stdout)
    assert [entry.id for entry in again.entries] == [entry.id for entry in feed.entries][:2]
    required = {"id", "title", "updated"}
    atom = "{http://www.w3.org/2005/Atom}"
    root = ET.fromstring(text)
    for element in (root, *root.findall(f"{atom}entry")):
        assert required <= {child.tag.removeprefix(atom) for child in element}


def test_the_json_feed_has_what_version_1_1_requires(run, workspace):
    feed = json.loads(run("changes", "-w", workspace, *ALL, "--as", "json-feed").stdout)
    assert feed["version"] == "https://jsonfeed.org/version/1.1"
    assert feed["title"]
    assert len({item["id"] for item in feed["items"]}) == len(feed["items"]) == 8
    assert all(isinstance(item["id"], str) and item["content_text"] for item in feed["items"])


def test_texts_of_pages_become_no_markup_and_no_control_characters(run, tmp_path):
    hostile = "<p>\x1b[31mred\x00 `code` [link](http://evil.example) &lt;script&gt;alert(1)&lt;/script&gt; \ufffe"
    records = (
        (NEWS, "2026-11-01T10:00:00Z", 200, "text/html; charset=utf-8", "<p>One"),
        (NEWS, "2026-11-02T10:00:00Z", 200, "text/html; charset=utf-8", hostile),
    )
    (tmp_path / "h.warc.gz").write_bytes(b"".join(response(*record) for record in records))
    run("init", "w")
    run("import", "h.warc.gz", "-w", "w")
    for options in ((), ("--json",), ("--csv",), ("--as", "markdown"), ("--as", "atom"), ("--as", "json-feed")):
        result = run("changes", "-w", "w", *ALL, *options)
        assert result.returncode == 0, result.stderr
        assert not {"\x1b", "\x00"} & set(result.stdout), options
    assert not feedparser.parse(run("changes", "-w", "w", *ALL, "--as", "atom").stdout).bozo
    assert r"\[link\](http://evil.example) \<script\>" in run("changes", "-w", "w", *ALL, "--as", "markdown").stdout


def test_wrong_values_say_what_is_right(run, workspace):
    for options, words in (
        (("--since", "soon"), "24h, 7d or 2026-11-09"),
        (("--kind", "lnks"), "links"),
        (("--json", "--csv"), "Give one of them"),
    ):
        result = run("changes", "-w", workspace, *options)
        assert result.returncode != 0
        assert words in result.stderr


def test_nothing_is_said_plainly(run, workspace):
    result = run("changes", "-w", workspace, "--since", "2020-01-01", "--until", "2020-01-02")
    assert result.returncode == 0
    assert "No such change in that time" in result.stdout
