"""``recrawl explain`` on an archive file with every kind of second visit."""

import base64
import gzip
import hashlib
import json
import uuid

import numpy as np
import pytest

from recrawl.app.workspace.workspace import open_workspace
from recrawl.model import Outcome, Verdict, Visits
from recrawl.store.store_values import LearnedFacts, ValidatorCounts
from recrawl.time import to_iso

URL = "http://page.example/"
VERSIONS = (
    ("2026-11-01T10:00:00Z", "<p>We open at nine. It is 10:00:00"),
    ("2026-11-02T10:00:00Z", "<p>We open at nine. It is 10:00:01"),
    ("2026-11-03T10:00:00Z", "<p>We open at ten. <a href=/new>Why?</a>"),
    ("2026-11-04T10:00:00Z", "<p>We open at nine. It is 10:00:00"),
)
"""The same but for a clock; another; the first again, kept as a record that repeats it."""


def record(date: str, html: str, original: str | None) -> bytes:
    """A response, or a record that repeats the response of another date (conventions W6)."""
    head = b"HTTP/1.1 200 OK\r\nContent-Type: text/html\r\n\r\n"
    digest = base64.b32encode(hashlib.sha1(html.encode(), usedforsecurity=False).digest()).decode()
    block = head if original else head + html.encode()
    fields = {
        "WARC-Type": "revisit" if original else "response",
        "WARC-Record-ID": f"<{uuid.uuid4().urn}>",
        "WARC-Target-URI": URL,
        "WARC-Date": date,
        "WARC-Payload-Digest": f"sha1:{digest}",
        "Content-Type": "application/http; msgtype=response",
    }
    if original:
        fields |= {
            "WARC-Profile": "http://netpreserve.org/warc/1.1/revisit/identical-payload-digest",
            "WARC-Refers-To-Target-URI": URL,
            "WARC-Refers-To-Date": original,
        }
    lines = "".join(f"{name}: {value}\r\n" for name, value in fields.items())
    return gzip.compress(f"WARC/1.1\r\n{lines}Content-Length: {len(block)}\r\n\r\n".encode() + block + b"\r\n\r\n")


@pytest.fixture
def workspace(tmp_path, run):
    first_seen: dict[str, str] = {}
    with (tmp_path / "crawl.warc.gz").open("wb") as file:
        for date, html in VERSIONS:
            file.write(record(date, html, first_seen.get(html)))
            first_seen.setdefault(html, date)
    assert run("init", "w").returncode == 0
    assert run("import", "crawl.warc.gz", "-w", "w").returncode == 0
    return "w"


def told(run, workspace, *options) -> dict:
    result = run("explain", URL, "-w", workspace, "--json", *options)
    assert result.returncode == 0, result.stderr
    return json.loads(result.stdout)


def test_a_clock_is_no_change_and_is_named(run, workspace):
    facts = told(run, workspace, "--at", "2026-11-02T12:00:00Z")
    assert (facts["verdict"], facts["diff"], facts["same_bytes"]) == ("unchanged", [], False)
    assert facts["noise"] == [{"rule": "clock with seconds", "text": "10:00:01"}]
    assert "not in visible content" in facts["why"]


def test_a_change_is_shown_line_by_line_with_its_links(run, workspace):
    facts = told(run, workspace, "--at", "2026-11-03T12:00:00Z")
    assert facts["verdict"] == "changed"
    assert {"-We open at nine.", "+We open at ten."} <= set(facts["diff"])
    assert facts["links_added"] == ["http://page.example/new"]


def test_a_record_that_repeats_an_earlier_one_shows_that_one(run, workspace):
    facts = told(run, workspace)
    assert facts["verdict"] == "changed"
    assert {"-We open at ten.", "+We open at nine."} <= set(facts["diff"])


