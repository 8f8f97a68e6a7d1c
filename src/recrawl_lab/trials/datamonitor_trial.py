"""The evaluation of datamonitor (§4.2–4.3): three years of each document, visited by an adaptive strategy.

Documents have a record of three years with at least one change; at most N of each class of change rate (Table 2) are
drawn at random. Their records are aligned at birth. Intervals are between a day and six months. Recall is observed
changes over changes; precision is observed changes over downloads, without the first (reading 001.6).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np

from recrawl.assess.prediction_scores import MeanInterval, ratio_with_interval
from recrawl.model import FloatArray, IntArray, Verdict
from recrawl.schedule.policies.policy_registry import ORACLES, POLICIES
from recrawl.schedule.policy import Policy
from recrawl.simulate.benchmark_field import BenchmarkField
from recrawl.simulate.policy_benchmark import BenchmarkRules, compete
from recrawl.simulate.sampling import Collection, PageTruth
from recrawl.simulate.virtual_web import EventTimes
from recrawl.time import DAY

YEAR = 365 * DAY
YEARS = 3
STRATEGIES = ("week", "fix", "dyn", "window", "state-1", "state-2", "gold")
CLASSES: dict[str, tuple[float, float]] = {
    "7d > λ > 2d": (2.0, 7.0),
    "14d > λ > 7d": (7.0, 14.0),
    "1m > λ > 14d": (14.0, 30.0),
    "2m > λ > 1m": (30.0, 60.0),
    "4m > λ > 2m": (60.0, 120.0),
    "6m > λ > 4m": (120.0, 180.0),
    "λ > 6m": (180.0, np.inf),
}
"""Table 2: mean days from one change to the next, from and to; a month has 30 days (reading 001.1)."""
ALL = "all"


@dataclass(frozen=True, slots=True)
class Documents:
    """Records of three years side by side, one row a document."""

    field: BenchmarkField
    rate: FloatArray
    """Changes per second over the whole record: what ``gold`` knows."""
    kind: IntArray
    """Which of :data:`CLASSES` each belongs to."""
    length: float = YEARS * YEAR
    """Seconds of each record; scored as a whole and in three parts, in the paper years."""

    def __len__(self) -> int:
        return len(self.kind)


def documents(
    collections: Sequence[Collection], rng: np.random.Generator, *, most: int = 300, length: float = YEARS * YEAR
) -> Documents:
    """The documents of these collections with a record of ``length`` seconds, at most N of each class.

    O(pages + changes).

    Raises:
        ValueError: no document has a record so long with a change in it.
    """
    lifetimes = [collection.watched() for collection in collections]
    born = np.concatenate([life.born for life in lifetimes])
    spans = np.concatenate([np.minimum(life.died, life.end) - life.born for life in lifetimes])
    whole = EventTimes.concatenate([life.changes for life in lifetimes])
    site = np.repeat(np.arange(len(lifetimes)), [len(life) for life in lifetimes])
    counts = whole.counts()
    with np.errstate(divide="ignore", invalid="ignore"):
        days = spans / counts / DAY
    usable = np.isfinite(spans) & (spans >= length) & (counts > 0)
    chosen = [
        np.sort(_some(np.flatnonzero(usable & (days >= low) & (days < high)), rng, most))
        for low, high in CLASSES.values()
    ]
    rows = np.concatenate(chosen)
    if not len(rows):
        slow = np.isfinite(spans) & (counts > 0) & (days >= min(low for low, _ in CLASSES.values()))
        longest = float(spans[slow].max(initial=0.0)) / DAY
        msg = f"no document that changes at most every two days has a record of {length / DAY:,.0f} days"
        msg += f"; the longest record has {int(longest):,} days" if longest >= 1.0 else ""
        raise ValueError(msg)
    kind = np.repeat(np.arange(len(CLASSES)), [len(part) for part in chosen])
    born_of = PageTruth(born, np.full(len(born), np.inf), whole, 0.0, length).take(rows)
    since = born_of.changes.times - born_of.born[born_of.changes.row_of_event()]
    changes = EventTimes(born_of.changes.offsets, since).where(since <= length)
    truth = PageTruth(np.zeros(len(rows)), np.full(len(rows), np.inf), changes, 0.0, length)
    field = BenchmarkField.of("documents", truth, cluster=site[rows])
    return Documents(field, counts[rows] / spans[rows], kind, length)


def _some(rows: IntArray, rng: np.random.Generator, most: int) -> IntArray:
    return rows if len(rows) <= most else rng.choice(rows, most, replace=False)


def strategy(name: str, true_rates: Callable[[IntArray], FloatArray]) -> Policy:
    """One of :data:`STRATEGIES` with the settings of the paper."""
    return ORACLES[name](true_rates) if name in ORACLES else POLICIES[name]()


@dataclass(frozen=True, slots=True)
class StrategyOutcome:
    """What one strategy did with one class of documents in one third of the record, or in the whole of it (year 0)."""

    kind: str
    strategy: str
    year: int
    documents: int
    changes: int
    downloads: int
    observed: int
    recall: MeanInterval
    precision: MeanInterval


def try_strategy(found: Documents, name: str, rng: np.random.Generator) -> list[StrategyOutcome]:
    """Let one strategy visit all documents, and score it by class and third of the record: in the paper, by year."""
    rules = BenchmarkRules(0.0, whenever_due=True, scored_from=0.0)
    policy = strategy(name, lambda page: found.rate[page])
    visits = compete(found.field, policy, rules, rng, keep_visits=True).visits
    assert visits is not None  # noqa: S101 - asked for
    first = np.full(len(found), np.inf)
    np.minimum.at(first, visits.page, visits.time)
    changes = found.field.truth.changes
    row = changes.row_of_event()
    countable = changes.times > first[row]
    again = visits.take(visits.verdict != Verdict.UNKNOWN)
    outcomes = []
    for year in range(YEARS + 1):
        part = found.length / YEARS
        begin, end = (0.0, found.length) if year == 0 else ((year - 1) * part, year * part)
        within = countable & (changes.times > begin) & (changes.times <= end)
        made = again.take((again.time > begin) & (again.time <= end))
        counts = [
            np.bincount(rows, minlength=len(found)).astype(np.float64)
            for rows in (row[within], made.page, made.page[made.verdict == Verdict.CHANGED])
        ]
        outcomes += [_outcome(found, kind, name, year, counts, rng) for kind in (ALL, *CLASSES)]
    return outcomes


def _outcome(  # noqa: PLR0913, PLR0917 - what is counted, and where
    found: Documents, kind: str, name: str, year: int, counts: list[FloatArray], rng: np.random.Generator
) -> StrategyOutcome:
    """Sums over the documents of a class; intervals from resampling documents."""
    rows = np.arange(len(found)) if kind == ALL else np.flatnonzero(found.kind == list(CLASSES).index(kind))
    changes, downloads, observed = (column[rows] for column in counts)
    return StrategyOutcome(
        kind,
        name,
        year,
        len(rows),
        int(changes.sum()),
        int(downloads.sum()),
        int(observed.sum()),
        ratio_with_interval(observed, changes, rows, rng),
        ratio_with_interval(observed, downloads, rows, rng),
    )
