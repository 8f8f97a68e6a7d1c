"""WARC files, judged by warcio and fastwarc."""

from __future__ import annotations

import base64
import gzip
import hashlib
import re
import subprocess
import sys
import warnings
import zlib
from dataclasses import replace
from types import SimpleNamespace

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from warcio.archiveiterator import ArchiveIterator

from recrawl.errors import ConfigError, InputError
from recrawl.formats.warc.warc_records import head_without_chunks, pack, packed_body, response_ref
from recrawl.formats.warc.warc_writer import WarcInfo, WarcWriter
from recrawl.model import Capture
from recrawl.time import VirtualClock

CLOCK = VirtualClock(1_700_000_000.1234)
INFO = WarcInfo(
    prefix="TEST", software="recrawl/test", operator="A. Nobody", is_part_of="tests", host="crawler", port=7
)
ORIGINAL_TIME, LATER = 1_700_000_000.125, 1_700_086_400.5
REQUEST = b"GET / HTTP/1.1\r\nHost: example.org\r\n\r\n"


def page(body=b"hello", head=b"HTTP/1.1 200 OK\r\nX-OdD:  x\r\n", **fields):
    given_fields = {"time": ORIGINAL_TIME, "raw_request": REQUEST, "ip": "192.0.2.7", "status": 200} | fields
    length = b"Content-Length: %d\r\n\r\n" % len(body)
    return Capture("http://example.org/a?b=c", raw_head=head + length, raw_body=body, **given_fields)


def chunked(body, **fields):
    head = b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n"
    return Capture("http://example.org/chunked", ORIGINAL_TIME, 200, head, body, REQUEST, **fields)


NOT_MODIFIED = Capture(
    "http://example.org/a?b=c", LATER, 304, b'HTTP/1.1 304 Not Modified\r\nETag: "v1"\r\nX-OdD: y\r\n\r\n', b"", REQUEST
)


def records(path):
    """(type, headers, block) of every record, as warcio reads them."""
    with path.open("rb") as file:
        return [
            SimpleNamespace(
                kind=record.rec_type,
                get=record.rec_headers.get_header,
                names=[name for name, _ in record.rec_headers.headers],
                protocol=record.rec_headers.protocol,
                block=record.raw_stream.read(),
            )
            for record in ArchiveIterator(file, no_record_parse=True)
        ]


def complaints(path):
    """What ``warcio check`` finds wrong, with the type of the record."""
    problems = []
    with path.open("rb") as file:
        for record in ArchiveIterator(file, check_digests=True):
            record.content_stream().read()
            problems += [(record.rec_type, problem) for problem in record.digest_checker.problems]
    return problems


def written(folder, *captures, **options):
    with WarcWriter(folder, CLOCK, INFO) as writer:
        places = [writer.write(capture, **options) for capture in captures]
    return writer.path, places


def sha1(data):
    return "sha1:" + base64.b32encode(hashlib.sha1(data).digest()).decode()


def test_a_file_begins_with_who_made_it(tmp_path):
    path, _ = written(tmp_path)
    [info] = records(path)
    assert info.kind == "warcinfo"
    assert info.protocol == "WARC/1.1"
    assert info.get("WARC-Filename") == path.name
    fields = dict(line.split(": ", 1) for line in info.block.decode().splitlines())
    assert fields["software"] == "recrawl/test"
    assert fields["operator"] == "A. Nobody"
    assert fields["isPartOf"] == "tests"
    assert fields["hostname"] == "crawler"
    assert {"format", "robots"} <= fields.keys()


def test_names_follow_the_template(tmp_path):
    path, _ = written(tmp_path)
    assert re.fullmatch(r"TEST-20231114221320123-00000-\d+~crawler~7\.warc\.gz", path.name)
    second, _ = written(tmp_path)
    assert "-00001-" in second.name
    assert len(list(tmp_path.iterdir())) == 2


