"""URL features: the papers' examples, and columns that agree with the single calls."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from recrawl.errors import InputError
from recrawl.predict.static_features import directory_level, is_internal, url_depths, url_features

segment = st.text("abcxyz019-", min_size=1, max_size=8)


@pytest.mark.parametrize(
    ("url", "level"),
    [("www.yahoo.com", 1), ("www.yahoo.com/mail/", 2), ("http://a.org/x/y/z.html", 3), ("http://a.org//x//", 2)],
)
def test_directory_level(url, level):
    assert directory_level(url) == level


def test_depths():
    assert url_depths("http://domain.com/en/news/article123456/") == (3, 2)
    assert url_depths("http://sub.domain.com/") == (0, 3)
    assert url_depths("http://sub.domain.com/a/b.html?c=/d/e#/f") == (2, 3)


@pytest.mark.parametrize(
    ("target", "internal"),
    [
        ("https://www.gender-nrw.de/contact/", True),
        ("https://gender-nrw.de/contact/", True),
        ("http://gender-nrw.de/newsletter", False),
        ("https://www.mkffi.nrw/", False),
        ("https://sub.gender-nrw.de/", False),
    ],
)
def test_internal_links(target, internal):
    assert is_internal("https://www.gender-nrw.de/haeusliche-gewalt/", target) is internal


@given(st.lists(segment, max_size=5), st.booleans())
def test_columns_agree_with_single_calls(segments, slash):
    url = "http://example.org/" + "/".join(segments) + ("/" if slash and segments else "")
    found = url_features([url, "example.com"])
    assert len(found) == 2
    assert found.directory_level.tolist() == [directory_level(url), 1]
    assert (found.path_depth[0], found.domain_depth[0]) == url_depths(url) == (len(segments), 2)
    assert found.directory_level[0] == 1 + len(segments) - (0 if slash or not segments else 1)
    assert found.is_directory.tolist() == [slash or not segments, True]
    assert found.digits[0] == sum(character.isdigit() for character in url)


def test_no_urls_and_no_url():
    assert len(url_features([])) == 0
    with pytest.raises(InputError, match="not a URL"):
        directory_level("http://[::1")
