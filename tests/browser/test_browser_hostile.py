"""Archived pages that want to act where they are shown: in titles, addresses, headers, links and their own scripts."""

from urllib.parse import urlsplit

import pytest

MARKER = "__acted"
ACTED = f"window.{MARKER} === undefined"


@pytest.fixture(scope="module")
def hostile_pages(served, hostile_site):
    """Ids and URLs of all pages of the hostile site, and when each was captured."""
    with served.place.open_store() as store:
        pages = store.pages()
        urls = store.urls(pages.id)
        found = [(int(id_), url) for id_, url in zip(pages.id, urls, strict=True) if url.startswith(hostile_site)]
        assert len(found) >= 3
        assert any("'" in url for _, url in found)
        assert any("onerror" in url for _, url in found)
        return [(id_, url, store.captures(pages.id[pages.id == id_])[0].time) for id_, url in found]


def is_calm(page):
    """Nothing from the archive ran, became an element, or was taken for a template."""
    if page.locator("#visit-part").count():
        page.locator("#visit-part #visit").wait_for()
    page.evaluate("new Promise(requestAnimationFrame)")
    assert page.evaluate(ACTED)
    assert page.locator("img, svg[onload], [onload], [onerror]").count() == 0
    assert "49" not in page.evaluate("document.title")


def test_nothing_archived_acts_on_the_dashboard(page, served, hostile_pages, hostile_site):
    host = urlsplit(hostile_site).netloc
    for path in ("/hosts?search=hostile", f"/pages?host={host}", "/captures", "/captures/3"):
        assert page.goto(served.at(path)).status == 200
        is_calm(page)
    for number, url, time in hostile_pages:
        page.goto(served.at(f"/pages/{number}"))
        assert page.locator("h1").inner_text() == url
        is_calm(page)
        page.goto(served.at(f"/pages/{number}/visit?at={time!r}"))
        is_calm(page)
    page.goto(served.at("/pages?search=%3Cscript%3Ealert(1)%3C/script%3E"))
    is_calm(page)


def test_nothing_archived_acts_in_the_graph_or_its_hovers(page, served):
    page.goto(served.at("/captures/3"))
    figure = page.locator('figure[data-chart="site-graph"]')
    figure.scroll_into_view_if_needed()
    tree = figure.get_by_role("tree")
    tree.wait_for()
    items = tree.get_by_role("treeitem").all()
    assert items
    for item in items:
        item.click()
    stage = figure.locator(".graph-stage").bounding_box()
    for step in range(1, 10):
        page.mouse.move(stage["x"] + stage["width"] * step / 10, stage["y"] + stage["height"] / 2)
    is_calm(page)


def test_nothing_archived_acts_in_replay(open_page, served, hostile_pages, witness):
    """Archived pages have an origin of their own, run nothing, and cannot reach the dashboard."""
    assert urlsplit(served.archive).netloc != urlsplit(served.dashboard).netloc
    page = open_page()
    page.goto(served.dashboard)
    session = {cookie["name"] for cookie in page.context.cookies()}
    for _, url, _ in hostile_pages:
        for way in ("", "id_"):
            answer = page.goto(f"{served.archive}20260101000000{way}/{url}")
            assert answer.status == 200
            assert page.evaluate(ACTED)
            assert answer.headers["x-content-type-options"] == "nosniff"
            assert "sandbox" in answer.headers["content-security-policy"]
    assert session
    # What the browser refused to run, it says on its console; that is what was to be seen here.
    refused = [one for one in witness.complaints if "Content Security Policy" in one or "sandboxed" in one]
    assert not [one for one in witness.complaints if one.startswith("dialog")]
    assert refused
    witness.excused += ["Content Security Policy", "sandboxed", "status of 404"]  # its pictures are not in the archive


def test_nothing_archived_acts_in_lists_of_versions(page, served, hostile_pages):
    for _, url, _ in hostile_pages:
        for form in ("link", "json", "cdxj"):
            answer = page.request.get(f"{served.archive}timemap/{form}/{url}")
            assert answer.status == 200
            assert "html" not in answer.headers["content-type"]
            assert answer.headers["x-content-type-options"] == "nosniff"
        answer = page.request.get(f"{served.archive}cdx", params={"url": url})
        assert "html" not in answer.headers["content-type"]


def test_strangers_are_turned_away_by_name(page, served):
    """A name that was made to point here (DNS rebinding) gets nothing, and no path leads out of the assets."""
    port = urlsplit(served.dashboard).port
    answer = page.request.get(served.at("/api/captures"), headers={"Host": f"evil.example:{port}"})
    assert answer.status == 421
    for path in ("/assets/../../../etc/passwd", "/assets/%2e%2e/%2e%2e/pyproject.toml", "/assets//etc/passwd"):
        assert page.request.get(served.at(path)).status == 404
