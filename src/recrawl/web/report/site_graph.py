"""The pages of a site in a report: the tree of its pages with unchanged parts folded, and the scatter plot.

Both are coloured by what became of each page. The scatter plot has a row for each first-level directory and a column
for each media type.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from typing import Any

import numpy as np

from recrawl.app.assess.assessment import SitePages
from recrawl.assess.site_structure import ChangeClass, CollapsedTree, collapse
from recrawl.errors import counted
from recrawl.model import FloatArray, IntArray
from recrawl.web.report.report_page import Column, ColumnKind, Figure, ReportTable, Section

KIND = "site-graph"
SCRIPTS = {
    KIND: [
        "vendor/graphology.min.js",
        "vendor/sigma.min.js",
        "vendor/d3-hierarchy.min.js",
        "graph_data.js",
        "graph_layout.js",
        "graph_marks.js",
        "graph_list.js",
        "graph_files.js",
        "graph.js",
    ],
    "page-scatter": ["vendor/echarts.min.js", "graph_data.js", "scatter.js", "scatter3d.js"],
}
"""The scripts that draw each kind of figure."""
STYLES = ["graph.css"]
_HEIGHT = 720
_MOST_SHARED = 65_535
_MOST_ROWS = 2_000


def graph_section(pages: SitePages, versions: str | None = None) -> Section:
    """The graph with a sentence on what it shows. ``versions`` as in :func:`graph_data`."""
    if not len(pages):
        return Section("Site graph", "graph", ["There is no page to draw."])
    tree = collapse(pages.parent, pages.change)
    figure = Figure(KIND, "Page tree", KIND, _data(pages, tree, versions), height=_HEIGHT, wide=True)
    return Section("Site graph", "graph", _words(pages, tree), [figure], _tables(pages), notes=_NOTES)


def graph_data(pages: SitePages, versions: str | None = None) -> dict[str, Any]:
    """All the figure needs, as plain values and columns. O(n).

    ``versions`` is where the versions of a page are listed: a link with ``{id}`` or ``{url}`` in it; no link without.
    """
    return _data(pages, collapse(pages.parent, pages.change), versions)


def page_columns(pages: SitePages) -> dict[str, Any]:
    """The pages alone, as figures read them. Of each URL what it shares with the one before is left out."""
    types, kind = np.unique(np.array(pages.mime, np.str_), return_inverse=True)
    return {
        "id": pages.page,
        "url": front_coded(pages.urls),
        "change": pages.change,
        "rate": _digits(pages.rate, 4),
        "changed": np.round(pages.changed_at),
        "seen": np.round(pages.seen_at),
        "captures": pages.captures,
        "mime": kind,
        "mimes": types.tolist(),
    }


def front_coded(texts: list[str]) -> dict[str, list[Any]]:
    """Texts, each as how many characters it shares with the one before, and the rest. O(length).

    >>> front_coded(["http://a.org/", "http://a.org/x"])
    {'shared': [0, 13], 'rest': ['http://a.org/', 'x']}
    """
    shared, rest, before = [], [], ""
    for text in texts:
        # Characters as JavaScript counts them: beyond the first 65,536 one is two.
        alike = _common(before, text) if text.isascii() and before.isascii() else 0
        shared.append(alike)
        rest.append(text[alike:])
        before = text
    return {"shared": shared, "rest": rest}


def _common(one: str, other: str) -> int:
    """Length of the common prefix of two texts, by bisection."""
    low, high = 0, min(len(one), len(other), _MOST_SHARED)
    while low < high:
        middle = (low + high + 1) // 2
        if one[low:middle] == other[low:middle]:
            low = middle
        else:
            high = middle - 1
    return low


def _data(pages: SitePages, tree: CollapsedTree, versions: str | None) -> dict[str, Any]:
    """The tree without places: ``graph_layout.js`` lays it out in the browser, always in the same way."""
    holders = np.flatnonzero(tree.folded)
    return {
        "pages": page_columns(pages),
        "parent": pages.parent,
        "drawn": tree.drawn.astype(np.uint8),
        "folded": {"page": holders, "pages": tree.folded[holders]},
        "versions": versions,
    }


def _digits(values: Any, digits: int) -> list[float]:  # noqa: ANN401 - a column of floats
    """Number of significant digits, which keeps files short."""
    return [float(f"{value:.{digits}g}") for value in values.tolist()]


def _tables(pages: SitePages) -> list[ReportTable]:
    """What changed, latest first, for those who would rather read; none if nothing did."""
    changed = np.flatnonzero(pages.change > ChangeClass.UNCHANGED)
    if not len(changed):
        return []
    latest = np.argsort(-np.nan_to_num(pages.changed_at[changed], nan=-np.inf), kind="stable")
    shown = changed[latest[:_MOST_ROWS]]
    above = [*pages.urls, None]  # the last stands for no page
    every = 1.0 / np.where(pages.rate[shown] > 0, pages.rate[shown], np.nan)
    columns = [
        Column("page", ColumnKind.URL, [pages.urls[row] for row in shown.tolist()]),
        Column("state", ColumnKind.CLASS, [ChangeClass(int(one)).name.lower() for one in pages.change[shown]]),
        Column("last observed change", ColumnKind.TIME, pages.changed_at[shown]),
        Column("changes about every", ColumnKind.SECONDS, every),
        Column("times found", ColumnKind.COUNT, pages.captures[shown]),
        Column("found on", ColumnKind.URL, [above[up] for up in pages.parent[shown].tolist()]),
    ]
    words = "" if len(shown) == len(changed) else f"The latest {len(shown):,} of {len(changed):,}."
    return [ReportTable("changed-pages", "Pages that changed, are new or are gone", columns, words)]


def _words(pages: SitePages, tree: CollapsedTree) -> list[str]:
    count = np.bincount(np.asarray(pages.change, np.int64), minlength=len(ChangeClass))
    drawn = int(tree.drawn.sum())
    if len(pages) == 1:
        lines = ["1 page without links to other pages."]
    else:
        lines = [f"{len(pages):,} pages, drawn as the tree in which they were discovered.{_folding(tree, drawn)}"]
    if len(pages) > drawn and (largest := int(tree.folded.max(initial=0))) * 4 > len(pages):
        lines.append(
            f"The largest disc holds {counted(largest, 'page')}, {100 * largest / len(pages):.0f}% of all. What does "
            "not change can be captured less often, which saves visits for the rest."
        )
    if int(count[ChangeClass.UNSEEN]) == len(pages):
        lines.append("No page was observed twice, so changes are not known. Capture the site again.")
    return lines


def _folding(tree: CollapsedTree, drawn: int) -> str:
    """What of a tree is folded; nothing if nothing is."""
    folded, discs = len(tree.drawn) - drawn, int((tree.folded > 0).sum())
    if not folded:
        return ""
    lie = "1 page lies in a part" if folded == 1 else f"{folded:,} pages lie in parts"
    fold = f"{'is' if folded == 1 else 'are'} folded into {counted(discs, 'disc')}"
    remain = "1 page remains" if drawn == 1 else f"{drawn:,} pages remain"
    return f" {lie} where nothing changed and {fold}; {remain}: changed and uncompared pages, and the paths to them."


_NOTES = [
    (
        "The parent of a page is the page on which the crawler discovered it, if recorded; else the earliest captured "
        "page that links to it; else the nearest directory above."
    ),
    (
        "A part of the tree is folded if nothing in it changed (Algorithms 7 and 8 of the thesis on SHARC, corrected). "
        "The area is proportional to the number of pages: a disc of 400 is twice as wide as one of 100, and unfolding "
        "it moves nothing."
    ),
]


SCATTER_KIND = "page-scatter"
_MOST_DIRECTORIES = 30
_MOST_TYPES = 8
_ROW = 24
_AROUND = 110
_WIDTH = 1000
_TITLE, _ANCHOR = "Where pages change", "scatter"
_FEWEST_PAGES = 20
_CHANGED = (ChangeClass.CONTENT, ChangeClass.LINKS, ChangeClass.MISSING, ChangeClass.NEW)


def scatter_section(pages: SitePages, *, shares_pages: bool = True) -> Section:
    """The plot and where most changes are. With ``shares_pages`` it reads the pages of the site graph in its page."""
    if not len(pages):
        return Section(_TITLE, _ANCHOR, ["There is no page to draw."])
    row, directories = _labels([first_directory(url) for url in _without_host(pages.urls)], _MOST_DIRECTORIES)
    column, types = _labels([one or "not known" for one in pages.mime], _MOST_TYPES)
    places = strips(row, column, len(types), _WIDTH / _ROW)
    data: dict[str, Any] = {
        "directory": row,
        "directories": directories,
        "type": column,
        "types": types,
        "x": np.round(places.x, 3),
        "y": np.round(places.y, 3),
        "stack": places.stack,
        "edges": np.round(places.edges, 3),
    }
    if shares_pages:
        data["pagesOf"] = KIND
    else:
        data["pages"] = page_columns(pages)
    height = _AROUND + _ROW * len(directories)
    figure = Figure(
        "page-scatter", "Pages by directory, type and address", SCATTER_KIND, data, _CAPTION, max(height, 360), True
    )
    return Section(_TITLE, _ANCHOR, _scatter_words(pages, row, directories), [figure])


def first_directory(url: str) -> str:
    """What comes before the second slash of a path; ``/`` for pages at the top.

    >>> [first_directory(one) for one in ("/", "/x", "/x/", "/x/y?z=/", "a.org/x/y")]
    ['/', '/', '/x/', '/x/', 'a.org/x/']
    """
    host, _, path = url.partition("/")
    directory, below, _ = path.partition("?")[0].partition("/")
    return f"{host}/{directory}/" if below else f"{host}/"


def _without_host(urls: list[str]) -> list[str]:
    """URLs from the host on, or from the path on if there is one host."""
    short = [url.partition("://")[2] or url for url in urls]
    hosts = {one.partition("/")[0] for one in short}
    return short if len(hosts) > 1 else [one[one.find("/") :] if "/" in one else "/" for one in short]


def _labels(names: list[str], most: int) -> tuple[IntArray, list[str]]:
    """Numbers for names, by name; those that are not among the most frequent share the last."""
    frequent = sorted(name for name, _ in Counter(names).most_common(most))
    number = {name: place for place, name in enumerate(frequent)}
    label = np.array([number.get(name, len(frequent)) for name in names], np.int64)
    return label, frequent + (["all others"] if int(label.max()) == len(frequent) else [])


def _scatter_words(pages: SitePages, row: IntArray, directories: list[str]) -> list[str]:
    changed = np.isin(pages.change, _CHANGED)
    count = np.bincount(row, minlength=len(directories))
    share = np.bincount(row, changed, len(directories)) / np.maximum(count, 1)
    if not changed.any():
        return ["Each dot is a page. No change is known."]
    # A directory of a few pages says little; but where no large one changed, all of them are compared.
    large = count >= min(_FEWEST_PAGES, int(count.max()))
    if not share[large].any():
        large = count > 0
    hot = int(np.where(large, share, -1.0).argmax())
    calm = np.flatnonzero(large & (share == 0))
    words = (
        f"Each dot is a page. The highest share of changed pages is in {directories[hot]}: "
        f"{100 * share[hot]:.0f}% of {counted(int(count[hot]), 'page')}."
    )
    if len(calm):
        names = [directories[one] for one in calm[:3].tolist()]
        more = f" and {counted(len(calm) - 3, 'other')}" if len(calm) > len(names) else ""
        words += f" Nothing changed in {', '.join(names)}{more}."
    return [words]


_CAPTION = (
    "Each row is a first-level directory, each column a media type. In a cell pages are ordered by URL from left to "
    "right, a few on top of each other. Point at one for its URL; hold Ctrl and turn the wheel to zoom. Pages that "
    "change together appear as runs of one colour at the same place in several rows."
)


_STACK = 3
"""Marks on top of each other where the fullest cell has room for that; fewer in a small site."""
_MARGIN = 0.12
"""Of a strip, above and below."""
_NARROWEST = 0.06
"""Share of the width that a column has at least."""


@dataclass(frozen=True, slots=True)
class PageStrips:
    """Places of pages. Rows are 1 high; row i goes from i to i + 1."""

    x: FloatArray
    y: FloatArray
    stack: IntArray
    """How many marks are on top of each other in the cell of each page."""
    edges: FloatArray
    """Where each column starts, and where the last ends."""


def strips(row: IntArray, column: IntArray, columns: int, width: float) -> PageStrips:
    """Place pages that come by address; ``width`` is that of all columns, in heights of a row. O(n log n).

    >>> places = strips(np.array([0, 0, 0, 1]), np.array([0, 0, 0, 0]), 1, 10.0)
    >>> places.x.round(2).tolist(), places.y.tolist(), places.stack.tolist()
    ([0.38, 1.14, 1.9, 0.38], [0.5, 0.5, 0.5, 1.5], [1, 1, 1, 1])
    """
    cell = row * columns + column
    cells = int(cell.max(initial=-1)) + 1
    count = np.bincount(cell, minlength=cells)
    edges = _edges(count, columns, width)
    room = np.diff(edges)
    inner = 1.0 - 2.0 * _MARGIN
    of_cell = np.arange(cells) % columns
    full = np.ceil(np.sqrt(count * inner / room[of_cell]))
    stack = np.maximum(full, np.clip(full.max(initial=1.0), 1, _STACK)).astype(np.int64)
    long = -(-count // stack)
    pitch = np.minimum(inner / stack, room[of_cell] / np.maximum(long, 1))
    order = np.argsort(cell, kind="stable")
    starts = np.concatenate([[0], np.cumsum(count)[:-1]]) if cells else np.empty(0, np.int64)
    number = np.empty(len(cell), np.int64)
    number[order] = np.arange(len(cell)) - np.repeat(starts, count)
    along, up = number // stack[cell], number % stack[cell]
    x = edges[column] + (along + 0.5) * pitch[cell]
    y = row + _MARGIN + (up + 0.5) * inner / stack[cell]
    return PageStrips(x, y, stack[cell], edges)


def _edges(count: IntArray, columns: int, width: float) -> FloatArray:
    """Columns as wide as the root of their fullest cell, and never too narrow to be seen."""
    fullest = np.zeros(columns)
    np.maximum.at(fullest, np.arange(len(count)) % columns, count)
    share = np.sqrt(np.maximum(fullest, 1.0))
    share = np.maximum(share / share.sum(), _NARROWEST)
    return np.concatenate([[0.0], np.cumsum(share / share.sum() * width)])
