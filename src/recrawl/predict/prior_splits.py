"""What a model is judged on: pages kept from training at random, pages that came later, and whole sites."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass

import numpy as np

from recrawl.estimate.empirical_bayes import fit_group_priors, fit_prior
from recrawl.model import GammaBelief, Histories, IntArray
from recrawl.predict.feature_table import FeatureTable
from recrawl.predict.look_counts import LookCounts, look_counts
from recrawl.predict.model_card import Score
from recrawl.predict.prior_model import CHANGES, train_model
from recrawl.predict.prior_trial import coverage, judge_prior

JUDGED = 0.3
"""Share of pages, or of sites, that is kept from training."""
FEWEST = 20
"""Pages that must be left on either side."""


@dataclass(frozen=True, slots=True)
class Lessons:
    """Pages with looks after the first, and what was known of them at first sight. Rows are pages, ids ascend."""

    table: FeatureTable
    site: IntArray
    histories: Histories
    links: Mapping[str, LookCounts]
    """New links that were counted, by event; none where nobody counted."""

    def __len__(self) -> int:
        return len(self.table)

    def sample(self, most: int, rng: np.random.Generator) -> Lessons:
        """At most so many of the pages, chosen at random; all of them if there are no more."""
        if len(self) <= most:
            return self
        rows = np.sort(rng.choice(len(self), most, replace=False))
        links = {event: LookCounts(one.count[rows], one.exposure[rows]) for event, one in self.links.items()}
        return Lessons(self.table.take(rows), self.site[rows], self.histories.take(rows), links)

    def counts(self) -> dict[str, LookCounts]:
        """What a model is trained on, by kind of event."""
        return {CHANGES: look_counts(self.histories), **self.links}


def splits(lessons: Lessons, rng: np.random.Generator) -> dict[str, Split]:
    """Which pages are judged, by what is kept from training; those that leave too few pages are left out.

    Where later pages are judged, nothing is learned from looks after the first of them came.
    """
    first = lessons.histories.first_visit
    cut = float(np.quantile(first, 1.0 - JUDGED)) if len(lessons) else 0.0
    sites = rng.permutation(np.unique(lessons.site))
    judged = {
        "pages": rng.random(len(lessons)) < JUDGED,
        "later pages": first > cut,
        "sites": np.isin(lessons.site, sites[: int(np.ceil(JUDGED * len(sites)))]),
    }
    found = {}
    for name, chosen in judged.items():
        past = lessons.histories.window(-np.inf, cut if name == "later pages" else np.inf)
        taught = np.flatnonzero(~chosen & (past.counts() > 0))
        if min(int(chosen.sum()), len(taught)) >= FEWEST:
            found[name] = Split(taught, past.take(taught), np.flatnonzero(chosen))
    return found


@dataclass(frozen=True, slots=True)
class Split:
    """What is learned from, and what is judged."""

    taught: IntArray
    past: Histories
    """Of the pages that are learned from."""
    judged: IntArray


def judge_split(lessons: Lessons, name: str, split: Split, *, seed: int) -> Score:
    """Train on some pages, and let the model foretell the looks at the others."""
    taught, past = split.taught, split.past
    model = train_model(lessons.table.take(taught), {CHANGES: look_counts(past)}, lessons.site[taught], seed=seed)
    to_come, site = lessons.histories.take(split.judged), lessons.site[split.judged]
    priors: dict[str, GammaBelief] = {
        "model": model.prior(CHANGES, lessons.table.take(split.judged), site),
        "all pages": fit_prior(past).take(np.zeros(len(site), np.int64)),
        "host": fit_group_priors(past, lessons.site[taught]).of(site),
    }
    told = {who: judge_prior(prior, to_come) for who, prior in priors.items()}
    return Score(
        name,
        len(site),
        {who: one.first for who, one in told.items()},
        {who: one.ten for who, one in told.items()},
        told["model"].alone,
        told["model"].calibration,
        coverage(priors["model"], look_counts(to_come)),
    )


def judge_all(lessons: Lessons, *, seed: int, progress: Callable[[], None] = lambda: None) -> tuple[Score, ...]:
    """Every split that there are pages for. ``progress`` is called after each of at most three."""
    found = []
    for name, split in splits(lessons, np.random.default_rng(seed)).items():
        found.append(judge_split(lessons, name, split, seed=seed))
        progress()
    return tuple(found)
