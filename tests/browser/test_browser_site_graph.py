"""The site graph, the scatter plot and its cube in a real browser: drawn, unfolded, searched, walked by keys, saved."""

import csv
import io
import json
from xml.etree import ElementTree as ET

import numpy as np
import pytest

from recrawl.app.assess.assessment import SitePages
from recrawl.assess.site_structure import ROOT, ChangeClass, collapse
from recrawl.web.html_templates import json_text
from recrawl.web.report import site_graph
from recrawl.web.report.report_page import Figure, ReportExtras, ReportPage, Section, report_html
from recrawl.web.report.site_graph import graph_data, graph_section, scatter_section

NOW = 1_700_000_000.0
EXTRAS = ReportExtras(site_graph.SCRIPTS, ["graph.css"])
EVIL = "http://a.org/deep/</script><img src=x onerror=window.acted=1>"
HANDLE = "name => recrawl.charts.open(document.querySelector(`[data-chart=${name}]`))"


def site():
    """A front page over six directories of thirty pages; in one of them half of the pages changed, one is gone."""
    urls, parent, change = ["http://a.org/"], [ROOT], [ChangeClass.UNCHANGED]
    for directory in ("calm", "deep", "old", "quiet", "still", "wild"):
        top = len(urls)
        urls.append(f"http://a.org/{directory}/")
        parent.append(0)
        change.append(ChangeClass.UNCHANGED)
        for page in range(30):
            urls.append(f"http://a.org/{directory}/{page:02}.html")
            parent.append(top)
            hot = directory == "wild" and page % 2
            change.append((ChangeClass.LINKS if page % 3 else ChangeClass.CONTENT) if hot else ChangeClass.UNCHANGED)
    change[urls.index("http://a.org/wild/00.html")] = ChangeClass.MISSING
    urls[urls.index("http://a.org/deep/07.html")] = EVIL
    count = len(urls)
    changed = np.where(np.array(change) > ChangeClass.UNCHANGED, NOW, np.nan)
    types = ["image/png" if place % 5 == 4 else "text/html" for place in range(count)]
    rate = np.full(count, 1 / 86_400.0)
    seen, found = np.full(count, NOW), np.full(count, 3)
    pages = SitePages(np.arange(count), urls, np.array(change), rate, changed, seen, found, types, np.array(parent))
    return pages.by_url()


@pytest.fixture
def pages():
    return site()


@pytest.fixture
def report(pages, tmp_path):
    """Where the report is."""
    file = tmp_path / "report.html"
    sections = [graph_section(pages, "http://127.0.0.1/versions/{url}"), scatter_section(pages)]
    file.write_text(report_html(ReportPage("A", "About", NOW, "1", sections), EXTRAS), "utf-8")
    return file.as_uri()


def go(page, address, name="site-graph"):
    """Open the report at a figure, where nothing moves by itself, and wait until it is drawn."""
    page.emulate_media(reduced_motion="reduce")
    page.goto(address)
    page.locator(f"[data-chart={name}]").scroll_into_view_if_needed()
    page.wait_for_selector(f"[data-chart={name}][data-drawn]")


def nodes(page):
    return page.evaluate(f"({HANDLE})('site-graph').then(found => found.sigma.getGraph().order)")


def place_of(page, node):
    """Where a node is on the screen."""
    return page.evaluate(
        f"""node => ({HANDLE})('site-graph').then(({{ sigma }}) => {{
            const at = sigma.framedGraphToViewport(sigma.getNodeDisplayData(node));
            const area = sigma.getContainer().getBoundingClientRect();
            return [area.left + at.x, area.top + at.y];
        }})""",
        node,
    )


def disc_with_most(page):
    """The page that holds the largest disc."""
    largest = "({ tree }) => [...tree.disc.values()].sort((one, other) => other.pages - one.pages)[0].page"
    return page.evaluate(f"({HANDLE})('site-graph').then({largest})")


def test_discs_unfold_and_fold_at_a_click_and_nothing_moves(page, pages, report, keep):
    go(page, report)
    tree = collapse(pages.parent, pages.change)
    folded = int(tree.drawn.sum()) + int((tree.folded > 0).sum())
    assert nodes(page) == folded
    counts = {one: int((pages.change == one).sum()) for one in ChangeClass}
    shown = page.locator(".graph-legend button").evaluate_all(
        "all => all.map(one => [one.dataset.class, one.querySelector('b').textContent])"
    )
    assert dict(shown) == {one.name.lower(): f"{count:,}" for one, count in counts.items() if count}
    keep(page, "report-site-graph")
    holder = disc_with_most(page)
    before = place_of(page, f"p{holder}")
    page.mouse.click(*place_of(page, f"f{holder}"))
    page.wait_for_function(f"({HANDLE})('site-graph').then(found => found.drawing.isUnfolded({holder}))")
    assert nodes(page) == folded + int(tree.folded[holder])
    assert place_of(page, f"p{holder}") == pytest.approx(before, abs=0.5)
    page.get_by_role("button", name="Unfold all").click()
    assert nodes(page) == len(pages) + int((tree.folded > 0).sum())
    page.get_by_role("button", name="Fold all", exact=True).click()
    assert nodes(page) == folded


