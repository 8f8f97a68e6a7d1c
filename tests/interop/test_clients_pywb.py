"""The clients bring back from a real pywb what was written into its archive (conventions A1-A4, M1-M4)."""

from __future__ import annotations

import asyncio
import gzip
import json

import pytest

from recrawl.detect import decoded
from recrawl.fetch import (
    ArchiveClient,
    CdxClient,
    CdxDialect,
    CdxServerFilter,
    CdxServerQuery,
    CdxState,
    HttpFetcher,
    MapForm,
    MementoClient,
    Paging,
    TransferLimits,
)
from recrawl.formats.columnar.capture_batches import ReadReport
from recrawl.formats.timemap import read_timemap
from recrawl.formats.warc.warc_records import sha1
from recrawl.formats.warc.warc_writer import WarcInfo, WarcWriter
from recrawl.model import Capture
from recrawl.time import DAY, VirtualClock, to_timestamp14

AGENT = "RecrawlTest/1.0 (+https://example.org/bot)"
START = 1_700_000_000.0
HOME, DEEP, SUB, MOVED, SICK = (
    "http://example.org/",
    "http://example.org/deep/page?b=1&a=2",
    "http://sub.example.org/",
    "http://example.org/moved",
    "http://example.org/sick",
)
HTML = (
    b"HTTP/1.1 200 OK\r\nServer: Original/1\r\nX-Odd: one\r\n"
    b"Date: Tue, 14 Nov 2023 22:13:20 GMT\r\nContent-Type: text/html\r\n"
)


def read_map(data, source):
    return read_timemap(data, source, ReadReport(strict=True))


def page(url, day, text, *, zipped=False, chunked=False):
    body = gzip.compress(text, mtime=0) if zipped else text
    head = HTML + (b"Content-Encoding: gzip\r\n" if zipped else b"")
    if chunked:
        head, body = head + b"Transfer-Encoding: chunked\r\n", b"%x\r\n%s\r\n0\r\n\r\n" % (len(body), body)
    else:
        head += b"Content-Length: %d\r\n" % len(body)
    return Capture(url, START + day * DAY, 200, head + b"\r\n", body, b"GET / HTTP/1.1\r\n\r\n", "192.0.2.1")


WRITTEN = [
    page(HOME, 0, b"<p>first"),
    page(HOME, 1, b"<p>first"),  # becomes a revisit
    page(HOME, 3, b"<p>second", zipped=True),
    page(DEEP, 2, b"<p>deep", chunked=True),
    page(SUB, 4, b"<p>sub"),
    Capture(MOVED, START, 302, b"HTTP/1.1 302 Found\r\nLocation: http://example.org/deep\r\nContent-Length: 0\r\n\r\n"),
    Capture(SICK, START, 503, b"HTTP/1.1 503 Busy\r\nRetry-After: 9\r\nContent-Length: 4\r\n\r\n", b"busy"),
]
STAMPS = sorted((one.url, to_timestamp14(one.time)) for one in WRITTEN)


@pytest.fixture(scope="session")
def our_archive(tmp_path_factory):
    folder = tmp_path_factory.mktemp("archive")
    with WarcWriter(folder, VirtualClock(START), WarcInfo(prefix="CLIENTS", host="crawler")) as writer:
        last = {}
        for capture in WRITTEN:
            last[capture.url] = writer.write(capture, revisit_of=last.get(capture.url)).ref
    return folder


@pytest.fixture
def archive(pywb, our_archive):
    """``archive(use)`` runs ``use(client, base)`` with waits on a virtual clock."""
    base = pywb(our_archive)

    def run(use):
        async def main():
            clock = VirtualClock(START)
            async with HttpFetcher(clock, AGENT, limits=TransferLimits(total=60.0)) as fetcher:
                return await use(ArchiveClient(fetcher, clock), base)

        return asyncio.run(main())

    return run


def listed(archive, query, **options):
    async def use(client, base):
        server = CdxClient(client, f"{base}/cdx", body_of=decoded, dialect=CdxDialect.PYWB, **options)
        return [answer async for answer in server.answers(query)]

    answers = archive(use)
    rows = [json.loads(line) for answer in answers for line in answer.body.splitlines()]
    assert len(rows) == sum(answer.captures for answer in answers)
    return rows


def stamps(rows):
    return sorted((row["url"], row["timestamp"]) for row in rows)


def test_a_domain_lists_every_capture_with_its_digest(archive):
    rows = listed(archive, CdxServerQuery("*.example.org"))
    assert stamps(rows) == STAMPS
    digests = {(row["url"], row["timestamp"]): row["digest"] for row in rows}
    assert digests[SUB, to_timestamp14(START + 4 * DAY)] == sha1(b"<p>sub").removeprefix("sha1:")


