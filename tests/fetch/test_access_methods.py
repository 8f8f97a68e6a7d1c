"""Methods by name, ours and others'; content negotiation; files."""

from __future__ import annotations

import asyncio
import os
import sys
from importlib.metadata import EntryPoint

import pytest

from recrawl.errors import ConfigError
from recrawl.fetch import FetchRequest
from recrawl.fetch.access.access_method import AccessMethod, AccessRequest, AccessSource, Exchange
from recrawl.fetch.access.access_methods import (
    GROUP,
    MAX_HOPS,
    PLACE,
    AccessMethods,
    FileFetcher,
    LocalFile,
    Negotiation,
)
from recrawl.model import Capture, Validators
from recrawl.time import VirtualClock

PLUG_IN = """
from recrawl.fetch.access.access_method import AccessSource
from recrawl.fetch.request import FetchRequest

class Twice:
    name, summary, options = "twice", "Ask twice.", {}

    def source(self, url, options):
        return AccessSource(url, options)

    def exchange(self, question):
        yield FetchRequest(question.url)
        return (yield FetchRequest(question.url))

def broken():
    raise RuntimeError("no such luck")

nothing = dict
"""


@pytest.fixture
def brought(tmp_path, monkeypatch):
    """Entry points of a module that is installed for the test."""
    (tmp_path / "access_plug_in.py").write_text(PLUG_IN)
    monkeypatch.syspath_prepend(str(tmp_path))
    yield lambda **named: [EntryPoint(name, f"access_plug_in:{value}", GROUP) for name, value in named.items()]
    sys.modules.pop("access_plug_in", None)


@pytest.mark.parametrize("name", ["rdf", "sparql", "file"])
def test_ours_are_there(name):
    method = AccessMethods([]).get(name)
    assert isinstance(method, AccessMethod)
    assert method.name == name
    assert method.summary


def test_a_method_of_another_package_is_found_by_its_name(brought):
    methods = AccessMethods(brought(twice="Twice"))
    assert methods.names() == ["http", "rdf", "sparql", "file", "twice"]
    exchange = Exchange(
        methods.get("twice"), AccessRequest("http://x/", {}, Validators(), lambda capture: capture.raw_body)
    )
    assert exchange.feed(Capture("http://x/", 1.0, 200)) is None
    assert exchange.feed(Capture("http://x/", 2.0, 200)).time == 2.0
    assert methods.get("twice") is methods.get("twice")
    with pytest.raises(TypeError):
        exchange.feed(Capture("http://x/", 3.0, 200))


@pytest.mark.parametrize(("name", "value"), [("a", "broken"), ("a", "missing"), ("a", "nothing")])
def test_a_broken_plug_in_is_named_and_disturbs_nobody(brought, name, value):
    methods = AccessMethods(brought(**{name: value}))
    with pytest.raises(ConfigError, match=f"access_plug_in:{value}") as error:
        methods.get(name)
    assert error.value.remedy
    assert methods.get("rdf")


def test_a_plug_in_cannot_take_the_place_of_another(brought):
    for entries, name in ((brought(rdf="Twice"), "rdf"), (brought(twice="Twice") * 2, "twice")):
        with pytest.raises(ConfigError, match="More than one"):
            AccessMethods(entries).get(name)


def test_an_unknown_name_is_answered_with_those_there_are():
    with pytest.raises(ConfigError, match="There are: http, rdf, sparql, file"):
        AccessMethods([]).get("gopher")


# -- content negotiation -----------------------------------------------------------------------------


def negotiation(url="http://data.example/thing", **options):
    source = Negotiation().source(url, options)
    question = AccessRequest(source.url, source.options, Validators('"t"'), lambda capture: capture.raw_body)
    return Exchange(Negotiation(), question)


def moved(url, to, status=303):
    return Capture(url, 1.0, status, f"HTTP/1.1 {status} X\r\nLocation: {to}\r\n\r\n".encode())


def test_data_is_asked_for_and_redirects_on_the_host_are_followed():
    exchange = negotiation()
    assert exchange.request.accept.startswith("text/turtle")
    assert exchange.request.etag == '"t"'
    assert exchange.feed(moved(exchange.request.url, "/data/thing")) is None
    assert exchange.request.url == "http://data.example/data/thing"
    assert exchange.request.accept.startswith("text/turtle")
    described = Capture(exchange.request.url, 2.0, 200, b"HTTP/1.1 200 OK\r\n\r\n", b"x")
    assert exchange.feed(described) is described


@pytest.mark.parametrize(
    "answer",
    [
        moved("http://data.example/thing", "https://www.data.example/thing/"),
        moved("http://data.example/thing", "mailto:someone@data.example"),
        Capture("http://data.example/thing", 1.0, 303, b"HTTP/1.1 303 X\r\n\r\n"),
        moved("http://data.example/thing", "/data/thing", 304),
        Capture("http://data.example/thing", 1.0, 404),
        Capture("http://data.example/thing", 1.0, 0, error="refused"),
    ],
    ids=["the page itself", "no web", "nowhere", "not modified", "gone", "nothing"],
)
def test_all_else_is_the_answer(answer):
    assert negotiation().feed(answer) is answer