def test_one_page_alone_is_a_mark_with_its_name_and_no_ring_across_the_picture(page, tmp_path):
    alone = SitePages(
        np.array([1]), ["http://a.org/"], np.array([ChangeClass.UNSEEN]), np.array([np.nan]), np.array([np.nan]),
        np.array([NOW]), np.array([1]), ["text/html"], np.array([ROOT]),
    )  # fmt: skip
    file = tmp_path / "alone.html"
    file.write_text(report_html(ReportPage("A", "About", NOW, "1", [graph_section(alone)]), EXTRAS), "utf-8")
    go(page, file.as_uri())
    size, label, width = page.evaluate(
        f"""({HANDLE})('site-graph').then(({{ sigma }}) => {{
            const drawn = sigma.getNodeDisplayData("p0");
            return [sigma.scaleSize(drawn.size), drawn.label, sigma.getDimensions().width];
        }})"""
    )
    assert label == "a.org"
    assert 4 <= size <= width / 20


def test_a_page_is_found_by_its_address_also_if_it_is_folded(page, pages, report):
    go(page, report)
    search = page.get_by_label("Find a page by its URL")
    search.fill("onerror")
    search.press("Enter")
    facts = page.locator(".graph-facts")
    facts.get_by_text("changes about every").wait_for()
    assert EVIL in facts.inner_text()
    assert "1 d" in facts.inner_text()
    assert page.evaluate("window.acted") is None
    row = pages.urls.index(EVIL)
    assert page.evaluate(f"({HANDLE})('site-graph').then(found => found.sigma.getGraph().hasNode('p{row}'))")
    link = facts.get_by_role("link", name="All versions of this page")
    assert link.get_attribute("href") == "http://127.0.0.1/versions/" + page.evaluate("encodeURIComponent", EVIL)
    search.fill("no such page")
    page.get_by_text("No URL contains this text.").wait_for()


def test_the_list_beside_is_walked_by_keys(page, report):
    go(page, report)
    tree = page.get_by_role("tree")
    tree.locator('[tabindex="0"]').focus()
    for key in ("ArrowDown", "ArrowRight", "ArrowDown", "Enter"):
        page.keyboard.press(key)
    address = page.locator(".graph-facts .url").inner_text()
    assert address.startswith("http://a.org/wild/")
    assert tree.locator('[aria-selected="true"] > .line').count() == 1
    page.keyboard.press("ArrowLeft")
    page.keyboard.press("ArrowLeft")
    page.keyboard.press("End")
    page.keyboard.press("Enter")  # what is folded below the front page
    assert tree.locator('[aria-expanded="true"] > .line', has_text="unchanged, folded").count() == 1


FLAT = """count => {
    const all = Array.from({ length: count }, (_one, page) => page);
    const pages = { id: all, url: { shared: all.map(() => 0), rest: all.map((page) => `http://a.org/${page}`) }, change: all.map(() => 1) };
    const folded = { page: [0], pages: [count - 1] };
    const tree = recrawl.site.readTree({ pages, parent: all.map((page) => Math.min(page, 2) - 1), drawn: all.map((page) => page < 1 ? 1 : 0), folded });
    const box = document.createElement("div");
    document.body.append(box);
    recrawl.site.list(box, tree, () => null).show(count - 1);
    const items = [...box.querySelectorAll('[role="treeitem"]')];
    const more = items.filter((one) => one.classList.contains("more")).map((one) => one.textContent);
    return [tree.foldedInto(0).length, items.length, box.querySelector('[aria-selected="true"] .name').title, more];
}"""  # noqa: E501 - a script


def test_of_very_many_pages_below_one_only_those_looked_for_are_listed(page, report):
    page.goto(report)
    folded, listed, chosen, more = page.evaluate(FLAT, 200_000)
    assert folded == 199_999
    assert chosen == "http://a.org/199999"
    assert more == ["199,897 more …"]
    assert listed < 110


def test_pointing_at_a_page_tells_what_is_known_of_it(page, pages, report):
    go(page, report)
    row = int(np.flatnonzero(pages.change == ChangeClass.MISSING)[0])
    tip = page.locator(".graph-picture .graph-tip")
    for turn in range(200):  # a hand is never still
        page.mouse.move(*(side + turn % 2 for side in place_of(page, f"p{row}")))
        if tip.is_visible():
            break
        page.wait_for_timeout(50)
    tip.get_by_text(pages.urls[row]).wait_for()
    words = tip.inner_text()
    assert "gone" in words
    assert "2023-11-14 22:13 UTC" in words


