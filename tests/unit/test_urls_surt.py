"""Our keys against those of the surt package, which web archives use; where they differ, why."""

from __future__ import annotations

import csv
import gzip
import json
import re
import zlib
from contextlib import suppress
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from recrawl.urls import address, request_key, surt, url_of_key

VECTORS = [
    line.split("\t")
    for line in Path(__file__).with_name("surt_vectors.tsv").read_text("utf-8").splitlines()
    if not line.startswith("#")
]

# The pages a browser and an archive's key mean by these URLs are not the same; ours is the browser's.
DIFFERENCES = {
    "a leading control character or space is no part of a URL": r"^[\x00-\x20]",
    "a backslash is a slash to every browser": r"\\",
    "a host of dots is no name": r"^http://\.+/",
    "hexadecimal, octal and full-width IP addresses are addresses": r"(?i)0x|%30%78|\uff10",
    "an IPv6 address keeps its brackets: without them a port could not be told from the address": r"//\[",
    "port 0 is a port": r":0+/",
    "there is nothing above the root: '..' stays there": r"\.\.",
    "http: without slashes, or with one, still has a host and may have a user": r"^http:/?[^/]*@",
    "ß is a letter of its own in host names (IDNA 2008)": "ß",
    "a session id in the path is no page of its own": r"(?i);jsessionid=",
}


@pytest.mark.parametrize(("url", "key"), VECTORS)
def test_keys_are_those_of_archives(url, key):
    assert surt(url) == key


def differs_for_no_reason(urls, judge) -> list[tuple[str, str, str | None]]:
    found = []
    for url in urls:
        ours = surt(url)
        if ours is not None and ours != judge.surt(url):
            found.append((url, judge.surt(url), ours))
    return [one for one in found if not any(re.search(form, one[0]) for form in DIFFERENCES.values())]


@pytest.fixture(scope="module")
def judge():
    return pytest.importorskip("surt", reason="the surt package is a judge at test time only")


@pytest.mark.filterwarnings("ignore::DeprecationWarning", "ignore::SyntaxWarning")
def test_the_kept_vectors_are_what_surt_says(judge):
    assert len(VECTORS) >= 60
    for url, key in VECTORS:
        assert judge.surt(url) == key


@pytest.mark.big
@pytest.mark.filterwarnings("ignore::DeprecationWarning", "ignore::SyntaxWarning")
def test_on_tables_of_odd_urls_every_difference_has_a_reason(judge, data_folder):
    folder = data_folder / "formats/url/crawler-commons__crawler-commons"
    cases = json.loads((folder / "wpt-urltestdata.json").read_text("utf-8"))
    urls = {case["input"] for case in cases if isinstance(case, dict) and not case.get("failure")}
    for name in ("weirdToNormalizedUrls.csv", "url-resolve.csv"):
        with (folder / name).open(encoding="utf-8", newline="") as file:
            urls.update(field for row in csv.reader(file) for field in row)
    assert sum(surt(url) is not None for url in urls) > 300
    assert differs_for_no_reason(sorted(urls), judge) == []


@pytest.mark.big
@pytest.mark.filterwarnings("ignore::DeprecationWarning", "ignore::SyntaxWarning")
def test_on_real_urls_the_keys_are_the_same(judge, data_folder):
    urls: set[str] = set()
    for folder in ("cdx", "cdxj", "cdx_api_responses", "timemap", "sitemap", "warc"):
        for path in sorted((data_folder / "formats" / folder).rglob("*")):
            if path.is_file():
                data = path.read_bytes()
                with suppress(OSError, EOFError, zlib.error):
                    data = gzip.decompress(data) if path.suffix == ".gz" else data
                found = re.findall(rb"https?://[!#-;=?-\[\]^-{|}~]+", data)
                urls.update(url.decode() for url in found)
    assert len(urls) > 2_000
    assert differs_for_no_reason(sorted(urls), judge) == []


@pytest.mark.parametrize("reason", DIFFERENCES)
def test_every_difference_still_happens(reason, judge):
    example = {
        "a leading control character or space is no part of a URL": "\x01http://example.com/",
        "a backslash is a slash to every browser": "http://example.com\\a",
        "a host of dots is no name": "http://./",
        "hexadecimal, octal and full-width IP addresses are addresses": "http://0xc0.0250.01/",
        "an IPv6 address keeps its brackets: without them a port could not be told from the address": "http://[::1]/",
        "port 0 is a port": "http://example.com:0/",
        "there is nothing above the root: '..' stays there": "http://example.com/../a",
        "http: without slashes, or with one, still has a host and may have a user": "http:u@example.com",
        "ß is a letter of its own in host names (IDNA 2008)": "http://straße.example/",
        "a session id in the path is no page of its own": "http://example.com/;jsessionid=" + "0" * 32,
    }[reason]
    assert re.search(DIFFERENCES[reason], example)
    assert surt(example) != judge.surt(example)


@given(st.text(alphabet="abcAB019-._~!$&'()*+,;=:@/?%2E5CÀ ", max_size=40).map("http://www.example.com/".__add__))
@pytest.mark.filterwarnings("ignore::DeprecationWarning", "ignore::SyntaxWarning")
def test_any_path_and_query_have_the_key_that_surt_gives(judge, url):
    if differs := differs_for_no_reason([url], judge):
        assert differs == []


@given(st.text(alphabet="abz09-./?&=%_", max_size=30).map("http://example.com/".__add__))
def test_a_url_made_of_a_key_has_that_key(url):
    key = surt(url)
    again = url_of_key(key)
    assert again is not None
    assert surt(again) == surt(url_of_key(surt(again)))


@pytest.mark.parametrize(
    ("key", "url"),
    [
        ("com,example)/", "http://example.com/"),
        ("com,example)", "http://example.com/"),
        ("com,example,www:8080)/a?b", "http://www.example.com:8080/a?b"),
        ("1,0,0,127)/", "http://127.0.0.1/"),
        ("[::1]:81)/x", "http://[::1]:81/x"),
        ("example.com/a", "http://example.com/a"),
        ("", None),
        ("-", None),
        ("dns:example.com", None),
        ("urn:uuid:1", None),
    ],
)
def test_urls_of_keys(key, url):
    assert url_of_key(key) == url


@pytest.mark.parametrize(
    ("url", "method", "body", "key"),
    [  # as pywb files them
        ("http://httpbin.org/post", "POST", "foo=bar&test=abc", "org,httpbin)/post?__wb_method=post&foo=bar&test=abc"),
        ("http://httpbin.org/post?foo=bar", "POST", "data=^", "org,httpbin)/post?__wb_method=post&data=^&foo=bar"),
        ("http://httpbin.org/x", "PUT", "", "org,httpbin)/x?__wb_method=put"),
        ("http://httpbin.org/x?b=1", "GET", "", "org,httpbin)/x?b=1"),
        ("mailto:a@example.org", "POST", "a=1", None),
    ],
)
def test_keys_of_requests_with_a_body(url, method, body, key):
    assert request_key(url, method, body) == key


def test_an_address_and_its_key_agree():
    assert address("http://www.example.com/B?z&a").key == surt("http://example.com/b?a&z")


@pytest.mark.parametrize(
    "tail",
    [
        "?" + "sid=" * 250_000,
        "%25" * 300_000,
        "%" + "25" * 400_000,
        "?" + "cfid=a&" * 100_000,
        "(" * 500_000,
        "/" * 900_000,
    ],
)
def test_no_url_takes_long(tail):
    assert surt(f"http://example.com/{tail}") is not None
