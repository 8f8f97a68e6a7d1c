"""The report in a real browser: one file that asks for nothing, says what the store holds, and can be taken apart."""

import csv
import io
import re

import pytest

WIDTHS = "[document.documentElement.scrollWidth, window.innerWidth]"
DRAWN = """(figure) => { const plot = figure.querySelector('.plot');
    return plot && plot.childElementCount > 0 && plot.querySelector('canvas, svg, .empty') !== null; }"""


def show(page, report):
    page.goto(report.as_uri())
    return page


def drawn(page, figure):
    """Bring a figure into view and wait until it is drawn."""
    figure.scroll_into_view_if_needed()
    for _ in range(1_200):
        if figure.evaluate(DRAWN):
            return figure
        page.wait_for_timeout(50)
    pytest.fail(f"{figure.get_attribute('data-chart')} was never drawn")


def saved(page, figure, form):
    with page.expect_download() as found:
        figure.locator(f'[data-save="{form}"]').click()
    return found.value.path().read_bytes()


def columns(data):
    rows = list(csv.reader(io.StringIO(data.decode("utf-8-sig"))))
    return dict(zip(rows[0], zip(*rows[1:], strict=True), strict=False))


def test_it_asks_for_nothing_draws_everything_and_prints_it(page, report, witness, keep):
    show(page, report)
    keep(page, "report-first-sight")
    figures = page.locator("figure[data-chart]")
    assert figures.count() >= 15
    page.locator("figure[data-chart]:not([data-drawn])").first.wait_for(
        state="detached"
    )  # though nobody scrolled there
    assert figures.evaluate_all(f"all => all.every({DRAWN})")
    assert witness.asked == [report.as_uri()]
    page.emulate_media(media="print")
    page.evaluate("dispatchEvent(new Event('beforeprint'))")
    charts = page.locator('figure[data-kind="chart"], figure[data-kind="heat"]')
    heights = charts.locator(".chart-print").evaluate_all("all => all.map((one) => one.height)")
    assert len(heights) == charts.count() > 10
    assert min(heights) > 50
    assert charts.locator("canvas").first.is_hidden()
    assert page.locator(".graph-print").is_visible()
    assert page.locator(".chart-tools").first.is_hidden()
    page.evaluate("dispatchEvent(new Event('afterprint'))")
    assert page.locator(".chart-print, .graph-print").count() == 0
    assert page.pdf(format="A4").startswith(b"%PDF-")


@pytest.mark.parametrize(
    "observation", [{"dark": True}, {"phone": True}], ids=lambda observation: next(iter(observation))
)
def test_it_is_readable_at_night_and_on_a_phone(open_page, report, keep, observation):
    page = show(open_page(**observation), report)
    drawn(page, page.locator("figure[data-chart]").first)
    scrolled, inner = page.evaluate(WIDTHS)
    assert scrolled <= inner
    light = page.evaluate("getComputedStyle(document.body).backgroundColor.match(/\\d+/g).map(Number)[0]")
    assert (light < 60) == ("dark" in observation)
    keep(page, f"report-{next(iter(observation))}")


def test_its_numbers_are_those_of_the_store(page, report, made_workspace):
    with made_workspace.open_store() as store:
        counts, hosts = store.counts(0.0), store.hosts()
    show(page, report)
    tiles = page.locator("#holdings .tile")
    told = {tile.locator("dt").inner_text(): tile.locator("dd").first.inner_text() for tile in tiles.all()}
    shown = {title: text.replace(",", "") for title, text in told.items()}
    assert shown["pages"] == str(counts.pages)
    assert shown["observations"] == str(counts.visits - counts.failed)
    assert shown["observed changes"] == str(counts.changed)
    assert page.locator('table[data-table="hosts"] tbody tr').count() == len(hosts)


def test_tables_are_sorted_filtered_and_saved(page, report):
    show(page, report)
    box = page.locator("#table-rates-pages")
    column = box.locator("tbody tr td:first-child, tbody tr th:first-child")
    box.locator("thead button").first.click()
    once = column.all_inner_texts()
    box.locator("thead button").first.click()
    twice = column.all_inner_texts()
    assert len(once) == len(twice) >= 10
    assert once != twice
    for shown in (once, twice):
        assert shown in (sorted(shown), sorted(shown, reverse=True))
    box.get_by_label("Filter rows").fill("data.living")
    box.locator("tbody tr").first.wait_for()
    few = column.all_inner_texts()
    assert few
    assert all("data.living" in text for text in few)
    box.get_by_label("Filter rows").fill("")
    with page.expect_download() as found:
        box.get_by_role("button", name="CSV").click()
    assert set(once + twice + few) <= set(next(iter(columns(found.value.path().read_bytes()).values())))


