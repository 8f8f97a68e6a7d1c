"""MementoClient against scripted archives: maps with pages and circles, TimeGates, raw mementos (conventions M1-M4)."""

from __future__ import annotations

import asyncio
import gzip
import json

import pytest

from recrawl.detect import decoded
from recrawl.errors import ConfigError, FetchError, InputError
from recrawl.fetch import ArchiveClient, HttpFetcher, MapForm, MapState, MementoClient, TransferLimits
from recrawl.fetch.archives.memento_client import raw_uri
from recrawl.fetch.http.transfer import links
from recrawl.formats.columnar.capture_batches import ReadReport
from recrawl.formats.timemap import read_timemap
from recrawl.time import VirtualClock, from_http_date

AGENT = "RecrawlTest/1.0 (+https://example.org/bot)"
PAGE = "http://example.org/"
WHEN = "Sun, 06 Nov 1994 08:49:37 GMT"


def read_map(data, source):
    return read_timemap(data, source, ReadReport())


def answer(body=b"", status="200 OK", *headers):
    body = body.encode() if isinstance(body, str) else body
    lines = [f"HTTP/1.1 {status}", *headers, f"Content-Length: {len(body)}", "", ""]
    return "\r\n".join(lines).encode("latin-1") + body


def run(serving, answers, use, **options):
    async def main():
        clock = VirtualClock(0.0)
        async with serving(answers) as server, HttpFetcher(clock, AGENT, limits=TransferLimits(total=60.0)) as fetcher:

            def make(**more):
                places = {"timemap": server.url("/map/{form}/{url}"), "timegate": server.url("/{url}")}
                return MementoClient(
                    ArchiveClient(fetcher, clock), body_of=decoded, read_map=read_map, **places, **{**options, **more}
                )

            return await use(make, server)

    return asyncio.run(main())


async def collected(client, form=MapForm.LINK, state=None):
    return [found async for found in client.timemaps(PAGE, form, state)]


def link_map(name, *others, self=""):
    listed = [f'<{self}>; rel="self timemap"; type="application/link-format"'] if self else []
    listed += [f'<{other}>; rel="timemap"; type="application/link-format"; from="{WHEN}"' for other in others]
    listed += [f'<http://h/{name}>; rel="memento"; datetime="{WHEN}"']
    return answer(",\n".join(listed) + "\n", "200 OK", "Content-Type: application/link-format")


CIRCLE = {
    f"/map/link/{PAGE}": link_map("one", "/map/2", self=f"/map/link/{PAGE}"),
    "/map/2": link_map("two", "/map/3", f"/map/link/{PAGE}", "/map/2"),
    "/map/3": link_map("three", "/map/2", "http://other.invalid/map", "ftp://x/"),
}


def test_paged_maps_are_followed_once_each_in_spite_of_circles(serving):
    async def use(make, server):
        return await collected(make()), server.paths()

    maps, paths = run(serving, dict(CIRCLE), use)
    assert [name for name in ("one", "two", "three") for found in maps if f"h/{name}>".encode() in found.body] == [
        "one", "two", "three",
    ]  # fmt: skip
    assert len(paths) == len(maps) == 3
    assert maps[-1].state.done


@pytest.mark.parametrize("kept", [1, 2])
def test_maps_go_on_from_a_saved_state(serving, kept):
    async def use(make, server):
        first = []
        async for found in make().timemaps(PAGE):
            first.append(found)
            if len(first) == kept:
                break
        state = MapState.from_text(first[-1].state.to_text())
        return [*first, *await collected(make(), state=state)], server.paths()

    maps, paths = run(serving, dict(CIRCLE), use)
    assert (len(maps), len(paths)) == (3, 3)


def test_a_state_of_another_map_and_a_broken_one_are_refused(serving):
    async def use(make, server):
        with pytest.raises(InputError, match="another TimeMap"):
            await collected(make(), state=MapState("http://other/", "link", ()))
        for text in ("", "[]", "[1, 2, 3, 4]"):
            with pytest.raises(InputError, match="again"):
                MapState.from_text(text)

    run(serving, {}, use)


def test_the_same_map_under_another_name_is_one_map(serving):
    class Same(dict):
        def get(self, path, default=None):
            return link_map("same", "/map/next")

    async def use(make, server):
        return await collected(make()), server.paths()

    maps, paths = run(serving, Same(), use)
    assert (len(maps), len(paths)) == (1, 2)


def test_maps_without_end_end(serving):
    class Endless(dict):
        count = 0

        def get(self, path, default=None):
            self.count += 1
            return link_map(f"m{self.count}", f"/map/{self.count}")

    async def use(make, server):
        with pytest.raises(FetchError, match="no end after 7"):
            await collected(make(max_maps=7))
        return server.paths()

    assert len(run(serving, Endless(), use)) == 7


def test_maps_on_other_hosts_are_followed_only_if_told(serving):
    async def use(make, server):
        elsewhere = f"http://localhost:{server.port}/other"
        server.answers[f"/map/link/{PAGE}"] = link_map("one", elsewhere)
        server.answers["/other"] = link_map("two")
        return [len(await collected(make(other_hosts=allowed))) for allowed in (False, True)]

    assert run(serving, {}, use) == [1, 2]


