"""Every page of the dashboard in a real browser: what it shows is what the store holds, on a desk and on a phone."""

import json
import re

import numpy as np
import pytest

from recrawl.app.workspace.workspace import make_workspace
from recrawl.model import Verdict, Visits
from recrawl.time import DAY, VirtualClock

PAGES = ("/", "/changes?period=year", "/hosts", "/pages", "/captures", "/captures/1", "/policies", "/settings")
UNNAMED = """[...document.querySelectorAll('input:not([type=hidden]), select')]
    .filter((one) => !one.labels.length && !one.ariaLabel).map((one) => one.outerHTML)"""
REACHED = "document.querySelectorAll('a[href], button, input:not([type=hidden]), select').length"
OUT_OF_ORDER = """[...document.querySelectorAll('[tabindex]')]
    .filter((one) => !['0', '-1'].includes(one.getAttribute('tabindex'))).length"""
WIDTHS = "[document.documentElement.scrollWidth, window.innerWidth]"


def visit(page, served, path):
    answer = page.goto(served.at(path))
    assert answer.status == 200
    return page


def number(text):
    return int(text.replace(",", ""))


def tile(page, title):
    return page.locator(".tile", has=page.get_by_text(title, exact=True)).locator("dd").first


@pytest.fixture(scope="module")
def changed_page(served):
    """A page that changed, with its visits in the store."""
    with served.place.open_store() as store:
        visits = store.visits()
        page = int(visits.page[visits.verdict == Verdict.CHANGED][0])
        return page, store.urls(visits.page[visits.page == page][:1])[0], visits.take(visits.page == page)


def fits(page, path):
    """Nothing is cut off: there is no scrolling sideways."""
    assert page.locator("main h1").count() == 1
    assert page.locator('.bar nav a[aria-current="page"]').count() == 1
    scrolled, inner = page.evaluate(WIDTHS)
    assert scrolled <= inner, f"{path} is wider than a window of {inner} pixels"


def is_walked_by_keys(page, path):
    """Every field has a name, and the focus goes from one to the next in the order of the page."""
    assert page.evaluate(REACHED) >= 8
    assert page.evaluate(OUT_OF_ORDER) == 0
    seen = set()
    for _ in range(8):
        page.keyboard.press("Tab")
        seen.add(page.evaluate("document.activeElement.outerHTML.slice(0, 120)"))
    assert len(seen) == 8, f"the focus is caught somewhere in {path}"
    assert page.evaluate(UNNAMED) == []


def has_a_twin(page, served):
    """The same for programs, at the address that its foot names."""
    twin = page.get_by_role("link", name="This page as JSON").get_attribute("href")
    answer = page.request.get(served.at(twin))
    assert answer.status == 200
    assert answer.headers["content-type"] == "application/json"
    assert isinstance(answer.json(), dict)


@pytest.fixture(params=[*PAGES, "/pages/one"])
def path(request, changed_page):
    """Of a page of the dashboard, each in turn."""
    return f"/pages/{changed_page[0]}" if request.param == "/pages/one" else request.param


def test_every_page_fits_every_window_and_is_for_keys_and_programs_too(open_page, served, witness, keep, path):
    name = "dashboard" + re.sub(r"^/pages/.*", "/pages/one", path).replace("/", "-").rstrip("-")
    desk = visit(open_page(), served, path)
    fits(desk, path)
    keep(desk, f"{name}-day", full_page=True)
    desk.emulate_media(color_scheme="dark")
    keep(desk, f"{name}-dark")
    has_a_twin(desk, served)
    is_walked_by_keys(desk, path)
    phone = visit(open_page(phone=True), served, path)
    fits(phone, path)
    keep(phone, f"{name}-phone", full_page=True)
    assert witness.origins() == {served.dashboard.rstrip("/")}


def test_day_and_night_are_switched_by_a_button_and_kept(page, served, until):
    visit(page, served, "/")
    paper = "getComputedStyle(document.body).backgroundColor"
    day = page.evaluate(paper)
    page.locator("[data-theme-switch]").click()
    until(page, f"{paper} !== '{day}'")
    night = page.evaluate(paper)
    visit(page, served, "/hosts")
    until(page, f"{paper} === '{night}'")
    assert night != day


def test_the_overview_tells_what_the_store_counts(page, served, until):
    with served.place.open_store() as store:
        counts = store.counts(0.0)
    visit(page, served, "/")
    until(page, "!document.querySelector('#live').textContent.includes('…')")
    assert number(tile(page, "Changes found").inner_text()) == counts.changed
    said = tile(page, "Changes found").locator("xpath=following-sibling::dd").inner_text()
    assert said == f"in {counts.visits:,} visits to {counts.pages:,} pages"
    page.locator("#activity canvas").wait_for()
    page.locator("#plan table").wait_for()
    assert page.locator("#plan tbody tr").count() >= 3
    assert page.locator("#next tbody tr").count() >= 1


