"""The scope of a workspace agrees with that of a capture, and adding what it covers does not widen it."""

import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from recrawl.crawl.visit.scope import HostCap, ScopeKind, ScopeRules, SiteScope, WorkspaceScope, trap
from recrawl.urls import address

HOSTS = st.sampled_from(["a.org", "www.a.org", "b.a.org", "xa.org", "a.org:8080", "c.org"])
PATHS = st.lists(st.sampled_from(["news", "old", "News", "x.html"]), max_size=3).map("/".join)
URLS = st.builds(
    lambda host, path, slash: f"http://{host}/{path}{slash}", HOSTS, PATHS, st.sampled_from(["", "/", "?q=1/2"])
)
KINDS = st.sampled_from([ScopeKind.PREFIX, ScopeKind.HOST, ScopeKind.DOMAIN])


@settings(max_examples=150)
@given(KINDS, st.lists(URLS, min_size=1, max_size=4), URLS)
def test_it_covers_what_a_capture_from_the_same_pages_covers(kind, seeds, url):
    known, found = [address(seed.lower()) for seed in seeds], address(url.lower())
    # A capture always covers where it begins, and knows no traps.
    assume(not any(page.key == found.key for page in known) and not trap(found.url, max_depth=20))
    home = WorkspaceScope(ScopeRules(kind=kind), known)
    assert home.covers(found) == SiteScope(ScopeRules(kind=kind), tuple(known)).covers(found)


@settings(max_examples=100)
@given(KINDS, st.lists(URLS, min_size=1, max_size=3), st.lists(URLS, max_size=6), URLS)
def test_what_it_takes_in_does_not_widen_it(kind, seeds, found, url):
    known = [address(seed) for seed in seeds]
    home = WorkspaceScope(ScopeRules(kind=kind), known)
    taken = [page for page in map(address, found) if home.covers(page)]
    assert WorkspaceScope(ScopeRules(kind=kind), [*known, *taken]).covers(address(url)) == home.covers(address(url))


def test_pages_alone_take_in_nothing():
    assert not WorkspaceScope(ScopeRules(kind=ScopeKind.PAGE), [address("http://a.org/")]).covers(
        address("http://a.org/")
    )


def test_patterns_include_and_exclude_whatever_the_kind_says():
    begins, outside, left_out = "http://a.org/news/", "http://b.org/x/press/1", "http://a.org/news/press/draft-1"
    rules = ScopeRules(kind=ScopeKind.PREFIX, include=("/press/",), exclude=("draft",))
    home = WorkspaceScope(rules, [address(begins)])
    assert [home.covers(address(url)) for url in (begins + "1", outside, left_out, "http://b.org/x/")] == [
        True,
        True,
        False,
        False,
    ]
    assert home.touches("b.org")
    later = WorkspaceScope(rules, map(address, (begins, outside)))
    assert not later.covers(address("http://b.org/x/press.html")), "what a pattern took in has nothing around it"


@pytest.mark.parametrize(("kind", "found"), [(ScopeKind.ANY, [True, False]), (ScopeKind.CUSTOM, [False, False])])
def test_all_or_only_what_is_included(kind, found):
    home = WorkspaceScope(ScopeRules(kind=kind, include=("/only/",), exclude=("/never/",)), [address("http://a.org/")])
    assert [home.covers(address(f"http://c.org/{name}")) for name in ("some", "never/only/")] == found
    assert home.covers(address("http://c.org/only/1"))
    assert home.touches("c.org")


def test_nothing_is_wider_than_the_whole_web():
    home = WorkspaceScope(ScopeRules(kind=ScopeKind.ANY), [])
    assert not home.widen(address("http://a.org/new/folder/"))


def test_the_whole_web_has_traps_too():
    assert not WorkspaceScope(ScopeRules(kind=ScopeKind.ANY), []).covers(address("http://a.org/" + "a/" * 21))


TRAPS = {
    "http://a.org/" + "a/" * 21: "it is too deep",
    "http://a.org/" + "a" * 2_000: "it is too long",
    "http://a.org/x/y/x/y/x/": "a folder comes up again and again",
    "http://a.org/?PHPSESSID=1f": "it carries a session",
    "http://a.org/a;jsessionid=1f?x=1": "it carries a session",
    "http://a.org/a?x=1&sid=1f": "it carries a session",
    "http://a.org/(S(lit3py55t21z5v55vlm25s55))/page.aspx": "it carries a session",
    "http://a.org/?a=1&a=1&a=1": "an argument comes up again and again",
    "http://a.org/calendar/2028/01/": "it is a page of a calendar, of a far year",
    "http://a.org/2031/05/12/": "it is a page of a calendar, of a far year",
    "http://a.org/events/?date=2040-01-31": "it is a page of a calendar, of a far year",
    "http://a.org/events/?date=204001": "it is a page of a calendar, of a far year",
    "http://a.org/x?month=5&year=9999": "it is a page of a calendar, of a far year",
    "http://a.org/calendar?month=1970-01": "it is a page of a calendar, of a far year",
    "http://a.org/events/day/1899-12-31": "it is a page of a calendar, of a far year",
}
HARMLESS = [
    "http://a.org/en/docs/en/2026/11?side=1&inside=2",
    "http://a.org/calendar/2026/12/24/",
    "http://a.org/calendar/2027/01/",
    "http://a.org/history/1848/03/18/revolution.html",
    "http://a.org/?product=9999&size=2",
    "http://a.org/?color=red&color=blue&color=green",
    "http://a.org/?asid=1&resident=2",
    "http://a.org/article-204001.html",
]


@pytest.mark.parametrize(("url", "why"), TRAPS.items())
def test_traps_are_named(url, why):
    assert trap(url, max_depth=20, year=2026) == why


@pytest.mark.parametrize("url", HARMLESS)
def test_what_only_looks_a_little_like_a_trap_is_none(url):
    assert not trap(url, max_depth=20, year=2026)


def test_without_a_year_no_date_is_a_trap():
    assert not trap("http://a.org/2031/05/12/", max_depth=20)


REASONS = {
    "",
    "it is too deep",
    "a folder comes up again and again",
    "it carries a session",
    "an argument comes up again and again",
    "it is a page of a calendar, of a far year",
}


@given(st.text(max_size=60))
def test_any_text_can_be_asked_about(text):
    why = trap("http://a.org/" + text, max_depth=20, year=2026)
    assert why in REASONS


def test_a_walk_through_a_calendar_ends():
    """Every page links to the next month, and the server knows no end."""
    home = WorkspaceScope(ScopeRules(kind=ScopeKind.HOST), [address("http://a.org/")], year=2026)
    year, month, pages = 2026, 11, 0
    while home.covers(address(f"http://a.org/calendar/{year}/{month:02}/")):
        year, month, pages = year + month // 12, month % 12 + 1, pages + 1
    assert pages == 14


def test_a_host_has_room_for_so_many_pages():
    cap = HostCap(3, {"a.org": 2, "b.org": 0}.__getitem__)
    assert cap.has_room("a.org")
    cap.took("a.org")
    assert not cap.has_room("a.org")
    assert cap.has_room("b.org")
