"""New links predicted on recorded pages: the comparison of paper 004 (§6 and §7).

Learners are trained on pages as of one time, with the following period as the truth, and evaluated on pages as of a
later time. So nothing leaks from the future. Pages of several sites are split by time, and optionally by page or by
site.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field, replace
from typing import Final

import numpy as np

from recrawl.app.predict.model_data import RecordedLinks
from recrawl.assess.prediction_scores import (
    ClassScores,
    QuantityScores,
    class_scores,
    precision_area,
    precision_at_percent,
    quantity_scores,
    spearman,
)
from recrawl.model import BoolArray, FloatArray
from recrawl.predict.feature_extraction import (
    FeatureEvidence,
    FeatureOptions,
    LinkPeriods,
    LinkTargets,
    RelatedContext,
    link_targets,
    look_around,
    page_features,
    period_counts,
)
from recrawl.predict.related_pages import learn_semantics
from recrawl.predict.static_features import (
    BASELINES,
    FeatureSet,
    FeatureTable,
    PredictionTarget,
    choose,
    stacked,
)
from recrawl.time import DAY
from recrawl_lab.learners.link_learners import (
    CountHead,
    Importance,
    Learner,
    LearnerSettings,
    fit,
    fit_head,
    importances,
    learn_shrinkage,
)

KINDS: Final = {"internal": True, "external": False}
SMALLEST_LEAF: Final = {"internal": 2, "external": 10}
"""Pages in a leaf of randomised trees, by kind of links (paper 004, Table 3)."""


@dataclass(frozen=True, slots=True)
class LinkExamples:
    """Pages as of a time with what then came."""

    table: FeatureTable
    targets: dict[str, LinkTargets]
    """By kind of links."""

    def take(self, rows: BoolArray) -> LinkExamples:
        """The pages where this mask is true."""
        targets = {
            kind: LinkTargets(one.number[rows], one.presence[rows], one.change_rate[rows])
            for kind, one in self.targets.items()
        }
        return LinkExamples(self.table.take(rows), targets)

    def truth(self, kind: str, target: PredictionTarget) -> FloatArray:
        """The true value of a target for each page; NaN where unknown."""
        found = self.targets[kind]
        return {
            PredictionTarget.LCR: found.change_rate,
            PredictionTarget.NL: found.presence,
            PredictionTarget.NNL: found.number,
        }[target]


def pooled(parts: Sequence[LinkExamples]) -> LinkExamples:
    """Examples of several times as one, to learn from."""
    targets = {
        kind: LinkTargets(
            np.concatenate([part.targets[kind].number for part in parts]),
            np.concatenate([part.targets[kind].presence for part in parts]),
            np.concatenate([part.targets[kind].change_rate for part in parts]),
        )
        for kind in KINDS
    }
    return LinkExamples(stacked([part.table for part in parts]), targets)


def examples(
    evidence: FeatureEvidence, as_of: float, around: RelatedContext | None, options: FeatureOptions
) -> LinkExamples:
    """Features of all pages as of a time; targets over the past periods and the one that follows (reading 004.1)."""
    periods = LinkPeriods(as_of + options.period, options.period, options.rate_periods + 1)
    counts = period_counts(evidence.versions, evidence.page, periods)
    targets = {kind: link_targets(counts.new_links(internal=internal)) for kind, internal in KINDS.items()}
    return LinkExamples(page_features(evidence, as_of, around, options), targets)


@dataclass(frozen=True, slots=True)
class LinkPredictor:
    """A way to predict, with its name in paper 004 (Table 4)."""

    name: str
    target: PredictionTarget
    features: FeatureSet
    learner: Learner = Learner.EXTRA_TREES
    as_label: bool = False
    """Rank by yes or no instead of by probability."""


CONTESTANTS: Final = (
    LinkPredictor("LCR-ET-LBLA", PredictionTarget.LCR, FeatureSet.LBLA),
    LinkPredictor("LCR-ET", PredictionTarget.LCR, FeatureSet.ALL),
    LinkPredictor("NL-ET-LBLA", PredictionTarget.NL, FeatureSet.LBLA, as_label=True),
    LinkPredictor("NL-ET", PredictionTarget.NL, FeatureSet.ALL, as_label=True),
    LinkPredictor("PNL-ET", PredictionTarget.NL, FeatureSet.ALL),
    LinkPredictor("NNL-NGB", PredictionTarget.NNL, FeatureSet.ALL, Learner.NATURAL_BOOSTING),
    LinkPredictor("NNL-ET-LBLA", PredictionTarget.NNL, FeatureSet.LBLA),
    LinkPredictor("NNL-ET", PredictionTarget.NNL, FeatureSet.ALL),
    LinkPredictor("NNL-SC-LBLA", PredictionTarget.NNL, FeatureSet.LBLA, Learner.SHRUNKEN_COUNTS),
)
"""Those of the paper, and ours (SC: shrunken counts)."""


@dataclass(frozen=True, slots=True)
class RankingScore:
    """How well one way to rank pages agrees with the true order by one target."""

    kind: str
    target: PredictionTarget
    name: str
    spearman: float
    area: float
    """Mean Precision@k% over k = 1 … 100, ties resolved exactly (reading 004.5)."""


@dataclass(frozen=True, slots=True)
class LblaTrial:
    """Pages to learn from, pages to be evaluated on, and how to learn. Every model starts from the same seed."""

    train: LinkExamples
    test: LinkExamples
    settings: LearnerSettings
    seed: int
    _predicted: dict[tuple[str, PredictionTarget, FeatureSet, Learner], FloatArray] = field(default_factory=dict)
    """What was predicted so far: several scores rest on one model."""

    def predicted(self, kind: str, target: PredictionTarget, features: FeatureSet, learner: Learner) -> FloatArray:
        """What a learner says of the pages to be evaluated on."""
        key = (kind, target, features, learner)
        if key not in self._predicted:
            table, unseen = (choose(part.table, features, target, internal=KINDS[kind]) for part in self._parts)
            how = replace(self.settings, learner=learner, smallest_leaf=SMALLEST_LEAF[kind])
            rng = np.random.default_rng(self.seed)
            model = fit(table, target, self.train.truth(kind, target), rng, how)
            self._predicted[key] = model.predict_links(unseen)
        return self._predicted[key]

    def scores(self, kind: str, predictors: Iterable[LinkPredictor] = CONTESTANTS) -> dict[str, FloatArray]:
        """What every contestant and baseline ranks the pages by."""
        found: dict[str, FloatArray] = {}
        for one in predictors:
            score = self.predicted(kind, one.target, one.features, one.learner)
            found[one.name] = _yes(score).astype(np.float64) if one.as_label else score
        for name, column in BASELINES.items():
            known = self.test.table.column(column.format(kind=kind)).astype(np.float64)
            found[name] = np.nan_to_num(known)
        return found

    def ranked(self, kind: str, predictors: Iterable[LinkPredictor] = CONTESTANTS) -> list[RankingScore]:
        """Every contestant and baseline against every target (paper 004, figures 14 and 15)."""
        scores = self.scores(kind, predictors)
        return [
            self._ranking(kind, target, name, score) for target in PredictionTarget for name, score in scores.items()
        ]

    def precision(self, kind: str, score: FloatArray, percents: Iterable[int]) -> list[float]:
        """Precision@k% of a ranking by the number of new links, for each k (paper 004, figure 15)."""
        truth = self.test.truth(kind, PredictionTarget.NNL)
        known = ~np.isnan(truth)
        return [precision_at_percent(truth[known], score[known], percent) for percent in percents]

    def change_rate(self, kind: str, features: FeatureSet, learner: Learner) -> QuantityScores:
        """How well a set of features predicts the link change rate (paper 004, figures 9 and 10)."""
        return self.quantity(kind, PredictionTarget.LCR, features, learner)

    def quantity(self, kind: str, target: PredictionTarget, features: FeatureSet, learner: Learner) -> QuantityScores:
        """How far off a predicted rate or number is."""
        truth = self.test.truth(kind, target)
        known = ~np.isnan(truth)
        return quantity_scores(self.predicted(kind, target, features, learner)[known], truth[known])

    def count_losses(self, kind: str) -> dict[str, float]:
        """How unlikely the true numbers of new links were, by the law they are taken to follow: mean log loss.

        NGBoost learns means from LBLA features of half of the pages to learn from, and each law its one number from
        the other half; shrunken counts come with a law of their own.
        """
        truth, unseen = self.test.truth(kind, PredictionTarget.NNL), self._chosen(self.test, kind)
        known = ~np.isnan(truth)
        first = self.train.table.page % 2 == 0
        taught, kept = self.train.take(first), self.train.take(~first)
        how = replace(self.settings, learner=Learner.NATURAL_BOOSTING)
        wanted = taught.truth(kind, PredictionTarget.NNL)
        model = fit(self._chosen(taught, kind), PredictionTarget.NNL, wanted, np.random.default_rng(self.seed), how)
        mean, number = model.predict_links(self._chosen(kept, kind)), kept.truth(kind, PredictionTarget.NNL)
        told, there = model.predict_links(unseen), ~np.isnan(number)
        heads = [fit_head(head, mean[there], number[there]) for head in CountHead]
        found = {f"NGBoost, {one.head}": one.likelihood(told[known], truth[known]) for one in heads}
        table, number = self._chosen(self.train, kind), self.train.truth(kind, PredictionTarget.NNL)
        there = ~np.isnan(number)
        ours = learn_shrinkage(table.values[there], table.names, number[there])
        found["shrunken counts, negative binomial"] = ours.likelihood(unseen.values[known], truth[known])
        return {name: -float(likely.mean()) for name, likely in found.items()}

    def importance(self, kind: str, features: FeatureSet, learner: Learner, *, repeats: int = 3) -> list[Importance]:
        """What each feature adds to the balanced accuracy of the presence of new links (paper 004, figure 13)."""
        taught, unseen = (
            choose(part.table, features, PredictionTarget.NL, internal=KINDS[kind]) for part in self._parts
        )
        rng = np.random.default_rng(self.seed)
        model = fit(
            taught,
            PredictionTarget.NL,
            self.train.truth(kind, PredictionTarget.NL),
            rng,
            replace(self.settings, learner=learner),
        )
        truth = self.test.truth(kind, PredictionTarget.NL)
        known = ~np.isnan(truth)

        def score(chance: FloatArray) -> float:
            return class_scores(_yes(chance), truth[known] > 0).balanced_accuracy

        return importances(model, unseen.take(known), score, rng, repeats=repeats)

    def presence(self, kind: str, features: FeatureSet, learner: Learner) -> ClassScores:
        """How well it is predicted whether there will be new links (paper 004, figure 12)."""
        truth = self.test.truth(kind, PredictionTarget.NL)
        known = ~np.isnan(truth)
        return class_scores(_yes(self.predicted(kind, PredictionTarget.NL, features, learner))[known], truth[known] > 0)

    def presence_as_before(self, kind: str) -> ClassScores:
        """The same for the baseline: new links in the next period if there were any in the last (NNL-Pr)."""
        truth = self.test.truth(kind, PredictionTarget.NL)
        known = ~np.isnan(truth)
        before = self.test.table.column(f"new_{kind}_1") > 0
        return class_scores(before[known], truth[known] > 0)

    @property
    def _parts(self) -> tuple[LinkExamples, LinkExamples]:
        return self.train, self.test

    @staticmethod
    def _chosen(part: LinkExamples, kind: str) -> FeatureTable:
        return choose(part.table, FeatureSet.LBLA, PredictionTarget.NNL, internal=KINDS[kind])

    def _ranking(self, kind: str, target: PredictionTarget, name: str, score: FloatArray) -> RankingScore:
        truth = self.test.truth(kind, target)
        known = ~np.isnan(truth)
        return RankingScore(
            kind, target, name, spearman(truth[known], score[known]), precision_area(truth[known], score[known])
        )


def _yes(chance: FloatArray) -> BoolArray:
    return chance >= 0.5  # noqa: PLR2004 - more likely than not


HISTORIES: Final = (0, 1, 2, 4, 8)
TRAINED: Final = 4
"""Times that are learned from, one period apart; the last is one period before the time that is evaluated."""
SAME_SITES: Final = "unseen pages of the same sites"
OTHER_SITES: Final = "unseen sites"
_TEST_SHARE: Final = 1.0 / 3.0
"""Share of pages, or of sites, that are evaluated."""


@dataclass(frozen=True, slots=True)
class LblaPlan:
    """When and what to predict."""

    at: float
    """The time that is evaluated, seconds since the epoch."""
    period: float = 91 * DAY
    pages: int = 5_000
    """Of each time, at most."""
    settings: LearnerSettings = field(default_factory=LearnerSettings)
    seed: int = 1
    draws: int = 1
    """How often other pages, and other sites, are evaluated."""
    alone: bool = False
    """Only what LBLA features need: the longest history, and no links between pages."""

    @property
    def histories(self) -> tuple[int, ...]:
        """Sizes of history to be tried."""
        return HISTORIES[-1:] if self.alone else HISTORIES


@dataclass(frozen=True, slots=True)
class LblaSplit:
    """One way to keep apart what is learned from and what is evaluated."""

    name: str
    trials: dict[int, LblaTrial]
    """By history size."""
    sites: int
    """That are evaluated."""
    draw: int
    """Which of the draws, from 0."""
    recall: float
    """Share of the truly related pages that was found, at the time with the least; 1 where all pairs were compared."""

    @property
    def same_sites(self) -> bool:
        """Whether other pages of the evaluated sites were learned from."""
        return self.name == SAME_SITES


def splits(
    recorded: RecordedLinks, plan: LblaPlan, *, progress: Callable[[], object] = lambda: None
) -> list[LblaSplit]:
    """A third of the pages of all sites, and a third of the sites, evaluated later and learned from the others.

    No page is both learned from and evaluated: its link change rate hardly moves from one time to the next, and
    features that do not change would give away who it is. Splits with nothing to learn from, or to evaluate, are left
    out. Every time has draws of its own: evaluated at the same few sites, several times would seem to agree more than
    they do.
    """
    found, recall = _examples(recorded, plan, np.random.default_rng(plan.seed), progress)
    result = []
    for draw in range(plan.draws):
        rng = np.random.default_rng([plan.seed, draw, int(np.float64(plan.at).view(np.uint64))])
        result += [
            one
            for name, judged in _parts(recorded, rng).items()
            if (one := _split(recorded, found, plan, draw, name, judged, recall)) is not None
        ]
    return result


def _parts(recorded: RecordedLinks, rng: np.random.Generator) -> dict[str, BoolArray]:
    """Which pages are evaluated, and not learned from."""
    count = len(recorded.sites)
    return {
        SAME_SITES: rng.random(len(recorded.site)) < _TEST_SHARE,
        OTHER_SITES: np.isin(recorded.site, rng.permutation(count)[: round(count * _TEST_SHARE)]),
    }


def _split(  # noqa: PLR0913, PLR0917 - what there is, how it is parted, and what that is called
    recorded: RecordedLinks,
    found: dict[int, tuple[LinkExamples, LinkExamples]],
    plan: LblaPlan,
    draw: int,
    name: str,
    judged: BoolArray,
    recall: float,
) -> LblaSplit | None:
    trials = {
        history: LblaTrial(
            train.take(~judged[train.table.page]), test.take(judged[test.table.page]), plan.settings, plan.seed + draw
        )
        for history, (train, test) in found.items()
    }
    one = trials[HISTORIES[-1]]
    if not len(one.train.table) or not len(one.test.table):
        return None
    return LblaSplit(name, trials, len(np.unique(recorded.site[one.test.table.page])), draw, recall)


def _examples(
    recorded: RecordedLinks, plan: LblaPlan, rng: np.random.Generator, progress: Callable[[], object]
) -> tuple[dict[int, tuple[LinkExamples, LinkExamples]], float]:
    """What to learn from and what to evaluate, for each history size.

    And the recall of the search for related pages.
    """
    times = [plan.at - lag * plan.period for lag in range(TRAINED, -1, -1)]
    followed = recorded.recorded_at(plan.at + plan.period)
    told = [_some(recorded, followed & recorded.alive(time), plan.pages, rng) for time in times]
    if plan.alone:
        told = [replace(evidence, links=None) for evidence in told]
    semantics = learn_semantics(_texts(told[0], times[0]), rng)
    by_time: dict[int, list[LinkExamples]] = {history: [] for history in plan.histories}
    recall = 1.0
    for evidence, time in zip(told, times, strict=True):
        around = look_around(evidence, time, semantics, rng)
        recall = min(recall, around.related.recall)
        for history, found in by_time.items():
            options = FeatureOptions(period=plan.period, history=history)
            found.append(examples(evidence, time, around, options))
            progress()
    return {history: (pooled(found[:-1]), found[-1]) for history, found in by_time.items()}, recall


def _some(recorded: RecordedLinks, there: BoolArray, most: int, rng: np.random.Generator) -> FeatureEvidence:
    chosen = np.flatnonzero(there)
    if len(chosen) > most:
        chosen = rng.choice(chosen, most, replace=False)
    mask = np.zeros(len(there), np.bool_)
    mask[chosen] = True
    return recorded.evidence.of_pages(mask)


def _texts(evidence: FeatureEvidence, time: float) -> list[str]:
    return [] if evidence.texts is None else evidence.texts.before(time).last_of(evidence.page)
