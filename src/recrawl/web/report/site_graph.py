"""The site graph of a report: the tree of its pages, coloured by what became of them, unchanged parts folded."""

from __future__ import annotations

from typing import Any

import numpy as np

from recrawl.app.assess.site_pages import SitePages
from recrawl.assess.graph_layout.spanning_tree import ChangeClass, CollapsedTree, collapse
from recrawl.model.plurals import counted
from recrawl.web.report.report_section import Column, ColumnKind, Figure, ReportTable, Section

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
    ]
}
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
            f"The largest disc holds {counted(largest, 'page')}, {100 * largest / len(pages):.0f} % of all. What does "
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
