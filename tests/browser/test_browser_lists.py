"""Lists of hosts and pages renew themselves, and whoever reads them stays where they are."""

import numpy as np
import pytest

from recrawl.app.workspace.workspace import make_workspace
from recrawl.model import Visits
from recrawl.time import DAY, VirtualClock

SHIFTED = """new Promise((done) => new PerformanceObserver((seen) => {
    done(seen.getEntries().reduce((sum, one) => sum + one.value, 0));
}).observe({ type: 'layout-shift', buffered: true }) || setTimeout(() => done(0), 500))"""
PLACES = """[...document.querySelectorAll('main h1, #rows tr')].map((one) => one.getBoundingClientRect().top)"""


@pytest.fixture
def crawled(tmp_path, clocked_dashboard):
    """A dashboard of 120 pages of three hosts; with its workspace, and a clock to be put forward."""
    place, clock = make_workspace(tmp_path / "lists", {}), VirtualClock(1_000.0)
    with place.open_store() as store:
        ids = store.discover([f"http://{'abc'[n % 3]}.example/p{n:03}" for n in range(120)], 1.0)
        store.record(Visits.of(ids, np.linspace(10.0, 900.0, len(ids))))
    with clocked_dashboard(place, clock) as address:
        yield address, place, clock


def visits_of(page, row):
    return f"document.querySelector('#page-{row} td').innerText"


def test_a_list_of_pages_follows_the_crawl_and_keeps_the_place_of_its_reader(page, crawled, until):
    address, place, clock = crawled
    page.goto(f"{address}/pages?search=example&sort=url")
    page.get_by_role("link", name="More").click()
    until(page, "document.querySelectorAll('#rows tr[id]').length === 100")
    read = page.locator("#rows tr[id]").nth(70)
    read.locator("a").evaluate("one => one.focus({ preventScroll: true })")
    read.evaluate("one => one.scrollIntoView({ block: 'center', behavior: 'instant' })")
    number = int(read.get_attribute("id").removeprefix("page-"))
    top = f"document.querySelector('#page-{number}').getBoundingClientRect().top"
    before, where = page.evaluate(top), page.url
    with place.open_store() as store:
        store.record(Visits.of(np.array([number]), np.array([950.0])))
        store.discover(["http://a.example/a-new-one"], 960.0)
        clock.advance_to(clock.now() + DAY)
    until(page, f"{visits_of(page, number)} === '2' && document.querySelectorAll('#rows tr[id]').length >= 100")
    page.get_by_text("a-new-one").wait_for(state="attached")
    assert page.evaluate("document.activeElement.closest('tr').id") == f"page-{number}"
    assert page.evaluate(top) == pytest.approx(before, abs=1.0)
    assert page.get_by_label("Search").input_value() == "example"
    assert page.url == where
    urls = page.locator("#rows th a").all_inner_texts()
    assert len(urls) == len(set(urls))
    assert len(urls) >= 100
    assert urls[0].endswith("a-new-one")


def test_a_list_of_hosts_is_counted_anew_without_moving(page, crawled, until, write_token):
    address, place, clock = crawled
    page.goto(f"{address}/hosts?sort=name&token={write_token}")
    assert page.url == f"{address}/hosts?sort=name"
    page.locator("#rows tr").first.wait_for()
    page.get_by_role("button", name="Pause b.example").focus()
    before = page.evaluate(PLACES)
    with place.open_store() as store:
        store.discover([f"http://b.example/more{n}" for n in range(7)], 990.0)
    clock.advance_to(clock.now() + DAY)
    until(page, "document.querySelectorAll('#rows tr')[1].querySelector('td').innerText === '47'")
    assert page.evaluate(PLACES) == before
    assert page.evaluate("document.activeElement.getAttribute('aria-label')") == "Pause b.example"
    assert page.evaluate(SHIFTED) < 0.01  # numbers that grow a digit move by that much in their cell


def test_an_empty_list_fills_itself_and_typed_words_stay(page, crawled, until):
    address, place, _ = crawled
    page.goto(f"{address}/pages?search=late")
    page.get_by_text("No page matches.").wait_for()
    page.get_by_label("Search").focus()
    with place.open_store() as store:
        store.discover(["http://a.example/late"], 990.0)
    page.locator("#rows th", has_text="late").wait_for()
    assert page.evaluate("document.activeElement.name") == "search"
    assert page.get_by_label("Search").input_value() == "late"


def test_a_list_too_long_to_be_got_again_is_not_made_shorter(page, crawled, until):
    address, _, _ = crawled
    page.clock.install()
    page.goto(f"{address}/pages?sort=url&limit=1")
    for many in range(2, 43):
        page.get_by_role("link", name="More").click()
        until(page, f"document.querySelectorAll('#rows tr[id]').length === {many}")
    observations = []
    page.on(
        "response",
        lambda answer: observations.append(answer) if answer.url.endswith("/pages?sort=url&limit=1") else None,
    )
    for _ in range(240):  # a slow answer puts the next look off, and the second begins when the first is over
        page.clock.fast_forward(3_600_000)
        page.wait_for_timeout(250)
        if len(observations) >= 2:
            break
    assert len(observations) >= 2
    assert page.locator("#rows tr[id]").count() == 42
