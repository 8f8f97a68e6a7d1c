"""A capture fetches what its pages embed, on any host: polite to each, revisited, stated, and with a limit."""

import asyncio
import json
from collections import defaultdict

import numpy as np
import pytest

from recrawl.crawl.site_capture import capture_course
from recrawl.crawl.site_capture.capture_course import lane_of
from recrawl.crawl.site_capture.capture_opening import known_pages, knows_pages
from recrawl.crawl.site_capture.capture_order import CaptureOrder
from recrawl.crawl.site_capture.capture_terms import Requisites
from recrawl.crawl.site_capture.site_capture_driver import MOST_SILENT
from recrawl.crawl.visit.scope import MOST_NESTED, ScopeRules, SiteScope
from recrawl.model import Outcome
from recrawl.time import VirtualClock
from recrawl.urls import address

DELAY = 10.0
IMAGE, SHEET = {"Content-Type": "image/png"}, {"Content-Type": "text/css"}
HOSTS = ("www.site.test", "cdn.test", "ads.test")


@pytest.fixture
def port(site):
    return site.home.rsplit(":", 1)[1].rstrip("/")


@pytest.fixture
def web(site, port):
    """A page with links, a style sheet with a font, images here and elsewhere, a frame elsewhere and one here."""
    cdn, ads = (f"http://{host}:{port}" for host in HOSTS[1:])
    site.answers = {
        "/": (
            200,
            {},
            f"<html><link rel=stylesheet href={cdn}/s.css><body><a href=/a>a</a><img src=/logo.png><iframe src=/inside>"
            "</iframe>" + f"<img src=small.png srcset='large.png 2x'><iframe src={ads}/ad></iframe>",
        ),
        "/a": (200, {}, f"<img src=/logo.png><img src={cdn}/photo.png><a href=/>home</a>"),
        "/inside": (200, {}, "<a href=/deep>deep</a>"),
        "/deep": (200, {}, "<p>deep</p>"),
        "/ad": (200, {}, "<a href=/more-ads>x</a><img src=/ad.png>"),
        "/s.css": (200, SHEET, "@font-face{src:url(/f.woff2)}"),
        **{f"/{name}.png": (200, IMAGE, name) for name in ("logo", "small", "large", "photo", "ad")},
        "/f.woff2": (200, {"Content-Type": "font/woff2"}, "font"),
    }
    return f"http://{HOSTS[0]}:{port}/"


def captured(scene, home, strategy="bfs-lifo", **order):
    """The report, its JSON, and the steps as (host and path, revisit, time)."""

    async def run():
        port = home.rsplit(":", 1)[1].rstrip("/")
        async with scene(clock=VirtualClock(1.79e9), hosts=[f"{host}:{port}" for host in HOSTS]) as stage:
            report = await stage.capture(CaptureOrder(site=home, strategy=strategy, **order))
            log = stage.store.site_log(report.capture.id)
            name = [url.split("//")[1] for url in stage.urls(log.found.page)]
            steps = [(name[step.number], step.revisit, step.time) for step in log.steps]
            return report, json.loads(report.capture.statement), steps

    return asyncio.run(run())


def names(steps, port, *, revisit=False):
    return {name.replace(f":{port}", "") for name, again, _ in steps if again == revisit}


EMBEDDED = {
    "cdn.test/s.css",
    "cdn.test/f.woff2",
    "cdn.test/photo.png",
    "ads.test/ad",
    "ads.test/ad.png",
    *(f"www.site.test/{name}.png" for name in ("logo", "small", "large")),
}
PAGES = {f"www.site.test/{path}" for path in ("", "a", "inside", "deep")}


def test_what_pages_embed_is_visited_and_revisited_on_every_host(scene, web, port):
    report, stated, steps = captured(scene, web)
    assert names(steps, port) == PAGES | EMBEDDED == names(steps, port, revisit=True)
    assert (report.found, report.requisites, report.hosts) == (12, 8, 3)
    assert len(report.quality.coherent) == 12
    assert (stated["pageRequisites"], stated["hosts"], stated["terms"]["requisites"]) == (8, 3, "any")
    middle = max(time for _, again, time in steps if not again)
    assert all(time <= middle for _, again, time in steps if not again)
    assert all(time >= middle for _, again, time in steps if again)


