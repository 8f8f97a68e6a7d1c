"""The structure of a site: its spanning tree, and its sub-sites.

*Spanning tree*: the tree in which a crawler found the pages, as far as it is on record or can be told from outside. The
parent of a page is the page on which the crawler found it, where that is on record. Else it is the page that was
captured first of those that link to it and were captured before it. Where no link is known, it is the page of the
nearest directory above, else the first page of the host. Parents are always earlier in the order of capture, so there
are no circles.

Unchanged parts of the tree are folded away, so that changes can be seen (SHARC 8.5). A page is *folded* if it and
everything below it is unchanged; its nearest page that is drawn then shows how many pages are folded into it. So
changed pages and the way to them remain (SHARC Algorithms 7 and 8, reading 003.41). A page that was not seen again is
not known to be unchanged: it is drawn.

*Sub-sites* are parts of a site that change together and are better captured separately. In a visit–revisit capture,
changing pages compete for the short intervals between visit and revisit: there is one of each length. Two captures have
two of each. So a part gains by a separate capture if both it and the rest have changing pages. A part that never
changes gains nothing: its pages take the long intervals without loss.

Separately captured parts are not coherent with each other, so a cut should separate what readers rarely use together.
Candidates are therefore sections of the site (by path), joined if they change together. The gain of each part is shown
beside the usual gain: that of as many pages taken evenly over all rates.
"""

from __future__ import annotations

import enum
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from scipy import sparse

from recrawl.assess.blur_coherence import total
from recrawl.model import AnyArray, BoolArray, FloatArray, IntArray

ROOT = -1
"""The parent of a page that has none."""


class ChangeClass(enum.IntEnum):
    """What became of a page from one capture to the next."""

    UNSEEN = 0
    """Nobody looked again, or no detector could compare."""
    UNCHANGED = 1
    CONTENT = 2
    """Its content changed, its links did not."""
    LINKS = 3
    """Its links changed."""
    MISSING = 4
    """It is gone."""
    NEW = 5
    """It was not in the capture before."""

    @property
    def colour(self) -> str:
        """As the thesis draws it; blue and grey for what it does not draw."""
        return _COLOURS[self]


_COLOURS = {
    ChangeClass.UNSEEN: "grey",
    ChangeClass.UNCHANGED: "green",
    ChangeClass.CONTENT: "yellow",
    ChangeClass.LINKS: "red",
    ChangeClass.MISSING: "black",
    ChangeClass.NEW: "blue",
}


@dataclass(frozen=True, slots=True)
class CollapsedTree:
    """Which nodes of a tree are drawn, and how much is folded into each."""

    drawn: BoolArray
    folded: IntArray
    """Nodes folded into a leaf below each drawn one; 0 where there are none, and for nodes that are not drawn."""

    def nodes(self) -> IntArray:
        """The nodes that are drawn, ascending."""
        return np.flatnonzero(self.drawn)

    def edges(self, parent: IntArray) -> tuple[IntArray, IntArray]:
        """Parents and children among the nodes that are drawn, by child."""
        child = np.flatnonzero(self.drawn & (parent != ROOT))
        return parent[child], child


def unfolded(nodes: int) -> CollapsedTree:
    """A tree of N nodes of which nothing is folded."""
    return CollapsedTree(np.ones(nodes, np.bool_), np.zeros(nodes, np.int64))


def collapse(parent: IntArray, change: AnyArray) -> CollapsedTree:
    """Fold the unchanged parts of a forest; ``change`` has a :class:`ChangeClass` for each node.

    Roots (``parent`` is ``ROOT``) are always drawn. The forest may be as deep as it has nodes. O(n) steps of Python.

    Raises:
        ValueError: the parents go round in a circle.

    >>> same, link = ChangeClass.UNCHANGED, ChangeClass.LINKS
    >>> tree = collapse(np.array([-1, 0, 1, 0, 2, 2]), np.array([same, link, same, same, same, same]))
    >>> tree.nodes().tolist(), tree.folded.tolist()
    ([0, 1], [1, 3, 0, 0, 0, 0])
    """
    above = parent.tolist()
    order = _parents_first(above)
    kept = (np.asarray(change) != ChangeClass.UNCHANGED).tolist()
    below = [0] * len(above)  # nodes folded into each, itself not counted
    for node in reversed(order):
        up = above[node]
        if up == ROOT:
            kept[node] = True
        elif kept[node]:
            kept[up] = True
        else:
            below[up] += below[node] + 1
    drawn = np.array(kept, np.bool_)
    return CollapsedTree(drawn, np.where(drawn, np.array(below, np.int64), 0))


