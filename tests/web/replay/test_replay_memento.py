"""Memento answers, header by header (RFC 7089, conventions M1 to M4)."""

import gzip
import json
import re

import pytest

from recrawl.formats.columnar.capture_batches import ReadReport
from recrawl.formats.timemap import read_timemap
from recrawl.time import HOUR
from recrawl.web.replay import mementos

HOME = "http://site.example/"
FIRST, SECOND, THIRD, LAST = "20240101000000", "20240101010000", "20240101020000", "20240101050000"
DATES = {
    FIRST: "Mon, 01 Jan 2024 00:00:00 GMT",
    SECOND: "Mon, 01 Jan 2024 01:00:00 GMT",
    THIRD: "Mon, 01 Jan 2024 02:00:00 GMT",
    LAST: "Mon, 01 Jan 2024 05:00:00 GMT",
}


def links(answer):
    """Relations of each target of the Link header, and its datetime."""
    found = re.findall(r'<([^>]*)>((?:; [a-z]+="[^"]*")*)', answer.header("link"))
    parsed = {uri: dict(re.findall(r'([a-z]+)="([^"]*)"', rest)) for uri, rest in found}
    assert len(parsed) == len(found)
    return parsed


@pytest.mark.parametrize("way", ["archive/", "archive/timegate/", "timegate/"])
def test_a_timegate_leads_to_the_nearest_memento(server, way):
    answer = server.ask(f"{way}{HOME}", Accept_Datetime="Mon, 01 Jan 2024 01:20:00 GMT")
    assert answer.status == 302
    assert answer.header("location") == f"{server.base}archive/{SECOND}/{HOME}"
    assert answer.header("vary") == "accept-datetime"
    assert answer.header("memento-datetime") is None
    assert answer.body == b""
    related = links(answer)
    assert related[HOME] == {"rel": "original"}
    assert related[f"{server.base}archive/{HOME}"] == {"rel": "timegate"}
    assert related[f"{server.base}archive/timemap/link/{HOME}"]["rel"] == "timemap"
    assert related[f"{server.base}archive/{FIRST}/{HOME}"] == {"rel": "first prev memento", "datetime": DATES[FIRST]}
    assert related[f"{server.base}archive/{SECOND}/{HOME}"] == {"rel": "memento", "datetime": DATES[SECOND]}
    assert related[f"{server.base}archive/{THIRD}/{HOME}"] == {"rel": "next memento", "datetime": DATES[THIRD]}
    assert related[f"{server.base}archive/{LAST}/{HOME}"] == {"rel": "last memento", "datetime": DATES[LAST]}


@pytest.mark.parametrize(
    ("moment", "timestamp"),
    [
        ("Sun, 01 Jan 1995 00:00:00 GMT", FIRST),
        ("Mon, 01 Jan 2024 01:30:00 GMT", SECOND),
        ("Mon, 01 Jan 2024 01:31:00 GMT", THIRD),
        ("Thu, 01 Jan 2099 00:00:00 GMT", LAST),
        (None, LAST),
    ],
)
def test_which_memento_is_nearest(server, moment, timestamp):
    asked = {"Accept_Datetime": moment} if moment else {}
    assert server.ask(f"archive/{HOME}", **asked).header("location") == f"{server.base}archive/{timestamp}/{HOME}"


@pytest.mark.parametrize(
    "moment", ["yesterday", "2024-01-01", "Mon, 01 Jan 2024 01:20:00", "Mon, 41 Jan 2024 01:20:00 GMT"]
)
def test_a_date_that_is_none_is_refused_with_a_sentence(server, moment):
    answer = server.ask(f"archive/{HOME}", Accept_Datetime=moment)
    assert answer.status == 400
    assert answer.header("content-type") == "text/plain; charset=utf-8"
    assert "Accept-Datetime" in answer.text


@pytest.mark.parametrize("written", [HOME, "http:/site.example/", "site.example/", "HTTP://WWW.Site.Example:80/"])
def test_an_address_may_be_written_in_many_ways(server, written):
    answer = server.ask(f"archive/{written}")
    assert answer.header("location") == f"{server.base}archive/{LAST}/{HOME}"


def test_an_address_may_come_encoded(server):
    answer = server.ask("archive/2024id_/http%3A%2F%2Fsite.example%2Fq%3Fa%3D1%26b%3D2")
    assert answer.header("location") == f"{server.base}archive/20240101000050id_/{HOME}q?a=1&b=2"


def test_the_query_of_an_address_belongs_to_it(server):
    answer = server.ask(f"archive/2024id_/{HOME}q?b=2&a=1")
    assert answer.header("location") == f"{server.base}archive/20240101000050id_/{HOME}q?a=1&b=2"
    assert server.ask(f"archive/20240101000050id_/{HOME}q?a=1&b=2").body == b"found"


