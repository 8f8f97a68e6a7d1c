"""Places of the pages of a site graph: none on top of another, folded pages in their discs, always the same."""

import numpy as np
import pytest
from scipy.spatial import cKDTree

from recrawl.assess.site_structure import ROOT, ChangeClass, collapse, unfolded
from recrawl.web.html_templates import asset

SAME = ChangeClass.UNCHANGED
NEAREST = 0.85
"""No two pages are nearer to each other than this, in distances of pages."""
LAID_OUT = """trees => trees.map(({ parent, drawn }) => {
    const count = parent.length;
    const all = Array.from({ length: count }, (_one, page) => page);
    const url = { shared: all.map(() => 0), rest: all.map(String) };
    const pages = { id: all, url, change: all.map(() => 1) };
    const holders = [...new Set(parent.filter((up, page) => !drawn[page] && drawn[up]))];
    const folded = { page: holders, pages: holders.map(() => 0) };
    const tree = recrawl.site.readTree({ pages, parent, drawn, folded });
    const discs = [...tree.disc].map(([page, { x, y, radius }]) => [page, x, y, radius, tree.foldedInto(page)]);
    return { x: tree.x, y: tree.y, radius: tree.radius, discs };
})"""


def lay_out(page, *trees):
    """The places of trees, as the report computes them."""
    page.goto("about:blank")
    page.evaluate("window.recrawl = {}")
    for name in ("vendor/d3-hierarchy.min.js", "graph_data.js", "graph_layout.js"):
        page.add_script_tag(content=asset(name))
    return page.evaluate(
        LAID_OUT, [{"parent": parent.tolist(), "drawn": tree.drawn.astype(int).tolist()} for parent, tree in trees]
    )


def places_of(layout):
    return np.c_[layout["x"], layout["y"]].astype(float).reshape(-1, 2)


def nearest(places):
    """The distance of the two pages that are nearest to each other."""
    return cKDTree(places).query(places, k=2)[0][:, 1].min() if len(places) > 1 else np.inf


def random_tree(pages, rng, changed=0.05, hub=0.1):
    """A tree like those of sites: few pages have most links."""
    parent, hubs = np.full(pages, ROOT), [0]
    for one in range(1, pages):
        parent[one] = hubs[int(len(hubs) * rng.random() ** 2)]
        if rng.random() < hub:
            hubs.append(one)
    change = np.where(rng.random(pages) < changed, rng.integers(2, 6, pages), SAME)
    return parent, change


def random_forest(rng):
    size = int(rng.integers(1, 41))
    parent = np.array([int(rng.integers(-1, page)) if page else ROOT for page in range(size)])
    return parent, rng.choice([SAME, SAME, *ChangeClass], size)


def test_nothing_lies_on_top_of_anything(page):
    rng = np.random.default_rng(3)
    forests = [random_forest(rng) for _ in range(150)]
    trees = [(parent, collapse(parent, change)) for parent, change in forests]
    for (_, tree), layout in zip(trees, lay_out(page, *trees), strict=True):
        places = places_of(layout)
        assert np.isfinite(places).all()
        assert nearest(places) > NEAREST
        assert (np.hypot(*places.T) <= layout["radius"] + 1e-6).all()
        assert sorted(holder for holder, *_ in layout["discs"]) == np.flatnonzero(tree.folded).tolist()
        for number, (holder, x, y, radius, folded) in enumerate(layout["discs"]):
            assert len(folded) == tree.folded[holder]
            away = np.hypot(places[:, 0] - x, places[:, 1] - y)
            inside = np.isin(np.arange(len(places)), folded)
            assert (away[inside] < radius).all()
            assert (away[~inside] > radius).all()
            for _, other_x, other_y, other, _ in layout["discs"][:number]:
                assert np.hypot(x - other_x, y - other_y) >= radius + other


def test_a_large_site_has_room_for_every_page_and_is_laid_out_the_same_again(page):
    parent, change = random_tree(8000, np.random.default_rng(2))
    for tree in (collapse(parent, change), unfolded(8000)):
        layout, again = lay_out(page, (parent, tree), (parent, tree))
        assert layout == again
        assert nearest(places_of(layout)) > NEAREST


def test_a_disc_of_four_times_as_many_pages_is_about_twice_as_wide(page):
    trees = []
    for folded in (100, 400):
        parent = np.zeros(folded + 1, int)
        parent[0] = ROOT
        trees.append((parent, collapse(parent, np.full(folded + 1, SAME))))
    small, large = (layout["discs"][0][3] for layout in lay_out(page, *trees))
    assert large / small == pytest.approx(2.0, rel=0.05)


@pytest.mark.parametrize("shape", ["chain", "comb", "pairs"])
def test_a_part_that_would_be_nearly_empty_is_one_flower(page, shape):
    """However deep a tree is, its picture is not much wider than its pages need."""
    pages = 3000
    parent = np.arange(-1, pages - 1)
    if shape == "comb":  # every page of a chain has another below it
        parent[pages // 2 :] = np.arange(pages // 2)
    if shape == "pairs":
        parent = (np.arange(pages) - 1) // 2
        parent[0] = ROOT
    change = np.full(pages, ChangeClass.UNSEEN)
    change[-4:] = SAME
    for layout in lay_out(page, (parent, unfolded(pages)), (parent, collapse(parent, change))):
        assert nearest(places_of(layout)) > NEAREST
        assert layout["radius"] < 12 * np.sqrt(pages)


def test_pages_of_a_directory_lie_together_in_their_disc(page):
    """Neighbours by address are near each other in a disc, far nearer than any two pages of it are."""
    pages = 2000
    parent = np.zeros(pages + 1, int)
    parent[0] = ROOT
    [layout] = lay_out(page, (parent, collapse(parent, np.full(pages + 1, SAME))))
    step = np.hypot(*np.diff(places_of(layout)[1:], axis=0).T)
    assert np.median(step) < 0.1 * layout["discs"][0][3]


def test_a_tree_of_100_000_pages_is_laid_out_folded_or_not_and_a_chain_may_be_long(page):
    parent, change = random_tree(100_000, np.random.default_rng(4))
    chain = np.arange(-1, 29_999)
    trees = [(parent, collapse(parent, change)), (parent, unfolded(100_000)), (chain, unfolded(30_000))]
    for layout in lay_out(page, *trees):
        assert nearest(places_of(layout)) > NEAREST


def test_an_empty_tree_has_no_places(page):
    [layout] = lay_out(page, (np.empty(0, int), unfolded(0)))
    assert layout == {"x": [], "y": [], "radius": 0, "discs": []}
