"""Clusters of related pages by URL, and priors of rates and classes from them.

A cluster is the deepest directory with enough pages. Pages of one directory are often edited together, so they share an
intensity (``estimate.operational.cluster_intensity``). The pages of a small directory belong to its parent, up to the
root of the host. A large cluster is split in the order of discovery, because pages found together were often created
together.

The prior of an unvisited page comes from its section, else its host, else all pages. Each level is an empirical-Bayes
fit, shrunk towards the level above with the weight of five pages. That is "look around" (paper 004) in its simplest
form.

The class of an unvisited page comes from its siblings: each directory has class probabilities, shrunk towards its
parent in the same way. This replaces the decision tree over page features of paper 002, and needs only the URL.
"""

from __future__ import annotations

import hashlib
from collections.abc import Container, Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np

from recrawl.estimate.posterior.gamma_posterior import GroupPriors, fit_group_priors
from recrawl.model import FloatArray, GammaBelief, Histories, IntArray
from recrawl.urls import section

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


@dataclass(frozen=True, slots=True)
class NeighbourPrior:
    """Fitted priors of all hosts and sections; immutable."""

    hosts: GroupPriors
    sections: GroupPriors

    def of(self, host: IntArray, section: IntArray) -> GammaBelief:
        """What to believe of pages there, one row per page. O(n log groups)."""
        by_host, by_section = self.hosts.of(host), self.sections.of(section)
        known = np.isin(section, self.sections.group)
        return GammaBelief(np.where(known, by_section.a, by_host.a), np.where(known, by_section.b, by_host.b))


def fit_neighbour_prior(
    histories: Histories, host: IntArray, section: IntArray, *, strength: float = 5.0
) -> NeighbourPrior:
    """Learn from histories; ``host[i]`` and ``section[i]`` say where row i lies, a section within one host.

    O(gaps of a sample) a round of EM for each of the three levels.
    """
    hosts = fit_group_priors(histories, host, strength=strength)
    _, first = np.unique(section, return_index=True)
    parents = hosts.of(host[first])
    return NeighbourPrior(hosts, fit_group_priors(histories, section, parents, strength=strength))


def section_id(url: str, depth: int = 1) -> int:
    """A number for the section a URL lies in: the same in every run, on every machine. 63 bits of a hash.

    >>> section_id("http://example.com/news/a.html") == section_id("http://example.com/news/b.html")
    True
    """
    digest = hashlib.blake2b(section(url, depth).encode(), digest_size=8).digest()
    return int.from_bytes(digest) >> 1


STRENGTH = 5.0
"""Pages that the directory above counts for."""


@dataclass(frozen=True, slots=True)
class SiblingClasses:
    """Chances of the classes in every directory that holds pages of known class; immutable."""

    everywhere: FloatArray
    """Of a page about which nothing is known."""
    by_directory: Mapping[str, FloatArray]

    def chances(self, urls: Sequence[str]) -> FloatArray:
        """The probability of each class, one row per URL. O(URLs · depth), one at a time in Python."""
        found = np.empty((len(urls), len(self.everywhere)))
        for place, url in enumerate(urls):
            known = (name for name in reversed(directories(url)) if name in self.by_directory)
            deepest = next(known, None)
            found[place] = self.everywhere if deepest is None else self.by_directory[deepest]
        return found

    def classes(self, urls: Sequence[str]) -> IntArray:
        """The likeliest class of each page; of equally likely ones the most dynamic."""
        return np.asarray(np.argmax(self.chances(urls), axis=1))


def fit_sibling_classes(
    urls: Sequence[str], label: IntArray, classes: int, *, strength: float = STRENGTH
) -> SiblingClasses:
    """Learn from pages of known class, 0 … classes − 1. O(URLs · depth), one at a time in Python.

    >>> urls = ["http://a.test/x/1", "http://a.test/x/2", "http://a.test/y/3"]
    >>> known = fit_sibling_classes(urls, np.array([0, 0, 1]), 2)
    >>> known.classes(["http://a.test/x/new", "http://a.test/y/new", "http://b.test/"]).tolist()
    [0, 0, 0]
    >>> known.chances(["http://a.test/y/new"]).round(2).tolist()
    [[0.52, 0.48]]
    """
    counts: dict[str, FloatArray] = {}
    for url, kind in zip(urls, label.tolist(), strict=True):
        for name in directories(url):
            counts.setdefault(name, np.zeros(classes))[kind] += 1.0
    everywhere = (np.bincount(label, minlength=classes) + 1.0) / (len(label) + classes)
    chances: dict[str, FloatArray] = {}
    for name in sorted(counts, key=len):  # a directory has a longer name than the one above it
        parent = chances.get(name[: name.rindex("/", 0, -1) + 1], everywhere) if "/" in name[:-1] else everywhere
        chances[name] = (counts[name] + strength * parent) / (counts[name].sum() + strength)
    return SiblingClasses(everywhere, chances)
