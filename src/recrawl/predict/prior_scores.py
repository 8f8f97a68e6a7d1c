"""Scores of priors on first observations of unknown pages, and the drift of a model in use.

All priors are evaluated on the same observations: of pages held out at random, of later pages, and of whole sites.
After each observation a prior becomes a belief in the usual way, so scores beyond the first observation are of prior
and history together.

Drift compares the predictions for pages that were found after training with what was observed. A model that expects
half or twice the events is misleading, but few observations can differ by chance. So both the ratio and the number of
standard deviations must be large.
"""

from __future__ import annotations

import enum
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import Final

import numpy as np

from recrawl.estimate.posterior import gamma_posterior
from recrawl.estimate.posterior.gamma_posterior import fit_group_priors, fit_prior
from recrawl.model import FloatArray, GammaBelief, Histories, IntArray
from recrawl.predict.feature_extraction import ObservationCounts, observation_counts
from recrawl.predict.prior_model import CHANGES, ModelScore, train_model
from recrawl.predict.static_features import FeatureTable

OBSERVATIONS = 10
"""Observations of each page that are evaluated."""
_UNLIKELY = 1e-6


@dataclass(frozen=True, slots=True)
class PriorTally:
    """What a prior expected of pages in all, beside what was found."""

    expected: float
    """Events by the prior: first observations that find a change, or new links."""
    found: float
    """Events that came."""
    observations: int
    """First observations, or pages on which links were counted."""
    deviation: float
    """Standard deviation of ``found`` if the prior were right."""

    @property
    def calibration(self) -> float:
        """Events that were expected for each that was found; half an event is added to both."""
        return (self.expected + 0.5) / (self.found + 0.5)

    @property
    def surprise(self) -> float:
        """By how many standard deviations more events were found than expected."""
        return (self.found - self.expected) / max(self.deviation, _UNLIKELY)


@dataclass(frozen=True, slots=True)
class PriorScore(PriorTally):
    """How well one prior of changes did; what is tallied are first observations."""

    first: float
    """Mean log loss of the first observations, nats."""
    ten: float
    """Mean log loss of the first ten observations, each with what those before it taught; every place counts alike."""
    alone: float
    """The same by the prior alone, whatever those before it found."""


def evaluate_prior(prior: GammaBelief, histories: Histories) -> PriorScore:
    """Let a prior, one row per page, predict the observations of the pages. O(observations)."""
    belief = GammaBelief(prior.a.copy(), prior.b.copy())
    start, count = histories.offsets[:-1], histories.counts()
    losses: list[float] = []
    unmoved: list[float] = []
    first: tuple[FloatArray, FloatArray] = (np.empty(0), np.empty(0))
    for place in range(OBSERVATIONS):
        rows = np.flatnonzero(count > place)
        if not len(rows):
            break
        at = start[rows] + place
        gap, changed = histories.gaps[at], histories.changed[at]
        chance, said = (np.clip(one.take(rows).p_change(gap), _UNLIKELY, 1.0 - _UNLIKELY) for one in (belief, prior))
        for loss, one in ((losses, chance), (unmoved, said)):
            loss.append(float(-np.log(np.where(changed, one, 1.0 - one)).mean()))
        if not place:
            first = chance, changed.astype(np.float64)
        gamma_posterior.update(belief, rows, gap, changed)
    expected, found = first
    return PriorScore(
        expected=float(expected.sum()),
        found=int(found.sum()),
        observations=len(found),
        deviation=float(np.sqrt((expected * (1.0 - expected)).sum())),
        first=losses[0] if losses else float("nan"),
        ten=float(np.mean(losses)) if losses else float("nan"),
        alone=float(np.mean(unmoved)) if unmoved else float("nan"),
    )