def saved(page, click):
    with page.expect_download() as started:
        click()
    return started.value.path().read_bytes()


def test_the_graph_is_saved_in_every_form(page, pages, report):
    go(page, report)
    figure = page.locator("[data-chart=site-graph]")
    tree = collapse(pages.parent, pages.change)
    found = ET.fromstring(saved(page, page.get_by_role("button", name="GraphML", exact=True).click))
    space = "{http://graphml.graphdrawing.org/xmlns}"
    discs = int((tree.folded > 0).sum())
    assert len(found.findall(f".//{space}node")) == int(tree.drawn.sum()) + discs
    assert len(found.findall(f".//{space}edge")) == int(tree.drawn.sum()) + discs - 1
    whole = ET.fromstring(saved(page, page.get_by_role("button", name="GraphML, all pages").click))
    assert sorted(one[0].text for one in whole.findall(f".//{space}node")) == sorted(pages.urls)
    assert len(whole.findall(f".//{space}edge")) == int((pages.parent >= 0).sum())
    table = saved(page, figure.get_by_role("button", name="CSV").click).decode()
    rows = list(csv.DictReader(io.StringIO(table)))
    assert [row["url"] for row in rows] == pages.urls
    assert sum(row["folded"] == "true" for row in rows) == int((~tree.drawn).sum())
    assert saved(page, figure.get_by_role("button", name="PNG").click).startswith(b"\x89PNG")
    plot = ET.fromstring(saved(page, figure.get_by_role("button", name="SVG").click))
    marks = [one for one in plot if one.tag.endswith(("circle", "path"))]
    assert len(marks) == int(tree.drawn.sum()) + discs + 1  # and one for all edges
    labels = [one.text for one in plot if one.tag.endswith("text")]
    assert any(label.endswith(" unchanged") or "/" in label for label in labels)


def test_the_scatter_is_flat_or_a_cube(page, report, keep):
    go(page, report, "page-scatter")
    keep(page, "report-scatter")
    page.get_by_role("button", name="Show in 3-D").click()
    cube = page.get_by_role("img", name="Pages in a cube")
    cube.wait_for()
    plot = "() => document.querySelector('.cube-points').toDataURL()"
    page.wait_for_function(f"({plot})().length > 3000")
    before = page.evaluate(plot)
    cube.focus()
    page.keyboard.press("ArrowLeft")
    page.wait_for_function("before => document.querySelector('.cube-points').toDataURL() !== before", arg=before)
    keep(page, "report-cube")
    table = saved(page, page.locator("[data-chart=page-scatter]").get_by_role("button", name="CSV").click).decode()
    rows = list(csv.DictReader(io.StringIO(table)))
    assert {row["directory"] for row in rows} >= {"/", "/wild/", "/calm/"}
    page.get_by_role("button", name="Show flat").click()
    assert page.locator(".scatter-flat").is_visible()


def test_colours_follow_the_theme_and_a_phone_has_no_sideways_scroll(open_page, report):
    page = open_page(phone=True, dark=True)
    go(page, report)
    colour = f"({HANDLE})('site-graph').then(({{ sigma }}) => sigma.getNodeDisplayData('p0').color)"
    dark = page.evaluate(colour)
    page.locator("[data-theme-switch]").first.click()
    page.wait_for_function(f"dark => {colour}.then(light => light !== dark)", arg=dark)
    assert page.evaluate("document.documentElement.scrollWidth <= innerWidth")


def test_the_data_of_a_graph_may_come_from_the_server(page, pages, tmp_path):
    """As the dashboard has it: the figure names an address, and nothing to draw is told in words."""
    section = Section(
        "A", "a", [], [Figure("site-graph", "Graph", site_graph.KIND, {"src": "http://graph.test/data.json"})]
    )
    text = report_html(ReportPage("A", "About", NOW, "1", [section]), EXTRAS)
    text = text.replace("default-src &#39;none&#39;", "default-src &#39;none&#39;; connect-src &#39;self&#39;")
    answers = [json_text(graph_data(pages)), json.dumps({"parent": []}), "no JSON"]
    page.route("http://graph.test/", lambda route: route.fulfill(body=text, content_type="text/html"))
    page.route("**/data.json", lambda route: route.fulfill(body=answers.pop(0), content_type="application/json"))
    go(page, "http://graph.test/")
    assert nodes(page) > 10
    page.reload()
    page.get_by_text("There is no page to draw yet.").wait_for()
    page.reload()
    page.get_by_text("could not be read").wait_for()