def test_a_file_is_open_until_it_is_closed(tmp_path):
    writer = WarcWriter(tmp_path, CLOCK, INFO)
    writer.write(page())
    [open_path] = tmp_path.iterdir()
    assert open_path.name == writer.path.name + ".open"
    assert [record.kind for record in records(open_path)] == ["warcinfo", "response", "request"]  # already readable
    writer.close()
    writer.close()
    assert list(tmp_path.iterdir()) == [writer.path]


def test_a_capture_is_kept_byte_for_byte(tmp_path):
    capture = page(gzip.compress(b"hello"), head=b"HTTP/1.1 200 OK\r\ncontent-ENCODING: gzip\r\n")
    path, [place] = written(tmp_path, capture)
    info, response, request = records(path)
    assert (response.kind, request.kind) == ("response", "request")
    assert response.block == capture.raw_head + capture.raw_body
    assert request.block == REQUEST
    assert response.get("WARC-Target-URI") == request.get("WARC-Target-URI") == capture.url
    assert response.get("WARC-Date") == request.get("WARC-Date") == "2023-11-14T22:13:20.125000Z"
    assert response.get("WARC-IP-Address") == "192.0.2.7"
    assert response.get("WARC-Payload-Digest") == sha1(capture.raw_body) == place.ref.payload_digest
    assert response.get("WARC-Block-Digest") == sha1(response.block)
    assert request.get("WARC-Concurrent-To") == response.get("WARC-Record-ID") == f"<{place.ref.record_id}>"
    assert {record.get("WARC-Warcinfo-ID") for record in (response, request)} == {info.get("WARC-Record-ID")}
    assert response.get("WARC-Truncated") is None
    assert complaints(path) == []


def test_the_place_is_a_gzip_member_of_its_own(tmp_path):
    path, places = written(tmp_path, page(b"one"), page(b"two" * 1000))
    data = path.read_bytes()
    for place, body in zip(places, (b"one", b"two" * 1000), strict=True):
        member = zlib.decompressobj(31)
        record = member.decompress(data[place.offset : place.offset + place.length])
        assert member.eof
        assert member.unused_data == b""
        assert record.endswith(body + b"\r\n\r\n")
        assert place.file == path.name


def test_fastwarc_reads_it_too(tmp_path):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DeprecationWarning)  # fastwarc 1.1 warns of its own parts when imported
        from fastwarc.warc import ArchiveIterator as FastIterator

    path, _ = written(tmp_path, page(), page(b""))
    with path.open("rb") as file:
        checked = [(r.headers["WARC-Type"], r.verify_block_digest()) for r in FastIterator(file, parse_http=False)]
    assert [kind for kind, _ in checked] == ["warcinfo", "response", "request", "response", "request"]
    assert all(good for _, good in checked)


@pytest.mark.parametrize("reason", ["length", "time", "disconnect", "unspecified"])
def test_truncation_is_told(tmp_path, reason):
    capture = page(b"hel", truncated=reason)
    path, [first] = written(tmp_path, capture)
    assert records(path)[1].get("WARC-Truncated") == reason
    with WarcWriter(tmp_path, CLOCK, INFO) as writer:
        writer.write(capture, revisit_of=first.ref)
    assert records(writer.path)[1].kind == "response"  # a cut body is evidence of nothing


def test_the_same_payload_becomes_a_revisit(tmp_path):
    again = page(head=b"HTTP/1.1 200 OK\r\nX-Other: head\r\n", time=LATER)
    with WarcWriter(tmp_path, CLOCK, INFO) as writer:
        first = writer.write(page())
        second = writer.write(again, revisit_of=first.ref)
        third = writer.write(again, revisit_of=second.ref)
    _, response, _, revisit, request, repeated, _ = records(writer.path)
    assert revisit.kind == repeated.kind == "revisit"
    assert revisit.block == again.raw_head
    assert revisit.get("WARC-Profile") == "http://netpreserve.org/warc/1.1/revisit/identical-payload-digest"
    assert revisit.get("WARC-Truncated") == "length"
    assert revisit.get("WARC-Payload-Digest") == response.get("WARC-Payload-Digest")
    assert revisit.get("WARC-Date") == "2023-11-15T22:13:20.500000Z"
    assert request.get("WARC-Concurrent-To") == revisit.get("WARC-Record-ID")
    for record in (revisit, repeated):
        assert record.get("WARC-Refers-To") == response.get("WARC-Record-ID")
        assert record.get("WARC-Refers-To-Target-URI") == response.get("WARC-Target-URI")
        assert record.get("WARC-Refers-To-Date") == response.get("WARC-Date")
    assert second.ref == third.ref == first.ref
    assert complaints(writer.path) == []


