"""The two pictures of the README; CONTRIBUTING.md says how they are made anew."""

import pytest

from recrawl.cli.main import main


@pytest.fixture(scope="module")
def report(made_workspace, tmp_path_factory):
    file = tmp_path_factory.mktemp("readme") / "report.html"
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("sys.argv", ["recrawl", "report", "-w", str(made_workspace.folder), "-o", str(file)])
        with pytest.raises(SystemExit) as done:
            main()
    assert not done.value.code
    return file


def test_the_dashboard_for_the_readme(page, served, keep, until):
    page.goto(served.dashboard)
    until(page, "!document.querySelector('main').textContent.includes('…')")
    page.locator("#activity canvas").wait_for()
    keep(page, "dashboard")


def test_the_report_for_the_readme(page, report, keep, until):
    page.goto(report.as_uri())
    figure = page.locator('figure[data-chart="site-graph"]')
    figure.scroll_into_view_if_needed()
    figure.get_by_role("tree").wait_for()
    until(page, "document.querySelectorAll('figure[data-chart=\"site-graph\"] canvas').length > 1")
    page.evaluate("document.querySelector('#graph').scrollIntoView()")
    keep(page, "report")
