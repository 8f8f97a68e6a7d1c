"""The class of change of a page nobody has visited, from those of its siblings: "look around" for classes.

Every directory that holds pages of known class has chances of its own, shrunk towards those of the directory above it
as if that were five more pages; the root of a host is shrunk towards all hosts together. A page has the chances of
the deepest directory it lies in that is known. It stands where paper 002 has a decision tree over page features, and
needs nothing but the URL.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from recrawl.model import FloatArray, IntArray
from recrawl.predict.clusters import directories

STRENGTH = 5.0
"""Pages that the directory above counts for."""


@dataclass(frozen=True, slots=True)
class SiblingClasses:
    """Chances of the classes in every directory that holds pages of known class; immutable."""

    everywhere: FloatArray
    """Of a page about which nothing is known."""
    by_directory: Mapping[str, FloatArray]

    def chances(self, urls: Sequence[str]) -> FloatArray:
        """The probability of each class, one row a URL. O(URLs · depth), one at a time in Python."""
        found = np.empty((len(urls), len(self.everywhere)))
        for place, url in enumerate(urls):
            known = (name for name in reversed(directories(url)) if name in self.by_directory)
            deepest = next(known, None)
            found[place] = self.everywhere if deepest is None else self.by_directory[deepest]
        return found

    def classes(self, urls: Sequence[str]) -> IntArray:
        """The likeliest class of each page; of equally likely ones the most dynamic."""
        return np.asarray(np.argmax(self.chances(urls), axis=1))


def fit(urls: Sequence[str], label: IntArray, classes: int, *, strength: float = STRENGTH) -> SiblingClasses:
    """Learn from pages of known class, 0 … classes − 1. O(URLs · depth), one at a time in Python.

    >>> known = fit(["http://a.test/x/1", "http://a.test/x/2", "http://a.test/y/3"], np.array([0, 0, 1]), 2)
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
