"""What belongs to a site (conventions S1)."""

import pytest

from recrawl.crawl.site_capture.capture_order import CaptureOrder
from recrawl.crawl.visit.scope import PagePosition, ScopeKind, ScopeRules, SiteScope
from recrawl.errors import ConfigError, StoreError
from recrawl.urls import address

SEED = "http://example.org/news/today.html"
URLS = {
    "itself": "https://www.example.org/news/today.html",
    "below": "http://example.org/news/2026/a?b=c",
    "beside": "http://example.org/news/",
    "above": "http://example.org/",
    "alike": "http://example.org/newspaper/",
    "other port": "http://example.org:8080/news/a",
    "subdomain": "http://en.example.org/news/a",
    "deep subdomain": "http://m.en.example.org/",
    "like a subdomain": "http://notexample.org/news/a",
    "elsewhere": "http://example.com/news/a",
}


@pytest.mark.parametrize(
    ("kind", "covered"),
    [
        (ScopeKind.PAGE, {"itself"}),
        (ScopeKind.PAGE_SPA, {"itself"}),
        (ScopeKind.PREFIX, {"itself", "below", "beside"}),
        (ScopeKind.HOST, {"itself", "below", "beside", "above", "alike"}),
        (ScopeKind.DOMAIN, {"itself", "below", "beside", "above", "alike", "subdomain", "deep subdomain"}),
        (ScopeKind.ANY, set(URLS)),
    ],
)
def test_each_kind_reaches_as_far_as_it_should(kind, covered):
    scope = SiteScope(ScopeRules(kind=kind), (address(SEED),))
    assert {name for name, url in URLS.items() if scope.covers(address(url))} == covered


def test_patterns_take_in_and_leave_out():
    rules = ScopeRules(kind=ScopeKind.CUSTOM, include=("/news/",), exclude=(r"\?", "today"))
    scope = SiteScope(rules, (address(SEED),))
    covered = {name for name, url in URLS.items() if scope.covers(address(url))}
    assert covered == {"itself", "beside", "other port", "subdomain", "like a subdomain", "elsewhere"}


def test_extra_hops_lead_out_and_back_and_never_to_what_is_excluded():
    scope = SiteScope(ScopeRules(extra_hops=1, hops=3, exclude=("secret",)), (address(SEED),))
    inside, outside = address(URLS["below"]), address(URLS["elsewhere"])
    assert scope.place(outside, PagePosition(0)) == PagePosition(1, outside=1)
    assert scope.place(outside, PagePosition(1, outside=1)) is None
    assert scope.place(inside, PagePosition(1, outside=1)) == PagePosition(2, outside=0)
    assert scope.place(address("http://example.com/secret"), PagePosition(0)) is None
    assert scope.place(inside, PagePosition(3)) is None


@pytest.mark.parametrize("rules", [{"include": ("(",)}, {"exclude": ("[",)}, {"kind": ScopeKind.CUSTOM}])
def test_rules_that_make_no_sense_are_refused(rules):
    with pytest.raises(ConfigError):
        ScopeRules(**rules)


@pytest.mark.parametrize(
    ("wrong", "words"),
    [
        ({"site": "ftp://example.org/"}, "not an http"),
        ({"strategy": "sharc-ofline"}, "sharc-offline"),
        ({"max_pages": 0}, "is none"),
        ({"expected": 0}, "no site has"),
        ({"threshold": 2.0}, "no probability"),
        ({"delay": -1.0}, "not possible"),
    ],
)
def test_orders_that_make_no_sense_are_refused(wrong, words):
    with pytest.raises(ConfigError, match=words):
        CaptureOrder(**{"site": SEED, "strategy": "bfs", **wrong})


def test_an_order_is_read_back_as_it_was_given():
    order = CaptureOrder(
        site=SEED,
        strategy="sharc-offline",
        revisit=True,
        delay=2.5,
        scope=ScopeRules(kind=ScopeKind.HOST, include=("a", "b"), hops=3),
    )
    assert CaptureOrder.from_json(order.as_json()) == order
    with pytest.raises(StoreError, match="colour"):
        CaptureOrder.from_json(order.as_json().replace("{", '{"colour": 1, ', 1))


def test_revisits_are_as_asked_for_else_as_the_strategy_does():
    def revisits(strategy, revisit):
        return CaptureOrder(site=SEED, strategy=strategy, revisit=revisit).revisits

    assert [revisits("bfs", asked) for asked in (None, True, False)] == [False, True, False]
    assert [revisits("bfs-lifo", asked) for asked in (None, True, False)] == [True, True, False]