def test_maps_are_followed_where_the_archive_moved_to(serving):
    async def use(make, server):
        moved = f"http://localhost:{server.port}/moved"
        server.answers[f"/map/link/{PAGE}"] = answer(b"", "301 Moved", f"Location: {moved}")
        server.answers |= {"/moved": link_map("one", "/more"), "/more": link_map("two")}
        return len(await collected(make()))

    assert run(serving, {}, use) == 2


def test_maps_of_an_aggregator_in_json(serving):
    mementos = {"list": [{"datetime": "1994-11-06T08:49:37Z", "uri": "http://h/1"}]}
    same = {"link_format": f"/map/link/{PAGE}", "json_format": f"/map/json/{PAGE}", "cdxj_format": f"/map/cdxj/{PAGE}"}
    listed = [{"uri": "/map/b"}, {"uri": "/map/c", "from": "1994-11-06T08:49:37Z"}, {"from": "x"}, 3]
    first = {"original_uri": PAGE, "mementos": mementos, "timemap_uri": same, "timemap_index": listed}
    second = {"original_uri": PAGE, "mementos": mementos, "timemap_index": [{"uri": f"/map/json/{PAGE}"}]}
    answers = {
        f"/map/json/{PAGE}": answer(json.dumps(first)),
        "/map/b": answer(json.dumps(second)),
        "/map/c": answer('{"timestamp": "20240101000000", "url": "http://example.org/"}\n' * 2),
    }

    async def use(make, server):
        return await collected(make(), MapForm.JSON), server.paths()

    maps, paths = run(serving, answers, use)
    assert paths == [f"/map/json/{PAGE}", "/map/b", "/map/c"]
    assert [len(found.timemap.mementos) for found in maps] == [1, 1, 2]


def test_maps_in_cdxj(serving):
    meta = {"timemap_uri": {"link_format": f"/map/link/{PAGE}"}, "timemap_index": [{"uri": "/map/more"}]}
    first = f'!context ["x"]\n!meta {json.dumps(meta)}\n19941106084937 {{"uri": "http://h/1", "rel": "memento"}}\n'
    answers = {f"/map/cdxj/{PAGE}": answer(first), "/map/more": answer("19941106084939 {}\n")}

    async def use(make, server):
        return await collected(make(), MapForm.CDXJ), server.paths()

    assert run(serving, answers, use)[1] == [f"/map/cdxj/{PAGE}", "/map/more"]


def test_what_is_no_map_is_asked_for_again_and_then_an_error(serving):
    async def use(make, server):
        with pytest.raises(FetchError, match=f"{PAGE}: this is not a TimeMap, 6 times"):
            await collected(make())

    run(serving, {f"/map/link/{PAGE}": answer("Welcome!")}, use)


def test_an_unknown_page_has_no_maps_and_no_memento(serving):
    async def use(make, server):
        return await collected(make()), await make().nearest(PAGE, 0.0)

    assert run(serving, {}, use) == ([], None)


def test_a_missing_page_of_a_map_is_an_error(serving):
    async def use(make, server):
        with pytest.raises(FetchError, match="answered 404 instead of a TimeMap"):
            await collected(make())

    run(serving, {f"/map/link/{PAGE}": link_map("one", "/map/2")}, use)


GATES = {
    "redirect": {f"/{PAGE}": answer(b"", "302 Found", "Vary: accept-datetime", f"Location: /19941106084937/{PAGE}")},
    "chain": {
        f"/{PAGE}": answer(b"", "302 Found", "Location: /gate2"),
        "/gate2": answer(b"", "307 On", f"Location: /19941106084937/{PAGE}"),
    },
    "frame": {
        f"/{PAGE}": answer(
            b"<frame>",
            "200 OK",
            f'Link: <{PAGE}>; rel="original", <http://h/19941106084937/{PAGE}>; rel="memento"; datetime="{WHEN}"',
        )
    },
    "content": {
        f"/{PAGE}": answer(b"<p>", "200 OK", f"Memento-Datetime: {WHEN}", f"Content-Location: /19941106084937/{PAGE}")
    },
}


@pytest.mark.parametrize("style", GATES)
def test_a_timegate_names_the_nearest_memento(serving, style):
    async def use(make, server):
        return await make().nearest(PAGE, 784_111_777.0), server.requests

    found, requests = run(serving, GATES[style], use)
    assert found.uri.endswith(f"/19941106084937/{PAGE}")
    assert found.time == (784_111_777.0 if style == "content" else None)
    assert all(f"Accept-Datetime: {WHEN}".encode() in request for request in requests)


def test_a_timegate_that_names_nothing_is_an_error(serving):
    async def use(make, server):
        for path, words in (("plain", "names no memento"), ("loop", "more than 5 times")):
            with pytest.raises(FetchError, match=words):
                await make().nearest(path, 0.0)

    run(serving, {"/plain": answer(b"hi"), "/loop": answer(b"", "302 Found", "Location: /loop")}, use)


