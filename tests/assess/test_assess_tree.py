"""The spanning tree, its folded form against a recursive one, and sub-sites against plain search."""

import sys

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.optimize import linear_sum_assignment

from recrawl.assess.site_structure import (
    ROOT,
    ChangeClass,
    ExpectedByObservation,
    capture_coherence,
    change_together,
    collapse,
    joined_sections,
    propose,
    spanning_tree,
)

SAME = ChangeClass.UNCHANGED


@st.composite
def forests(draw):
    size = draw(st.integers(1, 14))
    order = draw(st.permutations(range(size)))
    parent = np.full(size, ROOT)
    for place in range(1, size):
        above = draw(st.integers(-1, place - 1))
        parent[order[place]] = ROOT if above < 0 else order[above]
    classes = draw(st.lists(st.sampled_from([SAME, SAME, SAME, *ChangeClass]), min_size=size, max_size=size))
    return parent, np.array(classes)


def naive(parent, change):
    """Algorithms 7 and 8 as corrected, written as they are told: from every root down."""
    children = {node: [child for child in range(len(parent)) if parent[child] == node] for node in range(len(parent))}

    def foldable(node):
        return change[node] == SAME and all(foldable(child) for child in children[node])

    def size(node):
        return 1 + sum(size(child) for child in children[node])

    drawn, folded, edges = set(), {}, set()

    def draw(node):
        drawn.add(node)
        hidden = sum(size(child) for child in children[node] if foldable(child))
        if hidden:
            folded[node] = hidden
        for child in children[node]:
            if not foldable(child):
                edges.add((node, child))
                draw(child)

    for root in np.flatnonzero(parent == ROOT).tolist():
        draw(root)
    return drawn, folded, edges


@given(forests())
@settings(max_examples=50, deadline=None)
def test_folding_is_what_the_corrected_algorithms_say(forest):
    parent, change = forest
    tree = collapse(parent, change)
    drawn, folded, edges = naive(parent, change)
    assert set(tree.nodes().tolist()) == drawn
    assert {node: int(tree.folded[node]) for node in np.flatnonzero(tree.folded).tolist()} == folded
    assert set(zip(*(side.tolist() for side in tree.edges(parent)), strict=True)) == edges
    assert len(drawn) + sum(folded.values()) == len(parent)