def test_figures_are_saved_as_picture_drawing_and_data(page, report, keep):
    show(page, report)
    for name in ("visits-over-time", "page-scatter"):
        figure = drawn(page, page.locator(f'figure[data-chart="{name}"]'))
        assert saved(page, figure, "png").startswith(b"\x89PNG\r\n\x1a\n")
        assert b"<svg" in saved(page, figure, "svg")[:200]
        assert len(columns(saved(page, figure, "csv"))) >= 2
    switch = figure.locator(".scatter-switch")  # to the cube of the thesis
    switch.click()
    assert switch.get_attribute("aria-pressed") == "true"
    keep(page, "report-scatter-3d")
    assert saved(page, figure, "png").startswith(b"\x89PNG\r\n\x1a\n")
    switch.click()
    assert switch.get_attribute("aria-pressed") == "false"


def test_the_graph_unfolds_finds_tells_and_is_saved(page, report, made_workspace, keep):
    with made_workspace.open_store() as store:
        seen = store.visits().page
        urls = store.urls(seen)
    number = dict(zip(urls, seen.tolist(), strict=True))
    show(page, report)
    figure = drawn(page, page.locator('figure[data-chart="site-graph"]'))
    tree = figure.get_by_role("tree")
    tree.wait_for()
    folded = tree.get_by_role("treeitem").count()
    figure.get_by_role("button", name="Unfold all").click()
    closed = tree.locator('[role="treeitem"][aria-expanded="false"]').first
    closed.focus()
    page.keyboard.press("ArrowRight")
    page.wait_for_timeout(0)
    assert tree.get_by_role("treeitem").count() > folded
    wanted = next(url for url in urls if url.endswith(".html"))
    figure.get_by_label("Find a page by its URL").fill(wanted)
    page.keyboard.press("Enter")
    figure.locator(".graph-facts", has_text=wanted).wait_for()
    assert "change" in figure.locator(".graph-facts").inner_text()
    versions = figure.locator(".graph-facts").get_by_role("link", name="All versions of this page")
    assert versions.get_attribute("href") == f"http://127.0.0.1:8080/pages/{number[wanted]}"
    assert saved(page, figure, "png").startswith(b"\x89PNG\r\n\x1a\n")
    assert set(urls) <= set(columns(saved(page, figure, "csv"))["url"])
    with page.expect_download() as found:
        figure.get_by_role("button", name="GraphML", exact=True).click()
    assert b"<graphml" in found.value.path().read_bytes()[:400]
    keep(page, "report-graph")


def test_the_host_of_one_area_is_that_of_all(page, report):
    show(page, report)
    areas = page.locator('figure[data-chart^="areas-"]')
    first = drawn(page, areas.first)
    names = first.locator("select option").all_inner_texts()
    assert names[0] == f"all {len(names) - 1 + left_out(page)} hosts"
    before = first.locator("figcaption").inner_text()
    host = next(name for name in names if name.startswith("site."))
    first.locator("select").select_option(host)
    for figure in areas.all():
        if host in figure.locator("select option").all_inner_texts():
            drawn(page, figure).locator("figcaption", has_text=f"crawls of {host}").wait_for()
            assert figure.locator("select").evaluate("one => one.selectedOptions[0].textContent") == host
    assert before.startswith("All ")
    assert set(columns(saved(page, first, "csv"))["series"]) >= {"unchanged", "changed", "new", "deleted"}


def left_out(page):
    """Hosts that nobody can choose, as the section says."""
    found = page.locator("#crawls p", has_text="cannot be selected")
    return int(found.inner_text().split()[0]) if found.count() else 0


def test_times_are_utc_wherever_the_reader_is_and_days_have_their_month(open_page, report):
    told = []
    for zone in ("UTC", "Pacific/Auckland"):
        page = show(open_page(timezone_id=zone), report)
        figure = drawn(page, page.locator('figure[data-chart="blur-over-time"]'))
        told.append(re.findall(r">([^<>]+)</text>", saved(page, figure, "svg").decode()))
    assert told[0] == told[1]
    days = [one for one in told[0] if re.fullmatch(r"\d{1,2}|\d{1,2} [A-Z][a-z]{2}", one)]
    assert any(" " in one for one in days)