def _parents_first(above: list[int]) -> list[int]:
    """The nodes in an order in which each comes after its parent."""
    children: list[list[int]] = [[] for _ in above]
    order: list[int] = []
    for node, up in enumerate(above):
        (order if up == ROOT else children[up]).append(node)
    for node in order:  # grows while it is read
        order.extend(children[node])
    if len(order) < len(above):
        msg = "the parents of some nodes go round in a circle"
        raise ValueError(msg)
    return order


def spanning_tree(
    keys: Sequence[str], seen: FloatArray, source: IntArray, target: IntArray, via: IntArray | None = None
) -> IntArray:
    """The parent of each page, or ``ROOT``. O(n log n) and a step of Python for each page without a link.

    ``keys`` are SURTs, ``seen`` says when each was first captured, and links go from page ``source[i]`` to
    ``target[i]``, all as positions in ``keys``. Of pages captured at one instant the less deep one is first. ``via``
    is the page each was found on, ``ROOT`` where that is not on record.

    >>> keys = ["org,a)/", "org,a)/x", "org,a)/x/1", "org,a)/x/2"]
    >>> spanning_tree(keys, np.array([0.0, 1.0, 2.0, 3.0]), np.array([2]), np.array([3])).tolist()
    [-1, 0, 1, 2]
    """
    pages = len(keys)
    depth = np.fromiter((key.count("/") for key in keys), np.int64, pages)
    order = np.lexsort((depth, seen))
    rank = np.empty(pages, np.int64)
    rank[order] = np.arange(pages)
    earlier = rank[source] < rank[target]
    best = np.full(pages, pages)
    np.minimum.at(best, target[earlier], rank[source[earlier]])
    parent = np.where(best < pages, np.append(order, ROOT)[np.minimum(best, pages)], ROOT)
    if via is not None:
        parent = np.where((via != ROOT) & (rank[via] < rank), via, parent)
    _by_path(keys, order.tolist(), parent)
    return parent


def _by_path(keys: Sequence[str], order: list[int], parent: IntArray) -> None:
    """Give a parent to pages that have none, if their path or host has one."""
    known: dict[str, int] = {}
    first: dict[str, int] = {}
    for page in order:
        key = keys[page]
        host = key.partition(")")[0]
        if parent[page] == ROOT and host in first:
            parent[page] = next((known[above] for above in _above(key) if above in known), first[host])
        known.setdefault(key, page)
        first.setdefault(host, page)


def _above(key: str) -> list[str]:
    """The keys of the directories above, nearest first."""
    host, _, rest = key.partition(")")
    path, mark, _ = rest.partition("?")
    parts = path.strip("/").split("/")
    if not mark:
        parts = parts[:-1]
    return [f"{host})/{'/'.join(parts[:length])}" for length in range(len(parts), -1, -1)]


TOGETHER = 0.5
"""Correlation of changes above which sections are one part."""
FEWEST = 5
"""Pages below which a section is too small to be compared or captured by itself."""
COMPARED = 500
"""Sections that are compared with each other, those with most changes."""
MOST_PARTS = 50
"""Maximum number of parts that are shown."""
_PAGES_TRIED = 5_000_000
_ROUNDING = 1e-9
_COARSE = 24
_FINE = 8


@dataclass(frozen=True, slots=True)
class SubSites:
    """Parts of a site, best gain first. Coherence is the expected number of coherent pages."""

    members: tuple[IntArray, ...]
    """The sections each part is made of."""
    pages: IntArray
    alone: FloatArray
    """Expected coherence of a capture of the part alone …"""
    rest: FloatArray
    """… and of a capture of all the rest."""
    whole: float
    """Expected coherence of one capture of everything."""
    usual: FloatArray
    """Gain of as many pages spread evenly over all rates."""
    delay: float
    """Seconds between two downloads."""

    def __len__(self) -> int:
        return len(self.pages)

    def gain(self) -> FloatArray:
        """Coherent pages more, in expectation, by capturing the part and the rest one after the other."""
        return np.asarray(self.alone + self.rest - self.whole)

    def lasts(self) -> FloatArray:
        """Seconds that a capture of each part takes, visits and revisits."""
        return np.maximum(2 * self.pages - 2, 0) * self.delay


