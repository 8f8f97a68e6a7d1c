"""Captures of sites that are empty, small, broken or elsewhere; what is left out, and what is made again."""

import asyncio
import json

import numpy as np
import pytest

from recrawl.crawl.site_capture.capture_opening import NoRulesError
from recrawl.crawl.site_capture.capture_order import CaptureOrder
from recrawl.crawl.visit.scope import ScopeKind, ScopeRules
from recrawl.errors import ConfigError
from recrawl.model import Outcome
from recrawl.time import HOUR, VirtualClock


def capture(scene, home, strategy="bfs-lifo", **order):
    """Capture a site: the report, the paths of its lists of pages, and the stage as it was left."""

    async def run():
        async with scene() as stage:
            report = await stage.capture(CaptureOrder(site=home, strategy=strategy, **order))
            lists = {"gone": report.gone, "refused": report.refused, "failed": report.failed}
            quality = report.quality
            lists |= {"coherent": quality.coherent, "changed": quality.changed, "missing": quality.missing}
            paths = {name: {path_of(url) for url in stage.urls(pages)} for name, pages in lists.items()}
            return report, paths

    return asyncio.run(run())


def path_of(url):
    return "/" + url.split("/", 3)[3]


def test_an_empty_site_is_said_to_be_gone(scene, site):
    report, paths = capture(scene, site.home)
    assert (report.found, report.quality.pages, paths["gone"]) == (1, 0, {"/"})
    assert site.paths() == ["/"]
    assert json.loads(report.capture.statement)["gone"]["count"] == 1
    assert report.capture.is_finished


@pytest.mark.parametrize("strategy", ["bfs", "bfs-lifo", "sharc-revisits"])
def test_a_site_of_one_page(scene, site, linked, strategy):
    site.answers["/"] = linked("/")
    site.answers["/sitemap.xml"] = (200, {}, f"<urlset><url><loc>{site.home}</loc></url></urlset>")
    report, _ = capture(scene, site.home, strategy, from_sitemap=True)
    assert (report.found, report.quality.pages) == (1, 1)
    assert len(report.quality.coherent) == (strategy != "bfs")


def test_pages_that_all_fail_are_tried_once_more_and_then_named(scene, site, linked):
    site.answers["/"] = linked("/a", "/b")
    site.answers["/a"] = site.answers["/b"] = (500, {}, "")
    report, paths = capture(scene, site.home)
    assert site.paths() == ["/", "/a", "/b", "/a", "/b", "/"]
    assert paths["failed"] == {"/a", "/b"}
    assert paths["coherent"] == {"/"}
    site.asked.clear()
    site.answers["/"] = (503, {}, "")
    report, paths = capture(scene, site.home)
    assert site.paths() == ["/", "/"]
    assert (report.quality.pages, paths["failed"]) == (0, {"/"})


def test_what_failed_once_is_made_again_before_the_phase_ends(scene, site, linked):
    site.answers["/"] = linked("/a", "/b")
    site.answers["/a"] = lambda times: (500, {}, "") if times == 1 else linked("/c")
    site.answers["/b"] = lambda times: (500, {}, "") if times == 2 else linked()
    site.answers["/c"] = linked()
    _, paths = capture(scene, site.home, "bfs-fifo")
    # FIFO: the order of the strategy, then what failed.
    assert site.paths() == ["/", "/a", "/b", "/a", "/c", "/", "/a", "/b", "/c", "/b"]
    assert paths["coherent"] == {"/", "/a", "/b", "/c"}


def test_retry_after_is_kept(scene, site, linked):
    site.answers["/"] = lambda times: (503, {"Retry-After": "500"}, "") if times == 1 else linked()

    async def run():
        async with scene() as stage:
            report = await stage.capture(CaptureOrder(site=site.home, strategy="bfs"))
            return stage.store.site_log(report.capture.id).steps

    first, second = asyncio.run(run())
    assert second.time - first.time >= 500.0


def test_a_page_written_in_another_way_is_followed_as_the_same_page(scene, site, linked):
    site.answers["/docs"] = (301, {"Location": "/docs/"}, "")
    site.answers["/docs/"] = (200, {"ETag": '"1"'}, linked("a")[2])
    site.answers["/docs/a"] = linked()
    report, paths = capture(scene, site.home + "docs", "bfs-fifo")
    assert site.paths()[:3] == ["/docs", "/docs/", "/docs/a"]
    assert report.found == report.quality.pages == 2
    assert len(paths["coherent"]) == 2
    assert [headers.get("If-None-Match") for path, headers in site.asked if path == "/docs/"] == [None, '"1"']