def test_a_memento_names_itself_and_its_neighbours(server):
    answer = server.ask(f"archive/{FIRST}id_/{HOME}")
    assert answer.status == 200
    assert answer.header("memento-datetime") == DATES[FIRST]
    assert answer.header("location") is None
    related = links(answer)
    assert related[f"{server.base}archive/{FIRST}/{HOME}"] == {"rel": "first memento", "datetime": DATES[FIRST]}
    assert related[f"{server.base}archive/{SECOND}/{HOME}"]["rel"] == "next memento"
    assert related[HOME]["rel"] == "original"
    assert related[f"{server.base}archive/{HOME}"]["rel"] == "timegate"


def test_raw_bytes_are_those_of_the_server_without_chunks(server):
    answer = server.ask(f"archive/{FIRST}id_/{HOME}")
    assert answer.header("content-encoding") == "gzip"
    assert answer.header("content-type") == "text/html; charset=utf-8"
    assert answer.header("transfer-encoding") is None
    page = gzip.decompress(answer.body).decode()
    assert page.startswith("<html>")
    assert page.endswith("first</body></html>")
    assert "recrawl-banner" not in page


def test_headers_of_the_original_are_kept_apart(server):
    answer = server.ask(f"archive/{FIRST}id_/{HOME}")
    assert answer.header("x-archive-orig-etag") == '"1"'
    assert answer.header("x-archive-orig-set-cookie") == "a=b"
    assert answer.header("x-archive-orig-transfer-encoding") == "chunked"
    assert answer.header("x-archive-orig-x-evil").startswith("<script>")
    assert answer.header("set-cookie") is None
    assert answer.header("etag") is None


def test_a_304_shows_the_version_it_speaks_of_at_its_own_time(server):
    answer = server.ask(f"archive/{SECOND}id_/{HOME}")
    assert answer.status == 200
    assert answer.header("memento-datetime") == DATES[SECOND]
    assert b"first" in gzip.decompress(answer.body)
    assert answer.header("x-archive-orig-etag") == '"1"'


def test_a_revisit_has_its_own_headers_over_the_body_it_repeats(server):
    answer = server.ask(f"archive/{THIRD}id_/{HOME}")
    assert answer.header("memento-datetime") == DATES[THIRD]
    assert answer.header("x-archive-orig-etag") == '"2"'
    assert b"first" in gzip.decompress(answer.body)


def test_a_redirect_stays_in_the_archive(server):
    answer = server.ask(f"archive/20240101000020id_/{HOME}old")
    assert answer.status == 301
    assert answer.header("location") == f"{server.base}archive/20240101000020id_/{HOME}new?x=1"
    assert answer.header("x-archive-orig-location") == "/new?x=1"
    assert answer.header("memento-datetime") == "Mon, 01 Jan 2024 00:00:20 GMT"


def test_what_was_cut_says_so_and_what_was_gone_is_gone(server):
    cut = server.ask(f"archive/20240101000030id_/{HOME}cut")
    assert (cut.body, cut.header("x-recrawl-truncated")) == (b"only the beg", "length")
    gone = server.ask(f"archive/20240101000040id_/{HOME}gone")
    assert (gone.status, gone.header("memento-datetime")) == (404, "Mon, 01 Jan 2024 00:00:40 GMT")


def test_another_time_leads_to_the_nearest_memento_in_the_same_form(server):
    answer = server.ask(f"archive/20240101013500id_/{HOME}")
    assert answer.status == 302
    assert answer.header("location") == f"{server.base}archive/{THIRD}id_/{HOME}"
    assert answer.header("x-recrawl-distance") == "1500"


@pytest.mark.parametrize("modifier", ["", "mp_"])
def test_people_get_the_nearest_memento_at_once_and_its_banner_tells_how_far_it_is(server, modifier):
    answer = server.ask(f"archive/20240101040000{modifier}/{HOME}")
    assert answer.status == 200
    assert answer.header("content-location") == f"{server.base}archive/{LAST}{modifier}/{HOME}"
    assert answer.header("memento-datetime") == DATES[LAST]
    assert answer.header("x-recrawl-distance") == "3600"
    told = re.search(r"<summary[^>]*>([^<]*)</summary>", answer.text)[1]
    assert re.fullmatch(
        r"Archived 2024-01-01T05:00:00Z · 1 h after the requested time · about 0.\d+ changes between", told
    )
    proved = server.ask(f"archive/20240101012000{modifier}/{HOME}").text
    assert "20 min before the requested time · provably as it was</summary>" in proved
    exact = server.ask(f"archive/{LAST}{modifier}/{HOME}")
    assert exact.header("content-location") is None
    assert "Archived 2024-01-01T05:00:00Z</summary>" in exact.text