@pytest.mark.parametrize(
    ("query", "urls"),
    [
        (CdxServerQuery(HOME), {HOME}),
        (CdxServerQuery("example.org/deep/*"), {DEEP}),
        (CdxServerQuery("example.org", match="host"), {HOME, DEEP, MOVED, SICK}),
        (CdxServerQuery("example.org", match="domain"), {HOME, DEEP, MOVED, SICK, SUB}),
        (CdxServerQuery("http://example.org/", match="prefix"), {HOME, DEEP, MOVED, SICK}),
        (CdxServerQuery("nothing.example"), set()),
    ],
)
def test_each_kind_of_match(archive, query, urls):
    assert stamps(listed(archive, query)) == [one for one in STAMPS if one[0] in urls]


def test_times_filters_fields_and_collapsing_are_understood(archive):
    assert len(listed(archive, CdxServerQuery("*.example.org", since="20231116", until="20231117"))) == 2
    ok = CdxServerFilter("statuscode", "200", literal=True)
    assert {row["url"] for row in listed(archive, CdxServerQuery("example.org/*", filters=(ok,)))} == {HOME, DEEP}
    not_html = CdxServerFilter("mimetype", "text/h|text/html", inverted=True)
    assert not {row["mime"] for row in listed(archive, CdxServerQuery("example.org/*", filters=(not_html,)))} & {
        "text/html"
    }
    only = listed(archive, CdxServerQuery(HOME, fields=("original", "timestamp")))
    assert {tuple(sorted(row)) for row in only} == {("timestamp", "url")}
    # Of neighbours pywb compares the status too: here only the last capture of HOME and the one of DEEP are alike.
    assert len(listed(archive, CdxServerQuery("example.org/*", collapse="timestamp:6"))) == 5
    assert len(listed(archive, CdxServerQuery("*.example.org", limit=3))) == 3


def test_pywb_over_a_plain_index_does_not_page_and_is_asked_twice(archive):
    async def use(client, base):
        server = CdxClient(client, f"{base}/cdx", body_of=decoded, dialect=CdxDialect.PYWB)
        answers = [answer async for answer in server.answers(CdxServerQuery("*.example.org"))]
        state = CdxState.from_text(answers[-1].state.to_text())
        assert state.done
        assert [answer async for answer in server.answers(CdxServerQuery("*.example.org"), state)] == []
        return client.requests, state.paging

    assert archive(use) == (2, Paging.ONE.value)


def test_pywb_gives_all_it_has_and_gives_it_once(wayback, tmp_path):
    count = 100_001
    with (tmp_path / "index.cdxj").open("w", encoding="utf-8") as index:
        row = '20240101000000 {"url": "http://example.org/", "filename": "x.warc.gz", "offset": "0"}'
        index.writelines(f"org,example)/{number:06} {row}\n" for number in range(count))
    settings = f"{{index_paths: {tmp_path / 'index.cdxj'}, archive_paths: {tmp_path}}}"
    (tmp_path / "config.yaml").write_text(f"collections: {{judged: {settings}}}\n")

    async def main(base):
        clock = VirtualClock(START)
        async with HttpFetcher(clock, AGENT, limits=TransferLimits(total=60.0)) as fetcher:
            client = ArchiveClient(fetcher, clock)
            query = CdxServerQuery("example.org/*", fields=("timestamp",))
            told = []

            def body_of(capture):
                told.append(decoded(capture).count(b"\n"))
                return decoded(capture)

            server = CdxClient(client, f"{base}/cdx", body_of=body_of, dialect=CdxDialect.PYWB)
            answers = [answer.captures async for answer in server.answers(query)]
            return answers, told

    with wayback(tmp_path) as base:
        assert asyncio.run(main(base)) == ([count], [0, count])


@pytest.mark.parametrize("form", [MapForm.LINK, MapForm.JSON])  # what pywb calls a CDXJ map is an index
def test_timemaps_name_every_capture(archive, form):
    async def use(client, base):
        memento = MementoClient(client, timemap=f"{base}/timemap/{{form}}/{{url}}", body_of=decoded, read_map=read_map)
        return [found async for found in memento.timemaps(HOME, form)]

    (found,) = archive(use)
    assert sorted((one.original, to_timestamp14(one.time)) for one in found.timemap.mementos) == [
        one for one in STAMPS if one[0] == HOME
    ]
    assert found.state.done


def test_an_unknown_page_has_no_timemap(archive):
    async def use(client, base):
        memento = MementoClient(client, timemap=f"{base}/timemap/{{form}}/{{url}}", body_of=decoded, read_map=read_map)
        return [found async for found in memento.timemaps("http://nothing.example/")]

    assert archive(use) == []


@pytest.mark.parametrize("capture", WRITTEN, ids=lambda one: f"{one.url}@{to_timestamp14(one.time)}")
def test_nearest_and_raw_bring_back_each_capture(archive, capture):
    async def use(client, base):
        memento = MementoClient(client, timegate=f"{base}/{{url}}", body_of=decoded, read_map=read_map)
        named = await memento.nearest(capture.url, capture.time)
        return await memento.raw(named.uri)

    back = archive(use)
    assert (back.url, back.time, back.status) == (capture.url, capture.time, capture.status)
    assert decoded(back) == decoded(capture)
    for name in ("server", "date", "x-odd", "content-type", "content-encoding", "location", "retry-after"):
        assert back.header(name) == capture.header(name), name
