"""What becomes of a virtual web after its end: it goes on changing, and new pages appear."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from recrawl.model import FloatArray, IntArray
from recrawl.simulate.sites import name_and_title
from recrawl.simulate.virtual_web import ChangeProcess, EventTimes, PageKind, VirtualWeb, WebLinks


def prolonged(web: VirtualWeb, end: float, laws: Sequence[ChangeProcess], rng: np.random.Generator) -> VirtualWeb:
    """The same web, the same up to its end, which then goes on changing to ``end`` by the law of each host.

    Nothing dies any more. O(n log n) for n pages and changes.
    """
    page, time = [web.changes.row_of_event()], [web.changes.times]
    for host, law in enumerate(laws):
        here = np.flatnonzero(web.host == host)
        more = law.times(web.rate[here], web.end, end, rng)
        row = here[more.row_of_event()]
        alive = web.alive(row, more.times)
        page.append(row[alive])
        time.append(more.times[alive])
    return replace(web, changes=EventTimes.of(np.concatenate(page), np.concatenate(time), len(web)), end=end)


def with_new_pages(
    web: VirtualWeb, born: FloatArray, *, host: int, law: ChangeProcess, rng: np.random.Generator
) -> VirtualWeb:
    """The same web with a page more for each time of birth: on a host, behind all other pages.

    Each lies in a folder of the host, is linked from the folder's page, which changes when it appears, and changes
    itself as often as another page of that folder. Births must lie before the end of the web.

    O(links + pages · folders).
    """
    count, first = len(born), len(web)
    folders = _folders(web, host, float(born.min(initial=web.end)))
    parent = folders[np.arange(count) % len(folders)]
    others = {folder: _in_folder(web, folder) for folder in np.unique(parent).tolist()}
    rate = web.rate[[rng.choice(others[folder]) for folder in parent.tolist()]]
    itself = law.times(rate, web.start, web.end, rng)
    itself = itself.where(itself.times > born[itself.row_of_event()])
    numbers = np.count_nonzero(web.host == host) + np.arange(count)
    names = [
        name_and_title(number, top=web.path[above] == "/")
        for number, above in zip(numbers.tolist(), parent.tolist(), strict=True)
    ]
    site = web.hosts[host].partition(".")[0].capitalize()
    new, links = first + np.arange(count), web.links
    changes = EventTimes.of(
        np.concatenate([web.changes.row_of_event(), parent, first + itself.row_of_event()]),
        np.concatenate([web.changes.times, born, itself.times]),
        first + count,
    )
    return replace(
        web,
        host=np.append(web.host, np.full(count, host)),
        path=[*web.path, *(f"{web.path[above]}{name}.html" for above, (name, _) in zip(parent, names, strict=True))],
        title=[*web.title, *(f"{site} | {title}" for _, title in names)],
        kind=np.append(web.kind, np.full(count, PageKind.HTML, np.uint8)),
        rate=np.append(web.rate, rate),
        lifetimes=EventTimes.concatenate([web.lifetimes, EventTimes.of(np.arange(count), born, count)]),
        changes=changes,
        links=WebLinks.of(
            np.concatenate([links.source, parent, new]),
            np.concatenate([links.target, new, parent]),
            np.concatenate([links.added, born, born]),
            np.concatenate([links.removed, np.full(2 * count, np.inf)]),
            pages=first + count,
        ),
    )


def _folders(web: VirtualWeb, host: int, when: float) -> IntArray:
    """Pages of a host that others lie under, and that are there at a time."""
    here = np.flatnonzero(web.host == host)
    folders = here[[web.path[page].endswith("/") for page in here.tolist()]]
    return folders[web.alive(folders, when)]


def _in_folder(web: VirtualWeb, folder: int) -> IntArray:
    """Pages that lie right in a folder; the folder's own if there are none. O(pages)."""
    path, here = web.path[folder], np.flatnonzero(web.host == web.host[folder])
    inside = [page for page in here.tolist() if page != folder and _folder_of(web.path[page]) == path]
    return np.array(inside or [folder], np.int64)


def _folder_of(path: str) -> str:
    return path.rstrip("/").rpartition("/")[0] + "/"
