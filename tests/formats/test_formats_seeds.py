"""Seed files: what is read, what is skipped and counted, and where an error stands."""

import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st

from recrawl.errors import InputError
from recrawl.formats.seeds import SeedDialect, parse_seed, read_seeds, seed_lines


def test_comments_scopes_metadata_and_repetitions():
    text = "\ufeff# ours\n\n http://a.org/ \tdepth=2\tnote=x\r\n+http://(org,b,)/\nhttps://www.a.org/\nhttp://b.org/x#top\n"
    found = read_seeds(text, "seeds.txt")
    assert [seed.url for seed in found.addresses] == ["http://a.org/", "http://b.org/x"]
    assert (found.repeated, found.scopes) == (1, 1)


@pytest.mark.parametrize("line", ["mailto:me@a.org", "a.org/x", "http://"])
def test_a_line_that_is_no_url_is_an_error_with_its_place(line):
    with pytest.raises(InputError, match=r"^seeds\.txt, line 2: ") as caught:
        read_seeds(f"http://a.org/\n{line}\n", "seeds.txt")
    assert caught.value.remedy


@given(st.lists(st.from_regex(r"[a-z]{1,8}\.org/[a-z]{0,5}", fullmatch=True)))
def test_every_page_is_kept_once_in_order(places):
    found = read_seeds("\n".join(f"http://{place}" for place in places), "seeds.txt")
    expected = {parse_seed(f"http://{place}", "").key: None for place in places}
    assert [seed.key for seed in found.addresses] == list(expected)
    assert len(found.addresses) + found.repeated == len(places)


URLS = ["http://a.org/x", "https://www.b.org:8443/", "http://127.0.0.1/"]


@pytest.mark.parametrize("dialect", [SeedDialect.PLAIN, SeedDialect.HERITRIX, SeedDialect.NUTCH])
def test_what_is_written_for_crawlers_is_read_again(dialect):
    text = "".join(seed_lines(URLS, dialect, {"http://a.org/x": {"depth": "2", "note": "a\tb\nc"}}))
    assert [seed.url for seed in read_seeds(text, "seeds.txt").addresses] == URLS


def test_each_crawler_gets_its_own_words():
    assert "".join(seed_lines(URLS, SeedDialect.HERITRIX)).splitlines()[3:] == [
        "+http://(org,a,)/",
        "+http://(org,b,www,:8443)/",
        "+http://(127.0.0.1,)/",
    ]
    nutch = list(seed_lines(URLS, SeedDialect.NUTCH, {"http://a.org/x": {"depth": "2", "note": "a\tb\nc"}}))
    assert nutch[0] == "http://a.org/x\tdepth=2\tnote=a b c\n"
    browsertrix = yaml.safe_load("".join(seed_lines([*URLS, 'http://a.org/"y'], SeedDialect.BROWSERTRIX)))
    assert [seed["url"] for seed in browsertrix["seeds"]] == [*URLS, "http://a.org/%22y"]


def test_a_list_of_pages_alone_widens_no_scope():
    assert list(seed_lines(URLS, SeedDialect.HERITRIX, pages_only=True)) == [f"{url}\n" for url in URLS]
    browsertrix = yaml.safe_load("".join(seed_lines(URLS, SeedDialect.BROWSERTRIX, pages_only=True)))
    assert browsertrix["seeds"] == [{"url": url, "scopeType": "page"} for url in URLS]


def test_what_is_no_seed_is_not_written():
    with pytest.raises(InputError):
        list(seed_lines(["mailto:a@a.org"], SeedDialect.PLAIN))
