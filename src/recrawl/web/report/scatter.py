"""The scatter plot of a report: every page by type, first directory and address, coloured by what became of it."""

from __future__ import annotations

from collections import Counter
from typing import Any

import numpy as np

from recrawl.app.assess.site_pages import SitePages
from recrawl.assess.graph_layout.page_strips import strips
from recrawl.assess.graph_layout.spanning_tree import ChangeClass
from recrawl.model import IntArray
from recrawl.model.plurals import counted
from recrawl.web.report import site_graph
from recrawl.web.report.report_section import Figure, Section

KIND = "page-scatter"
SCRIPTS = {KIND: ["vendor/echarts.min.js", "graph_data.js", "scatter.js", "scatter3d.js"]}
STYLES = ["graph.css"]
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
        data["pagesOf"] = site_graph.KIND
    else:
        data["pages"] = site_graph.page_columns(pages)
    height = _AROUND + _ROW * len(directories)
    figure = Figure(
        "page-scatter", "Pages by directory, type and address", KIND, data, _CAPTION, max(height, 360), True
    )
    return Section(_TITLE, _ANCHOR, _words(pages, row, directories), [figure])


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


def _words(pages: SitePages, row: IntArray, directories: list[str]) -> list[str]:
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
        f"{100 * share[hot]:.0f} % of {counted(int(count[hot]), 'page')}."
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
