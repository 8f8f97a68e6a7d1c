"""What can be ordered from the dashboard, in a real browser: captures, comparisons, limits and pauses."""

import json
import threading

import pytest

from recrawl.crawl.control import runtime_limits
from recrawl.web.dashboard.child_processes import CompareProcess


@pytest.fixture(autouse=True)
def admitted(page, served_copy, in_browser_thread):
    """Whoever gives orders here has opened the address that was printed."""
    in_browser_thread(page.goto, served_copy.entrance)


def told(served):
    with served.place.open_store() as store:
        return store.controls()


def captures(served):
    with served.place.open_store() as store:
        return store.site_captures()


def test_a_capture_is_begun_watched_stopped_and_resumed(page, served_copy, living_site, until, keep):
    before = len(captures(served_copy))
    page.goto(served_copy.at("/captures"))
    form = page.locator("#begin")
    form.get_by_role("textbox", name="Site").fill(living_site)
    form.get_by_label("Strategy").select_option("bfs-lifo")
    form.get_by_label("Delay").fill("1h")
    form.get_by_role("button", name="Begin").click()
    state = page.locator("#captures tbody tr").first.locator(".badge")
    page.locator("#captures .badge.running").wait_for()
    assert state.inner_text() == "running"
    page.locator("#captures tbody tr").first.locator("a").first.click()
    page.get_by_role("button", name="Stop").wait_for()
    assert "of 1 found" in page.locator("#visited").inner_text()
    keep(page, "dashboard-capture-running")
    page.get_by_role("button", name="Stop").first.click()
    page.get_by_role("button", name="Continue").wait_for()
    assert page.locator("#state").inner_text() == "unfinished"
    known = captures(served_copy)
    assert len(known) == before + 1
    assert not known[-1].is_finished
    page.get_by_role("button", name="Continue").click()
    until(page, "document.querySelector('#state').innerText === 'running'")
    page.get_by_role("button", name="Stop").first.click()
    page.get_by_role("button", name="Continue").wait_for()
    assert len(captures(served_copy)) == before + 1


def test_a_capture_that_ends_shows_its_quality_without_a_reload(page, served_copy, hostile_site):
    number = len(captures(served_copy)) + 1
    page.goto(served_copy.at("/captures"))
    form = page.locator("#begin")
    form.get_by_role("textbox", name="Site").fill(hostile_site)
    form.get_by_label("Strategy").select_option("bfs-fifo")
    form.get_by_label("Delay").fill("5ms")
    form.get_by_role("button", name="Begin").click()
    row = page.locator("#captures tbody tr", has=page.get_by_role("link", name=str(number), exact=True))
    row.locator(".badge.finished").wait_for()
    stated = json.loads(captures(served_copy)[-1].statement)["quality"]
    row.locator("a").first.click()
    page.locator("#coherent").wait_for()
    assert page.locator("#coherent").inner_text() == str(stated["coherence"]["coherent"])


def test_an_order_that_makes_no_sense_is_refused_with_a_remedy(page, served_copy, witness):
    page.goto(served_copy.at("/captures"))
    before = len(captures(served_copy))
    page.locator("#begin").get_by_role("textbox", name="Site").fill("file:///etc/passwd")
    page.get_by_role("button", name="Begin").click()
    page.get_by_text("is not an http or https URL").wait_for()
    assert len(captures(served_copy)) == before
    witness.excused.append("status of 400")  # the browser itself calls that an error


def test_a_limit_is_set_and_taken_back_while_a_crawl_may_run(page, served_copy, until):
    page.goto(served_copy.at("/settings"))
    box = page.locator('[id="limit-schedule.budget"]')
    box.get_by_role("textbox").fill("500/h")
    box.get_by_role("button", name="Set", exact=True).click()
    box.get_by_role("button", name="Reset").wait_for()
    assert box.get_by_role("textbox").input_value() == "12000"
    assert runtime_limits.limits(told(served_copy)) == {"schedule.budget": "500/h"}
    box.get_by_role("button", name="Reset").click()
    until(page, "![...document.querySelectorAll('button')].some((one) => one.innerText === 'Reset')")
    assert runtime_limits.limits(told(served_copy)) == {}


def test_the_crawl_and_single_hosts_are_paused_and_let_go(page, served_copy):
    with served_copy.place.open_store() as store:
        host = store.hosts().name[0]
    page.goto(served_copy.at("/settings"))
    page.get_by_role("button", name="Pause the crawl").click()
    page.get_by_role("button", name="Resume the crawl").wait_for()
    assert runtime_limits.is_paused(told(served_copy))
    page.get_by_role("button", name="Resume the crawl").click()
    page.get_by_role("button", name="Pause the crawl").wait_for()
    assert not runtime_limits.is_paused(told(served_copy))
    page.get_by_label("Host").fill(host)
    page.get_by_role("button", name="Pause this host").click()
    held = page.locator("form.held", has_text=host)
    held.get_by_role("button", name="Resume").click()
    page.get_by_role("button", name="Pause this host").wait_for()
    assert page.locator("form.held").count() == 0


@pytest.fixture(scope="module")
def comparison(served_copy):
    """What a comparison of two policies kept: the one that a click begins tries nine, and takes its time."""
    comparing = CompareProcess(served_copy.place, lambda: 1.0, ["--repeats=1", "--policy=uniform", "--tick=6h"])

    def compare():
        comparing.begin(40.0)
        pause = threading.Event()
        while comparing.standing().running_since is not None:
            pause.wait(0.1)
        return comparing.standing().found

    return compare


def test_policies_are_compared_on_this_workspace(page, served_copy, comparison, keep):
    page.goto(served_copy.at("/policies"))
    page.get_by_text("Nothing was compared yet.").wait_for()
    page.locator("#compare").get_by_role("button", name="Compare").click()
    page.get_by_text("A comparison has been running").wait_for()
    page.locator("#live").get_by_role("button", name="Stop").click()
    page.get_by_text("Nothing was compared yet.").wait_for()
    kept = comparison()
    page.reload()
    assert page.locator("#headline").inner_text() == kept["headline"]
    rows = page.locator("#compared tbody tr")
    assert rows.count() == len(kept["policies"]) == 2
    assert page.locator("#compared tr.ours th").inner_text() == f"{kept['in_use']} (in use)"
    page.locator('figure[data-chart="policies-recall"] canvas').wait_for()
    keep(page, "dashboard-policies-compared", full_page=True)


def test_another_site_cannot_order_anything(open_page, served_copy, witness, until):
    """A form on a page of another origin, sent by a browser that has a session."""
    page = open_page()
    page.goto(served_copy.entrance)
    assert page.context.cookies()
    form = f'<form method="post" action="{served_copy.at("/actions/settings/pause")}"><button>go</button></form>'
    page.goto(f"data:text/html,{form}")
    with page.expect_response(lambda answer: "/actions/" in answer.url) as found:
        page.get_by_role("button").click()
    assert found.value.status == 401  # browsers send no cookie of ours for it
    assert not runtime_limits.is_paused(told(served_copy))
    witness.excused.append("status of 401")  # the browser itself calls that an error