def test_a_template_needs_a_place_for_the_url(serving):
    async def use(make, server):
        client = ArchiveClient(None, VirtualClock())
        with pytest.raises(ConfigError, match="timegate"):
            MementoClient(client, timegate="http://x/", body_of=decoded, read_map=read_map)
        with pytest.raises(ConfigError, match="no such address"):
            await MementoClient(client, body_of=decoded, read_map=read_map).nearest(PAGE, 0.0)

    run(serving, {}, use)


def raw(serving, reply):
    """The capture, and the path that was asked for."""

    async def use(make, server):
        return await make().raw(server.url(f"/web/19941106084937/{PAGE}")), server.paths()

    capture, paths = run(serving, {f"/web/19941106084937id_/{PAGE}": reply}, use)
    assert paths == [f"/web/19941106084937id_/{PAGE}"]
    return capture


def test_a_memento_of_the_wayback_machine_gets_all_its_own_headers_back(serving):
    capture = raw(
        serving,
        answer(
            b"<p>hi",
            "404 NOT FOUND",
            "Server: nginx",
            "Date: Sun, 15 Nov 2026 10:00:00 GMT",
            "Content-Type: text/html",
            "x-archive-orig-server: Apache",
            "x-archive-orig-date: Sun, 06 Nov 1994 08:49:00 GMT",
            "x-archive-orig-content-encoding: gzip",
            "x-archive-orig-transfer-encoding: chunked",
            "x-archive-orig-content-length: 99",
            "x-archive-src: some.warc.gz",
            "x-app-server: wwwb-app1",
            f"memento-datetime: {WHEN}",
            'link: <http://example.org/as/captured>; rel="original", <x>; rel="timegate"',
        ),
    )
    assert capture.raw_head == (
        b"HTTP/1.1 404 NOT FOUND\r\nContent-Type: text/html\r\nserver: Apache\r\n"
        b"date: Sun, 06 Nov 1994 08:49:00 GMT\r\n\r\n"
    )
    assert (capture.raw_body, capture.status, capture.time) == (b"<p>hi", 404, from_http_date(WHEN))
    assert capture.url == "http://example.org/as/captured"


def test_an_encoding_of_the_original_stays_on_its_body(serving):
    body = gzip.compress(b"<p>hi", mtime=0)
    headers = ("Content-Encoding: gzip", "X-Archive-Orig-Server: A", f"Memento-Datetime: {WHEN}")
    capture = raw(serving, answer(body, "200 OK", *headers))
    assert capture.raw_body == body
    assert capture.header("content-encoding") == "gzip"
    assert capture.header("content-length") == str(len(body))
    assert capture.url == PAGE


def test_an_encoding_the_archive_puts_on_for_the_way_is_taken_off(serving):
    headers = ("Content-Encoding: gzip", "x-archive-src: a", f"Memento-Datetime: {WHEN}", "x-archive-orig-etag: 1")
    capture = raw(serving, answer(gzip.compress(b"<p>hi"), "200 OK", *headers))
    assert (capture.raw_body, capture.header("content-encoding")) == (b"<p>hi", "")


def test_chunks_of_the_connection_are_taken_off(serving):
    reply = f"HTTP/1.1 200 OK\r\nMemento-Datetime: {WHEN}\r\nTransfer-Encoding: chunked\r\n\r\n2\r\nhi\r\n0\r\n\r\n"
    capture = raw(serving, reply.encode())
    assert (capture.raw_head, capture.raw_body) == (b"HTTP/1.1 200 OK\r\n\r\n", b"hi")


def test_an_answer_that_is_no_memento_is_an_error(serving):
    with pytest.raises(FetchError, match="not with a memento"):
        raw(serving, answer(b"<p>not here", "404 No"))
    with pytest.raises(FetchError, match="is no date"):
        raw(serving, answer(b"", "200 OK", "Memento-Datetime: soon"))


@pytest.mark.parametrize(
    ("memento", "expected"),
    [
        (
            "http://a/20240101000000mp_/http://x/20230101000000/y",
            "http://a/20240101000000id_/http://x/20230101000000/y",
        ),
        ("http://a/b/20240101000000id_/x.org/", "http://a/b/20240101000000id_/x.org/"),
    ],
)
def test_the_raw_form_of_a_memento(memento, expected):
    assert raw_uri(memento) == expected


@pytest.mark.parametrize("memento", ["http://a/", "ftp://a/20240101000000/http://x/", "http://archive.today/abcde"])
def test_a_memento_without_a_known_raw_form_is_refused(memento):
    with pytest.raises(InputError, match="raw form"):
        raw_uri(memento)


def test_links_with_commas_and_brackets_do_not_confuse():
    text = '<http://a/,;b>; rel="memento"; datetime="Sun, 06 Nov 1994 08:49:37 GMT", << <c>;rel=self,' + "<" * 100_000
    assert [(link.uri, link.parameters.get("rel")) for link in links(text)] == [
        ("http://a/,;b", "memento"),
        ("c", "self"),
    ]