def test_another_payload_is_kept_in_full(tmp_path):
    with WarcWriter(tmp_path, CLOCK, INFO) as writer:
        first = writer.write(page())
        second = writer.write(page(b"other", time=LATER), revisit_of=first.ref)
    assert [record.kind for record in records(writer.path)] == [
        "warcinfo",
        "response",
        "request",
        "response",
        "request",
    ]
    assert second.ref != first.ref
    assert second.ref.time == LATER


def test_a_304_becomes_an_empty_revisit_and_metadata(tmp_path):
    with WarcWriter(tmp_path, CLOCK, INFO) as writer:
        first = writer.write(page())
        second = writer.write(NOT_MODIFIED, revisit_of=first.ref)
    _, response, _, revisit, request, metadata = records(writer.path)
    assert revisit.kind == "revisit"
    assert revisit.get("Content-Length") == "0"
    assert revisit.block == b""
    assert revisit.get("WARC-Profile") == "http://netpreserve.org/warc/1.1/revisit/server-not-modified"
    assert revisit.get("WARC-Refers-To") == response.get("WARC-Record-ID")
    assert revisit.get("WARC-Refers-To-Target-URI") == response.get("WARC-Target-URI")
    assert revisit.get("WARC-Refers-To-Date") == response.get("WARC-Date")
    assert revisit.get("WARC-Payload-Digest") == response.get("WARC-Payload-Digest")
    assert {r.get("WARC-Concurrent-To") for r in (request, metadata)} == {revisit.get("WARC-Record-ID")}
    assert {r.get("WARC-Date") for r in (revisit, request, metadata)} == {"2023-11-15T22:13:20.500000Z"}
    assert metadata.get("Content-Type") == "application/warc-fields"
    assert metadata.block.splitlines()[:3] == [
        b"httpStatusLine: HTTP/1.1 304 Not Modified",
        b'httpHeader: ETag: "v1"',
        b"httpHeader: X-OdD: y",
    ]
    assert second.ref == first.ref
    assert complaints(writer.path) == []


def test_a_304_to_nothing_known_is_an_ordinary_response(tmp_path):
    path, _ = written(tmp_path, NOT_MODIFIED)
    assert [record.kind for record in records(path)] == ["warcinfo", "response", "request"]


CHUNKED = chunked(b"3\r\nhel\r\n2;x=y\r\nlo\r\n0\r\nTrailer: t\r\n\r\n")


def test_the_payload_digest_does_not_know_chunks(tmp_path):
    with WarcWriter(tmp_path, CLOCK, INFO) as writer:
        first = writer.write(CHUNKED)
        other_cut = chunked(b"5\r\nhello\r\n0\r\n\r\n")
        second = writer.write(other_cut, revisit_of=first.ref)
    response, revisit = (record for record in records(writer.path) if record.kind in ("response", "revisit"))
    assert response.block == head_without_chunks(CHUNKED) + b"hello"
    assert response.get("WARC-Payload-Digest") == sha1(b"hello")
    assert revisit.kind == "revisit"
    assert second.ref == first.ref