def test_a_chain_of_sixty_thousand_pages_is_folded():
    size = 60_000
    assert size > sys.getrecursionlimit()
    parent = np.arange(size) - 1
    change = np.full(size, SAME)
    change[size // 2] = ChangeClass.CONTENT
    tree = collapse(parent, change)
    assert len(tree.nodes()) == size // 2 + 1
    assert tree.folded[size // 2] == size - size // 2 - 1


def test_parents_in_a_circle_are_refused():
    with pytest.raises(ValueError, match="circle"):
        collapse(np.array([1, 0, ROOT]), np.full(3, SAME))


@given(
    st.lists(
        st.tuples(
            st.sampled_from(["org,a)/", "org,a)/x", "org,a)/x/y", "org,b)/", "org,b)/z?q=1", "org,b)/z"]),
            st.integers(0, 3),
        ),
        min_size=1,
        max_size=12,
    ),
    st.lists(st.tuples(st.integers(0, 11), st.integers(0, 11)), max_size=20),
)
@settings(max_examples=50, deadline=None)
def test_a_spanning_tree_has_one_root_a_host_and_no_circle(pages, links):
    keys = [key for key, _ in pages]
    seen = np.array([float(time) for _, time in pages])
    inside = [(a, b) for a, b in links if a < len(keys) and b < len(keys)]
    source, target = (np.array([link[side] for link in inside], dtype=np.int64) for side in (0, 1))
    parent = spanning_tree(keys, seen, source, target)
    assert (seen[parent[parent != ROOT]] <= seen[parent != ROOT]).all()
    collapse(parent, np.full(len(keys), SAME))  # refuses circles
    roots = [keys[node].partition(")")[0] for node in np.flatnonzero(parent == ROOT)]
    assert len(roots) == len(set(roots))


def test_links_come_before_paths_and_paths_before_hosts():
    keys = ["org,a)/", "org,a)/x", "org,a)/x/1", "org,a)/x/2", "org,a)/y/3", "org,a)/y/3?page=2"]
    seen = np.arange(6.0)
    parent = spanning_tree(keys, seen, np.array([2, 5, 0]), np.array([3, 2, 3]))
    assert parent.tolist() == [ROOT, 0, 1, 0, 0, 4]  # of 2 and 0, which link to 3, 0 came first; 5 came after 2


def test_what_is_on_record_comes_before_links_unless_it_was_captured_later():
    keys = ["org,a)/", "org,a)/x", "org,a)/x/1", "org,a)/y"]
    via = np.array([3, 0, 0, 2])
    parent = spanning_tree(keys, np.arange(4.0), np.array([1]), np.array([2]), via)
    assert parent.tolist() == [ROOT, 0, 0, 2]


@given(st.lists(st.floats(0.0, 3.0), min_size=1, max_size=40), st.floats(0.01, 2.0))
@settings(max_examples=60, deadline=None)
def test_the_coherence_of_a_capture_is_close_to_the_best_number_of_hopeless_pages(rate, delay):
    hot = np.sort(np.array(rate))[::-1]
    pages = len(hot)
    best = 0.0
    for hopeless in range(pages):
        length = np.empty(pages)
        length[0] = 0.0
        length[1 : hopeless + 1] = 2 * delay * (pages - np.arange(1, hopeless + 1))
        length[hopeless + 1 :] = 2 * delay * np.arange(1, pages - hopeless)
        best = max(best, np.exp(-hot * length).sum())
    found = capture_coherence(np.array(rate), delay)
    assert found <= best + 1e-9
    assert found >= 0.97 * best
    length = 2 * delay * np.arange(pages)
    chance = np.exp(-hot[:, None] * length)
    exact = chance[linear_sum_assignment(chance, maximize=True)].sum()  # of all nested captures
    assert 0.97 * exact <= found <= exact + 1e-9


def test_sections_that_change_together_are_proposed_as_one():
    section = np.repeat([0, 1, 2, 3], 10)
    rate = np.where(section < 2, 0.05, 0.0001)
    together = [(page, period) for page in range(20) for period in range(0, 20, 3)]
    apart = [(page, period) for page in range(20, 30) for period in range(1, 20, 3)]
    changed, period = np.array(together + apart).T
    alike = change_together(section, 4, changed, period)
    assert alike[0, 1] == pytest.approx(1.0)
    assert alike[0, 2] < 0
    assert alike[3].tolist() == [0.0, 0.0, 0.0, 0.0]  # never changed: like nothing
    part_of = joined_sections(section, changed, period)
    assert part_of.tolist() == [0, 0, 2, 3]
    found = propose(section, rate, 1.0, part_of)
    assert [0, 1] in [members.tolist() for members in found.members]
    assert (np.diff(found.gain()) <= 1e-9).all()
    assert (found.gain() >= -1e-9).all()
    hot = next(place for place, members in enumerate(found.members) if members.tolist() == [0, 1])
    assert found.pages[hot] == 20
    assert found.lasts()[hot] == 38.0
    assert found.alone[hot] == pytest.approx(capture_coherence(rate[:20], 1.0))
    assert found.whole == pytest.approx(capture_coherence(rate, 1.0))


def test_sections_left_alone_for_long_do_not_change_together_by_that():
    rng = np.random.default_rng(3)
    section, rate = np.repeat([0, 1], 12), 1.0
    gap = np.where(np.arange(80) % 2, 0.5, 50.0)  # two looks a night, and a long time until the next night
    looked, period = np.divmod(np.arange(24 * 80), 80)
    changed = rng.random(len(looked)) < -np.expm1(-rate * gap[period])
    seen = looked[changed], period[changed]
    foreseen = ExpectedByObservation(looked, period, rate * gap[period])
    assert joined_sections(section, *seen).tolist() == [0, 0]
    assert joined_sections(section, *seen, foreseen).tolist() == [0, 1]
    assert abs(change_together(section, 2, *seen, foreseen)[0, 1]) < 0.3
    # Those that really do are still found: in some nights all of the second section follows the first.
    follows = (period % 4 == 1) & (looked % 12 < 9)
    together = changed & (period % 2 == 0) | follows
    assert joined_sections(section, looked[together], period[together], foreseen).tolist() == [0, 0]


def test_a_site_of_one_section_has_no_sub_sites():
    assert len(propose(np.zeros(30, np.int64), np.full(30, 0.1), 1.0)) == 0
    assert len(propose(np.arange(30), np.full(30, 0.1), 1.0)) == 0  # all too small
    assert capture_coherence(np.empty(0), 1.0) == 0.0


def test_a_site_of_very_many_sections_is_compared_where_most_changes_are():
    sections, pages = 20_000, 40_000
    section = np.concatenate([np.arange(pages - 30) % (sections - 3), np.repeat(sections - 3 + np.arange(3), 10)])
    small = np.arange(2_000)  # sections of two pages, which change together all the time
    large = np.arange(pages - 30, pages - 10)  # two sections of ten
    changed = np.concatenate([small, small, large, large])
    period = np.repeat([1, 3, 2, 5], [len(small), len(small), len(large), len(large)])
    part_of = joined_sections(section, changed, period)
    assert part_of[-3:].tolist() == [sections - 3, sections - 3, sections - 1]
    assert (part_of[: sections - 3] == np.arange(sections - 3)).all()  # too small to be compared
    assert len(propose(section, np.full(pages, 1e-4), 1.0, part_of)) == 2


def test_of_very_many_sections_and_parts_only_those_that_change_most_are_looked_at():
    section = np.repeat(np.arange(300), 5)
    changed = np.flatnonzero(section < 5)
    period = np.where(section[changed] < 3, 1, 2)
    changed, period = np.append(changed, changed), np.append(period, period + 3)
    assert joined_sections(section, changed, period)[:5].tolist() == [0, 0, 0, 3, 3]
    assert joined_sections(section, changed, period, most=2)[:5].tolist() == [0, 0, 2, 3, 4]
    rate = np.where(section >= 250, 0.1, 0.001)
    found = propose(section, rate, 1.0)
    assert sorted(members.item() for members in found.members) == list(range(250, 300))