def capture_coherence(rate: FloatArray, delay: float) -> float:
    """Expected number of coherent pages of a visit–revisit capture with nested intervals of 0, 2, 4, … delays.

    The hottest page has no interval at all, the next ``h`` are hopeless and take the longest, and the others follow by
    falling rate. The best ``h`` is searched coarsely, then finely, so that this is a lower bound of the best capture,
    by a percent at most on all sites tried. O(n log n), some fifty passes.

    Pages count alike here. Where they have weights no one order is right for all lengths, and two bounds that may each
    be far from the best are no good for telling which is more.

    >>> round(capture_coherence(np.array([0.4, 0.35, 0.3, 0.25, 0.2]), 1.0), 4)
    2.282
    """
    return _coherence(np.sort(rate)[::-1], delay)


def _coherence(hot: FloatArray, delay: float) -> float:
    """The same for rates from the highest to the lowest, so that who asks about many parts sorts once."""
    pages = len(hot)
    if not pages:
        return 0.0

    def expected(hopeless: int) -> float:
        slot = np.arange(pages) - hopeless
        slot[0] = 0
        slot[1 : hopeless + 1] = pages - np.arange(1, hopeless + 1)
        return total(np.exp(-hot * (2.0 * delay) * slot))

    grid = np.unique(np.round(np.geomspace(1, pages, _COARSE)).astype(np.int64)) - 1
    while True:
        values = [expected(int(hopeless)) for hopeless in grid]
        best = int(np.argmax(values))
        low, high = int(grid[max(best - 1, 0)]), int(grid[min(best + 1, len(grid) - 1)])
        finer = np.unique(np.round(np.linspace(low, high, _FINE)).astype(np.int64))
        if len(finer) == high - low + 1:
            return max(*values, *(expected(int(hopeless)) for hopeless in finer))
        grid = finer


@dataclass(frozen=True, slots=True)
class ExpectedByObservation:
    """How many changes were to be expected, observation by observation.

    Where observations are uneven, long gaps show changes everywhere.
    """

    page: IntArray
    period: IntArray
    changes: FloatArray
    """Rate of the page times the time since it was last observed."""


def change_together(
    section: IntArray, sections: int, changed: IntArray, period: IntArray, foreseen: ExpectedByObservation | None = None
) -> FloatArray:
    """How alike sections change: the correlation of the shares of their pages that change in each period.

    ``section`` is that of each page; page ``changed[i]`` changed in ``period[i]``. Periods without any change are
    ignored. With ``foreseen``, the expected share is subtracted before sections are compared: sections do
    not change together because all of them were left alone for long. 0 for a section that never changes, or always
    alike. O(changes log changes + sections·changes), and memory for sections²: :func:`joined_sections` asks about few.

    >>> alike = change_together(np.array([0, 1, 2]), 3, np.array([0, 1, 0, 1, 2]), np.array([1, 1, 5, 5, 7]))
    >>> alike.round(2).tolist()
    [[1.0, 1.0, -1.0], [1.0, 1.0, -1.0], [-1.0, -1.0, 1.0]]
    """
    distinct, column = np.unique(period, return_inverse=True)
    return _correlation(section, sections, changed, column, _expected(foreseen, distinct, len(section)))


def _expected(foreseen: ExpectedByObservation | None, periods: IntArray, pages: int) -> sparse.csr_array:
    """The probability that each page is found changed in each of these periods; empty without expectations."""
    shape = (pages, len(periods))
    if foreseen is None:
        return sparse.csr_array(shape)
    column = np.minimum(np.searchsorted(periods, foreseen.period), max(len(periods) - 1, 0))
    known = np.flatnonzero(periods[column] == foreseen.period) if len(periods) else np.empty(0, np.int64)
    chance = sparse.csr_array((foreseen.changes[known], (foreseen.page[known], column[known])), shape=shape)
    chance.sum_duplicates()
    chance.data = -np.expm1(-chance.data)
    return chance


def _correlation(
    section: IntArray, sections: int, changed: IntArray, column: IntArray, expected: sparse.csr_array
) -> FloatArray:
    """The same for periods 0, 1, …, of which some may be without a change in these sections."""
    if not len(changed):
        return np.zeros((sections, sections))
    pages, periods = expected.shape
    once = np.unique(np.stack([changed, column]), axis=1)
    news = sparse.csr_array((np.ones(once.shape[1]), (once[0], once[1])), shape=expected.shape) - expected
    size = np.maximum(np.bincount(section, minlength=sections), 1)
    share = sparse.csr_array((1.0 / size[section], (section, np.arange(pages))), shape=(sections, pages)) @ news
    mean = share.sum(axis=1) / periods
    product = (share @ share.T).toarray()
    spread = product - periods * np.outer(mean, mean)
    square = np.diagonal(spread)
    varies = square > _ROUNDING * np.diagonal(product)
    length = np.sqrt(np.where(varies, square, 1.0))
    return np.where(np.outer(varies, varies), spread / np.outer(length, length), 0.0)