@pytest.mark.parametrize(
    "body", [CHUNKED.raw_body, b"", b"no chunks", b"5\r\nhel", b"5\r\nhello\r\n0\r\nX-A: b\r\n\r\n"]
)
def test_warcio_agrees_about_chunks(tmp_path, body):
    """warcio takes the payload digest over the body as stored (its issue 75), so it is stored without its chunks."""
    path, _ = written(tmp_path, chunked(body))
    assert complaints(path) == []


def test_a_coding_beneath_the_chunks_stays_named():
    head = b"HTTP/1.1 200 OK\r\nTransfer-Encoding: gzip, Chunked\r\nContent-Length: 4\r\n\r\n"
    stored = replace(CHUNKED, raw_head=head_without_chunks(replace(CHUNKED, raw_head=head)))
    assert stored.header("transfer-encoding") == "gzip"
    assert stored.header("x-orig-transfer-encoding") == "gzip, Chunked"
    assert (stored.header("content-length"), stored.header("x-orig-content-length")) == ("", "4")


bodies = st.binary(max_size=200) | st.sampled_from([b"", b"hello", b"0\r\n\r\n", b"WARC/1.1\r\n\r\n", b"\r\n" * 3])
captures = st.builds(
    page,
    bodies,
    time=st.floats(0.0, 4e9),
    raw_request=st.sampled_from([b"", REQUEST]),
    ip=st.sampled_from(["", "192.0.2.7", "2001:db8::1"]),
    truncated=st.sampled_from(["", "length", "time", "disconnect"]),
    status=st.sampled_from([200, 301, 304, 404, 503]),
)
fixture_is_only_a_folder = settings(
    suppress_health_check=[HealthCheck.function_scoped_fixture], deadline=None, max_examples=40
)


@fixture_is_only_a_folder
@given(st.lists(captures, max_size=6))
def test_warcio_accepts_and_gives_back_every_byte(tmp_path, some):
    path, places = written(tmp_path, *some)
    assert complaints(path) == []
    responses = [record for record in records(path) if record.kind == "response"]
    assert [record.block for record in responses] == [capture.raw_head + capture.raw_body for capture in some]
    assert [place.offset for place in places] == sorted({place.offset for place in places})


def test_the_command_of_warcio_accepts_the_file(tmp_path):
    with WarcWriter(tmp_path, CLOCK, INFO) as writer:
        first = writer.write(page())
        writer.write(page(time=LATER), revisit_of=first.ref)
        writer.write(NOT_MODIFIED, revisit_of=first.ref)
    command = [sys.executable, "-m", "warcio.cli", "check", "-v", str(writer.path)]
    result = subprocess.run(command, capture_output=True, text=True, check=False)
    assert result.returncode == 0, result.stdout
    assert result.stdout.count("digest pass") == 6  # warcinfo, response, three requests, metadata


def test_what_was_never_answered_is_not_archived(tmp_path):
    with WarcWriter(tmp_path, CLOCK, INFO) as writer, pytest.raises(ValueError, match="without an answer"):
        writer.write(Capture("http://example.org/", 0.0, 0, error="refused"))


def test_a_header_cannot_be_smuggled_in(tmp_path):
    with WarcWriter(tmp_path, CLOCK, INFO) as writer, pytest.raises(ValueError, match="WARC-Target-URI"):
        writer.write(Capture("http://example.org/\r\nWARC-Type: resource", 0.0, 200, b"HTTP/1.1 200 OK\r\n\r\n"))
    assert [record.kind for record in records(writer.path)] == ["warcinfo"]


def test_an_operator_of_two_lines_is_refused(tmp_path):
    with pytest.raises(ConfigError, match="operator"):
        WarcWriter(tmp_path, CLOCK, WarcInfo(operator="A\r\nB"))
    assert list(tmp_path.iterdir()) == []


def test_a_folder_that_cannot_be_is_told(tmp_path):
    (tmp_path / "file").write_text("in the way")
    with pytest.raises(InputError, match="no WARC file can be made"):
        WarcWriter(tmp_path / "file", CLOCK, INFO)