def tally_counts(prior: GammaBelief, counts: ObservationCounts) -> PriorTally:
    r"""What a prior, one row per page, expects to be counted on pages, beside what was. O(pages).

    In the time t a page of Gamma(a, b) has a negative binomial number of events, of mean m = a·t/b and variance
    m·(1 + t/b). New links come in bunches, which that law does not know; so the variance is taken from how far pages
    were off where that is more: one page with a hundred links is no sign that a model has gone wrong.

    >>> counts = ObservationCounts(np.array([1.0, 2.0]), np.full(2, 10.0))
    >>> tally_counts(GammaBelief(np.full(2, 1.0), np.full(2, 10.0)), counts)
    PriorTally(expected=2.0, found=3.0, observations=2, deviation=2.0)
    """
    watched = counts.exposure > 0
    a, b, time, count = prior.a[watched], prior.b[watched], counts.exposure[watched], counts.count[watched]
    mean = a * time / b
    variance = max(float((mean * (1.0 + time / b)).sum()), float(np.square(count - mean).sum()))
    return PriorTally(float(mean.sum()), float(count.sum()), len(count), float(np.sqrt(variance)))


def coverage(prior: GammaBelief, counts: ObservationCounts, share: float = 0.9) -> float:
    """Share of pages whose events lie within the middle ``share`` of what the prior allows in the time they had.

    Counts are whole, so the middle holds a little more than that, and so should the share of pages. NaN without pages.
    """
    from scipy import stats  # takes a second to load

    watched = counts.exposure > 0
    if not bool(watched.any()):
        return float("nan")
    a, b = prior.a[watched], prior.b[watched]
    law = stats.nbinom(a, b / (b + counts.exposure[watched]))
    low, high = law.ppf(0.5 - share / 2), law.ppf(0.5 + share / 2)
    # Observations make counts that are not whole.
    count = counts.count[watched]
    return float(((count >= np.floor(low) - 0.5) & (count <= high + 0.5)).mean())


TEST_SHARE = 0.3
"""Share of pages, or of sites, that is kept from training."""
FEWEST = 20
"""Pages that must be left on either side."""


@dataclass(frozen=True, slots=True)
class TrainingPages:
    """Pages with observations after the first, and what was known of them at first sight.

    Rows are pages, ids ascend.
    """

    table: FeatureTable
    site: IntArray
    histories: Histories
    links: Mapping[str, ObservationCounts]
    """New links that were counted, by event; none if not counted."""

    def __len__(self) -> int:
        return len(self.table)

    def sample(self, most: int, rng: np.random.Generator) -> TrainingPages:
        """At most N of the pages, chosen at random; all of them if there are no more."""
        if len(self) <= most:
            return self
        rows = np.sort(rng.choice(len(self), most, replace=False))
        links = {event: ObservationCounts(one.count[rows], one.exposure[rows]) for event, one in self.links.items()}
        return TrainingPages(self.table.take(rows), self.site[rows], self.histories.take(rows), links)

    def counts(self) -> dict[str, ObservationCounts]:
        """What a model is trained on, by kind of event."""
        return {CHANGES: observation_counts(self.histories), **self.links}


def splits(training_pages: TrainingPages, rng: np.random.Generator) -> dict[str, TrainingSplit]:
    """Which pages are evaluated, by what is kept from training; those that leave too few pages are left out.

    Where later pages are evaluated, nothing is learned from observations after the first of them came.
    """
    first = training_pages.histories.first_visit
    cut = float(np.quantile(first, 1.0 - TEST_SHARE)) if len(training_pages) else 0.0
    sites = rng.permutation(np.unique(training_pages.site))
    judged = {
        "pages": rng.random(len(training_pages)) < TEST_SHARE,
        "later pages": first > cut,
        "sites": np.isin(training_pages.site, sites[: int(np.ceil(TEST_SHARE * len(sites)))]),
    }
    found = {}
    for name, chosen in judged.items():
        past = training_pages.histories.window(-np.inf, cut if name == "later pages" else np.inf)
        taught = np.flatnonzero(~chosen & (past.counts() > 0))
        if min(int(chosen.sum()), len(taught)) >= FEWEST:
            found[name] = TrainingSplit(taught, past.take(taught), np.flatnonzero(chosen))
    return found


@dataclass(frozen=True, slots=True)
class TrainingSplit:
    """What is learned from, and what is evaluated."""

    taught: IntArray
    past: Histories
    """Of the pages that are learned from."""
    judged: IntArray