def test_each_host_has_its_own_pauses_and_the_capture_takes_as_long_as_the_longest(scene, web):
    _, _, steps = captured(scene, web)
    times = defaultdict(list)
    for name, _, time in steps:
        times[name.split("/")[0]].append(time)
    assert [len(times[host]) for host in sorted(times)] == [4, 6, 14]
    assert all((np.diff(of_host) >= DELAY).all() for of_host in times.values())
    assert max(map(max, times.values())) - min(map(min, times.values())) < 16 * DELAY  # 24 requests in all


def test_small_hosts_are_visited_near_the_middle(scene, web, site):
    """What pages embed elsewhere is fetched at the end of the visits, and again at the beginning of the revisits."""
    site.answers["/a"] = (200, {}, "".join(f"<a href=/p{number}>x</a>" for number in range(20)))
    site.answers |= {f"/p{number}": (200, {}, str(number)) for number in range(20)}
    _, _, steps = captured(scene, web)
    spans = defaultdict(list)
    for name, _, time in steps:
        spans[name].append(time)
    away = [times[1] - times[0] for name, times in spans.items() if not name.startswith("www")]
    assert max(away) < 8 * DELAY
    assert max(times[1] - times[0] for times in spans.values()) > 40 * DELAY


@pytest.mark.parametrize(
    ("order", "expected"),
    [
        ({"requisites": Requisites.NONE}, set()),
        ({"requisites": Requisites.SCOPE}, {one for one in EMBEDDED if one.startswith("www")}),
        (
            {"scope": ScopeRules(exclude=(r"ads\.", "large"))},
            EMBEDDED - {"ads.test/ad", "ads.test/ad.png", "www.site.test/large.png"},
        ),
        ({"max_pages": 2}, EMBEDDED),
    ],
)
def test_scope_patterns_and_an_option_restrict_them(scene, web, port, order, expected):
    _, _, steps = captured(scene, web, **order)
    found = names(steps, port)
    assert found - PAGES == expected
    assert len(found & PAGES) == order.get("max_pages", 4)


@pytest.mark.parametrize("robots", [(503, {}, ""), (200, {"Content-Type": "text/plain"}, "User-agent: *\nDisallow: /")])
def test_a_host_that_is_down_or_refuses_does_not_stop_the_capture(scene, web, site, port, robots):
    answers = dict(site.answers)

    def rules(_count):
        host = site.asked[-1][1]["Host"]
        return robots if host.startswith("cdn") else (404, {}, "")

    site.answers = {**answers, "/robots.txt": rules}
    report, stated, steps = captured(scene, web)
    assert not any(path in {"/s.css", "/photo.png"} for path in site.paths())
    missing = {
        url.split("//")[1].replace(f":{port}", "") for kind in ("failed", "refused") for url in stated[kind]["pages"]
    }
    assert missing == {"cdn.test/s.css", "cdn.test/photo.png"}
    assert report.quality.pages == 9
    duration = max(time for *_, time in steps) - min(time for *_, time in steps)
    assert duration < 20 * DELAY  # nobody waits for the rules of the host that is down


def test_a_host_that_stops_to_respond_is_left_alone(scene, site, port, monkeypatch):
    """Each request may take a timeout: hundreds of pictures would delay the capture for hours."""
    monkeypatch.setattr(site.server, "handle_error", lambda *_: None)

    def silent(_count):
        raise ConnectionAbortedError

    cdn = f"http://cdn.test:{port}"
    site.answers["/"] = (200, {}, "".join(f"<img src={cdn}/{n}.png>" for n in range(30)) + "<a href=/a>a</a>")
    site.answers |= {"/a": (200, {}, "a"), **{f"/{n}.png": silent for n in range(30)}}
    report, stated, _ = captured(scene, f"http://{HOSTS[0]}:{port}/")
    assert stated["failed"]["count"] == 30
    assert len(report.quality.coherent) == 2
    assert len({path for path in site.paths() if path.endswith(".png")}) == MOST_SILENT


def test_requisites_redirect_and_import_each_other_only_so_far(scene, site, port):
    cdn = f"http://cdn.test:{port}"
    site.answers["/"] = (200, {}, f"<img src={cdn}/0><link rel=stylesheet href={cdn}/0.css>")
    site.answers |= {f"/{n}": (302, {"Location": f"{cdn}/{n + 1}"}, "") for n in range(20)}
    site.answers |= {f"/{n}.css": (200, SHEET, f"@import '{n + 1}.css';") for n in range(20)}
    report, *_ = captured(scene, f"http://{HOSTS[0]}:{port}/", "bfs")
    assert report.found == 1 + 2 * MOST_NESTED
    assert report.requisites == 2 * MOST_NESTED