def test_a_home_page_that_redirects_elsewhere_takes_the_scope_along(scene, site, linked):
    elsewhere = site.home.replace("127.0.0.1", "localhost")
    site.answers["/old/"] = (302, {"Location": f"{elsewhere}new/"}, "")
    site.answers["/new/"] = linked("/new/a", "/other", f"{site.home}old/b")
    site.answers["/new/a"] = (301, {"Location": f"{site.home}gone/"}, "")
    site.answers["/old/b"] = linked()
    report, _ = capture(scene, f"{site.home}old/", "bfs")
    assert site.paths()[:2] == ["/old/", "/new/"]
    assert sorted(site.paths()[2:]) == ["/new/a", "/old/b"]  # on two hosts, which are captured side by side
    assert report.found == 4


@pytest.mark.parametrize(
    ("rules", "expected"),
    [
        (ScopeRules(), ["/x/", "/x/a", "/x/y/b"]),
        (ScopeRules(kind=ScopeKind.PAGE), ["/x/"]),
        (ScopeRules(kind=ScopeKind.HOST), ["/x/", "/x/a", "/", "/x/y/b"]),
        (ScopeRules(exclude=("y/",)), ["/x/", "/x/a"]),
        (ScopeRules(kind=ScopeKind.CUSTOM, include=("/a$",)), ["/x/", "/x/a"]),
        (ScopeRules(hops=1), ["/x/", "/x/a"]),
        (ScopeRules(kind=ScopeKind.PAGE, extra_hops=1), ["/x/", "/x/a", "/"]),
        (ScopeRules(kind=ScopeKind.PAGE, extra_hops=2), ["/x/", "/x/a", "/", "/x/y/b"]),
    ],
)
def test_nothing_out_of_scope_is_asked_for(scene, site, linked, rules, expected):
    site.answers |= {"/x/": linked("a", "/", "mailto:me@example.org"), "/x/a": linked("y/b"), "/x/y/b": linked("/")}
    site.answers["/"] = linked("/x/")
    capture(scene, f"{site.home}x/", "bfs", scope=rules)
    assert site.paths() == expected


def test_traps_are_not_followed(scene, site, linked):
    site.answers["/"] = linked("/a", "/a/b/a/b/a/b/", "/x?PHPSESSID=0", "/1/2/3/4/", "/c")
    capture(scene, site.home, "bfs", scope=ScopeRules(max_depth=3))
    assert site.paths() == ["/", "/a", "/c"]


def test_no_more_pages_than_asked_for_are_taken_in(scene, site, linked):
    site.answers["/"] = linked(*(f"/{name}" for name in "abcdef"))
    report, _ = capture(scene, site.home, "bfs", max_pages=3)
    assert site.paths() == ["/", "/a", "/b"]
    assert report.found == 3


def test_a_host_that_cannot_tell_its_rules_is_left_alone(scene, site, linked):
    site.answers["/robots.txt"] = (503, {}, "")
    site.answers["/"] = linked()
    with pytest.raises(NoRulesError, match="503"):
        capture(scene, site.home)
    assert site.paths() == []


def test_rules_that_are_out_of_reach_in_the_middle_put_the_capture_off(scene, site, linked):
    site.answers["/robots.txt"] = lambda times: (200, {}, "") if times == 1 else (503, {}, "")
    site.answers["/"] = linked("/a", "/b")
    site.answers["/a"] = site.answers["/b"] = linked()

    async def run(steps, clock):
        async with scene(clock=clock) as stage:
            unfinished = [known for known in stage.store.site_captures() if not known.is_finished]
            order = CaptureOrder(site=site.home, strategy="bfs", delay=13 * HOUR)
            noted = unfinished[0] if unfinished else await stage.driver.begin(order)
            try:
                await stage.driver.run(noted)
            finally:
                assert len(stage.store.site_log(noted.id).steps) == steps

    clock = VirtualClock(1.79e9)
    with pytest.raises(NoRulesError, match=r"Resume the capture later"):
        asyncio.run(run(2, clock))
    site.answers["/robots.txt"] = (200, {}, "")
    asyncio.run(run(3, clock))
    assert site.paths() == ["/", "/a", "/b"]


