"""The scope of a workspace agrees with that of a capture, and adding what it covers does not widen it."""

from hypothesis import assume, given, settings
from hypothesis import strategies as st

from recrawl.crawl.home_scope import HomeScope, trap
from recrawl.crawl.scope import ScopeKind, ScopeRules, SiteScope
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
    home = HomeScope(kind, known, max_depth=20)
    assert home.covers(found) == SiteScope(ScopeRules(kind=kind), tuple(known)).covers(found)


@settings(max_examples=100)
@given(KINDS, st.lists(URLS, min_size=1, max_size=3), st.lists(URLS, max_size=6), URLS)
def test_what_it_takes_in_does_not_widen_it(kind, seeds, found, url):
    known = [address(seed) for seed in seeds]
    home = HomeScope(kind, known, max_depth=20)
    taken = [page for page in map(address, found) if home.covers(page)]
    assert HomeScope(kind, [*known, *taken], max_depth=20).covers(address(url)) == home.covers(address(url))


def test_pages_alone_take_in_nothing():
    assert not HomeScope(ScopeKind.PAGE, [address("http://a.org/")], max_depth=20).covers(address("http://a.org/"))


def test_traps_are_named():
    assert trap("http://a.org/" + "a/" * 21, max_depth=20) == "it is too deep"
    assert trap("http://a.org/" + "a" * 2_000, max_depth=20) == "it is too long"
    assert trap("http://a.org/x/y/x/y/x/", max_depth=20) == "a folder comes up again and again"
    assert trap("http://a.org/?PHPSESSID=1f", max_depth=20) == "it carries a session"
    assert not trap("http://a.org/en/docs/en/2026/11?side=1&inside=2", max_depth=20)
