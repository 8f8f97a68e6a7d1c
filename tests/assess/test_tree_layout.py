"""Circles do not overlap, trees have no pages on top of each other, and folded pages stay in their discs."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.spatial import cKDTree

from recrawl.assess.graph_layout.circle_packing import around, pack
from recrawl.assess.graph_layout.spanning_tree import ROOT, ChangeClass, collapse, unfolded
from recrawl.assess.graph_layout.tree_layout import tree_layout, tree_order

SAME = ChangeClass.UNCHANGED
NEAREST = 0.85
"""No two pages are nearer to each other than this, in distances of pages."""


def overlap(x, y, radius):
    """By how much the two circles overlap that do most."""
    x, y, radius = (np.asarray(one, float) for one in (x, y, radius))
    gap = np.hypot(x[:, None] - x, y[:, None] - y) - radius[:, None] - radius
    np.fill_diagonal(gap, np.inf)
    return -gap.min(initial=np.inf)


def random_tree(pages, rng, changed=0.05, hub=0.1):
    """A tree like those of sites: few pages have most links."""
    parent, hubs = np.full(pages, ROOT), [0]
    for page in range(1, pages):
        parent[page] = hubs[int(len(hubs) * rng.random() ** 2)]
        if rng.random() < hub:
            hubs.append(page)
    change = np.where(rng.random(pages) < changed, rng.integers(2, 6, pages), SAME)
    return parent, change


@st.composite
def forests(draw):
    size = draw(st.integers(1, 40))
    parent = np.array([draw(st.integers(-1, page - 1)) for page in range(size)])
    change = draw(st.lists(st.sampled_from([SAME, SAME, *ChangeClass]), min_size=size, max_size=size))
    return parent, np.array(change)


@given(st.lists(st.floats(0.1, 50.0), min_size=1, max_size=60))
def test_packed_circles_do_not_overlap_and_lie_close(radius):
    x, y = pack(radius)
    assert overlap(x, y, radius) <= 1e-6
    *_, whole = around(np.array(x), np.array(y), np.array(radius))
    assert whole <= sum(radius) * 1.02  # never worse than in a row


@given(st.lists(st.floats(0.1, 5.0), min_size=1, max_size=20), st.integers(0, 9))
def test_the_circle_around_holds_all(radius, seed):
    rng = np.random.default_rng(seed)
    x, y = rng.normal(size=(2, len(radius))) * 10
    across, up, whole = around(x, y, np.array(radius))
    out = np.hypot(x - across, y - up) + radius
    assert out.max() <= whole + 1e-9
    widest = (np.hypot(x[:, None] - x, y[:, None] - y) + np.add.outer(radius, radius)).max()
    assert whole <= 1.1 * widest / np.sqrt(3)  # Jung's bound, and a little


def test_very_many_circles_are_packed_in_bundles():
    radius = np.random.default_rng(1).pareto(2.0, 1500) + 0.5
    x, y = (np.array(side) for side in pack(radius.tolist()))
    near = cKDTree(np.c_[x, y]).query_pairs(2 * float(np.quantile(radius, 0.9)), output_type="ndarray")
    gap = np.hypot(*(side[near[:, 0]] - side[near[:, 1]] for side in (x, y))) - radius[near].sum(axis=1)
    assert gap.min() >= -1e-6
    *_, whole = around(x, y, radius)
    assert (radius**2).sum() / whole**2 > 0.45


@given(forests())
def test_a_walk_has_every_subtree_in_one_piece(forest):
    parent, _ = forest
    walk = tree_order(parent)
    place = np.empty(len(parent), int)
    place[walk.order] = np.arange(len(parent))
    for page, up in enumerate(parent.tolist()):
        assert walk.depth[page] == (0 if up == ROOT else walk.depth[up] + 1)
        if up != ROOT:
            assert place[up] < place[page] < place[up] + walk.size[up]
    assert walk.size[parent == ROOT].sum() == len(parent)


def test_a_walk_of_a_circle_is_refused_and_a_chain_may_be_long():
    with pytest.raises(ValueError, match="circle"):
        tree_order(np.array([1, 0]))
    assert tree_order(np.arange(-1, 20_000)).depth[-1] == 20_000


@given(forests())
@settings(max_examples=150)
def test_nothing_lies_on_top_of_anything(forest):
    parent, change = forest
    tree = collapse(parent, change)
    layout = tree_layout(parent, tree)
    x, y = layout.x, layout.y
    assert np.isfinite(x).all()
    assert np.isfinite(y).all()
    apart = np.hypot(x[:, None] - x, y[:, None] - y)
    np.fill_diagonal(apart, np.inf)
    assert apart.min(initial=np.inf) > NEAREST
    discs = np.flatnonzero(tree.folded)
    assert overlap(layout.disc_x[discs], layout.disc_y[discs], layout.disc_radius[discs]) <= 1e-6
    above = parent.copy()
    for page in np.flatnonzero(~tree.drawn):  # parents come first here
        above[page] = parent[page] if tree.drawn[parent[page]] else above[parent[page]]
    for disc in discs:
        away = np.hypot(x - layout.disc_x[disc], y - layout.disc_y[disc])
        inside = ~tree.drawn & (above == disc)
        assert inside.sum() == tree.folded[disc]
        assert (away[inside] < layout.disc_radius[disc]).all()
        assert (away[~inside] > layout.disc_radius[disc]).all()
    assert (np.hypot(x, y) <= layout.radius + 1e-6).all()


def test_a_large_site_has_room_for_every_page_and_is_laid_out_the_same_again():
    parent, change = random_tree(8000, np.random.default_rng(2))
    for tree in (collapse(parent, change), unfolded(8000)):
        layout, again = tree_layout(parent, tree), tree_layout(parent, tree)
        assert layout.x.tobytes() == again.x.tobytes()
        places = np.c_[layout.x, layout.y]
        assert cKDTree(places).query(places, k=2)[0][:, 1].min() > NEAREST


@pytest.mark.parametrize("shape", ["chain", "comb", "pairs"])
def test_a_part_that_would_be_nearly_empty_is_one_flower(shape):
    """However deep a tree is, its picture is not much wider than its pages need."""
    pages = 3000
    parent = np.arange(-1, pages - 1)
    if shape == "comb":  # every page of a chain has another below it
        parent[pages // 2 :] = np.arange(pages // 2)
    if shape == "pairs":
        parent = (np.arange(pages) - 1) // 2
        parent[0] = ROOT
    change = np.full(pages, ChangeClass.UNSEEN)
    change[-4:] = SAME  # something is folded, so not all can be one flower
    for tree in (unfolded(pages), collapse(parent, change)):
        layout = tree_layout(parent, tree)
        places = np.c_[layout.x, layout.y]
        assert np.isfinite(places).all()
        assert cKDTree(places).query(places, k=2)[0][:, 1].min() > NEAREST
    assert tree_layout(parent, unfolded(pages)).radius < 12 * np.sqrt(pages)


def test_pages_of_a_directory_lie_together_in_their_disc():
    """Neighbours by address are near each other in a disc, far nearer than any two pages of it are."""
    pages = 2000
    parent = np.full(pages + 1, 0)
    parent[0] = ROOT
    layout = tree_layout(parent, collapse(parent, np.full(pages + 1, SAME)))
    step = np.hypot(np.diff(layout.x[1:]), np.diff(layout.y[1:]))
    assert np.median(step) < 0.1 * layout.disc_radius[0]


def test_an_empty_tree_has_no_places():
    nothing = np.empty(0, np.int64)
    layout = tree_layout(nothing, unfolded(0))
    assert len(layout.x) == 0
    assert layout.radius == 0.0
