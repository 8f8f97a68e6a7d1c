"""Names for made-up pages: readable paths and titles from a page's place in its tree."""

from __future__ import annotations

import numpy as np

from recrawl.model import BoolArray, ByteArray, IntArray
from recrawl.simulate.web import PageKind

_TOPICS = (
    "harbour", "market", "library", "weather", "railway", "theatre", "garden", "council", "school", "river",
    "museum", "bakery", "observatory", "clinic", "forest", "lighthouse", "workshop", "archive", "stadium", "orchard",
    "bridge", "quarry", "meadow", "station",
)  # fmt: skip
_MATTERS = (
    "news", "timetable", "visitors", "accounts", "history", "people", "repairs", "events", "notices", "prices",
    "projects", "reports", "questions", "plans", "records", "opening", "gallery", "letters", "research", "rules",
)  # fmt: skip
_ENDING = {PageKind.HTML: ".html", PageKind.RDF: "", PageKind.JSON: ".json", PageKind.CSV: ".csv"}
PRIVATE = "/private/"
"""Where pages lie that robots.txt asks crawlers to leave alone."""


def paths_and_titles(parent: IntArray, kind: ByteArray, private: BoolArray) -> tuple[list[str], list[str]]:
    """A path and a title for each page of a tree in which parents come before their children.

    Pages with children are directories below their parent's; the rest are files. ``private`` pages lie
    under ``/private/``. Names repeat words but never a path, as each ends in the page's number. O(n) Python:
    once for each web.

    >>> tree, html = np.array([-1, 0, 1]), np.zeros(3, np.uint8)
    >>> paths_and_titles(tree, html, np.zeros(3, bool))[0]
    ['/', '/market-1/', '/market-1/visitors-2.html']
    """
    inner = np.zeros(len(parent), dtype=np.bool_)
    inner[parent[parent >= 0]] = True
    directory: list[str] = []
    paths: list[str] = []
    titles: list[str] = []
    for page, above in enumerate(parent.tolist()):
        if above < 0:
            directory.append("/")
            paths.append("/")
            titles.append("Home")
            continue
        name, title = name_and_title(page, top=above == 0)
        place = f"{PRIVATE if private[page] else directory[above]}{name}"
        directory.append(f"{place}/")
        paths.append(directory[page] if inner[page] else f"{place}{_ENDING[PageKind(kind[page])]}")
        titles.append(title)
    return paths, titles


def name_and_title(number: int, *, top: bool) -> tuple[str, str]:
    """Last part of the path of a page, without its ending, and its title; ``top`` if its parent is the home page.

    >>> name_and_title(2, top=False)
    ('visitors-2', 'Library: visitors (2)')
    """
    topic, matter = _TOPICS[number % len(_TOPICS)], _MATTERS[number % len(_MATTERS)]
    return f"{topic if top else matter}-{number}", f"{topic.capitalize()}: {matter} ({number})"
