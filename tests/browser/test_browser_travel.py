"""Archived pages in a real browser, for who has shown the token: with and without their scripts."""

from urllib.parse import urlsplit

import pytest

TOKEN = "a-secret-of-many-letters"


@pytest.fixture(scope="module")
def travel(made_workspace, dashboard):
    with dashboard(made_workspace, "--token", TOKEN, "--replay") as running:
        yield running


@pytest.fixture
def inside(open_page, travel, living_site):
    """A window in which the token was shown, and the digits of the first capture of a site."""

    def enter():
        page = open_page()
        page.goto(travel.entrance)
        lines = page.request.get(f"{travel.archive}cdx", params={"url": living_site, "limit": 1, "fl": "timestamp"})
        return page, lines.text().strip()

    return enter


def test_links_of_an_archived_page_lead_through_the_archive(inside, travel, living_site, witness):
    page, timestamp = inside()
    assert page.goto(f"{travel.archive}{timestamp}/{living_site}").status == 200
    way = page.locator(f'a[href^="{travel.archive}"]:not(#recrawl-banner a)').first
    assert way.is_visible()
    with page.expect_navigation() as led:
        way.click()
    assert led.value.status == 200
    assert page.locator("#recrawl-banner").is_visible()
    assert witness.origins() <= {f"http://{urlsplit(place).netloc}" for place in (travel.dashboard, travel.archive)}
    # The browser says on its console that it ran no script, and that the archive has no icon.
    witness.excused += ["sandboxed", "Policy", "404"]


def test_the_banner_of_a_replay_tells_how_far_the_copy_is_from_the_time_asked_for(inside, travel, living_site, until):
    page, timestamp = inside()
    page.goto(f"{travel.replay}2020/{living_site}")
    until(page, "document.getElementById('recrawl-sharpness').textContent.includes('after the requested time')")
    told = page.locator("#recrawl-when").inner_text()
    assert told.startswith(f"Archived {timestamp[:4]}-{timestamp[4:6]}-{timestamp[6:8]}T")
    assert page.frame_locator("#replay_iframe").locator("a[href]").first.is_visible()