def test_people_read_the_visits_the_reason_and_the_difference(run, workspace):
    said = run("explain", URL, "-w", workspace, "--changed").stdout
    assert "4 visits since 2026-11-01 10:00:00, 2 of them found a change" in said
    assert "The visible content differs." in said
    assert "+We open at nine." in said
    assert "- link http://page.example/new" in said


def test_where_long_lines_differ_is_seen(tmp_path, run):
    much = " ".join(f"word{place}" for place in range(300))
    with (tmp_path / "long.warc.gz").open("wb") as file:
        file.write(record("2026-11-01T10:00:00Z", f"<p>{much} before <p>And here", None))
        file.write(record("2026-11-02T10:00:00Z", f"<p>{much} after <p>And there", None))
    assert run("init", "w").returncode == 0
    assert run("import", "long.warc.gz", "-w", "w").returncode == 0
    said = run("explain", URL, "-w", "w").stdout
    for words in ("word299 before", "word299 after", "-And here", "+And there"):
        assert words in said


def test_why_a_visit_failed_is_told(run, workspace, tmp_path):
    with open_workspace(tmp_path / workspace, {}).open_store() as store:
        page = store.find(URL)
        when = np.array([1_794_000_000.0])
        store.record(
            Visits.of(np.array([page.id]), when, outcome=np.array([Outcome.REFUSED]), status=np.array([-9998]))
        )
    assert "robots.txt forbids it" in told(run, workspace)["why"]


def test_the_first_visit_had_nothing_to_compare_with(run, workspace):
    assert "no earlier version to compare with" in told(run, workspace, "--at", "2026-11-01T12:00:00Z")["why"]


def test_without_the_archive_files_the_record_is_told(run, workspace, tmp_path):
    (tmp_path / "crawl.warc.gz").unlink()
    facts = told(run, workspace, "--at", "2026-11-03T12:00:00Z")
    assert facts["verdict"] == "changed"
    assert "do not hold both versions" in facts["why"]
    assert "diff" not in facts


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (("http://other.example/",), "is not a page of this workspace"),
        ((URL, "--at", "2020-01-01"), "There is no visit of"),
        ((URL, "--at", "yesterday"), "is not a time"),
    ],
)
def test_what_cannot_be_explained_says_why(run, workspace, arguments, words):
    result = run("explain", *arguments, "-w", workspace)
    assert result.returncode != 0
    assert words in result.stderr
    assert "Traceback" not in result.stderr


def test_a_page_that_nobody_visited_is_said_to_be_so(run, workspace):
    assert run("add", "http://new.example/", "-w", workspace).returncode == 0
    result = run("explain", "http://new.example/", "-w", workspace)
    assert result.returncode != 0
    assert "http://new.example/ was not visited yet." in result.stderr


def test_second_looks_and_servers_that_lie_are_told(tmp_path, run, workspace):
    last = told(run, workspace)["time"]
    with open_workspace(tmp_path / workspace, {}).open_store() as store:
        page = store.find(URL)
        outcomes = [Outcome.FETCHED, Outcome.FETCHED, Outcome.FETCHED, Outcome.SERVER_ERROR]
        times = last + np.array([3600.0, 3605.0, 7200.0, 7205.0])
        validator_trust = ValidatorCounts(*(np.array([count]) for count in (page.host, 3, 2, 0)))
        store.record(
            Visits.of(np.full(4, page.id), times, outcome=outcomes, verdict=[Verdict.CHANGED, 0, 0, 0]),
            learned_facts=LearnedFacts(validator_trust=validator_trust),
        )
    second, doubt, failed = (told(run, workspace, "--at", to_iso(last + after)) for after in (3606.0, 7201.0, 7206.0))
    assert second["why"].startswith("This was a confirmation fetch")
    assert "confirmation fetch failed" in doubt["why"]
    assert failed["why"] == "A failed visit is not evidence of a change: no answer."
    assert second["host"] == {"checks": 3, "lies": 2}
    assert "would have hidden 2 of 3 changes" in run("explain", URL, "-w", workspace).stdout
