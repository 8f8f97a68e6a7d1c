"""Clusters of related pages by their URLs: the deepest directory that holds enough of them.

Pages of one directory are written by the same people at the same time, so they share an intensity
(``estimate.cluster_intensity``). A directory with too few pages hands them up to the one above it; what is left at the
root of a host is a cluster of its own. A cluster that grows too large is cut in order of discovery: pages found
together were made together.
"""

from __future__ import annotations

from collections.abc import Container, Sequence
from dataclasses import dataclass, field

import numpy as np

from recrawl.model import IntArray

FEWEST = 10
"""Pages that make a directory a cluster."""
MOST = 300
"""Pages of a cluster, at most."""


@dataclass(slots=True)
class UrlClusters:
    """Clusters that grow with the pages: pages given together form clusters, later ones join them."""

    fewest: int = FEWEST
    most: int = MOST
    _open: dict[str, int] = field(default_factory=dict)
    """Directory to the cluster that new pages of it join."""
    _size: list[int] = field(default_factory=list)
    _host: list[int] = field(default_factory=list)
    _hosts: dict[str, int] = field(default_factory=dict)

    @property
    def host(self) -> IntArray:
        """Host of each cluster, 0 … hosts − 1, numbered as they were met."""
        return np.array(self._host, dtype=np.int64)

    def add(self, urls: Sequence[str]) -> IntArray:
        """The cluster of each page, in order of discovery. O(pages · depth), one page at a time in Python.

        A page joins the deepest directory that already is a cluster, unless enough of the pages given with it lie in
        a deeper one: then that becomes a new cluster. Numbers given out never change.

        >>> found = UrlClusters(fewest=2)
        >>> found.add(["http://a.test/x/1", "http://a.test/x/2", "http://a.test/y/1"]).tolist()
        [0, 0, 1]
        >>> found.add(["http://a.test/x/3", "http://a.test/x/deep/4"]).tolist()
        [0, 0]
        """
        chains = [directories(url) for url in urls]
        home = _settle(chains, self.fewest, self._open.keys())
        return np.fromiter((self._join(name) for name in home), np.int64, len(home))

    def _join(self, directory: str) -> int:
        cluster = self._open.get(directory)
        if cluster is None or self._size[cluster] >= self.most:
            host = directory.partition("/")[0]
            cluster = self._open[directory] = len(self._size)
            self._size.append(0)
            self._host.append(self._hosts.setdefault(host, len(self._hosts)))
        self._size[cluster] += 1
        return cluster


def _settle(chains: list[list[str]], fewest: int, known: Container[str]) -> list[str]:
    """The directory each page settles in, deepest first: one that is a cluster, or gathers enough, or the root."""
    home = [""] * len(chains)
    waiting = list(range(len(chains)))
    for depth in range(max(map(len, chains), default=0) - 1, -1, -1):
        gathered: dict[str, list[int]] = {}
        for page in waiting:
            if len(chains[page]) > depth:
                gathered.setdefault(chains[page][depth], []).append(page)
        for name, pages in gathered.items():
            if depth == 0 or len(pages) >= fewest or name in known:
                for page in pages:
                    home[page] = name
        waiting = [page for page in waiting if not home[page]]
    return home


def directories(url: str) -> list[str]:
    """The host and each directory a URL lies in, from the root down; the file name and the query do not count.

    >>> directories("http://a.test/x/y/z.html?q=/1")
    ['a.test/', 'a.test/x/', 'a.test/x/y/']
    """
    place = url.partition("://")[2] or url
    place = place.partition("?")[0].partition("#")[0]
    host, _, path = place.partition("/")
    chain = [f"{host.lower()}/"]
    for name in path.split("/")[:-1]:
        chain.append(f"{chain[-1]}{name}/")
    return chain