def test_hosts_are_counted_searched_and_sorted(page, served, until):
    with served.place.open_store() as store:
        hosts, pages = store.hosts(), store.pages()
        of_host = {name: int((pages.host == id_).sum()) for id_, name in zip(hosts.id, hosts.name, strict=True)}
    visit(page, served, "/hosts")
    rows = page.locator("#rows tr")
    rows.first.wait_for()
    shown = {row.locator("th").inner_text(): number(row.locator("td").first.inner_text()) for row in rows.all()}
    assert shown == of_host
    page.get_by_label("Order").select_option("name")
    until(
        page,
        "(() => { const names = [...document.querySelectorAll('#rows th')].map((one) => one.innerText);"
        " return names.length > 1 && names.every((name, at) => !at || names[at - 1] <= name); })()",
    )
    page.keyboard.press("Escape")
    page.get_by_label("Search").fill("hostile")
    until(page, "document.querySelectorAll('#rows tr').length === 1")


def test_pages_are_searched_filtered_and_sorted_by_the_server(page, served, until):
    with served.place.open_store() as store:
        urls = store.urls(store.pages().id)
    wanted = [url for url in urls if "library" in url]
    visit(page, served, "/pages")
    page.locator("#rows tr").first.wait_for()
    page.get_by_label("Search").fill("library")
    until(
        page,
        f"document.querySelectorAll('#rows tr:not(.more)').length === {len(wanted)}"
        " && !document.querySelector('#rows tr.more')",
    )
    assert sorted(page.locator("#rows th a").all_inner_texts()) == sorted(wanted)
    assert "search=library" in page.url
    page.get_by_label("Search").fill("no such page anywhere")
    page.get_by_text("No page matches.").wait_for()
    page.get_by_role("link", name="Show all").click()
    page.get_by_label("Order").select_option("due")
    until(page, "location.search.includes('sort=due')")
    page.locator("#rows tr").first.wait_for()


def test_one_page_shows_its_visits_its_belief_and_its_versions_side_by_side(page, served, changed_page, keep, until):
    number_, url, visits = changed_page
    visit(page, served, f"/pages/{number_}")
    assert page.locator("h1").inner_text() == url
    assert number(tile(page, "Visits").inner_text()) == len(visits)
    page.locator('figure[data-chart="visits"] canvas').wait_for()
    page.locator('figure[data-chart="belief"] canvas').wait_for()
    page.locator("#visit .sides mark").first.wait_for()
    found = page.locator("table.list tbody tr")
    assert found.count() == len(visits)
    shown = found.locator("td:nth-child(2)").all_inner_texts()
    assert sum(text.strip() == "changed" for text in shown) == int((visits.verdict == Verdict.CHANGED).sum())
    keep(page, "dashboard-page", full_page=True)
    before = page.locator("#visit h2").inner_text()
    found.last.get_by_role("link", name="why").click()
    until(page, f"document.querySelector('#visit h2').innerText !== {json.dumps(before)}")


def test_keys_lead_to_the_content_to_other_pages_and_to_the_search(page, served):
    visit(page, served, "/")
    page.keyboard.press("Tab")
    assert page.evaluate("document.activeElement.className") == "skip"
    page.keyboard.press("Enter")
    assert page.evaluate("document.activeElement.id") == "main"
    page.keyboard.press("g")
    page.keyboard.press("h")
    page.wait_for_url("**/hosts")
    page.keyboard.press("/")
    assert page.evaluate("document.activeElement.name") == "search"


def test_nothing_moves_when_parts_are_renewed(page, served, until):
    visit(page, served, "/")
    until(page, "!document.querySelector('main').textContent.includes('…')")
    place = "[...document.querySelectorAll('main h2, main table')].map((one) => one.getBoundingClientRect().top)"
    before = page.evaluate(place)
    with page.expect_response(lambda answer: answer.url == served.at("/")):
        pass
    page.evaluate("new Promise(requestAnimationFrame)")
    assert page.evaluate(place) == before


@pytest.fixture
def empty(tmp_path, clocked_dashboard):
    """A dashboard of a workspace without pages; with its workspace, and a clock to be put forward."""
    place, clock = make_workspace(tmp_path / "new", {}), VirtualClock(1_000.0)
    with clocked_dashboard(place, clock) as address:
        yield address, place, clock


def test_a_new_workspace_is_followed_from_its_first_page_on(page, empty):
    """What it says to do next goes when it is done, and the pictures come, without a reload."""
    address, place, clock = empty
    page.goto(address)
    page.get_by_text("There are no pages yet.").wait_for()
    with place.open_store() as store:
        ids = store.discover([f"http://a.example/{number}" for number in range(9)], 1.0)
        clock.advance_to(clock.now() + DAY)
        page.get_by_text("No page was visited yet.").wait_for()
        store.record(Visits.of(ids, np.linspace(10.0, 1_000.0, 9)))
        clock.advance_to(clock.now() + DAY)
    page.locator("#activity canvas").wait_for()
    page.get_by_text("No page was visited yet.").wait_for(state="detached")
    assert number(tile(page, "Changes found").inner_text()) == 0


def test_what_is_not_there_is_said_to_be_so(page, served, witness):
    answer = page.goto(served.at("/captures/999"))
    assert answer.status == 404
    assert "no capture 999" in page.locator("main").inner_text()
    witness.excused.append("status of 404")  # the browser itself calls that an error
