"""What a store's visits teach, wired together for the verbs that print it."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from recrawl.errors import InputError
from recrawl.estimate import gamma
from recrawl.estimate.empirical_bayes import fit_group_priors
from recrawl.model import ChangeKind, FloatArray, GammaBelief, Histories
from recrawl.store.base import Store


@dataclass(frozen=True, slots=True)
class Knowledge:
    """Histories of all pages that were ever seen and the belief about each, row by row."""

    histories: Histories
    belief: GammaBelief

    def fresh(self, now: float) -> FloatArray:
        """Probability that each page is still as it was when last seen."""
        return self.belief.survival(np.maximum(now - self.histories.last_visit, 0.0))


def learn(store: Store, *, host: int | None = None, kind: ChangeKind | None = None) -> Knowledge:
    """Beliefs from all visits (of one host): a prior from the population and each host, then every look."""
    visited = store.histories(host=host, kind=kind)
    histories = visited.take(~np.isnan(visited.first_visit))
    host_of_page = store.pages(histories.page).host
    priors = fit_group_priors(histories, host_of_page)
    return Knowledge(histories, gamma.fit(histories, priors.of(host_of_page)))


def host_id(store: Store, name: str | None) -> int | None:
    """The id of a host by its name; ``None`` for no name; an error for an unknown one."""
    if name is None:
        return None
    hosts = store.hosts()
    if name not in hosts.name:
        from difflib import get_close_matches

        nearest = get_close_matches(name, hosts.name, n=1, cutoff=0.0)
        remedy = f"Did you mean {nearest[0]!r}? " if nearest else ""
        raise InputError(f"There is no host {name!r} in this workspace.", f"{remedy}recrawl list hosts shows all.")
    return int(hosts.id[hosts.name.index(name)])