def test_a_strategy_that_must_know_all_pages_says_so(scene, site, linked):
    site.answers |= {"/": linked("/a"), "/a": linked()}
    with pytest.raises(ConfigError, match="must know the pages"):
        capture(scene, site.home, "sharc-offline")
    capture(scene, site.home, "bfs")
    report, _ = capture(scene, site.home, "sharc-offline")
    assert report.found == 2


def test_a_second_capture_finds_the_same_pages_though_nothing_changed(scene, site, linked):
    for path, link in (("/", "/a"), ("/a", "/b"), ("/b", "/")):
        site.answers[path] = (200, {"ETag": '"1"', "Last-Modified": "Sun, 06 Nov 1994 08:49:37 GMT"}, linked(link)[2])
    first, _ = capture(scene, site.home, "bfs")
    second, _ = capture(scene, site.home, "bfs")
    assert first.found == second.found == 3
    assert first.capture.id != second.capture.id
    assert site.paths() == ["/", "/a", "/b"] * 2
    assert not any({"If-None-Match", "If-Modified-Since"} & headers.keys() for _, headers in site.asked)


def test_a_page_that_went_away_is_said_to_be_missing(scene, site, linked):
    site.answers |= {"/": linked("/a", "/b"), "/b": linked()}
    site.answers["/a"] = lambda times: linked() if times == 1 else (404, {}, "")
    _, paths = capture(scene, site.home)
    assert (paths["missing"], paths["coherent"], paths["gone"]) == ({"/a"}, {"/", "/b"}, set())


def test_a_change_that_somebody_else_saw_in_between_counts(scene, site, linked):
    """The verdict of a revisit is against the last version known: another visitor may have seen the change before."""
    site.answers["/"] = lambda times: linked(text="one" if times == 1 else "two")

    async def run():
        async with scene() as stage:
            order = CaptureOrder(site=site.home, strategy="bfs-fifo", delay=HOUR)

            noted = await stage.driver.begin(order)
            seen = []

            def observation(progress):
                seen.append(progress)
                if progress.visited == 1 and progress.seen_again == 0:
                    stop_for_another(stage, site)

            report = await stage.driver.run(noted, observation)
            return report.quality, stage.store.visits()

    def stop_for_another(stage, site):
        """Somebody else visits the page and records what they see."""
        from recrawl.detect import classify_change
        from recrawl.model import Capture, Visits

        page = stage.store.find(site.home)
        head = b"HTTP/1.1 200 OK\r\nContent-Type: text/html\r\n\r\n"
        later = stage.clock.now() + 60.0
        answer = Capture(site.home, later, 200, head, linked(text="two")[2].encode())
        found = classify_change(answer, stage.driver._recorder.known(page.id, conditional=True))
        visits = Visits.of([page.id], [later], outcome=found.outcome, verdict=found.verdict)
        stage.store.record(visits, validators=[found.validators])

    quality, visits = asyncio.run(run())
    assert visits.verdict.tolist() == [0, 2, 1]
    assert len(quality.changed) == 1


def test_how_much_a_page_matters_is_told_to_the_strategy(scene, site, linked):
    site.answers |= {"/": linked("/a", "/b"), "/a": linked(), "/b": linked()}

    async def run():
        async with scene() as stage:
            stage.store.discover([f"{site.home}b"], stage.clock.now(), importance=3.0)
            report = await stage.capture(CaptureOrder(site=site.home, strategy="bfs"))
            return stage.store.site_log(report.capture.id).found.weight, report.quality.weight

    weight, whole = asyncio.run(run())
    assert weight.tolist() == [1.0, 1.0, 3.0]
    assert whole == 5.0


def test_a_page_that_breaks_our_own_code_is_a_failed_visit(scene, site, linked, monkeypatch):
    site.answers |= {"/": linked("/a", "/b"), "/a": linked(), "/b": linked()}

    async def run():
        async with scene() as stage:
            go = stage.driver._visitor.go

            async def poisoned(target, not_after):
                if target.url.endswith("/a"):
                    raise ZeroDivisionError
                return await go(target, not_after)

            monkeypatch.setattr(stage.driver._visitor, "go", poisoned)
            report = await stage.capture(CaptureOrder(site=site.home, strategy="bfs"))
            return report, stage.events("visit failed internally"), stage.store.visits()

    report, broken, visits = asyncio.run(run())
    assert len(broken) == 2
    assert len(report.failed) == 1
    assert report.quality.pages == 2
    assert np.count_nonzero(visits.outcome == Outcome.UNREACHABLE) == 2
