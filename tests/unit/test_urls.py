"""URLs against known vectors, and properties that any URL must have."""

from __future__ import annotations

import subprocess
import sys

import ada_url
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from recrawl.urls import BUCKETS, address, bucket_of, host_of, section, surt

VECTORS = {
    # conventions X3
    "https://WWW.Example.com/A/b?z=1&a=2": "com,example)/a/b?a=2&z=1",
    "http://example.com": "com,example)/",
    "http://www2.example.com:80/": "com,example)/",
    "https://example.com:443/x/": "com,example)/x",
    "https://example.com:8443/x": "com,example:8443)/x",
    "http://127.0.0.1:8000/": "1,0,0,127:8000)/",
    "http://[2001:DB8::1]:81/p": "[2001:db8::1]:81)/p",
    "http://[2001:db8::1]/p": "[2001:db8::1])/p",
    "http://user:secret@example.com/": "com,example)/",
    "http://example.com/a;jsessionid=0123456789ABCDEF0123456789abcdef?x=1": "com,example)/a?x=1",
    "http://example.com/?PHPSESSID=1&b=2": "com,example)/?b=2&phpsessid=1",
    "http://example.com/?": "com,example)/",
    "http://example.com/%7Euser": "com,example)/~user",
    "http://bücher.example/": "example,xn--bcher-kva)/",
    "http://example.com/a#b": "com,example)/a",
}


@pytest.mark.parametrize("url", VECTORS)
def test_known_keys(url):
    assert surt(url) == VECTORS[url]


@pytest.mark.parametrize(
    "url", ["", "mailto:a@example.com", "javascript:0", "ftp://example.com/", "http://", "/relative", "data:,x"]
)
def test_what_is_not_http_has_no_address(url):
    assert address(url) is None
    assert surt(url) is None
    assert host_of(url) is None


@given(st.text(max_size=60) | st.text(alphabet="htps:/.?#&=;@[]%aZ09-_()", max_size=40).map("http://".__add__))
def test_any_text_has_an_address_that_is_its_own_or_none(text):
    found = address(text)
    if found is not None:
        assert address(found.url) == found
        parsed = ada_url.URL(found.url)
        assert (parsed.href, parsed.host) == (found.url, found.host)
        assert found.key == found.key.lower()


def test_a_section_is_a_directory_of_its_host():
    assert section("http://example.com/a/b/c.html", depth=2) == "http://example.com/a/b/"


_HREF = st.lists(
    st.sampled_from(
        [
            "/",
            "//",
            "\\",
            "?",
            "#",
            ".",
            "..",
            "a",
            "b c",
            "%41",
            ":",
            "http:",
            "https://",
            "x@h",
            "é",
            "\t",
            "\x01",
            "=",
            "",
        ]
    ),
    max_size=6,
).map("".join)
_BASE = st.builds(
    "{}{}{}".format,
    st.sampled_from(["http://h.org", "https://u:p@h.org:8443", "HTTP://WWW.H.org", "http:////h.org", "mailto:h"]),
    st.sampled_from(["", "/", "/a/b", "/a/b/", "/a/%2e%2e/c", "/a\\b"]),
    st.sampled_from(["", "?q=/x/y", "#f/g", "?q#f/"]),
)


@given(_HREF, _BASE)
def test_a_link_means_what_the_whole_base_makes_of_it(href, base):
    try:
        joined = ada_url.join_url(base, href.strip())
    except ValueError:
        joined = ""
    assert address(href, base=base) == (address(joined) if joined else None)


def test_a_menu_is_taken_apart_once_for_all_pages_of_a_site():
    pages = [address("/menu", base=f"http://menu.example/{number}/") for number in range(3)]
    assert all(page is pages[0] for page in pages)


GOLDEN_BUCKETS = {
    "example.com": 79,
    "www.example.com:8080": 79,
    "bbc.co.uk": 541,
    "foo.github.io": 432,
    "bar.github.io": 136,
    "127.0.0.1": 703,
    "127.0.0.1:8080": 665,
    "[::1]:80": 146,
    "localhost:8080": 180,
    "xn--mnchen-3ya.de": 861,
    "co.uk": 443,
    "a.x.unknowntld": 955,
}


@pytest.mark.parametrize(("host", "bucket"), GOLDEN_BUCKETS.items())
def test_the_bucket_of_a_host_never_changes(host: str, bucket: int) -> None:
    """Stores hold these numbers: another hash would divide the hosts of one domain."""
    assert bucket_of(host) == bucket


def test_buckets_are_used_evenly() -> None:
    counts = np.bincount([bucket_of(f"site{number}.example") for number in range(40 * BUCKETS)], minlength=BUCKETS)
    assert counts.min() > 10
    assert counts.max() < 90


@given(st.text(max_size=40))
def test_every_text_has_a_registered_domain_and_a_bucket(text: str) -> None:
    assert 0 <= bucket_of(text) < BUCKETS


def test_the_suffix_list_is_read_only_when_it_is_needed() -> None:
    code = "import sys, recrawl.urls; assert not any('publicsuffix' in name for name in sys.modules)"
    subprocess.run([sys.executable, "-c", code], check=True)
