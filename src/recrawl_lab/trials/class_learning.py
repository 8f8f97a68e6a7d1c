"""Which learner tells classes of change apart best, and from which features: paper 002, §3.3 and Table 1."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass
from types import MappingProxyType

import numpy as np

from recrawl.model import IntArray
from recrawl.predict.feature_table import FeatureTable
from recrawl_lab.learners.class_learners import LEARNERS, wrapper_selection
from recrawl_lab.trials.class_trial import balanced
from recrawl_lab.trials.rate_training import known_only

PAPER = (
    "internal_links",
    "external_links",
    "emails",
    "has_last_modified",
    "text_size",
    "content_size",
    "images",
    "domain_depth",
    "directory_level",
)
"""The features of the paper. The size is that without tags, or with them where nobody took the tags out."""
FEATURES = ("paper's", "all", "chosen")
FEWEST = 12
"""Pages that each class must have: a third of them is evaluated."""
_SELECTED_ON = 1_500
"""Pages that features are chosen on, at most: the search trains hundreds of trees."""


@dataclass(frozen=True, slots=True)
class LearnerResult:
    """One learner with one set of features."""

    learner: str
    features: str
    wrong: IntArray
    """1 for each tested page that was put into a wrong class, else 0."""
    fitting: float
    """Seconds."""
    classifying: float
    """Seconds for all tested pages."""


@dataclass(frozen=True, slots=True)
class Table1:
    """All learners with all sets of features, on equally many pages of each class."""

    learned: tuple[LearnerResult, ...]
    names: Mapping[str, tuple[str, ...]]
    """The features of each set; those chosen are in the order they were found in."""
    taught: int
    """Pages learned from; half as many are evaluated."""
    tested: IntArray
    """Places of the tested pages in the table."""


def table_1(
    observations: FeatureTable, label: IntArray, classes: int, rng: np.random.Generator, clock: Callable[[], float]
) -> Table1 | None:
    """Compare the learners on a balanced sample, two thirds to learn from; ``None`` where a class has too few pages.

    Features are chosen on the pages learned from. ``clock`` tells seconds, for the times.
    """
    chosen = balanced(label, rng)
    if len(chosen) < FEWEST * len(np.unique(label)):
        return None
    order = rng.permutation(chosen)
    cut = 2 * len(order) // 3
    known, tested = np.sort(order[:cut]), np.sort(order[cut:])
    table = known_only(observations.take(known))
    some = np.sort(rng.choice(len(known), min(len(known), _SELECTED_ON), replace=False))
    best = wrapper_selection(table.take(some), label[known][some], classes, rng)
    sets = {
        FEATURES[0]: _paper(table.names),
        FEATURES[1]: table.names,
        FEATURES[2]: best or table.names,
    }
    learned = [
        _learned((name, learner), observations.only(names), label, (known, tested, classes), clock)
        for name, names in sets.items()
        for learner in LEARNERS
    ]
    return Table1(tuple(learned), MappingProxyType(sets), len(known), tested)


def _paper(names: Collection[str]) -> tuple[str, ...]:
    found = [name for name in PAPER if name in names]
    return tuple(name for name in found if name != "content_size" or "text_size" not in found)


def _learned(
    what: tuple[str, str],
    table: FeatureTable,
    label: IntArray,
    parts: tuple[IntArray, IntArray, int],
    clock: Callable[[], float],
) -> LearnerResult:
    features, learner = what
    known, tested, classes = parts
    taught, judged = table.take(known), table.take(tested)
    begin = clock()
    model = LEARNERS[learner](taught, label[known], classes)
    fitted = clock()
    said = np.argmax(model.chances(judged), axis=1)
    return LearnerResult(learner, features, (said != label[tested]).astype(np.int64), fitted - begin, clock() - fitted)