FULL_DISK = """
import resource, sys
from pathlib import Path
from recrawl.errors import DiskFullError
from recrawl.formats.warc.warc_writer import WarcWriter
from recrawl.model import Capture
from recrawl.time import VirtualClock
import os
head = b"HTTP/1.1 200 OK\\r\\n\\r\\n"
with WarcWriter(Path(sys.argv[1]), VirtualClock(0.0)) as writer:
    writer.write(Capture("http://example.org/1", 0.0, 200, head, b"first"))
    resource.setrlimit(resource.RLIMIT_FSIZE, (4000, resource.RLIM_INFINITY))
    try:
        writer.write(Capture("http://example.org/2", 0.0, 200, head, os.urandom(100_000)))
    except DiskFullError as error:
        print(error)
    resource.setrlimit(resource.RLIMIT_FSIZE, (resource.RLIM_INFINITY, resource.RLIM_INFINITY))
    writer.write(Capture("http://example.org/3", 0.0, 200, head, b"third"))
"""


def test_a_full_disk_costs_only_the_capture_that_did_not_fit(tmp_path):
    pytest.importorskip("resource", reason="file size limits stand in for a full disk, and this system has none")
    command = [sys.executable, "-c", FULL_DISK, str(tmp_path)]
    result = subprocess.run(command, capture_output=True, text=True, check=False)
    assert result.returncode == 0, result.stderr
    assert "disk is full" in result.stdout
    [path] = tmp_path.iterdir()
    targets = [record.get("WARC-Target-URI") for record in records(path)]
    assert targets == [None, "http://example.org/1", "http://example.org/3"]
    assert complaints(path) == []


BODIES = {
    "page": page,
    "long head": lambda body: page(body, b"HTTP/1.1 200 OK\r\nX: " + b"x" * 150_000 + b"\r\n"),
    "chunked": lambda body: chunked(b"%x\r\n%s\r\n0\r\n\r\n" % (len(body), body) if body else b"0\r\n\r\n"),
    "cut": lambda body: page(body, truncated="length"),
    "made": lambda body: page(body, made=True, raw_request=b""),
}


@pytest.mark.parametrize("kind", BODIES)
@pytest.mark.parametrize("body", [b"", b"hello", b"noise and more " * 300_000], ids=len)
def test_an_answer_that_is_packed_ahead_is_written_like_any_other(tmp_path, kind, body):
    packed, plain = BODIES[kind](body), BODIES[kind](body)
    pack(packed)
    assert packed_body(packed).deflated
    files = []
    for one in (plain, packed):
        with WarcWriter(tmp_path, CLOCK, INFO) as writer:
            place = writer.write(one)
            writer.write(page(b"after it"))
        files.append(writer.path)
        assert gzip.decompress(writer.path.read_bytes()[place.offset :][: place.length]).startswith(b"WARC/1.1")
    written, expected = (
        [
            (record.kind, record.get("WARC-Payload-Digest"), record.get("WARC-Block-Digest"), record.block)
            for record in found[1:]
        ]
        for found in map(records, files)
    )
    assert written == expected
    assert records(files[1])[1].get("WARC-Warcinfo-ID") == records(files[1])[0].get("WARC-Record-ID")


def test_an_answer_that_repeats_another_is_not_compressed_ahead(tmp_path):
    first, again = page(b"same " * 100_000), page(b"same " * 100_000, time=LATER)
    before = response_ref(first.url, first.time, sha1(first.raw_body))
    pack(again, before.payload_digest)
    assert packed_body(again).deflated == ()
    with WarcWriter(tmp_path, CLOCK, INFO) as writer:
        writer.write(first)
        writer.write(again, revisit_of=before)
        writer.write(again)  # though it was thought to repeat another
    kinds = [
        (record.kind, len(record.block)) for record in records(writer.path) if record.kind in ("response", "revisit")
    ]
    head = len(first.raw_head)
    assert kinds == [("response", head + 500_000), ("revisit", head), ("response", head + 500_000)]
