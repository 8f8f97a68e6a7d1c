"""A prior for pages nobody has seen yet, from what was seen around them: section → host → everything.

Each level is an empirical-Bayes fit to its pages, shrunk towards the level above it as if that were five more pages
(``estimate.empirical_bayes``). A page is believed of as its section is; where the section is new, as its host; where
that is new too, as all pages together. "Look around" (paper 004) in its simplest form.
"""

from __future__ import annotations

import hashlib
from dataclasses import dataclass

import numpy as np

from recrawl.estimate.empirical_bayes import GroupPriors, fit_group_priors
from recrawl.model import GammaBelief, Histories, IntArray
from recrawl.urls import section


@dataclass(frozen=True, slots=True)
class NeighbourPrior:
    """Fitted priors of all hosts and sections; immutable."""

    hosts: GroupPriors
    sections: GroupPriors

    def of(self, host: IntArray, section: IntArray) -> GammaBelief:
        """What to believe of pages there, one row a page. O(n log groups)."""
        by_host, by_section = self.hosts.of(host), self.sections.of(section)
        known = np.isin(section, self.sections.group)
        return GammaBelief(np.where(known, by_section.a, by_host.a), np.where(known, by_section.b, by_host.b))


def fit(histories: Histories, host: IntArray, section: IntArray, *, strength: float = 5.0) -> NeighbourPrior:
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
