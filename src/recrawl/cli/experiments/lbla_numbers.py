"""What ``recrawl experiment lbla`` measures on one split: every figure of paper 004 as named numbers."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable
from dataclasses import dataclass
from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from recrawl.simulate.lbla_splits import Split
    from recrawl.simulate.lbla_trial import Trial

DATA, RATE, PRESENCE, LEARNERS, ORDER, CURVE, HEADS, IMPORTANCE = (
    "data",
    "change rate",
    "presence",
    "learners",
    "rankings",
    "precision",
    "laws",
    "importance",
)
"""The tables."""
FIGURES = {"9": RATE, "10": RATE, "12": PRESENCE, "13": IMPORTANCE, "14": ORDER, "15": ORDER}
"""Figures of the paper, and the table that each is drawn from."""
PERCENTS = (1, 2, 3, 5, 10, 20, 30, 50, 100)
BASELINES = ("NNL-Av", "NNL-Pr", "CCR")
OURS = "NNL-SC-LBLA"
LBLA_ALONE = (OURS, "NNL-ET-LBLA")
"""Rankings by the number of new links that see nothing but LBLA features."""
DRAWN = (*LBLA_ALONE, "NNL-ET", "NNL-NGB", *BASELINES)
"""Rankings in the picture."""


class Number(NamedTuple):
    """One result."""

    links: str
    table: str
    method: str
    measure: str
    value: float


@dataclass(frozen=True, slots=True)
class Run:
    """What was measured on one split at one time."""

    at: float
    split: str
    draw: int
    numbers: tuple[Number, ...]


def measured(
    split: Split, progress: Callable[[], object], *, tables: Collection[str] = (), alone: bool = False
) -> list[Number]:
    """The numbers of one split: those of some tables, of all if none is named.

    If ``alone`` only those of LBLA features against one feature. ``progress`` is called :func:`steps` times.
    """
    from recrawl.simulate.lbla_trial import KINDS

    whole = split.trials[max(split.trials)]
    found: list[Number] = []
    for links in KINDS:
        if alone:
            found += [*_data(split, whole, links), *_orders(whole, links, (OURS,))]
            progress()
            continue
        found += _data(split, whole, links)
        parts = {
            RATE: _rates(whole, links),
            PRESENCE: _presence(split, whole, links),
            LEARNERS: _learners(whole, links),
            ORDER: _orders(whole, links),
            HEADS: _heads(whole, links),
            IMPORTANCE: _importance(split, whole, links),
        }
        for table, part in parts.items():
            if not tables or table in tables:
                found += part
                progress()
    return found


def steps(tables: Collection[str], *, alone: bool) -> int:
    """How often :func:`measured` calls ``progress``."""
    return 2 * (1 if alone else len(set(tables)) or 6)


def _data(split: Split, trial: Trial, links: str) -> Iterable[Number]:
    import numpy as np

    from recrawl.predict.feature_sets import Target

    told = {
        "examples to learn from": float(len(trial.train.table)),
        "pages judged": float(len(trial.test.table)),
        "sites judged": float(split.sites),
        "recall of related pages": split.recall,
        "share with new links": float(np.nanmean(trial.test.truth(links, Target.NL))),
    }
    return (Number(links, DATA, "all", measure, value) for measure, value in told.items())


def _rates(trial: Trial, links: str) -> Iterable[Number]:
    from recrawl.predict.feature_sets import FeatureSet
    from recrawl.predict.link_learners import Learner

    for features in FeatureSet:
        # The page's own past is no feature here, so PAGE would be STATIC once more.
        if features is not FeatureSet.PAGE:
            rate = trial.change_rate(links, features, Learner.HISTOGRAM_BOOSTING)
            shown = {"R²": rate.r2, "mean error": rate.mean_error, "median error": rate.median_error}
            yield from (Number(links, RATE, str(features), name, value) for name, value in shown.items())


def _presence(split: Split, trial: Trial, links: str) -> Iterable[Number]:
    from recrawl.predict.feature_sets import FeatureSet
    from recrawl.predict.link_learners import Learner

    learner = Learner.EXTRA_TREES
    sets = [one for one in FeatureSet if one not in {FeatureSet.ALL, FeatureSet.LBLA}]
    scores = {str(one): trial.presence(links, one, learner) for one in sets}
    for history, one in split.trials.items():
        scores[f"all, history {history}"] = one.presence(links, FeatureSet.ALL, learner)
    scores["LBLA alone"] = trial.presence(links, FeatureSet.LBLA, learner)
    scores["as in the last period (NNL-Pr)"] = trial.presence_as_before(links)
    for method, score in scores.items():
        shown = {"balanced accuracy": score.balanced_accuracy, "F1": score.f1}
        shown |= {"precision": score.precision, "recall": score.recall}
        yield from (Number(links, PRESENCE, method, name, value) for name, value in shown.items())


def _learners(trial: Trial, links: str) -> Iterable[Number]:
    from recrawl.predict.feature_sets import FeatureSet, Target
    from recrawl.predict.link_learners import Learner

    for features in (FeatureSet.LBLA, FeatureSet.ALL):
        for learner in Learner:
            if learner is Learner.SHRUNKEN_COUNTS and features is not FeatureSet.LBLA:
                continue
            method = f"{learner}, {features}"
            if learner is not Learner.NATURAL_BOOSTING:
                chance = trial.presence(links, features, learner)
                yield Number(links, LEARNERS, method, "balanced accuracy", chance.balanced_accuracy)
                yield Number(links, LEARNERS, method, "F1", chance.f1)
            number = trial.quantity(links, Target.NNL, features, learner)
            yield Number(links, LEARNERS, method, "R² of the number", number.r2)
            yield Number(links, LEARNERS, method, "mean error", number.mean_error)


def _orders(trial: Trial, links: str, only: Collection[str] = ()) -> Iterable[Number]:
    from recrawl.predict.feature_sets import Target
    from recrawl.simulate.lbla_trial import CONTESTANTS

    contestants = [one for one in CONTESTANTS if not only or one.name in only]
    ranked = trial.ranked(links, contestants)
    area = {one.name: one.area for one in ranked if one.target is Target.NNL}
    for one in ranked:
        yield Number(links, ORDER, one.name, f"Spearman {one.target}", one.spearman)
        yield Number(links, ORDER, one.name, f"area {one.target}", one.area)
    for name in [one for one in LBLA_ALONE if one in area]:
        for baseline in BASELINES:
            yield Number(links, ORDER, name, f"area NNL over {baseline}", area[name] - area[baseline])
    scores = trial.scores(links, contestants)
    for name in [one for one in DRAWN if one in scores]:
        found = trial.precision(links, scores[name], PERCENTS)
        yield from (
            Number(links, CURVE, name, f"{percent}%", value) for percent, value in zip(PERCENTS, found, strict=True)
        )


def _heads(trial: Trial, links: str) -> Iterable[Number]:
    yield from (Number(links, HEADS, name, "log loss", loss) for name, loss in trial.count_losses(links).items())


def _importance(split: Split, trial: Trial, links: str) -> Iterable[Number]:
    # A thousand questions to a model: once for each time is enough.
    if split.draw or not split.same_sites:
        return
    from recrawl.predict.feature_sets import FeatureSet
    from recrawl.predict.link_learners import Learner

    found = trial.importance(links, FeatureSet.ALL, Learner.HISTOGRAM_BOOSTING, repeats=1)
    yield from (Number(links, IMPORTANCE, one.name, "loss of balanced accuracy", one.loss) for one in found)
