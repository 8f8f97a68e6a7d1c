"""The two pictures of the README; CONTRIBUTING.md says how they are made anew."""

import pytest


@pytest.fixture(scope="module")
def report(crawled, recrawl, tmp_path_factory):
    """A report on a crawl as people make it: without the sites that only tests know."""
    file = tmp_path_factory.mktemp("readme") / "report.html"
    recrawl("report", "-w", crawled.folder, "-o", file)
    return file


def test_the_dashboard_for_the_readme(page, served, keep, until):
    page.goto(served.dashboard)
    until(page, "!document.querySelector('main').textContent.includes('…')")
    page.locator("#activity canvas").wait_for()
    assert page.locator(".tile").count() >= 4
    keep(page, "dashboard")


def test_the_report_for_the_readme(page, report, keep, until):
    page.goto(report.as_uri())
    figure = page.locator('figure[data-chart="site-graph"]')
    figure.scroll_into_view_if_needed()
    figure.get_by_role("tree").wait_for()
    until(page, "document.querySelectorAll('figure[data-chart=\"site-graph\"] canvas').length > 1")
    page.evaluate("document.querySelector('#graph').scrollIntoView()")
    assert figure.get_by_role("treeitem").count() >= 1
    assert "localhost" not in page.locator("main").inner_text()
    keep(page, "report")