def test_a_page_with_very_many_requisites_is_captured_with_some(scene, site, port, monkeypatch):
    monkeypatch.setattr(capture_course, "MOST_REQUISITES", 30)
    site.answers["/"] = (200, {}, "".join(f"<img srcset='{n}.png, {n}-2.png 2x'>" for n in range(60)))
    report, *_ = captured(scene, f"http://{HOSTS[0]}:{port}/", "bfs")
    assert report.requisites == 30
    assert report.quality.pages == 1


def test_a_capture_of_many_hosts_is_resumed_wherever_it_was_stopped(scene, web, site, port):
    whole = [(name, again) for name, again, _ in captured(scene, web, "sharc-selective-online")[2]]
    site.asked.clear()
    scene.forget()

    async def piece(clock):
        async with scene(clock=clock, hosts=[f"{host}:{port}" for host in HOSTS]) as stage:
            order = CaptureOrder(site=web, strategy="sharc-selective-online")
            unfinished = [known for known in stage.store.site_captures() if not known.is_finished]
            capture = unfinished[0] if unfinished else await stage.driver.begin(order)
            made = []

            def observe(progress):
                made.append(progress)
                if len(made) == 4:
                    stage.driver.stop()

            report = await stage.driver.run(capture, observe)
            log = stage.store.site_log(capture.id)
            name = [url.split("//")[1] for url in stage.urls(log.found.page)]
            return report, [(name[step.number], step.revisit) for step in log.steps], stage.store.visits()

    clock, report, pieces = VirtualClock(1.79e9), None, 0
    while report is None:
        report, steps, visits = asyncio.run(piece(clock))
        pieces += 1
    assert pieces > 4
    assert sorted(steps) == sorted(whole)
    assert len(site.paths()) == len(whole)
    assert (visits.outcome <= Outcome.NOT_MODIFIED).all()
    assert (report.requisites, report.hosts, len(report.quality.coherent)) == (8, 3, 12)


async def again(scene, home, **order):
    """Capture twice: online, and then as ordered. The second report, its log, and how the capture saw its pages."""
    port = home.rsplit(":", 1)[1].rstrip("/")
    async with scene(clock=VirtualClock(1.79e9), hosts=[f"{host}:{port}" for host in HOSTS]) as stage:
        await stage.capture(CaptureOrder(site=home, strategy="bfs-lifo"))
        stage.clock.advance_to(1.79e9 + 1000.0)
        report = await stage.capture(CaptureOrder(site=home, **order))
        log = stage.store.site_log(report.capture.id)
        knows = knows_pages(stage.store, known_pages(stage.store, SiteScope(ScopeRules(), (address(home),))))
        return report, log, [lane_of(url) for url in stage.urls(log.found.page)], knows


@pytest.mark.parametrize("requisites", [Requisites.ANY, Requisites.SCOPE, Requisites.NONE])
def test_a_second_capture_plans_with_all_that_the_first_one_found(scene, web, requisites):
    report, log, lanes, knows = asyncio.run(again(scene, web, strategy="sharc-selective", requisites=requisites))
    assert knows
    assert not log.after.any()  # nothing is found that was not planned
    assert report.found == {Requisites.ANY: 12, Requisites.SCOPE: 7, Requisites.NONE: 4}[requisites]
    assert len(set(lanes)) == (3 if requisites is Requisites.ANY else 1)
    assert len(report.quality.coherent) == report.found
    last = max(step.time for step in log.steps if not step.revisit)
    away = [step.time for step in log.steps if not step.revisit and lanes[step.number] != lanes[0]]
    assert all(last - time < 5 * DELAY for time in away)  # four pages at most on each of the other hosts


def test_a_given_observation_interval_holds_the_capture_in_its_middle(scene, web):
    """SHARC Theorem 4.4; and if it is too late for that, the hottest page comes next to its middle (reading 003.7)."""
    interval = 1.79e9 + 2000.0, 1.79e9 + 3000.0
    order = {"strategy": "sharc-offline", "requisites": Requisites.NONE, "observe": interval}
    report, log, *_ = asyncio.run(again(scene, web, **order))
    times = [step.time for step in log.steps]
    assert np.mean(times) == pytest.approx(np.mean(interval), abs=1e-6)
    assert np.diff(times).tolist() == [DELAY] * 3
    assert (report.quality.start, report.quality.end) == interval
    scene.forget()
    late = {**order, "observe": (1.79e9, 1.79e9 + 100.0)}
    _, log, *_ = asyncio.run(again(scene, web, **late))
    assert log.steps[0].time < 1.79e9 + 1000.0 + 3 * DELAY