def test_nobody_who_goes_from_memento_to_memento_walks_in_circles(make_server, build_visits):
    """Three captures in one second are one memento: its neighbours are in other seconds."""
    crowded = make_server(filled=False)
    given = b"HTTP/1.1 200 OK\r\nContent-Type: text/plain\r\n\r\n", b"x"
    build_visits(crowded.place, HOME, *given, after=(0, 0.1, 0.2, 60, 60.5, 120, 120.5))
    way, seen = crowded.ask(f"archive/{HOME}", Accept_Datetime=DATES[FIRST]).header("location"), []
    while way:
        assert way not in seen
        seen.append(way)
        relations = {
            name: uri
            for uri, more in links(crowded.ask(way.removeprefix(crowded.base))).items()
            for name in more["rel"].split()
        }
        way = relations.get("next")
    assert [uri.removeprefix(f"{crowded.base}archive/")[:14] for uri in seen] == [
        "20240101000000",
        "20240101000100",
        "20240101000200",
    ]
    assert relations["last"] == seen[-1]
    latest = crowded.ask(f"archive/{HOME}")
    assert latest.header("location") == seen[-1]
    assert links(latest)[seen[-1]]["rel"] == "last memento"
    # What is told is told of the capture that is shown there.
    shown = crowded.ask(f"archive/20240101000200id_/{HOME}")
    assert latest.header("x-recrawl-valid-from") == shown.header("x-recrawl-valid-from")


def test_a_head_is_the_answer_without_its_body(server):
    path = f"archive/{FIRST}id_/{HOME}"
    asked, given = server.ask(path, "HEAD"), server.ask(path)
    assert asked.body == b""
    fixed = [pair for pair in given.headers if pair[0] != "date"]
    assert [pair for pair in asked.headers if pair[0] != "date"] == fixed


@pytest.mark.parametrize(
    ("path", "status"),
    [
        ("archive/http://never.example/", 404),
        ("archive/20240101000000id_/http://never.example/", 404),
        ("archive/timemap/link/http://never.example/", 404),
        (f"archive/timemap/xml/{HOME}", 404),
        (f"archive/timemap/link/9/{HOME}", 404),
        (f"archive/20240101000000zz_/{HOME}", 404),
        (f"archive/20241301000000/{HOME}", 400),
        ("archive/ftp://site.example/", 400),
        ("archive/20240101000000/mailto:me@site.example", 400),
        ("archive/http://[broken/", 400),
    ],
)
def test_what_is_not_there_or_makes_no_sense_is_told_in_a_sentence(server, path, status):
    answer = server.ask(path)
    assert answer.status == status
    assert answer.header("content-type") == "text/plain; charset=utf-8"
    assert answer.header("x-content-type-options") == "nosniff"
    assert answer.text.rstrip().endswith(".")


@pytest.mark.parametrize(
    ("form", "media_type"),
    [("link", "application/link-format"), ("json", "application/json"), ("cdxj", "application/cdxj+ors")],
)
def test_a_timemap_in_each_form_is_read_back(server, form, media_type):
    answer = server.ask(f"archive/timemap/{form}/{HOME}")
    assert answer.header("content-type").partition(";")[0] == media_type
    assert answer.header("x-memento-count") == "4"
    found = read_timemap(answer.body, "answer", ReadReport(strict=True))
    assert [one.uri for one in found.mementos] == [f"{server.base}archive/{time}/{HOME}" for time in DATES]
    assert found.original == HOME
    if form == "link":
        assert (
            f'rel="self"; type="application/link-format"; from="{DATES[FIRST]}"; until="{DATES[LAST]}"' in answer.text
        )
        assert f'<{server.base}archive/{HOME}>; rel="timegate"' in answer.text
    if form == "json":
        told = json.loads(answer.text)
        assert told["mementos"]["first"]["uri"].endswith(f"{FIRST}/{HOME}")
        assert told["timegate_uri"] == f"{server.base}archive/{HOME}"
        assert set(told["timemap_uri"]) == {"link_format", "json_format", "cdxj_format"}
    if form == "cdxj":
        assert [line.split()[0] for line in answer.text.splitlines()[:4]] == ["!context", "!id", "!keys", "!meta"]


@pytest.mark.parametrize("form", ["link", "json", "cdxj"])
@pytest.mark.parametrize("size", [1, 2, 3, 4])
def test_a_long_timemap_comes_in_pages_that_name_each_other(server, form, size, monkeypatch):
    whole = mementos.time_map
    monkeypatch.setattr(
        "recrawl.web.replay.replay_app.time_map",
        lambda store, uris, query: whole(store, uris, query._replace(size=size)),
    )
    path, seen, times = f"archive/timemap/{form}/{HOME}", set(), []
    while path:
        seen.add(path)
        found = read_timemap(server.ask(path).body, path, ReadReport(strict=True))
        times += [one.time for one in found.mementos]
        ways = [page.uri.removeprefix(server.base) for page in found.pages]
        path = next((way for way in ways if way not in seen), None)
    assert [round(time) for time in times] == [round(1_704_067_200 + hour * HOUR) for hour in (0, 1, 2, 5)]
    assert len(seen) == -(-4 // size)