def test_redirects_to_other_hosts_are_followed_unless_told_otherwise():
    elsewhere = moved("http://data.example/thing", "http://other.example/thing")
    exchange = negotiation()
    assert exchange.feed(elsewhere) is None
    assert exchange.request.url == "http://other.example/thing"
    assert negotiation(redirects="host").feed(elsewhere) is elsewhere
    with pytest.raises(ConfigError, match="redirects"):
        Negotiation().source("http://data.example/", {"redirects": "all"})


def test_redirects_in_circles_are_a_failure():
    exchange = negotiation()
    assert exchange.feed(moved(exchange.request.url, "http://other.example/a")) is None
    assert exchange.feed(moved(exchange.request.url, "http://third.example/b")) is None
    version = exchange.feed(moved(exchange.request.url, "http://other.example/a"))
    assert "circles" in version.error


def test_redirects_without_end_are_a_failure():
    exchange = negotiation()
    for hop in range(MAX_HOPS):
        assert exchange.feed(moved(exchange.request.url, f"/{hop}")) is None
    version = exchange.feed(moved(exchange.request.url, "/on"))
    assert (version.url, version.status) == ("http://data.example/thing", 0)
    assert "redirects" in version.error


def test_other_media_types_can_be_asked_for():
    assert negotiation(accept="text/csv").request.accept == "text/csv"
    for wrong in ({"accept": "a\r\nX: y"}, {"accept": "é"}, {"except": "x"}):
        with pytest.raises(ConfigError):
            Negotiation().source("http://data.example/", wrong)
    with pytest.raises(ConfigError):
        Negotiation().source("ftp://data.example/", {})


# -- files ---------------------------------------------------------------------------------------------


def read(folder, path, etag="", **limits):
    fetcher = FileFetcher(VirtualClock(5.0), [folder], **limits)
    return asyncio.run(fetcher.fetch(FetchRequest(f"file://{path}", etag)))


def test_a_file_is_read_with_its_type_and_its_time(tmp_path):
    path = tmp_path / "own list.csv"
    path.write_bytes(b"a,b\n")
    os.utime(path, (784_111_777.0, 784_111_777.0))
    source = LocalFile().source(f"file://{tmp_path}/own%20list.csv", {})
    assert source == AccessSource(f"{PLACE}{tmp_path}/own%20list.csv", {"path": str(path)})
    exchange = Exchange(
        LocalFile(), AccessRequest(source.url, source.options, Validators(), lambda capture: capture.raw_body)
    )
    found = asyncio.run(FileFetcher(VirtualClock(5.0), [tmp_path]).fetch(exchange.request))
    version = exchange.feed(found)
    assert (version.url, version.status, version.raw_body, version.made, version.time) == (
        source.url,
        200,
        b"a,b\n",
        True,
        5.0,
    )
    assert version.header("content-type") == "text/csv"
    assert version.header("last-modified") == "Sun, 06 Nov 1994 08:49:37 GMT"
    again = read(tmp_path, f"{tmp_path}/own%20list.csv", version.header("etag"))
    assert (again.status, again.raw_body) == (304, b"")
    path.write_bytes(b"a,c\n")
    assert read(tmp_path, f"{tmp_path}/own%20list.csv", version.header("etag")).raw_body == b"a,c\n"


def test_what_is_out_of_bounds_is_refused(tmp_path):
    folder, outside = tmp_path / "data", tmp_path / "secret.txt"
    folder.mkdir()
    outside.write_text("secret")
    (folder / "link.txt").symlink_to(outside)
    (folder / "up").symlink_to(tmp_path)
    (tmp_path / "data2").mkdir()
    (tmp_path / "data2" / "near.txt").write_text("secret")
    for path in (
        "data/link.txt",
        "data/up/secret.txt",
        "data/../secret.txt",
        "data/%2e%2e/secret.txt",
        "data2/near.txt",
    ):
        found = read(folder, f"{tmp_path}/{path}")
        assert (found.status, found.raw_body) == (0, b""), path
        assert "fetch.allow_files" in found.error
    nobody = asyncio.run(FileFetcher(VirtualClock(5.0), []).fetch(FetchRequest(f"file://{outside}")))
    assert nobody.status == 0


def test_a_link_within_the_folder_is_followed(tmp_path):
    (tmp_path / "a.txt").write_text("a")
    (tmp_path / "b.txt").symlink_to(tmp_path / "a.txt")
    assert read(tmp_path, tmp_path / "b.txt").raw_body == b"a"


def test_what_is_no_file_says_so_and_one_that_is_gone_is_gone(tmp_path):
    os.mkfifo(tmp_path / "pipe")
    for name in (".", "pipe"):
        found = read(tmp_path, tmp_path / name)
        assert (found.status, bool(found.error)) == (0, True)
    assert read(tmp_path, tmp_path / "none.txt").status == 404


def test_a_long_file_is_cut(tmp_path):
    (tmp_path / "a.bin").write_bytes(b"x" * 11)
    found = read(tmp_path, tmp_path / "a.bin", max_size=10)
    assert (found.raw_body, found.truncated) == (b"x" * 10, "length")
    assert found.header("content-type") == "application/octet-stream"


@pytest.mark.parametrize("url", ["http://x.example/a", "file://server/a", "file:a", "/srv/a", "file:", "file:///a%00b"])
def test_only_a_file_url_names_a_file(url):
    with pytest.raises(ConfigError):
        LocalFile().source(url, {})