def joined_sections(  # noqa: PLR0913 - what changed when, and who is compared
    section: IntArray,
    changed: IntArray,
    period: IntArray,
    foreseen: ExpectedByObservation | None = None,
    *,
    fewest: int = FEWEST,
    most: int = COMPARED,
) -> IntArray:
    """The part each section belongs to, named by its least section: those that change together are one.

    ``foreseen`` is as for :func:`change_together`.
    Compared are sections of at least ``fewest`` pages, and of those only the ``most`` with most changes; the others are
    parts by themselves. So a site of very many sections costs no more than O(changes log changes + most·changes).
    """
    sections = int(section.max(initial=-1)) + 1
    part_of = np.arange(sections)
    changes = np.bincount(section[changed], minlength=sections)
    changes[np.bincount(section, minlength=sections) < fewest] = 0
    some = np.argsort(-changes, kind="stable")[:most]
    some = np.sort(some[changes[some] > 0])
    place = np.full(sections, -1)
    place[some] = np.arange(len(some))
    page = np.flatnonzero(place[section] >= 0)
    number = np.full(len(section), -1)
    number[page] = np.arange(len(page))
    ours = number[changed] >= 0
    distinct, column = np.unique(period, return_inverse=True)
    expected = _expected(foreseen, distinct, len(section))[page]
    alike = _correlation(place[section[page]], len(some), number[changed[ours]], column[ours], expected)
    part_of[some] = some[_joined(alike > TOGETHER)]
    return part_of


def propose(
    section: IntArray, rate: FloatArray, delay: float, part_of: IntArray | None = None, *, fewest: int = FEWEST
) -> SubSites:
    """The parts of a site, best gain first, leaving out those of fewer than ``fewest`` pages, and the whole.

    ``section`` is that of each page, from 0, ``part_of`` the part of each section as from :func:`joined_sections`. A
    rate that is not known (NaN) counts as 0. Of very many parts only those with most expected changes are tried:
    ``MOST_PARTS``, and fewer in a site of more than 100,000 pages. So it is O(n log n), some hundred passes a part.
    """
    rate = np.where(np.isnan(rate), 0.0, rate)
    sections = int(section.max(initial=-1)) + 1
    part_of = np.arange(sections) if part_of is None else part_of
    hottest = np.argsort(-rate, kind="stable")
    hot, part = rate[hottest], part_of[section[hottest]]
    count, changes = (np.bincount(part, weights, sections) for weights in (None, hot))
    parts = np.flatnonzero((count >= fewest) & (count < len(hot)))
    tried = min(MOST_PARTS, max(_PAGES_TRIED // max(len(hot), 1), 1))
    parts = np.sort(parts[np.argsort(-changes[parts], kind="stable")[:tried]])
    whole = _coherence(hot, delay)
    apart = [_split(part == one, hot, delay) for one in parts.tolist()]
    evenly = [_split(_spread(len(hot), pages), hot, delay) for pages in count[parts].tolist()]
    (alone, rest), usual = np.reshape(apart, (-1, 2)).T, np.reshape(evenly, (-1, 2)).sum(axis=1) - whole
    order = np.argsort(-(alone + rest), kind="stable")
    return SubSites(
        tuple(np.flatnonzero(part_of == parts[place]) for place in order.tolist()),
        count[parts][order],
        alone[order],
        rest[order],
        whole,
        usual[order],
        delay,
    )


def _split(inside: BoolArray, hot: FloatArray, delay: float) -> tuple[float, float]:
    """Expected coherence of those inside and of the others, each captured by itself."""
    return _coherence(hot[inside], delay), _coherence(hot[~inside], delay)


def _spread(pages: int, count: int) -> BoolArray:
    """N of the pages, evenly."""
    inside = np.zeros(pages, np.bool_)
    inside[np.linspace(0, pages - 1, count).round().astype(np.int64)] = True
    return inside


def _joined(alike: BoolArray) -> IntArray:
    """The least member of the group each section belongs to, groups being what hangs together."""
    label = np.arange(len(alike))
    while True:
        least = np.where(alike, label[None, :], len(alike)).min(axis=1, initial=len(alike))
        least = np.minimum(least, label)
        if bool((least == label).all()):
            return label
        label = least