def evaluate_split(training_pages: TrainingPages, name: str, split: TrainingSplit, *, seed: int) -> ModelScore:
    """Train on some pages, and let the model predict the observations of the others."""
    taught, past = split.taught, split.past
    everyone = fit_prior(past)
    model = train_model(
        training_pages.table.take(taught),
        {CHANGES: observation_counts(past)},
        training_pages.site[taught],
        seed=seed,
        everyone=everyone,
    )
    to_come, site = training_pages.histories.take(split.judged), training_pages.site[split.judged]
    priors: dict[str, GammaBelief] = {
        "model": model.prior(CHANGES, training_pages.table.take(split.judged), site),
        "all pages": everyone.take(np.zeros(len(site), np.int64)),
        "host": fit_group_priors(past, training_pages.site[taught]).of(site),
    }
    told = {who: evaluate_prior(prior, to_come) for who, prior in priors.items()}
    return ModelScore(
        name,
        len(site),
        {who: one.first for who, one in told.items()},
        {who: one.ten for who, one in told.items()},
        told["model"].alone,
        told["model"].calibration,
        coverage(priors["model"], observation_counts(to_come)),
    )


def evaluate_splits(
    training_pages: TrainingPages, *, seed: int, progress: Callable[[], None] = lambda: None
) -> tuple[ModelScore, ...]:
    """Every split that there are pages for. ``progress`` is called after each of at most three."""
    found = []
    for name, split in splits(training_pages, np.random.default_rng(seed)).items():
        found.append(evaluate_split(training_pages, name, split, seed=seed))
        progress()
    return tuple(found)


FEWEST_FOR_DRIFT: Final = 30
"""First observes new pages, or pages with counted links, from which on a model is evaluated."""
CLEAR: Final = 4.0
"""Standard deviations beyond which it is no chance. Pages of one site change together, so fewer would not do."""


class ModelFit(enum.StrEnum):
    """What is found."""

    UNJUDGED = "unjudged"
    """Too few new pages were observed a second time."""
    GOOD = "good"
    LOST = "lost"
    """It is time to train again."""


@dataclass(frozen=True, slots=True)
class ModelDrift:
    """How a model has done since it was trained, in one kind of event."""

    told: PriorTally
    bound: float
    """Factor by which expected and found events may differ; 0 for any."""
    event: str = CHANGES

    @property
    def fit(self) -> ModelFit:
        """The verdict."""
        if self.told.observations < FEWEST_FOR_DRIFT:
            return ModelFit.UNJUDGED
        ratio = max(self.told.calibration, 1.0 / self.told.calibration)
        lost = self.bound > 0 and ratio > self.bound and abs(self.told.surprise) > CLEAR
        return ModelFit.LOST if lost else ModelFit.GOOD

    def sentence(self) -> str:
        """The verdict in words."""
        told, of_changes = self.told, self.event == CHANGES
        if self.fit is ModelFit.UNJUDGED:
            few = "first observations" if of_changes else f"with counted {self._links}"
            return f"Too few new pages since training to judge it: {told.observations} of {FEWEST_FOR_DRIFT} {few}."
        found = (
            f"Of {told.observations:,} first observations of new pages, "
            f"it expected {told.expected:.0f} to find a change;"
            f" {told.found:,.0f} did."
            if of_changes
            else f"On {told.observations:,} pages that came since, it expected {told.expected:.0f} {self._links};"
            f" {told.found:,.0f} came."
        )
        advice = "Train it again: recrawl predict train" if self.fit is ModelFit.LOST else "It still fits."
        return f"{found} {advice}"

    @property
    def _links(self) -> str:
        return self.event.replace("-", " ")


def worst(drifts: Iterable[ModelDrift]) -> ModelDrift:
    """The most important one: a lost fit, else the first that is evaluated, else the first."""
    order = (ModelFit.LOST, ModelFit.GOOD, ModelFit.UNJUDGED)
    return min(drifts, key=lambda one: order.index(one.fit))
